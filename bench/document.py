"""``python -m bench.document``: writes the last runs' numbers (bench/out/*.json) into docs/performance.md.

A section without a new run stays as it is, with its goals.
"""

from __future__ import annotations

import json
import re
import statistics
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import consume, consumer_groups, failover, processing, produce, server_assignor, spark
from bench.assignors import COLUMNS, TOPICS, cells
from bench.build import OUT
from bench.plan import RINGLEADER, Plan

DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "performance.md"
BEGIN, END = "<!-- numbers: begin -->", "<!-- numbers: end -->"

Run = dict[str, Any]


def _table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    lines = [f"| {' | '.join(columns)} |", f"|---|{'---:|' * (len(columns) - 1)}"]
    return [*lines, *(f"| {' | '.join(str(cell) for cell in row)} |" for row in rows), ""]


def _median(rounds: Iterable[Run], key: str) -> float:
    return statistics.median(float(one[key]) for one in rounds)


_GOAL = ("goal, as a ratio to a peer in the same run", "peer", "measured", "wanted", "")
_GOALS_HEAD = "\n".join(_table(_GOAL, []))


def _goals(run: Run) -> list[str]:
    rows = [
        [
            goal["name"],
            goal["peer"],
            f"{goal['ratio']:.3f}",
            goal["wanted"],
            "reached" if goal["reached"] else "**missed**",
        ]
        for goal in run["goals"]
    ]
    return [line for line in _table(_GOAL, rows)[2:] if line]


def _peers(runs: dict[str, Run]) -> list[str]:
    """The brokers that ran, with versions and settings, and those that were left out, each once."""
    ran = {name: about for run in runs.values() for name, about in run.get("brokers", {}).items()}
    missing = {name: why for run in runs.values() for name, why in run.get("left_out", {}).items()}
    lines = [f"- {name}: {about}." for name, about in ran.items()]
    lines += [f"- {name} was **left out**: {' '.join(why.split())}" for name, why in missing.items()]
    return [*lines, ""] if lines else []


def _rates(run: Run) -> list[str]:
    rows = [
        [
            f"{name}, {depth}",
            *(f"{values[key]:,.0f}" for key in ("per_s", "per_cpu_s")),
            *(f"{result['medians'][RINGLEADER][key] / values[key]:.2f}" for key in ("per_s", "per_cpu_s")),
            *(f"{values[key]:,.0f}" for key in ("p50_us", "p99_us")),
        ]
        for depth, result in run["results"].items()
        for name, values in result["medians"].items()
    ]
    ours = ["Ringleader / it, per second", "per CPU second"]
    return _table(["server", "per second", "per CPU second", *ours, "p50 us", "p99 us"], rows)


def _heartbeats(run: Run) -> list[str]:
    return ["### Heartbeats (v4, 200 members of one group, 64 connections)", "", *_rates(run)]


def _secured(run: Run) -> list[str]:
    return [
        "### Heartbeats with ACLs and over TLS (v4, 200 members of one group, 64 connections)",
        "",
        "The load that speaks TLS is in Python, and measures plaintext, too. The group's ACL is one of "
        "1,001.",
        "",
        *_rates(run),
    ]


def _commits(run: Run) -> list[str]:
    syncs = ", ".join(
        f"{depth}: {result['sync_calls']:,} sync calls seen, {result['commits_per_sync']:.0f} commits each"
        for depth, result in run["results"].items()
    )
    return [
        "### Commits (OffsetCommit v7, one partition each, 200 members, 64 connections)",
        "",
        f"Data on {run['file_system']}. Ringleader syncs before it answers: {syncs}. Apache Kafka and kfake "
        "sync only where the table says so. The C server answers heartbeats. "
        f"Per CPU second of the servers the ratio to it is {run['cpu_ratio']:.3f}.",
        "",
        *_rates(run),
    ]


def _mixed(run: Run) -> list[str]:
    results = run["results"]
    streams = results["streams"]
    rows = [
        [name, *(f"{_median(results[key], value):,.0f}" for value in ("p50_us", "p99_us", "max_us"))]
        for name, key in (("nothing else", "quiet"), ("produce and fetch", "busy"))
    ]
    return [
        f"### Heartbeats, {run['heartbeats_per_s']:,} a second, beside produce and fetch traffic",
        "",
        f"{_median(streams, 'produced_mb_s'):.0f} MB/s produced and "
        f"{_median(streams, 'fetched_mb_s'):.0f} MB/s fetched, in batches of 64 kB, 6 partitions. "
        "Latency counts from the moment a heartbeat was due.",
        "",
        *_table(["beside", "p50 us", "p99 us", "max us"], rows),
    ]


