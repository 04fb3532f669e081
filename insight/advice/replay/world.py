"""The recorded processes as clients of our own group machine, with a clock that jumps.

Between events nothing is simulated: heartbeats are sent only when a session would end without them, and a
member learns of a rebalance as long after its beginning as the record says. In the consumer protocol, where
heartbeats bring the news, all members send theirs in turn as long as the group changes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from heapq import heappop, heappush
from typing import Any

from ringleader.clients.assignors import ASSIGNORS, STICKY, Assignor, AssignorMember
from ringleader.coordinator.consumer_groups.topics import Topics
from ringleader.coordinator.groups.settings import GroupSettings
from ringleader.coordinator.groups.shard import Shard
from ringleader.coordinator.journal.entries import EpochEntry, JournalEntry, Outcome
from ringleader.insight.advice.past import HEARTBEAT_MS
from ringleader.insight.advice.replay.client import Call, Client
from ringleader.insight.advice.replay.consumer_client import ConsumerClient, topic_of
from ringleader.insight.advice.replay.policy import Policy
from ringleader.insight.advice.replay.readers import Readers
from ringleader.insight.advice.replay.script import FOREVER_MS, SESSION_MS, Script, cast
from ringleader.insight.model import TopicPartition
from ringleader.protocol.embedded import Subscription
from ringleader.protocol.errors import ErrorCode

WARM_UP_MS = 600_000
"""Before the record begins its first members join."""
GENERATIONS_FACTOR, GENERATIONS_MORE = 10, 100
"""With this multiple of the recorded rebalances, and these more, the replay has run away and counts for
nothing."""

INITIAL_DELAY_MS = 3_000
"""Default of group.initial.rebalance.delay.ms."""


class RanAwayError(Exception):
    """The replay did not come to rest."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """A rebalance of a replay."""

    at_ms: int
    entry: JournalEntry


@dataclass(slots=True)
class Played:
    """The outcome of a run."""

    rebalances: list[Replayed]
    epochs: int
    """Likewise, in the consumer protocol."""
    unowned_ms: int

    @property
    def count(self) -> int:
        """Rebalances of either protocol."""
        return len(self.rebalances) + self.epochs


class World:
    """One run of a script under a policy."""

    def __init__(self, script: Script, policy: Policy) -> None:
        self.script, self.policy = script, policy
        self.group = script.group
        self.assignor: Assignor = ASSIGNORS.get(policy.assignor or script.protocol, STICKY)
        self.now_ms = script.since_ms - WARM_UP_MS
        self.readers = Readers()
        self.offers: dict[Client, AssignorMember] = {}
        self.rebalances: list[Replayed] = []
        self.epochs = 0
        self.topic_names: dict[bytes, str] = {}
        self._topics = Topics()
        self._metadata: dict[tuple[str, ...], bytes] = {}
        self._shares: dict[str, frozenset[TopicPartition]] = {}
        self._places: dict[str, frozenset[TopicPartition]] = {}
        """Instance id -> its share."""
        self._asker: Client | None = None
        self._fresh = 0
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._order = 0
        self._began_ms = self.now_ms
        self._rebalancing = False
        self._limit = len(script.rebalances) * GENERATIONS_FACTOR + GENERATIONS_MORE
        filled = [one.join_ms for one in script.rebalances if not one.before and one.join_ms is not None]
        settings = GroupSettings(
            group_min_session_timeout_ms=1,
            group_max_session_timeout_ms=2**31 - 1,
            group_initial_rebalance_delay_ms=min([INITIAL_DELAY_MS, *filled]),
            group_consumer_session_timeout_ms=policy.session_timeout_ms or SESSION_MS,
        )
        self.heartbeat_ms = policy.heartbeat_ms or settings.group_consumer_heartbeat_interval_ms
        self._in_round = False
        self._written = 0
        self.shard = Shard(0, settings, self._id, topics=self._topics)
        self.shard.loaded(self.now_ms, self.now_ms)
        self._modern = [ConsumerClient(self, one) for one in cast(script, policy)] if policy.consumer else []
        self.clients: list[Client] = [*self._modern] or [Client(self, one) for one in cast(script, policy)]

    # ---- running ----

    def play(self) -> Played:
        """From the beginning of the record to its end. Raises RanAwayError."""
        script = self.script
        self._plan()
        self._run(script.since_ms)
        self.rebalances.clear()
        self.epochs = 0
        self.readers.go_to(self.now_ms)
        self.readers.unowned_ms = 0
        self._run(script.until_ms)
        self.readers.go_to(script.until_ms)
        return Played(self.rebalances, self.epochs, self.readers.unowned_ms)

    def later(self, delay_ms: int, what: Callable[[], None]) -> None:
        """Do something after a delay."""
        self._at(self.now_ms + delay_ms, what)

    def _at(self, at_ms: int, what: Callable[[], None]) -> None:
        self._order += 1
        heappush(self._events, (at_ms, self._order, what))

    def _plan(self) -> None:
        began_ms = self.now_ms
        for at_ms, counts in self.script.partitions:
            self._at(at_ms if at_ms > self.script.since_ms else began_ms, self._partitions_are(counts))
        for client in self.clients:
            process = client.process
            self._at(began_ms if process.begins_ms is None else process.begins_ms, client.begin)
            if process.ends_ms != FOREVER_MS:
                self._at(process.ends_ms, client.end)
            for silence in process.silences:
                self._at(silence.since_ms, client.fall_silent)
                if silence.until_ms != FOREVER_MS:
                    self._at(silence.until_ms, client.wake)
            for busy in process.busy:
                self._plan_busy(client, busy.since_ms, busy.until_ms, busy.gives_up_ms)
            for at_ms, topics in process.changes:
                self._at(at_ms, partial(client.change, topics))
        # In the consumer protocol no member leads: what a leader looks for, the coordinator sees itself.
        for at_ms in () if self.policy.consumer else self.script.requests_ms:
            self._at(at_ms, self._ask)

    def _plan_busy(self, client: Client, since_ms: int, until_ms: int, gives_up_ms: int | None) -> None:
        if self.policy.prompt:
            return
        self._at(since_ms, client.get_busy)
        longest_ms = self.policy.max_poll_interval_ms
        if longest_ms is not None and gives_up_ms is not None:
            gives_up_ms = since_ms + longest_ms
        if gives_up_ms is not None and gives_up_ms < until_ms:
            self._at(gives_up_ms, client.give_up)
        if until_ms != FOREVER_MS:
            self._at(until_ms, client.get_ready)

    def _partitions_are(self, counts: dict[str, int]) -> Callable[[], None]:
        def now() -> None:
            wanted = self.policy.topics
            self.readers.there_are(
                (topic, number)
                for topic, count in counts.items()
                if wanted is None or topic in wanted
                for number in range(count)
            )
            for topic, count in counts.items():
                known = topic_of(topic, count)
                self.topic_names[known.topic_id] = topic
                self._topics.put(known)
            if self._modern:
                self._begin_round()

        return now

    def _run(self, until_ms: int) -> None:
        shard, events = self.shard, self._events
        while True:
            due_ms = shard.next_deadline()
            event_ms = events[0][0] if events else None
            times = [one for one in (due_ms, event_ms) if one is not None]
            if not times or min(times) >= until_ms:
                self.now_ms = until_ms
                return
            self.now_ms = max(self.now_ms, min(times))
            self.readers.go_to(self.now_ms)
            if event_ms is not None and event_ms <= self.now_ms:
                heappop(events)[2]()
            else:
                for client in self.clients:
                    if client.up:
                        client.beat()
                shard.tick(self.now_ms)
            self._drain()
            self._look()

    def hand_over(self, request: Any, call: Call) -> None:
        """A request reaches the machine. Answers come before this returns, unless they have to wait."""
        self._asker = call.client
        response = self.shard.handle(request, call, self.now_ms)
        self._asker = None
        if response is not None:
            call.reply(response)

    def _drain(self) -> None:
        while self.shard.dirty:
            box = self.shard.drain()
            for append in box.appends:
                self.shard.durable(append.position, self.now_ms)
            for event in box.events:
                if not isinstance(event, JournalEntry | EpochEntry) or event.outcome is Outcome.SUPERSEDED:
                    continue
                if isinstance(event, JournalEntry):
                    self.rebalances.append(Replayed(self.now_ms, event))
                else:
                    self.epochs += 1
                if len(self.rebalances) + self.epochs > self._limit:
                    raise RanAwayError
            for answer in box.answers:
                if answer.response is not None:
                    answer.ticket.reply(answer.response)

    def _look(self) -> None:
        """Whether a rebalance is on: then the others learn of it, each at its next heartbeat."""
        if self._modern:
            self._look_at_group()
            return
        in_it = [one for one in self.clients if one.up and one.stable and not one.silent and not one.busy]
        if not in_it:
            return
        code = in_it[0].beat()
        if code != ErrorCode.REBALANCE_IN_PROGRESS:
            self._rebalancing = False
            if code:
                in_it[0].learns = True
                self.later(0, in_it[0].learn)
            return
        self.join_received()
        join_ms, slowest = self.script.join_ms(self._began_ms)
        quick_ms = min(join_ms, HEARTBEAT_MS)
        for number, client in enumerate(in_it, 1):
            if client.learns:
                continue
            client.learns = True
            slow = client.member_id == slowest or (not slowest and number == len(in_it))
            delay_ms = join_ms if slow and not self.policy.prompt else quick_ms * number // len(in_it)
            self._at(max(self._began_ms + delay_ms, self.now_ms), client.learn)

    def _look_at_group(self) -> None:
        """Whether the group has changed since the last round of heartbeats began: then one follows."""
        if not self._in_round and self.shard.activity[1] != self._written:
            self._begin_round()

    def _begin_round(self) -> None:
        """Every member's next heartbeat, each at a time of its own within the interval."""
        if self._in_round:
            return
        self._written = self.shard.activity[1]
        self._in_round = True
        for number, client in enumerate(self._modern, 1):
            phase_ms = self.heartbeat_ms * number // len(self._modern)
            self.later((phase_ms - self.now_ms - 1) % self.heartbeat_ms + 1, client.heartbeat)
        self.later(self.heartbeat_ms + 1, self._end_round)

    def _end_round(self) -> None:
        self._in_round = False

    # ---- what clients ask of it ----

    def join_received(self) -> None:
        """Perhaps a rebalance begins."""
        if not self._rebalancing:
            self._rebalancing = True
            self._began_ms = self.now_ms

    def admits(self, client: Client) -> bool:
        """Whether the policy lets one more process begin."""
        return self.policy.members is None or sum(one.up for one in self.clients) < self.policy.members

    def look_at_running(self) -> None:
        """Nothing counts while no process runs."""
        self.readers.counting = any(one.up for one in self.clients)

    def metadata(self, topics: tuple[str, ...]) -> bytes:
        """The metadata of a member of these topics."""
        found = self._metadata.get(topics)
        if found is None:
            found = self._metadata[topics] = Subscription(list(topics)).encode(1)
        return found

    def leader_ms(self) -> int:
        """How long the leader computes now."""
        taken_ms = self.script.leader_ms(self._began_ms)
        return taken_ms if self.policy.leader_ms is None else min(taken_ms, self.policy.leader_ms)

    def assign(self, generation: int, member_ids: list[str]) -> None:
        """Compute the shares with the leader's assignor; at the beginning they are the recorded ones."""
        members = {one.member_id: one for one in self.clients if one.member_id}
        first = self.script.first
        if (
            self.now_ms < self.script.since_ms
            and all(one in first for one in member_ids)
            and self._as_first()
        ):
            self._shares = {one: frozenset(first[one]) for one in member_ids}
            return
        offers = []
        for member_id in member_ids:
            client = members.get(member_id)
            offer = self.offers.get(client) if client is not None else None
            topics = offer.topics if offer is not None else ()
            offers.append(
                AssignorMember(
                    member_id,
                    client.instance_id if client is not None else None,
                    topics,
                    offer.owned if offer is not None else {},
                    offer.generation if offer is not None else -1,
                    None,
                    offer.user_data if offer is not None else None,
                )
            )
        got = self.assignor.assign(offers, self.script.counts(self.now_ms))
        self._shares = {
            member_id: frozenset((topic, number) for topic, numbers in topics.items() for number in numbers)
            for member_id, topics in got.items()
        }

    def _as_first(self) -> bool:
        return self.policy.members is None and self.policy.topics is None

    def share_of(self, client: Client) -> frozenset[TopicPartition]:
        """Its share of the last assignment; that of a static member also under a new member id."""
        found = self._shares.get(client.member_id)
        if client.instance_id is not None:
            if found is None:
                found = self._places.get(client.instance_id)
            if found is not None:
                self._places[client.instance_id] = found
        return found or frozenset()

    def _ask(self) -> None:
        """The leader asks for a rebalance; who leads is not looked for: a member that changes does the
        same."""
        for client in self.clients:
            if client.up and client.stable and not client.silent and not client.busy and self._leads(client):
                client.join()
                return

    def _leads(self, client: Client) -> bool:
        last = self.rebalances[-1].entry.leader if self.rebalances else ""
        return not last or last == client.member_id

    def _id(self, prefix: str) -> str:
        client = self._asker
        found = next(client.ids, None) if client is not None else None
        if found is not None:
            return found
        self._fresh += 1
        return f"{prefix}-{self._fresh}"
