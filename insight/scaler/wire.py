"""The messages of KEDA's external scaler (`externalscaler.proto`, package `externalscaler`)."""

from __future__ import annotations

from typing import Any

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

PACKAGE = "externalscaler"
SERVICE = f"{PACKAGE}.ExternalScaler"

# Name, number, type, and the message where the type is one. KEDA reads the integers where the floats are 0.
_MESSAGES: dict[str, list[tuple[str, int, str, str]]] = {
    "ScaledObjectRef": [("name", 1, "STRING", ""), ("namespace", 2, "STRING", "")],
    "IsActiveResponse": [("result", 1, "BOOL", "")],
    "MetricSpec": [("metricName", 1, "STRING", ""), ("targetSize", 2, "INT64", "")],
    "GetMetricSpecResponse": [("metricSpecs", 1, "MESSAGE", "MetricSpec")],
    "GetMetricsRequest": [
        ("scaledObjectRef", 1, "MESSAGE", "ScaledObjectRef"),
        ("metricName", 2, "STRING", ""),
    ],
    "MetricValue": [("metricName", 1, "STRING", ""), ("metricValue", 2, "INT64", "")],
    "GetMetricsResponse": [("metricValues", 1, "MESSAGE", "MetricValue")],
}
_REPEATED = {"metricSpecs", "metricValues"}


def _file() -> FileDescriptorProto:
    file = FileDescriptorProto(name="externalscaler.proto", package=PACKAGE, syntax="proto3")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, number, kind, of in fields:
            _add(message, field, number, kind, of, repeated=field in _REPEATED)
        if name == "ScaledObjectRef":
            _add(message, "scalerMetadata", 3, "MESSAGE", f"{name}.ScalerMetadataEntry", repeated=True)
            entry = message.nested_type.add(name="ScalerMetadataEntry")
            entry.options.map_entry = True
            _add(entry, "key", 1, "STRING", "")
            _add(entry, "value", 2, "STRING", "")
    return file


def _add(
    message: DescriptorProto, name: str, number: int, kind: str, of: str, *, repeated: bool = False
) -> None:
    message.field.add(
        name=name,
        number=number,
        type=getattr(FieldDescriptorProto, f"TYPE_{kind}"),
        type_name=f".{PACKAGE}.{of}" if of else None,
        label=FieldDescriptorProto.LABEL_REPEATED if repeated else FieldDescriptorProto.LABEL_OPTIONAL,
    )


_POOL = DescriptorPool()
_POOL.Add(_file())


def message(name: str) -> Any:
    """The class of a message."""
    return GetMessageClass(_POOL.FindMessageTypeByName(f"{PACKAGE}.{name}"))
