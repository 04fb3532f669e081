"""Access to the endpoint of health and metrics: the clients that may ask, the headers of every answer, and
how long it waits."""

from __future__ import annotations

import asyncio
import http.client
import os
import socket
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ringleader.coordinator.config import SettingsError, load_settings
from ringleader.coordinator.node import Node
from ringleader.coordinator.serving import StartError
from ringleader.host import http_server
from tests.coordinator.test_node import settings
from tests.support.certificates import Certificates

TOKEN = "correct-horse-battery"

Found = tuple[int, http.client.HTTPMessage, str]


async def _ask(
    node: Node,
    path: str,
    *,
    headers: Mapping[str, str] | None = None,
    method: str = "GET",
    tls: ssl.SSLContext | None = None,
) -> Found:
    assert node.http is not None
    address = node.http.address

    def ask() -> Found:
        connection = (
            http.client.HTTPConnection(address, timeout=60)
            if tls is None
            else http.client.HTTPSConnection(address, timeout=60, context=tls)
        )
        try:
            connection.request(method, path, headers=dict(headers or {}))
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read().decode()
        finally:
            connection.close()

    return await asyncio.to_thread(ask)


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    """One with `TOKEN`."""
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    return file


async def test_metrics_are_for_who_has_the_token_and_health_for_all(tmp_path: Path, token_file: Path) -> None:
    chosen = settings(tmp_path, http_listen="127.0.0.1:0", http_token_file=token_file)
    async with Node(chosen) as node:
        for path in ("/health", "/ready"):
            assert (await _ask(node, path))[0] == 200
        for headers in ({}, _bearer(TOKEN[:-1]), _bearer(""), {"Authorization": TOKEN}, _bearer("ü" * 20)):
            for path in ("/metrics", "/clients"):
                status, answered, text = await _ask(node, path, headers=headers)
                assert (status, answered["www-authenticate"]) == (401, "Bearer")
                assert TOKEN not in text
        for headers in (_bearer(TOKEN), {"authorization": f"bearer {TOKEN} "}):
            status, _, text = await _ask(node, "/metrics", headers=headers)
            assert (status, "ringleader_ready 1.0" in text, TOKEN in text) == (200, True, False)


@pytest.mark.parametrize(
    ("path", "method", "status"),
    [
        ("/health", "GET", 200),
        ("/health", "HEAD", 200),
        ("/metrics", "GET", 200),
        ("/metrics", "POST", 405),
        ("/metrics", "OPTIONS", 405),
        ("/nothing", "GET", 404),
        ("/metrics?groups=some", "GET", 400),
        ("/clients", "GET", 404),
        ("/clients?after=-1", "GET", 400),
    ],
)
async def test_every_answer_has_the_headers_that_keep_a_browser_safe(
    tmp_path: Path, path: str, method: str, status: int
) -> None:
    async with Node(settings(tmp_path, http_listen="127.0.0.1:0")) as node:
        found, headers, _ = await _ask(node, path, method=method)
    assert found == status
    assert headers.get_all("content-security-policy") == [
        "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"
    assert headers["server"] is None
    assert headers["access-control-allow-origin"] is None
    assert headers["strict-transport-security"] is None


async def test_what_is_no_http_has_them_too(tmp_path: Path) -> None:
    async with Node(settings(tmp_path, http_listen="127.0.0.1:0")) as node:
        answer = await asyncio.to_thread(_say, node, b"\x16\x03\x01\x00\x00\r\n\r\n")
        long = await asyncio.to_thread(_say, node, b"GET /" + b"x" * 20_000)
    for one in (answer, long):
        assert one.startswith(b"HTTP/1.1 400 ")
        assert b"\r\nX-Content-Type-Options: nosniff\r\n" in one


def _say(node: Node, data: bytes) -> bytes:
    """The answer until the connection is closed."""
    assert node.http is not None
    host, _, port = node.http.address.rpartition(":")
    with socket.create_connection((host, int(port)), 60) as connection:
        connection.sendall(data)
        found = b""
        while True:
            try:
                some = connection.recv(65_536)
            except ConnectionResetError:
                return found
            if not some:
                return found
            found += some


FORGED = [
    (host, 421)
    for host in (
        "[::1].evil.example",
        "[::1]evil.example:80",
        "[::1",
        "[]",
        "[127.0.0.1]",
        "[::1%evil.example]",
        "127.0.0.1.evil.example",
        "127.0.0.1:80:80",
        "127.0.0.1:evil.example",
        "evil.example:127.0.0.1",
        "evil.example@127.0.0.1",
        "::1",
        "localhost:",
    )
]


@pytest.mark.parametrize(
    ("host", "status"),
    [("localhost:1", 200), ("[::1]", 200), ("10.0.0.1", 200), ("evil.example", 421), *FORGED],
)
async def test_on_loopback_a_foreign_name_is_refused(tmp_path: Path, host: str, status: int) -> None:
    async with Node(settings(tmp_path, http_listen="127.0.0.1:0")) as node:
        for path in ("/metrics", "/health"):
            assert (await _ask(node, path, headers={"Host": host}))[0] == status


async def test_a_silent_client_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "REQUEST_S", 0.2)
    async with Node(settings(tmp_path, http_listen="127.0.0.1:0")) as node:
        for data in (
            b"",
            b"GET /health HT",
            b"POST /health HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\n",
        ):
            answer = await asyncio.to_thread(_say, node, data)
            assert answer == b"" or answer.startswith(b"HTTP/1.1 405 ")
        assert (await _ask(node, "/health"))[0] == 200


