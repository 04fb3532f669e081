"""Plays the coordinator of the consumer protocol, the clock and the driver to one member machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ringleader.clients.group.machine.consumer_protocol import consumer_protocol
from ringleader.clients.group.machine.machine import MemberMachine
from ringleader.clients.group.settings import MemberSettings
from ringleader.clients.group.subscription import partitions_given_up, partitions_of
from ringleader.clients.model import Assigned, Lost, Revoked, TopicPartition
from ringleader.protocol.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatResponseAssignment,
    ConsumerGroupHeartbeatResponseLeaderTask,
    ConsumerGroupHeartbeatResponseTopicPartitions,
    MetadataResponse,
    MetadataResponseTopic,
)
from tests.support.member_script import MemberScript, TellAssigned

INTERVAL_MS = 5_000
"""The heartbeat interval that the coordinator asks for."""


def topic_id(name: str) -> bytes:
    """The id of a topic in these tests."""
    return name.encode().ljust(16, b"-")


def assignment(share: Mapping[str, Sequence[int]] | None) -> ConsumerGroupHeartbeatResponseAssignment | None:
    """As an answer has it; None: no news."""
    if share is None:
        return None
    one = ConsumerGroupHeartbeatResponseTopicPartitions
    return ConsumerGroupHeartbeatResponseAssignment(
        [one(topic_id(name), list(partitions)) for name, partitions in share.items()]
    )


def owned(request: ConsumerGroupHeartbeatRequest) -> dict[str, list[int]] | None:
    """The partitions that a heartbeat reports, by topic name; None: no news."""
    if request.topic_partitions is None:
        return None
    return {one.topic_id.rstrip(b"-").decode(): one.partitions for one in request.topic_partitions}


def places(reported: Assigned | Revoked | Lost) -> list[TopicPartition]:
    """The partitions that a callback is about."""
    return partitions_of(Assigned(reported.generation, reported.member_id, "", "", reported.assignment))


class ConsumerProtocolScript(MemberScript):
    """As `MemberScript`. `topics`, `regex` and `user_data` may be changed."""

    def __init__(
        self,
        topics: Sequence[str] = ("t",),
        *,
        regex: str | None = None,
        server_assignor: str | None = None,
        rack: str | None = None,
        user_data: bytes | None = None,
        **settings: Any,
    ) -> None:
        super().__init__()
        given: dict[str, Any] = {"group_id": "g", "given_up": partitions_given_up}
        self.topics = topics
        self.regex = regex
        self.user_data = user_data
        self.machine = MemberMachine(
            consumer_protocol(
                MemberSettings(**(given | settings)),
                "me",
                lambda: self.topics,
                lambda: 0.5,
                regex=lambda: self.regex,
                server_assignor=server_assignor,
                rack=rack,
                user_data=None if user_data is None else lambda: self.user_data or b"",
            )
        )

    def heartbeat(self, version: int = 1) -> ConsumerGroupHeartbeatRequest:
        """The heartbeat that waits for its answer."""
        found = self._find("ConsumerGroupHeartbeat").request.build(version)
        assert isinstance(found, ConsumerGroupHeartbeatRequest)
        return found

    def beaten(
        self,
        epoch: int = 1,
        share: Mapping[str, Sequence[int]] | None = None,
        code: int = 0,
        message: str = "",
        task: ConsumerGroupHeartbeatResponseLeaderTask | None = None,
    ) -> None:
        """The answer to it."""
        response = ConsumerGroupHeartbeatResponse(
            error_code=code,
            error_message=message or None,
            member_id="me",
            member_epoch=0 if code else epoch,
            heartbeat_interval_ms=0 if code else INTERVAL_MS,
            assignment=assignment(share),
            leader_task=task,
        )
        self.answer("ConsumerGroupHeartbeat", response)

    def name(self, *known: str, unknown: Sequence[str] = ()) -> None:
        """The answer to Metadata: these topics are known, those not yet."""
        topics = [MetadataResponseTopic(name=name, topic_id=topic_id(name)) for name in known]
        topics += [
            MetadataResponseTopic(error_code=100, name=None, topic_id=topic_id(name)) for name in unknown
        ]
        self.answer("Metadata", MetadataResponse(topics=topics))

    def join(self, code: int = 0, **fields: Any) -> None:
        raise NotImplementedError

    def settled(self, share: Mapping[str, Sequence[int]], epoch: int = 1) -> ConsumerProtocolScript:
        """Started, joined, with this share, which the coordinator knows."""
        self.start()
        self.find()
        self.beaten(epoch, share)
        self.name(*share)
        self.beaten(epoch)
        self.calm(epoch)
        return self

    def calm(self, epoch: int = 1) -> None:
        """Soon after news it asks for more of them; until it has come back to the interval."""
        while (wait_ms := self.due_ms() - self.now_ms) < INTERVAL_MS:
            self.wait(wait_ms)
            self.beaten(epoch)

    def assigned(self) -> list[TopicPartition]:
        """The partitions that `on_assigned` was given last."""
        return places(self.last_reported(TellAssigned).assigned)
