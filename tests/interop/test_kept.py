"""Files that are made once per machine, for all processes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.interop.maven import kept


def test_one_makes_it_while_others_wait(tmp_path: Path) -> None:
    place, made = tmp_path / "cache" / "jars", list[Path]()

    def make(fresh: Path) -> None:
        made.append(fresh)
        assert not place.exists(), "nobody sees it half made"
        fresh.mkdir()

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(lambda _: kept(place, make), range(8))) == {place}
    assert [one.name for one in made] == ["jars"]
    assert place.is_dir()


def test_what_could_not_be_made_is_tried_again(tmp_path: Path) -> None:
    def fails(fresh: Path) -> None:
        fresh.write_text("half")
        raise RuntimeError("no such jar")

    with pytest.raises(RuntimeError, match="no such jar"):
        kept(tmp_path / "jar", fails)
    assert not (tmp_path / "jar").exists()
    assert kept(tmp_path / "jar", Path.touch).exists()
