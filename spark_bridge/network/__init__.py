"""Asking a Kafka cluster from Spark's processes, which call and wait."""
