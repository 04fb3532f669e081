"""``ringleader deploy``: marks reach the history of a watcher, and `cost --deploy` is about them."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from ringleader.insight.history import History
from ringleader.insight.model import EventKind
from ringleader.testing.coordinator import Coordinator
from tests.cli.test_watch import Member, watching
from tests.insight.made import Made
from tests.support.command import Done, run_here
from tests.support.ports import free_address

TOKEN = "correct-horse-battery"


def test_a_deploy_is_marked_through_the_page_and_its_cost_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, page = tmp_path / "h.sqlite", free_address()
    monkeypatch.setenv("RINGLEADER_PAGE", f"http://{page}")
    monkeypatch.setenv("RINGLEADER_PAGE_TOKEN", TOKEN)
    with (
        Coordinator(topics={"orders": 6}) as coordinator,
        watching(coordinator, path, "--page", page) as watch,
    ):
        watch.says("watching ")
        with Member(coordinator, "billing", "anna"):
            watch.until(lambda line: "member joined: anna" in line)
            done = run_here(None, "deploy", "begin", "--group", "billing", "--label", "v2")
            assert (done.code, done.err) == (0, "")
            assert done.out.startswith("Marked of billing: deploy began at 20")
            watch.until(lambda line: "billing: deploy began: v2" in line)
            with Member(coordinator, "billing", "bert"):
                watch.until(lambda line: "member joined: bert" in line)
            watch.until(lambda line: "members 2 -> 1" in line)
            done = run_here(None, "deploy", "end", "--group", "billing", "--json")
            assert json.loads(done.out)["kind"] == "deploy ended"
            watch.until(lambda line: "billing: deploy ended" in line)
            wrong = run_here(None, "deploy", "begin", "--group", "biling")
            assert (wrong.code, wrong.out) == (1, "")
            assert "answers 404: No group 'biling' was seen." in wrong.err
            monkeypatch.setenv("RINGLEADER_PAGE_TOKEN", "another-horse-battery")
            assert "answers 401: The token is missing" in run_here(None, "deploy", "end").err
    shown = json.loads(run_here(None, "history", "billing", "--json", "--history", str(path)).out)
    assert [(one["label"], one["rebalances"]) for one in shown["deploys"]] == [("v2", 2)]
    refused = run_here(None, "deploy", "end")
    assert (refused.code, refused.out) == (1, "")
    assert "No page answers at" in refused.err


@pytest.fixture(scope="module")
def rolled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A deploy of six members, marked, and a quiet hour before and after it."""
    path = tmp_path_factory.mktemp("rolled") / "h.sqlite"
    with Made(path, exact=True, start_ms=time.time_ns() // 1_000_000 - 3 * 3_600_000) as made:
        group = made.group("billing", {"orders": 12}, [f"app-{number}" for number in range(6)])
        made.group("quiet", {"orders": 12}, ["one"])
        made.wait(3_600)
        made.event(EventKind.DEPLOY_BEGAN, "v2 `x`", "billing")
        group.deploy(pause_s=20)
        made.event(EventKind.DEPLOY_ENDED, "", "billing")
        made.wait(3_600)
        group.restart("app-1")
        made.wait(3_590)
    return path


def cost(path: Path, group: str, *arguments: str) -> Done:
    return run_here(None, "cost", group, "--history", str(path), *arguments)


def test_the_cost_of_a_deploy_as_a_comment(rolled: Path) -> None:
    done = cost(rolled, "billing", "--deploy", "--comment", "--max-rebalances", "2", "--utc")
    assert done.code == 3
    first, _, *table = done.out.splitlines()
    assert first.startswith("**`billing`**: the deploy `v2 'x'` from 20")
    assert "cost 16.7 partition-seconds without an owner, 6 rebalances; with static ids 0 (likely" in first
    assert table[:3] == [
        "| Cause | Rebalances | Without owner |",
        "|---|---|---|",
        "| member restarted | 6 | 17 s |",
    ]
    assert table[-1] == "- **Above the limit:** 6 rebalances are more than --max-rebalances 2."
    assert cost(rolled, "billing", "--deploy", "--comment", "--max-rebalances", "6").code == 0


def test_the_deploy_is_a_part_of_the_time(rolled: Path) -> None:
    assert json.loads(cost(rolled, "billing", "--json").out)["rebalances"] > 6
    assert json.loads(cost(rolled, "billing", "--json", "--deploy").out)["rebalances"] == 6
    assert "6 rebalances" in cost(rolled, "billing", "--deploy").out
    text = run_here(None, "history", "billing", "--history", str(rolled)).out
    assert "Deploys:" in text
    assert "v2 `x`: 6 rebalances, 16.7 partition-seconds without an owner" in text


def test_without_a_deploy_it_says_so(rolled: Path) -> None:
    done = cost(rolled, "quiet", "--deploy")
    assert (done.code, done.out) == (1, "")
    assert "`ringleader deploy begin` marks one" in done.err
    done = cost(rolled, "quiet", "--comment", "--json")
    assert (done.code, done.out) == (2, "")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--page", "ftp://x/"], "--page: give it as http://HOST:PORT/"),
        (["--token-file", "/nonexistent"], "the token file /nonexistent cannot be read"),
    ],
)
def test_wrong_input_is_one_sentence(arguments: list[str], says: str) -> None:
    done = run_here(None, "deploy", "begin", *arguments)
    assert (done.code, done.out) == (2, "")
    assert says in done.err
    assert done.err.count("\n") == 1


def test_history_knows_the_marks(rolled: Path) -> None:
    with History.open(rolled, read_only=True) as history:
        assert [one.kind for one in history.events("billing")][:2] == ["deploy began", "deploy ended"]
