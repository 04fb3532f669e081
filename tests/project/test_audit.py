"""The audit of dependencies reads the output of pip-audit: a package that could not be looked up is no good
news."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tools.audit import AuditError, verdict


def printed(*packages: dict[str, Any]) -> str:
    return json.dumps({"dependencies": packages, "fixes": []})


FINE = {"name": "rich", "version": "15.0.0", "vulns": []}
SKIPPED = {"name": "typer", "skip_reason": "not found"}
HOLE = {"id": "PYSEC-2026-1", "fix_versions": ["1.2", "1.3"], "aliases": [], "description": ""}


def test_each_known_hole_is_a_line() -> None:
    assert verdict(printed(FINE)) == []
    bad = {"name": "h11", "version": "0.1", "vulns": [HOLE, {**HOLE, "fix_versions": []}]}
    assert verdict(printed(FINE, bad)) == [
        "h11 0.1: PYSEC-2026-1, fixed in 1.2, 1.3",
        "h11 0.1: PYSEC-2026-1, fixed in none",
    ]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (printed(FINE, SKIPPED), "did not answer about 1 of 2 packages"),
        (printed(), "about 0 of 0"),
        ("", "something else"),
        ("[]", "something else"),
        ("{}", "something else"),
    ],
)
def test_a_package_that_could_not_be_looked_up_is_a_failure(text: str, why: str) -> None:
    with pytest.raises(AuditError, match=why):
        verdict(text)
