"""``ringleader produce``: what is typed, piped or kept in a file is what another client reads."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import pty
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleader.cli.records_in import BASE64, NAMES, PASSED_OVER, json_reader
from ringleader.clients.produce.partitioner import partition_of_key
from ringleader.clients.produce.rows import RowList
from ringleader.testing.coordinator import Coordinator
from tests.spark_bridge.broker import Partition
from tests.spark_bridge.sink_broker import SinkBroker
from tests.support.certificates import Certificates
from tests.support.command import PATIENCE_S, Done, command_line, environment, records, run_command, run_here

PARTITIONS = 3
NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def coordinator() -> Iterator[Coordinator]:
    with Coordinator(
        auto_create_topics_enable=False, message_max_bytes=100_000, log_retention_ms=-1
    ) as started:
        yield started


@pytest.fixture
def topic(coordinator: Coordinator) -> str:
    name = f"t{next(NUMBERS)}"
    coordinator.create_topic(name, PARTITIONS)
    return name


def produce(coordinator: Coordinator, topic: str, *options: str, stdin: bytes | str = b"") -> Done:
    return run_here(coordinator.bootstrap, "produce", topic, *options, stdin=stdin)


def test_one_record_from_the_options(coordinator: Coordinator, topic: str) -> None:
    began_ms = int(time.time() * 1000)
    done = produce(
        coordinator, topic, "--key", "7", "--value", "größer", "--header", "a=1", "--header", "b=x=y"
    )
    partition = partition_of_key(b"7", PARTITIONS)
    assert done == (0, f"Wrote 1 record to {topic}: partition {partition} offset 0.\n", "")
    (found,) = records(coordinator.bootstrap, topic, 1)
    assert found[:4] == (partition, b"7", "größer".encode(), [("a", b"1"), ("b", b"x=y")])
    assert began_ms <= found.timestamp_ms <= time.time() * 1000


def test_a_record_without_a_value(coordinator: Coordinator, topic: str) -> None:
    assert produce(coordinator, topic, "--key", "7", "--null-value").code == 0
    assert produce(coordinator, topic, "--key", "7", "--value", "").code == 0
    assert [found.value for found in records(coordinator.bootstrap, topic, 2)] == [None, b""]


def test_lines_of_a_pipe(coordinator: Coordinator, topic: str) -> None:
    done = produce(coordinator, topic, "--partition", "1", stdin=b"one\r\ntwo\n\n\xff")
    assert done == (0, f"Wrote 4 records to {topic}: partition 1 offsets 0 to 3.\n", "")
    found = records(coordinator.bootstrap, topic, 4)
    assert [one.value for one in found] == [b"one", b"two", b"", b"\xff"]
    assert {one.key for one in found} == {None}


def test_a_last_line_that_ends_before_its_newline_is_as_the_others(
    coordinator: Coordinator, topic: str
) -> None:
    assert produce(coordinator, topic, "--partition", "1", stdin=b"one\r\ntwo\r").code == 0
    assert [one.value for one in records(coordinator.bootstrap, topic, 2)] == [b"one", b"two"]


def test_keys_of_lines_choose_the_partition(coordinator: Coordinator, topic: str) -> None:
    lines = "".join(f"key-{number}\tvalue\t{number}\n" for number in range(50))
    done = produce(coordinator, topic, "--key-separator", "\\t", "--header", "h=1", stdin=lines)
    assert (done.code, done.err) == (0, "")
    found = records(coordinator.bootstrap, topic, 50)
    assert {one.key: one.value for one in found} == {
        b"key-%d" % number: b"value\t%d" % number for number in range(50)
    }
    assert all(one.partition == partition_of_key(one.key or b"", PARTITIONS) for one in found)
    assert all(one.headers == [("h", b"1")] for one in found)


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_a_file_in_every_codec(coordinator: Coordinator, topic: str, tmp_path: Path, codec: str) -> None:
    values = [b"%06d" % number + b"." * 30 for number in range(5_000)]
    file = tmp_path / "lines"
    file.write_bytes(b"\n".join(values))
    done = produce(coordinator, topic, "--file", str(file), "--compression", codec, "--partition", "0")
    assert done == (0, f"Wrote 5,000 records to {topic}: partition 0 offsets 0 to 4999.\n", "")
    assert [one.value for one in records(coordinator.bootstrap, topic, 5_000)] == values


def test_json_lines(coordinator: Coordinator, topic: str) -> None:
    objects = [
        {"key": "k", "value": {"total": 1.5, "name": "ü"}, "headers": {"h": "1", "n": None, "j": [1]}},
        {"key": 7, "value": "text", "partition": 2, "timestamp_ms": 12_345},
        {"value": None, "partition": 1, "topic": "elsewhere", "offset": 9},
        {"key_base64": "/w==", "value_base64": "AAE=", "headers": [["h", "1"], ["h", "2"]], "partition": 0},
        {"value": False, "partition": 0, "timestamp_ms": 99, "headers_base64": {"b": "/w=="}},
    ]
    text = "\n \n".join(json.dumps(one) for one in objects)
    done = produce(
        coordinator, topic, "--format", "json", "--header", "all=yes", "--partition", "1", stdin=text
    )
    assert (done.code, done.err) == (0, "")
    found = {one.value: one for one in records(coordinator.bootstrap, topic, 5)}
    yes = ("all", b"yes")
    first = found['{"total":1.5,"name":"ü"}'.encode()]
    assert first[:2] == (1, b"k")
    assert first.headers == [("h", b"1"), ("n", None), ("j", b"[1]"), yes]
    text_one = found[b"text"]
    assert (text_one.partition, text_one.key, text_one.timestamp_ms) == (2, b"7", 12_345)
    assert found[None].partition == 1
    assert found[b"\x00\x01"][:4] == (0, b"\xff", b"\x00\x01", [("h", b"1"), ("h", b"2"), yes])
    assert (found[b"false"].timestamp_ms, found[b"false"].headers) == (99, [("b", b"\xff"), yes])


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{", "it is not JSON"),
        ("[]", "it is not a JSON object"),
        ('{"value": NaN}', "NaN is not JSON"),
        ('{"vale": 1}', "'vale' has no meaning"),
        ('{"key": 1}', "it has no value"),
        ('{"value": 1, "value_base64": ""}', "it has value and value_base64"),
        ('{"value_base64": "?"}', "value_base64 is not base64"),
        ('{"value": 1, "partition": -1}', "partition is a whole number from 0 on, not -1"),
        ('{"value": 1, "partition": true}', "partition is a whole number"),
        ('{"value": 1, "timestamp_ms": 1.5}', "timestamp_ms is a whole number"),
        ('{"value": 1, "headers": [1]}', "headers is an object, or a list"),
        ('{"value": "\\ud800"}', "half of a surrogate pair"),
    ],
)
def test_a_line_that_is_no_record_is_refused(line: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        json_reader((), None)(line.encode())


everything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["AA==", "\ud800"]),
    lambda some: st.lists(some, max_size=3) | st.dictionaries(st.text(max_size=3), some, max_size=3),
    max_leaves=6,
)
names = [*NAMES, *PASSED_OVER, *(f"{name}{BASE64}" for name in NAMES[:3])]


@given(st.dictionaries(st.sampled_from(names), everything, max_size=5), st.binary(max_size=5))
def test_a_line_of_json_is_a_record_or_refused(fields: dict[str, object], rubbish: bytes) -> None:
    for line in (json.dumps(fields).encode(), json.dumps(fields).encode() + rubbish, rubbish):
        with contextlib.suppress(ValueError):
            row = json_reader((), None)(line)
            if row is not None:
                rows = RowList([row])
                assert len(rows.encode([rows], 0).body) <= rows.sizes().largest


def test_a_line_too_deep_is_refused() -> None:
    with pytest.raises(ValueError, match="too deep"):
        json_reader((), None)(b"[" * 200_000)


def test_without_an_input_it_says_so(coordinator: Coordinator, topic: str) -> None:
    closed = 'exec 0<&-; exec "$@"'
    command = ["sh", "-c", closed, "sh", *command_line("produce", topic)]
    done = subprocess.run(command, env=environment(coordinator.bootstrap), capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (
        2,
        b"ringleader: Standard input is closed; give --value or --file.\n",
    )
    command += ["--value", "a"]
    done = subprocess.run(command, env=environment(coordinator.bootstrap), capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_wrong_line_is_a_sentence_and_those_before_it_are_written(
    coordinator: Coordinator, topic: str
) -> None:
    good = '{"value": "good", "partition": 0}\n'
    done = produce(coordinator, topic, "--format", "json", stdin=good * 2 + "{}\n" + good)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("ringleader: line 3: it has no value")
    assert done.err.endswith(f". Wrote 2 records to {topic}: partition 0 offsets 0 to 1.\n")
    assert done.err.count("\n") == 1
    assert produce(coordinator, topic, "--value", "next", "--partition", "0").out.endswith("offset 2.\n")


def test_a_line_without_its_key_is_a_sentence(coordinator: Coordinator, topic: str) -> None:
    done = produce(coordinator, topic, "--key-separator", ":", stdin="a:1\nb\n")
    assert done.code == 2
    assert done.err.startswith("ringleader: line 2: there is no ':' (--key-separator) in it. Wrote 1 record")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--value", "a", "--null-value"], "--value and --null-value"),
        (["--value", "a", "--file", "x"], "--value writes one record"),
        (
            ["--value", "a", "--header", "x"],
            "--header: give it as NAME=VALUE, for example",
        ),
        (["--key", "a", "--key-separator", ":"], "--key and --key-separator"),
        (["--key-separator", ""], "--key-separator: give at least one character"),
        (["--format", "json", "--key", "a"], "--format json: the key is in the object"),
        (["--file", "/nonexistent"], "--file: No such file or directory: /nonexistent"),
        (["--file", "/"], "the input cannot be read: Is a directory"),
        (["--acks", "0"], "--acks"),
        (["--partition", "-1"], "--partition"),
        (["--command-config", "/nonexistent"], "--command-config: No such file or directory"),
        (["--bootstrap-server", "a:b"], "--bootstrap-server: not an address"),
    ],
)
def test_wrong_use_is_a_sentence(coordinator: Coordinator, options: list[str], says: str) -> None:
    done = run_here(coordinator.bootstrap, "produce", "t", *options)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"ringleader: {says}") or says in done.err
    assert done.err.count("\n") == 1


def test_a_refusal_of_the_cluster_is_one_sentence(coordinator: Coordinator, topic: str) -> None:
    for options, says in (
        (["--partition", "9"], f"names partition 9 of topic {topic}, which has partitions 0 to 2"),
        (["--max-request-size", "10"], "max.request.size is 10"),
    ):
        done = produce(coordinator, topic, "--value", "a" * 11, *options)
        assert (done.code, done.out) == (1, "")
        assert says in done.err
        assert done.err.count("\n") == 1
    done = produce(coordinator, topic, stdin=b"a" * 200_000)
    assert done.code == 1
    assert "more than the topic's max.message.bytes" in done.err
    done = produce(coordinator, topic, stdin=b"a\n" + b"b" * 4_000_000)
    assert done.code == 2
    assert "line 2: it is longer than 1048576 bytes (max.request.size)" in done.err
    done = produce(coordinator, "nowhere", "--value", "a", "--max-block-ms", "10")
    assert done.code == 1
    assert "topic nowhere does not exist" in done.err
    done = run_command("127.0.0.1:1", "produce", topic, "--value", "a", "--max-block-ms", "10")
    assert done.code == 1
    assert "cannot connect to 127.0.0.1:1" in done.err


def test_lines_in_a_pipe_are_written_before_its_end(coordinator: Coordinator, topic: str) -> None:
    with subprocess.Popen(
        command_line("produce", topic), stdin=subprocess.PIPE, env=environment(coordinator.bootstrap)
    ) as running:
        assert running.stdin is not None
        running.stdin.write(b"first\n")
        running.stdin.flush()
        assert records(coordinator.bootstrap, topic, 1)[0].value == b"first"
        running.stdin.write(b"second")
        running.stdin.close()
        assert running.wait() == 0
    assert len(records(coordinator.bootstrap, topic, 2)) == 2


def test_interrupted_it_says_what_is_written(coordinator: Coordinator, topic: str) -> None:
    with subprocess.Popen(
        command_line("produce", topic, "--partition", "0"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(coordinator.bootstrap),
    ) as running:
        assert running.stdin is not None
        running.stdin.write(b"first\n")
        running.stdin.flush()
        assert len(records(coordinator.bootstrap, topic, 1)) == 1
        running.send_signal(signal.SIGINT)
        out, err = running.communicate()
    assert (running.returncode, out) == (130, b"")
    # A reader may have the record before the producer has the answer: then the test waits for the answer.
    assert err.decode().splitlines()[-1] == f"ringleader: Wrote 1 record to {topic}: partition 0 offset 0."


@pytest.mark.parametrize("again", [False, True])
def test_interrupted_while_it_writes_it_waits_for_the_answer(
    coordinator: Coordinator, topic: str, again: bool
) -> None:
    coordinator.faults.forget_seen()
    coordinator.faults.delay("Produce", 60.0 if again else 1.0)
    with subprocess.Popen(
        command_line("produce", topic, "--partition", "0"),
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(coordinator.bootstrap),
    ) as running:
        assert running.stdin is not None
        assert running.stderr is not None
        running.stdin.write(b"first\n")
        running.stdin.flush()
        deadline_s = time.monotonic() + PATIENCE_S
        while not coordinator.faults.seen("Produce"):
            assert time.monotonic() < deadline_s
            time.sleep(0.01)
        running.send_signal(signal.SIGINT)
        assert running.stderr.readline().startswith(b"ringleader: It ends when what is on its way")
        if again:
            running.send_signal(signal.SIGINT)
        _, err = running.communicate()
    coordinator.faults.clear()
    what = f"0 of 1 records to {topic}" if again else f"1 record to {topic}: partition 0 offset 0"
    assert (running.returncode, err.decode()) == (130, f"ringleader: Wrote {what}.\n")


def test_a_broken_connection_doubles_nothing(coordinator: Coordinator, topic: str) -> None:
    coordinator.faults.drop("Produce", done=True)
    done = produce(coordinator, topic, "--value", "once", "--partition", "0")
    assert done == (0, f"Wrote 1 record to {topic}: partition 0 offset 0.\n", "")
    produce(coordinator, topic, "--value", "after", "--partition", "0")
    assert [one.value for one in records(coordinator.bootstrap, topic, 2)] == [b"once", b"after"]


def test_progress_is_for_terminals(coordinator: Coordinator, topic: str, tmp_path: Path) -> None:
    ours, its = pty.openpty()
    file = tmp_path / "lines"
    file.write_bytes(b"some value\n" * 500_000)
    done = subprocess.run(
        command_line("produce", topic, "--file", str(file), "--partition", "0", "--compression", "lz4"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=its,
        env=environment(coordinator.bootstrap),
        check=True,
    )
    os.close(its)
    shown = os.read(ours, 100_000).decode()
    os.close(ours)
    assert done.stdout.startswith(b"Wrote 500,000 records")
    assert " records, " in shown
    assert shown.endswith("\r\x1b[K")


def test_as_a_user_through_tls_with_a_file_of_properties(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path / "certificates")
    properties = tmp_path / "client.properties"
    text = f"security.protocol=SASL_SSL\nssl.ca.location={certificates.authority}\nsasl.mechanism=PLAIN\n"
    options = ["--value", "a", "--command-config", str(properties)]
    with SinkBroker(
        {"t": {0: Partition()}}, tls=certificates.server_tls(), users={"alice": "right"}
    ) as broker:
        for word, code in (("right", 0), ("wrong", 1)):
            properties.write_text(f"{text}sasl.username=alice\nsasl.password={word}\n")
            done = run_command(f"{broker.host}:{broker.port}", "produce", "t", *options)
            assert done.code == code, done.err
        assert "refused user 'alice'" in done.err
        assert done.err.count("\n") == 1
        assert broker.values("t", 0) == [b"a"]
