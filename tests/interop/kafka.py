"""A real Apache Kafka broker on this machine: one process (KRaft: broker and controller), free ports."""

from __future__ import annotations

import base64
import hashlib
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from ringleader import SyncGroupConsumer, SyncProducer
from tests.interop.maven import InteropError, jars, java, java_build, kept
from tests.support.ports import free_ports
from tests.support.tied import tied

POM = Path(__file__).with_name("pom.xml")
VERSION = "4.3.0"
OLDER_POM = Path(__file__).with_name("older") / "pom.xml"
"""The last version before 4.0."""

FAST_START = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""Not for measuring."""

TEST_JVM = ("-Xmx512m", *FAST_START)
TOOL_JVM = ("-Xmx256m", *FAST_START)

BENCH_JVM = ("-Xms1g", "-Xmx1g")
"""The JVM's own choice of collector and compilers."""

TEST_PROPERTIES = {
    # Sessions of a tenth of a second keep the waits of the tests short.
    "group.min.session.timeout.ms": "100",
    "group.initial.rebalance.delay.ms": "0",
}

FEW = 5
FEW_PARTITIONS = dict.fromkeys(
    ("offsets.topic.num.partitions", "transaction.state.log.num.partitions"), str(FEW)
)
"""The first group and the first transaction of a broker wait for all of them, 50 by default."""

KAFKAS_PARTITIONS = dict.fromkeys(FEW_PARTITIONS, "50")

_STARTED = "Kafka Server started"
_META = "meta.properties"
_START_TIMEOUT_S = 90
_STOP_TIMEOUT_S = 60
_ATTEMPTS = 3

_PINNED = "import os, sys; os.sched_setaffinity(0, eval(sys.argv[1])); os.execv(sys.argv[2], sys.argv[2:])"
"""Runs a command on some processors only: all threads of a JVM must be born there."""

_LOG4J = """\
<Configuration status="WARN">
  <Appenders>
    <Console name="out" target="SYSTEM_OUT"><PatternLayout pattern="%d %p %m (%c)%n"/></Console>
  </Appenders>
  <Loggers><Root level="INFO"><AppenderRef ref="out"/></Root></Loggers>
</Configuration>
"""


def classpath(pom: Path = POM) -> str:
    """All jars of Apache Kafka with its console tools, as `java -cp` takes it. Raises `InteropError`."""
    return str(jars(pom) / "*")


def command(
    main_class: str, *arguments: str, jvm: Sequence[str] = TEST_JVM, pom: Path = POM, classes: str = ""
) -> list[str]:
    """The command that runs a program of Kafka's, or one of `classes`. A JVM that is to start fast finds
    Kafka's classes parsed and verified. Raises `InteropError`."""
    parsed = pom == POM and set(FAST_START) <= set(jvm)
    shared = [f"-XX:SharedArchiveFile={_archive()}"] if parsed else []
    # The class path of the archive comes first, or the JVM does not use it.
    path = f"{classpath(pom)}:{classes}" if classes else classpath(pom)
    return [java(), *jvm, *shared, "-cp", path, main_class, *arguments]


def _archive() -> Path:
    """The classes of a broker that has done a bit of everything; a start then takes half of the CPU time."""

    def make(fresh: Path) -> None:
        at_its_end = ("-XX:+UseSerialGC", f"-XX:ArchiveClassesAtExit={fresh}")
        with tempfile.TemporaryDirectory() as directory:
            broker = KafkaBroker(Path(directory) / "broker", jvm=at_its_end)
            with broker:
                _a_bit_of_everything(broker.bootstrap)
        if not fresh.exists():
            raise InteropError(f"Java left no archive of classes; the last it said: {broker.log[-5:]}")

    return kept(jars(POM) / f"{java_build()}.jsa", make)


def _a_bit_of_everything(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic("t", 1)])["t"].result(60)
    with SyncProducer(bootstrap, transactional_id="t") as producer, producer.transaction():
        producer.send_and_wait("t", b"v")
    with SyncGroupConsumer(bootstrap, "g", ["t"], auto_offset_reset="earliest") as consumer:
        consumer.getmany(timeout_s=60)
        consumer.commit()


