"""JSON that is kept or passed on: offsets of the Spark source, what nodes and their files say, entries of
users, ACLs and quotas, records of the journal."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from pydantic import TypeAdapter, ValidationError

from ringleader.cli.reset import _read_plan
from ringleader.coordinator.cluster.map import ClusterMap, MapError
from ringleader.coordinator.identity import IDENTITY_FILE, Identity
from ringleader.coordinator.security import acls
from ringleader.coordinator.security.quotas import ClientQuotas
from ringleader.coordinator.security.records import entry_of, record_of
from ringleader.coordinator.security.store import FILE, FileStore
from ringleader.coordinator.security.users import Users
from ringleader.coordinator.storage.kafka.format import Claim
from ringleader.coordinator.topics import catalog, ends
from ringleader.insight.inference import journal
from ringleader.protocol.errors import MalformedError
from ringleader.spark_bridge.batch import document
from ringleader.spark_bridge.batch.document import OffsetDocument, OffsetDocumentError
from ringleader.spark_bridge.moving import MovingError, starting_offsets
from ringleader.spark_bridge.options.values import Offsets, Partitions, Timestamps
from ringleader.spark_bridge.values import CommitToken, OffsetRange, Subscription
from tests.fuzz.mutation import changed_bytes, changed_json, json_bytes
from tests.fuzz.target import Target, promise, scratch

_OPTIONS: list[TypeAdapter[Any]] = [TypeAdapter(Offsets), TypeAdapter(Timestamps), TypeAdapter(Partitions)]
_DIRECTORY = scratch()


class Kind(NamedTuple):
    """One kind of document: how it is read, what that may raise, and how such a document looks."""

    read: Callable[[bytes], None]
    raises: tuple[type[Exception], ...]
    sample: bytes


def _spark(data: bytes) -> None:
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return  # Spark reads the text itself
    found = OffsetDocument.from_json(document, "g")
    once = found.text()
    again = OffsetDocument.from_json(json.loads(once), "g")
    promise(again.text() == once, "a document is written in another way than before")
    promise(again.positions == found.positions, "positions are lost")
    promise(again.ranges == found.ranges, "ranges are lost")
    for _, partition in (*found.positions, *found.ranges):
        promise(partition < 2**31, f"there is no partition {partition}")


def _token(data: bytes) -> None:
    found = CommitToken.of(data.decode(errors="replace"))
    if found is not None:
        promise(CommitToken.of(found.text()) == found, "another token")


def _options(data: bytes) -> None:
    text = data.decode(errors="surrogateescape")
    for option in _OPTIONS:
        try:
            option.validate_python(text)
        except ValidationError:
            continue


def _moving(data: bytes) -> None:
    starting_offsets(_file("offsets", data))


def _catalog(data: bytes) -> None:
    found = catalog.load(_file("topics.json", data))
    assert found is not None
    catalog.save(_DIRECTORY / "again", found)
    promise(catalog.load(_DIRECTORY / "again") == found, "topics are lost")


def _ends(data: bytes) -> None:
    ends.load(_file("ends", data))


def _identity(data: bytes) -> None:
    _file(IDENTITY_FILE, data)
    Identity.find(_DIRECTORY, ["topics.json"])


def _store(data: bytes) -> None:
    store = FileStore(_file(FILE, data))
    store.open()
    Users(store).load()


def _claim(data: bytes) -> None:
    found = Claim.decode(data)
    promise(Claim.decode(found.encode()) == found, "another claim")


def _map(data: bytes) -> None:
    found = ClusterMap.decode(data)
    promise(ClusterMap.decode(found.encode()) == found, "another map")


def _acl(data: bytes) -> None:
    found = acls.from_key(data.decode())
    promise(acls.from_key(acls.to_key(found)) == found, "another ACL")


def _quota(data: bytes) -> None:
    """A quota as a store's entry: the whole is taken, and then asked for."""
    try:
        key, values = json.loads(data)
    except (ValueError, RecursionError):
        return  # the store reads the file
    known = ClientQuotas()
    known.apply({json.dumps(key): values})
    list(known.entries())
    sensors = known.sensors("alice", "c", 1)
    for one in sensors or ():
        if one is not None:
            one.record(1e9, 2)
            one.throttle_ms(3)
    address = known.connections("127.0.0.1", 1)
    if address is not None:
        address.record(1e9, 2)
        address.throttle_ms(3)


