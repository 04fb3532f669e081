"""Requests and answers as a trace has them, and what members know after an answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    SyncGroupResponse,
)
from tests.simulation.consumer.classic import LOST, ClassicMember
from tests.simulation.consumer.member import ModelMember
from tests.spec.traces import Line

Places = Callable[[Any], set[str]]
"""The names of some partitions, each a topic id and a number."""


def request_line(
    member: ModelMember, request: ConsumerGroupHeartbeatRequest, life: int, places: Places
) -> Line:
    """A request as a trace has it. `life`: of which process it is."""
    return {
        "epoch": request.member_epoch,
        "owned": places(member.owned),
        "says": request.topic_partitions is not None,
        "full": request.rebalance_timeout_ms != -1,
        "life": life,
    }


def heard(member: ModelMember, response: ConsumerGroupHeartbeatResponse, places: Places) -> Line:
    """An answer, and the knowledge of a member that has acted on it."""
    answer: Line = {"ok": not response.error_code}
    if answer["ok"]:
        given = () if response.assignment is None else response.assignment.topic_partitions
        answer["epoch"], answer["news"] = response.member_epoch, response.assignment is not None
        answer["again"] = False
        answer["all"] = places((one.topic_id, number) for one in given for number in one.partitions)
    client = {
        "epoch": member.epoch,
        "owned": places(member.owned),
        "wanted": places(member.wanted or ()),
        "full": bool(response.error_code),
    }
    return {"answer": answer, "client": client}


def request_by_classic(member: ClassicMember, life: int, owned: set[str]) -> Line:
    """Likewise, of a classic member. `owned`: what it reports, when it joins."""
    epoch = max(0, member.epoch)
    return {"does": member.does, "epoch": epoch, "owned": owned, "says": True, "full": False, "life": life}


def heard_by_classic(member: ClassicMember, response: Any, places: Places) -> Line:
    """Likewise."""
    epoch, owned, code = max(0, member.epoch), places(member.owned), response.error_code
    answer: Line = {"ok": code not in LOST}
    if answer["ok"]:
        assert code in (0, ErrorCode.REBALANCE_IN_PROGRESS), response
        synced = isinstance(response, SyncGroupResponse) and not code
        answer |= {"epoch": epoch, "again": bool(code), "news": synced, "all": owned if synced else set()}
    return {"answer": answer, "client": {"epoch": epoch, "owned": owned, "does": member.does}}
