"""Writes the source of one decoder: straight-line reading of one message in one version."""

from __future__ import annotations

from typing import Any

from ringleader.protocol.codegen.writer import Module, Writer
from ringleader.protocol.fields import Declared, FieldSpec, fields_of
from ringleader.protocol.layout import FIXED, covers, effort, fixed_format, smallest_element
from ringleader.protocol.wire import STRING_MAX


class _Decode(Writer):
    """Writes a decoder."""

    def __init__(self, module: Module, version: int, flexible: bool, cls: type[Declared]) -> None:
        super().__init__(module, version, flexible)
        self.any_buffer = _has_records(cls)
        self.bounded = cls.KIND == "request"
        self.run: list[tuple[str, int, str]] = []

    def flush(self) -> None:
        if not self.run:
            return
        reader = self.module.struct("".join(item[0] for item in self.run), "read")
        targets = ", ".join(item[2] for item in self.run) + ("," if len(self.run) == 1 else "")
        self.put(f"{targets} = {reader}(data, pos)")
        self.put(f"pos += {sum(item[1] for item in self.run)}")
        self.run = []

    def struct_body(self, cls: type[Any]) -> str:
        """Read one struct; returns the expression that builds it."""
        values: dict[str, str] = {}
        tagged: list[tuple[str, FieldSpec]] = []
        for name, spec in fields_of(cls):
            if not covers(spec.versions, self.version):
                values[name] = self.default(spec)
            elif covers(spec.tagged, self.version):
                values[name] = self.name(name)
                tagged.append((name, spec))
            else:
                values[name] = self.field(name, spec)
        self.flush()
        if self.flexible:
            self.tags(tagged, values)
        self.module.classes.add(cls)
        return f"{cls.__name__}({', '.join(values.values())})"

    def spend(self, what: str) -> None:
        """Refuse a request that asks for more work than its caller allows, before it is done."""
        if self.bounded:
            self.put(f"budget -= {what}")
            self.put("if budget < 0:")
            self.put("    raise ValueError")

    def tags(self, tagged: list[tuple[str, FieldSpec]], values: dict[str, str]) -> None:
        self.module.helpers.add("skip_tags")
        if not tagged:
            self.put("if data[pos]:")
            self.indent += 1
            self.spend("data[pos] * 24")
            self.indent -= 1
            self.put("    pos = skip_tags(data, pos)")
            self.put("else:")
            self.put("    pos += 1")
            return
        self.module.helpers.add("read_uvarint")
        for name, spec in tagged:
            self.put(f"{values[name]} = {self.default(spec)}")
        count, tag, stop = self.name("count"), self.name("tag"), self.name("stop")
        self.put(f"{count}, pos = read_uvarint(data, pos)")
        self.put(f"if {count} > (end - pos) // 2:")
        self.put("    raise ValueError")
        self.spend(f"{count} * 24")
        self.put(f"for _ in range({count}):")
        self.indent += 1
        self.put(f"{tag}, pos = read_uvarint(data, pos)")
        self.put(f"{stop}, pos = read_uvarint(data, pos)")
        self.put(f"{stop} += pos")
        self.put(f"if {stop} > end:")
        self.put("    raise ValueError")
        word = "if"
        for name, spec in tagged:
            self.put(f"{word} {tag} == {spec.tag}:")
            self.indent += 1
            value = self.field(name, spec)
            self.flush()
            self.put(f"{values[name]} = {value}")
            self.put(f"if pos != {stop}:")
            self.put("    raise ValueError")
            self.indent -= 1
            word = "elif"
        self.put("else:")
        self.put(f"    pos = {stop}")
        self.indent -= 1

    def field(self, name: str, spec: FieldSpec) -> str:
        """Read one field; returns the name that holds it."""
        fixed = fixed_format(spec)
        if fixed:
            target = self.name(name)
            self.run.append((*fixed, target))
            return target
        if spec.array:
            return self.array(name, spec)
        if not isinstance(spec.type, str):
            return self.struct(name, spec)
        return self.sized(name, spec)

    def struct(self, name: str, spec: FieldSpec) -> str:
        assert not isinstance(spec.type, str)
        self.flush()
        if not covers(spec.nullable, self.version):
            expression = self.struct_body(spec.type)
            target = self.name(name)
            self.put(f"{target} = {expression}")
            return target
        target = self.name(name)
        self.put(f"{target}: {self.annotation(spec)} | None = None")
        if covers(spec.tagged, self.version):
            present = self.name("present")
            self.put(f"{present}, pos = read_uvarint(data, pos)")
            self.put(f"if {present}:  # a varint in front, 0 for null")
        else:
            self.put("pos += 1")
            self.put("if data[pos - 1] < 128:  # one byte in front, below 0 for null")
        self.indent += 1
        self.put(f"{target} = {self.struct_body(spec.type)}")
        self.indent -= 1
        return target

    def size(self, name: str, spec: FieldSpec) -> tuple[str, bool]:
        """Read a length or count; returns its name, and whether it is held plus one (compact)."""
        length = self.name("n")
        if self.flexible and spec.compact:
            self.flush()
            self.module.helpers.add("read_uvarint")
            self.put(f"{length} = data[pos]")
            self.put(f"if {length} > 127:")
            self.put(f"    {length}, pos = read_uvarint(data, pos)")
            if spec.type == "string" and not spec.array:
                self.put(f"    if {length} > {STRING_MAX + 1}:")
                self.put("        raise ValueError")
            self.put("else:")
            self.put("    pos += 1")
            return length, True
        short = spec.type == "string" and not spec.array
        self.run.append(("h" if short else "i", 2 if short else 4, length))
        self.flush()
        return length, False

    def sized(self, name: str, spec: FieldSpec) -> str:
        target = self.name(name)
        length, plus_one = self.size(name, spec)
        stop = self.name("stop")
        nullable = covers(spec.nullable, self.version)
        if nullable:
            kind = "str" if spec.type == "string" else "bytes"
            self.put(f"{target}: {kind} | None = None")
            self.put(f"if {length} > 0:" if plus_one else f"if {length} >= 0:")
            self.indent += 1
        else:
            self.put(f"if {length} == 0:" if plus_one else f"if {length} < 0:")
            self.put("    raise ValueError")
        self.put(f"{stop} = pos + {length} - 1" if plus_one else f"{stop} = pos + {length}")
        self.put(f"if {stop} > end:")
        self.put("    raise ValueError")
        read = f"data[pos:{stop}]"
        if spec.type == "string":
            read = f'str({read}, "utf-8")' if self.any_buffer else f"{read}.decode()"
        self.put(f"{target} = {read}")
        self.put(f"pos = {stop}")
        if nullable:
            self.indent -= 1
            if not plus_one:
                self.put(f"elif {length} != -1:")
                self.put("    raise ValueError")
        return target

    def array(self, name: str, spec: FieldSpec) -> str:
        target = self.name(name)
        count, plus_one = self.size(name, spec)
        nullable = covers(spec.nullable, self.version)
        kind = self.annotation(spec)
        if nullable:
            self.put(f"{target}: list[{kind}] | None = None")
            self.put(f"if {count} > 0:" if plus_one else f"if {count} >= 0:")
            self.indent += 1
        else:
            self.put(f"if {count} == 0:" if plus_one else f"if {count} < 0:")
            self.put("    raise ValueError")
        if plus_one:
            self.put(f"{count} -= 1")
        least = smallest_element(spec, self.version, self.flexible)
        left = "end - pos" if least == 1 else f"(end - pos) // {least}"
        self.put(f"if {count} > {left}:")
        self.put("    raise ValueError")
        cost = effort(spec, self.version)
        self.spend(count if cost == 1 else f"{count} * {cost}")
        fixed = FIXED.get(spec.type) if isinstance(spec.type, str) else None
        if fixed:
            self.module.helpers.add("unpack_from")
            letter, width = fixed
            many = f'"16s" * {count}' if letter == "16s" else f'f"{{{count}}}{letter}"'
            self.put(f'{target} = list(unpack_from(">" + {many}, data, pos))')
            self.put(f"pos += {count}" if width == 1 else f"pos += {count} * {width}")
        else:
            items = self.name("items")
            self.put(f"{items}: list[{kind}] = []")
            self.put(f"for _ in range({count}):")
            self.indent += 1
            element = FieldSpec(spec.type, False, spec.versions, None, None, None, False, True, None)
            value = self.element(name, element)
            self.put(f"{items}.append({value})")
            self.indent -= 1
            self.put(f"{target} = {items}")
        if nullable:
            self.indent -= 1
            if not plus_one:
                self.put(f"elif {count} != -1:")
                self.put("    raise ValueError")
        return target

    def element(self, name: str, spec: FieldSpec) -> str:
        if isinstance(spec.type, str):
            return self.sized(name, spec)
        return self.struct_body(spec.type)

    def annotation(self, spec: FieldSpec) -> str:
        if not isinstance(spec.type, str):
            self.module.classes.add(spec.type)
            return spec.type.__name__
        return {"string": "str", "bytes": "bytes", "records": "bytes", "uuid": "bytes", "bool": "bool",
                "float64": "float"}.get(spec.type, "int")  # fmt: skip


