"""The sink's producing while the daemon is killed and comes back: nothing missing, nothing out of order."""

from __future__ import annotations

import threading
from pathlib import Path

import pyarrow as pa

from ringleader.clients.blocking.endpoint import Endpoint
from ringleader.clients.produce.arrow import ArrowRows
from ringleader.spark_bridge.batch_reader import RingleaderBatchReader
from ringleader.spark_bridge.fetching import fetch
from ringleader.spark_bridge.sink.produce import SinkProducer, SinkSettings, close_clusters
from tests.support.daemon import Daemon

ROWS, PART, PARTITIONS, KILLS = 30_000, 500, 3, 3


def read(daemon: Daemon) -> dict[int, list[bytes]]:
    """Values by partition, in order."""
    reader = RingleaderBatchReader({"kafka.bootstrap.servers": daemon.bootstrap, "subscribe": "t"})
    found: dict[int, dict[int, bytes]] = {number: {} for number in range(PARTITIONS)}
    for task in reader.partitions():
        for arrow in reader.read(task):
            number = arrow["partition"][0].as_py()
            found[number] |= dict(zip(arrow["offset"].to_pylist(), arrow["value"].to_pylist(), strict=True))
    fetch.close_clusters()
    return {number: [values[at] for at in sorted(values)] for number, values in found.items()}


def test_a_daemon_that_is_killed_and_comes_back_has_every_row_once(tmp_path: Path) -> None:
    values = [b"%06d" % number + b"." * 200 for number in range(ROWS)]
    with Daemon(tmp_path, topics=[f"t:{PARTITIONS}"]) as daemon:
        host, port = daemon.bootstrap.split(":")
        producer = SinkProducer(
            SinkSettings(
                endpoint=Endpoint(((host, int(port)),)),
                topic="t",
                batch_bytes=20_000,
                delivery_timeout_s=100.0,
            )
        )
        kills = [ROWS * number // (KILLS + 1) for number in range(1, KILLS + 1)]
        restarts: list[threading.Thread] = []
        for at in range(0, ROWS, PART):
            if kills and at >= kills[0]:
                kills.pop(0)
                daemon.kill()
                # It comes back while batches are on their way.
                restarts.append(threading.Thread(target=daemon.start))
                restarts[-1].start()
            partitions = pa.array([(at // PART) % PARTITIONS] * PART, pa.int32())
            producer.write_rows(ArrowRows(pa.array(values[at : at + PART]), None, None, None, partitions))
            if restarts and restarts[-1].is_alive():
                restarts[-1].join(60)
        producer.flush()
        producer.close()
        close_clusters()
        found = read(daemon)
    for number in range(PARTITIONS):
        wanted = [v for at, v in enumerate(values) if (at // PART) % PARTITIONS == number]
        assert found[number] == wanted
