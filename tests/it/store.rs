//! The sums of the texts of partners, which several capabilities store.

mod text_sums;
