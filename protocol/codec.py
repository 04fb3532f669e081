"""Decoders and encoders by message class and version, compiled when first asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ringleader.protocol.codegen.functions import Verb, compiled
from ringleader.protocol.fields import Declared

Decoder = Callable[..., tuple[Any, int]]
"""(data, position) -> (message, position after it). Raises `MalformedError`.

The decoder of a request takes a third argument, the budget: the most that its arrays may cost to decode, in
elements of an array of numbers; see `layout.effort`. It is spent before any element is decoded."""

Encoder = Callable[[Any], bytes]
"""message -> body. Raises `EncodeError`."""

PiecesEncoder = Callable[[Any], Iterator[bytes]]
"""message -> body in pieces, most often one. Raises `EncodeError` at any of them."""

_decoders: dict[tuple[type[Declared], int], Decoder] = {}
_encoders: dict[tuple[type[Declared], int], Encoder] = {}
_pieces_encoders: dict[tuple[type[Declared], int], PiecesEncoder] = {}


def _functions(cls: type[Declared], verb: Verb, version: int) -> dict[str, Callable[..., Any]]:
    if not cls.MIN_VERSION <= version <= cls.MAX_VERSION:
        raise ValueError(
            f"{cls.__name__} is declared for versions {cls.MIN_VERSION} to {cls.MAX_VERSION}, not {version}"
        )
    return compiled(cls, verb, version)


def decoder(cls: type[Declared], version: int) -> Decoder:
    """The decoder of one version: for hot paths; `cls.decode` is the friendly form.

    Raises ValueError if the version is not declared.
    """
    found = _decoders.get((cls, version))
    if found is None:
        found = _decoders[cls, version] = _functions(cls, "decode", version)[f"decode_v{version}"]
    return found


def encoder(cls: type[Declared], version: int) -> Encoder:
    """The encoder of one version. Raises ValueError if the version is not declared."""
    found = _encoders.get((cls, version))
    if found is None:
        found = _compile_encoders(cls, version)[0]
    return found


def pieces_encoder(cls: type[Declared], version: int) -> PiecesEncoder:
    """The encoder of a response that may be long. Raises ValueError if the version is not declared."""
    found = _pieces_encoders.get((cls, version))
    if found is None:
        found = _compile_encoders(cls, version)[1]
    return found


def _compile_encoders(cls: type[Declared], version: int) -> tuple[Encoder, PiecesEncoder]:
    functions = _functions(cls, "encode", version)
    whole: Encoder = functions[f"encode_v{version}"]
    pieces: PiecesEncoder = functions.get(f"encode_pieces_v{version}") or (
        lambda message: iter((whole(message),))
    )
    _encoders[cls, version], _pieces_encoders[cls, version] = whole, pieces
    return whole, pieces
