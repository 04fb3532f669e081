"""The authorizer: against a naive model of Kafka's rules, and the traps of them one by one."""

from __future__ import annotations

import random
import tracemalloc
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringleader.coordinator.security.acls import (
    CLUSTER_NAME,
    EVERYBODY,
    MAX_TEXT_BYTES,
    SUPPORTED,
    AclBinding,
    AclFilter,
    Authorizer,
    Operation,
    PatternType,
    Permission,
    ResourceType,
    check,
    from_key,
    to_key,
)
from ringleader.coordinator.security.principal import Principal
from ringleader.protocol.errors import ErrorCode, KafkaError
from tests.support.shares import share

ALICE, BOB = Principal("User", "alice"), Principal("User", "bob")
HERE, THERE = "127.0.0.1", "10.0.0.9"
TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
ALLOW, DENY = Permission.ALLOW, Permission.DENY

NAMES = ["*", "a", "ab", "abc", "b", "hardcode"]
OPERATIONS = [
    Operation.ALL,
    Operation.READ,
    Operation.ALTER,
    Operation.DESCRIBE,
    Operation.ALTER_CONFIGS,
    Operation.DESCRIBE_CONFIGS,
]

acls = st.builds(
    AclBinding,
    st.sampled_from([TOPIC, GROUP]),
    st.sampled_from(NAMES),
    st.sampled_from([LITERAL, PREFIXED]),
    st.sampled_from([str(ALICE), str(BOB), EVERYBODY]),
    st.sampled_from(["*", HERE]),
    st.sampled_from(OPERATIONS),
    st.sampled_from([ALLOW, DENY]),
)


def naive(
    present: set[AclBinding], open_: bool, principal: Principal, host: str, wanted: Operation, name: str
) -> bool:
    """May `principal` do that to a topic: Kafka's rules as a sentence each."""

    def names_it(acl: AclBinding) -> bool:
        whole = acl.name in (name, "*") if acl.pattern_type == LITERAL else name.startswith(acl.name)
        return acl.resource_type == TOPIC and whole

    about = [acl for acl in present if names_it(acl)]
    if not about:
        return open_
    speaking = [
        acl for acl in about if acl.principal in (str(principal), "User:*") and acl.host in ("*", host)
    ]
    if any(acl.permission == DENY and acl.operation in (wanted, Operation.ALL) for acl in speaking):
        return False
    grants = {acl.operation for acl in speaking if acl.permission == ALLOW}
    enough = {Operation.ALL, wanted}
    if wanted == Operation.DESCRIBE:
        enough |= {Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}
    if wanted == Operation.DESCRIBE_CONFIGS:
        enough.add(Operation.ALTER_CONFIGS)
    return bool(grants & enough)


@settings(max_examples=share(30, whole=50))
@given(st.lists(st.tuples(st.booleans(), acls), max_size=8), st.booleans())
def test_it_decides_as_the_naive_model_after_each_change(
    changes: list[tuple[bool, AclBinding]], open_: bool
) -> None:
    authorizer = Authorizer(["User:root"], allow_everyone_if_no_acl_found=open_)
    present: set[AclBinding] = set()
    for number, (added, acl) in enumerate(changes, 1):
        if added:
            authorizer.apply(added=[acl])
            present.add(acl)
        else:
            authorizer.apply(removed=[acl])
            present.discard(acl)
        assert authorizer.version == number
        assert set(authorizer.matching(AclFilter())) == present
        for principal, host, wanted, name in product(
            (ALICE, BOB), (HERE, THERE), OPERATIONS[1:], ("a", "ab", "abcd", "b", "c", "*")
        ):
            expected = naive(present, open_, principal, host, wanted, name)
            assert authorizer.authorize(principal, host, wanted, TOPIC, name) == expected
        assert authorizer.authorize(Principal("User", "root"), HERE, Operation.WRITE, TOPIC, "a")


@given(st.lists(acls, max_size=8))
def test_what_some_resource_allows_is_allowed_by_type(present: list[AclBinding]) -> None:
    authorizer = Authorizer()
    authorizer.apply(added=present)
    allowed = authorizer.authorize_by_resource_type(ALICE, HERE, Operation.READ, TOPIC)
    tried = ("a", "ab", "abc", "abcd", "b", "bc", "hardcode", "hardcodes", "*", "*a", "z")
    assert allowed or not any(
        authorizer.authorize(ALICE, HERE, Operation.READ, TOPIC, name) for name in tried
    )
    if allowed and not any(acl.permission == DENY for acl in present):
        assert any(authorizer.authorize(ALICE, HERE, Operation.READ, TOPIC, name) for name in tried)


