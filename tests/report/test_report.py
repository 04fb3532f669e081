"""The report on a group: its numbers against those of plain Python over the same records."""

from __future__ import annotations

import asyncio
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from kafka.partitioner.default import murmur2
from rich.console import Console
from typer.testing import CliRunner

from ringleader import SyncGroupMember, sync_consumer_member
from ringleader.clients.admin import Admin
from ringleader.report import facts, fitting
from ringleader.report.command import seconds
from ringleader.report.numbers import Report, Wanted, make, options, shown
from ringleader.report.page import page
from ringleader.report.table import show
from ringleader.testing.coordinator import Coordinator

PARTITIONS = 3
NOW_MS = 1_800_000_000_000
OLD_MS = NOW_MS - 7_200_000
WINDOW_S = 600
PATIENCE_S = 30

Sent = tuple[int, bytes | None, int]
"""Partition, key, timestamp in ms."""


def records() -> list[Sent]:
    """Half of the records of one key; some without a key; a minute that is twice as busy."""
    sent: list[Sent] = []
    for number in range(600):
        key = b"hot" if number % 2 else b"key-%d" % (number % 14)
        at_ms = NOW_MS - (number % 300) * 1_000 - 1
        sent.append(((murmur2(key) & 0x7FFFFFFF) % PARTITIONS, key, at_ms))
    sent += [(number % PARTITIONS, None, NOW_MS - 30_000) for number in range(90)]
    return sent


async def produce(bootstrap: str, sent: list[Sent], topic: str = "clicks") -> None:
    async with AIOKafkaProducer(bootstrap_servers=bootstrap, linger_ms=20) as producer:
        for partition in range(PARTITIONS):
            await producer.send(topic, b"before", partition=partition, timestamp_ms=OLD_MS)
        waits = [
            await producer.send(topic, b"x" * 50, key, partition=partition, timestamp_ms=at_ms)
            for partition, key, at_ms in sent
        ]
        await asyncio.gather(*waits)


@pytest.fixture(scope="module")
def sent() -> list[Sent]:
    return records()


@pytest.fixture(scope="module")
def coordinator(sent: list[Sent]) -> Iterator[Coordinator]:
    with Coordinator() as found:
        found.create_topic("clicks", PARTITIONS)
        asyncio.run(produce(found.bootstrap, sent))
        yield found


@pytest.fixture(scope="module")
def members(coordinator: Coordinator) -> Iterator[list[SyncGroupMember]]:
    """One more than there are partitions, and a commit of the first ten records of each partition."""
    joined = [
        sync_consumer_member(coordinator.bootstrap, "billing", ["clicks"], client_id=f"service-{index}")
        for index in range(PARTITIONS + 1)
    ]
    try:
        for one in joined:
            one.start()
        admin_sees(coordinator, [0] + [1] * PARTITIONS)
        for one in joined:
            share = one.wait_assigned(PATIENCE_S)
            if share.is_leader:
                one.commit({("clicks", p): 10 for p in range(PARTITIONS)})
        yield joined
    finally:
        for one in joined:
            one.stop()


def admin_sees(coordinator: Coordinator, shares: list[int]) -> None:
    """Wait until the group has settled with shares of these sizes. A cooperative group is stable between its
    rebalances, too, when what was given up has no new owner yet."""

    async def look() -> None:
        async with Admin(coordinator.bootstrap) as admin, asyncio.timeout(PATIENCE_S):
            while True:
                (group,) = await admin.describe_groups(["billing"])
                found = sorted(sum(map(len, one.assignment.values())) for one in group.members)
                if group.state == "Stable" and found == shares:
                    return
                await asyncio.sleep(0.02)

    asyncio.run(look())


def looked(
    coordinator: Coordinator, group: str = "billing", topics: Sequence[str] = (), **how: Any
) -> facts.GroupFacts:
    async def ask() -> facts.GroupFacts:
        async with Admin(coordinator.bootstrap) as admin:
            given = {"since_ms": NOW_MS - WINDOW_S * 1000, "max_records": 1_000_000} | how
            return await facts.look(admin, group, topics, **given)

    return asyncio.run(ask())


