"""Compiles the declarations to straight-line code: one decoder and one encoder per message and version.

    python -m ringleader.protocol.codegen           # writes protocol/_generated
    python -m ringleader.protocol.codegen --check   # exits 1 if what is committed differs

What makes the code fast: one precompiled `Struct` for each run of fixed fields, lengths of one byte inline,
`bytes`
slices, one join. What makes it safe: every length is compared with the bytes left before it is used, and
every count
with the bytes left divided by the smallest size of an element before a list is made.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ringleader.protocol import messages
from ringleader.protocol.codec import module_name
from ringleader.protocol.layout import FIXED, covers, fixed_format, smallest_element
from ringleader.protocol.schema import FRESH, FieldSpec, Message, fields_of

OUTPUT = Path(__file__).resolve().parent / "_generated"


@dataclass
class _Module:
    """What the functions of one generated module share."""

    structs: dict[str, str] = field(default_factory=dict)
    classes: set[type[Any]] = field(default_factory=set)
    helpers: set[str] = field(default_factory=set)

    def struct(self, fmt: str, verb: str) -> str:
        name = f"_{verb.upper()}_{fmt.replace('16s', 'U').replace('?', 'Z')}"
        self.structs[name] = f'{name} = Struct(">{fmt}").{"unpack_from" if verb == "read" else "pack"}'
        return name


class _Writer:
    """Lines of one function, with names that do not clash."""

    def __init__(self, module: _Module, version: int, flexible: bool) -> None:
        self.module = module
        self.version = version
        self.flexible = flexible
        self.lines: list[str] = []
        self.indent = 2
        self._names = 0

    def put(self, line: str) -> None:
        self.lines.append("    " * self.indent + line)

    def name(self, stem: str) -> str:
        self._names += 1
        return f"{stem}_{self._names}"

    def default(self, spec: FieldSpec) -> str:
        if spec.default is not FRESH:
            return repr(spec.default)
        if spec.array:
            return "[]"
        assert not isinstance(spec.type, str)
        self.module.classes.add(spec.type)
        return f"{spec.type.__name__}()"


class _Decode(_Writer):
    """Writes a decoder."""

    def __init__(self, module: _Module, version: int, flexible: bool) -> None:
        super().__init__(module, version, flexible)
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

    def tags(self, tagged: list[tuple[str, FieldSpec]], values: dict[str, str]) -> None:
        self.module.helpers.add("skip_tags")
        if not tagged:
            self.put("if data[pos]:")
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
            self.flush()
            expression = self.struct_body(spec.type)
            target = self.name(name)
            self.put(f"{target} = {expression}")
            return target
        return self.sized(name, spec)

    def size(self, name: str, spec: FieldSpec) -> tuple[str, bool]:
        """Read a length or count; returns its name, and whether it is held plus one (compact)."""
        length = self.name("n")
        if self.flexible and spec.compact:
            self.flush()
            self.module.helpers.add("read_uvarint")
            self.put(f"{length} = data[pos]")
            self.put(f"if {length} > 127:")
            self.put(f"    {length}, pos = read_uvarint(data, pos)")
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
        decode = ".decode()" if spec.type == "string" else ""
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
        self.put(f"{target} = data[pos:{stop}]{decode}")
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


class _Encode(_Writer):
    """Writes an encoder. Pieces are collected per straight stretch and handed on by one `out +=`."""

    def __init__(self, module: _Module, version: int, flexible: bool) -> None:
        super().__init__(module, version, flexible)
        self.run: list[tuple[str, str]] = []
        self.pieces: list[str] = []
        self.branched = False
        self.out = "out"

    def flush_run(self) -> None:
        if self.run:
            packer = self.module.struct("".join(item[0] for item in self.run), "write")
            values = ", ".join(item[1] for item in self.run if item[1])
            self.pieces.append(f"{packer}({values})")
            self.run = []

    def flush(self) -> None:
        """Hand what is collected to the list."""
        self.flush_run()
        if len(self.pieces) == 1:
            self.put(f"{self.out}.append({self.pieces[0]})")
        elif self.pieces:
            self.put(f"{self.out} += ({', '.join(self.pieces)})")
        self.pieces = []

    def struct_body(self, cls: type[Any], source: str) -> None:
        tagged: list[tuple[str, FieldSpec]] = []
        for name, spec in fields_of(cls):
            if not covers(spec.versions, self.version):
                if not spec.ignorable:
                    self.refuse(source, name, spec)
            elif covers(spec.tagged, self.version):
                tagged.append((name, spec))
            else:
                self.field(f"{source}.{name}", name, spec)
        if self.flexible:
            if tagged:
                self.tags(source, tagged)
            else:
                self.run.append(("x", ""))

    def refuse(self, source: str, name: str, spec: FieldSpec) -> None:
        value = f"{source}.{name}"
        default = self.default(spec)
        if default in ("[]", "''", "b''", "False"):
            test = value
        elif default == "None":
            test = f"{value} is not None"
        else:
            test = f"{value} != {default}"
        self.put(f"if {test}:")
        self.put(f'    raise ValueError("{name} cannot be sent in version {self.version}")')

    def field(self, value: str, name: str, spec: FieldSpec) -> None:
        fixed = fixed_format(spec)
        if fixed:
            if spec.type == "uuid":
                # Packing would cut or fill an id of another size without a word.
                self.put(f"if len({value}) != 16:")
                self.put(f'    raise ValueError("{name} is not 16 bytes")')
            self.run.append((fixed[0], value))
        elif spec.array:
            self.array(value, name, spec)
        elif not isinstance(spec.type, str):
            local = self.name(name)
            self.put(f"{local} = {value}")
            self.struct_body(spec.type, local)
        else:
            self.sized(value, name, spec)

    def length(self, expression: str, spec: FieldSpec) -> None:
        """Add the length or count `expression` in the form that the field has."""
        if self.flexible and spec.compact:
            self.flush_run()
            self.module.helpers.add("write_uvarint")
            self.module.helpers.add("UVARINT")
            plus = self.name("n")
            self.put(f"{plus} = {expression} + 1")
            self.pieces.append(f"UVARINT[{plus}] if {plus} < 4096 else write_uvarint({plus})")
        else:
            self.run.append(("h" if spec.type == "string" and not spec.array else "i", expression))

    def sized(self, value: str, name: str, spec: FieldSpec) -> None:
        local = self.name(name)
        encode = ".encode()" if spec.type == "string" else ""
        if not covers(spec.nullable, self.version):
            if spec.nullable is not None:
                value = self.never_null(value, name)
            self.put(f"{local} = {value}{encode}")
            self.length(f"len({local})", spec)
            self.flush_run()
            self.pieces.append(local)
            return
        raw = self.name("raw")
        self.put(f"{raw} = {value}")
        if self.flexible and spec.compact:
            self.flush_run()
            self.module.helpers.add("write_uvarint")
            self.module.helpers.add("UVARINT")
            size = self.name("n")
            self.put(f"if {raw} is None:")
            self.put(f'    {local} = b""')
            self.put(f"    {size} = 0")
            self.put("else:")
            self.put(f"    {local} = {raw}{encode}")
            self.put(f"    {size} = len({local}) + 1")
            self.pieces.append(f"UVARINT[{size}] if {size} < 4096 else write_uvarint({size})")
        else:
            self.put(f'{local} = b"" if {raw} is None else {raw}{encode}')
            letter = "h" if spec.type == "string" else "i"
            self.run.append((letter, f"-1 if {raw} is None else len({local})"))
            self.flush_run()
        self.pieces.append(local)

    def never_null(self, value: str, name: str) -> str:
        """Check what only other versions may leave null; returns the name that holds it."""
        raw = self.name("raw")
        self.put(f"{raw} = {value}")
        self.put(f"if {raw} is None:")
        self.put(f'    raise ValueError("{name} cannot be null in version {self.version}")')
        return raw

    def array(self, value: str, name: str, spec: FieldSpec) -> None:
        nullable = covers(spec.nullable, self.version)
        if spec.nullable is not None and not nullable:
            value = self.never_null(value, name)
        local = self.name(name)
        self.put(f"{local} = {value}")
        if nullable:
            self.flush()
            self.put(f"if {local} is None:")
            if self.flexible:
                self.put(f'    {self.out}.append(b"\\0")')
            else:
                self.put(f'    {self.out}.append(b"\\xff\\xff\\xff\\xff")')
            self.put("else:")
            self.indent += 1
        self.length(f"len({local})", spec)
        fixed = FIXED.get(spec.type) if isinstance(spec.type, str) else None
        if fixed:
            self.module.helpers.add("pack")
            letter = fixed[0]
            many = f'"16s" * len({local})' if letter == "16s" else f'f"{{len({local})}}{letter}"'
            self.flush_run()
            self.pieces.append(f'pack(">" + {many}, *{local})')
            if nullable:
                self.flush()
        else:
            self.flush()
            item = self.name("item")
            self.put(f"for {item} in {local}:")
            self.indent += 1
            if isinstance(spec.type, str):
                element = FieldSpec(spec.type, False, spec.versions, None, None, None, False, True, None)
                self.sized(item, "item", element)
            else:
                self.struct_body(spec.type, item)
            self.flush()
            self.indent -= 1
        if nullable:
            self.indent -= 1

    def tags(self, source: str, tagged: list[tuple[str, FieldSpec]]) -> None:
        self.flush()
        self.module.helpers.add("write_tags")
        tags = self.name("tags")
        self.put(f"{tags}: list[tuple[int, bytes]] = []")
        for name, spec in sorted(tagged, key=lambda item: item[1].tag or 0):
            local = self.name(name)
            self.put(f"{local} = {source}.{name}")
            default = self.default(spec)
            self.put(f"if {local} is not None:" if default == "None" else f"if {local} != {default}:")
            self.indent += 1
            outer, self.out = self.out, self.name("payload")
            self.put(f"{self.out}: list[bytes] = []")
            present = replace(spec, nullable=None) if spec.default is None else spec
            self.field(local, name, present)
            self.flush()
            self.put(f'{tags}.append(({spec.tag}, b"".join({self.out})))')
            self.out = outer
            self.indent -= 1
        self.put(f"{self.out}.append(write_tags({tags}))")


def decoder_source(cls: type[Message], version: int, module: _Module) -> list[str]:
    """Source lines of one decoder."""
    writer = _Decode(module, version, version >= cls.FLEXIBLE_VERSION)
    writer.put("end = len(data)")
    body = writer.struct_body(cls)
    uses_end = any(" end" in line or "(end" in line for line in writer.lines[1:])
    lines = writer.lines if uses_end else writer.lines[1:]
    return [
        f"def decode_v{version}(data: bytes, pos: int) -> tuple[{cls.__name__}, int]:",
        "    start = pos",
        "    try:",
        *lines,
        f"        return {body}, pos",
        "    except (IndexError, ValueError, struct_error):",
        f"        raise explain({cls.__name__}, {version}, data, start) from None",
        "",
        "",
    ]


def encoder_source(cls: type[Message], version: int, module: _Module) -> list[str]:
    """Source lines of one encoder."""
    writer = _Encode(module, version, version >= cls.FLEXIBLE_VERSION)
    writer.struct_body(cls, "message")
    looped = any(line.lstrip().startswith(("out.", "out +=")) for line in writer.lines)
    if looped:
        writer.flush()
        lines = ["        out: list[bytes] = []", *writer.lines, '        return b"".join(out)']
    else:
        writer.flush_run()
        if not writer.pieces:
            tail = '        return b""'
        elif len(writer.pieces) == 1:
            tail = f"        return {writer.pieces[0]}"
        else:
            tail = f'        return b"".join(({", ".join(writer.pieces)}))'
        lines = [*writer.lines, tail]
    return [
        f"def encode_v{version}(message: {cls.__name__}) -> bytes:",
        "    try:",
        *lines,
        "    except (AttributeError, TypeError, ValueError, struct_error) as error:",
        f"        raise refused({cls.__name__}, {version}, error) from error",
        "",
        "",
    ]


def module_source(cls: type[Message]) -> str:
    """The whole generated module of a message."""
    module = _Module()
    module.classes.add(cls)
    functions: list[str] = []
    for version in range(cls.MIN_VERSION, cls.MAX_VERSION + 1):
        functions += decoder_source(cls, version, module)
        functions += encoder_source(cls, version, module)
    head = [
        f'"""{cls.__name__}: written by ringleader.protocol.codegen from its declaration; do not edit."""',
        "",
        "from struct import Struct" if module.structs else "",
        "from struct import error as struct_error",
    ]
    head += [f"from struct import {name}" for name in ("pack", "unpack_from") if name in module.helpers]
    head += ["", "from ringleader.protocol.explain import explain, refused"]
    by_module: dict[str, list[str]] = {}
    for used in module.classes:
        by_module.setdefault(used.__module__, []).append(used.__name__)
    for home in sorted(by_module):
        head.append(f"from {home} import (")
        head += [f"    {name}," for name in sorted(by_module[home])]
        head.append(")")
    wire = sorted(module.helpers & {"skip_tags", "read_uvarint", "write_uvarint", "UVARINT", "write_tags"})
    if wire:
        head.append(f"from ringleader.protocol.wire import {', '.join(wire)}")
    head += ["", *[module.structs[name] for name in sorted(module.structs)], "", ""]
    text = "\n".join(line for line in [*head, *functions])
    return text.replace('"""\n\n\n', '"""\n\n').rstrip("\n") + "\n"


def all_messages() -> list[type[Message]]:
    """Every declared message (not the structs), by name."""
    found = [getattr(messages, name) for name in messages.__all__]
    return [cls for cls in found if isinstance(cls, type) and issubclass(cls, Message)]


def generate() -> dict[str, str]:
    """File name -> text of everything that is generated."""
    files = {"__init__.py": '"""Written by ringleader.protocol.codegen; do not edit."""\n'}
    for cls in all_messages():
        files[f"{module_name(cls)}.py"] = module_source(cls)
    return files


def main() -> int:
    """Write the generated modules, or with `--check` compare them; the exit code says whether they agree."""
    check = "--check" in sys.argv[1:]
    wanted = generate()
    present = {path.name: path.read_text() for path in OUTPUT.glob("*.py")}
    stale = sorted(name for name in wanted.keys() | present.keys() if wanted.get(name) != present.get(name))
    if check:
        for name in stale:
            print(f"protocol/_generated/{name} is not what the declarations say")
        if stale:
            print("run: python -m ringleader.protocol.codegen")
        return 1 if stale else 0
    OUTPUT.mkdir(exist_ok=True)
    for name in stale:
        if name in wanted:
            (OUTPUT / name).write_text(wanted[name])
        else:
            (OUTPUT / name).unlink()
    print(f"{len(wanted)} modules, {len(stale)} changed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
