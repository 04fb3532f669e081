"""A coordinator for tests, with faults on request: see `ringleader.testing.coordinator`."""

from ringleader.protocol.errors import ErrorCode
from ringleader.testing.coordinator import Coordinator
from ringleader.testing.faults import Faults, Rule, Seen

__all__ = ["Coordinator", "ErrorCode", "Faults", "Rule", "Seen"]
