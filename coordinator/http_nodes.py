"""The metrics of one of several nodes: what it should serve and does not, and whom it reaches.

ringleader_nodes                                as many as the map has
ringleader_controller                           1: this node is the one that makes the map
ringleader_shards_wanted                        partitions of groups that the map gives this node
ringleader_shards_unserved                      those of them that it does not serve now
ringleader_fences_total                         partitions that another node took while this one had them
ringleader_broker_silence_seconds{broker}       for how long a broker has not answered this node
ringleader_relay_bytes_total{direction}         of clients' requests (to_brokers) and answers (from_brokers)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric


@dataclass(slots=True)
class NodesFigures:
    """The figures of the node, counted on its loop."""

    nodes: int = 0
    controls: bool = False
    wanted: int = 0
    unserved: int = 0
    late: int = 0
    fences: int = 0
    silence_s: Mapping[int, float] = field(default_factory=dict)
    """By broker id."""
    relayed_bytes: tuple[int, int] = (0, 0)
    """To brokers, and from them."""


def families(found: NodesFigures) -> Iterator[Metric]:
    """All of them."""
    yield GaugeMetricFamily("ringleader_nodes", "Nodes in the map", found.nodes)
    yield GaugeMetricFamily("ringleader_controller", "1: this node makes the map", int(found.controls))
    text = "Partitions of groups that the map gives this node"
    yield GaugeMetricFamily("ringleader_shards_wanted", text, found.wanted)
    text = "Partitions of groups that the map gives this node, and that it does not serve"
    yield GaugeMetricFamily("ringleader_shards_unserved", text, found.unserved)
    text = "Partitions of groups that this node serves, and whose log does not answer in time"
    yield GaugeMetricFamily("ringleader_shards_late", text, found.late)
    text = "Partitions of groups that another node took while this one had them"
    yield CounterMetricFamily("ringleader_fences", text, found.fences)
    silence = GaugeMetricFamily(
        "ringleader_broker_silence_seconds", "For how long it has not answered this node", labels=["broker"]
    )
    for broker, silence_s in sorted(found.silence_s.items()):
        silence.add_metric([str(broker)], silence_s)
    relayed = CounterMetricFamily(
        "ringleader_relay_bytes", "Of clients' requests, and of brokers' answers", labels=["direction"]
    )
    for direction, count in zip(("to_brokers", "from_brokers"), found.relayed_bytes, strict=True):
        relayed.add_metric([direction], count)
    yield from (silence, relayed)
