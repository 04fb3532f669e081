"""Hypothesis strategies for every declared message, made from the declarations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from ringleader.protocol import messages
from ringleader.protocol.fields import FieldSpec, fields_of
from ringleader.protocol.layout import covers
from ringleader.protocol.schema import ZERO_UUID, Message
from tests.support.shares import share

Special = Mapping[tuple[type[Any], str], SearchStrategy[Any]]
"""Narrower values for single fields, by (struct or message, field): what another codec can hold."""

MESSAGES: list[type[Message]] = [
    cls for cls in (getattr(messages, name) for name in messages.__all__) if issubclass(cls, Message)
]
"""Every declared message."""

PAIRS: list[tuple[type[Message], int]] = [
    (cls, version) for cls in MESSAGES for version in range(cls.MIN_VERSION, cls.MAX_VERSION + 1)
]
"""Every (message, version)."""

few = settings(
    max_examples=share(2, whole=5), deadline=None, database=None, suppress_health_check=list(HealthCheck)
)
"""Examples of one message in one version: there are hundreds of these pairs."""

Check = Callable[[type[Message], int], None]


def in_every_version(pairs: Sequence[tuple[type[Message], int]] = PAIRS) -> Callable[[Check], Any]:
    """Makes one test for each message of a check of one version. A failure says which version it was."""
    versions: dict[type[Message], list[int]] = {}
    for cls, version in pairs:
        versions.setdefault(cls, []).append(version)

    def tested(check: Check) -> Any:
        def test(cls: type[Message]) -> None:
            for version in versions[cls]:
                try:
                    check(cls, version)
                except BaseException as error:
                    error.add_note(f"{cls.__name__} v{version}{_again(check)}")
                    raise

        test.__name__, test.__qualname__, test.__doc__ = check.__name__, check.__name__, check.__doc__
        test.__module__ = check.__module__
        if hasattr(check, "hypothesis"):
            test = pytest.mark.share(test)
        return pytest.mark.parametrize("cls", versions, ids=lambda cls: str(cls.__name__))(test)

    return tested


def _again(check: Check) -> str:
    seed = getattr(check, "_hypothesis_internal_use_generated_seed", None)
    return "" if seed is None else f"; the same again: --hypothesis-seed={seed}"


def _integers(low: int, high: int) -> SearchStrategy[int]:
    return st.sampled_from((0, low, high)) | st.integers(low, high)


# Lengths around 127 and 128 are where a compact length grows from one byte to two.
_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)
_TEXTS = _TEXT | st.integers(125, 129).map("x".__mul__)
_BYTES = st.binary(max_size=10) | st.integers(125, 129).map(bytes)

_SCALARS: dict[str, SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "int8": _integers(-(2**7), 2**7 - 1),
    "int16": _integers(-(2**15), 2**15 - 1),
    "uint16": _integers(0, 2**16 - 1),
    "int32": _integers(-(2**31), 2**31 - 1),
    "uint32": _integers(0, 2**32 - 1),
    "int64": _integers(-(2**63), 2**63 - 1),
    "float64": st.floats(allow_nan=False),
    "string": _TEXTS,
    "bytes": _BYTES,
    "records": _BYTES,
    "uuid": st.just(ZERO_UUID) | st.binary(min_size=16, max_size=16),
}


def present_fields(cls: type[Any], version: int) -> list[tuple[str, FieldSpec]]:
    """The fields that `version` of a message or struct has on the wire."""
    return [(name, spec) for name, spec in fields_of(cls) if covers(spec.versions, version)]


_made: dict[tuple[type[Any], int, bool], SearchStrategy[Any]] = {}


def values(cls: type[Any], version: int, special: Special | None = None) -> SearchStrategy[Any]:
    """Messages or structs of `cls` with any value in each field that `version` has, defaults elsewhere.

    `special` has to be the same whenever it is given for one message and version: strategies are made once.
    """
    key = (cls, version, special is not None)
    if key not in _made:
        present = present_fields(cls, version)
        fields = {name: _field(cls, name, spec, version, special) for name, spec in present}
        _made[key] = st.builds(cls, **fields)
    return _made[key]


def _field(
    cls: type[Any], name: str, spec: FieldSpec, version: int, special: Special | None
) -> SearchStrategy[Any]:
    if special is not None and (cls, name) in special:
        return special[cls, name]
    one = _SCALARS[spec.type] if isinstance(spec.type, str) else values(spec.type, version, special)
    found = st.lists(one, max_size=3) if spec.array else one
    return st.none() | found if covers(spec.nullable, version) else found
