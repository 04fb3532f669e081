"""An incident in the words of each target."""

from __future__ import annotations

import json
from email import message_from_bytes, policy

import pytest

from ringleader.insight.model import Event, EventKind
from ringleader.insight.notices.forms import TEXT_MAX, Notice, as_json, as_mail, as_slack, link_of
from ringleader.insight.plain import FORMAT, entry

TEXT = "Flapping member, likely: app-2 fell silent <twice> & came back."


def notice(
    group: str = "billing", text: str = TEXT, page: str | None = "http://watch:8088/", name: str = ""
) -> Notice:
    event = Event(f"incident-{group}-x-1", group, 1_790_000_000_000, EventKind.INCIDENT, text)
    return Notice(event, "id", "prod:9092", name, link_of(page, group, name))


def test_json_is_the_event_of_watch_and_where_it_is() -> None:
    one = notice()
    assert as_json(one) == {
        **entry(one.incident),
        "revises": False,
        "cluster_id": "id",
        "cluster": "prod:9092",
        "link": "http://watch:8088/#/group/billing",
    }
    assert as_json(one)["format"] == FORMAT
    assert as_json(one)["kind"] == "incident"
    assert as_json(notice(page=None))["link"] is None


@pytest.mark.parametrize(
    ("group", "link"),
    [
        ("a/b c?#ü", "http://watch:8088/#/group/a%2Fb%20c%3F%23%C3%BC"),
        ("", "http://watch:8088/"),
        ("a|b>", "http://watch:8088/#/group/a%7Cb%3E"),
    ],
)
def test_a_link_leads_to_the_group(group: str, link: str) -> None:
    assert notice(group).link == link


def test_of_several_clusters_each_is_named() -> None:
    one = notice(name="eu & us")
    assert as_json(one)["cluster_name"] == "eu & us"
    assert (one.about, one.link) == (
        "billing of cluster eu & us", "http://watch:8088/#/group/billing?cluster=eu%20%26%20us",
    )  # fmt: skip
    away = notice("", name="eu & us")
    assert (away.about, away.link) == ("cluster eu & us", "http://watch:8088/#/?cluster=eu%20%26%20us")


def test_slack_has_its_own_markup_escaped() -> None:
    text = as_slack(notice("<!channel>"))["text"]
    assert text == (
        "*&lt;!channel&gt;*: Flapping member, likely: app-2 fell silent &lt;twice&gt; &amp; came back.\n"
        "<http://watch:8088/#/group/%3C%21channel%3E|Open the page>"
    )
    assert as_slack(notice("", page=None))["text"].startswith("*cluster prod:9092*: ")
    assert len(as_slack(notice(text="x" * 100_000))["text"]) < TEXT_MAX + 200


@pytest.mark.parametrize("group", ["billing", "a\r\nBcc: x@example", "ü" * 249, "\udcff", "\x1b[2J"])
def test_a_mail_has_one_subject_whatever_the_group_is_called(group: str) -> None:
    made = as_mail(notice(group), "watch@example.com", ("a@example.com", "b@example.com"))
    read = message_from_bytes(made.as_bytes(), policy=policy.default)
    assert {*read} >= {"From", "To", "Subject", "Message-ID"}
    assert "Bcc" not in read
    assert read["To"] == "a@example.com, b@example.com"
    assert read["Subject"].startswith("[ringleader] ")
    body = read.get_content()
    assert TEXT in body
    assert "2026-09-21T" in body
    assert body.rstrip().endswith(notice(group).link)
    assert "\x1b" not in body
    again = as_mail(notice(group), "watch@example.com", ("a@example.com",))
    assert again["Message-ID"] == made["Message-ID"]


def test_every_form_is_written() -> None:
    """Names that are no text in UTF-8, too."""
    one = notice("\udcff")
    for made in (as_json(one), as_slack(one)):
        assert json.dumps(made, ensure_ascii=False).encode("utf-8", "replace")
