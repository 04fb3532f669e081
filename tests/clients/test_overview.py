"""A cluster at a glance, as clients see it."""

from __future__ import annotations

import pytest

from ringleader.clients.connection.overview import Overview, read
from ringleader.clients.connection.requests import RawAnswer
from ringleader.clients.errors import BrokerError
from ringleader.clients.model import Node
from ringleader.protocol.frames import encode_response
from ringleader.protocol.messages import MetadataResponse, MetadataResponseBroker
from ringleader.protocol.overview import TopicOverview


def test_brokers_are_nodes() -> None:
    response = MetadataResponse(brokers=[MetadataResponseBroker(node_id=1, host="h", port=9092, rack="a")])
    frame = encode_response(response, 12, 7)[4:]
    assert read(RawAnswer(frame, 12)) == Overview({}, {1: Node(1, "h", 9092)}, {1: "a"})
    with pytest.raises(BrokerError, match="answer to Metadata cannot be read"):
        read(RawAnswer(frame[:-1], 12))


def test_racks_of_partitions() -> None:
    topics = {
        "t": TopicOverview(bytes(16), 2, False, 0, (1, 2), ((1, 2), (2, 3))),
        "gone": TopicOverview(bytes(16), 0, False, 3),
    }
    seen = Overview(topics, {}, {1: "a", 2: "b", 3: None})
    assert seen.partition_racks(["t", "gone", "never"]) == {"t": [frozenset("ab"), frozenset("b")]}
    assert seen.counts(["t", "gone", "never"]) == {"t": 2}
