//! The job that makes documents of the videos that were found in a channel.

use std::time::Duration;

use colloquy_blobs::NoRoom;
use colloquy_kernel::jobs::{GivenUp, Job, RetryRule, Run, RunResult};
use serde::{Deserialize, Serialize};

use super::{Channel, documents_of};
use crate::{
    Bases, budget,
    error::BaseError,
    outage, rewriting,
    store::{self, VideoState},
    upload::{self, DocumentOptions},
};

/// How many documents are made in a transaction.
const AT_ONCE: i64 = 50;

/// Makes documents of the videos of a channel that are new, newest first.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Import {
    /// The id of the folder that follows it.
    pub folder: String,
}

impl Job for Import {
    type State = Bases;

    const KIND: &'static str = "bases.import";

    const RETRY: RetryRule = RetryRule {
        attempts: 5,
        first: Duration::from_secs(2),
        most: Duration::from_secs(300),
    };

    const AT_ONCE: usize = 2;

    fn dedup_key(&self) -> Option<String> {
        Some(self.folder.clone())
    }

    async fn run(self, bases: Bases, run: Run) -> anyhow::Result<RunResult> {
        let ended = self.attempt(&bases, &run).await;
        outage::outlast(&bases, ended, || async { Ok(()) }).await
    }

    /// It is queued again after a while.
    async fn give_up(self, _bases: Bases, _run: Run, _why: GivenUp) -> anyhow::Result<()> {
        Ok(())
    }
}

impl Import {
    /// Notes why videos of the channel are not imported. They are once there is room.
    async fn leave_incomplete(
        &self,
        bases: &Bases,
        run: &Run,
        base: &str,
        why: NoRoom,
    ) -> anyhow::Result<()> {
        let transaction = budget::begin(bases, base).await?;
        if run.holds(&transaction).await? {
            store::leave_incomplete(&transaction, &self.folder, &why.to_string()).await?;
            transaction.commit().await?;
        }
        Ok(())
    }

    async fn attempt(&self, bases: &Bases, run: &Run) -> anyhow::Result<RunResult> {
        let db = bases.store.db();
        let Some(owned) = store::load_channel(db, &self.folder).await? else {
            return Ok(RunResult::Done);
        };
        if !owned.channel.enabled {
            return Ok(RunResult::Done);
        }
        let rewrites = !rewriting::models(bases, owned.channel.model_tier).is_empty();
        let mut documents = None;
        let mut most = AT_ONCE;
        loop {
            let base = &owned.base_id;
            let transaction = budget::begin(bases, base).await?;
            if !run.holds(&transaction).await? {
                return Ok(RunResult::Done);
            }
            let folder = &self.folder;
            let known = match &mut documents {
                Some(known) => known,
                none => none.insert(documents_of(&transaction, base).await?),
            };
            let pending = store::pending_videos(&transaction, folder, most).await?;
            let mut refused = None;
            for (before, video) in (0..).zip(&pending) {
                // Somebody has brought it since it was seen.
                if let Some(document) = known.get(&video.video) {
                    let state = VideoState::Duplicate;
                    store::set_video(&transaction, folder, &video.video, state, document).await?;
                    continue;
                }
                let options = options(&owned.channel, &video.title, rewrites);
                let made = upload::insert_url(bases, &transaction, &owned, &video.url, options);
                match made.await {
                    Ok(document) => {
                        let state = VideoState::Imported;
                        store::set_video(&transaction, folder, &video.video, state, &document)
                            .await?;
                    }
                    Err(BaseError::Full(reason)) => {
                        store::leave_incomplete(&transaction, folder, &reason).await?;
                        transaction.commit().await?;
                        return Ok(RunResult::Done);
                    }
                    Err(BaseError::NoRoom(why @ NoRoom::Partner(_))) => {
                        refused = Some((before, why));
                        break;
                    }
                    Err(other) => return Err(other.into()),
                }
            }
            if let Some((fitting, why)) = refused {
                // The transaction has the row that was refused: the videos before it are imported by another one.
                drop(transaction);
                if fitting == 0 {
                    self.leave_incomplete(bases, run, base, why).await?;
                    return Ok(RunResult::Done);
                }
                most = fitting;
                continue;
            }
            transaction.commit().await?;
            bases.kernel.jobs.wake();
            if (pending.len() as i64) < most {
                return Ok(RunResult::Done);
            }
            most = AT_ONCE;
        }
    }
}

/// How the document of a video is made: rewritten where a model for that is there.
fn options(channel: &Channel, title: &str, rewrites: bool) -> DocumentOptions {
    DocumentOptions {
        name: Some(title.to_owned()),
        auto_rewrite: rewrites,
        use_original_as_rewritten: !rewrites,
        model_tier: channel.model_tier,
        ..DocumentOptions::default()
    }
}
