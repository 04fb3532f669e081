"""The number of tasks that the Spark that made this process runs at once, as far as it can be known.

Spark gives a Python source neither its settings nor its master, so they are read from the command line of its
JVM, which is an ancestor of this process.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

_LOCAL = re.compile(r"local(?:\[\s*(\*|\d+)\s*(?:,\s*\d+\s*)?\])?")
_SUBMIT = "org.apache.spark.deploy.SparkSubmit"
_GROUPS = Path("/sys/fs/cgroup")


def spark_cores() -> int | None:
    """The cores that Spark was given in local mode: 2 for ``local[2]``. None on a cluster, and elsewhere."""
    command = _command_of_spark()
    return cores_of(master_of(command)) if command else None


def master_of(command: Sequence[str]) -> str | None:
    """The master in the command line of a driver's JVM, in its properties, or Spark's default; None for a
    driver that a cluster's manager has started."""
    after = dict(pairwise(command))
    if (master := after.get("--master")) is not None:
        return master
    masters = [
        word for arg in command for word in (arg.removeprefix("-D"),) if word.startswith("spark.master=")
    ]
    if masters:
        return masters[-1].partition("=")[2]
    conf = Path(os.environ.get("SPARK_CONF_DIR", ""), "spark-defaults.conf")
    try:
        lines = Path(after.get("--properties-file", conf)).read_text().splitlines()
    except OSError:
        lines = []
    for line in lines:
        if found := re.match(r"\s*spark\.master[\s=:]+(\S+)", line):
            return found[1]
    return "local[*]" if _SUBMIT in command else None


def cores_of(master: str | None) -> int | None:
    """How many tasks run at once under a local master; None under any other."""
    found = _LOCAL.fullmatch(master or "")
    if found is None:
        return None
    return usable_cores() if found[1] == "*" else int(found[1] or 1)


def usable_cores() -> int:
    """The cores that this process may use, as a JVM counts them: by affinity and by its control group."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        groups = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        groups = []
    return max(1, min([cores, *quotas(groups, _GROUPS)]))


def quotas(groups: Iterable[str], root: Path) -> list[int]:
    """The cores that control groups allow, rounded up. ``groups``: the lines of ``/proc/self/cgroup``."""
    found = []
    for line in groups:
        _, kinds, path = line.split(":", 2)
        if kinds and "cpu" not in kinds.split(","):
            continue
        inner = Path(path.lstrip("/"))
        for group in (inner, *inner.parents):
            found += _version_1(root / "cpu" / group) if kinds else _version_2(root / group)
    return found


def _version_2(group: Path) -> list[int]:
    words = _words(group / "cpu.max")
    return [math.ceil(int(words[0]) / int(words[1]))] if len(words) == 2 and words[0] != "max" else []


def _version_1(group: Path) -> list[int]:
    quota, period = _words(group / "cpu.cfs_quota_us"), _words(group / "cpu.cfs_period_us")
    return [math.ceil(int(quota[0]) / int(period[0]))] if quota and period and int(quota[0]) > 0 else []


def _words(file: Path) -> list[str]:
    try:
        return file.read_text().split()
    except OSError:
        return []


def _command_of_spark() -> list[str]:
    process = os.getppid()
    while process > 1:
        try:
            command = Path(f"/proc/{process}/cmdline").read_bytes().decode(errors="replace").split("\0")
            parent = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1]
        except OSError:
            break
        if any(word.startswith("org.apache.spark.") for word in command):
            return command
        process = int(parent)
    return []