def _has_records(cls: type[Any]) -> bool:
    return any(
        spec.type == "records" or (not isinstance(spec.type, str) and _has_records(spec.type))
        for _, spec in fields_of(cls)
    )


def decoder_source(cls: type[Declared], version: int, module: Module) -> list[str]:
    """Source lines of one decoder.

    One of a message with records takes any buffer, too: records of a `memoryview` are a part of it, no copy.
    One of a request takes a `budget`, see `codec.Decoder`.
    """
    writer = _Decode(module, version, version >= cls.FLEXIBLE_VERSION, cls)
    writer.put("end = len(data)")
    body = writer.struct_body(cls)
    uses_end = any(" end" in line or "(end" in line for line in writer.lines[1:])
    lines = writer.lines if uses_end else writer.lines[1:]
    budget, left = "", ""
    if writer.bounded:
        module.helpers.add("UNLIMITED")
        budget, left = ", budget: int = UNLIMITED", ", budget"
    return [
        f"def decode_v{version}(data: bytes, pos: int{budget}) -> tuple[{cls.__name__}, int]:",
        "    start = pos",
        "    try:",
        *lines,
        f"        return {body}, pos",
        "    except (IndexError, ValueError, struct_error):",
        f"        raise explain({cls.__name__}, {version}, data, start{left}) from None",
        "",
        "",
    ]