def test_the_cluster_tells_window_lag_owners_and_idle_members(
    coordinator: Coordinator, members: list[SyncGroupMember], sent: list[Sent]
) -> None:
    found = looked(coordinator)
    counts = Counter(partition for partition, _, _ in sent)
    assert {(one.partition, one.start, one.end) for one in found.partitions} == {
        (p, 1, counts[p] + 1) for p in range(PARTITIONS)
    }
    assert [one.lag for one in found.partitions] == [counts[p] + 1 - 10 for p in range(PARTITIONS)]
    assert {one.owner for one in found.partitions} <= {one.member_id for one in found.members}
    assert sorted(one.partitions for one in found.members) == [0, 1, 1, 1]
    assert [one.idle for one in found.members].count(True) == 1
    assert sum(one.lag for one in found.members) == sum(one.lag or 0 for one in found.partitions)
    assert all(one.consumed_per_s is None for one in found.members)


def test_a_watched_group_shows_its_pace_and_a_limit_takes_the_newest(
    coordinator: Coordinator, members: list[SyncGroupMember]
) -> None:
    assert {one.consumed_per_s for one in looked(coordinator, watch_s=0.05).partitions} == {0.0}
    found = looked(coordinator, max_records=30)
    assert [one.end - one.start for one in found.partitions] == [10] * PARTITIONS


def test_a_group_that_reads_nothing_and_a_topic_that_is_not_there_are_named(coordinator: Coordinator) -> None:
    async def ask(group: str, topics: list[str]) -> None:
        async with Admin(coordinator.bootstrap) as admin:
            await facts.look(admin, group, topics, since_ms=0, max_records=10)

    with pytest.raises(facts.ReportError, match="group nobody reads no topic"):
        asyncio.run(ask("nobody", []))
    with pytest.raises(facts.ReportError, match="no such topic: nothing"):
        asyncio.run(ask("nobody", ["nothing"]))


