"""Regular expressions of a subset that needs no library, matched in time linear in the text.

Read are letters, `.`, classes (`[a-z]`, `[^a-z]`, `\\d \\w \\s` and their opposites), groups, `|`, `* + ?`,
and `{n}`, `{n,}`, `{n,m}`; `^` and `$` where the whole text begins and ends, in groups, too (librdkafka makes
`(^a.*)|(^b.*)` of two). They mean what they mean in RE2. An expression becomes Glushkov's automaton: one
state for each letter or class, and no way to be in more states than that at a time, so none can explode.
"""

from __future__ import annotations

import re
import string
from typing import Final, NamedTuple

STATES_MAX: Final = 500
STEPS_MAX: Final = 5_000
"""Atoms that are read, those too that are read again for a repetition."""
DEPTH_MAX: Final = 50
REPEAT_MAX: Final = 1_000
"""As in RE2."""
REMEMBERED_MAX: Final = 1_000
"""Sets of states whose followers are remembered."""

_ASCII = frozenset(map(chr, range(128)))
_DIGITS = frozenset(string.digits)
_WORD = _DIGITS | frozenset(string.ascii_letters) | {"_"}
_SPACE = frozenset("\t\n\f\r ")
_CLASSES = {
    "d": _DIGITS,
    "w": _WORD,
    "s": _SPACE,
    "D": _ASCII - _DIGITS,
    "W": _ASCII - _WORD,
    "S": _ASCII - _SPACE,
}
_COUNTED = re.compile(r"\{(0|[1-9][0-9]*)(,(0|[1-9][0-9]*)?)?\}")
_REPEATS = "*+?"
_ENDS = ("", "|", ")")
"""Of a sequence."""


class PatternError(ValueError):
    """An expression that is none, or that cannot be taken: the text says why, without a full stop."""


class OutsideError(PatternError):
    """An expression outside of the subset."""


class _Part(NamedTuple):
    """A part of an expression. States are bits."""

    empty: bool
    """Whether it matches nothing at all, too."""
    first: int
    last: int


_NOTHING = _Part(True, 0, 0)


