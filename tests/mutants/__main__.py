"""`python -m tests.mutants [NAME ...]`: do the tests notice a broken promise?

Each rule of the TOML files beside this module breaks one promise (`rules.py` says how a rule is written). It
is applied to a copy of the tree. There the tests run that the rule names, and one of them must fail; a rule
that names none breaks the group machine, and a seed of the simulation must violate an invariant. Exit status:
0 all were caught, 1 one survived, 2 a rule no longer fits the code, its judges could not run, or a test fails
without any. A whole run takes an hour or more: `--kept FILE` keeps what was found out, and a later run over
the same tree goes on there. `--proof` leaves a whole run's figures; with names, how many of its survivors are
caught now, by the judges that they got since.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.mutants.rules import Rule, StaleRuleError, read
from tests.mutants.trees import TIMEOUT_S, broken, run, run_tests
from tools import proof

WORKERS = 2 * (os.cpu_count() or 1)
"""How many mutants are judged side by side: a judge waits for timeouts half of its time."""
UNBROKEN_TIMEOUT_S = 3_600
"""For the judges of one worker together, before anything is broken."""
OUTPUT_CHARS = 5_000
"""Of the output of a judge that fails anyway: its end names the seed."""
SURVIVED, LATER = "not caught", "caught since, by judges made for them"
"""Figures that are names of rules."""
WHOLE = "commit of the whole run"
RUNS_MAX = 300
"""Seeds after which a broken group machine has survived."""

_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


@dataclass(frozen=True)
class Hunt:
    """The fate of one mutant: the test that failed or the invariant that was violated (empty: none), how
    long it took, and the output."""

    caught_by: str
    seconds: float
    text: str = ""


def judge(tests: list[str], rule: Rule | None) -> Hunt:
    """Run tests in a tree that a rule breaks. Raises `StaleRuleError`."""
    began = time.monotonic()
    with broken(rule) as tree:
        done = run_tests(tree, tests, TIMEOUT_S if rule else UNBROKEN_TIMEOUT_S)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{rule.name if rule else tests}: {done.stdout[-3000:]}{done.stderr[-1000:]}")
    failed = _FAILED.search(done.stdout)
    return Hunt(failed[1] if failed else "", time.monotonic() - began, done.stdout)


def simulate(rule: Rule, runs: int = RUNS_MAX) -> Hunt:
    """Run seeds of the simulation against a broken group machine. Raises `StaleRuleError`."""
    began = time.monotonic()
    with broken(rule) as tree:
        done = run(tree, ["tests.simulation.hunter", str(tree), "0", str(runs)])
    if done.returncode:
        raise RuntimeError(f"{rule.name}: {done.stderr[-2000:]}")
    found = json.loads(done.stdout.splitlines()[-1])
    caught_by = f"{found['invariant']} of seed {found['seed']}" if "invariant" in found else ""
    return Hunt(caught_by, time.monotonic() - began, found.get("text", ""))


def hunt(rule: Rule) -> Hunt:
    """Break the rule's promise, and ask its judges. Raises `StaleRuleError`."""
    return judge(rule.judges, rule) if rule.judges else simulate(rule)


class Kept:
    """Verdicts on this tree, in a file; those on another tree do not count."""

    def __init__(self, file: Path | None) -> None:
        self._file, self._tree = file, proof.tree()
        self.hunts, self.passed = dict[str, Hunt](), set[str]()
        for line in file.read_text().splitlines() if file is not None and file.exists() else ():
            known = json.loads(line)
            if known.pop("tree") != self._tree:
                continue
            if (name := known.pop("rule", None)) is None:
                self.passed.update(known["passed"])
            else:
                self.hunts[name] = Hunt(**known)

    def pass_(self, tests: list[str]) -> None:
        """These pass in a tree that nothing breaks."""
        self._add({"passed": tests})

    def hunt(self, name: str, hunt: Hunt) -> None:
        """The fate of one rule's mutant."""
        self.hunts[name] = hunt
        self._add({"rule": name, **asdict(hunt), "text": ""})

    def _add(self, line: dict[str, object]) -> None:
        if self._file is not None:
            with self._file.open("a") as file:
                file.write(json.dumps({"tree": self._tree, **line}) + "\n")


