"""Producers: records into topics, for asyncio and for code without an event loop."""

from ringleader.clients.producer.producer import Producer
from ringleader.clients.producer.sync import SyncProducer

__all__ = ["Producer", "SyncProducer"]
