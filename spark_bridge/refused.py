"""The stand-in for a stream that cannot be. It loads where PySpark has no streams of this kind, too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from ringleader.spark_bridge.errors import OptionsError

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow as _AvailableNow
else:
    try:
        from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow as _AvailableNow
    except ImportError:
        # PySpark 4.0 and 4.1.
        _AvailableNow = object


class RefusedStreamReader(DataSourceStreamReader, _AvailableNow):
    """Stands for a stream that cannot be: its first call raises OptionsError with the reasons."""

    def __init__(self, reasons: str) -> None:
        self._reasons = reasons

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Raises OptionsError."""
        self._refuse()

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        """Raises OptionsError."""
        self._refuse()

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Raises OptionsError."""
        self._refuse()

    def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, Any]:  # noqa: N802
        """Raises OptionsError."""
        self._refuse()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Raises OptionsError."""
        self._refuse()

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Raises OptionsError."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise OptionsError(self._reasons)
