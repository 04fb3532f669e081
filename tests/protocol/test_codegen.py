"""Versions are compiled on first use, typed, and readable in a traceback; messages are declared and built."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

import pytest

from ringleader.protocol import messages
from ringleader.protocol.codec import decoder, encoder, pieces_encoder
from ringleader.protocol.codegen.__main__ import main
from ringleader.protocol.codegen.functions import module_source
from ringleader.protocol.errors import EncodeError
from ringleader.protocol.fields import LAST, array, field, fields_of
from ringleader.protocol.schema import Message, message, struct
from tests.support.wire_values import MESSAGES


def versions(cls: type[Message]) -> range:
    return range(cls.MIN_VERSION, cls.MAX_VERSION + 1)


@pytest.mark.parametrize("cls", MESSAGES, ids=lambda cls: cls.__name__)
def test_compiled_functions_say_their_version_and_arguments(cls: type[Message]) -> None:
    budget = ["budget"] if cls.KIND == "request" else []
    for version in versions(cls):
        decode, encode = decoder(cls, version), encoder(cls, version)
        assert (decode.__name__, encode.__name__) == (f"decode_v{version}", f"encode_v{version}")
        assert list(inspect.signature(decode).parameters) == ["data", "pos", *budget]
        assert inspect.signature(encode) == inspect.signature(pieces_encoder(cls, version)).replace(
            parameters=[
                inspect.Parameter("message", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=cls.__name__)
            ],
            return_annotation="bytes",
        )


def test_compiled_code_is_typed(tmp_path: Path) -> None:
    """No type checker sees code that is compiled while a process runs, so it is written to files here."""
    for cls in MESSAGES:
        (tmp_path / f"{cls.__name__}.py").write_text(module_source(cls, versions(cls)))
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_version_is_compiled_when_it_is_first_used() -> None:
    program = """
import builtins
compiled, compile_ = [], builtins.compile
def spy(source, filename, *arguments, **named):
    if "protocol.codegen" in str(filename):
        compiled.append(filename.rpartition("/")[2])
    return compile_(source, filename, *arguments, **named)
builtins.compile = spy
import ringleader.protocol.frames
from ringleader.protocol.messages import HeartbeatRequest
assert compiled == [], compiled
for _ in range(2):
    HeartbeatRequest().encode(4)
assert compiled == ["HeartbeatRequest_encode_v4"], compiled
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_a_traceback_shows_the_compiled_line() -> None:
    with pytest.raises(EncodeError) as caught:
        messages.HeartbeatRequest(group_instance_id="a").encode(1)
    shown = "".join(traceback.format_exception(caught.value))
    assert 'HeartbeatRequest_encode_v1", line ' in shown
    assert 'raise ValueError("group_instance_id cannot be sent in version 1")' in shown


def printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str
) -> tuple[str, str]:
    monkeypatch.setattr(sys, "argv", ["codegen", *arguments])
    with contextlib.suppress(SystemExit):
        main()
    return capsys.readouterr()


def test_the_source_of_a_message_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cls = messages.HeartbeatRequest
    assert printed(monkeypatch, capsys, cls.NAME) == (module_source(cls, versions(cls)), "")
    assert printed(monkeypatch, capsys, cls.NAME, "4") == (module_source(cls, [4]), "")
    out, error = printed(monkeypatch, capsys, cls.NAME, "5")
    assert (out, error.splitlines()[-1]) == (
        "",
        f"{HEAD} HeartbeatRequest is declared for versions 0 to 4, not 5",
    )
    for name in ("Heartbeat", "__all__", "JoinGroupRequestProtocol"):
        out, error = printed(monkeypatch, capsys, name)
        assert out == ""
        assert (
            error.splitlines()[-1] == f"{HEAD} no message is named {name!r}: see ringleader.protocol.messages"
        )


HEAD = "python -m ringleader.protocol.codegen: error:"


def test_everything_declared_is_exported() -> None:
    families = [name for name in sys.modules if name.startswith("ringleader.protocol.messages.")]
    assert len(families) == len(list(Path(messages.__file__).parent.glob("[a-z]*.py")))
    declared = {
        name
        for family in families
        for name, found in vars(sys.modules[family]).items()
        if isinstance(found, type) and found.__module__ == family
    }
    assert declared == set(messages.__all__)
    assert all(getattr(messages, name).__doc__ for name in messages.__all__)


