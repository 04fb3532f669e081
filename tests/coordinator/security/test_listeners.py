"""Listeners by name: settings that are read, addresses that clients are given, and settings that are
refused."""

from __future__ import annotations

from typing import Any

import pytest

from ringleader.coordinator.config import Settings, SettingsError, load_settings
from ringleader.coordinator.security.listeners import Address, Listener, SecurityProtocol


def served(**flags: Any) -> tuple[Listener, ...]:
    return load_settings({"allow_plaintext": True, **flags}).served()


def test_one_plaintext_listener_is_the_short_form() -> None:
    [one] = served()
    assert (one.name, one.address) == ("PLAINTEXT", Address("127.0.0.1", 9_092))
    assert one.security_protocol is SecurityProtocol.PLAINTEXT
    assert served(listeners="plaintext://127.0.0.1:9092") == (one,)


def test_names_have_protocols_and_addresses_of_their_own() -> None:
    inside, outside = served(
        listeners="inside://[::1]:0, OUTSIDE://:9093",
        advertised_listeners="Outside://broker.example:19093",
        listener_security_protocol_map="INSIDE:plaintext,OUTSIDE:PLAINTEXT",
    )
    assert (inside.name, inside.address) == ("INSIDE", Address("::1", 0))
    assert (outside.name, outside.address) == ("OUTSIDE", Address("0.0.0.0", 9_093))
    assert inside.bound(Address("::1", 4_711), "machine").advertised == Address("::1", 4_711)
    assert outside.bound(outside.address, "machine").advertised == Address("broker.example", 19_093)


@pytest.mark.parametrize("everywhere", ["0.0.0.0", "::"])
def test_everywhere_is_no_address_to_come_to(everywhere: str) -> None:
    [one] = served(listeners=f"PLAINTEXT://[{everywhere}]:0")
    bound = one.bound(Address(everywhere, 4_711), "machine.example")
    assert bound.address == Address(everywhere, 4_711)
    assert bound.advertised == Address("machine.example", 4_711)


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ({"listeners": "PLAINTEXT:9092"}, "--listeners: give a listener as NAME://HOST:PORT"),
        ({"listeners": "PLAINTEXT://host"}, "--listeners: give it as HOST:PORT"),
        ({"listeners": "ONE://a:1"}, "listeners has ONE, which listener.security.protocol.map does not name"),
        ({"listeners": "PLAINTEXT://a:1,plaintext://a:2"}, "listeners has PLAINTEXT more than once"),
        ({"listener_security_protocol_map": "A:TLS"}, "--listener-security-protocol-map: give it as NAME"),
        (
            {"listeners": "PLAINTEXT://a:1", "advertised_listeners": "SSL://a:1"},
            "advertised.listeners has SSL, which is none of listeners: PLAINTEXT",
        ),
        (
            {"listeners": "PLAINTEXT://a:1", "advertised_listeners": "PLAINTEXT://0.0.0.0:1"},
            "advertised.listeners has PLAINTEXT at no address that clients can come to",
        ),
        ({"advertised_listeners": "PLAINTEXT://a:1"}, "advertised.listeners needs listeners"),
        ({"listeners": "PLAINTEXT://a:1", "listen": "b:1"}, "listeners takes the place of listen"),
        (
            {"listeners": "PLAINTEXT://a:1", "advertised_address": "b:1"},
            "listeners takes the place of listen",
        ),
        (
            {"listeners": "PLAINTEXT://127.0.0.1:1", "inter_broker_listener_name": "SSL"},
            "inter.broker.listener.name is SSL, which is none of listeners: PLAINTEXT",
        ),
        (
            {"listeners": ",".join(f"L{number}://127.0.0.1:1" for number in range(101))},
            "listeners has 101, and there may be 100",
        ),
    ],
)
def test_what_cannot_be_is_one_sentence(flags: dict[str, Any], says: str) -> None:
    with pytest.raises(SettingsError) as wrong:
        served(**flags)
    assert str(wrong.value).startswith(says)
    assert str(wrong.value).endswith(".")
    assert "\n" not in str(wrong.value)


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]", "10.0.0.1", "broker.example", "127.0.0.1.example"])
def test_a_listener_without_authentication_is_on_loopback_only(host: str) -> None:
    for form in ({"listen": f"{host}:9092"}, {"listeners": f"PLAINTEXT://{host}:9092"}):
        with pytest.raises(SettingsError, match=r"could do everything.*--allow-plaintext"):
            load_settings(form)
        assert load_settings({**form, "allow_plaintext": True}).served()
    with pytest.raises(ValueError, match="--allow-plaintext"):
        Settings(listen=f"{host}:9092").served()


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "[::1]", "localhost", "LOCALHOST"])
def test_loopback_needs_no_permission(host: str) -> None:
    assert load_settings({"listen": f"{host}:9092"}).served()
