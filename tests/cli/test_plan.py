"""``ringleader plan`` and ``ringleader size``."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ringleader.cli import run
from ringleader.clients.group.subscription import consumer_member
from ringleader.clients.whatif import (
    Situation,
    outcomes,
    sizing,
    with_members,
    with_partitions,
    with_topic,
)
from ringleader.protocol.records import Record, build_batch
from ringleader.testing.coordinator import Coordinator

Capture = pytest.CaptureFixture[str]

GROUP: dict[str, Any] = {
    "topics": {"orders": 6},
    "members": [
        {"id": "a", "topics": ["orders"], "owned": {"orders": [0, 1, 2]}, "weight": 2},
        {"id": "b", "topics": ["orders"], "owned": {"orders": [3, 4, 5]}},
    ],
    "lags": {"orders": [100, 0, 0, 0, 0, 7]},
}


@pytest.fixture
def coordinator() -> Iterator[Coordinator]:
    with Coordinator(topics={"t": 4}) as started:
        yield started


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "group.json"
    path.write_text(json.dumps(GROUP))
    return path


def command(capsys: Capture, *arguments: object) -> tuple[int, str, str]:
    code = run([str(one) for one in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def by_name(found: Situation) -> dict[str, Any]:
    return {one.assignor: one for one in outcomes(found)}


def test_what_would_happen() -> None:
    now = by_name(Situation.model_validate(GROUP))
    for name in ("range", "sticky", "cooperative-sticky"):
        assert (now[name].moves, now[name].fewest, now[name].most, now[name].rounds) == (0, 3, 3, 1)
    assert now["roundrobin"].moves == 2
    assert now["weighted"].assignment["a"]["orders"][:3] == [0, 1, 2]
    assert (now["weighted"].moves, now["weighted"].fewest, now["weighted"].most) == (1, 2, 4)
    assert now["range"].lag_most == 100
    assert now["lag-aware"].moves == 2
    more = by_name(with_members(Situation.model_validate(GROUP), 1))
    assert (more["sticky"].moves, more["sticky"].rounds) == (2, 1)
    assert (more["cooperative-sticky"].moves, more["cooperative-sticky"].rounds) == (2, 2)
    assert more["range"].moves == 3
    fewer = by_name(with_members(Situation.model_validate(GROUP), -5))
    assert fewer["sticky"].assignment == {"a": {"orders": [0, 1, 2, 3, 4, 5]}}
    grown = by_name(with_partitions(Situation.model_validate(GROUP), 2))
    assert (grown["sticky"].moves, grown["sticky"].most) == (0, 4)
    crowd = by_name(with_members(Situation.model_validate(GROUP), 7))
    assert crowd["sticky"].idle == 3


def test_a_new_topic_and_the_imbalance() -> None:
    situation = Situation.model_validate(GROUP)
    wider = by_name(with_topic(with_topic(situation, 4), 2))
    assert (wider["sticky"].moves, wider["sticky"].fewest, wider["sticky"].most) == (0, 6, 6)
    assert sorted(wider["range"].assignment["a"]) == ["new-topic-1", "new-topic-2", "orders"]
    (patient,) = outcomes(situation, ["lag-aware"], imbalance=1)
    assert (patient.moves, patient.lag_most) == (0, 100)
    with pytest.raises(ValueError, match="imbalance"):
        outcomes(situation, imbalance=-1)


def test_a_plan_from_a_file(capsys: Capture, file: Path) -> None:
    code, out, err = command(capsys, "plan", "--file", file, "--members", 2)
    assert (code, err) == (0, "")
    lines = [line.split() for line in out.splitlines()]
    assert ["2", "members,", "6", "partitions", "of", "1", "topics"] in lines
    for heading in (["now"], ["2", "more"], ["1", "fewer"], ["1", "more", "partition"]):
        assert heading in lines
    sticky = [line for line in lines if line[:1] == ["sticky"]]
    assert [line[1] for line in sticky] == ["0", "2", "3", "0"]


def test_a_plan_as_json(capsys: Capture, file: Path) -> None:
    code, out, _ = command(capsys, "plan", "--file", file, "--assignor", "sticky", "--json")
    found = json.loads(out)
    assert code == 0
    assert set(found) == {"now", "1 more", "1 fewer", "1 more partition"}
    assert found["now"][0]["assignment"] == {"a": {"orders": [0, 1, 2]}, "b": {"orders": [3, 4, 5]}}


async def test_a_plan_of_a_live_group(capsys: Capture, coordinator: Coordinator, tmp_path: Path) -> None:
    async with consumer_member(
        coordinator.bootstrap, "g", ["t"], assignors=["weighted"], weight=3, client_id="only"
    ) as member:
        await member.wait_assigned(20)
        await member.commit({("t", 0): 0})
        saved = tmp_path / "saved.json"
        arguments = ["plan", "g", "-b", coordinator.bootstrap, "--json", "--save", str(saved)]
        assert await asyncio.to_thread(run, arguments) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found) == {"now", "1 more", "1 more partition"}
    assert found["now"][0]["most"] == 4
    kept = json.loads(saved.read_text())
    assert kept["topics"] == {"t": 4}
    assert [(one["owned"], one["weight"]) for one in kept["members"]] == [({"t": [0, 1, 2, 3]}, 3.0)]
    assert command(capsys, "plan", "--file", saved)[0] == 0


async def test_a_live_group_by_lag(capsys: Capture, coordinator: Coordinator) -> None:
    """Live lags, without a commit too; a topic that does not exist is named and left out."""

    async def fill() -> None:
        for partition, count in enumerate((50, 10, 10, 10)):
            records = [Record(n, 1, None, b"x") for n in range(count)]
            await coordinator.node.topics.append("t", partition, build_batch(records))

    where = coordinator.bootstrap
    coordinator.run(fill())
    async with consumer_member(where, "g", ["t", "later"]) as member:
        await member.wait_assigned(20)
        await member.commit({("t", 3): 4})
        options = ["--assignor", "lag-aware", "--new-topic", "2", "--json"]
        assert await asyncio.to_thread(run, ["plan", "g", "-b", where, *options]) == 0
    captured = capsys.readouterr()
    assert captured.err == "ringleader: Left out, as there is no such topic: later.\n"
    found = json.loads(captured.out)
    assert set(found) == {"now", "1 more", "1 more partition", "a new topic"}
    assert (found["now"][0]["lag_most"], found["1 more"][0]["lag_most"]) == (76, 50)
    assert found["a new topic"][0]["most"] == 6


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["plan"], "Name a group, or a --file."),
        (["plan", "g", "--file", "x"], "Name a group, or a --file."),
        (["plan", "--file", "{nothing}"], "No such file"),
        (["plan", "--file", "{bad}"], "Invalid JSON"),
        (["plan", "--file", "{empty}"], "members: Field required"),
        (["plan", "--file", "{file}", "--assignor", "best"], "there is no assignor best; there are range"),
        (["plan", "--file", "{file}", "--save", "{nothing}/x"], "--save: No such file"),
        (["size", "--target", "0", "--producer", "1", "--consumer", "1"], "target throughput is above 0"),
        (["size", "--target", "1", "--producer", "1", "--consumer", "nan"], "consumer throughput is above 0"),
    ],
)
def test_wrong_input_is_one_sentence(
    capsys: Capture, file: Path, tmp_path: Path, arguments: list[str], says: str
) -> None:
    (tmp_path / "bad").write_text("{")
    (tmp_path / "empty").write_text('{"topics": {}}')
    names = {name: str(tmp_path / name) for name in ("nothing", "bad", "empty")} | {"file": str(file)}
    code, out, err = command(capsys, *(one.format(**names) for one in arguments))
    assert (code, out) == (2, "")
    assert says in err
    assert err.count("\n") == 1


def test_a_group_that_cannot_be_planned(capsys: Capture, coordinator: Coordinator) -> None:
    code, out, err = command(capsys, "plan", "nobody", "-b", coordinator.bootstrap)
    assert (code, out) == (1, "")
    assert err == "ringleader: There is no group nobody.\n"


@pytest.mark.parametrize(
    ("target", "producer", "consumer", "needed"),
    [(100, 20, 8, 13), (100, 10, 50, 10), (1, 5, 5, 1), (100, 10, 10, 10)],
)
def test_the_slower_side_decides(target: float, producer: float, consumer: float, needed: int) -> None:
    found = sizing(target, producer, consumer)
    assert found.partitions == needed == max(found.by_producers, found.by_consumers)
    assert found.at_best <= needed


def test_size_warns(capsys: Capture) -> None:
    code, out, _ = command(
        capsys,
        "size",
        "--target",
        100,
        "--producer",
        20,
        "--consumer",
        8,
        "--partitions",
        12,
        "--consumers",
        16,
    )
    assert code == 0
    assert "12 partitions are too few: 13 are needed." in out
    assert "4 of 16 consumers would be idle: there are 12 partitions." in out
    _, out, _ = command(capsys, "size", "--target", 100, "--producer", 20, "--consumer", 8, "--json")
    assert json.loads(out) == {"partitions": 13, "by_producers": 5, "by_consumers": 13, "warnings": []}
