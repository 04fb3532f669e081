"""The settings that scenarios can ask for, and servers that run with them: Apache Kafka and our daemon."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ringleader.coordinator.security.acls import (
    CLUSTER_NAME,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from ringleader.coordinator.security.scram import MECHANISMS, MIN_ITERATIONS, salt_password
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsRequestScramCredentialUpsertion,
    CreateAclsRequest,
    CreateAclsRequestAclCreation,
    DescribeAclsRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    OffsetFetchRequest,
)
from ringleader.protocol.schema import Message
from tests.interop.kafka import TEST_PROPERTIES, KafkaBroker
from tests.interop.language import RESTARTED
from tests.interop.secured import guarded_broker
from tests.interop.worlds import Caller, create_topic
from tests.support.certificates import Certificates
from tests.support.daemon import Daemon
from tests.support.entrance import LISTENER, OFFERED, PROTOCOL, password_of
from tests.support.ports import free_ports
from tests.support.principals import ADMINISTRATOR

TOPICS = {"orders": 3, "payments": 2}
"""Topics that all scenarios share, with their partitions."""

_AT_ONCE = {"group.consumer.assignment.interval.ms": "0"}
PROPERTIES: dict[str, dict[str, str]] = {
    "plain": _AT_ONCE,
    "delay": {"group.initial.rebalance.delay.ms": "1000"},
    "small": {**_AT_ONCE, "group.max.size": "2", "group.consumer.max.size": "2"},
    "brief": {
        **_AT_ONCE,
        "offsets.retention.check.interval.ms": "200",
        "group.consumer.session.timeout.ms": "1000",
        "group.consumer.heartbeat.interval.ms": "500",
    },
    RESTARTED: _AT_ONCE,
}
"""By name of `broker:` in a scenario: what it has besides `TEST_PROPERTIES`."""

KAFKA_ONLY = {
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "num.io.threads": "4",
    # It looks for transactions that were not ended in time only now and then.
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
}

AFTER_RESTART = {"group.max.size": "2"}
"""The settings that RESTARTED has from its restart on."""

EVERYTHING = (
    (ResourceType.TOPIC, "*"),
    (ResourceType.GROUP, "*"),
    (ResourceType.TRANSACTIONAL_ID, "*"),
    (ResourceType.CLUSTER, CLUSTER_NAME),
)
SALT = b"26 characters of pure salt"

_OFFSETS_PARTITIONS = 50
_WARM_TIMEOUT_S = 60
_ASK_AGAIN_S = 0.1
_NOT_YET = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.CONCURRENT_TRANSACTIONS,
)


def properties_of(broker: str) -> dict[str, str]:
    """All settings of a broker, under Kafka's names."""
    return {**TEST_PROPERTIES, **PROPERTIES[broker]}


