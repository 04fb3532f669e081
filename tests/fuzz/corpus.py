"""The inputs that are kept in the tree: a file for each target, an input on each line in base64.

The first ones were made by the project's own encoders, which may write something else by now. A line with a
remark behind it is a find, and the remark says what it was.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from pathlib import Path

from tests.fuzz.target import HERE, Target

FOLDER = HERE / "corpus"


def path_of(name: str) -> Path:
    """Where the corpus of a target is."""
    return FOLDER / f"{name}.txt"


def kept(name: str) -> list[bytes]:
    """All inputs of a target's corpus."""
    return [base64.b64decode(line.split()[0]) for line in path_of(name).read_text().splitlines()]


def finds(name: str) -> list[bytes]:
    """Those that were finds."""
    lines = (line.split(maxsplit=1) for line in path_of(name).read_text().splitlines())
    return [base64.b64decode(words[0]) for words in lines if len(words) > 1]


def add(name: str, inputs: Iterable[bytes], remark: str = "") -> None:
    """Add inputs that are not there yet; `remark`: what they found."""
    path = path_of(name)
    text = path.read_text() if path.exists() else ""
    known = {line.split()[0] for line in text.splitlines()}
    for data in inputs:
        line = base64.b64encode(data).decode()
        if data and line not in known:
            known.add(line)
            text += f"{line} {remark}".rstrip() + "\n"
    path.write_text(text)


def unpack(target: Target, directory: Path) -> None:
    """As files, one for each input, which is what a fuzzer begins with."""
    directory.mkdir(parents=True, exist_ok=True)
    for data in (*kept(target.name), *target.seeds()):
        (directory / hashlib.sha1(data).hexdigest()).write_bytes(data)
