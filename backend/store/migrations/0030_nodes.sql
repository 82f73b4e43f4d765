-- The data folder that the node runs on, as no copy of the folder has it; null where the system does not tell.
ALTER TABLE nodes ADD COLUMN place TEXT;

-- The node's own address, past a load balancer; null where the settings name none.
ALTER TABLE nodes ADD COLUMN url TEXT;

-- Finds the periods that begin in the future, after the clock went back.
CREATE INDEX quotas_period ON quotas (period_start);
