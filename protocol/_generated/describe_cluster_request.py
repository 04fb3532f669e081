"""DescribeClusterRequest: written by ringleader.protocol.codegen from its declaration; do not edit."""

from struct import Struct
from struct import error as struct_error

from ringleader.protocol.explain import explain, refused
from ringleader.protocol.messages.admin import (
    DescribeClusterRequest,
)
from ringleader.protocol.wire import UNLIMITED, skip_tags

_READ_Z = Struct(">?").unpack_from
_READ_Zb = Struct(">?b").unpack_from
_WRITE_Zbx = Struct(">?bx").pack
_WRITE_Zx = Struct(">?x").pack


def decode_v0(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[DescribeClusterRequest, int]:
    start = pos
    try:
        include_cluster_authorized_operations_1, = _READ_Z(data, pos)
        pos += 1
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return DescribeClusterRequest(include_cluster_authorized_operations_1, 1), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DescribeClusterRequest, 0, data, start, budget) from None


def encode_v0(message: DescribeClusterRequest) -> bytes:
    try:
        if message.endpoint_type != 1:
            raise ValueError("endpoint_type cannot be sent in version 0")
        return _WRITE_Zx(message.include_cluster_authorized_operations)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(DescribeClusterRequest, 0, error) from error


def decode_v1(data: bytes, pos: int, budget: int = UNLIMITED) -> tuple[DescribeClusterRequest, int]:
    start = pos
    try:
        end = len(data)
        include_cluster_authorized_operations_1, endpoint_type_2 = _READ_Zb(data, pos)
        pos += 2
        if data[pos]:
            budget -= data[pos] * 24
            if budget < 0:
                raise ValueError
            pos = skip_tags(data, pos)
        else:
            pos += 1
        return DescribeClusterRequest(include_cluster_authorized_operations_1, endpoint_type_2), pos
    except (IndexError, ValueError, struct_error):
        raise explain(DescribeClusterRequest, 1, data, start, budget) from None


def encode_v1(message: DescribeClusterRequest) -> bytes:
    try:
        return _WRITE_Zbx(message.include_cluster_authorized_operations, message.endpoint_type)
    except (AttributeError, TypeError, ValueError, struct_error) as error:
        raise refused(DescribeClusterRequest, 1, error) from error
