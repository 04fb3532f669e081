"""A fetch session (KIP-227) with one broker over one connection: what the broker knows already.

No I/O here. As Java's `FetchSessionHandler`: a request is built from the session, and its answer moves the
session on; a request without an answer leaves it in doubt, and the next one ends it and begins another.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ringleader.clients.connection.requests import by_topic
from ringleader.clients.model import TopicPartition
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    FetchRequest,
    FetchRequestFetchPartition,
    FetchRequestFetchTopic,
    FetchRequestForgottenTopic,
    FetchResponse,
)
from ringleader.protocol.messages.data import TOPIC_IDS_VERSION
from ringleader.protocol.schema import ZERO_UUID

NO_SESSION = 0
INITIAL_EPOCH, FINAL_EPOCH = 0, -1
"""Epochs of whole requests: one that asks for a session, one that asks for none."""
SESSIONS_SINCE = 7
"""The first version of Fetch with sessions."""
LOST = (
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
    ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
)
"""Answers to an incremental request after which a whole one is sent at once."""
MAX_INT32 = 2**31 - 1


class Wanted(NamedTuple):
    """How a partition is asked for."""

    offset: int
    leader_epoch: int
    max_bytes: int
    topic_id: bytes = ZERO_UUID
    """Zero: the topic has none, or it is not known."""


def newest(requested: Mapping[TopicPartition, Wanted]) -> int:
    """The highest version of Fetch that can ask for these: by id, if all topics have ids (KIP-516)."""
    by_name = any(one.topic_id == ZERO_UUID for one in requested.values())
    return TOPIC_IDS_VERSION - 1 if by_name else FetchRequest.MAX_VERSION


class FetchSession:
    """One that is `offered` to a broker, which may make none, or know no such version: it gets whole requests
    then."""

    def __init__(self, *, offered: bool = True) -> None:
        self._offered = offered
        self._id = NO_SESSION
        self._epoch = INITIAL_EPOCH
        self._known: Mapping[TopicPartition, Wanted] = {}
        """The partitions of the session, as they were last asked for."""

    @property
    def is_incremental(self) -> bool:
        """Whether the next request names only what has changed."""
        return self._epoch != INITIAL_EPOCH

    def fill(self, request: FetchRequest, requested: Mapping[TopicPartition, Wanted], version: int) -> None:
        """Put into the request what it has to say of these partitions in this version. Changes nothing
        here."""
        if version < SESSIONS_SINCE or not self._offered:
            request.session_id, request.session_epoch = NO_SESSION, FINAL_EPOCH
            request.topics, request.forgotten_topics_data = _topics(requested), []
            return
        request.session_id, request.session_epoch = self._id, self._epoch
        known = self._known if self.is_incremental else {}
        request.topics = _topics({tp: one for tp, one in requested.items() if known.get(tp) != one})
        by_id = version >= TOPIC_IDS_VERSION
        forgotten = {
            tp: one.topic_id
            for tp, one in known.items()
            # A topic that was made again is another one to a broker that knows it by its id.
            if tp not in requested or (by_id and requested[tp].topic_id != one.topic_id)
        }
        ids = {topic: topic_id for (topic, _), topic_id in forgotten.items()}
        request.forgotten_topics_data = [
            FetchRequestForgottenTopic(topic, ids[topic], partitions)
            for topic, partitions in by_topic(forgotten).items()
        ]

    def answered(self, requested: Mapping[TopicPartition, Wanted], response: FetchResponse) -> None:
        """The answer to a request for these partitions came, perhaps with an error as a whole."""
        if response.error_code not in (ErrorCode.NONE, ErrorCode.FETCH_SESSION_ID_NOT_FOUND):
            self.failed()
            return
        self._id = NO_SESSION if response.error_code else response.session_id
        if self._id == NO_SESSION:
            self.failed()
        else:
            self._epoch = 1 if self._epoch == MAX_INT32 else self._epoch + 1
            self._known = requested

    def failed(self) -> None:
        """No answer came: the broker may have read the request, or not."""
        self._epoch = INITIAL_EPOCH


def _topics(requested: Mapping[TopicPartition, Wanted]) -> list[FetchRequestFetchTopic]:
    topics: dict[tuple[str, bytes], list[FetchRequestFetchPartition]] = {}
    for (topic, partition), one in requested.items():
        topics.setdefault((topic, one.topic_id), []).append(
            FetchRequestFetchPartition(
                partition=partition,
                current_leader_epoch=one.leader_epoch,
                fetch_offset=one.offset,
                partition_max_bytes=one.max_bytes,
            )
        )
    return [FetchRequestFetchTopic(*topic, partitions) for topic, partitions in topics.items()]
