"""``ringleader keda``: how many members a group would use, for KEDA."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from ringleader.cli.common import WRONG_INPUT, complain, fail, file_option, utf8

HELP = (
    "Serve KEDA's external scaler: how many members a group would use.\n\n"
    "A partition has one owner however far behind it is. So members are counted, not records: a partition "
    "that is `lagThreshold` records behind or more takes one member, and the others share members by their "
    "lag. When the cluster is away, or its lag is not measured, KEDA gets an error, and its `fallback` "
    "counts.\n\n"
    "It reads the file that `ringleader watch --history FILE` writes, in the same pod or on the same "
    "machine.\n\n"
    "Examples:\n\n"
    "  ringleader keda --history prod.sqlite\n\n"
    "  ringleader keda --history prod.sqlite --listen 0.0.0.0:6000 --certificate keda.pem "
    "--client-authority ca.pem"
)
ADDRESS = "127.0.0.1:6000"

HistoryFileOption = Annotated[
    Path,
    file_option("History file that `ringleader watch --history FILE` writes.", "--history"),
]
ListenOption = Annotated[
    str, typer.Option(metavar="HOST:PORT", parser=utf8, help="Address for KEDA.", show_default=True)
]
CertificateOption = Annotated[
    Path | None,
    file_option("PEM file with private key and certificates: the scaler uses TLS."),
]
AuthorityOption = Annotated[
    Path | None,
    file_option("PEM file with CA certificates: KEDA must show a certificate signed by one of them."),
]
AnyoneOption = Annotated[
    bool,
    typer.Option(
        "--allow-anyone",
        help="Answer every client on an address that other machines can reach. The answers tell the lag of "
        "groups.",
    ),
]


def keda(
    history: HistoryFileOption,
    listen: ListenOption = ADDRESS,
    certificate: CertificateOption = None,
    client_authority: AuthorityOption = None,
    allow_anyone: AnyoneOption = False,
) -> None:
    """See `HELP`."""
    from ringleader.cli.watch import until_signalled
    from ringleader.clients.connection.cluster import parse_bootstrap
    from ringleader.coordinator.security.listeners import is_loopback
    from ringleader.insight.history import History, HistoryError

    try:
        from ringleader.insight.scaler import ScalerError, credentials, serve
    except ImportError:
        fail("This command needs gRPC: pip install 'ringleader[keda]'.", WRONG_INPUT)
    try:
        [(host, port)] = parse_bootstrap([listen])
    except ValueError as error:
        fail(f"--listen: {error}.", WRONG_INPUT)
    if client_authority is None and not allow_anyone and not is_loopback(host):
        fail(
            f"{host} can be reached from other machines: give --client-authority FILE, or --allow-anyone "
            "where a network policy lets KEDA through alone.",
            WRONG_INPUT,
        )
    try:
        tls = credentials(certificate, client_authority)
    except ScalerError as error:
        fail(f"{error}.", WRONG_INPUT)
    try:
        History.open(history, read_only=True).close()
    except HistoryError as error:
        fail(f"{str(error).rstrip('.')}. `ringleader watch --history {history}` writes it.")

    def started(host: str, port: int) -> None:
        complain(f"KEDA's external scaler listens on {host}:{port}; it answers from {history}")

    try:
        asyncio.run(until_signalled(lambda: serve(history, host, port, tls=tls, started=started)))
    except ScalerError as error:
        fail(f"{error}.")
