"""Prints the source of the decoders and encoders of one message."""

from __future__ import annotations

import argparse

from ringleader.protocol import messages
from ringleader.protocol.codegen.functions import module_source
from ringleader.protocol.fields import Declared


def main() -> None:
    """Print the source of all versions of a message, or of one."""
    parser = argparse.ArgumentParser(
        prog="python -m ringleader.protocol.codegen",
        description="Print the decoders and encoders that are compiled for a message.",
    )
    parser.add_argument("message", help="for example HeartbeatRequest")
    parser.add_argument("version", type=int, nargs="?", help="all if not given")
    given = parser.parse_args()
    cls = getattr(messages, given.message, None)
    if not (isinstance(cls, type) and issubclass(cls, Declared)):
        parser.error(f"no message is named {given.message!r}: see ringleader.protocol.messages")
    versions = range(cls.MIN_VERSION, cls.MAX_VERSION + 1)
    if given.version is not None:
        if given.version not in versions:
            declared = f"{versions[0]} to {versions[-1]}"
            parser.error(f"{given.message} is declared for versions {declared}, not {given.version}")
        versions = range(given.version, given.version + 1)
    print(module_source(cls, versions), end="")


if __name__ == "__main__":
    main()
