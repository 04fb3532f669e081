"""The embedded topic log: record batches in files, as they came."""

from __future__ import annotations

from ringleader.coordinator.topics.settings import TopicSettings

__all__ = ["TopicSettings"]
