"""Writes docs/settings.md from the settings themselves."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ringleader.coordinator.config import Option, options
from ringleader.coordinator.config_text import shown

PAGE = Path(__file__).parents[1] / "docs" / "settings.md"


def render(options: Iterable[Option]) -> str:
    """The page."""
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
        "| In a file | Flag | Environment | Default | Allowed | Meaning |",
        "|---|---|---|---|---|---|",
    ]
    for option in options:
        cells = (
            f"`{option.key}`",
            f"`{option.flag}`",
            f"`{option.env}`",
            f"`{default}`" if (default := shown(option.default)) else "",
            option.allowed,
            option.description + (f" In {option.unit}." if option.unit else ""),
        )
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(render(options()))
