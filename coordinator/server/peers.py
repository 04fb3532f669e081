"""Names of peers."""

from __future__ import annotations

import ipaddress
from functools import lru_cache

_REMEMBERED_ADDRESSES = 1_024


@lru_cache(_REMEMBERED_ADDRESSES)
def java_address(address: str) -> str:
    """As Java prints a socket address without a name: `/127.0.0.1`, `/0:0:0:0:0:0:0:1`. DescribeGroups shows
    it as client host, so tools know this form."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return f"/{address}"
    if parsed.version == 4:
        return f"/{parsed}"
    mapped = parsed.ipv4_mapped
    if mapped is not None:
        return f"/{mapped}"
    return "/" + ":".join(f"{int(group, 16):x}" for group in parsed.exploded.split(":"))


def guess_protocol(start: bytes) -> str:
    """The protocol of a peer that does not speak Kafka, as the end of a sentence; "" when it is not known."""
    if start[:1] == b"\x16" and start[1:2] == b"\x03":
        return ": a TLS hello on a plaintext port"
    if start[:4] in (b"GET ", b"POST", b"HEAD", b"PUT ", b"OPTI", b"PRI "):
        return ": HTTP"
    return ""
