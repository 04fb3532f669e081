"""librdkafka's consumers that subscribe by a regular expression, which the daemon resolves."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from ringleader import Admin, SaslScram
from ringleader.cli import run
from ringleader.clients.acls import Acl
from tests.support.daemon import Daemon

PATIENCE_S = 120.0
PASSWORD = "the password of all"
OPTIONS = (
    *("--group-consumer-heartbeat-interval-ms", "200"),
    *("--group-consumer-assignment-interval-ms", "0"),
)


class Member(threading.Thread):
    """Reads what an expression matches, and remembers its topics and records."""

    def __init__(self, bootstrap: str, name: str, pattern: str, **more: str) -> None:
        super().__init__(name=name)
        options = {
            "bootstrap.servers": bootstrap,
            "group.id": "g",
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
            "topic.metadata.refresh.interval.ms": "500",
            "client.id": name,
        }
        self._pattern = pattern
        self.consumer = Consumer({**options, **{key.replace("_", "."): one for key, one in more.items()}})
        self.has: set[str] = set()
        self.seen: set[tuple[str, bytes]] = set()
        self.ended = threading.Event()

    def run(self) -> None:
        def assigned(_: Consumer, some: list[TopicPartition]) -> None:
            self.has |= {one.topic for one in some}

        def revoked(_: Consumer, some: list[TopicPartition]) -> None:
            self.has -= {one.topic for one in some}

        self.consumer.subscribe([self._pattern], on_assign=assigned, on_revoke=revoked)
        while not self.ended.is_set():
            message = self.consumer.poll(0.1)
            if message is not None and not message.error():
                self.seen.add((message.topic() or "", message.value() or b""))
        self.consumer.close()


@contextmanager
def running(*members: Member) -> Iterator[None]:
    for one in members:
        one.start()
    try:
        yield
    finally:
        for one in members:
            one.ended.set()
        for one in members:
            one.join()


def until(holds: Callable[[], bool], what: str) -> None:
    end_s = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end_s, what
        time.sleep(0.05)


async def test_a_topic_that_is_created_later_is_read_though_the_daemon_was_killed(tmp_path: Path) -> None:
    with Daemon(tmp_path, topics=["orders-1:1", "other:1"], options=OPTIONS) as daemon:
        member = Member(daemon.bootstrap, "a", "^orders-.*")
        with running(member):
            until(lambda: member.has == {"orders-1"}, "the first topic came")
            daemon.kill()
            daemon.start()
            async with Admin(daemon.bootstrap) as admin:
                [described] = await admin.describe_groups(["g"])
                assert [one.subscribed_topic_regex for one in described.members] == ["(^orders-.*)"]
                await admin.create_topic("orders-2", 1)
                await admin.create_topic("orders", 1)
            until(lambda: member.has == {"orders-1", "orders-2"}, "the second topic came")
            producer = Producer({"bootstrap.servers": daemon.bootstrap})
            wanted = {("orders-1", b"x"), ("orders-2", b"x")}
            for name in ("orders-1", "orders-2", "orders", "other"):
                producer.produce(name, b"x")
            assert producer.flush(PATIENCE_S) == 0
            until(lambda: member.seen == wanted, "both are read")
        log = daemon.log()
    assert "regular expression (^orders-.*) matches 1 topics, new: orders-1" in log
    assert "regular expression (^orders-.*) matches 2 topics, new: orders-2" in log


@pytest.fixture
def users(tmp_path: Path) -> None:
    (tmp_path / "password").write_text(PASSWORD)
    where = ["--password-file", str(tmp_path / "password"), "--data-dir", str(tmp_path / "data")]
    for name in ("admin", "ann", "bob"):
        assert run(["users", "add", name, *where]) == 0


@pytest.mark.usefixtures("users")
async def test_each_user_reads_the_topics_that_it_may_see(tmp_path: Path) -> None:
    options = [*OPTIONS, "--authorizer", "acl", "--super-users", "User:admin", "--sasl-cleartext-without-tls"]
    topics = ["orders-1:1", "orders-2:1"]
    with Daemon(tmp_path, topics=topics, options=options, listener="SASL_PLAINTEXT") as daemon:
        async with Admin(daemon.bootstrap, sasl=SaslScram("admin", PASSWORD)) as admin:
            for user, topic in (("ann", "orders-1"), ("bob", "orders-2"), ("bob", "orders-1")):
                await admin.create_acls([_allowed(user, "TOPIC", topic), _allowed(user, "GROUP", "g")])
            sasl = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "SCRAM-SHA-512"}
            ann, bob = (
                Member(
                    daemon.bootstrap, name, "^orders-.*", sasl_username=name, sasl_password=PASSWORD, **sasl
                )
                for name in ("ann", "bob")
            )
            with running(ann):
                until(lambda: ann.has == {"orders-1"}, "one user has the topic that it may see")
                with running(bob):
                    until(lambda: ann.has | bob.has == {"orders-1", "orders-2"}, "both share the topics")
                    assert "orders-2" in bob.has
                until(lambda: ann.has == {"orders-1"}, "one is left")
                await admin.create_acls([_allowed("ann", "TOPIC", "orders-2")])
                until(lambda: ann.has == {"orders-1", "orders-2"}, "another right is another topic")


def _allowed(user: str, kind: str, name: str) -> Acl:
    return Acl(f"User:{user}", "READ", kind, name)
