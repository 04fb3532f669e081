"""The leader's part of a consumer: compute assignments, and watch the topics and lags they rest on."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import NamedTuple, TypeVar

from ringleader.clients.assignors import (
    ASSIGNORS,
    Assignment,
    Assignor,
    AssignorMember,
    lag_aware,
    sticky_user_data,
)
from ringleader.clients.assignors.lag import behind as behind_of
from ringleader.clients.connection.aside import aside
from ringleader.clients.connection.backoff import Backoff
from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.connection.overview import Overview, in_trouble, overview
from ringleader.clients.connection.requests import plain
from ringleader.clients.errors import BrokerError, ClientError, RetriableError
from ringleader.clients.group.assignment import readable_topics
from ringleader.clients.group.driver import Driver
from ringleader.clients.group.leading import tasks
from ringleader.clients.group.leading.lags import lags_of
from ringleader.clients.group.leading.matching import Choice, in_words
from ringleader.clients.group.machine.machine import MemberMachine
from ringleader.clients.group.machine.phases import Phase
from ringleader.clients.group.settings import LAG_AWARE, MemberSettings, SubscriptionSettings, is_cooperative
from ringleader.clients.model import Assigned, MemberInfo, TopicPartition
from ringleader.protocol.embedded import Assignment as AssignmentBytes
from ringleader.protocol.embedded import Subscription
from ringleader.protocol.errors import ErrorCode, MalformedError, error_name
from ringleader.protocol.messages import (
    ConsumerGroupHeartbeatRequestComputedTarget,
    ConsumerGroupHeartbeatResponseLeaderTask,
    DescribeGroupsRequest,
)
from ringleader.protocol.overview import ZERO_ID

logger = logging.getLogger("ringleader.clients.group.subscription")

LEADER_TIMEOUT_MS = 30_000
"""How long the leader asks for metadata; the group waits for it."""
LAG_TIMEOUT_MS = 5_000
"""How long it asks for lags: what is unknown then counts as 0."""
CHECK_TIMEOUT_MS = 10_000
CONFIRM_MS = 200
"""The wait before a second look at a topic that seems to be gone: a broker that has just started may not know
it yet."""
WAITING_MS, WAITING_MAX_MS = 200, 5_000
"""How often a topic that is not there yet is looked for."""
INLINE_WORK = 2_000
"""Members times topics plus partitions up to which an assignment is computed in the driver's loop (some
milliseconds); more goes to a thread, so that heartbeats go on."""

T = TypeVar("T")


class _Known(NamedTuple):
    """The facts about one topic that an assignment rests on. `racks`: None unless a member of the group has a
    rack."""

    partitions: int
    id: bytes = ZERO_ID
    racks: list[frozenset[str]] | None = None


class Leading:
    """The leader's side of one member. `lead`, `watch` and `before_join` run in the driver's loop."""

    def __init__(self, choice: Choice, settings: SubscriptionSettings) -> None:
        self._group_id = ""
        self._lag_timeout_ms = LAG_TIMEOUT_MS
        self._choice = choice
        self._settings = settings
        self._known: dict[str, _Known] | None = None
        self._by_rack = False
        self._members: list[AssignorMember] = []
        self._assignments: Assignment = {}
        self._rejoining: Assigned | None = None  # the assignment for which a rejoin is under way already
        self._machine: MemberMachine | None = None
        self._again = False  # there are changes for which no rejoin was asked
        self._led = asyncio.Event()
        self._complaint = ""
        self._turn = 0
        self._waiting = Backoff(WAITING_MS, WAITING_MAX_MS, random.random)

    # ---- every member ----

    def bind(self, member: MemberSettings, machine: MemberMachine) -> None:
        """The member that this is about; before it starts."""
        self._machine = machine
        self._group_id = member.group_id
        self._lag_timeout_ms = min(LAG_TIMEOUT_MS, member.rebalance_timeout_ms // 4)

    async def before_join(self, cluster: Cluster) -> None:
        """See what matches the pattern now, so that the join can say it. Raises ClientError."""
        if self._choice.by_pattern:
            await self._look(cluster, None, lambda _seen: False)

    # ---- computing ----

    async def lead(self, cluster: Cluster, protocol: str, infos: list[MemberInfo]) -> Mapping[str, bytes]:
        """Each member's partitions."""
        size = sum(len(info.metadata) for info in infos)
        members, topics = await _aside(size // 16, lambda: _read_members(infos))
        if kept := _owned(members, self._held_before(protocol)):
            assert self._machine is not None
            reason = f"the group goes over to {protocol}: all give up what they hold"
            self._machine.rejoin(reason, Driver.now_ms())
            return {member: AssignmentBytes(of).encode() for member, of in kept.items()}
        by_lag = protocol == LAG_AWARE
        self._by_rack = not by_lag and any(member.rack for member in members)
        seen = await self._patiently(cluster, topics, with_replicas=self._by_rack or by_lag)
        before = self._known or {}

        def understand() -> dict[str, _Known]:
            self._complain(seen, topics)
            return self._knowledge(seen, topics, before)

        known = self._known = await _aside(len(topics), understand)
        self._led.set()
        counts = {topic: one.partitions for topic, one in known.items() if one.partitions}
        racks = (
            await _aside(sum(counts.values()), lambda: seen.partition_racks(topics))
            if self._by_rack
            else None
        )
        assignor = await self._by_lag(cluster, seen, topics) if by_lag else ASSIGNORS[protocol]
        work = sum(len(member.topics) for member in members) + sum(counts.values())

        def compute() -> tuple[Assignment, dict[str, bytes]]:
            computed = assignor.assign(members, counts, racks)
            return computed, {member: AssignmentBytes(of).encode() for member, of in computed.items()}

        assignments, encoded = await _aside(work, compute)
        if by_lag and self._settings.lag_check_ms is not None:
            self._members, self._assignments = members, assignments
        return encoded

    async def delegated(
        self, cluster: Cluster, task: ConsumerGroupHeartbeatResponseLeaderTask
    ) -> ConsumerGroupHeartbeatRequestComputedTarget:
        """The answer to a task of the coordinator. Raises ClientError, and what the assignor raises."""
        counts = {topic.name: topic.partitions for topic in task.topics}
        by_lag = task.assignor == LAG_AWARE
        racks: dict[str, list[frozenset[str]]] = {}
        if by_lag or any(member.rack_id for member in task.members):
            seen = await overview(cluster, counts, with_replicas=True, timeout_ms=self._lag_timeout_ms)
            racks = {} if by_lag else seen.partition_racks(counts)
        if by_lag:
            assignor = await self._by_lag(cluster, seen, counts)
        elif task.assignor in ASSIGNORS:
            assignor = ASSIGNORS[task.assignor]
        else:
            raise ValueError(f"this process has no assignor {task.assignor!r}")
        nowhere: frozenset[str] = frozenset()
        for topic, of in racks.items():  # the cluster may be seen later or earlier than by the task
            racks[topic] = [*of[: counts[topic]], *[nowhere] * (counts[topic] - len(of))]

        def computed() -> ConsumerGroupHeartbeatRequestComputedTarget:
            members, _ = tasks.read(task)
            return tasks.compute(task, assignor, members, counts, racks or None)

        return await aside(computed)  # always: a member that beats meanwhile stays in the group

    def _held_before(self, protocol: str) -> float:
        """The generation before which what a member claims is still in its hands, under an eager protocol:
        the group has just come from a cooperative one, or a member has missed the round that asked for it.
        Then each member gets what it holds, and nothing else; and the group rebalances once more, for
        which all give up everything, as an eager protocol asks of them. So no partition has two owners."""
        machine = self._machine
        if machine is None or is_cooperative(protocol) or not machine.state.settings.cooperative:
            return -inf
        last = machine.state.last_held
        return inf if last is None or machine.state.cooperates(last.protocol) else last.generation

    async def _patiently(self, cluster: Cluster, topics: list[str], *, with_replicas: bool) -> Overview:
        """Until there is metadata, or the group has gone on to another round."""
        self._turn += 1
        turn = self._turn
        while True:
            try:
                return await overview(
                    cluster, topics, with_replicas=with_replicas, timeout_ms=LEADER_TIMEOUT_MS
                )
            except RetriableError as error:
                if turn != self._turn:
                    raise
                logger.warning("group %s waits for metadata: %s", self._group_id, error)

    async def _by_lag(self, cluster: Cluster, seen: Overview, topics: Iterable[str]) -> Assignor:
        reset = self._settings.auto_offset_reset
        lags = await lags_of(cluster, self._group_id, seen, topics, reset, self._lag_timeout_ms)
        if lags.unknown:
            logger.warning(
                "group %s: the lag of %d partitions is not known and counts as 0: %s",
                self._group_id, lags.unknown, lags.why,
            )  # fmt: skip
        return lag_aware(lags.behind, self._settings.imbalance)

    def _knowledge(
        self, seen: Overview, topics: Iterable[str], before: Mapping[str, _Known]
    ) -> dict[str, _Known]:
        racks = seen.partition_racks(topics) if self._by_rack else {}
        found = {}
        for topic in topics:
            one = seen.topics.get(topic)
            if one is not None and in_trouble(one) and topic in before:
                found[topic] = before[topic]
            elif one is None or one.error_code:
                found[topic] = _Known(0)
            else:
                found[topic] = _Known(one.partitions, one.id, racks.get(topic))
        return found

    def _complain(self, seen: Overview, topics: Iterable[str]) -> None:
        """One line for topics that cannot be assigned, whenever they are others than before."""
        troubles: dict[str, list[str]] = {}
        for topic in topics:
            one = seen.topics.get(topic)
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if one is None else one.error_code
            if code:
                troubles.setdefault(error_name(code), []).append(topic)
        complaint = "; ".join(f"{in_words(named)} ({code})" for code, named in sorted(troubles.items()))
        if complaint and complaint != self._complaint:
            logger.warning(
                "group %s: nobody gets partitions of topics that cannot be seen: %s",
                self._group_id,
                complaint,
            )
        self._complaint = complaint

    # ---- watching ----

    async def watch(self, driver: Driver, cluster: Cluster) -> None:
        """Rejoin when topics or lags differ from those that the assignment was computed for."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watch_topics(driver, cluster))
            if self._settings.lag_check_ms is not None:
                group.create_task(self._watch_lags(driver, cluster, self._settings.lag_check_ms))

    async def _watch_topics(self, driver: Driver, cluster: Cluster) -> None:
        while True:
            if await self._woken(self._pause_s()):
                continue  # there is another assignment, and perhaps something to wait for
            held = driver.machine.state.held
            if held is None or held is self._rejoining:
                continue
            leads = held.is_leader
            if not leads and driver.machine.state.phase is Phase.STABLE:
                self._known = None  # of an earlier time as the leader
            try:
                if leads and self._known is None:
                    await self._take_over(cluster)
                changes = await self._changes(cluster, leads)
            except RetriableError as error:
                logger.debug("group %s: topics cannot be looked at now: %s", self._group_id, error)
            except ClientError as error:
                logger.warning("group %s: topics cannot be looked at: %s", self._group_id, error)
            else:
                self._again = bool(changes) and not self._rejoin(driver, held, in_words(changes))

    def _rejoin(self, driver: Driver, held: Assigned, reason: str) -> bool:
        """Unless the group is at it anyway: perhaps that cures it."""
        if driver.machine.state.held is not held or driver.machine.state.phase is not Phase.STABLE:
            return False
        self._rejoining = held
        driver.rejoin(reason)
        return True

    async def _woken(self, pause_s: float) -> bool:
        """Whether a new assignment was computed before the pause was over."""
        self._led.clear()
        try:
            async with asyncio.timeout(pause_s):
                await self._led.wait()
        except TimeoutError:
            return False
        return True

    def _pause_s(self) -> float:
        """Until the next look: short while something is waited for, and not the same in all members."""
        pause_ms: float = self._settings.metadata_max_age_ms
        if self._again:
            pause_ms = min(pause_ms, WAITING_MS)
        elif not self._choice.known or any(not one.partitions for one in (self._known or {}).values()):
            pause_ms = min(pause_ms, self._waiting.next_ms())
        else:
            self._waiting.reset()
        return pause_ms * random.uniform(0.9, 1.1) / 1000

    async def _changes(self, cluster: Cluster, leads: bool) -> list[str]:
        """The differences to the last look, in words. One request; another one if something seems to be
        gone."""
        known = (self._known or {}) if leads else {}
        if not known and not self._choice.by_pattern:
            return []
        topics = None if self._choice.by_pattern else known

        def less(seen: Overview) -> bool:
            counts = seen.counts(known)
            return any(counts.get(topic, 0) < one.partitions for topic, one in known.items())

        seen = await self._look(cluster, topics, less, with_replicas=leads and self._by_rack)

        def compared() -> list[str]:
            if leads:
                self._complain(seen, known)
            return self._choice.changes() + _differences(known, self._knowledge(seen, known, known))

        return await _aside(len(seen.topics), compared)

    async def _look(
        self,
        cluster: Cluster,
        topics: Iterable[str] | None,
        less: Callable[[Overview], bool],
        *,
        with_replicas: bool = False,
    ) -> Overview:
        seen = await overview(cluster, topics, with_replicas=with_replicas, timeout_ms=CHECK_TIMEOUT_MS)
        if await _aside(len(seen.topics), lambda: self._choice.look(seen) or less(seen)):
            await asyncio.sleep(CONFIRM_MS / 1000)
            seen = again = await overview(
                cluster, topics, with_replicas=with_replicas, timeout_ms=CHECK_TIMEOUT_MS
            )
            await _aside(len(seen.topics), lambda: self._choice.look(again))
        return seen

    async def _take_over(self, cluster: Cluster) -> None:
        """A static leader that came back leads on without having computed anything (KIP-814): the group tells
        what it subscribes to, and what was given out."""
        node = await cluster.groups.coordinator(self._group_id)
        request = plain(DescribeGroupsRequest(groups=[self._group_id]))
        group = (await cluster.groups.send(node, request)).groups[0]
        if group.error_code:
            text = f"group {self._group_id!r} cannot be described: {error_name(group.error_code)}"
            raise BrokerError(text, group.error_code)
        infos = [
            MemberInfo(one.member_id, one.group_instance_id, one.member_metadata) for one in group.members
        ]
        members, topics = _read_members(infos)
        assignments = {one.member_id: readable_topics(one.member_assignment) for one in group.members}
        self._by_rack = False
        counts = {
            topic: sum(len(assignment.get(topic, ())) for assignment in assignments.values())
            for topic in topics
        }
        self._members, self._assignments = members, assignments
        self._known = {topic: _Known(count) for topic, count in counts.items()}

    # ---- watching lags ----

    async def _watch_lags(self, driver: Driver, cluster: Cluster, check_ms: int) -> None:
        while True:
            await asyncio.sleep(check_ms / 1000)
            held = driver.machine.state.held
            if held is None or not held.is_leader or held is self._rejoining or held.protocol != LAG_AWARE:
                continue
            if driver.machine.state.phase is not Phase.STABLE or not self._known or not self._assignments:
                continue
            try:
                reason = await self._cure(cluster, held.generation)
            except RetriableError as error:
                logger.debug("group %s: lags cannot be looked at now: %s", self._group_id, error)
            except ClientError as error:
                logger.warning("group %s: lags cannot be looked at: %s", self._group_id, error)
            else:
                if reason:
                    self._rejoin(driver, held, reason)

    async def _cure(self, cluster: Cluster, generation: int) -> str:
        """The reason to move partitions, in words; "" if that would not take as much off the member that is
        furthest behind as `imbalance` lets it have above the mean: a rebalance has its price, too."""
        known, given = dict(self._known or {}), self._assignments
        counts = {topic: one.partitions for topic, one in known.items() if one.partitions}
        seen = await overview(cluster, counts, with_replicas=True, timeout_ms=CHECK_TIMEOUT_MS)
        reset, imbalance = self._settings.auto_offset_reset, self._settings.imbalance
        lags = await lags_of(cluster, self._group_id, seen, counts, reset, self._lag_timeout_ms)
        if lags.unknown:
            logger.info("group %s: no look at lags: %s", self._group_id, lags.why)
            return ""
        # As if all had given up everything: so the assignment is what it will be when all has moved.
        members = [
            replace(one, owned={}, user_data=sticky_user_data(given.get(one.member_id, {}), generation))
            for one in self._members
        ]
        assignor = lag_aware(lags.behind, imbalance)
        after = await _aside(sum(counts.values()), lambda: assignor.assign(members, counts, None))
        behind = {member: behind_of(lags.behind, assignment) for member, assignment in given.items()}
        most = max(behind, key=lambda member: (behind[member], member))
        mean = sum(behind.values()) / len(behind)
        cured = behind[most] - max(behind_of(lags.behind, assignment) for assignment in after.values())
        if cured <= imbalance * mean:
            return ""
        moving = [
            f"{topic}-{partition}"
            for member, assignment in sorted(given.items())
            for topic, partitions in assignment.items()
            for partition in sorted(set(partitions) - set(after[member].get(topic, ())))
        ]
        return f"{most} is {behind[most]} records behind, the mean is {mean:.0f}: moving {in_words(moving)}"


def _differences(before: Mapping[str, _Known], after: Mapping[str, _Known]) -> list[str]:
    found = []
    for topic, was in before.items():
        now = after[topic]
        if now.partitions != was.partitions:
            if not was.partitions:
                found.append(f"topic {topic} is there, with {now.partitions} partitions")
            elif not now.partitions:
                found.append(f"topic {topic} is gone")
            else:
                found.append(f"{topic} has {now.partitions} partitions instead of {was.partitions}")
        elif ZERO_ID not in (was.id, now.id) and was.id != now.id:
            found.append(f"topic {topic} was deleted and created again")
        elif was.racks is not None and now.racks != was.racks:
            found.append(f"replicas of {topic} are in other racks")
    return found


async def _aside(work: int, run: Callable[[], T]) -> T:
    """The result, computed in a thread if it is much work."""
    return run() if work <= INLINE_WORK else await aside(run)


def _read_members(infos: Sequence[MemberInfo]) -> tuple[list[AssignorMember], list[str]]:
    """The members, and all topics that they subscribe to. Members with the same topics have one list
    together."""
    lists: dict[tuple[str, ...], tuple[str, ...]] = {}
    members = [_read_member(info, lists) for info in infos]
    return members, sorted({topic for topics in lists for topic in topics})


def _read_member(info: MemberInfo, lists: dict[tuple[str, ...], tuple[str, ...]]) -> AssignorMember:
    try:
        subscription = Subscription.decode(info.metadata)
    except MalformedError as error:
        # The others should not pay for it: this one gets nothing.
        logger.warning("member %s has a subscription that cannot be read: %s", info.member_id, error)
        subscription = Subscription([])
    topics = tuple(subscription.topics)
    return AssignorMember(
        info.member_id,
        info.group_instance_id,
        lists.setdefault(topics, topics),
        subscription.owned_partitions,
        subscription.generation,
        subscription.rack_id,
        subscription.user_data,
    )


def _owned(members: Sequence[AssignorMember], before: float) -> Assignment:
    """The partitions that members claim since before that generation; of two that claim the same one, the
    member of the newer generation has it. Empty if no member holds anything."""
    owners: dict[TopicPartition, tuple[int, str]] = {}
    for member in members:
        if before < inf and not 0 <= member.generation < before:
            continue
        claim = (member.generation, member.member_id)
        for topic, partitions in member.owned.items():
            for partition in partitions:
                owners[topic, partition] = max(claim, owners.get((topic, partition), claim))
    found: Assignment = {member.member_id: {} for member in members} if owners else {}
    for (topic, partition), (_, member_id) in owners.items():
        found[member_id].setdefault(topic, []).append(partition)
    return found
