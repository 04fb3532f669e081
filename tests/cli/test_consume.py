"""``ringleader consume``: what was written is printed, from where and as far as was asked for."""

from __future__ import annotations

import itertools
import json
import os
import pty
import signal
import subprocess
from collections.abc import Iterator
from typing import Any

import confluent_kafka
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleader.cli.records_in import json_reader
from ringleader.cli.records_out import as_json, pretty
from ringleader.clients.fetch.model import Record
from ringleader.testing.coordinator import Coordinator
from tests.support.command import PATIENCE_S, Done, command_line, environment, run_here

T0_MS = 1_769_860_800_000  # 2026-01-31T12:00:00Z
NUMBERS = itertools.count()
CAUGHT_UP = "--exit-when-caught-up"


@pytest.fixture(scope="module")
def coordinator() -> Iterator[Coordinator]:
    with Coordinator(auto_create_topics_enable=False, log_retention_ms=-1) as started:
        yield started


@pytest.fixture
def topic(coordinator: Coordinator) -> str:
    """Partition 0 has the values 0 to 9, partition 1 the values a to d, a second apart."""
    name = f"t{next(NUMBERS)}"
    coordinator.create_topic(name, 3)
    written = [(0, str(number), number) for number in range(10)] + [(1, "abcd"[at], at) for at in range(4)]
    producer = confluent_kafka.Producer({"bootstrap.servers": coordinator.bootstrap})
    for partition, value, at in written:
        producer.produce(name, value, partition=partition, timestamp=T0_MS + at * 1_000)
    assert producer.flush(PATIENCE_S) == 0
    return name


def produce(coordinator: Coordinator, topic: str, *lines: dict[str, Any]) -> None:
    text = "\n".join(map(json.dumps, lines))
    done = run_here(coordinator.bootstrap, "produce", topic, "--format", "json", stdin=text)
    assert done.code == 0, done.err


def consume(coordinator: Coordinator, *arguments: str) -> Done:
    return run_here(coordinator.bootstrap, "consume", *arguments)


def values(done: Done) -> tuple[str, str]:
    """The values of partition 0 and of partition 1, in the order in which they were printed as JSON."""
    assert (done.code, done.err) == (0, "")
    found = [json.loads(line) for line in done.out.splitlines()]
    first, second = (
        "".join(one["value"] for one in found if one["partition"] == number) for number in (0, 1)
    )
    return first, second


def test_a_line_for_each_record(coordinator: Coordinator, topic: str) -> None:
    produce(
        coordinator,
        topic,
        {
            "key": "k",
            "value": "v\n\u001b[31m",
            "headers": {"h": "1", "n": None},
            "partition": 2,
            "timestamp_ms": 5,
        },
        {"value": None, "key_base64": "/wA=", "partition": 2, "timestamp_ms": T0_MS},
    )
    done = consume(coordinator, topic, "--partition", "2", CAUGHT_UP)
    assert done == (
        0,
        f"{topic}-2@0  1970-01-01T00:00:00.005Z  k: v\\n\\x1b[31m  (h=1, n=(null))\n"
        f"{topic}-2@1  2026-01-31T12:00:00.000Z  (2 bytes: ff00): (null)\n",
        "",
    )


def test_the_bare_values(coordinator: Coordinator, topic: str) -> None:
    done = consume(coordinator, topic, CAUGHT_UP, "--format", "raw")
    assert (done.code, done.err) == (0, "")
    assert sorted(done.out.splitlines()) == sorted([*"0123456789", *"abcd"])


