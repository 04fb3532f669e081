"""Java's properties files, and the login modules that Kafka writes into one of them. Pure text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

MAX_TEXT_CHARACTERS = 1024 * 1024
"""A longer properties file is none."""

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|(.)|$)", re.DOTALL)
_PAIR = re.compile(r"((?:\\.|[^\\=:\s])*)\s*[=:]?\s*(.*)", re.DOTALL)
_ENDS_WITH_BACKSLASH = re.compile(r"(?<!\\)(?:\\\\)*\\$")

_JAAS_TOKEN = re.compile(r'\s*(?:"((?:\\.|[^"\\])*)"|\'((?:\\.|[^\'\\])*)\'|([=;])|([^\s=;"\']+))')
_FLAGS = ("required", "requisite", "sufficient", "optional")


def parse_properties(text: str) -> dict[str, str]:
    """Name -> value of `java.util.Properties`: `=`, `:` or a space between them, `#` and `!` for comments,
    `\\` at the end of a line that goes on, `\\uXXXX`. The last value of a name counts. Raises ValueError."""
    if len(text) > MAX_TEXT_CHARACTERS:
        raise ValueError(f"more than {MAX_TEXT_CHARACTERS} characters")
    found = {}
    for line in _logical_lines(text):
        pair = _PAIR.fullmatch(line)
        assert pair is not None
        found[_unescaped(pair[1])] = _unescaped(pair[2])
    return found


def _logical_lines(text: str) -> Iterator[str]:
    begun = ""
    for raw in re.split(r"\r\n|\r|\n", text):
        line = raw.lstrip(" \t\f")
        if not begun and (not line or line[0] in "#!"):
            continue
        begun += line
        if _ENDS_WITH_BACKSLASH.search(line):
            begun = begun[:-1]
            continue
        if begun:
            yield begun
        begun = ""
    if begun:
        yield begun


def _unescaped(text: str) -> str:
    def one(match: re.Match[str]) -> str:
        if match[1] is not None:
            return chr(int(match[1], 16))
        return _ESCAPES.get(match[2] or "", match[2] or "")

    # Two \u for one character beyond the first 65,536 are one again.
    return _ESCAPE.sub(one, text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


@dataclass(frozen=True, slots=True)
class LoginModule:
    """The one entry of `sasl.jaas.config`. `name`: the class, without its package."""

    name: str
    options: dict[str, str]

    def __repr__(self) -> str:
        return f"LoginModule(name={self.name!r}, options={sorted(self.options)})"


def parse_jaas(text: str) -> LoginModule:
    """`package.PlainLoginModule required username="a" password="b";`. Raises ValueError; what it says has no
    part of the text, which holds passwords."""
    if len(text) > MAX_TEXT_CHARACTERS:
        raise ValueError(f"more than {MAX_TEXT_CHARACTERS} characters")
    tokens = list(_jaas_tokens(text))
    if len(tokens) < 3 or tokens[1].lower() not in _FLAGS:
        raise ValueError('expected CLASS required NAME="VALUE" ... ;')
    if tokens[-1] != ";" or ";" in tokens[:-1]:
        raise ValueError("expected one login module, and a semicolon at its end")
    options = {}
    rest = tokens[2:-1]
    for index in range(0, len(rest), 3):
        part = rest[index : index + 3]
        if len(part) != 3 or part[1] != "=" or "=" in (part[0], part[2]):
            raise ValueError(f'option {index // 3 + 1} is not of the form NAME="VALUE"')
        options[part[0].removeprefix(_QUOTED)] = part[2].removeprefix(_QUOTED)
    return LoginModule(tokens[0].rpartition(".")[2], options)


_QUOTED = "\0"
"""Before a quoted value: "=" and ";" in quotes are text."""


def _jaas_tokens(text: str) -> Iterator[str]:
    position = 0
    text = text.strip()
    while position < len(text):
        match = _JAAS_TOKEN.match(text, position)
        if match is None:
            raise ValueError("a quote is not closed")
        position = match.end()
        quoted = match[1] if match[1] is not None else match[2]
        if quoted is None:
            yield match[3] or match[4]
        else:
            yield _QUOTED + _unescaped(quoted)
