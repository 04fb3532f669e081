"""Cuts the power at many moments of a scenario, and asks after each what is left.

    python -m tests.support.cut_lab SCENARIO DIRECTORY [--seed N] [--rounds N] [--every] [--fresh]

A scenario is a class, named as `module:Class`. Each round runs its `live` in a forked process that is killed
before some change of a file or some sync; then what was not synced is taken back, and `check` runs in another
process, with what `live` reported before it died. Rounds go on in the same directory, unless `fresh`. With
`every`, each moment of `live` is the last one once; else it is drawn.

Its last line is JSON: rounds, cuts; and if a check failed what it said, and how to repeat it.
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import importlib
import json
import os
import shutil
import subprocess
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, NoReturn

from tests.support.powercut import cut_power, library

ROOT = Path(__file__).parents[2]
MOMENTS_MAX = 1_000_000

Tell = Callable[[Any], None]
"""Something that must be found after any later cut; what JSON can hold."""


class Scenario:
    """The work done in a directory (which `live` makes), and the condition that must hold after a cut. `draw`
    is the same for `live` and `check` of one round."""

    def __init__(self, directory: Path, number: int, draw: Random) -> None:
        self.directory = directory
        self.number = number
        self.draw = draw

    async def live(self, tell: Tell) -> None:
        """Until it is killed."""
        raise NotImplementedError

    async def check(self, reports: list[Any], tell: Tell) -> None:
        """Raises AssertionError. `reports`: the reports of all rounds in this directory so far; more may
        follow."""
        raise NotImplementedError


class LabError(Exception):
    """A round went wrong; the text says how."""


@dataclass
class Lab:
    """The rounds of one scenario. `fresh`: each has a directory of its own."""

    scenario: type[Scenario]
    directory: Path
    seed: int
    fresh: bool

    def run(self, rounds: int, every: bool) -> tuple[int, int]:
        """How many rounds, and how many changes were undone. Raises LabError."""
        data, journal = self.directory / "data", self.directory / "journal"
        for made in (data, journal):
            made.mkdir(parents=True)
        # Modules that are imported on first use are imported here once, not again in each process.
        asyncio.run(self.scenario(self.directory / "tried" / "node", 0, Random(0)).live(lambda fact: None))
        undone = number = 0
        moments, reports = MOMENTS_MAX, list[Any]()
        while number < (moments + 1 if every else rounds):
            draw = Random(f"{self.seed} {number if not every else 0}")
            if self.fresh:
                shutil.rmtree(data)
                data.mkdir()
                reports = []
            # The first round is not cut: it tells how many moments there are. The first ones make the files.
            latest = moments if draw.random() < 0.5 else moments // 8 + 1
            last = 0 if not number else number if every else draw.randint(1, latest)
            scenario_seed = draw.random()
            lines = self._fork(number, "live", reports, scenario_seed, last)
            if not number:
                moments = next(line["moments"] for line in lines if "moments" in line)
            reports += [line["told"] for line in lines if "told" in line]
            undone += cut_power(data, journal, draw if draw.random() < 0.5 else None)
            reports += [line["told"] for line in self._fork(number, "check", reports, scenario_seed, None)]
            number += 1
        return number, undone

    def _fork(
        self, number: int, method: str, reports: list[Any], seed: float, last: int | None
    ) -> list[dict[str, Any]]:
        ends = os.pipe()
        errors = self.directory / "errors"
        child = os.fork()
        if not child:
            os.close(ends[0])
            self._be_child(number, method, reports, seed, last, ends[1], errors)
        os.close(ends[1])
        with os.fdopen(ends[0], "rb") as stream:
            data = stream.read()
        status = os.waitpid(child, 0)[1]
        killed = bool(last) and os.WIFSIGNALED(status) and os.WTERMSIG(status) == 9
        if status and not killed:
            raise LabError(f"round {number}, {method}: {errors.read_text()[-6000:]}")
        return [json.loads(line) for line in data.splitlines(keepends=True) if line.endswith(b"\n")]

    def _be_child(
        self,
        number: int,
        method: str,
        reports: list[Any],
        seed: float,
        last: int | None,
        pipe: int,
        errors: Path,
    ) -> NoReturn:
        def say(line: Any) -> None:
            os.write(pipe, json.dumps(line).encode() + b"\n")

        def tell(fact: Any) -> None:
            say({"told": fact})

        code = 1
        try:
            descriptor = os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            for standard in (1, 2):
                os.dup2(descriptor, standard)
            data = self.directory / "data"
            scenario = self.scenario(data / "node", number, Random(seed))
            shim = ctypes.CDLL(str(library()))
            if last is not None:
                root, journal = (str(path.resolve()).encode() for path in (data, self.directory / "journal"))
                shim.undo_watch(root, journal, ctypes.c_int64(last))
                asyncio.run(scenario.live(tell))
                shim.undo_count.restype = ctypes.c_int64
                say({"moments": shim.undo_count()})
            else:
                shim.undo_pretend()
                asyncio.run(scenario.check(reports, tell))
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)


def cut_often(
    scenario: str,
    directory: Path,
    seed: int,
    *,
    rounds: int = 0,
    every: bool = False,
    fresh: bool = False,
) -> dict[str, Any]:
    """Run the laboratory in a process of its own; what its last line says. Raises AssertionError when a round
    fails, with how to repeat it."""
    command = [sys.executable, "-m", "tests.support.cut_lab", scenario, str(directory), "--seed", str(seed)]
    command += ["--rounds", str(rounds), *["--every"] * every, *["--fresh"] * fresh]
    environment = {**os.environ, "LD_PRELOAD": str(library())}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command[2:])}\n{done.stdout}{done.stderr[-4000:]}"
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> int:
    """Run one scenario. Exit status 1: a check failed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("scenario")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--every", action="store_true")
    parser.add_argument("--fresh", action="store_true")
    given = parser.parse_args()
    module, _, name = given.scenario.partition(":")
    scenario = getattr(importlib.import_module(module), name)
    lab = Lab(scenario, given.directory, given.seed, given.fresh)
    try:
        rounds, undone = lab.run(given.rounds, given.every)
    except LabError as error:
        print(error)
        return 1
    print(json.dumps({"rounds": rounds, "undone": undone}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
