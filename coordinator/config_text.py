"""The texts around settings: their names, their file formats, readable errors."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

ENV_PREFIX = "RINGLEADER_"

FILE_MAX_BYTES = 1_048_576
"""A settings file larger than this is a mistake."""

SECRETS = ("_key", "_password", "_token", "webhook_url", "slack_url")
"""Endings of names of settings whose values are never shown."""

DEPRECATED = {
    "request_max_elements": "the default keeps every request below 25 ms of CPU time",
    "connection_first_request_max_bytes": "the default fits the first request of every client",
    "connection_input_max_bytes": "queued.max.request.bytes bounds all connections together",
    "connection_output_max_bytes": "queued.max.request.bytes bounds all connections together",
    "tls_max_handshakes": "connections.unauthenticated.max.bytes bounds handshakes, too",
    "tls_handshake_timeout_ms": "a handshake that takes longer than the default does not end",
    "generation_block": "the default costs nothing but numbers that are skipped after a crash",
}
"""Field -> why it is not needed. These still work, and warn; the changelog says until when."""

_UNITS = {"_ms": "milliseconds", "_bytes": "bytes", "_minutes": "minutes"}


class SettingsError(ValueError):
    """A setting that cannot be used. The text is one sentence for the operator."""


@dataclass(frozen=True, slots=True)
class Option:
    """One setting under its four names."""

    field: str
    """Name in `Settings`."""
    key: str
    """Name in a file: Kafka's own where Kafka has the setting."""
    flag: str
    env: str
    description: str
    unit: str
    """"" when it is a plain number or a text."""
    default: Any
    kind: type
    """bool, int, float or str: what the command line should take (str for everything that is parsed here)."""
    repeatable: bool
    choices: tuple[str, ...]
    allowed: str
    """The allowed values, as text; "" when any."""


def shown(default: Any) -> str:
    """A default as it would be given; "" when there is none."""
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, tuple) and not hasattr(default, "_fields"):
        return ",".join(map(str, default))
    return "" if default is None else str(default)


def dotted(field: str) -> str:
    """The name in a file."""
    return field.replace("_", ".")


def options_of(model: type[BaseModel], prefix: str = "") -> list[Option]:
    """Every field of the model as an option, its own first, each in the order of declaration. `prefix` stands
    before each of its names, the field's, too. A secret has no flag: others can see a command line."""
    own = [name for name in model.__annotations__ if name in model.model_fields]
    names = dict.fromkeys([*own, *model.model_fields])
    fields = model.model_fields
    return [_option(name, fields[name], prefix) for name in names if not fields[name].exclude]


def _option(own: str, info: FieldInfo, prefix: str) -> Option:
    name = prefix + own
    choices = get_args(info.annotation) if get_origin(info.annotation) is Literal else ()
    low, high = (
        next((getattr(one, key) for one in info.metadata if hasattr(one, key)), None) for key in ("ge", "le")
    )
    bounds = "" if low is None or high is None else f"{low:,} to {high:,}"
    kind = info.annotation if info.annotation in (bool, int, float) else str
    assert isinstance(kind, type)
    return Option(
        field=name,
        key=dotted(name),
        flag="" if name.endswith(SECRETS) else "--" + name.replace("_", "-"),
        env=ENV_PREFIX + name.upper(),
        description=f"Deprecated. {info.description}" if name in DEPRECATED else info.description or "",
        unit=next((unit for suffix, unit in _UNITS.items() if name.endswith(suffix)), ""),
        default=info.default,
        kind=kind,
        repeatable=get_origin(info.annotation) is tuple,
        choices=choices,
        allowed=", ".join(choices) or bounds,
    )


