"""`SubscriptionPattern` on Apache Kafka and on the daemon: topics that are there, topics that come, and an
expression that is none."""

from __future__ import annotations

import asyncio

import pytest

from ringleader import InvalidRegularExpressionError, SubscriptionPattern
from ringleader.clients.admin import Admin
from tests.interop.clients.test_consumer_protocol_on_kafka import (
    Story,
    at,
    has_read,
    kafka,
    log,
    reading,
)
from tests.interop.clients.test_group_consumer_on_kafka import PARTITIONS, Log
from tests.support.consuming import PATIENCE_S, Sink, until

__all__ = ["kafka", "log"]

pytestmark = pytest.mark.xdist_group("kafka-consumer-protocol")


async def test_topics_that_are_there_and_that_come_are_read(log: Log, group: str) -> None:
    await log.write(40)
    later = f"{log.topic}-later"
    story, sink = Story(), Sink()
    pattern = SubscriptionPattern(f"{log.topic}(-later)?")
    async with Admin(log.bootstrap) as admin, at(log, group, story=story, pattern=pattern) as one:
        async with reading(one, sink):
            await until(lambda: has_read(sink, 40))
            await admin.create_topic(later, 1)
            await until(lambda: (later, 0) in one.assignment())
            assert len(one.assignment()) == PARTITIONS + 1
            await one.subscribe([log.topic])
            await until(lambda: one.assignment() == log.places())
            await one.subscribe(pattern=SubscriptionPattern(f"{log.topic}-l.*"))
            await until(lambda: one.assignment() == [(later, 0)])
        await admin.delete_topics([later])
    assert story.of("lost") == []
    assert sink.values == log.written


async def test_a_static_member_that_comes_back_with_names_has_no_expression_any_more(
    log: Log, group: str
) -> None:
    """Its coordinator keeps the expression of its former life until it is told otherwise."""
    other = f"{log.topic}-other"
    async with Admin(log.bootstrap) as admin:
        await admin.create_topic(other, 1)
        pattern = SubscriptionPattern(f"{log.topic}.*")
        async with at(log, group, group_instance_id="i", pattern=pattern) as one:
            await until(lambda: len(one.assignment()) == PARTITIONS + 1)
        async with at(log, group, group_instance_id="i") as one:
            await until(lambda: one.assignment() == log.places())
        await admin.delete_topics([other])


async def test_what_is_none_of_re2_ends_the_membership(log: Log, group: str) -> None:
    async with at(log, group, pattern=SubscriptionPattern("(?=t).*")) as one:
        with pytest.raises(InvalidRegularExpressionError, match="SubscriptionPattern"):
            async with asyncio.timeout(PATIENCE_S):
                await one.getone(PATIENCE_S)
