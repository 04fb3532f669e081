"""The public names: what users write, and what no release takes away without notice (docs/versioning.md).

`docs/public-names.json` lists them; a test compares it with the code.

    python -m tools.public_names                  add the new names to the list
    python -m tools.public_names --remove NAME    the deprecation of NAME (as it stands in the list) is over
"""

from __future__ import annotations

import argparse
import inspect
import json
import sys
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, cast, get_type_hints

from prometheus_client.metrics_core import Metric
from typer.main import get_command

import ringleader
from ringleader.cli import app, insight_settings
from ringleader.clients.exporting import METRICS
from ringleader.clients.options import (
    ConsumerMemberOptions,
    ConsumerOptions,
    MemberOptions,
    PartitionConsumerOptions,
    ProducerOptions,
)
from ringleader.coordinator import http
from ringleader.coordinator.config import options
from ringleader.coordinator.http_nodes import NodesFigures
from ringleader.coordinator.http_telemetry import TelemetryFigures
from ringleader.insight.web import metrics as watch
from ringleader.spark_bridge.options import BatchOptions, StreamOptions
from ringleader.spark_bridge.options.history import HistoryOptions
from ringleader.spark_bridge.options.sink import SinkOptions

ROOT = Path(__file__).parents[1]
FILE = ROOT / "docs" / "public-names.json"
REMOVED = "removed"
"""In the file: names whose deprecation is over, and the version that no longer has them."""
MODULES = (
    "ringleader",
    "ringleader.testing",
    "ringleader.clients.assignors",
    "ringleader.clients.aiokafka",
    "ringleader.clients.kafka_python",
)
Names = dict[str, list[str]]


def public_names() -> Names:
    """The names of the code, by section, sorted."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    settings = [*options(), *insight_settings.options()]
    spark = (StreamOptions, BatchOptions, SinkOptions, HistoryOptions)
    found: dict[str, Iterable[str]] = {
        "python": [f"{name}.{one}" for name in MODULES for one in import_module(name).__all__],
        "attributes": [
            f"ringleader.{name}.{one}" for name in ringleader.__all__ for one in _attributes(name)
        ],
        "client options": [
            f"{kind.__name__}.{name}"
            for kind in (
                ConsumerOptions,
                PartitionConsumerOptions,
                MemberOptions,
                ConsumerMemberOptions,
                ProducerOptions,
            )
            for name in get_type_hints(kind)
        ],
        "pytest fixtures": [
            name for name in vars(import_module("ringleader.pytest_plugin")) if name.startswith("ringleader_")
        ],
        "scripts": project["scripts"],
        "command line": _commands(get_command(app), "ringleader"),
        "settings": [option.key for option in settings],
        "environment": [option.env for option in settings],
        "metrics": _metrics(),
        "spark options": {
            part
            for model in spark
            for field in model.model_fields.values()
            for part in (field.alias or "").split(", ")
        },
    }
    return {section: sorted(set(names)) for section, names in found.items()}


def listed() -> Names:
    """The content of the file."""
    return {section: names for section, names in _read().items() if section != REMOVED}


def removed() -> dict[str, str]:
    """Names whose deprecation is over: the version without them."""
    return cast("dict[str, str]", _read()[REMOVED])


def missing_names(before: Names, now: Names) -> list[str]:
    """One sentence for each name that was public and is not there: what to do."""
    return [
        f"{name} ({section}) is gone, and it is public. Bring it back, and have it warn where it is used "
        "(docs/versioning.md); once its deprecation is over, say so with "
        f"`python -m tools.public_names --remove '{name}'` and a line under Removed in CHANGELOG.md."
        for section, names in before.items()
        for name in names
        if name not in now.get(section, ())
    ]


def added(before: Names, now: Names) -> list[str]:
    """The names that are not in the list yet."""
    return [name for section, names in now.items() for name in names if name not in before.get(section, ())]


def _attributes(name: str) -> Iterator[str]:
    """Fields, properties and methods of a public class that are the project's own."""
    kind = getattr(ringleader, name)
    if not inspect.isclass(kind):
        return
    for base in kind.__mro__:
        if base.__module__.startswith("ringleader"):
            yield from (
                one
                for one, value in vars(base).items()
                if not one.startswith("_") and (callable(value) or hasattr(value, "__get__"))
            )
    if is_dataclass(kind):
        yield from (field.name for field in fields(kind) if not field.name.startswith("_"))


def _commands(command: Any, name: str) -> Iterator[str]:
    """Each command, argument and option, as it is typed."""
    yield name
    # `serve` makes its flags when it is first asked for.
    command = command.make_context(name, [], resilient_parsing=True).command
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            yield f"{name} {(parameter.name or '').upper()}"
        else:
            yield from (f"{name} {word}" for word in (*parameter.opts, *parameter.secondary_opts))
    for word, below in getattr(command, "commands", {}).items():
        yield from _commands(below, f"{name} {word}")


def _metrics() -> Iterator[str]:
    """The daemon's, a node's, the watcher's, and those of members and consumers, as Prometheus gets them."""
    telemetry = TelemetryFigures(0, {}, [], 0, 0)
    everything = http.Figures(
        True,
        0,
        journal=(0, 0),
        groups=[],
        logins=(0, 0),
        nodes=NodesFigures(),
        rebalances={},
        telemetry=telemetry,
    )
    yield from map(_exposed, http._Families(everything).collect())
    yield from map(_exposed, watch._Groups({}, lambda: 0).collect())
    for metric in METRICS:
        name = f"ringleader_{metric.name.replace('.', '_')}"
        yield name + "_total" if metric.kind == "counter" else name


def _exposed(family: Metric) -> str:
    return family.name + {"counter": "_total", "info": "_info"}.get(family.type, "")


def _read() -> dict[str, Any]:
    return cast("dict[str, Any]", json.loads(FILE.read_text()))


def _write(names: Names, without: dict[str, str]) -> None:
    FILE.write_text(json.dumps({**names, REMOVED: without}, indent=1) + "\n")


def main(arguments: list[str]) -> int:
    """The exit code: 1 while a name that is listed is not there."""
    parser = argparse.ArgumentParser(prog="python -m tools.public_names", description=__doc__)
    parser.add_argument("--remove", action="append", default=[], metavar="NAME")
    over = parser.parse_args(arguments).remove
    before, now, without = listed(), public_names(), removed()
    from importlib.metadata import version

    for name in over:
        if not any(name in names for names in before.values()):
            parser.error(f"{name} is not in {FILE.relative_to(ROOT)}")
        if any(name in names for names in now.values()):
            parser.error(f"{name} is still there")
        without[name] = version("ringleader")
    before = {section: [one for one in names if one not in without] for section, names in before.items()}
    if missing := missing_names(before, now):
        print(*missing, sep="\n", file=sys.stderr)
        return 1
    new = added(before, now)
    _write(now, without)
    print(f"{len(new)} names added", *new, sep="\n  ")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