def _rebalance(run: Run) -> list[str]:
    what = {"form": "{} form", "join": "one joins {}", "leave": "one leaves {}"}
    rows = [
        [
            what[phase].format(f"{int(count):,}"),
            name,
            *(f"{values[key]:.3f}" for key in ("seconds", "server_cpu_s", "client_cpu_s")),
            f"{medians[RINGLEADER]['seconds'] / values['seconds']:.2f}",
        ]
        for count, result in run["results"].items()
        for phase, medians in result["medians"].items()
        for name, values in medians.items()
    ]
    intervals = ", ".join(
        f"{result['heartbeat_interval_ms']:g} ms with {int(count):,}"
        for count, result in run["results"].items()
    )
    return [
        "### Rebalances: first request to last SyncGroup answer",
        "",
        f"All heartbeats together: {run['heartbeats_per_s']:,} a second. So each member beats every "
        f"{intervals} members, and learns that late of a join or leave.",
        "",
        *_table(["members", "server", "seconds", "server CPU s", "client CPU s", "Ringleader / it"], rows),
    ]


def _consumer_groups(run: Run) -> list[str]:
    results = run["results"]
    sizes = sorted(next(iter(results["records"].values())), key=int)
    rows = [[name, *(f"{each[size]:.1f}" for size in sizes)] for name, each in results["records"].items()]
    members, partitions = run["members"], run["partitions"]
    return [
        f"### Groups of the consumer protocol ({members:,} members, {partitions:,} partitions of one topic)",
        "",
        f"Steady heartbeats (v{run['version']}, 200 members of one group, 64 connections):",
        "",
        *_rates({"results": results["heartbeats"]}),
        "Rebalances:",
        "",
        *_table(consumer_groups.REBALANCES, consumer_groups.rebalance_cells(run)),
        "Records written while a group forms and one member leaves, for each member:",
        "",
        *_table(["server", *(f"{int(size):,} members" for size in sizes)], rows),
    ]


def _memory(run: Run) -> list[str]:
    results = run["results"]
    rows = [
        ["daemon, idle", f"{results['start_mib']:.0f}"],
        [
            f"1,000 idle members (groups of {results['group_members']})",
            f"{results['members_mib_per_1000']:.1f}",
        ],
        ["1,000 idle connections", f"{results['connections_mib_per_1000']:.1f}"],
    ]
    if modern := results.get("consumer_mib_per_1000"):  # older runs have none
        rows.insert(2, ["1,000 idle members of the consumer protocol", f"{modern:.1f}"])
    return ["### Resident memory", "", *_table(["", "MiB"], rows)]


def _idle_fetches(run: Run) -> list[str]:
    rows = [
        [kind, *(f"{value:,.0f}" for value in values.values())]
        for kind, values in run["results"]["medians"].items()
    ]
    return [
        f"### Fetches of a consumer at the end of {run['partitions']:,} partitions (v12)",
        "",
        "One connection asks for all partitions, none of which has a new record, and waits 1 ms each time. "
        "Requests are built and answers decoded as by GroupConsumer. Each figure is that of one fetch, the "
        "median of the rounds.",
        "",
        *_table(["", "request bytes", "answer bytes", "server CPU us", "client CPU us"], rows),
    ]


def _watching(run: Run) -> list[str]:
    rows = [
        [f"{int(groups):,}", name, f"{one['cores']:.3f}", f"{one['mib']:.0f}", f"{one['commits_per_s']:,.0f}"]
        for groups, measured in run["results"].items()
        for name, one in measured.items()
    ]
    return [
        f"### A watcher beside many groups ({run['commits_per_s']:,} commits a second)",
        "",
        "`ringleader watch` with its defaults and its page. Each group has two members, which commit in "
        "turn, one partition each, and stay behind the end of the topic. Measured for "
        f"{run['seconds']:.0f} s, once the watcher has read what was there before.",
        "",
        *_table(["groups", "server", "cores", "MiB", "commits per second"], rows),
    ]


