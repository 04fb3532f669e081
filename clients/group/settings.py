"""Settings of a member, under the Java consumer's names where it has them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from ringleader.clients.assignors import ASSIGNORS, lag_aware, weight_user_data
from ringleader.clients.assignors.lag import DEFAULT_IMBALANCE
from ringleader.clients.checks import MAX_INT64, check_bounds, check_fields
from ringleader.clients.model import OffsetReset
from ringleader.clients.reset import check_reset

GROUP_INSTANCE_ID_MAX_CHARACTERS = 249
"""As the Java client limits it."""


GivenUp = Callable[[bytes, bytes], bytes | None]
"""From the assignment that a member holds and the one that it is given now: what it has to give up, in the
same form; None for nothing. Keep it quick: it runs in the member's own thread."""

GroupProtocol = Literal["classic", "consumer"]
LAG_AWARE = lag_aware({}).name
DELEGATED = "client:"
"""Before the name of an assignor in `group_remote_assignor`: a member computes it."""


def offered() -> set[str]:
    """The assignors that a member can offer: an application may put its own into `ASSIGNORS` at any time."""
    return {*ASSIGNORS, LAG_AWARE}


def is_cooperative(name: str) -> bool:
    """Whether an offered assignor moves a partition only after its owner gave it up."""
    return name == LAG_AWARE or ASSIGNORS[name].cooperative


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberSettings:
    """How a member behaves. Times in milliseconds. Raises ValueError for values that cannot work."""

    group_id: str
    protocol_type: str = "consumer"
    """The kind of the group, the same for all its members."""
    group_instance_id: str | None = None
    """Makes the member static (KIP-345)."""
    session_timeout_ms: int = 45_000
    """The coordinator removes a member that is silent for this time."""
    rebalance_timeout_ms: int = 300_000
    """How long a rebalance waits for this member to give up its assignment and to join again."""
    heartbeat_interval_ms: int = 3_000
    request_timeout_ms: int = 30_000
    """For requests that the coordinator answers at once. JoinGroup and SyncGroup get the rebalance timeout
    plus 5 s if that is longer."""
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    given_up: GivenUp | None = None
    """Makes the member cooperative (KIP-429): it keeps its assignment while it joins again, then gives up
    what is not in the new one, and joins once more so that others can have it. Without it, and after a
    generation with a protocol that is `eager`, the member gives up everything before it joins."""
    max_poll_interval_ms: int | None = None
    """A member whose application holds an assignment for this time without a sign of progress (`polled`)
    leaves; None: never. The Java consumer's default is 300000; other than there it is not the rebalance
    timeout."""
    quiesce_timeout_ms: int | None = None
    """A revocation waits at most this time for work in hand and `on_revoked` together; None: as long as the
    rebalance allows."""
    auto_commit_interval_ms: int | None = None
    """Stored offsets are committed at this interval, and before each rejoin, revocation's end and leaving;
    None: not at all."""
    auto_commit_timeout_ms: int = 5_000
    """Before a rejoin, a revocation's end and leaving, commits get at most this time."""
    enable_metrics_push: bool = True
    """Whether the member tells a coordinator that asks for it how the application polls (KIP-714)."""
    leave_timeout_ms: int = 5_000
    """How long leaving waits for the coordinator's answer; without it the session timeout does the rest."""

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.group_id:
            raise ValueError("group_id is empty")
        if not self.protocol_type:
            raise ValueError("protocol_type is empty")
        instance = self.group_instance_id
        if instance is not None and not 0 < len(instance) <= GROUP_INSTANCE_ID_MAX_CHARACTERS:
            raise ValueError(f"group_instance_id needs 1 to {GROUP_INSTANCE_ID_MAX_CHARACTERS} characters")
        check_bounds(self, "session_timeout_ms", "rebalance_timeout_ms", "heartbeat_interval_ms", least=1)
        check_bounds(self, "request_timeout_ms", "leave_timeout_ms", "max_poll_interval_ms", least=1)
        check_bounds(self, "quiesce_timeout_ms", "auto_commit_interval_ms", least=1)
        check_bounds(self, "retry_backoff_ms", "retry_backoff_max_ms", "auto_commit_timeout_ms")
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise ValueError("heartbeat_interval_ms has to be above 0 and below session_timeout_ms")

    @property
    def cooperative(self) -> bool:
        """Whether the member keeps its assignment while it rejoins."""
        return self.given_up is not None

    @property
    def parked_timeout_ms(self) -> int:
        """For requests that the coordinator may hold back until a rebalance is over."""
        return min(max(self.request_timeout_ms, self.rebalance_timeout_ms + 5_000), 2**31 - 1)

    @property
    def heartbeat_timeout_ms(self) -> int:
        """A heartbeat unanswered for this time is repeated on a new connection, before the session ends."""
        return min(self.request_timeout_ms, max(self.heartbeat_interval_ms, self.session_timeout_ms // 3))

    @property
    def hold_margin_ms(self) -> int:
        """The wait for `on_revoked` ends this time before the end of the rebalance timeout, to be early
        enough."""
        return min(1_000, self.rebalance_timeout_ms // 10)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionSettings:
    """How a member subscribes to topics, and how it leads. Raises ValueError for what cannot work."""

    group_protocol: GroupProtocol = "classic"
    """"consumer": the coordinator assigns, and moves partitions one by one (KIP-848, Apache Kafka 4.0 and
    newer). Session timeout, heartbeat interval and assignor are the coordinator's then."""
    group_remote_assignor: str | None = None
    """With group_protocol="consumer": the coordinator's assignor that this member votes for, "uniform" or
    "range", or "client:" and the name of one of `ringleader.clients.assignors.ASSIGNORS`, which a member of
    the group computes (a coordinator of Ringleader only); None leaves it to the coordinator."""
    assignors: Sequence[str] = ("cooperative-sticky", "range", "roundrobin")
    """Names out of `ringleader.clients.assignors.ASSIGNORS`, or "lag-aware", in order of preference. The
    group settles on one that all its members offer; while it is a cooperative one, the member keeps its
    partitions while the group rebalances. These three meet what other clients offer by themselves."""
    rack: str | None = None
    """Where this member is (KIP-881)."""
    weight: float = 1.0
    """The weight of this member, for the assignor "weighted"."""
    assignor_user_data: bytes = b""
    """For an assignor of your own, which reads it as `AssignorMember.user_data`."""
    imbalance: float = DEFAULT_IMBALANCE
    """"lag-aware": 0.1 lets a member have a tenth more than the mean before anything moves for it."""
    lag_check_ms: int | None = None
    """"lag-aware": how often the leader looks at the lag; None: at rebalances only."""
    metadata_max_age_ms: int = 30_000
    """How often the leader looks at the group's topics, and a member with a pattern at all topics."""
    auto_offset_reset: OffsetReset = "latest"
    """Where the group begins in a partition in which it has committed nothing."""

    def __post_init__(self) -> None:
        check_fields(self)
        check_reset(self.auto_offset_reset)
        if self.group_remote_assignor is not None and self.group_protocol == "classic":
            raise ValueError('group_remote_assignor needs group_protocol="consumer"; otherwise use assignors')
        if self.group_remote_assignor == "":
            raise ValueError("group_remote_assignor is empty: leave it out for the coordinator's choice")
        if self.own_assignor is not None and self.own_assignor not in offered():
            text = f"unknown assignor {self.own_assignor!r} in group_remote_assignor"
            raise ValueError(f"{text}; there are {sorted(offered())}")
        if not self.assignors:
            raise ValueError(f"assignors is empty; there are {sorted(offered())}")
        unknown = sorted(set(self.assignors) - offered())
        if unknown:
            raise ValueError(f"unknown assignors {unknown}; there are {sorted(offered())}")
        check_bounds(self, "lag_check_ms", least=1)
        check_bounds(self, "metadata_max_age_ms", least=1, most=MAX_INT64)
        weight_user_data(self.weight)
        lag_aware({}, self.imbalance)

    @property
    def own_assignor(self) -> str | None:
        """The assignor in `group_remote_assignor` that members compute; None: it is one of the
        coordinator."""
        name = self.group_remote_assignor
        return None if name is None or not name.startswith(DELEGATED) else name.removeprefix(DELEGATED)

    @property
    def cooperative(self) -> bool:
        """Whether a member with these assignors may keep its partitions while it joins again."""
        return any(is_cooperative(name) for name in self.assignors)
