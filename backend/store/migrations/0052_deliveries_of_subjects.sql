-- Lists the deliveries about a call.
CREATE INDEX webhook_deliveries_subject ON webhook_deliveries (partner, subject, id);
