"""The errors of producers: about one record, about one transaction, or about the producer as a whole."""

from __future__ import annotations

from typing import Literal

from ringleader.clients.errors import ClientError, RetriableError


class ProduceError(ClientError):
    """A record could not be written; the message says which and why. Other records are written all the
    same."""


class RecordTooLargeError(ProduceError):
    """The record is larger than `max_request_size`, `buffer_memory` or the topic's `max.message.bytes`."""


class UnknownPartitionError(ProduceError):
    """The topic does not have the partition that was named, or that a partitioner chose."""


class SerializationError(ProduceError):
    """A serializer raised, which is the `__cause__`; `origin` says for what. Nothing was sent."""

    def __init__(self, message: str, origin: Literal["key", "value"]) -> None:
        super().__init__(message)
        self.origin = origin


class SendTimeoutError(ProduceError, RetriableError):
    """The record was not accepted within `max_block_ms`: the topic is not known, or there is no room for the
    record. Nothing was sent."""


class DeliveryTimeoutError(ProduceError):
    """No broker confirmed the record within `delivery_timeout_ms`. Whether it was stored is not known."""


class TransactionAbortedError(ProduceError):
    """The record's transaction was aborted: readers of committed records never see it."""


class ProducerClosedError(ProduceError):
    """The producer was not started, has been stopped, or runs in another process."""


class AbortableTransactionError(ClientError):
    """The transaction cannot be committed: abort it, and do its work again."""


class FatalProducerError(ClientError):
    """No transaction of this producer can succeed any more: make a new one. Its start ends what is open."""


class ProducerFencedError(FatalProducerError):
    """Another producer has begun with the same transactional id, or the transaction took longer than
    `transaction_timeout_ms`."""
