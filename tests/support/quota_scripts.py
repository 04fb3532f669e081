"""Requests about quotas, one after the other, as they are played on a broker and on a node."""

from __future__ import annotations

from typing import Any

from ringleader.protocol import messages as kafka

Named = dict[str, str | None]


def altering(
    *entries: tuple[Named, dict[str, float | None]], validate_only: bool = False
) -> kafka.AlterClientQuotasRequest:
    """Set quotas; None removes one."""
    return kafka.AlterClientQuotasRequest(
        entries=[
            kafka.AlterClientQuotasRequestEntryData(
                [kafka.AlterClientQuotasRequestEntityData(*one) for one in entity.items()],
                [
                    kafka.AlterClientQuotasRequestOpData(key, value or 0.0, remove=value is None)
                    for key, value in values.items()
                ],
            )
            for entity, values in entries
        ],
        validate_only=validate_only,
    )


def describing(*components: tuple[str, int, str | None], strict: bool = False) -> Any:
    """Ask for quotas: type, how it matches, name."""
    filters = [kafka.DescribeClientQuotasRequestComponentData(*one) for one in components]
    return kafka.DescribeClientQuotasRequest(filters, strict)


ALICE: Named = {"user": "alice"}
BOTH: Named = {"user": "alice", "client-id": "app"}

_twice = altering((ALICE, {"request_percentage": 50.0}))
_twice.entries[0].ops *= 2
_repeated = altering(({"user": "dora"}, {"request_percentage": 5.0}))
_repeated.entries[0].entity *= 2

SCRIPT: tuple[Any, ...] = (
    describing(),
    altering(
        (ALICE, {"producer_byte_rate": 1e6, "consumer_byte_rate": 2e6, "request_percentage": 12.5}),
        (BOTH, {"controller_mutation_rate": 0.5}),
        ({"user": None}, {"producer_byte_rate": 1e9}),
        ({"client-id": "app"}, {"consumer_byte_rate": 3e6}),
        ({"client-id": None, "user": None}, {"consumer_byte_rate": 4e6}),
        ({"ip": "10.0.0.1"}, {"connection_creation_rate": 10.0}),
        ({"ip": None}, {"connection_creation_rate": 100.0}),
    ),
    describing(),
    describing(strict=True),
    describing(("user", 0, "alice")),
    describing(("user", 0, "alice"), strict=True),
    describing(("user", 1, None)),
    describing(("user", 2, None)),
    describing(("user", 2, None), strict=True),
    describing(("user", 2, None), ("client-id", 2, None), strict=True),
    describing(("user", 0, "alice"), ("client-id", 2, None)),
    describing(("client-id", 2, None)),
    describing(("ip", 2, None)),
    describing(("ip", 0, "10.0.0.1")),
    describing(("user", 0, "nobody")),
    describing(("user", 0, "alice"), ("user", 1, None)),
    describing(("user", 0, "alice"), ("ip", 1, None)),
    describing(("", 0, "alice")),
    describing(("group", 0, "alice")),
    describing(("user", 0, None)),
    describing(("user", 1, "alice")),
    describing(("user", 2, "alice")),
    describing(("user", 3, None)),
    altering((ALICE, {"producer_byte_rate": None, "request_percentage": 20.0}), validate_only=True),
    describing(("user", 0, "alice")),
    altering((ALICE, {"producer_byte_rate": None, "request_percentage": 20.0, "consumer_byte_rate": None})),
    describing(("user", 0, "alice")),
    altering((BOTH, {"controller_mutation_rate": None}), ({"user": "none"}, {"producer_byte_rate": None})),
    describing(("user", 0, "alice")),
    altering((ALICE, {"producer_byte_rate": 0.0})),
    altering((ALICE, {"producer_byte_rate": -1.0})),
    altering((ALICE, {"producer_byte_rate": 1.5})),
    altering((ALICE, {"producer_byte_rate": 1e30})),
    altering((ALICE, {"producer_byte_rate": 1e300})),
    altering((ALICE, {"request_percentage": 0.001})),
    altering((ALICE, {"connection_creation_rate": 5.0})),
    altering((ALICE, {"what": 5.0})),
    altering((ALICE, {"what": None})),
    altering((ALICE, {"producer_byte_rate": 77.0, "what": 5.0})),
    altering(({"ip": "10.0.0.2"}, {"producer_byte_rate": 5.0})),
    altering(({"ip": "10.0.0.2"}, {"connection_creation_rate": 1.5})),
    altering(({"ip": "10.0.0.2"}, {"connection_creation_rate": 3e9})),
    altering(({"ip": "not an address"}, {"connection_creation_rate": 5.0})),
    altering(({"ip": "::1"}, {"connection_creation_rate": 5.0})),
    altering(({"ip": "10.0.0.2", "user": "alice"}, {"connection_creation_rate": 5.0})),
    altering(({"user": ""}, {"producer_byte_rate": 5.0})),
    altering(({"client-id": ""}, {"producer_byte_rate": 5.0})),
    altering(({"ip": ""}, {"connection_creation_rate": 5.0})),
    altering(({"group": "g"}, {"producer_byte_rate": 5.0})),
    altering(({}, {"producer_byte_rate": 5.0})),
    altering((ALICE, {})),
    altering(),
    _twice,
    _repeated,
    altering(
        ({"user": "bob"}, {"producer_byte_rate": 1.0}),
        ({"user": "bob"}, {"producer_byte_rate": 2.0}),
        ({"user": "carl"}, {"producer_byte_rate": -2.0}),
        (BOTH, {"producer_byte_rate": 3.0}),
    ),
    describing(),
)