def _entry(data: bytes) -> None:
    key, _, value = data.partition(b"\n")
    found = entry_of(key, value)
    if found is not None and not isinstance(found, bytes) and found.value is not None:
        again = entry_of(*record_of(found.section, found.key, found.value))
        promise(json.dumps(again) == json.dumps(found), "another entry")


def _journal(data: bytes) -> None:
    journal.decode(0, 1, 2, b"g", data)


def _plan(data: bytes) -> None:
    _read_plan(data.decode(), "g")


def _file(name: str, data: bytes) -> Path:
    path = _DIRECTORY / name
    path.write_bytes(data)
    return path


_SPARK = OffsetDocument(
    "g",
    {("a", 0): OffsetRange(1, 5), ("b", 10): OffsetRange(3, 3)},
    {("a", 0): 5, ("b", 9): 7},
    "x1",
    7,
    Subscription(("a", "b"), None),
)
_MEMBER = {
    "member_id": "m", "client_id": "c", "client_host": "/h", "principal": "User:a", "group_instance_id": None,
    "session_timeout_ms": 1, "rebalance_timeout_ms": 2, "topics": ["t"], "assigned": [["t", [0]]],
}  # fmt: skip
_REBALANCE = {
    "format": 1, "kind": "rebalance", "group": "g", "at_ms": 9, "generation": 2, "cause": "member joined",
    "cause_member": "m", "reason": "", "outcome": "stable", "protocol_type": "consumer", "protocol": "range",
    "leader": "m", "members_before": ["m"], "members_after": ["m"], "joined": ["m"], "began_ms": 1,
    "duration_ms": 8, "join_ms": 3, "join_last_member": "m", "leader_ms": 3, "sync_ms": 2, "synced": 1,
    "members": [{**_MEMBER, "joined_ms": 1, "synced_ms": None}], "before": [_MEMBER],
    "left": {"n": {"why": "left", "at_ms": 2, "last_heard_ms": 1, "silent_ms": 1, "client_id": "c",
                   "client_host": "/h", "principal": None, "group_instance_id": "i"}},
    "moves": [["t", 0, None, "m", 5]], "unowned_ms": 5, "last_commit_ms": None, "first_commit_ms": 9,
    "cut": False,
}  # fmt: skip
_EVENT = {
    "format": 1, "kind": "event", "group": "g", "at_ms": 9, "event": "topic created", "member_id": "m",
    "client_id": "c", "client_host": "/h", "principal": "User:a", "group_instance_id": None, "error": "",
    "count": 1,
    "partitions": [["t", 0]], "subject": "t", "detail": "",
}  # fmt: skip
_FIRST_COMMIT = {
    "format": 1,
    "kind": "first-commit",
    "group": "g",
    "at_ms": 9,
    "generation": 2,
    "member_id": "m",
    "after_ms": 3,
}
_USER = {
    "SCRAM-SHA-256": {"iterations": 4096, "salt": "c2FsdA==", "stored_key": "AAAA", "server_key": "AAAA"}
}
_ACL = ["TOPIC", "LITERAL", "t", "User:a", "*", "READ", "ALLOW"]
_OFFSETS = b'{"a":{"0":23,"1":-1},"b":{"0":-2}}'

