"""The programs that fragments of pages stand in: what the page says of them in words."""

from __future__ import annotations

from textwrap import indent

HEAD = """\
import asyncio, json
from ringleader import GroupConsumer, GroupMember, MemberProtocol

def assign(protocol, members):
    return {member.member_id: json.dumps(list(range(16))).encode() for member in members}

async def main():
"""
TAIL = """
asyncio.run(main())
"""
SURROUNDINGS = {
    "member": """\
    async with GroupMember("127.0.0.1:9092", "fragments", protocol_type="sharding", assign=assign,
                           protocols=[MemberProtocol("deal")]) as member:
        await member.wait_assigned()
""",
    "consumer": """\
    async with GroupConsumer("127.0.0.1:9092", "fragments", "orders", auto_commit=False) as consumer:
        await consumer.wait_assigned()
""",
    "main": "",
}


def whole(name: str, fragment: str) -> str:
    """A program with the fragment in it."""
    around = SURROUNDINGS[name]
    depth = 8 if around else 4
    return HEAD + around + indent(fragment, " " * depth) + TAIL
