"""Members with the default assignors in one group with consumers of other libraries and their defaults: they
join in either order, and no partition ever has two owners."""

from __future__ import annotations

from typing import Any

import pytest

from ringleader.clients.errors import InconsistentGroupProtocolError
from ringleader.clients.group.leading.leader import Leading
from ringleader.clients.group.leading.matching import Choice
from ringleader.clients.group.settings import SubscriptionSettings
from ringleader.clients.group.subscription import consumer_member
from ringleader.clients.model import Assigned, MemberInfo
from ringleader.protocol.embedded import Assignment, Subscription
from ringleader.testing.coordinator import Coordinator
from tests.support.beside import THEIRS, Ledger, ours_first, their, theirs_first
from tests.support.members import Stage


@pytest.mark.parametrize("library", THEIRS)
async def test_ours_first(coordinator: Coordinator, library: str) -> None:
    await ours_first(library, coordinator.bootstrap, "g")


@pytest.mark.parametrize("library", THEIRS)
async def test_theirs_first(coordinator: Coordinator, library: str) -> None:
    await theirs_first(library, coordinator.bootstrap, "g")


@pytest.mark.parametrize(
    ("library", "uses"), [("aiokafka", "roundrobin"), ("kafka-python", "range"), ("confluent-kafka", "range")]
)
async def test_a_member_without_a_common_assignor_learns_what_to_change(
    coordinator: Coordinator, library: str, uses: str
) -> None:
    ledger = Ledger()
    async with Stage() as stage:
        await stage.enter(their(library, ledger, coordinator.bootstrap, "g", "their-app"))
        await ledger.until_owned({"their-app": (0, 1, 2, 3)})
        member = consumer_member(coordinator.bootstrap, "g", "t", assignors=["cooperative-sticky"])
        with pytest.raises(InconsistentGroupProtocolError) as caught:
            async with member:
                await member.wait_assigned(20)
    assert str(caught.value) == (
        f"group 'g' uses {uses} (client their-app at 127.0.0.1); this member offers cooperative-sticky: "
        f"pass assignors=['{uses}'] with what all of them offer"
    )


def info(name: str, owned: dict[str, list[int]] | None = None, generation: int = -1) -> MemberInfo:
    return MemberInfo(name, None, Subscription(["t"], None, owned or {}, generation).encode())


async def test_a_leader_of_ours_lets_nobody_have_what_is_held() -> None:
    """The claims of a member count, of its newest generation; and all rebalance once more."""
    member = consumer_member("h:1", "g", "t")
    leading = Leading(Choice(["t"], None), SubscriptionSettings())
    leading.bind(member.settings, member.machine)
    members = [info("a", {"t": [0, 1]}, 3), info("b", {"t": [1, 2]}, 4), info("c")]
    cluster: Any = None  # it does not have to ask
    given = await leading.lead(cluster, "range", members)
    shares = {name: Assignment.decode(share).partitions for name, share in given.items()}
    assert shares == {"a": {"t": [0]}, "b": {"t": [1, 2]}, "c": {}}


async def test_a_member_that_missed_the_round_that_asks_for_everything_is_asked_again() -> None:
    """`b` was too slow for the SyncGroup of generation 5: it has still not given up what it holds since 4."""
    member = consumer_member("h:1", "g", "t")
    leading = Leading(Choice(["t"], None), SubscriptionSettings())
    leading.bind(member.settings, member.machine)
    member.machine.state.last_held = Assigned(5, "a", "a", "roundrobin", b"")
    members = [info("a", {}, 5), info("b", {"t": [1, 2]}, 4), info("eager claims", {"t": [3]}, 5)]
    cluster: Any = None  # it does not have to ask
    given = await leading.lead(cluster, "roundrobin", members)
    shares = {name: Assignment.decode(share).partitions for name, share in given.items()}
    assert shares == {"a": {}, "b": {"t": [1, 2]}, "eager claims": {}}
