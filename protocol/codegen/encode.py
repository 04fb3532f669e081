"""Writes the source of one encoder: straight-line writing of one message in one version."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ringleader.protocol.codegen.writer import Module, Writer
from ringleader.protocol.fields import Declared, FieldSpec, fields_of
from ringleader.protocol.layout import FIXED, covers, fixed_format


class _Encode(Writer):
    """Writes an encoder. Pieces are collected per straight stretch and handed on by one `out +=`."""

    def __init__(self, module: Module, version: int, flexible: bool, response: bool) -> None:
        super().__init__(module, version, flexible)
        self.response = response
        self.run: list[tuple[str, str]] = []
        self.pieces: list[str] = []
        self.out = "out"
        self.long = False
        """Whether it may be long enough to be handed out in pieces."""

    def flush_run(self) -> None:
        if self.run and not any(value for _, value in self.run):
            # Nothing but empty sections of tagged fields, one zero byte each.
            zeros = "\\0" * len(self.run)
            self.pieces.append(f'b"{zeros}"')
            self.run = []
        elif self.run:
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
            self.struct(value, name, spec)
        else:
            self.sized(value, name, spec)

    def struct(self, value: str, name: str, spec: FieldSpec) -> None:
        assert not isinstance(spec.type, str)
        local = self.name(name)
        self.put(f"{local} = {value}")
        if not covers(spec.nullable, self.version):
            self.struct_body(spec.type, local)
            return
        self.flush()
        self.put(f"if {local} is None:")
        self.put(f'    {self.out}.append(b"\\xff")')
        self.put("else:")
        self.indent += 1
        self.pieces.append('b"\\x01"')
        self.struct_body(spec.type, local)
        self.flush()
        self.indent -= 1

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
            if self.response and not isinstance(spec.type, str):
                self.give_way()
            self.indent -= 1
        if nullable:
            self.indent -= 1

    def give_way(self) -> None:
        """After one element of an array: let other work go on now and then."""
        self.long = True
        self.module.helpers.add("PIECE_ITEMS")
        if self.out == "out":
            self.put("if len(out) > PIECE_ITEMS:")
            self.put('    yield b"".join(out)')
            self.put("    out = []")
        else:
            # The length of a tagged field stands before it: nothing of it can be handed out yet.
            self.put(f"if len({self.out}) > rest_at:")
            self.put(f"    rest_at = len({self.out}) + PIECE_ITEMS")
            self.put('    yield b""')

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
            first = len(self.lines)
            present = replace(spec, nullable=None) if spec.default is None else spec
            if not isinstance(spec.type, str) and not spec.array and covers(spec.nullable, self.version):
                self.pieces.append('b"\\x01"')  # a varint in front, 0 for null
            self.field(local, name, present)
            self.flush()
            if any("rest_at" in line for line in self.lines[first:]):
                self.lines.insert(first, "    " * self.indent + "rest_at = PIECE_ITEMS")
            self.put(f'{tags}.append(({spec.tag}, b"".join({self.out})))')
            self.out = outer
            self.indent -= 1
        self.put(f"{self.out}.append(write_tags({tags}))")


def encoder_source(cls: type[Declared], version: int, module: Module) -> list[str]:
    """Source lines of one encoder; of a response with an array of structs also of one that hands out the
    body in pieces, so that who sends it can do something else in between."""
    writer = _Encode(module, version, version >= cls.FLEXIBLE_VERSION, cls.KIND == "response")
    writer.struct_body(cls, "message")
    looped = any(line.lstrip().startswith(("out.", "out +=")) for line in writer.lines)
    if looped:
        writer.flush()
        hand = "yield" if writer.long else "return"
        lines = ["        out: list[bytes] = []", *writer.lines, f'        {hand} b"".join(out)']
    else:
        writer.flush_run()
        if not writer.pieces:
            tail = '        return b""'
        elif len(writer.pieces) == 1:
            tail = f"        return {writer.pieces[0]}"
        else:
            tail = f'        return b"".join(({", ".join(writer.pieces)}))'
        lines = [*writer.lines, tail]
    head = [f"def encode_v{version}(message: {cls.__name__}) -> bytes:"]
    if writer.long:
        head += [f'    return b"".join(encode_pieces_v{version}(message))', "", ""]
        head += [f"def encode_pieces_v{version}(message: {cls.__name__}) -> Iterator[bytes]:"]
    return [
        *head,
        "    try:",
        *lines,
        "    except (AttributeError, TypeError, ValueError, struct_error) as error:",
        f"        raise refused({cls.__name__}, {version}, error) from error",
        "",
        "",
    ]
