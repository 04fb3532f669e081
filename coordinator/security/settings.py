"""Settings of TLS, in Kafka's names. A listener may have its own: `listener.name.NAME.ssl...`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr

from ringleader.coordinator.letter_case import ANY_CASE
from ringleader.coordinator.security.mapping import PrincipalMapper
from ringleader.host.words import Words

CONVERT = (
    "only PEM is read: convert with `keytool -importkeystore -deststoretype PKCS12` and `openssl pkcs12 -in "
    "STORE -out FILE.pem`, and set the type to PEM"
)
TLS_1_2_CIPHERS = {
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
}
"""Those that can be chosen: Java's name -> OpenSSL's."""

TlsVersion = Literal["TLSv1.2", "TLSv1.3"]


def _pem_store(kind: str) -> str:
    if kind.upper() != "PEM":
        raise ValueError(CONVERT)
    return "PEM"


def _known_suites(suites: tuple[str, ...]) -> tuple[str, ...]:
    for suite in suites:
        if suite not in TLS_1_2_CIPHERS:
            raise ValueError(
                f"{suite} cannot be chosen (those of TLS 1.3 are always there); there are "
                f"{', '.join(TLS_1_2_CIPHERS)}"
            )
    return suites


def _rules(rules: str) -> str:
    PrincipalMapper(rules)
    return rules


Store = Annotated[str, AfterValidator(_pem_store)]


class TlsSettings(BaseModel):
    """TLS of a listener of SSL or SASL_SSL. The descriptions are the documentation
    (docs/settings.md)."""

    model_config = ConfigDict(frozen=True)

    ssl_keystore_type: Store = Field("PEM", description="Type of the key store. Only PEM is supported.")
    ssl_keystore_location: Path | None = Field(
        None,
        description="PEM file with the private key and certificate chain of this listener, its own "
        "certificate first. Read again when it changes, and on SIGHUP.",
    )
    ssl_keystore_certificate_chain: str | None = Field(
        None, description="Certificate chain (PEM) as text, in place of the file."
    )
    ssl_keystore_key: SecretStr | None = Field(
        None, description="Private key (PEM) as text, in place of the file."
    )
    ssl_key_password: SecretStr | None = Field(
        None,
        description="Password of the private key. Not available on the command line, where other users "
        "could see it.",
    )
    ssl_truststore_type: Store = Field("PEM", description="Type of the trust store. Only PEM is supported.")
    ssl_truststore_location: Path | None = Field(
        None,
        description="PEM file with the CA certificates trusted to sign client certificates. Read again "
        "when it changes, and on SIGHUP.",
    )
    ssl_truststore_certificates: str | None = Field(
        None, description="CA certificates (PEM) as text, in place of the file."
    )
    ssl_endpoint_identification_algorithm: Annotated[Literal["https", ""], ANY_CASE] = Field(
        "https",
        description="With several nodes: `https` requires that another node's certificate matches the "
        "host name in its address. Empty: no check.",
    )
    ssl_client_auth: Literal["none", "requested", "required"] = Field(
        "none",
        description="Whether clients must present a certificate. With `requested`, a client without one "
        "is User:ANONYMOUS. For SASL_SSL, set it as `listener.name.NAME.ssl.client.auth`, as in Kafka.",
    )
    ssl_enabled_protocols: Annotated[tuple[TlsVersion, ...], Words] = Field(
        ("TLSv1.2", "TLSv1.3"),
        min_length=1,
        description="Enabled TLS versions. Older versions are not supported.",
    )
    ssl_cipher_suites: Annotated[tuple[str, ...], Words, AfterValidator(_known_suites)] = Field(
        (), description="Enabled cipher suites of TLS 1.2, by Java's names. Default: all secure ones."
    )
    ssl_principal_mapping_rules: Annotated[str, AfterValidator(_rules)] = Field(
        "DEFAULT",
        description="Comma-separated rules that map the distinguished name of a client certificate to a "
        "principal: RULE:pattern/replacement/ with an optional L or U for lower or upper case, or DEFAULT "
        "(the whole name). The first matching rule applies.",
    )
