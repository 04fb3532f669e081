"""Where clients connect, by name, in Kafka's words: `listeners`, `advertised.listeners`,
`listener.security.protocol.map`. Pure text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from ipaddress import ip_address
from typing import Any, NamedTuple

from ringleader.host.addresses import address_text

EVERYWHERE = "0.0.0.0"
MAX_LISTENERS = 100

_ENTRY = re.compile(r"([0-9A-Za-z_.-]+)://(.*)")
_EXAMPLE = "for example SSL://0.0.0.0:9093 or CLIENT://[::1]:9092"


class SecurityProtocol(StrEnum):
    """Whether a listener encrypts its connections, and whether clients have to authenticate."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"

    @property
    def tls(self) -> bool:
        """Whether connections begin with a TLS handshake."""
        return self.endswith("SSL")

    @property
    def sasl(self) -> bool:
        """Whether clients have to authenticate by SASL."""
        return self.startswith("SASL")


def is_loopback(host: str) -> bool:
    """Whether an address, or `localhost`, is reached from this machine only; any other name may be
    anything."""
    try:
        return ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return host.lower() == "localhost"


class Address(NamedTuple):
    """Host and port; port 0 takes a free one."""

    host: str
    port: int

    def __str__(self) -> str:
        return address_text(self.host, self.port)

    @property
    def is_loopback(self) -> bool:
        """See the function of this name."""
        return is_loopback(self.host)

    @property
    def is_everywhere(self) -> bool:
        """Whether it stands for all addresses of the machine: no address to come to."""
        try:
            return ip_address(self.host.partition("%")[0]).is_unspecified
        except ValueError:
            return not self.host


NOT_SET = Address("", 0)


class NamedAddress(NamedTuple):
    """An entry of `listeners` or `advertised.listeners`."""

    name: str
    address: Address

    def __str__(self) -> str:
        return f"{self.name}://{self.address}"


class NamedProtocol(NamedTuple):
    """An entry of `listener.security.protocol.map`."""

    name: str
    protocol: SecurityProtocol

    def __str__(self) -> str:
        return f"{self.name}:{self.protocol}"


DEFAULT_PROTOCOLS = tuple(NamedProtocol(one.value, one) for one in SecurityProtocol)
"""As in Kafka: a listener that is named after its protocol."""


@dataclass(frozen=True, slots=True)
class Listener:
    """One address that clients connect to."""

    name: str
    """In upper case, as Kafka keeps it."""
    address: Address
    security_protocol: SecurityProtocol
    advertised: Address
    """The address that its clients get. Until it is bound, an empty host or port 0 stands for the bound
    one."""

    def bound(self, address: Address, machine: str) -> Listener:
        """The listener once it is bound to `address`. `machine`: the name of this machine, which clients get
        where no advertised address is set and it listens on all ("0.0.0.0")."""
        host = self.advertised.host or (machine if address.is_everywhere else address.host)
        advertised = Address(host, self.advertised.port or address.port)
        return replace(self, address=address, advertised=advertised)

    def __str__(self) -> str:
        return f"{self.name}://{self.address}"


def listeners_of(
    addresses: Sequence[NamedAddress],
    advertised: Sequence[NamedAddress] = (),
    protocols: Sequence[NamedProtocol] = DEFAULT_PROTOCOLS,
) -> tuple[Listener, ...]:
    """The listeners of these settings. Raises ValueError: one sentence that names the setting."""
    if len(addresses) > MAX_LISTENERS:
        raise ValueError(f"listeners has {len(addresses)}, and there may be {MAX_LISTENERS}")
    _check_names("listeners", addresses)
    _check_names("advertised.listeners", advertised)
    _check_names("listener.security.protocol.map", protocols)
    known: Mapping[str, SecurityProtocol] = dict(protocols)
    by_name = dict(advertised)
    names = [name for name, _ in addresses]
    for name, address in advertised:
        if name not in names:
            raise ValueError(f"advertised.listeners has {name}, which is none of listeners: {_list(names)}")
        if address.is_everywhere:
            raise ValueError(f"advertised.listeners has {name} at no address that clients can come to")
    for name in names:
        if name not in known:
            raise ValueError(
                f"listeners has {name}, which listener.security.protocol.map does not name: add {name}:SSL "
                f"there, say"
            )
    return tuple(
        Listener(name, address, known[name], by_name.get(name, NOT_SET)) for name, address in addresses
    )


def _check_names(setting: str, entries: Sequence[tuple[str, Any]]) -> None:
    names = [name for name, _ in entries]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{setting} has {name} more than once")


def _list(names: Sequence[str]) -> str:
    return ", ".join(names) or "there are none"


# ---- texts ----


def parse_address(text: Any) -> Any:
    """HOST:PORT, an IPv6 host in brackets. Raises ValueError."""
    if not isinstance(text, str):
        return text
    host, colon, port = text.strip().rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ValueError("give it as HOST:PORT, for example 127.0.0.1:9092 or [::1]:9092")
    return Address(host.removeprefix("[").removesuffix("]"), int(port))


def parse_named_addresses(value: Any) -> Any:
    """NAME://HOST:PORT, or a comma separated text or a sequence of these; without a host: everywhere. Raises
    ValueError."""
    return tuple(_named_address(entry) for entry in _entries(value)) if _is_text(value) else value


def _named_address(entry: Any) -> Any:
    if not isinstance(entry, str):
        return NamedAddress(*entry)
    found = _ENTRY.fullmatch(entry.strip())
    if found is None:
        raise ValueError(f"give a listener as NAME://HOST:PORT, {_EXAMPLE}, not {entry.strip()!r}")
    where = found[2] if not found[2].startswith(":") else EVERYWHERE + found[2]
    return NamedAddress(found[1].upper(), parse_address(where))


def parse_named_protocols(value: Any) -> Any:
    """NAME:PROTOCOL, or a comma separated text or a sequence of these. Raises ValueError."""
    return tuple(_named_protocol(entry) for entry in _entries(value)) if _is_text(value) else value


def _named_protocol(entry: Any) -> Any:
    if not isinstance(entry, str):
        return NamedProtocol(*entry)
    name, colon, protocol = entry.strip().partition(":")
    if not name or not colon or protocol.upper() not in SecurityProtocol.__members__:
        raise ValueError(
            f"give it as NAME:PROTOCOL with one of {', '.join(SecurityProtocol)}, not {entry.strip()!r}"
        )
    return NamedProtocol(name.upper(), SecurityProtocol[protocol.upper()])


def _is_text(value: Any) -> bool:
    return isinstance(value, str | list | tuple)


def _entries(value: Any) -> list[Any]:
    parts = [value] if isinstance(value, str) else list(value)
    return [
        part
        for entry in parts
        for part in (entry.split(",") if isinstance(entry, str) else [entry])
        if not isinstance(part, str) or part.strip()
    ]