def test_json_goes_back_into_a_topic_unchanged(coordinator: Coordinator, topic: str) -> None:
    lines: list[dict[str, Any]] = [
        {"key": "k", "value": "größer", "headers": {"h": "1", "n": None}, "timestamp_ms": 7},
        {"key": None, "value": '{"a": 1}', "headers": [["h", "1"], ["h", "2"]], "timestamp_ms": T0_MS},
        {
            "key_base64": "/wA=",
            "value_base64": "AP8=",
            "headers_base64": {"b": "/w=="},
            "timestamp_ms": T0_MS,
        },
        {"key": "", "value": None, "timestamp_ms": 1},
    ]
    produce(coordinator, topic, *({**one, "partition": 2} for one in lines))
    done = consume(coordinator, topic, "--partition", "2", CAUGHT_UP, "--format", "json")
    assert (done.code, done.err) == (0, "")
    wanted = [{"topic": topic, "partition": 2, "offset": at, **one} for at, one in enumerate(lines)]
    assert [json.loads(line) for line in done.out.splitlines()] == wanted
    copy = f"t{next(NUMBERS)}"
    coordinator.create_topic(copy, 3)
    stdin = done.out
    assert run_here(coordinator.bootstrap, "produce", copy, "--format", "json", stdin=stdin).code == 0
    done = consume(coordinator, copy, CAUGHT_UP, "--format", "json")
    assert [json.loads(line) for line in done.out.splitlines()] == [{**one, "topic": copy} for one in wanted]


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ((), ("0123456789", "abcd")),
        (("--from", "earliest"), ("0123456789", "abcd")),
        (("--from", "latest"), ("", "")),
        (("--from", "2"), ("23456789", "cd")),
        (("--from", "-3"), ("789", "bcd")),
        (("--from", "-100"), ("0123456789", "abcd")),
        (("--from", "2026-01-31T12:00:02"), ("23456789", "cd")),
        (("--from", "2026-01-31T13:00:03.5+01:00"), ("456789", "")),
        (("--from", "2026-01-31", "--until", "2026-01-31T12:00:02Z"), ("01", "ab")),
        (("--from", "1", "--until", "3"), ("12", "bc")),
        (("--until", "-2"), ("01234567", "ab")),
        (("--until", "latest"), ("0123456789", "abcd")),
        (("--from", "-1h", "--until", "latest"), ("", "")),
        (("--from", "3", "--until", "1"), ("", "")),
        (("--partition", "1"), ("", "abcd")),
        (("--partition", "0", "--partition", "1", "--from", "3"), ("3456789", "d")),
        (("--partition", "0", "--max-records", "4"), ("0123", "")),
    ],
)
def test_from_where_and_how_far(
    coordinator: Coordinator, topic: str, options: tuple[str, ...], wanted: tuple[str, str]
) -> None:
    end = () if "--until" in options or "--max-records" in options else (CAUGHT_UP,)
    if "--partition" not in options and options:
        options = (*options, "--partition", "0", "--partition", "1")
    done = consume(coordinator, topic, "--format", "json", *options, *end)
    assert values(done) == wanted


def test_an_offset_outside_of_the_log_is_reported(coordinator: Coordinator, topic: str) -> None:
    done = consume(coordinator, topic, "--from", "7", CAUGHT_UP, "--format", "raw")
    assert (done.code, done.out) == (0, "7\n8\n9\n")
    assert done.err.splitlines() == [
        f"ringleader: {topic}-1 has offsets 0 to 4: 4 is taken for 7.",
        f"ringleader: {topic}-2 has offsets 0 to 0: 0 is taken for 7.",
    ]


def test_several_topics(coordinator: Coordinator, topic: str) -> None:
    other = f"t{next(NUMBERS)}"
    coordinator.create_topic(other)
    produce(coordinator, other, {"value": "x"})
    done = consume(coordinator, topic, other, "--format", "json", CAUGHT_UP)
    found = [json.loads(line) for line in done.out.splitlines()]
    assert {(one["topic"], one["value"]) for one in found} == {(other, "x")} | {
        (topic, value) for value in "0123456789abcd"
    }


def test_it_ends_when_nothing_has_come_for_a_while(coordinator: Coordinator, topic: str) -> None:
    done = consume(coordinator, topic, "--timeout-ms", "200", "--format", "raw")
    assert (done.code, len(done.out.splitlines()), done.err) == (0, 14, "")


