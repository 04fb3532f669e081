"""The compiled code under threads that share all they give it: `python native_threads.py`, or by a test.

It imports nothing but the compiled module, so that a free-threaded Python without any package can run it.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
import threading
import time
from types import ModuleType

THREADS = 8
RECORDS = 200
LASTS_S = 1.0


def a_record(number: int) -> bytes:
    """In Kafka's format 2, with a key and a value of two bytes each, and no headers."""
    delta = bytes([2 * number]) if number < 64 else bytes([2 * number & 127 | 128, 2 * number >> 7])
    body = b"\x00\x00" + delta + b"\x04ky" + b"\x04v" + bytes([number % 256]) + b"\x00"
    return bytes([2 * len(body)]) + body


def hold(native: ModuleType, lasts_s: float = LASTS_S) -> int:
    """Read the same records in many threads, while another one writes into bytes that are read and takes
    parts out of a list that is read: the number of reads. Raises AssertionError for a wrong record."""
    data = b"".join(map(a_record, range(RECORDS)))
    changing = bytearray(data)
    part = (data, 0, len(data), RECORDS, 0, RECORDS - 1, 0, False)
    parts = [part] * 4
    whole = native.read_rows(data, 0, 0, RECORDS, True, True)
    columns = native.read_columns([part], 0, RECORDS, False)
    assert whole is not None
    assert columns is not None
    assert columns[0] == RECORDS
    batch: list[object] = [None, None]
    written = (tuple, "t", 3, 70, [5, 6])
    until = time.monotonic() + lasts_s
    shared, end = native.read_records(data, 0, 0, RECORDS, tuple, "t", 0, None, 0, 0, True)
    assert end == len(data)
    taken: list[int] = []
    wrong: list[BaseException] = []
    writer = native.RecordWriter()
    reads = [0] * THREADS

    class Outcome(native.Place):  # type: ignore[misc, name-defined]
        def _done(self) -> bool:
            return False

        def _result(self) -> str:
            return "later"

    def read(thread: int) -> None:
        try:
            taken.extend([record[2] for record in shared])
            while time.monotonic() < until:
                assert native.read_rows(data, 0, 0, RECORDS, True, True) == whole
                assert native.read_columns([part], 0, RECORDS, False) == columns
                # Their bytes and lists change while they are read: any answer will do.
                native.read_rows(changing, 0, 0, RECORDS, True, True)
                with contextlib.suppress(IndexError):  # a part was taken out
                    native.read_columns(parts, 0, RECORDS, True)
                outcome = Outcome(batch, 1)
                if outcome.done():
                    assert outcome.result() in (("t", 3, 71, 6), "later")
                writer.write(None, b"v", (), thread)
                reads[thread] += 1
        except BaseException as error:
            wrong.append(error)

    def change() -> None:
        turn = 0
        while time.monotonic() < until:
            turn += 1
            changing[turn * 7919 % len(changing)] = turn % 256
            parts.pop()
            parts.append((bytes(data), *part[1:]))
            batch[0] = None if turn % 2 else (*written[:4], [5, 6])

    threads = [threading.Thread(target=read, args=(thread,)) for thread in range(THREADS)]
    threads.append(threading.Thread(target=change))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if wrong:
        raise wrong[0]
    assert sorted(taken) == list(range(RECORDS))
    assert writer.count == sum(reads)
    assert sorted(writer.times_ms) == [thread for thread, count in enumerate(reads) for _ in range(count)]
    records = writer.taken()
    assert native.read_values(records, 61, 0, sum(reads)) == ([b"v"] * sum(reads), len(records))
    return sum(reads)


if __name__ == "__main__":
    found = importlib.import_module("ringleader._native")
    locked = getattr(sys, "_is_gil_enabled", lambda: True)()
    if "t" in getattr(sys, "abiflags", ""):
        assert not locked, "the compiled module switched the GIL on"
    print(f"{hold(found)} reads in {THREADS} threads, {'with' if locked else 'without'} the GIL")
