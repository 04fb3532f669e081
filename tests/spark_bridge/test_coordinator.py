"""The coordinator as the source asks it without being a member: which errors end a call, and which are waited
out."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable

import pytest

from ringleader.clients.blocking.endpoint import Endpoint
from ringleader.clients.errors import is_retriable
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    FindCoordinatorResponseCoordinator,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from ringleader.protocol.schema import Message
from ringleader.spark_bridge.errors import SourceError
from ringleader.spark_bridge.network import coordinator
from ringleader.spark_bridge.network.coordinator import GroupCoordinator, NoCoordinatorError
from tests.spark_bridge.broker import Broker

LATER = [code for code in ErrorCode if code > 0 and is_retriable(code)]
NEVER = [code for code in ErrorCode if code and not is_retriable(code)]


class CoordinatorBroker(Broker):
    """Answers commits and questions for offsets with these errors, one for each partition."""

    def __init__(self) -> None:
        super().__init__({})
        self.versions |= {8: (2, 9), 9: (8, 9), 10: (0, 4)}
        self.codes: list[int] = []
        self.requests = 0

    def _answer(self, request: Message) -> Message:
        match request:
            case FindCoordinatorRequest():
                here = FindCoordinatorResponseCoordinator(key="g", node_id=0, host=self.host, port=self.port)
                return FindCoordinatorResponse(coordinators=[here])
            case OffsetCommitRequest():
                self.requests += 1
                answered = OffsetCommitResponsePartition
                of = [answered(partition_index=n, error_code=code) for n, code in enumerate(self.codes)]
                return OffsetCommitResponse(topics=[OffsetCommitResponseTopic(name="t", partitions=of)])
            case OffsetFetchRequest():
                self.requests += 1
                fetched = [
                    OffsetFetchResponsePartitions(
                        partition_index=n, committed_offset=-1, metadata="", error_code=code
                    )
                    for n, code in enumerate(self.codes)
                ]
                topic = OffsetFetchResponseTopics(name="t", partitions=fetched)
                return OffsetFetchResponse(groups=[OffsetFetchResponseGroup(group_id="g", topics=[topic])])
        return super()._answer(request)


@pytest.mark.parametrize(
    "call",
    [lambda one: one.commit({("t", 0): 1, ("t", 1): 1}), lambda one: one.fetch([("t", 0), ("t", 1)])],
    ids=["commit", "fetch"],
)
def test_what_no_retry_cures_is_an_error_at_once_whatever_other_partitions_say(
    seed: int, monkeypatch: pytest.MonkeyPatch, call: Callable[[GroupCoordinator], object]
) -> None:
    """And what a retry may cure is tried again."""
    monkeypatch.setattr(coordinator, "RETRY_PAUSE_S", 0.0)
    drawn = random.Random(seed)
    with CoordinatorBroker() as broker:
        endpoint = Endpoint(((broker.host, broker.port),))
        with GroupCoordinator(endpoint, "g") as one:
            for pair in itertools.product(drawn.sample(LATER, 8), drawn.sample(NEVER, 8)):
                broker.codes, broker.requests = drawn.sample(pair, 2), 0
                with pytest.raises(SourceError) as raised:
                    call(one)
                assert (type(raised.value), broker.requests) == (SourceError, 1), broker.codes
        with GroupCoordinator(endpoint, "g", timeout_s=0.5) as impatient:
            broker.codes, broker.requests = drawn.sample(LATER, 2), 0
            with pytest.raises(NoCoordinatorError):
                call(impatient)
            assert broker.requests > 1


def test_a_connection_whose_session_is_nearly_over_is_asked_nothing_more() -> None:
    with CoordinatorBroker() as broker, GroupCoordinator(Endpoint(((broker.host, broker.port),)), "g") as one:
        broker.codes = [0]
        connections = []
        for is_over in (False, True, False):
            if one._coordinator is not None:
                one._coordinator._use_until_s = 0.0 if is_over else math.inf
            one.fetch([("t", 0)])
            connections.append(one._coordinator)
    assert connections[0] is not connections[1]
    assert connections[1] is connections[2]
