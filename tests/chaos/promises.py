"""The promises that a run looks at, each by the key that scenarios use."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from tests.chaos.judges import verdicts

TURNED_BACK = "no acknowledged commit is lost or turned back"
REGISTER = "a committed offset is one register"
GIVEN_UP = "every commit is acknowledged in the end"
OWNERS = "no partition has two owners in a generation"
CONTENT = "a generation has one content, and none comes back"
SKIPPED = "no record is skipped"
BOUNDS = "every call ends within its bound"
REBALANCES = "groups that stay do not rebalance because of nodes"

PROMISES: Mapping[str, Collection[str]] = {
    "bounds": (BOUNDS,),
    "confirmed owners": (verdicts.SENTENCES[verdicts.OWNERS],),
    "given up": (GIVEN_UP,),
    "one content": (CONTENT,),
    "one register": (REGISTER,),
    "owners": (OWNERS,),
    "porcupine": (verdicts.SENTENCES[verdicts.REGISTERS],),
    "rebalances": (REBALANCES,),
    "skipped": (SKIPPED,),
    "transactions": tuple(verdicts.SENTENCES[kind] for kind in verdicts.TRANSACTIONS),
    "turned back": (TURNED_BACK,),
}
ALL = tuple(PROMISES)


def sentences(keys: Collection[str]) -> set[str]:
    """Of these keys."""
    return {sentence for key in keys for sentence in PROMISES[key]}
