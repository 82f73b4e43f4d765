-- How many formulas of a workbook have no stored result.
ALTER TABLE knowledge_documents ADD COLUMN missing_results BIGINT;
