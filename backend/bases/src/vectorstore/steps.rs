//! The steps of a file on its way to a vector store, and of its removal there.

use std::{
    future::Future,
    sync::atomic::AtomicBool,
    time::{Duration, Instant},
};

use colloquy_blobs::ObjectError;
use colloquy_kernel::jobs::Run;
use colloquy_providers::{
    ProviderError, ProviderErrorKind,
    openai::{FileAttributes, IndexState, NewFile, VectorStore},
};
use colloquy_store::{StoreError, Transaction};
use tokio::{
    sync::Mutex,
    time::{Interval, MissedTickBehavior, interval, timeout},
};

use super::{FileState, Place};
use crate::{
    Bases, budget,
    content::Variant,
    store::{self, OwnedDocument, SyncedFile},
};

/// How long the service may take for an answer, and for an upload.
const ANSWER: Duration = Duration::from_secs(30);
const UPLOAD: Duration = Duration::from_secs(300);
/// When it is looked again whether a file is searched: after half the time that it has taken, between these.
pub(super) const LOOK_FIRST: Duration = Duration::from_secs(1);
const LOOK_LAST: Duration = Duration::from_secs(30);
/// How long after a question, whose answer is not known, what it makes may still come to be; what is looked for and not found before that may
/// be there later.
pub(super) const SETTLES_MS: i64 = 5_000;
/// How many pages of a list are looked through.
const MOST_PAGES: usize = 100;
/// How far the clocks of this machine and the service may differ, in seconds.
const SKEW_SECONDS: i64 = 600;
/// The longest value of an attribute.
const ATTRIBUTE_CHARACTERS: usize = 512;

/// Lets requests begin at a rate.
pub(super) struct Pace(Mutex<Interval>);

impl Pace {
    /// The first one waits, too: the run before may have asked a moment ago.
    pub(super) fn new(per_minute: u32) -> Self {
        let mut turns = interval(Duration::from_secs(60) / per_minute.max(1));
        turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
        turns.reset();
        Self(Mutex::new(turns))
    }

    async fn turn(&self) {
        self.0.lock().await.tick().await;
    }
}

/// Why a step was not done.
pub(super) enum StepFailure {
    /// The service failed.
    Service(ProviderError),
    /// Something is not there that was; the row knows.
    Gone(&'static str),
    /// What was asked for may still come to be, until this time.
    Unsettled(i64),
    /// Something of this server did.
    Own(anyhow::Error),
    /// Another run has the job.
    Lost,
}

impl From<ProviderError> for StepFailure {
    fn from(error: ProviderError) -> Self {
        Self::Service(error)
    }
}

impl From<StoreError> for StepFailure {
    fn from(error: StoreError) -> Self {
        Self::Own(error.into())
    }
}

impl From<anyhow::Error> for StepFailure {
    fn from(error: anyhow::Error) -> Self {
        Self::Own(error)
    }
}

/// What is looked for at the service.
#[derive(Clone, Copy)]
enum Sought<'a> {
    /// The file of this name.
    File(&'a str),
    /// The vector store of this base.
    Store(&'a str),
}

/// A run of the job.
pub(super) struct Sync<'a> {
    pub(super) bases: &'a Bases,
    pub(super) run: &'a Run,
    pub(super) service: &'a VectorStore,
    pub(super) pace: Pace,
    /// Held while the vector store of a base is looked for or made.
    pub(super) making: Mutex<()>,
    pub(super) begun: Instant,
    /// Whether nothing is begun any more.
    pub(super) is_interrupted: AtomicBool,
}

impl Sync<'_> {
    /// Takes a file as far as it gets now.
    pub(super) async fn steps(&self, file: &mut SyncedFile) -> Result<(), StepFailure> {
        loop {
            let next = match file.state {
                FileState::Queued => self.upload(file).await?,
                FileState::Uploaded => self.attach(file).await?,
                FileState::Indexing => self.look(file).await?,
                FileState::Removing => self.remove(file).await?,
                FileState::Synced | FileState::Failed => None,
            };
            let Some(state) = next else {
                return Ok(());
            };
            (file.state, file.asked_at) = (state, None);
        }
    }

