"""``ringleader keda``, asked over gRPC as KEDA asks it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from ringleader.insight.history import History
from ringleader.insight.scaler.serving import trigger_of
from ringleader.insight.scaler.wire import SERVICE, message
from ringleader.testing.coordinator import Coordinator
from tests.cli.test_watch import running, watching
from tests.support.certificates import Certificates
from tests.support.command import PATIENCE_S, environment, run_here
from tests.support.ports import free_address

TOPIC = "orders"


@pytest.fixture
def coordinator() -> Iterator[Coordinator]:
    with Coordinator(topics={TOPIC: 6}) as started:
        yield started


class Keda:
    """KEDA's side of the wire."""

    def __init__(self, address: str, tls: grpc.ChannelCredentials | None = None) -> None:
        self._channel = grpc.insecure_channel(address) if tls is None else grpc.secure_channel(address, tls)

    def close(self) -> None:
        self._channel.close()

    def ask(self, method: str, answer: str, request: Any) -> Any:
        call = self._channel.unary_unary(
            f"/{SERVICE}/{method}",
            request_serializer=lambda one: one.SerializeToString(),
            response_deserializer=message(answer).FromString,
        )
        return call(request, timeout=PATIENCE_S)

    def active(self, **metadata: str) -> bool:
        return bool(self.ask("IsActive", "IsActiveResponse", trigger(**metadata)).result)

    def members(self, **metadata: str) -> int:
        """The replicas that the autoscaler makes of the metric."""
        reference = trigger(**metadata)
        [spec] = self.ask("GetMetricSpec", "GetMetricSpecResponse", reference).metricSpecs
        request = message("GetMetricsRequest")(scaledObjectRef=reference, metricName=spec.metricName)
        [value] = self.ask("GetMetrics", "GetMetricsResponse", request).metricValues
        assert value.metricName == spec.metricName
        return -(-int(value.metricValue) // int(spec.targetSize))

    def first_of_stream(self, **metadata: str) -> bool:
        call = self._channel.unary_stream(
            f"/{SERVICE}/StreamIsActive",
            request_serializer=lambda one: one.SerializeToString(),
            response_deserializer=message("IsActiveResponse").FromString,
        )
        stream = call(trigger(**metadata), timeout=PATIENCE_S)
        try:
            return bool(next(stream).result)
        finally:
            stream.cancel()

    def refused(self, **metadata: str) -> tuple[grpc.StatusCode, str] | None:
        """None: it answers."""
        try:
            self.active(**metadata)
        except grpc.RpcError as error:
            return error.code(), error.details()
        return None

    def refused_in_time(self, **metadata: str) -> tuple[grpc.StatusCode, str]:
        deadline_s = time.monotonic() + PATIENCE_S
        while (found := self.refused(**metadata)) is None:
            assert time.monotonic() < deadline_s
            time.sleep(0.1)  # of another process
        return found


def trigger(**metadata: str) -> Any:
    known = {"scalerAddress": "scaler:6000", **metadata}
    return message("ScaledObjectRef")(name="billing", namespace="shop", scalerMetadata=known)


@contextmanager
def scaling(history: Path, *arguments: str, tls: grpc.ChannelCredentials | None = None) -> Iterator[Keda]:
    """The command, and a client of it."""
    given = ["--history", str(history), "--listen", free_address(), *arguments]
    with running(environment(""), "keda", *given) as one:
        keda = Keda(one.says("listens on 127.0.0.1:").partition("listens on ")[2].partition(";")[0], tls)
        try:
            yield keda
        finally:
            keda.close()


def until(keda: Keda, wanted: int, **metadata: str) -> None:
    """The watcher measures every few seconds."""
    deadline_s = time.monotonic() + PATIENCE_S
    while (found := keda.members(**metadata)) != wanted:
        assert time.monotonic() < deadline_s, found
        time.sleep(0.1)  # of another process


def test_members_are_asked_for_by_the_partitions_that_would_use_them(
    coordinator: Coordinator, tmp_path: Path
) -> None:
    history = tmp_path / "prod.sqlite"
    coordinator.produce(TOPIC, *[b"x"] * 500, partition=0)
    for partition in (1, 2):
        coordinator.produce(TOPIC, *[b"x"] * 5, partition=partition)
    done = run_here(
        coordinator.bootstrap, "groups", "reset", "billing", "--topic", TOPIC, "--to-earliest", "--execute"
    )
    assert done.code == 0, done.err
    with watching(coordinator, history, "--no-page") as watcher:
        watcher.says("the history is in")
        with scaling(history) as keda:
            until(keda, 2, group="billing", lagThreshold="100")  # the hot one, and one for both others
            assert keda.members(group="billing", lagThreshold="5") == 3
            assert keda.members(group="billing", topics=TOPIC, lagThreshold="1000") == 1
            assert keda.active(group="billing")
            assert not keda.active(group="billing", activationLagThreshold="510")
            assert keda.first_of_stream(group="billing")
            assert keda.members(group="billing", topics="others") == 0
            assert keda.members(group="not-there-yet") == 1
            assert keda.active(group="not-there-yet"), "it cannot commit before it has a member"
            assert not keda.active(group="billing", topics="others")
            assert keda.refused() == (grpc.StatusCode.INVALID_ARGUMENT, "the trigger has no `group`.")
            coordinator.stop()
            code, says = keda.refused_in_time(group="billing")
            assert code is grpc.StatusCode.UNAVAILABLE
            assert "the cluster does not answer its watcher" in says


@pytest.mark.parametrize("shown", [True, False])
def test_with_an_authority_only_those_with_its_certificates_are_answered(shown: bool, tmp_path: Path) -> None:
    certificates = Certificates(tmp_path / "certificates")
    pem = certificates.issued("keda").read_bytes() if shown else None
    tls = grpc.ssl_channel_credentials(certificates.authority.read_bytes(), pem, pem)
    options = ["--certificate", str(certificates.server), "--client-authority", str(certificates.authority)]
    history = tmp_path / "prod.sqlite"
    History.open(history).close()
    with scaling(history, *options, tls=tls) as keda:
        if shown:
            assert keda.members(group="not-there-yet") == 1
        else:
            code, _ = keda.refused_in_time(group="not-there-yet")
            assert code is grpc.StatusCode.UNAVAILABLE


@pytest.mark.parametrize(
    ("metadata", "says"),
    [
        ({}, "has no `group`"),
        ({"group": "g", "lagThreshold": "0"}, "`lagThreshold` is a whole number from 1 on, not '0'"),
        ({"group": "g", "lagThreshold": "1e3"}, "not '1e3'"),
        ({"group": "g", "lagThreshold": "9" * 400}, "`lagThreshold` is a whole number"),
        (
            {"group": "g", "activationLagThreshold": "-1"},
            "`activationLagThreshold` is a whole number from 0 on",
        ),
    ],
)
def test_a_trigger_that_is_wrong_is_one_sentence(metadata: dict[str, str], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        trigger_of(metadata)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--listen", "0.0.0.0:6000"], "0.0.0.0 can be reached from other machines: give --client-authority"),
        (["--listen", "here:x"], "--listen: "),
        (["--client-authority", "ca.pem"], "certificates are shown over TLS: give --certificate, too."),
        (["--certificate", "not-there.pem"], "not-there.pem: No such file or directory."),
    ],
)
def test_what_cannot_be_is_one_sentence(arguments: list[str], says: str, tmp_path: Path) -> None:
    done = run_here(None, "keda", "--history", str(tmp_path / "none.sqlite"), *arguments)
    assert done.code == 2
    assert says in done.err


def test_without_a_history_it_says_how_to_begin_one(tmp_path: Path) -> None:
    done = run_here(None, "keda", "--history", str(tmp_path / "none.sqlite"))
    assert done.code == 1
    assert "`ringleader watch --history" in done.err
