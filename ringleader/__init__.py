"""Ringleader: a Kafka group coordinator that runs by itself.

All that a user of the client library writes is importable from here, but what is for tests: that is in
`ringleader.testing`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ringleader.clients.acls import Acl as Acl
    from ringleader.clients.admin import Admin as Admin
    from ringleader.clients.connection.metadata import PartitionMetadata as PartitionMetadata
    from ringleader.clients.connection.metadata import TopicMetadata as TopicMetadata
    from ringleader.clients.connection.security import ClientSecurity as ClientSecurity
    from ringleader.clients.connection.security import SaslOAuthBearer as SaslOAuthBearer
    from ringleader.clients.connection.security import SaslPlain as SaslPlain
    from ringleader.clients.connection.security import SaslScram as SaslScram
    from ringleader.clients.connection.security import security_from_properties as security_from_properties
    from ringleader.clients.consumer import GroupConsumer as GroupConsumer
    from ringleader.clients.consumer import PartitionConsumer as PartitionConsumer
    from ringleader.clients.consumer import SyncGroupConsumer as SyncGroupConsumer
    from ringleader.clients.consumer import SyncPartitionConsumer as SyncPartitionConsumer
    from ringleader.clients.descriptions import GroupDescription as GroupDescription
    from ringleader.clients.descriptions import GroupListing as GroupListing
    from ringleader.clients.descriptions import MemberDescription as MemberDescription
    from ringleader.clients.descriptions import PartitionLag as PartitionLag
    from ringleader.clients.descriptions import TopicConfig as TopicConfig
    from ringleader.clients.errors import AssignmentFailedError as AssignmentFailedError
    from ringleader.clients.errors import AuthenticationError as AuthenticationError
    from ringleader.clients.errors import BrokerError as BrokerError
    from ringleader.clients.errors import CallbackFailedError as CallbackFailedError
    from ringleader.clients.errors import ClientError as ClientError
    from ringleader.clients.errors import CommitFailedError as CommitFailedError
    from ringleader.clients.errors import ConnectionLostError as ConnectionLostError
    from ringleader.clients.errors import CoordinatorUnavailableError as CoordinatorUnavailableError
    from ringleader.clients.errors import FencedInstanceIdError as FencedInstanceIdError
    from ringleader.clients.errors import GroupAuthorizationError as GroupAuthorizationError
    from ringleader.clients.errors import GroupMaxSizeReachedError as GroupMaxSizeReachedError
    from ringleader.clients.errors import InconsistentGroupProtocolError as InconsistentGroupProtocolError
    from ringleader.clients.errors import InternalError as InternalError
    from ringleader.clients.errors import InvalidGroupIdError as InvalidGroupIdError
    from ringleader.clients.errors import InvalidRegularExpressionError as InvalidRegularExpressionError
    from ringleader.clients.errors import InvalidSessionTimeoutError as InvalidSessionTimeoutError
    from ringleader.clients.errors import MembershipError as MembershipError
    from ringleader.clients.errors import MembershipOverError as MembershipOverError
    from ringleader.clients.errors import MembershipUnsupportedError as MembershipUnsupportedError
    from ringleader.clients.errors import RebalanceInProgressError as RebalanceInProgressError
    from ringleader.clients.errors import RequestTimedOutError as RequestTimedOutError
    from ringleader.clients.errors import RetriableError as RetriableError
    from ringleader.clients.errors import TlsError as TlsError
    from ringleader.clients.errors import UnexpectedAnswerError as UnexpectedAnswerError
    from ringleader.clients.errors import UnreleasedInstanceIdError as UnreleasedInstanceIdError
    from ringleader.clients.errors import UnsupportedVersionError as UnsupportedVersionError
    from ringleader.clients.exporting import opentelemetry_instruments as opentelemetry_instruments
    from ringleader.clients.exporting import prometheus_lines as prometheus_lines
    from ringleader.clients.fetch.errors import ConsumerClosedError as ConsumerClosedError
    from ringleader.clients.fetch.errors import CorruptRecordError as CorruptRecordError
    from ringleader.clients.fetch.errors import DeserializerUnavailableError as DeserializerUnavailableError
    from ringleader.clients.fetch.errors import LogTruncatedError as LogTruncatedError
    from ringleader.clients.fetch.errors import NoOffsetError as NoOffsetError
    from ringleader.clients.fetch.errors import NotAssignedError as NotAssignedError
    from ringleader.clients.fetch.errors import OffsetGoneError as OffsetGoneError
    from ringleader.clients.fetch.errors import PartitionError as PartitionError
    from ringleader.clients.fetch.errors import RecordDeserializationError as RecordDeserializationError
    from ringleader.clients.fetch.model import Batch as Batch
    from ringleader.clients.fetch.model import ConsumerMetrics as ConsumerMetrics
    from ringleader.clients.fetch.model import ConsumerSettings as ConsumerSettings
    from ringleader.clients.fetch.model import FetchMetrics as FetchMetrics
    from ringleader.clients.fetch.model import Record as Record
    from ringleader.clients.group.membership import GroupMember as GroupMember
    from ringleader.clients.group.membership import SyncGroupMember as SyncGroupMember
    from ringleader.clients.group.subscription import consumer_member as consumer_member
    from ringleader.clients.group.subscription import partitions_of as partitions_of
    from ringleader.clients.group.subscription import sync_consumer_member as sync_consumer_member
    from ringleader.clients.metrics import MemberMetrics as MemberMetrics
    from ringleader.clients.metrics import ProcessMetrics as ProcessMetrics
    from ringleader.clients.model import Assigned as Assigned
    from ringleader.clients.model import GroupMetadata as GroupMetadata
    from ringleader.clients.model import Lost as Lost
    from ringleader.clients.model import MemberInfo as MemberInfo
    from ringleader.clients.model import MemberProtocol as MemberProtocol
    from ringleader.clients.model import Node as Node
    from ringleader.clients.model import OffsetAndMetadata as OffsetAndMetadata
    from ringleader.clients.model import Revoked as Revoked
    from ringleader.clients.model import SubscriptionPattern as SubscriptionPattern
    from ringleader.clients.model import TopicPartition as TopicPartition
    from ringleader.clients.options import ConsumerMemberOptions as ConsumerMemberOptions
    from ringleader.clients.options import ConsumerOptions as ConsumerOptions
    from ringleader.clients.options import MemberOptions as MemberOptions
    from ringleader.clients.options import PartitionConsumerOptions as PartitionConsumerOptions
    from ringleader.clients.options import ProducerOptions as ProducerOptions
    from ringleader.clients.process.dead_letters import dead_letters as dead_letters
    from ringleader.clients.process.policies import DeadLetter as DeadLetter
    from ringleader.clients.process.policies import FailedRecord as FailedRecord
    from ringleader.clients.process.policies import RecordTimedOutError as RecordTimedOutError
    from ringleader.clients.process.policies import Retry as Retry
    from ringleader.clients.process.policies import RetryTopics as RetryTopics
    from ringleader.clients.process.policies import Skip as Skip
    from ringleader.clients.process.policies import Stop as Stop
    from ringleader.clients.process.retry_topics import retry_topics as retry_topics
    from ringleader.clients.process.settings import ProcessOptions as ProcessOptions
    from ringleader.clients.process.settings import ProcessSettings as ProcessSettings
    from ringleader.clients.produce.errors import AbortableTransactionError as AbortableTransactionError
    from ringleader.clients.produce.errors import DeliveryTimeoutError as DeliveryTimeoutError
    from ringleader.clients.produce.errors import FatalProducerError as FatalProducerError
    from ringleader.clients.produce.errors import ProduceError as ProduceError
    from ringleader.clients.produce.errors import ProducerClosedError as ProducerClosedError
    from ringleader.clients.produce.errors import ProducerFencedError as ProducerFencedError
    from ringleader.clients.produce.errors import RecordTooLargeError as RecordTooLargeError
    from ringleader.clients.produce.errors import SendTimeoutError as SendTimeoutError
    from ringleader.clients.produce.errors import SerializationError as SerializationError
    from ringleader.clients.produce.errors import TransactionAbortedError as TransactionAbortedError
    from ringleader.clients.produce.errors import UnknownPartitionError as UnknownPartitionError
    from ringleader.clients.produce.model import ProducerMetrics as ProducerMetrics
    from ringleader.clients.produce.model import ProducerSettings as ProducerSettings
    from ringleader.clients.produce.model import RecordMetadata as RecordMetadata
    from ringleader.clients.producer import Producer as Producer
    from ringleader.clients.producer import SyncProducer as SyncProducer
    from ringleader.clients.with_context import SerializationContext as SerializationContext
    from ringleader.clients.with_context import WithContext as WithContext

_NAMES_OF = {
    "acls": "Acl",
    "admin": "Admin",
    "descriptions": "GroupDescription GroupListing MemberDescription PartitionLag TopicConfig",
    "connection.metadata": "PartitionMetadata TopicMetadata",
    "connection.security": "ClientSecurity SaslOAuthBearer SaslPlain SaslScram security_from_properties",
    "consumer": "GroupConsumer PartitionConsumer SyncGroupConsumer SyncPartitionConsumer",
    "producer": "Producer SyncProducer",
    "produce.errors": (
        "AbortableTransactionError DeliveryTimeoutError FatalProducerError ProduceError ProducerClosedError "
        "ProducerFencedError RecordTooLargeError SendTimeoutError SerializationError TransactionAbortedError "
        "UnknownPartitionError"
    ),
    "produce.model": "ProducerMetrics ProducerSettings RecordMetadata",
    "errors": (
        "AssignmentFailedError AuthenticationError BrokerError CallbackFailedError ClientError "
        "CommitFailedError "
        "ConnectionLostError CoordinatorUnavailableError FencedInstanceIdError "
        "GroupAuthorizationError GroupMaxSizeReachedError InconsistentGroupProtocolError "
        "InternalError InvalidGroupIdError InvalidRegularExpressionError InvalidSessionTimeoutError "
        "MembershipError MembershipOverError "
        "MembershipUnsupportedError RebalanceInProgressError RequestTimedOutError RetriableError "
        "TlsError UnexpectedAnswerError UnreleasedInstanceIdError UnsupportedVersionError"
    ),
    "fetch.errors": (
        "ConsumerClosedError CorruptRecordError DeserializerUnavailableError LogTruncatedError NoOffsetError "
        "NotAssignedError OffsetGoneError PartitionError RecordDeserializationError"
    ),
    "fetch.model": "Batch ConsumerMetrics ConsumerSettings FetchMetrics Record",
    "group.membership": "GroupMember SyncGroupMember",
    "group.subscription": "consumer_member partitions_of sync_consumer_member",
    "exporting": "opentelemetry_instruments prometheus_lines",
    "metrics": "MemberMetrics ProcessMetrics",
    "model": (
        "Assigned GroupMetadata Lost MemberInfo MemberProtocol Node OffsetAndMetadata Revoked "
        "SubscriptionPattern TopicPartition"
    ),
    "options": "ConsumerMemberOptions ConsumerOptions MemberOptions PartitionConsumerOptions ProducerOptions",
    "process.dead_letters": "dead_letters",
    "process.policies": "DeadLetter FailedRecord RecordTimedOutError Retry RetryTopics Skip Stop",
    "process.retry_topics": "retry_topics",
    "process.settings": "ProcessOptions ProcessSettings",
    "with_context": "SerializationContext WithContext",
}
_HOME_OF = {name: home for home, names in _NAMES_OF.items() for name in names.split()}

__all__ = sorted(_HOME_OF)

if not TYPE_CHECKING:  # a type checker would take it for a promise that every name is there

    def __getattr__(name: str) -> Any:
        """The public names load their rooms on first use: importing the package costs nothing."""
        if name not in _HOME_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"ringleader.clients.{_HOME_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
