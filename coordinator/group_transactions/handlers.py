"""Offsets in transactions: AddOffsetsToTxn (25) v0-3 and TxnOffsetCommit (28) v0-3.

A transaction is the cluster's. To add the offsets of a group, the group's partition of the groups' topic is
added to it, so that its marker comes there (see `markers`). The offsets themselves are written by the group's
owner as they always are: next to the committed ones, until the transaction ends.

Such a record has to lie before the marker of its own transaction, and behind those of all earlier ones. So a
commit is accepted when the transaction is open and all that ended before has ended here; and it is
acknowledged when the same transaction is still open afterwards. Else it is dropped.

An owner that dies before it drops a record leaves it to the next owner, which cannot know its transaction:
the record names the producer alone. So the first commit of a producer after that has to write the same
offsets, or more, which replaces all that was there. If it does not, its client has to abort, which drops all.
If the producer never comes back, and its transaction is over, there is no marker to wait for: see `Unended`.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from ringleader.clients.errors import ClientError
from ringleader.clients.model import LATEST
from ringleader.coordinator.group_transactions.markers import Markers, end_transaction, offset_of
from ringleader.coordinator.group_transactions.unended import Place, Unended
from ringleader.coordinator.groups.shard import Shard
from ringleader.coordinator.logs import get_log
from ringleader.coordinator.machine import Phase
from ringleader.coordinator.relay.relay import Relay, code_of
from ringleader.coordinator.relay.transactions import Coordinated
from ringleader.coordinator.run_queue import Slices
from ringleader.coordinator.server.call import Answerable, Call, Message, NoAnswer
from ringleader.coordinator.server.handlers import checks, existing
from ringleader.coordinator.server.services import Handler, Services
from ringleader.protocol import messages as kafka
from ringleader.protocol.errors import ErrorCode, KafkaError
from ringleader.protocol.refusals import refusal

ONGOING = "Ongoing"
LOADING_VERSION = 2
"""The first version of TxnOffsetCommit whose clients know COORDINATOR_LOAD_IN_PROGRESS."""
ATTEMPTS, AGAIN_S = 50, 0.1
"""Tries, and the time between them, to learn from the coordinator whether the same transaction is still open
after a commit was written."""


def register(services: Services, relay: Relay) -> dict[int, Handler]:
    """Handlers of this family."""
    family = _GroupTransactions(services, relay)
    unended = Unended(services.runtime, family, family.topic, family.coordinated, get_log())
    services.spawn(None, unended.watch())
    services.runtime.on_served = family.served
    for partition in services.runtime.serving:
        family.served(partition)
    return {25: relay.handler(services, family.add_offsets), 28: family.commit}


class _Inner(Answerable):
    """Receives the answer of a call that is made here."""

    def __init__(self, caller: Answerable) -> None:
        self.principal, self.listener = caller.principal, caller.listener
        self.answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def call_answered(self, call: Call, response: Message | NoAnswer) -> None:
        """See `Answerable`."""
        self.answered.set_result(response)

    def call_takes(self, call: Call) -> None:
        """See `Answerable`."""

    def call_finished(self, call: Call, *frame: bytes | memoryview) -> None:
        """See `Answerable`."""
        raise AssertionError("the group machine answers with messages")

    def call_refused(self, call: Call, reason: str) -> None:
        """See `Answerable`."""
        self.answered.set_exception(KafkaError(ErrorCode.NOT_COORDINATOR, reason))


class _GroupTransactions:
    def __init__(self, services: Services, relay: Relay) -> None:
        self._services = services
        self._relay = relay
        self._runtime = services.runtime
        self.topic = services.settings.cluster_groups_topic
        self.coordinated = Coordinated(services, relay)
        self._markers: dict[int, Markers] = {}
        self._turns: dict[Place, asyncio.Lock] = {}
        self._in_line: Counter[Place] = Counter()
        """Commits that have a turn, or wait for it."""
        self._inherited: dict[int, set[int]] = {}
        """By partition: producers with offsets from before it was loaded, and no commit since."""
        self._log = get_log()

    # ---- AddOffsetsToTxn ----

    async def add_offsets(
        self, call: Call, request: kafka.AddOffsetsToTxnRequest
    ) -> kafka.AddOffsetsToTxnResponse:
        """Add a group's partition to the transaction."""
        code = checks.transaction_refusal(self._services, call, request.transactional_id, request.group_id)
        if code:
            return kafka.AddOffsetsToTxnResponse(error_code=code)
        if not request.group_id:
            return kafka.AddOffsetsToTxnResponse(error_code=ErrorCode.INVALID_GROUP_ID)
        partitions = [self._runtime.partition_of(request.group_id)]
        added = kafka.AddPartitionsToTxnRequest(
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            [kafka.AddPartitionsToTxnRequestAddPartitionsToTxnTopic(self.topic, partitions)],
        )
        answer: Any = await self.coordinated.ask(call, added, request.transactional_id)
        [topic] = answer.results_by_topic_v3_and_below
        [one] = topic.results_by_partition
        return kafka.AddOffsetsToTxnResponse(answer.throttle_time_ms, one.partition_error_code)

    # ---- the markers of a partition ----

    def served(self, partition: int) -> None:
        """A shard has been loaded: transactions in it may have ended before."""
        producers = self._runtime.shards[partition].open_producers()
        self._inherited[partition] = set(producers)
        if producers:
            self._follow(partition, None)

    def _follow(self, partition: int, begin: int | None) -> Markers:
        markers = self._markers[partition] = Markers(
            partition, self.topic, self._runtime, self._relay.topology, self._log, begin
        )
        self._services.spawn(None, self._run(partition, markers))
        return markers

    async def _run(self, partition: int, markers: Markers) -> None:
        try:
            await markers.run()
        finally:
            if self._markers.get(partition) is markers:
                del self._markers[partition]

    @asynccontextmanager
    async def turn(self, place: Place) -> AsyncIterator[None]:
        """See `Turns`."""
        self._in_line[place] += 1
        try:
            async with self._turns.setdefault(place, asyncio.Lock()):
                yield
        finally:
            self._in_line[place] -= 1
            if not self._in_line[place]:
                del self._in_line[place], self._turns[place]

    @asynccontextmanager
    async def settled(self, partition: int) -> AsyncIterator[Markers]:
        """See `Turns`."""
        end = await offset_of(self._relay.topology, self.topic, partition, LATEST)
        markers = self._markers.get(partition)
        if markers is None or not markers.alive:
            markers = self._follow(partition, end)
        markers.users += 1
        try:
            await markers.reached(end)
            yield markers
        finally:
            markers.users -= 1

    # ---- TxnOffsetCommit ----

    def commit(self, call: Call, request: kafka.TxnOffsetCommitRequest) -> Message | Slices | None:
        """Entries of unknown topics and partitions are refused, the others go on."""
        code = checks.transaction_refusal(self._services, call, request.transactional_id, request.group_id)
        if code:
            return refusal(request, call.api_version, code)
        refused_class = kafka.TxnOffsetCommitResponsePartition
        then = partial(self._commit_allowed, call, request)
        return existing.allowed_first(self._services, call, request, refused_class, then)

    def _commit_allowed(
        self, call: Call, request: kafka.TxnOffsetCommitRequest, forbidden: existing.Refused
    ) -> Message | Slices | None:
        then = partial(self._commit_existing, call, request, forbidden)
        return existing.found_first(self._services, call, request, then)

    def _commit_existing(
        self, call: Call, request: kafka.TxnOffsetCommitRequest, forbidden: existing.Refused
    ) -> Message | None:
        refused_class = kafka.TxnOffsetCommitResponsePartition
        accepted, refused = existing.split(self._services.topics, request, refused_class)
        refused.update(forbidden)
        if not accepted and refused:
            response = kafka.TxnOffsetCommitResponse()
            existing.merge(response.topics, refused, kafka.TxnOffsetCommitResponseTopic)
            return response
        request.topics = accepted
        # Not ended with the call: written offsets have to be acknowledged or dropped.
        self._services.spawn(None, self._answer(call, request, refused))
        return None

    async def _answer(
        self, call: Call, request: kafka.TxnOffsetCommitRequest, refused: existing.Refused
    ) -> None:
        try:
            response = await self._commit(call, request)
        except KafkaError as error:
            response = refusal(request, call.api_version, error.code)
        except Exception:
            call.close("failed")
            raise
        for topic in response.topics:
            for one in topic.partitions:
                loading = one.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
                if loading and call.api_version < LOADING_VERSION:
                    one.error_code = ErrorCode.COORDINATOR_NOT_AVAILABLE
        existing.merge(response.topics, refused, kafka.TxnOffsetCommitResponseTopic)
        call.answer(response)

    async def _commit(
        self, call: Call, request: kafka.TxnOffsetCommitRequest
    ) -> kafka.TxnOffsetCommitResponse:
        """Raises KafkaError."""
        if not request.group_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID)
        partition = self._runtime.partition_of(request.group_id)
        try:
            async with self.turn((partition, request.producer_id)):
                shard = self._runtime.shards[partition]
                if shard.phase is not Phase.SERVING:
                    raise KafkaError(shard.refusal)
                return await self._in_turn(call, request, partition)
        except ClientError as error:
            raise KafkaError(code_of(error, ErrorCode.COORDINATOR_NOT_AVAILABLE), str(error)) from error

    async def _in_turn(
        self, call: Call, request: kafka.TxnOffsetCommitRequest, partition: int
    ) -> kafka.TxnOffsetCommitResponse:
        began_ms = await self._open_since_ms(request, partition)
        async with self.settled(partition) as markers:
            if call.done:
                raise KafkaError(ErrorCode.NOT_COORDINATOR)  # its client is gone
            self._check_inherited(request, partition, markers.shard)
            response = await self._written(call, request, markers)
            codes = {one.error_code for topic in response.topics for one in topic.partitions}
            if ErrorCode.COORDINATOR_NOT_AVAILABLE in codes:
                self._doubt(request, partition, markers)  # the log is late, and may have it all the same
            if ErrorCode.NONE in codes:
                await self._check_again(request, partition, markers, began_ms)
            if codes == {ErrorCode.NONE} and markers.alive:
                self._inherited[partition].discard(request.producer_id)
            return response

    def _doubt(self, request: kafka.TxnOffsetCommitRequest, partition: int, markers: Markers) -> None:
        """Records that may have been written may come behind the end of their transaction: the producer's
        next commit has to settle them, as after an owner that died."""
        if markers.alive:
            self._inherited[partition].add(request.producer_id)

    async def _written(
        self, call: Call, request: kafka.TxnOffsetCommitRequest, markers: Markers
    ) -> kafka.TxnOffsetCommitResponse:
        """The group machine's answer, in the life of its shard in which all that had ended was ended."""
        inner = _Inner(call.connection)
        ticket = Call(inner, call.api_key, call.api_version, 0, call.client_id, call.client_host, request)

        def verify() -> int:
            return ErrorCode.NONE if markers.alive else ErrorCode.NOT_COORDINATOR

        work = existing.commit(self._services, ticket, request, verify=verify)
        response = await self._services.run_queue.run(work)
        if response is None:
            response = await inner.answered
        return response  # type: ignore[no-any-return]

    def _check_inherited(self, request: kafka.TxnOffsetCommitRequest, partition: int, shard: Shard) -> None:
        """Raises KafkaError, one that makes a client abort, for offsets that an earlier owner wrote and the
        request does not write again."""
        if request.producer_id not in self._inherited[partition]:
            return
        written = {
            (request.group_id, topic.name, one.partition_index)
            for topic in request.topics
            for one in topic.partitions
        }
        if not shard.open_offsets(request.producer_id) <= written:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION, "offsets of an unknown transaction are open")

    async def _check_again(
        self, request: kafka.TxnOffsetCommitRequest, partition: int, markers: Markers, began_ms: int
    ) -> None:
        """Written offsets count if the transaction is still the same: then its marker comes behind them.
        Raises KafkaError if it is not, when they are dropped."""
        for _ in range(ATTEMPTS):
            try:
                if await self._open_since_ms(request, partition) == began_ms:
                    return
                error = KafkaError(ErrorCode.INVALID_TXN_STATE)
            except ClientError:
                await asyncio.sleep(AGAIN_S)
                continue
            except KafkaError as found:
                if found.retriable:
                    await asyncio.sleep(AGAIN_S)
                    continue
                error = found
            await end_transaction(
                self._runtime, partition, markers.shard, request.producer_id, committed=False
            )
            raise error
        self._log.warning(
            "transaction not found again",
            group_id=request.group_id,
            producer_id=request.producer_id,
            text="its coordinator does not answer whether it is still open",
        )
        self._doubt(request, partition, markers)
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    async def _open_since_ms(self, request: kafka.TxnOffsetCommitRequest, partition: int) -> int:
        """The begin of the transaction. Raises KafkaError unless it is open, this producer's, and has the
        group's partition; ClientError."""
        state = await self.coordinated.describe(request.transactional_id)
        if state.producer_id != request.producer_id:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        if state.producer_epoch != request.producer_epoch:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH)
        added = any(topic.topic == self.topic and partition in topic.partitions for topic in state.topics)
        if state.transaction_state != ONGOING or not added:
            raise KafkaError(ErrorCode.INVALID_TXN_STATE)
        return state.transaction_start_time_ms
