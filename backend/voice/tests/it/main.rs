//! Whole conversations in fake time: a recorded voice over a bad network, scripted providers, and the engine between.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on should say where"
)]

mod barge_in;
mod end_of_turn;
mod failures;
mod harness;
mod hearing;
mod life;
mod playout;
mod random;
mod slow_models;
mod turns;
