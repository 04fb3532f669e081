"""The clients and addresses that may ask, and the headers that every answer carries."""

from __future__ import annotations

import http.client
import ssl
from pathlib import Path

import pytest

from ringleader.insight.web import check_access, guard, page, page_tls, read_token
from ringleader.insight.web.guard import COOKIE
from tests.insight.web.asking import ask
from tests.support.certificates import Certificates

TOKEN = "correct-horse-battery"


@pytest.mark.parametrize("path", ["/", "/api/cluster", "/static/page.css", "/metrics", "/health", "/nothing"])
async def test_every_answer_has_the_headers_that_keep_a_browser_safe(recent: Path, path: str) -> None:
    async with page(recent) as url:
        answer = await ask(url, path)
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["cache-control"] == (
        "no-cache" if path in ("/", "/static/page.css") else "no-store"
    )
    assert answer.headers["server"] is None


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:8080", 200),
        ("127.0.0.1", 200),
        ("[::1]:8080", 200),
        ("10.1.2.3:80", 200),
        ("ringleader.example", 200),
        ("evil.example", 421),
        ("localhost.evil.example", 421),
        ("", 421),
    ],
)
async def test_a_name_that_is_not_ours_is_refused(recent: Path, host: str, status: int) -> None:
    async with page(recent, names=["Ringleader.example"]) as url:
        assert (await ask(url, "/api/cluster", headers={"Host": host})).status == status


async def test_another_sites_page_may_not_ask(recent: Path) -> None:
    async with page(recent) as url:
        for site in ("cross-site", "same-site"):
            refused = await ask(url, "/api/live", headers={"Sec-Fetch-Site": site})
            assert refused.status == 403
        assert (await ask(url, "/api/cluster", headers={"Sec-Fetch-Site": "same-origin"})).status == 200


async def test_with_a_token_only_who_has_it_is_answered(recent: Path) -> None:
    async with page(recent, token=TOKEN) as url:
        for path in ("/api/groups", "/api/live", "/metrics", "/api/nothing"):
            assert (await ask(url, path)).status == 401
            wrong = await ask(url, path, headers={"Authorization": "Bearer correct-horse-batterz"})
            assert wrong.status == 401
        right = await ask(url, "/api/cluster", headers={"Authorization": f"Bearer {TOKEN}"})
        assert right.status == 200
        # The files of the page itself are no secret, and a supervisor asks for health.
        assert (await ask(url, "/")).status == (await ask(url, "/static/page.css")).status == 200
        assert (await ask(url, "/health")).status in (200, 503)


async def test_a_sign_in_gives_a_cookie_that_does_not_hold_the_token(recent: Path) -> None:
    async with page(recent, token=TOKEN) as url:
        wrong = await ask(url, "/api/session", method="POST", body=b"guess")
        right = await ask(url, "/api/session", method="POST", body=TOKEN.encode())
        cookie = right.headers["set-cookie"]
        named = cookie.split(";")[0]
        assert (await ask(url, "/api/cluster", headers={"Cookie": named})).status == 200
        until, mac = named.removeprefix(f"{COOKIE}=").split(".")
        for forged in (
            f"{COOKIE}={int(until) + 1}.{mac}",
            f"{COOKIE}=1.{mac}",
            f"{COOKIE}=x",
            f"{COOKIE}=².",
        ):
            headers = {"Cookie": forged.encode().decode("latin-1")}
            assert (await ask(url, "/api/cluster", headers=headers)).status == 401
    assert (wrong.status, right.status) == (401, 200)
    assert TOKEN not in cookie
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert wrong.headers["set-cookie"] is None