@struct
class Part:
    """A struct declared for these tests."""

    name: str = field("string", default="")
    since_two: int = field("int32", versions=(2, LAST), default=7)


@message(key=9999, versions=(0, 3), flexible=3, kind="request")
class SampleRequest(Message):
    """A message declared for these tests, with what no real one has."""

    ids: list[bytes] = array("uuid", factory=list)
    ports: list[int] = array("uint16", factory=list)
    ratio: float = field("float64", default=0.0)
    head: Part = field(Part, factory=Part)
    parts: list[Part] | None = array(Part, nullable=(1, LAST), factory=list)
    names: list[str] = array("string", versions=(3, LAST), factory=list, tag=0, tagged=(3, LAST))
    tail: Part = field(Part, versions=(3, LAST), factory=Part, tag=1, tagged=(3, LAST))


def test_a_declaration_compiles_and_round_trips() -> None:
    value = SampleRequest(
        ids=[bytes(range(16))],
        ports=[0, 65535],
        ratio=0.5,
        head=Part("head"),
        parts=[Part("a"), Part("b")],
        names=["x" * 130],
        tail=Part("tail", 9),
    )
    space: dict[str, Any] = {}
    source = module_source(SampleRequest, versions(SampleRequest))
    assert f"from {__name__} import (" in source
    exec(compile(source, "sample_request", "exec"), space)
    for version in range(4):
        sent = value if version == 3 else SampleRequest(value.ids, value.ports, 0.5, value.head, value.parts)
        body = sent.encode(version)
        assert SampleRequest.decode(body, version) == sent
        assert space[f"encode_v{version}"](sent) == body
        assert space[f"decode_v{version}"](body, 0) == (sent, len(body))


def test_declarations_are_checked() -> None:
    with pytest.raises(TypeError, match="unknown field type 'int33'"):
        field("int33")
    with pytest.raises(TypeError, match="unknown field type 'text'"):
        array("text")


def test_a_class_knows_its_name_key_kind_and_versions() -> None:
    assert (SampleRequest.NAME, SampleRequest.API_KEY, SampleRequest.KIND) == (
        "SampleRequest",
        9999,
        "request",
    )
    assert (SampleRequest.MIN_VERSION, SampleRequest.MAX_VERSION, SampleRequest.FLEXIBLE_VERSION) == (0, 3, 3)
    assert [name for name, _ in fields_of(Part)] == ["name", "since_two"]
    assert SampleRequest().head is not SampleRequest().head


def test_messages_are_equal_by_their_fields_and_show_them() -> None:
    one, other = messages.FindCoordinatorRequest("a"), messages.FindCoordinatorRequest("a")
    assert one == other
    assert one != messages.FindCoordinatorRequest("a", coordinator_keys=["b"])
    assert one != object()
    assert repr(one) == "FindCoordinatorRequest(key='a', key_type=0, coordinator_keys=[])"
    with pytest.raises(TypeError, match="unhashable"):
        hash(one)


def test_a_message_is_built_as_a_dataclass_is() -> None:
    @message(key=99, versions=(0, 0), kind="request")
    class Built(Message):
        first: int = field("int32")
        second: str = field("string", default="two")
        third: list[int] = array("int32", factory=list)

    one, other = Built(1), Built(first=1, second="two", third=[])
    assert one == other
    assert (one.first, one.second, one.third) == (1, "two", [])
    assert one.third is not other.third
    assert Built(3, "4", [5]) == dataclasses.replace(one, first=3, second="4", third=[5])
    with pytest.raises(
        TypeError, match=r"Built\.__init__\(\) missing 1 required positional argument: 'first'"
    ):
        Built()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword argument 'fourth'"):
        Built(1, fourth=4)  # type: ignore[call-arg]


def test_a_class_that_is_never_built_has_no_compiled_init() -> None:
    """Importing the messages is most of what a short process does before its first request."""
    source = "from ringleader.protocol.messages import *\nimport ringleader.protocol.messages as m\n"
    source += "found = [one for one in vars(m).values() if isinstance(one, type)]\n"
    source += "print(len({one.__init__ for one in found}), len(found))"
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    inits, classes = map(int, done.stdout.split())
    assert inits == 1
    assert classes > 200
