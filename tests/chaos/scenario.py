"""A scenario is one JSON file: who works, what is broken when, and which promises have to hold. Read
strictly: a key or a word that is not known is refused with a sentence."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

DIRECTORY = Path(__file__).with_name("scenarios")

Target = Literal["ringleader", "single", "kafka"]
Seconds = Annotated[float, Field(ge=0, le=600)]
Node = Literal["owner", "controller", "any", "every"]
Broker = Literal["state leader", "any", "every"]

Check = Literal[
    "bounds",
    "confirmed owners",
    "given up",
    "one content",
    "one register",
    "owners",
    "porcupine",
    "rebalances",
    "skipped",
    "transactions",
    "turned back",
]
"""Named in `tests.chaos.promises`."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


# ---- who works ----


class Consumers(_Strict):
    """One group of a library's members, who process every record and commit by hand."""

    kind: Literal["consumers"]
    library: Literal["ours", "librdkafka", "aiokafka", "spark"]
    members: int = Field(2, ge=1, le=6)
    protocol: Literal["eager", "cooperative", "consumer"] = "eager"
    """Of the classic protocol, or the consumer protocol (KIP-848)."""
    static: bool = False
    """Each under an instance id of its own."""
    straight: bool = False
    """Records from the brokers, past the nodes."""
    every_s: Seconds = 0.25
    """Between two commits."""
    batch_s: Seconds = 0.0
    """Records that come within this many seconds are processed, and committed, as one batch, as a Spark query
    does."""
    misbehaves: Literal["", "raises", "slow", "exits", "cancels", "forks"] = ""
    """The fault that the application of the first member makes, again and again: its callbacks raise or are
    slow, it exits without a word, it cancels its polls, it forks and the copy uses the consumer."""

    @model_validator(mode="after")
    def _can(self) -> Self:
        if self.library in ("aiokafka", "spark") and self.protocol != "eager":
            raise ValueError(f"{self.library} is an eager member here")
        if self.straight and self.protocol == "consumer":
            raise ValueError("straight is for the classic protocol")
        if self.library == "spark" and (self.static or self.members > 1):
            raise ValueError("a Spark query is one member, without an instance id")
        if self.library != "ours" and (self.misbehaves or self.batch_s or self.straight):
            raise ValueError("misbehaves, batch_s and straight are for ours")
        return self


class Commits(_Strict):
    """Members alone in their groups that do nothing but commit, each try with a token of its own."""

    kind: Literal["commits"]
    groups: int = Field(4, ge=1, le=200)
    partitions: int = Field(1, ge=1, le=200)
    """In each commit."""
    metadata_bytes: int = Field(0, ge=0, le=4_000)
    """As long is the metadata of each partition at least."""
    every_s: Seconds = 0.02


class Churn(_Strict):
    """Members at the level of requests that come and go."""

    kind: Literal["churn"]
    session_ms: int = Field(6_000, ge=6_000, le=60_000)


class Transactions(_Strict):
    """Members of one group that consume, transform and produce, exactly once; and a reader of what they
    wrote."""

    kind: Literal["transactions"]
    members: int = Field(2, ge=1, le=4)
    records: int = Field(20, ge=1, le=500)
    """In a transaction, at most."""
    aborts: int = Field(0, ge=0, le=100)
    """The percentage that is aborted on purpose."""


Work = Annotated[Consumers | Commits | Churn | Transactions, Field(discriminator="kind")]


# ---- what is broken ----


class When(_Strict):
    """When a fault begins: the first moment at which all of it is true."""

    acknowledged: int = Field(0, ge=0)
    """The number of commits acknowledged since faults may come."""
    rebalances: int = Field(0, ge=0)
    """The number of new generations seen since then."""
    begun: int = Field(0, ge=0)
    """The fault of this number has begun; they count from 1."""
    over: int = Field(0, ge=0)
    """The fault of this number is over."""

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not (self.acknowledged or self.rebalances or self.begun or self.over):
            raise ValueError("says nothing: acknowledged, rebalances, begun or over")
        return self


class _Fault(_Strict):
    at_s: Seconds | None = None
    """From the moment that all groups stand, or that `when` is true."""
    when: When | None = None
    for_s: Seconds = 0.0

    @model_validator(mode="after")
    def _has_a_time(self) -> Self:
        if self.at_s is None and self.when is None:
            raise ValueError("has no time: at_s, when, or both")
        return self


class Process(_Fault):
    """SIGKILL, SIGSTOP or SIGTERM for a while; then it is started, or woken."""

    do: Literal["kill", "pause", "stop"]
    on: Literal["owner", "controller", "broker", "state leader"]
    group: int = Field(0, ge=0)
    """The group whose owner or state is meant: the n-th of the run's groups."""


class Roll(_Fault):
    """All are stopped by SIGTERM and started again, one after the other."""

    do: Literal["roll"]
    on: Literal["nodes", "brokers"]
    rounds: int = Field(1, ge=1, le=5)


