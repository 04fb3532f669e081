"""From a checkpoint of Spark's own Kafka connector to `startingOffsets`."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from ringleader.spark_bridge.moving import MovingError, main, sources, starting_offsets

HEAD = 'v1\n{"batchWatermarkMs":0,"batchTimestampMs":1700000000000,"conf":{}}\n'


def checkpoint(base: Path, *batches: str, finished: int) -> Path:
    """As Spark leaves it, checksum files included. `batches`: the lines of the sources."""
    for name in ("offsets", "commits", "sources/0"):
        (base / name).mkdir(parents=True)
    for number, lines in enumerate(batches):
        (base / "offsets" / str(number)).write_text(HEAD + lines)
        (base / "offsets" / f".{number}.crc").write_bytes(b"crc\x00")
        if number < finished:
            (base / "commits" / str(number)).write_text('v1\n{"nextBatchWatermarkMs":0}')
    return base


def test_the_offsets_after_the_last_finished_batch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    batches = [f'{{"t":{{"0":{10 * number},"1":7}}}}' for number in range(12)]
    done = checkpoint(tmp_path / "done", *batches, finished=12)
    assert starting_offsets(done) == (batches[11], "")
    assert starting_offsets(done / "offsets" / "9") == (batches[9], "")
    assert main([str(done)]) == 0
    assert capsys.readouterr() == (batches[11] + "\n", "")
    cut_off = checkpoint(tmp_path / "cut-off", *batches, finished=11)
    assert main([str(cut_off)]) == 0
    assert capsys.readouterr() == (
        batches[10] + "\n",
        "batch 11 was begun and not finished: its records will be read again.\n",
    )


def test_one_of_several_sources(tmp_path: Path) -> None:
    lines = '{"logOffset":3}\n{"t":{"0":1}}\n-'
    assert starting_offsets(checkpoint(tmp_path / "one", lines, finished=1)) == ('{"t":{"0":1}}', "")
    two = checkpoint(tmp_path / "two", lines + '\n{"u":{"0":2}}', finished=1)
    with pytest.raises(MovingError, match=r"several sources .* --source 1"):
        starting_offsets(two)
    assert starting_offsets(two, "3") == ('{"u":{"0":2}}', "")
    for wrong, why in (
        ("0", "no offsets of Kafka"),
        ("2", "no offsets of Kafka"),
        ("4", "4 sources: --source is one of 0, 1, 2, 3"),
        ("-1", "4 sources"),
    ):
        with pytest.raises(MovingError, match=why):
            starting_offsets(two, wrong)


def test_the_second_version_of_sparks_file_names_each_source(tmp_path: Path) -> None:
    file = tmp_path / "7"
    head = HEAD.replace("v1", "v2")
    file.write_text(head + '1:{"logOffset":3}\n0:{"t":{"0":1}}\n2:-')
    assert starting_offsets(file) == ('{"t":{"0":1}}', "")
    file.write_text(head + 'clicks:{"t":{"0":1}}\nviews:{"u":{"0":2}}')
    with pytest.raises(MovingError, match=r"several sources .* --source clicks"):
        starting_offsets(file)
    assert starting_offsets(file, "views") == ('{"u":{"0":2}}', "")
    with pytest.raises(MovingError, match="2 sources: --source is one of clicks, views"):
        starting_offsets(file, "0")


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_spark_writes_its_second_version_so(spark: Any, tmp_path: Path) -> None:
    setting = "spark.sql.streaming.offsetLog.formatVersion"
    spark.conf.set(setting, "2")
    try:
        rates = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", "1").load()
        query = rates.writeStream.format("noop").option("checkpointLocation", str(tmp_path)).start()
        try:
            deadline_s = time.monotonic() + 60
            while not (tmp_path / "commits" / "0").exists():
                assert time.monotonic() < deadline_s
                query.awaitTermination(0.1)
        finally:
            query.stop()
    finally:
        spark.conf.unset(setting)
    found = sources(tmp_path / "offsets" / "0")
    assert found.keys() == {"0"}
    assert json.loads(found["0"]).keys() == {"offset", "timestamp"}


def test_what_is_no_checkpoint_of_the_connector_is_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    (tmp_path / "empty").write_text("")
    (tmp_path / "v9").write_text(HEAD.replace("v1", "v9") + "{}")
    cases = {
        checkpoint(tmp_path / "new", "{}", finished=0): "no finished batch",
        checkpoint(tmp_path / "other", '{"v":1,"g":"g","r":{}}', finished=1): "no source of",
        tmp_path: "checkpointLocation of a streaming query",
        tmp_path / "nowhere": "No such file",
        tmp_path / "bytes": "not text",
        tmp_path / "empty": "no file of offsets",
        tmp_path / "v9": "first line is 'v9'",
    }
    for place, why in cases.items():
        assert main([str(place)]) == 2
        printed, complaint = capsys.readouterr()
        assert printed == ""
        assert why in complaint
        assert complaint.count("\n") == 1
