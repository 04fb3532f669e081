"""The counters of members and consumers, for monitoring: as Prometheus text, and as OpenTelemetry
instruments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from ringleader.clients.fetch.model import ConsumerMetrics, FetchMetrics
from ringleader.clients.metrics import MemberMetrics, ProcessMetrics

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, Meter, Observation

Labels = dict[str, str]
Figures = MemberMetrics | FetchMetrics


class Measured(Protocol):
    """A member or a consumer, of whatever kind."""

    def metrics(self) -> Figures: ...


class Sample(NamedTuple):
    """One value, and what it is of."""

    labels: Labels
    value: float


class Metric(NamedTuple):
    """One name in a monitoring system. `name` as "member.rebalance_seconds"; times are in seconds."""

    name: str
    kind: Literal["counter", "gauge"]
    unit: Literal["s", "By", "1"]
    read: Callable[[Figures], Iterator[Sample]]


_GAUGES = frozenset(
    {
        "generation",
        "last_rebalance_ms",
        "assigned_age_ms",
        "heartbeat_round_trip_ms",
        "last_heartbeat_age_ms",
        "commits_waiting",
        "offsets_stored",
        "work_in_hand",
        "last_poll_age_ms",
        "rebalance_ms_max",
        "revoked_ms_max",
        "heartbeat_round_trip_ms_max",
        "commit_ms_max",
        "buffered_bytes",
        "records_waiting",
        "records_running",
        "records_resting",
    }
)
_LABELS = ("group", "client_id", "member_id")
_OTHERWISE = (*_LABELS, "phase", "lags")
"""Fields that are no numbers."""


def prometheus_lines(measured: Iterable[Measured]) -> str:
    """The figures of these members and consumers in Prometheus' text format (0.0.4), by group, client id and
    member id; lags by topic and partition, too.

    Times are in seconds. For prometheus-client, serve this text beside `generate_latest()`.
    """
    found = [one.metrics() for one in measured]
    lines: list[str] = []
    for metric in METRICS:
        samples = _samples(metric, found)
        name = "ringleader_" + metric.name.replace(".", "_") + ("_total" if metric.kind == "counter" else "")
        if samples:
            lines.append(f"# TYPE {name} {metric.kind}")
        lines += [f"{name}{{{_written(labels)}}} {value}" for labels, value in samples]
    return "".join(f"{line}\n" for line in lines)


def opentelemetry_instruments(meter: Meter, measured: Iterable[Measured]) -> None:
    """Register the figures of these members and consumers with a meter, as observable counters and gauges:
    the names are those of `prometheus_lines` with dots, as `ringleader.consumer.records`.

    `measured` is gone through at each collection: what is put into a list later is collected, too. Needs the
    package opentelemetry-api. Raises ValueError for what can be gone through only once.
    """
    from opentelemetry.metrics import Observation

    if iter(measured) is measured:
        raise ValueError("measured has to be a list, say: it is gone through again and again")

    def observing(metric: Metric) -> Callable[[CallbackOptions], list[Observation]]:
        def observe(_options: CallbackOptions) -> list[Observation]:
            samples = _samples(metric, [one.metrics() for one in list(measured)])
            return [Observation(value, labels) for labels, value in samples]

        return observe

    for metric in METRICS:
        create: Any = meter.create_observable_gauge
        if metric.kind == "counter":
            create = meter.create_observable_counter
        create("ringleader." + metric.name, callbacks=[observing(metric)], unit=metric.unit)


def _samples(metric: Metric, found: Iterable[Figures]) -> list[Sample]:
    """One for each set of labels: counters of the same labels are added up, of gauges the largest counts."""
    values: dict[tuple[tuple[str, str], ...], float] = {}
    for figures in found:
        for labels, value in metric.read(figures):
            key = tuple(labels.items())
            before = values.get(key)
            if before is not None:
                value = before + value if metric.kind == "counter" else max(before, value)
            values[key] = value
    return [Sample(dict(key), value) for key, value in values.items()]


def _member(figures: Figures) -> MemberMetrics | None:
    if isinstance(figures, ConsumerMetrics):
        return figures.member
    return figures if isinstance(figures, MemberMetrics) else None


def _processing(figures: Figures) -> ProcessMetrics | None:
    return figures.processing if isinstance(figures, ConsumerMetrics) else None


def _labels(figures: Figures) -> Labels:
    member = _member(figures)
    if member is not None:
        return {name: getattr(member, name) for name in _LABELS}
    assert isinstance(figures, FetchMetrics)
    return {"client_id": figures.client_id}


def _metrics_of(room: str, kind: type[Any], pick: Callable[[Figures], object | None]) -> Iterator[Metric]:
    """Those of the number fields of a class of figures."""

    def reading(field: str) -> Callable[[Figures], Iterator[Sample]]:
        scale = 1000 if "_ms" in field else 1

        def read(figures: Figures) -> Iterator[Sample]:
            value = getattr(pick(figures), field, None)
            if value is not None:
                yield Sample(_labels(figures), value / scale if scale > 1 else value)

        return read

    for field in (one.name for one in fields(kind)):
        if field not in _OTHERWISE:
            name = field.removesuffix("_total").replace("_ms", "_seconds")
            unit: Literal["s", "By", "1"] = "s" if "_ms" in field else "By" if "_bytes" in field else "1"
            counted: Literal["counter", "gauge"] = "gauge" if field in _GAUGES else "counter"
            yield Metric(f"{room}.{name}", counted, unit, reading(field))


def _phase(figures: Figures) -> Iterator[Sample]:
    if (member := _member(figures)) is not None:
        yield Sample({**_labels(figures), "phase": member.phase}, 1)


def _lag(figures: Figures) -> Iterator[Sample]:
    if isinstance(figures, FetchMetrics):
        for (topic, partition), lag in figures.lags.items():
            yield Sample({**_labels(figures), "topic": topic, "partition": str(partition)}, lag)


METRICS = (
    *_metrics_of("member", MemberMetrics, _member),
    Metric("member.phase", "gauge", "1", _phase),
    *_metrics_of("consumer", FetchMetrics, lambda figures: figures),
    Metric("consumer.lag", "gauge", "1", _lag),
    *_metrics_of("process", ProcessMetrics, _processing),
)


def _written(labels: Mapping[str, str]) -> str:
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
