"""Quiet faults: what happens to clients all day, and is no matter for the coordinator. Drawn from a seed."""

from __future__ import annotations

import contextlib
import os
import random
import socket
from collections.abc import Iterator
from dataclasses import dataclass

KILL, PAUSE, STRANGERS, LEAVE = "kill", "pause", "strangers", "leave"
WAYS = (KILL, PAUSE, STRANGERS, LEAVE)
STRANGERS_AT_ONCE = 40


@dataclass(frozen=True, slots=True)
class Quiet:
    """One fault. It comes `after_s` after the one before; a pause lasts `seconds`."""

    how: str
    after_s: float
    seconds: float
    pick: int
    """Which member."""


def draw(seed: int, every_s: float) -> Iterator[Quiet]:
    """Without end; each way comes once before any comes again."""
    dice = random.Random(seed)
    while True:
        for how in dice.sample(WAYS, len(WAYS)):
            after_s = dice.uniform(0.5, 1.5) * every_s
            yield Quiet(how, after_s, dice.uniform(1.0, min(8.0, every_s)), dice.randrange(1_000))


def knock(address: tuple[str, int], seed: int) -> None:
    """Connections that send nothing, half a request, or what is none, and go."""
    dice = random.Random(seed)
    opened: list[socket.socket] = []
    try:
        for number in range(STRANGERS_AT_ONCE):
            with contextlib.suppress(OSError):
                one = socket.create_connection(address, timeout=5)
                opened.append(one)
                if number % 4 == 1:
                    one.sendall(b"\0\0\0\x40" + dice.randbytes(8))
                elif number % 4 == 2:
                    one.sendall(dice.randbytes(64))
                elif number % 4 == 3:
                    one.sendall(b"GET / HTTP/1.1\r\n\r\n")
    finally:
        for one in opened:
            one.close()


def signal_group(pid: int, number: int) -> None:
    """To a process and what it started; nothing if it is gone."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, number)
