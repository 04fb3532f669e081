"""The reader of the pages notices forbidden words, and output that a page does not show."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.fences import fences
from tests.docs.reading import reading


def read(text: str, tmp_path: Path, ours: Path) -> None:
    directory = tmp_path / "reader"
    directory.mkdir(parents=True)
    page = tmp_path / "page.md"
    page.write_text(text)
    with reading(directory, ours) as reader:
        reader.read(fences(page))


def fence(language: str, text: str, how: str = "") -> str:
    comment = f"<!-- runs: {how} -->\n" if how else ""
    return f"{comment}```{language}\n{text}```\n\n"


def test_packages_that_the_page_does_not_install_are_absent(tmp_path: Path, ours: Path) -> None:
    use = fence("python", "import aiokafka, ringleader\n")
    with pytest.raises(AssertionError, match=r"page.md:5: .*\n(.*\n)*.*No module named 'aiokafka'"):
        read(fence("sh", "pip install .\n") + use, tmp_path, ours)
    read(fence("sh", "pip install . aiokafka\n") + use, tmp_path / "again", ours)


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("print(1)\n", "2\n"),
        ("print(1)\n", None),
        ("pass\n", "1\n"),
        ("print(1)\nprint(2)\n", "1\n"),
        ("print(1)\nraise SystemExit(1)\n", "1\n"),
        ("import sys\nprint(1)\nprint('oh', file=sys.stderr)\n", "1\n"),
    ],
)
def test_output_that_is_not_shown_fails_the_page(
    code: str, shown: str | None, tmp_path: Path, ours: Path
) -> None:
    with pytest.raises(AssertionError, match=r"page\.md:1: "):
        read(fence("python", code) + (fence("text", shown) if shown else ""), tmp_path, ours)


def test_marked_output_may_vary(tmp_path: Path, ours: Path) -> None:
    code = "print('worker-0123abcd  in 17 ms')\nprint(1)\nprint(2)\nprint('the end')\n"
    read(fence("python", code) + fence("text", "worker-ffffffff in 2 ms\n...\nthe ...\n"), tmp_path, ours)


@pytest.mark.parametrize("how", ["until shown", "beside"])
def test_a_program_that_ends_before_it_has_shown_all(how: str, tmp_path: Path, ours: Path) -> None:
    with pytest.raises(AssertionError, match="did not come: \\['2'\\]"):
        read(fence("python", "print(1)\n", how) + fence("text", "1\n2\n"), tmp_path, ours)


def test_a_command_that_fails(tmp_path: Path, ours: Path) -> None:
    with pytest.raises(AssertionError, match="exit code 1"):
        read(fence("sh", "true\nfalse\n"), tmp_path, ours)


def test_nobody_listens_before_the_page_has_started_one(tmp_path: Path, ours: Path) -> None:
    with pytest.raises(AssertionError, match=r"page\.md:5: ringleader topics list: exit code 1"):
        read(fence("sh", "pip install .\n") + fence("sh", "ringleader topics list\n"), tmp_path, ours)


@pytest.mark.parametrize(
    "text", ["  ```sh\nls\n```\n", "```sh\nls\n", "<!-- runs: spark -->\n\n```sh\nls\n```\n"]
)
def test_a_fence_or_comment_that_would_be_passed_over(text: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(text)
    with pytest.raises(ValueError, match="not understood"):
        fences(page)
