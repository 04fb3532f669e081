"""An empty environment, and what `pip install` puts into it: without a network, in milliseconds.

A virtual environment of its own, which sees nothing of the one that the tests run in. A distribution that is
asked for, and what that one requires, is linked from there; ringleader is the wheel, built from the tree.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterable
from importlib.metadata import Distribution, PathDistribution, distribution
from pathlib import Path

from packaging.requirements import Requirement

from tests.docs.fences import ROOT

OURS = "ringleader"
SCRIPT = """#!{python}
import sys
from {module} import {head}
sys.exit({function}())
"""


def build_wheel(directory: Path) -> Path:
    """A folder with what the wheel installs."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(directory / "wheel")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = (directory / "wheel").iterdir()
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(directory / "site")
    return directory / "site"


class Environment:
    """One, in a directory."""

    def __init__(self, directory: Path, ours: Path) -> None:
        self.directory = directory
        self._ours = ours
        self._there: set[tuple[str, frozenset[str]]] = set()
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(directory)], check=True)
        (self._site,) = directory.glob("lib/python*/site-packages")
        self.python = directory / "bin" / "python"

    def pip_install(self, arguments: Iterable[str]) -> None:
        """``pip install ARGUMENTS``."""
        for argument in arguments:
            assert not argument.startswith("-"), f"pip install {argument}: say how in {__name__}"
            # The project is in no index: from its folder.
            named = re.sub(r"^\.(?=$|\[)", OURS, argument)
            assert named != argument or Requirement(argument).name != OURS, f"{argument}: is in no index"
            self._install(Requirement(named))

    def has(self, name: str) -> bool:
        """Whether a distribution is installed."""
        return any(name == there for there, _ in self._there)

    def _install(self, wanted: Requirement) -> None:
        key = (wanted.name, frozenset(wanted.extras))
        if key in self._there:
            return
        self._there.add(key)
        found = self._distribution(wanted.name)
        assert wanted.specifier.contains(found.version, prereleases=True), f"{wanted}: have {found.version}"
        self._link(found)
        for text in found.requires or ():
            needed = Requirement(text)
            extras = wanted.extras or {""}
            if needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in extras):
                self._install(needed)

    def _distribution(self, name: str) -> Distribution:
        if name != OURS:
            return distribution(name)
        (info,) = self._ours.glob("*.dist-info")
        return PathDistribution(info)

    def _link(self, found: Distribution) -> None:
        for top in {path.parts[0] for path in found.files or ()} - {"..", "__pycache__"}:
            if not (self._site / top).exists():
                (self._site / top).symlink_to(Path(str(found.locate_file(top))))
        for point in found.entry_points.select(group="console_scripts"):
            head = point.attr.partition(".")[0]
            script = self.directory / "bin" / point.name
            script.write_text(
                SCRIPT.format(python=self.python, module=point.module, head=head, function=point.attr)
            )
            script.chmod(0o755)

    def variables(self, home: Path) -> dict[str, str]:
        """The variables of a process in it. Nothing else is on the path but what every system has."""
        return {
            "PATH": f"{self.directory / 'bin'}:/usr/bin:/bin",
            "VIRTUAL_ENV": str(self.directory),
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "COLUMNS": "120",
            # As at a terminal: lines come when they are printed.
            "PYTHONUNBUFFERED": "1",
        }


def bash() -> str:
    """Where it is."""
    found = shutil.which("bash")
    assert found is not None
    return found
