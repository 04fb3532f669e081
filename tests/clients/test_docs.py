"""The examples of docs/clients.md run as they stand."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from textwrap import indent
from typing import Any

import pytest

from ringleader.testing.coordinator import Coordinator

DOCS = Path(__file__).parents[2] / "docs" / "clients.md"
BLOCKS: list[str] = re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL)


def block(word: str) -> str:
    (found,) = [text for text in BLOCKS if word in text]
    return found


def test_a_member_in_ten_lines(coordinator: Coordinator, capsys: pytest.CaptureFixture[str]) -> None:
    text = block("resize-images").replace("localhost:9092", coordinator.bootstrap)
    exec(compile(text.replace("sleep(60)", "sleep(0)"), str(DOCS), "exec"), {})
    assert capsys.readouterr().out == f"generation 1 shards {list(range(16))}\n"


def test_topics(coordinator: Coordinator, capsys: pytest.CaptureFixture[str]) -> None:
    coordinator.create_topic("orders", 2)
    text = block("consumer_member(").replace("localhost:9092", coordinator.bootstrap)
    imports, body = text.split("\n\n", 1)
    names: dict[str, Any] = {}
    exec(compile(f"{imports}\nasync def main():\n{indent(body, '    ')}", str(DOCS), "exec"), names)
    asyncio.run(names["main"]())
    assert capsys.readouterr().out == "[('orders', 0), ('orders', 1)]\n"
