"""Reports of clients about themselves (KIP-714), read from nodes over HTTP, as these have no journal."""

from __future__ import annotations

import asyncio
import http.client
import itertools
import json
import re
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import urlsplit

from ringleader.host.http_client import opener
from ringleader.insight.inference import journal
from ringleader.insight.inference.facts import ClientReport

ANSWER_MAX_BYTES = 8 << 20
"""Of one answer; a node's have some 3 MB at most."""
TIMEOUT_S = 5.0
NODES_MAX = 256
"""Of one cluster: each is asked on a thread of its own."""
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}|[0-9A-Fa-f:.]{2,45}", re.ASCII)
"""A name or an address: nothing that ends the host in a URL, or says something else there."""
EVERY_HOST = "*"
"""In place of a host: that of each node, as the cluster names them."""


def node_url(text: str) -> str:
    """The address of a node's HTTP endpoint, http://HOST:PORT or https; the host may be `EVERY_HOST`. Raises
    ValueError, one sentence."""
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
    """The nodes of a cluster, and how far each was read. A node that does not answer is reported once, and
    asked again; it delays no other.

    Hosts of nodes come from the cluster, which is no reason to give them a secret: where there is a token,
    they are asked over https alone, and only with authorities that the operator chose."""

    def __init__(
        self,
        urls: Iterable[str],
        on_notice: Callable[[str], None],
        *,
        token: str | None = None,
        context: ssl.SSLContext | None = None,
    ) -> None:
        """`urls`: see `node_url`. `token`: of their `http.token.file`. `context`: for https; default: the
        authorities that the machine trusts. `on_notice` gets sentences for people. Raises ValueError, one
        sentence, for what is no address, and for `EVERY_HOST` where a token could go to any host."""
        given = [urlsplit(node_url(one)) for one in urls]
        self._every = [one for one in given if one.hostname == EVERY_HOST]
        for one in self._every:
            if token is not None and (one.scheme != "https" or context is None):
                raise ValueError(
                    f"{one.geturl()} with a token needs https and the authorities of the nodes' "
                    "certificates: the cluster says what the hosts are, and any host could get the token"
                )
        self._after = {one.geturl(): 0 for one in given if one.hostname != EVERY_HOST}
        self._named = frozenset(self._after)
        self._urls = self._named
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._opener = opener(context or ssl.create_default_context())
        self._on_notice = on_notice
        self._silent: set[str] = set()

    @property
    def wants_hosts(self) -> bool:
        """Whether `know` says what to ask."""
        return bool(self._every)

    def know(self, hosts: Iterable[str]) -> None:
        """The hosts of the nodes that there are now, for `EVERY_HOST`. A text that is no host,
        and nodes beyond `NODES_MAX`, are skipped, and reported once."""
        urls = set(self._named)
        for host, one in itertools.product(sorted({*hosts}), self._every):
            url = f"{one.scheme}://{f'[{host}]' if ':' in host else host}:{one.port}"
            if not _HOST.fullmatch(host):
                self._say(url, f"{host!r} of a node is no name of a host: it is not asked what clients told")
            elif len(urls | {url}) > NODES_MAX:
                self._say(EVERY_HOST, f"{NODES_MAX} nodes at most are asked what clients told, not {url}")
            else:
                urls.add(url)
                self._after.setdefault(url, 0)
        self._urls = frozenset(urls)

    async def read(self) -> list[ClientReport]:
        """The reports since the last call, in the order of time."""
        found = await asyncio.gather(*(self._of(url) for url in sorted(self._urls)))
        return sorted((report for some in found for report in some), key=lambda one: one.at_ms)

    async def _of(self, url: str) -> list[ClientReport]:
        found: list[ClientReport] = []
        more = True
        try:
            while more:
                some, self._after[url], more = await asyncio.to_thread(self._ask, url, self._after[url])
                found += some
        except (OSError, ValueError, http.client.HTTPException) as error:
            if isinstance(error, urllib.error.HTTPError):
                error.close()
            why = str(error).rstrip(".")
            self._say(url, f"what clients told {url} cannot be read: {why}; it is tried again")
        else:
            if url in self._silent:
                self._silent.remove(url)
                self._on_notice(f"what clients told {url} can be read again")
        return found

    def _say(self, url: str, text: str) -> None:
        """Once, until it is over."""
        if url not in self._silent:
            self._silent.add(url)
            self._on_notice(text)

    def _ask(self, url: str, after: int) -> tuple[list[ClientReport], int, bool]:
        """The reports after that number, the number of the last one, and whether there are more."""
        request = urllib.request.Request(f"{url}/clients?after={after}", headers=self._headers)
        with self._opener.open(request, timeout=TIMEOUT_S) as answer:
            body = answer.read(ANSWER_MAX_BYTES + 1)
        if len(body) > ANSWER_MAX_BYTES:
            raise ValueError(f"the answer has more than {ANSWER_MAX_BYTES} bytes")
        try:
            document: Any = json.loads(body)
            return (
                [journal.client_report(one) for one in document["reports"]],
                int(document["last"]),
                bool(document["more"]),
            )
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(f"the answer is of another kind ({error!r})") from None
