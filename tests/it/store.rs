//! Databases of earlier servers that go on, and the sums of the texts of partners.

mod text_sums;
mod texts;
