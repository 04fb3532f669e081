"""What the pages show passes a type checker: it finds misspelt names and options."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import groupby
from pathlib import Path

from tests.docs.fences import PAGES, Fence, fences
from tests.docs.reading import program

OPTIONS = ["--check-untyped-defs", "--ignore-missing-imports", "--follow-imports=silent", "--no-incremental"]
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


def test_programs_have_the_right_types(ours: Path, tmp_path: Path) -> None:
    for page in PAGES:
        found = [one for one in fences(page) if one.language == "python" and not one.how.startswith("not: ")]
        for in_shell, some in groupby(found, lambda one: one.how == "spark"):
            if in_shell:
                first, *rest = list(some)
                text = SPARK + "".join(one.text for one in (first, *rest))
                (tmp_path / name(first)).write_text(text)
            else:
                for one in some:
                    (tmp_path / name(one)).write_text(program(one))
    said = checked(tmp_path, ours)
    assert said.startswith("Success"), said


def test_a_misspelt_option_is_found(ours: Path, tmp_path: Path) -> None:
    code = "from ringleader import GroupConsumer\n\nGroupConsumer('b:1', 'g', 't', auto_comit=True)\n"
    (tmp_path / "misspelt.py").write_text(code)
    assert 'misspelt.py:3: error: Unexpected keyword argument "auto_comit"' in checked(tmp_path, ours)
