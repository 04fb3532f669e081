"""Tables of text that others chose."""

from __future__ import annotations

from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from ringleader.host.printable import printable


class TextTable(Table):
    """A table whose cells show what is in them, whatever a name looks like."""

    def add_row(self, *cells: RenderableType | None, **more: Any) -> None:
        super().add_row(*(Text(printable(one)) if isinstance(one, str) else one for one in cells), **more)
