"""Settings as flags of a command: each is generated from the one list of its settings."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from ringleader.cli.common import HELP_FLAGS
from ringleader.cli.values import sparing_pydantic

if TYPE_CHECKING:
    from ringleader.coordinator.config_text import Option

Flags = Callable[[], Iterable["tuple[Option, str]"]]
"""The settings, each with the part of the help that it stands in."""


def command_with(name: str, text: str, command: Callable[..., None], flags: Flags) -> type[TyperCommand]:
    """The class of a command whose flags are made when it is called: to load the settings costs all other
    commands a third of their start. `text` is its help, and `command` has the flags as keywords beside its
    own parameters."""

    @functools.cache
    def with_all_flags() -> Any:
        made = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich")
        made.command(name, help=text, context_settings=HELP_FLAGS)(_with_flags(command, flags()))
        return sparing_pydantic(typer.main.get_command(made))

    class Command(TyperCommand):
        """The command without its flags."""

        def make_context(self, info_name: Any, args: Any, parent: Any = None, **extra: Any) -> Any:
            """That of the command with all flags."""
            return with_all_flags().make_context(info_name, args, parent, **extra)

    return Command


def _with_flags(command: Callable[..., None], flags: Iterable[tuple[Option, str]]) -> Callable[..., None]:
    own = [
        parameter
        for parameter in inspect.signature(command, eval_str=True).parameters.values()
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD
    ]
    parameters = [*own, *(_parameter(option, panel) for option, panel in flags if option.flag)]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


def _parameter(option: Option, panel: str) -> inspect.Parameter:
    """One flag. Everything is taken as text and checked by the settings: one kind of complaint."""
    from ringleader.coordinator.config_text import shown

    numbers = {bool: "true|false", int: "NUMBER", float: "NUMBER"}
    metavar = numbers.get(option.kind, "WORD" if option.choices else "TEXT")
    notes = [f"{option.allowed} {option.unit}".strip()] if option.allowed else []
    switch = option.kind is bool and option.default is False
    default = shown(option.default)
    if default and not switch:
        notes.append(f"default: {default}")
    info = typer.Option(
        option.flag,
        metavar=None if switch else metavar,
        help=option.description + (f" ({'; '.join(notes)})" if notes else ""),
        rich_help_panel=panel,
        show_default=False,
    )
    kind = bool if switch else list[str] if option.repeatable else str
    return inspect.Parameter(
        option.field, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind | None, info]
    )
