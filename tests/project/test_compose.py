"""docker-compose.yml and Dockerfile, as far as they can be checked without Docker."""

from __future__ import annotations

import importlib.util
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from ringleader.coordinator.config import load_settings

ROOT = Path(__file__).resolve().parents[2]


def _compose() -> dict[str, Any]:
    loaded = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    assert isinstance(loaded, dict)
    return loaded


def test_compose_file_follows_the_compose_schema() -> None:
    text = (files("check_jsonschema") / "builtin_schemas" / "vendor" / "compose-spec.json").read_text()
    schema = json.loads(text)
    validator = jsonschema.validators.validator_for(schema)(schema)
    assert [error.message for error in validator.iter_errors(_compose())] == []
    # The schema does refuse: otherwise an empty one would pass as well.
    assert list(validator.iter_errors({"services": {"x": {"comand": "y"}}}))


def test_compose_publishes_on_loopback_only() -> None:
    (port,) = _compose()["services"]["ringleader"]["ports"]
    assert port.startswith("127.0.0.1:")


def test_image_starts_the_command_that_is_installed() -> None:
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    commands = {
        line.split(" ", 1)[0]: line.split(" ", 1)[1] for line in lines if line.startswith(("ENTRY", "CMD"))
    }
    assert json.loads(commands["ENTRYPOINT"]) == ["ringleader"]
    assert json.loads(commands["CMD"])[0] == "serve"


def test_the_daemon_takes_the_settings_of_every_node() -> None:
    services = _compose()["services"]
    nodes = {name: service for name, service in services.items() if name.startswith("node-")}
    brokers = {name for name in services if name.startswith("kafka-")}
    assert len(nodes) == len(brokers) == 3
    seen = set()
    for name, service in nodes.items():
        flags = dict(one.removeprefix("--").split("=", 1) for one in service["command"][1:])
        settings = load_settings(
            {flag.replace("-", "_"): value for flag, value in flags.items()}, service["environment"]
        )
        assert {address.host for address in settings.cluster} <= brokers
        assert settings.advertised_address == (name, settings.listen.port)
        assert service["ports"] == [f"127.0.0.1:{settings.listen.port}:{settings.listen.port}"]
        seen.add((settings.node_id, settings.listen.port))
    assert len(seen) == 3


def test_all_that_the_cluster_profile_starts_is_started_by_it_alone() -> None:
    services = _compose()["services"]
    with_profile = {name for name, service in services.items() if service.get("profiles") == ["cluster"]}
    assert with_profile == set(services) - {"ringleader"}


def test_the_demo_image_runs_the_demo_s_own_programs() -> None:
    members = {
        name: service["command"]
        for name, service in _compose()["services"].items()
        if service.get("build") == {"context": ".", "target": "demo"}
    }
    assert len(members) == 3
    assert " AS demo\n" in (ROOT / "Dockerfile").read_text()
    for command in members.values():
        assert importlib.util.find_spec(command[0]) is not None
