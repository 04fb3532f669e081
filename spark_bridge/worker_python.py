"""``ringleader-spark-python``: the Python of Spark's workers, which imports the installed PySpark.

Spark puts ``pyspark.zip`` before everything else on its workers' path. Python keeps no byte code for what it
imports from a zip, so each worker that Spark starts compiles PySpark again, where the installed package has
that done. This command is the Python beside it, without those zips on the path. Say it to Spark with
``PYSPARK_PYTHON=ringleader-spark-python``.
"""

from __future__ import annotations

import os
import re
import sys
from importlib.machinery import PathFinder
from pathlib import Path
from zipimport import ZipImportError, zipimporter

_ZIP = re.compile(r"(pyspark|py4j)\b[^/]*\.zip")


def python_path(entries: list[str], installed: list[str]) -> tuple[list[str], list[str]]:
    """``entries`` of PYTHONPATH without Spark's zips, and why a zip had to stay, in sentences.

    A zip goes only where the same version of its package is found in ``installed`` folders or ``entries``.
    """
    zips = {entry: found[1] for entry in entries if (found := _ZIP.fullmatch(os.path.basename(entry)))}
    folders = [entry for entry in [*entries, *installed] if not entry.endswith(".zip")]
    kept, why = [], []
    for entry in entries:
        package = zips.get(entry)
        if package is not None:
            shipped, there = _shipped(entry, package), _installed(folders, package)
            if shipped is not None and shipped == there:
                continue
            if os.path.exists(entry):
                what = "none is" if there is None else "another version is"
                why.append(f"Spark's workers import {package} from {entry}, which is slow: {what} installed")
        kept.append(entry)
    return kept, why


def _shipped(entry: str, package: str) -> bytes | None:
    """The module of a zip that says its version; None when the zip has none."""
    try:
        return zipimporter(entry).get_data(os.path.join(entry, package, "version.py"))
    except (ZipImportError, OSError):
        return None


def _installed(folders: list[str], package: str) -> bytes | None:
    spec = PathFinder.find_spec(package, folders)
    if spec is None or spec.origin is None:
        return None
    version = Path(spec.origin).with_name("version.py")
    return version.read_bytes() if version.is_file() else None


def main() -> None:
    """Become that Python, with the arguments as they are."""
    entries = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    kept, why = python_path(entries, [entry for entry in sys.path if entry not in entries])
    for sentence in why:
        print(f"ringleader-spark-python: {sentence}", file=sys.stderr)
    os.environ["PYTHONPATH"] = os.pathsep.join(kept)
    os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
