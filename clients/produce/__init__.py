"""Producing: records become batches and go to their partitions, for Spark's sink and the command line."""
