"""The commands in docs/secure-start.md for Kafka's own tools are typed, at the daemon of that page."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from tests.docs.environment import build_wheel
from tests.docs.fences import ROOT, Fence, fences
from tests.docs.reading import Reader, reading
from tests.interop.clients.test_java_console import MAIN_CLASSES
from tests.interop.kafka import command

PAGE = ROOT / "docs" / "secure-start.md"
NEEDS_JAVA = "not: needs Kafka's tools and a Java"
FILLED_IN = 'password="..."'


def typed(fence: Fence, password: Path) -> Fence:
    """A fence as a reader with Java takes it: Bob's password in the file, and the tools run."""
    if fence.language == "properties" and FILLED_IN in fence.text:
        text = fence.text.replace(FILLED_IN, f'password="{password.read_text().strip()}"')
        return replace(fence, text=text, how="file bob.properties")
    return replace(fence, how="") if fence.how == NEEDS_JAVA else fence


def install(bin_directory: Path, names: set[str]) -> None:
    """Kafka's scripts, as its distribution has them on the path."""
    for name in names:
        main_class = MAIN_CLASSES[name.removesuffix(".sh")]
        script = bin_directory / name
        script.write_text(f'#!/bin/sh\nexec {shlex.join(command(main_class))} "$@"\n')
        script.chmod(0o755)


@pytest.mark.timeout(600)
def test_what_the_page_says_of_javas_tools(tmp_path: Path) -> None:
    page = fences(PAGE)
    tools = {one.text.split()[0] for one in page if one.how == NEEDS_JAVA and one.language == "sh"}
    assert {"kafka-console-consumer.sh", "kafka-consumer-groups.sh"} <= tools
    assert sum(FILLED_IN in one.text for one in page) == 1
    directory = tmp_path / "reader"
    directory.mkdir()
    with reading(directory, build_wheel(tmp_path)) as reader:
        install(directory / "env" / "bin", tools)
        read(reader, page, directory / "bob.password")


def read(reader: Reader, page: list[Fence], password: Path) -> None:
    """All of the page; Bob has his password by the time that Java's part comes."""
    first = next(number for number, one in enumerate(page) if FILLED_IN in one.text)
    reader.read(page[:first])
    reader.read([typed(one, password) for one in page[first:]])
