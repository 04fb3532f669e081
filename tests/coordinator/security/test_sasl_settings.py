"""Settings of SASL that a listener has for itself, and one mechanism of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ringleader.coordinator.config import Settings, SettingsError, load_settings

LISTENERS = (
    "listeners=IN://127.0.0.1:1,OUT://127.0.0.1:2\n"
    "listener.security.protocol.map=IN:SASL_PLAINTEXT,OUT:SASL_PLAINTEXT\n"
)


def loaded(directory: Path, text: str, environ: dict[str, str] | None = None) -> tuple[Settings, Settings]:
    """As the two listeners have them."""
    file = directory / "r.properties"
    file.write_text(LISTENERS + text)
    settings = load_settings(environ=environ, file=file)
    inside, outside = (settings.for_listener(listener) for listener in settings.served())
    return inside, outside


def test_a_listener_has_mechanisms_and_sessions_of_its_own(tmp_path: Path) -> None:
    inside, outside = loaded(
        tmp_path,
        "sasl.enabled.mechanisms=SCRAM-SHA-256\n"
        "connections.max.reauth.ms=5\n"
        "listener.name.in.sasl.enabled.mechanisms=plain,SCRAM-SHA-512\n"
        "listener.name.in.sasl.cleartext.without.tls=true\n"
        "listener.name.in.sasl.server.max.receive.size=2000\n"
        "listener.name.out.scram-sha-256.connections.max.reauth.ms=7\n",
        {"RINGLEADER_LISTENER_NAME_OUT_CONNECTIONS_MAX_REAUTH_MS": "6"},
    )
    at_in, at_out = inside.served()
    assert inside.mechanisms(at_in) == ["PLAIN", "SCRAM-SHA-512"]
    assert outside.mechanisms(at_out) == ["SCRAM-SHA-256"]
    assert (inside.sasl_server_max_receive_size, outside.sasl_server_max_receive_size) == (2_000, 524_288)
    assert [inside.max_reauth_ms(name) for name in ("PLAIN", "SCRAM-SHA-512")] == [5, 5]
    assert [outside.max_reauth_ms(name) for name in ("SCRAM-SHA-256", "SCRAM-SHA-512")] == [7, 6]


def test_what_one_mechanism_has_is_its_listeners(tmp_path: Path) -> None:
    inside, outside = loaded(
        tmp_path,
        "sasl.enabled.mechanisms=OAUTHBEARER\n"
        "sasl.cleartext.without.tls=true\n"
        "sasl.oauthbearer.jwks.endpoint.url=https://keys.example/all\n"
        "listener.name.out.oauthbearer.sasl.oauthbearer.jwks.endpoint.url=https://keys.example/out\n"
        "listener.name.out.sasl.oauthbearer.expected.audience=us,them\n",
    )
    assert inside.sasl_oauthbearer_jwks_endpoint_url == "https://keys.example/all"
    assert outside.sasl_oauthbearer_jwks_endpoint_url == "https://keys.example/out"
    assert (inside.sasl_oauthbearer_expected_audience, outside.sasl_oauthbearer_expected_audience) == (
        (),
        ("us", "them"),
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("listener.name.in.sasl.enabled.mechanisms=GSSAPI", "there are SCRAM-SHA-512, .*, not GSSAPI"),
        ("listener.name.in.sasl.enabled.mechanisms=PLAIN", "has none that may be offered without TLS"),
        ("listener.name.in.sasl.enabled.mechanisms=PLAIN,OAUTHBEARER", "may be offered without TLS"),
        (
            "listener.name.in.sasl.enabled.mechanisms=SCRAM-SHA-256,OAUTHBEARER",
            r"needs sasl\.oauthbearer\.jwks\.endpoint\.url",
        ),
        ("listener.name.in.plain.sasl.enabled.mechanisms=PLAIN", "there is no such setting of a listener"),
        ("listener.name.in.plain.sasl.oauthbearer.expected.issuer=us", "no such setting of a listener"),
        ("listener.name.in.scram-sha-256.connections.max.reauth.ms=-1", "greater than or equal to 0, got"),
        ("listener.name.in.gssapi.connections.max.reauth.ms=1", "listener.name.in.gssapi is of no listener"),
        ("listener.name.plain.connections.max.reauth.ms=1", "listener.name.plain is of no listener"),
        ("listener.name.in.connections.max.reauth.msec=1", "there is no such setting of a listener"),
    ],
)
def test_what_is_no_setting_of_a_listener(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(SettingsError, match=says):
        loaded(tmp_path, text)


def test_users_are_in_no_settings(tmp_path: Path) -> None:
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    text = f'listener.name.in.plain.sasl.jaas.config={module} required user_alice="secret";'
    with pytest.raises(SettingsError, match="ringleader users add") as wrong:
        loaded(tmp_path, text)
    assert "secret" not in str(wrong.value)
