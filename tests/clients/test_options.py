"""Options are checked where they are given: by mypy, and by the call, in one sentence that names it."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from ringleader.clients.assignors import ASSIGNORS, Assignor
from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.consumer import GroupConsumer, PartitionConsumer
from ringleader.clients.fetch.model import ConsumerSettings
from ringleader.clients.group.membership import GroupMember, SyncGroupMember
from ringleader.clients.group.settings import MemberSettings, SubscriptionSettings
from ringleader.clients.group.subscription import consumer_member, sync_consumer_member
from ringleader.clients.model import MemberProtocol
from ringleader.clients.options import ConsumerOptions, MemberOptions, SubscriptionOptions

ROOT = Path(__file__).parents[2]

SNIPPET = """
from typing_extensions import Unpack

from ringleader import ConsumerOptions, GroupConsumer, GroupMember, MemberProtocol, SyncGroupMember
from ringleader import consumer_member, sync_consumer_member
from ringleader.clients.consumer import PartitionConsumer

GroupConsumer("h:1", "g", "t", auto_commit=False, max_poll_records=5, session_timeout_ms=9_000)
GroupConsumer("h:1", "g", pattern="t.*", client_rack="a", weight=2, on_revoked=lambda partitions: None)
consumer_member("h:1", "g", ["t"], assignors=["weighted"], weight=2.0, max_poll_interval_ms=None)
sync_consumer_member("h:1", "g", ["t"], rack="a", on_lost=lambda lost: print(lost.reason))
GroupMember("h:1", "g", protocols=[MemberProtocol("p")], assign=lambda name, members: {})
SyncGroupMember("h:1", "g", protocols=[], quiesce_timeout_ms=5)
PartitionConsumer("h:1", "t", fetch_min_bytes=5, client_id="a")


def of_our_own(**options: Unpack[ConsumerOptions]) -> GroupConsumer:
    options.setdefault("max_poll_records", 5)
    return GroupConsumer("h:1", "g", "t", **options)


