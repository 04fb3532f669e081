"""deploy/kubernetes.yaml: against the schemas of Kubernetes, strictly, and against our own settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml

from ringleader.coordinator.config import load_settings

MANIFEST = Path(__file__).resolve().parents[2] / "deploy" / "kubernetes.yaml"
OLDEST = "1.28"
"""The first version that labels a pod of a StatefulSet with its index."""


def _documents() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(MANIFEST.read_text()))


def _one(kind: str) -> dict[str, Any]:
    (found,) = [document for document in _documents() if document["kind"] == kind]
    return found


@pytest.mark.parametrize("version", [OLDEST, kubernetes_validate.latest_version()])
def test_every_document_follows_the_schema_of_kubernetes(version: str) -> None:
    for document in _documents():
        kubernetes_validate.validate(document, version, strict=True)


def test_the_schema_refuses_a_misspelt_field() -> None:
    wrong = _one("StatefulSet")
    wrong["spec"]["replica"] = 3
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, OLDEST, strict=True)


def test_services_and_budget_select_the_pods() -> None:
    spec = _one("StatefulSet")["spec"]
    labels = spec["template"]["metadata"]["labels"]
    services = [document for document in _documents() if document["kind"] == "Service"]
    assert [service["spec"]["selector"] for service in services] == [labels, labels]
    assert _one("PodDisruptionBudget")["spec"]["selector"]["matchLabels"] == labels
    assert spec["selector"]["matchLabels"] == labels
    (headless,) = [service for service in services if service["spec"].get("clusterIP") == "None"]
    assert headless["metadata"]["name"] == spec["serviceName"]


def test_the_daemon_takes_the_settings_as_they_stand() -> None:
    (container,) = _one("StatefulSet")["spec"]["template"]["spec"]["containers"]
    environ = {one["name"]: one.get("value") for one in container["env"]}
    assert environ["RINGLEADER_NODE_ID"] is None  # the pod's index
    environ |= {"RINGLEADER_NODE_ID": "2", "POD_NAME": "ringleader-2"}
    address = environ["RINGLEADER_ADVERTISED_ADDRESS"] or ""
    environ["RINGLEADER_ADVERTISED_ADDRESS"] = address.replace("$(POD_NAME)", "ringleader-2")
    flags = dict(one.removeprefix("--").split("=", 1) for one in container["args"][1:])
    flags = {name.replace("-", "_"): value for name, value in flags.items()}
    settings = load_settings(flags, {name: value for name, value in environ.items() if value is not None})
    assert container["args"][0] == "serve"
    assert settings.node_id == 2
    assert len(settings.cluster) == 3
    assert settings.advertised_address == ("ringleader-2.ringleader-nodes", 9092)
    assert settings.listen.port == container["ports"][0]["containerPort"]
