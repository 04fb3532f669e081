"""TLS and SASL out of Kafka's property names, and the text that they are written in."""

from __future__ import annotations

import base64
import contextlib
import datetime
import http.server
import json
import ssl
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12
from hypothesis import given
from hypothesis import strategies as st

from ringleader.clients.connection.security import ClientSecurity, security_from_properties
from ringleader.clients.connection.security.oauth import ClientCredentials
from ringleader.clients.connection.security.properties import parse_jaas, parse_properties
from ringleader.clients.connection.security.sasl import (
    SaslOAuthBearer,
    SaslPlain,
    SaslScram,
    TokenUnavailableError,
)
from ringleader.clients.errors import AuthenticationError
from tests.support.certificates import Certificates

PLAIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="ann" password="s3cret";'
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
SASL = {"security.protocol": "SASL_PLAINTEXT"}
ENDPOINT = "sasl.oauthbearer.token.endpoint.url"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


# ---- the text ----


def test_properties_as_java_reads_them() -> None:
    text = (
        "# a comment\n! another \\\n\n  a=1\nb : 2\r\nc 3\rd\n"
        "e = x\\\n    y\\\\\nf\\ g\\:h=\\u0041\\t\\q\n\ti==\na=9\nj=\\ud83d\\ude00\nk=last\\"
    )
    assert parse_properties(text) == {
        "a": "9", "b": "2", "c": "3", "d": "", "e": "xy\\", "f g:h": "A\tq", "i": "=", "j": "😀", "k": "last",
    }  # fmt: skip


def test_properties_have_a_limit() -> None:
    with pytest.raises(ValueError, match="characters"):
        parse_properties("x" * (1024 * 1024 + 1))


def test_a_login_module() -> None:
    module = parse_jaas(' a.b.PlainLoginModule  REQUIRED username=ann\n password="x;=\\"y\\\\" z=\'"\' ; ')
    assert module.name == "PlainLoginModule"
    assert module.options == {"username": "ann", "password": 'x;="y\\', "z": '"'}
    assert "x;" not in repr(module)


@pytest.mark.parametrize(
    "text",
    ["", "a.B", "a.B required", "a.B c=d;", "a.B required c=d", 'a.B required c="d;', "a.B required c d;",
     "a.B required c=;", "a.B required c=s3cret; x.Y required c=d;", "a.B required =c=;", "x" * 1_100_000],
)  # fmt: skip
def test_login_modules_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected|form|quote|characters") as raised:
        parse_jaas(text)
    assert "s3cret" not in str(raised.value)


# ---- who the client is ----


def test_nothing_said_is_plain_text() -> None:
    assert security_from_properties({"bootstrap.servers": "a:1"}) == ClientSecurity(None, None)
    assert security_from_properties({"security.protocol": "plaintext", "sasl.password": "x"}).sasl is None


def test_java_names_and_librdkafka_names() -> None:
    ann = {"sasl.username": "ann", "sasl.password": "s3cret"}
    found = security_from_properties(SASL | {"sasl.mechanism": "PLAIN", "sasl.jaas.config": PLAIN})
    assert (found.tls, found.sasl) == (None, SaslPlain("ann", "s3cret"))
    for mechanism, sasl in (
        ("PLAIN", SaslPlain("ann", "s3cret")),
        ("SCRAM-SHA-256", SaslScram("ann", "s3cret", "SHA-256")),
        ("SCRAM-SHA-512", SaslScram("ann", "s3cret")),
    ):
        assert security_from_properties(SASL | ann | {"sasl.mechanisms": mechanism}).sasl == sasl


