"""Options: the connector's names in any case, and a sentence for everything that cannot hold."""

from __future__ import annotations

import pytest

from ringleader.spark_bridge.options import OptionsError, batch_options, stream_options
from ringleader.spark_bridge.resume import ReplayPolicy

GOOD = {"kafka.bootstrap.servers": "a:9092,[::1]:9093", "subscribe": "b, a", "kafka.group.id": "g"}


def test_defaults_are_those_of_the_connector_and_the_java_client() -> None:
    options = stream_options(GOOD)
    assert options.bootstrap == "a:9092,[::1]:9093"
    assert options.bootstrap_servers == (("a", 9092), ("::1", 9093))
    assert options.subscribe == ("a", "b")
    assert options.starting_offsets == "latest"
    assert options.fail_on_data_loss
    assert not options.include_headers
    assert options.replay_policy is ReplayPolicy.CLIP
    assert (options.session_timeout_ms, options.rebalance_timeout_ms) == (45_000, 300_000)
    assert batch_options(GOOD).starting_offsets == "earliest"


def test_names_match_in_any_case_as_spark_passes_them() -> None:
    given = {
        "startingoffsets": '{"a":{"0":23,"1":-1},"b":{"0":-2}}',
        "maxoffsetspertrigger": "100",
        "failondataloss": "false",
        "includeHeaders": "TRUE",
        "minpartitions": "3",
        "replaypolicy": "exact",
        "kafka.SESSION.timeout.ms": "6000",
        "kafka.heartbeat.interval.ms": "1000",
        "kafka.max.poll.interval.ms": "9000",
        "kafka.client.id": "me",
        "kafka.isolation.level": "read_committed",
        "kafkaConsumer.pollTimeoutMs": "512",
    }
    options = stream_options(GOOD | given)
    assert options.starting_offsets == {("a", 0): 23, ("a", 1): -1, ("b", 0): -2}
    assert (options.max_offsets_per_trigger, options.min_partitions) == (100, 3)
    assert (options.fail_on_data_loss, options.include_headers) == (False, True)
    assert options.replay_policy is ReplayPolicy.EXACT
    assert (options.session_timeout_ms, options.heartbeat_interval_ms, options.rebalance_timeout_ms) == (
        6000,
        1000,
        9000,
    )
    assert (options.client_id, options.isolation_level, options.poll_timeout_ms) == (
        "me",
        "read_committed",
        512,
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"assign": '{"a":[0]}'}, "contradicts membership"),
        ({"subscribePattern": "a.*"}, "not supported yet"),
        ({"groupIdPrefix": "x"}, "kafka.group.id"),
        ({"kafka.auto.offset.reset": "earliest"}, "startingOffsets"),
        ({"kafka.enable.auto.commit": "true"}, "when Spark has logged the batch"),
        ({"kafka.key.deserializer": "x"}, "binary"),
        ({"kafka.partition.assignment.strategy": "x"}, "range and roundrobin"),
        ({"kafka.group.instance.id": "x"}, "not supported yet"),
        ({"kafka.security.protocol": "SSL"}, "PLAINTEXT"),
        ({"endingOffsets": "latest"}, "spark.read"),
        ({"path": "a"}, "subscribe"),
        ({"maxOfsetsPerTrigger": "1"}, "Did you mean 'maxOffsetsPerTrigger'"),
        ({"kafka.no.such.setting": "1"}, "not known"),
        ({"maxOffsetsPerTrigger": "0"}, "greater than 0"),
        ({"maxOffsetsPerTrigger": "many"}, "integer"),
        ({"failOnDataLoss": "perhaps"}, "boolean"),
        ({"startingOffsets": "middle"}, "earliest"),
        ({"startingOffsets": "committed"}, "spark.read"),
        ({"startingOffsets": '{"a":{"0":-3},"b":{"0":0}}'}, "JSON"),
        ({"startingOffsets": '{"a":{"0":true},"b":{"0":0}}'}, "JSON"),
        ({"startingOffsets": "[]"}, "JSON"),
        ({"startingOffsets": '{"a":{"0":1},"b":{"0":1},"c":{"0":1}}'}, "names c"),
        ({"startingOffsets": '{"a":{"0":1}}'}, "b is missing"),
        ({"subscribe": "a b"}, "name of a topic"),
        ({"subscribe": ""}, "name of a topic"),
        ({"subscribe": ".."}, "name of a topic"),
        ({"kafka.bootstrap.servers": "a"}, "host:port"),
        ({"kafka.bootstrap.servers": "a:70000"}, "host:port"),
        ({"kafka.bootstrap.servers": " , "}, "names no server"),
        ({"kafka.group.id": ""}, "kafka.group.id"),
        ({"kafka.session.timeout.ms": "3000"}, "must be below"),
    ],
)
def test_what_cannot_hold_is_refused_with_a_sentence(given: dict[str, str], said: str) -> None:
    with pytest.raises(OptionsError, match=said):
        stream_options(GOOD | given)


def test_every_reason_is_named_at_once() -> None:
    with pytest.raises(OptionsError) as caught:
        stream_options({"assign": "x", "nonsense": "1"})
    for said in ("'assign'", "'nonsense'", "'kafka.bootstrap.servers'", "'subscribe'", "'kafka.group.id'"):
        assert said in str(caught.value)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"startingOffsets": "latest"}, "nothing to read"),
        ({"startingOffsets": '{"a":{"0":-1},"b":{"0":0}}'}, "nothing to read"),
        ({"endingOffsets": "earliest"}, "endingOffsets"),
        ({"endingOffsets": '{"a":{"0":-2},"b":{"0":0}}'}, "endingOffsets"),
        ({"endingOffsets": '{"a":{"0":2}}'}, "b is missing"),
        ({"maxOffsetsPerTrigger": "5"}, "spark.readStream"),
        ({"replayPolicy": "clip"}, "spark.readStream"),
    ],
)
def test_a_batch_read_has_its_own_rules(given: dict[str, str], said: str) -> None:
    with pytest.raises(OptionsError, match=said):
        batch_options(GOOD | given)


def test_a_batch_read_needs_a_group_only_for_its_offsets() -> None:
    without = {name: value for name, value in GOOD.items() if name != "kafka.group.id"}
    assert batch_options(without | {"kafka.session.timeout.ms": "6000"}).group_id is None
    assert batch_options(GOOD | {"startingOffsets": "Committed"}).starting_offsets == "committed"
    with pytest.raises(OptionsError, match=r"needs kafka\.group\.id"):
        batch_options(without | {"startingOffsets": "committed"})
