"""Connections to a Kafka cluster for callers that block: commands, and the processes of Spark."""
