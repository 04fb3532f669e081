"""`make test` starts no JVM of Kafka's: tests of clients that need one are in files whose names say so."""

from __future__ import annotations

import re
from pathlib import Path

from tests.interop.clients.conftest import needs_java

STARTS_JAVA = re.compile(r"tests\.interop\.(kafka|secured|clients\.(beside|java_clients)) import")


def test_what_starts_java_is_named_so() -> None:
    files = sorted((Path(__file__).parent / "clients").glob("test_*.py"))
    starting = {file.name for file in files if STARTS_JAVA.search(file.read_text())}
    assert len(starting) > 20
    assert {name for name in starting if not needs_java(Path(name))} == set()
