"""What the writers of decoders and encoders share: a module in the making; lines and names of a function."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ringleader.protocol.schema import FRESH, FieldSpec


@dataclass
class Module:
    """What the functions of one generated module share."""

    structs: dict[str, str] = field(default_factory=dict)
    classes: set[type[Any]] = field(default_factory=set)
    helpers: set[str] = field(default_factory=set)

    def struct(self, fmt: str, verb: str) -> str:
        name = f"_{verb.upper()}_{fmt.replace('16s', 'U').replace('?', 'Z')}"
        self.structs[name] = f'{name} = Struct(">{fmt}").{"unpack_from" if verb == "read" else "pack"}'
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
