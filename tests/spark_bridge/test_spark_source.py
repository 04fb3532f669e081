"""Format ``ringleader`` as Spark finds and refuses it."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]


def test_the_format_is_found_by_name_and_has_the_connectors_rows(spark: Any) -> None:
    from pyspark.errors import PySparkException

    reader = spark.readStream.format("RingLeader").option("kafka.bootstrap.servers", "127.0.0.1:1")
    reader = reader.option("subscribe", "t").option("Kafka.Group.Id", "g")
    assert reader.load().schema.simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,"
        "timestampType:int>"
    )
    assert reader.option("includeHeaders", "true").load().schema["headers"].dataType.simpleString() == (
        "array<struct<key:string,value:binary>>"
    )
    with pytest.raises(PySparkException, match="contradicts membership"):
        reader.option("assign", "{}").load()
