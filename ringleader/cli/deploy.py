"""``ringleader deploy``: marks of deploys in the history that a watcher keeps."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from http.client import HTTPException
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote, urlsplit

import typer

from ringleader.cli.common import WRONG_INPUT, JsonOption, fail, utf8
from ringleader.host.printable import printable

app = typer.Typer(
    no_args_is_help=True,
    help="Mark in the history when a deploy begins and ends, so that `ringleader history`, the page and "
    "`ringleader cost --deploy` show what it cost.\n\n"
    "Examples:\n\n"
    "  ringleader deploy begin --group billing --label v1.4.2\n\n"
    "  ringleader deploy end --group billing\n\n"
    "  ringleader cost billing --deploy --comment --max-rebalances 2",
)
TIMEOUT_S = 30.0
ANSWER_MAX_BYTES = 65_536
BEGIN_HELP = "Mark that a deploy begins. One that goes on ends with it."
END_HELP = "Mark that the deploy ends."

GroupOption = Annotated[
    str, typer.Option(metavar="GROUP", parser=utf8, help="Group. Default: all of them.", show_default=False)
]
LabelOption = Annotated[
    str,
    typer.Option(
        metavar="TEXT", parser=utf8, help="Label for readers: a version, a link.", show_default=False
    ),
]
ClusterOption = Annotated[
    str,
    typer.Option(
        metavar="NAME", parser=utf8, help="One of several clusters on the page.", show_default=False
    ),
]
PageOption = Annotated[
    str,
    typer.Option(envvar="RINGLEADER_PAGE", metavar="URL", help="Page of the watcher that keeps the history."),
]
TokenFileOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="The page's token. Alternatively set RINGLEADER_PAGE_TOKEN.",
        show_default=False,
    ),
]
AuthorityOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="PEM file with CA certificates trusted for https. Default: the system's.",
        show_default=False,
    ),
]
PAGE = "http://127.0.0.1:8088/"


@app.command("begin", help=BEGIN_HELP)
def begin(
    group: GroupOption = "",
    label: LabelOption = "",
    cluster: ClusterOption = "",
    page: PageOption = PAGE,
    token_file: TokenFileOption = None,
    page_authority: AuthorityOption = None,
    as_json: JsonOption = False,
) -> None:
    """See `BEGIN_HELP`."""
    _mark(
        {"what": "begin", "group": group, "label": label}, cluster, page, token_file, page_authority, as_json
    )


@app.command("end", help=END_HELP)
def end(
    group: GroupOption = "",
    cluster: ClusterOption = "",
    page: PageOption = PAGE,
    token_file: TokenFileOption = None,
    page_authority: AuthorityOption = None,
    as_json: JsonOption = False,
) -> None:
    """See `END_HELP`."""
    _mark({"what": "end", "group": group}, cluster, page, token_file, page_authority, as_json)


def _mark(
    mark: dict[str, str],
    cluster: str,
    page: str,
    token_file: Path | None,
    authority: Path | None,
    as_json: bool,
) -> None:
    from ringleader.host.http_client import opener
    from ringleader.insight.web import read_token

    if urlsplit(page).scheme not in ("http", "https") or not page.isascii() or " " in page:
        fail(f"--page: give it as http://HOST:PORT/, or https, not {page!r}.", WRONG_INPUT)
    headers = {"Content-Type": "application/json"}
    try:
        token = read_token(token_file)
        trusting = ssl.create_default_context(cafile=authority)
    except (ValueError, OSError) as error:
        fail(f"{str(error).rstrip('.')}.", WRONG_INPUT)
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    query = f"?cluster={quote(cluster, safe='')}" if cluster else ""
    url = f"{page.rstrip('/')}/api/deploys{query}"
    request = urllib.request.Request(url, json.dumps(mark).encode(), headers, method="POST")
    try:
        with opener(trusting).open(request, timeout=TIMEOUT_S) as answer:
            marked: dict[str, Any] = json.loads(answer.read(ANSWER_MAX_BYTES))
    except urllib.error.HTTPError as error:
        with error:
            fail(f"{page} answers {error.code}: {_sentence(error.read(ANSWER_MAX_BYTES))}")
    except (OSError, ValueError, HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        why = getattr(reason, "strerror", None) or reason
        fail(f"No page answers at {page} ({why}): `ringleader watch` serves it; --page names another.")
    if as_json:
        print(json.dumps(marked))
        return
    of_group = f"of {printable(marked['group'])}" if marked["group"] else "of all groups"
    print(f"Marked {of_group}: {marked['kind']} at {marked['at']}.")


def _sentence(body: bytes) -> str:
    try:
        return printable(str(json.loads(body)["error"]))
    except (ValueError, LookupError, TypeError):
        return "it is no page of Ringleader's."
