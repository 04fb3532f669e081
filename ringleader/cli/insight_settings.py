"""Settings of ``ringleader watch`` and ``ringleader advise``: as flags, in the environment, or in a file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar

from ringleader.cli.common import WRONG_INPUT, fail, file_option

if TYPE_CHECKING:
    from pydantic import BaseModel

    from ringleader.coordinator.config_text import Option
    from ringleader.insight.advice import Thresholds
    from ringleader.insight.notices import NoticeSettings

ADVICE = "advice_"
"""Before the names of thresholds."""
NOTIFY = "notify_"
"""Before those of notices."""
ConfigOption = Annotated[
    Path | None,
    file_option(
        "Settings file; flags win over the environment, and the environment over the file.", "--config"
    ),
]
_Model = TypeVar("_Model", bound="BaseModel")


class Settings(NamedTuple):
    """All of them."""

    thresholds: Thresholds
    notices: NoticeSettings


def options() -> list[Option]:
    """Every setting with its names."""
    from ringleader.coordinator.config_text import options_of
    from ringleader.insight.advice import Thresholds
    from ringleader.insight.notices.settings import NoticeSettings

    return [*options_of(Thresholds, ADVICE), *options_of(NoticeSettings, NOTIFY)]


def flags() -> Iterator[tuple[Option, str]]:
    """For the command line, each with its part of the help."""
    for option in options():
        yield option, "Thresholds of advice" if option.field.startswith(ADVICE) else "Notices"


def flags_of_advice() -> Iterator[tuple[Option, str]]:
    """Those of thresholds."""
    return (one for one in flags() if one[0].field.startswith(ADVICE))


def load(
    given: Mapping[str, Any], environ: Mapping[str, str] = os.environ, file: Path | None = None
) -> Settings:
    """The settings of flags (`given`, by field), the environment and a file. Raises `SettingsError`: one
    sentence that names the setting, where it came from and what is allowed."""
    from ringleader.coordinator.config_text import SettingsError, gathered
    from ringleader.insight.advice import Thresholds
    from ringleader.insight.notices.settings import NoticeSettings

    values, origin = gathered(options(), given, environ, file)
    for name in values:
        if not name.startswith((ADVICE, NOTIFY)):
            raise SettingsError(f"{origin[name]}: there is no such setting.")
    found = Settings(_made(Thresholds, ADVICE, values, origin), _made(NoticeSettings, NOTIFY, values, origin))
    try:
        found.notices.check()
    except ValueError as error:
        raise SettingsError(f"{error}.") from None
    return found


def load_or_fail(given: Mapping[str, Any], file: Path | None) -> Settings:
    """`load` with the environment; a wrong setting ends the command with its sentence."""
    from ringleader.coordinator.config_text import SettingsError

    try:
        return load(given, file=file)
    except SettingsError as error:
        fail(str(error), WRONG_INPUT)


def _made(model: type[_Model], prefix: str, values: Mapping[str, Any], origin: Mapping[str, str]) -> _Model:
    from pydantic import ValidationError

    from ringleader.coordinator.config_text import SettingsError, one_sentence

    own = {name.removeprefix(prefix): one for name, one in values.items() if name.startswith(prefix)}
    try:
        return model(**own)
    except ValidationError as error:
        whence = {name.removeprefix(prefix): one for name, one in origin.items()}
        raise SettingsError(one_sentence(error, whence)) from None