async def test_idle_connections_make_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ringleader.coordinator.http.CONNECTIONS_MAX", 4)
    async with Node(settings(tmp_path, http_listen="127.0.0.1:0")) as node:
        assert node.http is not None
        host, _, port = node.http.address.rpartition(":")
        idle = [await asyncio.open_connection(host, int(port)) for _ in range(12)]
        for _ in range(5):
            assert (await _ask(node, "/health"))[0] == 200
        assert await idle[0][0].read() == b"", "the first was closed"
        for _, writer in idle:
            writer.close()


async def test_handshakes_that_never_end_make_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "HANDSHAKES_MAX", 4)
    monkeypatch.setattr(http_server, "HANDSHAKE_S", 600.0)
    made = Certificates(tmp_path / "certificates")
    chosen = settings(tmp_path, http_listen="127.0.0.1:0", http_ssl_keystore_location=made.server)
    async with Node(chosen) as node:
        assert node.http is not None
        host, _, port = node.http.address.rpartition(":")
        silent = [await asyncio.open_connection(host, int(port)) for _ in range(8)]
        for _ in range(3):
            assert (await _ask(node, "/health", tls=made.client_tls()))[0] == 200
        assert await silent[0][0].read() == b"", "the first was closed"
        for _, writer in silent:
            writer.close()


async def test_with_tls_a_certificate_does_as_well_as_the_token(tmp_path: Path, token_file: Path) -> None:
    made = Certificates(tmp_path / "certificates")
    chosen = settings(
        tmp_path,
        http_listen="127.0.0.1:0",
        http_token_file=token_file,
        http_ssl_keystore_location=made.server,
        http_ssl_truststore_location=made.authority,
        http_ssl_client_auth="requested",
    )
    async with Node(chosen) as node:
        nobody = made.client_tls()
        status, headers, _ = await _ask(node, "/health", tls=nobody)
        assert (status, headers["strict-transport-security"]) == (200, "max-age=31536000")
        assert (await _ask(node, "/metrics", tls=nobody))[0] == 401
        assert (await _ask(node, "/metrics", tls=nobody, headers=_bearer(TOKEN)))[0] == 200
        assert (await _ask(node, "/metrics", tls=made.client_tls(made.issued("prometheus"))))[0] == 200
        stranger = Certificates(tmp_path / "others").issued("prometheus")
        with pytest.raises((ssl.SSLError, ConnectionError, http.client.HTTPException)):
            await _ask(node, "/metrics", tls=made.client_tls(stranger))
        assert await asyncio.to_thread(_say, node, b"GET /metrics HTTP/1.1\r\n\r\n") == b""


