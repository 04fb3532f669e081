"""Settings of a member, under the Java consumer's names where it has them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

GROUP_INSTANCE_ID_MAX_CHARACTERS = 249
"""As the Java client limits it."""


GivenUp = Callable[[bytes, bytes], bytes | None]
"""From the share that a member holds and the one that it is given now: what it has to give up, in the same
form; None for nothing. Keep it quick: it runs in the member's own thread."""


WIRE_MAX_MS = 2**31 - 1
"""The longest time that a request can say."""


def check_whole(settings: object, *names: str, least: int = 0) -> None:
    """Raises ValueError for a field that is no whole number, or less than that."""
    for name in names:
        value = getattr(settings, name)
        if not isinstance(value, int):
            raise ValueError(f"{name} has to be a whole number, not {value!r}")
        if value < least:
            raise ValueError(f"{name} has to be {'above' if least else 'at least'} 0, not {value}")


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberSettings:
    """How a member behaves. Times in milliseconds. Raises ValueError for values that cannot work."""

    group_id: str
    protocol_type: str = "consumer"
    """What kind of group it is; all members must say the same."""
    group_instance_id: str | None = None
    """Makes the member static (KIP-345)."""
    session_timeout_ms: int = 45_000
    """The coordinator removes a member that is silent for so long."""
    rebalance_timeout_ms: int = 300_000
    """How long a rebalance waits for this member to give up its share and to join again."""
    heartbeat_interval_ms: int = 3_000
    request_timeout_ms: int = 30_000
    """For requests that the coordinator answers at once. JoinGroup and SyncGroup get the rebalance timeout
    plus 5 s if that is longer."""
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    given_up: GivenUp | None = None
    """Makes the member cooperative (KIP-429): it keeps its share while it joins again, then gives up what is
    not in the new one, and joins once more so that others can have it. Without it the member is eager: it
    gives up everything before it joins."""
    max_poll_interval_ms: int | None = None
    """A member whose application holds a share for so long without a sign of progress (`polled`) leaves;
    None: never. The Java consumer's default is 300000; other than there it is not the rebalance timeout."""
    quiesce_timeout_ms: int | None = None
    """A revocation waits at most so long for work in hand and `on_revoked` together; None: as long as the
    rebalance allows."""
    auto_commit_interval_ms: int | None = None
    """Stored offsets are committed so often, and before each rejoin, revocation's end and leaving; None: not
    at all."""
    auto_commit_timeout_ms: int = 5_000
    """Before a rejoin, a revocation's end and leaving, commits get at most so long."""
    leave_timeout_ms: int = 5_000
    """How long leaving waits for the coordinator's answer; without it the session timeout does the rest."""

    def __post_init__(self) -> None:
        if not self.group_id or not isinstance(self.group_id, str):
            raise ValueError("group_id is empty" if not self.group_id else "group_id has to be a text")
        if not self.protocol_type:
            raise ValueError("protocol_type is empty")
        instance = self.group_instance_id
        if instance is not None and not 0 < len(instance) <= GROUP_INSTANCE_ID_MAX_CHARACTERS:
            raise ValueError(f"group_instance_id needs 1 to {GROUP_INSTANCE_ID_MAX_CHARACTERS} characters")
        check_whole(self, "session_timeout_ms", "rebalance_timeout_ms", "heartbeat_interval_ms", least=1)
        check_whole(self, "request_timeout_ms", "leave_timeout_ms", least=1)
        check_whole(self, "retry_backoff_ms", "retry_backoff_max_ms", "auto_commit_timeout_ms")
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise ValueError("heartbeat_interval_ms has to be above 0 and below session_timeout_ms")
        if max(self.session_timeout_ms, self.rebalance_timeout_ms) > WIRE_MAX_MS:
            raise ValueError(f"session_timeout_ms and rebalance_timeout_ms are at most {WIRE_MAX_MS}")
        for name in ("max_poll_interval_ms", "quiesce_timeout_ms", "auto_commit_interval_ms"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or value <= 0):
                raise ValueError(f"{name} has to be above 0, or None")

    @property
    def cooperative(self) -> bool:
        """Whether the member keeps its share while it rejoins."""
        return self.given_up is not None

    @property
    def parked_timeout_ms(self) -> int:
        """For requests that the coordinator may hold back until a rebalance is over."""
        return min(max(self.request_timeout_ms, self.rebalance_timeout_ms + 5_000), 2**31 - 1)

    @property
    def heartbeat_timeout_ms(self) -> int:
        """A heartbeat unanswered for so long is repeated on a new connection, before the session ends."""
        return min(self.request_timeout_ms, max(self.heartbeat_interval_ms, self.session_timeout_ms // 3))

    @property
    def hold_margin_ms(self) -> int:
        """So much before the end of the rebalance timeout the wait for `on_revoked` ends, to be in time."""
        return min(1_000, self.rebalance_timeout_ms // 10)
