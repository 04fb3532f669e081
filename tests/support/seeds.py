"""Chance is fresh in every run, wherever it runs; a failed test says how to have the same again. Generated
examples are a share of the nightly ones."""

from __future__ import annotations

import secrets
from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.support.shares import share

# Not what CI=true means to Hypothesis: there it would draw the same examples in every run. And a test is no
# stopwatch: on a busy machine any example may take long.
settings.register_profile(
    "fresh",
    settings.get_profile("default"),
    derandomize=False,
    max_examples=share(30, whole=100),
    print_blob=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("fresh")

_SEED = pytest.StashKey[int]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--seed N`: the same again."""
    parser.addoption("--seed", type=int, help="what the fixture `seed` gives; fresh by default")


def draws(item: Any) -> bool:
    """Whether it draws a seed: a find of chance stays a find, though the next draw would pass."""
    drawn = item.get_closest_marker("draws") or "seed" in item.fixturenames
    return bool(drawn or hasattr(item.obj, "hypothesis"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """`make nightly` runs what has generated examples, with all of them."""
    for item in items:
        if hasattr(getattr(item, "obj", None), "hypothesis"):
            item.add_marker("share")


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """A fresh seed; `parametrize("seed", range(9), indirect=True)` runs a test with nine of them."""
    given: int | None = request.config.getoption("--seed")
    request.node.stash[_SEED] = drawn = secrets.randbits(32) if given is None else given
    return drawn


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the command that draws the same."""
    report = yield
    if report.failed and (option := _option(item)):
        report.sections.append(("The same again", f"python -m pytest '{_name(item)}' {option}"))
    return report


def _name(item: pytest.Item) -> str:
    grouped = item.config.getoption("loadgroup", False) and item.get_closest_marker("xdist_group")
    return item.nodeid.rpartition("@")[0] if grouped else item.nodeid


def _option(item: Any) -> str:
    if _SEED in item.stash:
        return f"--seed={item.stash[_SEED]}"
    # Hypothesis itself tells it of some failures only.
    drawn = getattr(getattr(item, "obj", None), "_hypothesis_internal_use_generated_seed", None)
    return "" if drawn is None else f"--hypothesis-seed={drawn}"
