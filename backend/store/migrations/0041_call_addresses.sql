-- The network that a call was created from with a publishable key: an IPv4 address, or the /64 of an IPv6 address. Null for other calls, and
-- once the call begins or ends.
ALTER TABLE calls ADD COLUMN page_network TEXT;

-- The calls of a publishable key that have not begun are bounded, for the key and for each network.
DROP INDEX calls_of_pages;

CREATE INDEX calls_of_pages ON calls (page_key, page_network, character_bytes) WHERE state = 'starting' AND page_key IS NOT NULL;

-- Finds calls that a node of an earlier version began or ended, which left the network. There are few of these.
CREATE INDEX calls_left_networks ON calls (id) WHERE page_network IS NOT NULL AND state <> 'starting';
