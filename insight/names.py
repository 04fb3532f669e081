"""Names that people typed, beside those that there are."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches


def nearest(name: str, known: Sequence[str]) -> str:
    """The most similar one; "" for none."""
    folded = {one.casefold(): one for one in known}
    found = get_close_matches(name.casefold(), folded, 1, 0.6)
    if found:
        return folded[found[0]]
    return next((one for one in known if name.casefold() in one.casefold()), "")


def no_group(group: str, known: Sequence[str]) -> str:
    """One sentence for a group that was never seen, with the name that is nearest."""
    near = nearest(group, known)
    if near:
        return f"There is no group {group} in the history; did you mean {near}?"
    some = f"it knows {', '.join(known[:5])}{', ...' if len(known) > 5 else ''}" if known else "it has none"
    return f"There is no group {group} in the history: {some}."