async def test_nobody_comes_in_without_a_certificate_that_is_required(tmp_path: Path) -> None:
    made = Certificates(tmp_path / "certificates")
    chosen = settings(
        tmp_path,
        http_listen="127.0.0.1:0",
        http_ssl_keystore_location=made.server,
        http_ssl_truststore_location=made.authority,
        http_ssl_client_auth="required",
    )
    async with Node(chosen) as node:
        known = made.client_tls(made.issued("prometheus"))
        assert (await _ask(node, "/metrics", tls=known))[0] == 200
        with pytest.raises((ssl.SSLError, ConnectionError, http.client.HTTPException)):
            await _ask(node, "/health", tls=made.client_tls())


async def test_a_new_certificate_is_shown_when_its_file_is_there(tmp_path: Path) -> None:
    made, others = Certificates(tmp_path / "certificates"), Certificates(tmp_path / "others")
    shown = tmp_path / "shown.pem"
    shown.write_bytes(made.server.read_bytes())
    chosen = settings(tmp_path, http_listen="127.0.0.1:0", http_ssl_keystore_location=shown)
    async with Node(chosen) as node:
        assert (await _ask(node, "/metrics", tls=made.client_tls()))[0] == 200
        shown.write_text("half of it")
        assert (await _ask(node, "/metrics", tls=made.client_tls()))[0] == 200
        (tmp_path / "new.pem").write_bytes(others.server.read_bytes())
        os.replace(tmp_path / "new.pem", shown)
        assert (await _ask(node, "/metrics", tls=others.client_tls()))[0] == 200


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (
            {"http_listen": "0.0.0.0:9464"},
            "every caller that reaches http.listen 0.0.0.0:9464 could read the metrics",
        ),
        ({"http_listen": "[::]:9464", "http_ssl_keystore_location": "server"}, "could read the metrics"),
        (
            {"http_listen": "127.0.0.1:0", "http_token_file": "none"},
            "http.token.file: the token file .* cannot",
        ),
        ({"http_listen": "127.0.0.1:0", "http_token_file": "short"}, "has to be 16 or more printable ASCII"),
        (
            {"http_listen": "127.0.0.1:0", "http_ssl_client_auth": "required"},
            "needs http.ssl.keystore.location",
        ),
        (
            {"http_listen": "127.0.0.1:0", "http_ssl_keystore_location": "none"},
            "^http.ssl.keystore.location: No such file",
        ),
        (
            {
                "http_listen": "127.0.0.1:0",
                "http_ssl_keystore_location": "server",
                "http_ssl_client_auth": "required",
            },
            "set http.ssl.truststore.location",
        ),
    ],
)
async def test_what_cannot_be_is_refused_with_a_sentence(
    tmp_path: Path, options: dict[str, str], text: str
) -> None:
    files = {"none": tmp_path / "none", "short": tmp_path / "short"}
    files["short"].write_text("secret")
    files["server"] = Certificates(tmp_path / "certificates").server
    given = {name: str(files.get(value, value)) for name, value in options.items()}
    with pytest.raises(SettingsError, match=text) as refused:
        load_settings({"listen": "127.0.0.1:0", **given})
    assert "\n" not in str(refused.value)
    assert "secret" not in str(refused.value)
    with pytest.raises(StartError, match=text):
        await Node(settings(tmp_path, **given)).start()


@pytest.mark.parametrize("more", [{"allow_plaintext": True}, {"http_token_file": "token"}])
async def test_other_machines_come_where_it_is_allowed_and_may_use_any_name(
    tmp_path: Path, token_file: Path, more: dict[str, Any]
) -> None:
    if "http_token_file" in more:
        more = {"http_token_file": token_file}
    async with Node(settings(tmp_path, http_listen="0.0.0.0:0", **more)) as node:
        assert node.http is not None
        node.http.address = node.http.address.replace("0.0.0.0", "127.0.0.1")
        headers = {"Host": "ringleader-0.ringleader-nodes:9464", **_bearer(TOKEN)}
        assert (await _ask(node, "/metrics", headers=headers))[0] == 200
