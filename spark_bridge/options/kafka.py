"""Settings of Kafka's own clients that a job brings along and that have no effect here: they are ignored.

The behaviour they steer does not exist here (a poll, a Java client's metrics), or is there in any case
(checksums), or has bounds of its own. None of them would change the rows, the offsets or the membership.
"""

from __future__ import annotations

_CLIENT = """
    auto.include.jmx.reporter client.dns.lookup connections.max.idle.ms enable.metrics.push
    metadata.recovery.strategy metadata.recovery.rebootstrap.trigger.ms metric.reporters
    metrics.num.samples metrics.recording.level metrics.sample.window.ms receive.buffer.bytes
    reconnect.backoff.max.ms reconnect.backoff.ms retry.backoff.max.ms security.providers
    send.buffer.bytes socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms
"""
_CONSUMER = """
    allow.auto.create.topics auto.commit.interval.ms check.crcs exclude.internal.topics fetch.min.bytes
    group.remote.assignor max.poll.records retry.backoff.ms
"""
_PRODUCER = """
    compression.gzip.level compression.lz4.level compression.zstd.level metadata.max.age.ms
    metadata.max.idle.ms partitioner.adaptive.partitioning.enable partitioner.availability.timeout.ms
    retries transaction.timeout.ms
"""
CONSUMER = frozenset(f"kafka.{name}" for name in (_CLIENT + _CONSUMER).split())
PRODUCER = frozenset(f"kafka.{name}" for name in (_CLIENT + _PRODUCER).split())