def _replay(run: Run) -> list[str]:
    results = run["results"]
    rows = [
        ["no offsets", f"{results['empty_s']:.2f}"],
        [f"{results['offsets']:,} offsets", f"{results['full_s']:.2f}"],
    ]
    return [
        "### Start-up after SIGKILL, from the start of the process to its ready line",
        "",
        *_table(["state to replay", "seconds"], rows),
        f"Resident memory with these offsets: {results['resident_mib']:.0f} MiB; "
        f"data directory: {results['data_mib']:.0f} MiB.",
        "",
    ]


def _assignors(run: Run) -> list[str]:
    memory = [
        [
            f"{one['members']:,} x {one['partitions']:,}",
            *(f"{one[what] / 2**20:.0f}" for what in ("fresh", "one leaves")),
            f"{max(one['fresh'], one['one leaves']) / one['partitions']:.0f}",
        ]
        for one in run["memory"]
    ]
    return [
        "### Assignments, as the leader computes them",
        "",
        f"The members have the same {TOPICS} topics, or (mixed) {TOPICS // 2} of them, drawn at random. "
        f"`CPU ms`: computing, the median of {Plan().assignor_times} times for Ringleader, once for the "
        "others and for the largest group; `slowest`: the slowest of these; `with bytes`: with the members' "
        "bytes decoded and the answer's encoded. A cooperative rebalance counts with both of its rounds. "
        "`moves`: partitions that go from one who owned them to another. `spread`: between the member with "
        "the most and the one with the fewest.",
        "",
        *_table(COLUMNS, map(cells, run["results"])),
        "Peak of the memory that Python allocates meanwhile (sticky; `tracemalloc`):",
        "",
        *_table(["members x partitions", "fresh, MiB", "one leaves, MiB", "bytes a partition"], memory),
    ]


def _server_assignor(run: Run) -> list[str]:
    members, topics, each = run["sizes"]
    return [
        "### Targets that the coordinator computes (the consumer protocol)",
        "",
        f"{members:,} members, {topics:,} topics, {topics * each:,} partitions; `uniform`. CPU time of the "
        "calls of the group machine that have a part in a target: the question, the assignor, the check, the "
        "records. Other groups' requests are served between two calls.",
        "",
        *_table(server_assignor.COMPUTED, server_assignor.computed_cells(run["computed"])),
        "By the clock, through a daemon: the heartbeats of a group of one member, one after the other, next "
        "to the large group, whose members are on one connection. Other work of the machine is in it: "
        "`nothing else` and `heartbeats only` say how much.",
        "",
        *_table(server_assignor.SERVED, server_assignor.served_cells(run["served"])),
    ]


def _spark(run: Run) -> list[str]:
    return [
        f"### Spark reads {run['records']:,} records of 1 KB ({run['spark']})",
        "",
        f"JSON: as many of {run['json_bytes']['least']} to {run['json_bytes']['most']} bytes, half of "
        f"them up to {run['json_bytes']['median']}. Mixed: values of the same lengths that hardly compress, "
        "from two producers in turn, of which one compresses with lz4. The broker has Kafka's default "
        "settings: a query that is "
        "the first in its group waits 3 s for others.",
        "",
        "Medians of the rounds, in which each comes first in turn; a micro-batch of the first table has a "
        "quarter of the records. The CPU seconds are those of Spark's JVM and Python workers (of the "
        "fetching process where there is no Spark). Whole queries: their start is in the figures.",
        "",
        *_table(spark.RATES, spark.rate_rows(run["results"])),
        "Where the CPU time of our fetch goes, without Spark, us a record: "
        + ", ".join(f"{name} {us:.2f}" for name, us in run["results"]["steps"].items())
        + ". What a task of ours costs beyond that is Arrow's way from Python to the JVM.",
        "",
        *_table(spark.COSTS, spark.cost_rows(run["results"])),
    ]


def _consume(run: Run) -> list[str]:
    memory = ", ".join(f"{name} {mib:.0f}" for name, mib in run["memory_mib"].items())
    return [
        f"### One consumer reads {run['records']:,} records",
        "",
        "Without the first tenth, medians of the rounds; each round is a process of its own. "
        "Client and broker have a CPU each; all clients have their default settings and look at every value, "
        "but in the row that says what counting alone costs. Values have half to one and a half times the "
        "stated size, and can be halved by compression or hardly be compressed; the batches of a mixed topic "
        "have five codecs in turn.",
        "",
        *_table(consume.COLUMNS, consume.rows_of(run["results"])),
        "By how many MiB the process grows that reads 100 partitions with batches of 2 MB, which LZ4 makes "
        f"0.6 MB (GroupConsumer with a `buffer_max_bytes` of 4 MiB): {memory}.",
        "",
    ]