async def test_a_cookie_is_good_for_its_time_and_its_token(
    recent: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def signed_in(url: str, token: str) -> str:
        answer = await ask(url, "/api/session", method="POST", body=token.encode())
        return str(answer.headers["set-cookie"]).split(";")[0]

    async def answered(url: str, cookie: str) -> int:
        return (await ask(url, "/api/cluster", headers={"Cookie": cookie})).status

    async with page(recent, token=TOKEN) as url:
        cookie = await signed_in(url, TOKEN)
        assert await answered(url, cookie) == 200
        monkeypatch.setattr(guard, "SIGNED_IN_S", -1)
        assert await answered(url, await signed_in(url, TOKEN)) == 401
    async with page(recent, token=f"another-{TOKEN}") as url:
        assert await answered(url, cookie) == 401


async def test_a_large_token_and_a_large_request_are_refused(recent: Path) -> None:
    async with page(recent, token=TOKEN) as url:
        large = await ask(url, "/api/session", method="POST", body=b"x" * 5000)
        long = await ask(url, f"/api/{'x' * 40_000}")
    assert large.status == 413
    assert long.status == 414


async def test_an_address_beyond_this_machine_needs_a_token(recent: Path) -> None:
    with pytest.raises(ValueError, match=r"0\.0\.0\.0 can be reached from other machines: give --token-file"):
        async with page(recent, "0.0.0.0"):
            pass
    check_access("0.0.0.0", TOKEN)
    for loopback in ("127.0.0.1", "localhost", "::1", "127.3.4.5"):
        check_access(loopback, None)


async def test_over_tls_a_certificate_stands_for_the_token(recent: Path, tmp_path: Path) -> None:
    made = Certificates(tmp_path / "certificates")
    tls = page_tls(made.server, made.authority)
    async with page(recent, "127.0.0.1", tls=tls) as url:
        assert url.startswith("https://127.0.0.1:")
        known = made.client_tls(made.issued("ann"))
        answer = await ask(url, "/api/cluster", tls=known)
        assert (answer.status, answer.headers["strict-transport-security"]) == (200, "max-age=31536000")
        with pytest.raises((ssl.SSLError, ConnectionError, http.client.HTTPException)):
            await ask(url, "/api/cluster", tls=made.client_tls())
    check_access("0.0.0.0", None, tls)
    with pytest.raises(ValueError, match="can be reached from other machines"):
        check_access("0.0.0.0", None, page_tls(made.server))


async def test_over_tls_the_cookie_is_for_tls_alone(recent: Path, tmp_path: Path) -> None:
    made = Certificates(tmp_path / "certificates")
    async with page(recent, token=TOKEN, tls=page_tls(made.server)) as url:
        signed = await ask(url, "/api/session", method="POST", body=TOKEN.encode(), tls=made.client_tls())
    assert "; Secure" in signed.headers["set-cookie"]


def test_what_is_no_certificate_is_said_in_the_words_of_the_page(tmp_path: Path) -> None:
    empty = tmp_path / "empty.pem"
    empty.write_text("")
    made = Certificates(tmp_path / "certificates")
    for certificate, authority, text in (
        (None, made.authority, "certificates are shown over TLS: give one of the page, too"),
        (tmp_path / "none.pem", None, "^the page's certificate: No such file"),
        (empty, None, "^the page's certificate: .* is not PEM"),
        (made.server, empty, "^the authority of certificates: .* is not PEM"),
    ):
        with pytest.raises(ValueError, match=text):
            page_tls(certificate, authority)
    assert page_tls(None) is None


async def test_a_port_that_is_taken_is_an_os_error(recent: Path) -> None:
    async with page(recent) as url:
        port = int(url.rsplit(":", 1)[1].strip("/"))
        with pytest.raises(OSError, match="in use"):
            async with page(recent, port=port):
                pass


def test_tokens_come_from_a_file_or_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    assert read_token(file, {}) == TOKEN
    assert read_token(None, {"RINGLEADER_PAGE_TOKEN": TOKEN}) == TOKEN
    assert read_token(None, {}) is None
    file.write_text("short")
    with pytest.raises(ValueError, match="has to be 16 or more printable ASCII characters"):
        read_token(file, {})
    with pytest.raises(ValueError, match="cannot be read: No such file"):
        read_token(tmp_path / "nothing", {})
