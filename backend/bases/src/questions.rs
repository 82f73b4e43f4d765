//! Questions to a base: what is asked, and those that are saved with the documents that answer them.

use colloquy_accounts::{
    Tenant,
    storage::{self, Sum},
};
use colloquy_base::invalid::InvalidField;
use colloquy_store::{Executor, StoreError, Transaction};

use super::{
    Bases, base::KnowledgeBase, budget, error::BaseError, replacing, rows, store,
    store::QuestionRow,
};

/// The longest message, in characters.
pub(crate) const LONGEST: usize = 20_000;
/// The longest name that stands for whoever is spoken to, in characters.
const LONGEST_NAME: usize = 200;
/// The most saved questions of a base.
pub(crate) const MOST: u64 = 500;
/// The most documents that a saved question expects.
pub(crate) const MOST_EXPECTED: usize = 20;

/// What is asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) user_message: String,
    /// What was said before it.
    pub(crate) robot_message: Option<String>,
    /// The name that stands in the place of whoever is spoken to in a second form of the question.
    pub(crate) replacement_name: Option<String>,
}

impl Asked {
    /// Checks what a request says.
    ///
    /// # Errors
    /// A text is missing or too long.
    pub(crate) fn parse(
        user_message: &str,
        robot_message: Option<&str>,
        replacement_name: Option<&str>,
    ) -> Result<Self, InvalidField> {
        if user_message.trim().is_empty() {
            return Err(InvalidField::new("user_message", "is required"));
        }
        bounded("user_message", user_message, LONGEST)?;
        let optional = |field: &'static str, text: Option<&str>, most: usize| {
            let text = text.unwrap_or_default();
            bounded(field, text, most)?;
            Ok::<_, InvalidField>(Some(text.trim().to_owned()).filter(|text| !text.is_empty()))
        };
        Ok(Self {
            user_message: user_message.trim().to_owned(),
            robot_message: optional("robot_message", robot_message, LONGEST)?,
            replacement_name: optional(
                "character_replacement_name",
                replacement_name,
                LONGEST_NAME,
            )?,
        })
    }

    /// Returns the question as it is looked for, and the same with the name, unless that makes no difference. What the user said comes first: of a long
    /// text, an embedder and an index read the beginning.
    pub(crate) fn forms(&self) -> (String, Option<String>) {
        let together = |user: &str| match &self.robot_message {
            None => user.to_owned(),
            Some(robot) => format!("{user}\n{robot}"),
        };
        let name = self.replacement_name.as_deref();
        let replaced = name.and_then(|name| replacing::replaced(&self.user_message, name));
        let original = together(&self.user_message);
        (original, replaced.as_deref().map(together))
    }

    /// The bytes of its texts.
    fn bytes(&self) -> usize {
        let others = [&self.robot_message, &self.replacement_name];
        let others = others.into_iter().flatten().map(String::len);
        self.user_message.len() + others.sum::<usize>()
    }
}

fn bounded(field: &'static str, text: &str, most: usize) -> Result<(), InvalidField> {
    if text.chars().count() > most {
        let message = format!("must have at most {most} characters");
        return Err(InvalidField::new(field, message));
    }
    // PostgreSQL takes no NUL.
    match text.contains('\0') {
        true => Err(InvalidField::new(field, "has a NUL character")),
        false => Ok(()),
    }
}

/// A document that answers a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExpectedDocument {
    pub(crate) id: String,
    pub(crate) name: String,
}

/// A question with the documents that answer it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SavedQuestion {
    pub(crate) id: String,
    pub(crate) asked: Asked,
    /// Those of its documents that were not deleted since.
    pub(crate) expected: Vec<ExpectedDocument>,
    /// Goes up with every change.
    pub(crate) revision: i64,
    pub(crate) created_at: i64,
    pub(crate) updated_at: i64,
}

/// What a request says of a saved question.
#[derive(Debug, Clone)]
pub(crate) struct NewQuestion {
    pub(crate) asked: Asked,
    /// Ids of documents, each once.
    pub(crate) expected: Vec<String>,
}

impl NewQuestion {
    /// What it counts in the storage of its partner.
    fn bytes(&self) -> i64 {
        storage::counted(rows::QUESTION_BYTES + self.asked.bytes() as u64)
    }
}

/// Finds a saved question of a base.
pub(crate) async fn find(
    bases: &Bases,
    base: &KnowledgeBase,
    id: &str,
) -> Result<SavedQuestion, BaseError> {
    let db = bases.store.db();
    let found = store::find_question(db, &base.id, id).await?;
    first(with_expected(db, found.into_iter().collect()).await?)
}