@pytest.mark.parametrize(
    ("properties", "why"),
    [
        ({"security.protocol": "TLS"}, "security.protocol is 'TLS'"),
        ({"sasl.jaas.config": PLAIN}, "security.protocol is not"),
        ({"ssl.ca.location": "x"}, "security.protocol is not"),
        (SASL, "sasl.mechanism is not set"),
        (SASL | {"sasl.mechanism": "GSSAPI"}, "sasl.mechanism is 'GSSAPI'"),
        (SASL | {"sasl.mechanism": "PLAIN"}, "sasl.username"),
        (SASL | {"sasl.mechanism": "PLAIN", "sasl.jaas.config": "s3cret"}, "sasl.jaas.config: expected"),
        (SASL | {"sasl.mechanism": "SCRAM-SHA-256", "sasl.jaas.config": PLAIN}, "takes ScramLoginModule"),
        (SASL | {"sasl.mechanism": "PLAIN", "sasl.username": "a\0", "sasl.password": "s3cret"}, "zero"),
        (SASL | {"sasl.mechanism": "OAUTHBEARER"}, ENDPOINT),
        (SASL | {"sasl.mechanism": "OAUTHBEARER", ENDPOINT: "ftp://x"}, "https:"),
        (SASL | {"sasl.mechanism": "OAUTHBEARER", ENDPOINT: "https://x"}, "clientSecret"),
        (
            SASL | {"sasl.mechanism": "OAUTHBEARER", "sasl.login.callback.handler.class": "com.example.Mine"},
            "Mine is not supported",
        ),
        (SASL | {"sasl.login.class": "com.example.Mine"}, "Java classes"),
        ({"security.protocol": "SSL", "ssl.cipher.suites": "NULL"}, "ssl.cipher.suites is not supported"),
        ({"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": "ldaps"}, "there are https"),
        ({"security.protocol": "SSL", "ssl.enabled.protocols": "TLSv1.3,SSLv3"}, "'SSLv3'"),
        ({"security.protocol": "SSL", "ssl.truststore.type": "JKS"}, "ssl.truststore.type is JKS: only PEM"),
        ({"security.protocol": "SSL", "ssl.truststore.location": "/nonexistent"}, "No such file"),
        ({"security.protocol": "SSL", "ssl.truststore.certificates": "x"}, "no certificate can be read"),
        ({"security.protocol": "SSL", "ssl.keystore.type": "JKS"}, "keytool"),
        ({"security.protocol": "SSL", "ssl.key.pem": "x"}, "no certificate"),
    ],
)
def test_what_is_wrong_is_one_sentence(properties: dict[str, str], why: str) -> None:
    with pytest.raises(ValueError, match=why) as raised:
        security_from_properties(properties)
    assert "\n" not in str(raised.value)
    assert "s3cret" not in str(raised.value)


# ---- TLS ----


def tls(**properties: str) -> ssl.SSLContext:
    names = {name.replace("_", "."): value for name, value in properties.items()}
    context = security_from_properties({"security.protocol": "SSL", **names}).tls
    assert context is not None
    return context


def test_named_authorities_replace_those_of_the_machine(certificates: Certificates) -> None:
    machine = tls()
    assert (machine.check_hostname, machine.verify_mode) == (True, ssl.CERT_REQUIRED)
    path, text = str(certificates.authority), certificates.authority.read_text()
    for context in (
        tls(ssl_truststore_type="PEM", ssl_truststore_location=path),
        tls(ssl_truststore_certificates=text),
        tls(ssl_ca_location=path),
        tls(ssl_ca_pem=text),
    ):
        (only,) = context.get_ca_certs()
        assert "trustme" in str(only["issuer"])
        assert (context.check_hostname, context.verify_mode) == (True, ssl.CERT_REQUIRED)


def pkcs12_store(place: Path, certificates: Certificates, password: bytes, key: bool) -> str:
    """A store as keytool and openssl write it: of a client, or of authorities alone."""
    authority = pkcs12.PKCS12Certificate(
        x509.load_pem_x509_certificate(certificates.authority.read_bytes()), b"ca"
    )
    how = serialization.BestAvailableEncryption(password)
    if key:
        pem = certificates.issued("ann").read_bytes()
        chain = x509.load_pem_x509_certificates(pem)
        private = serialization.load_pem_private_key(pem, None)
        assert isinstance(private, ec.EllipticCurvePrivateKey)
        made = pkcs12.serialize_key_and_certificates(b"ann", private, chain[0], [authority], how)
    else:
        made = pkcs12.serialize_java_truststore([authority], how)
    place.write_bytes(made)
    return str(place)


def shown(client: ssl.SSLContext, server: ssl.SSLContext) -> str:
    """The name in the certificate that a client shows to a server, after their handshake."""
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(back, there, server_hostname="localhost"),
        server.wrap_bio(there, back, server_side=True),
    ]
    for end in ends * 3:
        with contextlib.suppress(ssl.SSLWantReadError):
            end.do_handshake()
    certificate = ends[1].getpeercert()
    assert certificate is not None
    subject: Any = certificate["subject"]
    return str(dict(pair for part in subject for pair in part)["commonName"])


