"""Notices of incidents: a webhook, Slack and e-mail get each incident once.

`lookout` finds problems in a history, `incidents` decides which of them are told and when (pure), `forms`
puts an incident into the words of each target, `targets` sends, `kept` keeps what waits, and `notifier` lets
them work while a watcher runs.
"""

from ringleader.insight.notices.notifier import Notifier
from ringleader.insight.notices.settings import NoticeSettings

__all__ = ["NoticeSettings", "Notifier"]
