"""`consumer.process`: one call of a handler for each record, many at a time, and commits of what is done."""