def test_stores_of_pkcs12(
    certificates: Certificates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trust = pkcs12_store(tmp_path / "trust.p12", certificates, b"s3cret", key=False)
    keys = pkcs12_store(tmp_path / "keys.p12", certificates, b"s3cret", key=True)
    for kind in ({}, {"ssl_truststore_type": "pkcs12", "ssl_keystore_type": "PKCS12"}):
        context = tls(
            ssl_truststore_location=trust,
            ssl_truststore_password="s3cret",
            ssl_keystore_location=keys,
            ssl_keystore_password="s3cret",
            **kind,
        )
        (only,) = context.get_ca_certs()
        assert "trustme" in str(only["issuer"])
        assert shown(context, certificates.server_tls(ask=True)) == "ann"
    for wrong in (
        {"ssl.truststore.location": trust},
        {"ssl.truststore.location": trust, "ssl.truststore.password": "other"},
        {"ssl.keystore.location": keys, "ssl.keystore.password": "other"},
    ):
        with pytest.raises(ValueError, match=r"store\.password is missing or wrong"):
            security_from_properties({"security.protocol": "SSL", **wrong})
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.serialization", None)
    with pytest.raises(ValueError, match="the package cryptography, which is not installed"):
        tls(ssl_truststore_location=trust, ssl_truststore_password="s3cret")


@pytest.mark.filterwarnings("ignore:PKCS#12 bundle could not be parsed as DER")
@pytest.mark.parametrize("size_bytes", [100, 70_000, 17 * 2**16])
def test_a_store_of_pkcs12_is_known_whatever_its_size(tmp_path: Path, size_bytes: int) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "large")])
    now = datetime.datetime.now(datetime.UTC)
    extension = x509.UnrecognizedExtension(x509.ObjectIdentifier("1.2.3.4"), b"x" * size_bytes)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(extension, critical=False)
        .sign(key, hashes.SHA256())
    )
    how = serialization.BestAvailableEncryption(b"s3cret")
    store = pkcs12.serialize_java_truststore([pkcs12.PKCS12Certificate(certificate, b"ca")], how)
    place = tmp_path / "trust.p12"
    length_bytes = store[1] - 0x80
    open_end = b"\x30\x80" + store[2 + length_bytes :] + b"\0\0"
    for written in (store, open_end):
        place.write_bytes(written)
        context = tls(ssl_truststore_location=str(place), ssl_truststore_password="s3cret")
        (only,) = context.get_ca_certs()
        assert "large" in str(only["subject"])
    assert length_bytes == (2 if size_bytes < 2**16 else 3)


def test_checks_are_switched_off_on_request_only() -> None:
    for value in ("", "none"):
        context = tls(ssl_endpoint_identification_algorithm=value)
        assert (context.check_hostname, context.verify_mode) == (False, ssl.CERT_REQUIRED)
    context = tls(enable_ssl_certificate_verification="false")
    assert (context.check_hostname, context.verify_mode) == (False, ssl.CERT_NONE)
    context = tls(ssl_enabled_protocols="TLSv1.3")
    assert context.minimum_version == context.maximum_version == ssl.TLSVersion.TLSv1_3


def test_a_clients_certificate(certificates: Certificates, tmp_path: Path) -> None:
    path = certificates.issued("client")
    key, chain = path.read_text().split("-----BEGIN CERTIFICATE", 1)
    chain = f"-----BEGIN CERTIFICATE{chain}"
    (tmp_path / "key.pem").write_text(key)
    (tmp_path / "chain.pem").write_text(chain)
    for written in (
        {"ssl_keystore_location": str(path)},
        {"ssl_keystore_key": key, "ssl_keystore_certificate_chain": chain},
        {
            "ssl_key_location": str(tmp_path / "key.pem"),
            "ssl_certificate_location": str(tmp_path / "chain.pem"),
        },
        {"ssl_key_pem": key, "ssl_certificate_pem": chain},
    ):
        assert tls(**written).cert_store_stats()["x509"] >= 0
    other = certificates.issued("other").read_text().split("-----BEGIN CERTIFICATE", 1)[0]
    with pytest.raises(ValueError, match=r"ssl.certificate.pem, ssl.key.pem: no private key"):
        tls(ssl_key_pem=other, ssl_certificate_pem=chain)
    with pytest.raises(ValueError, match=r"ssl.keystore.location: no private key"):
        tls(ssl_keystore_location=str(certificates.authority))


def test_an_encrypted_key(certificates: Certificates) -> None:
    text = certificates.issued("client").read_bytes()
    key = serialization.load_pem_private_key(text, None)
    encrypted = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"s3cret"),
    ).decode()
    chain = text[text.index(b"-----BEGIN CERTIFICATE") :].decode()
    given: dict[str, Any] = {"ssl_keystore_key": encrypted, "ssl_keystore_certificate_chain": chain}
    assert tls(**given, ssl_key_password="s3cret").check_hostname
    for wrong in ({}, {"ssl_key_password": "wrong"}):
        with pytest.raises(ValueError, match=r"ssl.key.password is missing or wrong"):
            tls(**given, **wrong)


# ---- tokens ----


def oauth(jaas: str = "", **properties: str) -> SaslOAuthBearer:
    names = {name.replace("_", "."): value for name, value in properties.items()}
    module = {"sasl.jaas.config": f"{OAUTH} {jaas};"} if jaas else {}
    sasl = security_from_properties(SASL | {"sasl.mechanism": "OAUTHBEARER"} | module | names).sasl
    assert isinstance(sasl, SaslOAuthBearer)
    return sasl


