"""``ringleader watch`` of several clusters: one that is away holds no other."""

from __future__ import annotations

import json
import os
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest

from ringleader.cli.clusters import CLUSTERS_MAX, clusters_of
from ringleader.insight.history.paths import last_watched
from tests.cli.test_watch import TOPIC, Member, Running, health, running
from tests.support.command import PATIENCE_S, run_here
from tests.support.daemon import Daemon
from tests.support.ports import free_address
from tests.support.receivers import Webhook


@contextmanager
def watching(clusters: Mapping[str, str], *arguments: str) -> Iterator[Running]:
    """The command over several clusters."""
    named = [word for name, servers in clusters.items() for word in ("-b", f"{name}={servers}")]
    bare = {name: value for name, value in os.environ.items() if not name.startswith("RINGLEADER_")}
    with running(bare, "watch", *named, *arguments) as one:
        yield one


def metrics(url: str) -> str:
    """The text of them."""
    with urllib.request.urlopen(f"{url}metrics", timeout=PATIENCE_S) as answer:
        return str(answer.read().decode())


def test_two_clusters_one_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data-home"))
    with (
        Daemon(tmp_path / "prod", topics=[f"{TOPIC}:6"]) as prod,
        Daemon(tmp_path / "test", topics=[f"{TOPIC}:6"]) as test,
        Webhook() as hook,
    ):
        file = tmp_path / "watch.properties"
        file.write_text(f"notify.webhook.url={hook.url}/\nnotify.interval.ms=100\nnotify.quiet.ms=0\n")
        clusters = {"prod": prod.bootstrap, "test": test.bootstrap}
        with watching(clusters, "--page", free_address(), "--config", str(file)) as watch:
            url = watch.says("the page is at").split()[-1]
            for _ in clusters:
                watch.says("watching 0 groups of ")
            with Member(test, "audit", "bert"):
                assert "  test  audit: member joined" in watch.until(
                    lambda line: "audit: member joined" in line
                )
            test.kill()
            watch.says("test: the cluster does not answer")
            health(f"{url}health?cluster=test#", 503)
            notice = hook.next().json
            assert (notice["cluster_name"], notice["cluster"]) == ("test", test.bootstrap)
            assert notice["link"] == f"{url}#/?cluster=test"
            # The other goes on.
            with Member(prod, "billing", "anna"):
                assert "  prod  billing: member joined" in watch.until(lambda line: "billing" in line)
            whole = health(url, 200)
            assert {name: one["ok"] for name, one in whole["clusters"].items()} == {
                "prod": True,
                "test": False,
            }
            assert 'ringleader_watch_cluster_answers{cluster="test"} 0.0' in metrics(url)
            assert 'ringleader_watch_cluster_answers{cluster="prod"} 1.0' in metrics(url)
            test.start()
            watch.says("test: the cluster answers again, after")
            with Member(test, "audit", "carl"):
                watch.until(lambda line: "test  audit: member joined: carl" in line)
            mark = run_here(None, "deploy", "begin", "--cluster", "test", "--group", "audit", "--page", url)
            assert (mark.code, mark.err) == (0, "")
            assert run_here(None, "deploy", "begin", "--page", url).code == 1
        # Commands that look back choose one.
        assert last_watched() == clusters
        one = run_here(None, "history", "audit", "--cluster", "test")
        assert (one.code, one.err) == (0, "")
        assert "member joined" in one.out
        assert run_here(None, "explain", "billing", "--cluster", "prod").code == 0
        assert run_here(test.bootstrap, "owners", f"{TOPIC}:1", "--group", "audit").code == 0
        for options, says in (
            ([], "Several clusters were watched last; say which with --cluster: prod, test."),
            (["--cluster", "dev"], "--cluster: dev was not watched last; there is: prod, test."),
            (["--cluster", "prod", "-b", test.bootstrap], "--cluster is instead of"),
        ):
            refused = run_here(None, "history", "audit", *options)
            assert (refused.code, says in " ".join(refused.err.split())) == (2, True), refused.err


