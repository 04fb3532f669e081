"""Settings of TLS: Kafka's names, for all listeners or for one, and a sentence for what cannot be used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization

from ringleader.coordinator.config import SettingsError, load_settings
from ringleader.coordinator.security.settings import TlsSettings
from ringleader.coordinator.security.tls import Tls, context_of
from tests.support.certificates import Certificates

PASSWORD = "open sesame"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def encrypted(certificates: Certificates) -> str:
    """The server's key and certificate, the key under a password."""
    pem = certificates.server.read_bytes()
    key = serialization.load_pem_private_key(pem, None)
    locked = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(PASSWORD.encode()),
    )
    return locked.decode() + "-----BEGIN CERT" + pem.decode().split("-----BEGIN CERT", 1)[1]


def test_a_listener_has_settings_before_those_of_all(certificates: Certificates, tmp_path: Path) -> None:
    file = tmp_path / "r.properties"
    file.write_text(
        "listeners=ONE://127.0.0.1:1,TWO://127.0.0.1:2,SASL_SSL://127.0.0.1:3\n"
        "listener.security.protocol.map=ONE:SSL,TWO:SSL,SASL_SSL:SASL_SSL\n"
        f"ssl.keystore.location={certificates.server}\n"
        f"ssl.truststore.location={certificates.authority}\n"
        "ssl.client.auth=required\n"
        "listener.name.one.ssl.client.auth=none\n"
        "listener.name.two.ssl.enabled.protocols=TLSv1.3\n"
    )
    environ = {"RINGLEADER_LISTENER_NAME_TWO_SSL_CLIENT_AUTH": "requested"}
    settings = load_settings(environ=environ, file=file)
    one, two, sasl = (settings.for_listener(listener) for listener in settings.served())
    assert [own.ssl_client_auth for own in (one, two, sasl)] == ["none", "requested", "none"]
    assert (one.ssl_enabled_protocols, two.ssl_enabled_protocols) == (("TLSv1.2", "TLSv1.3"), ("TLSv1.3",))


def test_a_change_of_each_of_its_files_is_noticed_once(certificates: Certificates, tmp_path: Path) -> None:
    files = {"ssl_keystore_location": certificates.server, "ssl_truststore_location": certificates.authority}
    copies = {name: tmp_path / name for name in files}
    for name, file in files.items():
        copies[name].write_bytes(file.read_bytes())
    tls = Tls(TlsSettings(**copies, ssl_client_auth="required"))
    assert not tls.changed()
    for file in copies.values():
        with file.open("ab") as stream:
            stream.write(b"\n")
        assert tls.changed(), file
        before = tls.context
        tls.reload()
        assert tls.context is not before
        assert not tls.changed()


def test_pem_may_stand_in_the_settings_as_one_line(encrypted: str, tmp_path: Path) -> None:
    key, end, chain = encrypted.partition("-----END ENCRYPTED PRIVATE KEY-----")
    file = tmp_path / "r.properties"
    lines = {
        "ssl.keystore.key": " ".join((key + end).splitlines()),
        "ssl.keystore.certificate.chain": "\\n\\\n".join(chain.strip().splitlines()),
        "ssl.key.password": PASSWORD,
        "listeners": "SSL://127.0.0.1:1",
    }
    file.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
    settings = load_settings(file=file)
    assert PASSWORD not in repr(settings)
    assert settings.ssl_keystore_key is not None
    assert settings.ssl_keystore_key.get_secret_value() not in repr(settings)


def test_an_encrypted_key_takes_its_password(encrypted: str, tmp_path: Path) -> None:
    store = tmp_path / "store.pem"
    store.write_text(encrypted)
    context_of(TlsSettings(ssl_keystore_location=store, ssl_key_password=PASSWORD))
    for wrong in (None, "sesame"):
        with pytest.raises(ValueError, match=r"^ssl.key.password is missing or wrong") as error:
            context_of(TlsSettings(ssl_keystore_location=store, ssl_key_password=wrong))
        assert "sesame" not in str(error.value)


