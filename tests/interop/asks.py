"""From the words of a step to a request: what is not said comes from what the actor knows."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ringleader.protocol import messages as m
from ringleader.protocol.embedded import Subscription
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.frames import REQUESTS
from ringleader.protocol.schema import Message
from tests.interop import modern
from tests.interop.language import ScenarioError
from tests.interop.words import Names

USUAL_VERSIONS = {
    "AddOffsetsToTxn": 3,
    "AddPartitionsToTxn": 3,
    "ApiVersions": 3,
    "ConsumerGroupDescribe": 1,
    "ConsumerGroupHeartbeat": 1,
    "DeleteGroups": 2,
    "DescribeGroups": 5,
    "EndTxn": 3,
    "FindCoordinator": 4,
    "Heartbeat": 4,
    "InitProducerId": 4,
    "JoinGroup": 9,
    "LeaveGroup": 5,
    "ListGroups": 4,
    "OffsetCommit": 9,
    "OffsetDelete": 0,
    "OffsetFetch": 8,
    "SyncGroup": 5,
    "TxnOffsetCommit": 3,
}
"""The version of a request where neither the step nor the scenario names one; never changes by itself."""

STICKY = (
    *("client", "group", "instance", "protocols", "reason", "rebalance", "session", "txn", "type"),
    *("assignor", "rack", "regex", "topics"),
)
"""The values that an actor goes on using once they were given."""

_INSTANCE_SINCE = {
    "ConsumerGroupHeartbeat": 0,
    "JoinGroup": 5,
    "SyncGroup": 3,
    "Heartbeat": 3,
    "OffsetCommit": 7,
}
_UNITS = {"ms": 1, "s": 1_000, "m": 60_000}
NO_PRODUCER = -1


@dataclass(eq=False, slots=True)
class Actor:
    """One client of a scenario: the values that it was given, and those that it learnt from its answers."""

    name: str
    place: int
    """In the order of appearance."""
    sticky: dict[str, str] = field(default_factory=dict)
    member_id: str = ""
    generation: int = -1
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = ""
    members: list[str] = field(default_factory=list)
    assigned: list[tuple[bytes, int]] = field(default_factory=list)
    """Of a member of the consumer protocol: topic ids and partitions."""
    is_modern: bool = False
    """Whether it joined by the consumer protocol."""
    producer_id: int = NO_PRODUCER
    producer_epoch: int = NO_PRODUCER

    def learn(self, request: Message, response: Any, names: Names) -> None:
        """Take what an answer tells this actor."""
        match response:
            case m.JoinGroupResponse():
                names.member(self.name, response.member_id, self.prefix)
                if response.error_code in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
                    self.member_id = response.member_id
                if not response.error_code:
                    self.generation = response.generation_id
                    self.leader = response.leader
                    self.members = [one.member_id for one in response.members]
                    self.protocol_type = response.protocol_type or "consumer"
                    self.protocol_name = response.protocol_name
            case m.ConsumerGroupHeartbeatResponse():
                modern.learn(self, request, response, names)
            case m.InitProducerIdResponse() if not response.error_code:
                names.producer(self.name, response.producer_id)
                self.producer_id, self.producer_epoch = response.producer_id, response.producer_epoch
            case m.EndTxnResponse() if response.producer_id >= 0:
                self.producer_id, self.producer_epoch = response.producer_id, response.producer_epoch

    @property
    def prefix(self) -> str:
        """The beginning that a member id given to it should have."""
        return self.sticky.get("instance") or self.client_id or ""

    @property
    def client_id(self) -> str | None:
        """In the header of its requests."""
        client = self.sticky.get("client", self.name)
        return None if client == "null" else client


@dataclass(slots=True)
class Ask:
    """The words of a step after the actor and the API."""

    actor: Actor
    api: str
    version: int
    plain: list[str]
    named: dict[str, str]
    names: Names
    used: set[str] = field(default_factory=set)

    def text(self, name: str, otherwise: str = "") -> str:
        """A text that was said, now or earlier."""
        self.used.add(name)
        found = self.named.get(name, self.actor.sticky.get(name, otherwise))
        return self.names.real(found)

    def maybe(self, name: str, otherwise: str | None = None) -> str | None:
        """A text that may be null."""
        self.used.add(name)
        found = self.named.get(name, self.actor.sticky.get(name, otherwise))
        return None if found is None or found == "null" else self.names.real(found)

    def number(self, name: str, otherwise: int) -> int:
        """A number or a duration in milliseconds."""
        self.used.add(name)
        found = self.named.get(name, self.actor.sticky.get(name))
        return otherwise if found is None else duration_ms(found)

    @staticmethod
    def duration(text: str) -> int:
        """See `duration_ms`."""
        return duration_ms(text)

    @property
    def group(self) -> str:
        """The group's id on the wire."""
        return self.names.private(self.text("group", "g"))

    @property
    def instance(self) -> str | None:
        """The group instance id, where this version has one."""
        found = self.maybe("instance")
        return found if self.version >= _INSTANCE_SINCE[self.api] or "instance" in self.named else None

    @property
    def member(self) -> str:
        """A member id: the actor's own unless said."""
        return self.text("member", self.actor.member_id)

    @property
    def generation(self) -> int:
        """A generation: the actor's own unless said."""
        return self.number("generation", self.actor.generation)

    def topic(self, name: str) -> str:
        """A topic's name on the wire: `own...` are the play's own, all others are there for everybody."""
        return self.names.private(name) if name.startswith("own") else name