    async fn upload(&self, file: &mut SyncedFile) -> Result<Option<FileState>, StepFailure> {
        let (bases, db) = (self.bases, self.bases.store.db());
        let owned = store::load_document(db, &file.document_id).await?;
        let Some(owned) = owned.filter(|_| file.is_current) else {
            return self.give_up_file(file).await;
        };
        let contents = store::contents_of(db, &file.document_id).await?;
        let content = contents
            .into_iter()
            .find(|content| content.variant == Variant::Rewritten);
        let Some(content) = content else {
            return self.give_up_file(file).await;
        };
        if content.sha256 != file.sha256 {
            // It changed while the sync was off.
            let transaction = budget::begin(self.bases, &file.base_id).await?;
            if !self.run.holds(&transaction).await? {
                return Err(StepFailure::Lost);
            }
            let place = Place {
                bases,
                tenant: &owned.tenant(),
                base: &file.base_id,
            };
            place
                .bring(&transaction, &file.document_id, &content.sha256, false)
                .await?;
            transaction.commit().await?;
            return Ok(None);
        }
        let name = file_name(file);
        if let Some(asked_at) = file.asked_at
            && let Some(found) = self.find(Sought::File(&name), asked_at).await?
        {
            return self.set_uploaded(file, found).await;
        }
        let content = match bases.blobs.read(&content.blob).await {
            Ok(opened) => NewFile {
                name,
                bytes: opened.bytes,
                content: opened.pieces,
            },
            // Somebody wrote another content meanwhile, which is queued.
            Err(ObjectError::Missing) => return Err(StepFailure::Gone("its content is gone")),
            Err(ObjectError::Lost) => return Err(StepFailure::Gone("its content is lost")),
            Err(ObjectError::Damaged) => return Err(StepFailure::Gone("its content is damaged")),
            Err(error) => return Err(StepFailure::Own(error.into())),
        };
        self.pace.turn().await;
        if !self.announce(file).await? {
            return Ok(None);
        }
        let made = within(UPLOAD, self.service.upload(content)).await;
        let made = self.made_by(file, made).await?;
        self.set_uploaded(file, made).await
    }

    /// Nothing of the document is to be there.
    async fn give_up_file(&self, file: &SyncedFile) -> Result<Option<FileState>, StepFailure> {
        let transaction = self.begin().await?;
        let now = self.bases.clock.now_ms();
        store::remove_file(&transaction, &file.id, now).await?;
        transaction.commit().await?;
        Ok(None)
    }

    /// What a question has made whose answer is not known, if anything. What it has made besides goes.
    async fn find(&self, what: Sought<'_>, asked_at: i64) -> Result<Option<String>, StepFailure> {
        // A list shows what was there when it was begun.
        let looked_at = self.bases.clock.now_ms();
        let since = asked_at / 1_000 - SKEW_SECONDS;
        let mut after: Option<String> = None;
        for _ in 0..MOST_PAGES {
            self.pace.turn().await;
            let page = within(ANSWER, async {
                let after = after.as_deref();
                match what {
                    Sought::File(name) => self.service.find_files(name, since, after).await,
                    Sought::Store(base) => self.service.find(base, since, after).await,
                }
            });
            let page = page.await?;
            let mut found = page.ids.into_iter();
            if let Some(first) = found.next() {
                for other in found {
                    match what {
                        Sought::File(_) => self.ask(self.service.delete_file(&other)).await?,
                        Sought::Store(_) => self.ask(self.service.delete(&other)).await?,
                    }
                }
                return Ok(Some(first));
            }
            if page.next.is_none() {
                return settled(asked_at, looked_at).map(|()| None);
            }
            after = page.next;
        }
        let message = "its list is too long to be looked through";
        let kind = ProviderErrorKind::Failed;
        Err(ProviderError::new("vector store", kind, message).into())
    }

    /// Notes what the service calls a file. Where nobody wants it any more, it goes.
    async fn set_uploaded(
        &self,
        file: &mut SyncedFile,
        made: String,
    ) -> Result<Option<FileState>, StepFailure> {
        let (bases, id, made_id) = (self.bases, &file.id, &made);
        let stored = self.run.insist(bases, || async move {
            let now = bases.clock.now_ms();
            Ok(store::set_uploaded(bases.store.db(), id, made_id, now).await?)
        });
        if !stored.await? {
            self.ask(self.service.delete_file(&made)).await?;
            return Ok(None);
        }
        file.file_id = Some(made);
        Ok(Some(FileState::Uploaded))
    }

