"""The compiled way to find records in batches (`_native.c`), where it was built; else Python does it.

`RINGLEADER_NATIVE=0` in the environment chooses Python, `RINGLEADER_NATIVE=1` refuses to do without the
compiled way.
"""

from __future__ import annotations

import importlib
import os
from typing import Any

INTERFACE = 4
"""The interface number that `_native.c` has too: a file that an earlier build left is not used."""


def load(choice: str | None, name: str = "ringleader._native") -> Any:
    """The compiled module, or None. Raises ImportError for what `RINGLEADER_NATIVE` says and cannot be."""
    if choice == "0":
        return None
    if choice not in (None, "", "1"):
        raise ImportError(
            f"RINGLEADER_NATIVE is {choice!r}: set it to 0 (Python) or 1 (compiled), or not at all"
        )
    try:
        found = importlib.import_module(name)
    except ImportError as error:
        why = str(error)
    else:
        if found.INTERFACE == INTERFACE:
            return found
        why = "it was left by an earlier build"
    if choice == "1":
        raise ImportError(
            f"RINGLEADER_NATIVE=1, but the compiled module cannot be used ({why}): install Ringleader "
            "again where there is a C compiler"
        )
    return None


compiled = load(os.environ.get("RINGLEADER_NATIVE"))
"""None: records are found by Python."""
