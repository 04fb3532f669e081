"""The meaning of a declaration in bytes: which fields a version has, and how small a field can be."""

from __future__ import annotations

from typing import Any

from ringleader.protocol.fields import FieldSpec, Range, fields_of

FIXED = {
    "bool": ("?", 1), "int8": ("b", 1), "int16": ("h", 2), "uint16": ("H", 2), "int32": ("i", 4), "uint32":
    ("I", 4),
    "int64": ("q", 8), "float64": ("d", 8), "uuid": ("16s", 16),
}  # fmt: skip
"""Struct format and size in bytes of the scalars of fixed size."""


def covers(versions: Range | None, version: int) -> bool:
    """Whether `version` is in the inclusive range."""
    return versions is not None and versions[0] <= version <= versions[1]


def fixed_format(spec: FieldSpec) -> tuple[str, int] | None:
    """Struct format and size of a scalar of fixed size; None for everything else."""
    if spec.array or not isinstance(spec.type, str):
        return None
    return FIXED.get(spec.type)


def smallest(cls: type[Any], version: int, flexible: bool) -> int:
    """Fewest bytes that a struct takes in `version`: what a count is checked with."""
    size = 1 if flexible else 0
    for _, spec in fields_of(cls):
        if covers(spec.versions, version) and not covers(spec.tagged, version):
            size += smallest_field(spec, version, flexible)
    return size


def smallest_field(spec: FieldSpec, version: int, flexible: bool) -> int:
    """Fewest bytes that one field takes in `version`."""
    fixed = fixed_format(spec)
    if fixed:
        return fixed[1]
    if spec.array:
        return 1 if flexible else 4
    if not isinstance(spec.type, str):
        return 1 if covers(spec.nullable, version) else smallest(spec.type, version, flexible)
    if flexible and spec.compact:
        return 1
    return 2 if spec.type == "string" else 4


def effort(spec: FieldSpec, version: int) -> int:
    """The cost of decoding one element of an array field, in elements of an array of numbers (about 25
    ns)."""
    if isinstance(spec.type, str):
        return 1 if spec.type in FIXED else 24
    present = [one for _, one in fields_of(spec.type) if covers(one.versions, version)]
    return 8 if all(fixed_format(one) for one in present) else 24


def smallest_element(spec: FieldSpec, version: int, flexible: bool) -> int:
    """Fewest bytes of one element of an array field, at least 1."""
    element = FieldSpec(spec.type, False, spec.versions, None, None, None, False, True, None)
    return max(1, smallest_field(element, version, flexible))