def test_an_open_tls_listener_asks_for_certificates_or_is_loopback_s(certificates: Certificates) -> None:
    flags = {
        "listeners": "SSL://0.0.0.0:1",
        "ssl_keystore_location": str(certificates.server),
        "ssl_truststore_location": str(certificates.authority),
    }
    assert load_settings({**flags, "ssl_client_auth": "required"}).served()
    for client_auth in ("none", "requested"):
        with pytest.raises(SettingsError, match=r"set ssl\.client\.auth to required"):
            load_settings({**flags, "ssl_client_auth": client_auth})


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "SSL://127.0.0.1:1: there is no certificate to show: set ssl.keystore.location"),
        ({"ssl_keystore_location": "none.pem"}, "ssl.keystore.location: No such file or directory: none.pem"),
        ({"ssl_keystore_location": "{jks}"}, "is not PEM: only PEM is read: convert with `keytool"),
        ({"ssl_keystore_type": "JKS"}, "--ssl-keystore-type: only PEM is read: convert with `keytool"),
        ({"ssl_truststore_type": "PKCS12"}, "--ssl-truststore-type: only PEM is read: convert with"),
        ({"ssl_keystore_location": "{authority}"}, "no private key with its certificate can be read there"),
        ({"ssl_keystore_location": "{mixed}"}, "the private key is not that of the first certificate"),
        (
            {"ssl_keystore_location": "{server}", "ssl_client_auth": "required"},
            "ssl.client.auth is required, but nobody is trusted",
        ),
        (
            {
                "ssl_keystore_location": "{server}",
                "ssl_client_auth": "requested",
                "ssl_truststore_location": "{rubbish}",
            },
            "ssl.truststore.location: no certificate can be read there",
        ),
        ({"ssl_enabled_protocols": "TLSv1.1"}, "--ssl-enabled-protocols: should be 'TLSv1.2' or 'TLSv1.3'"),
        ({"ssl_enabled_protocols": ","}, "--ssl-enabled-protocols: "),
        ({"ssl_cipher_suites": "TLS_RSA_WITH_RC4_128_MD5"}, "TLS_RSA_WITH_RC4_128_MD5 cannot be chosen"),
        ({"ssl_client_auth": "maybe"}, "--ssl-client-auth: should be 'none', 'requested' or 'required'"),
        ({"ssl_principal_mapping_rules": "RULE:x"}, "--ssl-principal-mapping-rules: give rules as DEFAULT"),
    ],
)
def test_what_cannot_be_used_is_one_sentence(
    certificates: Certificates, tmp_path: Path, given: dict[str, str], says: str
) -> None:
    files = {
        "jks": b"\xfe\xed\xfe\xed\0\0\0\2",
        "rubbish": b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        "mixed": certificates.issued("other").read_bytes().split(b"-----BEGIN CERT")[0]
        + certificates.authority.read_bytes(),
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    known = {name: str(tmp_path / name) for name in files}
    known |= {"authority": str(certificates.authority), "server": str(certificates.server)}
    flags = {name: value.format(**known) for name, value in given.items()}
    with pytest.raises(SettingsError) as wrong:
        load_settings({"listeners": "SSL://127.0.0.1:1", **flags})
    assert says in str(wrong.value)
    assert "\n" not in str(wrong.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "listener.name.ssl.node.id=1",
            "ssl.node.id in .*: there is no such setting of a listener",
        ),
        (
            "listener.name.one.ssl.client.auth=none",
            "listener.name.one is of no listener; there are plaintext",
        ),
        (
            "listener.name.ssl.ssl.client.auth=perhaps",
            "ssl.client.auth in .*: should be 'none'",
        ),
    ],
)
def test_settings_of_a_listener_that_is_not_there(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "r.properties"
    file.write_text(text)
    with pytest.raises(SettingsError, match=says):
        load_settings(file=file)


def test_no_error_shows_a_secret(tmp_path: Path) -> None:
    file = tmp_path / "r.toml"
    file.write_text("[ssl]\nkey.password = 4711\nkeystore.key = 4712\n")
    with pytest.raises(SettingsError) as wrong:
        load_settings(file=file)
    assert "471" not in str(wrong.value)
    lost: dict[str, Any] = {"ssl.keystore.key": "-----BEGIN\nMIIsecret\n"}
    broken = tmp_path / "r.properties"
    broken.write_text("".join(f"{name}={value}" for name, value in lost.items()))
    with pytest.raises(SettingsError) as wrong:
        load_settings(file=broken)
    assert "MIIsecret" not in str(wrong.value)
