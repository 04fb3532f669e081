"""Options: the connector's names in any case, and a sentence for everything that cannot hold."""

from __future__ import annotations

import pytest

from ringleader.spark_bridge.options import OptionsError, Subscription, batch_options, stream_options
from ringleader.spark_bridge.options.sink import sink_options
from ringleader.spark_bridge.tasks import TaskSettings
from ringleader.spark_bridge.values import ReplayPolicy

GOOD = {"kafka.bootstrap.servers": "a:9092,[::1]:9093", "subscribe": "b, a", "kafka.group.id": "g"}


def test_defaults_are_those_of_the_connector_and_the_java_client() -> None:
    options = stream_options(GOOD)
    assert options.bootstrap == "a:9092,[::1]:9093"
    assert options.bootstrap_servers == (("a", 9092), ("::1", 9093))
    assert options.subscribe == ("a", "b")
    assert stream_options(GOOD | {"subscribe": "b,, a, "}).subscribe == ("a", "b")
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
    ("given", "chooses"),
    [
        ({}, True),
        ({"kafka.group.protocol": "AUTO", "members": "1", "kafka.max.poll.interval.ms": "9000"}, True),
        ({"kafka.group.protocol": "classic"}, False),
        ({"kafka.group.protocol": "Consumer", "kafka.group.remote.assignor": "range"}, False),
        ({"kafka.session.timeout.ms": "45000"}, False),
        ({"kafka.heartbeat.interval.ms": "3000"}, False),
        ({"kafka.partition.assignment.strategy": "range"}, False),
        ({"weight": "2"}, False),
        ({"kafka.group.instance.id": "i"}, False),
    ],
)
def test_the_protocol_is_up_to_a_query_that_asks_for_nothing_of_the_classic_one(
    given: dict[str, str], chooses: bool
) -> None:
    assert stream_options(GOOD | given).chooses_protocol is chooses


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"assign": '{"a":[0]}'}, "Only one of 'subscribe', 'assign'"),
        ({"assign": '{"a":[0]}', "subscribe": None, "members": "2"}, "members is for queries that join"),
        ({"subscribePattern": "a.*"}, "Only one of 'subscribe', 'subscribePattern'"),
        ({"subscribe": "a", "subscribePattern": "("}, "not a regular expression"),
        ({"groupIdPrefix": "x"}, "kafka.group.id"),
        ({"kafka.auto.offset.reset": "earliest"}, "startingOffsets"),
        ({"kafka.enable.auto.commit": "true"}, "when Spark has logged the batch"),
        ({"kafka.key.deserializer": "x"}, "binary"),
        (
            {"kafka.partition.assignment.strategy": "range,x"},
            "holds 'x', which is none of .*cooperative-sticky",
        ),
        ({"kafka.group.protocol": "share"}, "'auto', 'classic' or 'consumer'"),
        (
            {"kafka.group.protocol": "consumer", "kafka.session.timeout.ms": "9000", "weight": "2"},
            "weight, kafka.session.timeout.ms is for the classic protocol",
        ),
        ({"kafka.group.remote.assignor": "range"}, "needs kafka.group.protocol=consumer"),
        ({"kafka.group.instance.id": ""}, "at least 1"),
        ({"kafka.security.protocol": "TLS"}, "SASL_SSL"),
        ({"kafka.security.protocol": "SASL_SSL"}, "sasl.mechanism is not set"),
        ({"kafka.sasl.password": "x"}, "sasl.password is set, but security.protocol is not"),
        ({"members": "0"}, "neither auto nor a number"),
        ({"members": "some"}, "neither auto nor a number"),
        ({"members": "2", "weight": "2"}, "contradict each other"),
        ({"weight": "0"}, "greater than 0"),
        ({"weight": "2", "kafka.partition.assignment.strategy": "range"}, "needs the assignor weighted"),
        ({"minOffsetsPerTrigger": "5", "maxOffsetsPerTrigger": "4"}, "must not exceed"),
        ({"maxTriggerDelay": "soon"}, "30s"),
        ({"startingTimestamp": "-1"}, "greater than or equal to 0"),
        ({"startingOffsetsByTimestamp": '{"a":{"0":5}}'}, "b is missing"),
        ({"startingOffsetsByTimestamp": '{"a":{"0":-1},"b":{"0":1}}'}, "milliseconds"),
        ({"startingOffsetsByTimestampStrategy": "earliest"}, "error"),
        ({"endingTimestamp": "5"}, "a stream has no end: 'endingTimestamp'"),
        ({"endingOffsetsByTimestamp": "{}"}, "a stream has no end"),
        ({"endingOffsets": "latest"}, "spark.read"),
        ({"path": "a"}, "subscribe"),
        ({"maxOfsetsPerTrigger": "1"}, "Did you mean 'maxOffsetsPerTrigger'"),
        ({"kafka.fetch.max.byte": "1"}, "Did you mean 'kafka.fetch.max.bytes'"),
        ({"kafka.check.crc": "1"}, "is not known to format ringleader"),
        ({"kafka.fetch.max.bytes": "0"}, "greater than 0"),
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
        ({"subscribe": ""}, "names no topic"),
        ({"subscribe": " , "}, "names no topic"),
        ({"columns": "offset,values"}, "'values', which is none of key, value"),
        ({"columns": ","}, "names no column"),
        ({"columns": "offset", "includeHeaders": "true"}, "needs headers among columns"),
        ({"subscribe": ".."}, "name of a topic"),
        ({"kafka.bootstrap.servers": "a"}, "host:port"),
        ({"kafka.bootstrap.servers": "a:70000"}, "host:port"),
        ({"kafka.bootstrap.servers": " , "}, "names no server"),
        ({"kafka.group.id": ""}, "kafka.group.id"),
        ({"kafka.session.timeout.ms": "3000"}, "must be below"),
    ],
)
def test_what_cannot_hold_is_refused_with_a_sentence(given: dict[str, str | None], expected: str) -> None:
    with pytest.raises(OptionsError, match=expected):
        stream_options({name: value for name, value in (GOOD | given).items() if value is not None})