@pytest.fixture(scope="module")
def report(
    spark: Any,
    coordinator: Coordinator,
    members: list[SyncGroupMember],
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Report, Path]:
    group = looked(coordinator)
    wanted = Wanted(window_s=WINDOW_S, producer_per_s=100, consumer_per_s=2, hot_keys=3)
    out = tmp_path_factory.mktemp("report")
    return make(spark, group, wanted, options(group, coordinator.bootstrap), NOW_MS, out), out


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_the_numbers_are_those_of_plain_python(report: tuple[Report, Path], sent: list[Sent]) -> None:
    found, _ = report
    of_partition = Counter(partition for partition, _, _ in sent)
    assert [one.records for one in found.partitions] == [of_partition[p] for p in range(PARTITIONS)]
    sizes = [sum(50 + len(key or b"") for p, key, _ in sent if p == n) for n in range(PARTITIONS)]
    assert [one.bytes for one in found.partitions] == sizes
    slot_s = found.wanted.slot_s
    slots = Counter((p, at_ms // (slot_s * 1000)) for p, _, at_ms in sent)
    peaks = [max(count for (p, _), count in slots.items() if p == n) for n in range(PARTITIONS)]
    assert [one.peak_per_s for one in found.partitions] == [peak / slot_s for peak in peaks]
    busiest = max(Counter(at_ms // (slot_s * 1000) for _, _, at_ms in sent).values()) / slot_s
    assert max(rate for _, rate in found.times["clicks"]) == busiest
    (fit,) = found.fits
    assert fit.target_per_s == pytest.approx(1.5 * busiest)
    counts = Counter(shown(key) for _, key, _ in sent)
    third = min(key for key, count in counts.items() if count == counts.most_common(3)[2][1])
    assert [(one.key, one.records) for one in found.keys] == [
        ("hot", 300),
        ("no key", 90),
        (third, counts[third]),
    ]
    assert found.keys[0].share == pytest.approx(300 / len(sent))


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_the_spread_is_that_of_the_java_producers_hash(report: tuple[Report, Path], sent: list[Sent]) -> None:
    found, _ = report
    assert {1, PARTITIONS, PARTITIONS + 1, 2 * PARTITIONS} <= {one.n for one in found.spreads}
    for one in found.spreads:
        slots = Counter((murmur2(key) & 0x7FFFFFFF) % one.n for _, key, _ in sent if key is not None)
        keyless = sum(key is None for _, key, _ in sent) / one.n
        assert one.share == pytest.approx((max(slots.values()) + keyless) / len(sent)), one.n


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_page_and_parquet_hold_the_same_and_load_nothing(
    spark: Any, report: tuple[Report, Path], sent: list[Sent]
) -> None:
    found, out = report
    shown_page = page(found)
    assert not re.search(r"(src|href)\s*=|@import|url\(|https?://", shown_page)
    for text in ("Group billing", "Topic clicks", "service-0", "hot", "1 of 4 members are idle", "<svg"):
        assert text in shown_page
    assert any("the key has to be split" in one for one in found.findings)
    keys = spark.read.parquet(str(out / "keys.parquet")).collect()
    assert {(row.key and bytes(row.key)): row.records for row in keys} == Counter(key for _, key, _ in sent)
    partitions = spark.read.parquet(str(out / "partitions.parquet")).orderBy("partition").collect()
    assert [(row.records, row.lag) for row in partitions] == [
        (one.records, one.place.lag) for one in found.partitions
    ]


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_the_command_prints_and_writes(
    spark: Any, coordinator: Coordinator, members: list[SyncGroupMember], tmp_path: Path
) -> None:
    from ringleader.report.command import app

    given = ["billing", "-b", coordinator.bootstrap, "--window", "1000d", "--out", str(tmp_path)]
    done = CliRunner().invoke(app, given)
    assert done.exit_code == 0, done.output
    assert "reading 693 records of 3 partitions" in done.stderr
    assert "1 of 4 members are idle" in done.stdout
    assert "Group billing" in (tmp_path / "report.html").read_text()


SKEWED = {0: 650, 1: 250, 2: 100}
"""Partition -> its records: one every 500 ms, so the fullest is 325 s long."""


@pytest.fixture(scope="module")
def skewed(coordinator: Coordinator) -> Coordinator:
    """A topic with one key for each partition."""
    coordinator.create_topic("skewed", PARTITIONS)
    sent: list[Sent] = [
        (partition, b"key-%d" % partition, NOW_MS - 500 * (count - number))
        for partition, count in SKEWED.items()
        for number in range(count)
    ]
    asyncio.run(produce(coordinator.bootstrap, sent, "skewed"))
    return coordinator


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_what_small_partitions_leave_of_the_limit_goes_to_the_big_ones(
    spark: Any, skewed: Coordinator
) -> None:
    group = looked(skewed, "nobody", ["skewed"], max_records=1_100)
    found = make(spark, group, Wanted(window_s=WINDOW_S), options(group, skewed.bootstrap), NOW_MS)
    assert [one.records for one in found.partitions] == [650, 250, 100]
    assert [one.share for one in found.partitions] == [0.65, 0.25, 0.1]
    assert "left out" not in " ".join(found.findings)


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_what_the_limit_leaves_out_is_said_and_does_not_even_the_skew_out(
    spark: Any, skewed: Coordinator
) -> None:
    group = looked(skewed, "nobody", ["skewed"], max_records=600)
    found = make(spark, group, Wanted(window_s=WINDOW_S), options(group, skewed.bootstrap), NOW_MS)
    assert [(one.records, one.place.left_out) for one in found.partitions] == [(250, 400), (250, 0), (100, 0)]
    assert [one.share for one in found.partitions] == pytest.approx([0.65, 0.25, 0.1])
    assert [one.key for one in found.keys] == ["key-0", "key-1", "key-2"]
    assert [one.share for one in found.keys] == pytest.approx([0.65, 0.25, 0.1])
    # Two a second in its newest 125 s; over the whole window it would seem to be less.
    assert found.partitions[0].rate_per_s == pytest.approx(2.0, rel=0.1)
    expected = (
        "Only 600 of the 1,000 records of the window were read (--max-records): 400 older ones of 1 of 3"
    )
    assert expected in found.findings[0]
    drawn = Console(record=True, width=200, file=io.StringIO())
    show(found, drawn)
    for text in (page(found), drawn.export_text()):
        assert expected in text
    assert "250 · 65%, 400 left out" in page(found)


def test_a_limit_is_shared_out_without_a_rest() -> None:
    counts = {("t", 0): 10, ("t", 1): 0, ("t", 2): 3, ("u", 0): 100}
    for most in (0, 1, 2, 11, 13, 23, 24, 112, 113, 1_000):
        given = facts.shares(counts, most)
        assert sum(given.values()) == min(most, sum(counts.values()))
        assert all(given[place] <= count for place, count in counts.items())
        cut = [given[place] for place, count in counts.items() if given[place] < count]
        assert not cut or max(given.values()) - min(cut) <= 1


def test_wrong_input_is_one_sentence(coordinator: Coordinator, tmp_path: Path) -> None:
    from ringleader.report.command import app

    wrong = tmp_path / "wrong.properties"
    wrong.write_text("security.protocol=SASL_SSL\nsasl.mechanism=NONE\n")
    for given, sentence, code in (
        (["g", "--window", "soon"], "is not a duration", 2),
        (["nobody", "-b", coordinator.bootstrap], "group nobody reads no topic", 1),
        (["g", "-b", "host:port:1"], "--bootstrap-server", 2),
        (["g", "--command-config", str(wrong)], "sasl.mechanism is 'NONE'", 2),
        (["g", "--command-config", str(tmp_path / "none")], "No such file", 2),
    ):
        done = CliRunner().invoke(app, given)
        assert (done.exit_code, sentence in " ".join(done.stderr.split())) == (code, True), done.stderr
        assert "Traceback" not in done.output


def test_durations() -> None:
    assert [seconds(text) for text in ("90", "90s", "15m", "2h", "1d")] == [90, 90, 900, 7_200, 86_400]


def test_keys_are_shown_as_people_read_them() -> None:
    assert shown(None) == "no key"
    assert shown(bytearray("größe".encode())) == "größe"
    assert shown(b"\xff\x00") == "0xff00"
    assert shown(b"") == "0x"
    assert shown(b"a\nb") == "0x610a62"
    assert len(shown(b"k" * 500)) == 60


def test_what_fits_follows_the_rule_and_the_hot_keys() -> None:
    even = {n: 1 / n for n in (1, 4, 5, 8, 12, 16, 20)}
    fit = fitting.fit("t", 4, 4, 1_000.0, 500.0, 50.0, even, ("k", 0.01))
    assert (fit.by_rule, fit.by_skew, fit.partitions_needed, fit.consumers_needed) == (20, 20, 20, 20)
    assert "4 partitions are too few" in fit.advice[0]
    skewed = {n: 0.3 + 0.7 / n for n in (1, 4, 8)}
    hot = fitting.fit("t", 4, 6, 100.0, 500.0, 25.0, skewed, ("k", 0.3))
    assert hot.by_skew is None
    assert any("2 of 6 consumers must be idle" in one for one in hot.advice)
    assert any("key k alone has 30%" in one for one in hot.advice)
    calm = fitting.fit("t", 4, 2, 10.0, 500.0, 50.0, {4: 0.25}, None)
    assert calm.advice == ()
    assert fitting.rule(0.0, 1.0, 1.0) == 1