    async fn attach(&self, file: &mut SyncedFile) -> Result<Option<FileState>, StepFailure> {
        let (bases, db) = (self.bases, self.bases.store.db());
        let owned = store::load_document(db, &file.document_id).await?;
        let Some(owned) = owned.filter(|_| file.is_current) else {
            return self.give_up_file(file).await;
        };
        let Some(file_id) = file.file_id.clone() else {
            store::lose_file(db, &file.id, bases.clock.now_ms()).await?;
            return Ok(Some(FileState::Queued));
        };
        let base_name = store::base_name(db, &file.base_id).await?;
        let base_name = base_name.unwrap_or_default();
        let store = self.vectorstore(file, &owned, &base_name).await?;
        if file.asked_at.is_some() {
            let state = self.ask(self.service.state(&store, &file_id)).await?;
            if let Some(state) = state {
                return self.indexed(file, state).await;
            }
        }
        self.pace.turn().await;
        if !self.announce(file).await? {
            return Ok(None);
        }
        let attributes = FileAttributes {
            document_id: file.document_id.clone(),
            name: short(&owned.document.name),
            folder: short(&owned.document.folder),
            knowledge_base: short(&base_name),
            sha256: file.sha256.clone(),
        };
        let attached = self.service.attach(&store, &file_id, &attributes);
        let attached = within(ANSWER, attached).await;
        if let Some(state) = self.made_by(file, attached).await? {
            return self.indexed(file, state).await;
        }
        // One of them was deleted there by somebody else.
        let now = bases.clock.now_ms();
        let gone = if self.ask(self.service.is_there(&store)).await? {
            store::lose_file(db, &file.id, now).await?;
            file.state = FileState::Queued;
            "the vector store's file is not there any more"
        } else {
            let transaction = self.begin().await?;
            store::lose_vectorstore(&transaction, &file.base_id, &store, now).await?;
            transaction.commit().await?;
            "the vector store is not there any more"
        };
        Err(StepFailure::Gone(gone))
    }

    async fn look(&self, file: &mut SyncedFile) -> Result<Option<FileState>, StepFailure> {
        let db = self.bases.store.db();
        let known = store::vectorstore_of(db, &file.base_id).await?;
        let store = known.and_then(|known| known.store_id);
        let state = match (&store, &file.file_id) {
            (Some(store), Some(file_id)) => self.ask(self.service.state(store, file_id)).await?,
            _ => None,
        };
        if let Some(state) = state {
            return self.indexed(file, state).await;
        }
        let now = self.bases.clock.now_ms();
        let state = FileState::Uploaded;
        store::set_file_state(db, &file.id, state, now, now).await?;
        file.state = state;
        let gone = "the file is not in the vector store any more";
        Err(StepFailure::Gone(gone))
    }

    /// Notes how far a file is that is in the vector store.
    async fn indexed(
        &self,
        file: &SyncedFile,
        state: IndexState,
    ) -> Result<Option<FileState>, StepFailure> {
        let (bases, now) = (self.bases, self.bases.clock.now_ms());
        let most = Duration::from_secs(bases.config.vectorstore.indexing_seconds.into());
        let taken = match file.state {
            FileState::Indexing => Duration::from_millis((now - file.since).max(0).unsigned_abs()),
            _ => Duration::ZERO,
        };
        let transaction = self.begin().await?;
        match state {
            IndexState::Completed => store::set_synced(&transaction, file, now).await?,
            IndexState::Failed(code) => {
                let error = format!("the vector store cannot read it: {code}");
                let attempts = file.attempts + 1;
                store::fail_file(&transaction, &file.id, attempts, None, &error).await?;
            }
            IndexState::Running if taken >= most => {
                let error = format!(
                    "the vector store did not read it within {} s",
                    most.as_secs()
                );
                let attempts = file.attempts + 1;
                store::fail_file(&transaction, &file.id, attempts, None, &error).await?;
            }
            IndexState::Running => {
                let wait = (taken / 2).clamp(LOOK_FIRST, LOOK_LAST);
                let next = now + milliseconds(wait);
                let state = FileState::Indexing;
                store::set_file_state(&transaction, &file.id, state, now, next).await?;
            }
        }
        transaction.commit().await?;
        Ok(None)
    }

    async fn remove(&self, file: &SyncedFile) -> Result<Option<FileState>, StepFailure> {
        let db = self.bases.store.db();
        let there = match (&file.file_id, file.asked_at) {
            (Some(file_id), _) => Some(file_id.clone()),
            (None, Some(asked_at)) => self.find(Sought::File(&file_name(file)), asked_at).await?,
            (None, None) => None,
        };
        if let Some(file_id) = there {
            let known = store::vectorstore_of(db, &file.base_id).await?;
            if let Some(store) = known.and_then(|known| known.store_id) {
                self.ask(self.service.detach(&store, &file_id)).await?;
            }
            self.ask(self.service.delete_file(&file_id)).await?;
        }
        let transaction = self.begin().await?;
        store::delete_synced_file(&transaction, &file.id).await?;
        transaction.commit().await?;
        Ok(None)
    }

