"""Users and their SCRAM credentials."""

from __future__ import annotations

from ringleader.protocol.fields import LAST, array, field
from ringleader.protocol.schema import Message, message, struct


@struct
class DescribeUserScramCredentialsRequestUserName:
    """One of `DescribeUserScramCredentialsRequest.users`."""

    name: str = field("string", default="")


@message(key=50, versions=(0, 0), flexible=0, kind="request")
class DescribeUserScramCredentialsRequest(Message):
    """Ask which SCRAM credentials users have; null or none asks for all users.

    DescribeUserScramCredentials, API 50, v0; KIP-554.
    """

    users: list[DescribeUserScramCredentialsRequestUserName] | None = array(
        DescribeUserScramCredentialsRequestUserName, nullable=(0, LAST), factory=list
    )


@struct
class DescribeUserScramCredentialsResponseCredentialInfo:
    """One of `DescribeUserScramCredentialsResponseDescribeUserScramCredentialsResult.credential_infos`."""

    mechanism: int = field("int8", default=0)
    iterations: int = field("int32", default=0)


@struct
class DescribeUserScramCredentialsResponseDescribeUserScramCredentialsResult:
    """One of `DescribeUserScramCredentialsResponse.results`."""

    user: str = field("string", default="")
    error_code: int = field("int16", default=0)
    error_message: str | None = field("string", nullable=(0, LAST), default="")
    credential_infos: list[DescribeUserScramCredentialsResponseCredentialInfo] = array(
        DescribeUserScramCredentialsResponseCredentialInfo, factory=list
    )


@message(key=50, versions=(0, 0), flexible=0, kind="response")
class DescribeUserScramCredentialsResponse(Message):
    """Mechanisms (1 SCRAM-SHA-256, 2 SCRAM-SHA-512) and iterations of users (API 50, v0; KIP-554)."""

    throttle_time_ms: int = field("int32", default=0)
    error_code: int = field("int16", default=0)
    error_message: str | None = field("string", nullable=(0, LAST), default="")
    results: list[DescribeUserScramCredentialsResponseDescribeUserScramCredentialsResult] = array(
        DescribeUserScramCredentialsResponseDescribeUserScramCredentialsResult, factory=list
    )


@struct
class AlterUserScramCredentialsRequestScramCredentialDeletion:
    """One of `AlterUserScramCredentialsRequest.deletions`."""

    name: str = field("string", default="")
    mechanism: int = field("int8", default=0)


@struct
class AlterUserScramCredentialsRequestScramCredentialUpsertion:
    """One of `AlterUserScramCredentialsRequest.upsertions`."""

    name: str = field("string", default="")
    mechanism: int = field("int8", default=0)
    iterations: int = field("int32", default=0)
    salt: bytes = field("bytes", default=b"")
    salted_password: bytes = field("bytes", default=b"")


@message(key=51, versions=(0, 0), flexible=0, kind="request")
class AlterUserScramCredentialsRequest(Message):
    """Make, change and remove SCRAM credentials (AlterUserScramCredentials, API 51, v0; KIP-554)."""

    deletions: list[AlterUserScramCredentialsRequestScramCredentialDeletion] = array(
        AlterUserScramCredentialsRequestScramCredentialDeletion, factory=list
    )
    upsertions: list[AlterUserScramCredentialsRequestScramCredentialUpsertion] = array(
        AlterUserScramCredentialsRequestScramCredentialUpsertion, factory=list
    )


@struct
class AlterUserScramCredentialsResponseAlterUserScramCredentialsResult:
    """One of `AlterUserScramCredentialsResponse.results`."""

    user: str = field("string", default="")
    error_code: int = field("int16", default=0)
    error_message: str | None = field("string", nullable=(0, LAST), default="")


@message(key=51, versions=(0, 0), flexible=0, kind="response")
class AlterUserScramCredentialsResponse(Message):
    """The result for each user (AlterUserScramCredentials, API 51, v0; KIP-554)."""

    throttle_time_ms: int = field("int32", default=0)
    results: list[AlterUserScramCredentialsResponseAlterUserScramCredentialsResult] = array(
        AlterUserScramCredentialsResponseAlterUserScramCredentialsResult, factory=list
    )
