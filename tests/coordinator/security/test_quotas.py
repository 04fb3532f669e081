"""Which quota counts for whom, and how long somebody is throttled."""

from __future__ import annotations

import pytest

from ringleader.coordinator.security import quotas
from ringleader.coordinator.security.quotas import (
    ClientQuotas,
    Quota,
    Rate,
    TokenBucket,
    Windows,
    from_key,
    to_key,
)

RATE = "producer_byte_rate"

LEVELS: list[tuple[dict[str, str | None], tuple[str, str]]] = [
    ({"user": "u", "client-id": "c"}, ("u", "c")),
    ({"user": "u", "client-id": None}, ("u", "c")),
    ({"user": "u"}, ("u", "")),
    ({"user": None, "client-id": "c"}, ("u", "c")),
    ({"user": None, "client-id": None}, ("u", "c")),
    ({"user": None}, ("u", "")),
    ({"client-id": "c"}, ("", "c")),
    ({"client-id": None}, ("", "c")),
]
"""In Kafka's order, and who shares such a quota."""


@pytest.mark.parametrize("level", range(len(LEVELS)))
def test_the_closest_quota_counts(level: int) -> None:
    found = ClientQuotas()
    found.apply({to_key(entity): {RATE: 100.0 + at} for at, (entity, _) in enumerate(LEVELS) if at >= level})
    assert found.limit(Quota.PRODUCER_BYTE_RATE, "u", "c") == (*LEVELS[level][1], 100.0 + level)


def test_what_is_of_others_counts_for_nobody_else() -> None:
    found = ClientQuotas()
    found.apply(
        {to_key({"user": "v", "client-id": "c"}): {RATE: 1.0}, to_key({"client-id": "d"}): {RATE: 2.0}}
    )
    assert found.limit(Quota.PRODUCER_BYTE_RATE, "u", "c") is None
    assert found.limit(Quota.CONSUMER_BYTE_RATE, "v", "c") is None
    assert found.sensors("u", "c", 0) is None
    assert found.sensors("u", "c", 0) is None  # remembered


def test_a_user_is_no_client_id_and_no_address() -> None:
    found = ClientQuotas()
    found.apply({to_key({"user": "10.0.0.1"}): {RATE: 1.0}})
    assert found.limit(Quota.PRODUCER_BYTE_RATE, "u", "10.0.0.1") is None
    assert found.connections("10.0.0.1", 0) is None
    found.apply({to_key({"ip": None}): {"connection_creation_rate": 3.0}})
    found.apply({to_key({"ip": "10.0.0.1"}): {"connection_creation_rate": 5.0}})
    named, default = found.connections("10.0.0.1", 0), found.connections("10.0.0.2", 0)
    assert named is not None
    assert default is not None
    assert (named.bound, default.bound) == (5.0, 3.0)
    assert found.of_addresses


def test_an_address_is_the_same_in_all_its_forms() -> None:
    found = ClientQuotas()
    found.apply({to_key({"ip": "2001:DB8::0:1"}): {"connection_creation_rate": 5.0}})
    rate = found.connections("2001:db8:0:0:0:0:0:1", 0)
    assert rate is not None
    assert found.connections("2001:db8::1", 0) is not None
    assert found.connections("2001:db8::2", 0) is None


def test_changes_count_at_once_and_keep_what_was_used() -> None:
    found, key = ClientQuotas(), to_key({"user": "u"})
    notices: list[int] = []
    found.observe(lambda: notices.append(len(found)))
    found.apply({key: {RATE: 1_000.0}})
    sensors = found.sensors("u", "one", 0)
    assert sensors is not None
    assert sensors.produce is not None
    assert (sensors.fetch, sensors.request, sensors.mutation) == (None, None, None)
    sensors.produce.record(9_000, 0)
    assert sensors.produce.throttle_ms(0) == 0
    found.apply({key: {RATE: 100.0}})
    again = found.sensors("u", "another", 0)
    assert again is not None
    assert again.produce is sensors.produce
    assert again.produce.throttle_ms(0) == 80_000
    found.apply({key: None})
    assert found.sensors("u", "one", 0) is None
    assert not found.of_clients
    assert notices == [1, 1, 0]


def test_a_rate_is_kafkas() -> None:
    """Figures from Kafka's own tests of its quotas: ten windows of a second count as full at the start."""
    rate = Rate(500.0, Windows(11, 1_000), 0)
    for second in range(10):
        rate.record(400, second * 1_000)
        assert rate.throttle_ms(second * 1_000) == 0
    rate.record(2_300, 10_500)
    # 10.5 s hold 400 x 10 + 2,300 bytes = 600 per second: (600 - 500) / 500 x 10,500 ms.
    assert rate.throttle_ms(10_500) == 2_100


