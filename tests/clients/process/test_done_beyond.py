"""Records that are done beyond the committed offset: kept in the commit's metadata, and found again."""

from __future__ import annotations

from random import Random

import pytest

from ringleader.clients.fetch.progress import METADATA_MAX_LENGTH, Progress, decode, encode
from ringleader.clients.model import OffsetAndMetadata


def committed_as_done(at: OffsetAndMetadata, offset: int) -> bool:
    """Whether a commit says that the record there is done."""
    return offset < at.offset or any(
        first <= offset < after for first, after in decode(at.offset, at.metadata)
    )


def test_the_first_record_that_is_not_done_holds_the_offset_and_the_rest_stands_in_the_metadata() -> None:
    progress = Progress()
    for offset in range(100, 110):
        assert progress.begin(offset, 3 if offset > 100 else 2)
    for offset in (101, 102, 105, 109):
        progress.done(offset)
    assert progress.reached(110, 3) == OffsetAndMetadata(100, "done:1,2,2,1,3,1", 2)
    progress.done(100)
    assert progress.reached(110, 3) == OffsetAndMetadata(103, "done:2,1,3,1", 3)


def test_what_was_done_before_is_not_begun_again() -> None:
    again = Progress(decode(100, "done:1,2,2,1"))
    assert [offset for offset in range(100, 108) if again.begin(offset, 0)] == [100, 103, 104, 106, 107]


def test_any_order_of_ends_any_holes_and_any_restarts(seed: int) -> None:
    rng = Random(seed)
    for _ in range(1_000):
        there = sorted(rng.sample(range(60), rng.randrange(1, 40)))
        done: set[int] = set()
        at = OffsetAndMetadata(0)
        for _ in range(4):
            progress, position = Progress(decode(at.offset, at.metadata)), at.offset
            left, under_way = [offset for offset in there if offset >= position], []
            for _ in range(rng.randrange(60)):
                if left and rng.random() < 0.5:
                    offset = left.pop(0)
                    assert progress.begin(offset, 1) == (offset not in done)
                    if offset not in done:
                        under_way.append(offset)
                    position = offset + 1
                elif under_way and rng.random() < 0.7:
                    offset = under_way.pop(rng.randrange(len(under_way)))
                    progress.done(offset)
                    done.add(offset)
                before, at = at.offset, progress.reached(position, 1)
                assert at.offset >= before
                assert [offset for offset in there if committed_as_done(at, offset)] == sorted(done)


def test_a_long_metadata_is_cut_and_says_nothing_that_is_not_so() -> None:
    progress = Progress()
    for offset in range(10_000):
        progress.begin(offset, 0)
    for offset in range(1, 10_000, 2):
        progress.done(offset)
    at = progress.reached(10_000, 0)
    assert METADATA_MAX_LENGTH - 10 < len(at.metadata) <= METADATA_MAX_LENGTH
    reported = [offset for offset in range(10_000) if committed_as_done(at, offset)]
    assert reported == list(range(1, 2 * len(reported), 2))
    assert len(reported) > 700


@pytest.mark.parametrize(
    "metadata",
    ["", "mine", "done:", "done:1", "done:1,0", "done:0,1", "done:-1,2", "done:1,2,3", "done:x y,1",
     "done:" + "1," * 2_000 + "1"],
)  # fmt: skip
def test_metadata_of_others_says_nothing(metadata: str) -> None:
    assert decode(5, metadata) == []


def test_nothing_is_written_where_nothing_is_done_beyond() -> None:
    assert encode(7, []) == encode(7, [(9, 9)]) == ""
