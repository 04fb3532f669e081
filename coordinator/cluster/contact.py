"""Whether this node still is one of the nodes, as far as it can tell. Pure: no clock, no socket."""

from __future__ import annotations

from enum import Enum

PROVE_INTERVAL_S = 1.0


class Verdict(Enum):
    """The consequence of the time since a broker last answered."""

    WELL = "the nodes' group answers"
    BACK = "it answers again, and nothing was served meanwhile"
    WAIT = "it has not answered for a while"
    PROVE = "the store has to tell what is still this node's"
    CUT_OFF = "no broker answers: nothing may be served any more"


class Contact:
    """A node that the nodes' group does not hear is in doubt: while other brokers answer, the store's fence
    decides what is still this node's; when none does, it serves nothing any more, before its session can have
    ended. All times are of one clock, in seconds."""

    def __init__(self, session_s: float) -> None:
        """`session_s`: the time after which others have its partitions."""
        self._limit_s = session_s * 2 / 3
        self.doubt_s = self._limit_s / 2
        """The silence after which there may be a newer map."""
        self.cut_off = False
        self._heard_s = 0.0
        self._proved_s = 0.0

    def heard(self, now_s: float) -> None:
        """A broker has answered; or this node did not listen."""
        self._heard_s = now_s

    def proved(self, now_s: float) -> None:
        """The store is being asked."""
        self._proved_s = now_s

    def silence_s(self, now_s: float) -> float:
        """For how long no broker has answered."""
        return now_s - self._heard_s

    def look(self, silence_s: float, now_s: float) -> Verdict:
        """`silence_s`: time since the nodes' group confirmed that this node is a member."""
        if silence_s < self.doubt_s:
            self._heard_s = now_s
            was_cut_off, self.cut_off = self.cut_off, False
            return Verdict.BACK if was_cut_off else Verdict.WELL
        if silence_s < self._limit_s or self.cut_off:
            return Verdict.WAIT
        if self.silence_s(now_s) >= self._limit_s:
            self.cut_off = True
            return Verdict.CUT_OFF
        return Verdict.PROVE if now_s - self._proved_s >= PROVE_INTERVAL_S else Verdict.WAIT