def duration_ms(text: str) -> int:
    """`300ms`, `2s`, `1m`; a plain number is itself."""
    match = re.fullmatch(r"([+-]?\d+)(ms|s|m)?", text)
    if match is None:
        raise ScenarioError(f"no number or duration: {text!r}")
    return int(match[1]) * _UNITS[match[2] or "ms"]


def split_words(text: str) -> tuple[list[str], dict[str, str]]:
    """`orders/0@1 meta='two words'`: the plain words, and those with a name. `<a>` is one word."""
    plain: list[str] = []
    named: dict[str, str] = {}
    # A name like <producer a> has a space.
    parts = shlex.split(re.sub(r"<([a-z]+) ([^<>]*)>", r"<\1~\2>", text))
    for part in (re.sub(r"<([a-z]+)~([^<>]*)>", r"<\1 \2>", one) for one in parts):
        match = re.fullmatch(r"([a-z_]+)=(.*)", part, re.DOTALL)
        if match is None:
            plain.append(part)
        else:
            named[match[1]] = match[2]
    return plain, named


def build(ask: Ask) -> Message:
    """The request. Raises `ScenarioError` for words that it has no use for."""
    message = _BUILD[ask.api](ask)
    unused = set(ask.named) - ask.used - set(STICKY)
    if unused:
        raise ScenarioError(f"{ask.api} has no use for {', '.join(sorted(unused))}")
    return message


# ---- membership ----


def _join(ask: Ask) -> Message:
    return m.JoinGroupRequest(
        group_id=ask.group,
        session_timeout_ms=ask.number("session", 20_000),
        rebalance_timeout_ms=ask.number("rebalance", 20_000),
        member_id=ask.member,
        group_instance_id=ask.instance,
        protocol_type=ask.text("type", "consumer"),
        protocols=[
            m.JoinGroupRequestProtocol(name=name, metadata=data)
            for name, data in _protocols(ask.text("protocols", "range:orders"))
        ],
        reason=ask.maybe("reason"),
    )


def _protocols(text: str) -> list[tuple[str, bytes]]:
    """`range:orders+payments,roundrobin:0x00`: names with topics, or with bytes."""
    found = []
    for one in filter(None, text.split(",")):
        name, _, rest = one.partition(":")
        if rest.startswith("0x"):
            found.append((name, bytes.fromhex(rest[2:])))
        elif rest.startswith("zeros-"):
            found.append((name, bytes(int(rest.removeprefix("zeros-")))))
        elif rest.startswith("text-"):
            found.append((name, rest.encode()))
        else:
            found.append((name, Subscription(list(filter(None, rest.split("+")))).encode(0)))
    return found


def _sync(ask: Ask) -> Message:
    actor = ask.actor
    generation = ask.generation
    usual = ",".join(f"{one}:{_short(ask.names, one)}@{generation}" for one in actor.members)
    assignments = []
    for one in filter(None, ask.text("assign", usual).replace("nothing", "").split(",")):
        member, _, what = one.partition(":")
        data = bytes.fromhex(what[2:]) if what.startswith("0x") else what.encode()
        assignments.append(m.SyncGroupRequestAssignment(member_id=ask.names.real(member), assignment=data))
    with_protocol = ask.version >= 5
    return m.SyncGroupRequest(
        group_id=ask.group,
        generation_id=generation,
        member_id=ask.member,
        group_instance_id=ask.instance,
        protocol_type=ask.maybe("type", actor.protocol_type or "consumer") if with_protocol else None,
        protocol_name=ask.maybe("protocol", actor.protocol_name or "range") if with_protocol else None,
        assignments=assignments,
    )


