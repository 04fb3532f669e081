"""The deeds done to groups, written down by the process that did them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from ringleader.insight.model import Cause, Departure

RETURNED = (Cause.MEMBER_JOINED, Cause.MEMBER_RESTARTED)
"""A member that was put out and joins again: under the name that it had."""


@dataclass(slots=True)
class Incident:
    """One thing that was done to one group. Times are Unix ms."""

    group: str
    kind: str
    what: str
    """A sentence."""
    client: str
    """The library of whom it was done to."""
    protocol: str
    """range, cooperative-sticky, or consumer."""
    commits: str
    """How often the members commit."""
    client_ids: list[str]
    """Client ids of those who caused it; empty: no member did."""
    began_ms: int
    ended_ms: int = 0
    """When the group had settled."""
    causes: list[Cause] = field(default_factory=list)
    """Causes that may be reported; each of them is right. Empty: that there was no rebalance."""
    also: list[Cause] = field(default_factory=list)
    """Causes that may be reported of further rebalances that followed from it."""
    quiet: bool = False
    """It may pass without a rebalance."""
    departures: dict[str, list[Departure]] = field(default_factory=dict)
    """Client id -> how it went; each of them is right."""
    phases: dict[str, int] = field(default_factory=dict)
    """Phase of the rebalance (`leader_ms`, `join_ms`) -> how long it was at least."""
    slowest: str = ""
    """Client id of whom the join phase waited for."""
    shown: bool = True
    """Whether anything that can be read shows it; where not, `unknown` is right."""
    settled: bool = True
    """False: the group did not come to rest, so that nothing is expected."""


HEARD: dict[Cause, tuple[Cause, ...]] = {
    Cause.POLL_INTERVAL_EXCEEDED: (Cause.MEMBER_LEFT,),
    Cause.MEMBER_RESTARTED: (Cause.MEMBER_JOINED, Cause.MEMBER_LEFT),
    Cause.TOPICS_CHANGED: (Cause.LEADER_REJOINED, Cause.MEMBER_CHANGED),
    Cause.INSTANCE_FENCED: (Cause.STATIC_MEMBER_REPLACED,),
    Cause.COORDINATOR_CHANGED: (Cause.LEADER_REJOINED,),
}
"""The reason that clients give their coordinator in such a case: for its journal that is the cause."""


def heard(incident: Incident) -> Incident:
    """The same for a cluster whose coordinator writes down what it knows: nothing is hidden from that."""
    causes = [*incident.causes, *(heard for cause in incident.causes for heard in HEARD.get(cause, ()))]
    departures = {
        name: [*whys, Departure.LEFT] if Departure.POLL_INTERVAL_EXCEEDED in whys else whys
        for name, whys in incident.departures.items()
    }
    # Two that take an instance id from each other, and a restart, need no rebalance.
    quiet = incident.quiet or Cause.INSTANCE_FENCED in causes
    # A member that joins again sends its current metadata, so the member's protocols change.
    also = [*incident.also, Cause.REBALANCE_CONTINUED, Cause.LEADER_REJOINED, Cause.MEMBER_CHANGED]
    return replace(incident, causes=causes, departures=departures, quiet=quiet, also=also, shown=True)


def write(path: Path, incidents: Iterable[Incident]) -> None:
    """One JSON object a line."""
    path.write_text("".join(json.dumps(asdict(one)) + "\n" for one in incidents))


def read(path: Path) -> list[Incident]:
    """Read back the file that `write` wrote."""
    found = []
    for line in path.read_text().splitlines():
        one = Incident(**json.loads(line))
        one.causes = [Cause(cause) for cause in one.causes]
        one.also = [Cause(cause) for cause in one.also]
        one.departures = {name: [Departure(why) for why in whys] for name, whys in one.departures.items()}
        found.append(one)
    return found
