"""A member that only measures: how long heartbeats and commits take, as a client sees it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial

from tests.chaos.clients.common import TOPIC
from tests.chaos.raw import LostError, RawMember, Refused, RejoinError

EVERY_S = 0.05
GROUP = "probe"


class Probe:
    """On a thread of its own, from `start` to `stop`."""

    def __init__(self, bootstrap: str) -> None:
        self._stop = threading.Event()
        self._member = RawMember(bootstrap, GROUP, self._stop, topic=TOPIC, partitions=1)
        self._thread = threading.Thread(target=self._run, name=GROUP, daemon=True)
        self._lock = threading.Lock()
        self._took: dict[str, list[float]] = {"heartbeat": [], "commit": []}
        self._failed = 0

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End."""
        self._stop.set()
        self._thread.join()
        self._member.disconnect()

    def taken(self) -> tuple[dict[str, list[float]], int]:
        """How long calls took since one asked last, in ms, by kind; and how many had no good answer."""
        with self._lock:
            took, self._took = self._took, {"heartbeat": [], "commit": []}
            failed, self._failed = self._failed, 0
        return took, failed

    def _run(self) -> None:
        if not self._member.until_done(self._join):
            return
        offset = 0
        while not self._stop.wait(EVERY_S):
            offset += 1
            self._call("heartbeat", self._member.heartbeat)
            self._call("commit", partial(self._member.commit, {0: (offset, "")}))

    def _join(self) -> None:
        try:
            self._member.join()
            self._member.sync()
        except RejoinError as error:
            raise LostError(str(error)) from error

    def _call(self, what: str, ask: Callable[[], object]) -> None:
        began_s = time.perf_counter()
        try:
            ask()
        except (LostError, Refused, RejoinError) as error:
            with self._lock:
                self._failed += 1
            if isinstance(error, RejoinError):
                self._member.until_done(self._join)
            return
        with self._lock:
            self._took[what].append((time.perf_counter() - began_s) * 1000)
