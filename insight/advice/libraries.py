"""Client libraries, by the client ids that they have by default."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from ringleader.insight.model import Member


@dataclass(frozen=True, slots=True)
class Library:
    """A client library."""

    name: str
    client_id: re.Pattern[str]
    """Of its default client ids; a group of it is the version."""
    since: str | None
    """The first version that speaks the protocol for use in production; None: none did in November 2026."""


LIBRARIES = (
    Library("aiokafka", re.compile(r"aiokafka-(\d\S*)"), None),
    Library("kafka-python", re.compile(r"kafka-python-(\d\S*)"), None),
    Library("KafkaJS", re.compile(r"kafkajs()"), None),
    Library("librdkafka", re.compile(r"rdkafka()"), "2.12"),
    Library("Java", re.compile(r"consumer-.+-\d+()"), "4.0"),
    Library("Ringleader", re.compile(r"ringleader()"), "0.1"),
)


def libraries_of(
    members: Iterable[Member],
) -> tuple[dict[Library, list[tuple[Member, str]]], list[Member]]:
    """Library -> its members, each with the version ("": not in the client id); and members of no library,
    whose client ids are their own."""
    found: dict[Library, list[tuple[Member, str]]] = defaultdict(list)
    unknown: list[Member] = []
    for one in members:
        for library in LIBRARIES:
            fits = library.client_id.fullmatch(one.client_id)
            if fits is not None:
                found[library].append((one, fits[1]))
                break
        else:
            unknown.append(one)
    return found, unknown
