"""Asks one node for the committed offsets of all groups, all the time. ``python -m
tests.chaos.clients.reader``.

It does not wait for an answer before it asks again: what is asked while the node is stopped is answered by a
node that wakes, and must not be old.
"""

from __future__ import annotations

import socket
import threading
import time
from collections import deque
from contextlib import suppress

from ringleader.protocol.errors import MalformedError, error_name
from ringleader.protocol.messages import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from tests.chaos.clients.common import PARTITIONS, TOPIC, Place, arguments, stopped_by_signal, token_of
from tests.chaos.history import History, OpenCall
from tests.chaos.raw import wait
from tests.chaos.schedule import LONGEST_PAUSE_S
from tests.support.rawclient import ConnectionClosedError, RawConnection

EVERY_S = 0.1
MANY = 20
"""Of more groups than these it asks for one partition each, and not as often."""
WAITING, SLOWLY_S = 10, 1.0
"""With this many answers outstanding it asks only at this interval: answers come one by one, and a reader
that asks faster than they come asks about an ever older past."""
FETCH_VERSION = 8
CALL_BOUND_S = LONGEST_PAUSE_S + 30.0
"""A node that is stopped answers when it wakes, and a broker that is stopped holds up its owner's answer."""


class Reader:
    """Of one node."""

    def __init__(self, place: Place, history: History, stop: threading.Event) -> None:
        self._place, self._history, self._stop = place, history, stop

    def run(self) -> None:
        """One connection after the other."""
        while not self._stop.is_set():
            try:
                connection = RawConnection(self._place.bootstrap, timeout_s=CALL_BOUND_S)
            except OSError:
                self._stop.wait(EVERY_S)
                continue
            with connection:
                self._ask(connection)

    def _ask(self, connection: RawConnection) -> None:
        """Ask until the connection breaks or it is time to stop; another thread takes the answers."""
        waiting: deque[OpenCall] = deque()
        many = len(self._place.groups) > MANY
        every_s = EVERY_S * len(self._place.groups) / MANY if many else EVERY_S
        partitions = [0] if many else list(range(PARTITIONS))
        taking = threading.Thread(target=self._take, args=(connection, waiting))
        taking.start()
        request = OffsetFetchRequest(
            groups=[
                # By name: what is lost would only be missing among all that there is.
                OffsetFetchRequestGroup(
                    group_id=group,
                    topics=[OffsetFetchRequestTopics(name=TOPIC, partition_indexes=partitions)],
                )
                for group in self._place.groups
            ]
        )
        try:
            while not self._stop.is_set() and taking.is_alive():
                due_s = time.monotonic() + (every_s if len(waiting) < WAITING else SLOWLY_S)
                waiting.append(self._history.begin("read", CALL_BOUND_S, groups=self._place.groups))
                connection.send(request, FETCH_VERSION)
                wait(self._stop, due_s)
        except OSError:
            pass  # the process that takes the answers says so
        with suppress(OSError):
            connection.socket.shutdown(socket.SHUT_RDWR)
        taking.join()
        for call in waiting:
            call.unknown("the connection ended")

    def _take(self, connection: RawConnection, waiting: deque[OpenCall]) -> None:
        try:
            while True:
                answer = connection.receive()
                offsets = {
                    group.group_id: {
                        f"{topic.name}:{one.partition_index}": (one.committed_offset, token_of(one.metadata))
                        for topic in group.topics
                        for one in topic.partitions
                    }
                    for group in answer.groups
                    if not group.error_code
                }
                errors = {
                    group.group_id: error_name(group.error_code)
                    for group in answer.groups
                    if group.error_code
                }
                waiting.popleft().ok(offsets=offsets, errors=errors)
        except (OSError, ConnectionClosedError, MalformedError, IndexError):
            return


def main() -> None:
    """Read from one node."""
    place, stop = arguments(__doc__), stopped_by_signal()
    with History(place.history) as history:
        Reader(place, history, stop).run()


if __name__ == "__main__":
    main()
