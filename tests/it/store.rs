//! Databases of earlier servers that go on, and the sums of the texts of partners.

mod measures;
mod text_sums;
mod texts;
