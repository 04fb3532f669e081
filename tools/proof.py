"""Writes docs/proof.md: what was tried against Ringleader, and what came of it.

    python -m tools.proof            write the page from the results in proof/
    python -m tools.proof tests      count the tests, leave the result, and write the page
    python -m tools.proof faults     look through the history for faults that a judge found, likewise

A judge (the simulations, the mutants, the comparison with Apache Kafka, chaos, a soak, a fuzzer) leaves its
figures with `leave` when it is asked to, by `--proof` or by PROOF=1 in its environment: one file of
proof/ for each judge, with the commit, the date and the command. A later run replaces an earlier one. No
figure on the page is typed by hand."""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "proof.md"
RESULTS = ROOT / "proof"
PROMISES = RESULTS / "promises.toml"
WISH = "PROOF"
"""In the environment: figures are to be left."""

Figure = int | float | str
Figures = Mapping[str, Figure]

JUDGES: Mapping[str, tuple[str, str, str]] = {
    "simulation": (
        "The group machine under random schedules",
        "Members of all kinds, lost and late messages, crashes, full stores, clocks that jump; every"
        " invariant after every step.",
        "python -m tests.simulation --count 2000 --proof",
    ),
    "simulation-nodes": (
        "Several nodes under random schedules",
        "The real runtime and store on simulated brokers: nodes are killed, stand still, are cut off, take"
        " over.",
        "python -m tests.simulation.nodes --count 500 --proof",
    ),
    "simulation-transactions": (
        "Transactions through several nodes",
        "Relay, transactions of groups, markers and ACLs on simulated brokers; one answer is held while the"
        " world moves.",
        "make simulate SEEDS=500 ARGS='--world transactions --proof'",
    ),
    "simulation-consumer": (
        "Groups of the consumer protocol under random schedules",
        "Members stall, lose answers and change topics; the shard dies and is loaded from a compacted log.",
        "make simulate SEEDS=2000 ARGS='--world consumer --proof'",
    ),
    "small-worlds": (
        "Every state of a small world",
        "Three members of the consumer protocol, two partitions, one fail-over: each order of heartbeats,"
        " lost, late and repeated requests, timeouts and changes of the topic, breadth first.",
        "make small-worlds ARGS=--proof",
    ),
    "spec": (
        "The specification of the consumer protocol",
        "docs/spec/ConsumerGroup.tla, whole state graphs by TLC: fail-over, lost and late answers, static"
        " members, classic ones, upgrades and downgrades, commits, changes of topics; and that all settles"
        " once faults stop.",
        "make spec ARGS=--proof",
    ),
    "traces": (
        "What the coordinator does is what the specification allows",
        "Runs of simulated groups, line by line: TLC takes each request, answer, record and fault as a step"
        " of docs/spec/ConsumerGroup.tla, or refuses it.",
        "make traces SEEDS=200 ARGS=--proof",
    ),
    "simulation-daemon": (
        "The whole daemon and real clients under one clock",
        "From the bytes of a frame to the files: consumers, members, producers and admins, threads included;"
        " a seed that fails shrinks itself.",
        "make simulate SEEDS=500 ARGS='--world daemon --proof'",
    ),
    **{
        f"exactly-once-{target}": (
            f"Exactly once on {where}",
            "Workers copy records in transactions; workers and servers are killed and frozen as a seed"
            " decides; each copy has to be there once.",
            f"make exactly-once ARGS='--runs 200 --target {target} --proof'",
        )
        for target, where in (("daemon", "the daemon"), ("kafka", "Apache Kafka"), ("nodes", "several nodes"))
    },
    "interop": (
        "The same scenarios on a real Apache Kafka",
        "Every answer is compared, field by field; random scenarios besides.",
        "PROOF=1 make interop",
    ),
    "mutants": (
        "Broken on purpose",
        "Each rule breaks one promise in a copy of the code: a test, or a seed, has to notice.",
        "PROOF=1 make mutants",
    ),
    "chaos": (
        "Faults under real clients",
        "Processes are killed, stopped and stand still; the clients' own histories are checked afterwards.",
        "PROOF=1 make chaos",
    ),
    "soak-daemon": (
        "Hours of work on the daemon",
        "Memory, descriptors and latencies over time, under mixed clients that come, go and are killed. The"
        " page of a run is proof/soak-daemon.html.",
        "PROOF=1 make soak MINUTES=60",
    ),
    "soak-nodes": (
        "Hours of work on several nodes",
        "The same on nodes and Apache Kafka. The page of a run is proof/soak-nodes.html.",
        "PROOF=1 make soak MINUTES=60 ARGS=nodes",
    ),
    "fuzz": (
        "Input that nobody meant to send",
        "Mutated bytes at whatever reads bytes.",
        "PROOF=1 make fuzz",
    ),
    "tests": ("Tests", "Counted as pytest collects them.", "python -m tools.proof tests"),
}
"""By the name of the judge: title, what it does, how it is asked to leave its figures."""
FAULTS = "faults"
_FOUND = re.compile(r"[Ff]ound by (?!it\b)([^.;:,]+)")


