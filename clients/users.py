"""SCRAM credentials of a broker's users, as they are asked for and set (KIP-554)."""

from __future__ import annotations

import hashlib
import secrets
import string
from collections.abc import Mapping
from typing import Any, Final

from ringleader.clients.checks import wire_text
from ringleader.clients.connection.security.sasl import SCRAM_HASHES
from ringleader.protocol.messages import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsRequestScramCredentialDeletion,
    AlterUserScramCredentialsRequestScramCredentialUpsertion,
)

ITERATIONS: Final = 4_096
"""The default of Kafka's own tool."""
MIN_ITERATIONS, MAX_ITERATIONS = 4_096, 16_384
"""The range that Kafka accepts."""
SALT_CHARACTERS = 26
"""As Kafka's own tool makes them."""
MECHANISMS: Final[Mapping[str, int]] = {"SHA-256": 1, "SHA-512": 2}
"""Their numbers on the wire, by the hash's name."""
NAMES: Final[Mapping[int, str]] = {number: name for name, number in MECHANISMS.items()}

_ALPHABET = string.digits + string.ascii_lowercase


def upsertion(name: str, password: str, hash_name: str, iterations: int) -> AlterUserScramCredentialsRequest:
    """Make or change a credential, with a fresh salt; takes milliseconds. Raises ValueError for what no
    broker takes."""
    number = _number(hash_name)
    if not name or not password:
        raise ValueError("a user has a name and a password")
    if not MIN_ITERATIONS <= iterations <= MAX_ITERATIONS:
        raise ValueError(
            f"iterations have to be {MIN_ITERATIONS:,} to {MAX_ITERATIONS:,}, not {iterations:,}"
        )
    wire_text("the name of a user", name)
    salt = "".join(secrets.choice(_ALPHABET) for _ in range(SALT_CHARACTERS)).encode()
    salted = hashlib.pbkdf2_hmac(SCRAM_HASHES[hash_name], password.encode(), salt, iterations)
    made = AlterUserScramCredentialsRequestScramCredentialUpsertion(name, number, iterations, salt, salted)
    return AlterUserScramCredentialsRequest(upsertions=[made])


def deletion(name: str, hash_name: str) -> AlterUserScramCredentialsRequest:
    """Remove a credential. Raises ValueError for a hash that there is not."""
    wire_text("the name of a user", name)
    removal = AlterUserScramCredentialsRequestScramCredentialDeletion(name, _number(hash_name))
    return AlterUserScramCredentialsRequest(deletions=[removal])


def described(response: Any) -> dict[str, dict[str, int]]:
    """User -> hash -> iterations, of those that there are."""
    return {
        one.user: {NAMES.get(info.mechanism, "?"): info.iterations for info in one.credential_infos}
        for one in response.results
        if not one.error_code
    }


def _number(hash_name: str) -> int:
    if hash_name not in MECHANISMS:
        raise ValueError(f"hash has to be one of {', '.join(MECHANISMS)}, not {hash_name!r}")
    return MECHANISMS[hash_name]
