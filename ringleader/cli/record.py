"""``ringleader record``: what a group is asked, in a file for a report of a bug."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlencode, urlsplit

import typer

from ringleader.cli.common import WRONG_INPUT, complain, fail, utf8
from ringleader.clients.times import duration_ms

if TYPE_CHECKING:
    from ringleader.coordinator.recording.file import RecordingFile

HELP = (
    "Record what a group is asked, and what it answers, stores and concludes: a file for a report of a bug,"
    " which `ringleader replay` plays again.\n\n"
    "It asks the http.listen of the daemon, or of the node that has the group, and needs the token of"
    " http.recording.token.file. The file has client ids, hosts, topics and what members say of themselves;"
    " with --anonymous other texts of the same length. Ctrl-C ends it early, and the file is whole.\n\n"
    "Examples:\n\n"
    "  ringleader record billing --token-file recording.token\n\n"
    "  ringleader record billing --http https://node-2:9464 --token-file recording.token --anonymous"
)
CONNECT_TIMEOUT_S = 10.0
DIFFERED = "something else, with names in it"
"""In an anonymous recording: the answer that another machine would not have given."""
MORE_S = 30.0
"""How long after its time a recording may take to end."""


GroupArgument = Annotated[
    str, typer.Argument(metavar="GROUP", parser=utf8, help="The group.", show_default=False)
]
TokenFileOption = Annotated[
    Path, typer.Option("--token-file", metavar="FILE", help="What http.recording.token.file has.")
]
UrlOption = Annotated[
    str,
    typer.Option(
        "--http",
        envvar="RINGLEADER_HTTP",
        metavar="URL",
        help="http.listen: http://HOST:PORT, or https.",
    ),
]
ForOption = Annotated[str, typer.Option("--for", metavar="TIME", help="How long: 90s, 5m; 1h at most.")]
MaxBytesOption = Annotated[
    int,
    typer.Option(
        "--max-bytes", min=1, max=1 << 30, help="Largest size before compression; the recording ends there."
    ),
]
AnonymousOption = Annotated[
    bool,
    typer.Option("--anonymous", help="Replace names, hosts, metadata by others of the same length."),
]
PrincipalsOption = Annotated[
    bool, typer.Option("--principals", help="Tell who asked by name instead of by number.")
]
OutputOption = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="Default: GROUP.recording.gz.", show_default=False),
]
AuthorityOption = Annotated[
    Path | None,
    typer.Option(
        "--http-authority",
        metavar="FILE",
        help="PEM with the CA of the endpoint's certificate. Default: the system's.",
        show_default=False,
    ),
]


def record(
    group: GroupArgument,
    token_file: TokenFileOption,
    url: UrlOption = "http://127.0.0.1:9464",
    for_: ForOption = "5m",
    max_bytes: MaxBytesOption = 64 * 1024 * 1024,
    anonymous: AnonymousOption = False,
    principals: PrincipalsOption = False,
    output: OutputOption = None,
    authority: AuthorityOption = None,
) -> None:
    """See `HELP`."""
    try:
        for_ms = duration_ms(for_)
    except ValueError:
        fail(f"--for: a time is 90s or 5m, not {for_!r}.", WRONG_INPUT)
    if anonymous and principals:
        fail("--principals names who asked, and --anonymous names nobody: give one of them.", WRONG_INPUT)
    path = output or Path(f"{_file_name(group)}.recording.gz")
    if path.exists():
        fail(f"{path} is there already: name another file with --output.", WRONG_INPUT)
    query = {"group": group, "for_ms": for_ms, "max_bytes": max_bytes}
    if principals:
        query["principals"] = "true"
    connection, other = _connection(url, authority), _connection(url, authority)
    with closing(connection), closing(other):
        token = _token(token_file)
        answer = _ask(connection, url, query, token)
        stop = _Stop(connection, lambda: _end(other, answer, token))
        if connection.sock is not None:
            connection.sock.settimeout(for_ms / 1000 + MORE_S)
        _write(answer, stop, group, path, anonymous=anonymous)


def _file_name(group: str) -> str:
    return "".join(c if c.isalnum() or c in "-_." else "_" for c in group).lstrip(".") or "group"


def _token(file: Path) -> str:
    from ringleader.host.http_server import read_token

    try:
        return read_token(file)
    except ValueError as error:
        fail(f"--token-file: {error}.", WRONG_INPUT)


def _connection(url: str, authority: Path | None) -> http.client.HTTPConnection:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if host is None or port is None or parts.scheme not in ("http", "https") or parts.path not in ("", "/"):
        fail(f"--http: give it as http://HOST:PORT, or https, not {url!r}.", WRONG_INPUT)
    if parts.scheme == "http":
        return http.client.HTTPConnection(host, port, timeout=CONNECT_TIMEOUT_S)
    try:
        context = ssl.create_default_context(cafile=None if authority is None else str(authority))
    except (OSError, ssl.SSLError) as error:
        fail(f"--http-authority: {authority} cannot be used: {error.strerror or error}.", WRONG_INPUT)
    return http.client.HTTPSConnection(host, port, timeout=CONNECT_TIMEOUT_S, context=context)


def _ask(
    connection: http.client.HTTPConnection, url: str, query: dict[str, Any], token: str
) -> http.client.HTTPResponse:
    try:
        connection.request(
            "POST", f"/record?{urlencode(query)}", headers={"Authorization": f"Bearer {token}"}
        )
        # A shard that is busy lets one wait for a quiet moment.
        if connection.sock is not None:
            connection.sock.settimeout(MORE_S)
        answer = connection.getresponse()
    except (OSError, http.client.HTTPException) as error:
        fail(f"{url} does not answer: {getattr(error, 'strerror', None) or error}.")
    if answer.status != 200:
        reason = answer.read(1_000).decode(errors="replace").strip().rstrip(".")
        fail(f"{url}: {reason or answer.reason}.")
    return answer


def _end(connection: http.client.HTTPConnection, answer: http.client.HTTPResponse, token: str) -> None:
    """Let the daemon end the recording: everything that it was asked until now comes then, and why it ended.
    Raises OSError, HTTPException."""
    from ringleader.coordinator.recording.file import NUMBER_HEADER

    query = urlencode({"number": answer.headers.get(NUMBER_HEADER, "")})
    connection.request("DELETE", f"/record?{query}", headers={"Authorization": f"Bearer {token}"})
    # 404: it has ended just now by itself.
    if connection.getresponse().status not in (204, 404):
        raise http.client.HTTPException("it does not end recordings")


class _Stop:
    """Ctrl-C. The first one ends the recording at the daemon; if that takes long, and at the second one, what
    has arrived by then is all."""

    def __init__(self, connection: http.client.HTTPConnection, end: Callable[[], None]) -> None:
        self._connection = connection
        self._end = end
        self._over = threading.Event()
        self.pressed = False

    def __call__(self, *_: object) -> None:
        """The signal's handler."""
        if self.pressed:
            self._shut()
            return
        self.pressed = True
        threading.Thread(target=self._run, daemon=True).start()

    def over(self) -> None:
        """The last line has come."""
        self._over.set()

    def _run(self) -> None:
        try:
            self._end()
            if self._over.wait(CONNECT_TIMEOUT_S):
                return
        except (OSError, http.client.HTTPException):
            pass
        self._shut()

    def _shut(self) -> None:
        if self._connection.sock is not None:
            with suppress(OSError):  # closed meanwhile
                socket.socket.shutdown(self._connection.sock, socket.SHUT_RD)


