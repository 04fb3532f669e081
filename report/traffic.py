"""The traffic of a topic's records: rate, hot keys, and how evenly hash(key) mod n would spread them. All of
it in Spark.

Frames in, small frames out; nothing here collects more than partitions, time slots or the hottest keys.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ringleader.clients.produce.partitioner import murmur2

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

NO_KEY = "no key"

_POSITIVE = 0x7FFF_FFFF


def slim(rows: DataFrame) -> DataFrame:
    """Of the rows of format `ringleader`, what the report needs: the value is only its size."""
    from pyspark.sql import functions as f

    size = f.coalesce(f.octet_length("value"), f.lit(0)) + f.coalesce(f.octet_length("key"), f.lit(0))
    return rows.select("topic", "partition", "key", "timestamp", size.cast("long").alias("bytes"))


def weighted(rows: DataFrame, scales: Mapping[tuple[str, int], float]) -> DataFrame:
    """Rows of `slim` with a column weight: what its partition says in `scales`, 1 where that says nothing."""
    from pyspark.sql import functions as f

    if not scales:
        return rows.withColumn("weight", f.lit(1.0))
    known = rows.sparkSession.createDataFrame(
        [(*place, scale) for place, scale in scales.items()], "topic string, partition int, scale double"
    )
    joined = rows.join(f.broadcast(known), ["topic", "partition"], "left")
    return joined.withColumn("weight", f.coalesce("scale", f.lit(1.0))).drop("scale")


def by_time(rows: DataFrame, slot_s: int) -> DataFrame:
    """Records and bytes of each partition in slots of `slot_s` seconds: topic, partition, slot_ms (its begin,
    epoch), records, bytes."""
    from pyspark.sql import functions as f

    slot = f.floor(f.unix_millis("timestamp") / (slot_s * 1000)) * (slot_s * 1000)
    return (
        rows.groupBy("topic", "partition", slot.cast("long").alias("slot_ms"))
        .agg(f.count("*").alias("records"), f.sum("bytes").alias("bytes"))
        .orderBy("topic", "partition", "slot_ms")
    )


def by_key(rows: DataFrame) -> DataFrame:
    """Each key: topic, key (null: records without), partitions, records, bytes, weight (of its records)."""
    from pyspark.sql import functions as f

    return rows.groupBy("topic", "key").agg(
        f.count("*").alias("records"),
        f.sum("bytes").alias("bytes"),
        f.sum("weight").alias("weight"),
        f.sort_array(f.collect_set("partition")).alias("partitions"),
    )


def hottest(keys: DataFrame, most: int) -> DataFrame:
    """The `most` keys of each topic with the most weight, and their share of the topic's."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    of_topic = Window.partitionBy("topic")
    ranked = of_topic.orderBy(f.desc("weight"), f.asc_nulls_first("key"))
    return (
        keys.withColumn("share", f.col("weight") / f.sum("weight").over(of_topic))
        .withColumn("rank", f.row_number().over(ranked))
        .where(f.col("rank") <= most)
        .orderBy("topic", "rank")
    )


def spread(keys: DataFrame, counts: Mapping[str, Sequence[int]]) -> DataFrame:
    """How the records would spread over n partitions by Kafka's rule murmur2(key) mod n.

    `counts`: topic -> the numbers n to try. Gives topic, n, weight (of all records), hottest (weight of the
    fullest; records without key are spread evenly), share (of the fullest, of all).
    """
    from pyspark.sql import functions as f

    session = keys.sparkSession
    tries = session.createDataFrame(
        [(topic, n) for topic, ns in counts.items() for n in ns], "topic string, n int"
    )
    # With Arrow it would need pandas, which nothing else here does.
    hash_of = f.udf(_hash, "int", useArrow=False)
    hashed = keys.where(f.col("key").isNotNull()).select("topic", "weight", hash_of("key").alias("hash"))
    slots = (
        hashed.join(f.broadcast(tries), "topic")
        .groupBy("topic", "n", (f.col("hash") % f.col("n")).alias("slot"))
        .agg(f.sum("weight").alias("weight"))
        .groupBy("topic", "n")
        .agg(f.max("weight").alias("fullest"))
    )
    totals = keys.groupBy("topic").agg(
        f.sum("weight").alias("weight"),
        f.sum(f.when(f.col("key").isNull(), f.col("weight")).otherwise(0.0)).alias("keyless"),
    )
    hot = f.coalesce(f.col("fullest"), f.lit(0.0)) + f.col("keyless") / f.col("n")
    return (
        tries.join(totals, "topic")
        .join(slots, ["topic", "n"], "left")
        .select("topic", "n", "weight", hot.alias("hottest"), (hot / f.col("weight")).alias("share"))
        .orderBy("topic", "n")
    )


def _hash(key: bytes | bytearray) -> int:
    """In executors: the hash by which Kafka's producers choose the partition of a key."""
    return murmur2(bytes(key)) & _POSITIVE
