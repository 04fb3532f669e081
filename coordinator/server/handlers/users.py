"""Users: DescribeUserScramCredentials (50) and AlterUserScramCredentials (51), v0 (KIP-554)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping

from ringleader.coordinator.security.acls import Operation, ResourceType
from ringleader.coordinator.security.among_nodes import NODE
from ringleader.coordinator.security.directory import Security
from ringleader.coordinator.security.scram import (
    MAX_ITERATIONS,
    MECHANISMS,
    MIN_ITERATIONS,
    Credential,
    Mechanism,
)
from ringleader.coordinator.server.call import HELD_ENTRY_BYTES, Call
from ringleader.coordinator.server.handlers import checks
from ringleader.coordinator.server.services import Handler, Services
from ringleader.protocol import messages as kafka
from ringleader.protocol.errors import ErrorCode, KafkaError, shortened

_BY_NUMBER: Mapping[int, Mechanism] = {one.number: one for one in MECHANISMS.values()}

MAX_SALT_BYTES = 1_024
MAX_USER_BYTES = 1_024

_Described = kafka.DescribeUserScramCredentialsResponseDescribeUserScramCredentialsResult
_Altered = kafka.AlterUserScramCredentialsResponseAlterUserScramCredentialsResult
_Alteration = (
    kafka.AlterUserScramCredentialsRequestScramCredentialDeletion
    | kafka.AlterUserScramCredentialsRequestScramCredentialUpsertion
)


def register(services: Services) -> dict[int, Handler]:
    """Handlers of this family; none where users are not kept."""
    if services.security is None:
        return {}
    users = _Users(services, services.security)
    return {50: users.describe, 51: users.alter}


class _Users:
    def __init__(self, services: Services, security: Security) -> None:
        self._services = services
        self._security = security
        self._altering = asyncio.Lock()
        """A user has several credentials, which are changed as a whole."""

    def describe(
        self, call: Call, request: kafka.DescribeUserScramCredentialsRequest
    ) -> kafka.DescribeUserScramCredentialsResponse:
        """Mechanisms and iterations; nothing that a password could be guessed from."""
        if not self._services.may(call, Operation.DESCRIBE, ResourceType.CLUSTER):
            code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            # Kafka names no user, but counts.
            refused = [_Described("", code, error_message=None) for _ in request.users or ()]
            return kafka.DescribeUserScramCredentialsResponse(
                error_code=code, error_message=None, results=refused
            )
        known = self._security.users.known()
        requested = Counter(one.name for one in request.users or ())
        results = [
            _Described(
                user,
                ErrorCode.DUPLICATE_RESOURCE,
                shortened(
                    f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}"
                ),
            )
            if requested[user] > 1
            else self._described(user)
            for user in requested or sorted(known)
        ]
        call.takes(HELD_ENTRY_BYTES * sum(1 + len(one.credential_infos) for one in results))
        return kafka.DescribeUserScramCredentialsResponse(error_message=None, results=results)

    def _described(self, user: str) -> _Described:
        known = self._security.users.known().get(user)
        if known is None:
            text = f"Attempt to describe a user credential that does not exist: {user}"
            return _Described(user, ErrorCode.RESOURCE_NOT_FOUND, shortened(text))
        infos = [
            kafka.DescribeUserScramCredentialsResponseCredentialInfo(one.mechanism.number, one.iterations)
            for one in sorted(known.values(), key=lambda one: one.mechanism.number)
        ]
        return _Described(user, error_message=None, credential_infos=infos)

    def alter(
        self, call: Call, request: kafka.AlterUserScramCredentialsRequest
    ) -> kafka.AlterUserScramCredentialsResponse | None:
        """Answered when it is durable. An error of one user does not affect the others."""
        try:
            checks.check_cluster(self._services, call, Operation.ALTER)
        except KafkaError as error:
            names = {one.name for one in request.deletions} | {one.name for one in request.upsertions}
            results = [_altered(name, error) for name in sorted(names)]
            return kafka.AlterUserScramCredentialsResponse(results=results)
        self._services.see_through(call, self._alter(call, request))
        return None

    async def _alter(self, call: Call, request: kafka.AlterUserScramCredentialsRequest) -> None:
        async with self._altering:
            results = await self._altered(request)
        known = self._security.users.known()
        for one in results:
            if not one.error_code:
                has = ", ".join(sorted(known.get(one.user, ())))
                self._services.changed(call, "user altered" if has else "user removed", one.user, has)
        call.answer(kafka.AlterUserScramCredentialsResponse(results=results))

    async def _altered(self, request: kafka.AlterUserScramCredentialsRequest) -> list[_Altered]:
        errors: dict[str, KafkaError | None] = {}
        changed: dict[str, dict[str, Credential]] = {}
        alterations: tuple[_Alteration, ...] = (*request.deletions, *request.upsertions)
        times = Counter(one.name for one in alterations)
        for one in alterations:
            if one.name in errors:
                continue
            try:
                if times[one.name] > 1:
                    text = "A user credential cannot be altered twice in the same request"
                    raise KafkaError(ErrorCode.DUPLICATE_RESOURCE, text)
                changed[one.name] = self._changed(one)
                errors[one.name] = None
            except KafkaError as error:
                errors[one.name] = error
        if changed:
            try:
                await self._security.users.change(changed)
            except KafkaError as error:
                errors.update(dict.fromkeys(changed, error))
        done = sorted(errors, key=lambda name: errors[name] is not None)
        return [_altered(name, errors[name]) for name in done]

    def _changed(self, alteration: _Alteration) -> dict[str, Credential]:
        """All credentials that the user shall have. Raises KafkaError."""
        mechanism = _BY_NUMBER.get(alteration.mechanism)
        if not alteration.name:
            raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
        if mechanism is None:
            raise KafkaError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
        credentials = dict(self._security.users.known().get(alteration.name, {}))
        if isinstance(alteration, kafka.AlterUserScramCredentialsRequestScramCredentialDeletion):
            if credentials.pop(mechanism.name, None) is None:
                text = "Attempt to delete a user credential that does not exist"
                raise KafkaError(ErrorCode.RESOURCE_NOT_FOUND, text)
            return credentials
        if alteration.iterations < MIN_ITERATIONS:
            raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
        if alteration.iterations > MAX_ITERATIONS:
            raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
        if alteration.name == NODE.name:
            text = f"{NODE.name} is what nodes call themselves: give the user another name"
            raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, text)
        salt, salted_password = bytes(alteration.salt), bytes(alteration.salted_password)
        if len(salt) > MAX_SALT_BYTES or len(alteration.name.encode()) > MAX_USER_BYTES:
            text = f"a salt and a user name have {MAX_USER_BYTES:,} bytes at most, each"
            raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, text)
        made = Credential.salted(mechanism, alteration.iterations, salt, salted_password)
        return {**credentials, mechanism.name: made}


def _altered(user: str, error: KafkaError | None) -> _Altered:
    if error is None:
        return _Altered(user, error_message=None)
    return _Altered(user, error.code, error.detail)
