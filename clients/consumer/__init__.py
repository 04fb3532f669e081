"""Consumers: of a group, of partitions that are named, with an event loop and without one."""

from ringleader.clients.consumer.group import GroupConsumer
from ringleader.clients.consumer.partitions import PartitionConsumer
from ringleader.clients.consumer.sync import SyncGroupConsumer, SyncPartitionConsumer

__all__ = ["GroupConsumer", "PartitionConsumer", "SyncGroupConsumer", "SyncPartitionConsumer"]
