"""Distinguished names of certificates as Java prints them (X500Principal.getName(), RFC 2253): that is what
ACLs and rules of a Kafka cluster are written for. Pure bytes."""

from __future__ import annotations

from collections.abc import Iterator

KEYWORDS = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
"""The attributes with a name in RFC 2253; every other attribute is its number, and its value in
hexadecimal."""

_TEXTS = (0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E)
"""UTF8String, PrintableString, T61String, IA5String, GeneralString, BMPString."""
_SEQUENCE, _SET, _OID, _VERSION = 0x30, 0x31, 0x06, 0xA0
_ESCAPED = frozenset(',=+<>#;"\\')
_BLANK = " \r"


def subject_of(certificate: bytes) -> str:
    """The subject of an X.509 certificate in DER. Raises ValueError for what is none."""
    try:
        (_, signed), *_ = _values(_expect(certificate, _SEQUENCE))
        fields = list(_values(signed))
        # Version (which may be missing), serial number, signature algorithm, issuer, validity, subject.
        _, subject = fields[5 if fields[0][0] == _VERSION else 4]
        parts = [_relative(part) for kind, part in _values(subject) if kind == _SET]
    except IndexError:
        raise ValueError("not DER of a certificate: something is missing") from None
    return ",".join(reversed(parts))


def _relative(part: bytes) -> str:
    return "+".join(_attribute(attribute) for _, attribute in _values(part))


def _attribute(attribute: bytes) -> str:
    oid = _expect(attribute, _OID)
    whole = attribute[_after(attribute) :]
    [(kind, value)] = _values(whole)
    name = _dotted(oid)
    keyword = KEYWORDS.get(name)
    if keyword is None or kind not in _TEXTS:
        return f"{keyword or name}=#{whole.hex()}"
    return f"{keyword}={_escaped(value.decode(errors='replace'))}"


def _escaped(text: str) -> str:
    inner = "".join(f"\\{one}" if one in _ESCAPED else "\\00" if one == "\0" else one for one in text)
    begin = len(inner) - len(inner.lstrip(_BLANK))
    end = len(inner.rstrip(_BLANK))
    return "".join(f"\\{one}" if not begin <= position < end else one for position, one in enumerate(inner))


def _dotted(oid: bytes) -> str:
    numbers, number = [], 0
    for byte in oid:
        number = number << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(number)
            number = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))


# ---- DER ----


def _values(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Tag and content, one after the other."""
    while data:
        start, stop = _span(data)
        yield data[0], data[start:stop]
        data = data[stop:]


def _expect(data: bytes, tag: int) -> bytes:
    start, stop = _span(data)
    if data[0] != tag:
        raise ValueError(f"not DER of a certificate: tag {data[0]:#x} where {tag:#x} was due")
    return data[start:stop]


def _after(data: bytes) -> int:
    return _span(data)[1]


def _span(data: bytes) -> tuple[int, int]:
    """Where the content of the first value begins and ends."""
    if len(data) < 2:
        raise ValueError("not DER of a certificate: it ends too soon")
    length, start = data[1], 2
    if length & 0x80:
        start += length & 0x7F
        length = int.from_bytes(data[2:start], "big")
    if start + length > len(data):
        raise ValueError("not DER of a certificate: it ends too soon")
    return start, start + length
