"""One owner for each tenant: processes share tenants, and no two work for the same one at the same time.

    python tenants.py 127.0.0.1:9092 acme bell corp dyno

Start it as often as you like; each prints which tenants it has. When one ends or dies, the others have its
tenants. A tenant keeps its owner as far as that is possible: it goes to the member that comes first for it in
a hash of both names (rendezvous hashing).
"""

import hashlib
import json
import sys
import time

from ringleader import MemberProtocol, SyncGroupMember

ROUNDS_S = 0.2


def rank(tenant, member_id):
    return hashlib.sha256(f"{tenant}/{member_id}".encode()).digest()


def share_out(tenants):
    def assign(_protocol, members):  # runs in the member that leads
        mine = {member.member_id: [] for member in members}
        for tenant in tenants:
            mine[max(mine, key=lambda one: rank(tenant, one))].append(tenant)
        return {one: json.dumps(found).encode() for one, found in mine.items()}

    return assign


def main(bootstrap, *tenants):
    with SyncGroupMember(
        bootstrap,
        "billing-runs",
        protocol_type="tenants",
        protocols=[MemberProtocol("rendezvous")],
        assign=share_out(tenants),
        session_timeout_ms=6_000,
        heartbeat_interval_ms=500,
        on_assigned=lambda share: print("mine", *json.loads(share.assignment), flush=True),
    ) as member:
        while True:
            with member.working() as share:  # a rebalance waits for the end of this block
                for tenant in json.loads(share.assignment):
                    print("worked for", tenant, flush=True)
            time.sleep(ROUNDS_S)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except KeyboardInterrupt:
        sys.exit()  # the member has left: the others have its tenants already