def _lines(answer: http.client.HTTPResponse) -> Iterator[dict[str, Any]]:
    """Whole lines only: the last one is missing when the daemon went away."""
    while raw := answer.readline():
        if raw.endswith(b"\n"):
            yield json.loads(raw)


def _write(
    answer: http.client.HTTPResponse,
    stop: _Stop,
    group: str,
    path: Path,
    *,
    anonymous: bool,
) -> None:
    from ringleader.coordinator.recording.file import RecordingFile

    try:
        opened = RecordingFile(path)
    except OSError as error:
        fail(f"{path} cannot be written: {error.strerror or error}.")
    former = signal.signal(signal.SIGINT, stop)
    ended: str | None = None
    with opened as file:
        try:
            ended = _copy(_lines(answer), group, file, anonymous=anonymous)
        except (OSError, http.client.HTTPException):
            pass  # it ended in the middle of a line
        finally:
            stop.over()
            signal.signal(signal.SIGINT, former)
        why = ended or ("by Ctrl-C" if stop.pressed else "as the daemon went away")
        file.end(why)
    print(f"{file.calls:,} calls in {path}; it ended {why}.")
    if ended is None and not stop.pressed:
        fail("The daemon went away; what came until then is in the file.")


def _copy(lines: Iterator[dict[str, Any]], group: str, file: RecordingFile, *, anonymous: bool) -> str | None:
    """All lines into the file, names replaced; why it ended. It is played at once: a recording that plays
    differently is worth to be known while it can be repeated."""
    import secrets

    from ringleader.coordinator.recording.anonymous import Masks
    from ringleader.coordinator.recording.play import OUTCOMES, Player

    first = next(lines, None)
    if first is None:
        return None
    masks = Masks(secrets.token_bytes(32), group, everything=anonymous)
    plain, masked = Player(first), {**masks.first(first), "anonymous": anonymous}
    other = Player(masked)
    file.add(masked)
    print(f"Recording {group}; Ctrl-C ends it.", flush=True)
    same = True
    for line in lines:
        if "end" in line:
            return str(line["end"])
        made = masks.line(line)
        outcome = other.step(made).outcome
        if same and plain.step(line).difference is not None:
            same = False
            complain(f"call {file.calls + 1:,} plays differently already: that is a find, so send the file.")
            # As it was, so that a replay sees it; names in it are no loss where names are reported.
            outcome = {"gave": DIFFERED} if anonymous else {k: line[k] for k in OUTCOMES if k in line}
        file.add({**made, **outcome})
    return None
