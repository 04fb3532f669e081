"""`python -m tests.spec.cases`: TLC checks the specification as it is and with each planted fault. The
verdicts are kept in `checked.json`.

TLC finds the same for the same texts: tests take the verdicts. They run it for texts that it has not seen,
and for all of them in `make nightly`.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from tests.spec.tlc import POM, SPEC, Checked, check
from tests.support.shares import WHOLE

KEPT = Path(__file__).with_name("checked.json")
HOLDS = ("small", "topics", "classic", "migrate", "upgrade")
"""Configurations in which every property holds."""

PLANTED = {
    "a partition is given away while another member has it": (
        "\\A n \\in s.in \\ {m} : p \\notin Held(s, n)}",
        "TRUE}",
        "NoPartitionHasTwoHolders",
        "small",
    ),
    "a heartbeat's answer waits for nothing": (
        "all |-> Given(s, m), after |-> ToTheGroups(lag')]",
        "all |-> Given(s, m), after |-> 0]",
        "AnswersShowWhatIsDurable",
        "small",
    ),
    "a commit's answer waits for what a heartbeat's waits for": (
        "answered(TRUE, Len(lag'))",
        "answered(TRUE, ToTheGroups(lag'))",
        "AnswersShowWhatIsDurable",
        "small",
    ),
    "commits of former owners count": (
        "IF Counts(m, r)",
        "IF TRUE",
        "CommitsGoOn",
        "small",
    ),
    "no epoch begins when topics change": (
        "[s EXCEPT !.epoch = @ + 1, !.seen = there]",
        "[s EXCEPT !.seen = there]",
        "TargetsAreWhole",
        "topics",
    ),
    "a partition that is deleted is given": (
        "wanted == s.target[m] \\cap there",
        "wanted == s.target[m]",
        "OnlyWhatExistsIsGiven",
        "topics",
    ),
    "a fetch shows commits that a fail-over may take back": (
        "[client EXCEPT ![m].blind = @ \\ {p}, ![m].pos[p] = disk.off[p]]",
        "[client EXCEPT ![m].blind = @ \\ {p}, ![m].pos[p] = mem.off[p]]",
        "AnswersShowWhatIsDurable",
        "small",
    ),
    "nobody reads in a JoinGroup what its member owns": (
        "owned |-> owned \\cap there, says",
        "owned |-> {}, says",
        "OwnersHoldWhatTheyOwn",
        "classic",
    ),
    "SyncGroup gives the target, and not what is free of it": (
        "THEN Of(s.got[m]) \\cap there ELSE",
        "THEN s.target[m] \\cap there ELSE",
        "AnswersShowWhatIsDurable",
        "classic",
    ),
    "nobody says to a classic member that what it waits for is free": (
        '\\/ s.state[m] = "unreleased" /\\ \\A p',
        "\\/ FALSE /\\ \\A p",
        "a temporal property",
        "classic",
    ),
    "an upgrade takes what was synced for all that members own": (
        "owes(m) == {p \\in says(m) \\ given(m) : m \\in claims(p)}",
        "owes(m) == {}",
        "OwnersHoldWhatTheyOwn",
        "upgrade",
    ),
    "a downgrade forgets what is to be given up": (
        "Held(s, n) \\cap there]",
        "s.target[n] \\cap there]",
        "OwnersHoldWhatTheyOwn",
        "migrate",
    ),
    "a generation is known before its number is durable": (
        "Reply(gen, FALSE, FALSE, {}, lag')",
        "Reply(gen, FALSE, FALSE, {}, <<>>)",
        "AnswersShowWhatIsDurable",
        "migrate",
    ),
}
"""Text of the specification, the text in its place, the property that breaks, and the configuration."""


def found(config: str, fault: str | None = None) -> Checked:
    """The verdict of TLC on a configuration, perhaps with a planted fault."""
    kept = {} if WHOLE else json.loads(KEPT.read_text())
    text = _text(fault)
    known = kept.get(_key(text, config))
    return _check(text, config) if known is None else Checked(**known)


def _text(fault: str | None) -> str:
    text = (SPEC / "ConsumerGroup.tla").read_text()
    if fault is not None:
        right, wrong, *_ = PLANTED[fault]
        assert text.count(right) == 1
        text = text.replace(right, wrong)
    return text


def _key(text: str, config: str) -> str:
    texts = (text, (SPEC / f"{config}.cfg").read_text(), POM.read_text())
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


def _check(text: str, config: str) -> Checked:
    with tempfile.TemporaryDirectory(prefix="spec-") as scratch:
        spec = Path(scratch) / "ConsumerGroup.tla"
        spec.write_text(text)
        return check(config, spec=spec)


def _cases() -> Iterator[tuple[str, str | None]]:
    yield from ((config, None) for config in (*HOLDS, "late"))
    yield from ((config, fault) for fault, (_, _, _, config) in PLANTED.items())


def main() -> int:
    """Check all, and keep it."""
    kept = {}
    for config, fault in _cases():
        text = _text(fault)
        checked = kept[_key(text, config)] = asdict(_check(text, config))
        print(config, fault or "as it is", checked, flush=True)
    KEPT.write_text(json.dumps(kept, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
