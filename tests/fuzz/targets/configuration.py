"""Settings as operators write them: files, the environment, listeners, rules of names, and Java's files and
login modules; and a certificate's name, which rules are for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

from ringleader.clients.connection.security.properties import parse_jaas, parse_properties
from ringleader.clients.group.leading.matching import _compiled
from ringleader.coordinator import config_text
from ringleader.coordinator.config import SettingsError, load_settings, options, parse_topics
from ringleader.coordinator.security.listeners import (
    listeners_of,
    parse_address,
    parse_named_addresses,
    parse_named_protocols,
)
from ringleader.coordinator.security.mapping import NoMatchingRuleError, PrincipalMapper
from ringleader.coordinator.security.names import subject_of
from ringleader.spark_bridge.options import OptionsError, batch_options, stream_options
from ringleader.spark_bridge.options.sink import sink_options
from tests.fuzz.mutation import changed_bytes, changed_parts, joined, parts_of
from tests.fuzz.target import Target, promise, scratch

_DIRECTORY = scratch()
NAMES = "CN=alice,OU=people,O=example"


def _settings(parts: list[bytes]) -> None:
    """A file (its kind, its bytes), and the environment: name and value."""
    kind, text, *environment = [*parts, b"", b""][: max(2, len(parts))]
    path = _DIRECTORY / ("settings.toml" if kind == b"toml" else "settings.properties")
    path.write_bytes(text)
    words = [part.decode("utf-8", "surrogateescape") for part in environment]
    environ = dict(zip(words[::2], words[1::2], strict=False))
    try:
        found = load_settings(environ=environ, file=path)
    except SettingsError as error:
        promise(str(error).endswith((".", "?")), f"not a sentence: {error}")
        return
    found.served()


def _java(parts: list[bytes]) -> None:
    text = parts[0].decode(errors="replace")
    try:
        found = parse_properties(text)
    except ValueError:
        return
    written = "".join(f"{_escaped(name)}={_escaped(value)}\n" for name, value in found.items())
    promise(parse_properties(written) == found, "properties that were written are read as others")


def _escaped(text: str) -> str:
    units = text.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def _jaas(parts: list[bytes]) -> None:
    try:
        found = parse_jaas(parts[0].decode(errors="replace"))
    except ValueError as error:
        promise("secret" not in str(error), "a part of the text, which may be a password, is told")
        return
    promise(
        all(value not in repr(found) for value in found.options.values() if "secret" in value),
        "a secret is shown",
    )


def _listeners(parts: list[bytes]) -> None:
    addresses, advertised, protocols, one = [
        part.decode(errors="replace") for part in [*parts, b"", b"", b""][:4]
    ]
    for read in (parse_address, parse_topics):
        try:
            read(one)
        except ValueError:
            continue
    try:
        found = listeners_of(
            parse_named_addresses(addresses),
            parse_named_addresses(advertised),
            parse_named_protocols(protocols or "PLAINTEXT:PLAINTEXT,SSL:SSL"),
        )
    except ValueError:
        return
    for listener in found:
        promise(
            parse_named_addresses(str(listener))[0] == (listener.name, listener.address),
            f"{listener} is written in another way than it is read",
        )


def _rules(parts: list[bytes]) -> None:
    rules, name = [part.decode(errors="replace") for part in [*parts, NAMES.encode()][:2]]
    try:
        mapper = PrincipalMapper(rules)
    except ValueError:
        return
    try:
        mapper.name(name[:40])
    except NoMatchingRuleError:
        return


def _pattern(parts: list[bytes]) -> None:
    text = parts[0].decode(errors="replace")
    try:
        _compiled(text)
    except ValueError:
        return


def _certificate(parts: list[bytes]) -> None:
    try:
        subject_of(parts[0])
    except ValueError:
        return


def _spark(parts: list[bytes]) -> None:
    """Options of the source and the sink: name and value."""
    words = [part.decode(errors="replace") for part in parts]
    given = {"kafka.bootstrap.servers": "a:9092", "subscribe": "a", "kafka.group.id": "g", "topic": "t"}
    given |= dict(zip(words[::2], words[1::2], strict=False))
    for read in (stream_options, batch_options, sink_options):
        try:
            read(given)
        except OptionsError:
            continue


def _der(tag: int, *parts: bytes) -> bytes:
    content = b"".join(parts)
    size = bytes((len(content),)) if len(content) < 128 else bytes((0x82, *len(content).to_bytes(2, "big")))
    return bytes((tag,)) + size + content


def _certificate_of(name: bytes) -> bytes:
    common = _der(0x31, _der(0x30, _der(0x06, b"\x55\x04\x03"), _der(0x0C, name)))
    other = _der(0x31, _der(0x30, _der(0x06, b"\x2a\x86\x48\x01"), _der(0x04, b"x")))
    fields = [_der(0xA0, b""), _der(2, b"\1"), _der(0x30), _der(0x30), _der(0x30), _der(0x30, other, common)]
    return _der(0x30, _der(0x30, *fields), _der(0x30), _der(3, b"\0"))


READERS: tuple[tuple[Callable[[list[bytes]], None], tuple[tuple[bytes, ...], ...]], ...] = (
    (_settings, (
        (b"properties",
        b"# mine\nlisten=127.0.0.1:0\ngroup.max.size=10\ntopic=a:1,b:2\nsuper.users=User:a\n"),
        (b"toml", b'listen = "127.0.0.1:0"\n[group]\nmax.size = 10\n'),
        (b"toml", b'listeners = ["A://127.0.0.1:0"]\nlistener.security.protocol.map = "A:SASL_PLAINTEXT"\n'
         b'sasl.enabled.mechanisms = "SCRAM-SHA-512"\n[listener.name.a]\nconnections.max.reauth.ms = 5\n'),
        (b"", b"", b"RINGLEADER_LISTENERS", b"PLAINTEXT://127.0.0.1:0", b"RINGLEADER_NODE_ID", b"3"),
        (b"", b"", b"RINGLEADER_CLUSTER", b"a:9092,[::1]:9093", b"RINGLEADER_NODE_ID", b"1"),
        (b"", b"ssl.principal.mapping.rules=RULE:^CN=(.*?),.*$/$1/L,DEFAULT\nhttp.listen=127.0.0.1:0\n"),
    )),
    (_java, ((b"a=b\n# no\nc : d\\\n  e\nf\\u00e4 g\n!x\nh=\\ud83d\\ude00\\t",),)),
    (_jaas, ((b'org.PlainLoginModule required username="a" password="secret";',),
             (b"M optional a='secret\\'x' b=secret;",))),
    (_listeners, ((b"A://127.0.0.1:9092,B://[::1]:0", b"A://h:1", b"A:SSL,B:SASL_SSL", b"a:1"),)),
    (_rules, ((b"RULE:^CN=(.*?),OU=(.*?),.*$/$1@$2/L,RULE:^(?<a>.*)$/${a}/U,DEFAULT", NAMES.encode()),)),
    (_pattern, ((b"orders-[0-9]+|a{2,5}(?P<x>b)",),)),
    (_certificate, ((_certificate_of(b"alice,#"),),)),
    (_spark, ((b"startingOffsets", b'{"a":{"0":1}}', b"maxOffsetsPerTrigger", b"5"),
              (b"subscribePattern", b"a.*", b"subscribe", b""),
              (b"kafka.security.protocol", b"SASL_SSL", b"kafka.sasl.jaas.config",
               b'org.PlainLoginModule required username="a" password="b";'))),
)  # fmt: skip
"""The readers, and inputs for each."""
SETTINGS = [option.key.encode() for option in options()] + [option.env.encode() for option in options()]
WORDS = (
    *SETTINGS, b"=", b"\n", b"\\", b"\\u0041", b"[", b"]", b"a.b.", b"://", b"{99999999999}", b"(" * 200,
    b"((?:a|b)*)+",
    b"listener.name.a.", b"RULE:", b"/", b"$1", b"${a}", b"\0", b"\xff", b"'", b'"', b"[" * 3_000,
    b"{" * 3_000, b"User:",
    b"9" * 5_000, b"-1", b"1e999", b"\xd9\xa1", b"0x10", b"true", b"SASL_SSL", b"https://h/", b"file:///x",
    b"\xc2\x85",
)  # fmt: skip


def check(data: bytes) -> None:
    if len(data) < 2:
        return
    READERS[data[0] % len(READERS)][0](parts_of(data[1:]) or [b""])


def seeds() -> Iterator[bytes]:
    for number, (_, some) in enumerate(READERS):
        for parts in some:
            yield bytes((number,)) + joined(parts)


SEEDS = list(seeds())


def mutate(data: bytes, rng: Random) -> bytes:
    if len(data) < 2 or rng.random() < 0.05:
        data = rng.choice(SEEDS)
    return data[:1] + changed_parts(data[1:], rng, _part)


def _part(data: bytes, rng: Random) -> bytes:
    if rng.random() < 0.2 and data.count(b"=") > 0:
        name = rng.choice(SETTINGS)
        return data + name + b"=" + rng.choice(WORDS) + b"\n"
    if rng.random() < 0.1:
        return rng.choice(WORDS)
    return changed_bytes(data, rng, WORDS)


def plant(patch: Any) -> None:
    """A line of a file without a value is no error of its reader's."""

    def careless(text: str, path: Path) -> dict[str, str]:
        return {line.split("=")[0]: line.split("=")[1] for line in text.splitlines()}

    patch.setattr(config_text, "_properties", careless)


TARGET = Target(
    "configuration",
    "Every text is taken or refused by the exception that its reader documents, with a sentence for "
    "settings; "
    "what is read and can be written is read again as the same.",
    check,
    seeds,
    mutate,
    plant,
)
