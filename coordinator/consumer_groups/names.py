"""Names of assignors in `server_assignor`."""

from __future__ import annotations

PREFIX = "client:"
"""Before an assignor's own name: the group's leader computes."""

NAME_MAX_CHARACTERS = 249


def is_delegated(assignor: str | None) -> bool:
    """Whether that name stands for an assignor of the members."""
    if assignor is None or not assignor.startswith(PREFIX):
        return False
    return 0 < len(assignor) - len(PREFIX) <= NAME_MAX_CHARACTERS
