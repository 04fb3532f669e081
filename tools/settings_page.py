"""Writes docs/settings.md from the settings themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from ringleader.cli import insight_settings
from ringleader.coordinator.config import Option, options
from ringleader.coordinator.config_text import shown

PAGE = Path(__file__).parents[1] / "docs" / "settings.md"


def render() -> str:
    """The page."""
    own = insight_settings.options()
    lines = [
        "# Settings",
        "",
        "Written by `python -m tools.settings_page`; a test compares.",
        "",
        "Each setting can be given on the command line of `ringleader serve`, in the environment, or in a",
        "file (`--config FILE`: TOML when the name ends in `.toml`, else `name=value` lines). The command",
        "line wins over the environment, and the environment over the file. Settings that Apache Kafka has",
        "too keep Kafka's names.",
        "",
        *_table(options()),
        "",
        "## Of watch and advise",
        "",
        "`ringleader watch` and `ringleader advise` have settings of their own, given in the same ways.",
        "The watcher that `ringleader serve --ui` starts has the daemon's environment, and the file of",
        "`--ui-config FILE` (`RINGLEADER_UI_CONFIG`).",
        "",
        "From when on something is [a finding](insight.md#what-should-i-change):",
        "",
        *_table(one for one in own if one.field.startswith(insight_settings.ADVICE)),
        "",
        "Of `ringleader watch` alone, [notices](insight.md#notices):",
        "",
        *_table(one for one in own if one.field.startswith(insight_settings.NOTIFY)),
    ]
    return "\n".join(lines) + "\n"


def _table(options: Iterable[Option]) -> Iterator[str]:
    yield "| In a file | Flag | Environment | Default | Allowed | Meaning |"
    yield "|---|---|---|---|---|---|"
    for option in options:
        cells = (
            f"`{option.key}`",
            f"`{option.flag}`" if option.flag else "",
            f"`{option.env}`",
            f"`{default}`" if (default := shown(option.default)) else "",
            option.allowed,
            option.description + (f" In {option.unit}." if option.unit else ""),
        )
        yield "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    PAGE.write_text(render())