def _short(names: Names, member_id: str) -> str:
    return names.show(member_id).strip("<>")


def _heartbeat(ask: Ask) -> Message:
    return m.HeartbeatRequest(
        group_id=ask.group,
        generation_id=ask.generation,
        member_id=ask.member,
        group_instance_id=ask.instance,
    )


def _leave(ask: Ask) -> Message:
    reason = ask.maybe("reason")
    entries = []
    for word in ask.plain or [ask.actor.member_id]:
        member, slash, instance = word.partition("/")
        entries.append(
            m.LeaveGroupRequestMemberIdentity(
                member_id=ask.names.real(member), group_instance_id=instance if slash else None, reason=reason
            )
        )
    if ask.plain == ["nobody"]:
        entries = []
    if ask.version < 3:
        return m.LeaveGroupRequest(group_id=ask.group, member_id=entries[0].member_id)
    return m.LeaveGroupRequest(group_id=ask.group, members=entries)


# ---- offsets ----


def _places(ask: Ask, words: list[str]) -> dict[str, list[tuple[int, str]]]:
    """`orders/0@42`: by topic, partitions with what stands after the @."""
    found: dict[str, list[tuple[int, str]]] = {}
    for word in words:
        place, _, offset = word.partition("@")
        topic, _, partition = place.partition("/")
        found.setdefault(ask.topic(topic), []).append((int(partition), offset))
    return found


def _commit(ask: Ask) -> Message:
    return m.OffsetCommitRequest(
        group_id=ask.group,
        generation_id_or_member_epoch=ask.generation,
        member_id=ask.member,
        group_instance_id=ask.instance,
        retention_time_ms=ask.number("retention", -1),
        topics=_offsets(ask, m.OffsetCommitRequestTopic, m.OffsetCommitRequestPartition),
    )


def _offsets(ask: Ask, topic_class: Any, partition_class: Any) -> list[Any]:
    metadata = ask.maybe("meta", "")
    if metadata is not None and metadata.startswith("long-"):
        letter, _, count = metadata.removeprefix("long-").rpartition("*")
        metadata = (letter or "x") * int(count)
    epoch = ask.number("epoch", -1)
    return [
        topic_class(
            name=topic,
            partitions=[
                partition_class(
                    partition_index=partition,
                    committed_offset=int(offset),
                    committed_leader_epoch=epoch,
                    committed_metadata=metadata,
                )
                for partition, offset in partitions
            ],
        )
        for topic, partitions in _places(ask, ask.plain).items()
    ]


def _fetch(ask: Ask) -> Message:
    words = [word for word in ask.plain if word not in ("stable", "as_member")]
    wanted = None if words in ([], ["all"]) else _places(ask, [word for word in words if word != "nothing"])
    stable = "stable" in ask.plain
    if ask.version < 8:
        plain = None if wanted is None else list(wanted.items())
        topics = None if plain is None else [_fetch_topic(m.OffsetFetchRequestTopic, *one) for one in plain]
        return m.OffsetFetchRequest(group_id=ask.group, topics=topics, require_stable=stable)
    groups = []
    as_member = "as_member" in ask.plain
    member_id = ask.maybe("member", ask.actor.member_id if as_member else None)
    epoch = ask.number("generation", ask.actor.generation if as_member else -1)
    for name in ask.text("groups", ask.text("group", "g")).split(","):
        several = None
        if wanted is not None:
            several = [_fetch_topic(m.OffsetFetchRequestTopics, *one) for one in wanted.items()]
        groups.append(m.OffsetFetchRequestGroup(ask.names.private(name), member_id, epoch, several))
    return m.OffsetFetchRequest(groups=groups, require_stable=stable)


def _fetch_topic(topic_class: Any, name: str, partitions: list[tuple[int, str]]) -> Any:
    return topic_class(name=name, partition_indexes=[index for index, _ in partitions])


def _offset_delete(ask: Ask) -> Message:
    return m.OffsetDeleteRequest(
        group_id=ask.group,
        topics=[
            m.OffsetDeleteRequestTopic(
                name=topic,
                partitions=[m.OffsetDeleteRequestPartition(partition_index=index) for index, _ in partitions],
            )
            for topic, partitions in _places(ask, ask.plain).items()
        ],
    )


# ---- administration ----


def _describe(ask: Ask) -> Message:
    names = [word for word in ask.plain if word != "authorized"]
    return m.DescribeGroupsRequest(
        groups=[ask.names.private(name) for name in names or ["g"]],
        include_authorized_operations="authorized" in ask.plain,
    )


