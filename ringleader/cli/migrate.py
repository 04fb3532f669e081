"""``ringleader migrate``: what one daemon has goes into a Kafka cluster, for several nodes."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ringleader.cli.asking import NOWHERE, security_of
from ringleader.cli.common import NONE, WRONG_INPUT, JsonOption, complain, console, fail, table, utf8

if TYPE_CHECKING:
    from ringleader.migration.migration import Plan, Report

HELP = (
    "Copy a single daemon's topics, records, groups, offsets, users, ACLs and quotas to a Kafka cluster, "
    "before the first start of the nodes that are to serve them (`ringleader serve --cluster`).\n\n"
    "The daemon has to be stopped, and its directory stays as it is, except for a note of how far this is. "
    "After an early end the same command goes on. Topics are made with their settings, "
    "records written in their order as the daemon has them (no aborted ones), and counted; groups keep their "
    "members and generations. Where a log does not begin at 0, or has transactions, records have other "
    "offsets on the cluster: committed offsets are translated, and members of such groups have to join "
    "again.\n\n"
    "Give --config and the environment as the daemon had them: settings that are not the defaults become "
    "settings of the topics.\n\n"
    "Examples:\n\n"
    "  ringleader migrate --from /var/lib/ringleader --cluster k1:9092,k2:9092,k3:9092 --dry-run\n\n"
    "  ringleader migrate --from /var/lib/ringleader --cluster k1:9093 --cluster-properties kafka.properties"
)
PROGRESS_S = 0.2
LINE_S = 30.0
"""Between two lines, where no terminal shows one that moves."""


SourceOption = Annotated[
    Path, typer.Option("--from", metavar="DIR", help="Data directory of the daemon.", show_default=False)
]
ClusterOption = Annotated[
    str,
    typer.Option(
        parser=utf8, metavar="HOST:PORT[,...]", help="Brokers of the Kafka cluster.", show_default=False
    ),
]
ClusterPropertiesOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Client properties for TLS and SASL, as for `ringleader serve`.",
        show_default=False,
    ),
]
ClusterGroupsTopicOption = Annotated[
    str | None, typer.Option(metavar="TEXT", help="Same value as on the nodes.", show_default=False)
]
ClusterSecurityTopicOption = Annotated[
    str | None, typer.Option(metavar="TEXT", help="Same value as on the nodes.", show_default=False)
]
ClusterGroupIdOption = Annotated[
    str | None,
    typer.Option(
        metavar="TEXT",
        help="Same value as on the nodes. Refused while a node is a member of this group.",
        show_default=False,
    ),
]
ClusterTransactionalIdPrefixOption = Annotated[
    str | None, typer.Option(metavar="TEXT", help="Same value as on the nodes.", show_default=False)
]
ClusterReplicationFactorOption = Annotated[
    int | None,
    typer.Option(
        metavar="NUMBER",
        help="Replication factor of the nodes' topics if they are created.",
        show_default=False,
    ),
]
ReplicationFactorOption = Annotated[
    int | None,
    typer.Option(
        metavar="NUMBER",
        min=1,
        help="Replication factor of the topics. Default: the cluster's.",
        show_default=False,
    ),
]
ConfigOption = Annotated[
    Path | None,
    typer.Option("--config", envvar="RINGLEADER_CONFIG", metavar="FILE", help="Settings file of the daemon."),
]
IntoExistingOption = Annotated[
    bool,
    typer.Option(
        "--into-existing",
        help="Append to topics that contain records, and keep groups that exist.",
    ),
]
DryRunOption = Annotated[
    bool,
    typer.Option("--dry-run", help="Check whether the migration is possible, without changing anything."),
]


def migrate(
    source: SourceOption,
    cluster: ClusterOption,
    cluster_properties: ClusterPropertiesOption = None,
    cluster_groups_topic: ClusterGroupsTopicOption = None,
    cluster_security_topic: ClusterSecurityTopicOption = None,
    cluster_group_id: ClusterGroupIdOption = None,
    cluster_transactional_id_prefix: ClusterTransactionalIdPrefixOption = None,
    cluster_replication_factor: ClusterReplicationFactorOption = None,
    replication_factor: ReplicationFactorOption = None,
    config: ConfigOption = None,
    into_existing: IntoExistingOption = False,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Take a single daemon's topics and groups into a Kafka cluster."""
    from ringleader.coordinator.config import SettingsError, load_settings
    from ringleader.migration.migration import Plan

    flags = {
        "cluster": cluster,
        "cluster_properties": None if cluster_properties is None else str(cluster_properties),
        "cluster_groups_topic": cluster_groups_topic,
        "cluster_security_topic": cluster_security_topic,
        "cluster_group_id": cluster_group_id,
        "cluster_transactional_id_prefix": cluster_transactional_id_prefix,
        "cluster_replication_factor": cluster_replication_factor,
        "data_dir": str(source),
        "node_id": 1,
    }
    try:
        settings = load_settings(flags, os.environ, config)
    except SettingsError as error:
        fail(str(error), WRONG_INPUT)
    _, security = security_of(settings.cluster_properties, "--cluster-properties")
    if not source.is_dir():
        fail(f"--from: there is no directory {source}.", WRONG_INPUT)
    plan = Plan(
        directory=source,
        settings=settings,
        security=security,
        replicas=-1 if replication_factor is None else replication_factor,
        into_existing=into_existing,
        dry_run=dry_run,
    )
    report = _run(plan)
    if as_json:
        print(json.dumps({"executed": not dry_run} | asdict(report)))
    else:
        _show(report)
    print(_sentence(report, dry_run), file=sys.stderr if as_json else sys.stdout)


