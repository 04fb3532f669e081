"""`python -m tests.fuzz.child TARGET SECONDS`: one target in this process, watched by atheris where that is
installed; else, and with `--blind`, inputs are drawn without a look at what they reach."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import secrets
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from tests.fuzz import corpus
from tests.fuzz.target import HERE, MAX_BYTES, NAMES, Target, judge, load
from tests.support import library

if TYPE_CHECKING:
    from ringleader.protocol.codegen.functions import Verb
    from ringleader.protocol.fields import Declared

OUT = HERE / "out"
FOUND = 77
"""Exit code after a find, as libFuzzer's."""
HANGS_S = 60
MEMORY_MB = 3_000


def folders(name: str) -> tuple[Path, Path]:
    """Where a target's inputs are collected over the runs, and where its finds are put."""
    return OUT / "inputs" / name, OUT / "finds" / name


def watched(name: str, seconds: int) -> None:
    """With atheris, which ends the process."""
    atheris: Any = importlib.import_module("atheris")
    with atheris.instrument_imports(include=["ringleader"]):
        target = load(name)
        _watch_compiled(atheris.instrument_func)
        list(target.seeds())  # imports and compiles what the target uses
    inputs, finds = folders(name)
    corpus.unpack(target, inputs)
    finds.mkdir(parents=True, exist_ok=True)

    def mutate(data: bytes, most: int, seed: int) -> bytes:
        rng = Random(seed)
        if rng.random() < 0.3:
            return bytes(atheris.Mutate(data, most))
        return _mutated(target, data, rng)[:most]

    flags = [
        f"-max_total_time={seconds}",
        f"-max_len={MAX_BYTES}",
        f"-timeout={HANGS_S}",
        f"-rss_limit_mb={MEMORY_MB}",
        f"-artifact_prefix={finds}/",
        "-print_final_stats=1",
        "-len_control=0",
        "-report_slow_units=100000",
    ]
    atheris.Setup([sys.argv[0], *flags, str(inputs)], lambda data: judge(target, data), custom_mutator=mutate)
    atheris.Fuzz()


def _watch_compiled(watch: Callable[[Callable[..., Any]], Any]) -> None:
    """Decoders and encoders are compiled on first use, not imported: each is watched as it is made."""
    codec: Any = importlib.import_module("ringleader.protocol.codec")
    original = codec.compiled

    def watched_functions(cls: type[Declared], verb: Verb, version: int) -> dict[str, Callable[..., Any]]:
        functions: dict[str, Callable[..., Any]] = original(cls, verb, version)
        for function in functions.values():
            watch(function)
        return functions

    codec.compiled = watched_functions


def blind(name: str, seconds: int) -> None:
    """Without: changes of the corpus, and changes of these."""
    target = load(name)
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    rng, known = Random(seed), [*corpus.kept(name), *target.seeds()]
    until_s, count = time.monotonic() + seconds, 0
    while time.monotonic() < until_s:
        data = rng.choice(known)
        for _ in range(rng.choice((1, 1, 2, 5))):
            data = _mutated(target, data, rng)
        count += 1
        try:
            judge(target, data)
        except Exception:
            traceback.print_exc()
            finds = folders(name)[1]
            finds.mkdir(parents=True, exist_ok=True)
            (finds / f"crash-{secrets.token_hex(8)}").write_bytes(data)
            sys.exit(FOUND)
        finally:
            print(f"#{count}", file=sys.stderr) if count % 1_000 == 0 else None
    print(f"stat::number_of_executed_units: {count}", file=sys.stderr)


def _mutated(target: Target, data: bytes, rng: Random) -> bytes:
    return target.mutate(data, rng)[:MAX_BYTES]


def main() -> None:
    """See the module."""
    if library.BUILT in os.environ:
        sys.modules["ringleader._native"] = library.load(Path(os.environ[library.BUILT]))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", choices=NAMES)
    parser.add_argument("seconds", type=int)
    parser.add_argument("--blind", action="store_true")
    given = parser.parse_args()
    see = not given.blind and importlib.util.find_spec("atheris") is not None
    (watched if see else blind)(given.target, given.seconds)


if __name__ == "__main__":
    main()
