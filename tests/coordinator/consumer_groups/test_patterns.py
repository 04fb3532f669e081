"""Regular expressions over topic names: both engines agree where both read, and none can hold up the loop."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import pytest

from ringleader.coordinator.consumer_groups import automaton, patterns
from ringleader.coordinator.consumer_groups.automaton import Automaton, OutsideError, PatternError
from ringleader.coordinator.run_queue import whole

NAMES = [
    "orders",
    "orders-eu",
    "orders_1",
    "payments",
    "Orders",
    "__consumer_offsets",
    "a.b",
    "a-b",
    "1",
    "o",
]
HOSTILE = [
    "(a*)*b",
    "(a+)+$",
    "(a|aa)+$",
    "(a|a?)+b",
    "(?:a?){200}a{200}",
    "((((a*)*)*)*)*b",
    "[ab]*a[ab]{99}",
    "(.*)(.*)(.*)(.*)(.*)b",
]


@pytest.fixture(params=["re2", "own"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each test runs on google-re2, and as if it was not installed."""
    if request.param == "own":
        monkeypatch.setattr(patterns, "re2", None)
    else:
        assert patterns.re2 is not None, "the tests need ringleader[regex]"
    return str(request.param)


@pytest.mark.parametrize(
    ("text", "matched"),
    [
        ("orders.*", ["orders", "orders-eu", "orders_1"]),
        ("^orders$", ["orders"]),
        ("orders", ["orders"]),
        ("ord", []),
        ("", []),
        (".*", NAMES),
        ("^orders|payments$|1", ["orders", "payments", "1"]),
        ("[oO]rders(-[a-z]{2})?", ["orders", "orders-eu", "Orders"]),
        (r"orders_\d+", ["orders_1"]),
        (r"a\.b", ["a.b"]),
        ("a.b", ["a.b", "a-b"]),
        ("a[^a-z]b", ["a.b", "a-b"]),
        (r"a[\w.]b", ["a.b"]),
        ("a[.-]b", ["a.b", "a-b"]),
        (r"__.+", ["__consumer_offsets"]),
        ("(?:o|orders)", ["orders", "o"]),
        ("o{1}|o{0,3}rders", ["orders", "o"]),
        ("(or|de|rs){3}", ["orders"]),
        ("(or|de|rs){2,}?", ["orders"]),
        ("o{0}1", ["1"]),
        (r"\W|\D", ["o"]),
        ("[]a]|a{,2}", []),
        ("é*o", ["o"]),
        ("(|o)", ["o"]),
        ("(^orders)|(^pay.*$)", ["orders", "payments"]),
        ("(?:(^o|a.)b?|b$)$", ["a.b", "a-b", "o"]),
        ("(^|a).b|(a.b|1)$", ["a.b", "a-b", "1"]),
    ],
)
def test_an_expression_matches_whole_names(engine: str, text: str, matched: list[str]) -> None:
    assert whole(patterns.search([text], NAMES)) == {text: matched}


@pytest.mark.parametrize(
    "text", ["(", ")", "a)", "[", "[z-a]", "*", "a**", "a{2}{3}", "\\", "a{1001}", "a{3,2}", "+a", "(?", "[a"]
)
def test_what_is_none_is_refused(engine: str, text: str) -> None:
    with pytest.raises(PatternError):
        patterns.compiled(text)
    assert whole(patterns.search([text, "o"], NAMES)) == {"o": ["o"]}


@pytest.mark.parametrize(
    "text",
    [
        "(?i)a",
        "a^b",
        "a$b",
        "(a$)b",
        "(a$|b)c",
        "(^a)*",
        "(a$)?",
        "b(^a)",
        r"\bo",
        r"\pL",
        "[[:alpha:]]",
        "(?P<n>a)",
        "a{501}",
        r"\x41",
        "(" * 60 + ")" * 60,
    ],
)
def test_without_re2_all_else_is_refused_with_its_name(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    patterns.compiled(text)
    monkeypatch.setattr(patterns, "re2", None)
    with pytest.raises(PatternError, match=r"ringleader\[regex\]"):
        patterns.compiled(text)


def test_lengths_are_bounded(engine: str) -> None:
    for text in ("a" * (patterns.LENGTH_MAX + 1), "é" * patterns.LENGTH_MAX, "a" * 1_000_000, r"\pL" * 17):
        with pytest.raises(PatternError, match=r"longer than|classes of Unicode"):
            patterns.compiled(text)


@pytest.mark.parametrize(
    "text", ["((a{0,9}){0,999}){0,999}", "((){1000}){1000}", ".{1000}" * 9, "(((a?){9}){9}){99}"]
)
def test_repetitions_do_not_multiply(engine: str, text: str) -> None:
    with pytest.raises(PatternError):
        patterns.compiled(text)


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_expression_costs_no_more_than_its_size(engine: str, text: str) -> None:
    """Each is over in an instant on 32 kB: `re` would take longer than there is time."""
    assert patterns.compiled(text).matches("a" * 32_000 + "c") is False


@pytest.mark.parametrize("text", HOSTILE)
def test_a_step_of_a_search_is_small(engine: str, text: str) -> None:
    """Counted in names times instructions, not in time."""
    names = ["a" * 249] * 3_000
    size = patterns.compiled(text).size
    steps = sum(1 for _ in patterns.search([text], names))
    assert steps >= 1 + len(names) * size // patterns.SLICE_COST


def test_the_followers_that_are_remembered_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(automaton, "REMEMBERED_MAX", 4)
    one = Automaton("[ab]*a[ab]{20}")
    rng = random.Random(1)
    for _ in range(50):
        text = "".join(rng.choices("ab", k=60))
        assert one.matches(text) is (re.fullmatch("[ab]*a[ab]{20}", text) is not None)
        assert len(one._remembered) <= 4


def _made(rng: random.Random, depth: int) -> str:
    """An expression of the subset, drawn by lot."""
    ways: list[Callable[[], str]] = [
        lambda: rng.choice(["a", "b", ".", "[ab]", "[^a]", r"\d", r"\w", "1", r"\."]),
        lambda: _made(rng, depth - 1) + _made(rng, depth - 1),
        lambda: f"({_made(rng, depth - 1)}|{_made(rng, depth - 1)})",
        lambda: (
            f"(?:{_made(rng, depth - 1)}){rng.choice(['*', '+', '?', '{2}', '{0,2}', '{1,}', '{2,}', '*?'])}"
        ),
    ]
    return rng.choice(ways if depth else ways[:1])()


def test_both_engines_agree(seed: int) -> None:
    rng = random.Random(seed)
    texts = ["".join(rng.choices("ab1.", k=rng.randrange(7))) for _ in range(60)]
    read = 0
    for _ in range(150):
        pattern = _made(rng, 4)
        try:
            one, other = Automaton(pattern), patterns.compiled(pattern)
        except OutsideError:
            continue
        read += 1
        for text in texts:
            assert one.matches(text) is other.matches(text), (pattern, text)
    assert read > 100


def test_any_text_is_read_or_refused(seed: int) -> None:
    """RE2 takes all that the subset takes, and means the same by it."""
    rng = random.Random(seed)
    for _ in range(2_000):
        text = "".join(rng.choices("ab()[]{}*+?|^$.\\-,0129:dwé", k=rng.randrange(1, 12)))
        try:
            one = Automaton(text)
        except PatternError:
            continue
        other = patterns.compiled(text)
        for name in ("", "a", "b", "ab", "ba", "aab", "0", "a-b", "9a"):
            assert one.matches(name) is other.matches(name), (text, name)
