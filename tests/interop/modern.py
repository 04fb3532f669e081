"""The consumer protocol (KIP-848) in the words of steps: its requests, and what a client learns from its
answers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ringleader.protocol import messages as m
from ringleader.protocol.schema import Message

if TYPE_CHECKING:
    from tests.interop.asks import Actor, Ask
    from tests.interop.words import Names

NO_TOPIC = b"\x01" * 16
"""The id of a topic that is not there."""

JOIN_WORDS = {"rebalance": "20s", "topics": "orders", "owned": "nothing"}
"""A member that joins, or says all, says this unless the step or an earlier one said something else."""


def heartbeat(ask: Ask) -> Message:
    """ConsumerGroupHeartbeat: all at epoch 0 and after the word `full`; else only what the step says."""
    actor = ask.actor
    epoch = ask.number("epoch", max(0, actor.generation))
    named = dict(ask.named)
    if epoch == 0 or "full" in ask.plain:
        usual = {**JOIN_WORDS, **({"owned": "own"} if epoch else {})}
        if (named.get("regex") or actor.sticky.get("regex")) and "topics" not in {**named, **actor.sticky}:
            del usual["topics"]
        named = {**usual, **actor.sticky, **named}
    ask.used |= {"rebalance", "topics", "regex", "assignor", "owned", "rack"}
    fresh = actor.name if ask.version else ""
    return m.ConsumerGroupHeartbeatRequest(
        group_id=ask.group,
        member_id=ask.text("member", actor.member_id or fresh),
        member_epoch=epoch,
        instance_id=ask.instance,
        rack_id=_maybe(named.get("rack")),
        rebalance_timeout_ms=ask.duration(named.get("rebalance", "-1")),
        subscribed_topic_names=_names(ask, named.get("topics")),
        subscribed_topic_regex=_maybe(named.get("regex")),
        server_assignor=_maybe(named.get("assignor")),
        topic_partitions=_owned(ask, named.get("owned")),
    )


def _maybe(text: str | None) -> str | None:
    return None if text == "null" else text


def _names(ask: Ask, text: str | None) -> list[str] | None:
    if text is None or text == "null":
        return None
    return [ask.topic(name) for name in text.split("+")] if text != "nothing" else []


def _owned(ask: Ask, text: str | None) -> list[Any] | None:
    if text is None or text == "null":
        return None
    if text == "own":
        return _by_topic(ask.actor.assigned)
    places = []
    for one in text.split(",") if text != "nothing" else ():
        topic, _, partition = one.partition("/")
        places.append((ask.names.topic_ids.get(ask.topic(topic), NO_TOPIC), int(partition)))
    return _by_topic(places)


def _by_topic(places: Iterable[tuple[bytes, int]]) -> list[Any]:
    found: dict[bytes, list[int]] = {}
    for topic_id, partition in places:
        found.setdefault(topic_id, []).append(partition)
    made = m.ConsumerGroupHeartbeatRequestTopicPartitions
    return [made(topic_id=topic_id, partitions=some) for topic_id, some in found.items()]


def describe(ask: Ask) -> Message:
    """ConsumerGroupDescribe."""
    names = [word for word in ask.plain if word != "authorized"]
    return m.ConsumerGroupDescribeRequest(
        group_ids=[ask.names.private(name) for name in names or ["g"]],
        include_authorized_operations="authorized" in ask.plain,
    )


def learn(actor: Actor, request: Any, response: m.ConsumerGroupHeartbeatResponse, names: Names) -> None:
    """The member's id, its epoch and its partitions."""
    if response.error_code:
        return
    if not request.member_id and response.member_id:
        names.made_by_server(actor.name, response.member_id)
    actor.is_modern = True
    if request.member_epoch >= 0:
        actor.member_id = response.member_id or actor.member_id
    actor.generation = response.member_epoch
    if response.assignment is not None:
        actor.assigned = [
            (one.topic_id, partition)
            for one in response.assignment.topic_partitions
            for partition in sorted(one.partitions)
        ]
    elif response.member_epoch < 0:
        actor.assigned = []


def show_places(topics: Iterable[Any], names: Names) -> str:
    """`orders/0,orders/1`; `nothing`."""
    return show_owned([(one.topic_id, partition) for one in topics for partition in one.partitions], names)


def show_owned(places: Iterable[tuple[bytes, int]], names: Names) -> str:
    """The same of topic ids and partitions."""
    return ",".join(sorted(f"{names.topic_of(topic)}/{one}" for topic, one in places)) or "nothing"
