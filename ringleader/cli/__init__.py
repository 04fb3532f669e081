"""The command line: ``ringleader serve`` runs a coordinator, the other commands ask one over the wire."""

from __future__ import annotations

import gc
import os
import sys
from collections import UserDict
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from ringleader.cli.common import HELP_FLAGS, complain
from ringleader.cli.values import sparing_pydantic

__all__ = ["app", "main"]

COMMANDS = (
    "serve",
    "produce",
    "consume",
    "migrate",
    "watch",
    "keda",
    "top",
    "history",
    "explain",
    "owners",
    "cost",
    "advise",
    "record",
    "replay",
    "plan",
    "size",
    "report",
)
"""Each is a function in the module of its name, but for those of `ELSEWHERE`."""
ELSEWHERE = {"size": "plan", "report": "cost"}
DEPRECATED = ("report",)
"""Not shown in the list of commands."""

GROUPS = ("topics", "groups", "nodes", "users", "acls", "deploy")
"""Each is a group of commands, the `app` of the module of its name."""


class _Commands(UserDict[str, Any]):
    """The commands by name. Each is loaded when it is first called or shown: to load all of them takes half
    of the time that a command needs to start."""

    def __init__(self) -> None:
        super().__init__(dict.fromkeys(COMMANDS + GROUPS))

    def __getitem__(self, name: str) -> Any:
        if (command := self.data[name]) is None:
            command = self.data[name] = _load(name)
        return command


def _load(name: str) -> Any:
    module = import_module(f"ringleader.cli.{ELSEWHERE.get(name, name)}")
    parent = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich")
    if name in GROUPS:
        parent.add_typer(module.app, name=name)
    else:
        text = getattr(module, f"{name.upper()}_HELP", None) or module.HELP
        command = parent.command(
            name, help=text, cls=getattr(module, "COMMAND", None), hidden=name in DEPRECATED
        )
        command(getattr(module, name))
        parent.callback()(_ringleader)  # with one command and nothing else there would be no group
    group: Any = typer.main.get_command(parent)
    return sparing_pydantic(group.commands[name])


class _Ringleader(TyperGroup):
    """The command itself."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        sparing_pydantic(self)
        self.commands = _Commands()


app = typer.Typer(
    name="ringleader",
    cls=_Ringleader,
    help="A Kafka group coordinator that runs by itself.\n\n"
    "Run one with `ringleader serve`; look into groups and topics, of Ringleader or of any Kafka, with the "
    "other commands.\n\n"
    "Examples:\n\n"
    "  ringleader serve --topic orders:6\n\n"
    "  ringleader topics create orders --partitions 6\n\n"
    "  ringleader produce orders --key 7 --value first\n\n"
    "  ringleader consume orders\n\n"
    "  ringleader groups describe billing\n\n"
    "  ringleader history billing\n\n"
    "  ringleader plan billing",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    add_completion=False,
    context_settings=HELP_FLAGS,
)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        from ringleader.protocol import native

        way = "Python" if native.compiled is None else "compiled code"
        print(f"ringleader {version('ringleader')} (records are found by {way})")
        raise typer.Exit


@app.callback()
def _ringleader(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options of the command itself."""


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 1 could not be done, 2 wrong input; each with one sentence."""
    # Almost everything is freed by reference counting: looking for cycles as often as Python does by default
    # costs a tenth of a command's start, and a twelfth of a daemon's commit. The second generation is looked
    # through before a long request has made it large: that took up to 100 ms at a stretch, and this takes 10.
    gc.set_threshold(10_000, 4, 1_000)
    code = run(sys.argv[1:] if arguments is None else arguments)
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        # The rest goes nowhere: the interpreter would complain at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)


def run(arguments: list[str]) -> int:
    """Run one command; returns its exit code."""
    try:
        code = app(args=arguments, prog_name="ringleader", standalone_mode=False)
    except typer.Abort:
        return 130
    except typer.Exit as done:
        return int(done.exit_code)
    except KeyboardInterrupt:
        return 130
    except (BrokenPipeError, SystemExit):
        # The reader of the output has closed it (`ringleader ... | head`): the libraries that print raise
        # this.
        return 0
    except Exception as error:
        # Usage errors of the command line library, whichever package holds their class.
        if not hasattr(error, "format_message"):
            raise
        sentence = str(error.format_message())
        if "\n" in sentence:
            print(sentence, file=sys.stderr)  # help, because a command was named without its subcommand
        elif sentence:
            complain(f"{sentence.rstrip('.')}. Try --help.")
        return int(getattr(error, "exit_code", 1))
    return code if isinstance(code, int) else 0