def settings_of(broker: str, more: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The same for `Settings`, with some more of them."""
    chosen = {**properties_of(broker), **(more or {})}
    return {name.replace(".", "_"): value for name, value in chosen.items()}


def kafka(broker: str, directory: Path, certificates: Certificates | None = None) -> KafkaBroker:
    """Apache Kafka with these settings, not started. `certificates`: see `guarded_broker`."""
    properties = {**KAFKA_ONLY, **PROPERTIES[broker]}
    if certificates is not None:
        return guarded_broker(directory, certificates, properties)
    return KafkaBroker(directory, properties=properties)


def kafka_again(broker: KafkaBroker) -> None:
    """Stop it and start it again, with `AFTER_RESTART`."""
    broker.stop()
    with (broker.directory / "server.properties").open("a") as properties:
        properties.writelines(f"{name}={value}\n" for name, value in AFTER_RESTART.items())
    broker.start()


class OurDaemon(Daemon):
    """Our daemon with the settings of a scenario."""

    def __init__(self, broker: str, directory: Path, certificates: Certificates | None = None) -> None:
        """`certificates`: it has a listener of SASL_SSL, too, whose clients may do what ACLs say."""
        # Hundreds of connections from one address, and tests that wait for no disk.
        self._words = ["--storage-sync", "off", "--log-level", "warning", *_flags(properties_of(broker))]
        self.secure_port, beside = 0, ""
        if certificates is not None:
            [self.secure_port] = free_ports(1)
            beside = f"{LISTENER}://127.0.0.1:{self.secure_port}"
            self._words += _flags(
                {
                    "listener.security.protocol.map": f"PLAINTEXT:PLAINTEXT,{LISTENER}:{PROTOCOL}",
                    "ssl.keystore.location": str(certificates.server),
                    "sasl.enabled.mechanisms": ",".join(OFFERED),
                    "authorizer": "acl",
                    "super.users": f"User:{ADMINISTRATOR}",
                }
            )
        topics = [f"{name}:{count}" for name, count in TOPICS.items()]
        super().__init__(directory, topics=topics, options=self._words, beside=beside)

    def again(self) -> None:
        """Stop it and start it again, with `AFTER_RESTART`."""
        self.stop()
        self._words += _flags(AFTER_RESTART)
        self.start()


def _flags(properties: Mapping[str, str]) -> list[str]:
    return [word for name, value in properties.items() for word in ("--" + name.replace(".", "-"), value)]


async def warm_up(host: str, port: int) -> None:
    """Wait until topics and coordinators are there: Kafka makes them on first use. Raises TimeoutError."""
    async with asyncio.timeout(_WARM_TIMEOUT_S):
        caller = await Caller.connect(host, port)
        for name, partitions in TOPICS.items():
            await create_topic(caller, name, partitions)
        for key_type in (0, 1):
            await _until_served(caller, FindCoordinatorRequest(key="warm", key_type=key_type), 1)
        for number in range(_OFFSETS_PARTITIONS):
            # One letter each: 50 neighbours are 50 partitions.
            group_id = chr(ord("A") + number)
            fetch = OffsetFetchRequest(group_id=group_id, topics=None, require_stable=True)
            await _until_served(caller, fetch, 7)
        # The first producer id comes from the controller.
        first = InitProducerIdRequest(transactional_id="warm", transaction_timeout_ms=1_000)
        await _until_served(caller, first, 2)
        await caller.close()


async def let_in(host: str, port: int, principals: Sequence[str]) -> None:
    """As a super user: these are users who may do everything. Kafka's may log in already."""
    caller = await Caller.connect(host, port)
    upsertion = AlterUserScramCredentialsRequestScramCredentialUpsertion
    creation = CreateAclsRequestAclCreation
    for mechanism in MECHANISMS.values():
        users = [
            upsertion(
                name=one,
                mechanism=mechanism.number,
                iterations=MIN_ITERATIONS,
                salt=SALT,
                salted_password=salt_password(mechanism, password_of(one).encode(), SALT, MIN_ITERATIONS),
            )
            for one in principals
        ]
        made = await caller.call(AlterUserScramCredentialsRequest(upsertions=users), 0)
        assert {result.error_code for result in made.results} == {0}
    acls = [
        creation(kind, name, PatternType.LITERAL, f"User:{one}", "*", Operation.ALL, Permission.ALLOW)
        for one in principals
        for kind, name in EVERYTHING
    ]
    created = await caller.call(CreateAclsRequest(creations=acls), 3)
    assert {result.error_code for result in created.results} == {0}
    every = DescribeAclsRequest(
        ResourceType.ANY, None, PatternType.ANY, None, None, Operation.ANY, Permission.ANY
    )
    async with asyncio.timeout(_WARM_TIMEOUT_S):
        while len((await caller.call(every, 3)).resources) < len(EVERYTHING):  # noqa: ASYNC110 -- it asks
            await asyncio.sleep(_ASK_AGAIN_S)  # Kafka's broker hears of them from its controller
    await caller.close()


async def _until_served(caller: Caller, request: Message, version: int) -> None:
    for _ in range(int(_WARM_TIMEOUT_S / _ASK_AGAIN_S)):
        if (await caller.call(request, version)).error_code not in _NOT_YET:
            return
        await asyncio.sleep(_ASK_AGAIN_S)
