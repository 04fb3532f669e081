"""Docstrings, comments and pages are plain English: a statement has a subject, it does not
begin as a question; and none of the phrases stands in them that only this project once used."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = (
    "bench", "clients", "coordinator", "demo", "docs", "examples", "insight", "protocol", "report",
    "ringleader", "spark_bridge", "tests", "tools",
)  # fmt: skip

_WORD = r"(?:Who|Whoever|Whom|Whose|What|Whatever|Why)\b"
_BEGINS = re.compile(rf"(?:^|(?<=[.!:;?][ \n])|(?<=\n\n)|(?<=\n- )|(?<=\n\* )){_WORD}")
_PRIVATE = re.compile(
    r"\b(?:so (?:long|often|many)\b(?! (?:as|that)\b)|(?:for|of|to|by|from) who\b|whoever\b|who asks\b)",
    re.IGNORECASE,
)
"""A measure or a party that the reader has to guess: a text names the time, the count, the client."""
_ENDS = re.compile(r"[.!?](?=[\s\"')]|$)|\n\n|\n[-*] ")


_VAGUE = re.compile(r"(?:^|_)(?:told|said|gone|came|asks|asked|whom?)(?:_|$)")
"""A name of this kind leaves open what it holds: a report, a text, the members that left, a request."""
_INTERFACE = {
    "clients": {"offset_gone_error"},
    "coordinator": {"asked_ms", "gone", "patterns_asked", "told"},
    "insight": {"_came", "_gone", "_told", "gone"},
    "ringleader": {"_gone", "gone"},
}
"""Names that others read: public ones, options, and fields of JSON, of recordings and of snapshots."""


def names_defined(tree: ast.AST) -> Iterator[str]:
    """Names of modules' variables, parameters, attributes, functions and classes, with underscores. The name
    of a test is left out: it is a sentence."""
    for node in ast.walk(tree):
        name = ""
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            name = node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            name = node.attr
        elif isinstance(node, ast.arg):
            name = node.arg
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = "" if node.name.startswith("test_") else node.name
        yield re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def wrong(text: str) -> Iterator[tuple[int, int]]:
    """Where the sentences of `text` begin and end that begin with such a word and do not ask."""
    for found in _BEGINS.finditer(text):
        end = _ENDS.search(text, found.end())
        stop = len(text) if end is None else end.end() if end.group()[0] in ".!?" else end.start()
        if not text[:stop].endswith("?"):
            yield found.start(), stop


def prose_of_code(source: str, about: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    """Docstrings, those of variables too, and blocks of comments, each with its first line's number, of a
    file in which something matches."""
    if not about.search(source):
        return
    for node in ast.walk(ast.parse(source)):
        for below in getattr(node, "body", []) if isinstance(getattr(node, "body", []), list) else []:
            if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
                text = below.value.value
                if isinstance(text, str):
                    yield below.lineno, re.sub(r"\n[ \t]+", "\n", text)
    if not re.search(rf"#.*(?:{about.pattern})", source, about.flags):
        return
    block: list[str] = []
    first = last = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        line = token.start[0]
        if block and (line != last + 1 or token.line[: token.start[1]].strip()):
            yield first, "\n".join(block)
            block = []
        first = first if block else line
        last = line
        block.append(token.string.lstrip("#").strip())
    yield first, "\n".join(block)


def without_code(page: str) -> str:
    return re.sub(r"^```.*?^```$|<!--.*?-->", "", page, flags=re.MULTILINE | re.DOTALL)


def prose_of_page(page: str) -> str:
    """A page without code, tables and headings."""
    return re.sub(r"^(?:\||#).*$", "", without_code(page), flags=re.MULTILINE)


def texts(folder: str, about: re.Pattern[str], of_page: Callable[[str], str]) -> list[tuple[str, str]]:
    """The prose of a folder's files in which something matches, each text with its place."""
    if folder == "docs":
        pages = [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
        return [(f"{page.relative_to(ROOT)}", of_page(page.read_text())) for page in pages]
    return [
        (f"{path.relative_to(ROOT)}:{line}", text)
        for path in sorted((ROOT / folder).rglob("*.py"))
        for line, text in prose_of_code(path.read_text(), about)
    ]


@pytest.mark.parametrize("folder", FOLDERS)
def test_statements_have_a_subject(folder: str) -> None:
    found = [
        f"{where}: {' '.join(text[start:stop].split())}"
        for where, text in texts(folder, re.compile(_WORD), prose_of_page)
        for start, stop in wrong(text)
    ]
    assert found == []


@pytest.mark.parametrize("folder", [folder for folder in FOLDERS if folder != "tests"])
def test_no_phrase_stands_there_that_only_this_project_uses(folder: str) -> None:
    found = [
        f"{where}: {match.group()}"
        for where, text in texts(folder, _PRIVATE, without_code)
        if where != "docs/proof.md"  # names commits by their subjects
        for match in _PRIVATE.finditer(text)
    ]
    assert found == []


@pytest.mark.parametrize("folder", [folder for folder in FOLDERS if folder != "docs"])
def test_no_name_leaves_open_what_it_holds(folder: str) -> None:
    found = {
        name
        for path in sorted((ROOT / folder).rglob("*.py"))
        if not any(part.is_symlink() for part in path.parents if part != ROOT)
        for name in names_defined(ast.parse(path.read_text()))
        if _VAGUE.search(name)
    }
    assert found == _INTERFACE.get(folder, set())


def test_a_name_that_leaves_open_what_it_holds_is_found() -> None:
    source = "def who(asked_ms: int):\n    self._told = came = 0\n    class Asked: gone: int"
    found = {name for name in names_defined(ast.parse(source)) if _VAGUE.search(name)}
    assert found == {"who", "asked_ms", "_told", "came", "asked", "gone"}


@pytest.mark.parametrize(
    "text",
    [
        "What is left.",
        "A list.\n\nWhat is left",
        "One thing. Who asks, gets it.",
        "Two:\n- one\n- What is `a.b`.",
    ],
)
def test_a_statement_without_a_subject_is_found(text: str) -> None:
    assert list(wrong(text))


@pytest.mark.parametrize(
    "text", ["What is left?", "It says what is left.", "Who? Nobody.", "Whatsoever it is, it has a subject."]
)
def test_questions_and_statements_with_a_subject_are_not(text: str) -> None:
    assert not list(wrong(text))
