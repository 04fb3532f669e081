"""Tests of this room run on uvloop, which the daemon uses, and on the loop of the standard library."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import pytest
import uvloop


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """See the module."""
    return {"uvloop": uvloop.new_event_loop, "asyncio": asyncio.new_event_loop}
