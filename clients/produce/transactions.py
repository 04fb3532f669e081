"""A producer's identity and its transactions at their coordinator: InitProducerId (22), AddPartitionsToTxn
(24), AddOffsetsToTxn (25), EndTxn (26), and TxnOffsetCommit (28) at the group's (KIP-98, 360 and 447).

With transactions of V2 (KIP-890) nothing is added: Produce (0) and TxnOffsetCommit do that, and EndTxn raises
the epoch, so that a batch of one transaction never becomes a part of the next."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from enum import Enum
from typing import Any

from ringleader.clients.connection.backoff import Backoff
from ringleader.clients.connection.cluster import Cluster, retrying
from ringleader.clients.connection.requests import GROUP, TRANSACTION, Request, by_topic, plain
from ringleader.clients.errors import (
    BrokerError,
    ClientError,
    CommitFailedError,
    RetriableError,
    is_retriable,
)
from ringleader.clients.model import GroupMetadata, Node, Offsets, TopicPartition, with_metadata
from ringleader.clients.offsets.requests import in_commits
from ringleader.clients.produce.errors import (
    AbortableTransactionError,
    FatalProducerError,
    ProducerFencedError,
)
from ringleader.clients.produce.model import ProducerSettings
from ringleader.protocol.errors import ErrorCode, error_name
from ringleader.protocol.fields import LAST
from ringleader.protocol.messages import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnRequestAddPartitionsToTxnTopic,
    EndTxnRequest,
    InitProducerIdRequest,
    ProduceRequest,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from ringleader.protocol.schema import Message

logger = logging.getLogger("ringleader.clients.produce")

FENCED = (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH)
_FATAL = (
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.INVALID_REQUEST,
    ErrorCode.INVALID_TRANSACTION_TIMEOUT,
)
_NOT_THE_MEMBER = (
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.STALE_MEMBER_EPOCH,
    ErrorCode.FENCED_MEMBER_EPOCH,
)
NEWEST_V1 = {ProduceRequest: 11, TxnOffsetCommitRequest: 4, EndTxnRequest: 4}
"""The newest version of each API for transactions of V1: the next one asks for V2."""
_MOVED = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)
RETRY_MS, RETRY_MAX_MS = 20, 1_000


class Phase(Enum):
    """Where the transaction stands."""

    NONE = "no transaction is open"
    OPEN = "a transaction is open"
    ABORTABLE = "the transaction has to be aborted"
    ENDING = "the end of the transaction is under way"


class Transactions:
    """Belongs to one event loop. `wake`: called when batches may be sent that could not before; `renumber`:
    when the producer has a new epoch."""

    def __init__(
        self,
        cluster: Cluster,
        settings: ProducerSettings,
        wake: Callable[[], None],
        renumber: Callable[[], None],
    ) -> None:
        self._cluster = cluster
        self._settings = settings
        self._wake = wake
        self._renumber = renumber
        self.id = settings.transactional_id
        self.producer = (-1, -1)
        """Producer id and epoch."""
        self.phase = Phase.NONE
        self.fatal: FatalProducerError | None = None
        self._error: ClientError | None = None
        """The reason why the transaction has to be aborted."""
        self._added: set[TopicPartition] = set()
        self._wanted: set[TopicPartition] = set()
        self._adding: asyncio.Task[None] | None = None
        self._has_offsets = False
        self._v2 = False
        """Whether the transaction is of V2: chosen as it begins, by the cluster's feature."""
        self._maybe_open = False
        """Whether the coordinator may know of the transaction, for all that was answered."""
        self._commit_sent = False
        """Whether a commit may be known to the coordinator: then it cannot be aborted."""
        self._commits = False
        """Whether the end under way is a commit."""
        self._nodes: dict[tuple[int, str], Node] = {}
        self.renumbers = False
        """A batch of the transaction was not stored: the next one needs a new epoch (KIP-360)."""

    # ---- identity ----

    async def begin_identity(self, deadline_s: float) -> None:
        """Get a producer id; a transactional one shuts out the former producer, and ends its transaction.
        Raises RetriableError, FatalProducerError, BrokerError."""
        if not self._settings.enable_idempotence:
            return
        producer_id, epoch = self.producer
        bound_ms = 2**31 - 1 if self.id is None else self._settings.transaction_timeout_ms

        def build(version: int) -> InitProducerIdRequest:
            known = {"producer_id": producer_id, "producer_epoch": epoch} if version >= 3 else {}
            return InitProducerIdRequest(transactional_id=self.id, transaction_timeout_ms=bound_ms, **known)

        request = Request(InitProducerIdRequest, build)
        answer = await self._ask(TRANSACTION, self.id, request, lambda found: found.error_code, deadline_s)
        self._judge("InitProducerId", answer.error_code)
        self.producer = answer.producer_id, answer.producer_epoch

    # ---- one transaction ----

    @property
    def broken(self) -> ClientError | None:
        """The reason why nothing can be written: for this transaction, or for ever."""
        return self.fatal or self._error

    def begin(self) -> None:
        """Raises FatalProducerError, RuntimeError when one is open."""
        if self.fatal is not None:
            raise self.fatal
        if self.phase is not Phase.NONE:
            raise RuntimeError(f"transactional id {self.id!r}: {self.phase.value}")
        self._v2 = self._cluster.features.get("transaction.version", 0) >= 2
        self.phase = Phase.OPEN

    def newest(self, message: type[Message]) -> int:
        """The highest version of an API that may be used, in the transaction if there are any."""
        return LAST if self._v2 or self.id is None else NEWEST_V1.get(message, LAST)

    @property
    def is_open(self) -> bool:
        """Whether there is one that can be aborted."""
        return self.phase is not Phase.NONE and self.fatal is None and not self._commit_sent

    def check_accepts(self) -> None:
        """Raises what keeps a record from being sent."""
        if self.fatal is not None:
            raise self.fatal
        if self.id is not None:
            self.check_open()

    def check_open(self) -> None:
        """Raises what keeps a record from being a part of the transaction."""
        if self.fatal is not None:
            raise self.fatal
        if self._error is not None:
            raise self._abortable(self._error)
        if self.phase is not Phase.OPEN:
            raise RuntimeError(f"transactional id {self.id!r}: {self.phase.value}: begin one first")

    def _abortable(self, why: ClientError) -> AbortableTransactionError:
        error = AbortableTransactionError(f"transactional id {self.id!r} has to abort: {why}", why.code)
        error.__cause__ = why
        return error

    def failed(self, why: ClientError) -> None:
        """The transaction cannot be committed any more."""
        if isinstance(why, FatalProducerError):
            self.fatal = self.fatal or why
        elif self._error is None and self.phase is not Phase.NONE:
            self._error = why
            if self.phase is Phase.OPEN:
                self.phase = Phase.ABORTABLE
        self._wake()

    def fenced(self, code: int) -> ProducerFencedError:
        """The error of a producer that another one has shut out."""
        return ProducerFencedError(
            f"transactional id {self.id!r}: another producer has begun with it, or the transaction took "
            f"longer than transaction_timeout_ms ({error_name(code)})",
            code,
        )

    def _judge(self, request: str, code: int) -> None:
        """Raises the error that a final answer means."""
        if not code:
            return
        # With V2 a producer whose transaction was ended for its time hears that there is none.
        ended = request == "EndTxn" and code == ErrorCode.INVALID_TXN_STATE and self._v2
        if (code in FENCED or ended) and self.id is not None:
            error: ClientError = self.fenced(code)
        elif code in _FATAL:
            error = FatalProducerError(
                f"transactional id {self.id!r}: {error_name(code)} to {request}: make a new producer", code
            )
        else:
            error = BrokerError(f"{request} was refused: {error_name(code)}", code)
        self.failed(error)
        if self._error is not None and not isinstance(error, FatalProducerError):
            raise self._abortable(self._error)
        raise error

    def may_send(self, tp: TopicPartition) -> bool:
        """Whether batches of this partition may go out: with V1 the coordinator has to know of it first."""
        if self.id is None or tp in self._added:
            return True
        if self._v2:
            self._maybe_open = True
            return True
        if self.fatal is None and self._error is None and tp not in self._wanted:
            self._wanted.add(tp)
            if self._adding is None:
                self._adding = asyncio.create_task(self._add(), name="producer's partitions")
        return False

    async def _add(self) -> None:
        try:
            while self._wanted and self._error is None and self.fatal is None:
                wanted = set(self._wanted)
                await self._add_now(wanted)
                self._added |= wanted
                self._wanted -= wanted
        except ClientError as error:
            self._wanted.clear()
            self.failed(error)
        finally:
            self._adding = None
            self._wake()

    async def _add_now(self, wanted: set[TopicPartition]) -> None:
        producer_id, epoch = self.producer
        topics = [
            AddPartitionsToTxnRequestAddPartitionsToTxnTopic(name=name, partitions=of)
            for name, of in by_topic(sorted(wanted)).items()
        ]
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.id or "",
            v3_and_below_producer_id=producer_id,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=topics,
        )

        def codes(answer: Any) -> list[int]:
            found = [
                part.partition_error_code
                for topic in answer.results_by_topic_v3_and_below
                for part in topic.results_by_partition
            ]
            # The others' code only says that one was refused.
            specific = [code for code in found if code not in (0, ErrorCode.OPERATION_NOT_ATTEMPTED)]
            return specific or [code for code in found if code]

        def code_of(answer: Any) -> int:
            return next(iter(codes(answer)), 0)

        self._maybe_open = True
        until_s = asyncio.get_running_loop().time() + self._settings.delivery_timeout_ms / 1000
        answer = await self._ask(TRANSACTION, self.id, plain(request), code_of, until_s)
        self._judge("AddPartitionsToTxn", code_of(answer))

    async def send_offsets(self, offsets: Offsets, group: GroupMetadata, deadline_s: float) -> None:
        """Make the offsets of a group's member a part of the transaction. Raises CommitFailedError when the
        member is not what it says, RetriableError, AbortableTransactionError, FatalProducerError."""
        self.check_open()
        self._maybe_open = True
        if not self._v2:
            await self._add_group(group.group_id, deadline_s)
        for part in in_commits(group.group_id, offsets):
            answer = await self._ask(
                GROUP, group.group_id, self._offset_commit(part, group), _first_code, deadline_s
            )
            code = _first_code(answer)
            if code in _NOT_THE_MEMBER:
                text = f"the member is not part of generation {group.generation} now ({error_name(code)})"
                raise CommitFailedError(f"group {group.group_id!r}: {text}", code)
            self._judge("TxnOffsetCommit", code)

    async def _add_group(self, group_id: str, deadline_s: float) -> None:
        producer_id, epoch = self.producer
        request = AddOffsetsToTxnRequest(
            transactional_id=self.id or "",
            producer_id=producer_id,
            producer_epoch=epoch,
            group_id=group_id,
        )
        answer = await self._ask(
            TRANSACTION, self.id, plain(request), lambda found: found.error_code, deadline_s
        )
        self._judge("AddOffsetsToTxn", answer.error_code)
        self._has_offsets = True

    def _offset_commit(self, offsets: Offsets, group: GroupMetadata) -> Request:
        producer_id, epoch = self.producer
        topics: dict[str, list[TxnOffsetCommitRequestPartition]] = {}
        for (topic, partition), value in offsets.items():
            position = with_metadata(value)
            topics.setdefault(topic, []).append(
                TxnOffsetCommitRequestPartition(
                    partition_index=partition,
                    committed_offset=position.offset,
                    committed_leader_epoch=position.leader_epoch,
                    committed_metadata=position.metadata,
                )
            )
        return plain(
            TxnOffsetCommitRequest(
                transactional_id=self.id or "",
                group_id=group.group_id,
                producer_id=producer_id,
                producer_epoch=epoch,
                generation_id_or_member_epoch=group.generation,
                member_id=group.member_id,
                group_instance_id=group.group_instance_id,
                topics=[TxnOffsetCommitRequestTopic(name=name, partitions=of) for name, of in topics.items()],
            ),
            self.newest(TxnOffsetCommitRequest),
        )

    def ending(self, commits: bool) -> None:
        """Nothing more becomes a part of it. Raises AbortableTransactionError for a commit that cannot be."""
        if self.fatal is not None:
            raise self.fatal
        if self.phase is Phase.NONE:
            raise RuntimeError(f"transactional id {self.id!r}: {self.phase.value}")
        if self._commit_sent and not commits:
            raise RuntimeError(
                f"transactional id {self.id!r}: a commit is under way: only that can be repeated"
            )
        if commits and self._error is not None:
            raise self._abortable(self._error)
        self.phase, self._commits = Phase.ENDING, commits

    async def end(self, commits: bool, deadline_s: float) -> None:
        """Tell the coordinator, and be ready for the next one. Raises RetriableError while the outcome is not
        known: call it again."""
        if commits and self._error is not None:
            self.phase = Phase.ABORTABLE
            raise self._abortable(self._error)
        if self._adding is not None:
            await asyncio.wait([self._adding])
        if self.fatal is not None:
            raise self.fatal
        if self._maybe_open:
            await self._end(commits, deadline_s)
        if self.renumbers:
            await self.begin_identity(deadline_s)
            self.renumbers = False
            self._renumber()
        self._added.clear()
        self._wanted.clear()
        self._has_offsets, self._maybe_open, self._error, self.phase = False, False, None, Phase.NONE

    async def _end(self, commits: bool, deadline_s: float) -> None:
        producer_id, epoch = self.producer
        request = EndTxnRequest(
            transactional_id=self.id or "",
            producer_id=producer_id,
            producer_epoch=epoch,
            committed=commits,
        )
        self._commit_sent = commits
        answer = await self._ask(
            TRANSACTION,
            self.id,
            plain(request, self.newest(EndTxnRequest)),
            lambda found: found.error_code,
            deadline_s,
        )
        self._commit_sent = False
        known = self._v2 or self._added or self._has_offsets
        if answer.error_code == ErrorCode.INVALID_TXN_STATE and not known:
            return  # what was asked for was refused: there is nothing to abort
        self._judge("EndTxn", answer.error_code)
        if answer.producer_id >= 0:
            self.producer = answer.producer_id, answer.producer_epoch
            self.renumbers = False
            self._renumber()

    # ---- asking a coordinator ----

    async def _ask(
        self,
        kind: int,
        key: str | None,
        request: Request,
        code_of: Callable[[Any], int],
        deadline_s: float,
    ) -> Any:
        """The answer, when it is none that another try may change; a key of None asks any node. Raises
        RetriableError when time is over."""

        async def attempt() -> Any:
            node = None if key is None else await self._node(kind, key, deadline_s)
            try:
                answer = await self._cluster.send(node, request, deadline_s=deadline_s)
            except RetriableError:
                self._nodes.pop((kind, key or ""), None)
                raise
            code = code_of(answer)
            if code in _MOVED:
                self._nodes.pop((kind, key or ""), None)
            if is_retriable(code):
                name = request.message.__name__.removesuffix("Request")
                raise RetriableError(
                    f"{name} was not answered with success in time: {error_name(code)}", code
                )
            return answer

        return await retrying(deadline_s, Backoff(RETRY_MS, RETRY_MAX_MS, random.random), attempt)

    async def _node(self, kind: int, key: str, deadline_s: float) -> Node:
        if (node := self._nodes.get((kind, key))) is None:
            node = await self._cluster.coordinator(key, key_type=kind, deadline_s=deadline_s)
            self._nodes[kind, key] = node
        return node


def _first_code(answer: Any) -> int:
    codes = [part.error_code for topic in answer.topics for part in topic.partitions if part.error_code]
    return codes[0] if codes else 0
