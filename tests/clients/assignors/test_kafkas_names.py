"""Every test of Kafka's assignors and of their bytes, by its name: the test here that stands for it, or why
there is none. (Apache Kafka 4.3, ``clients/src/test/java/org/apache/kafka/clients/consumer``.)"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[2]
VECTORS = "clients/assignors/test_vectors.py"
STICKY = "clients/assignors/test_kafkas_sticky.py"
CLAIMS = "clients/assignors/test_kafkas_sticky_claims.py"
DATA = "clients/assignors/test_kafkas_member_data.py"
BYTES = "protocol/test_kafkas_consumer_protocol.py"

_OF_BOTH = """
    testOneConsumerNoTopic testOneConsumerNonexistentTopic testOneConsumerOneTopic
    testOneConsumerMultipleTopics
    testOnlyAssignsPartitionsFromSubscribedTopics testTwoConsumersOneTopicOnePartition
    testTwoConsumersOneTopicTwoPartitions testMultipleConsumersMixedTopics
    testTwoStaticConsumersTwoTopicsSixPartitions
    testOneStaticConsumerAndOneDynamicConsumerTwoTopicsSixPartitions
"""
_CLAIMED_TWICE = "testAllConsumersHaveOwnedPartitionInvalidatedWhenClaimedByMultipleConsumersInSameGeneration"
_OF_MEMBER_DATA = f"""
    {_CLAIMED_TWICE}WithEqualPartitionsPerConsumer {_CLAIMED_TWICE}WithUnequalPartitionsPerConsumer
    testMemberDataWithInconsistentData testAssignorWithOldVersionSubscriptions
