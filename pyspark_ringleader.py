"""Found by Spark by its name: makes ``format("ringleader")`` work without a register call.

Spark imports every module called ``pyspark_*`` when a Python source is used first, and takes its
``DefaultSource``. Where Spark is absent there is none, and importing this does no harm.
"""

try:
    from ringleader.spark_bridge.source import RingleaderDataSource
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] not in ("pyspark", "pyarrow", "py4j"):
        raise
else:

    class DefaultSource(RingleaderDataSource):
        """The class that Spark looks for."""
