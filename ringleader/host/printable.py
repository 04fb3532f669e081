"""Text that others chose, for a line that is shown or logged."""

from __future__ import annotations


def printable(text: str) -> str:
    """The text with everything escaped that is not printable, control codes of a terminal and ends of lines
    among it."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
