"""The fences of the pages, and what the comment above one says of how it is run. A reader does not see it.

``<!-- runs: ... -->`` is one of

* ``in any order``: a program, and the lines that it prints come in any order;
* ``until shown``: a program that ends by Ctrl-C, here when what the page shows of it has come;
* ``beside``: a program or command in a terminal of its own, which goes on while the page does;
* ``inside NAME``: a fragment; it stands in the program of that name in ``surroundings.py``;
* ``spark``: in the page's PySpark shell, which has the name ``spark``;
* ``file NAME``: the text of a file of that name;
* ``log``: the daemon says so in its log;
* ``not: REASON``: it is not run.

Without a comment ``sh`` is what is typed, ``console`` that with its output, ``python`` a program that ends,
and ``text`` the output of what stands before it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(
    r"(?:^<!-- runs: (?P<how>[^\n]*) -->\n)?^```(?P<language>[^\n]*)\n(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
WORDS = {"in any order", "until shown", "beside", "spark", "log", ""}
WITH_NAME = ("inside ", "file ", "not: ")
LANGUAGES = {"sh", "console", "python", "text", "json", "toml", "yaml", "properties"}


@dataclass(frozen=True)
class Fence:
    """One of them: `line` is where it begins, `how` what its comment says."""

    page: Path
    line: int
    language: str
    text: str
    how: str

    @property
    def where(self) -> str:
        """PAGE:LINE."""
        return f"{self.page.name}:{self.line}"

    @property
    def shows(self) -> bool:
        """Whether it is the output of what stands before it."""
        return self.language == "text" and not self.how


def fences(page: Path) -> list[Fence]:
    """All of a page, in order."""
    text = page.read_text()
    found = [
        Fence(
            page,
            text.count("\n", 0, match.start("language")) + 1,
            match["language"],
            match["text"],
            match["how"] or "",
        )
        for match in FENCE.finditer(text)
    ]
    marks = len(re.findall(r"^\s*(?:```|~~~)", text, re.MULTILINE))
    comments = text.count("<!-- runs:")
    if marks != 2 * len(found) or comments != sum(bool(one.how) for one in found):
        raise ValueError(f"{page.name}: a fence or a comment that is not understood")
    return found
