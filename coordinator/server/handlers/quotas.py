"""Client quotas: DescribeClientQuotas (48) and AlterClientQuotas (49), v0-1 (KIP-546)."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator, Mapping
from ipaddress import ip_address

from ringleader.coordinator.security.acls import Operation, ResourceType
from ringleader.coordinator.security.directory import Security
from ringleader.coordinator.security.quotas import (
    CLIENT_ID,
    IP,
    MAX_ENTITIES,
    MAX_NAME_BYTES,
    OF_CLIENTS,
    TYPES,
    USER,
    Entity,
    Quota,
    Values,
    from_key,
    to_key,
)
from ringleader.coordinator.server.call import HELD_ENTRY_BYTES, Call
from ringleader.coordinator.server.handlers import checks
from ringleader.coordinator.server.services import Handler, Services, set_error
from ringleader.protocol import messages as kafka
from ringleader.protocol.errors import ErrorCode, KafkaError

EXACT, DEFAULT, SPECIFIED = 0, 1, 2
"""How a component of a filter matches."""
WHOLE: Mapping[str, tuple[float, str]] = {
    Quota.PRODUCER_BYTE_RATE: (2.0**63, "a LONG"),
    Quota.CONSUMER_BYTE_RATE: (2.0**63, "a LONG"),
    Quota.CONNECTION_CREATION_RATE: (2.0**31 - 1, "an INT"),
}
"""Of quotas that have no fraction: the largest, and what Kafka calls such numbers."""

_Described = kafka.DescribeClientQuotasResponseEntryData


def register(services: Services) -> dict[int, Handler]:
    """Handlers of this family; none where quotas are not kept."""
    if services.security is None:
        return {}
    quotas = _Quotas(services, services.security)
    return {48: quotas.describe, 49: quotas.alter}


class _Quotas:
    def __init__(self, services: Services, security: Security) -> None:
        self._services = services
        self._security = security
        self._altering = asyncio.Lock()
        """An entity has several quotas, which are changed as a whole."""

    # ---- DescribeClientQuotas ----

    def describe(
        self, call: Call, request: kafka.DescribeClientQuotasRequest
    ) -> kafka.DescribeClientQuotasResponse:
        """Those that all components match; with `strict` those of entities that have nothing else."""
        response = kafka.DescribeClientQuotasResponse()
        try:
            if not self._services.may(call, Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER):
                raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
            exact, anyhow = _filters(request)
        except KafkaError as error:
            set_error(response, error)
            response.entries = None
            return response
        response.entries = [
            _described(entity, values)
            for entity, values in self._security.quotas.entries()
            if all(kind in entity and entity[kind] == name for kind, name in exact.items())
            and anyhow <= entity.keys()
            and (not request.strict or len(entity) == len(exact) + len(anyhow))
        ]
        call.takes(HELD_ENTRY_BYTES * sum(1 + len(one.entity) + len(one.values) for one in response.entries))
        return response

    # ---- AlterClientQuotas ----

    def alter(
        self, call: Call, request: kafka.AlterClientQuotasRequest
    ) -> kafka.AlterClientQuotasResponse | None:
        """Answered when it is durable. An error of one entity does not affect the others."""
        if not self._services.may(call, Operation.ALTER_CONFIGS, ResourceType.CLUSTER):
            refused = KafkaError(*checks.CLUSTER_REFUSED)
            entities = {to_key(entity): entity for entity in map(_entity, request.entries)}
            return _altered((entity, refused) for entity in entities.values())
        self._services.spawn(call, self._alter(call, request))
        call.on_closed = None  # a change goes on when its caller is gone
        return None

    async def _alter(self, call: Call, request: kafka.AlterClientQuotasRequest) -> None:
        entities: dict[str, Entity] = {}
        errors: dict[str, KafkaError | None] = {}
        changed: dict[str, Values | None] = {}
        async with self._altering:
            for entry in request.entries:
                entity = _entity(entry)
                key = to_key(entity)
                twice = len({op.key for op in entry.ops}) < len(entry.ops) or key in entities
                entities[key] = entity
                try:
                    if twice:
                        # As in Kafka: what the entity's first entry asked for stays asked for.
                        raise _invalid(f"Ignoring duplicate entity {_entity_text(entity)}")
                    values = self._changed(entity, entry)
                    if values != self._security.quotas.values(entity):
                        changed[key] = values or None
                    errors[key] = None
                except KafkaError as error:
                    errors[key] = error
            if changed and not request.validate_only:
                errors |= await self._change(call, changed)
        call.answer(_altered((entities[key], errors[key]) for key in entities))

    async def _change(self, call: Call, changed: Mapping[str, Values | None]) -> dict[str, KafkaError | None]:
        quotas = self._security.quotas
        try:
            if len(quotas) + len(changed) > MAX_ENTITIES and any(changed.values()):
                text = f"There are quotas for {MAX_ENTITIES:,} users, client ids and addresses at most."
                raise KafkaError(ErrorCode.POLICY_VIOLATION, text)
            await self._security.store.change("quotas", changed)
        except KafkaError as error:
            return dict.fromkeys(changed, error)
        for key, values in changed.items():
            subject = ", ".join(f"{kind} {name or 'by default'}" for kind, name in from_key(key).items())
            has = ", ".join(f"{name}={value:g}" for name, value in (values or {}).items())
            self._services.changed(call, "quotas altered" if has else "quotas removed", subject, has)
        return {}

    def _changed(self, entity: Entity, entry: kafka.AlterClientQuotasRequestEntryData) -> Values:
        """All quotas that the entity shall have. Raises KafkaError."""
        allowed = _allowed(entity)
        values = dict(self._security.quotas.values(entity))
        for op in entry.ops:
            if op.remove:
                values.pop(op.key, None)
            else:
                _check(op.key, op.value, allowed)
                values[op.key] = op.value
        return values


def _filters(request: kafka.DescribeClientQuotasRequest) -> tuple[dict[str, str | None], set[str]]:
    """Type -> name, and types whatever the name. Raises KafkaError."""
    exact: dict[str, str | None] = {}
    anyhow: set[str] = set()
    for one in request.components:
        kind = one.entity_type
        if not kind:
            raise _invalid("Invalid empty entity type.")
        if kind in exact or kind in anyhow:
            raise _invalid(f"Entity type {kind} cannot appear more than once in the filter.")
        if kind not in TYPES:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
        if one.match_type == EXACT:
            if one.match is None:
                raise _invalid("Request specified MATCH_TYPE_EXACT, but set match string to null.")
            exact[kind] = one.match
        elif one.match_type in (DEFAULT, SPECIFIED):
            if one.match is not None:
                name = "DEFAULT" if one.match_type == DEFAULT else "SPECIFIED"
                raise _invalid(f"Request specified MATCH_TYPE_{name}, but also specified a match string.")
            if one.match_type == DEFAULT:
                exact[kind] = None
            else:
                anyhow.add(kind)
        else:
            raise _invalid(f"Unknown match type {one.match_type}")
    types = exact.keys() | anyhow
    if IP in types and len(types) > 1:
        raise _invalid(
            "Invalid entity filter component combination. IP filter component should not be used with user "
            "or clientId filter component."
        )
    return exact, anyhow


def _described(entity: Entity, values: Values) -> _Described:
    return _Described(
        [kafka.DescribeClientQuotasResponseEntityData(*one) for one in entity.items()],
        [kafka.DescribeClientQuotasResponseValueData(*one) for one in values.items()],
    )


def _entity(entry: kafka.AlterClientQuotasRequestEntryData) -> dict[str, str | None]:
    return {one.entity_type: one.entity_name for one in entry.entity}


def _allowed(entity: Entity) -> tuple[str, ...]:
    """The quotas that such an entity can have. Raises KafkaError."""
    if not entity:
        raise _invalid("Invalid empty client quota entity")
    for kind, name in entity.items():
        if kind not in TYPES:
            raise _invalid(f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise _invalid(f"Empty {kind} not supported")
        if name is not None and len(name.encode()) > MAX_NAME_BYTES:
            raise _invalid(f"A name has {MAX_NAME_BYTES:,} bytes at most.")
    if IP not in entity:
        return OF_CLIENTS
    if USER in entity or CLIENT_ID in entity:
        # The missing space is Kafka's.
        text = "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId"
        raise _invalid(text)
    address = entity[IP]
    if address is not None:
        try:
            ip_address(address)
        except ValueError:
            raise _invalid(f"{address} is not a valid IP or resolvable host.") from None
    return (Quota.CONNECTION_CREATION_RATE,)


def _check(quota: str, value: float, allowed: tuple[str, ...]) -> None:
    """Raises KafkaError."""
    if quota not in allowed:
        raise _invalid(f"Invalid configuration key {quota}")
    if value <= 0:
        raise _invalid(f"Quota {quota} must be greater than 0")
    if not math.isfinite(value):
        raise _invalid(f"Quota {quota} must be a number")
    if quota in WHOLE:
        most, kind = WHOLE[quota]
        if value > most:
            raise _invalid(f"Proposed value for {quota} is too large for {kind}.")
        if value % 1 > 1e-6:
            raise _invalid(f"{quota} cannot be a fractional value.")


def _altered(
    results: Iterator[tuple[Entity, KafkaError | None]],
) -> kafka.AlterClientQuotasResponse:
    entries = []
    for entity, error in results:
        named = [kafka.AlterClientQuotasResponseEntityData(*one) for one in entity.items()]
        entry = kafka.AlterClientQuotasResponseEntryData(error_message=None, entity=named)
        if error is not None:
            set_error(entry, error)
        entries.append(entry)
    return kafka.AlterClientQuotasResponse(entries=entries)


def _entity_text(entity: Entity) -> str:
    """As Kafka prints it."""
    names = ", ".join(f"{kind}={'null' if name is None else name}" for kind, name in entity.items())
    return f"ClientQuotaEntity(entries={{{names}}})"


def _invalid(text: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, text)