@settings(max_examples=share(30, whole=50))
@given(st.lists(acls, max_size=8), st.randoms(use_true_random=False))
def test_what_is_remembered_of_one_caller_is_told_to_no_other(
    present: list[AclBinding], drawn: random.Random
) -> None:
    """Verdicts are those of an authorizer that was never asked before, in whichever order callers come."""
    authorizer = Authorizer()
    authorizer.apply(added=present)
    callers = list(product((ALICE, BOB), (HERE, THERE), (READ, WRITE, DESCRIBE), (TOPIC, ResourceType.GROUP)))
    for principal, host, wanted, kind in drawn.sample(callers, len(callers)):
        fresh = Authorizer()
        fresh.apply(added=present)
        for name in ("a", "ab"):
            known = authorizer.authorize(principal, host, wanted, kind, name)
            assert known == fresh.authorize(principal, host, wanted, kind, name)
        by_type = authorizer.authorize_by_resource_type(principal, host, wanted, kind)
        assert by_type == fresh.authorize_by_resource_type(principal, host, wanted, kind)


def acl(
    name: str = "a",
    pattern_type: PatternType = LITERAL,
    permission: Permission = ALLOW,
    operation: Operation = Operation.WRITE,
) -> AclBinding:
    return AclBinding(TOPIC, name, pattern_type, str(ALICE), "*", operation, permission)


READ, WRITE, DESCRIBE = Operation.READ, Operation.WRITE, Operation.DESCRIBE


@pytest.mark.parametrize(
    ("present", "operation", "name", "may"),
    [
        ([acl(operation=READ)], DESCRIBE, "a", True),
        ([acl(operation=DESCRIBE)], READ, "a", False),
        ([acl(operation=DESCRIBE), acl(permission=DENY, operation=READ)], DESCRIBE, "a", True),
        ([acl(operation=READ), acl(permission=DENY, operation=DESCRIBE)], DESCRIBE, "a", False),
        ([acl(operation=READ), acl(permission=DENY, operation=Operation.ALL)], DESCRIBE, "a", False),
        ([acl("abc", PREFIXED), acl("a", PREFIXED, DENY)], WRITE, "abcd", False),
        ([acl("a", PREFIXED), acl("abc", PREFIXED, DENY)], WRITE, "abcd", False),
        ([acl("abc", PREFIXED), acl("abcde", PREFIXED, DENY)], WRITE, "abcd", True),
        ([acl("a", PREFIXED)], WRITE, "a", True),
        ([acl("*"), acl("a", PREFIXED, DENY)], WRITE, "ab", False),
    ],
)
def test_a_deny_counts_for_what_it_names_alone(
    present: list[AclBinding], operation: Operation, name: str, may: bool
) -> None:
    authorizer = Authorizer()
    for some in (present, present[::-1]):
        authorizer.apply(added=some)
        assert authorizer.authorize(ALICE, HERE, operation, TOPIC, name) == may
        authorizer.apply(removed=some)
        assert not authorizer.authorize(ALICE, HERE, operation, TOPIC, name)


def test_an_acl_of_another_host_is_an_acl_of_the_resource() -> None:
    authorizer = Authorizer(allow_everyone_if_no_acl_found=True)
    assert authorizer.authorize(ALICE, HERE, WRITE, TOPIC, "a")
    authorizer.apply(added=[acl()._replace(host=THERE)])
    assert authorizer.authorize(ALICE, THERE, WRITE, TOPIC, "a")
    assert not authorizer.authorize(ALICE, HERE, WRITE, TOPIC, "a")


@pytest.mark.parametrize("pattern", [PatternType.LITERAL, PatternType.PREFIXED])
def test_a_resource_whose_last_acl_is_gone_has_none(pattern: PatternType) -> None:
    authorizer = Authorizer(allow_everyone_if_no_acl_found=True)
    theirs = acl()._replace(principal="User:bob", pattern_type=pattern)
    authorizer.apply(added=[theirs])
    assert not authorizer.authorize(ALICE, HERE, WRITE, TOPIC, theirs.name)
    authorizer.apply(removed=[theirs])
    assert authorizer.authorize(ALICE, HERE, WRITE, TOPIC, theirs.name)


@pytest.mark.parametrize(
    ("present", "may"),
    [
        ([], False),
        ([acl()], True),
        ([acl(operation=Operation.ALL)], True),
        ([acl(operation=Operation.READ)], False),
        ([acl(), acl(permission=DENY)], False),
        ([acl(), acl("a", PREFIXED, DENY)], False),
        ([acl("ab"), acl("a", PREFIXED, DENY)], False),
        ([acl("a", PREFIXED), acl("ab", PREFIXED, DENY)], True),
        ([acl("a", PREFIXED), acl("a", LITERAL, DENY)], True),
        ([acl("*"), acl("a", PREFIXED, DENY)], True),
        ([acl("*"), acl("*", LITERAL, DENY)], False),
        ([acl("a", PREFIXED), acl("*", LITERAL, DENY)], False),
    ],
)
def test_by_type_a_deny_dominates_only_what_it_covers(present: list[AclBinding], may: bool) -> None:
    authorizer = Authorizer()
    authorizer.apply(added=present)
    assert authorizer.authorize_by_resource_type(ALICE, HERE, Operation.WRITE, TOPIC) == may
    assert not authorizer.authorize_by_resource_type(BOB, HERE, Operation.WRITE, TOPIC)


