ALTER TABLE webhook_deliveries RENAME COLUMN call_id TO subject;

UPDATE webhook_deliveries SET subject = '/v2/calls/' || subject
