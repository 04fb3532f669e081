"""Refused requests and changes, as log lines and for the journal. Of refusals few enough are written that no
client fills either by asking."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING

from ringleader.coordinator.clock import Clock, WallClock, wall_ms
from ringleader.coordinator.journal.entries import ChangeKind, ChangeRecord, IncidentKind, printable
from ringleader.coordinator.logs import Log
from ringleader.coordinator.security.acls import Operation, ResourceType
from ringleader.coordinator.server.call import Answerable, Call
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import JoinGroupRequest

if TYPE_CHECKING:
    from ringleader.coordinator.server.gather import Part

LINES_PER_SECOND = 20
CONNECTIONS = 1_000
"""Connections whose refusals are remembered; the one that was refused something longest ago is forgotten."""
LINES_PER_CONNECTION = 20
TEXT_MAX_CHARACTERS = 1_000
"""The beginning of a name or a change that is kept."""

Refusal = tuple[Operation, ResourceType, str]


class Audit:
    """Each refusal once per connection, within the limits above; every change."""

    def __init__(
        self,
        log: Log,
        now_ms: Clock,
        wall_ms: WallClock = wall_ms,
        journal: Callable[[ChangeRecord], None] | None = None,
    ) -> None:
        """`journal`: where it goes besides the log (`JournalWriter.add`), which counts repeated ones."""
        self._log = log
        self._now_ms = now_ms
        self._wall_ms = wall_ms
        self._journal = journal
        self._logged: OrderedDict[Answerable, set[Refusal]] = OrderedDict()
        self._second = 0
        self._lines = 0
        self._left_out = 0

    def refused(self, call: Call | Part, operation: Operation, kind: ResourceType, name: str) -> None:
        """The caller may not do that to this resource."""
        logged = self._logged.setdefault(call.connection, set())
        self._logged.move_to_end(call.connection)
        if len(self._logged) > CONNECTIONS:
            self._logged.popitem(last=False)
        refusal = operation, kind, _cut(name)
        if refusal not in logged and not self._log_refusal(call, refusal, logged):
            return
        if self._journal is not None:
            self._journal(self._refused(call, refusal))

    def _log_refusal(self, call: Call | Part, refusal: Refusal, logged: set[Refusal]) -> bool:
        if len(logged) >= LINES_PER_CONNECTION:
            return False
        second = self._now_ms() // 1_000
        if second != self._second:
            self._second, self._lines = second, 0
        if self._lines >= LINES_PER_SECOND:
            self._left_out += 1
            return False
        self._lines += 1
        logged.add(refusal)
        left_out = {"left_out_before": self._left_out} if self._left_out else {}
        self._left_out = 0
        operation, kind, name = refusal
        self._log.info(
            "refused",
            principal=_shown(str(call.connection.principal)),
            host=call.client_host[1:],
            client_id=_shown(call.client_id or ""),
            operation=operation.name,
            resource=_shown(f"{kind.name} {name}"),
            **left_out,
        )
        return True

    def _refused(self, call: Call | Part, refusal: Refusal) -> ChangeRecord:
        operation, kind, name = refusal
        request = getattr(call, "request", None)
        join = request if isinstance(request, JoinGroupRequest) else None
        return ChangeRecord(
            ChangeKind.REFUSED,
            IncidentKind.JOIN_REFUSED.value if join else ChangeKind.REFUSED.value,
            self._wall_ms(),
            _cut(str(call.connection.principal)),
            _cut(call.client_id or ""),
            call.client_host,
            _cut(f"{kind.name} {name}"),
            operation.name,
            group_id=_cut(name) if kind is ResourceType.GROUP else "",
            member_id=_cut(join.member_id) if join else "",
            error=ErrorCode.GROUP_AUTHORIZATION_FAILED if join else ErrorCode.NONE,
        )

    def changed(
        self, call: Call | Part, event: str, subject: str, detail: str = "", *, group_id: str = ""
    ) -> None:
        """The caller did that: one log line, and one record of the journal. `event`: in words, such as "topic
        created"; `subject`: the thing that was changed; `detail`: its new state. No secrets."""
        principal = str(call.connection.principal)
        subject, detail = _cut(subject), _cut(detail)
        self._log.info(
            event,
            principal=_shown(principal),
            host=call.client_host[1:],
            client_id=_shown(call.client_id or ""),
            subject=_shown(subject),
            **({"detail": _shown(detail)} if detail else {}),
        )
        if self._journal is not None:
            self._journal(
                ChangeRecord(
                    ChangeKind.CHANGED,
                    event,
                    self._wall_ms(),
                    _cut(principal),
                    _cut(call.client_id or ""),
                    call.client_host,
                    subject,
                    detail,
                    group_id,
                )
            )


def _cut(text: str) -> str:
    return text if len(text) <= TEXT_MAX_CHARACTERS else f"{text[:TEXT_MAX_CHARACTERS]}..."


def _shown(text: str) -> str:
    """As a terminal may get it: what clients choose themselves may hold its control codes."""
    return printable(text, TEXT_MAX_CHARACTERS)