def _run(plan: Plan) -> Report:
    """An error ends the command with one sentence."""
    from ringleader.clients.errors import ClientError
    from ringleader.coordinator.storage.base import StorageError
    from ringleader.migration.migration import migrate as run
    from ringleader.migration.source import SourceError
    from ringleader.migration.state import StateError
    from ringleader.migration.topics import ConflictError
    from ringleader.protocol.errors import KafkaError, MalformedError

    logging.getLogger("ringleader").addHandler(NOWHERE)
    shown = _Progress()
    wrong: tuple[type[Exception], ...] = (SourceError, ConflictError, StateError, ClientError)
    wrong += (StorageError, KafkaError, MalformedError, OSError)
    try:
        return asyncio.run(run(plan, shown))
    except wrong as error:
        fail(f"{str(error).rstrip('.')}.")
    finally:
        shown.end()


def _show(report: Report) -> None:
    numbers = ("PARTITIONS", "RECORDS")
    topics = table("TOPIC", *numbers, "OTHER OFFSETS IN", right=numbers)
    for topic in report.topics:
        shifted = ", ".join(map(str, topic.shifted)) or NONE
        topics.add_row(topic.topic, str(topic.partitions), str(topic.records), shifted)
    columns = ("GENERATION", "MEMBERS", "OFFSETS", "TRANSLATED")
    groups = table("GROUP", *columns, "NOTE", right=columns)
    for group in sorted(report.groups, key=lambda one: one.group):
        note = "stays as it is on the cluster" if group.kept else ""
        note = "its members have to join again" if group.members_dropped else note
        figures = (group.generation, group.members, group.offsets, len(group.moved))
        groups.add_row(group.group, *map(str, figures), note)
    out = console()
    if report.topics:
        out.print(topics, markup=False)
    if report.topics and report.groups:
        out.print()
    if report.groups:
        out.print(groups, markup=False)


def _sentence(report: Report, dry_run: bool) -> str:
    total = sum(topic.records for topic in report.topics)
    groups = [one for one in report.groups if not one.kept]
    offsets = sum(one.offsets for one in groups)
    topics = f"{_count(len(report.topics), 'topic')} with {_count(total, 'record')}"
    what = f"{topics} and {_count(len(groups), 'group')} with {_count(offsets, 'offset')}"
    if any(report.security.values()):
        sections = "users", "acls", "quotas", "groups"
        users, acls, quotas, of_groups = (report.security[name] for name in sections)
        what += f", {_count(users, 'user')}, {_count(acls, 'ACL')} and {_count(quotas, 'quota')}"
        if of_groups:
            what += f", and what is set for {_count(of_groups, 'group')}"
    if dry_run:
        return f"Nothing has changed; {what} can be taken over."
    then = "Start the nodes, let clients bootstrap at them, and do not start the daemon again."
    return f"Took over {what}. {then}"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


class _Progress:
    """How far the records are, on standard error."""

    def __init__(self) -> None:
        self._moves = sys.stderr.isatty()
        self._began_s = self._shown_s = time.monotonic()
        self._moved = False

    def __call__(self, done: int, total: int) -> None:
        now_s = time.monotonic()
        if now_s - self._shown_s < (PROGRESS_S if self._moves else LINE_S):
            return
        self._shown_s = now_s
        rate = done / (now_s - self._began_s)
        text = f"{done:,} of {total:,} offsets, {rate:,.0f} a second"
        if self._moves:
            self._moved = True
            print(f"\r{text} \033[K", end="", file=sys.stderr, flush=True)
        else:
            complain(f"{text}.")

    def end(self) -> None:
        """The line goes."""
        if self._moved:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
            self._moved = False
