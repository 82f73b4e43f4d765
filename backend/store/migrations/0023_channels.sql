-- What a folder follows: a channel of a video platform.
CREATE TABLE knowledge_channels (
    folder_id TEXT NOT NULL PRIMARY KEY REFERENCES knowledge_folders (id) ON DELETE CASCADE,
    base_id TEXT NOT NULL REFERENCES knowledge_bases (id) ON DELETE CASCADE,
    -- As it was submitted, and where that leads.
    channel_url TEXT NOT NULL,
    alias TEXT NOT NULL,
    -- What the platform calls it; null until it was looked through once.
    channel_id TEXT,
    enabled BOOLEAN NOT NULL,
    model_tier TEXT NOT NULL CHECK (model_tier IN ('standard', 'economy')),
    status TEXT NOT NULL CHECK (status IN ('pending', 'syncing', 'synced', 'incomplete', 'budget_blocked', 'paused', 'error', 'duplicate')),
    last_error TEXT,
    -- The folder that follows the same channel.
    duplicate_of TEXT,
    last_sync_at BIGINT,
    next_sync_at BIGINT,
    created_at BIGINT NOT NULL
);

CREATE UNIQUE INDEX knowledge_channels_alias ON knowledge_channels (base_id, alias);

CREATE INDEX knowledge_channels_blocked ON knowledge_channels (base_id) WHERE status = 'budget_blocked';

-- The videos of a channel that were seen.
CREATE TABLE knowledge_channel_videos (
    channel TEXT NOT NULL REFERENCES knowledge_channels (folder_id) ON DELETE CASCADE,
    video TEXT NOT NULL,
    url TEXT NOT NULL,
    title TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'deferred', 'imported', 'duplicate', 'suppressed')),
    -- The document that was made of it, or was there before.
    document_id TEXT,
    -- When it was seen first, and its place then: what is newer comes first.
    seen_at BIGINT NOT NULL,
    place BIGINT NOT NULL,
    PRIMARY KEY (channel, video)
);

CREATE INDEX knowledge_channel_videos_state ON knowledge_channel_videos (channel, state);

CREATE INDEX knowledge_channel_videos_document ON knowledge_channel_videos (document_id);
