"""The stores of a node in a cluster of nodes: that of groups, in partitions of one compacted topic on a Kafka
cluster, and that of users, ACLs and quotas, in another.

The owner of a partition writes to it as one producer, whose epoch the cluster gives out: `ownership`. It
writes plain idempotent batches: `writer`. No client library is used, as none lets a plain batch be written
under the epoch of a transactional id: librdkafka and Java's producer, once they have a transactional id,
write in transactions only, which cost two more writes of the cluster's for each append, hold the answer back
until the end of the transaction, and lend no epoch to a program; aiokafka keeps producer id, epoch and
sequences to itself, too. A batch whose answer was lost has to be sent again under the very same sequence
number, by code that knows the outcome of those before it."""

from __future__ import annotations

from ringleader.coordinator.storage.kafka.format import Claim
from ringleader.coordinator.storage.kafka.security import TopicStore
from ringleader.coordinator.storage.kafka.store import KafkaStorage

__all__ = ["Claim", "KafkaStorage", "TopicStore"]
