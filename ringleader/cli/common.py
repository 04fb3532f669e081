"""The common parts of all commands: one sentence for every failure, tables, the options of a server."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

# A missing value in a table.
NONE = "-"
# Exit codes: the input was wrong; the input was right, but it could not be done.
WRONG_INPUT = 2
FAILED = 1
# Also of a command that is made by itself, without its parent.
HELP_FLAGS = {"help_option_names": ["-h", "--help"]}
# Tables that are piped somewhere are not cut to the width of a terminal that is not there.
PIPE_WIDTH = 240


def complain(sentence: str) -> None:
    """Print one sentence on standard error."""
    print(f"ringleader: {sentence}", file=sys.stderr)


def fail(sentence: str, code: int = FAILED) -> NoReturn:
    """Print one sentence on standard error and end with `code`."""
    complain(sentence)
    raise typer.Exit(code)


def file_option(text: str, *names: str) -> Any:
    """An option that takes a FILE; `text` is its help. Without `names`: that of the parameter."""
    return typer.Option(*names, metavar="FILE", dir_okay=False, help=text, show_default=False)


def utf8(argument: str) -> str:
    """For what goes to the server as text. Raises BadParameter when its bytes are not UTF-8."""
    try:
        argument.encode()
    except UnicodeEncodeError:
        raise typer.BadParameter(f"{argument!r} is not UTF-8") from None
    return argument


def pair(option: str, text: str, example: str) -> tuple[str, str]:
    """NAME=VALUE. Ends the command when it is not that."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        fail(f"{option}: give it as NAME=VALUE, for example {example}, not {text!r}.", WRONG_INPUT)
    return name, value


def console() -> Console:
    """Standard output, wide when it is not a terminal."""
    from rich.console import Console

    found = Console(highlight=False)
    return found if found.is_terminal else Console(highlight=False, width=PIPE_WIDTH)


def table(*columns: str, right: tuple[str, ...] = ()) -> Table:
    """An empty table; columns named in `right` hold numbers. Text of its cells is no markup."""
    from ringleader.cli.text_table import TextTable

    made = TextTable(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for name in columns:
        made.add_column(name, justify="right" if name in right else "left", overflow="fold")
    return made


BootstrapOption = Annotated[
    str,
    typer.Option(
        "--bootstrap-server",
        "-b",
        parser=utf8,
        envvar="RINGLEADER_BOOTSTRAP_SERVER",
        metavar="HOST:PORT[,...]",
        help="Server to connect to: Ringleader or any Kafka.",
    ),
]
BOOTSTRAP = "127.0.0.1:9092"
CommandConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--command-config",
        envvar="RINGLEADER_COMMAND_CONFIG",
        metavar="FILE",
        help="File of client properties for TLS and SASL, named as in Kafka's own tools or in librdkafka: "
        "security.protocol, sasl.*, ssl.* (keys and certificates in PEM).",
        show_default=False,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
