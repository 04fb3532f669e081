"""Clients of the nodes: producers with offsets of groups in transactions, clients that commit without,
readers, and an operator who changes ACLs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from ringleader.coordinator.security.acls import Operation, PatternType, Permission, ResourceType
from ringleader.coordinator.security.principal import Principal
from ringleader.protocol import messages as kafka
from ringleader.protocol.errors import ErrorCode
from tests.simulation.facts import Place
from tests.simulation.transactions.brokers import ORDERS, ORDERS_PARTITIONS
from tests.simulation.transactions.node import ADMIN, TxnNode, Wire

if TYPE_CHECKING:
    from tests.simulation.transactions.world import TxnWorld

GROUPS = ("g", "h", "i")
"""Of two partitions: g and i share one."""
_PATIENCE_S = 12.0
_IMPATIENCE_S = (0.2, 1.0)
"""A producer may abort for a commit that takes longer, and begin the next transaction."""
_TRIES = 25
_AGAIN = frozenset(
    (
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
    )
)
_FENCED = frozenset(
    (
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.INVALID_TXN_STATE,
    )
)

_OVER_S = 12.0
"""Nothing that was asked amid the faults is done later than this after their end."""


class NoAnswerError(Exception):
    """No answer: nobody knows what became of it."""


class FencedError(Exception):
    """The producer has to begin again."""


class AbortError(Exception):
    """The transaction cannot be committed."""


class Client:
    """Asks one after the other."""

    def __init__(self, world: TxnWorld, principal: Principal) -> None:
        self.world = world
        self.principal = principal
        self._wires: dict[TxnNode, Wire] = {}

    async def ask(self, node: TxnNode, request: Any, version: int, patience_s: float = _PATIENCE_S) -> Any:
        """The answer. Raises NoAnswerError."""
        wire = self._wires.get(node)
        if wire is None or wire.closed:
            wire = self._wires[node] = Wire(self.world, node, self.principal)
        pending = wire.pending = asyncio.get_running_loop().create_future()
        self.world.send_to(wire, request, version)
        try:
            async with asyncio.timeout(patience_s):
                answer = await pending
        except TimeoutError:
            answer = None
        finally:
            wire.pending = None
        if answer is None:
            self.world.leave(wire)
            raise NoAnswerError
        return answer

    async def pause(self) -> None:
        """Back off."""
        await asyncio.sleep(self.world.rng.choice([0.02, 0.05, 0.1, 0.4]))

    def fresh(self, group: str, producer: Any = None) -> dict[Place, int]:
        """Offsets that nobody has committed yet."""
        rng = self.world.rng
        numbers = rng.sample(range(self.world.width), rng.randint(1, self.world.width))
        return self.anew([(group, ORDERS, number) for number in sorted(numbers)], producer)

    def anew(self, places: list[Place], producer: Any) -> dict[Place, int]:
        """Likewise, of these places."""
        return {place: self.world.checks.writes(place, producer) for place in places}


class Producer(Client):
    """Of one transactional id, in one transaction after the other."""

    def __init__(self, world: TxnWorld, number: int) -> None:
        super().__init__(world, Principal("User", f"p{number}"))
        self.name = f"tx-{number}"
        self._producer = (-1, -1)
        self.is_over = False

    async def run(self) -> None:
        """Until the world is calm and nothing is open."""
        while not self.is_over:
            await self._begin()
            try:
                while self.world.faults:
                    await self._transaction()
                self.is_over = True
            except (FencedError, NoAnswerError):
                continue

    async def _until(self, asking: Callable[[], Awaitable[int]], tries: int = _TRIES) -> None:
        for _ in range(tries):
            code = await asking()
            if not code:
                return
            if code in _FENCED:
                raise FencedError
            if code not in _AGAIN:
                break
            await self.pause()
        raise AbortError

    async def _begin(self) -> None:
        while True:
            request = kafka.InitProducerIdRequest(self.name, self.world.rng.choice([4_000, 15_000, 30_000]))
            try:
                answer = await self.ask(self.world.any_node(), request, 4)
            except NoAnswerError:
                continue
            if not answer.error_code:
                self._producer = answer.producer_id, answer.producer_epoch
                return
            await self.pause()

    async def _transaction(self) -> None:
        rng = self.world.rng
        await asyncio.sleep(rng.choice([0.0, 0.05, 0.3]))
        commits = rng.random() < 0.75
        begun = False
        try:
            groups = ("g", rng.choice(GROUPS))
            for group in groups[: 1 if self.world.narrow else rng.choice([1, 1, 2])]:
                await self._until(lambda: self._add(group))  # noqa: B023
                begun = True
                for _ in range(rng.choice([1, 1, 2])):
                    await self._commit(group)
                    await asyncio.sleep(rng.choice([0.0, 0.0, 0.2]))
        except AbortError:
            commits = False
        if begun or not commits:
            await self._end(commits)

    async def _add(self, group: str) -> int:
        return await self._code_of(kafka.AddOffsetsToTxnRequest(self.name, *self._producer, group))

    async def _code_of(self, request: Any) -> int:
        """The answer to what may be asked again."""
        try:
            answer = await self.ask(self.world.any_node(), request, 3, _PATIENCE_S / 4)
        except NoAnswerError:
            return int(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return int(answer.error_code)

    async def _commit(self, group: str) -> None:
        """A client whose answer is lost may ask again, or abort: never commit."""
        serial = self.world.brokers.coordination.known[self.name].serial
        owner = (self._producer[0], serial)
        places = list(self.fresh(group, owner))

        async def asking() -> int:
            offsets = self.anew(places, owner)
            parts = [kafka.TxnOffsetCommitRequestPartition(one[2], value) for one, value in offsets.items()]
            topics = [kafka.TxnOffsetCommitRequestTopic(ORDERS, parts)]
            request = kafka.TxnOffsetCommitRequest(self.name, group, *self._producer, topics=topics)
            hurries = self.world.trouble and self.world.rng.random() < 0.1
            patience_s = self.world.rng.choice(_IMPATIENCE_S) if hurries else _PATIENCE_S
            try:
                answer = await self.ask(self.world.coordinator(group), request, 3, patience_s)
            except NoAnswerError:
                if self.world.rng.random() < 0.5:
                    raise AbortError from None
                return int(ErrorCode.COORDINATOR_NOT_AVAILABLE)
            codes = [one.error_code for topic in answer.topics for one in topic.partitions]
            return int(max(codes))

        await self._until(asking)
        self.world.checks.counts["in transactions"] += 1

    async def _end(self, commits: bool) -> None:
        async def asking() -> int:
            return await self._code_of(kafka.EndTxnRequest(self.name, *self._producer, commits))

        try:
            await self._until(asking)
        except AbortError:
            raise FencedError from None
        self.world.checks.counts["ended"] += 1


class Committer(Client):
    """Commits outside of transactions."""

    def __init__(self, world: TxnWorld) -> None:
        super().__init__(world, Principal("User", "plain"))

    async def run(self) -> None:
        """While there is trouble."""
        rng = self.world.rng
        while self.world.faults:
            await asyncio.sleep(rng.choice([0.1, 1.0, 2.0]))
            group = rng.choice(GROUPS)
            offsets = self.fresh(group)
            parts = [kafka.OffsetCommitRequestPartition(one[2], value) for one, value in offsets.items()]
            topics = [kafka.OffsetCommitRequestTopic(name=ORDERS, partitions=parts)]
            try:
                await self.ask(
                    self.world.coordinator(group), kafka.OffsetCommitRequest(group, topics=topics), 8
                )
            except NoAnswerError:
                continue


class Reader(Client):
    """Fetches offsets, from owners and from nodes that only think to be some."""

    def __init__(self, world: TxnWorld) -> None:
        super().__init__(world, Principal("User", "reader"))
        self.reads = 0

    async def run(self) -> None:
        """To the end."""
        rng = self.world.rng
        while True:
            await asyncio.sleep(rng.choice([0.02, 0.1, 0.5]) if self.world.faults else 1.0)
            group = rng.choice(GROUPS)
            node = self.world.coordinator(group) if rng.random() < 0.8 else self.world.any_node()
            topics = [kafka.OffsetFetchRequestTopic(ORDERS, list(range(ORDERS_PARTITIONS)))]
            request = kafka.OffsetFetchRequest(group, topics, require_stable=rng.random() < 0.6)
            try:
                await self.ask(node, request, 7)
            except NoAnswerError:
                continue


class Officer(Client):
    """Allows everything to everybody, then denies something to a producer and takes that back."""

    def __init__(self, world: TxnWorld) -> None:
        super().__init__(world, ADMIN)
        self.is_done = False

    async def run(self) -> None:
        """Until all is allowed again."""
        kinds = (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID)
        for kind in kinds:
            await self._make((kind, "*", "User:*", Operation.ALL, Permission.ALLOW), True)
        self.world.populate()
        rng = self.world.rng
        denied = [
            row
            for number in range(self.world.producers)
            for row in (
                (ResourceType.GROUP, "g", f"User:p{number}", Operation.READ, Permission.DENY),
                (
                    ResourceType.TRANSACTIONAL_ID,
                    f"tx-{number}",
                    f"User:p{number}",
                    Operation.WRITE,
                    Permission.DENY,
                ),
            )
        ]
        while self.world.faults:
            await asyncio.sleep(rng.choice([1.0, 4.0, 8.0]))
            row = rng.choice(denied)
            await self._make(row, True)
            self.world.checks.counts["denied"] += 1
            await asyncio.sleep(rng.choice([0.0, 0.3, 1.0]))
            await self._make(row, False)
        # A node that stood still may have taken a request that was given up: its ACL comes when it goes on.
        await asyncio.sleep(_OVER_S)
        for row in denied:
            await self._make(row, False)
        self.is_done = True

    async def _make(self, row: Any, there: bool) -> None:
        kind, name, principal, operation, permission = row
        place = kind, name, PatternType.LITERAL, principal, "*", operation, permission
        while True:
            request: Any
            if there:
                request = kafka.CreateAclsRequest([kafka.CreateAclsRequestAclCreation(*place)])
            else:
                request = kafka.DeleteAclsRequest([kafka.DeleteAclsRequestDeleteAclsFilter(*place)])
            try:
                answer = await self.ask(self.world.any_node(), request, 3)
            except NoAnswerError:
                continue
            results = answer.results if there else answer.filter_results
            # A node that lags finds nothing to delete, and says so truly.
            made = there or results[0].matching_acls or self.world.checks.is_deleted(place)
            if made and not any(one.error_code for one in results):
                return
            await self.pause()
