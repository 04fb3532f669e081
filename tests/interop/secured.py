"""An Apache Kafka broker that asks who its clients are, in each way that the client library knows."""

from __future__ import annotations

import base64
import json
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ringleader.clients.admin import Admin
from ringleader.clients.connection.security import Sasl, SaslScram
from tests.interop.kafka import KafkaBroker
from tests.support.certificates import Certificates
from tests.support.entrance import LISTENER, MECHANISM_OF, OFFERED, PROTOCOL, password_of
from tests.support.principals import ADMINISTRATOR

USER, PASSWORD = "alice", "open sesame"
"""Known to PLAIN and to SCRAM."""
OTHER = "olivia"
"""With the same password."""
LIFETIME_MS = 1_500
"""How long a session of the listener BRIEF lasts."""

LISTENERS = {
    "SECURE": "SASL_SSL",
    "SASL": "SASL_PLAINTEXT",
    "BRIEF": "SASL_PLAINTEXT",
    "MUTUAL": "SSL",
}
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")

_MODULES = "org.apache.kafka.common.security"
_LOGINS = {
    "PLAIN": f'{_MODULES}.plain.PlainLoginModule required user_{USER}="{PASSWORD}" '
    f'user_{OTHER}="{PASSWORD}";',
    "SCRAM-SHA-256": f"{_MODULES}.scram.ScramLoginModule required;",
    "SCRAM-SHA-512": f"{_MODULES}.scram.ScramLoginModule required;",
    "OAUTHBEARER": f"{_MODULES}.oauthbearer.OAuthBearerLoginModule required "
    'unsecuredLoginStringClaim_sub="broker";',
}


def secured_broker(directory: Path, certificates: Certificates) -> KafkaBroker:
    """Not started yet. Listener MUTUAL asks for a client's certificate; sessions of BRIEF end soon."""
    properties = {
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(certificates.server),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(certificates.authority),
        "listener.name.mutual.ssl.client.auth": "required",
        "connection.failed.authentication.delay.ms": "10",
    }
    for name, protocol in LISTENERS.items():
        if not protocol.startswith("SASL"):
            continue
        for mechanism, login in _LOGINS.items():
            prefix = f"listener.name.{name.lower()}.{mechanism.lower()}"
            properties[f"{prefix}.sasl.jaas.config"] = login
            if name == "BRIEF":
                properties[f"{prefix}.connections.max.reauth.ms"] = str(LIFETIME_MS)
    return KafkaBroker(
        directory, properties=properties, listeners=LISTENERS, scram_users={USER: PASSWORD, OTHER: PASSWORD}
    )


def guarded_broker(
    directory: Path, certificates: Certificates, properties: Mapping[str, str] | None = None
) -> KafkaBroker:
    """Not started yet: principals come through a listener of SASL_SSL, and ACLs say what they may. A client
    that comes through the plain one is a super user."""
    users = " ".join(f'user_{user}="{password_of(user)}"' for user in MECHANISM_OF)
    return KafkaBroker(
        directory,
        listeners={LISTENER: PROTOCOL},
        scram_users={user: password_of(user) for user in MECHANISM_OF},
        properties={
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": f"User:{ADMINISTRATOR}",
            "sasl.enabled.mechanisms": ",".join(OFFERED),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(certificates.server),
            f"listener.name.{LISTENER.lower()}.plain.sasl.jaas.config": (
                f"{_MODULES}.plain.PlainLoginModule required {users};"
            ),
            **{
                f"listener.name.{LISTENER.lower()}.{mechanism.lower()}.sasl.jaas.config": _LOGINS[mechanism]
                for mechanism in OFFERED
                if mechanism != "PLAIN"
            },
            **(properties or {}),
        },
    )


@dataclass(frozen=True, slots=True)
class Door:
    """A way into a broker: where, and as whom."""

    bootstrap: str
    tls: ssl.SSLContext | None = None
    sasl: Sasl | None = None

    @property
    def security(self) -> dict[str, Any]:
        """As all clients take it."""
        return {"tls": self.tls, "sasl": self.sasl}


@dataclass(frozen=True, slots=True)
class Secured:
    """A running broker and whom its clients may trust."""

    broker: KafkaBroker
    certificates: Certificates

    def plain(self) -> Door:
        """Without TLS and SASL."""
        return Door(self.broker.bootstrap)

    def secure(self, sasl: Sasl | None = None) -> Door:
        """With both."""
        tls = self.certificates.client_tls()
        return Door(self.broker.address("SECURE"), tls, sasl or SaslScram(USER, PASSWORD))

    def door(self, listener: str, *, tls: bool = False, sasl: Sasl | None = None) -> Door:
        """Any listener, right or wrong."""
        return Door(self.broker.address(listener), self.certificates.client_tls() if tls else None, sasl)


async def make_topics(bootstrap: str, topics: Mapping[str, int]) -> None:
    """Topics with `partitions` partitions."""
    async with Admin(bootstrap, timeout_ms=30_000) as admin:
        for name, partitions in topics.items():
            await admin.create_topic(name, partitions)


def token(subject: str = USER, lifetime_s: float = 3_600) -> str:
    """An unsigned token, as Kafka takes it unless it is configured to check signatures."""

    def part(content: dict[str, object]) -> str:
        return base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")

    now_s = time.time()
    return f"{part({'alg': 'none'})}.{part({'sub': subject, 'iat': now_s, 'exp': now_s + lifetime_s})}."
