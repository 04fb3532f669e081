"""docs/migrating.md names what the other clients have, and their options are answered with ours."""

from __future__ import annotations

import inspect
import re
from typing import Any, get_type_hints

import confluent_kafka
import pytest
from aiokafka import AIOKafkaConsumer
from kafka import KafkaConsumer

from ringleader import ConsumerOptions, GroupConsumer, PartitionConsumer
from ringleader.clients.foreign_options import ELSEWHERE, RENAMED
from tests.docs.fences import ROOT

PAGE = (ROOT / "docs" / "migrating.md").read_text()
AIOKAFKA, KAFKA_PYTHON, CONFLUENT = range(3)
OURS = set(get_type_hints(ConsumerOptions))
THEIRS = [
    set(inspect.signature(AIOKafkaConsumer.__init__).parameters) - {"self", "topics"},
    set(KafkaConsumer.DEFAULT_CONFIG),
]
CONFLUENT_ONLY_IN_PYTHON = {"on_commit"}


def rows(heading: str) -> list[list[str]]:
    """Of the table below a heading: the cells of each row but the first."""
    below = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    found = [line.strip("|").split("|") for line in below.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in row] for row in found[1:]]


def name(cell: str) -> str:
    return cell.strip("`")


def known_to_librdkafka(option: str) -> bool:
    """It says so of a name that there is not, whatever the value; a wrong value makes no consumer."""
    try:
        confluent_kafka.Consumer({"group.id": "g", option: "any", "heartbeat.interval.ms": "no number"})
    except confluent_kafka.KafkaException as error:
        return "No such configuration property" not in str(error)
    except (TypeError, ValueError):
        return True  # a callback that is none
    raise AssertionError("a heartbeat interval that is no number was taken")


OPTIONS = rows("Options side by side")


def test_librdkafka_is_asked_in_a_way_that_tells() -> None:
    assert known_to_librdkafka("session.timeout.ms")
    assert not known_to_librdkafka("session.timeout.sm")


@pytest.mark.parametrize("row", OPTIONS, ids=lambda row: next(filter(None, row)))
def test_an_option_is_there_and_answered_with_ours(row: list[str]) -> None:
    *theirs, here = row
    for client in (AIOKAFKA, KAFKA_PYTHON):
        assert not theirs[client] or name(theirs[client]) in THEIRS[client]
    if theirs[CONFLUENT]:
        assert known_to_librdkafka(name(theirs[CONFLUENT]))
    named = [one for one in re.findall(r"`(\w+)", here) if one in OURS]
    for foreign in {name(cell) for cell in theirs if cell} - OURS - {"group_id"}:
        options: dict[str, Any] = {foreign: "any"}
        with pytest.raises(TypeError) as caught:
            GroupConsumer("h:1", "g", "t", **options)
        sentence = str(caught.value)
        assert sentence.startswith(f"GroupConsumer() has no option {foreign!r}: ")
        if named:
            assert any(re.search(rf"\b{one}\b", sentence) for one in named), sentence


def test_the_table_leaves_out_no_option_that_has_another_name_here() -> None:
    plain = {name(cell).replace(".", "_") for row in OPTIONS for cell in row[:3] if cell}
    shared = [option for client in THEIRS for option in client if option in RENAMED]
    assert set(shared) <= plain


def test_every_option_of_theirs_is_ours_or_has_an_answer() -> None:
    unanswered = {one for client in THEIRS for one in client} - OURS - set(RENAMED) - set(ELSEWHERE)
    assert unanswered == set()
    assert set(RENAMED.values()) <= OURS
    assert not OURS & (set(RENAMED) | set(ELSEWHERE))


@pytest.mark.parametrize("row", rows("Calls side by side"), ids=lambda row: name(row[0]) or name(row[1]))
def test_a_call_is_there(row: list[str]) -> None:
    kinds = (AIOKafkaConsumer, KafkaConsumer, confluent_kafka.Consumer)
    for kind, cell in zip(kinds, row[:3], strict=True):
        assert not cell or callable(getattr(kind, name(cell)))
    first = re.findall(r"`(\w+)", row[3])[0]
    assert first == PartitionConsumer.__name__ or callable(getattr(GroupConsumer, first))


def test_a_consumer_without_a_group_is_not_answered_with_options_of_groups() -> None:
    options: dict[str, Any] = {"enable_auto_commit": False}
    with pytest.raises(TypeError, match=r"^PartitionConsumer\(\) has no option 'enable_auto_commit'$"):
        PartitionConsumer("h:1", "t", **options)
