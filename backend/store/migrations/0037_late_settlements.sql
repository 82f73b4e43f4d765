-- Finds what was settled at its bound when whoever had reserved it settles late. There are few of these.
CREATE INDEX usage_records_bound ON usage_records (id) WHERE outcome = 'bound';
