"""``ringleader acls``: who may do what. Works against any Kafka with an authorizer."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Annotated

import typer

from ringleader.cli.asking import ask
from ringleader.cli.common import (
    BOOTSTRAP,
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
    from ringleader.clients.acls import Acl
    from ringleader.clients.admin import Admin

app = typer.Typer(
    no_args_is_help=True,
    help="Add, list and remove ACLs, of Ringleader or of any Kafka.\n\n"
    "Examples:\n\n"
    "  ringleader acls add User:alice READ --topic orders --command-config admin.properties\n\n"
    "  ringleader acls list --principal User:alice\n\n"
    "  ringleader acls remove User:alice READ --topic orders",
)

ADD_HELP = (
    "Allow or deny a principal to do something with topics, groups, transactional ids or the cluster.\n\n"
    "Examples:\n\n"
    "  ringleader acls add User:alice READ --topic orders --group billing\n\n"
    "  ringleader acls add User:bob WRITE DESCRIBE --topic metrics- --prefixed\n\n"
    "  ringleader acls add User:mallory ALL --topic '*' --deny"
)
LIST_HELP = (
    "List ACLs: all, or those of a principal, a topic or a group.\n\n"
    "Examples:\n\n"
    "  ringleader acls list --command-config admin.properties\n\n"
    "  ringleader acls list --topic orders --json | jq -r '.[].principal'"
)
REMOVE_HELP = (
    "Remove exactly the ACLs that `add` with the same words makes.\n\n"
    "Examples:\n\n"
    "  ringleader acls remove User:alice READ --topic orders"
)

PrincipalArgument = Annotated[
    str,
    typer.Argument(
        metavar="PRINCIPAL",
        parser=utf8,
        help="Principal as TYPE:NAME, for example User:alice.",
        show_default=False,
    ),
]
OperationsArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="OPERATION...", parser=utf8, help="Operation: READ, WRITE, ..., ALL.", show_default=False
    ),
]
TopicsOption = Annotated[
    list[str] | None, typer.Option("--topic", metavar="NAME", parser=utf8, help="Topic.")
]
GroupsOption = Annotated[
    list[str] | None, typer.Option("--group", metavar="NAME", parser=utf8, help="Group.")
]
IdsOption = Annotated[
    list[str] | None,
    typer.Option("--transactional-id", metavar="ID", parser=utf8, help="Transactional id."),
]
ClusterOption = Annotated[bool, typer.Option("--cluster", help="The cluster as the resource.")]
PrefixedOption = Annotated[bool, typer.Option("--prefixed", help="Treat the resource names as prefixes.")]
DenyOption = Annotated[
    bool, typer.Option("--deny", help="Deny the operation, even if another ACL allows it.")
]
HostOption = Annotated[
    str, typer.Option(metavar="ADDRESS", parser=utf8, help="Client address the ACL applies to. Default: all.")
]


def _acls(
    principal: str,
    operations: list[str],
    names: dict[str, list[str] | None],
    *,
    cluster: bool,
    prefixed: bool,
    deny: bool,
    host: str,
) -> list[Acl]:
    from ringleader.clients.acls import CLUSTER_NAME, Acl

    pattern, permission = "PREFIXED" if prefixed else "LITERAL", "DENY" if deny else "ALLOW"
    of = [(kind, name, pattern) for kind, found in names.items() for name in found or ()]
    of += [("CLUSTER", CLUSTER_NAME, "LITERAL")] if cluster else []
    if not of:
        fail("Say on what: --topic, --group, --transactional-id or --cluster.", WRONG_INPUT)
    try:
        return [
            Acl(principal, operation.upper().replace("-", "_"), kind, name, one, permission, host)
            for kind, name, one in of
            for operation in operations
        ]
    except ValueError as error:
        fail(f"{error}.", WRONG_INPUT)


def _text(acl: Acl) -> str:
    pattern = f" {acl.pattern_type.lower()}" if acl.pattern_type != "LITERAL" else ""
    host = "" if acl.host == "*" else f" from {acl.host}"
    what = f"{acl.resource_type}{pattern} {acl.resource_name}"
    return printable(f"{acl.permission} {acl.principal} {acl.operation} on {what}{host}")


@app.command("add", help=ADD_HELP)
def add(
    principal: PrincipalArgument,
    operations: OperationsArgument,
    topic: TopicsOption = None,
    group: GroupsOption = None,
    transactional_id: IdsOption = None,
    cluster: ClusterOption = False,
    prefixed: PrefixedOption = False,
    deny: DenyOption = False,
    host: HostOption = "*",
    bootstrap_server: BootstrapOption = BOOTSTRAP,
    command_config: CommandConfigOption = None,
) -> None:
    """Allow or deny."""
    names = {"TOPIC": topic, "GROUP": group, "TRANSACTIONAL_ID": transactional_id}
    acls = _acls(principal, operations, names, cluster=cluster, prefixed=prefixed, deny=deny, host=host)

    async def question(admin: Admin) -> None:
        await admin.create_acls(acls)

    ask(bootstrap_server, question, command_config)
    for acl in acls:
        print(f"Added {_text(acl)}.")


@app.command("list", help=LIST_HELP)
def list_acls(
    principal: Annotated[
        str | None, typer.Option(metavar="PRINCIPAL", parser=utf8, help="Only ACLs of this principal.")
    ] = None,
    topic: Annotated[
        str | None, typer.Option(metavar="NAME", parser=utf8, help="Only ACLs of this topic.")
    ] = None,
    group: Annotated[
        str | None, typer.Option(metavar="NAME", parser=utf8, help="Only ACLs of this group.")
    ] = None,
    bootstrap_server: BootstrapOption = BOOTSTRAP,
    command_config: CommandConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """List ACLs."""
    if topic is not None and group is not None:
        fail("Give --topic or --group, not both.", WRONG_INPUT)
    kind = "TOPIC" if topic is not None else "GROUP" if group is not None else None

    async def question(admin: Admin) -> list[Acl]:
        return await admin.acls(
            principal=principal, resource_type=kind, resource_name=topic if topic is not None else group
        )

    found = ask(bootstrap_server, question, command_config)
    if as_json:
        print(json.dumps([dataclasses.asdict(acl) for acl in found]))
        return
    shown = table("PRINCIPAL", "PERMISSION", "OPERATION", "RESOURCE", "PATTERN", "NAME", "HOST")
    for acl in found:
        shown.add_row(
            *(acl.principal, acl.permission, acl.operation, acl.resource_type),
            *(acl.pattern_type, acl.resource_name, acl.host),
        )
    console().print(shown)


@app.command("remove", help=REMOVE_HELP)
def remove(
    principal: PrincipalArgument,
    operations: OperationsArgument,
    topic: TopicsOption = None,
    group: GroupsOption = None,
    transactional_id: IdsOption = None,
    cluster: ClusterOption = False,
    prefixed: PrefixedOption = False,
    deny: DenyOption = False,
    host: HostOption = "*",
    bootstrap_server: BootstrapOption = BOOTSTRAP,
    command_config: CommandConfigOption = None,
) -> None:
    """Remove exactly these."""
    names = {"TOPIC": topic, "GROUP": group, "TRANSACTIONAL_ID": transactional_id}
    acls = _acls(principal, operations, names, cluster=cluster, prefixed=prefixed, deny=deny, host=host)

    async def question(admin: Admin) -> list[Acl]:
        known = set(await admin.acls(principal=principal))
        missing = [acl for acl in acls if acl not in known]
        if not missing:
            await admin.delete_acls(acls)
        return missing

    missing = ask(bootstrap_server, question, command_config)
    if missing:
        fail(f"There is no ACL {', '.join(map(_text, missing))}; none was removed.")
    for acl in acls:
        print(f"Removed {_text(acl)}.")
