"""``ringleader users``: who may log in by SCRAM and PLAIN. Works against any Kafka that keeps SCRAM users,
and on what a daemon or nodes keep, when no user can log in yet."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple, TypeVar

import typer

from ringleader.cli.asking import NOWHERE, ask, security_of, servers_of
from ringleader.cli.common import (
    BOOTSTRAP,
    NONE,
    WRONG_INPUT,
    BootstrapOption,
    CommandConfigOption,
    JsonOption,
    console,
    fail,
    table,
    utf8,
)
from ringleader.host.printable import printable

if TYPE_CHECKING:
    from ringleader.clients.admin import Admin
    from ringleader.coordinator.security.directory import Security

PREFIX = "SCRAM-"
PASSWORD_FILE_MAX_BYTES = 65_536

T = TypeVar("T")


class _OnCluster(NamedTuple):
    """Where nodes keep users."""

    bootstrap: str
    properties: Path | None
    topic: str
    replicas: int

    def run(self, work: Callable[[Security], Awaitable[T]]) -> T:
        """An error ends the command with one sentence."""
        from ringleader.clients.connection.cluster import Cluster
        from ringleader.clients.errors import ClientError
        from ringleader.coordinator.security.acls import AllowAll
        from ringleader.coordinator.security.directory import Security
        from ringleader.coordinator.storage.base import StorageError
        from ringleader.coordinator.storage.kafka import TopicStore
        from ringleader.protocol.errors import KafkaError

        logging.getLogger("ringleader.clients").addHandler(NOWHERE)
        servers_of(self.bootstrap, "--cluster")
        _, access = security_of(self.properties, "--cluster-properties")

        async def done() -> T:
            async with Cluster(self.bootstrap, tls=access.tls, sasl=access.sasl) as cluster:
                await cluster.ready(TIMEOUT_S)
                security = Security(TopicStore(cluster, self.topic, self.replicas), AllowAll())
                try:
                    await security.start()
                    return await work(security)
                finally:
                    await security.store.close()

        try:
            return asyncio.run(done())
        except (ClientError, StorageError, KafkaError, OSError) as error:
            fail(f"{str(error).rstrip('.')}.")


app = typer.Typer(
    no_args_is_help=True,
    help="Add, list and remove users with SCRAM credentials, of Ringleader or of any Kafka.\n\n"
    "Examples:\n\n"
    "  ringleader users add admin --data-dir /var/lib/ringleader\n\n"
    "  ringleader users add alice --password-file alice.password --command-config admin.properties\n\n"
    "  ringleader users list --command-config admin.properties\n\n"
    "  ringleader users remove alice --command-config admin.properties",
)

ADD_HELP = (
    "Add a user, or give it another password. The password is asked for, or read from a file or standard "
    "input (the first line); it is kept salted, and never sent.\n\n"
    "With --data-dir into the directory of a daemon that does not run, with --cluster into the topic that "
    "nodes have on a Kafka cluster: how the first user comes to be.\n\n"
    "Examples:\n\n"
    "  ringleader users add admin --data-dir /var/lib/ringleader\n\n"
    "  ringleader users add admin --cluster k1:9092,k2:9092 --cluster-properties nodes.properties\n\n"
    "  ringleader users add alice --password-file alice.password --command-config admin.properties"
)
LIST_HELP = (
    "List all users, with the mechanisms that each has credentials for.\n\n"
    "Examples:\n\n"
    "  ringleader users list --command-config admin.properties\n\n"
    "  ringleader users list --json | jq -r '.[].user'\n\n"
    "  ringleader users list --cluster k1:9092,k2:9092"
)
REMOVE_HELP = (
    "Remove users: nobody logs in as them any more. Connections that are through stay until their session is "
    "over.\n\n"
    "Examples:\n\n"
    "  ringleader users remove alice --command-config admin.properties\n\n"
    "  ringleader users remove alice bob"
)

TIMEOUT_S = 10.0

ClusterOption = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        parser=utf8,
        metavar="HOST:PORT[,...]",
        help="Brokers of the Kafka cluster that stores the nodes' users. Replaces --bootstrap-server.",
    ),
]
PropertiesOption = Annotated[
    Path | None,
    typer.Option(
        "--cluster-properties",
        envvar="RINGLEADER_CLUSTER_PROPERTIES",
        metavar="FILE",
        help="With --cluster: client properties for TLS and SASL, as for `ringleader serve`.",
    ),
]
TopicOption = Annotated[
    str,
    typer.Option(
        "--cluster-security-topic",
        parser=utf8,
        envvar="RINGLEADER_CLUSTER_SECURITY_TOPIC",
        metavar="TOPIC",
        help="With --cluster: topic that stores users; created if it does not exist.",
    ),
]
SECURITY_TOPIC = "__ringleader_security"
ReplicationOption = Annotated[
    int,
    typer.Option(
        "--cluster-replication-factor",
        envvar="RINGLEADER_CLUSTER_REPLICATION_FACTOR",
        metavar="NUMBER",
        min=1,
        help="With --cluster: replication factor of that topic when it is created.",
    ),
]
REPLICAS = 3

MechanismOption = Annotated[
    list[str] | None,
    typer.Option(
        "--mechanism",
        metavar="NAME",
        parser=utf8,
        help="SCRAM-SHA-512 (default) or SCRAM-SHA-256; may be repeated.",
    ),
]


@app.command("add", help=ADD_HELP)
def add(
    user: Annotated[str, typer.Argument(metavar="USER", parser=utf8, help="User name.", show_default=False)],
    password_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File whose first line is the password.", dir_okay=False),
    ] = None,
    mechanism: MechanismOption = None,
    iterations: Annotated[
        int, typer.Option(metavar="NUMBER", min=4_096, max=16_384, help="Iterations of the salted hash.")
    ] = 4_096,
    data_dir: Annotated[
        Path | None,
        typer.Option(
            metavar="DIRECTORY",
            help="Data directory of a daemon that is not running. Replaces --bootstrap-server.",
        ),
    ] = None,
    bootstrap_server: BootstrapOption = BOOTSTRAP,
    command_config: CommandConfigOption = None,
    cluster: ClusterOption = None,
    cluster_properties: PropertiesOption = None,
    cluster_security_topic: TopicOption = SECURITY_TOPIC,
    cluster_replication_factor: ReplicationOption = REPLICAS,
) -> None:
    """Add a user, or give it another password."""
    hashes = _hashes(mechanism)
    if data_dir is not None and cluster is not None:
        fail("Give --data-dir or --cluster, not both.", WRONG_INPUT)
    if not user:
        fail("A user has a name.", WRONG_INPUT)
    if data_dir is not None or cluster is not None:
        _check_name(user)
    password = _password(password_file)
    if data_dir is not None:
        _add_here(data_dir, user, password, hashes, iterations)
    elif cluster is not None:
        nodes = _OnCluster(cluster, cluster_properties, cluster_security_topic, cluster_replication_factor)
        nodes.run(lambda security: _add(security, user, password, hashes, iterations))
    else:

        async def question(admin: Admin) -> None:
            for name in hashes:
                await admin.set_scram_user(user, password, hash_name=name, iterations=iterations)

        ask(bootstrap_server, question, command_config)
    print(f"User {printable(user)} may log in by {' and '.join(PREFIX + name for name in hashes)}.")


@app.command("list", help=LIST_HELP)
def list_users(
    bootstrap_server: BootstrapOption = BOOTSTRAP,
    command_config: CommandConfigOption = None,
    as_json: JsonOption = False,
    cluster: ClusterOption = None,
    cluster_properties: PropertiesOption = None,
    cluster_security_topic: TopicOption = SECURITY_TOPIC,
    cluster_replication_factor: ReplicationOption = REPLICAS,
) -> None:
    """List all users."""

    async def question(admin: Admin) -> dict[str, dict[str, int]]:
        return await admin.scram_users()

    async def kept(security: Security) -> dict[str, dict[str, int]]:
        return {
            user: {name.removeprefix(PREFIX): one.iterations for name, one in known.items()}
            for user, known in security.users.known().items()
        }

    if cluster is not None:
        nodes = _OnCluster(cluster, cluster_properties, cluster_security_topic, cluster_replication_factor)
        found = nodes.run(kept)
    else:
        found = ask(bootstrap_server, question, command_config)
    rows = [
        {"user": user, "mechanisms": {PREFIX + name: found[user][name] for name in sorted(found[user])}}
        for user in sorted(found)
    ]
    if as_json:
        print(json.dumps(rows))
        return
    shown = table("USER", *(names := [f"{PREFIX}SHA-256", f"{PREFIX}SHA-512"]), right=tuple(names))
    for user in sorted(found):
        iterations = (found[user].get(name.removeprefix(PREFIX)) for name in names)
        shown.add_row(user, *(NONE if one is None else f"{one} iterations" for one in iterations))
    console().print(shown)


@app.command("remove", help=REMOVE_HELP)
def remove(
    users: Annotated[
        list[str], typer.Argument(metavar="USER...", parser=utf8, help="User names.", show_default=False)
    ],
    bootstrap_server: BootstrapOption = BOOTSTRAP,
    command_config: CommandConfigOption = None,
    cluster: ClusterOption = None,
    cluster_properties: PropertiesOption = None,
    cluster_security_topic: TopicOption = SECURITY_TOPIC,
    cluster_replication_factor: ReplicationOption = REPLICAS,
) -> None:
    """Remove users."""

    async def question(admin: Admin) -> list[str]:
        known = await admin.scram_users()
        missing = [user for user in users if user not in known]
        if not missing:
            for user in dict.fromkeys(users):
                for name in known[user]:
                    await admin.delete_scram_user(user, hash_name=name)
        return missing

    async def kept(security: Security) -> list[str]:
        missing = [user for user in users if user not in security.users.known()]
        if not missing:
            await security.users.change({user: {} for user in users})
        return missing

    if cluster is not None:
        nodes = _OnCluster(cluster, cluster_properties, cluster_security_topic, cluster_replication_factor)
        missing = nodes.run(kept)
    else:
        missing = ask(bootstrap_server, question, command_config)
    if missing:
        fail(f"There is no user {', '.join(map(printable, missing))}; nobody was removed.")
    print(f"Removed {', '.join(map(printable, dict.fromkeys(users)))}.")


def _hashes(mechanisms: list[str] | None) -> list[str]:
    found = [name.upper().removeprefix(PREFIX) for name in mechanisms or ["SHA-512"]]
    for name in found:
        if name not in ("SHA-256", "SHA-512"):
            fail(f"--mechanism: there are SCRAM-SHA-512 and SCRAM-SHA-256, not {name}.", WRONG_INPUT)
    return list(dict.fromkeys(found))


def _password(file: Path | None) -> str:
    """Asked for twice at a terminal. Ends the command when there is none."""
    if file is not None:
        try:
            with file.open("rb") as stream:
                line = stream.readline(PASSWORD_FILE_MAX_BYTES)
        except OSError as error:
            fail(f"--password-file {file}: {error.strerror or error}.", WRONG_INPUT)
    elif sys.stdin.isatty():
        return str(typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True))
    else:
        line = sys.stdin.buffer.readline(PASSWORD_FILE_MAX_BYTES)
    try:
        password = line.decode().rstrip("\r\n")
    except UnicodeDecodeError:
        fail("The password is not UTF-8.", WRONG_INPUT)
    if not password or "\0" in password:
        fail("The first line has to be the password: it is empty, or has a zero character.", WRONG_INPUT)
    return password


def _check_name(user: str) -> None:
    from ringleader.coordinator.security.among_nodes import NODE

    if user == NODE.name:
        fail(f"{user} is what nodes call themselves: give the user another name.", WRONG_INPUT)


def _add_here(directory: Path, user: str, password: str, hashes: list[str], iterations: int) -> None:
    from ringleader.coordinator.data_dir import OWNER_ONLY
    from ringleader.coordinator.identity import Identity, make_directory
    from ringleader.coordinator.security.acls import AllowAll
    from ringleader.coordinator.security.directory import Security
    from ringleader.coordinator.security.store import FILE, FileStore
    from ringleader.coordinator.storage.base import StorageError
    from ringleader.coordinator.storage.lock import DirectoryLock
    from ringleader.protocol.errors import KafkaError

    lock = DirectoryLock(directory)
    try:
        make_directory(directory, OWNER_ONLY)
        lock.acquire()
        Identity.find(directory, ())

        async def added() -> None:
            security = Security(FileStore(directory / FILE), AllowAll())
            await security.start()
            await _add(security, user, password, hashes, iterations)

        asyncio.run(added())
    except StorageError as error:
        fail(f"{str(error).rstrip('.')}: stop the daemon, or leave --data-dir out and ask it.")
    except (KafkaError, OSError) as error:
        fail(f"{str(error).rstrip('.')}.")
    finally:
        lock.release()


async def _add(security: Security, user: str, password: str, hashes: list[str], iterations: int) -> None:
    from ringleader.coordinator.security.scram import MECHANISMS, Credential, salt_password
    from ringleader.coordinator.security.users import fresh_salt

    known = dict(security.users.known().get(user, {}))
    for name in hashes:
        kind, salt = MECHANISMS[PREFIX + name], fresh_salt()
        salted = salt_password(kind, password.encode(), salt, iterations)
        known[kind.name] = Credential.salted(kind, iterations, salt, salted)
    await security.users.change({user: known})