class Automaton:
    """One expression, which matches whole texts of ASCII letters. Raises `PatternError`."""

    def __init__(self, text: str) -> None:
        reader = _Reader(text)
        whole = reader.whole()
        self.size = max(1, len(reader.classes))
        """Number of states: what a letter of the text costs at most."""
        self._whole = whole
        self._followers = reader.followers
        self._states = dict.fromkeys(_ASCII, 0)
        for number, letters in enumerate(reader.classes):
            for one in letters & _ASCII:
                self._states[one] |= 1 << number
        self._remembered: dict[int, int] = {}

    def matches(self, text: str) -> bool:
        """Whether the whole text is matched."""
        if not text:
            return self._whole.empty
        states, follow = self._states, self._whole.first
        at = 0
        for one in text:
            at = follow & states.get(one, 0)
            if not at:
                return False
            follow = self._remembered.get(at, -1)
            if follow < 0:
                follow = self._follow(at)
        return bool(at & self._whole.last)

    def _follow(self, at: int) -> int:
        if len(self._remembered) >= REMEMBERED_MAX:
            self._remembered.clear()
        follow, left = 0, at
        while left:
            number = left.bit_length() - 1
            follow |= self._followers[number]
            left ^= 1 << number
        self._remembered[at] = follow
        return follow


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._steps = 0
        self._anchors = 0
        """Number of `^` and `$` so far."""
        self._ends = False
        """Whether the part that was read last ends in `$`."""
        self.classes: list[frozenset[str]] = []
        """By state: the letters that lead to it."""
        self.followers: list[int] = []

    def whole(self) -> _Part:
        part = self._alternatives(0, leads=True)
        if self._at < len(self._text):
            raise PatternError("unexpected )")
        return part

    # ---- the text ----

    def _next(self) -> str:
        return self._text[self._at : self._at + 1]

    def _take(self, token: str) -> bool:
        taken = self._text.startswith(token, self._at)
        self._at += len(token) if taken else 0
        return taken

    def _letter(self) -> str:
        one = self._next()
        self._at += 1
        return one

    # ---- parts ----

    def _alternatives(self, depth: int, *, leads: bool) -> _Part:
        """`leads`: nothing stands before it."""
        if depth > DEPTH_MAX:
            raise OutsideError(f"groups are nested more than {DEPTH_MAX} deep")
        empty, first, last = self._sequence(depth, leads=leads)
        while self._take("|"):
            other = self._sequence(depth, leads=leads)
            empty, first, last = empty or other.empty, first | other.first, last | other.last
        return _Part(empty, first, last)

    def _sequence(self, depth: int, *, leads: bool) -> _Part:
        part, ends, self._ends = _NOTHING, self._ends, False
        if leads and self._take("^"):
            self._anchors += 1
        while self._next() not in _ENDS:
            if self._next() == "$" and self._text[self._at + 1 : self._at + 2] in _ENDS:
                self._at += 1
                self._anchors += 1
                self._ends = True
                break
            part = self._then(part, self._repeated(depth, leads=leads))
            leads = False
            if self._ends and self._next() not in (*_ENDS, "$"):
                raise OutsideError("$ is read at the ends only")
        self._ends |= ends  # of another alternative
        return part

    def _then(self, one: _Part, other: _Part) -> _Part:
        self._link(one.last, other.first)
        return _Part(
            one.empty and other.empty,
            one.first | (other.first if one.empty else 0),
            other.last | (one.last if other.empty else 0),
        )

    def _link(self, last: int, first: int) -> None:
        while last and first:
            number = last.bit_length() - 1
            self.followers[number] |= first
            last ^= 1 << number

    def _repeated(self, depth: int, *, leads: bool) -> _Part:
        start, anchors = self._at, self._anchors
        part = self._atom(depth, leads=leads)
        least, most = self._times()
        end = self._at
        if anchors != self._anchors and (least, most) != (1, 1):
            raise OutsideError("^ and $ are not repeated")
        if self._next() and (self._next() in _REPEATS or _COUNTED.match(self._text, end)):
            raise PatternError("invalid nested repetition operator")
        if most is None:
            for _ in range(least - 1):
                part = self._then(part, self._again(start, depth))
            # The last one may come again: where there are several, all that came before stays.
            if least <= 1:
                self._link(part.last, part.first)
                return part._replace(empty=part.empty or not least)
            more = self._again(start, depth)
            self._link(more.last, more.first)
            part = self._then(part, more._replace(empty=True))
        elif most == 0:
            part = _NOTHING
        else:
            if not least:
                part = part._replace(empty=True)
            for number in range(1, most):
                other = self._again(start, depth)
                part = self._then(part, other if number < least else other._replace(empty=True))
        self._at = end
        return part

    def _again(self, start: int, depth: int) -> _Part:
        self._at = start
        return self._atom(depth, leads=False)

    def _times(self) -> tuple[int, int | None]:
        """How often at least and at most (None: without a bound), by the operator that comes."""
        one = self._next()
        counted = _COUNTED.match(self._text, self._at)
        if counted is not None:
            least = int(counted[1])
            most = least if counted[2] is None else int(counted[3]) if counted[3] else None
            if max(least, most or 0) > REPEAT_MAX or (most is not None and most < least):
                raise PatternError("invalid repeat count")
            self._at = counted.end()
        elif one and one in _REPEATS:
            self._at += 1
            least, most = int(one == "+"), 1 if one == "?" else None
        else:
            return 1, 1
        self._take("?")  # as few as can be: for a whole text it is the same
        return least, most

    def _atom(self, depth: int, *, leads: bool) -> _Part:
        self._steps += 1
        if self._steps > STEPS_MAX:
            raise OutsideError("it is too long")
        counted = _COUNTED.match(self._text, self._at)
        one = self._letter()
        if counted is not None or one in _REPEATS:
            raise PatternError("missing argument to repetition operator")
        if one == "(":
            if self._next() == "?" and not self._take("?:"):
                raise OutsideError(f"{self._text[self._at - 1 : self._at + 2]} is not read")
            part = self._alternatives(depth + 1, leads=leads)
            if not self._take(")"):
                raise PatternError("missing closing )")
            return part
        if one in "^$":
            raise OutsideError(f"{one} is read at the ends only")
        if one == ".":
            return self._state(_ASCII - {"\n"})
        if one == "[":
            return self._state(self._class())
        return self._state(self._escaped() if one == "\\" else frozenset(one))

    def _state(self, letters: frozenset[str]) -> _Part:
        number = len(self.classes)
        if number >= STATES_MAX:
            raise OutsideError("it is too long")
        self.classes.append(letters)
        self.followers.append(0)
        return _Part(False, 1 << number, 1 << number)

    def _escaped(self) -> frozenset[str]:
        one = self._letter()
        if not one:
            raise PatternError("trailing backslash at end of expression")
        if one in _CLASSES:
            return _CLASSES[one]
        if one.isascii() and not one.isalnum():
            return frozenset(one)
        raise OutsideError(f"\\{one} is not read")

    def _class(self) -> frozenset[str]:
        negated, letters = self._take("^"), frozenset[str]()
        first = True
        while first or self._next() != "]":
            if self._text.startswith("[:", self._at):
                raise OutsideError("[: is not read")
            some = self._class_letters()
            if self._next() == "-" and self._text[self._at + 1 : self._at + 2] not in ("]", ""):
                self._at += 1
                some = _between(some, self._class_letters())
            letters |= some
            first = False
        self._at += 1
        return _ASCII - letters if negated else letters

    def _class_letters(self) -> frozenset[str]:
        one = self._letter()
        if not one:
            raise PatternError("missing closing ]")
        return self._escaped() if one == "\\" else frozenset(one)


def _between(some: frozenset[str], others: frozenset[str]) -> frozenset[str]:
    if len(some) != 1 or len(others) != 1 or min(some) > min(others):
        raise PatternError("invalid character class range")
    low, high = ord(min(some)), min(ord(min(others)), 127)
    return frozenset(map(chr, range(low, high + 1)))
