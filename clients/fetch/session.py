"""A fetch session (KIP-227) with one broker over one connection: what the broker has been told already.

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

NO_SESSION = 0
INITIAL_EPOCH, FINAL_EPOCH = 0, -1
"""Epochs of whole requests: one that asks for a session, one that asks for none."""
SESSIONS_SINCE = 7
"""The first version of Fetch with sessions."""
LOST = (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH)
"""Answers to an incremental request after which a whole one is sent at once."""
MAX_INT32 = 2**31 - 1


class Wanted(NamedTuple):
    """How a partition is asked for."""

    offset: int
    leader_epoch: int
    max_bytes: int


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

    def fill(self, request: FetchRequest, asked: Mapping[TopicPartition, Wanted], version: int) -> None:
        """Put into the request what it has to say of these partitions in this version. Changes nothing
        here."""
        if version < SESSIONS_SINCE or not self._offered:
            request.session_id, request.session_epoch = NO_SESSION, FINAL_EPOCH
            request.topics, request.forgotten_topics_data = _topics(asked), []
            return
        request.session_id, request.session_epoch = self._id, self._epoch
        known = self._known if self.is_incremental else {}
        request.topics = _topics({tp: one for tp, one in asked.items() if known.get(tp) != one})
        request.forgotten_topics_data = [
            FetchRequestForgottenTopic(topic, partitions)
            for topic, partitions in by_topic(tp for tp in known if tp not in asked).items()
        ]

    def answered(self, asked: Mapping[TopicPartition, Wanted], response: FetchResponse) -> None:
        """The answer to a request for these partitions came, perhaps with an error as a whole."""
        if response.error_code not in (ErrorCode.NONE, ErrorCode.FETCH_SESSION_ID_NOT_FOUND):
            self.failed()
            return
        self._id = NO_SESSION if response.error_code else response.session_id
        if self._id == NO_SESSION:
            self.failed()
        else:
            self._epoch = 1 if self._epoch == MAX_INT32 else self._epoch + 1
            self._known = asked

    def failed(self) -> None:
        """No answer came: the broker may have read the request, or not."""
        self._epoch = INITIAL_EPOCH


def _topics(asked: Mapping[TopicPartition, Wanted]) -> list[FetchRequestFetchTopic]:
    topics: dict[str, list[FetchRequestFetchPartition]] = {}
    for (topic, partition), one in asked.items():
        topics.setdefault(topic, []).append(
            FetchRequestFetchPartition(
                partition=partition,
                current_leader_epoch=one.leader_epoch,
                fetch_offset=one.offset,
                partition_max_bytes=one.max_bytes,
            )
        )
    return [FetchRequestFetchTopic(topic, partitions) for topic, partitions in topics.items()]
