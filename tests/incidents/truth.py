"""How members went by a broker's own log: the coordinator's word, over what was meant to happen."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from ringleader.insight.model import Cause, Departure
from tests.incidents.ledger import RETURNED, Incident

_LEFT, _EXPIRED, _LATE = Departure.LEFT, Departure.SESSION_EXPIRED, Departure.NOT_REJOINED
_LINES = (
    (re.compile(r"Member (\S+) in group (?P<group>\S+) has failed, removing"), _EXPIRED),
    (re.compile(r"Group (?P<group>\S+) removed dynamic members who haven't joined: \[(.*)\]"), _LATE),
    (re.compile(r"\[Group (?P<group>\S+)\] Member (\S+) has left group through explicit"), _LEFT),
    (
        re.compile(r"\[GroupId (?P<group>\S+)\] Member (\S+) fenced from the group because the member"),
        _EXPIRED,
    ),
    (re.compile(r"\[GroupId (?P<group>\S+)\] Member (\S+) fenced from the group because it failed"), _LATE),
    (re.compile(r"\[GroupId (?P<group>\S+)\] Member (\S+) left the consumer group"), _LEFT),
    (
        re.compile(r"\[GroupId (?P<group>\S+)\] Static member (\S+) with instance id \S+ (?:has )?left "),
        _LEFT,
    ),
)
_ALSO = {
    _LEFT: (Departure.POLL_INTERVAL_EXCEEDED, Departure.RESTARTED, Departure.REMOVED),
    # librdkafka's sessions end while its application is busy.
    _EXPIRED: (Departure.POLL_INTERVAL_EXCEEDED,),
    _LATE: (Departure.POLL_INTERVAL_EXCEEDED,),
}
"""The broker's view of a departure -> the reasons that it hides."""
_CAUSES = {_LEFT: Cause.MEMBER_LEFT, _EXPIRED: Cause.SESSION_EXPIRED, _LATE: Cause.POLL_INTERVAL_EXCEEDED}


class Went(NamedTuple):
    """A member that the coordinator put out, or that left."""

    at_ms: int
    group: str
    member_id: str
    why: Departure


def logged(path: Path) -> Iterator[Went]:
    """All of a broker's log."""
    for line in path.read_text(errors="replace").splitlines():
        for pattern, why in _LINES:
            if (found := pattern.search(line)) is not None:
                names = next(one for one in found.groups() if one != found["group"])
                at_ms = int(datetime.strptime(line[:23], "%Y-%m-%d %H:%M:%S,%f").timestamp() * 1000)
                for name in names.split(", "):
                    yield Went(at_ms, found["group"], name, why)
                break


def corrected(
    incidents: Iterable[Incident], went: Iterable[Went], clients: Mapping[str, str]
) -> list[Incident]:
    """The incidents with what the broker saw in their time. `clients`: member id -> client id."""
    by_group: dict[str, list[Went]] = {}
    for one in went:
        by_group.setdefault(one.group, []).append(one)
    lists: dict[str, list[Incident]] = {}
    for incident in sorted(incidents, key=lambda one: one.began_ms):
        lists.setdefault(incident.group, []).append(incident)
    found = []
    for group, done in lists.items():
        ends_ms = [later.began_ms for later in done[1:]] + [1 << 62]
        for incident, end_ms in zip(done, ends_ms, strict=True):
            seen = [one for one in by_group.get(group, ()) if incident.began_ms <= one.at_ms < end_ms]
            found.append(_corrected(incident, seen, clients))
    return found


def _corrected(incident: Incident, seen: Iterable[Went], clients: Mapping[str, str]) -> Incident:
    departures, causes = dict(incident.departures), list(incident.causes)
    also, client_ids = list(incident.also), list(incident.client_ids)
    for one in seen:
        client = clients.get(one.member_id)
        if client is None:
            continue  # it came and went between two records
        meant = incident.departures.get(client, ())
        departures[client] = [one.why, *(why for why in meant if why in _ALSO[one.why])]
        if meant and one.why not in meant:
            causes.append(_CAUSES[one.why])
        if not meant:
            # Nobody did that: a busy machine, or what a client does by itself; its process goes on.
            also += [_CAUSES[one.why], *RETURNED]
            client_ids.append(client)
    return replace(
        incident,
        causes=causes,
        departures=departures,
        also=also,
        client_ids=client_ids if incident.client_ids else [],
    )
