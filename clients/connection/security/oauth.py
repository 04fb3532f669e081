"""Where tokens for SASL/OAUTHBEARER come from, by Kafka's property names: a file, a token endpoint, or the
client itself, unsigned, for tests. Each is a callable for `SaslOAuthBearer(token=...)`."""

from __future__ import annotations

import base64
import json
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ringleader.clients.connection.security.properties import LoginModule
from ringleader.clients.connection.security.sasl import (
    MAX_CREDENTIAL_BYTES,
    SaslOAuthBearer,
    TokenUnavailableError,
)
from ringleader.clients.errors import AuthenticationError
from ringleader.protocol import json_text

ENDPOINT = "sasl.oauthbearer.token.endpoint.url"
HANDLER = "sasl.login.callback.handler.class"
KNOWN_HANDLERS = ("OAuthBearerLoginCallbackHandler", "OAuthBearerUnsecuredLoginCallbackHandler")
ENDPOINT_TIMEOUT_S = 10.0
MAX_ANSWER_BYTES = 1024 * 1024
KEEP_PART = 0.8
"""The part of a token's life for which it is used again."""
UNSECURED_LIFETIME_S = 3_600
MAX_REASON_CHARACTERS = 300
REFUSALS = (400, 401, 403)
"""The answers of a token endpoint to credentials that are wrong."""


def oauth_from_properties(properties: Mapping[str, str], module: LoginModule) -> SaslOAuthBearer:
    """For `sasl.mechanism=OAUTHBEARER`. Raises ValueError: one sentence that names the property."""
    handler = properties.get(HANDLER, "").rpartition(".")[2]
    if handler and handler not in KNOWN_HANDLERS:
        raise ValueError(f"{HANDLER} {handler} is not supported: Java classes cannot be loaded")
    unsecured = {
        name.removeprefix("unsecuredLogin"): value
        for name, value in module.options.items()
        if name.startswith("unsecuredLogin")
    }
    if url := properties.get(ENDPOINT):
        parts = urllib.parse.urlsplit(url)
        if parts.scheme == "file":
            return SaslOAuthBearer(
                TokenFile(urllib.request.url2pathname(parts.path)), _extensions(properties, module)
            )
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{ENDPOINT} has to begin with https:, http: or file:")
        return SaslOAuthBearer(_client_credentials(url, properties, module), _extensions(properties, module))
    if unsecured:
        return SaslOAuthBearer(_unsecured(unsecured), _named(unsecured, "Extension_"))
    raise ValueError(
        f"OAUTHBEARER needs {ENDPOINT}, or unsecuredLoginStringClaim_sub in sasl.jaas.config for tests"
    )


def _extensions(properties: Mapping[str, str], module: LoginModule) -> dict[str, str]:
    """In sasl.jaas.config `extension_NAME="VALUE"`; librdkafka's name has a list of NAME=VALUE."""
    found = _named(module.options, "extension_")
    for pair in filter(None, properties.get("sasl.oauthbearer.extensions", "").split(",")):
        name, _, value = pair.partition("=")
        found[name.strip()] = value.strip()
    return found


