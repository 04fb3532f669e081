"""TLC, the model checker of TLA+, on docs/spec: fetched with Maven as the broker of the interop suite is."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.interop.kafka import FAST_START
from tests.interop.maven import jars, java

SPEC = Path(__file__).parents[2] / "docs" / "spec"
POM = Path(__file__).with_name("pom.xml")

_FOUND = re.compile(r"(\d+) states generated, (\d+) distinct states found, (\d+) states left on queue")
_WRONG = re.compile(r"(?:Invariant|Action property|Temporal properties?) ?(\w*) (?:is|were) violated")
_DEPTH = re.compile(r"The depth of the complete state graph search is (\d+)")


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of a check. `violated`: the property that does not hold; "" if all do. `left`: states that
    it has not visited."""

    violated: str
    generated: int
    distinct: int
    left: int
    depth: int


class TlcError(RuntimeError):
    """TLC could not check; the text is the end of what it said."""


def check(config: str, *, spec: Path = SPEC / "ConsumerGroup.tla", timeout_s: float = 900) -> Checked:
    """Check a configuration of docs/spec. Raises `TlcError`, and `InteropError` without Java or Maven."""
    text = run_tlc(spec, config, timeout_s=timeout_s)
    found, depth, wrong = _FOUND.findall(text), _DEPTH.findall(text), _WRONG.search(text)
    if not found or not (wrong or "No error has been found" in text):
        raise TlcError(text[-2_500:])
    generated, distinct, left = map(int, found[-1])
    violated = "" if wrong is None else wrong[1] or "a temporal property"
    return Checked(violated, generated, distinct, left, int(depth[-1]) if depth else 0)


def run_tlc(
    spec: Path, config: str, modules: Mapping[str, str] | None = None, *, timeout_s: float = 900
) -> str:
    """All that TLC says of a module beside those of its directory and `modules`, name of a file -> text.
    Raises `InteropError` without Java or Maven."""
    with tempfile.TemporaryDirectory(prefix="tlc-") as work:
        for one in (*spec.parent.glob("*.tla"), SPEC / f"{config}.cfg"):
            shutil.copy(one, work)
        for name, text in (modules or {}).items():
            (Path(work) / name).write_text(text)
        command = [java(), *FAST_START, f"-Djava.io.tmpdir={work}", "-cp", str(jars(POM) / "*")]
        command += ["tlc2.TLC", "-deadlock", "-workers", "1", "-metadir", work]
        command += ["-config", f"{config}.cfg", spec.name]
        done = subprocess.run(
            command, cwd=work, capture_output=True, text=True, timeout=timeout_s, check=False
        )
    return done.stdout + done.stderr
