"""Everything the client library raises, with sentences that say what to do about it.

`ClientError` is the base. `RetriableError`: the same call may work in a moment. `MembershipError`: the
membership is over and no retry cures it.
"""

from __future__ import annotations

from ringleader.protocol.errors import ErrorCode, KafkaError, error_name


class ClientError(Exception):
    """Base of all errors of the client library. `code` is the broker's answer, None when there was none."""

    def __init__(self, message: str, code: int | None = None) -> None:
        super().__init__(message)
        self.code = code


class RetriableError(ClientError):
    """The cluster could not do it now; the same call may work in a moment."""


class ConnectionLostError(RetriableError):
    """A broker could not be reached, or the connection ended before the answer came."""


class RequestTimedOutError(RetriableError):
    """No answer within the request's timeout. Whether the broker did the work is not known."""


class CoordinatorUnavailableError(RetriableError):
    """The group's coordinator is not known, is loading, or has moved."""


class UnsupportedVersionError(ClientError):
    """The broker does not know the API, or no version that can say what was asked."""


class BrokerError(ClientError):
    """A broker refused a request; `code` says why."""


class CommitFailedError(ClientError):
    """The group did not take the commit: this member is not (any more) part of that generation. Others may
    process these records again."""


class RebalanceInProgressError(ClientError):
    """The group is rebalancing and this member has given up its assignment; commit after the next assignment,
    what it still covers."""


class MembershipError(ClientError):
    """The membership ended with an error that no retry cures."""


class MembershipOverError(MembershipError):
    """The member has left, or was never started."""


class InconsistentGroupProtocolError(MembershipError):
    """The group's other members offer another protocol type, or no protocol in common."""


class FencedInstanceIdError(MembershipError):
    """Another member took this group instance id."""


class UnreleasedInstanceIdError(MembershipError):
    """Another member holds this group instance id, and has not left (KIP-848)."""


class GroupAuthorizationError(MembershipError):
    """No right to join or read the group."""


class GroupMaxSizeReachedError(MembershipError):
    """The group takes no more members."""


class InvalidSessionTimeoutError(MembershipError):
    """The session timeout is outside the coordinator's bounds."""


class InvalidRegularExpressionError(MembershipError):
    """The coordinator does not take the `SubscriptionPattern` of this member; its own words say why."""


class InvalidGroupIdError(MembershipError):
    """The coordinator does not take this group id."""


class MembershipUnsupportedError(MembershipError, UnsupportedVersionError):
    """The coordinator does not support what this member asks for."""


class AuthenticationError(MembershipError):
    """The broker does not accept who this client says it is, or this client not who the broker is. The
    sentence has the broker's own message, and says what to change."""


class TlsError(AuthenticationError):
    """No TLS connection: a certificate is not accepted, or one side speaks TLS and the other does not."""


class AssignmentFailedError(MembershipError):
    """This member leads the group and its `assign` callback failed; the cause is attached."""


class CallbackFailedError(ClientError):
    """A callback of the application raised; `callback` names it, what it raised is the `__cause__`. Raised
    once, by the next call that asks for records or waits for the assignment."""

    def __init__(self, message: str, callback: str) -> None:
        super().__init__(message)
        self.callback = callback


class InternalError(MembershipError):
    """An error in this library's own code ended the membership; the cause is attached. Please report it."""


class UnexpectedAnswerError(MembershipError):
    """The coordinator answered something that has no meaning here."""


_FATAL: dict[int, tuple[type[MembershipError], str]] = {
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL: (
        InconsistentGroupProtocolError,
        "its members have another protocol type, or no protocol in common with this one",
    ),
    ErrorCode.FENCED_INSTANCE_ID: (
        FencedInstanceIdError,
        "another member has joined with the same group instance id",
    ),
    ErrorCode.GROUP_AUTHORIZATION_FAILED: (GroupAuthorizationError, "no right to read this group"),
    ErrorCode.GROUP_MAX_SIZE_REACHED: (
        GroupMaxSizeReachedError,
        "the group has as many members as its coordinator allows (group.max.size)",
    ),
    ErrorCode.INVALID_SESSION_TIMEOUT: (
        InvalidSessionTimeoutError,
        "the session timeout is outside the coordinator's bounds "
        "(group.min.session.timeout.ms to group.max.session.timeout.ms)",
    ),
    ErrorCode.INVALID_GROUP_ID: (InvalidGroupIdError, "the coordinator does not take this group id"),
    ErrorCode.UNSUPPORTED_VERSION: (
        MembershipUnsupportedError,
        "the coordinator does not support what this member asks for (a group instance id, for example)",
    ),
}


def fatal_error(request: str, group_id: str, code: int) -> MembershipError:
    """The exception for an answer that ends the membership. `request` names what was answered so."""
    kind, why = _FATAL.get(code, (UnexpectedAnswerError, "an answer that has no meaning here"))
    return kind(f"group {group_id!r}: {why} ({error_name(code)} to {request})", code)


def is_retriable(code: int) -> bool:
    """Whether Kafka says that the same request may work later."""
    return KafkaError(code).retriable
