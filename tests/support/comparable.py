"""Answers as what is compared: who may what, not where it is."""

from __future__ import annotations

import dataclasses
from collections.abc import Set as AbstractSet
from typing import Any

UNCOMPARED = {
    "throttle_time_ms",
    "node_id",
    "host",
    "port",
    "cluster_id",
    "controller_id",
    "brokers",
    "topic_id",
    "producer_id",
    "leader_id",
    "leader_epoch",
    "replica_nodes",
    "isr_nodes",
    "log_append_time_ms",
    "documentation",
    "synonyms",
    "configs",
}
"""Fields that say where something is, not whether one may."""

REFUSALS = {29, 30, 31, 53}
"""Their texts are compared, but for those in which Kafka prints the whole request."""
OWN = frozenset({"__ringleader_journal", "__ringleader_groups", "__transaction_state"})
"""Topics that only some have."""


def plain(value: Any, own: AbstractSet[str] = OWN) -> Any:
    """A message as what is compared: lists without their order, and without topics that are `own`."""
    if dataclasses.is_dataclass(value):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        if fields.get("error_code") not in REFUSALS or "needs" in (fields.get("error_message") or ""):
            fields.pop("error_message", None)
        return {name: plain(one, own) for name, one in fields.items() if name not in UNCOMPARED}
    if isinstance(value, list):
        return sorted((plain(one, own) for one in value if getattr(one, "name", "") not in own), key=repr)
    return int(value) if isinstance(value, int) else value
