"""What the README shows is run as it stands there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from confluent_kafka import Producer

from tests.support.daemon import Daemon

README = Path(__file__).resolve().parents[2] / "README.md"
SHOWN_ADDRESS = "127.0.0.1:9092"
CITIES = {"Cairo", "Lima", "Oslo", "Perth", "Rome"}


def example(language: str, containing: str) -> str:
    blocks = re.findall(rf"```{language}\n(.*?)```", README.read_text(), flags=re.DOTALL)
    found: str
    (found,) = [block for block in blocks if containing in block]
    return found


def share(process: subprocess.Popen[str]) -> set[str]:
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith("mine: "), line
    return set(re.findall(r"'(\w+)'", line))


def test_the_python_example_shards_its_work(tmp_path: Path) -> None:
    with Daemon(tmp_path, options=["--group-initial-rebalance-delay-ms", "0"]) as daemon:
        code = example("python", "GroupMember").replace(SHOWN_ADDRESS, daemon.bootstrap)
        assert daemon.bootstrap in code
        command = [sys.executable, "-u", "-c", code]
        members = []
        try:
            for _ in range(2):
                members.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
                first = share(members[0])
                if len(members) == 1:
                    assert first == CITIES
            second = share(members[1])
        finally:
            for member in members:
                member.kill()
                member.communicate()
        assert first | second == CITIES
        assert not first & second
        assert {len(first), len(second)} == {2, 3}


def test_the_consumer_example_consumes(tmp_path: Path) -> None:
    options = ["--group-initial-rebalance-delay-ms", "0", "--topic", "orders:1"]
    with Daemon(tmp_path, options=options) as daemon:
        code = example("python", "GroupConsumer").replace(SHOWN_ADDRESS, daemon.bootstrap)
        assert daemon.bootstrap in code
        producer = Producer({"bootstrap.servers": daemon.bootstrap})
        for number in range(7):
            producer.produce("orders", b"%d" % number)
        assert producer.flush(30) == 0
        reader = subprocess.Popen([sys.executable, "-u", "-c", code], stdout=subprocess.PIPE, text=True)
        try:
            assert reader.stdout is not None
            read = 0
            while read < 7:
                line = reader.stdout.readline().split()
                assert line[:2] == ["orders", "0"], line
                read += int(line[2])
            assert (read, line[-3]) == (7, "0")
        finally:
            reader.kill()
            reader.communicate()