class ResultError(ValueError):
    """A file of proof/ that nobody can read; one sentence."""


# ---- for judges ----


def add_option(parser: argparse.ArgumentParser) -> None:
    """`--proof`; what it holds is for `leave`."""
    parser.add_argument(
        "--proof",
        action="store_true",
        default=wished(),
        help=f"leave the figures in proof/ for docs/proof.md (also {WISH}=1)",
    )


def wished() -> bool:
    """Whether the environment asks for figures."""
    return os.environ.get(WISH, "") not in ("", "0")


def leave(
    judge: str, figures: Figures, *, good: bool, adds: Sequence[str] = (), results: Path = RESULTS
) -> Path:
    """Write the result of a judge's run, for the page; returns the file. `good`: nothing was broken. The
    names of the figures are words for the page: "seeds", "faults". Those of `adds` are summed over runs."""
    earlier = _earlier(results / f"{judge}.json")
    sums = earlier.get("in all", {})
    result = {
        "judge": judge,
        "commit": _git("rev-parse", "--short", "HEAD") or "unknown",
        "changed": bool(_git("status", "--porcelain", "--untracked-files=no")),
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "command": _command(),
        "good": good,
        "figures": dict(figures),
    }
    if adds:
        result["since"] = earlier.get("since", result["date"])
        result["in all"] = {name: sums.get(name, 0) + figures[name] for name in adds}
    return _write(judge, result, results)


def tree() -> str:
    """The tracked files as they are, as one word: it is another as soon as one of them changes."""
    changes = hashlib.sha256(_git("diff", "HEAD").encode()).hexdigest()
    return f"{_git('rev-parse', 'HEAD^{tree}')}-{changes[:12]}"


def _earlier(file: Path) -> dict[str, Any]:
    """The result that stands there; empty if none can be read."""
    try:
        return dict(json.loads(file.read_text()))
    except (OSError, ValueError):
        return {}


def _write(name: str, result: Mapping[str, Any], results: Path) -> Path:
    results.mkdir(exist_ok=True)
    file = results / f"{name}.json"
    file.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n")
    return file


def _command() -> str:
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is None:
        return shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])
    return shlex.join(["python", "-m", spec.name.removesuffix(".__main__"), *sys.argv[1:]])


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()


# ---- what the page is made of ----


@dataclass(frozen=True, slots=True)
class Promise:
    """A sentence of the README, and the tests that judge it: `path::name`."""

    number: int
    text: str
    judges: tuple[str, ...]


def promises(readme: Path = ROOT / "README.md", file: Path = PROMISES) -> list[Promise]:
    """The numbered list under "What it promises", with its judges. Raises ResultError where one has none."""
    part = readme.read_text().partition("## What it promises")[2].partition("\n## ")[0]
    found = {int(number): text for number, text in re.findall(r"^(\d+)\. (.+)$", part, re.MULTILINE)}
    judges = tomllib.loads(file.read_text())["judges"]
    if found.keys() != {int(number) for number in judges}:
        raise ResultError(f"README promises {sorted(found)}, and {file.name} has judges of {sorted(judges)}")
    return [Promise(number, text, tuple(judges[str(number)])) for number, text in found.items()]


def tests_in(file: Path) -> set[str]:
    """The names of its test functions."""
    return {
        node.name
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    }


def results(folder: Path = RESULTS) -> dict[str, dict[str, Any]]:
    """The results that judges left, by judge. Raises ResultError."""
    found = {}
    for file in sorted(folder.glob("*.json")):
        try:
            result = json.loads(file.read_text())
        except ValueError as error:
            raise ResultError(f"{file} is no JSON: {error}") from None
        if result.get("judge") != file.stem or not (file.stem in JUDGES or file.stem == FAULTS):
            raise ResultError(f"{file} is of no judge that is known")
        found[file.stem] = result
    return found