def test_what_is_long_ago_counts_no_more() -> None:
    rate = Rate(10.0, Windows(3, 1_000), 0)
    rate.record(1_000, 0)
    assert rate.throttle_ms(0) > 0
    assert rate.throttle_ms(2_999) > 0
    assert rate.throttle_ms(3_000) == 0
    rate.record(1, 3_000)
    assert rate.throttle_ms(3_000) == 0
    # A window counts as long as the last use in it.
    rate.record(1_000, 3_999)
    assert rate.throttle_ms(6_998) > 0
    assert rate.throttle_ms(6_999) == 0


def test_tokens_are_for_a_burst_and_then_for_the_rate() -> None:
    bucket = TokenBucket(2.0, Windows(11, 1_000), 0)
    bucket.record(22, 0)
    assert bucket.throttle_ms(0) == 0
    bucket.record(4, 0)
    assert bucket.throttle_ms(0) == 2_000
    assert bucket.throttle_ms(1_500) == 500
    assert bucket.throttle_ms(2_000) == 0
    bucket.record(23, 1_000_000)
    assert bucket.throttle_ms(1_000_000) == 500


def test_a_throttle_can_be_told() -> None:
    rate, bucket = Rate(1e-9, Windows(11, 1_000), 0), TokenBucket(1e-9, Windows(11, 1_000), 0)
    rate.record(1e9, 0)
    bucket.record(1e9, 0)
    assert rate.throttle_ms(0) == bucket.throttle_ms(0) == 2**31 - 1


def test_a_flood_of_client_ids_takes_no_more_than_so_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quotas, "MAX_SENSORS", 100)
    found = ClientQuotas()
    found.apply({to_key({"client-id": None}): {RATE: 10.0, "controller_mutation_rate": 1.0}})
    for number in range(1_000):
        sensors = found.sensors("u", f"c{number}", number)
        assert sensors is not None
        assert sensors.produce is not None
        sensors.produce.record(1, number)
        busy = found.sensors("u", "busy", number)
        assert busy is not None
        assert busy.produce is not None
        busy.produce.record(1, number)
    assert len(found._rates) <= 100
    assert len(found._buckets) <= 100
    kept = found.sensors("u", "busy", 1_000)
    assert kept is not None
    assert kept.produce is not None
    assert kept.produce.throttle_ms(1_000) > 0  # an active client is not forgotten
    found.sensors("u", "c" * 100_000, 2_000)
    assert all(len(key[2]) <= quotas.MAX_NAME_BYTES for key in found._rates)


def test_a_user_that_was_forgotten_has_one_rate_whatever_its_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quotas, "MAX_SENSORS", 10)
    found = ClientQuotas()
    found.apply({to_key({"user": None}): {RATE: 10.0}})
    found.sensors("u", "one", 0)
    for number in range(10):  # the oldest has to go
        found.sensors(f"u{number}", "", 1 + number)
    one, other = found.sensors("u", "one", 20), found.sensors("u", "other", 20)
    assert one is not None
    assert other is not None
    assert one.produce is not None
    assert one.produce is other.produce


def test_only_what_is_a_quota_is_read() -> None:
    assert from_key(to_key({"user": None, "client-id": "ä"})) == {"client-id": "ä", "user": None}
    for key in ("{}", "[]", "5", '{"group": "g"}', "nothing"):
        with pytest.raises((ValueError, TypeError)):
            from_key(key)
    with pytest.raises(ValueError, match="what"):
        ClientQuotas().apply({to_key({"user": "u"}): {"what": 1.0}})


@pytest.mark.parametrize("of", [Rate, TokenBucket])
def test_a_bound_of_almost_nothing_throttles_as_long_as_can_be_told(
    of: type[Rate] | type[TokenBucket],
) -> None:
    used = of(5e-324, Windows(), 0)
    used.record(1_000, 0)
    assert used.throttle_ms(0) == quotas.MOST_MS


def test_an_altered_quota_of_topic_changes_counts_for_a_user_that_is_known() -> None:
    found = ClientQuotas()
    entity = to_key({"user": "u"})
    found.apply({entity: {"controller_mutation_rate": 1_000.0}})
    first = found.sensors("u", "c", 0)
    assert first is not None
    assert first.mutation is not None
    first.mutation.record(500, 0)
    found.apply({entity: {"controller_mutation_rate": 1.0}})
    again = found.sensors("u", "c", 0)
    assert again is not None
    assert again.mutation is first.mutation, "what was used stays used"
    assert again.mutation.bound == 1.0
    again.mutation.record(10_000, 0)
    assert again.mutation.throttle_ms(0) > 60_000
