"""An incident in the words of each target."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from email.message import EmailMessage
from email.policy import SMTP
from urllib.parse import quote

from ringleader.insight.model import Event
from ringleader.insight.plain import Json, entry

TEXT_MAX = 3_000
"""Characters of a chat's message and of a mail."""
SUBJECT_MAX = 120


@dataclass(frozen=True, slots=True)
class Notice:
    """One incident, on its way to all targets."""

    incident: Event
    cluster_id: str
    cluster: str
    """HOST:PORT."""
    cluster_name: str
    """That of one of several; "" for the only one."""
    link: str
    """Of the page; "" where there is none."""

    @property
    def about(self) -> str:
        """The group, or the cluster."""
        cluster = f"cluster {self.cluster_name or self.cluster}"
        group = self.incident.group
        return f"{group} of {cluster}" if group and self.cluster_name else group or cluster


def link_of(page: str | None, group: str, cluster_name: str) -> str:
    """The view of the page that shows it."""
    if page is None:
        return ""
    view = f"#/group/{quote(group, safe='', errors='replace')}" if group else "#/" if cluster_name else ""
    query = f"?cluster={quote(cluster_name, safe='', errors='replace')}" if cluster_name else ""
    return f"{page}{view}{query}"


def as_json(notice: Notice) -> Json:
    """The event as `ringleader watch --json` prints it, and where it is."""
    named = {"cluster_name": notice.cluster_name} if notice.cluster_name else {}
    return {
        **entry(notice.incident),
        "revises": False,
        "cluster_id": notice.cluster_id,
        "cluster": notice.cluster,
        **named,
        "link": notice.link or None,
    }


def as_slack(notice: Notice) -> Json:
    """The message of an incoming webhook, in Slack's own markup."""
    text = f"*{_escaped(notice.about)}*: {_escaped(notice.incident.text[:TEXT_MAX])}"
    return {"text": f"{text}\n<{_escaped(notice.link)}|Open the page>" if notice.link else text}


def as_mail(notice: Notice, sender: str, receivers: tuple[str, ...]) -> EmailMessage:
    """A message of its own; sent again, it has the same id."""
    text = notice.incident.text
    subject = f"{notice.about}: {text.partition(': ')[0]}"
    made = EmailMessage(SMTP)
    made["From"], made["To"] = sender, ", ".join(receivers)
    made["Subject"] = " ".join(_plain(f"[ringleader] {subject}").split())[:SUBJECT_MAX]
    digest = hashlib.sha256(notice.incident.id.encode("utf-8", "replace")).hexdigest()[:32]
    made["Message-ID"] = f"<{digest}@{sender.rpartition('@')[2]}>"
    made["Auto-Submitted"] = "auto-generated"
    lines = [f"{notice.about}, {entry(notice.incident)['at']}", "", text[:TEXT_MAX], ""]
    if notice.link:
        lines.append(notice.link)
    made.set_content(_plain("\n".join(lines)))
    return made


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _plain(text: str) -> str:
    """Names of groups are any text: without control codes, and as UTF-8 has it."""
    kept = "".join(c if c.isprintable() or c == "\n" else " " for c in text)
    return kept.encode("utf-8", "replace").decode()