def _processing(run: Run) -> list[str]:
    return [
        f"### 100 handlers that wait 50 ms each, {run['records']:,} records in 4 partitions",
        "",
        "`plain tasks` only wait: they show the most that the machine allows. Medians of the rounds.",
        "",
        *_table(processing.COLUMNS, processing.rows_of(run["medians"])),
    ]


def _produce(run: Run) -> list[str]:
    return [
        f"### One producer writes {run['records']:,} records",
        "",
        "Without the first tenth, medians of the rounds; each round is a process of its own. Client and "
        "broker have a CPU each; all clients have their default settings but for the codec, and look at "
        "every outcome. Values have half to one and a half times the stated size.",
        "",
        *_table(produce.COLUMNS, produce.rows_of(run["results"])),
    ]


def _handover(run: Run) -> list[str]:
    rows = [
        [f"{library} on {broker}", *(f"{values[key] * 1000:,.0f}" for key in ("whole", "without owner"))]
        for broker, libraries in run["medians"].items()
        for library, values in libraries.items()
    ]
    return [
        "### A second consumer joins a cooperative group: half of the partitions move",
        "",
        "Default settings. `whole`: from its start until it has its half; for up to one heartbeat interval "
        "(3 s) the first consumer has not heard of it. `without owner`: from the end of `on_revoked` at the "
        "first to `on_assigned` at the second.",
        "",
        *_table(["consumers", "whole, ms", "without owner, ms"], rows),
    ]


def _failover(run: Run) -> list[str]:
    rows = [
        [
            f"{what}, {name}",
            *(f"{values[library] * 1000:,.0f}" for library in failover.MEASURED),
            values["rebalances"],
        ]
        for what in failover.ROWS
        for name, found in run["medians"].items()
        if (values := found.get(what)) is not None
    ]
    reads = ", ".join(
        f"{name}: {found['stale_reads']:,} of {found['reads']:,}, up to {found['stale_longest_s']:.2f} s"
        for name, found in run["reads"].items()
    )
    return [
        "### Nodes on three brokers: time without an acknowledged commit",
        "",
        f"Three replicas, two in sync; groups of {run['members']} and a member at the level of requests "
        "(raw), all of one coordinator. The slowest member of a library counts, medians of the rounds; "
        f"rebalances of all rounds. Reads that were older than an acknowledged commit: {reads}.",
        "",
        *_table(["", *(f"{name}, ms" for name in failover.MEASURED), "rebalances"], rows),
    ]


def _relay(run: Run) -> list[str]:
    rows = [[name, *(f"{value:,.0f}" for value in found.values())] for name, found in run["results"].items()]
    columns = ["", "direct MB/s", "relayed MB/s", "relayed MB per CPU second of the node", "kB per answer"]
    return [
        "### Records through a node (one node before three Kafka brokers)",
        "",
        "The load and the brokers share one processor, the node has another. Partitions have three leaders: "
        "a Fetch of one concerns one broker, a Fetch of all is put together from three.",
        "",
        *_table(columns, rows),
    ]


def _takeover(run: Run) -> list[str]:
    found = run["results"]
    return [
        f"### Nodes on three brokers: {found['offsets']:,} offsets are taken over",
        "",
        f"A node that has all groups is killed, and one that had none serves them all: after "
        f"{found['served_s']:.1f} s (the first group after {found['first_s']:.1f} s), medians of the rounds. "
        f"It has {found['resident_mib']:,.0f} MiB of resident memory then.",
    ]


def _node_commits(run: Run) -> list[str]:
    return [
        f"### Nodes on three brokers: commits that all replicas have (OffsetCommit v{run['version']})",
        "",
        "All servers share one CPU, the load has another; a CPU second is one of all servers together.",
        "",
        *_rates(run),
    ]


