"""``ringleader groups import``: offsets go over with all that belongs to them, or nothing is changed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from ringleader.clients.admin import Admin
from ringleader.clients.group.subscription import sync_consumer_member
from ringleader.clients.model import OffsetAndMetadata, Offsets, TopicPartition
from ringleader.testing.coordinator import Coordinator
from tests.support.command import Done, run_command, run_here
from tests.support.consuming import PATIENCE_S, QUICK

BILLING = {
    ("orders", 0): OffsetAndMetadata(5, "where [bold]I[/bold] was", 3),
    ("orders", 2): OffsetAndMetadata(0, "", 7),
    ("bills", 0): OffsetAndMetadata(2**40),
}
TOPICS = {"orders": 3, "bills": 1}


@pytest.fixture
def source() -> Iterator[Coordinator]:
    with Coordinator(topics=TOPICS) as started:
        commit(started, "billing", BILLING)
        commit(started, "audit", {("bills", 0): 7})
        yield started


@pytest.fixture
def target() -> Iterator[Coordinator]:
    with Coordinator(topics=TOPICS) as started:
        yield started


def commit(where: Coordinator, group: str, offsets: Offsets) -> None:
    async def set_offsets() -> None:
        async with Admin(where.bootstrap) as admin:
            await admin.set_group_offsets(group, offsets)

    asyncio.run(set_offsets())


def committed(where: Coordinator, group: str) -> Mapping[TopicPartition, OffsetAndMetadata]:
    async def ask() -> Mapping[TopicPartition, OffsetAndMetadata]:
        async with Admin(where.bootstrap) as admin:
            return await admin.group_offsets(group)

    return asyncio.run(ask())


def groups_of(where: Coordinator) -> list[str]:
    done = run_here(where.bootstrap, "groups", "list", "--json")
    return [one["group"] for one in json.loads(done.out)]


def take(source: Coordinator, target: Coordinator, *arguments: str) -> Done:
    servers = ("--from-bootstrap-server", source.bootstrap, "--to-bootstrap-server", target.bootstrap)
    return run_here(None, "groups", "import", *servers, *arguments)


def test_offsets_go_over_with_metadata_and_leader_epoch(source: Coordinator, target: Coordinator) -> None:
    done = take(source, target, "--all")
    assert (done.code, done.err) == (0, "")
    assert [line.split() for line in done.out.splitlines()] == [
        ["GROUP", "TOPIC", "PARTITION", "OFFSET", "BEFORE", "NOTE"],
        ["audit", "bills", "0", "7", "-"],
        ["billing", "bills", "0", str(2**40), "-"],
        ["billing", "orders", "0", "5", "-"],
        ["billing", "orders", "2", "0", "-"],
        ["Took", "over", "4", "offsets", "of", "2", "groups."],
    ]
    assert committed(target, "billing") == BILLING == committed(source, "billing")
    assert committed(target, "audit") == {("bills", 0): OffsetAndMetadata(7)}


def test_and_back(source: Coordinator, target: Coordinator) -> None:
    assert take(source, target, "--group", "billing").code == 0
    assert groups_of(target) == ["billing"]
    commit(target, "billing", {("orders", 0): 6})
    refused = take(target, source, "--group", "billing")
    assert (refused.code, refused.out) == (1, "")
    assert "The target has other offsets for billing; nothing has been changed." in refused.err
    assert committed(source, "billing") == BILLING
    done = take(target, source, "--group", "billing", "--overwrite", "--json")
    assert done.code == 0
    found = json.loads(done.out)
    assert found["executed"] is True
    assert [one for one in found["offsets"] if one["before"] != one["offset"]] == [
        {
            "group": "billing",
            "topic": "orders",
            "partition": 0,
            "offset": 6,
            "metadata": "",
            "leader_epoch": -1,
            "before": 5,
            "note": "",
        }
    ]
    assert committed(source, "billing") == committed(target, "billing")


def test_again_changes_nothing(source: Coordinator, target: Coordinator) -> None:
    assert [take(source, target, "--all").code for _ in range(2)] == [0, 0]
    assert committed(target, "billing") == BILLING


def test_a_dry_run_shows_and_changes_nothing(source: Coordinator, target: Coordinator) -> None:
    done = take(source, target, "--all", "--dry-run")
    assert done.code == 0
    assert "Nothing has changed; 4 offsets of 2 groups would be taken over." in done.out
    assert groups_of(target) == []
    assert not target.faults.seen("OffsetCommit")
    assert json.loads(take(source, target, "--all", "--dry-run", "--json").out)["executed"] is False


def test_groups_with_members_at_the_target_are_refused(source: Coordinator, target: Coordinator) -> None:
    with sync_consumer_member(target.bootstrap, "audit", ["bills"], client_id="ann", **QUICK) as member:
        member.wait_assigned(PATIENCE_S)
        for options in ((), ("--dry-run",), ("--overwrite",)):
            refused = take(source, target, "--all", *options)
            assert refused.code == 1
            expected = (
                "There are members at the target in audit (1 member (ann on 127.0.0.1)); nothing has been"
            )
            assert expected in refused.err
        assert groups_of(target) == ["audit"]
        assert take(source, target, "--group", "billing").code == 0
    assert take(source, target, "--all").code == 0


def test_members_at_the_source_are_reported(source: Coordinator, target: Coordinator) -> None:
    with sync_consumer_member(source.bootstrap, "audit", ["bills"], client_id="ann", **QUICK) as member:
        member.wait_assigned(PATIENCE_S)
        done = take(source, target, "--all")
    assert done.code == 0
    assert "There are members at the source in audit (1 member (ann on 127.0.0.1))" in done.err


def test_topics_that_the_target_lacks_are_left_out_and_reported(source: Coordinator) -> None:
    with Coordinator(topics={"orders": 1}) as target:
        done = take(source, target, "--all")
        assert done.code == 1
        assert "ringleader: 3 offsets left out, as the target has no such partition; see NOTE." in done.err
        rows = {tuple(line.split()[:3]): line for line in done.out.splitlines()}
        assert rows["billing", "bills", "0"].rstrip().endswith("no such topic at the target")
        assert rows["billing", "orders", "2"].rstrip().endswith("the topic has 1 partitions at the target")
        assert committed(target, "billing") == {("orders", 0): BILLING["orders", 0]}
        assert groups_of(target) == ["billing"]


def test_many_partitions_and_many_groups(source: Coordinator, target: Coordinator) -> None:
    """More than go into one commit, and than are asked for at a time."""
    for where in (source, target):
        where.create_topic("wide", 2_500)
    wide = {("wide", partition): OffsetAndMetadata(partition) for partition in range(2_500)}
    commit(source, "wide", wide)
    for number in range(40):
        commit(source, f"g{number}", {("orders", 1): number})
    assert take(source, target, "--all").code == 0
    assert committed(target, "wide") == wide
    assert all(committed(target, f"g{n}")["orders", 1].offset == n for n in range(40))


def test_groups_and_topics_that_do_not_exist(source: Coordinator, target: Coordinator) -> None:
    done = take(source, target, "--group", "nobody", "--group", "billing")
    assert (done.code, done.err) == (1, "ringleader: There is no group nobody at the source.\n")
    with sync_consumer_member(source.bootstrap, "new", ["bills"], **QUICK) as member:
        member.wait_assigned(PATIENCE_S)
        done = take(source, target, "--group", "new")
    assert (done.code, done.err) == (1, "ringleader: There is nothing committed at the source by new.\n")
    with Coordinator() as empty:
        done = take(empty, target, "--all")
    assert (done.code, done.out) == (0, "Took over 0 offsets of 0 groups.\n")


def test_somebody_who_commits_meanwhile_is_noticed(source: Coordinator, target: Coordinator) -> None:
    """The write's answer says that it is done; what is read back says something else."""
    done = asyncio.run(_with_a_rival(source, target))
    assert done.code == 1
    assert "reads as OffsetAndMetadata(offset=1" in done.err
    assert "is somebody else committing?" in done.err


