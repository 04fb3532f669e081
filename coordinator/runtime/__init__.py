"""Runs shard machines: their requests, their log, their time, and how they end."""

from ringleader.coordinator.runtime.groups import GroupRuntime
from ringleader.coordinator.runtime.transactions import TransactionRuntime

__all__ = ["GroupRuntime", "TransactionRuntime"]
