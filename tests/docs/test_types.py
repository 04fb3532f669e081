"""The programs on the pages pass a type checker, which finds misspelt names and options."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from itertools import groupby
from pathlib import Path

from tests.docs.fences import PAGES, ROOT, Fence, fences
from tests.docs.reading import program

PUBLIC = {
    "ringleader",
    "ringleader.testing",
    "ringleader.clients.aiokafka",  # which has to be installed
    "ringleader.clients.kafka_python",  # likewise
    "ringleader.clients.schemas",  # confluent-kafka, likewise
    "ringleader.spark_bridge.committing",  # PySpark, likewise
    "ringleader.protocol.messages",  # for who works on the codec
}
CACHE = ROOT / ".venv" / "types"
"""Types of the package from an earlier run: only what has changed since is read again."""
OPTIONS = [
    *("--check-untyped-defs", "--ignore-missing-imports", "--follow-imports=silent", f"--cache-dir={CACHE}"),
]
SPARK = "from pyspark.sql import SparkSession\n\nspark: SparkSession = SparkSession.builder.getOrCreate()\n"


def checked(directory: Path, ours: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file=", *OPTIONS, "."],
        cwd=directory,
        env=os.environ | {"MYPYPATH": str(ours)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


def name(fence: Fence) -> str:
    return f"{fence.page.stem.lower().replace('-', '_')}_{fence.line}.py"


def _is_whole(fence: Fence) -> bool:
    """A fence that is not run is a program, too, if it begins as one."""
    return not fence.how.startswith("not: ") or fence.text.startswith(("import ", "from "))


MISSPELT = "from ringleader import GroupConsumer\n\nGroupConsumer('b:1', 'g', 't', auto_comit=True)\n"


def test_programs_have_the_right_types_and_a_misspelt_option_is_found(ours: Path, tmp_path: Path) -> None:
    """In one run of the checker, which reads the whole package each time."""
    (tmp_path / "misspelt.py").write_text(MISSPELT)
    for page in PAGES:
        found = [one for one in fences(page) if one.language == "python" and _is_whole(one)]
        for in_shell, some in groupby(found, lambda one: one.how == "spark"):
            if in_shell:
                first, *rest = list(some)
                text = SPARK + "".join(one.text for one in (first, *rest))
                (tmp_path / name(first)).write_text(text)
            else:
                for one in some:
                    (tmp_path / name(one)).write_text(program(one))
    output = checked(tmp_path, ours)
    errors = [line for line in output.splitlines() if ": error: " in line]
    assert [line.partition(":")[0] for line in errors] == ["misspelt.py"], output
    assert errors[0].startswith('misspelt.py:3: error: Unexpected keyword argument "auto_comit"')


def test_imports_of_pages_are_public() -> None:
    texts = {str(file): file.read_text() for file in sorted((ROOT / "docs/examples").glob("*.py"))}
    texts |= {one.where: one.text for page in PAGES for one in fences(page) if one.language == "python"}
    inner = {
        (where, home)
        for where, text in texts.items()
        for home in re.findall(r"^\s*(?:from|import) (ringleader[\w.]*)", text, re.MULTILINE)
        if home not in PUBLIC
    }
    assert inner == set()
