"""The command line: ``ringleader serve`` runs a coordinator, the other commands ask one over the wire."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from ringleader.cli import acls, groups, nodes, topics, users
from ringleader.cli import advise as _advise
from ringleader.cli import consume as _consume
from ringleader.cli import explain as _explain
from ringleader.cli import history as _history
from ringleader.cli import migrate as _migrate
from ringleader.cli import owners as _owners
from ringleader.cli import plan as _plan
from ringleader.cli import produce as _produce
from ringleader.cli import record as _record
from ringleader.cli import replay as _replay
from ringleader.cli import report as _report
from ringleader.cli import serve as _serve
from ringleader.cli import top as _top
from ringleader.cli import watch as _watch
from ringleader.cli.common import complain

__all__ = ["app", "main"]

app = typer.Typer(
    name="ringleader",
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
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("serve", help=_serve.HELP, cls=_serve.ServeCommand)(_serve.serve)
app.add_typer(topics.app, name="topics")
app.add_typer(groups.app, name="groups")
app.add_typer(nodes.app, name="nodes")
app.add_typer(users.app, name="users")
app.add_typer(acls.app, name="acls")
app.command("produce", help=_produce.HELP)(_produce.produce)
app.command("consume", help=_consume.HELP)(_consume.consume)
app.command("migrate", help=_migrate.HELP)(_migrate.migrate)
app.command("watch", help=_watch.HELP)(_watch.watch)
app.command("top", help=_top.HELP)(_top.top)
app.command("history", help=_history.HELP)(_history.history)
app.command("explain", help=_explain.HELP)(_explain.explain)
app.command("owners", help=_owners.HELP)(_owners.owners)
app.command("report", help=_report.HELP)(_report.report)
app.command("advise", help=_advise.HELP)(_advise.advise)
app.command("record", help=_record.HELP)(_record.record)
app.command("replay", help=_replay.HELP)(_replay.replay)
app.command("plan", help=_plan.PLAN_HELP)(_plan.plan)
app.command("size", help=_plan.SIZE_HELP)(_plan.size)


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
