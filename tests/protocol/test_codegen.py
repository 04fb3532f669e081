"""What is committed is what the declarations say; writing and comparing; lazy loading; declaring."""

from __future__ import annotations

import ast
import dataclasses
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ringleader.protocol import codegen, messages
from ringleader.protocol.codec import decoder, encoder, module_name
from ringleader.protocol.schema import LAST, Message, array, field, fields_of, message, struct
from tests.support.wire_values import MESSAGES


def run(monkeypatch: pytest.MonkeyPatch, output: Path, *arguments: str) -> int:
    monkeypatch.setattr(codegen, "OUTPUT", output)
    monkeypatch.setattr(sys, "argv", ["codegen", *arguments])
    return codegen.main()


def test_what_is_committed_is_what_is_generated() -> None:
    committed = {path.name: path.read_text() for path in codegen.OUTPUT.glob("*.py")}
    assert committed == codegen.generate()


def test_check_compares_and_a_run_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, tmp_path, "--check") == 1
    assert "heartbeat_request.py is not what the declarations say" in capsys.readouterr().out
    assert run(monkeypatch, tmp_path) == 0
    assert run(monkeypatch, tmp_path, "--check") == 0
    (tmp_path / "heartbeat_request.py").write_text("# changed by hand\n")
    (tmp_path / "no_such_message.py").write_text("")
    capsys.readouterr()
    assert run(monkeypatch, tmp_path, "--check") == 1
    said = capsys.readouterr().out.splitlines()
    assert said == [
        "protocol/_generated/heartbeat_request.py is not what the declarations say",
        "protocol/_generated/no_such_message.py is not what the declarations say",
        "run: python -m ringleader.protocol.codegen",
    ]
    assert run(monkeypatch, tmp_path) == 0
    assert capsys.readouterr().out.endswith("2 changed\n")
    assert not (tmp_path / "no_such_message.py").exists()
    assert run(monkeypatch, tmp_path, "--check") == 0


@pytest.mark.parametrize("cls", MESSAGES, ids=lambda cls: cls.__name__)
def test_generated_functions_are_typed_and_say_their_version(cls: type[Message]) -> None:
    tree = ast.parse((codegen.OUTPUT / f"{module_name(cls)}.py").read_text())
    functions = {node.name: ast.unparse(node.args) for node in tree.body if isinstance(node, ast.FunctionDef)}
    versions = range(cls.MIN_VERSION, cls.MAX_VERSION + 1)
    reads = "data: bytes, pos: int" + (", budget: int=UNLIMITED" if cls.KIND == "request" else "")
    in_pieces = {name for name in functions if name.startswith("encode_pieces_")}
    assert functions == {
        **{f"decode_v{version}": reads for version in versions},
        **{f"encode_v{version}": f"message: {cls.__name__}" for version in versions},
        **dict.fromkeys(in_pieces, f"message: {cls.__name__}"),
    }
    assert in_pieces <= {f"encode_pieces_v{version}" for version in versions if cls.KIND == "response"}
    for version in versions:
        assert decoder(cls, version).__name__ == f"decode_v{version}"
        assert encoder(cls, version).__name__ == f"encode_v{version}"


def test_generated_modules_load_on_first_use() -> None:
    program = """
import sys
import ringleader.protocol.frames
from ringleader.protocol.messages import HeartbeatRequest
loaded = lambda: sorted(name for name in sys.modules if name.startswith("ringleader.protocol._generated."))
assert loaded() == [], loaded()
HeartbeatRequest().encode(4)
assert loaded() == ["ringleader.protocol._generated.heartbeat_request"], loaded()
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_everything_declared_is_exported() -> None:
    families = [name for name in sys.modules if name.startswith("ringleader.protocol.messages.")]
    assert len(families) == len(list(codegen.OUTPUT.parent.glob("messages/[a-z]*.py")))
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
    space: dict[str, Any] = {}
    source = codegen.module_source(SampleRequest)
    assert f"from {__name__} import (" in source
    exec(compile(source, "sample_request", "exec"), space)
    value = SampleRequest(
        ids=[bytes(range(16))],
        ports=[0, 65535],
        ratio=0.5,
        head=Part("head"),
        parts=[Part("a"), Part("b")],
        names=["x" * 130],
        tail=Part("tail", 9),
    )
    for version in range(4):
        sent = value if version == 3 else SampleRequest(value.ids, value.ports, 0.5, value.head, value.parts)
        body = space[f"encode_v{version}"](sent)
        assert space[f"decode_v{version}"](body, 0) == (sent, len(body))


def test_declarations_are_checked() -> None:
    with pytest.raises(TypeError, match="unknown field type 'int33'"):
        field("int33")
    with pytest.raises(TypeError, match="unknown field type 'text'"):
        array("text")


def test_what_a_class_says_of_itself() -> None:
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


def test_what_nobody_builds_is_not_compiled() -> None:
    """Importing the messages is most of what a short process does before its first request."""
    source = "from ringleader.protocol.messages import *\nimport ringleader.protocol.messages as m\n"
    source += "found = [one for one in vars(m).values() if isinstance(one, type)]\n"
    source += "print(len({one.__init__ for one in found}), len(found))"
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    inits, classes = map(int, done.stdout.split())
    assert inits == 1
    assert classes > 200
