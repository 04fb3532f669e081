"""The move of one daemon's data into a Kafka cluster with several nodes: topics with their records, groups
with their offsets."""