def test_a_group_goes_on_where_it_has_printed(coordinator: Coordinator, topic: str) -> None:
    group = ("--group", topic, "--format", "raw")
    first = consume(coordinator, topic, *group, "--max-records", "5")
    second = consume(coordinator, topic, *group, CAUGHT_UP)
    third = consume(coordinator, topic, *group, CAUGHT_UP)
    assert [done.code for done in (first, second, third)] == [0, 0, 0]
    assert [len(done.out.splitlines()) for done in (first, second, third)] == [5, 9, 0]
    assert sorted(first.out + second.out) == sorted("".join(f"{value}\n" for value in "0123456789abcd"))
    described = json.loads(run_here(coordinator.bootstrap, "groups", "describe", topic, "--json").out)
    assert described["members"] == []
    assert [one["lag"] for one in described["offsets"]] == [0, 0, 0]


def test_a_group_may_begin_at_the_end(coordinator: Coordinator, topic: str) -> None:
    done = consume(coordinator, topic, "--group", topic, "--from", "latest", CAUGHT_UP)
    assert done == (0, "", "")


class Running:
    """A command that runs; its output line by line."""

    def __init__(self, coordinator: Coordinator, *arguments: str) -> None:
        self.process = subprocess.Popen(
            command_line("consume", *arguments),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(coordinator.bootstrap),
        )

    def lines(self, count: int) -> list[str]:
        assert self.process.stdout is not None
        return [self.process.stdout.readline().decode().rstrip("\n") for _ in range(count)]

    def ended(self) -> tuple[int, str]:
        """Exit code and standard error."""
        try:
            _, err = self.process.communicate(timeout=PATIENCE_S)
        finally:
            self.process.kill()
            self.process.wait()
        return self.process.returncode, err.decode()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_interrupted_a_member_commits_what_it_has_printed_and_leaves(
    coordinator: Coordinator, topic: str, number: signal.Signals, code: int
) -> None:
    running = Running(coordinator, topic, "--group", topic, "--format", "raw")
    assert len(running.lines(14)) == 14
    produce(coordinator, topic, {"value": "later", "partition": 2})
    assert running.lines(1) == ["later"]
    running.process.send_signal(number)
    assert running.ended() == (code, "")
    described = json.loads(run_here(coordinator.bootstrap, "groups", "describe", topic, "--json").out)
    assert (described["members"], [one["lag"] for one in described["offsets"]]) == ([], [0, 0, 0])


def test_it_ends_when_its_reader_has_gone(coordinator: Coordinator, topic: str) -> None:
    running = Running(coordinator, topic, "--format", "raw")
    assert running.lines(1) in (["0"], ["a"])
    assert running.process.stdout is not None
    running.process.stdout.close()
    # Nothing is written to the topic any more: it notices all the same.
    assert running.process.wait(PATIENCE_S) == 0
    assert running.process.stderr is not None
    assert running.process.stderr.read() == b""
    running.process.stderr.close()


def test_records_come_while_it_runs(coordinator: Coordinator, topic: str) -> None:
    running = Running(coordinator, topic, "--from", "latest", "--max-records", "2", "--format", "raw")
    while run_here(coordinator.bootstrap, "produce", topic, "--value", "new").code == 0:
        if running.process.poll() is not None:
            break
    assert running.lines(2) == ["new", "new"]
    assert running.ended() == (0, "")


def test_a_terminal_has_colours(coordinator: Coordinator, topic: str) -> None:
    shown = []
    for no_color in ("1", ""):
        ours, its = pty.openpty()
        subprocess.run(
            command_line("consume", topic, "--partition", "0", "--max-records", "1"),
            stdout=its,
            env=environment(coordinator.bootstrap) | {"NO_COLOR": no_color},
            check=True,
        )
        shown.append(os.read(ours, 10_000).decode())
        os.close(its)
        os.close(ours)
    assert "\x1b" not in shown[0]
    assert shown[1].startswith(f"\x1b[2m{topic}-0@0")