def tool(
    main_class: str,
    *arguments: str,
    timeout_s: float = 60,
    stdin: str | None = None,
    jvm: Sequence[str] = TOOL_JVM,
    pom: Path = POM,
) -> subprocess.CompletedProcess[str]:
    """Run a console tool by its main class and wait for its end."""
    return subprocess.run(
        command(main_class, *arguments, jvm=jvm, pom=pom),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


class KafkaBroker:
    """`with KafkaBroker(directory) as broker:` or `start` and `stop`. Its files are in `directory`; a second
    `start` in the same directory finds them again, on the same ports.

    `properties` go over those that every broker here has. `cpus`: the processors that it may use.
    `listeners`: more of them beside the plain one, by name, with their security protocols; what each needs is
    up to `properties`. `scram_users`: whom SCRAM-SHA-256 and SCRAM-SHA-512 know, with their passwords.
    `cluster_id`: that of a cluster of several, which also call `choose_ports` and `format`. `pom`: which
    version it is. `advertise`: the port of the same host that clients of a further listener are directed to,
    from its name and its own port. `keep_log`: a file that gets all it logs.
    """

    def __init__(
        self,
        directory: Path,
        *,
        properties: Mapping[str, str] | None = None,
        jvm: Sequence[str] = TEST_JVM,
        cpus: Sequence[int] | None = None,
        listeners: Mapping[str, str] | None = None,
        scram_users: Mapping[str, str] | None = None,
        cluster_id: str | None = None,
        pom: Path = POM,
        advertise: Callable[[str, int], int] | None = None,
        keep_log: Path | None = None,
    ) -> None:
        self.directory = directory
        self._keep_log = Path(os.devnull) if keep_log is None else keep_log
        self.host = "127.0.0.1"
        self.port = 0
        self.ports: dict[str, int] = {}
        """Of the further listeners."""
        self.log: list[str] = []
        """The last lines it logged."""
        self._controller_port = 0
        self._properties = {**TEST_PROPERTIES, **(properties or {})}
        self._jvm = tuple(jvm)
        self._cpus = None if cpus is None else set(cpus)
        self._listeners = dict(listeners or {})
        self._scram_users = dict(scram_users or {})
        self._cluster_id = cluster_id or fresh_cluster_id()
        self._pom = pom
        self._advertise = advertise or (lambda _listener, port: port)
        self._advertised: dict[str, int] = {}
        self._voters = ""
        self._process: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None
        self._started = threading.Event()

    @property
    def bootstrap(self) -> str:
        """HOST:PORT that clients connect to."""
        return f"{self.host}:{self.port}"

    def address(self, listener: str) -> str:
        """HOST:PORT of a further listener."""
        return f"{self.host}:{self.ports[listener]}"

    @property
    def controller(self) -> str:
        """HOST:PORT of its controller."""
        return f"{self.host}:{self._controller_port}"

    @property
    def running(self) -> bool:
        """Whether it was started, and neither stopped nor killed by us."""
        return self._process is not None

    @property
    def pid(self) -> int:
        """Of the running process."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start it and wait until it serves. Raises `InteropError`."""
        if self.port:
            if not self._run():
                raise InteropError(self._why())
            return
        for _ in range(_ATTEMPTS):
            self.choose_ports()
            self.format()
            if self._run():
                return
        # Somebody else took the ports each time, or there is another reason: the log says.
        raise InteropError(self._why())

    def choose_ports(self) -> None:
        """Those that it will have, free at the moment."""
        self.port, self._controller_port, *others = free_ports(2 + len(self._listeners))
        self.ports = dict(zip(self._listeners, others, strict=True))
        self._advertised = {name: self._advertise(name, port) for name, port in self.ports.items()}

    def format(self, voters: str = "") -> None:
        """Make its directory again. `voters`: all controllers of its cluster, ID@HOST:PORT each; default:
        itself alone. Raises `InteropError`."""
        self._voters = voters or f"1@{self.controller}"
        shutil.rmtree(self.directory, ignore_errors=True)
        self.directory.mkdir(parents=True)
        (self.directory / "log4j2.xml").write_text(_LOG4J)
        lines = [f"{key}={value}" for key, value in self._all_properties().items()]
        (self.directory / "server.properties").write_text("\n".join(lines) + "\n")
        users = [
            f"--add-scram=SCRAM-{kind}=[name={name},password={password}]"
            for kind in ("SHA-256", "SHA-512")
            for name, password in self._scram_users.items()
        ]
        # The same as Kafka's tool makes but for the ids: its JVM would take as long as the broker's start.
        data = self.directory / "data"
        shutil.copytree(self._formatted(users), data)
        properties = (data / _META).read_text().splitlines()
        mine = {
            "node.id": self._all_properties()["node.id"],
            "directory.id": fresh_cluster_id(),
            "cluster.id": self._cluster_id,
        }
        others = [line for line in properties if line.partition("=")[0] not in mine]
        lines = [*others, *(f"{key}={value}" for key, value in mine.items())]
        (data / _META).write_text("\n".join(lines) + "\n")

    def stop(self) -> None:
        """SIGTERM, and wait for a clean end."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL."""
        self._end(signal.SIGKILL)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # ---- inside ----

    def _formatted(self, users: Sequence[str]) -> Path:
        """A directory that Kafka's tool has formatted, with these users."""

        def make(fresh: Path) -> None:
            with tempfile.TemporaryDirectory() as directory:
                properties = Path(directory) / "server.properties"
                lines = [f"{key}={value}" for key, value in self._all_properties().items()]
                properties.write_text("\n".join([*lines, f"log.dirs={fresh}"]) + "\n")
                format_it = ("kafka.tools.StorageTool", "format", "-t", self._cluster_id, "-c")
                done = tool(*format_it, str(properties), *users, jvm=(), pom=self._pom)
                if done.returncode:
                    raise InteropError(f"Kafka's storage could not be formatted: {done.stdout}{done.stderr}")

        name = hashlib.sha256("\n".join(users).encode()).hexdigest()[:16]
        return kept(jars(self._pom) / f"formatted-{name}", make)

    def _properties_file(self) -> str:
        return str(self.directory / "server.properties")

    def _all_properties(self) -> dict[str, str]:
        ports = {"PLAINTEXT": self.port, **self.ports}
        listeners = ",".join(f"{name}://{self.host}:{port}" for name, port in ports.items())
        public_ports = {**ports, **self._advertised}
        advertised = ",".join(f"{name}://{self.host}:{port}" for name, port in public_ports.items())
        protocols = {"PLAINTEXT": "PLAINTEXT", "CONTROLLER": "PLAINTEXT", **self._listeners}
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": self._voters,
            "controller.listener.names": "CONTROLLER",
            "listeners": f"{listeners},CONTROLLER://{self.controller}",
            "advertised.listeners": advertised,
            "listener.security.protocol.map": ",".join(f"{name}:{of}" for name, of in protocols.items()),
            "log.dirs": str(self.directory / "data"),
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            **FEW_PARTITIONS,
            **self._properties,
        }

    def _run(self) -> bool:
        self.log.clear()
        self._started.clear()
        pinned = [] if self._cpus is None else [sys.executable, "-c", _PINNED, repr(self._cpus)]
        self._process = subprocess.Popen(
            [
                *pinned,
                *command(
                    "kafka.Kafka",
                    self._properties_file(),
                    jvm=(*self._jvm, f"-Dlog4j2.configurationFile={self.directory / 'log4j2.xml'}"),
                    pom=self._pom,
                ),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        tied(self._process)
        self._reader = threading.Thread(target=self._read, args=(self._process,), daemon=True)
        self._reader.start()
        up = False
        try:
            up = self._started.wait(_START_TIMEOUT_S) and self._process.poll() is None
        finally:  # Ctrl-C in the middle of it, too
            if not up:
                self.kill()
        return up

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        with self._keep_log.open("a") as kept:
            for line in process.stdout:
                kept.write(line)
                self.log.append(line.rstrip())
                del self.log[:-200]
                if _STARTED in line:
                    self._started.set()
        self._started.set()  # it ended: a caller that waits for its start need not wait longer

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(how)
        try:
            process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if self._reader is not None:
            self._reader.join()
        assert process.stdout is not None
        process.stdout.close()

    def _why(self) -> str:
        last = "\n".join(self.log[-10:])
        return f"Apache Kafka did not start; the last it said:\n{last}"


def fresh_cluster_id() -> str:
    """As Kafka makes them."""
    made = base64.urlsafe_b64encode(secrets.token_bytes(16)).decode().rstrip("=")
    return "A" + made[1:] if made.startswith("-") else made  # the tool would take it for an option
