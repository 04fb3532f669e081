"""Our messages as kio's: the independent codec that the bytes are compared with."""

from __future__ import annotations

import datetime
import importlib
import io
import re
import typing
import uuid
from dataclasses import fields, is_dataclass
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from kio.schema.errors import ErrorCode as KioErrorCode
from kio.serial import entity_reader, entity_writer

from ringleader.protocol.fields import OUR_TAG, FieldSpec
from ringleader.protocol.schema import ZERO_UUID, Message
from tests.support.wire_values import present_fields

# kio holds times as objects: only what those carry without loss can be compared.
_NARROW: dict[str, SearchStrategy[int]] = {
    "error_code": st.sampled_from([code.value for code in KioErrorCode]),
    "timedelta_i64": st.integers(-(10**12), 10**12),
    "datetime_i64": st.just(-1) | st.integers(0, 4 * 10**12),
}
_TIME = st.integers(0, 4 * 10**12)
"""Where -1 does not stand for no time."""
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def kio_class(cls: type[Message], version: int) -> type[Any]:
    """kio's class for one version of a request or response; ImportError if it has none."""
    folder = re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", cls.__name__).lower().removesuffix(f"_{cls.KIND}")
    module = importlib.import_module(f"kio.schema.{folder}.v{version}.{cls.KIND}")
    found: type[Any] = getattr(module, cls.__name__)
    return found


def _struct_in(hint: Any) -> Any:
    if is_dataclass(hint):
        return hint
    return next((found for part in typing.get_args(hint) if (found := _struct_in(part))), None)


Column = tuple[str, FieldSpec, str, str, Any]
"""Our field, its declaration, kio's field, kio's type, kio's struct."""

_known: dict[tuple[type[Any], type[Any], int], list[Column]] = {}
_special: dict[tuple[type[Any], int], dict[tuple[type[Any], str], SearchStrategy[int]]] = {}


def _columns(cls: type[Any], kio: type[Any], version: int) -> list[Column]:
    """The fields of a version in wire order."""
    if (cls, kio, version) not in _known:
        _known[cls, kio, version] = _match(cls, kio, version)
    return _known[cls, kio, version]


def _match(cls: type[Any], kio: type[Any], version: int) -> list[Column]:
    present, theirs = present_fields(cls, version), fields(kio)
    ours = [(name, spec) for name, spec in present if not _is_ours(spec)]
    assert len(ours) == len(theirs), (cls, version)
    hints = typing.get_type_hints(kio)
    return [
        (name, spec, their.name, their.metadata.get("kafka_type", ""), _struct_in(hints[their.name]))
        for (name, spec), their in zip(ours, theirs, strict=True)
    ]


def _is_ours(spec: FieldSpec) -> bool:
    return spec.tag is not None and spec.tag >= OUR_TAG


def special_values(
    cls: type[Any], kio: type[Any], version: int
) -> dict[tuple[type[Any], str], SearchStrategy[int]]:
    """The fields whose values have to be narrower for kio, by (struct, field)."""
    if (cls, version) in _special:
        return _special[cls, version]
    absent = [(name, spec) for name, spec in present_fields(cls, version) if _is_ours(spec)]
    found = _special[cls, version] = {(cls, name): st.just(spec.default) for name, spec in absent}
    for name, spec, _, kind, inner in _columns(cls, kio, version):
        if kind in _NARROW:
            found[cls, name] = _TIME if kind == "datetime_i64" and spec.default != -1 else _NARROW[kind]
        if inner is not None:
            assert not isinstance(spec.type, str)
            found |= special_values(spec.type, inner, version)
    return found


def _scalar(value: Any, kind: str) -> Any:
    if value is None:
        return None
    if kind == "error_code":
        return KioErrorCode(value)
    if kind.startswith("timedelta"):
        return datetime.timedelta(milliseconds=value)
    if kind == "datetime_i64":
        return None if value == -1 else _EPOCH + datetime.timedelta(milliseconds=value)
    if kind == "uuid":
        return None if value == ZERO_UUID else uuid.UUID(bytes=value)
    return value


def to_kio(value: Any, kio: type[Any], version: int) -> Any:
    """kio's object with the values of ours."""

    def one(item: Any, kind: str, inner: Any) -> Any:
        return _scalar(item, kind) if inner is None or item is None else to_kio(item, inner, version)

    made: dict[str, Any] = {}
    for name, spec, their_name, kind, inner in _columns(type(value), kio, version):
        mine = getattr(value, name)
        if spec.array and mine is not None:
            made[their_name] = tuple(one(item, kind, inner) for item in mine)
        else:
            made[their_name] = one(mine, kind, inner)
    return kio(**made)


def kio_bytes(value: Any) -> bytes:
    """The body that kio writes."""
    out = io.BytesIO()
    entity_writer(type(value))(out, value)
    return out.getvalue()


def kio_read(kio: type[Any], data: bytes) -> tuple[Any, int]:
    """The message that kio reads from a body, and the bytes it took. Never give it hostile bytes: it trusts
    counts."""
    found: tuple[Any, int] = entity_reader(kio)(data, 0)
    return found
