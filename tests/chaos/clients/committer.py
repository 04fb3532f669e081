"""One member alone in each of some groups, which commits offsets that increase, as fast as it is answered but
for a short rest. ``python -m tests.chaos.clients.committer``.

Each try has a token of its own in its metadata. An offset is tried until it is acknowledged, and only then
comes the next one. Now and then it goes back a little, as an application may.
"""

from __future__ import annotations

import random
import threading
import time

from tests.chaos.clients.common import PAD, TOPIC, Place, arguments, stopped_by_signal, together
from tests.chaos.history import History
from tests.chaos.raw import LostError, RawMember, Refused, RejoinError, UnsentError

REST_S = 0.02
HEARTBEAT_EVERY = 50
"""Commits. They keep the session alive only on some coordinators."""
REWIND_EVERY, REWIND_BY = 400, 7
LAST_S = 30.0
"""So long the last commit is tried when it is time to stop."""
CALL_BOUND_S = 15.0
"""One try: to find the coordinator at three addresses, to connect, to be answered."""


class Committer:
    """One group's member."""

    def __init__(self, place: Place, history: History, group: str, stop: threading.Event) -> None:
        self._history, self._group, self._stop = history, group, stop
        self._rest_s = min(place.rest_s, place.every_s)
        self._places = range(place.partitions)
        self._metadata_bytes = place.metadata_bytes
        self._member = RawMember(place.bootstrap, group, stop, topic=TOPIC, partitions=place.partitions)
        self._name, self._tries = f"{place.name}/{group}", 0
        self._dice = random.Random(f"{place.seed} {group}")

    def run(self) -> None:
        """Until it is time to stop."""
        if not self._join():
            return
        offset = 0
        while not self._stop.is_set():
            offset += 1
            if self._dice.randrange(REWIND_EVERY) == 0:
                offset = max(0, offset - REWIND_BY)
            self._commit_at_last(offset)
            if offset % HEARTBEAT_EVERY == 0:
                self._heartbeat()
            self._stop.wait(self._rest_s)
        self._member.disconnect()

    def _commit_at_last(self, offset: int) -> None:
        """Try until it is acknowledged; when it is time to stop, for a while still."""
        until_s: float | None = None
        while not self._commit(offset):
            if self._stop.is_set():
                until_s = until_s or time.monotonic() + LAST_S
                if time.monotonic() > until_s:
                    return
                time.sleep(REST_S)  # the others of this run stop, too: there is no event to wait for

    def _join(self) -> bool:
        """Join and sync, until it is in the group; False if it was time to stop."""

        def do() -> None:
            try:
                self._member.join()
                self._member.sync()
            except RejoinError as error:
                raise LostError(str(error)) from error

        if not self._member.until_done(do):
            return False
        self._history.saw(
            "assigned",
            group=self._group,
            generation=self._member.generation,
            member=self._member.member_id,
            holder=self._name,
            partitions=self._member.owned,
        )
        self._history.saw("generation", group=self._group, generation=self._member.generation)
        return True

    def _commit(self, offset: int) -> bool:
        self._tries += 1
        token = f"{self._name}#{self._tries}"
        words = [f"{TOPIC}:{partition}" for partition in self._places]
        call = self._history.begin(
            "commit",
            CALL_BOUND_S,
            group=self._group,
            holder=self._name,
            offsets=dict.fromkeys(words, offset),
            tokens=dict.fromkeys(words, token),
        )
        metadata = token.ljust(self._metadata_bytes, PAD)
        try:
            self._member.commit(dict.fromkeys(self._places, (offset, metadata)))
        except RejoinError as error:
            call.failed(str(error))
            self._join()
            return False
        except Refused as error:
            call.failed(str(error))
            self._history.saw("error", why=f"{self._group}: {error}")
            self._stop.wait(self._rest_s)
            return False
        except LostError as error:
            (call.failed if isinstance(error, UnsentError) else call.unknown)(str(error))
            self._stop.wait(self._rest_s)
            return False
        call.ok()
        return True

    def _heartbeat(self) -> None:
        try:
            self._member.heartbeat()
        except RejoinError:
            self._join()
        except (LostError, Refused):
            pass


def main() -> None:
    """A thread for each group."""
    place, stop = arguments(__doc__), stopped_by_signal()
    with History(place.history) as history:
        together(Committer(place, history, group, stop).run for group in place.groups)


if __name__ == "__main__":
    main()
