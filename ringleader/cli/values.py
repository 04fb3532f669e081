"""Values of options and arguments that are what they shall be already: they are not converted by pydantic."""

from __future__ import annotations

import functools
from typing import Any


def sparing_pydantic(command: Any) -> Any:
    """The command, and those below it, with texts and missing values taken as they are. typer converts all by
    pydantic, also options that are not given: to load it takes two fifths of the start of a command, and a
    converter for each setting a seventh of the start of `serve`."""
    command.get_params = functools.partial(_parameters, command.get_params)
    for below in getattr(command, "commands", {}).values():
        sparing_pydantic(below)
    return command


def _parameters(get_params: Any, context: Any) -> Any:
    found = get_params(context)  # `--help` among them, which is none of `command.params`
    for parameter in found:
        if "process_value" not in vars(parameter):
            parameter.process_value = functools.partial(_value, parameter, parameter.process_value)
    return found


def _value(parameter: Any, convert: Any, context: Any, value: Any) -> Any:
    known = getattr(parameter, "type_descriptor", None)  # an older typer has none, and no pydantic
    if known is None or (parameter.required and not value):
        return convert(context, value)
    parse = known.parameter_info.parser or str
    if value is None:
        taken: Any = () if parameter.multiple or parameter.nargs == -1 else None
    elif known.annotation is str and isinstance(value, str):
        taken = parse(value)
    elif known.annotation == list[str] and isinstance(value, (list, tuple)):
        taken = [parse(one) for one in value]
    elif type(value) is known.annotation:  # a default
        taken = value
    else:
        return convert(context, value)
    return taken if parameter.callback is None else parameter.callback(context, parameter, taken)
