"""``ringleader history --export``: the history of groups as files with columns, for other programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import typer

from ringleader.cli.common import WRONG_INPUT, console, fail, table
from ringleader.cli.looking_back import given, history_of, must_know, window_of
from ringleader.cli.looking_back import plain as plain_of
from ringleader.host.clock import wall_ms
from ringleader.insight.plain import FORMAT

FORMATS = ("parquet",)
_ONLY_SHOWN = ("limit", "evidence", "utc")
"""Parameters about what is shown."""


def export_history(ctx: typer.Context, groups: Sequence[str], form: str, directory: Path | None) -> None:
    """Write the files, and print their names. Ends the command with one sentence where that cannot be."""
    if form not in FORMATS:
        fail(f"--export: it is {' or '.join(FORMATS)}, not {form!r}.", WRONG_INPUT)
    if directory is None:
        fail("--export writes into a directory: name it with -o DIR.", WRONG_INPUT)
    if useless := [name for name in _ONLY_SHOWN if given(ctx, name)]:
        fail(f"--{useless[0]} is for what is shown: files have all of it.", WRONG_INPUT)
    try:
        import pyarrow as _pyarrow
    except ModuleNotFoundError:
        fail("--export parquet needs pyarrow: pip install 'ringleader[spark]' has it.")
    del _pyarrow
    from ringleader.insight.columns.files import FilesError, write
    from ringleader.insight.columns.rows import Selection, groups_in

    window = window_of(ctx.params["since"], ctx.params["until"], wall_ms())
    with history_of(ctx) as history:
        for group in groups:
            must_know(history, group)
        selection = Selection(
            tuple(dict.fromkeys(groups)) or groups_in(history), window.since_ms, window.until_ms
        )
        try:
            written = write(history, directory, selection)
        except FilesError as error:
            fail(f"{str(error).rstrip('.')}.")
    if ctx.params["as_json"]:
        files = [{"table": one.table, "file": str(one.path), "rows": one.rows} for one in written]
        print(json.dumps({"format": FORMAT, **plain_of(window), "files": files}))
        return
    shown = table("TABLE", "ROWS", "FILE", right=("ROWS",))
    for one in written:
        shown.add_row(one.table, f"{one.rows:,}", str(one.path))
    console().print(shown)
