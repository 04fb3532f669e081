"""The scenarios as files: all can be read, differ, and say what is wrong with them; mixes of them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.chaos import scenario as schema
from tests.chaos.__main__ import main
from tests.chaos.mix import Mix, drawn, needs_spark
from tests.chaos.promises import ALL, sentences
from tests.chaos.scenario import Scenario, ScenarioError, load, load_all, parsed

KNOWN = load_all()
GOOD: dict[str, Any] = {
    "says": "A node dies under commits, and comes back.",
    "targets": ["ringleader"],
    "work": [{"kind": "commits"}],
    "faults": [{"do": "kill", "on": "owner", "at_s": 1}],
    "checks": ["turned back"],
}


def with_fault(**fault: Any) -> dict[str, Any]:
    return {**GOOD, "faults": [fault]}


def shape(one: Scenario) -> str:
    """The parts that make a scenario another one: who works, what is broken where, in what order; no
    times."""
    faults = [
        {key: value for key, value in fault.model_dump().items() if not key.endswith(("_s", "_ms"))}
        for fault in one.faults
    ]
    return json.dumps([[work.model_dump() for work in one.work], faults], sort_keys=True)


def test_there_are_eighty_that_differ_in_more_than_numbers() -> None:
    assert len({shape(one) for one in KNOWN.values()}) == len(KNOWN) >= 80
    assert len({one.says for one in KNOWN.values()}) == len(KNOWN)


def test_every_fault_and_every_kind_of_work_is_in_some() -> None:
    done: Counter[Any] = Counter()
    for one in KNOWN.values():
        done.update((fault.do, getattr(fault, "between", None)) for fault in one.faults)
        for work in one.work:
            done.update((work.kind, key, value) for key, value in work.model_dump().items() if key != "kind")
    for between in ("clients and nodes", "nodes and brokers"):
        for way in ("reset", "refuse", "half-open", "delay", "drip", "cut"):
            assert done[way, between], (way, between)
    for alone in (
        "kill",
        "pause",
        "stop",
        "roll",
        "readdress",
        "full disk",
        "slow disk",
        "min isr",
        "compact",
    ):
        assert done[alone, None], alone
    assert done["delete topic", None]
    for library in ("ours", "librdkafka", "aiokafka", "spark"):
        assert done["consumers", "library", library] > 2, library
    for misbehaves in ("raises", "slow", "exits", "cancels", "forks"):
        assert done["consumers", "misbehaves", misbehaves], misbehaves
    assert done["consumers", "protocol", "cooperative"] > 5
    assert done["consumers", "static", True] > 5
    assert sum(count for key, count in done.items() if key[:2] == ("transactions", "records")) > 10


def test_every_check_is_asked_for_by_some() -> None:
    assert {check for one in KNOWN.values() for check in one.checks} == set(ALL)


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ({**GOOD, "wrok": []}, "nobody knows the key 'wrok'."),
        ({**GOOD, "work": [{"kind": "commits", "group": 3}]}, "the key 'group' in work.1.commits."),
        ({key: value for key, value in GOOD.items() if key != "faults"}, "the key 'faults' is missing."),
        (with_fault(do="kill", on="owner", at_s="1"), "at_s in faults.1.kill: input should be a valid num"),
        (with_fault(do="kill", on="owner"), "has no time: at_s, when, or both"),
        (with_fault(do="kill", on="nobody", at_s=1), "on in faults.1.kill: input should be 'owner'"),
        (with_fault(do="burn", at_s=1), "faults: input tag 'burn' found using 'do' does not match"),
        (with_fault(do="kill", on="owner", when={"over": 1}), "fault 1 waits for fault 1, which is not"),
        (with_fault(do="kill", on="owner", when={}), "says nothing: acknowledged, rebalances, begun or over"),
        (with_fault(do="full disk", at_s=1), "only a single daemon has a disk of its own"),
        ({**with_fault(do="min isr", at_s=1), "targets": ["single"]}, "only nodes keep groups in a topic"),
        (
            {**with_fault(do="cut", between="nodes and brokers", at_s=1), "targets": ["single"]},
            "a single daemon asks nobody",
        ),
        ({**GOOD, "checks": []}, "checks: list should have at least 1 item"),
        ({**GOOD, "checks": ["turned back", "owners"]}, "checks are sorted, each once"),
        ({**GOOD, "work": [{"kind": "commits"}] * 2}, "two parts of the work are of one kind"),
        (
            {**GOOD, "work": [{"kind": "consumers", "library": "spark", "members": 2}]},
            "a Spark query is one member, without an instance id",
        ),
        (
            {**GOOD, "work": [{"kind": "consumers", "library": "aiokafka", "misbehaves": "forks"}]},
            "misbehaves, batch_s and straight are for ours",
        ),
    ],
)  # fmt: skip
def test_a_file_that_is_wrong_is_refused_with_a_sentence(document: dict[str, Any], says: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        parsed("one.json", json.dumps(document))
    assert str(refused.value).startswith("one.json: ")
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"says": 1', "one.json: Expecting ',' delimiter"),
        ('{"says": "a", "says": "b"}', "one.json: the key 'says' is there twice."),
        ("[]", "one.json: "),
    ],
)
def test_a_text_that_is_none_is_refused_with_a_sentence(text: str, says: str) -> None:
    with pytest.raises(ScenarioError, match=r"^one\.json: ") as refused:
        parsed("one.json", text)
    assert str(refused.value).startswith(says)


def test_a_file_that_is_right_is_read(tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text(json.dumps(GOOD))
    [fault] = load("one", tmp_path).faults
    assert isinstance(fault, schema.Process)
    assert (fault.do, fault.on, fault.at_s, fault.for_s) == ("kill", "owner", 1, 0)
    assert load_all(tmp_path) == {"one": load("one", tmp_path)}
    with pytest.raises(ScenarioError, match="There is no scenario 'two'"):
        load("two", tmp_path)


@given(st.integers(), st.sampled_from(["ringleader", "single"]), st.integers(1, 3), st.booleans())
def test_mixes_are_drawn_by_a_seed(seed: int, target: str, size: int, spark: bool) -> None:
    mixes = drawn(KNOWN, target, seed, 4, size, spark=spark)
    assert [mix.scenarios for mix in mixes] == [
        mix.scenarios for mix in drawn(KNOWN, target, seed, 4, size, spark=spark)
    ]
    names = [name for mix in mixes for name in mix.scenarios]
    assert len(set(names)) == len(names)
    for mix in mixes:
        assert all(target in one.targets for one in mix.scenarios.values())
        alone = any(one.alone for one in mix.scenarios.values())
        assert len(mix.scenarios) == (1 if alone else size)
        assert spark or not any(map(needs_spark, mix.scenarios.values()))


def test_a_mix_has_all_work_and_the_promises_of_each() -> None:
    names = ["clients-not-answered", "static-members-cut-off", "kill-owner-under-eager-consumers"]
    mix = Mix({name: KNOWN[name] for name in names}, "ringleader", 1)
    company = mix.company(["127.0.0.1:1", "127.0.0.1:2"])
    assert {role.name for role in company.roles} >= {
        "committer",
        "churn",
        "ours-1",
        "librdkafka-2",
        "aiokafka-1",
    }
    assert [role.bootstrap for role in company.roles if role.program == "reader"] == [
        "127.0.0.1:1",
        "127.0.0.1:2",
    ]
    assert company.consuming == ("ours", "librdkafka", "aiokafka")
    assert company.exact == (*(f"raw-{number}" for number in range(8)), "churn")
    for check in mix.checks:
        assert all(check in KNOWN[name].checks for name in names)
    assert "confirmed owners" in mix.checks
    assert "turned back" not in mix.checks


def test_every_promise_has_a_sentence_of_its_own() -> None:
    listed = [sentence for key in ALL for sentence in sentences([key])]
    assert len(set(listed)) == len(listed)


def test_the_program_lists_and_refuses(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    output = capsys.readouterr().out
    assert "one-link-flaps" in output
    assert main(["--scenario", "one-link-flap"]) == 2
    assert "There is no scenario 'one-link-flap'" in capsys.readouterr().out
    assert main(["--scenario", "one-link-flaps", "--scenario", "full-disk-under-commits"]) == 2
    assert "not on one target" in capsys.readouterr().out
