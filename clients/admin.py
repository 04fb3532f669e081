"""Topics and groups over the Kafka protocol; works against any Kafka."""

from __future__ import annotations

import asyncio
import copy
import math
import random
import ssl
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar, Unpack

from ringleader.clients import acls, users
from ringleader.clients.acls import Acl
from ringleader.clients.checks import (
    MAX_INT16,
    MAX_INT32,
    MAX_INT64,
    check_numbers,
    check_options,
    in_range,
    seconds,
    wire_text,
)
from ringleader.clients.connection.backoff import Backoff
from ringleader.clients.connection.cluster import retrying
from ringleader.clients.connection.metadata import ClusterMetadata, TopicMetadata
from ringleader.clients.connection.requests import Request, by_topic, in_parts, plain
from ringleader.clients.connection.security.sasl import Sasl
from ringleader.clients.descriptions import (
    GroupDescription,
    GroupListing,
    PartitionLag,
    TopicConfig,
    described_config,
    described_consumer_group,
    described_group,
)
from ringleader.clients.errors import (
    BrokerError,
    ClientError,
    RetriableError,
    UnsupportedVersionError,
    is_retriable,
)
from ringleader.clients.model import (
    EARLIEST,
    LATEST,
    Node,
    OffsetAndMetadata,
    Offsets,
    TopicPartition,
    checked,
    checked_partitions,
)
from ringleader.clients.offsets.list_offsets import list_offsets, listed_offsets
from ringleader.clients.offsets.requests import (
    commit_errors,
    fetched_offsets,
    in_commits,
    offset_commit,
    offset_fetch,
)
from ringleader.clients.offsets.share_groups import ShareOffset, described_share_offsets, share_offsets
from ringleader.clients.options import CoordinatorOptions, check_bootstraps, cluster_of
from ringleader.protocol.errors import ErrorCode, error_name
from ringleader.protocol.messages import (
    AlterUserScramCredentialsRequest,
    ConsumerGroupDescribeRequest,
    CreatePartitionsRequest,
    CreatePartitionsRequestCreatePartitionsTopic,
    CreateTopicsRequest,
    CreateTopicsRequestCreatableTopic,
    CreateTopicsRequestCreatableTopicConfig,
    DeleteGroupsRequest,
    DeleteTopicsRequest,
    DeleteTopicsRequestDeleteTopicState,
    DescribeConfigsRequest,
    DescribeConfigsRequestDescribeConfigsResource,
    DescribeGroupsRequest,
    DescribeUserScramCredentialsRequest,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
    ListGroupsRequest,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)

_NOT_RETRIED = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})
"""Retriable for Kafka, as metadata may be old; for a caller that asks about a topic it is the answer."""
_NO_CONSUMER_GROUP = frozenset({ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION})
"""ConsumerGroupDescribe of another kind of group, or where the broker's settings leave the protocol out."""
_TOPIC_RESOURCE = 2
_SET, _DELETE = 0, 1

T = TypeVar("T")


