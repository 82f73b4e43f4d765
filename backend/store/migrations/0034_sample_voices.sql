-- What the synthesizer calls the voice that suits a sample, where the worker tells; it speaks while the sample is preferred.
ALTER TABLE voice_scores ADD COLUMN synthesizer_voice TEXT;