SECTIONS = {
    "heartbeats": _heartbeats,
    "commits": _commits,
    "mixed": _mixed,
    "rebalance": _rebalance,
    "consumer_groups": _consumer_groups,
    "memory": _memory,
    "idle_fetches": _idle_fetches,
    "replay": _replay,
    "assignors": _assignors,
    "server_assignor": _server_assignor,
    "consume": _consume,
    "processing": _processing,
    "produce": _produce,
    "handover": _handover,
    "failover": _failover,
    "node_commits": _node_commits,
    "relay": _relay,
    "takeover": _takeover,
    "secured": _secured,
    "spark": _spark,
    "watching": _watching,
}


@dataclass(frozen=True)
class _Section:
    """One benchmark in the document. ``about``: its name, machine, load averages, and how many goals it has.
    It stands as a comment before the section's text, for the run that measures other things."""

    about: Run
    goals: list[str]
    text: list[str]

    @classmethod
    def of(cls, name: str, run: Run) -> _Section:
        machine, goals = run["machine"], _goals(run)
        load = machine["load_average_after"]
        about = {
            "name": name,
            "machine": f"{machine['cpus']} CPUs ({machine['cpu']}), {machine['kernel']}, "
            f"{machine['python']}, {machine['compiler']}",
            "load": [load, load],
            "goals": len(goals),
        }
        return cls(about, goals, SECTIONS[name](run))

    @property
    def name(self) -> str:
        return str(self.about["name"])

    def lines(self) -> list[str]:
        return [f"<!-- section: {json.dumps(self.about)} -->", "", *self.text]


def _written(before: str) -> list[_Section]:
    """The sections that a document has. Raises ValueError when its goals are not those of its sections."""
    head, *parts = re.split(r"^<!-- section: (.*) -->\n\n", before, flags=re.MULTILINE)
    rows = head.partition(_GOALS_HEAD)[2].strip().splitlines()
    found = []
    for about, text in zip(map(json.loads, parts[::2]), parts[1::2], strict=True):
        goals, rows = rows[: about["goals"]], rows[about["goals"] :]
        found.append(_Section(about, goals, [*text.strip("\n").split("\n"), ""]))
    if rows:
        raise ValueError(f"{len(rows)} goals are of no section")
    return found


def _machines(sections: Sequence[_Section]) -> list[str]:
    """Where it ran, and beside how much else."""
    found: dict[str, list[_Section]] = {}
    for section in sections:
        found.setdefault(section.about["machine"], []).append(section)
    lines = []
    for machine, there in found.items():
        loads = [load for section in there for load in section.about["load"]]
        which = f" ({', '.join(section.name for section in there)})" if len(found) > 1 else ""
        lines += [
            f"{machine}{which}. Load average at the end of the runs: {min(loads):.1f} to {max(loads):.1f}; "
            "the benchmark itself makes about 2, all above is other work on the machine, which lowers every "
            "rate and raises every time and latency; ratios per CPU second suffer least, those by the clock "
            "more.",
            "",
        ]
    return lines


def numbers(runs: dict[str, Run], before: str = "") -> str:
    """The part between the marks, from the content of the JSON files by name. A section there that has no
    newer run stays. Raises ValueError when that cannot be read."""
    sections = {section.name: section for section in _written(before)}
    sections |= {name: _Section.of(name, run) for name, run in runs.items()}
    ordered = [sections[name] for name in SECTIONS if name in sections]
    peers = _peers(runs)
    named = {line.split(":")[0].split(" was **")[0] for line in peers}
    head = before.partition(_GOALS_HEAD)[0].splitlines()
    kept = [
        line for line in head if line.startswith("- ") and line.split(":")[0].split(" was **")[0] not in named
    ]
    lines = [*_machines(ordered), *kept, *peers]
    if kept and not peers:
        lines.append("")
    lines += [_GOALS_HEAD.rstrip("\n"), *(goal for section in ordered for goal in section.goals), ""]
    for section in ordered:
        lines += section.lines()
    return "\n".join(lines)


def main() -> int:
    """Rewrites the document; returns the exit code."""
    runs = {
        name: json.loads((OUT / f"{name}.json").read_text())
        for name in SECTIONS
        if (OUT / f"{name}.json").exists()
    }
    if not runs:
        print("There are no results in bench/out: run python -m bench first.", file=sys.stderr)
        return 1
    before, begin, rest = DOCUMENT.read_text().partition(BEGIN)
    between, end, after = rest.partition(END)
    if not begin or not end:
        print(f"{DOCUMENT} has lost its marks.", file=sys.stderr)
        return 1
    DOCUMENT.write_text(f"{before}{begin}\n{numbers(runs, between)}{end}{after}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
