"""The house rules that a tool can check: the arrows between the rooms, and import names."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOMS = {"protocol", "coordinator", "clients", "spark_bridge", "report", "insight"}
FOLDERS = [*sorted(ROOMS), "ringleader/cli", "tests", "demo", "bench", "tools", "examples"]


def _imported(tree: ast.AST) -> list[str]:
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.append(node.module)
    return names


def test_arrows_between_rooms_hold() -> None:
    done = subprocess.run(
        [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("folder", FOLDERS)
def test_rooms_are_imported_by_their_installed_names(folder: str) -> None:
    files = sorted((ROOT / folder).rglob("*.py"))
    bare = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in files
        for name in _imported(ast.parse(path.read_text()))
        if name.partition(".")[0] in ROOMS
    ]
    assert bare == []


@pytest.mark.parametrize("room", sorted(ROOMS))
def test_links_to_rooms_are_relative_and_whole(room: str) -> None:
    link = ROOT / "ringleader" / room
    assert link.is_symlink()
    assert link.readlink() == Path("..") / room
    assert (link / "__init__.py").is_file()


ONE_CONCEPT = {
    "bench/document.py": "one page: a section for each benchmark, a few lines each",
    "clients/admin.py": "calls of one class, a few lines each",
    "clients/fetch/reader.py": "one class: partitions come, are read, and are handed out",
    "tests/coordinator/groups/test_patterns.py": "when a shard asks about expressions, and what answers do",
    "tests/clients/process/test_process.py": "one call, by what may happen to it",
    "clients/group/driver.py": "one class: the thread of a member, and what it does for the machine",
    "coordinator/cluster/node.py": "one class: the parts of a node, put together, started and ended",
    "coordinator/http.py": "every metric: how it is counted, and how it is told",
    "coordinator/groups/consumer.py": "one request and its group, a step of Kafka's order each",
    "coordinator/groups/core.py": "what the parts of a shard share: durable state, deadlines, outbox",
    "tests/interop/clients/test_consumer_protocol_on_kafka.py": "one protocol on two coordinators, by test",
    "coordinator/config.py": "all settings of a daemon, and how they are read",
    "coordinator/topics/log.py": "the directory of topics: one class, its calls a few lines each",
    "insight/inference/causes.py": "one table of rules in their order, with what each says",
    "insight/inference/modern.py": "what the records of one group say whose broker assigns",
    "coordinator/journal/record.py": "the contract of the records, and what makes each of them",
    "coordinator/runtime/shards.py": "the life of shards: calls, drains, failures, timers of one runtime",
    "coordinator/transactions/machine.py": "one machine: every state a transactional id can be in",
    "tests/clients/test_interrupted.py": "what an exception in the middle of a call costs, each a short test",
    "tests/coordinator/runtime/test_shards.py": "what a runtime does with its shards, each a short test",
    "coordinator/server/connection.py": "the bytes of one connection: read, cut into frames, kept, written",
    "coordinator/server/session.py": "the frames of one connection: phases, requests, answers, closing",
    "protocol/messages/__init__.py": "every message by name",
    "tests/interop/asks.py": "the words of the steps, one function a request",
    "tests/interop/play.py": "one class: a step is sent, settles, and is put into words",
    "tests/coordinator/groups/script.py": "the language of the scenarios, one method a command",
    "tests/coordinator/server/test_connection.py": "what a connection does, each a short test",
    "tests/coordinator/server/test_strangers.py": "what peers that never log in may do, each a short test",
    "tests/coordinator/server/test_throttle.py": "what a quota does to a connection, each a short test",
    "tests/clients/test_transactions.py": "a producer's transactions, each a short test",
    "tests/spark_bridge/test_driver_members.py": "the memberships of one driver, each a short test",
    "tests/simulation/consumer/world.py": "what there is in one run of a group of either protocol",
    "tests/simulation/nodes/world.py": "what there is in one run of several nodes",
    "tests/simulation/world.py": "what there is in one run",
}
"""Files of 500 lines and more, and why they are not two: the number asks, it does not cut."""


def test_a_long_file_is_one_concept() -> None:
    long = {
        str(path.relative_to(ROOT))
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*.py"))
        if len(path.read_text().splitlines()) >= 500
    }
    assert long == set(ONE_CONCEPT)