"""

NAMES = {
    "RangeAssignorTest": f"""
        {_OF_BOTH}
        testTwoConsumersTwoTopicsSixPartitions testStaticMemberRangeAssignmentPersistent
        testStaticMemberRangeAssignmentPersistentAfterMemberIdChanges
        testRackAwareStaticMemberRangeAssignmentPersistentAfterMemberIdChanges
        testRackAwareAssignmentWithUniformSubscription testRackAwareAssignmentWithNonEqualSubscription
        testRackAwareAssignmentWithUniformPartitions
        testRackAwareAssignmentWithUniformPartitionsNonEqualSubscription
        testRackAwareAssignmentWithCoPartitioning testCoPartitionedAssignmentWithSameSubscription
    """,
    "RoundRobinAssignorTest": f"""
        {_OF_BOTH}
        testTwoDynamicConsumersTwoTopicsSixPartitions testStaticMemberRoundRobinAssignmentPersistent
        testStaticMemberRoundRobinAssignmentPersistentAfterMemberIdChanges
    """,
    "AbstractPartitionAssignorTest": """
        testMemberInfoSortingWithoutGroupInstanceId testMemberInfoSortingWithAllGroupInstanceId
        testMemberInfoSortingSomeGroupInstanceId testMergeSortManyMemberInfo testUseRackAwareAssignment
    """,
    "AbstractStickyAssignorTest": """
        testMemberData testOneConsumerNoTopic testOneConsumerNonexistentTopic testOneConsumerOneTopic
        testOnlyAssignsPartitionsFromSubscribedTopics testOneConsumerMultipleTopics
        testTwoConsumersOneTopicOnePartition testTwoConsumersOneTopicTwoPartitions
        testMultipleConsumersMixedTopicSubscriptions testTwoConsumersTwoTopicsSixPartitions
        testConsumerOwningMinQuotaExpectedMaxQuota testMaxQuotaConsumerMoreThanNumExpectedMaxCapacityMembers
        testAllConsumersAreUnderMinQuota testAddRemoveConsumerOneTopic testAddRemoveTwoConsumersTwoTopics
        testPoorRoundRobinAssignmentScenario testAddRemoveTopicTwoConsumers
        testReassignmentAfterOneConsumerLeaves testReassignmentAfterOneConsumerAdded testSameSubscriptions
        testTopicBalanceAfterReassignment testLargeAssignmentAndGroupWithUniformSubscription
        testLargeAssignmentAndGroupWithNonEqualSubscription
        testAssignmentAndGroupWithNonEqualSubscriptionNotTimeout
        testSubscriptionNotEqualAndAssignSamePartitionWith3Generation
        testLargeAssignmentWithMultipleConsumersLeavingAndRandomSubscription testNewSubscription
        testMoveExistingAssignments testStickiness testAssignmentUpdatedForDeletedTopic
        testNoExceptionThrownWhenOnlySubscribedTopicDeleted testReassignmentWithRandomSubscriptionsAndChanges
        testAllConsumersReachExpectedQuotaAndAreConsideredFilled
        testOwnedPartitionsAreInvalidatedForConsumerWithStaleGeneration
        testOwnedPartitionsAreInvalidatedForConsumerWithNoGeneration
        testOwnedPartitionsAreInvalidatedForConsumerWithMultipleGeneration
        testPartitionsTransferringOwnershipIncludeThePartitionClaimedByMultipleConsumersInSameGeneration
        testEnsurePartitionsAssignedToHighestGeneration testNoReassignmentOnCurrentMembers
        testRackAwareAssignmentWithUniformSubscription testRackAwareAssignmentWithNonEqualSubscription
    """,
    "StickyAssignorTest": f"""
        {_OF_MEMBER_DATA}
        testAssignmentWithMultipleGenerations1 testAssignmentWithMultipleGenerations2
        testAssignmentWithConflictingPreviousGenerations testSchemaBackwardCompatibility
        testMemberDataWillHonorUserData
    """,
    "CooperativeStickyAssignorTest": f"""
        {_OF_MEMBER_DATA}
        testEncodeAndDecodeGeneration testDecodeGeneration testMemberDataWithEmptyPartitionsAndEqualGeneration
        testMemberDataWithEmptyPartitionsAndHigherGeneration
        testUniformSubscriptionTransferOwnershipListIsRight
    """,
    "ConsumerProtocolTest": """
        serializeDeserializeSubscriptionAllVersions serializeDeserializeMetadata
        serializeDeserializeMetadataAndGroupInstanceId serializeDeserializeNullSubscriptionUserData
        serializeSubscriptionShouldOrderTopics serializeSubscriptionShouldOrderOwnedPartitions
        deserializeOldSubscriptionVersion deserializeNewSubscriptionWithOldVersion
        deserializeFutureSubscriptionVersion serializeDeserializeAssignmentAllVersions
        serializeDeserializeAssignment deserializeNullAssignmentUserData deserializeFutureAssignmentVersion
        deserializeSubscriptionThrowsSchemaExceptionForEveryTruncation
        deserializeAssignmentThrowsSchemaExceptionForEveryTruncation
        deserializeConsumerProtocolSubscriptionThrowsSchemaExceptionForEveryTruncation
        deserializeConsumerProtocolAssignmentThrowsSchemaExceptionForEveryTruncation
    """,
}
FILES = {
    "RangeAssignorTest": [VECTORS],
    "RoundRobinAssignorTest": [VECTORS],
    "AbstractPartitionAssignorTest": [VECTORS],
    "AbstractStickyAssignorTest": [STICKY, CLAIMS],
    "StickyAssignorTest": [DATA],
    "CooperativeStickyAssignorTest": [DATA],
    "ConsumerProtocolTest": [BYTES],
}

_ONE_DECODER = "Java has two decoders of the same bytes, one for its generated class; here is one"
WITHOUT = {
    "deserializeConsumerProtocolSubscriptionThrowsSchemaExceptionForEveryTruncation": _ONE_DECODER,
    "deserializeConsumerProtocolAssignmentThrowsSchemaExceptionForEveryTruncation": _ONE_DECODER,
}


def ours(name: str) -> str:
    """testOneTwo or oneTwo as test_one_two."""
    words = re.sub(r"([A-Z])", r"_\1", name).lower().removeprefix("test_")
    return f"test_{words}"


def functions_of(path: str) -> set[str]:
    """Names of the test functions of a file."""
    tree = ast.parse((TESTS / path).read_text())
    return {one.name for one in tree.body if isinstance(one, ast.FunctionDef)}


@pytest.mark.parametrize("suite", NAMES)
def test_each_test_of_kafkas_has_one_here_or_a_reason(suite: str) -> None:
    here = set().union(*map(functions_of, FILES[suite]))
    for name in NAMES[suite].split():
        assert (ours(name) in here) != (name in WITHOUT), name


def test_reasons_are_for_tests_that_exist() -> None:
    assert set(WITHOUT) <= {name for names in NAMES.values() for name in names.split()}
    assert ours("testAssignmentWithMultipleGenerations1") == "test_assignment_with_multiple_generations1"
