"""Compiles the declarations to straight-line code: one decoder and one encoder per message and version.

    python -m ringleader.protocol.codegen           # writes protocol/_generated
    python -m ringleader.protocol.codegen --check   # exits 1 if what is committed differs

What makes the code fast: one precompiled `Struct` for each run of fixed fields, lengths of one byte inline,
`bytes` slices, one join. What makes it safe: every length is compared with the bytes left before it is used,
and every count with the bytes left divided by the smallest size of an element before a list is made.
"""

from __future__ import annotations

import sys
from pathlib import Path

from ringleader.protocol import messages
from ringleader.protocol.codec import module_name
from ringleader.protocol.codegen_decode import decoder_source
from ringleader.protocol.codegen_encode import encoder_source
from ringleader.protocol.codegen_writer import Module
from ringleader.protocol.schema import Message

OUTPUT = Path(__file__).resolve().parent / "_generated"


def module_source(cls: type[Message]) -> str:
    """The whole generated module of a message."""
    module = Module()
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
    if "PIECE_ITEMS" in module.helpers:
        head.insert(2, "from collections.abc import Iterator")
    head += ["", "from ringleader.protocol.explain import explain, refused"]
    by_module: dict[str, list[str]] = {}
    for used in module.classes:
        by_module.setdefault(used.__module__, []).append(used.__name__)
    for home in sorted(by_module):
        head.append(f"from {home} import (")
        head += [f"    {name}," for name in sorted(by_module[home])]
        head.append(")")
    names = {
        "skip_tags",
        "read_uvarint",
        "write_uvarint",
        "UVARINT",
        "UNLIMITED",
        "PIECE_ITEMS",
        "write_tags",
    }
    wire = sorted(module.helpers & names)
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
