"""Executors: ranges of partitions as Arrow batches."""
