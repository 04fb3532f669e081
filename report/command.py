"""`python -m ringleader.report GROUP`: a report on a group's topics, by PySpark.

Runs with a local Spark by itself, or under `spark-submit` with the master that is given there.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from ringleader.clients.admin import Admin
from ringleader.clients.connection.security import security_from_properties
from ringleader.clients.connection.security.stores import properties_of
from ringleader.clients.errors import ClientError
from ringleader.report.facts import GroupFacts, ReportError, look
from ringleader.report.numbers import Report, Wanted, make, options
from ringleader.report.page import page
from ringleader.report.table import show

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECURITY = ("security.protocol", "sasl.", "ssl.")
_UNITS_S = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}

HELP = (
    "Report on the topics of a consumer group: rate, skew and lag of each partition, the hottest keys, idle "
    "members, and how many partitions and consumers fit.\n\n"
    "Reads the newest records as they are and changes nothing: it neither joins the group nor commits.\n\n"
    "Examples:\n\n"
    "  python -m ringleader.report billing\n\n"
    "  python -m ringleader.report billing --window 15m --watch 10s --consumer-rate 500\n\n"
    "  spark-submit --master yarn report.py billing --out X"
)


def seconds(text: str) -> int:
    """`90`, `90s`, `15m`, `2h`, `1d` -> seconds. Raises typer.BadParameter."""
    match = re.fullmatch(r"(\d{1,9})([smhd]?)", text.strip())
    if match is None or int(match[1]) == 0:
        raise typer.BadParameter(f"{text!r} is not a duration such as 90s, 15m, 2h or 1d")
    return int(match[1]) * _UNITS_S[match[2] or "s"]


def report(
    group: Annotated[str, typer.Argument(help="The consumer group.")],
    bootstrap_server: Annotated[
        str,
        typer.Option(
            "--bootstrap-server", "-b", envvar="RINGLEADER_BOOTSTRAP_SERVER", help="Ringleader or any Kafka."
        ),
    ] = "127.0.0.1:9092",
    topic: Annotated[
        list[str] | None,
        typer.Option(help="Only this topic; may be given again.", show_default="all that the group reads"),
    ] = None,
    window: Annotated[str, typer.Option(help="How far to look back: 90s, 15m, 2h, 1d.")] = "1h",
    max_records: Annotated[
        int, typer.Option(min=1, help="Most records to read in all, the newest of each partition.")
    ] = 5_000_000,
    watch: Annotated[
        str | None,
        typer.Option(help="How long to watch the group, to see how fast it consumes.", show_default="not"),
    ] = None,
    hot_keys: Annotated[int, typer.Option(min=1, max=1_000, help="Keys to show of each topic.")] = 20,
    producer_rate: Annotated[
        float, typer.Option(min=0.001, help="Records/s that one producer can do with one partition.")
    ] = 10_000.0,
    consumer_rate: Annotated[
        float, typer.Option(min=0.001, help="Records/s that one consumer can do with one partition.")
    ] = 2_000.0,
    head_room: Annotated[
        float, typer.Option(min=1.0, help="The target is the busiest time of the window, times this.")
    ] = 1.5,
    command_config: Annotated[
        Path | None,
        typer.Option(
            envvar="RINGLEADER_COMMAND_CONFIG",
            metavar="FILE",
            help="Properties for TLS and SASL, in the names of Kafka's own tools: security.protocol, sasl.*, "
            "ssl.* (keys and certificates in PEM).",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Write report.html and the tables as Parquet here.", show_default="only print"),
    ] = None,
) -> None:
    """See `HELP`."""
    window_s = seconds(window)
    wanted = Wanted(
        window_s=window_s,
        hot_keys=hot_keys,
        head_room=head_room,
        producer_per_s=producer_rate,
        consumer_per_s=consumer_rate,
    )
    now_ms = int(time.time() * 1000)
    watch_s = 0 if watch is None else seconds(watch)
    properties = _properties(command_config)

    async def ask(admin: Admin) -> GroupFacts:
        since_ms = now_ms - window_s * 1000
        return await look(
            admin, group, topic or [], since_ms=since_ms, max_records=max_records, watch_s=watch_s
        )

    facts = _facts(bootstrap_server, properties, ask)
    records = sum(one.end - one.start for one in facts.partitions)
    left_out = f", {facts.left_out:,} older ones are left out (--max-records)" if facts.left_out else ""
    print(f"reading {records:,} records of {len(facts.partitions)} partitions{left_out}", file=sys.stderr)
    read = options(facts, bootstrap_server) | {f"kafka.{name}": value for name, value in properties.items()}
    made = _read(facts, wanted, read, now_ms, out)
    show(made, Console(highlight=False))
    if out is not None:
        target = out / "report.html"
        target.write_text(page(made), encoding="utf-8")
        print(f"wrote {target}", file=sys.stderr)


def _properties(file: Path | None) -> dict[str, str]:
    """The properties in the file about TLS and SASL."""
    if file is None:
        return {}
    try:
        found = properties_of(file)
    except ValueError as error:
        raise typer.BadParameter(f"--command-config: {error}") from None
    kept = {name: value for name, value in found.items() if name.startswith(SECURITY)}
    try:
        security_from_properties(kept)
    except ValueError as error:
        raise typer.BadParameter(f"--command-config: {file}: {error}") from None
    return kept


def _facts(
    bootstrap: str, properties: Mapping[str, str], ask: Callable[[Admin], Awaitable[GroupFacts]]
) -> GroupFacts:
    security = security_from_properties(properties)
    try:
        admin = Admin(bootstrap, tls=security.tls, sasl=security.sasl)
    except ValueError as error:
        raise typer.BadParameter(f"--bootstrap-server: {error}") from None

    async def run() -> GroupFacts:
        async with admin:
            return await ask(admin)

    try:
        return asyncio.run(run())
    except (ReportError, ClientError) as error:
        print(f"{str(error).rstrip('.')}.", file=sys.stderr)
        raise typer.Exit(1) from None


def _read(
    facts: GroupFacts, wanted: Wanted, read: Mapping[str, str], now_ms: int, out: Path | None
) -> Report:
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    spark = running or _session()
    try:
        return make(spark, facts, wanted, read, now_ms, out)
    finally:
        if running is None:
            spark.stop()


def _session() -> SparkSession:
    from pyspark.sql import SparkSession

    # Its workers run what the path calls python3 otherwise, which may know none of the packages.
    fast = Path(sys.executable).with_name("ringleader-spark-python")
    os.environ.setdefault("PYSPARK_PYTHON", str(fast) if fast.exists() else sys.executable)
    builder = SparkSession.builder.appName("ringleader group report")
    # A master that spark-submit was given wins; without one the report runs on this machine.
    builder = builder.config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "8")
    return builder.getOrCreate()


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
app.command(help=HELP)(report)


def main() -> None:
    """Run the command."""
    app(prog_name="python -m ringleader.report")
