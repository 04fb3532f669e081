"""Thresholds decide what is a finding; each is settable, and none is there for nothing."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from ringleader.cli import insight_settings
from ringleader.coordinator.config_text import SettingsError
from ringleader.insight import advice
from ringleader.insight.advice import Past, Pattern, Thresholds, advise
from ringleader.insight.history import History
from ringleader.insight.web import page
from tests.insight.made import Made
from tests.insight.web.asking import ask, ready

DAY_MS = 24 * 3_600_000


@pytest.fixture
def slow(tmp_path: Path) -> Path:
    """A group whose leader took 0.9 s twice."""
    path = tmp_path / "slow.sqlite"
    with Made(path, exact=True) as made:
        group = made.group("orders", {"orders": 12}, ["app-1", "app-2", "app-3"])
        made.wait(900)
        for name in ("app-4", "app-5"):
            group.join(name, leader_s=0.9)
            made.wait(900)
    return path


def patterns(path: Path, thresholds: Thresholds) -> set[Pattern]:
    with History.open(path, read_only=True) as history:
        newest_ms = history.newest_ms or 0
        past = Past.read(history, "orders", newest_ms - DAY_MS, newest_ms)
    return {one.pattern for one in advise(past, thresholds, replay=False).findings}


def test_a_threshold_decides(slow: Path) -> None:
    assert patterns(slow, Thresholds()) == set()
    assert patterns(slow, Thresholds(slow_leader_ms=900)) == {Pattern.SLOW_LEADER}
    assert patterns(slow, Thresholds(slow_leader_ms=901)) == set()
    assert patterns(slow, Thresholds(slow_leader_ms=900, slow_leader_min=3)) == set()


def test_each_threshold_is_read() -> None:
    """By an attribute of its name in the code of a pattern."""
    folder = Path(advice.__file__).parent
    read = {
        node.attr
        for file in folder.glob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "at"
    }
    assert read == set(Thresholds.model_fields)


async def test_the_page_has_the_thresholds_that_it_is_served_with(slow: Path) -> None:
    with History.open(slow, read_only=True) as history:
        newest_ms = history.newest_ms or 0
    for thresholds, expected in [(Thresholds(), []), (Thresholds(slow_leader_ms=500), ["slow leader"])]:
        async with page(slow, thresholds=thresholds) as url:
            await ready(url)
            answer = await ask(
                url, "/api/findings", group="orders", since=newest_ms - DAY_MS, until=newest_ms
            )
            assert [one["pattern"] for one in answer.json["findings"]] == expected


def test_flags_win_over_the_environment_and_the_environment_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "watch.toml"
    file.write_text("[advice]\nlag.min.records = 1\nstorm.gap.ms = 1\nflaps.min = 1\n")
    environ = {"RINGLEADER_ADVICE_STORM_GAP_MS": "2", "RINGLEADER_ADVICE_FLAPS_MIN": "2"}
    found = insight_settings.load(
        {"advice_flaps_min": "3", "advice_skew_share": None}, environ, file
    ).thresholds
    assert (found.lag_min_records, found.storm_gap_ms, found.flaps_min, found.skew_share) == (1, 2, 3, 0.5)


@pytest.mark.parametrize(
    ("given", "text", "says"),
    [
        (
            {"advice_skew_share": "1.5"},
            "",
            "--advice-skew-share: should be less than or equal to 1, got '1.5'.",
        ),
        ({"advice_lag_growth": "inf"}, "", "--advice-lag-growth: should be a finite number, got 'inf'."),
        ({"advice_slow_leader_ms": "2s"}, "", "--advice-slow-leader-ms: should be a valid integer"),
        (
            {"advice_deploy_members_min": "1"},
            "",
            "--advice-deploy-members-min: should be greater than or equal",
        ),
        ({}, "advice.lag.min.record=5", "did you mean advice.lag.min.records?"),
        (
            {},
            "advice.lag.min.records=-1",
            "advice.lag.min.records in {}: should be greater than or equal to 0",
        ),
        ({}, "listener.name.a.ssl.keystore.location=x", "there is no such setting."),
        ({}, "data.dir=x", "which is no setting of ringleader"),
    ],
)
def test_wrong_settings_are_one_sentence(tmp_path: Path, given: dict[str, Any], text: str, says: str) -> None:
    file = tmp_path / "watch.properties"
    file.write_text(text)
    with pytest.raises(SettingsError) as wrong:
        insight_settings.load(given, {}, file)
    assert says.format(file) in str(wrong.value)
    assert "\n" not in str(wrong.value)
