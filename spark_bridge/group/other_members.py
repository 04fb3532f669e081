"""Other members of the group, where they matter: a group that is to be this query's alone, a second source of
the same Spark application, and a query that keeps state."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ringleader.spark_bridge.errors import SourceError
from ringleader.spark_bridge.group.membership import Group, GroupUnavailableError

if TYPE_CHECKING:
    from ringleader.spark_bridge.options import StreamOptions
    from ringleader.spark_bridge.settings import StreamSettings

logger = logging.getLogger("ringleader.spark")

# A query that was just stopped may still be there when the next one starts: how long it is waited for, longer
# where this query would have to fail.
SECOND_SOURCE_PATIENCE_S = 0.5
SAME_FRAME_PATIENCE_S = 5.0


def in_spark_worker() -> bool:
    """Whether this process was made by Spark's JVM for a source."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return bool(getattr(spec, "name", "").startswith("pyspark."))


class OtherMembers:
    """Looks around in the group, seldom: once for each generation at most, only when there is a reason."""

    def __init__(self, options: StreamOptions, group: Group) -> None:
        self._options = options
        self._group = group
        self._source_lock = SourceLock(options)
        self._looked_at: int | None = None
        self._committed: Any = None
        self._keeps_state = False
        self._warned = False

    def start(self) -> None:
        """The query is about to join. Raises SourceError when its DataFrame is in use in the same group."""
        if in_spark_worker():
            self._source_lock.start(os.getppid())

    def close(self) -> None:
        """The query ends."""
        self._source_lock.close()

    def batch_done(self, end: Any) -> None:
        """Spark says so after each batch. Twice the same end: a batch without records of this source, as
        watermarks cause them (and second sources, too)."""
        self._keeps_state = self._keeps_state or (self._committed is not None and end == self._committed)
        self._committed = end

    def look(self, generation: int) -> bool:
        """Whether a batch may be planned in this generation.

        Raises SourceError when the group has others and is not to have any.
        """
        alone = not self._options.shared_group
        if generation == self._looked_at or not (alone or (self._keeps_state and not self._warned)):
            return True
        if not self._group.stable():
            return not alone
        try:
            others = self._group.others()
        except GroupUnavailableError as error:
            logger.debug("the group's members cannot be had now: %s", error)
            return not alone
        self._looked_at = generation
        if others and alone:
            raise SourceError(
                f"group {self._options.group_id} has other members ({_some(others)}), and sharedGroup is "
                "false: this query must be alone. Stop them, or give the query a group of its own."
            )
        if others:
            self._warned = True
            logger.warning(
                "this query runs batches without records, as queries with state do, and shares the group %s "
                "with %s: state stays behind when partitions move, so aggregations, deduplication and joins "
                "give results per member. Give such a query a group of its own (sharedGroup=false insists on "
                "it).",
                self._options.group_id,
                _some(others),
            )
        return True


class SourceLock:
    """Notices a second source in the same Spark application and group: a self-join, or a second query.

    The first one holds a lock on a file named after application and group; a lock goes with its process. The
    file says which load() it comes from.
    """

    def __init__(self, options: StreamOptions | StreamSettings) -> None:
        self._group_id = options.group_id
        self._load = str(getattr(options, "load_id", ""))
        self._assigned = bool(options.assign)
        self._name = hashlib.sha256(f"{options.bootstrap}\0{options.group_id}".encode()).hexdigest()[:16]
        self._path: Path | None = None
        self._file: int | None = None

    def start(self, application: int) -> None:
        """Look for another one, and warn. ``application``: the process of the JVM.

        Raises SourceError when the other one reads the same DataFrame.
        """
        user = os.getuid() if hasattr(os, "getuid") else 0
        self._path = Path(tempfile.gettempdir(), f"ringleader-spark-{user}-{application}-{self._name}")
        began_s = time.monotonic()
        while not self._locked():
            same = self._load != "" and self._holder() == self._load
            waited_s = time.monotonic() - began_s
            if same and waited_s >= SAME_FRAME_PATIENCE_S:
                raise SourceError(
                    "this DataFrame is being read by another source of this Spark application, in the group "
                    f"{self._group_id}: by a join of it with itself, or by a second query. Each would get "
                    "only its share of the partitions. Load it once for each use, each with a "
                    "kafka.group.id of its own."
                )
            if self._assigned and waited_s >= SAME_FRAME_PATIENCE_S:
                raise SourceError(
                    f"another source of this Spark application commits for the group {self._group_id}, and "
                    "with 'assign' neither heeds the other: what one has committed the other would pass over "
                    "after a restart. Give each a kafka.group.id of its own."
                )
            if not same and not self._assigned and waited_s >= SECOND_SOURCE_PATIENCE_S:
                logger.warning(
                    "another source of this Spark application is a member of the group %s: a join of two "
                    "streams, or a second query. Each reads only its share of the partitions, so a join "
                    "misses matches. Give each its own kafka.group.id if both should see everything.",
                    self._group_id,
                )
                return
            time.sleep(0.02)

    def close(self) -> None:
        """Give the lock up."""
        if self._file is not None and self._path is not None:
            self._path.unlink(missing_ok=True)
            os.close(self._file)
        self._file = None

    def _holder(self) -> str:
        """Which load() the other one comes from."""
        assert self._path is not None
        try:
            return self._path.read_text()
        except OSError:
            return ""

    def _locked(self) -> bool:
        try:
            import fcntl
        except ImportError:  # not on this system: nothing to be noticed
            return True
        assert self._path is not None
        try:
            file = os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError:
            return True
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            with contextlib.suppress(OSError):
                os.close(file)
            return False
        os.ftruncate(file, 0)
        os.write(file, self._load.encode())
        self._file = file
        return True


def _some(names: list[str], most: int = 3) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
