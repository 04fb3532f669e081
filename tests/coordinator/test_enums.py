"""Enumerations of hot paths are as any others, and their members plain attributes."""

from __future__ import annotations

import pickle
from enum import Enum

import pytest

from ringleader.coordinator.consumer_groups.member import MemberState
from ringleader.coordinator.machine import Phase
from ringleader.coordinator.security.acls import Operation, ResourceType


@pytest.mark.parametrize("kind", [MemberState, Phase, Operation, ResourceType])
def test_members_are_attributes_of_their_class(kind: type[Enum]) -> None:
    for name, member in kind.__members__.items():
        assert vars(kind)[name] is member is kind[name] is kind(member.value)
        assert pickle.loads(pickle.dumps(member)) is member
    assert list(kind) == list(dict.fromkeys(kind.__members__.values()))
