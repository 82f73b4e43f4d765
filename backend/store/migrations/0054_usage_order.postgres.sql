-- Nothing to change: PostgreSQL stores rows in the order of their insertion, which is that of their days.
SELECT 1;
