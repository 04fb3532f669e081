"""Connections to a Kafka cluster for who calls and waits: commands, and the processes of Spark."""
