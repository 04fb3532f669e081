"""The page of ``ringleader watch``: its options, and where it is and for whom."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from ringleader.cli.common import WRONG_INPUT, complain, fail, file_option, utf8

if TYPE_CHECKING:
    from ringleader.coordinator.security.tls import Tls
    from ringleader.insight.advice import Thresholds
    from ringleader.insight.web.sources import Source

PAGE_ADDRESS = "127.0.0.1:8088"


PageOption = Annotated[
    str | None,
    typer.Option(metavar="HOST:PORT", help="Address of the page.", show_default=PAGE_ADDRESS, parser=utf8),
]
NoPageOption = Annotated[bool, typer.Option("--no-page", help="Do not serve the page.")]
PageNameOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        parser=utf8,
        help="Additional host name under which the page may be requested; may be repeated.",
        show_default=False,
    ),
]
TokenFileOption = Annotated[
    Path | None,
    file_option(
        "Token required by the page; needed if other machines can reach it. Alternatively set "
        "RINGLEADER_PAGE_TOKEN."
    ),
]
ResetTokenFileOption = Annotated[
    Path | None,
    file_option("Another token, for users of the page that may reset offsets, too. Default: nobody may."),
]
CertificateOption = Annotated[
    Path | None,
    file_option("PEM file with private key and certificates: the page uses TLS."),
]
AuthorityOption = Annotated[
    Path | None,
    file_option(
        "PEM file with CA certificates: the page requires a client certificate signed by one of them."
    ),
]


class Page(NamedTuple):
    """Where the page is to be, and for whom."""

    host: str
    port: int
    names: list[str]
    token: str | None
    reset_token: str | None
    tls: Tls | None
    thresholds: Thresholds
    wanted: bool
    """It was asked for by name."""


def page_of(
    address: str | None,
    names: list[str],
    token_file: Path | None,
    reset_token_file: Path | None,
    certificate: Path | None,
    client_authority: Path | None,
    thresholds: Thresholds,
) -> Page:
    """The page that the options ask for. Ends the command for what is wrong."""
    from ringleader.clients.connection.cluster import parse_bootstrap
    from ringleader.host import http_server
    from ringleader.insight.web import check_access, page_tls, read_token

    try:
        [(host, port)] = parse_bootstrap([address or PAGE_ADDRESS])
        token = read_token(token_file)
        reset_token = None if reset_token_file is None else http_server.read_token(reset_token_file)
        tls = page_tls(certificate, client_authority)
        check_access(host, token, tls, reset_token)
    except ValueError as error:
        fail(f"--page: {error}.", WRONG_INPUT)
    return Page(host, port, names, token, reset_token, tls, thresholds, address is not None)


async def serve_page(stack: AsyncExitStack, sources: Sequence[Source], served: Page) -> str:
    """The page's address."""
    from ringleader.insight.web import page

    def at(port: int) -> AbstractAsyncContextManager[str]:
        return page(
            sources,
            served.host,
            port,
            token=served.token,
            reset_token=served.reset_token,
            names=served.names,
            tls=served.tls,
            thresholds=served.thresholds,
        )

    try:
        url = await stack.enter_async_context(at(served.port))
    except OSError as error:
        why = f"{served.host}:{served.port} cannot be listened on: {error.strerror}"
        if served.wanted:
            raise HistoryPageError(f"--page: {why}") from None
        url = await stack.enter_async_context(at(0))
        complain(f"{why}; the page is at {url}")
    else:
        complain(f"the page is at {url}")
    return url


class HistoryPageError(OSError):
    """The page cannot be where it was wanted."""
