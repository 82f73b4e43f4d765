//! The quality of the connection over the time of a call: a bounded series of points, stored in the background while the call runs.

use std::time::Duration;

use colloquy_store::{Executor, StoreError, statement};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use utoipa::ToSchema;

use crate::Calls;

/// The most points of a call. Once there are as many, each two become one, and points come half as often.
pub const MAX_POINTS: usize = 120;

/// The time between the points of a call that has lasted for less than 20 minutes.
pub const POINT_EVERY: Duration = Duration::from_secs(10);

/// The quality of the connection in a part of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct QualityPoint {
    /// The end of the part, in milliseconds since the media connected.
    pub at_ms: u64,
    /// The longest round trip in milliseconds; null if none was measured.
    pub round_trip_ms: Option<u32>,
    /// The largest jitter of the visitor's packets in milliseconds: how much later than the fastest ones 95 % of them came at most. Null if too few came.
    pub jitter_ms: Option<u32>,
    /// The fraction of the visitor's packets that were lost, from 0 to 1; null if none were sent.
    pub loss_received: Option<f64>,
    /// The fraction of the server's packets that were lost, from 0 to 1, as the page reports it; null if it does not.
    pub loss_sent: Option<f64>,
}

impl QualityPoint {
    /// Returns true if nothing was measured.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let Self { at_ms, .. } = *self;
        *self
            == Self {
                at_ms,
                ..Self::default()
            }
    }

    /// Returns consecutive points as one: with the worst times and the mean losses. `None` for no points.
    fn merged(points: &[Self]) -> Option<Self> {
        let mean = |loss: fn(&Self) -> Option<f64>| {
            let known: Vec<f64> = points.iter().filter_map(loss).collect();
            (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
        };
        Some(Self {
            at_ms: points.last()?.at_ms,
            round_trip_ms: points.iter().filter_map(|it| it.round_trip_ms).max(),
            jitter_ms: points.iter().filter_map(|it| it.jitter_ms).max(),
            loss_received: mean(|it| it.loss_received),
            loss_sent: mean(|it| it.loss_sent),
        })
    }
}

/// The points of a call so far.
#[derive(Debug, Default)]
struct Series {
    points: Vec<QualityPoint>,
    /// Those that the next point is made of.
    pending: Vec<QualityPoint>,
    /// The number of times that pairs of points were merged.
    halvings: u32,
}

impl Series {
    /// Adds a point. Returns true if there is a new one to store.
    fn add(&mut self, point: QualityPoint) -> bool {
        self.pending.push(point);
        self.pending.len() >= 1 << self.halvings && self.complete()
    }

    /// Makes a point of those that are pending. Returns false if none are.
    fn complete(&mut self) -> bool {
        let Some(point) = QualityPoint::merged(&self.pending) else {
            return false;
        };
        self.pending.clear();
        self.points.push(point);
        if self.points.len() >= MAX_POINTS {
            let pairs = self.points.chunks(2).filter_map(QualityPoint::merged);
            self.points = pairs.collect();
            self.halvings += 1;
        }
        true
    }
}

/// Stores the quality of a call while it runs, in the background. All points are written at once, so that a database that was away has those of that
/// time, too, with the next one.
#[derive(Debug)]
pub struct QualityLog {
    series: Series,
    stored: watch::Sender<Vec<QualityPoint>>,
}

impl QualityLog {
    /// Begins with the quality of a call that this node runs.
    #[must_use]
    pub fn start(calls: &Calls, id: &str) -> Self {
        let (sender, mut stored) = watch::channel(Vec::new());
        let (calls, id) = (calls.clone(), id.to_owned());
        let tasks = calls.kernel.tasks.clone();
        tasks.spawn(async move {
            while stored.changed().await.is_ok() {
                let points = stored.borrow_and_update().clone();
                if let Err(error) = store(calls.store.db(), &id, &points).await {
                    calls
                        .store
                        .complain("storing the quality of a call", &error);
                }
            }
        });
        Self {
            series: Series::default(),
            stored: sender,
        }
    }

