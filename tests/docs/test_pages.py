"""README and docs: what they say to type is typed, and what they show comes."""

from __future__ import annotations

import ast
import json
import shlex
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from ringleader.cli import app
from tests.docs.environment import bash
from tests.docs.fences import LANGUAGES, PAGES, WITH_NAME, WORDS, Fence, fences
from tests.docs.process import Process
from tests.docs.reading import ask, commands, program, reading

ALL = {page.name: fences(page) for page in PAGES}
WITH_SPARK = [name for name, found in ALL.items() if any(one.how == "spark" for one in found)]
RUN = [name for name, found in ALL.items() if any(not one.how.startswith("not: ") for one in found)]
EVERY = [one for found in ALL.values() for one in found]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("page", [name for name in RUN if name not in WITH_SPARK])
def test_a_page(page: str, ours: Path, tmp_path: Path) -> None:
    with reading(tmp_path, ours) as reader:
        reader.read(ALL[page])


@pytest.mark.spark
@pytest.mark.timeout(600)
@pytest.mark.parametrize("page", WITH_SPARK)
def test_a_page_with_spark(page: str, ours: Path, spark: Process, tmp_path: Path) -> None:
    with reading(tmp_path, ours, spark) as reader:
        try:
            reader.read(ALL[page])
        finally:
            ask(spark, "for query in spark.streams.active:\n    query.stop()")


@pytest.mark.parametrize("fence", EVERY, ids=lambda one: one.where)
def test_a_fence_is_run_or_says_why_not(fence: Fence) -> None:
    assert fence.language in LANGUAGES, f"no fence without a language: {fence.language!r}"
    assert fence.how in WORDS or fence.how.startswith(WITH_NAME)
    if fence.how.startswith("not: "):
        assert len(fence.how.split()) >= 4, "why not?"
    if fence.language == "python":
        compile(program(fence), fence.where, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    elif fence.language == "json":
        json.loads(fence.text)
    elif fence.language == "toml":
        tomllib.loads(fence.text)
    elif fence.language == "yaml":
        assert yaml.safe_load(fence.text)
    elif fence.language == "sh":
        subprocess.run([bash(), "-n", "-c", fence.text], check=True)
        for command in commands(fence.text):
            check_options(shlex.split(command, comments=True))


def check_options(words: list[str]) -> None:
    """Raises AssertionError for a command or an option of ours that there is not."""
    if words[:1] != ["ringleader"]:
        return
    command: Any = get_command(app)
    for word in words[1:]:
        if not word.startswith("-"):
            command = getattr(command, "commands", {}).get(word, command)
    assert not hasattr(command, "commands"), f"no such command: {words}"
    command = command.make_context("ringleader", [], resilient_parsing=True).command  # serve makes its flags
    known = {name for one in command.params for name in (*one.opts, *one.secondary_opts)}
    assert {word for word in words if word.startswith("--")} <= known


def test_options_are_those_of_the_command() -> None:
    check_options(["ringleader", "groups", "reset", "audit", "--execute"])
    with pytest.raises(AssertionError):
        check_options(["ringleader", "groups", "reset", "audit", "--excute"])
    with pytest.raises(AssertionError, match="no such command"):
        check_options(["ringleader", "groups", "rest", "audit"])