    /// The vector store of a base, which is made where there is none.
    async fn vectorstore(
        &self,
        file: &SyncedFile,
        owned: &OwnedDocument,
        base_name: &str,
    ) -> Result<String, StepFailure> {
        let _making = self.making.lock().await;
        let (db, base) = (self.bases.store.db(), &file.base_id);
        let known = store::vectorstore_of(db, base).await?;
        if let Some(store) = known.as_ref().and_then(|known| known.store_id.clone()) {
            return Ok(store);
        }
        let asked_at = known.and_then(|known| known.asked_at);
        let found = match asked_at {
            Some(asked_at) => self.find(Sought::Store(base), asked_at).await?,
            None => None,
        };
        let store = match found {
            Some(store) => store,
            None => {
                self.pace.turn().await;
                let transaction = self.begin().await?;
                let now = self.bases.clock.now_ms();
                store::ask_for_vectorstore(&transaction, base, now).await?;
                transaction.commit().await?;
                let name = format!("{}/{base_name}", owned.tenant().partner().as_str());
                within(ANSWER, self.service.create(&short(&name), base)).await?
            }
        };
        let (bases, made) = (self.bases, &store);
        let stored = self.run.insist(bases, || async move {
            Ok(store::set_vectorstore(bases.store.db(), base, made).await?)
        });
        if !stored.await? {
            // The base went meanwhile.
            self.ask(self.service.delete(&store)).await?;
            return Err(StepFailure::Lost);
        }
        Ok(store)
    }

    pub(super) async fn remove_vectorstore(
        &self,
        store: &store::BaseVectorstore,
    ) -> Result<(), StepFailure> {
        let found = match (&store.store_id, store.asked_at) {
            (Some(id), _) => Some(id.clone()),
            (None, Some(asked_at)) => self.find(Sought::Store(&store.base_id), asked_at).await?,
            (None, None) => None,
        };
        if let Some(id) = found {
            self.ask(self.service.delete(&id)).await?;
        }
        let transaction = self.begin().await?;
        store::delete_vectorstore(&transaction, &store.base_id).await?;
        transaction.commit().await?;
        Ok(())
    }

    /// Notes that the service is about to be asked for the next state of a file. Whether that is still wanted.
    async fn announce(&self, file: &SyncedFile) -> Result<bool, StepFailure> {
        let transaction = self.begin().await?;
        let now = self.bases.clock.now_ms();
        let is_wanted = store::ask_for_file(&transaction, file, now).await?;
        transaction.commit().await?;
        Ok(is_wanted)
    }

    /// What a request has made that was announced. One that made nothing need not be looked for; of any other failure it is not known, from now on.
    async fn made_by<T>(
        &self,
        file: &SyncedFile,
        answer: Result<T, ProviderError>,
    ) -> Result<T, StepFailure> {
        if let Err(error) = &answer {
            let (db, now) = (self.bases.store.db(), self.bases.clock.now_ms());
            match is_refusal(error.kind) {
                true => store::withdraw_question(db, &file.id).await?,
                false => store::doubt_file(db, &file.id, now).await?,
            }
        }
        Ok(answer?)
    }

    /// A transaction of whoever still has the job.
    async fn begin(&self) -> Result<Transaction, StepFailure> {
        let transaction = self.bases.store.begin().await?;
        match self.run.holds(&transaction).await? {
            true => Ok(transaction),
            false => Err(StepFailure::Lost),
        }
    }

    /// Asks the service something, in its turn.
    async fn ask<T>(
        &self,
        question: impl Future<Output = Result<T, ProviderError>>,
    ) -> Result<T, StepFailure> {
        self.pace.turn().await;
        Ok(within(ANSWER, question).await?)
    }
}

/// An answer, or a failure after a while.
async fn within<T>(
    most: Duration,
    question: impl Future<Output = Result<T, ProviderError>>,
) -> Result<T, ProviderError> {
    let late = |_| {
        let kind = ProviderErrorKind::Timeout;
        ProviderError::new("vector store", kind, "no answer in time")
    };
    timeout(most, question).await.map_err(late)?
}

/// Passes when what was not found at a time is not there: nothing comes to be any more of what was asked for before.
fn settled(asked_at: i64, looked_at: i64) -> Result<(), StepFailure> {
    let until = asked_at.saturating_add(SETTLES_MS);
    match looked_at >= until {
        true => Ok(()),
        false => Err(StepFailure::Unsettled(until)),
    }
}

/// Whether a request that failed so has certainly made nothing.
fn is_refusal(kind: ProviderErrorKind) -> bool {
    use ProviderErrorKind::{Busy, Connect, Misconfigured, RateLimited, Rejected, Resting};
    matches!(
        kind,
        Busy | Connect | Misconfigured | RateLimited | Rejected | Resting
    )
}

/// A time in milliseconds.
pub(super) fn milliseconds(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

/// What a file is called at the service, by which it is found again.
fn file_name(file: &SyncedFile) -> String {
    format!("{}-{}.md", file.document_id, file.id)
}

/// The beginning of a name, as long as an attribute may be.
fn short(name: &str) -> String {
    name.chars().take(ATTRIBUTE_CHARACTERS).collect()
}
