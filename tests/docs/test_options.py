"""Every option of consumers and members is on a page, with the default that it has."""

from __future__ import annotations

import re
from dataclasses import MISSING, fields
from typing import Any, get_type_hints

import pytest

from ringleader.clients.fetch.model import ConsumerSettings
from ringleader.clients.group.settings import MemberSettings, SubscriptionSettings
from ringleader.clients.options import ConsumerMemberOptions, ConsumerOptions, PartitionConsumerOptions
from tests.docs.fences import ROOT

READERS = ("consumer", "clients", "assignors", "security", "consumer-protocol")
PAGES = {name: (ROOT / f"docs/{name}.md").read_text() for name in READERS}
ROW = re.compile(r"^\| (`[^|]*`) \| ([^|]*) \|", re.MULTILINE)


@pytest.mark.parametrize("options", [ConsumerOptions, PartitionConsumerOptions, ConsumerMemberOptions])
def test_every_option_is_on_a_page(options: type) -> None:
    text = "".join(PAGES.values())
    assert [name for name in get_type_hints(options) if f"`{name}`" not in text] == []


def shown(value: object) -> str:
    if type(value) is int and value >= 1024 * 1024:
        return f"{value // (1024 * 1024)} MiB"
    return (
        repr(value).replace("'", '"').strip("()")
        if isinstance(value, tuple)
        else f'"{value}"'
        if isinstance(value, str)
        else str(value)
    )


@pytest.mark.parametrize(
    ("page", "settings"),
    [
        ("consumer", [ConsumerSettings, SubscriptionSettings]),
        ("clients", [MemberSettings]),
        ("assignors", [SubscriptionSettings]),
    ],
)
def test_defaults_are_those_of_the_code(page: str, settings: list[Any]) -> None:
    defaults = {
        one.name: one.default for kind in settings for one in fields(kind) if one.default is not MISSING
    }
    wrong, compared = [], 0
    for names, values in ROW.findall(PAGES[page]):
        named = re.findall(r"`(\w+)`", names)
        stated = [
            one.strip(" `")
            for one in (values.split(", ") if len(named) > 1 else [values.strip().strip("`()")])
        ]
        for name, value in zip(named, stated, strict=False):
            if name in defaults and re.fullmatch(r'True|False|None|[\d.]+( MiB)?|".*"', value):
                compared += 1
                if value != shown(defaults[name]):
                    wrong.append((name, value, shown(defaults[name])))
    assert wrong == []
    assert compared
