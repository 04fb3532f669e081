"""The documentation site: mkdocs calls these hooks (mkdocs.yml), `make site` calls mkdocs.

The pages stay as they are in docs/, where tests type them in and people read them in the repository. For the
built site the files that they link to outside of docs/ are put next to them, comments for the tests are left
out, and pages of the public names are made: mkdocstrings fills these from the docstrings.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import ringleader
from ringleader import testing
from ringleader.clients import assignors

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
RUNS = re.compile(r"^<!-- runs: .* -->\n", re.MULTILINE)
OUTSIDE = re.compile(r"\]\(\.\./([^)#\s]+)")
"""A link of a page to a file that is not in docs/."""
BESIDE = ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
"""Pages of the site that are at the top of the tree."""
API = {
    "consumers": (
        "Consumers",
        (
            "consumer",
            "fetch.model",
            "process.settings",
            "process.policies",
            "process.dead_letters",
            "process.retry_topics",
        ),
    ),
    "members": ("Members", ("group.membership", "group.subscription", "model", "metrics", "options")),
    "admin": ("Admin", ("admin", "acls", "descriptions", "connection.metadata", "exporting")),
    "security": ("Security of clients", ("connection.security",)),
    "producers": ("Producers", ("producer", "produce.model", "with_context")),
    "errors": ("Errors", ("errors", "fetch.errors", "produce.errors")),
}
"""Page -> its title, and the modules of `ringleader.clients` whose public names it has."""


def outside_links() -> set[str]:
    """The files, from the top of the tree, that pages link to and that are not in docs/."""
    return {name for page in DOCS.glob("*.md") for name in OUTSIDE.findall(page.read_text())} - {"README.md"}


def for_the_site(text: str) -> str:
    """A page of docs/ as it is on the site."""
    text = RUNS.sub("", text).replace("](../README.md)", "](quickstart.md)")
    return OUTSIDE.sub(r"](\1", text)


def from_the_top(text: str) -> str:
    """A page of the top of the tree as it is on the site, where docs/ is the top."""
    return text.replace("](docs/", "](")


def api_pages() -> Iterator[tuple[str, str]]:
    """Path and Markdown of each page of the reference."""
    homes: dict[str, list[str]] = {}
    for name in ringleader.__all__:
        homes.setdefault(ringleader._HOME_OF[name], []).append(name)
    for page, (title, modules) in API.items():
        names = [f"ringleader.clients.{home}.{name}" for home in modules for name in homes.pop(home)]
        yield f"api/{page}.md", _reference(title, "from ringleader import ...", names)
    assert not homes, f"in no page of the reference: {homes}"
    names = [f"ringleader.testing.{name}" for name in testing.__all__ if name != "ErrorCode"]
    yield "api/testing.md", _reference("Tests", "from ringleader.testing import ...", names)
    names = [f"ringleader.clients.assignors.{name}" for name in assignors.__all__]
    yield "api/assignors.md", _reference("Assignors", "from ringleader.clients.assignors import ...", names)


def _reference(title: str, imported: str, names: list[str]) -> str:
    return f"# {title}\n\n`{imported}`\n\n" + "".join(f"::: {name}\n\n" for name in names)


# ---- what mkdocs calls ----


def on_files(files: Any, config: Any) -> Any:
    """Add what the site has and docs/ has not."""
    generated = import_module("mkdocs.structure.files").File.generated
    made = {name: from_the_top((ROOT / name).read_text()) for name in BESIDE}
    made |= {name: (ROOT / name).read_text() for name in outside_links() if name not in BESIDE}
    made |= {f"examples/{file.name}": file.read_text() for file in (ROOT / "examples").glob("*.py")}
    made["examples/README.md"] = made["examples/README.md"].replace("](../docs/", "](../")
    made |= dict(api_pages())
    for name, text in made.items():
        files.append(generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> str:
    """Without what only tests read."""
    return for_the_site(markdown) if page.file.src_uri.count("/") == 0 else markdown


def main(arguments: list[str]) -> int:
    """Build the site: the exit code is 1 for a broken link, or a page that no menu has."""
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--clean", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
