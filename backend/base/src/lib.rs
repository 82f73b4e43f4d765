//! What all parts of the server share and what knows nothing of them.
//!
//! - [`clock`]: the only source of time and identifiers
//! - [`money`]: amounts of US dollars
//! - [`cache`]: a small map whose entries are short-lived
//! - [`counts`]: how much each of many has of something that is bounded
//! - [`fair_queue`]: slots that many share, in a fair order
//! - [`identifiers`]: of partners and of saved characters
//! - [`invalid`]: what is wrong with something that was given
//! - [`language`]: languages by name and by tag
//! - [`markup`]: marks inside of a line of Markdown or HTML
//! - [`memory`]: memory that owners share, reserved before it is used
//! - [`names`]: what people may call things
//! - [`permits`]: a bounded number of permits that owners share
//! - [`json`]: JSON from outside, with a bound on the memory that it becomes

pub mod cache;
pub mod clock;
pub mod counts;
pub mod fair_queue;
pub mod identifiers;
pub mod invalid;
pub mod json;
pub mod language;
pub mod markup;
pub mod memory;
pub mod money;
pub mod names;
pub mod permits;
