"""Fetches Java libraries with Maven, once: the jars are kept outside the tree and found again by what the pom
says."""

from __future__ import annotations

import fcntl
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from tools.java_home import MIN_JAVA, NoJavaError, java_version, system_java_home

PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
_FETCH_TIMEOUT_S = 900


class InteropError(RuntimeError):
    """Something that the comparison with Apache Kafka needs is missing; one sentence says what to install."""


def cache() -> Path:
    """Where jars and builds are kept between runs: `ringleader` in the user's cache directory."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "ringleader" / "interop"


def kept(path: Path, make: Callable[[Path], None]) -> Path:
    """The path, a file or a directory outside the tree; when it is not there yet, `make` writes it under the
    name that it gets. One process makes it, others wait."""
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_name(f".{path.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            with tempfile.TemporaryDirectory(dir=path.parent) as work:
                fresh = Path(work) / path.name
                make(fresh)
                fresh.rename(path)
    return path


def java() -> str:
    """A `java` of version 17 or newer. Raises `InteropError`."""
    return str(_java_home() / "bin" / "java")


def javac() -> str:
    """The compiler of the same JDK. Raises `InteropError`."""
    found = _java_home() / "bin" / "javac"
    if not found.exists():
        raise InteropError(f"a JDK {MIN_JAVA} or newer is needed, and {found.parent.parent} has no compiler")
    return str(found)


def java_build() -> str:
    """The exact build of that Java, a few characters."""
    return _build(java())


@functools.cache
def _build(java: str) -> str:
    done = subprocess.run([java, "-Xinternalversion"], capture_output=True, timeout=60, check=True)
    return hashlib.sha256(done.stdout).hexdigest()[:16]


def _java_home() -> Path:
    try:
        home = system_java_home(os.environ)
    except NoJavaError as error:
        raise InteropError(str(error)) from None
    if home is None or (java_version(home / "bin" / "java") or 0) < MIN_JAVA:
        raise InteropError(
            f"a JDK {MIN_JAVA} or newer is needed to run Apache Kafka: install one, or set JAVA_HOME to it"
        )
    return home


def mvn() -> str:
    """Maven's command. Raises `InteropError`."""
    found = shutil.which("mvn")
    if found is None:
        raise InteropError("Maven is needed to fetch Apache Kafka: install it, so that `mvn` is on the PATH")
    return found


def jars(pom: Path) -> Path:
    """The directory with everything that the pom depends on, fetched when it is not there yet.

    Raises `InteropError` when Java or Maven is missing, or the libraries cannot be fetched.
    """
    name = hashlib.sha256(pom.read_bytes()).hexdigest()[:16]

    def fetch(fresh: Path) -> None:
        run_maven(pom, PLUGIN, f"-DoutputDirectory={fresh}", "-DincludeScope=runtime")

    return kept(cache() / f"{pom.parent.name}-{name}", fetch)


def run_maven(pom: Path, *arguments: str) -> None:
    """Run Maven on a pom. Raises `InteropError` with what it said."""
    command = [mvn(), "-q", "-B", "-f", str(pom), *arguments]
    environment = {**os.environ, "JAVA_HOME": str(_java_home())}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=_FETCH_TIMEOUT_S, check=False, env=environment
    )
    if done.returncode:
        output = (done.stdout + done.stderr).strip().splitlines()[-15:]
        raise InteropError("Maven failed for " + pom.name + ":\n" + "\n".join(output))
