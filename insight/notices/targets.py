"""The targets of notices: each sends one, and waits for the answer. These calls block: they run on threads of
their own."""

from __future__ import annotations

import http.client
import json
import smtplib
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import urlsplit

from ringleader.clients.connection.cluster import parse_bootstrap
from ringleader.host.http_client import opener
from ringleader.insight.notices.forms import Notice, as_json, as_mail, as_slack
from ringleader.insight.notices.settings import NoticeSettings
from ringleader.insight.plain import Json

RETRY_AFTER_MAX_S = 3_600
THREAD = "ringleader notice"
"""The name of the threads that send."""
_AGAIN = (408, 425, 429)
"""Statuses below 500 that another time may not have."""


class RefusedError(Exception):
    """The target does not take this notice, and would not take it another time."""


class NotSentError(Exception):
    """Another time it may take it."""

    def __init__(self, why: str, after_s: float = 0) -> None:
        """`after_s`: the target asks for this pause."""
        super().__init__(why)
        self.after_s = after_s


class Target(NamedTuple):
    """Where notices go."""

    name: str
    """For people; without a secret."""
    send: Callable[[Notice], None]
    """Raises RefusedError and NotSentError."""


def targets_of(settings: NoticeSettings) -> list[Target]:
    """Those that are set."""
    timeout_s = settings.timeout_ms / 1000
    found = []
    if settings.webhook_url is not None:
        url = settings.webhook_url.get_secret_value()
        headers = {}
        if settings.webhook_token is not None:
            headers["Authorization"] = f"Bearer {settings.webhook_token.get_secret_value()}"
        found.append(_over_http("the webhook", url, as_json, headers, timeout_s))
    if settings.slack_url is not None:
        found.append(_over_http("Slack", settings.slack_url.get_secret_value(), as_slack, {}, timeout_s))
    if settings.mail_to:
        found.append(Target(f"the SMTP server {settings.mail_server}", lambda one: _mail(settings, one)))
    return found


def _over_http(
    name: str, url: str, form: Callable[[Notice], Json], headers: dict[str, str], timeout_s: float
) -> Target:
    def send(notice: Notice) -> None:
        body = json.dumps(form(notice), ensure_ascii=False).encode("utf-8", "replace")
        _post(url, body, headers, timeout_s)

    # The path is the secret of chats.
    return Target(f"{name} at {urlsplit(url).hostname}", send)


def _post(url: str, body: bytes, headers: dict[str, str], timeout_s: float) -> None:
    sent = {"Content-Type": "application/json", "User-Agent": "ringleader", **headers}
    request = urllib.request.Request(url, body, sent, method="POST")
    try:
        opener(ssl.create_default_context()).open(request, timeout=timeout_s).close()
    except urllib.error.HTTPError as error:
        after, code = error.headers.get("Retry-After", ""), error.code
        error.close()
        if code in _AGAIN or code >= 500:
            after_s = int(after) if after.isascii() and after.isdigit() and len(after) < 8 else 0
            raise NotSentError(f"HTTP status {code}", min(after_s, RETRY_AFTER_MAX_S)) from None
        raise RefusedError(f"HTTP status {code}") from None
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise NotSentError(_reason(getattr(error, "reason", error))) from None


def _mail(settings: NoticeSettings, notice: Notice) -> None:
    assert settings.mail_from is not None
    assert settings.mail_server is not None
    [(host, port)] = parse_bootstrap([settings.mail_server])
    timeout_s = settings.timeout_ms / 1000
    try:
        with (
            smtplib.SMTP_SSL(host, port, timeout=timeout_s, context=ssl.create_default_context())
            if settings.mail_security == "tls"
            else smtplib.SMTP(host, port, timeout=timeout_s)
        ) as server:
            if settings.mail_security == "starttls":
                server.starttls(context=ssl.create_default_context())
            if settings.mail_user is not None:
                password = settings.mail_password
                server.login(settings.mail_user, password.get_secret_value() if password else "")
            refused = server.send_message(as_mail(notice, settings.mail_from, settings.mail_to))
    except smtplib.SMTPRecipientsRefused as error:
        _refused(error.recipients)
    except smtplib.SMTPResponseException as error:
        answer = error.smtp_error.decode(errors="replace") if isinstance(error.smtp_error, bytes) else ""
        text = f"SMTP {error.smtp_code} {' '.join(answer.split())[:200]}".strip()
        raise (RefusedError if error.smtp_code >= 500 else NotSentError)(text) from None
    except smtplib.SMTPNotSupportedError as error:
        raise RefusedError(_reason(error)) from None
    except (OSError, ValueError) as error:  # those of smtplib are OSError
        raise NotSentError(_reason(error)) from None
    else:
        if refused:
            raise RefusedError(f"it does not take mail for {', '.join(sorted(refused))}; others have it")


def _refused(recipients: dict[str, tuple[int, bytes]]) -> None:
    """All of them were."""
    codes = {code for code, _ in recipients.values()}
    text = f"SMTP {', '.join(map(str, sorted(codes)))}: it takes mail for none of them"
    raise (RefusedError if min(codes, default=0) >= 500 else NotSentError)(text) from None


def _reason(error: object) -> str:
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return " ".join(str(text).split())[:200]
