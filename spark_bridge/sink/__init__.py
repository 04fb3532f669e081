"""Writing: rows of Spark become record batches, and go to their partitions."""
