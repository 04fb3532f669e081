"""Tests of one xdist group run on one process, and are found again as the last ones that failed."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """A failed property is kept under its name with the group, and looked for by its name without as well."""
    failures: Any = config.pluginmanager.get_plugin("lfplugin")
    if failures is not None and config.option.lf:
        grouped = [name for name in failures.lastfailed if "@" in str(name)]
        failures.lastfailed |= {type(name).parse(str(name).rpartition("@")[0]): True for name in grouped}


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """pytest-xdist 3.8 writes the group of a test where pytest 9.2 does not look any more: without this, the
    tests of one group run on any process."""
    if not getattr(config.option, "loadgroup", False):
        return
    for item in items:
        groups = sorted({str(mark.args[0]) for mark in item.iter_markers("xdist_group") if mark.args})
        suffix = f"@{'_'.join(groups)}"
        inner: Any = item
        if groups and hasattr(inner, "_id") and not item.nodeid.endswith(suffix):
            inner._id = type(inner._id).parse(item.nodeid + suffix)
