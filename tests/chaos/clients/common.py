"""The parts that the processes of a run have in common: arguments, their history, and being stopped."""

from __future__ import annotations

import argparse
import os
import signal
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.chaos.history import History

TOPIC, PARTITIONS = "records", 6
COMMIT_EVERY_S = 0.25
"""The interval at which a consumer commits what it has processed, besides the commits of its library, where
no other is set."""
ASK_S = 0.5
"""So long a consumer waits for records in one call."""

ORPHAN_LOOK_S = 2.0

POLL_BOUND_S = 30.0
"""Asking for records comes back in `ASK_S`, and whatever the library does meanwhile ends, too."""
COMMIT_BOUND_S = 90.0
"""A commit that its library retries: longer than any fault."""


@dataclass(frozen=True, slots=True)
class Place:
    """The arguments of a process. `bootstrap`: for groups. `brokers`: straight to the logs."""

    name: str
    bootstrap: str
    brokers: str
    groups: list[str]
    history: Path
    seed: int
    per_second: float
    straight: bool
    every_s: float
    """Between two commits."""
    protocol: str = ""
    """"eager", "cooperative", or "consumer" (KIP-848); its library's own way if it is not said."""
    static: bool = False
    """Its identity is its instance id."""
    batch_s: float = 0.0
    misbehaves: str = ""
    rest_s: float = 0.02
    """Between two commits of a committer, if `every_s` is not shorter."""
    partitions: int = 1
    """Of each commit of a committer."""
    metadata_bytes: int = 0
    """Of each partition's commit, at least."""
    session_ms: int = 6_000
    """Of members that come and go."""
    records: int = 20
    """Of a transaction, at most."""
    aborts: int = 0
    """Of a hundred transactions, on purpose."""
    identity: str = ""
    """The identity that a successor in its place takes over."""


PAD = "."
"""Behind a token, up to the length of a commit's metadata."""


def token_of(metadata: str | None) -> str:
    """The token of a commit, of its metadata."""
    return (metadata or "").rstrip(PAD)


def arguments(description: str | None) -> Place:
    """Of the command line."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--name", required=True)
    parser.add_argument("--bootstrap", required=True, help="where the groups are")
    parser.add_argument("--brokers", required=True, help="where the records are")
    parser.add_argument("--group", action="append", default=[], help="may be repeated")
    parser.add_argument("--history", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--per-second", type=float, default=0.0)
    parser.add_argument("--straight", action="store_true", help="records from the brokers")
    parser.add_argument("--every", type=float, default=COMMIT_EVERY_S, help="seconds between two commits")
    parser.add_argument("--protocol", choices=["", "eager", "cooperative", "consumer"], default="")
    parser.add_argument("--static", action="store_true")
    parser.add_argument("--batch-s", type=float, default=0.0)
    parser.add_argument("--misbehaves", default="")
    parser.add_argument("--rest", type=float, default=0.02)
    parser.add_argument("--partitions", type=int, default=1)
    parser.add_argument("--metadata-bytes", type=int, default=0)
    parser.add_argument("--session-ms", type=int, default=6_000)
    parser.add_argument("--records", type=int, default=20)
    parser.add_argument("--aborts", type=int, default=0)
    parser.add_argument("--identity", default="")
    chosen = parser.parse_args()
    return Place(
        chosen.name,
        chosen.bootstrap,
        chosen.brokers,
        chosen.group,
        chosen.history,
        chosen.seed,
        chosen.per_second,
        chosen.straight,
        chosen.every,
        chosen.protocol,
        chosen.static,
        chosen.batch_s,
        chosen.misbehaves,
        chosen.rest,
        chosen.partitions,
        chosen.metadata_bytes,
        chosen.session_ms,
        chosen.records,
        chosen.aborts,
        chosen.identity or chosen.name,
    )


def stopped_by_signal() -> threading.Event:
    """Set by SIGTERM. The director's Ctrl-C reaches nobody else; who is left without a director ends."""
    stop, director = threading.Event(), os.getppid()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())

    def watch() -> None:
        while not stop.wait(ORPHAN_LOOK_S):
            if os.getppid() != director:
                os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    return stop


def together(runs: Iterable[Callable[[], None]]) -> None:
    """A thread for each, until all are done."""
    threads = [threading.Thread(target=run) for run in runs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


async def noted_commit(
    history: History,
    group: str,
    offsets: Mapping[tuple[str, int], int],
    committing: Awaitable[None],
    refused: tuple[type[Exception], ...],
    unknown: type[Exception],
) -> bool:
    """Wait for a library's commit, and write down how it went. False: try again what is not known to be
    committed. `offsets`: by topic and partition. `refused`, `unknown`: what the library raises."""
    words = {f"{topic}:{partition}": offset for (topic, partition), offset in offsets.items()}
    call = history.begin("commit", COMMIT_BOUND_S, group=group, offsets=words)
    try:
        await committing
    except refused as error:
        call.failed(str(error))
    except (unknown, TimeoutError) as error:
        call.unknown(f"{type(error).__name__}: {error}")
        return False
    else:
        call.ok()
    return True


def spans(offsets: Iterable[int]) -> list[tuple[int, int]]:
    """Offsets in their order as half-open ranges."""
    found: list[tuple[int, int]] = []
    for offset in offsets:
        if found and found[-1][1] == offset:
            found[-1] = (found[-1][0], offset + 1)
        else:
            found.append((offset, offset + 1))
    return found


class Notes:
    """The notes of a consumer, in the words that the checks read."""

    def __init__(self, history: History, group: str) -> None:
        self.history, self._group = history, group
        self._generation = -1

    def generation(self, generation: int) -> None:
        """It is in this generation; may be called as often as one likes."""
        if generation not in (-1, self._generation):
            self._generation = generation
            self.history.saw("generation", group=self._group, generation=generation)

    def assigned(self, generation: int, member: str, partitions: Iterable[int]) -> None:
        """All that it has in this generation."""
        self.history.saw(
            "assigned",
            group=self._group,
            generation=generation,
            member=member,
            partitions=sorted(partitions),
        )
        self.generation(generation)

    def given_up(self, partitions: Iterable[int], *, lost: bool = False) -> None:
        """These it has no more; lost: another member may have had them for a while."""
        did = "lost" if lost else "revoked"
        self.history.saw(did, group=self._group, partitions=sorted(partitions))

    def processed(self, partition: int, offsets: Iterable[int]) -> None:
        """These records, of one partition, in their order."""
        for start, end in spans(offsets):
            self.history.saw("processed", group=self._group, partition=partition, start=start, end=end)
