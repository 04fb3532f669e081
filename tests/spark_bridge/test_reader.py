"""The reader's manners in Spark's processes, without a JVM."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import textwrap

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from pyspark.sql.types import StringType, StructType

from ringleader.spark_bridge.errors import SourceError
from ringleader.spark_bridge.options import OptionsError
from ringleader.spark_bridge.reader import NO_LIMIT, RingleaderStreamReader
from ringleader.spark_bridge.source import RingleaderDataSource
from tests.spark_bridge.fakes import World

GOOD = {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t", "kafka.group.id": "g"}


def reader_of(world: World) -> RingleaderStreamReader:
    reader = RingleaderStreamReader(GOOD)
    reader._driver = world.driver
    return reader


def test_the_order_of_spark_s_calls() -> None:
    world = World(10)
    world.assign(0)
    reader = reader_of(world)
    limit = reader.getDefaultReadLimit()
    assert limit == NO_LIMIT
    start = reader.initialOffset()
    assert start == reader.initialOffset()
    assert reader.partitions(start, start) == []
    end = reader.latestOffset(start, limit)
    report = reader.reportLatestOffset()
    assert report is not None
    assert report["ends"] == {"t": {"0": 10}}
    assert json.loads(json.dumps(report)) == report
    (task,) = reader.partitions(start, end)
    assert pickle.loads(pickle.dumps(task)).ranges == [("t", 0, 0, 10)]
    assert reader.latestOffset(end, limit) is end
    reader.commit(end)
    assert world.committed() == {0: 10}
    reader.stop()
    assert world.group.left == [("the query stopped", False)]
    reader.stop()


def test_the_limit_of_the_engine_counts() -> None:
    world = World(100)
    world.assign(0)
    reader = reader_of(world)
    with pytest.raises(SourceError, match="availableNow"):
        reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    end = reader.latestOffset(reader.initialOffset(), ReadMaxRows(7))
    assert end["r"] == {"t": {"0": [0, 7]}}
    assert RingleaderStreamReader(GOOD | {"maxOffsetsPerTrigger": "5"}).getDefaultReadLimit() == ReadMaxRows(
        5
    )


def test_building_and_pickling_opens_nothing() -> None:
    world = World(1)
    reader = reader_of(world)
    copy = pickle.loads(pickle.dumps(reader))
    assert copy._driver is None
    assert copy.initialOffset() == reader.initialOffset()
    assert copy.reportLatestOffset() is None
    copy.stop()
    assert world.group.left == []


def test_a_schema_of_the_user_is_refused() -> None:
    source = RingleaderDataSource(GOOD)
    own = source.schema()
    assert source.streamReader(own).initialOffset()["g"] == "g"
    with pytest.raises(OptionsError, match="from_json"):
        source.streamReader(StructType().add("value", StringType())).initialOffset()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"groupIdPrefix": "x"}, "here the group is the point"),
        ({"kafka.group.id": "g", "nonsense": "x"}, "'nonsense'"),
    ],
)
def test_wrong_options_are_refused_at_load(given: dict[str, str], expected: str) -> None:
    with pytest.raises(OptionsError, match=expected):
        RingleaderDataSource(given).schema()


def test_a_load_without_a_group_is_a_batch_read() -> None:
    options = {name: value for name, value in GOOD.items() if name != "kafka.group.id"}
    source = RingleaderDataSource(options | {"includeHeaders": "true"})
    assert source.schema().names[-1] == "headers"
    refused = pickle.loads(pickle.dumps(source.streamReader(source.schema())))
    for call in (refused.initialOffset, refused.getDefaultReadLimit, refused.prepareForTriggerAvailableNow):
        with pytest.raises(OptionsError, match=r"'kafka\.group\.id' is required"):
            call()
    refused.stop()


def test_sigterm_runs_stop_to_its_end_even_when_it_comes_twice() -> None:
    script = """
        import os, signal, time
        from ringleader.spark_bridge.reader import RingleaderStreamReader
        reader = RingleaderStreamReader(%r)

        class Driver:
            def stop(self):
                os.kill(os.getpid(), signal.SIGTERM)
                time.sleep(0.05)
                print("left", flush=True)

        reader._driver = Driver()
        reader._leave_on_sigterm()
        try:
            print("ready", flush=True)
            time.sleep(60)
        finally:
            reader.stop()
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script % GOOD)], stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        os.kill(process.pid, signal.SIGTERM)
        assert process.stdout.read() == "left\n"
        assert process.wait(30) == 128 + signal.SIGTERM


FOUND = ("pyspark_ringleader", "pyspark_ringleader_history")


@pytest.mark.parametrize("module", FOUND)
def test_the_module_that_spark_finds_does_no_harm_without_spark(module: str) -> None:
    script = f"""
        import sys
        sys.modules["pyspark"] = None
        import {module} as found
        assert not hasattr(found, "DefaultSource")
        assert "pydantic" not in sys.modules and "ringleader.protocol" not in sys.modules
        print("fine")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stdout == "fine\n", done.stderr


@pytest.mark.parametrize("module", FOUND)
def test_the_module_that_spark_finds_is_light(module: str) -> None:
    script = f"""
        import sys
        import {module} as found
        assert "pyspark_" + found.DefaultSource.name().replace("-", "_") == "{module}"
        heavy = ("pydantic", "pyarrow", "ringleader.clients", "ringleader.protocol.messages")
        print([name for name in heavy if name in sys.modules])
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stdout == "[]\n", done.stderr


def test_a_query_s_own_worker_loads_no_models_and_nothing_that_fetches() -> None:
    source = RingleaderDataSource(GOOD | {"maxOffsetsPerTrigger": "5"})
    source.schema()
    script = """
        import pickle, sys
        source = pickle.loads(sys.stdin.buffer.read())
        reader = source.streamReader(source.schema())
        print(reader.getDefaultReadLimit().max_rows, reader._live() is not None)
        heavy = ("pydantic", "crc32c", "urllib.request", "ringleader.clients.fetch")
        print([name for name in heavy if name in sys.modules])
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        input=pickle.dumps(source),
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert done.stdout.decode() == "5 True\n[]\n", done.stderr.decode()
