"""The demo's verdict: each way to fail makes it fail; and what it shows is drawn without a terminal."""

from __future__ import annotations

import dataclasses
import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from demo import flights, plan
from demo.account import Account, Twice
from demo.picture import Generation, GroupNow, Picture, Tail
from demo.report import Verdict
from demo.screen import PlainScreen, draw, screen_for

TABLE = {"AA": flights.Delays(10, 1, 2.5), "HA": flights.Delays(1, 1, None)}


def _picture() -> Picture:
    shared = GroupNow(True, "Stable", {plan.AIOKAFKA_1: [0, 1, 2, 3], plan.SPARK: [4, 5]}, {0: 7, 4: 3})
    return Picture(
        total=flights.ROWS,
        elapsed_s=61.0,
        produced=1000,
        processed={plan.AIOKAFKA_1: 600, plan.SPARK: 400},
        alone=900,
        generations=[
            Generation(
                plan.SHARED_GROUP, 1, 2.0, "member joined", plan.AIOKAFKA_1, 3000, {plan.AIOKAFKA_1: [0]}
            ),
            Generation(plan.SHARED_GROUP, 2, 20.0, "member joined", plan.AIOKAFKA_2, 1500),
            Generation(plan.SHARED_GROUP, 3, 40.0, "session expired", plan.KAFKA_PYTHON, 900, {}),
        ],
        groups={plan.SHARED_GROUP: shared},
        events=[(1.0, "daemon ready"), (40.0, "[killed] a member")],
    )


def _good() -> Verdict:
    account = Account(produced=flights.ROWS, once=flights.ROWS - 50, by_member={"a": 5, "b": 6})
    account.twice.append(Twice(2, 100, 150, ("a", "b"), "a was killed"))
    return Verdict(account, _picture(), TABLE, dict(TABLE))


def test_all_well_passes_and_prints(tmp_path: Path) -> None:
    page = io.StringIO()
    verdict = _good()
    assert verdict.passed
    verdict.print(Console(file=page, width=150), tmp_path)
    text = page.getvalue()
    assert "FAIL" not in text
    for piece in ("a was killed", "100 to 149", "2.5000", "336,776", "session expired: kafka-python-1"):
        assert piece in text


def _without(picture: Picture, cause: str) -> Picture:
    kept = [one for one in picture.generations if one.cause != cause or one.client == plan.AIOKAFKA_1]
    return dataclasses.replace(picture, generations=kept)


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        ({"account": Account(produced=flights.ROWS - 1, once=flights.ROWS - 1)}, "everything was produced"),
        (
            {"account": Account(produced=flights.ROWS, once=flights.ROWS - 1, missing=[(3, 7, 8)])},
            "every record was processed",
        ),
        (
            {"account": Account(produced=flights.ROWS, once=flights.ROWS, unknown=[(3, 7, 8)])},
            "everything was produced",
        ),
        (
            {"account": Account(produced=flights.ROWS, once=flights.ROWS, by_member={"a": 1, "b": 0})},
            "every member processed something",
        ),
        ({"picture": _without(_picture(), "member joined")}, "the join made a new generation"),
        ({"picture": _without(_picture(), "session expired")}, "the kill made a new generation"),
        ({"table": {**TABLE, "AA": flights.Delays(10, 1, 2.4)}}, "Spark's delay table"),
        ({"table": {}}, "Spark's delay table"),
    ],
)
def test_each_way_to_fail(broken: dict[str, Any], says: str, tmp_path: Path) -> None:
    verdict = dataclasses.replace(_good(), **broken)
    assert not verdict.passed
    (failed,) = [check for check in verdict.checks() if not check.holds]
    assert failed.what.startswith(says)
    page = io.StringIO()
    verdict.print(Console(file=page, width=150), tmp_path)
    assert page.getvalue().count("FAIL") == 1


def test_the_live_screen_draws_a_picture() -> None:
    page = io.StringIO()
    Console(file=page, width=140).print(draw(_picture()))
    text = page.getvalue()
    for piece in ("who owns what", "aiokafka-1: 0", "[killed] a member", "departures 3"):
        assert piece in text


def test_plain_lines_say_everything_once() -> None:
    page = io.StringIO()
    console = Console(file=page, width=140)
    screen = screen_for(console)
    assert isinstance(screen, PlainScreen)
    with screen:
        screen.show(_picture())
        screen.show(_picture())
    lines = page.getvalue().splitlines()
    assert len(lines) == len(set(lines)) == 2 + 3 + 1


def test_a_member_id_becomes_the_client_id_as_soon_as_that_is_known() -> None:
    picture = Picture(total=1)
    entry = {"group_id": "g", "generation": 1, "cause": "member joined", "cause_member": "8f14e45f"}
    picture.generations.append(Generation.from_entry(entry, 1.0))
    assert picture.generation_because("g", "member joined", "8f14e45f") is not None
    picture.know({"8f14e45f": "librdkafka-1"})
    assert picture.generation_because("g", "member joined", "librdkafka-1") is not None
    picture.generations.append(Generation.from_entry(entry | {"cause": "session expired"}, 2.0))
    picture.know({})
    assert picture.generation_because("g", "session expired", "librdkafka-1") is not None


def test_tail_gives_whole_json_lines_once(tmp_path: Path) -> None:
    path = tmp_path / "log"
    tail = Tail(path)
    assert list(tail.new()) == []
    path.write_text('{"a": 1}\nplain text\n{"a": 2')
    assert list(tail.new()) == [{"a": 1}]
    with path.open("a") as file:
        file.write("}\n")
    assert list(tail.new()) == [{"a": 2}]
    assert list(tail.new()) == []
