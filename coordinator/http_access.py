"""Access to the endpoint of `http.listen`, as the settings say."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from ringleader.coordinator.security.listeners import is_loopback
from ringleader.coordinator.security.settings import TlsSettings
from ringleader.coordinator.security.tls import Tls
from ringleader.host.http_server import read_token

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic import SecretStr

    from ringleader.coordinator.security.listeners import Address


class HttpSettings(Protocol):
    """The settings that are read here; see `Settings` for what they mean."""

    @property
    def http_listen(self) -> Address | None: ...
    @property
    def allow_plaintext(self) -> bool: ...
    @property
    def http_token_file(self) -> Path | None: ...
    @property
    def http_recording_token_file(self) -> Path | None: ...
    @property
    def http_ssl_keystore_location(self) -> Path | None: ...
    @property
    def http_ssl_key_password(self) -> SecretStr | None: ...
    @property
    def http_ssl_truststore_location(self) -> Path | None: ...
    @property
    def http_ssl_client_auth(self) -> Literal["none", "requested", "required"]: ...


class HttpAccess(NamedTuple):
    """The token or certificate that a caller needs, and the protection of the connection."""

    token: str | None
    tls: Tls | None
    recording_token: str | None = None
    """Of callers that may record groups; None: no caller may."""

    @property
    def authenticates(self) -> bool:
        """Whether callers have to authenticate for metrics."""
        return self.token is not None or (
            self.tls is not None and self.tls.settings.ssl_client_auth != "none"
        )


def access_of(settings: HttpSettings) -> HttpAccess:
    """Reads files. Raises ValueError, one sentence: also where other machines reach it and callers do not
    authenticate."""
    listen, token_file = settings.http_listen, settings.http_token_file
    token = _token("http.token.file", token_file)
    recording_token = _token("http.recording.token.file", settings.http_recording_token_file)
    if recording_token is not None and recording_token == token:
        raise ValueError(
            "http.recording.token.file has the token of http.token.file: a caller that reads metrics is not "
            "to record groups"
        )
    found = HttpAccess(token, _tls(settings), recording_token)
    if listen is not None and not (
        found.authenticates or settings.allow_plaintext or is_loopback(listen.host)
    ):
        raise ValueError(
            f"every caller that reaches http.listen {listen} could read the metrics: listen on 127.0.0.1, "
            f"set http.token.file, set http.ssl.client.auth where it has TLS, or give --allow-plaintext if "
            f"the network lets nobody else in"
        )
    return found


def _token(name: str, file: Path | None) -> str | None:
    """The token in the file of that setting. Raises ValueError."""
    try:
        return None if file is None else read_token(file)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _tls(settings: HttpSettings) -> Tls | None:
    if settings.http_ssl_keystore_location is None:
        if settings.http_ssl_client_auth != "none":
            raise ValueError(
                "http.ssl.client.auth needs http.ssl.keystore.location: certificates are shown within TLS"
            )
        return None
    chosen = TlsSettings(
        ssl_keystore_location=settings.http_ssl_keystore_location,
        ssl_key_password=settings.http_ssl_key_password,
        ssl_truststore_location=settings.http_ssl_truststore_location,
        ssl_client_auth=settings.http_ssl_client_auth,
    )
    try:
        return Tls(chosen)
    except ValueError as error:
        raise ValueError(re.sub(r"\bssl\.(?=key|trust|client)", "http.ssl.", str(error))) from None
