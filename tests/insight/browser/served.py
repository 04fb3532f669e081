"""A page's server as a process of its own, as `ringleader watch` is one: what drives the browser waits."""

from __future__ import annotations

import asyncio
import http.client
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from ringleader.clients.admin import Admin
from ringleader.insight.web import read_token, serve
from ringleader.insight.web.sources import Source

BOOTSTRAP = "SERVED_BOOTSTRAP"
RESET_TOKEN = "SERVED_RESET_TOKEN"


class Served:
    """The page over one history, or over those of several clusters by name, while the block lasts."""

    def __init__(
        self,
        path: Path | dict[str, Path],
        token: str | None = None,
        bootstrap: str = "",
        reset_token: str = "",
    ) -> None:
        """`bootstrap`: of the cluster that can be changed from the page."""
        several = path if isinstance(path, dict) else {"": path}
        self.path = next(iter(several.values()))
        self._given = [f"{name}={file}" for name, file in several.items()]
        self.url = ""
        self._environ = dict(os.environ) | {BOOTSTRAP: bootstrap, RESET_TOKEN: reset_token}
        self._environ |= {"RINGLEADER_PAGE_TOKEN": token} if token else {}

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "tests.insight.browser.served", *self._given]
        self._process = subprocess.Popen(command, env=self._environ, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()
        assert self.url
        try:
            _ready(self.url)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        assert self._process.stdout is not None
        self._process.terminate()
        self._process.wait()
        self._process.stdout.close()


def _ready(url: str) -> None:
    """Once the history has been read. No event loop: the browser's is in this thread."""
    place, deadline_s = urlsplit(url), time.monotonic() + 120
    while True:
        connection = http.client.HTTPConnection(str(place.hostname), place.port, timeout=60)
        try:
            connection.request("GET", "/health")
            if connection.getresponse().status == 200:
                return
        finally:
            connection.close()
        assert time.monotonic() < deadline_s
        time.sleep(0.05)


def _say(url: str) -> None:
    print(url, flush=True)


async def _serve() -> None:
    bootstrap = os.environ[BOOTSTRAP]
    admin = (lambda: Admin(bootstrap)) if bootstrap else None
    named = (one.partition("=") for one in sys.argv[1:])
    given = [Source(name, Path(file), admin=admin) for name, _, file in named]
    reset_token = os.environ[RESET_TOKEN] or None
    await serve(given, token=read_token(), reset_token=reset_token, started=_say)


if __name__ == "__main__":
    asyncio.run(_serve())