/// Saves a question.
pub(crate) async fn create(
    bases: &Bases,
    tenant: &Tenant,
    base: &KnowledgeBase,
    new: NewQuestion,
) -> Result<SavedQuestion, BaseError> {
    let transaction = budget::begin(bases, &base.id).await?;
    if store::count_questions(&transaction, &base.id).await? >= MOST {
        let message = format!("A knowledge base has {MOST} saved questions at most");
        return Err(BaseError::Full(message));
    }
    let bytes = new.bytes();
    let row = QuestionRow::new(bases.clock.new_id(), &new.asked, bases.clock.now_ms());
    store::insert_question(&transaction, &base.id, &row, bytes).await?;
    expect(&transaction, base, &row.id, &new.expected).await?;
    let saved = with_expected(&transaction, vec![row]).await?;
    rows::charge(bases, &transaction, tenant, bytes.unsigned_abs()).await?;
    transaction.commit().await?;
    first(saved)
}

/// Replaces a question with its documents.
pub(crate) async fn change(
    bases: &Bases,
    tenant: &Tenant,
    base: &KnowledgeBase,
    id: &str,
    new: NewQuestion,
) -> Result<SavedQuestion, BaseError> {
    let transaction = budget::begin(bases, &base.id).await?;
    let found = store::find_question(&transaction, &base.id, id).await?;
    let found = found.ok_or(BaseError::NotFound("Question"))?;
    let before = store::bytes_of_question(&transaction, id).await?;
    let row = found.changed(&new.asked, bases.clock.now_ms());
    let bytes = new.bytes();
    store::update_question(&transaction, &row, bytes).await?;
    expect(&transaction, base, id, &new.expected).await?;
    let saved = with_expected(&transaction, vec![row]).await?;
    match bytes - before {
        more @ 1.. => rows::charge(bases, &transaction, tenant, more.unsigned_abs()).await?,
        less => release(&transaction, tenant, -less).await?,
    }
    transaction.commit().await?;
    first(saved)
}

/// Deletes a question, with its results.
pub(crate) async fn delete(
    bases: &Bases,
    tenant: &Tenant,
    base: &KnowledgeBase,
    id: &str,
) -> Result<(), BaseError> {
    let transaction = budget::begin(bases, &base.id).await?;
    let found = store::find_question(&transaction, &base.id, id).await?;
    let found = found.ok_or(BaseError::NotFound("Question"))?;
    let bytes = store::bytes_of_question(&transaction, &found.id).await?;
    store::delete_question(&transaction, &found.id).await?;
    release(&transaction, tenant, bytes).await?;
    transaction.commit().await?;
    Ok(())
}

async fn release(transaction: &Transaction, tenant: &Tenant, bytes: i64) -> Result<(), BaseError> {
    let partner = tenant.partner().as_str();
    Ok(storage::release(transaction, partner, Sum::Texts, bytes).await?)
}

/// Sets the documents that answer a question.
async fn expect(
    transaction: &Transaction,
    base: &KnowledgeBase,
    question: &str,
    documents: &[String],
) -> Result<(), BaseError> {
    let known = store::documents_of(transaction, &base.id, documents).await?;
    if let Some(unknown) = documents.iter().find(|id| !known.contains(*id)) {
        let message = format!("has {unknown:?}, which is no document of the knowledge base");
        return Err(InvalidField::new("expected_document_ids", message).into());
    }
    Ok(store::set_expected(transaction, question, documents).await?)
}

fn first(saved: Vec<SavedQuestion>) -> Result<SavedQuestion, BaseError> {
    let saved = saved.into_iter().next();
    saved.ok_or(BaseError::NotFound("Question"))
}

/// Reads the documents of questions.
pub(crate) async fn with_expected(
    db: &impl Executor,
    rows: Vec<QuestionRow>,
) -> Result<Vec<SavedQuestion>, StoreError> {
    let ids: Vec<&str> = rows.iter().map(|row| row.id.as_str()).collect();
    let mut expected = store::expected_of(db, &ids).await?;
    let saved = rows.into_iter().map(|row| {
        let documents = expected.remove(&row.id).unwrap_or_default();
        row.saved(documents)
    });
    Ok(saved.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_user_said_is_read_however_much_was_said_before() {
        let robot = "x".repeat(LONGEST);
        let asked = Asked::parse(" When do you open? ", Some(&robot), Some(" Ada ")).unwrap();
        let (original, replaced) = asked.forms();
        assert!(original.starts_with("When do you open?\nxxx"));
        assert!(replaced.unwrap().starts_with("When do Ada open?\nxxx"));
        let alone = Asked::parse("When do you open?", Some(" "), None).unwrap();
        assert_eq!(alone.forms(), ("When do you open?".to_owned(), None));
    }

    #[test]
    fn texts_are_bounded() {
        let long = "é".repeat(LONGEST + 1);
        let name = "é".repeat(LONGEST_NAME + 1);
        for (user, robot, name, field) in [
            (" ", None, None, "user_message"),
            (long.as_str(), None, None, "user_message"),
            ("a\0", None, None, "user_message"),
            ("a", Some(long.as_str()), None, "robot_message"),
            ("a", None, Some(name.as_str()), "character_replacement_name"),
        ] {
            let refused = Asked::parse(user, robot, name).unwrap_err();
            assert_eq!(refused.field, field, "{refused:?}");
        }
        assert_eq!(
            Asked::parse(&long[2..], None, None).unwrap().bytes(),
            40_000
        );
    }
}
