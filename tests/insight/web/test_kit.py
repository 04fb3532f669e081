"""The files for Prometheus and Grafana name only metrics that the endpoints have, and their expressions mean
something."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from ringleader.coordinator.http_nodes import NodesFigures
from ringleader.coordinator.node import Node
from ringleader.insight.web import page
from tests.coordinator.test_node import settings
from tests.insight.web.asking import ask, ready

DEPLOY = Path(__file__).resolve().parents[3] / "deploy"
RULES = DEPLOY / "prometheus" / "ringleader.rules.yml"
DASHBOARD = DEPLOY / "grafana" / "ringleader.json"
NAME = re.compile(r"\b(?:ringleader|process)_[a-z_]+")
COLUMNS = 24


def _rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def _panels() -> list[dict[str, Any]]:
    panels: list[dict[str, Any]] = json.loads(DASHBOARD.read_text())["panels"]
    return panels


def _expressions() -> dict[str, str]:
    """Where it stands -> what is asked."""
    found = {f"alert {rule['alert']}": rule["expr"] for rule in _rules()}
    for panel in _panels():
        for target in panel.get("targets", ()):
            found[f"panel {panel['title']} {target['refId']}"] = target["expr"]
    board = json.loads(DASHBOARD.read_text())
    found |= {f"annotation {one['name']}": one["expr"] for one in board["annotations"]["list"]}
    for one in board["templating"]["list"]:
        if one["type"] == "query":
            found[f"variable {one['name']}"] = one["definition"].split("(")[1].split(",")[0]
    return found


def _metric_names(text: str) -> set[str]:
    """The names of all series that a `/metrics` may have."""
    names = set()
    for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE):
        names |= {name} if kind != "histogram" else {f"{name}_bucket", f"{name}_sum", f"{name}_count"}
    return names


async def test_rules_and_dashboard_ask_only_for_what_the_endpoints_tell(tmp_path: Path, recent: Path) -> None:
    async with page(recent) as url:
        await ready(url)
        exported = _metric_names((await ask(url, "/metrics")).body.decode())
    async with Node(settings(tmp_path, topic="orders:2", http_listen="127.0.0.1:0")) as node:
        assert node.http is not None
        node.http.side.nodes = NodesFigures  # as one of several
        exported |= _metric_names((await ask(f"http://{node.http.address}/", "/metrics")).body.decode())
    queried = {where: set(NAME.findall(expression)) for where, expression in _expressions().items()}
    assert all(queried.values())
    assert {where: names - exported for where, names in queried.items() if names - exported} == {}


def test_every_cause_that_a_rule_names_is_one() -> None:
    from ringleader.insight.model import Cause

    named = re.findall(r'cause=~?"([^"]+)"', RULES.read_text())
    assert named
    assert {cause for text in named for cause in text.split("|")} <= {cause.value for cause in Cause}


def test_every_alert_says_what_it_is_and_what_to_do() -> None:
    for rule in _rules():
        assert rule["labels"]["severity"] in ("info", "warning", "critical")
        assert rule["annotations"]["summary"]
        assert rule["annotations"]["description"]
    assert len({rule["alert"] for rule in _rules()}) == len(_rules())


def test_the_panels_of_the_dashboard_lie_side_by_side() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in _panels():
        at = panel["gridPos"]
        place = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert at["x"] + at["w"] <= COLUMNS
        assert not place & taken, panel["title"]
        taken |= place
    assert len({panel["id"] for panel in _panels()}) == len(_panels())


def _check(what: str, file: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("There is no promtool: install it (Debian: apt-get install prometheus)")
    command = [promtool, what, "rules", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def test_promtool_takes_the_rules_and_their_tests() -> None:
    _check("check", RULES)
    _check("test", RULES.with_name("ringleader.tests.yml"))


def test_promtool_takes_what_the_dashboard_asks(tmp_path: Path) -> None:
    recorded = [
        {
            "record": f"panel:number{number}",
            "expr": expression.replace("$group", ".*").replace("$instance", ".*"),
        }
        for number, expression in enumerate(_expressions().values())
    ]
    file = tmp_path / "dashboard.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": recorded}]}))
    _check("check", file)
