"""What one daemon has, into a Kafka cluster with several nodes: topics with their records, groups with their
offsets."""
