"""TLS of listeners: contexts from PEM files, in Kafka's settings, that follow the files."""

from __future__ import annotations

import os
import re
import ssl
import tempfile
from pathlib import Path

from pydantic import SecretStr

from ringleader.coordinator.security.alerts import AlertingContext
from ringleader.coordinator.security.settings import CONVERT, TLS_1_2_CIPHERS, TlsSettings

MAX_PEM_BYTES = 16 * 1024 * 1024
"""All of a machine's authorities are a few hundred KiB."""
VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
VERIFY = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}

_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)

Stamp = tuple[tuple[int, int, int], ...]


class Tls:
    """The TLS of one listener."""

    def __init__(self, settings: TlsSettings) -> None:
        """Raises ValueError: one sentence, without a secret."""
        self.settings = settings
        self._stamp = self._look()
        self.context = context_of(settings)
        """For the next handshake."""
        self._connecting: ssl.SSLContext | None = None

    def changed(self) -> bool:
        """Whether its files are others than when they were read last, readable or not. Looks at files."""
        return self._look() != self._stamp

    def reload(self) -> None:
        """Read the files again. Raises ValueError, one sentence: then everything stays as it is, until the
        files change again."""
        self._stamp = self._look()
        context = context_of(self.settings)
        if self._connecting is not None:
            self._connecting = connecting_context_of(self.settings)
        self.context = context

    def connecting(self) -> ssl.SSLContext:
        """For the next handshake with a listener of another node that has these settings, too. Raises
        ValueError, the first time only: one sentence, without a secret."""
        if self._connecting is None:
            self._connecting = connecting_context_of(self.settings)
        return self._connecting

    def _look(self) -> Stamp:
        files = (self.settings.ssl_keystore_location, self.settings.ssl_truststore_location)
        return tuple(_stamp(file) for file in files if file is not None)


def _stamp(file: Path) -> tuple[int, int, int]:
    try:
        found = file.stat()
    except OSError:
        return (0, 0, 0)
    return (found.st_ino, found.st_size, found.st_mtime_ns)


def context_of(settings: TlsSettings) -> ssl.SSLContext:
    """The context of a listener of these settings. Raises ValueError: one sentence, without a secret."""
    context = AlertingContext(ssl.PROTOCOL_TLS_SERVER)
    _speak(context, settings)
    # Every connection is asked for its certificate anew: who was issued none any more does not come in with a
    # ticket.
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0
    context.verify_mode = VERIFY[settings.ssl_client_auth]
    if context.verify_mode is not ssl.CERT_NONE and not _trust(context, settings):
        raise ValueError(
            f"ssl.client.auth is {settings.ssl_client_auth}, but nobody is trusted to issue clients' "
            f"certificates: set ssl.truststore.location"
        )
    return context


def connecting_context_of(settings: TlsSettings) -> ssl.SSLContext:
    """The context of a node that connects to another one's listener of these settings: it shows its own
    certificate, and requires one that the truststore trusts, or the machine if there is none. Raises
    ValueError: one sentence, without a secret."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = settings.ssl_endpoint_identification_algorithm == "https"
    _speak(context, settings)
    if not _trust(context, settings):
        context.load_default_certs()
    return context


def _speak(context: ssl.SSLContext, settings: TlsSettings) -> None:
    versions = sorted(VERSIONS[name] for name in settings.ssl_enabled_protocols)
    context.minimum_version, context.maximum_version = versions[0], versions[-1]
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    if settings.ssl_cipher_suites:
        context.set_ciphers(":".join(TLS_1_2_CIPHERS[suite] for suite in settings.ssl_cipher_suites))
    _show(context, settings)


def _show(context: ssl.SSLContext, settings: TlsSettings) -> None:
    file, chain, key = (
        settings.ssl_keystore_location,
        settings.ssl_keystore_certificate_chain,
        settings.ssl_keystore_key,
    )
    if file is not None and (chain or key):
        raise ValueError(
            "ssl.keystore.location and ssl.keystore.certificate.chain are both set: leave one out"
        )
    if file is not None:
        _read("ssl.keystore.location", file)
        _load_key(context, "ssl.keystore.location", file, settings.ssl_key_password)
    elif chain and key:
        pem = _lines(chain) + _lines(key.get_secret_value())
        # The ssl module reads keys from files only. This one is for nobody else's eyes, and gone at once.
        handle, path = tempfile.mkstemp(prefix="ringleader-", suffix=".pem")
        try:
            with os.fdopen(handle, "w") as stream:
                stream.write(pem)
            names = "ssl.keystore.certificate.chain, ssl.keystore.key"
            _load_key(context, names, Path(path), settings.ssl_key_password)
        finally:
            Path(path).unlink()
    else:
        raise ValueError("there is no certificate to show: set ssl.keystore.location")


def _load_key(context: ssl.SSLContext, names: str, file: Path, password: SecretStr | None) -> None:
    prompts: list[bool] = []

    def secret() -> str:  # without this OpenSSL would ask on the terminal
        prompts.append(True)
        return password.get_secret_value() if password is not None else ""

    try:
        context.load_cert_chain(file, password=secret)
    except (ssl.SSLError, ValueError) as error:
        if prompts:
            raise ValueError("ssl.key.password is missing or wrong: the key is encrypted") from None
        if isinstance(error, ssl.SSLError) and error.reason == "KEY_VALUES_MISMATCH":
            raise ValueError(f"{names}: the private key is not that of the first certificate") from None
        raise ValueError(f"{names}: no private key with its certificate can be read there") from None


def _trust(context: ssl.SSLContext, settings: TlsSettings) -> bool:
    """Load the trusted certificates; whether any are configured."""
    file, pem = settings.ssl_truststore_location, settings.ssl_truststore_certificates
    if file is not None and pem:
        raise ValueError(
            "ssl.truststore.location and ssl.truststore.certificates are both set: leave one out"
        )
    name = "ssl.truststore.certificates" if file is None else "ssl.truststore.location"
    if file is not None:
        pem = _read(name, file)
    if not pem:
        return False
    try:
        context.load_verify_locations(cadata=_lines(pem))
    except ssl.SSLError:
        raise ValueError(f"{name}: no certificate can be read there") from None
    # As for Java, who is in the store is trusted, whether somebody else has issued that certificate or not.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return True


def _read(name: str, file: Path) -> str:
    try:
        with file.open("rb") as stream:
            pem = stream.read(MAX_PEM_BYTES + 1)
    except OSError as error:
        raise ValueError(f"{name}: {error.strerror}: {file}") from None
    if len(pem) > MAX_PEM_BYTES:
        raise ValueError(f"{name}: {file} has more than {MAX_PEM_BYTES:,} bytes")
    text = pem.decode("ascii", "replace")
    if not _BLOCK.search(text):
        raise ValueError(f"{name}: {file} is not PEM: {CONVERT}")
    return text


def _lines(pem: str) -> str:
    """PEM whose lines were joined to be one value of a properties file, as Kafka takes it."""
    blocks = (
        f"-----BEGIN {kind}-----\n{_folded(content)}\n-----END {kind}-----\n"
        for kind, content in _BLOCK.findall(pem.replace("\\n", "\n"))
    )
    return "".join(blocks)


def _folded(content: str) -> str:
    if ":" in content:  # the headers of an encrypted key are lines that mean something
        return content.strip()
    return "\n".join(content.split())
