"""The simulation notices a broken machine. `make mutants` hunts all of them; here all are tried on, and a few
are hunted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.simulation.mutants.__main__ import hunt
from tests.simulation.mutants.patching import StalePatchError, build, description, names


@pytest.mark.parametrize("name", names())
def test_the_patch_still_applies(name: str, tmp_path: Path) -> None:
    assert description(name)
    place = build(name, tmp_path)
    changed = [
        file
        for file in (place / "ringleader" / "coordinator").rglob("*.py")
        if file.read_text() != _original(place, file).read_text()
    ]
    assert len(changed) == 1
    compile(changed[0].read_text(), changed[0].name, "exec")


@pytest.mark.parametrize(
    ("name", "invariants"),
    [
        ("two_leaders", {"G1"}),
        ("commit_answered_before_durable", {"A1"}),
        ("replacement_not_durable", {"G9", "O3"}),
    ],
)
def test_a_broken_machine_is_caught(name: str, invariants: set[str]) -> None:
    found = hunt(name, runs=60)
    assert found.invariant in invariants, found.text
    assert f"python -m tests.simulation --seed {found.seed}" in found.text


def test_a_patch_that_does_not_fit_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    head = "Nothing.\n--- a/coordinator/groups/group.py\n+++ b/coordinator/groups/group.py\n"
    (tmp_path / "stale.patch").write_text(head + "@@ -1 +1 @@\n-no\n+x\n")
    monkeypatch.setattr("tests.simulation.mutants.patching.HERE", tmp_path)
    with pytest.raises(StalePatchError, match=r"group\.py has these lines no more"):
        build("stale", tmp_path / "tree")


def _original(place: Path, file: Path) -> Path:
    return Path(__file__).parents[2] / "ringleader" / file.relative_to(place / "ringleader")
