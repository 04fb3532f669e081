"""Our default assignors beside those of other libraries, with Apache Kafka as the coordinator of the vote."""

from __future__ import annotations

import pytest

from tests.interop.secured import Secured
from tests.support.beside import THEIRS, ours_first, theirs_first


@pytest.mark.parametrize("library", THEIRS)
async def test_ours_first(secured: Secured, group: str, library: str) -> None:
    await ours_first(library, secured.plain().bootstrap, group)


@pytest.mark.parametrize("library", THEIRS)
async def test_theirs_first(secured: Secured, group: str, library: str) -> None:
    await theirs_first(library, secured.plain().bootstrap, group)