def gathered(
    options: Iterable[Option], flags: Mapping[str, Any], environ: Mapping[str, str], file: Path | None
) -> tuple[dict[str, Any], dict[str, str]]:
    """The values that are given, as written, by field, and where each came from: flags (by field; None = not
    given) before the environment, the environment before the file. Raises `SettingsError`."""
    options = list(options)
    values: dict[str, Any] = {}
    origin: dict[str, str] = {}
    if file is not None:
        values = read_settings_file(file, [option.field for option in options])
        origin = {name: f"{dotted(name)} in {file}" for name in values}
    for option in options:
        if option.env in environ:
            values[option.field], origin[option.field] = environ[option.env], f"environment {option.env}"
    for name, value in flags.items():
        if value is not None and value != [] and value != ():
            values[name], origin[name] = value, f"--{name.replace('_', '-')}"
    return values, origin


def one_sentence(error: ValidationError, origin: Mapping[str, str]) -> str:
    """The first complaint of pydantic as one sentence that names where the value came from."""
    first = error.errors()[0]
    name = str(first["loc"][0]) if first["loc"] else "?"
    if first["type"] == "extra_forbidden":
        return f"{origin.get(name, dotted(name))}: there is no such setting."
    problem = first["msg"].removeprefix("Value error, ").removeprefix("Input ")
    got = "" if name.endswith(SECRETS) else f", got {first['input']!r}"
    return f"{origin.get(name, dotted(name))}: {problem}{got}."


LISTENER_NAME = "listener.name."


def of_listener(rest: str, fields: Iterable[str], separator: str) -> tuple[str, str] | None:
    """Listener, in lower case, and field of what stands behind `listener.name.`; None: of no field."""
    for field in sorted(fields, key=len, reverse=True):
        end = separator + field.replace("_", separator)
        if len(rest) > len(end) and rest.lower().endswith(end):
            return rest[: -len(end)].lower(), field
    return None


def read_settings_file(path: Path, known: Iterable[str]) -> dict[str, Any]:
    """Field name -> value as written; what is of one listener as `listener.name.NAME.SETTING`. Raises
    `SettingsError`, for an unknown name too."""
    try:
        with path.open("rb") as stream:
            raw = stream.read(FILE_MAX_BYTES + 1)
    except OSError as error:
        raise SettingsError(f"The settings file {path} cannot be read: {error.strerror}.") from None
    if len(raw) > FILE_MAX_BYTES:
        raise SettingsError(f"The settings file {path} is larger than {FILE_MAX_BYTES} bytes.")
    try:
        text = raw.decode()
        pairs = _toml(text) if path.suffix == ".toml" else _properties(text, path)
    except SettingsError:
        raise
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"The settings file {path} cannot be read: {error}.") from None
    fields = {dotted(name): name for name in known}
    result = {}
    for key, value in pairs.items():
        if key.startswith(LISTENER_NAME):
            result[key] = value
            continue
        if key not in fields:
            near = difflib.get_close_matches(key, fields, 1)
            hint = f"; did you mean {near[0]}?" if near else "."
            raise SettingsError(f"{path} has {key}, which is no setting of ringleader{hint}")
        result[fields[key]] = value
    return result


def _toml(text: str) -> dict[str, Any]:
    flat: dict[str, Any] = {}

    def walk(prefix: str, table: Mapping[str, Any]) -> None:
        for key, value in table.items():
            name = f"{prefix}{key}"
            if isinstance(value, Mapping):
                walk(f"{name}.", value)
            else:
                flat[name] = value

    walk("", tomllib.loads(text))
    return flat


def _properties(text: str, path: Path) -> dict[str, Any]:
    pairs: dict[str, Any] = {}
    begun = ""
    for number, line in enumerate(text.splitlines(), 1):
        line = begun + line.strip()
        begun = ""
        if not line or line[0] in "#!":
            continue
        if line.endswith("\\"):  # as in Java's files it goes on
            begun = line[:-1]
            continue
        key, equals, value = line.partition("=")
        if not equals:  # what it says instead may be a part of a secret
            raise SettingsError(f"{path}, line {number}: expected NAME=VALUE.")
        pairs[key.strip()] = value.strip()
    return pairs
