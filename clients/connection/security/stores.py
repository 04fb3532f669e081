"""TLS contexts from Kafka's property names: trust and keys in PEM files, PKCS12 stores, or the properties."""

from __future__ import annotations

import os
import re
import ssl
import tempfile
from collections.abc import Mapping
from pathlib import Path

from ringleader.clients.connection.security.properties import MAX_TEXT_CHARACTERS, parse_properties

MAX_PEM_BYTES = 16 * 1024 * 1024
"""All of a machine's authorities are a few hundred KiB."""
VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
PEM_BEGIN = b"-----BEGIN "
_DER = re.compile(rb"\x30[\x80-\x84]")
"""The first bytes of a PKCS12 store: a sequence, and how its length is written (not at all, or in 1 to 4
bytes)."""
CONVERT = (
    "only PEM and PKCS12 are read: convert with `keytool -importkeystore -deststoretype PKCS12`, and set the "
    "type to PKCS12"
)


def properties_of(file: Path) -> dict[str, str]:
    """The properties in a file. Raises ValueError: one sentence that names the file."""
    try:
        with file.open("rb") as stream:
            raw = stream.read(MAX_TEXT_CHARACTERS + 1)
        if len(raw) > MAX_TEXT_CHARACTERS:
            raise ValueError(f"more than {MAX_TEXT_CHARACTERS} bytes")
        return parse_properties(raw.decode())
    except OSError as error:
        raise ValueError(f"{error.strerror}: {file}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{file} is not text") from None
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from None


def tls_from_properties(properties: Mapping[str, str]) -> ssl.SSLContext:
    """The context for `security.protocol` SSL and SASL_SSL. Raises ValueError: one sentence."""
    context = _trusting(properties)
    _show(context, properties)
    _versions(context, properties)
    if not _host_names_checked(properties):
        context.check_hostname = False
    if properties.get("enable.ssl.certificate.verification", "").strip().lower() == "false":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _host_names_checked(properties: Mapping[str, str]) -> bool:
    name = "ssl.endpoint.identification.algorithm"
    # An empty value switches it off for Java, "none" for librdkafka.
    value = properties.get(name, "https").strip().lower()
    if value not in ("https", "", "none"):
        raise ValueError(f"{name} is {value!r}; there are https, none, and nothing at all, which is none")
    return value == "https"


def _versions(context: ssl.SSLContext, properties: Mapping[str, str]) -> None:
    listed = [part.strip() for part in properties.get("ssl.enabled.protocols", "").split(",") if part.strip()]
    if not listed:
        return
    unknown = [name for name in listed if name not in VERSIONS]
    if unknown:
        raise ValueError(f"ssl.enabled.protocols has {unknown[0]!r}; there are {', '.join(VERSIONS)}")
    versions = sorted(VERSIONS[name] for name in listed)
    context.minimum_version, context.maximum_version = versions[0], versions[-1]


# ---- trusted certificates ----


def _trusting(properties: Mapping[str, str]) -> ssl.SSLContext:
    """Named authorities take the place of the machine's own, as with Kafka's clients."""
    _check_type(properties, "ssl.truststore")
    name, pem = _first(properties, "ssl.truststore.certificates", "ssl.ca.pem")
    if not pem:
        name, pem = _pkcs12(properties, "ssl.truststore")
    if not pem:
        directory = properties.get("ssl.ca.location", "")
        if directory and Path(directory).is_dir():
            return ssl.create_default_context(capath=directory)
        places = ["ssl.truststore.location"]
        if directory != "probe":  # librdkafka's word for the machine's own
            places.append("ssl.ca.location")
        name, pem = _first_file(properties, *places)
    if not pem:
        return ssl.create_default_context()
    try:
        return ssl.create_default_context(cadata=pem.decode("ascii", "replace"))
    except ssl.SSLError:
        raise ValueError(f"{name}: no certificate can be read there") from None


# ---- what to show ----


def _show(context: ssl.SSLContext, properties: Mapping[str, str]) -> None:
    """Key and certificate of this client, if it has some."""
    _check_type(properties, "ssl.keystore")
    chain_name, chain = _first(properties, "ssl.keystore.certificate.chain", "ssl.certificate.pem")
    key_name, key = _first(properties, "ssl.keystore.key", "ssl.key.pem")
    if not chain:
        chain_name, chain = _pkcs12(properties, "ssl.keystore")
    if not chain:
        places = ("ssl.keystore.location", "ssl.certificate.location")
        chain_name, chain = _first_file(properties, *places)
    if not key:
        key_name, key = _first_file(properties, "ssl.key.location")
    if not chain:
        if key:
            raise ValueError(f"{key_name} is set, but no certificate: set ssl.certificate.location")
        return
    _load_key(context, f"{chain_name}, {key_name}" if key else chain_name, chain + b"\n" + key, properties)


