"""From the options as Spark hands them over to a checked model: names in any case, reasons in sentences."""

from __future__ import annotations

import difflib
import functools
import logging
from collections.abc import Collection, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from ringleader.spark_bridge.errors import OptionsError

__all__ = ["SECURITY_FIELD", "SECURITY_PREFIXES", "OptionsError", "build"]

# Names under these prefixes are gathered in one field: clients.security knows what they mean.
SECURITY_PREFIXES = ("kafka.sasl.", "kafka.ssl.")
SECURITY_FIELD = "kafka.sasl.*, kafka.ssl.*"
# Spark shows options in plans and its UI; these are hidden from every message of ours.
_SECRET_WORDS = ("password", "jaas", "secret", "token", "key")

logger = logging.getLogger("ringleader.spark")

# So alike two names are when one is taken for the other misspelt.
NEAR = 0.9

M = TypeVar("M", bound=BaseModel)


def build(
    model: type[M],
    options: Mapping[str, str],
    refused: Mapping[str, str],
    ignored: Collection[str] = (),
    without_effect: Collection[str] = (),
    form: str = "ringleader",
) -> M:
    """The checked options. ``refused`` has a sentence for each lower-case name; ``ignored`` are left out.

    So are settings of Kafka's clients ``without_effect``, and other names under ``kafka.`` that look like
    nobody's slip of the pen, with one warning for all. ``form``: the format.

    Raises OptionsError with one sentence for each reason.
    """
    names = {alias.lower(): alias for field in model.model_fields.values() if (alias := field.alias)}
    values: dict[str, Any] = {}
    security: dict[str, str] = {}
    reasons: list[str] = []
    idle: list[str] = []
    kafkas = {name for name in names if name.startswith("kafka.")} | set(without_effect)
    for given, value in options.items():
        name = given.lower()
        if name in refused:
            reasons.append(refused[name])
        elif name in names:
            values[names[name]] = value
        elif name.startswith(SECURITY_PREFIXES):
            security[name.removeprefix("kafka.")] = value
        elif name in ignored:
            continue
        elif name in without_effect or (name.startswith("kafka.") and not _near(name, kafkas)):
            idle.append(name)
        else:
            reasons.append(_unknown(given, list(names.values()), form))
    if security:
        values[SECURITY_FIELD] = security
    built = None
    try:
        built = model.model_validate(values)
    except ValidationError as error:
        reasons.extend(_sentence(problem) for problem in error.errors())
    if reasons or built is None:
        raise OptionsError(" ".join(reasons))
    if idle:
        _tell(", ".join(sorted(idle)))
    return built


@functools.cache
def _tell(names: str) -> None:
    """Once in a process: Spark has options checked several times."""
    logger.warning("without effect in format ringleader: %s", names)


def _near(name: str, names: Collection[str]) -> bool:
    return bool(difflib.get_close_matches(name, names, n=1, cutoff=NEAR))


def _unknown(given: str, names: list[str], form: str) -> str:
    near = difflib.get_close_matches(given.lower(), [name.lower() for name in names], n=1)
    hint = f" Did you mean {next(name for name in names if name.lower() == near[0])!r}?" if near else ""
    return f"The option {given!r} is not known to format {form}.{hint}"


def _sentence(problem: Any) -> str:
    name = str(problem["loc"][0]) if problem["loc"] else ""
    text = str(problem["msg"]).removeprefix("Value error, ")
    if problem["type"] == "missing":
        why = " (it is the group that the query joins)" if name == "kafka.group.id" else ""
        return f"The option {name!r} is required{why}."
    if not name:
        return f"{text}."
    if name == SECURITY_FIELD or any(word in name.lower() for word in _SECRET_WORDS):
        return f"The option {name!r}: {text}."
    return f"The option {name!r} with value {str(problem['input'])!r:.80}: {text}."
