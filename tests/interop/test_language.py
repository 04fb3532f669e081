"""The scenario language: what is read, what is refused with file and line, and how answers are written."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop.language import ScenarioError, parse, render
from tests.interop.simulated import play_simulated

PATH = Path("some.txt")

TEXT = """\
About this file.

=== a title
covers: J1 J2
versions: JoinGroup 3 5, SyncGroup 2
# why
> a joins
    [v3] a JoinGroup ok: generation_id=1
        members: member_id=<a>
    [v5] a JoinGroup waits
    x Heartbeat ok
> wait 1s
    a JoinGroup waits
    differs: replaced-request
    a JoinGroup: connection closed
# the end
"""


def test_a_file_is_written_as_it_was_read() -> None:
    assert render(parse(TEXT, PATH)) == TEXT


def test_what_a_file_says() -> None:
    [scenario] = parse(TEXT, PATH).scenarios
    assert scenario.covers == ["J1", "J2"]
    assert [entry.label for entry in scenario.entries] == ["v3", "v5"]
    assert [entry.version("SyncGroup") for entry in scenario.entries] == [2, 2]
    first, second = scenario.steps
    join = ("a JoinGroup ok: generation_id=1", "    members: member_id=<a>")
    assert first.expected("v3", ours=False) == [join, ("x Heartbeat ok",)]
    assert first.expected("v5", ours=True) == [("a JoinGroup waits",), ("x Heartbeat ok",)]
    assert second.expected("v3", ours=False) == [("a JoinGroup waits",)]
    assert second.expected("v3", ours=True) == [("a JoinGroup: connection closed",)]
    assert scenario.anchors == ["replaced-request"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("=== t\ncolour: red\n", "some.txt:2: unknown header 'colour'"),
        ("=== t\nbroker: huge\n", "some.txt:2: no such broker: 'huge'"),
        ("=== t\ncovers: J1\n    a JoinGroup ok\n", "some.txt:3: an answer before the first step"),
        ("=== t\ncovers: J1\n> a joins\n    [v7] a JoinGroup ok\n", "some.txt:4: no such versions here: v7"),
        ("=== t\ncovers: J1\n> a joins\nnonsense\n", "some.txt:4: no step, answer or comment"),
        ("=== t\nversions: JoinGroup 3 3\n", "some.txt:2: each line-up needs another version"),
        ("=== t\n> a joins\n", "some.txt: 't' has no `covers:` or no steps"),
        ("=== t\ncovers: J1\n> the broker restarts\n", "some.txt: 't' needs `broker: restart`"),
    ],
)
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        parse(text, PATH)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("a Dance", "no such step: 'a Dance'"),
        ("a Heartbeat colour=red", "Heartbeat has no use for colour"),
        ("A Heartbeat", "no name of an actor: 'A'"),
        ("a is meta=x", "only said with a request: meta"),
        ("wait a while", "wait DURATION"),
        ("a Heartbeat generation=soon", "no number or duration: 'soon'"),
        ("a Heartbeat queued", "no request of a waits"),
    ],
)
def test_steps_that_nobody_understands(command: str, message: str) -> None:
    [scenario] = parse(f"=== t\ncovers: J1\n> {command}\n", PATH).scenarios
    with pytest.raises(ScenarioError) as caught:
        play_simulated(scenario, scenario.entries[0])
    assert str(caught.value).startswith(message)
