"""Offsets of groups in the transactions of a Kafka cluster, on nodes before it."""
