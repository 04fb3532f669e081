"""Settings of ``ringleader watch`` and ``ringleader advise``: as flags, in the environment, or in a file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from ringleader.coordinator.config_text import Option
    from ringleader.insight.advice import Thresholds

ADVICE = "advice_"
"""Before the names of thresholds."""
ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        dir_okay=False,
        help="Settings file; flags win over the environment, and the environment over the file.",
        show_default=False,
    ),
]


def options() -> list[Option]:
    """Every setting with its four names."""
    from ringleader.coordinator.config_text import options_of
    from ringleader.insight.advice import Thresholds

    return options_of(Thresholds, ADVICE)


def flags() -> Iterator[tuple[Option, str]]:
    """For the command line."""
    for option in options():
        yield option, "Thresholds of advice"


def thresholds_of(
    given: Mapping[str, Any], environ: Mapping[str, str] = os.environ, file: Path | None = None
) -> Thresholds:
    """The thresholds of flags (`given`, by field), the environment and a file. Raises `SettingsError`: one
    sentence that names the setting, where it came from and what is allowed."""
    from pydantic import ValidationError

    from ringleader.coordinator.config_text import SettingsError, gathered, one_sentence
    from ringleader.insight.advice import Thresholds

    values, origin = (
        {name.removeprefix(ADVICE): one for name, one in each.items()}
        for each in gathered(options(), given, environ, file)
    )
    try:
        return Thresholds(**values)
    except ValidationError as error:
        raise SettingsError(one_sentence(error, origin)) from None
