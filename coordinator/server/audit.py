"""What somebody was refused, and who changed ACLs, as log lines: of refusals few enough that nobody fills
a log by asking."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from ringleader.coordinator.clock import Clock
from ringleader.coordinator.logs import Log
from ringleader.coordinator.security.acls import AclBinding, Operation, ResourceType
from ringleader.coordinator.server.call import Answerable, Call

if TYPE_CHECKING:
    from ringleader.coordinator.server.gather import Part

LINES_PER_SECOND = 20
CONNECTIONS = 1_000
"""Of so many it is known what was logged; the one that was refused something longest ago is forgotten."""
LINES_PER_CONNECTION = 20

Refusal = tuple[Operation, ResourceType, str]


class Audit:
    """Each refusal once per connection, within the limits above."""

    def __init__(self, log: Log, now_ms: Clock) -> None:
        self._log = log
        self._now_ms = now_ms
        self._told: OrderedDict[Answerable, set[Refusal]] = OrderedDict()
        self._second = 0
        self._lines = 0
        self._left_out = 0

    def refused(self, call: Call | Part, operation: Operation, kind: ResourceType, name: str) -> None:
        """Who asks may not do that to this resource."""
        told = self._told.setdefault(call.connection, set())
        self._told.move_to_end(call.connection)
        if len(self._told) > CONNECTIONS:
            self._told.popitem(last=False)
        if (operation, kind, name) in told or len(told) >= LINES_PER_CONNECTION:
            return
        second = self._now_ms() // 1_000
        if second != self._second:
            self._second, self._lines = second, 0
        if self._lines >= LINES_PER_SECOND:
            self._left_out += 1
            return
        self._lines += 1
        told.add((operation, kind, name))
        left_out = {"left_out_before": self._left_out} if self._left_out else {}
        self._left_out = 0
        self._log.info(
            "refused",
            principal=str(call.connection.principal),
            host=call.client_host[1:],
            client_id=call.client_id,
            operation=operation.name,
            resource=f"{kind.name} {name}",
            **left_out,
        )

    def acl_changed(self, call: Call, event: str, acl: AclBinding) -> None:
        """Who asked made or deleted this ACL."""
        self._log.info(
            event,
            by=str(call.connection.principal),
            host=call.client_host[1:],
            acl=f"{acl.permission.name} {acl.principal} {acl.operation.name} from {acl.host} "
            f"on {acl.resource_type.name} {acl.pattern_type.name} {acl.name}",
        )
