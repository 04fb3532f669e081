"""Distinguished names. The expected names were printed by Java (X500Principal.getName()) for the same
certificates."""

from __future__ import annotations

import datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.name import _ASN1Type as Kind
from cryptography.x509.oid import NameOID

from ringleader.coordinator.security.names import subject_of

CN, OU, O, L, ST, C = (  # noqa: E741 - as they are called
    NameOID.COMMON_NAME,
    NameOID.ORGANIZATIONAL_UNIT_NAME,
    NameOID.ORGANIZATION_NAME,
    NameOID.LOCALITY_NAME,
    NameOID.STATE_OR_PROVINCE_NAME,
    NameOID.COUNTRY_NAME,
)
KEY = ec.generate_private_key(ec.SECP256R1())
Attribute = x509.NameAttribute


def certificate(*parts: list[Attribute[str]]) -> bytes:
    name = x509.Name([x509.RelativeDistinguishedName(part) for part in parts])
    now = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(x509.Name([Attribute(CN, "authority")]))
        .public_key(KEY.public_key())
        .serial_number(5)
        .not_valid_before(now)
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(KEY, hashes.SHA256())
        .public_bytes(serialization.Encoding.DER)
    )


@pytest.mark.parametrize(
    ("parts", "java"),
    [
        ([[Attribute(CN, "duke")]], "CN=duke"),
        (
            [
                [Attribute(C, "US")],
                [Attribute(ST, "MD")],
                [Attribute(L, "Fulton")],
                [Attribute(O, "my, cp")],
                [Attribute(OU, "a+b=c")],
                [Attribute(CN, 'Duke "the" <x>;#\\')],
            ],
            r"CN=Duke \"the\" \<x\>\;\#\\,OU=a\+b\=c,O=my\, cp,L=Fulton,ST=MD,C=US",
        ),
        ([[Attribute(CN, " lead and trail  ")]], r"CN=\ lead and trail\ \ "),
        ([[Attribute(CN, "   ")]], r"CN=\ \ \ "),
        (
            [
                [Attribute(CN, "a"), Attribute(OU, "b"), Attribute(NameOID.USER_ID, "u")],
                [Attribute(NameOID.DOMAIN_COMPONENT, "com")],
                [Attribute(NameOID.STREET_ADDRESS, "street 1")],
            ],
            "STREET=street 1,DC=com,CN=a+OU=b+UID=u",
        ),
        (
            [[Attribute(NameOID.EMAIL_ADDRESS, "a@b.example")], [Attribute(CN, "mail")]],
            "CN=mail,1.2.840.113549.1.9.1=#160b6140622e6578616d706c65",
        ),
        (
            [
                [Attribute(NameOID.SERIAL_NUMBER, "123")],
                [Attribute(NameOID.TITLE, "t")],
                [Attribute(x509.ObjectIdentifier("2.999.1.300"), "x")],
                [Attribute(x509.ObjectIdentifier("1.3.6.1.4.1.311.20.2.3"), "x")],
            ],
            "1.3.6.1.4.1.311.20.2.3=#0c0178,2.999.1.300=#0c0178,2.5.4.12=#0c0174,2.5.4.5=#1303313233",
        ),
        ([[Attribute(CN, "Zoë Müller 日本 \U0001f600")]], "CN=Zoë Müller 日本 \U0001f600"),
        ([[Attribute(CN, "a\0b\rc\nd\t")]], "CN=a\\00b\rc\nd\t"),
        ([[Attribute(CN, "bmp", Kind.BMPString)]], r"CN=\00b\00m\00p"),
        ([[Attribute(CN, "num 12", Kind.NumericString)]], "CN=#12066e756d203132"),
        ([[Attribute(CN, "ia5", Kind.IA5String)], [Attribute(CN, "t", Kind.T61String)]], "CN=t,CN=ia5"),
        ([[Attribute(CN, "/admin")], [Attribute(CN, "../x\u202e")]], "CN=../x\u202e,CN=/admin"),
        ([], ""),
    ],
)
def test_names_are_java_s(parts: list[list[Attribute[str]]], java: str) -> None:
    assert subject_of(certificate(*parts)) == java


def test_what_is_cut_off_or_something_else_is_refused() -> None:
    whole = certificate([Attribute(CN, "duke")])
    for stop in range(len(whole)):
        with pytest.raises(ValueError, match="not DER"):
            subject_of(whole[:stop])
    with pytest.raises(ValueError, match="not DER"):
        subject_of(b"\x02" + whole[1:])