def _list(ask: Ask) -> Message:
    return m.ListGroupsRequest(
        states_filter=list(filter(None, ask.text("states").split(","))),
        types_filter=list(filter(None, ask.text("types").split(","))),
    )


def _delete(ask: Ask) -> Message:
    return m.DeleteGroupsRequest(groups_names=[ask.names.private(name) for name in ask.plain or ["g"]])


def _find(ask: Ask) -> Message:
    keys = [ask.names.private(name) for name in ask.plain or ["g"]]
    key_type = ask.number("key_type", 0)
    if ask.version < 4:
        return m.FindCoordinatorRequest(key=keys[0], key_type=key_type)
    return m.FindCoordinatorRequest(coordinator_keys=keys, key_type=key_type)


def _api_versions(ask: Ask) -> Message:
    return m.ApiVersionsRequest(
        client_software_name=ask.text("software", "scenario"),
        client_software_version=ask.text("software_version", "1"),
    )


# ---- transactions ----


def _transactional_id(ask: Ask) -> str:
    return ask.names.private(ask.text("txn", "t"))


def _producer(ask: Ask) -> dict[str, int]:
    ask.used.add("producer")
    given = ask.named.get("producer")
    return {
        "producer_id": ask.actor.producer_id if given is None else ask.names.real_producer(given),
        "producer_epoch": ask.number("producer_epoch", ask.actor.producer_epoch),
    }


def _init_producer(ask: Ask) -> Message:
    fresh = ask.named.get("producer") is None
    return m.InitProducerIdRequest(
        transactional_id=None if ask.maybe("txn", "t") is None else _transactional_id(ask),
        transaction_timeout_ms=ask.number("timeout", 60_000),
        **({} if fresh else _producer(ask)),
    )


def _add_offsets(ask: Ask) -> Message:
    return m.AddOffsetsToTxnRequest(
        transactional_id=_transactional_id(ask), group_id=ask.group, **_producer(ask)
    )


def _add_partitions(ask: Ask) -> Message:
    producer = _producer(ask)
    return m.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=_transactional_id(ask),
        v3_and_below_producer_id=producer["producer_id"],
        v3_and_below_producer_epoch=producer["producer_epoch"],
        v3_and_below_topics=[
            m.AddPartitionsToTxnRequestAddPartitionsToTxnTopic(
                name=topic, partitions=[index for index, _ in partitions]
            )
            for topic, partitions in _places(ask, ask.plain).items()
        ],
    )


def _txn_commit(ask: Ask) -> Message:
    # Only what the step says: a producer may commit for a group that it is no member of.
    as_member = "as_member" in ask.plain
    ask.plain = [word for word in ask.plain if word != "as_member"]
    newer = ask.version >= 3
    actor = ask.actor
    return m.TxnOffsetCommitRequest(
        transactional_id=_transactional_id(ask),
        group_id=ask.group,
        **_producer(ask),
        generation_id_or_member_epoch=ask.number("generation", actor.generation if as_member else -1),
        member_id=ask.text("member", actor.member_id if as_member else ""),
        group_instance_id=ask.maybe("instance") if newer and (as_member or "instance" in ask.named) else None,
        topics=_offsets(ask, m.TxnOffsetCommitRequestTopic, m.TxnOffsetCommitRequestPartition),
    )


def _end(ask: Ask) -> Message:
    if ask.plain not in (["commit"], ["abort"]):
        raise ScenarioError("EndTxn commit, or EndTxn abort")
    return m.EndTxnRequest(
        transactional_id=_transactional_id(ask), committed=ask.plain == ["commit"], **_producer(ask)
    )


_BUILD: dict[str, Callable[[Ask], Message]] = {
    "AddOffsetsToTxn": _add_offsets,
    "AddPartitionsToTxn": _add_partitions,
    "ApiVersions": _api_versions,
    "ConsumerGroupDescribe": modern.describe,
    "ConsumerGroupHeartbeat": modern.heartbeat,
    "DeleteGroups": _delete,
    "DescribeGroups": _describe,
    "EndTxn": _end,
    "FindCoordinator": _find,
    "Heartbeat": _heartbeat,
    "InitProducerId": _init_producer,
    "JoinGroup": _join,
    "LeaveGroup": _leave,
    "ListGroups": _list,
    "OffsetCommit": _commit,
    "OffsetDelete": _offset_delete,
    "OffsetFetch": _fetch,
    "SyncGroup": _sync,
    "TxnOffsetCommit": _txn_commit,
}
APIS = tuple(_BUILD)
KEYS = {cls.NAME.removesuffix("Request"): key for key, cls in REQUESTS.items()}