KINDS = (
    Kind(_spark, (OffsetDocumentError,), _SPARK.text().encode()),
    Kind(_spark, (OffsetDocumentError,),
    document.empty("g").text().encode()),
    Kind(_token, (), CommitToken("0a1b", 7).text().encode()),
    Kind(_options, (), _OFFSETS),
    Kind(_options, (), b'{"a":[0,1]}'),
    Kind(_moving, (MovingError,), b"v1\n{}\n" + _OFFSETS),
    Kind(_moving, (MovingError,), b"v2\n{}\n0:" + _OFFSETS),
    Kind(_catalog, (OSError,), json.dumps({"format": catalog.FORMAT, "topics": {
        "t": {"id": "00" * 16, "partitions": 3, "configs": {"retention.ms": "5"},
        "deleting": True}}}).encode()),
    Kind(_ends, (), b'{"00": {"0": 5}}'),
    Kind(_identity, (OSError,), b'{"format": 2, "cluster_id": "x", "stores": ["topics.json"]}'),
    Kind(_store, (OSError,), json.dumps({"format": 1, "secret": "00" * 32, "users": {"a": _USER},
                                         "acls": {json.dumps(_ACL): True}, "quotas": {}}).encode()),
    Kind(_claim, (MalformedError,), Claim(1, "h", 9092, "0.1", 5).encode()),
    Kind(_map, (MapError,),
         b'{"format":1,"generation":3,"controller":1,"nodes":[[1,"h",9092,"0.1",[["A","h",1]]],[2,"i",1,"0"]],'
         b'"owners":[1,-1,2],"moving":[[0,2]],"drained":[1],"leaving":[],"pinned":[[2,1]],"racks":["a",null]}'),
    Kind(_acl, (ValueError, KeyError, TypeError), json.dumps(_ACL).encode()),
    Kind(_quota, (ValueError, KeyError, TypeError, AttributeError),
         b'[{"user": "alice", "client-id": null}, {"producer_byte_rate": 100.5, "request_percentage": 1}]'),
    Kind(_quota, (ValueError, KeyError, TypeError, AttributeError),
         b'[{"ip": null}, {"connection_creation_rate": 1}]'),
    Kind(_entry, (ValueError,), b'users/a\n{"format": 1, "value": {"a": 1}}'),
    Kind(_entry, (ValueError,), b'secret\n{"format": 1, "value": "' + b"00" * 32 + b'"}'),
    Kind(_journal, (MalformedError,), json.dumps(_REBALANCE).encode()),
    Kind(_journal, (MalformedError,), json.dumps(_EVENT).encode()),
    Kind(_journal, (MalformedError,), json.dumps(_FIRST_COMMIT).encode()),
    Kind(_plan, (ValueError,), b'{"offsets": [{"topic": "t", "partition": 0, "offset": 5}]}'),
    Kind(_plan, (ValueError,), b"t,0,5\ng,u,1,7\n"),
)  # fmt: skip


def check(data: bytes) -> None:
    if not data:
        return
    kind = KINDS[data[0] % len(KINDS)]
    try:
        kind.read(data[1:])
    except kind.raises:
        return


def seeds() -> Iterator[bytes]:
    for number, kind in enumerate(KINDS):
        yield bytes((number,)) + kind.sample


def mutate(data: bytes, rng: Random) -> bytes:
    if not data or rng.random() < 0.05:
        data = rng.choice(list(seeds()))
    head, body = data[:1], data[1:]
    before, brace, _ = body.partition(b"{")
    if before and not before.lstrip().startswith(b"[") and brace:
        body = body[len(before) :]  # a line that is no JSON, or a key
    else:
        before = b""
    try:
        return (
            head + before + json_bytes(changed_json(json.loads(body), rng))
            if rng.random() < 0.9
            else _bytes(data, rng)
        )
    except (ValueError, RecursionError):
        return _bytes(data, rng)


def _bytes(data: bytes, rng: Random) -> bytes:
    return data[:1] + changed_bytes(
        data[1:], rng, (b"{", b"}", b"[", b":", b",", b'"0"', b"Infinity", b"NaN", b"1e999", b"\\ud800")
    )


def plant(patch: Any) -> None:
    """An offset may be anything that is a number."""
    patch.setattr(document, "_offset", lambda tp, value: int(value))


TARGET = Target(
    "documents",
    "Every document is read or refused by the exception that its reader documents; what is read, written and "
    "read again is the same.",
    check,
    seeds,
    mutate,
    plant,
)
