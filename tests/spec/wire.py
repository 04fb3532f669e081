"""Members of the consumer protocol, and a classic one, in a group of a running coordinator, recorded: only
what they say and hear is seen.

One request is under way at a time, so it is known in which order they were handled. While the classic member
is there, one of the consumer protocol is there, too, so the group stays one of that.
"""

from __future__ import annotations

import random
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

from ringleader.coordinator.consumer_groups.member import AWAY_EPOCH, LEFT_EPOCH
from ringleader.coordinator.consumer_groups.topics import Topic, Topics
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    MetadataRequest,
    MetadataRequestTopic,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    SyncGroupRequest,
)
from tests.simulation.consumer.classic import ClassicMember
from tests.simulation.consumer.member import FENCED, ModelMember, Owned
from tests.simulation.consumer.world import VERSIONS as CLASSIC_VERSIONS
from tests.simulation.consumer.world import AnyMember
from tests.spec.commits import Reader
from tests.spec.exchanges import heard, heard_by_classic, request_by_classic, request_line
from tests.spec.traces import Line, Trace, check
from tests.support.rawclient import RawConnection

NAMES = ("a", "b", "s", "c")
STATIC, CLASSIC = "s", "c"
STAYS = "a"
"""It does not leave before the classic one."""
STEPS = 60
COMMITS = 0.5
"""How often a member fetches offsets or commits before its heartbeat."""
OFFSETS_VERSION = 9
VERSIONS = {**CLASSIC_VERSIONS, SyncGroupRequest: 4}
"""Of the classic requests. From 5 on SyncGroup has to say the protocol."""
REFUSED = frozenset((ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID))
"""Codes of a commit that does not count."""


