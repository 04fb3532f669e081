"""A Spark job that reads what is there as a member of a group, writes a table, commits, and ends. Started
again it goes on where it stopped, whatever reads in the same group meanwhile.

    pip install 'ringleader[spark]'
    spark-submit spark_job.py 127.0.0.1:9092 out
"""

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as f


def run(spark, bootstrap, directory):
    """The number of records that this run read."""
    orders = (
        spark.readStream.format("ringleader")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("kafka.group.id", "nightly")
        .option("subscribe", "orders")
        .option("startingOffsets", "earliest")
        .load()
    )
    query = (
        orders.select(f.col("key").cast("string"), f.col("value").cast("string"), "partition", "offset")
        .writeStream.format("parquet")
        .option("checkpointLocation", f"{directory}/checkpoint")
        .trigger(availableNow=True)
        .start(f"{directory}/orders")
    )
    query.awaitTermination()
    return sum(progress.numInputRows for progress in query.recentProgress)


if __name__ == "__main__":
    spark = SparkSession.builder.appName("nightly").getOrCreate()
    print("read", run(spark, *sys.argv[1:]), "records")
    spark.stop()
