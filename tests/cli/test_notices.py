"""``ringleader watch`` tells people: incidents reach a webhook, Slack and a mailbox, once."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from subprocess import PIPE

import confluent_kafka
import pytest

from ringleader.insight.history import History
from ringleader.insight.notices.kept import Kept
from tests.cli.test_watch import Running, health, running
from tests.support.command import command_line, environment
from tests.support.daemon import Daemon
from tests.support.ports import free_address
from tests.support.receivers import PATIENCE_S, Mailbox, Webhook, serving

SECRET = "T0PS3CRET"
AT_ONCE = ["--group-initial-rebalance-delay-ms", "0"]


@contextmanager
def watching(daemon: Daemon, *arguments: str) -> Iterator[Running]:
    """The command; a secret is in none of its lines."""
    with running(environment(daemon.bootstrap), "watch", *arguments) as one:
        yield one
    assert SECRET not in one.rest


@contextmanager
def two_applications(daemon: Daemon, group: str) -> Iterator[None]:
    """Members of one group that read different topics."""
    consumers = []
    try:
        for topic in ("orders", "refunds"):
            consumer = confluent_kafka.Consumer(
                {
                    "bootstrap.servers": daemon.bootstrap,
                    "group.id": group,
                    "client.id": f"of-{topic}",
                    "heartbeat.interval.ms": 100,
                }
            )
            consumer.subscribe([topic])
            consumers.append(consumer)
        while not all(one.assignment() for one in consumers):
            for consumer in consumers:
                consumer.poll(0.05)
        yield
    finally:
        for consumer in consumers:
            consumer.close()


def test_each_target_gets_an_incident_once_from_one_watcher_and_the_next(tmp_path: Path) -> None:
    with ExitStack() as stack:
        daemon = stack.enter_context(
            Daemon(tmp_path / "data", topics=["orders:2", "refunds:2"], options=AT_ONCE)
        )
        hook, slack = (stack.enter_context(Webhook()) for _ in range(2))
        box = stack.enter_context(serving(Mailbox()))
        file = tmp_path / "watch.toml"
        file.write_text(
            f"""
            [notify]
            webhook.url = "{hook.url}/{SECRET}"
            slack.url = "{slack.url}/{SECRET}"
            mail.to = "ops@example.com"
            mail.from = "watch@example.com"
            mail.server = "{box.address}"
            mail.security = "none"
            interval.ms = 100
            quiet.ms = 100
            """
        )
        history, page = tmp_path / "h.sqlite", free_address()
        given = ["--history", str(history), "--config", str(file), "--page", page, "--json"]
        with watching(daemon, *given) as watch:
            url = watch.says("the page is at").split()[-1]
            watch.says("watching ")
            daemon.kill()
            away = hook.next()
            daemon.start()
            watch.says("the cluster answers again")
            # The line of the command is the event of the webhook.
            line = json.loads(watch.until(lambda line: '"incident"' in line))
            more = {"cluster_id", "cluster", "link"}
            assert {name: value for name, value in away.json.items() if name not in more} == line
            assert line["text"].startswith(f"The cluster {daemon.bootstrap} does not answer since ")
            assert away.json["link"] == url
        with watching(daemon, *given) as watch:
            url = watch.says("the page is at").split()[-1]
            watch.says("watching ")
            daemon.kill()
            health(url, 503)
            daemon.start()
            health(url, 200)
            with two_applications(daemon, "billing"):
                mixed = hook.next()
                assert (mixed.json["group"], mixed.json["kind"]) == ("billing", "incident")
                assert mixed.json["link"] == f"{url}#/group/billing"
                assert "of-orders@127.0.0.1" in mixed.json["text"]
                assert "Change group.id: one for each application (now billing)." in mixed.json["text"]
                texts = [slack.next().json["text"] for _ in range(2)]
                mails = [box.next() for _ in range(2)]
        assert texts[0].startswith(f"*cluster {daemon.bootstrap}*: The cluster")
        assert f"<{url}#/group/billing|Open the page>" in texts[1]
        assert mails[1]["Subject"] == "[ringleader] billing: Two applications in one group, likely"
        assert mails[1]["To"] == "ops@example.com"
        assert (hook.posted.empty(), slack.posted.empty(), box.mails.empty()) == (True, True, True)
    with History.open(history, read_only=True) as recorded:
        assert [one.id for one in recorded.events() if one.kind == "incident"] == [
            away.json["id"],
            mixed.json["id"],
        ]


@contextmanager
def killed(daemon: Daemon, *arguments: str) -> Iterator[Running]:
    """The command, which ends with kill -9."""
    command = command_line("watch", *arguments)
    env = environment(daemon.bootstrap)
    with subprocess.Popen(command, env=env, stdout=PIPE, stderr=PIPE, text=True) as process:
        try:
            yield Running(process)
        finally:
            process.kill()
            process.communicate()


def until_others_have_it(history: Path, target: str) -> None:
    """Until the file says that the notices wait for this target alone."""
    deadline_s = time.monotonic() + PATIENCE_S
    while True:
        kept = Kept(history, print)
        waiting = {one.target for one in kept.all().result() if not one.over}
        kept.close()
        if waiting == {target}:
            return
        assert time.monotonic() < deadline_s, waiting
        time.sleep(0.05)  # of another process


# Six processes start one after the other: on a busy machine that alone takes minutes.
@pytest.mark.timeout(600)
def test_what_waits_when_the_watcher_is_killed_is_sent_by_the_next_one_and_nothing_else(
    tmp_path: Path,
) -> None:
    with ExitStack() as stack:
        daemon = stack.enter_context(
            Daemon(tmp_path / "data", topics=["orders:2", "refunds:2"], options=AT_ONCE)
        )
        hook = stack.enter_context(Webhook(503))
        slack = stack.enter_context(Webhook(429, headers={"Retry-After": "600"}))
        slack.answers += [429] * 2
        box = stack.enter_context(serving(Mailbox()))
        file = tmp_path / "watch.properties"
        file.write_text(
            f"notify.webhook.url={hook.url}/\nnotify.slack.url={slack.url}/\nnotify.mail.to=ops@example.com\n"
            f"notify.mail.from=watch@example.com\nnotify.mail.server={box.address}\n"
            "notify.mail.security=none\nnotify.interval.ms=100\nnotify.quiet.ms=0\n"
            "notify.deadline.ms=86400000\n"
        )
        given = ["--history", str(tmp_path / "h"), "--no-page", "--config", str(file), "--json"]
        with killed(daemon, *given) as watch:
            watch.says("watching ")
            daemon.kill()
            # The webhook has it at the second try, the mailbox at the first; Slack asks to wait.
            tried = [hook.next().json["id"] for _ in range(2)]
            assert tried[0] == tried[1]
            assert box.next()["Subject"].startswith("[ringleader] cluster ")
            waits = slack.next().body
            line = json.loads(watch.until(lambda line: '"incident"' in line))
            assert line["id"] == tried[0]
            # A kill between an answer and the note of it would send it again.
            until_others_have_it(tmp_path / "h", "Slack at 127.0.0.1")
        daemon.start()
        with killed(daemon, *given):
            assert slack.next().body == waits
        # Slack asked to wait again, and so it does after a clean end; then it takes it.
        with watching(daemon, *given) as watch:
            watch.says("watching ")
            assert slack.next().body == waits
        with watching(daemon, *given) as watch:
            watch.says("watching ")
            assert slack.next().body == waits
            with two_applications(daemon, "billing"):
                # It is the next that comes: nobody got the first one again.
                assert hook.next().json["group"] == "billing"
                assert slack.next().json["text"].startswith("*billing*")
                assert box.next()["Subject"].startswith("[ringleader] billing: ")
    with History.open(tmp_path / "h", read_only=True) as recorded:
        assert [one.group for one in recorded.events() if one.kind == "incident"][:2] == ["", "billing"]


def test_a_notice_that_is_given_up_is_a_line_and_the_watcher_goes_on(tmp_path: Path) -> None:
    with (
        Daemon(tmp_path / "data", topics=["orders:2", "refunds:2"], options=AT_ONCE) as daemon,
        Webhook(404) as hook,
    ):
        file = tmp_path / "watch.properties"
        file.write_text(f"notify.webhook.url={hook.url}/{SECRET}\n")
        flags = ["--notify-interval-ms", "100", "--notify-quiet-ms", "0", "--group", "billing"]
        given = ["--history", str(tmp_path / "h"), "--no-page", "--config", str(file), *flags]
        with watching(daemon, *given) as watch:
            watch.says("watching ")
            with two_applications(daemon, "unseen"), two_applications(daemon, "billing"):
                line = watch.says("is given up")
                assert "a notice of billing to the webhook at 127.0.0.1 is given up (HTTP status 404)" in line
                assert "Two applications in one group, likely: " in line
                assert hook.next().json["link"] is None
            watch.until(lambda line: "billing" in line and "-> 0" in line)
        assert hook.posted.empty()