def test_every_reason_is_named_at_once() -> None:
    with pytest.raises(OptionsError) as caught:
        stream_options({"assign": "x", "nonsense": "1"})
    for reason in ("'assign'", "'nonsense'", "'kafka.bootstrap.servers'", "'kafka.group.id'"):
        assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"startingOffsets": "latest"}, "nothing to read"),
        ({"startingOffsets": '{"a":{"0":-1},"b":{"0":0}}'}, "nothing to read"),
        ({"endingOffsets": "earliest"}, "endingOffsets"),
        ({"endingOffsets": '{"a":{"0":-2},"b":{"0":0}}'}, "endingOffsets"),
        ({"endingOffsets": '{"a":{"0":2}}'}, "b is missing"),
        ({"endingOffsetsByTimestamp": '{"a":{"0":2}}'}, "b is missing"),
        ({"assign": '{"a":[0]}'}, "Only one of 'subscribe', 'assign'"),
        ({"subscribe": "a", "assign": "{}"}, "not JSON like"),
        ({"assign": '{"a":[-1]}'}, "not JSON like"),
    ],
)
def test_a_batch_read_has_its_own_rules(given: dict[str, str], expected: str) -> None:
    with pytest.raises(OptionsError, match=expected):
        batch_options(GOOD | given)


def test_a_batch_read_needs_a_group_only_for_its_offsets() -> None:
    without = {name: value for name, value in GOOD.items() if name != "kafka.group.id"}
    assert batch_options(without | {"kafka.session.timeout.ms": "6000"}).group_id is None
    assert batch_options(GOOD | {"startingOffsets": "Committed"}).starting_offsets == "committed"
    with pytest.raises(OptionsError, match=r"needs kafka\.group\.id"):
        batch_options(without | {"startingOffsets": "committed"})


def test_one_thing_says_what_to_read() -> None:
    bare = {name: value for name, value in GOOD.items() if name != "subscribe"}
    with pytest.raises(
        OptionsError, match="One of the options 'subscribe' and 'subscribePattern' and 'assign' is required"
    ):
        stream_options(bare)
    options = stream_options(bare | {"subscribePattern": "orders-.*", "startingOffsets": '{"a":{"0":1}}'})
    assert options.subscription == Subscription((), "orders-.*")
    assert str(options.subscription) == "topics like orders-.*"
    assert stream_options(GOOD).subscription == Subscription(("a", "b"), None)
    assigned = batch_options(bare | {"assign": '{"b":[1,0],"a":[2]}'})
    assert assigned.assign == (("a", 2), ("b", 0), ("b", 1))