class Link(_Fault):
    """The fault of a network. `reset`: all connections end with a RST, and new ones, too; `refuse`: so, but
    nobody listens; `half-open`: the other side is gone, and this one does not learn of it; `delay`, `drip`
    (one byte at a time); `cut`: nothing goes through, on one way or both, and no connection ends."""

    do: Literal["reset", "refuse", "half-open", "delay", "drip", "cut"]
    between: Literal["clients and nodes", "nodes and brokers", "nodes and nodes"]
    node: Node = "owner"
    broker: Broker = "state leader"
    """Where it is between nodes and brokers."""
    way: Literal["both", "there", "back"] = "both"
    """There: what clients send to nodes, nodes to brokers, and the other nodes to this one."""
    delay_ms: int = Field(200, ge=1, le=20_000)
    """Of `delay`; and between two bytes of `drip`, in microseconds."""
    group: int = Field(0, ge=0)


class Disk(_Fault):
    """The disk of a single daemon has no room, or is slow."""

    do: Literal["full disk", "slow disk"]
    delay_ms: int = Field(300, ge=1, le=5_000)


class Topic(_Fault):
    """The topic that keeps groups: fewer replicas than it needs are in sync; it is compacted all the time; it
    is deleted."""

    do: Literal["min isr", "compact", "delete topic"]


class Address(_Fault):
    """The owner of a group is killed, and its node id comes back at another address."""

    do: Literal["readdress"]
    group: int = Field(0, ge=0)


Fault = Annotated[Process | Roll | Link | Disk | Topic | Address, Field(discriminator="do")]


class Scenario(_Strict):
    """One file."""

    says: str = Field(min_length=20, max_length=200)
    """The scenario in one sentence."""
    targets: list[Target] = Field(min_length=1)
    work: list[Work] = Field(min_length=1)
    faults: list[Fault] = Field(min_length=1)
    checks: list[Check] = Field(min_length=1)
    alone: bool = False
    """Is not mixed with another one."""
    calm_s: Seconds = 10.0
    """So long after the last fault all work on."""

    @model_validator(mode="after")
    def _holds_together(self) -> Self:
        for number, fault in enumerate(self.faults, 1):
            after = [] if fault.when is None else [fault.when.begun, fault.when.over]
            if any(other >= number for other in after):
                raise ValueError(f"fault {number} waits for fault {max(after)}, which is not before it")
            if wrong := _never(fault, self.targets):
                raise ValueError(f"fault {number}: {wrong}")
        if len({self._key(one) for one in self.work}) < len(self.work):
            raise ValueError("two parts of the work are of one kind")
        if self.checks != sorted(set(self.checks)):
            raise ValueError("checks are sorted, each once")
        if not _cluster_only(self.work) <= set(self.targets):
            raise ValueError("straight is for consumers in front of brokers: target ringleader")
        return self

    @staticmethod
    def _key(one: Any) -> str:
        return one.library if isinstance(one, Consumers) else str(one.kind)


def _cluster_only(work: Sequence[Any]) -> set[str]:
    return {"ringleader"} if any(isinstance(one, Consumers) and one.straight for one in work) else set()


def _never(fault: Any, targets: Sequence[str]) -> str:
    """The reason why a fault cannot be on one of these targets."""
    if isinstance(fault, Disk) and targets != ["single"]:
        return "only a single daemon has a disk of its own"
    if isinstance(fault, Topic) and targets != ["ringleader"]:
        return "only nodes keep groups in a topic of their own"
    if isinstance(fault, Address) and targets != ["ringleader"]:
        return "only nodes have node ids that come back"
    if isinstance(fault, Link) and "kafka" in targets:
        return "links are between nodes and who asks them"
    if isinstance(fault, Link) and fault.between != "clients and nodes" and targets != ["ringleader"]:
        return "a single daemon asks nobody"
    return ""


class ScenarioError(Exception):
    """A file that says nothing that can be played; the text says why, one sentence for each fault."""


def parsed(name: str, text: str) -> Scenario:
    """A file's text. Raises `ScenarioError`."""
    try:
        document = json.loads(text, object_pairs_hook=_without_doubles)
    except ValueError as error:
        raise ScenarioError(f"{name}: {error}.") from None
    try:
        return Scenario.model_validate_json(json.dumps(document))
    except ValidationError as error:
        raise ScenarioError(" ".join(f"{name}: {_sentence(one)}." for one in error.errors())) from None


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    for (one, _), (other, _) in pairwise(sorted(pairs, key=lambda pair: pair[0])):
        if one == other:
            raise ValueError(f"the key {one!r} is there twice")
    return dict(pairs)


def _sentence(error: Any) -> str:
    *before, last = error["loc"] or ("the file",)
    place = ".".join(str(one + 1 if isinstance(one, int) else one) for one in before)
    inside = f" in {place}" if place else ""
    if error["type"] == "extra_forbidden":
        return f"nobody knows the key {last!r}{inside}"
    if error["type"] == "missing":
        return f"the key {last!r} is missing{inside}"
    reason = error["msg"].removeprefix("Value error, ")
    return f"{last}{inside}: {reason[0].lower()}{reason[1:]}, not {error['input']!r}"[:300]


def load(name: str, directory: Path = DIRECTORY) -> Scenario:
    """By its file's name, without ".json". Raises `ScenarioError`."""
    path = directory / f"{name}.json"
    if not path.is_file():
        raise ScenarioError(f"There is no scenario {name!r}: --list shows all.")
    return parsed(path.name, path.read_text(encoding="utf-8"))


def load_all(directory: Path = DIRECTORY) -> dict[str, Scenario]:
    """All of them, by name. Raises `ScenarioError`."""
    return {path.stem: load(path.stem, directory) for path in sorted(directory.glob("*.json"))}
