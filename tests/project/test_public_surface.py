"""No public name goes without notice: docs/public-names.json against the code."""

from __future__ import annotations

import re
from pathlib import Path

from tools.public_names import added, listed, missing_names, public_names, removed

ROOT = Path(__file__).resolve().parents[2]
METRIC = re.compile(r"`(ringleader_\w+)(?:\{[\w,]*\})?`")


def test_no_public_name_is_gone() -> None:
    sentences = missing_names(listed(), public_names())
    assert not sentences, "\n".join(sentences)


def test_a_new_name_is_in_the_list() -> None:
    names = added(listed(), public_names())
    assert not names, f"new public names: `python -m tools.public_names` adds {', '.join(names)} to the list"


def test_a_name_that_is_gone_is_answered_with_what_to_do() -> None:
    now = public_names()
    for section, name in [
        ("python", "ringleader.GroupConsumer"),
        ("attributes", "ringleader.GroupConsumer.commit_nowait"),
        ("client options", "ConsumerOptions.auto_commit"),
        ("command line", "ringleader groups reset --execute"),
        ("command line", "ringleader serve --num-partitions"),
        ("settings", "num.partitions"),
        ("metrics", "ringleader_rebalances_total"),
        ("metrics", "ringleader_group_members"),
        ("spark options", "startingOffsets"),
    ]:
        less = {**now, section: [one for one in now[section] if one != name]}
        assert len(less[section]) == len(now[section]) - 1, f"{name} is not known in {section}"
        (sentence,) = missing_names(now, less)
        assert sentence.startswith(f"{name} ({section}) is gone, and it is public.")
        assert f"--remove '{name}'" in sentence


def test_removed_names_stand_in_the_changelog_and_nowhere_else() -> None:
    changes = (ROOT / "CHANGELOG.md").read_text()
    there = {name for names in public_names().values() for name in names}
    assert [name for name in removed() if f"`{name}`" not in changes or name in there] == []


def test_the_metrics_on_the_page_are_public() -> None:
    page = set(METRIC.findall((ROOT / "docs/metrics.md").read_text()))
    assert len(page) > 50
    assert page - set(listed()["metrics"]) == set()
