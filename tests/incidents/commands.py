"""Whether the commands say what the history says: `history`, `explain` and `advise`, as JSON."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ringleader import cli
from ringleader.insight.advice import Past, advise
from ringleader.insight.history import History
from ringleader.insight.model import Departure


def _printed(command: str, group: str, path: Path, *options: str) -> Any:
    """The output of the command, read as JSON. Raises ValueError where it prints something else."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(io.StringIO()):
        cli.run([command, group, "--history", str(path), "--json", *options])
    return json.loads(output.getvalue())


def disagreements(path: Path, groups: Iterable[str]) -> list[str]:
    """A sentence for each group and command that does not say the same as the history."""
    found = []
    with contextlib.closing(History.open(path, read_only=True)) as history:
        for group in groups:
            rebalances = history.rebalances(group, limit=100_000)
            printed = _printed("history", group, path, "--limit", "100000")["rebalances"]
            if {(one.id, one.cause, one.confidence) for one in rebalances} != {
                (one["id"], one["cause"], one["confidence"]) for one in printed
            }:
                found.append(f"ringleader history {group} does not show the rebalances that the history has")
            went = {
                (one.id, member, how.why, how.confidence)
                for one in rebalances
                for member, how in one.left.items()
                if how.why is not Departure.RESTARTED
            }
            printed = _printed("explain", group, path)["incidents"]
            explained = {
                (one["rebalance_id"], one["member"]["member_id"], one["why"], one["confidence"])
                for one in printed
            }
            if missing := went - explained:
                _, member, why, _ = min(missing)
                found.append(
                    f"ringleader explain {group} tells nothing, or something else, of {len(missing)} of"
                    f" {len(went)} departures, {member} for example: {why}"
                )
            printed = _printed("advise", group, path, "--no-replay")
            past = Past.read(history, group, printed["since_ms"], printed["until_ms"])
            wanted = {finding.pattern for finding in advise(past, replay=False).findings}
            if wanted != {one["pattern"] for one in printed["findings"]}:
                found.append(f"ringleader advise {group} does not find what the history shows")
    return found