    /// Adds the quality of the last [`POINT_EVERY`].
    pub fn add(&mut self, point: QualityPoint) {
        if self.series.add(point) {
            self.stored.send_replace(self.series.points.clone());
        }
    }
}

impl Drop for QualityLog {
    /// The last point may be one of a shorter time.
    fn drop(&mut self) {
        if self.series.complete() {
            self.stored.send_replace(self.series.points.clone());
        }
    }
}

/// Stores the points of a call in place of those before. One that was deleted has none.
async fn store(db: &impl Executor, id: &str, points: &[QualityPoint]) -> Result<(), StoreError> {
    let sql = "INSERT INTO call_quality (call_id, points) SELECT id, $2 FROM calls WHERE id = $1 \
               ON CONFLICT (call_id) DO UPDATE SET points = excluded.points";
    let points = serde_json::to_string(points).map_err(StoreError::other)?;
    let values = [id.into(), points.into()];
    db.execute(statement(sql, values)).await.map(|_| ())
}

#[derive(Debug, sqlx::FromRow)]
struct QualityRow {
    points: String,
}

/// Returns the quality of a call until now, oldest first.
pub(super) async fn of(db: &impl Executor, id: &str) -> Result<Vec<QualityPoint>, StoreError> {
    let sql = "SELECT points FROM call_quality WHERE call_id = $1";
    let row: Option<QualityRow> = db.fetch_one(statement(sql, [id.into()])).await?;
    row.map_or_else(
        || Ok(Vec::new()),
        |row| serde_json::from_str(&row.points).map_err(StoreError::malformed),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(number: u64, loss: f64) -> QualityPoint {
        QualityPoint {
            at_ms: number * 10_000,
            round_trip_ms: Some(number as u32),
            jitter_ms: number.is_multiple_of(2).then_some(20),
            loss_received: Some(loss),
            loss_sent: None,
        }
    }

    #[test]
    fn a_call_of_any_length_has_few_points_of_equal_times() {
        let mut series = Series::default();
        // Four hours are the longest, and half a day more than any.
        for number in 1..=4_320 {
            series.add(point(number, 0.0));
            assert!(series.points.len() < MAX_POINTS, "point {number}");
            assert!(series.pending.len() < 64, "point {number}");
        }
        assert!(series.points.len() >= MAX_POINTS / 2);
        let times: Vec<u64> = series.points.iter().map(|it| it.at_ms).collect();
        let step = times[0];
        let expected: Vec<u64> = (1..=times.len() as u64)
            .map(|number| number * step)
            .collect();
        assert_eq!(times, expected);
    }

    #[test]
    fn what_is_thinned_keeps_the_worst_times_and_the_mean_losses() {
        let parts = [
            point(1, 0.0),
            point(2, 0.1),
            point(3, 0.2),
            QualityPoint {
                at_ms: 40_000,
                ..QualityPoint::default()
            },
        ];
        let merged = QualityPoint::merged(&parts).unwrap();
        assert_eq!(merged.at_ms, 40_000);
        assert_eq!(
            (merged.round_trip_ms, merged.jitter_ms),
            (Some(3), Some(20))
        );
        assert!((merged.loss_received.unwrap() - 0.1).abs() < 1e-9);
        assert_eq!(merged.loss_sent, None);
        assert!(!merged.is_empty() && parts[3].is_empty());
        assert_eq!(QualityPoint::merged(&[]), None);
    }

    #[test]
    fn a_short_end_is_a_point_of_its_own() {
        let mut series = Series {
            halvings: 2,
            ..Series::default()
        };
        assert!(!series.add(point(1, 0.0)));
        assert!(series.complete());
        assert_eq!(series.points, [point(1, 0.0)]);
        assert!(!series.complete());
    }
}
