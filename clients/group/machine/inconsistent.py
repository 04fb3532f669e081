"""The error of a member whose protocols a group does not accept: its members, and what to change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ringleader.clients.errors import InconsistentGroupProtocolError, MembershipError, fatal_error
from ringleader.clients.group.settings import MemberSettings, offered
from ringleader.clients.model import MemberProtocol
from ringleader.protocol.errors import ErrorCode

SHOWN = 3
CONSUMER = "consumer"


def inconsistent(
    settings: MemberSettings, protocols: Sequence[MemberProtocol], response: Any
) -> MembershipError:
    """The error, with facts from the answer to DescribeGroups; None: there is no answer."""
    group_id, code = settings.group_id, ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    group = None if response is None else response.groups[0]
    if group is None or group.error_code or not group.members:
        return fatal_error("JoinGroup", group_id, code)
    if group.protocol_type != settings.protocol_type:
        text = (
            f"group {group_id!r} is a group of type {group.protocol_type!r}, and this member's type is "
            f"{settings.protocol_type!r}: choose another group id"
        )
        return InconsistentGroupProtocolError(text, code)
    option = "assignors" if settings.protocol_type == CONSUMER else "protocols"
    theirs, mine = group.protocol_data, [protocol.name for protocol in protocols]
    used = f"uses {theirs}" if theirs else "knows none of them"
    if settings.protocol_type == CONSUMER and theirs and theirs not in offered():
        change = f"there is no assignor {theirs!r} here: configure one of {', '.join(mine)} in the others"
    else:
        change = f"pass {option}={[theirs or '...']} with what all of them offer"
    names = sorted({f"{one.client_id} at {one.client_host.lstrip('/')}" for one in group.members})
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    text = (
        f"group {group_id!r} {used} ({'clients' if len(names) > 1 else 'client'} "
        f"{', '.join(names[:SHOWN])}{more}); this member offers {', '.join(mine)}: {change}"
    )
    return InconsistentGroupProtocolError(text, code)