def _load_key(context: ssl.SSLContext, names: str, pem: bytes, properties: Mapping[str, str]) -> None:
    password = _key_password(properties)
    prompts: list[bool] = []

    def secret() -> str:  # without this OpenSSL would ask on the terminal
        prompts.append(True)
        return password

    # The ssl module reads keys from files only. No other user can read this one, and it is deleted at once.
    handle, path = tempfile.mkstemp(prefix="ringleader-", suffix=".pem")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(pem)
        context.load_cert_chain(path, password=secret)
    except (ssl.SSLError, ValueError):
        if prompts:
            raise ValueError("ssl.key.password is missing or wrong: the key is encrypted") from None
        raise ValueError(f"{names}: no private key with its certificate can be read there") from None
    finally:
        Path(path).unlink()


# ---- where it is written ----


def _first(properties: Mapping[str, str], *names: str) -> tuple[str, bytes]:
    for name in names:
        if value := properties.get(name):
            return name, value.encode()
    return "", b""


def _first_file(properties: Mapping[str, str], *names: str) -> tuple[str, bytes]:
    for name in names:
        if path := properties.get(name):
            return name, _read(name, Path(path))
    return "", b""


def _check_type(properties: Mapping[str, str], store: str) -> None:
    kind = properties.get(f"{store}.type", "PEM").strip().upper()
    if kind not in ("PEM", "PKCS12"):
        raise ValueError(f"{store}.type is {kind}: {CONVERT}")


def _key_password(properties: Mapping[str, str]) -> str:
    return properties.get("ssl.key.password") or properties.get("ssl.keystore.password") or ""


def _pkcs12(properties: Mapping[str, str], store: str) -> tuple[str, bytes]:
    """A PKCS12 store as PEM, its key encrypted with the key's password; empty for other stores.
    librdkafka accepts one in `ssl.keystore.location` without its type."""
    name, path = f"{store}.location", properties.get(f"{store}.location")
    if not path:
        return "", b""
    raw = _bytes(name, Path(path))
    given = properties.get(f"{store}.type", "").strip().upper()
    if given == "PEM" or (given != "PKCS12" and _DER.match(raw) is None):
        return "", b""
    try:
        from cryptography.hazmat.primitives.serialization import (
            BestAvailableEncryption,
            Encoding,
            KeySerializationEncryption,
            NoEncryption,
            PrivateFormat,
            pkcs12,
        )
    except ImportError:
        raise ValueError(
            f"{name}: PKCS12 is read with the package cryptography, which is not installed: install it, or "
            "convert to PEM with `openssl pkcs12 -in STORE -out FILE.pem`"
        ) from None
    try:
        found = pkcs12.load_pkcs12(raw, properties.get(f"{store}.password", "").encode() or None)
    except ValueError:
        raise ValueError(f"{name}: {path} is not PKCS12, or {store}.password is missing or wrong") from None
    parts: list[bytes] = []
    if found.key is not None and store == "ssl.keystore":
        password = _key_password(properties).encode()
        how: KeySerializationEncryption = BestAvailableEncryption(password) if password else NoEncryption()
        parts.append(found.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, how))
    certificates = [found.cert] if found.cert is not None else []
    parts += [one.certificate.public_bytes(Encoding.PEM) for one in certificates + found.additional_certs]
    if not parts:
        raise ValueError(f"{name}: {path} holds no certificate")
    return name, b"".join(parts)


def _read(name: str, path: Path) -> bytes:
    pem = _bytes(name, path)
    if PEM_BEGIN not in pem:
        raise ValueError(f"{name}: {path} is not PEM: {CONVERT}")
    return pem


def _bytes(name: str, path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            found = stream.read(MAX_PEM_BYTES + 1)
    except OSError as error:
        raise ValueError(f"{name}: {error.strerror}: {path}") from None
    if len(found) > MAX_PEM_BYTES:
        raise ValueError(f"{name}: {path} has more than {MAX_PEM_BYTES} bytes")
    return found