GroupConsumer("h:1", "g", "t", auto_comit=False)  # wrong
GroupConsumer("h:1", "g", "t", auto_commit="no")  # wrong
GroupConsumer("h:1", "g", "t", isolation_level="read_comitted")  # wrong
GroupConsumer("h:1", "g", "t", sasl="PLAIN")  # wrong
consumer_member("h:1", "g", ["t"], asignors=["range"])  # wrong
sync_consumer_member("h:1", "g", ["t"], sesion_timeout_ms=6_000)  # wrong
GroupMember("h:1", "g", protocols=[], rack="a")  # wrong
SyncGroupMember("h:1", "g", protocols=[], tls=True)  # wrong
PartitionConsumer("h:1", "t", fetch_min_byte=5)  # wrong
"""


def test_mypy_refuses_what_there_is_not(tmp_path: Path) -> None:
    snippet = tmp_path / "snippet.py"
    snippet.write_text(SNIPPET)
    command = [sys.executable, "-m", "mypy", "--strict", str(snippet)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    lines = SNIPPET.splitlines()
    wrong = [number for number, line in enumerate(lines, 1) if line.endswith("# wrong")]
    found = [int(line.split(":")[1]) for line in done.stdout.splitlines() if ": error:" in line]
    assert found == wrong, done.stdout + done.stderr


CALLS: dict[str, Any] = {
    "GroupConsumer": lambda **options: GroupConsumer("h:1", "g", "t", **options),
    "consumer_member": lambda **options: consumer_member("h:1", "g", ["t"], **options),
    "sync_consumer_member": lambda **options: sync_consumer_member("h:1", "g", ["t"], **options),
    "GroupMember": lambda **options: GroupMember("h:1", "g", protocols=[MemberProtocol("p")], **options),
    "SyncGroupMember": lambda **options: SyncGroupMember(
        "h:1", "g", protocols=[MemberProtocol("p")], **options
    ),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_misspelt_option_names_the_call_and_what_was_meant(call: str) -> None:
    with pytest.raises(TypeError) as caught:
        CALLS[call](sesion_timeout_ms=6_000)
    sentence = f"{call}() has no option 'sesion_timeout_ms'; did you mean 'session_timeout_ms'?"
    assert str(caught.value) == sentence
    with pytest.raises(TypeError) as caught:
        CALLS[call](xyz=1)
    assert str(caught.value) == f"{call}() has no option 'xyz'"


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    ("option", "value", "sentence"),
    [
        ("client_id", 5, "client_id has to be a text, not 5"),
        ("tls", True, "tls has to be an SSLContext or None, not bool"),
        ("sasl", "u:secret", "sasl has to be a SaslPlain, a SaslScram, a SaslOAuthBearer or None, not str"),
        ("on_assigned", 5, "on_assigned has to be something that can be called or None, not 5"),
        ("session_timeout_ms", True, "session_timeout_ms has to be a whole number, not True"),
        ("request_timeout_ms", 0.5, "request_timeout_ms has to be a whole number, not 0.5"),
        ("group_instance_id", 7, "group_instance_id has to be a text or None, not 7"),
    ],
)
def test_a_wrong_value_names_the_call(call: str, option: str, value: Any, sentence: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (the whole sentence is compared)
        CALLS[call](**{option: value})
    assert str(caught.value) == f"{call}(): {sentence}"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"auto_commit": "no"}, "auto_commit has to be True or False, not 'no'"),
        ({"max_poll_records": True}, "max_poll_records has to be a whole number, not True"),
        ({"isolation_level": "committed"}, "isolation_level has to be one of 'read_uncommitted', "),
        ({"client_rack": 1}, "client_rack has to be a text or None, not 1"),
        ({"assignors": "range"}, "assignors has to be a list of texts, not 'range'"),
        ({"assignors": [1]}, "assignors has to be a list of texts, not list"),
        ({"weight": "2"}, "weight has to be a number, not '2'"),
        ({"settings": {}}, "settings has to be a ConsumerSettings or None, not dict"),
        (
            {"pattern": 5},
            "pattern has to be a text, a compiled pattern, a SubscriptionPattern or None, not 5",
        ),
    ],
)
def test_a_wrong_value_of_a_consumer(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (the whole sentence is compared)
        GroupConsumer("h:1", "g", "t", **options)
    assert str(caught.value).startswith(f"GroupConsumer(): {sentence}")


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        ({"clientid": "a"}, TypeError, "has no option 'clientid'; did you mean 'client_id'?"),
        ({"auto_commit": True}, TypeError, "has no option 'auto_commit'"),
        ({"sasl": "PLAIN"}, ValueError, ": sasl has to be a SaslPlain, "),
        ({"max_poll_records": "5"}, ValueError, ": max_poll_records has to be a whole number, not '5'"),
    ],
)
def test_a_consumer_without_a_group(options: dict[str, Any], error: type[Exception], sentence: str) -> None:
    with pytest.raises(error) as caught:
        PartitionConsumer("h:1", ["t"], **options)
    assert str(caught.value).startswith("PartitionConsumer()")
    assert sentence in str(caught.value)


@pytest.mark.parametrize("kind", [GroupConsumer, consumer_member, sync_consumer_member])
@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ((5, "g", "t"), "bootstrap has to be a text or a list of texts, not 5"),
        (("h:1", 5, "t"), "group_id has to be a text, not 5"),
        (("h:1", "g", 5), "topics has to be a list of texts, a text or None, not 5"),
        (("h:1", "g", [5]), "topics has to be a list of texts, a text or None, not list"),
    ],
)
def test_a_wrong_place(kind: Any, given: tuple[Any, ...], sentence: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (the whole sentence is compared)
        kind(*given)
    assert str(caught.value) == f"{kind.__name__}(): {sentence}"


def test_an_assignor_that_an_application_puts_in_may_be_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        ValueError, match=r"^unknown assignors \['by-region'\]; there are \['cooperative-sticky', "
    ):
        SubscriptionSettings(assignors=["by-region"])
    for cooperative in (True, False):
        own = Assignor("by-region", lambda members, _partitions, _racks: {}, cooperative=cooperative)
        monkeypatch.setitem(ASSIGNORS, own.name, own)
        assert SubscriptionSettings(assignors=["by-region"]).cooperative is cooperative
        assert GroupConsumer("h:1", "g", "t", assignors=["by-region"]).member is not None


@pytest.mark.parametrize("call", CALLS)
def test_an_option_of_another_client_is_answered_with_ours(call: str) -> None:
    with pytest.raises(TypeError) as caught:
        CALLS[call](ssl_context=None)
    assert str(caught.value) == f"{call}() has no option 'ssl_context': it is tls here"
    with pytest.raises(TypeError) as caught:
        CALLS[call](**{"session.timeout.ms": 6_000})
    assert str(caught.value) == f"{call}() has no option 'session.timeout.ms': it is session_timeout_ms here"


def test_settings_check_their_own_fields() -> None:
    wrong: Any = "no"
    with pytest.raises(ValueError, match=r"^auto_commit has to be True or False, not 'no'$"):
        ConsumerSettings(auto_commit=wrong)
    with pytest.raises(ValueError, match=r"^session_timeout_ms has to be a whole number, not 'no'$"):
        MemberSettings(group_id="g", session_timeout_ms=wrong)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"sasl": "PLAIN"}, "sasl has to be a SaslPlain, "),
        ({"tls": True}, "tls has to be an SSLContext or None, not bool"),
        ({"client_id": 5}, "client_id has to be a text or None, not 5"),
        ({"request_timeout_ms": "1"}, "request_timeout_ms has to be a whole number, not '1'"),
        ({"connect_timeout_ms": 0}, "connect_timeout_ms has to be above 0, not 0"),
    ],
)
def test_a_cluster_checks_what_it_is_given(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match="^" + sentence):
        Cluster("h:1", **options)


def test_options_are_the_fields_of_the_settings() -> None:
    """So neither gets a name, or a type, that the other has not."""
    member, subscription = get_type_hints(MemberOptions), get_type_hints(SubscriptionOptions)
    consumer = get_type_hints(ConsumerOptions)
    settings = get_type_hints(MemberSettings)
    assert {name for name in settings if name not in member} == {
        "group_id", "protocol_type", "given_up", "leave_timeout_ms",
    }  # fmt: skip
    assert all(hint == settings[name] for name, hint in member.items() if name in settings)
    assert {"pattern": subscription.pop("pattern")} | get_type_hints(SubscriptionSettings) == {
        "pattern": consumer["pattern"]
    } | subscription
    fetching = get_type_hints(ConsumerSettings)
    assert {name: consumer.get(name) for name in fetching} == fetching


def test_one_set_of_defaults() -> None:
    """The consumer's own options, beside its member's, are there because a consumer asks for records."""
    consumer = {one.name: one.default for one in fields(ConsumerSettings)}
    differ = {
        one.name: (one.default, consumer[one.name])
        for kind in (MemberSettings, SubscriptionSettings)
        for one in fields(kind)
        if one.name in consumer and one.default != consumer[one.name]
    }
    assert differ == {"max_poll_interval_ms": (None, 300_000), "auto_commit_interval_ms": (None, 5_000)}


def test_a_text_is_one_topic_for_every_call() -> None:
    for made in (GroupConsumer("h:1", "g", "t").member, consumer_member("h:1", "g", "t")):
        metadata = made.machine.state.protocols[0].current()
        assert b"\x00\x01t" in metadata