def test_names_that_somebody_made_up_take_no_memory_however_long_they_are() -> None:
    authorizer = Authorizer()
    tracemalloc.start()
    try:
        for number in range(100):
            assert not authorizer.authorize(ALICE, HERE, Operation.READ, GROUP, f"{number}" * 50_000)
        held_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held_bytes < 1_000_000


def test_operations_are_told_as_bits() -> None:
    authorizer = Authorizer(["User:root"])
    authorizer.apply(added=[acl(), acl(operation=Operation.DESCRIBE, permission=DENY)])
    bits = authorizer.authorized_operations(ALICE, HERE, TOPIC, "a")
    assert bits == 1 << Operation.WRITE
    root = Principal("User", "root")
    for kind in SUPPORTED:
        assert authorizer.authorized_operations(root, HERE, kind, "x").bit_count() == len(SUPPORTED[kind])


def test_observers_are_called_after_each_change() -> None:
    authorizer = Authorizer()
    seen: list[tuple[int, int]] = []
    authorizer.observe(lambda: seen.append((authorizer.version, len(authorizer))))
    authorizer.apply(added=[acl(), acl("b")])
    authorizer.apply(removed=[acl()])
    assert seen == [(1, 2), (2, 1)]


PRESENT = [
    acl("orders"),
    acl("ord", PREFIXED),
    acl("*"),
    acl("ord", LITERAL, DENY),
    AclBinding(GROUP, "orders", LITERAL, str(BOB), HERE, Operation.READ, ALLOW),
]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (AclFilter(), [0, 1, 2, 3, 4]),
        (AclFilter(TOPIC), [0, 1, 2, 3]),
        (AclFilter(TOPIC, "orders"), [0]),
        (AclFilter(TOPIC, "orders", PatternType.MATCH), [0, 1, 2]),
        (AclFilter(TOPIC, "ord", LITERAL), [3]),
        (AclFilter(TOPIC, "ord", PREFIXED), [1]),
        (AclFilter(TOPIC, "ord"), [1, 3]),
        (AclFilter(TOPIC, "orders", LITERAL), [0]),
        (AclFilter(TOPIC, None, PREFIXED), [1]),
        (AclFilter(principal=str(BOB)), [4]),
        (AclFilter(host=HERE), [4]),
        (AclFilter(operation=Operation.READ), [4]),
        (AclFilter(permission=DENY), [3]),
    ],
)
def test_filters_mean_what_kafkas_mean(wanted: AclFilter, found: list[int]) -> None:
    authorizer = Authorizer()
    authorizer.apply(added=PRESENT)
    assert set(authorizer.matching(wanted)) == {PRESENT[number] for number in found}


@given(acls, st.text(max_size=20))
def test_what_is_kept_comes_back(kept: AclBinding, name: str) -> None:
    kept = kept._replace(name=name)
    assert from_key(to_key(kept)) == kept


@pytest.mark.parametrize(
    "key", ["", "[]", "{}", '["TOPIC"]', '["NO","LITERAL","a","User:a","*","READ","ALLOW"]']
)
def test_what_is_no_acl_is_refused(key: str) -> None:
    with pytest.raises((ValueError, KeyError, TypeError)):
        from_key(key)


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (acl(""), "Invalid empty resource name"),
        (acl()._replace(principal="alice"), "no colon"),
        (acl("x" * (MAX_TEXT_BYTES + 1)), "at most 1,024 bytes"),
        (acl()._replace(resource_type=ResourceType.CLUSTER), f"resource is {CLUSTER_NAME}"),
    ],
)
def test_what_cannot_be_an_acl_is_refused_with_a_sentence(wrong: AclBinding, text: str) -> None:
    with pytest.raises(KafkaError, match=text) as caught:
        check(wrong)
    assert caught.value.code == ErrorCode.INVALID_REQUEST


def test_a_deny_for_one_host_is_none_for_another() -> None:
    authorizer = Authorizer()
    authorizer.apply(added=[acl(), acl(permission=DENY)._replace(host=THERE)])
    assert authorizer.authorize(ALICE, HERE, WRITE, TOPIC, "a")
    assert not authorizer.authorize(ALICE, THERE, WRITE, TOPIC, "a")


def test_by_type_what_an_acl_implies_does_not_count() -> None:
    authorizer = Authorizer()
    authorizer.apply(added=[acl(operation=READ)])
    assert authorizer.authorize(ALICE, HERE, DESCRIBE, TOPIC, "a")
    assert not authorizer.authorize_by_resource_type(ALICE, HERE, DESCRIBE, TOPIC)
