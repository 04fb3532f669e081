"""Three members of one group that come and go, drawn by the seed. ``python -m tests.chaos.clients.churn``.

Each writes down its answers to JoinGroup and SyncGroup, reads the committed offsets of the partitions that it
got, and commits what follows. Some leave, some only fall silent.
"""

from __future__ import annotations

import random
import threading
import time
from contextlib import suppress

from tests.chaos.clients.common import PARTITIONS, TOPIC, Place, arguments, stopped_by_signal, together
from tests.chaos.history import History
from tests.chaos.raw import JOIN_S, LostError, RawMember, RejoinError, UnsentError, wait

MEMBERS = 3
LIFE_S, AWAY_S = (4.0, 25.0), (0.2, 4.0)
SILENT = 0.3
"""So often one does not say that it leaves."""
REST_S = 0.2
CALL_BOUND_S = JOIN_S + 15.0
"""A request, and before it the coordinator."""


class Churner:
    """One of them."""

    def __init__(self, place: Place, history: History, number: int, stop: threading.Event) -> None:
        self._place, self._history, self._number, self._stop = place, history, number, stop
        [self._group] = place.groups
        self._dice = random.Random(f"{place.seed} {number}")
        self._tries = 0
        self._holder = f"{place.name}/{number}"

    def run(self) -> None:
        """One life after the other."""
        while not self._stop.is_set():
            self._live(time.monotonic() + self._dice.uniform(*LIFE_S))
            self._stop.wait(self._dice.uniform(*AWAY_S))

    def _live(self, until_s: float) -> None:
        member = RawMember(
            self._place.bootstrap,
            self._group,
            self._stop,
            topic=TOPIC,
            partitions=PARTITIONS,
            session_timeout_ms=self._place.session_ms,
        )
        last: dict[int, int] = {}
        joined = False
        while not self._stop.is_set() and time.monotonic() < until_s:
            try:
                if not joined:
                    self._join(member)
                    last = self._read(member)
                    joined = True
                member.heartbeat()
                self._commit(member, last)
            except RejoinError:
                joined = False
            except LostError:
                self._stop.wait(REST_S / 4)
            wait(self._stop, min(until_s, time.monotonic() + REST_S))
        if self._dice.random() >= SILENT:
            with suppress(LostError, RejoinError):  # then its session ends
                member.leave()
        member.disconnect()
        self._history.saw("revoked", group=self._group, holder=self._holder)

    def _join(self, member: RawMember) -> None:
        call = self._history.begin("join", CALL_BOUND_S, group=self._group)
        try:
            member.join()
        except (LostError, RejoinError) as error:
            call.unknown(str(error))
            raise
        call.ok(
            group=self._group,
            generation=member.generation,
            member=member.member_id,
            leader=member.leader,
            members=member.members,
        )
        call = self._history.begin("sync", CALL_BOUND_S, group=self._group)
        try:
            member.sync()
        except (LostError, RejoinError) as error:
            call.unknown(str(error))
            raise
        call.ok()
        self._history.saw(
            "assigned",
            group=self._group,
            generation=member.generation,
            member=member.member_id,
            holder=self._holder,
            partitions=member.owned,
        )

    def _read(self, member: RawMember) -> dict[int, int]:
        if not member.owned:
            return {}
        call = self._history.begin("read", CALL_BOUND_S, groups=[self._group])
        try:
            offsets = member.committed(member.owned)
        except LostError as error:
            call.unknown(str(error))
            raise
        found = {f"{TOPIC}:{partition}": committed for partition, committed in offsets.items()}
        call.ok(offsets={self._group: found})
        return {partition: offset for partition, (offset, _) in offsets.items()}

    def _commit(self, member: RawMember, last: dict[int, int]) -> None:
        """One more of each partition; the next time the same offsets, if it is not known what became of
        them."""
        if not last:
            return
        self._tries += 1
        wanted = {
            partition: (offset + 1, f"{self._holder}#{self._tries}") for partition, offset in last.items()
        }
        call = self._history.begin(
            "commit",
            CALL_BOUND_S,
            group=self._group,
            holder=self._holder,
            offsets={f"{TOPIC}:{partition}": offset for partition, (offset, _) in wanted.items()},
            tokens={f"{TOPIC}:{partition}": token for partition, (_, token) in wanted.items()},
        )
        try:
            member.commit(wanted)
        except (RejoinError, UnsentError) as error:
            call.failed(str(error))
            raise
        except LostError as error:
            call.unknown(str(error))
            raise
        call.ok()
        last.update({partition: offset for partition, (offset, _) in wanted.items()})


def main() -> None:
    """A thread for each."""
    place, stop = arguments(__doc__), stopped_by_signal()
    with History(place.history) as history:
        together(Churner(place, history, number, stop).run for number in range(MEMBERS))


if __name__ == "__main__":
    main()
