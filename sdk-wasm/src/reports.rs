//! What the driver reports regularly: levels and statistics.

use std::rc::Rc;

use colloquy_protocol::StatsMeter;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::spawn_local;

use crate::driver::Driver;
use crate::js::{self, Timeout};
use crate::stats;

/// How often `onLevels` fires.
const LEVELS_EVERY_MS: f64 = 50.0;

/// How often `onStats` fires.
const STATS_EVERY_MS: f64 = 2_000.0;

impl Driver {
    pub(crate) fn watch_levels(&self) {
        if self.callbacks.has("onLevels") {
            let handler = self.on_levels.as_ref().unchecked_ref();
            let timeout = Timeout::new(handler, LEVELS_EVERY_MS);
            self.state.borrow_mut().resources.levels = Some(timeout);
        }
    }

    pub(crate) fn report_levels(&self) {
        let levels = {
            let mut state = self.state.borrow_mut();
            let microphone = state.resources.microphone.as_mut();
            let (microphone, speaker) = microphone.map_or((0.0, 0.0), |microphone| {
                (microphone.level(), microphone.speaker_level())
            });
            js::object([
                ("microphone", microphone.into()),
                ("speaker", speaker.into()),
            ])
        };
        self.watch_levels();
        self.callbacks.fire("onLevels", &levels);
    }

    pub(crate) fn watch_stats(&self) {
        self.watch_stats_from(StatsMeter::default());
    }

    fn watch_stats_from(&self, meter: StatsMeter) {
        if self.callbacks.has("onStats") {
            let handler = self.on_stats.as_ref().unchecked_ref();
            let timeout = Timeout::new(handler, STATS_EVERY_MS);
            self.state.borrow_mut().resources.stats = Some((meter, timeout));
        }
    }

    pub(crate) fn report_stats(self: &Rc<Self>) {
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
        spawn_local(async move {
            let entries = stats::entries(report).await.ok();
            let Some(driver) = reporter.active() else {
                return;
            };
            let told = entries.map(|entries| stats::told(&meter.read(&entries), &entries));
            driver.watch_stats_from(meter);
            if let Some(told) = told {
                driver.callbacks.fire("onStats", &told);
            }
        });
    }
}
