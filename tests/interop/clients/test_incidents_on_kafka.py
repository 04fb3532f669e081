"""A handful of the incidents of ``make incidents``: what was done is what the history says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.incidents.__main__ import main


@pytest.mark.timeout(400)
def test_what_was_done_to_groups_of_a_real_broker_is_what_their_history_says(tmp_path: Path) -> None:
    assert main(["--quick", "--seed", "1", "--out", str(tmp_path / "out")]) == 0