async def _with_a_rival(source: Coordinator, target: Coordinator) -> Done:
    rule = target.faults.delay("OffsetFetch", 1.0, nth=2, times=1)
    taking = asyncio.create_task(asyncio.to_thread(take, source, target, "--group", "audit"))
    async with asyncio.timeout(PATIENCE_S):
        while not rule.hits:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    async with Admin(target.bootstrap) as admin:
        await admin.set_group_offsets("audit", {("bills", 0): 1})
    return await taking


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), "Say which groups: --group GROUP, or --all."),
        (("--all", "--group", "g"), "Say which groups: --group GROUP, or --all."),
        (("--all", "--to-bootstrap-server", "h:x"), "--to-bootstrap-server: not an address"),
        (("--all", "--from-command-config", "none.properties"), "--from-command-config: "),
        (("--all", "--to-command-config", "none.properties"), "--to-command-config: "),
    ],
)
def test_wrong_input(arguments: tuple[str, ...], expected: str) -> None:
    done = run_here(None, "groups", "import", "--from-bootstrap-server", "h:1", *arguments)
    assert done.code == 2
    assert done.err.startswith(f"ringleader: {expected}")


def test_a_source_has_to_be_told(target: Coordinator) -> None:
    done = run_command(target.bootstrap, "groups", "import", "--all")
    assert done.code == 2
    assert "--from-bootstrap-server" in done.err
    assert "Traceback" not in done.err


def test_a_side_that_cannot_be_reached_is_a_sentence(
    source: Coordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ringleader.cli.import_groups.CALL_TIMEOUT_MS", 500)
    servers: dict[str, Any] = {"from": source.bootstrap, "to": "127.0.0.1:1"}
    for _ in range(2):
        named = [word for side, where in servers.items() for word in (f"--{side}-bootstrap-server", where)]
        done = run_here(None, "groups", "import", *named, "--all")
        assert (done.code, done.out) == (1, "")
        assert "127.0.0.1:1" in done.err
        servers = {"from": servers["to"], "to": servers["from"]}
