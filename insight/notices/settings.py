"""Settings of notices: the targets, and when and for how long they are tried."""

from __future__ import annotations

from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr

from ringleader.clients.connection.cluster import parse_bootstrap
from ringleader.host.words import Words
from ringleader.protocol.wire import INT32_MAX


def _address(url: str) -> str:
    """Raises ValueError, without the text: it may hold a secret."""
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and parts.hostname and parts.username is None
        _ = parts.port
    except ValueError:
        good = False
    if not good or not (url.isascii() and url.isprintable()) or " " in url:
        raise ValueError("give a URL that begins with https:// or http://, without a user name")
    return url


def _secret_address(url: SecretStr) -> SecretStr:
    _address(url.get_secret_value())
    return url


def _header(token: SecretStr) -> SecretStr:
    text = token.get_secret_value()
    if not text.isascii() or not text.isprintable():
        raise ValueError("give printable ASCII characters")
    return token


def _page(url: str) -> str:
    return _address(url).rstrip("/") + "/"


def _mailbox(address: str) -> str:
    name, at, host = address.rpartition("@")
    good = name and at and host and address.isascii() and address.isprintable()
    if not good or any(c in ' <>",;:' for c in address):
        raise ValueError(f"{address!r} is not an e-mail address of the form NAME@HOST")
    return address


def _mailboxes(addresses: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(_mailbox, addresses))


def _server(text: str) -> str:
    if not text.rpartition(":")[2].isdecimal():
        raise ValueError("give it as HOST:PORT")
    parse_bootstrap([text])
    return text


class NoticeSettings(BaseModel):
    """Where notices go (docs/settings.md). Without a target there are none."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    webhook_url: Annotated[SecretStr, AfterValidator(_secret_address)] | None = Field(
        None,
        description="URL that each notice is sent to by POST, as [JSON](insight.md#as-json-to-a-url). Not "
        "available on the command line, where other users could see it.",
    )
    webhook_token: Annotated[SecretStr, AfterValidator(_header)] | None = Field(
        None,
        description="Sent to the webhook as `Authorization: Bearer TOKEN`. Not available on the command "
        "line, either.",
    )
    slack_url: Annotated[SecretStr, AfterValidator(_secret_address)] | None = Field(
        None,
        description="URL of an incoming webhook of Slack, or of a chat that takes the same messages. "
        "Not available on the command line, either.",
    )
    mail_to: Annotated[tuple[str, ...], Words, AfterValidator(_mailboxes)] = Field(
        (), description="Comma-separated e-mail addresses that get each notice."
    )
    mail_from: Annotated[str, AfterValidator(_mailbox)] | None = Field(
        None, description="E-mail address of the sender."
    )
    mail_server: Annotated[str, AfterValidator(_server)] | None = Field(
        None, description="HOST:PORT of the SMTP server."
    )
    mail_security: Literal["starttls", "tls", "none"] = Field(
        "starttls",
        description="How the connection to the SMTP server is encrypted: by STARTTLS, with TLS from its "
        "beginning, or not at all.",
    )
    mail_user: str | None = Field(None, description="User at the SMTP server. Default: no login.")
    mail_password: SecretStr | None = Field(
        None,
        description="Password of that user. Not available on the command line, where other users could see "
        "it.",
    )
    page_url: Annotated[str, AfterValidator(_page)] | None = Field(
        None,
        description="Beginning of the links in notices, where others reach the page. Default: the address "
        "that the page is served at.",
    )
    interval_ms: int = Field(
        30_000,
        ge=100,
        le=INT32_MAX,
        description="How often groups in which something happened are looked at; all others are looked "
        "at a tenth as often.",
    )
    window_ms: int = Field(
        3_600_000,
        ge=60_000,
        le=INT32_MAX,
        description="How far back a look goes: a finding is an incident while it is within this time.",
    )
    quiet_ms: int = Field(
        60_000,
        ge=0,
        le=INT32_MAX,
        description="An incident that is over within this time causes no notice.",
    )
    again_ms: int = Field(
        86_400_000,
        ge=0,
        le=INT32_MAX,
        description="An incident that comes back within this time after it was over causes no second notice.",
    )
    timeout_ms: int = Field(
        10_000, ge=100, le=600_000, description="A target that has not answered in this time is tried again."
    )
    deadline_ms: int = Field(
        600_000,
        ge=0,
        le=INT32_MAX,
        description="How long a notice is tried, with pauses from 1 s to 1 min; then it is given up, with a "
        "line that says so.",
    )
    queue_max: int = Field(
        100,
        ge=1,
        le=100_000,
        description="Notices that wait for one target; a further one is given up, with a line that says so.",
    )

    def check(self) -> None:
        """Raises ValueError, one sentence, where something is missing."""
        for name, needs in (
            ("webhook_token", ("webhook_url",)),
            ("mail_to", ("mail_from", "mail_server")),
            ("mail_password", ("mail_user",)),
        ):
            for needed in needs:
                if getattr(self, name) and not getattr(self, needed):
                    shown, wanted = (f"notify.{one.replace('_', '.')}" for one in (name, needed))
                    raise ValueError(f"{shown} needs {wanted}")

    @property
    def wanted(self) -> bool:
        """There is a target."""
        return bool(self.webhook_url or self.slack_url or self.mail_to)
