"""Targets are set like everything else, and a secret is shown nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from ringleader.cli import insight_settings
from ringleader.coordinator.config_text import SettingsError
from ringleader.insight.notices import NoticeSettings

SECRET = "T0PS3CRET"
MAIL = {
    "notify_mail_to": ["a@example.com,b@example.com"],
    "notify_mail_from": "watch@example.com",
    "notify_mail_server": "mail:25",
}


def test_a_file_has_all_targets(tmp_path: Path) -> None:
    file = tmp_path / "watch.toml"
    file.write_text(
        f"""
        [notify]
        webhook.url = "https://hooks.example/{SECRET}"
        webhook.token = "{SECRET}"
        slack.url = "https://chat.example/{SECRET}"
        mail.to = ["a@example.com", "b@example.com"]
        mail.from = "watch@example.com"
        mail.server = "mail.example:587"
        mail.user = "watch"
        mail.password = "{SECRET}"
        page.url = "https://watch.example"
        quiet.ms = 0
        """
    )
    found = insight_settings.load({}, {}, file).notices
    assert found.wanted
    assert found.mail_to == ("a@example.com", "b@example.com")
    assert found.page_url == "https://watch.example/"
    assert found.webhook_token is not None
    assert found.webhook_token.get_secret_value() == SECRET
    assert SECRET not in repr(found)
    assert SECRET not in str(found)
    assert SECRET not in found.model_dump_json()


def test_without_a_target_there_are_no_notices() -> None:
    assert not NoticeSettings().wanted
    assert not insight_settings.load({}, {}).notices.wanted


def test_a_secret_has_no_flag() -> None:
    without = {one.key for one in insight_settings.options() if not one.flag}
    assert without == {
        "notify.webhook.url",
        "notify.webhook.token",
        "notify.slack.url",
        "notify.mail.password",
    }


@pytest.mark.parametrize(
    ("given", "environ", "says"),
    [
        ({}, {"WEBHOOK_URL": f"ftp://x/{SECRET}"}, "environment RINGLEADER_NOTIFY_WEBHOOK_URL: give a URL"),
        ({}, {"WEBHOOK_URL": f"https://u:{SECRET}@x/"}, "without a user name"),
        ({}, {"WEBHOOK_URL": f"https://x:99999/{SECRET}"}, "give a URL"),
        ({}, {"WEBHOOK_URL": f"https://x/ {SECRET}"}, "give a URL"),
        ({}, {"SLACK_URL": SECRET}, "environment RINGLEADER_NOTIFY_SLACK_URL: give a URL"),
        ({}, {"WEBHOOK_TOKEN": SECRET}, "notify.webhook.token needs notify.webhook.url."),
        (
            {},
            {"WEBHOOK_TOKEN": f"{SECRET}\n", "WEBHOOK_URL": "https://x/"},
            "NOTIFY_WEBHOOK_TOKEN: give printable ASCII characters.",
        ),
        ({"notify_mail_to": ["a@example.com"]}, {}, "notify.mail.to needs notify.mail.from."),
        ({**MAIL, "notify_mail_server": "mail"}, {}, "--notify-mail-server: give it as HOST:PORT"),
        ({**MAIL, "notify_mail_to": ["a"]}, {}, "--notify-mail-to: 'a' is not an e-mail address"),
        ({**MAIL, "notify_mail_from": "a\nb@c"}, {}, "is not an e-mail address"),
        (
            {**MAIL, "notify_mail_security": "ssl"},
            {},
            "--notify-mail-security: should be 'starttls', 'tls' or",
        ),
        (MAIL, {"MAIL_PASSWORD": SECRET}, "notify.mail.password needs notify.mail.user."),
        ({"notify_page_url": "watch"}, {}, "--notify-page-url: give a URL that begins with https://"),
        ({"notify_interval_ms": "1"}, {}, "--notify-interval-ms: should be greater than or equal to 100"),
    ],
)
def test_wrong_settings_are_one_sentence_without_the_secret(
    given: dict[str, object], environ: dict[str, str], says: str
) -> None:
    environ = {f"RINGLEADER_NOTIFY_{name}": value for name, value in environ.items()}
    with pytest.raises(SettingsError) as wrong:
        insight_settings.load(given, environ)
    assert says in str(wrong.value)
    assert SECRET not in str(wrong.value)
    assert "\n" not in str(wrong.value)
