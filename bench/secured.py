"""Heartbeats per second of the daemon's CPU, with and without ACLs, and over TLS."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from bench.heartbeats import ERROR_AT, VERSION, formed, heartbeat_frames
from bench.peers import Peer, in_turn, summary
from bench.plan import DEPTHS, RINGLEADER, TOPIC, Plan
from bench.processes import Pins, daemon, work_dir
from bench.report import Goal, print_goals, save, say, table
from ringleader.protocol.messages import CreateAclsRequest, CreateAclsRequestAclCreation
from tests.support.certificates import Certificates
from tests.support.ports import free_ports
from tests.support.rawclient import Address, RawConnection, address_of

ACLS = "with ACLs"
PYTHON, PYTHON_ACLS = "Python's load", "Python's load, with ACLs"
TLS, TLS_ACLS = "Python's load, TLS", "Python's load, TLS with ACLs"
GOALS = (
    (ACLS, RINGLEADER, 0.9),
    (PYTHON_ACLS, PYTHON, 0.9),
    (TLS, PYTHON, 0.5),
    (TLS_ACLS, TLS, 0.9),
)
"""The goals: which rate, compared with which, and the lowest ratio."""
GROUP = "heartbeats"
GUARDED = ("--authorizer", "acl", "--super-users", "User:nobody", "--allow-everyone-if-no-acl-found")


def let_in(address: Address) -> None:
    """Allow anonymous clients, and some others, to be members of the group."""
    creations = [
        CreateAclsRequestAclCreation(3, name, pattern, f"User:{principal}", "*", 3, 3)
        for name, pattern, principal in (
            (GROUP, 3, "ANONYMOUS"),
            *((f"group {number}", 3, f"user {number}") for number in range(1_000)),
        )
    ]
    with RawConnection(address) as client:
        made = client.call(CreateAclsRequest(creations=creations), 3)
    if any(one.error_code for one in made.results):
        raise RuntimeError("the ACLs could not be made")


def run(plan: Plan) -> dict[str, Any]:
    """Runs it, prints the table, writes secured.json, returns its content."""
    pins = Pins.choose()
    results: dict[str, Any] = {}
    goals: list[Goal] = []
    say(f"secured: {plan.members} members, {plan.connections} connections")
    plain_port, guarded_port = free_ports(2)
    with pins.aside(), work_dir(plan.data_dir) as directory:
        certificates = Certificates(directory / "certificates")
        topics = [f"{TOPIC}:{plan.members}"]

        def tls(port: int) -> dict[str, Any]:
            options = ["--ssl-keystore-location", str(certificates.server)]
            return {"topics": topics, "options": options, "beside": f"SSL://127.0.0.1:{port}"}

        open_, guarded = tls(plain_port), tls(guarded_port)
        guarded["options"] += GUARDED
        with (
            daemon(directory / "open", pins.server, **open_) as plain,
            daemon(directory / "guarded", pins.server, **guarded) as asking,
        ):
            let_in(address_of(asking.bootstrap))
            files = {
                one: heartbeat_frames(
                    directory / f"frames {one.port}",
                    formed(address_of(one.bootstrap), GROUP, plan.members),
                    plan.connections,
                )
                for one in (plain, asking)
            }
            slow = (sys.executable, "-m", "bench.python_load")
            slow_tls = (*slow, "--authority", str(certificates.authority))

            def peer(name: str, one: Any, port: int, load: Sequence[str] = ()) -> Peer:
                return Peer(name, port, one.pid, files[one], ERROR_AT, load=load)

            peers = [
                peer(RINGLEADER, plain, plain.port),
                peer(ACLS, asking, asking.port),
                peer(PYTHON, plain, plain.port, slow),
                peer(PYTHON_ACLS, asking, asking.port, slow),
                peer(TLS, plain, plain_port, slow_tls),
                peer(TLS_ACLS, asking, guarded_port, slow_tls),
            ]
            for depth in DEPTHS:
                rounds = in_turn(peers, depth, plan, pins)
                medians = {name: summary(measured) for name, measured in rounds.items()}
                for name, of, bound in GOALS:
                    ratio = medians[name]["per_cpu_s"] / medians[of]["per_cpu_s"]
                    goals.append(Goal(f"heartbeats per CPU second, depth {depth}, {name}", of, ratio, bound))
                results[f"depth {depth}"] = {"medians": medians, "rounds": rounds}
    rows = [
        [f"{name}, {depth}", *(float(values[key]) for key in ("per_s", "per_cpu_s", "p50_us", "p99_us"))]
        for depth, result in results.items()
        for name, values in result["medians"].items()
    ]
    columns = ["ringleader", "per second", "per CPU second", "p50 us", "p99 us"]
    table("Heartbeat v4, ACLs and TLS (medians)", columns, rows)
    print_goals(goals)
    whole = {
        "version": VERSION,
        "pins": {"server": pins.server, "load": pins.load},
        "results": results,
    }
    save(plan.out_dir, "secured", whole, goals)
    return whole
