"""How a client proves who it is and knows who it talks to: TLS and SASL, also from Kafka's property names."""

from __future__ import annotations

import ssl
from dataclasses import dataclass

from ringleader.clients.sasl import Sasl, SaslOAuthBearer, SaslPlain, SaslScram

__all__ = ["ClientSecurity", "Sasl", "SaslOAuthBearer", "SaslPlain", "SaslScram"]


@dataclass(frozen=True, slots=True)
class ClientSecurity:
    """What `tls=` and `sasl=` of all clients take. None: connections are not encrypted; nobody is asked who
    they are."""

    tls: ssl.SSLContext | None = None
    sasl: Sasl | None = None