def test_a_batch_read_takes_the_options_of_a_stream(caplog: pytest.LogCaptureFixture) -> None:
    given = {
        "maxOffsetsPerTrigger": "5",
        "replayPolicy": "clip",
        "kafka.group.instance.id": "i",
        "members": "2",
    }
    assert batch_options(GOOD | given).group_id == "g"
    assert "a batch read has no use for maxOffsetsPerTrigger, members, replayPolicy" in caplog.text


def test_how_many_shares_a_query_wants() -> None:
    assert stream_options(GOOD | {"parallelism": "3"}).member_count == 3
    assert stream_options(GOOD | {"parallelism": "3", "members": "AUTO"}).member_count == 3
    assert stream_options(GOOD | {"parallelism": "3", "members": "1"}).member_count == 1
    weighted = stream_options(GOOD | {"parallelism": "3", "weight": "2.5"})
    assert (weighted.member_count, weighted.weight, weighted.strategy) == (1, 2.5, ("weighted",))
    assert stream_options(GOOD).strategy == ("cooperative-sticky",)


def test_kafka_s_settings_that_do_no_harm_are_passed_over_with_one_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    brought = {"kafka.check.crcs": "true", "kafka.max.poll.records": "500", "kafka.of.a.plugin": "x"}
    for _ in range(2):
        stream_options(GOOD | brought)
        batch_options(GOOD | brought)
        sink_options({"kafka.bootstrap.servers": "a:1", "kafka.retries": "5", "kafka.of.a.plugin": "x"})
    assert [record.getMessage() for record in caplog.records] == [
        "without effect in format ringleader: kafka.check.crcs, kafka.max.poll.records, kafka.of.a.plugin",
        "without effect in format ringleader: kafka.of.a.plugin, kafka.retries",
    ]


def test_the_sizes_of_fetches_reach_the_tasks() -> None:
    brought = {"kafka.fetch.max.bytes": "52428800", "kafka.max.partition.fetch.bytes": "1048576"}
    found = batch_options(GOOD | brought | {"kafka.fetch.max.wait.ms": "100"}).task
    assert (found.fetch_max_bytes, found.partition_max_bytes, found.fetch_max_wait_ms) == (
        52_428_800,
        1_048_576,
        100,
    )
    default = stream_options(GOOD).task
    assert default == TaskSettings(default.endpoint)


def test_acks_that_nobody_waits_for_are_waited_for() -> None:
    assert sink_options({"kafka.bootstrap.servers": "a:1", "kafka.acks": "0"}).acks == "1"


def test_assignors_by_kafkas_class_names_too() -> None:
    given = "org.apache.kafka.clients.consumer.RangeAssignor, cooperative-sticky"
    options = stream_options(GOOD | {"kafka.partition.assignment.strategy": given})
    assert options.strategy == ("range", "cooperative-sticky")


@pytest.mark.parametrize(
    ("text", "wanted_ms"),
    [("500", 500), ("500ms", 500), ("30 s", 30_000), ("15m", 900_000), ("1H", 3_600_000)],
)
def test_times_with_a_unit(text: str, wanted_ms: int) -> None:
    assert stream_options(GOOD | {"maxTriggerDelay": text}).max_trigger_delay_ms == wanted_ms


def test_timestamps_per_partition_and_for_all() -> None:
    given = {"startingOffsetsByTimestamp": '{"a":{"0":5,"1":6},"b":{"0":7}}', "startingTimestamp": "9"}
    options = stream_options(GOOD | given | {"startingOffsetsByTimestampStrategy": "LATEST"})
    assert options.starting_offsets_by_timestamp == {("a", 0): 5, ("a", 1): 6, ("b", 0): 7}
    assert (options.starting_timestamp, options.starting_strategy) == (9, "latest")


def test_secrets_are_in_no_message_and_no_repr() -> None:
    given = {
        "kafka.security.protocol": "sasl_plaintext",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.username": "ann",
        "kafka.sasl.password": "hush-hush",
    }
    options = stream_options(GOOD | given)
    assert dict(options.security) == {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "ann",
        "sasl.password": "hush-hush",
    }
    assert "hush-hush" not in repr(options)
    assert "hush-hush" not in str(options)
    for wrong in (
        {"kafka.group.id": "", "members": "none"},
        {"kafka.sasl.mechanism": "NONE"},
        {"kafka.sasl.jaas.config": "hush-hush"},
    ):
        with pytest.raises(OptionsError) as caught:
            stream_options(GOOD | given | wrong)
        assert "hush-hush" not in str(caught.value)
    assert stream_options(GOOD).security == ()
