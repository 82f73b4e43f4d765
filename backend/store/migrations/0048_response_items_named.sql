-- The id of an item names its response.
DROP TABLE response_items;
