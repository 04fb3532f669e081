"""Our messages as kafka-python's: the second independent codec that the bytes are compared with."""

from __future__ import annotations

import importlib
import uuid
import warnings
from typing import Any

from ringleader.protocol.schema import ZERO_UUID, Message
from tests.support.wire_values import present_fields

with warnings.catch_warnings():
    # It reads its schema files through an interface that Python 3.11 calls deprecated.
    warnings.simplefilter("ignore", DeprecationWarning)
    for _room in ("admin", "consumer", "metadata", "producer", "sasl"):
        importlib.import_module(f"kafka.protocol.{_room}")
    ApiMessage: Any = importlib.import_module("kafka.protocol.api_message").ApiMessage

_BY_NAME = {cls.__name__: cls for cls in ApiMessage.__subclasses__()}


def kafka_python_class(cls: type[Message], version: int) -> Any:
    """kafka-python's class for a message; fails if it does not know this version."""
    found = _BY_NAME[cls.__name__]
    assert version <= found.max_version
    return found


_RENAMED = {("TxnOffsetCommitRequest", "generation_id_or_member_epoch"): "generation_id"}
"""A field that its schema files know by an older name."""


def _bits(value: int) -> set[int] | None:
    found = {bit for bit in range(32) if value >> bit & 1}
    return None if found == {31} else found


def plain(value: Any, version: int) -> Any:
    """A message, struct, list or scalar of ours as plain values, named and typed as in kafka-python.

    Structs are dicts, topic ids UUIDs (null for zero), authorized operations sets of bits (null for unknown).
    """
    if isinstance(value, list):
        return [plain(item, version) for item in value]
    if not hasattr(type(value), "__dataclass_fields__"):
        return value
    found: dict[str, Any] = {}
    for name, spec in present_fields(type(value), version):
        item = getattr(value, name)
        name = _RENAMED.get((type(value).__name__, name), name)
        if name.endswith("authorized_operations") and spec.type == "int32":
            found["authorized_operations"] = _bits(item)
        elif spec.type == "uuid":
            found[name] = None if item == ZERO_UUID else uuid.UUID(bytes=item)
        else:
            found[name] = plain(item, version)
    return found


def to_kafka_python(value: Message, theirs: Any, version: int) -> Any:
    """kafka-python's object with the values of ours."""
    return _build(theirs, theirs._struct, plain(value, version), version)


def _build(data_class: Any, struct: Any, found: dict[str, Any], version: int) -> Any:
    made: dict[str, Any] = {}
    for name, item in found.items():
        field = struct.fields[name]
        if isinstance(item, dict):
            made[name] = _build(field.data_class, field, item, version)
        elif isinstance(item, list) and field.is_struct_array():
            made[name] = [_build(field.data_class, field, part, version) for part in item]
        else:
            made[name] = item
    return data_class(version=version, **made)


def same_values(theirs: Any, ours: Any) -> bool:
    """Whether what kafka-python read equals plain values of ours."""
    if isinstance(ours, dict):
        return theirs is not None and all(same_values(getattr(theirs, name), ours[name]) for name in ours)
    if isinstance(ours, list):
        return (
            theirs is not None
            and len(theirs) == len(ours)
            and all(same_values(left, right) for left, right in zip(theirs, ours, strict=True))
        )
    if isinstance(ours, bytes):
        return theirs is not None and bytes(theirs) == ours
    return bool(theirs == ours)