def test_records_that_transactions_have_not_committed(coordinator: Coordinator, topic: str) -> None:
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": coordinator.bootstrap, "transactional.id": topic}
    )
    producer.init_transactions(PATIENCE_S)
    for value, ends in (("aborted", producer.abort_transaction), ("committed", producer.commit_transaction)):
        producer.begin_transaction()
        producer.produce(topic, value, partition=2)
        producer.flush(PATIENCE_S)
        ends(PATIENCE_S)
    for level, wanted in (("read_committed", ["committed"]), ("read_uncommitted", ["aborted", "committed"])):
        done = consume(
            coordinator, topic, "--partition", "2", CAUGHT_UP, "--format", "raw", "--isolation-level", level
        )
        assert (done.code, done.out.splitlines(), done.err) == (0, wanted, "")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--from", "noon"], "--from: give earliest, latest, an offset or a time; a time is"),
        (["--until", "earliest"], "--until: there is nothing before earliest."),
        (["--until", "2400-01-01"], "--until: 2400-01-01 is yet to come"),
        (["--until", "5", CAUGHT_UP], "--until and --exit-when-caught-up"),
        (["--group", ""], "--group: a group has a name."),
        (["--group-protocol", "consumer"], "--group-protocol: there is no --group."),
        (["--group", "g", "--partition", "0"], "--partition and --group"),
        (["--group", "g", "--until", "5"], "--until and --group"),
        (["--group", "g", "--from", "5"], "--from and --group: only earliest or latest; `groups reset` sets"),
        (["--max-records", "0"], "--max-records"),
        (["--format", "xml"], "--format"),
        (["--bootstrap-server", "a:b"], "--bootstrap-server: not an address"),
        (["--command-config", "/nonexistent"], "--command-config: No such file"),
    ],
)
def test_wrong_use_is_a_sentence(coordinator: Coordinator, options: list[str], says: str) -> None:
    done = run_here(coordinator.bootstrap, "consume", "t", *options)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("ringleader: ")
    assert says in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize("group", [[], ["--group", "g"]])
def test_a_missing_topic_or_group_is_one_sentence(
    coordinator: Coordinator, topic: str, group: list[str]
) -> None:
    done = consume(coordinator, "none", *group)
    assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)
    assert "topic 'none': UNKNOWN_TOPIC_OR_PARTITION" in done.err
    if not group:
        done = consume(coordinator, topic, "--partition", "3")
        assert done == (1, "", f"ringleader: topic '{topic}' has no partition 3: it has 3.\n")


some_bytes = st.none() | st.binary(max_size=100) | st.text(max_size=50).map(str.encode)
some_headers = st.lists(st.tuples(st.text(max_size=3), some_bytes), max_size=3).map(tuple)


@given(some_bytes, some_bytes, some_headers)
def test_each_printed_record_is_one_line_that_can_be_read_back(
    key: bytes | None, value: bytes | None, headers: tuple[tuple[str, bytes | None], ...]
) -> None:
    record = Record("t", 1, 5, -1, None, key, value, headers)
    shown = pretty(False)(record).decode()
    assert shown.endswith("\n")
    assert not set(shown[:-1]) & {chr(code) for code in (*range(32), *range(127, 160), 0x2028, 0x2029)}
    read = json_reader((), None)(as_json(record))
    assert read is not None
    assert (read.key, read.value, read.headers) == (key, value, headers)
    assert (read.partition, read.timestamp_ms) == (1, -1)


def test_a_group_may_be_coordinated_elsewhere(coordinator: Coordinator, topic: str) -> None:
    with Coordinator(topics={topic: 3}) as beside:
        options = ("--group", topic, "--coordinator-bootstrap-server", beside.bootstrap)
        done = consume(coordinator, topic, *options, "--max-records", "14", "--format", "raw")
        assert (done.code, len(done.out.split())) == (0, 14), done.err
        described = run_here(beside.bootstrap, "groups", "describe", topic, "--json")
        assert [one["committed"] for one in json.loads(described.out)["offsets"]] == [10, 4, 0]
    wrong = run_here(coordinator.bootstrap, "consume", topic, "--coordinator-bootstrap-server", "h:1")
    assert (wrong.code, wrong.err) == (
        2,
        "ringleader: --coordinator-bootstrap-server: there is no --group.\n",
    )
    wrong = run_here(
        coordinator.bootstrap, "consume", topic, "--group", "g", "--coordinator-bootstrap-server", "h:x"
    )
    assert wrong.code == 2
    assert wrong.err.startswith("ringleader: --coordinator-bootstrap-server: not an address")
    wrong = run_here(
        coordinator.bootstrap, "consume", topic, "--group", "g", "--coordinator-command-config", "f"
    )
    assert "there is no --coordinator-bootstrap-server" in wrong.err
