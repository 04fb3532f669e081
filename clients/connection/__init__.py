"""Connections to a Kafka cluster: asking brokers, finding coordinators, TLS and SASL on the way."""
