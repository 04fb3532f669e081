"""A coordinator for tests, with faults on request: see `ringleader.clients.testing`."""

from ringleader.clients.faults import Faults, Rule, Seen
from ringleader.clients.testing import Coordinator
from ringleader.protocol.errors import ErrorCode

__all__ = ["Coordinator", "ErrorCode", "Faults", "Rule", "Seen"]
