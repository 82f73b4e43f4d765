//! The library as where speech looks for voices.

use async_trait::async_trait;
use colloquy_accounts::Tenant;
use colloquy_speech::{SpeakingVoice, VoiceLibrary};
use colloquy_store::StoreError;

use super::store;
use crate::Voices;

#[async_trait]
impl VoiceLibrary for Voices {
    async fn voices(&self, tenant: &Tenant) -> Result<Vec<SpeakingVoice>, StoreError> {
        let rows = store::speaking(self.store.db(), tenant, None).await?;
        Ok(rows.into_iter().map(SpeakingVoice::from).collect())
    }

    async fn voice(
        &self,
        tenant: &Tenant,
        name: &str,
    ) -> Result<Option<SpeakingVoice>, StoreError> {
        let rows = store::speaking(self.store.db(), tenant, Some(name)).await?;
        Ok(rows.into_iter().next().map(SpeakingVoice::from))
    }
}