def _named(options: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {name.removeprefix(prefix): value for name, value in options.items() if name.startswith(prefix)}


# ---- a file ----


@dataclass(frozen=True, slots=True)
class TokenFile:
    """The content of a file (KIP-768), read again each time."""

    path: str

    def __call__(self) -> str:
        try:
            with Path(self.path).open("rb") as stream:
                return stream.read(MAX_CREDENTIAL_BYTES + 1).decode("ascii", "replace").strip()
        except OSError as error:
            raise TokenUnavailableError(f"the token file {self.path}: {error.strerror}") from None


# ---- a token endpoint ----


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Somewhere else must not get the client's secret."""

    def redirect_request(self, *_args: Any, **_kwargs: Any) -> None:
        return None


@dataclass(slots=True)
class ClientCredentials:
    """A token for the client's own id and secret (RFC 6749, section 4.4), used again for most of its life."""

    url: str
    client_id: str
    client_secret: str = field(repr=False)
    scope: str = ""
    encoded: bool = False
    """Whether id and secret are percent-encoded (`sasl.oauthbearer.header.urlencode`)."""
    _kept: tuple[str, float] = field(default=("", 0.0), repr=False)

    def __call__(self) -> str:
        with _one_at_a_time:
            token, until_s = self._kept
            if time.monotonic() >= until_s:
                token, lives_s = self._fetched()
                self._kept = (token, time.monotonic() + lives_s * KEEP_PART)
            return token

    def _fetched(self) -> tuple[str, float]:
        pair = [self.client_id, self.client_secret]
        if self.encoded:
            pair = [urllib.parse.quote_plus(part) for part in pair]
        form = {"grant_type": "client_credentials"} | ({"scope": self.scope} if self.scope else {})
        request = urllib.request.Request(
            self.url,
            urllib.parse.urlencode(form).encode(),
            {
                "Accept": "application/json",
                "Authorization": "Basic " + base64.b64encode(":".join(pair).encode()).decode(),
            },
        )
        try:
            with urllib.request.build_opener(_NoRedirect).open(request, timeout=ENDPOINT_TIMEOUT_S) as answer:
                content = json_text.loads(answer.read(MAX_ANSWER_BYTES + 1))
        except urllib.error.HTTPError as error:
            with error:
                why = " ".join(error.read(MAX_REASON_CHARACTERS).decode("utf-8", "replace").split())
            text = f"the token endpoint {self._where()} answered {error.code}: {why}"
            if error.code in REFUSALS:
                raise AuthenticationError(f"{text}: check clientId, clientSecret and scope") from None
            raise TokenUnavailableError(text) from None
        except (OSError, ValueError) as error:
            raise TokenUnavailableError(f"the token endpoint {self._where()}: {error}") from None
        token = content.get("access_token") if isinstance(content, dict) else None
        if not isinstance(token, str) or not token:
            raise TokenUnavailableError(
                f"the token endpoint {self._where()} answered without an access_token"
            )
        lives_s = content.get("expires_in", 0)
        return token, float(lives_s) if isinstance(lives_s, int | float) and 0 < lives_s < 1e9 else 0.0

    def _where(self) -> str:
        """The address without what may be secret in it."""
        parts = urllib.parse.urlsplit(self.url)
        return f"{parts.scheme}://{parts.hostname}{parts.path}"


_one_at_a_time = threading.Lock()
"""One for all endpoints of a process: a connection that waits for a token gets the one that another has
    fetched."""


def _client_credentials(url: str, properties: Mapping[str, str], module: LoginModule) -> ClientCredentials:
    def one(option: str, *names: str) -> str:
        return module.options.get(option) or next(filter(None, map(properties.get, names)), "")

    client_id = one("clientId", "sasl.oauthbearer.client.credentials.client.id", "sasl.oauthbearer.client.id")
    secret = one(
        "clientSecret", "sasl.oauthbearer.client.credentials.client.secret", "sasl.oauthbearer.client.secret"
    )
    if not client_id or not secret:
        raise ValueError(
            f"{ENDPOINT} needs clientId and clientSecret in sasl.jaas.config, or "
            f"sasl.oauthbearer.client.credentials.client.id and ...client.secret"
        )
    encoded = properties.get("sasl.oauthbearer.header.urlencode", "").lower() == "true"
    return ClientCredentials(url, client_id, secret, one("scope", "sasl.oauthbearer.scope"), encoded)


# ---- unsigned, for tests ----


@dataclass(frozen=True, slots=True)
class UnsecuredToken:
    """A token without a signature (RFC 7515, appendix A.5): brokers take it in tests only."""

    claims: Mapping[str, Any]
    lifetime_s: int = UNSECURED_LIFETIME_S

    def __call__(self) -> str:
        now_s = time.time()
        claims = {"iat": now_s, "exp": now_s + self.lifetime_s, **self.claims}
        parts = [json.dumps(part).encode() for part in ({"alg": "none"}, claims)]
        return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts) + "."


def _unsecured(options: Mapping[str, str]) -> UnsecuredToken:
    """Options as Kafka's OAuthBearerUnsecuredLoginCallbackHandler has them, less their common prefix."""
    claims: dict[str, Any] = dict(_named(options, "StringClaim_"))
    try:
        claims |= {name: float(value) for name, value in _named(options, "NumberClaim_").items()}
        lifetime_s = int(options.get("LifetimeSeconds", UNSECURED_LIFETIME_S))
    except ValueError:
        raise ValueError(
            "sasl.jaas.config: unsecuredLoginNumberClaim_ and unsecuredLoginLifetimeSeconds take numbers"
        ) from None
    for name, value in _named(options, "ListClaim_").items():
        claims[name] = value[1:].split(value[0]) if value else []  # the first character is the separator
    return UnsecuredToken(claims, lifetime_s)
