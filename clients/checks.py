"""Arguments are checked where they are given, against the types that the signatures and settings say."""

from __future__ import annotations

import re
import types
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from operator import index
from threading import TIMEOUT_MAX
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from ringleader.clients import foreign_options

_WORDS = {
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    str: "a text",
    bytes: "bytes",
    type(None): "None",
}
MAX_INT16, MAX_INT32, MAX_INT64 = 2**15 - 1, 2**31 - 1, 2**63 - 1
"""The most that the wire has room for."""
_SHOWN = (bool, int, float, str, type(None))
_SECRETS = frozenset({"sasl", "tls", "coordinator_sasl", "coordinator_tls"})


def check(name: str, value: object, hint: Any, call: str = "") -> None:
    """Raises ValueError if the value is not of that type: `call` is what the user wrote."""
    if fits(value, hint):
        return
    shown = type(value).__name__
    if isinstance(value, _SHOWN) and name not in _SECRETS:
        shown = repr(value)
    raise ValueError(f"{call + ': ' if call else ''}{name} has to be {in_words(hint)}, not {shown}")


def check_options(call: str, options: Mapping[str, object], known: type) -> None:
    """Raises TypeError for an option that the TypedDict `known` does not have, ValueError for a value that is
    not of its type. `call` is what the user wrote."""
    hints = _hints(known)
    for name, value in options.items():
        if name not in hints:
            if (there := foreign_options.ours(name, hints)) is not None:
                raise TypeError(f"{call} has no option {name!r}: {there}")
            close = get_close_matches(name, hints, n=1)
            meant = f"; did you mean {close[0]!r}?" if close else ""
            raise TypeError(f"{call} has no option {name!r}{meant}")
        check(name, value, hints[name], call)


def check_fields(settings: Any) -> None:
    """Raises ValueError for a field of a dataclass whose value is not of its type, or a text that cannot be
    sent."""
    kind: Any = type(settings)
    for name, hint in _hints(kind).items():
        value = getattr(settings, name)
        check(name, value, hint)
        if isinstance(value, str):
            wire_text(name, value)


def utf8_size(what: str, text: str) -> int:
    """The bytes of a text. Raises ValueError for one that cannot be sent."""
    try:
        return len(text.encode())
    except UnicodeEncodeError as error:
        why = f"character {error.start} is half of a surrogate pair"
        raise ValueError(f"{what} cannot be sent as UTF-8: {why}") from None


def wire_text(what: str, text: object) -> str:
    """Raises ValueError for what is no text, or none that every version of every request has room for."""
    check(what, text, str)
    assert isinstance(text, str)
    size = utf8_size(what, text)
    if size > MAX_INT16:
        raise ValueError(f"{what} has to be at most {MAX_INT16} bytes of UTF-8, not {size}")
    return text


def check_numbers(least: int, most: int = MAX_INT32, **numbers: object) -> None:
    """Raises ValueError for what is no whole number, less than that, or more. None is none to check."""
    for name, value in numbers.items():
        if value is not None:
            check(name, value, int)
        if isinstance(value, int) and value < least:
            bound = "above 0" if least == 1 else f"at least {least}"
            raise ValueError(f"{name} has to be {bound}, not {value}")
        if isinstance(value, int) and value > most:
            raise ValueError(f"{name} has to be at most {most}, not {value}")


def check_bounds(settings: object, *names: str, least: int = 0, most: int = MAX_INT32) -> None:
    """Raises ValueError for a field that is less than that, or more; None is no number."""
    check_numbers(least, most, **{name: getattr(settings, name) for name in names})


def whole(what: str, number: object) -> int:
    """Raises ValueError for what is no whole number."""
    try:
        return index(number)  # type: ignore[arg-type]
    except TypeError:
        raise ValueError(f"{what} has to be a whole number, not {number!r}") from None


def in_range(what: str, number: object, least: int, most: int) -> int:
    """Raises ValueError for what is no whole number in that range."""
    found = whole(what, number)
    if not least <= found <= most:
        raise ValueError(f"{what} has to be {least} to {most}, not {found}")
    return found


def offset_in_log(what: str, number: object) -> int:
    """Raises ValueError for what no log has: an offset is 0 to 2**63 - 1. Special values of the protocol are
    none for applications."""
    return in_range(what, number, 0, MAX_INT64)


def seconds(timeout_s: float) -> float:
    """Raises ValueError for what is no time to wait."""
    number = isinstance(timeout_s, int | float) and not isinstance(timeout_s, bool)
    if not number or not 0 <= timeout_s <= TIMEOUT_MAX:
        raise ValueError(f"timeout_s is a number of seconds, 0 or more, not {timeout_s!r}")
    return timeout_s


def fits(value: Any, hint: Any) -> bool:
    """Whether a value is of that type. A bool is no number; what can be called has to be callable; what can
    be iterated only once is not looked into."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any or hint is object:
        return True
    if origin in (Union, types.UnionType):
        return any(fits(value, one) for one in arguments)
    if origin is Literal:
        return any(value == one and type(value) is type(one) for one in arguments)
    if origin is Callable:
        return callable(value)
    if origin in (Sequence, Iterable):
        if isinstance(value, str | bytes) or not isinstance(value, origin):
            return False
        return not isinstance(value, Collection) or all(fits(one, arguments[0]) for one in value)
    if hint in (int, float):
        return isinstance(value, int if hint is int else int | float) and not isinstance(value, bool)
    return isinstance(value, type(None) if hint is None else origin or hint)


def in_words(hint: Any) -> str:
    """A type, for people."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        words = list(dict.fromkeys(in_words(one) for one in arguments))
        return ", ".join(words[:-1]) + f" or {words[-1]}" if len(words) > 1 else words[0]
    if origin is Literal:
        return f"one of {', '.join(map(repr, arguments))}"
    if origin is Callable:
        return "something that can be called"
    if origin in (Sequence, Iterable):
        of = {str: " of texts"}.get(arguments[0], f" of {getattr(arguments[0], '__name__', 'values')}")
        return f"a list{of}"
    if origin is re.Pattern:
        return "a compiled pattern"
    return _WORDS.get(hint) or f"{_article(hint.__name__)} {hint.__name__}"


def _article(name: str) -> str:
    return "an" if name.startswith(("A", "E", "I", "O", "SSL")) else "a"


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)
