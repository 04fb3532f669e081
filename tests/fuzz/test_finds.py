"""The finds of drawn inputs, each as small as it gets: these were no refusals before."""

from __future__ import annotations

import gzip
import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from crc32c import crc32c

from ringleader.cli.reset import _read_plan
from ringleader.clients.group.leading.matching import _compiled
from ringleader.coordinator.config import SettingsError, load_settings
from ringleader.coordinator.identity import IDENTITY_FILE, Identity, IdentityError
from ringleader.coordinator.security import acls, quotas
from ringleader.coordinator.security.mapping import PrincipalMapper
from ringleader.coordinator.security.names import subject_of
from ringleader.coordinator.security.quotas import ClientQuotas
from ringleader.coordinator.storage.kafka.format import Claim
from ringleader.coordinator.topics import catalog, ends
from ringleader.coordinator.topics.disk import DamagedError
from ringleader.coordinator.topics.segment import IndexUnusableError, Segment, Snapshot
from ringleader.insight.inference import journal
from ringleader.protocol import native
from ringleader.protocol.columns import decode_columns
from ringleader.protocol.compression import Compression, decompress
from ringleader.protocol.errors import MalformedError
from ringleader.protocol.records import CorruptBatchError, Record, build_batch, empty_batch, varint
from ringleader.spark_bridge.fetching.columns import answer_batches
from ringleader.spark_bridge.moving import MovingError, starting_offsets
from ringleader.spark_bridge.options import OptionsError, stream_options
from tests.fuzz.mutation import joined
from tests.fuzz.target import load

DEEP = "[" * 100_000
STREAM = {"kafka.bootstrap.servers": "a:9092", "kafka.group.id": "g"}


def test_many_small_members_of_gzip_take_no_longer_than_one_large_one() -> None:
    """Each of them had all that came behind it copied."""

    def cpu_s(members: int) -> float:
        data = gzip.compress(b"", mtime=0) * members
        began_s = time.thread_time()
        assert decompress(Compression.GZIP, data) == b""
        return time.thread_time() - began_s

    cpu_s(100)
    assert cpu_s(40_000) < 24 * cpu_s(5_000)


@pytest.mark.parametrize("way", ["python", "compiled"])
@pytest.mark.parametrize("time_ms", [2**60, -(2**63), 2**63 - 1])
def test_a_time_that_spark_cannot_hold_is_refused(
    way: str, time_ms: int, compiled: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native, "compiled", compiled if way == "compiled" else None)
    data = build_batch([Record(0, time_ms, None, b"v")])
    with pytest.raises(CorruptBatchError, match="none that Spark can hold"):
        list(answer_batches("t", 0, data, 0, 9, include_headers=False))