class Admin:
    """Ask and change a cluster. An async context manager; belongs to the event loop it is first used on, and
    raises RuntimeError in another one.

    Each call takes at most `timeout_ms`, connecting and retries included. All raise ClientError: BrokerError
    with the code when the cluster refuses, RetriableError when it could not be reached or was busy for all of
    that time. Of several names all are tried, and the error has all that were refused.
    """

    def __init__(
        self,
        bootstrap: str | Sequence[str],
        *,
        client_id: str = "ringleader-admin",
        timeout_ms: int = 10_000,
        tls: ssl.SSLContext | None = None,
        sasl: Sasl | None = None,
        **coordinators: Unpack[CoordinatorOptions],
    ) -> None:
        """With `coordinator_bootstrap` groups are asked for there, topics and records at `bootstrap`."""
        check_options("Admin()", coordinators, CoordinatorOptions)
        check_bootstraps("Admin()", bootstrap, coordinators)
        check_numbers(1, timeout_ms=timeout_ms)
        self._timeout_s = timeout_ms / 1000
        self._until_s = math.inf
        options = {"tls": tls, "sasl": sasl, **coordinators}
        self._cluster = cluster_of(bootstrap, options, client_id=client_id, request_timeout_ms=timeout_ms)

    async def __aenter__(self) -> Admin:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._cluster.close()

    def within(self, timeout_s: float) -> Admin:
        """The same, on the same connections, but all calls to it together end within that time from now."""
        seconds(timeout_s)
        bounded = copy.copy(self)
        bounded._until_s = min(self._until_s, asyncio.get_running_loop().time() + timeout_s)
        return bounded

    # ---- topics ----

    async def create_topic(
        self,
        name: str,
        partitions: int = -1,
        *,
        replication_factor: int = -1,
        configs: Mapping[str, str] | None = None,
    ) -> None:
        """Create a topic and wait until it can be used; -1 leaves the number to the broker.

        Raises BrokerError TOPIC_ALREADY_EXISTS and others.
        """
        topic = CreateTopicsRequestCreatableTopic(
            name=_named(name),
            num_partitions=in_range("partitions", partitions, -1, MAX_INT32),
            replication_factor=in_range("replication_factor", replication_factor, -1, MAX_INT16),
            configs=[
                CreateTopicsRequestCreatableTopicConfig(name=key, value=value)
                for key, value in _set(configs or {}).items()
            ],
        )
        deadline_s = self._deadline_s()
        request = CreateTopicsRequest(topics=[topic], timeout_ms=_left_ms(deadline_s))
        response = await self._to_controller(plain(request), deadline_s)
        for result in response.topics:
            _check(result.error_code, f"create topic {name!r}", result.error_message)
        await self._until(name, lambda topic: _usable(topic) >= max(partitions, 1), deadline_s)

    async def create_partitions(self, name: str, total: int) -> None:
        """Grow a topic to that many partitions in all, and wait until they can be used."""
        count = in_range("total", total, 0, MAX_INT32)
        topic = CreatePartitionsRequestCreatePartitionsTopic(_named(name), count, None)
        deadline_s = self._deadline_s()
        request = CreatePartitionsRequest(topics=[topic], timeout_ms=_left_ms(deadline_s))
        response = await self._to_controller(plain(request), deadline_s)
        for result in response.results:
            _check(result.error_code, f"grow topic {name!r}", result.error_message)
        await self._until(name, lambda topic: _usable(topic) >= total, deadline_s)

    async def delete_topics(self, names: Iterable[str]) -> None:
        """Delete topics and their records, and wait until they are gone."""
        wanted = list(dict.fromkeys(map(_named, names)))
        deadline_s = self._deadline_s()

        def build(version: int) -> DeleteTopicsRequest:
            timeout_ms = _left_ms(deadline_s)
            if version < 6:
                return DeleteTopicsRequest(topic_names=wanted, timeout_ms=timeout_ms)
            topics = [DeleteTopicsRequestDeleteTopicState(name=name) for name in wanted]
            return DeleteTopicsRequest(topics=topics, timeout_ms=timeout_ms)

        response = await self._to_controller(Request(DeleteTopicsRequest, build), deadline_s)
        refused = [
            _error(result.error_code, f"delete topic {result.name!r}", result.error_message)
            for result in response.responses
            if result.error_code
        ]
        for result in response.responses:
            if not result.error_code:
                await self._until(result.name, lambda topic: not _usable(topic), deadline_s)
        _raise_all(refused)

    async def list_topics(self, *, internal: bool = False) -> list[TopicMetadata]:
        """All topics by name; the cluster's own ones only with `internal`."""
        metadata = await self._metadata(None)
        topics = sorted(metadata.topics.values(), key=lambda topic: topic.name)
        return [topic for topic in topics if internal or not topic.internal]

    async def describe_topics(self, names: Iterable[str]) -> list[TopicMetadata]:
        """These topics, in this order. BrokerError UNKNOWN_TOPIC_OR_PARTITION for one that does not exist."""
        wanted = list(map(_named, names))
        topics = (await self._metadata(wanted)).topics
        codes = {
            name: topics[name].error_code if name in topics else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            for name in wanted
        }
        _raise_all([_error(code, f"describe topic {name!r}") for name, code in codes.items() if code])
        return [topics[name] for name in wanted]

    async def topic_configs(self, name: str) -> dict[str, TopicConfig]:
        """All settings of a topic by name (DescribeConfigs, API 32)."""
        resource = DescribeConfigsRequestDescribeConfigsResource(_TOPIC_RESOURCE, _named(name), None)
        request = plain(DescribeConfigsRequest(resources=[resource]))
        deadline_s = self._deadline_s()

        async def ask() -> dict[str, TopicConfig]:
            response = await self._cluster.send(None, request, deadline_s=deadline_s)
            (result,) = response.results
            _check(result.error_code, f"describe the configs of topic {name!r}", result.error_message)
            return {
                one.name: described_config(one) for one in sorted(result.configs, key=lambda one: one.name)
            }

        return await self._retry(ask, deadline_s)

    async def alter_topic_configs(
        self,
        name: str,
        configs: Mapping[str, str],
        *,
        delete: Iterable[str] = (),
        validate_only: bool = False,
    ) -> None:
        """Set these settings of a topic, and take others back to their defaults; what is not named stays
        (IncrementalAlterConfigs, API 44, KIP-339). All or nothing. BrokerError INVALID_CONFIG and others."""
        changes = [
            IncrementalAlterConfigsRequestAlterableConfig(key, _SET, to) for key, to in _set(configs).items()
        ]
        changes += [
            IncrementalAlterConfigsRequestAlterableConfig(wire_text("a setting", key), _DELETE, None)
            for key in delete
        ]
        resource = IncrementalAlterConfigsRequestAlterConfigsResource(_TOPIC_RESOURCE, _named(name), changes)
        request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)
        response = await self._to_controller(plain(request), self._deadline_s())
        for result in response.responses:
            _check(result.error_code, f"alter the configs of topic {name!r}", result.error_message)

    async def start_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The first offset that is still there, of each partition."""
        return await self.offsets_at(dict.fromkeys(partitions, EARLIEST))

    async def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The offset that the next record will get, of each partition."""
        return await self.offsets_at(dict.fromkeys(partitions, LATEST))

    async def offsets_at(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Partition -> offset of the first record at or after that Unix time in ms (or EARLIEST, LATEST).

        -1 when there is no such record. BrokerError for a partition that does not exist.
        """
        if not times:
            return {}
        checked_partitions(times)
        for time in times.values():
            in_range("a time in ms", time, -MAX_INT64 - 1, MAX_INT64)
        deadline_s = self._deadline_s()
        return await self._retry(lambda: self._offsets_at(times, deadline_s), deadline_s)

    async def _offsets_at(
        self, times: Mapping[TopicPartition, int], deadline_s: float
    ) -> dict[TopicPartition, int]:
        metadata = await self._cluster.metadata({topic for topic, _ in times}, deadline_s=deadline_s)
        leaders: dict[Node, dict[TopicPartition, int]] = {}
        refused: list[ClientError] = []
        for tp, time in times.items():
            try:
                leaders.setdefault(_leader(metadata, tp), {})[tp] = time
            except ClientError as error:
                refused.append(error)
        _raise_all(refused)
        answers = await asyncio.gather(
            *(
                self._cluster.send(
                    leader, list_offsets({tp: wanted[tp] for tp in part}), deadline_s=deadline_s
                )
                for leader, wanted in leaders.items()
                for part in in_parts(wanted)
            )
        )
        found = {tp: one for answer in answers for tp, one in listed_offsets(answer).items()}
        _raise_all(
            [
                _error(one.code, f"give the offset of {topic}-{partition}")
                for (topic, partition), one in found.items()
                if one.code
            ]
        )
        return {tp: one.offset for tp, one in found.items()}

    # ---- groups ----

    async def list_groups(self, states: Iterable[str] = (), types: Iterable[str] = ()) -> list[GroupListing]:
        """All groups of all brokers by id, or those in the given states (needs ListGroups v4, KIP-518), of
        the given types ("classic", "consumer", "share", "streams"; needs v5, KIP-848)."""
        filters = [[wire_text("a filter", one) for one in of] for of in (states, types)]
        request = plain(ListGroupsRequest(states_filter=filters[0], types_filter=filters[1]))
        deadline_s = self._deadline_s()

        async def ask() -> list[GroupListing]:
            groups = self._cluster.groups
            metadata = await groups.metadata([], deadline_s=deadline_s)
            found = {}
            for broker in metadata.brokers.values():
                response = await groups.send(broker, request, deadline_s=deadline_s)
                _check(response.error_code, f"list the groups of {broker}")
                for one in response.groups:
                    found[one.group_id] = GroupListing(
                        one.group_id, one.protocol_type, one.group_state, one.group_type.lower()
                    )
            return sorted(found.values(), key=lambda group: group.group_id)

        return await self._retry(ask, deadline_s)

    async def describe_groups(self, group_ids: Iterable[str]) -> list[GroupDescription]:
        """These groups, in this order: classic ones, and those of the consumer protocol (KIP-848) where the
        brokers serve ConsumerGroupDescribe (API 69)."""
        admin = self.within(self._timeout_s)
        return await _all_of(admin._described(group_id) for group_id in group_ids)

    async def _described(self, group_id: str) -> GroupDescription:
        def classic(response: Any, node: Node) -> GroupDescription:
            (group,) = response.groups
            if group.error_code != ErrorCode.GROUP_ID_NOT_FOUND:  # before v6 it was described as dead
                _check(group.error_code, f"describe group {group_id!r}")
            return described_group(group, node)

        def consumer(response: Any, node: Node) -> GroupDescription | None:
            (group,) = response.groups
            if group.error_code in _NO_CONSUMER_GROUP:
                return None
            _check(group.error_code, f"describe group {group_id!r}", group.error_message)
            return described_consumer_group(group, node)

        found = await self._at_coordinator(group_id, plain(DescribeGroupsRequest(groups=[group_id])), classic)
        if found.state != "Dead":
            return found
        # So it answers for a group of the consumer protocol too.
        request = plain(ConsumerGroupDescribeRequest(group_ids=[group_id]))
        try:
            return await self._at_coordinator(group_id, request, consumer) or found
        except UnsupportedVersionError:
            return found

    async def delete_groups(self, group_ids: Iterable[str]) -> None:
        """Delete groups without members, and their offsets. Raises BrokerError NON_EMPTY_GROUP,
        GROUP_ID_NOT_FOUND."""

        def request(group_id: str) -> Request:
            return plain(DeleteGroupsRequest(groups_names=[group_id]))

        def read(response: Any, _node: Node) -> None:
            for result in response.results:
                _check(result.error_code, f"delete group {result.group_id!r}")

        await self._at_coordinators(group_ids, request, read)

    async def group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Committed offsets: of all partitions that have one, or of those asked for that have one."""
        wanted = None if partitions is None else checked_partitions(partitions)

        def read(response: Any, _node: Node) -> dict[TopicPartition, OffsetAndMetadata]:
            fetched = fetched_offsets(response)
            _check(fetched.code, f"give the offsets of group {group_id!r}")
            _raise_all(
                [
                    _error(code, f"give the offset of {topic}-{partition} of group {group_id!r}")
                    for (topic, partition), code in fetched.errors.items()
                ]
            )
            return dict(fetched.offsets)

        parts = [None] if wanted is None else in_parts(wanted)
        found = await self._in_parts(group_id, (offset_fetch(group_id, part) for part in parts), read)
        return {tp: one for part in found for tp, one in part.items()}

    async def set_group_offsets(self, group_id: str, offsets: Offsets) -> None:
        """Commit for a group that has no members. BrokerError UNKNOWN_MEMBER_ID when it has some.
        Many take several requests: some may be set when it fails."""

        def read(response: Any, _node: Node) -> None:
            _raise_all(
                [
                    _error(code, f"set the offset of {topic}-{partition} for group {group_id!r}")
                    for (topic, partition), code in commit_errors(response).items()
                ]
            )

        parts = in_commits(group_id, checked(offsets))
        await self._in_parts(group_id, (offset_commit(group_id, -1, "", None, part) for part in parts), read)

    async def delete_group_offsets(self, group_id: str, partitions: Iterable[TopicPartition]) -> None:
        """Forget committed offsets of a group (OffsetDelete, API 47, KIP-496). BrokerError
        GROUP_SUBSCRIBED_TO_TOPIC for topics that its members read. Many take several requests: some may be
        forgotten when it fails."""

        def read(response: Any, _node: Node) -> None:
            _check(response.error_code, f"delete offsets of group {group_id!r}")
            _raise_all(
                [
                    _error(part.error_code, f"delete the offset of {topic.name}-{part.partition_index}")
                    for topic in response.topics
                    for part in topic.partitions
                    if part.error_code
                ]
            )

        def request(part: Iterable[TopicPartition]) -> Request:
            topics = [
                OffsetDeleteRequestTopic(name, [OffsetDeleteRequestPartition(number) for number in numbers])
                for name, numbers in by_topic(part).items()
            ]
            return plain(OffsetDeleteRequest(group_id=group_id, topics=topics))

        parts = in_parts(checked_partitions(partitions))
        await self._in_parts(group_id, map(request, parts), read)

    async def lag(self, group_id: str) -> list[PartitionLag]:
        """How far the group is, in all partitions that it has committed or that its members own."""
        admin = self.within(self._timeout_s)
        committed = await admin.group_offsets(group_id)
        (group,) = await admin.describe_groups([group_id])
        partitions = set(committed)
        for member in group.members:
            partitions.update((topic, p) for topic, ps in member.assignment.items() for p in ps)
        metadata = await admin._metadata({topic for topic, _ in partitions})
        counts = metadata.partition_counts({topic for topic, _ in partitions})
        there = [tp for tp in partitions if tp[1] < counts.get(tp[0], 0)]
        starts, ends = await admin.start_offsets(there), await admin.end_offsets(there)
        return [
            PartitionLag(
                *tp,
                committed[tp].offset if tp in committed else None,
                starts.get(tp),
                ends.get(tp),
                committed[tp].metadata if tp in committed else "",
            )
            for tp in sorted(partitions)
        ]

    async def share_lag(self, group_id: str) -> dict[TopicPartition, ShareOffset]:
        """Where a share group is (KIP-932). BrokerError GROUP_ID_NOT_FOUND when there is none;
        UnsupportedVersionError from brokers before 4.1."""

        def read(response: Any, _node: Node) -> dict[TopicPartition, ShareOffset]:
            found = described_share_offsets(response)[group_id]
            _check(found.error_code, f"give the offsets of share group {group_id!r}", found.message)
            _raise_all(
                [
                    _error(one.error_code, f"give the offset of {topic}-{partition} of group {group_id!r}")
                    for (topic, partition), one in found.partitions.items()
                    if one.error_code
                ]
            )
            return found.partitions

        return await self._at_coordinator(group_id, share_offsets([group_id]), read)

    # ---- how ----

    def _deadline_s(self) -> float:
        """When a call that begins now has to be over, as a time of the event loop."""
        return min(self._until_s, asyncio.get_running_loop().time() + self._timeout_s)

    # ---- users ----

    async def scram_users(self) -> dict[str, dict[str, int]]:
        """All users with SCRAM credentials: for each its hashes ("SHA-512"), and the iterations of each."""
        deadline_s = self._deadline_s()
        request = plain(DescribeUserScramCredentialsRequest(users=None))
        response = await self._to_controller(request, deadline_s)
        _check(response.error_code, "describe users", response.error_message)
        return users.described(response)

    async def set_scram_user(
        self, name: str, password: str, *, hash_name: str = "SHA-512", iterations: int = users.ITERATIONS
    ) -> None:
        """Make a user, or give it another password, for one hash: what it has for the other stays. The
        password itself is not sent.

        Raises ValueError for what no broker takes.
        """
        request = await asyncio.to_thread(users.upsertion, name, password, hash_name, iterations)
        await self._alter_user(request, f"set user {name!r}")

    async def delete_scram_user(self, name: str, *, hash_name: str = "SHA-512") -> None:
        """Remove a user's credential for one hash. Raises BrokerError RESOURCE_NOT_FOUND."""
        await self._alter_user(users.deletion(name, hash_name), f"delete user {name!r}")

    # ---- ACLs ----

    async def acls(
        self,
        *,
        principal: str | None = None,
        resource_type: str | None = None,
        resource_name: str | None = None,
    ) -> list[Acl]:
        """All ACLs, or those of a principal ("User:alice"), of a type of resource ("TOPIC"), of that name.

        Raises ValueError for a type that there is not, BrokerError SECURITY_DISABLED where there are none.
        """
        request = plain(acls.question(principal, resource_type, resource_name))
        response = await self._to_controller(request, self._deadline_s())
        _check(response.error_code, "describe ACLs", response.error_message)
        return acls.described(response)

    async def create_acls(self, wanted: Sequence[Acl]) -> None:
        """Make these ACLs; one that is there already is as good."""
        response = await self._to_controller(plain(acls.creation(wanted)), self._deadline_s())
        for result in response.results:
            _check(result.error_code, "create ACLs", result.error_message)

    async def delete_acls(self, unwanted: Sequence[Acl]) -> None:
        """Delete exactly these ACLs, those that there are."""
        response = await self._to_controller(plain(acls.deletion(unwanted)), self._deadline_s())
        for result in response.filter_results:
            _check(result.error_code, "delete ACLs", result.error_message)

    async def _alter_user(self, request: AlterUserScramCredentialsRequest, doing: str) -> None:
        response = await self._to_controller(plain(request), self._deadline_s())
        for result in response.results:
            _check(result.error_code, doing, result.error_message)

    async def _retry(self, attempt: Callable[[], Awaitable[T]], deadline_s: float) -> T:
        return await retrying(deadline_s, Backoff(50, 1_000, random.random), attempt)

    async def _metadata(self, topics: Iterable[str] | None) -> ClusterMetadata:
        deadline_s = self._deadline_s()
        return await self._retry(lambda: self._cluster.metadata(topics, deadline_s=deadline_s), deadline_s)

    async def _until(
        self, name: str, done: Callable[[TopicMetadata | None], bool], deadline_s: float
    ) -> None:
        """The controller says yes before the brokers know: wait for these."""

        async def look() -> None:
            metadata = await self._cluster.metadata([name], deadline_s=deadline_s)
            if not done(metadata.topics.get(name)):
                raise RetriableError(f"the brokers do not yet show the change of topic {name!r}")

        await self._retry(look, deadline_s)

    async def _to_controller(self, request: Request, deadline_s: float) -> Any:
        # A change of topics is not repeated after a lost answer: it may have been made.
        controller = await self._retry(lambda: self._cluster.controller(deadline_s=deadline_s), deadline_s)
        return await self._cluster.send(controller, request, deadline_s=deadline_s)

    async def _at_coordinator(
        self,
        group_id: str,
        request: Request,
        read: Callable[[Any, Node], T],
        deadline_s: float | None = None,
    ) -> T:
        wire_text("group_id", group_id)
        ends_s = self._deadline_s() if deadline_s is None else deadline_s

        async def ask() -> T:
            groups = self._cluster.groups
            node = await groups.coordinator(group_id, deadline_s=ends_s)
            return read(await groups.send(node, request, deadline_s=ends_s), node)

        return await self._retry(ask, ends_s)

    async def _in_parts(
        self, group_id: str, requests: Iterable[Request], read: Callable[[Any, Node], T]
    ) -> list[T]:
        """Several requests about one group, all in one time."""
        deadline_s = self._deadline_s()
        return await _all_of(self._at_coordinator(group_id, one, read, deadline_s) for one in requests)

    async def _at_coordinators(
        self, group_ids: Iterable[str], request: Callable[[str], Request], read: Callable[[Any, Node], T]
    ) -> list[T]:
        """Each group asked for at its own, all in one time."""
        deadline_s = self._deadline_s()
        return await _all_of(self._at_coordinator(one, request(one), read, deadline_s) for one in group_ids)


def _named(topic: str) -> str:
    return wire_text("the name of a topic", topic)


def _set(configs: Mapping[str, str]) -> Mapping[str, str]:
    for name, value in configs.items():
        wire_text(f"the value of {wire_text('a setting', name)}", value)
    return configs


async def _all_of(calls: Iterable[Awaitable[T]]) -> list[T]:
    """The results. Raises one error for all that fail."""
    results = await asyncio.gather(*calls, return_exceptions=True)
    _raise_all([one for one in results if isinstance(one, BaseException)])
    return [one for one in results if not isinstance(one, BaseException)]


def _left_ms(deadline_s: float) -> int:
    """The timeout that the request names to the broker."""
    return max(1, int((deadline_s - asyncio.get_running_loop().time()) * 1000))


def _error(code: int, what: str, detail: str | None = None) -> ClientError:
    """The error of that code: RetriableError when it may work later, else BrokerError."""
    text = f"cannot {what}: {error_name(code)}" + (f" ({detail})" if detail else "")
    return (RetriableError if is_retriable(code) and code not in _NOT_RETRIED else BrokerError)(text, code)


def _check(code: int, what: str, detail: str | None = None) -> None:
    if code != ErrorCode.NONE:
        raise _error(code, what, detail)


def _raise_all(errors: Sequence[BaseException]) -> None:
    """One error for all of them, if there are any. Retriable if all are; the code is the first one's."""
    if not errors:
        return
    ours = [error for error in errors if isinstance(error, ClientError)]
    if len(ours) < len(errors):
        raise next(error for error in errors if not isinstance(error, ClientError))
    worst = next((error for error in ours if not isinstance(error, RetriableError)), ours[0])
    if len(ours) == 1:
        raise worst
    raise type(worst)("; ".join(dict.fromkeys(str(error) for error in ours)), worst.code)


def _usable(topic: TopicMetadata | None) -> int:
    """Partitions that have a leader."""
    if topic is None or topic.error_code:
        return 0
    return sum(partition.leader >= 0 for partition in topic.partitions)


def _leader(metadata: ClusterMetadata, tp: TopicPartition) -> Node:
    topic, partition = tp
    what = f"offsets of {topic}-{partition}"
    found = metadata.topics.get(topic)
    _check(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if found is None else found.error_code, what)
    assert found is not None
    for part in found.partitions:
        if part.partition == partition:
            if part.leader in metadata.brokers:
                return metadata.brokers[part.leader]
            raise RetriableError(f"{topic}-{partition} has no leader now", ErrorCode.LEADER_NOT_AVAILABLE)
    raise BrokerError(f"no partition {topic}-{partition}", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
