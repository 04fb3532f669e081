"""Certificates of an authority that lives as long as a test: for a server here and for its clients."""

from __future__ import annotations

import ssl
from datetime import datetime
from pathlib import Path

import trustme
from cryptography.hazmat.primitives import serialization

HOSTS = ("127.0.0.1", "localhost")


class Certificates:
    """The files are in `directory`, in PEM."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._authority = trustme.CA()
        self._directory = directory
        self.authority = self._write("authority.pem", self._authority.cert_pem.bytes())
        """The authority that clients and servers trust."""
        self.server = self.issued("server", *HOSTS)
        """Key and certificate of the server, in one file."""

    def issued(self, name: str, *hosts: str, until: datetime | None = None) -> Path:
        """A file with key and certificate for these host names, or for a client of that name."""
        # Java reads no certificate without a name of its owner.
        made = self._authority.issue_cert(
            *(hosts or [f"{name}.example"]),
            common_name=name,
            organization_name="org",
            organization_unit_name="unit",
            not_after=until,
        )
        key = serialization.load_pem_private_key(made.private_key_pem.bytes(), None)
        # Java reads keys as PKCS #8 only.
        pem = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        chain = b"".join(one.bytes() for one in made.cert_chain_pems)
        return self._write(f"{name}.pem", pem + chain)

    def client_tls(self, certificate: Path | None = None) -> ssl.SSLContext:
        """The authority that a client trusts the server with, and the certificate that it shows if it has
        to."""
        context = ssl.create_default_context(cafile=self.authority)
        if certificate is not None:
            context.load_cert_chain(certificate)
        return context

    def server_tls(self, certificate: Path | None = None, *, ask: bool = False) -> ssl.SSLContext:
        """For a server in Python. `ask`: clients have to show a certificate."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=self.authority)
        context.load_cert_chain(certificate or self.server)
        if ask:
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def _write(self, name: str, pem: bytes) -> Path:
        path = self._directory / name
        path.write_bytes(pem)
        return path