@pytest.mark.parametrize("way", ["python", "compiled"])
def test_what_is_longer_than_64_bits_is_refused(
    way: str, compiled: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Times, the differences that they are made of, and offsets."""
    monkeypatch.setattr(native, "compiled", compiled if way == "compiled" else None)
    late = build_batch([Record(0, 2**62, None, b"v"), Record(1, 2**62 + 5, None, b"v")])
    later = late[:27] + (2**63 - 1).to_bytes(8, "big") + late[35:]
    with pytest.raises(CorruptBatchError, match="a time is longer than 64 bits"):
        decode_columns(later, check_crc=False)
    one = build_batch([Record(0, 0, None, b"v")])
    body = b"\0" + b"\xff" * 9 + b"\x7f" + b"\0\1\2v\0"
    with pytest.raises(CorruptBatchError, match="a number is longer than 64 bits"):
        decode_columns(one[:8] + (50 + len(body)).to_bytes(4, "big") + one[12:61] + varint(len(body)) + body,
                       check_crc=False)  # fmt: skip
    with pytest.raises(CorruptBatchError, match="offsets from 9223372036854775807 on"):
        decode_columns((2**63 - 1).to_bytes(8, "big") + one[8:])


@pytest.mark.parametrize("way", ["python", "compiled"])
def test_what_follows_the_batches_and_is_none_is_refused_for_spark(
    way: str, compiled: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It announces more than there is, and was taken for a batch that is cut off."""
    monkeypatch.setattr(native, "compiled", compiled if way == "compiled" else None)
    data = build_batch([Record(0, 0, None, b"v")])
    strange = data[:8] + (10_000).to_bytes(4, "big") + data[12:16] + b"\7" + data[17:]
    with pytest.raises(CorruptBatchError, match="record format 7"):
        list(answer_batches("t", 0, data + strange, 0, 9, include_headers=False))


@pytest.mark.parametrize("way", ["python", "compiled"])
def test_a_batch_without_records_is_not_inflated(
    way: str, compiled: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compiled code passed it over, Python said that it is broken."""
    monkeypatch.setattr(native, "compiled", compiled if way == "compiled" else None)
    empty = bytearray(empty_batch(0, 4))
    empty[22] |= Compression.ZSTD
    empty[17:21] = crc32c(bytes(empty[21:])).to_bytes(4, "big")
    data = bytes(empty) + build_batch([Record(5, 7, None, b"v")])
    [found] = answer_batches("t", 0, data, 0, 9, include_headers=False)
    assert found.column("offset").to_pylist() == [5]


@pytest.mark.parametrize("pattern", ["a{99999999999}", "(" * 3_000 + ")" * 3_000])
def test_a_pattern_that_python_cannot_hold_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="no regular expression"):
        _compiled(pattern)
    with pytest.raises(ValueError, match="cannot be read"):
        PrincipalMapper(f"RULE:{pattern}/x/")
    with pytest.raises(OptionsError, match="not a regular expression"):
        stream_options(STREAM | {"subscribePattern": pattern})


def _identity(path: Path) -> None:
    path.rename(path.with_name(IDENTITY_FILE))
    Identity.find(path.parent, [])


@pytest.mark.parametrize(
    ("read", "error"),
    [
        (_identity, IdentityError),
        (catalog.load, DamagedError),
        (starting_offsets, MovingError),
        (lambda path: load_settings(file=path), SettingsError),
    ],
)
def test_a_file_whose_json_is_too_deep_is_refused(
    read: Callable[[Path], object], error: type[Exception], tmp_path: Path
) -> None:
    file = tmp_path / "deep.toml"
    file.write_text({SettingsError: "a = ", MovingError: "v1\n{}\n"}.get(error, "") + DEEP)
    with pytest.raises(error):
        read(file)


@pytest.mark.parametrize(
    ("read", "error"),
    [
        (Claim.decode, MalformedError),
        (lambda data: journal.decode(0, 0, 0, b"g", data), MalformedError),
        (acls.from_key, ValueError),
        (quotas.from_key, ValueError),
        (lambda data: _read_plan('{"offsets":' + data.decode(), "g"), ValueError),
        (
            lambda data: stream_options(STREAM | {"subscribe": "a", "startingOffsets": data.decode()}),
            OptionsError,
        ),
        (lambda data: stream_options(STREAM | {"assign": data.decode()}), OptionsError),
    ],
)
def test_json_that_is_too_deep_is_refused(read: Callable[[bytes], object], error: type[Exception]) -> None:
    with pytest.raises(error):
        read(DEEP.encode())


def test_a_number_without_bounds_is_refused(tmp_path: Path) -> None:
    """JSON has 1e999, which is infinite for Python."""
    with pytest.raises(MalformedError):
        Claim.decode(b'{"node_id": 1e999, "host": "h", "port": 1, "version": "0", "wall_ms": 1}')
    with pytest.raises(MalformedError):
        journal.decode(
            0, 0, 0, b"g", b'{"format":1,"kind":"event","event":"started","at_ms":1e999,"group":""}'
        )
    (tmp_path / "topics").write_text(
        '{"format":1,"topics":{"t":{"id":"00","partitions":1e999,"configs":{}}}}'
    )
    with pytest.raises(DamagedError):
        catalog.load(tmp_path / "topics")
    (tmp_path / "ends").write_text('{"00": {"0": 1e999}}')
    assert ends.load(tmp_path / "ends") == {}
    with pytest.raises(ValueError, match=re.escape("line 1 is not")):
        _read_plan('{"offsets": [{"topic": "t", "partition": 1e999, "offset": 1}]}', "g")
    index = Segment(Path(), 0).dump_index(Snapshot([], [], [[2**70, 0, 0, 0]]))
    with pytest.raises(OptionsError):
        stream_options(STREAM | {"assign": '{"a": [1e999]}'})
    with pytest.raises(IndexUnusableError):
        Segment.load_index(Path(), 0, index)


@pytest.mark.parametrize("value", ["0", "-1", "1e999", "NaN", "1" + "0" * 400])
def test_a_kept_quota_that_cannot_be_divided_by_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match="above 0"):
        ClientQuotas().apply({'{"user": "u"}': json.loads(f'{{"producer_byte_rate": {value}}}')})


@pytest.mark.parametrize("key", ['["user"]', '{"user": 5}', '{"ip": 5}', '"user"'])
def test_a_kept_quota_of_nobody_is_refused(key: str) -> None:
    with pytest.raises(ValueError, match=r"user|ip"):
        quotas.from_key(key)


@pytest.mark.parametrize("data", ["3002 3000", "3003 a00100", "3008 3006 020100 020100", "30023000 00"])
def test_a_certificate_in_which_something_is_missing_is_refused(data: str) -> None:
    with pytest.raises(ValueError, match="not DER"):
        subject_of(bytes.fromhex(data))


def test_a_client_that_goes_in_the_middle_of_a_sign_in_is_no_error() -> None:
    """A traceback was logged for it."""
    target = load("http")
    try:
        target.check(
            b"\1" + joined([b"POST /api/session HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhel"])
        )
    finally:
        target.close()
