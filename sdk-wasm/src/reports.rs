//! What the driver reports regularly: levels and statistics.

use std::rc::Rc;

use colloquy_protocol::StatsMeter;
use serde::Serialize;

use crate::driver::Driver;
use crate::js;
use crate::stats;

/// How often `onLevels` fires.
const LEVELS_INTERVAL_MS: u32 = 50;

/// How often `onStats` fires.
const STATS_INTERVAL_MS: u32 = 2_000;

/// How loud both sides are, 0 to 1, as `onLevels` is given it.
#[derive(Serialize)]
struct Levels {
    microphone: f64,
    speaker: f64,
}

impl Driver {
    pub(crate) fn watch_levels(self: &Rc<Self>) {
        let listens = self.callbacks.has("onLevels");
        let timeout = listens.then(|| self.schedule(LEVELS_INTERVAL_MS, Self::report_levels));
        self.state.borrow_mut().resources.levels = timeout;
    }

    fn report_levels(self: &Rc<Self>) {
        let levels = {
            let mut state = self.state.borrow_mut();
            let microphone = state.resources.microphone.as_mut();
            let (microphone, speaker) = microphone.map_or((0.0, 0.0), |microphone| {
                (microphone.level(), microphone.speaker_level())
            });
            js::to_value(&Levels {
                microphone,
                speaker,
            })
        };
        self.watch_levels();
        self.callbacks.fire("onLevels", &levels);
    }

    pub(crate) fn watch_stats(self: &Rc<Self>) {
        self.watch_stats_from(StatsMeter::default());
    }

    fn watch_stats_from(self: &Rc<Self>, meter: StatsMeter) {
        if self.callbacks.has("onStats") {
            let timeout = self.schedule(STATS_INTERVAL_MS, Self::report_stats);
            self.state.borrow_mut().resources.stats = Some((meter, timeout));
        }
    }

    fn report_stats(self: &Rc<Self>) {
        let reporter = self.reporter();
        let asked = {
            let mut state = self.state.borrow_mut();
            let meter = state.resources.stats.take().map(|(meter, _)| meter);
            let peer = state.resources.peer.as_ref();
            meter.zip(peer.map(|peer| peer.stats()))
        };
        let Some((mut meter, report)) = asked else {
            return;
        };
        js::spawn(async move {
            let entries = stats::entries(report).await.ok();
            let Some(driver) = reporter.active() else {
                return;
            };
            let value = entries.map(|entries| js::to_value(&meter.read(&entries)));
            driver.watch_stats_from(meter);
            if let Some(value) = value {
                driver.callbacks.fire("onStats", &value);
            }
        });
    }
}
