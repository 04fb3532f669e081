"""Ringleader: a Kafka group coordinator that runs by itself."""
