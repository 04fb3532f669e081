"""Several clusters on one page: each answers for itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from ringleader.insight.history import Away
from ringleader.insight.web import page
from ringleader.insight.web.questions import QUESTIONS
from ringleader.insight.web.sources import Source
from tests.insight.made import Made
from tests.insight.web.asking import ask, looking_on, ready


@pytest.fixture
def two(tmp_path: Path) -> list[Source]:
    """One with a group that was seen, and one that was not reached."""
    with Made(tmp_path / "prod.sqlite") as made:
        made.group("orders", {"orders": 3}, ["app-1", "app-2"])
    return [
        Source("prod", tmp_path / "prod.sqlite"),
        Source("test", away=Away(1_700_000_000_000, "connection refused")),
    ]


async def test_a_question_names_its_cluster(two: list[Source]) -> None:
    async with page(two) as url:
        await ready(url)
        for name in ("groups", "live", *QUESTIONS):
            for cluster in ("", "?cluster=", "?cluster=dev"):
                refused = await ask(url, f"/api/{name}{cluster}")
                assert refused.status == 400
                assert refused.json["error"] == "Say which cluster: ?cluster=...; there are: prod, test."
        found = await ask(url, "/api/groups", cluster="prod")
        assert [row["group"] for row in found.json["groups"]] == ["orders"]
        assert (await ask(url, "/api/group", cluster="prod", group="orders")).status == 200
        assert (await ask(url, "/api/groups", cluster="test")).status == 503
        away = await ask(url, "/api/group", cluster="test", group="orders")
        assert (away.status, away.json["error"]) == (
            503, "The history cannot be read: the cluster has not been reached yet.",
        )  # fmt: skip


async def test_health_is_that_of_the_page_or_of_one_cluster(two: list[Source]) -> None:
    async with page(two) as url:
        await ready(url)
        whole = (await ask(url, "/health")).json
        assert whole["clusters"]["prod"]["ok"]
        test = whole["clusters"]["test"]
        assert test == (await ask(url, "/health", cluster="test")).json
        assert (test["ok"], test["cluster"], test["away"]["since_ms"]) == (False, "test", 1_700_000_000_000)
        assert test["why"] == "the cluster does not answer: connection refused"
        assert (await ask(url, "/health", cluster="test")).status == 503
        assert (await ask(url, "/health", cluster="prod")).status == 200
        assert (await ask(url, "/health", cluster="dev")).status == 400
        rows = (await ask(url, "/api/clusters")).json["clusters"]
    assert [(row["name"], row["groups"], row["members"], row["why"] is None) for row in rows] == [
        ("prod", 1, 2, True),
        ("test", 0, 0, False),
    ]


async def test_no_cluster_of_several_is_well(two: list[Source]) -> None:
    async with page(two[1:]) as url, looking_on(url) as stream:
        assert (await ask(url, "/health")).status == 503
        [row] = (await ask(url, "/api/clusters")).json["clusters"]
        assert row["name"] == "test"
        _, _, status = await stream.next("cluster")
        while status["away"] is None:
            _, _, status = await stream.next("cluster")
        assert status["away"]["why"] == "connection refused"


async def test_metrics_have_the_cluster_as_a_label(two: list[Source], recent: Path) -> None:
    async with page(two) as url:
        await ready(url)
        metrics = (await ask(url, "/metrics")).body.decode()
    assert 'ringleader_watch_cluster_answers{cluster="prod"} 1.0' in metrics
    assert 'ringleader_watch_cluster_answers{cluster="test"} 0.0' in metrics
    assert 'ringleader_watch_members{cluster="prod",group="orders"} 2.0' in metrics
    async with page(recent) as url:
        await ready(url)
        metrics = (await ask(url, "/metrics")).body.decode()
        assert (await ask(url, "/api/groups", cluster="prod")).status == 400
    assert "ringleader_watch_cluster_answers 1.0" in metrics
    assert "cluster=" not in metrics


async def test_two_clusters_of_one_name_are_refused(two: list[Source]) -> None:
    with pytest.raises(ValueError, match="one name"):
        async with page([two[0], Source("prod")]):
            pass