def render(left: Mapping[str, Mapping[str, Any]], promised: Iterable[Promise]) -> str:
    """The page."""
    lines = [
        "# What was tried",
        "",
        "Written by `python -m tools.proof` from the files in `proof/`, which the judges leave there; a test",
        "compares. A figure is of one run, at the commit that stands beside it; sums are of all runs.",
        "",
        "| Judge | Last run | What it came to | |",
        "|---|---|---|---|",
    ]
    for name, (title, _, _) in JUDGES.items():
        result = left.get(name)
        if result is None:
            lines.append(f"| [{title}](#{_anchor(title)}) | not run yet | | |")
            continue
        verdict = "held" if result["good"] else "**broken**"
        lines.append(f"| [{title}](#{_anchor(title)}) | {_when(result)} | {_briefly(result)} | {verdict} |")
    lines += ["", "## Promises and their judges", ""]
    lines += ["Each named test runs with `make test` or `make interop`; a test holds that it exists.", ""]
    lines += ["| Promise of the README | Tests that judge it |", "|---|---|"]
    for one in promised:
        judges = "<br>".join(_linked(judge) for judge in one.judges)
        lines.append(f"| {one.number}. {one.text} | {judges} |")
    for name, (title, does, how) in JUDGES.items():
        lines += ["", f"## {title}", "", does, ""]
        result = left.get(name)
        if result is None:
            lines.append(f"Not run yet. To run it: `{how}`.")
            continue
        changed = ", with changes that were not committed" if result["changed"] else ""
        lines += [f"`{result['command']}`, {result['date']}, at commit {result['commit']}{changed}.", ""]
        lines += ["| | |", "|---|---:|"]
        lines += [f"| {what} | {_shown(figure)} |" for what, figure in result["figures"].items()]
        for what, figure in result.get("in all", {}).items():
            lines.append(f"| {what} in all runs since {result['since']} | {_shown(figure)} |")
    lines += ["", "## Faults that the judges found", ""]
    faults = left.get(FAULTS)
    if faults is None:
        lines.append("Not looked for yet: `python -m tools.proof faults`.")
    else:
        lines += [
            f"Of the history's {faults['commits']:,} commits up to {faults['commit']}, those that say so.",
            "",
        ]
        lines += ["| Fixed in | Found by |", "|---|---|"]
        for one in faults["faults"]:
            lines.append(
                f"| {one['commit']}, {one['date']}: {_plain(one['subject'])} | {_plain(one['found_by'])} |"
            )
    return "\n".join(lines) + "\n"


def _anchor(title: str) -> str:
    return re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-")


def _linked(judge: str) -> str:
    path, _, name = judge.partition("::")
    return f"[`{name}`](../{path})"


def _when(result: Mapping[str, Any]) -> str:
    return f"{result['date']}, {result['commit']}{'+' if result['changed'] else ''}"


def _briefly(result: Mapping[str, Any]) -> str:
    brief = ", ".join(f"{_shown(figure)} {what}" for what, figure in list(result["figures"].items())[:3])
    sums = ", ".join(
        f"{_shown(figure)} {what}" for what, figure in list(result.get("in all", {}).items())[:1]
    )
    return f"{brief}; in all runs {sums}" if sums else brief


def _shown(figure: Figure) -> str:
    return (
        f"{figure:,}"
        if isinstance(figure, int)
        else f"{figure:,.1f}"
        if isinstance(figure, float)
        else figure
    )


def _plain(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


# ---- its own judges ----


def count_tests() -> dict[str, Figure]:
    """By folder, as pytest collects them. Raises ResultError."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "tests"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.findall(r"^tests/([^/]+)/\S*::", done.stdout, re.MULTILINE)
    if done.returncode or not found:
        raise ResultError(f"the tests cannot be collected: {done.stdout[-500:]}{done.stderr[-500:]}")
    return {"tests": len(found), **{f"of {room}": count for room, count in sorted(Counter(found).items())}}


def find_faults() -> dict[str, Any]:
    """Commits whose message says how the fault that they fix was found."""
    log = _git("log", "--format=%h%x00%as%x00%s%x00%b%x01")
    faults = []
    commits = [one.strip("\n").split("\0") for one in log.split("\x01") if one.strip()]
    for commit, date, subject, body in commits:
        found = _FOUND.search(" ".join(body.split()))
        if found is not None:
            faults.append({"commit": commit, "date": date, "subject": subject, "found_by": found[1]})
    return {
        "judge": FAULTS,
        "commit": commits[0][0] if commits else "unknown",
        "commits": len(commits),
        "faults": faults,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page; 2 if the results cannot be read."""
    parser = argparse.ArgumentParser(prog="python -m tools.proof", description=__doc__)
    parser.add_argument("what", nargs="?", choices=("page", "tests", "faults"), default="page")
    what = parser.parse_args(arguments).what
    try:
        if what == "tests":
            leave("tests", count_tests(), good=True)
        elif what == "faults":
            _write(FAULTS, find_faults(), RESULTS)
        PAGE.write_text(render(results(), promises()))
    except ResultError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