def main() -> int:
    """Hunt all, or those named."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", help="mutants to hunt (default: all)")
    parser.add_argument(
        "--kept", metavar="FILE", type=Path, help="go on where an earlier run over this tree was ended"
    )
    proof.add_option(parser)
    given = parser.parse_args()
    names = given.names
    rules = read()
    if unknown := set(names) - set(rules):
        parser.error(f"there is no mutant {min(unknown)}")
    wanted = [rules[name] for name in names] or list(rules.values())
    kept = Kept(given.kept)
    # A test that fails anyway would catch every mutant.
    tests = {test for rule in wanted for test in rule.judges}
    with ThreadPoolExecutor(WORKERS) as pool:
        if not _pass(pool, kept, sorted(tests - kept.passed)):
            return 2
        print("all judges pass without mutants", flush=True)
        worst, caught = 0, list[str]()
        hunts = pool.map(lambda rule: kept.hunts.get(rule.name) or _tried(rule, kept), wanted)
        for number, (rule, result) in enumerate(zip(wanted, hunts, strict=True), 1):
            if not isinstance(result, Hunt):
                outcome, worst = str(result), 2
            elif result.caught_by:
                outcome = f"{result.seconds:3.0f} s, caught by {result.caught_by}"
                caught.append(rule.name)
            else:
                outcome, worst = f"{result.seconds:3.0f} s, SURVIVED: {rule.breaks}", max(worst, 1)
            print(f"[{number}/{len(wanted)}] {rule.name}: {outcome}", flush=True)
    print(f"{len(caught)} of {len(wanted)} mutants were caught")
    if given.proof:
        figures = {"rules": len(wanted), "mutants caught": len(caught), "tests that judge": len(tests)}
        leave(figures, [rule.name for rule in wanted], caught, whole=not names)
    return worst


def leave(figures: proof.Figures, wanted: Sequence[str], caught: Sequence[str], *, whole: bool) -> None:
    """The figures of a whole run, or of some of its survivors: then the others stay as they are."""
    shown, survivors, later = dict(figures), [one for one in wanted if one not in caught], list[str]()
    if not whole:
        before = proof.results().get("mutants", {"figures": {}, "commit": "none"})
        earlier = before["figures"]
        shown = {name: figure for name, figure in earlier.items() if name not in (SURVIVED, LATER)}
        shown.setdefault(WHOLE, before["commit"])
        open_before, later = _names(earlier.get(SURVIVED)), _names(earlier.get(LATER))
        survivors = [one for one in open_before if one not in caught]
        later += [one for one in open_before if one in caught]
    named = {SURVIVED: survivors, LATER: later}
    shown.update((name, ", ".join(some)) for name, some in named.items() if some)
    proof.leave("mutants", shown, good=not survivors)


def _names(text: object) -> list[str]:
    return str(text).split(", ") if text else []


def _pass(pool: ThreadPoolExecutor, kept: Kept, tests: list[str]) -> bool:
    """Whether all these tests pass in a tree that nothing breaks."""
    good, shares = True, _shares(tests)
    for share, unbroken in zip(shares, pool.map(lambda share: judge(share, None), shares), strict=True):
        if unbroken.caught_by:
            print(unbroken.text[-OUTPUT_CHARS:], file=sys.stderr)
            print(f"{unbroken.caught_by} fails without any mutant", file=sys.stderr)
            good = False
        else:
            kept.pass_(share)
    return good


def _shares(tests: list[str]) -> list[list[str]]:
    """The tests of each worker: those of one file together, since they share what it sets up."""
    files = [list(some) for _, some in itertools.groupby(tests, lambda test: test.partition("::")[0])]
    shares = [list(itertools.chain.from_iterable(files[first::WORKERS])) for first in range(WORKERS)]
    return [share for share in shares if share]


def _tried(rule: Rule, kept: Kept) -> Hunt | Exception:
    try:
        found = hunt(rule)
    except subprocess.TimeoutExpired as error:
        found = Hunt(f"no end within {error.timeout:.0f} s", error.timeout)
    except (StaleRuleError, RuntimeError) as error:
        return error
    kept.hunt(rule.name, found)
    return found


if __name__ == "__main__":
    sys.exit(main())
