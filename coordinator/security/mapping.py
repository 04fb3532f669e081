"""`ssl.principal.mapping.rules`: the name of a principal from the distinguished name of its certificate, as
Kafka's SslPrincipalMapper makes it (KIP-371). Pure text.

A rule is DEFAULT (the name as it is) or RULE:pattern/replacement/ with L or U behind it for lower or upper
case. The first one whose pattern matches the whole name counts; whatever the pattern finds in it is replaced.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass

_RULE = r"(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?).*?|(.*?)"
_SPLIT = re.compile(rf"\s*({_RULE})\s*(,\s*|$)", re.ASCII)
_PARSE = re.compile(_RULE)
_NAMED_GROUP = re.compile(r"\(\?<(?![=!])")
_REFERENCE = re.compile(r"\\(.)|\$\{(\w+)\}|\$([0-9]+)", re.DOTALL | re.ASCII)


class NoMatchingRuleError(ValueError):
    """No rule applies to a name: who has it is nobody here."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One that replaces."""

    pattern: re.Pattern[str]
    replacement: str
    case: str
    """L, U or nothing."""

    def apply(self, name: str) -> str | None:
        """The principal's name; None: the rule is not for this one."""
        if not self.pattern.fullmatch(name):
            return None
        made = self.pattern.sub(self._expand, name)
        return made.lower() if self.case == "L" else made.upper() if self.case == "U" else made

    def _expand(self, found: re.Match[str]) -> str:
        """As Java does: `$1` is a group, of `$12` the 2 is itself where there are fewer groups, and a group
        that does not exist is its own text."""

        def one(reference: re.Match[str]) -> str:
            escaped, name, digits = reference.groups()
            if escaped is not None:
                return str(escaped)
            if name is not None:
                return found[name] or ""
            used = len(digits)
            while used > 1 and int(digits[:used]) > self.pattern.groups:
                used -= 1
            if int(digits[:used]) > self.pattern.groups:
                return reference[0]
            return (found[int(digits[:used])] or "") + digits[used:]

        return _REFERENCE.sub(one, self.replacement)

    def __str__(self) -> str:
        return f"RULE:{self.pattern.pattern}/{self.replacement}" + (f"/{self.case}" if self.case else "")


class PrincipalMapper:
    """See the module."""

    def __init__(self, rules: str = "DEFAULT") -> None:
        """Raises ValueError: one sentence."""
        self.rules: list[Rule | None] = []
        """None is DEFAULT."""
        for text in (found[1] for found in _SPLIT.finditer(rules.strip())):
            parsed = _PARSE.match(text)
            if parsed is None or parsed.end() != len(text):
                raise ValueError(
                    f"give rules as DEFAULT or RULE:pattern/replacement/ with L or U behind it, separated by "
                    f"commas, not {text!r}"
                )
            default, pattern, replacement, case, _ = parsed.groups()
            if default:
                self.rules.append(None)
            elif pattern is not None:
                compiled = _compiled(pattern, text)
                for _, name, _ in _REFERENCE.findall(replacement):
                    if name and name not in compiled.groupindex:
                        raise ValueError(f"the pattern of {text!r} has no group {name!r}")
                self.rules.append(Rule(compiled, replacement, case))

    def name(self, distinguished_name: str) -> str:
        """The principal's name. Raises `NoMatchingRuleError`."""
        for rule in self.rules:
            found = distinguished_name if rule is None else rule.apply(distinguished_name)
            if found is not None:
                return found
        raise NoMatchingRuleError(f"no rule of ssl.principal.mapping.rules is for {distinguished_name}")


def _compiled(pattern: str, rule: str) -> re.Pattern[str]:
    """Java's words for what Python has under another name."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a class within a class means something else in Java
        try:
            return re.compile(_NAMED_GROUP.sub("(?P<", pattern), re.ASCII)
        except (re.error, Warning, OverflowError, RecursionError) as error:
            raise ValueError(f"the pattern of {rule!r} cannot be read: {error}") from None
