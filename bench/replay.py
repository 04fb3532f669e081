"""Start-up time of the daemon with a million committed offsets to replay."""

from __future__ import annotations

from typing import Any

from bench.plan import TOPIC, Plan
from bench.processes import daemon, resident_bytes, work_dir
from bench.report import median, save, say, table
from ringleader.protocol.errors import error_name
from ringleader.protocol.messages import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
)
from tests.support.rawclient import RawConnection

PARTITIONS = 1_000
COMMIT_VERSION, FETCH_VERSION = 7, 5
UNDER_WAY = 8


def commit_all(bootstrap: str, offsets: int) -> None:
    """`offsets` committed offsets, 1,000 partitions of one topic in each of as many groups as it takes: see
    `group_of`."""
    partitions = [
        OffsetCommitRequestPartition(partition_index=index, committed_offset=index, committed_metadata="")
        for index in range(PARTITIONS)
    ]
    groups = offsets // PARTITIONS
    with RawConnection(bootstrap) as connection:
        for number in range(groups + UNDER_WAY):
            if number < groups:
                topics = [OffsetCommitRequestTopic(name=TOPIC, partitions=partitions)]
                request = OffsetCommitRequest(group_id=group_of(number), topics=topics)
                connection.send(request, COMMIT_VERSION)
            if number < UNDER_WAY:
                continue
            for one in connection.receive().topics[0].partitions:
                if one.error_code:
                    raise RuntimeError(f"commit: {error_name(one.error_code)}")


def group_of(number: int) -> str:
    """The name of a group with offsets."""
    return f"replay-{number}"


def last_offset(connection: RawConnection, group: str) -> int | None:
    """That of the last partition; None: the group is not served there now."""
    topics = [OffsetFetchRequestTopic(name=TOPIC, partition_indexes=[PARTITIONS - 1])]
    answer = connection.call(OffsetFetchRequest(group_id=group, topics=topics), FETCH_VERSION)
    if answer.error_code:
        return None
    return int(answer.topics[0].partitions[0].committed_offset)


def check(group: str, offset: int | None) -> None:
    """Raises RuntimeError unless it is the one that was committed."""
    if offset != PARTITIONS - 1:
        raise RuntimeError(f"{group} came back with offset {offset}")


def run(plan: Plan) -> dict[str, Any]:
    """Runs it, prints the table, writes replay.json, returns its content."""
    topics = [f"{TOPIC}:{PARTITIONS}"]
    with work_dir(plan.data_dir) as directory, daemon(directory, None, topics=topics) as server:
        without = [server.restart() for _ in range(plan.rounds)]
        say(f"replay: committing {plan.offsets:,} offsets")
        commit_all(server.bootstrap, plan.offsets)
        full = []
        for number in range(plan.rounds):
            full.append(server.restart())
            say(f"  round {number + 1}: ready after {full[-1]:.2f} s")
        resident = resident_bytes(server.pid)
        last = group_of(plan.offsets // PARTITIONS - 1)
        with RawConnection(server.bootstrap) as connection:
            check(last, last_offset(connection, last))
        stored = sum(path.stat().st_size for path in server.data_dir.rglob("*") if path.is_file())
    results = {
        "offsets": plan.offsets,
        "empty_s": median(without),
        "full_s": median(full),
        "replay_s": median(full) - median(without),
        "resident_mib": resident / 2**20,
        "data_mib": stored / 2**20,
        "rounds": {"empty_s": without, "full_s": full},
    }
    rows = [
        ["start to ready line, no offsets, s", f"{results['empty_s']:.2f}"],
        [f"start to ready line, {plan.offsets:,} offsets, s", f"{results['full_s']:.2f}"],
        ["resident memory then, MiB", f"{results['resident_mib']:.0f}"],
        ["data directory, MiB", f"{results['data_mib']:.0f}"],
    ]
    table("Start-up after SIGKILL (medians)", ["", ""], rows)
    whole = {"results": results}
    save(plan.out_dir, "replay", whole)
    return whole
