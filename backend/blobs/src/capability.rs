//! Files as a part of a server: the sweeper.

use std::time::Duration;

use axum::extract::FromRef;
use colloquy_kernel::{Capability, State};

use super::Blobs;

/// How often files are removed that nobody refers to.
const SWEEP_EVERY: Duration = Duration::from_secs(30);

/// The files of partners, as a part of a server.
#[derive(Debug)]
pub struct BlobsCapability;

#[async_trait::async_trait]
impl<S: State> Capability<S> for BlobsCapability
where
    Blobs: FromRef<S>,
{
    fn name(&self) -> &'static str {
        "blobs"
    }

    async fn start(&self, state: &S) -> anyhow::Result<()> {
        let blobs = Blobs::from_ref(state);
        blobs.remove_old_copies().await?;
        state
            .as_ref()
            .repeat("removing files", SWEEP_EVERY, move |_| {
                let blobs = blobs.clone();
                async move {
                    blobs.sweep().await?;
                    blobs.measure().await
                }
            });
        Ok(())
    }
}