def test_unsigned_tokens() -> None:
    sasl = oauth(
        'unsecuredLoginStringClaim_sub="ann" unsecuredLoginNumberClaim_n="7" '
        'unsecuredLoginListClaim_scope=",a,b" unsecuredLoginLifetimeSeconds="60" '
        'unsecuredLoginExtension_x="y"'
    )
    token = sasl.token()
    assert isinstance(token, str)
    _head, body, signature = token.split(".")
    claims = json.loads(base64.urlsafe_b64decode(body + "=="))
    assert signature == ""
    assert (claims["sub"], claims["n"], claims["scope"]) == ("ann", 7, ["a", "b"])
    assert claims["exp"] - claims["iat"] == 60
    assert sasl.extensions == {"x": "y"}
    with pytest.raises(ValueError, match="numbers"):
        oauth('unsecuredLoginStringClaim_sub="ann" unsecuredLoginNumberClaim_n="x"')


def test_a_token_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a token"
    sasl = oauth('extension_a="b"', sasl_oauthbearer_token_endpoint_url=path.as_uri())
    with pytest.raises(TokenUnavailableError, match="No such file"):
        sasl.token()
    for token in ("one", "two"):
        path.write_text(f"{token}\n")
        assert sasl.token() == token
    assert sasl.extensions == {"a": "b"}


class Endpoint(http.server.BaseHTTPRequestHandler):
    """Answers with what the server object says, and keeps what it was asked."""

    server: Any

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.requests.append((self.path, self.headers["Authorization"], body))
        code, headers, answer = self.server.answer
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def endpoint() -> Iterator[Any]:
    server: Any = http.server.HTTPServer(("127.0.0.1", 0), Endpoint)
    server.requests, server.answer = [], (200, {}, b"{}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_token_endpoint(endpoint: Any) -> None:
    url = f"http://127.0.0.1:{endpoint.server_port}/token"
    sasl = oauth('clientId="me" clientSecret="s3cret" scope="kafka"', sasl_oauthbearer_token_endpoint_url=url)
    assert "s3cret" not in repr(sasl.token)
    endpoint.answer = (200, {}, b'{"access_token": "t1", "expires_in": 3600}')
    assert [sasl.token(), sasl.token()] == ["t1", "t1"]
    ((path, authorization, body),) = endpoint.requests
    assert (path, authorization) == ("/token", "Basic bWU6czNjcmV0")
    assert body == "grant_type=client_credentials&scope=kafka"


def test_a_token_that_does_not_live_is_not_kept(endpoint: Any) -> None:
    source = ClientCredentials(f"http://127.0.0.1:{endpoint.server_port}/", "me", "s3cret")
    for n in range(3):
        endpoint.answer = (200, {}, b'{"access_token": "t%d"}' % n)
        assert source() == f"t{n}"


@pytest.mark.parametrize(
    ("answer", "error", "why"),
    [
        ((401, {}, b'{"error":"invalid_client"}'), AuthenticationError, "401.*invalid_client.*clientSecret"),
        ((503, {}, b"later"), TokenUnavailableError, "503: later"),
        ((302, {"Location": "http://127.0.0.1:1/"}, b""), TokenUnavailableError, "302"),
        ((200, {}, b"no JSON"), TokenUnavailableError, "Expecting value"),
        ((200, {}, b"[]"), TokenUnavailableError, "without an access_token"),
        ((200, {}, b'{"access_token": 7}'), TokenUnavailableError, "without an access_token"),
    ],
)
def test_token_endpoints_that_refuse(endpoint: Any, answer: Any, error: type[Exception], why: str) -> None:
    endpoint.answer = answer
    source = ClientCredentials(f"http://127.0.0.1:{endpoint.server_port}/t?key=s3cret", "me", "s3cret")
    with pytest.raises(error, match=why) as raised:
        source()
    assert "s3cret" not in str(raised.value)


# ---- any text ----


@given(st.dictionaries(st.text(min_size=1), st.text(), max_size=5))
def test_properties_that_java_would_write_come_back(pairs: dict[str, str]) -> None:
    text = "".join(f"{_escaped(name)}={_escaped(value)}\n" for name, value in pairs.items())
    assert parse_properties(text) == pairs


def _escaped(text: str) -> str:
    units = text.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


@given(st.text(), st.text(alphabet="ab=\";\\' \n{}", max_size=40))
def test_any_text_is_read_or_refused(text: str, module: str) -> None:
    parse_properties(text)
    outcomes = []
    for one in (text, module, f"a.B required {module};"):
        try:
            outcomes.append(parse_jaas(one).name)
        except ValueError as error:
            outcomes.append(str(error))
    assert len(outcomes) == 3
