"""The clusters of ``ringleader watch``: addresses, names, and what else is given for each."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from ringleader.cli.asking import security_of, servers_of
from ringleader.cli.common import BOOTSTRAP, WRONG_INPUT, fail

if TYPE_CHECKING:
    from ringleader.clients.connection.security import ClientSecurity

CLUSTERS_MAX = 32
"""Of one watcher: each has threads, connections and a file of its own."""
NAME_MAX = 100


class Cluster(NamedTuple):
    """One that is watched."""

    name: str
    """"" for the only one, unless it was given a name."""
    servers: str
    security: ClientSecurity
    history: Path | None
    """None: in its default place."""
    nodes: tuple[str, ...] = ()
    """HTTP addresses of its nodes."""


def clusters_of(
    given: Sequence[str],
    histories: Sequence[Path],
    configs: Sequence[Path],
    nodes: Sequence[str] = (),
    environ: Mapping[str, str] = os.environ,
) -> list[Cluster]:
    """The clusters that the options name: each `[NAME=]HOST:PORT[,...]`. Of several, one without a name is
    named by its address. Ends the command for what is wrong."""
    texts = list(given) or [environ.get("RINGLEADER_BOOTSTRAP_SERVER") or BOOTSTRAP]
    if len(texts) > CLUSTERS_MAX:
        _fail(f"a watcher has {CLUSTERS_MAX} clusters at most, not {len(texts)}")
    found: dict[str, str] = {}
    for text in texts:
        name, equals, servers = text.partition("=")
        if not equals:
            name, servers = (text if len(texts) > 1 else ""), text
        elif not name or len(name) > NAME_MAX or not name.isprintable():
            _fail(f"a name has 1 to {NAME_MAX} printable characters, not {name!r}")
        servers_of(servers)
        if name in found:
            _fail(f"two clusters are named {name}: give them as NAME=HOST:PORT")
        found[name] = servers
    if not configs and (config := environ.get("RINGLEADER_COMMAND_CONFIG")):
        configs = [Path(config)]
    config_of = _of_each("--command-config", configs, found)
    security = {name: security_of(file)[1] for name, file in config_of.items()}
    files = _of_each("--history", histories, found)
    named = [file for file in files.values() if file is not None]
    if len({*named}) < len(named):
        fail("--history: each cluster has a file of its own: give them as NAME=FILE.", WRONG_INPUT)
    http_of = _nodes_of(nodes, found)
    return [
        Cluster(name, servers, security[name], files[name], http_of[name]) for name, servers in found.items()
    ]


def _fail(why: str) -> NoReturn:
    fail(f"--bootstrap-server: {why}.", WRONG_INPUT)


def _nodes_of(given: Sequence[str], names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The nodes of each cluster: NAME=URL is of that one; of several clusters each has a name."""
    from ringleader.insight.feed.reports import NODES_MAX, node_url

    found: dict[str, list[str]] = {name: [] for name in names}
    for text in given:
        name, equals, url = text.partition("=")
        name, url = (name, url) if equals and name in found else (next(iter(found)), text)
        if url is text and len(found) > 1:
            fail(f"--node-http: of several clusters give NAME=URL, not {text!r}.", WRONG_INPUT)
        try:
            found[name].append(node_url(url))
        except ValueError as error:
            fail(f"--node-http: {error}.", WRONG_INPUT)
    if max(map(len, found.values())) > NODES_MAX:
        fail(f"--node-http: {NODES_MAX} nodes of a cluster at most.", WRONG_INPUT)
    return {name: tuple(urls) for name, urls in found.items()}


def _of_each(option: str, given: Sequence[Path], names: Iterable[str]) -> dict[str, Path | None]:
    """The file of each cluster: NAME=FILE is of that one, FILE of all others."""
    own: dict[str, Path] = {}
    of_all: list[Path] = []
    for path in given:
        name, equals, file = str(path).partition("=")
        if not equals or name not in names:
            of_all.append(path)
        elif name in own:
            fail(f"{option}: {name} has two: {own[name]} and {file}.", WRONG_INPUT)
        else:
            own[name] = Path(file)
    if len(of_all) > 1:
        fail(f"{option}: {of_all[0]} and {of_all[1]}: give one of them, or NAME=FILE.", WRONG_INPUT)
    return {name: own.get(name, of_all[0] if of_all else None) for name in names}
