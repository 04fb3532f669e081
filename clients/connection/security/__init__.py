"""How a client proves who it is and knows who it talks to: TLS and SASL, also from Kafka's property names."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass

from ringleader.clients.connection.security.properties import LoginModule, parse_jaas
from ringleader.clients.connection.security.sasl import (
    SCRAM_HASHES,
    Sasl,
    SaslOAuthBearer,
    SaslPlain,
    SaslScram,
)
from ringleader.clients.connection.security.stores import tls_from_properties

__all__ = [
    "ClientSecurity",
    "Sasl",
    "SaslOAuthBearer",
    "SaslPlain",
    "SaslScram",
    "security_from_properties",
]

PROTOCOLS = {
    "PLAINTEXT": (False, False),
    "SSL": (True, False),
    "SASL_PLAINTEXT": (False, True),
    "SASL_SSL": (True, True),
}
"""security.protocol -> with TLS, with SASL."""

NEEDS_PROTOCOL = (
    "sasl.jaas.config",
    "sasl.username",
    "sasl.password",
    "ssl.truststore.location",
    "ssl.truststore.certificates",
    "ssl.keystore.location",
    "ssl.ca.location",
    "ssl.ca.pem",
    "ssl.certificate.location",
    "ssl.certificate.pem",
)
"""A user that sets one of these wants more than the default, a connection that others can read."""

REFUSED = {
    "ssl.cipher.suites": "the ciphers are those of this machine's OpenSSL",
    "ssl.engine.factory.class": "Java classes cannot be loaded",
    "ssl.engine.location": "OpenSSL engines are not loaded",
    "ssl.providers": "OpenSSL providers are not loaded",
    "ssl.crl.location": "revocation lists are not read",
    "ssl.keystore.alias": "a PEM file holds one key",
    "security.providers": "Java classes cannot be loaded",
    "sasl.login.class": "Java classes cannot be loaded",
    "sasl.client.callback.handler.class": "Java classes cannot be loaded",
}
"""The properties that would be unsafe to ignore, and the reason why each is not supported."""

MODULES = {
    "PLAIN": "PlainLoginModule",
    "SCRAM-SHA-256": "ScramLoginModule",
    "SCRAM-SHA-512": "ScramLoginModule",
    "OAUTHBEARER": "OAuthBearerLoginModule",
}
"""Mechanism -> login module of `sasl.jaas.config`."""


@dataclass(frozen=True, slots=True)
class ClientSecurity:
    """The arguments `tls=` and `sasl=` of all clients. None: connections are not encrypted, and not
    authenticated."""

    tls: ssl.SSLContext | None = None
    sasl: Sasl | None = None


def security_from_properties(properties: Mapping[str, str]) -> ClientSecurity:
    """The security that these properties describe, in the names of the Java clients or of librdkafka.

    Read are `security.protocol`, `sasl.*` and `ssl.*`; everything else is ignored. Keys and certificates
    are PEM or PKCS12. Raises ValueError: one sentence that names the property, and never holds a secret.
    """
    protocol = properties.get("security.protocol", "").strip().upper()
    if not protocol:
        given = [name for name in NEEDS_PROTOCOL if properties.get(name)]
        if given:
            raise ValueError(
                f"{given[0]} is set, but security.protocol is not: set it to SASL_SSL or SSL, say"
            )
        protocol = "PLAINTEXT"
    if protocol not in PROTOCOLS:
        raise ValueError(f"security.protocol is {protocol!r}; there are {', '.join(PROTOCOLS)}")
    with_tls, with_sasl = PROTOCOLS[protocol]
    for name, why in REFUSED.items():
        if properties.get(name) and (with_tls if name.startswith("ssl.") else with_sasl):
            raise ValueError(f"{name} is not supported: {why}")
    return ClientSecurity(
        tls_from_properties(properties) if with_tls else None,
        _sasl(properties) if with_sasl else None,
    )


def _sasl(properties: Mapping[str, str]) -> Sasl:
    mechanism = properties.get("sasl.mechanism") or properties.get("sasl.mechanisms") or ""
    if mechanism not in MODULES:
        found = f"is {mechanism!r}" if mechanism else "is not set (Kafka's default, GSSAPI, is not supported)"
        raise ValueError(f"sasl.mechanism {found}; there are {', '.join(MODULES)}")
    module = _module(properties, mechanism)
    if mechanism == "OAUTHBEARER":
        # It loads an HTTP client, which nothing else needs.
        from ringleader.clients.connection.security.oauth import oauth_from_properties

        return oauth_from_properties(properties, module)
    username = module.options.get("username") or properties.get("sasl.username")
    password = module.options.get("password") or properties.get("sasl.password")
    if not username or not password:
        raise ValueError(
            f"{mechanism} needs a user name and a password: in sasl.jaas.config, or as sasl.username and "
            f"sasl.password"
        )
    try:
        if mechanism == "PLAIN":
            return SaslPlain(username, password)
        (kind,) = [name for name in SCRAM_HASHES if mechanism == f"SCRAM-{name}"]
        return SaslScram(username, password, kind)
    except ValueError as error:
        raise ValueError(f"sasl.jaas.config or sasl.{error}") from None


def _module(properties: Mapping[str, str], mechanism: str) -> LoginModule:
    text = properties.get("sasl.jaas.config")
    if not text:
        return LoginModule(MODULES[mechanism], {})
    try:
        module = parse_jaas(text)
    except ValueError as error:
        raise ValueError(f"sasl.jaas.config: {error}") from None
    if module.name != MODULES[mechanism]:
        raise ValueError(
            f"sasl.jaas.config names {module.name}, but sasl.mechanism {mechanism} takes {MODULES[mechanism]}"
        )
    if module.options.get("tokenauth", "").lower() == "true":
        raise ValueError("sasl.jaas.config: tokenauth, delegation tokens, is not supported")
    return module
