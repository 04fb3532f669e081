"""docker-compose.yml and Dockerfile, as far as they can be checked without Docker."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import yaml

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
