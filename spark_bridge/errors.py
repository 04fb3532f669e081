"""Errors with words for the user of a query."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class OptionsError(ValueError):
    """The options of a source or a sink cannot be used; the message has one sentence for each reason."""


class DataLossError(Exception):
    """Offsets that a query should read are gone, and failOnDataLoss is set."""


class SourceError(Exception):
    """The source cannot go on; the message says why."""


class FetchError(Exception):
    """Records of a range could not be read; the message says which and why."""


def sentence_only(method: Callable[P, R]) -> Callable[P, R]:
    """Spark shows the whole traceback of what these methods raise; the user needs the sentence at its end."""

    @functools.wraps(method)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(*args, **kwargs)
        except OptionsError as error:
            wrong = error
        raise OptionsError(str(wrong))

    return checked
