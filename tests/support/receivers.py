"""Receivers of notices on loopback: an HTTP server that answers as it is told, and an SMTP server."""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
from base64 import b64decode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue
from typing import Any, NamedTuple

PATIENCE_S = 60.0
HANG = 0
"""Instead of a status: the answer does not come."""


class Posted(NamedTuple):
    """A request that came."""

    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body, read."""
        return json.loads(self.body)


class Webhook:
    """Every request is in `posted`; the answer is the next of `answers`, then 200."""

    def __init__(self, *answers: int, headers: Mapping[str, str] | None = None, at: int = 0) -> None:
        """`at`: the port; 0: a free one."""
        self.posted: Queue[Posted] = Queue()
        self.answers = [*answers]
        self._headers = headers or {}
        self._over = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = outer.answers.pop(0) if outer.answers else 200
                outer.posted.put(Posted(self.path, dict(self.headers.items()), body))
                if status == HANG:
                    outer._over.wait(PATIENCE_S)
                    return
                with suppress(OSError):
                    self.send_response(status)
                    for name, value in outer._headers.items():
                        self.send_header(name, value)
                    self.send_header("Content-Length", "0")
                    self.end_headers()

            do_GET = do_POST  # noqa: N815 (of a redirect that is followed)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", at), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})

    def next(self) -> Posted:
        """The next request, once it is there."""
        return self.posted.get(timeout=PATIENCE_S)

    def __enter__(self) -> Webhook:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._over.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class Mailbox:
    """An SMTP server (RFC 5321) with STARTTLS and AUTH PLAIN; every mail is in `mails`."""

    def __init__(
        self,
        *,
        tls: ssl.SSLContext | None = None,
        login: tuple[str, str] | None = None,
        refuses: Mapping[str, str] | None = None,
        at_once: bool = False,
    ) -> None:
        """`at_once`: TLS from the beginning, not by STARTTLS. `refuses`: the answer to a command (or to RCPT
        of an address), once, in place of 250."""
        self.mails: Queue[EmailMessage] = Queue()
        self.refuses = dict(refuses or {})
        self.commands: list[str] = []
        self._tls = tls
        self._login = login
        self.tls_at_once = tls if at_once else None
        self.address = ""

    def next(self) -> EmailMessage:
        """The next mail, once it is there."""
        return self.mails.get(timeout=PATIENCE_S)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        secure = self._tls is None or self.tls_at_once is not None

        def say(text: str) -> None:
            writer.write(text.encode() + b"\r\n")

        say("220 mailbox.example ESMTP")
        with suppress(OSError, asyncio.IncompleteReadError):
            while line := (await reader.readline()).decode().strip():
                self.commands.append(line)
                verb = line.split()[0].upper()
                name = next((one for one in self.refuses if line.upper().startswith(one.upper())), None)
                if name is not None:
                    say(self.refuses.pop(name))
                elif verb == "EHLO":
                    more = ["STARTTLS"] if not secure else ["AUTH PLAIN"] if self._login else []
                    lines = ["mailbox.example", "8BITMIME", "SMTPUTF8", *more]
                    for number, one in enumerate(lines, 1):
                        say(f"250{' ' if number == len(lines) else '-'}{one}")
                elif verb == "STARTTLS" and self._tls is not None:
                    say("220 go on")
                    await writer.drain()
                    await writer.start_tls(self._tls)
                    secure = True
                elif verb == "AUTH":
                    _, user, password = b64decode(line.split()[2]).decode().split("\0")
                    say("235 welcome" if (user, password) == self._login else "535 not that password")
                elif verb == "DATA":
                    say("354 go on")
                    text = await reader.readuntil(b"\r\n.\r\n")
                    mail = message_from_bytes(text[:-3].replace(b"\r\n..", b"\r\n."), policy=policy.default)
                    assert isinstance(mail, EmailMessage)
                    self.mails.put(mail)
                    say("250 taken")
                elif verb == "QUIT":
                    say("221 bye")
                    break
                else:
                    say("250 fine")
                await writer.drain()
        writer.close()


@contextmanager
def serving(mailbox: Mailbox) -> Iterator[Mailbox]:
    """The server runs on a loop of its own until the block ends."""
    started, ended = threading.Event(), asyncio.Event()
    loop = asyncio.new_event_loop()

    async def run() -> None:
        connections: set[asyncio.Task[None]] = set()

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            connections.add(task)
            with suppress(asyncio.CancelledError):
                await mailbox.serve(reader, writer)
            connections.discard(task)

        server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=mailbox.tls_at_once)
        mailbox.address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        started.set()
        await ended.wait()
        server.close()
        for task in connections:
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)

    thread = threading.Thread(target=lambda: loop.run_until_complete(run()))
    thread.start()
    started.wait(PATIENCE_S)
    try:
        yield mailbox
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join(PATIENCE_S)
        loop.close()
