"""A recorded process as a client of our own group machine that speaks the consumer protocol (KIP-848)."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

from ringleader.coordinator.consumer_groups.member import AWAY_EPOCH, LEFT_EPOCH
from ringleader.coordinator.consumer_groups.topics import Topic
from ringleader.insight.advice.replay.client import Call, Client, Surroundings
from ringleader.insight.advice.replay.script import Ending, Process
from ringleader.insight.model import TopicPartition
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
    ConsumerGroupHeartbeatResponse,
)

_VERSION = 1
_NO_MEMBER = -1
REMOTE_ASSIGNORS = {"range": "range"}
"""Protocol of a classic group -> the coordinator's assignor that does the same; for all others it is the
default (`uniform`)."""


def topic_of(name: str, partitions: int) -> Topic:
    """A topic of the replay; its id is made of its name."""
    return Topic(name, blake2b(name.encode(), digest_size=16).digest(), partitions)


class ConsumerClient(Client):
    """A process at work. It stops reading only what it has to give up, and learns of that at a heartbeat."""

    def __init__(self, world: Surroundings, process: Process) -> None:
        super().__init__(world, process)
        self.instance_id = process.instance_id
        self.member_id = process.member_ids[0]
        self.share: frozenset[TopicPartition] = frozenset()
        """It is to have these. While its application is busy, it may still own more."""
        self._plain: ConsumerGroupHeartbeatRequest | None = None

    # ---- its life ----

    def end(self) -> None:
        """The process ends. A static member says that it will be back, another one that it leaves."""
        if not self.up:
            return
        if self.generation > 0 and not self.silent:
            if self.instance_id is not None:
                self.say(AWAY_EPOCH)
            elif self.process.ending is Ending.LEAVES:
                self.say(LEFT_EPOCH)
            else:
                self.beat()
        self.up = False
        self.forget()
        self.world.look_at_running()

    def leave(self) -> None:
        """Its own client leaves the group."""
        if self.generation > 0:
            self.say(LEFT_EPOCH)

    def go_on(self) -> None:
        """A heartbeat, and what follows of it."""
        if self.generation > 0:
            self.say(self.generation)
            self.read(self.owned)
        else:
            self.join()

    def get_ready(self) -> None:
        """It calls poll() again, and gives up what it has to."""
        self.busy = max(self.busy - 1, 0)
        if not self.up or self.silent or self.busy:
            return
        if self.generation > 0:
            self.take(self.share)
        self.go_on()

    def forget(self) -> None:
        """It is no member any more."""
        self.generation, self.stable, self._plain = _NO_MEMBER, False, None
        self.owned = self.share = frozenset()
        self.read(frozenset())

    # ---- what it says ----

    def beat(self) -> int:
        """A heartbeat that keeps the session alive and brings no news: those have their own times."""
        if self.generation > 0 and not self.silent:
            if self._plain is None:
                self._plain = self._request(self.generation)
            self.world.shard.keep_alive(self._plain, self.world.now_ms)
        return 0

    def heartbeat(self) -> None:
        """The heartbeat that is due."""
        if self.up and not self.silent and (self.generation > 0 or not self.busy):
            self.go_on()

    def change(self, topics: tuple[str, ...]) -> None:
        """It subscribes to something else."""
        self.topics = topics
        if self.up and not self.silent and self.generation > 0:
            self.say(self.generation, subscribed_topic_names=[*topics])

    def join(self) -> None:
        """The first heartbeat."""
        self.forget()
        self.say(
            0,
            rebalance_timeout_ms=self.rebalance_ms,
            subscribed_topic_names=[*self.topics],
            server_assignor=REMOTE_ASSIGNORS.get(self.world.script.protocol),
            topic_partitions=[],
        )

    def join_if_up(self) -> None:
        """Once more."""
        if self.up and not self.silent and self.generation <= 0:
            self.join()

    def say(self, epoch: int, **more: Any) -> None:
        """A heartbeat that may bring news."""
        self.world.hand_over(self._request(epoch, **more), Call(self, _VERSION, self.heard))

    def _request(self, epoch: int, **more: Any) -> ConsumerGroupHeartbeatRequest:
        instance_id = self.instance_id
        return ConsumerGroupHeartbeatRequest(self.world.group, self.member_id, epoch, instance_id, **more)

    def heard(self, response: ConsumerGroupHeartbeatResponse) -> None:
        """The answer."""
        code = response.error_code
        if not self.up or self.silent or response.member_epoch < 0:
            return
        if code == ErrorCode.FENCED_INSTANCE_ID:
            self.end()
        elif code in (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID):
            self.forget()
            self.world.later(1, self.join_if_up)
        elif code:
            self.world.later(self.world.heartbeat_ms, self.join_if_up)
        else:
            if response.member_epoch != self.generation:
                self.generation, self._plain = response.member_epoch, None
            self.stable = True
            if response.assignment is not None:
                names = self.world.topic_names
                self.take(
                    frozenset(
                        (names[one.topic_id], number)
                        for one in response.assignment.topic_partitions
                        for number in one.partitions
                    )
                )

    def take(self, share: frozenset[TopicPartition]) -> None:
        """It gives up what is not in its share, and reports that; a busy application does so later."""
        self.share = share
        given_up = self.owned - share
        if given_up and self.busy:
            return
        self.owned = share
        self.read(share)
        if given_up:
            self.world.later(1, self.report)

    def report(self) -> None:
        """It has given up what it had to."""
        if not self.up or self.silent or self.generation <= 0:
            return
        owned: dict[str, list[int]] = {}
        for topic, number in sorted(self.owned):
            owned.setdefault(topic, []).append(number)
        places = [
            ConsumerGroupHeartbeatRequestTopicPartitions(topic_of(topic, 0).topic_id, numbers)
            for topic, numbers in owned.items()
        ]
        self.say(self.generation, topic_partitions=places)
