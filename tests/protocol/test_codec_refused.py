"""Values that an encoder refuses, and values that a version silently leaves out because its schema says it
may."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ringleader.protocol.errors import EncodeError
from ringleader.protocol.fields import FieldSpec, fields_of
from ringleader.protocol.layout import covers
from ringleader.protocol.messages import (
    CreateTopicsRequest,
    FetchRequest,
    FindCoordinatorRequest,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    ListGroupsResponse,
    ListGroupsResponseListedGroup,
    ListOffsetsRequest,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
    OffsetCommitRequest,
    OffsetFetchRequest,
    SyncGroupResponse,
)
from ringleader.protocol.schema import Message
from tests.support.wire_reference import full
from tests.support.wire_values import in_every_version, present_fields


def other_value(cls: type[Any], name: str, spec: FieldSpec) -> Any:
    """Something in a field that is not its default."""
    first_version = spec.versions[0]
    found = getattr(full(cls, first_version), name)
    return found if found != getattr(cls(), name) else not found


def structs_of(value: Any, version: int) -> Iterator[Any]:
    """A message and the structs in it."""
    yield value
    for name, _ in present_fields(type(value), version):
        inner = getattr(value, name)
        for item in inner if isinstance(inner, list) else [inner]:
            if hasattr(item, "__dataclass_fields__"):
                yield from structs_of(item, version)


@in_every_version()
def test_a_field_that_the_version_lacks(cls: type[Message], version: int) -> None:
    message = full(cls, version)
    body = message.encode(version)
    for part in structs_of(message, version):
        for name, spec in fields_of(type(part)):
            if covers(spec.versions, version):
                continue
            setattr(part, name, other_value(type(part), name, spec))
            if spec.ignorable:
                assert message.encode(version) == body, name
            else:
                with pytest.raises(EncodeError, match=f"{cls.__name__} v{version}: {name} cannot be sent"):
                    message.encode(version)
            setattr(part, name, getattr(type(part)(), name))


@in_every_version()
def test_values_that_do_not_fit_their_field_are_refused(cls: type[Message], version: int) -> None:
    message = full(cls, version)
    message.encode(version)
    for part in structs_of(message, version):
        for name, spec in present_fields(type(part), version):
            kept = getattr(part, name)
            for wrong in (object(), None, *([b"short"] if spec.type == "uuid" else [])):
                if spec.type == "bool" or (wrong is None and covers(spec.nullable, version)):
                    continue  # anything is true or false
                setattr(part, name, wrong)
                with pytest.raises(EncodeError, match=f"{cls.__name__} v{version}: "):
                    message.encode(version)
            setattr(part, name, kept)


REFUSED: list[tuple[Message, int, str]] = [
    (HeartbeatRequest(group_instance_id="i"), 2, "group_instance_id cannot be sent in version 2"),
    (FindCoordinatorRequest(key="g", key_type=1), 0, "key_type cannot be sent in version 0"),
    (FindCoordinatorRequest(key="g"), 4, "key cannot be sent in version 4"),
    (OffsetFetchRequest("g", topics=None), 1, "topics cannot be null in version 1"),
    (OffsetFetchRequest("g", require_stable=True), 6, "require_stable cannot be sent in version 6"),
    (MetadataRequest(topics=None), 0, "topics cannot be null in version 0"),
    (MetadataRequest([MetadataRequestTopic(name=None)]), 9, "name cannot be null in version 9"),
    (JoinGroupResponse(protocol_name=None), 6, "protocol_name cannot be null in version 6"),
    (JoinGroupResponse(skip_assignment=True), 8, "skip_assignment cannot be sent in version 8"),
    (HeartbeatRequest(group_id=None), 0, "HeartbeatRequest v0"),  # type: ignore[arg-type]
    (HeartbeatRequest(group_id=b"g"), 0, "HeartbeatRequest v0"),  # type: ignore[arg-type]
    (HeartbeatRequest(group_id="\ud800"), 4, "surrogates not allowed"),
    (HeartbeatRequest(group_id="g" * 32768), 3, "HeartbeatRequest v3"),
    (HeartbeatRequest(generation_id=2**31), 4, "HeartbeatRequest v4"),
    (HeartbeatResponse(error_code=40000), 4, "HeartbeatResponse v4"),
    (HeartbeatResponse(error_code=None), 4, "HeartbeatResponse v4"),  # type: ignore[arg-type]
    (SyncGroupResponse(assignment=None), 0, "SyncGroupResponse v0"),  # type: ignore[arg-type]
    (JoinGroupRequest(protocols=[JoinGroupRequestProtocol("p", None)]), 5, "v5"),  # type: ignore[arg-type]
    (JoinGroupRequest(protocols=None), 9, "JoinGroupRequest v9"),  # type: ignore[arg-type]
    (JoinGroupRequest(protocols=["range"]), 9, "JoinGroupRequest v9"),  # type: ignore[list-item]
]


@pytest.mark.parametrize(("message", "version", "says"), REFUSED)
def test_a_value_that_the_version_cannot_carry(message: Message, version: int, says: str) -> None:
    with pytest.raises(EncodeError, match=says) as caught:
        message.encode(version)
    assert str(caught.value).startswith(f"{type(message).__name__} v{version}: ")


@pytest.mark.parametrize("topic_id", [b"", b"short", bytes(17)])
def test_a_topic_id_has_sixteen_bytes(topic_id: bytes) -> None:
    response = MetadataResponse(topics=[MetadataResponseTopic(topic_id=topic_id)])
    with pytest.raises(EncodeError, match="topic_id"):
        response.encode(12)


def test_a_nested_field_that_the_version_lacks() -> None:
    listed = ListGroupsResponse(groups=[ListGroupsResponseListedGroup("g", "consumer", group_state="Stable")])
    assert listed.encode(3) == ListGroupsResponse(
        groups=[ListGroupsResponseListedGroup("g", "consumer")]
    ).encode(3)
    assert ListGroupsResponse.decode(listed.encode(4), 4) == listed


def test_messages_are_built_from_the_fields_that_matter() -> None:
    assert FetchRequest().replica_id == -1
    assert FetchRequest().max_bytes == 0x7FFFFFFF
    assert ListOffsetsRequest().isolation_level == 0
    assert CreateTopicsRequest().timeout_ms == 60000
    assert OffsetCommitRequest().generation_id_or_member_epoch == -1
    one, other = JoinGroupRequest(), JoinGroupRequest()
    one.protocols.append(JoinGroupRequestProtocol("range", b""))
    assert other.protocols == []
    assert not hasattr(one, "__dict__")
