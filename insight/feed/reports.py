"""Reports of clients about themselves (KIP-714), read from nodes over HTTP, as these have no journal."""

from __future__ import annotations

import asyncio
import http.client
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import urlsplit

from ringleader.host.http_client import opener
from ringleader.insight.inference import journal
from ringleader.insight.inference.facts import Told

ANSWER_MAX_BYTES = 8 << 20
"""Of one answer; a node's have some 3 MB at most."""
TIMEOUT_S = 5.0
NODES_MAX = 256
"""Of one cluster: each is asked on a thread of its own."""


def node_url(text: str) -> str:
    """The address of a node's HTTP endpoint, http://HOST:PORT or https. Raises ValueError, one sentence."""
    try:
        parts = urlsplit(text)
        good = parts.scheme in ("http", "https") and parts.hostname is not None and parts.port is not None
        bare = parts.path in ("", "/") and not (parts.query or parts.fragment or parts.username)
    except ValueError:
        good = bare = False
    if not (good and bare):
        raise ValueError(f"give a node as http://HOST:PORT, or https, not {text!r}")
    return f"{parts.scheme}://{parts.netloc}"


class Reports:
    """The nodes of a cluster, and how far each was read. A node that does not answer is said once, and asked
    again; it holds up no other."""

    def __init__(
        self,
        urls: Iterable[str],
        on_notice: Callable[[str], None],
        *,
        token: str | None = None,
        context: ssl.SSLContext | None = None,
    ) -> None:
        """`urls`: see `node_url`; each raises ValueError. `token`: of their `http.token.file`. `context`: for
        https; default: the authorities that the machine trusts. `on_notice` gets sentences for people."""
        self._after = {node_url(one): 0 for one in urls}
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._opener = opener(context or ssl.create_default_context())
        self._on_notice = on_notice
        self._silent: set[str] = set()

    async def read(self) -> list[Told]:
        """The reports since the last call, in the order of time."""
        found = await asyncio.gather(*(self._of(url) for url in self._after))
        return sorted((told for some in found for told in some), key=lambda one: one.at_ms)

    async def _of(self, url: str) -> list[Told]:
        found: list[Told] = []
        more = True
        try:
            while more:
                some, self._after[url], more = await asyncio.to_thread(self._ask, url, self._after[url])
                found += some
        except (OSError, ValueError, http.client.HTTPException) as error:
            if isinstance(error, urllib.error.HTTPError):
                error.close()
            if url not in self._silent:
                self._silent.add(url)
                why = str(error).rstrip(".")
                self._on_notice(f"what clients told {url} cannot be read: {why}; it is tried again")
        else:
            if url in self._silent:
                self._silent.remove(url)
                self._on_notice(f"what clients told {url} can be read again")
        return found

    def _ask(self, url: str, after: int) -> tuple[list[Told], int, bool]:
        """The reports after that number, the number of the last one, and whether there are more."""
        asked = urllib.request.Request(f"{url}/clients?after={after}", headers=self._headers)
        with self._opener.open(asked, timeout=TIMEOUT_S) as answer:
            body = answer.read(ANSWER_MAX_BYTES + 1)
        if len(body) > ANSWER_MAX_BYTES:
            raise ValueError(f"the answer has more than {ANSWER_MAX_BYTES} bytes")
        try:
            said: Any = json.loads(body)
            return [journal.told(one) for one in said["reports"]], int(said["last"]), bool(said["more"])
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(f"the answer is of another kind ({error!r})") from None
