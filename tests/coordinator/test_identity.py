"""A store that is gone is missed: the node refuses to start, says what to do, and makes nothing."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ringleader.coordinator import identity
from ringleader.coordinator.config import Settings
from ringleader.coordinator.identity import IDENTITY_FILE, make_directory
from ringleader.coordinator.node import Node
from ringleader.coordinator.serving import StartError
from ringleader.coordinator.storage.sqlite import SqliteStorage
from tests.coordinator.test_node import settings
from tests.support.memory_store import MemoryStorage


def content(directory: Path) -> dict[str, bytes]:
    """All files below a directory; not the lock, which says who looked last."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file() and path.name != "ringleader.lock"
    }


async def known_node(directory: Path) -> Settings:
    """A node that has been here, with a topic and a group."""
    chosen = settings(directory, topic="orders:3")
    async with Node(chosen):
        pass
    store = SqliteStorage(chosen.data_dir / "groups.db")
    await store.start()
    await store.append([(0, 0, [(b"key", b"value")])])
    await store.close()
    return chosen


def _remove(path: Path) -> None:
    path.unlink()


def _empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize(
    "name", ["groups.db", "transactions.db", "topics/topics.json", "topics/producer-ids"]
)
@pytest.mark.parametrize("lose", [_remove, _empty])
async def test_a_store_that_is_gone_is_not_made_again(
    tmp_path: Path, name: str, lose: Callable[[Path], None]
) -> None:
    chosen = await known_node(tmp_path)
    kept = (chosen.data_dir / name).read_bytes()
    lose(chosen.data_dir / name)
    before = content(chosen.data_dir)
    for _ in range(2):
        with pytest.raises(
            StartError, match=f"{name} is gone or empty.*put the last copy of it back"
        ) as raised:
            await Node(chosen).start()
        assert "\n" not in str(raised.value)
    assert content(chosen.data_dir) == before
    (chosen.data_dir / name).write_bytes(kept)
    async with Node(chosen) as node:
        assert node.topics.describe("orders") is not None


async def test_a_topics_directory_that_is_gone_is_not_made_again(tmp_path: Path) -> None:
    chosen = await known_node(tmp_path)
    shutil.rmtree(chosen.data_dir / "topics")
    with pytest.raises(StartError, match="topics is gone or empty"):
        await Node(chosen).start()
    assert not (chosen.data_dir / "topics").exists()


async def test_without_an_identity_a_later_store_tells_that_an_earlier_one_is_gone(tmp_path: Path) -> None:
    chosen = await known_node(tmp_path)
    (chosen.data_dir / IDENTITY_FILE).unlink()
    (chosen.data_dir / "groups.db").unlink()
    with pytest.raises(StartError, match=r"groups\.db is gone or empty"):
        await Node(chosen).start()


async def test_a_first_start_that_was_cut_off_is_no_loss(tmp_path: Path) -> None:
    chosen = await known_node(tmp_path / "whole")
    made = ["groups.db", "topics", "transactions.db"]
    for number in range(len(made) + 1):
        begun = settings(tmp_path / str(number))
        begun.data_dir.mkdir(parents=True)
        for name in made[:number]:
            source, target = chosen.data_dir / name, begun.data_dir / name
            (shutil.copytree if source.is_dir() else shutil.copy)(source, target)
        async with Node(begun):
            pass
        assert content(begun.data_dir).keys() >= {"groups.db", "transactions.db", IDENTITY_FILE}


async def test_format_1_is_understood_and_learns_of_its_stores(tmp_path: Path) -> None:
    chosen = await known_node(tmp_path)
    identity = chosen.data_dir / IDENTITY_FILE
    cluster_id = json.loads(identity.read_text())["cluster_id"]
    identity.write_text(json.dumps({"format": 1, "cluster_id": cluster_id}))
    async with Node(chosen):
        pass
    assert json.loads(identity.read_text()) == {
        "format": 2,
        "cluster_id": cluster_id,
        "stores": [
            "groups.db",
            "security.json",
            "topics",
            "topics/producer-ids",
            "topics/topics.json",
            "transactions.db",
        ],
    }


async def test_format_1_was_written_before_the_stores(tmp_path: Path) -> None:
    chosen = settings(tmp_path)
    chosen.data_dir.mkdir()
    (chosen.data_dir / IDENTITY_FILE).write_text('{"format": 1, "cluster_id": "AAAAAAAAAAAAAAAAAAAAAA"}')
    async with Node(chosen):
        pass
    assert json.loads((chosen.data_dir / IDENTITY_FILE).read_text())["cluster_id"] == "A" * 22


async def test_a_newer_identity_is_refused_and_stays(tmp_path: Path) -> None:
    chosen = await known_node(tmp_path)
    newer = '{"format": 3, "cluster_id": "AAAAAAAAAAAAAAAAAAAAAA", "shards": 7}'
    (chosen.data_dir / IDENTITY_FILE).write_text(newer)
    with pytest.raises(StartError, match="has format 3"):
        await Node(chosen).start()
    assert (chosen.data_dir / IDENTITY_FILE).read_text() == newer


async def test_another_store_for_groups_is_no_file_that_could_be_missed(tmp_path: Path) -> None:
    chosen = settings(tmp_path)
    for storage in (MemoryStorage(), MemoryStorage(), None):
        async with Node(chosen, storage=storage):
            pass
    stores = json.loads((chosen.data_dir / IDENTITY_FILE).read_text())["stores"]
    assert "groups.db" in stores


def test_directories_are_made_with_those_above(tmp_path: Path) -> None:
    make_directory(tmp_path / "a" / "b" / "c")
    make_directory(tmp_path / "a" / "b" / "c")
    assert (tmp_path / "a" / "b" / "c").is_dir()


def test_the_name_of_each_new_directory_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything in it counts: a power cut takes a whole directory whose name is not."""
    synced: list[Path] = []
    monkeypatch.setattr(identity, "sync_path", synced.append)
    make_directory(tmp_path / "above" / "data")
    assert synced == [tmp_path, tmp_path / "above"]
    make_directory(tmp_path / "above" / "data")
    assert len(synced) == 2
