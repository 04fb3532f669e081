"""Every API that is served asks whether somebody may; a node with an authorizer, over the wire."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ringleader.coordinator.node import Node
from ringleader.coordinator.security.scram import MECHANISMS
from ringleader.protocol import messages as kafka
from ringleader.protocol.errors import ErrorCode
from tests.protocol.test_refusals import codes
from tests.support.principals import ADMINISTRATOR, connected_as, guarded, prepare
from tests.support.registered import PASSWORD, credential
from tests.support.requests_of_all import ALICE, BOB, CAROL, MALLORY, all_requests
from tests.support.served import Client, connected

OPEN = {17, 18, 36}
"""ApiVersions and SASL are for those whom nobody knows yet."""
TOPIC, GROUP = ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.GROUP_AUTHORIZATION_FAILED
CLUSTER, ID = ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
REFUSED = {
    0: {TOPIC, ID}, 1: {TOPIC}, 2: {TOPIC}, 3: {TOPIC}, 8: {GROUP}, 9: {GROUP}, 10: {GROUP, ID}, 11: {GROUP},
    12: {GROUP}, 13: {GROUP}, 14: {GROUP}, 15: {GROUP}, 19: {TOPIC}, 20: {TOPIC}, 21: {TOPIC},
    22: {CLUSTER, ID}, 23: {TOPIC}, 24: {ID}, 25: {ID}, 26: {ID}, 28: {ID}, 29: {CLUSTER}, 30: {CLUSTER},
    31: {CLUSTER},
    32: {TOPIC, CLUSTER}, 33: {TOPIC}, 37: {TOPIC}, 42: {GROUP}, 44: {TOPIC}, 47: {GROUP}, 48: {CLUSTER},
    49: {CLUSTER}, 50: {CLUSTER}, 51: {CLUSTER}, 68: {GROUP}, 69: {GROUP},
}  # fmt: skip
"""The errors for a principal without rights, by API."""
HIDDEN = {16, 60, 71, 72}
"""Here nothing is refused: there are no groups to see, no operations to do; telemetry is for every client,
and what it tells of a group that it may not read is dropped."""


async def test_every_api_refuses_whom_no_acl_allows_and_nothing_to_a_super_user(tmp_path: Path) -> None:
    wrong: list[str] = []
    codes_by_api: dict[int, set[int]] = {key: set() for key in REFUSED}
    async with Node(guarded(tmp_path)) as node:
        served = set(node.server.routes)
        assert served == REFUSED.keys() | HIDDEN | OPEN, "an API without an entry here has no check perhaps"
        assert {case.request.API_KEY for case in all_requests()} == served - OPEN
        async with connected_as(node, ADMINISTRATOR) as root, connected_as(node, MALLORY) as mallory:
            await prepare(root)
            for case in all_requests():
                key = case.request.API_KEY
                found = set(codes(await mallory.call(case.request, case.version)))
                codes_by_api.get(key, set()).update(found)
                if not found - {0} and not _shows_nothing(key, case.label):
                    wrong.append(f"{case.name}: allowed")
            for case in all_requests():
                answer = await root.call(case.request, case.version)
                if (found := set(codes(answer))) & {TOPIC, GROUP, CLUSTER, ID} - _of_records(case.label):
                    wrong.append(f"{case.name}: a super user is refused, {found}")
    assert wrong == []
    assert {key: found & {TOPIC, GROUP, CLUSTER, ID} for key, found in codes_by_api.items()} == REFUSED


def _shows_nothing(key: int, label: str) -> bool:
    return (
        key in HIDDEN
        or label.endswith("of all")
        or "of the cluster" in label
        or "without a protocol" in label
    )


def _of_records(label: str) -> set[int]:
    """Transactional records without an id are refused to all."""
    return {ID} if label == "in no transaction" else set()


async def test_what_may_not_be_seen_is_not_listed(tmp_path: Path) -> None:
    async with Node(guarded(tmp_path)) as node, connected_as(node, ADMINISTRATOR) as root:
        await prepare(root)
        for group in ("g-seen", "g-other"):
            await root.call(_commit(group, "mine"), 8)

        async def seen(principal: str) -> tuple[list[str], list[str]]:
            async with connected_as(node, principal) as client:
                topics = await client.call(kafka.MetadataRequest(topics=None), 9)
                groups = await client.call(kafka.ListGroupsRequest(), 4)
            return [one.name for one in topics.topics], [one.group_id for one in groups.groups]

        assert await seen(MALLORY) == ([], [])
        assert await seen(ALICE) == (["mine", "seen"], ["g-seen"])
        topics, groups = await seen(ADMINISTRATOR)
        assert {"mine", "seen", "other"} <= set(topics)
        assert sorted(groups) == ["g-other", "g-seen"]


async def test_nobody_creates_a_topic_by_looking_that_is_not_to_be_seen(tmp_path: Path) -> None:
    """Not even a principal that may create any: it gets no answer about it, so nothing is to happen."""
    async with Node(guarded(tmp_path)) as node, connected_as(node, ADMINISTRATOR) as root:
        await prepare(root)
        looked = kafka.MetadataRequest(topics=[kafka.MetadataRequestTopic(name="gone")])
        for principal, code in ((CAROL, TOPIC), (ALICE, TOPIC), (BOB, TOPIC), (ADMINISTRATOR, 0)):
            async with connected_as(node, principal) as client:
                assert [one.error_code for one in (await client.call(looked, 4)).topics] == [code]
            assert (node.topics.describe("gone") is None) == (principal != ADMINISTRATOR)


def _commit(group: str, topic: str) -> kafka.OffsetCommitRequest:
    partition = kafka.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    return kafka.OffsetCommitRequest(
        group_id=group, topics=[kafka.OffsetCommitRequestTopic(name=topic, partitions=[partition])]
    )


def creation(*fields: Any) -> kafka.CreateAclsRequest:
    return kafka.CreateAclsRequest(creations=[kafka.CreateAclsRequestAclCreation(*fields)])


def removal(principal: str | None, kind: int = 1) -> kafka.DeleteAclsRequest:
    wanted = kafka.DeleteAclsRequestDeleteAclsFilter(kind, None, 1, principal, None, 1, 1)
    return kafka.DeleteAclsRequest(filters=[wanted])


async def test_a_member_at_work_is_refused_from_the_moment_its_acl_is_gone(tmp_path: Path) -> None:
    """Heartbeats and commits are remembered, and verdicts: of the connection that was allowed."""
    async with (
        Node(guarded(tmp_path)) as node,
        connected_as(node, ADMINISTRATOR) as root,
        connected_as(node, ALICE) as alice,
        connected_as(node, MALLORY) as mallory,
    ):
        await prepare(root)
        protocols = [kafka.JoinGroupRequestProtocol(name="range", metadata=b"x")]
        join = kafka.JoinGroupRequest(
            group_id="g-mine", session_timeout_ms=30_000, protocol_type="consumer", protocols=protocols
        )
        joined = await alice.call(join, 0)
        member, generation = joined.member_id, joined.generation_id
        assignments = [kafka.SyncGroupRequestAssignment(member_id=member, assignment=b"x")]
        await alice.call(kafka.SyncGroupRequest("g-mine", generation, member, assignments=assignments), 0)
        beat = kafka.HeartbeatRequest("g-mine", generation, member)
        commit = _commit("g-mine", "mine")
        commit.generation_id_or_member_epoch, commit.member_id = generation, member

        async def both(client: Any) -> list[tuple[int, set[int]]]:
            answers = []
            for _ in range(4):
                code = (await client.call(beat, 4)).error_code
                answers.append((code, set(codes(await client.call(commit, 8)))))
            return answers

        allowed, refused = [(0, {0})] * 4, [(int(GROUP), {int(GROUP)})] * 4
        assert await both(alice) == allowed
        assert await both(mallory) == refused
        assert await both(alice) == allowed
        removed = await root.call(removal("User:alice", 3), 3)
        assert {one.resource_name for one in removed.filter_results[0].matching_acls} == {
            "g-mine",
            "g-seen",
            "g-old",
        }
        assert await both(alice) == refused
        await root.call(creation(3, "g-m", 4, "User:alice", "127.0.0.1", 3, 3), 2)
        assert await both(alice) == allowed
        await root.call(creation(2, "mine", 3, "User:*", "*", 3, 2), 2)
        assert await both(alice) == [(0, {int(TOPIC)})] * 4


async def test_acls_outlive_the_process_and_are_told_as_they_were_made(tmp_path: Path) -> None:
    everything = kafka.DescribeAclsRequest(1, None, 1, None, None, 1, 1)
    async with Node(guarded(tmp_path)) as node, connected_as(node, ADMINISTRATOR) as root:
        await prepare(root)
        before = await root.call(everything, 3)
        assert len({(one.resource_type, one.resource_name, one.pattern_type) for one in before.resources}) > 5
    async with Node(guarded(tmp_path)) as node, connected_as(node, ADMINISTRATOR) as root:
        assert await root.call(everything, 3) == before
        removed = await root.call(removal(None), 3)
        assert len(removed.filter_results[0].matching_acls) == sum(len(one.acls) for one in before.resources)
    async with Node(guarded(tmp_path)) as node, connected_as(node, ADMINISTRATOR) as root:
        assert (await root.call(everything, 1)).resources == []


async def test_a_file_with_what_is_no_acl_is_refused_at_start(tmp_path: Path) -> None:
    async with Node(guarded(tmp_path, authorizer="none")) as node:
        await node.security.store.change("acls", {"nonsense": {}})
    with pytest.raises(OSError, match="an ACL cannot be read"):
        await Node(guarded(tmp_path)).start()


async def test_without_an_authorizer_there_are_no_acls(tmp_path: Path) -> None:
    async with Node(guarded(tmp_path, authorizer="none")) as node, connected(node.host, node.port) as client:
        described = await client.call(kafka.DescribeAclsRequest(1, None, 1, None, None, 1, 1), 3)
        disabled = (ErrorCode.SECURITY_DISABLED, "No Authorizer is configured on the broker")
        assert (described.error_code, described.error_message) == disabled
        made = await client.call(creation(2, "x", 3, "User:x", "*", 3, 3), 3)
        removed = await client.call(removal(None), 3)
        for one in (made.results[0], removed.filter_results[0]):
            disabled = (ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")
            assert (one.error_code, one.error_message) == disabled


async def test_an_authenticated_client_may_do_what_the_acls_of_its_name_allow(tmp_path: Path) -> None:
    settings = guarded(
        tmp_path,
        super_users="User:root",
        listeners="SASL_PLAINTEXT://127.0.0.1:0",
        sasl_enabled_mechanisms="PLAIN",
        sasl_cleartext_without_tls=True,
    )
    async with Node(settings) as node:
        known = {"SCRAM-SHA-512": credential(MECHANISMS["SCRAM-SHA-512"])}
        await node.security.users.change(dict.fromkeys(("root", ALICE, MALLORY), known))

        @contextlib.asynccontextmanager
        async def logged_in(name: str) -> AsyncIterator[Client]:
            async with connected(node.host, node.port) as client:
                assert (await client.call(kafka.SaslHandshakeRequest("PLAIN"), 1)).error_code == 0
                login = kafka.SaslAuthenticateRequest(f"\0{name}\0{PASSWORD}".encode())
                assert (await client.call(login, 1)).error_code == 0
                yield client

        async with logged_in("root") as root, logged_in(ALICE) as alice, logged_in(MALLORY) as mallory:
            await prepare(root)
            commit = _commit("g-mine", "mine")
            assert set(codes(await alice.call(commit, 8))) == {0}
            assert set(codes(await mallory.call(commit, 8))) == {GROUP}
            assert set(codes(await alice.call(_commit("g-mine", "other"), 8))) == {TOPIC}
            assert (await mallory.call(kafka.MetadataRequest(topics=None), 9)).topics == []
