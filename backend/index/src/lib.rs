//! Search over documents: chunks in, ranked passages out.
//!
//! - [`chunking`]: Markdown as pieces that an embedder can take, with their headings; the table of contents
//! - [`analysis`]: text as terms, in the languages of the service
//! - [`search`]: what an index is told and asked, and the trait [`search::SearchIndex`]
//! - [`indexing`]: what every index makes of documents and questions
//! - [`feedback`]: questions with the words of what is near them
//! - [`fusion`]: rankings of several streams as one
//! - [`embedded`]: an index in a folder
//!
//! It knows nothing of requests, jobs and the states of documents. Whoever owns an index says which documents it holds and with
//! which vectors, and asks it.

pub mod analysis;
mod best;
pub mod chunking;
pub mod embedded;
pub mod feedback;
pub mod fusion;
pub mod indexing;
pub mod search;
