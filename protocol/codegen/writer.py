"""Parts that the writers of decoders and encoders share: names of a module, lines of a function."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ringleader.protocol.fields import FRESH, FieldSpec


@dataclass
class Module:
    """The names that the functions of one module use."""

    structs: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Name -> format and method of a `Struct`."""
    classes: set[type[Any]] = field(default_factory=set)
    helpers: set[str] = field(default_factory=set)
    """Names from `struct` and `ringleader.protocol.wire`."""

    def struct(self, fmt: str, verb: str) -> str:
        """The name of the reader ("read") or packer ("write") of a format."""
        name = f"_{verb.upper()}_{fmt.replace('16s', 'U').replace('?', 'Z')}"
        self.structs[name] = (f">{fmt}", "unpack_from" if verb == "read" else "pack")
        return name


class Writer:
    """Lines of one function, with names that do not clash."""

    def __init__(self, module: Module, version: int, flexible: bool) -> None:
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
