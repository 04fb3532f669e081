"""Decoders and encoders as functions, and as the source of a module to read and to check."""

from __future__ import annotations
import __future__

from collections.abc import Callable, Iterable
from struct import Struct, pack, unpack_from
from struct import error as struct_error
from typing import Any, Literal

from ringleader.protocol import wire
from ringleader.protocol.codegen.decode import decoder_source
from ringleader.protocol.codegen.encode import encoder_source
from ringleader.protocol.codegen.writer import Module
from ringleader.protocol.explain import explain, refused
from ringleader.protocol.fields import Declared

Verb = Literal["decode", "encode"]

_ALWAYS: dict[str, Any] = {"struct_error": struct_error, "explain": explain, "refused": refused}
_FROM_STRUCT: dict[str, Any] = {"pack": pack, "unpack_from": unpack_from}

_structs: dict[str, Callable[..., Any]] = {}
"""Readers and packers by their names in the code, shared by all functions."""


def compiled(cls: type[Declared], verb: Verb, version: int) -> dict[str, Callable[..., Any]]:
    """The functions of one version by name: `decode_v4`, or `encode_v4` and for a response that may be long
    `encode_pieces_v4`."""
    module = Module()
    lines = _lines(cls, verb, version, module)
    space: dict[str, Any] = {
        "__name__": f"{__name__}.{cls.__name__}_{verb}_v{version}",
        "__loader__": _Loader(cls, verb, version),
        **_ALWAYS,
        **{name: _FROM_STRUCT.get(name) or getattr(wire, name) for name in module.helpers},
        **{name: _struct(name, *made) for name, made in module.structs.items()},
        **{used.__name__: used for used in (cls, *module.classes)},
    }
    code = compile(
        "\n".join(lines),
        f"{__name__}/{cls.__name__}_{verb}_v{version}",
        "exec",
        flags=__future__.annotations.compiler_flag,
        dont_inherit=True,
    )
    exec(code, space)
    return {name: found for name, found in space.items() if name.startswith(f"{verb}_")}


class _Loader:
    """Gives tracebacks and debuggers the source of a compiled function, written again rather than kept."""

    def __init__(self, cls: type[Declared], verb: Verb, version: int) -> None:
        self._function = (cls, verb, version)

    def get_source(self, name: str) -> str:
        """The source that was compiled; `name` is that of the module (PEP 302)."""
        return "\n".join(_lines(*self._function, Module()))


def _lines(cls: type[Declared], verb: Verb, version: int, module: Module) -> list[str]:
    return (decoder_source if verb == "decode" else encoder_source)(cls, version, module)


def _struct(name: str, fmt: str, method: str) -> Callable[..., Any]:
    found = _structs.get(name)
    if found is None:
        found = _structs[name] = getattr(Struct(fmt), method)
    return found


def module_source(cls: type[Declared], versions: Iterable[int]) -> str:
    """The source of the functions of these versions, as one module that can be imported."""
    module = Module()
    module.classes.add(cls)
    functions = []
    for version in versions:
        functions += _lines(cls, "decode", version, module) + _lines(cls, "encode", version, module)
    head = [f'"""The decoders and encoders of {cls.__name__}."""', ""]
    if "PIECE_ITEMS" in module.helpers:
        head.append("from collections.abc import Iterator")
    head += ["from struct import Struct", "from struct import error as struct_error"]
    head += [f"from struct import {name}" for name in sorted(module.helpers & _FROM_STRUCT.keys())]
    head += ["", "from ringleader.protocol.explain import explain, refused"]
    by_module: dict[str, list[str]] = {}
    for used in module.classes:
        by_module.setdefault(used.__module__, []).append(used.__name__)
    for home in sorted(by_module):
        head += [f"from {home} import (", *(f"    {name}," for name in sorted(by_module[home])), ")"]
    if module.helpers - _FROM_STRUCT.keys():
        names = ", ".join(sorted(module.helpers - _FROM_STRUCT.keys()))
        head.append(f"from ringleader.protocol.wire import {names}")
    structs = [f'{name} = Struct("{fmt}").{method}' for name, (fmt, method) in sorted(module.structs.items())]
    return "\n".join([*head, "", *structs, "", "", *functions]).rstrip("\n") + "\n"