def test_a_cluster_that_is_not_there_at_the_start_holds_no_other(tmp_path: Path) -> None:
    with Daemon(tmp_path / "prod", topics=[f"{TOPIC}:6"]) as prod, Daemon(tmp_path / "test") as test:
        test.kill()
        histories = [
            word for name in ("prod", "test") for word in ("--history", f"{name}={tmp_path / name}.sqlite")
        ]
        clusters = {"prod": prod.bootstrap, "test": test.bootstrap}
        with watching(clusters, "--page", free_address(), "--json", *histories) as watch:
            url = watch.says("the page is at").split()[-1]
            watch.says(
                f"watching 0 groups of prod, {prod.bootstrap}; the history is in {tmp_path}/prod.sqlite"
            )
            with Member(prod, "billing", "anna"):
                line = json.loads(watch.until(lambda line: '"joined"' in line))
                assert (line["cluster_name"], line["group"]) == ("prod", "billing")
            watch.says("test is not watched: ")
            away = health(f"{url}health?cluster=test#", 503)
            assert away["cluster"] == "test"
            test.start()
            watch.says(
                f"watching 0 groups of test, {test.bootstrap}; the history is in {tmp_path}/test.sqlite"
            )
            assert health(f"{url}health?cluster={quote('test')}#", 200)["away"] is None


def test_nodes_are_of_the_cluster_that_is_named_or_of_the_only_one() -> None:
    urls = ["y=http://n:1", "x=https://m:2/", "y=http://n:3"]
    found = clusters_of(["x=a:1", "y=b:1"], [], [], urls, {})
    assert [one.nodes for one in found] == [("https://m:2",), ("http://n:1", "http://n:3")]
    [only] = clusters_of([], [], [], ["http://n:1"], {})
    assert only.nodes == ("http://n:1",)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["-b", "=a:1"], "a name has 1 to 100 printable characters, not ''"),
        (["-b", "x=a:1", "-b", "x=b:1"], "two clusters are named x"),
        (["-b", "a:1", "-b", "a:1"], "two clusters are named a:1"),
        (["-b", "x=a:1", "-b", "y=b:port"], "--bootstrap-server: "),
        (
            [word for port in range(CLUSTERS_MAX + 1) for word in ("-b", f"a:{port + 1}")],
            "32 clusters at most",
        ),
        (["-b", "x=a:1", "-b", "y=b:1", "--history", "h"], "each cluster has a file of its own"),
        (["-b", "x=a:1", "--history", "x=g", "--history", "x=h"], "--history: x has two: g and h"),
        (["-b", "a:1", "--history", "g", "--history", "h"], "--history: g and h: give one of them"),
        (["-b", "x=a:1", "-b", "y=b:1", "--command-config", "y=/nowhere"], "--command-config: "),
        (["--node-http", "node:1"], "--node-http: give a node as http://HOST:PORT, or https, not 'node:1'."),
        (
            ["-b", "x=a:1", "-b", "y=b:1", "--node-http", "http://n:1"],
            "--node-http: of several clusters give",
        ),
        (["--node-http", "http://n:1"] * 257, "--node-http: 256 nodes of a cluster at most."),
        (["--node-token-file", "/nowhere"], "--node-token-file: the token file /nowhere cannot be read"),
        (["--node-authority", "/nowhere"], "--node-authority: /nowhere cannot be used"),
    ],
)
def test_clusters_that_cannot_be_are_one_sentence(arguments: list[str], says: str) -> None:
    done = run_here(None, "watch", *arguments)
    assert done.code == 2
    assert says in " ".join(done.err.split())


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_token_does_not_go_to_hosts_that_nobody_named_without_authorities(
    tmp_path: Path, scheme: str
) -> None:
    (tmp_path / "token").write_text("correct-horse-battery")
    arguments = ("--node-http", f"{scheme}://*:1", "--node-token-file", str(tmp_path / "token"))
    done = run_here(None, "watch", *arguments)
    assert done.code == 2
    assert f"--node-http: {scheme}://*:1 with a token needs https and the authorities" in done.err