class WireWorld:
    """A group at `address`, whose members subscribe to one topic. The same seed makes the same choices."""

    def __init__(self, address: str, group_id: str, topic: str, seed: int) -> None:
        self.group_id, self.now_ms, self.rng = group_id, 0, random.Random(seed)
        self.lines: list[Line] = []
        self._topic, self._seed, self._serial = topic, seed, 0
        self._connection = RawConnection(address)
        found = self._connection.call(MetadataRequest([MetadataRequestTopic(name=topic)]), 12).topics[0]
        self._partitions = {(found.topic_id, one.partition_index) for one in found.partitions}
        self.topics, self.cooperative = Topics(), self.rng.random() < 0.7
        self.topics.put(Topic(topic, found.topic_id, len(found.partitions)))
        self._ids = {topic: found.topic_id}
        self._members: dict[str, AnyMember] = {}
        self._readers: dict[str, Reader] = {}
        self._lives = dict.fromkeys(NAMES, -1)

    def record(self, path: Path) -> Trace:
        """The trace, which is left in a file, too: members come, beat, lose requests and answers, leave, and
        a static one goes away."""
        try:
            for name in NAMES:
                self._come(name)
                self._beat(name)
            for _ in range(STEPS):
                name = self.rng.choice(NAMES)
                if name not in self._members:
                    self._come(name)
                elif self.rng.random() < 0.08 and self._may_go(name):
                    self._go(name)
                else:
                    self._beat(name)
        finally:
            self._connection.close()
        partitions = self._places(self._partitions)
        title = f"{self.group_id}, seed {self._seed}"
        again = f"python -m tests.spec.traces {path}"
        trace = Trace(title, set(NAMES), partitions, self.lines, again, open=True, classics={CLASSIC})
        trace.write(path)
        return trace

    def _come(self, name: str) -> None:
        self._serial += 1
        self._lives[name] += 1
        world: Any = self
        self._readers[name] = Reader()
        if name == CLASSIC:
            self._members[name] = ClassicMember(world, None, frozenset((self._topic,)))
            return
        instance_id = name if name == STATIC else None
        member = ModelMember(world, self._serial, instance_id, frozenset((self._topic,)))
        member.member_id = f"{name}-{self._seed}-{self._serial}"
        self._members[name] = member

    def _may_go(self, name: str) -> bool:
        stays = name == STAYS and CLASSIC in self._members
        return self._members[name].epoch > 0 and not stays

    def _go(self, name: str) -> None:
        member = self._members.pop(name)
        if isinstance(member, ClassicMember):
            [left] = self._call(member.leave()).members
            assert not left.error_code, left
            self._line("leave", name)
            self._line("landed")
            return
        away = name == STATIC and self.rng.random() < 0.7
        response = self._ask(member.leave(AWAY_EPOCH if away else LEFT_EPOCH))
        assert not response.error_code, response
        self._line("goaway" if away else "leave", name)
        self._line("landed")

    def _beat(self, name: str) -> None:
        member, fate = self._members[name], self.rng.random()
        if isinstance(member, ClassicMember):
            self._beat_classic(name, member, fate)
            return
        if member.to_revoke and self.rng.random() < 0.6:
            member.revoke()
            self._line("revoke", name, owned=self._places(member.owned))
        self._readers[name].owns(self._places(member.owned))
        if member.epoch > 0 and self.rng.random() < COMMITS:
            self._read(name, member, self._readers[name])
        if member.instance_id is not None and not member.epoch:
            fate = 0.5  # Kafka would refuse its next join: `static-rejoin` of docs/kafka-differences.md
        request = member.request()
        self._line(
            "send",
            name,
            id=member.member_id,
            ask=request_line(member, request, self._lives[name], self._places),
        )
        response = None
        if fate > 0.05:
            response = self._ask(request)
            self._line("handle", name)
            self._line("landed")
        if response is None or fate > 0.9:
            member.failed()
            self._line("lose", name)
        else:
            member.answered(response)
            self._line("receive", name, **heard(member, response, self._places))

    def _beat_classic(self, name: str, member: ClassicMember, fate: float) -> None:
        stays = self._members.get(STAYS)
        if stays is None or stays.epoch <= 0:
            return
        self._readers[name].owns(self._places(member.owned))
        if member.epoch > 0 and self.rng.random() < COMMITS:
            self._read(name, member, self._readers[name])
        request = member.request()
        if not member.member_id:  # it is told one, and asks again
            member.answered(self._call(request), self._ids)
            request = member.request()
        ask = request_by_classic(member, self._lives[name], self._places(member.owned))
        self._line("send", name, id=member.member_id, ask=ask)
        response = None
        if fate > 0.05:
            response = self._call(request)
            self._line("handle", name)
            self._line("landed")
        if response is None or fate > 0.9:
            member.failed()
            self._line("lose", name)
        else:
            member.answered(response, self._ids)
            self._line("receive", name, **heard_by_classic(member, response, self._places))

    def _call(self, request: Any) -> Any:
        return self._connection.call(request, VERSIONS[type(request)])

    def _read(self, name: str, member: AnyMember, reader: Reader) -> None:
        """It fetches what it has no offset of, or commits one record more, in the epoch that it knows of."""
        blind = sorted(reader.owned - reader.positions.keys())
        if blind:
            wanted = OffsetFetchRequestTopics(self._topic, partition_indexes=[int(one[1:]) for one in blind])
            is_classic = isinstance(member, ClassicMember)  # its fetches name no member
            of: tuple[str | None, int] = (None, -1) if is_classic else (member.member_id, member.epoch)
            group = OffsetFetchRequestGroup(self.group_id, of[0], of[1], [wanted])
            [found] = self._connection.call(OffsetFetchRequest(groups=[group]), OFFSETS_VERSION).groups
            for one in found.topics[0].partitions if not found.error_code else ():
                place, shows = f"p{one.partition_index}", max(0, one.committed_offset)
                self._line("fetch", name, p=place, shows=shows)
                reader.positions[place] = shows
        elif reader.positions:
            place = self.rng.choice(sorted(reader.positions))
            reader.positions[place] += 1
            to = reader.positions[place]
            self._line("commit", name, p=place, ask={"epoch": member.epoch, "to": to})
            row = OffsetCommitRequestPartition(int(place[1:]), to)
            request = OffsetCommitRequest(self.group_id, member.epoch, member.member_id, member.instance_id)
            request.topics = [OffsetCommitRequestTopic(self._topic, partitions=[row])]
            [answer] = self._connection.call(request, OFFSETS_VERSION).topics[0].partitions
            assert answer.error_code in (0, *REFUSED), answer
            self._line("committed", name, ok=not answer.error_code)
            self._line("landed")
            self._line("acknowledged", name)

    def _ask(self, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
        response: ConsumerGroupHeartbeatResponse = self._connection.call(request, 1)
        assert response.error_code in (0, *FENCED), response
        return response

    def _line(self, kind: str, name: str = "", **seen: Any) -> None:
        self.lines.append({"kind": kind, **({"m": name} if name else {}), **seen})

    @staticmethod
    def _places(some: Owned | set[tuple[bytes, int]] | Any) -> set[str]:
        return {f"p{number}" for _, number in some}


def judge_wire(trace: Trace) -> None:
    """It is what the specification allows, and is not once an answer has another member's partition, too, or
    a commit that counted is refused."""
    lines = deepcopy(trace.lines)
    place = next(
        place
        for place, line in enumerate(lines)
        if line["kind"] == "receive" and line["answer"].get("all", set()) not in (set(), trace.partitions)
    )
    answer = lines[place]["answer"]
    answer["all"].add(min(trace.partitions - answer["all"]))
    spoiled = replace(trace, title="spoiled", lines=lines[: place + 1])
    refusing = deepcopy(trace.lines)
    at = next(at for at, line in enumerate(refusing) if line["kind"] == "committed" and line["ok"])
    refusing[at]["ok"] = False
    refused = replace(trace, title="refused", lines=refusing[: at + 1])
    found = check([trace, spoiled, refused])
    assert f"spoiled: step {place + 1} of {place + 1}, " in found.refused.pop("spoiled")
    assert f"refused: step {at + 1} of {at + 1}, " in found.refused.pop("refused")
    assert found.refused == {}
