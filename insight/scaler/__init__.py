"""KEDA's external scaler over a history: how many members a group would use."""

from ringleader.insight.scaler.serving import ScalerError, credentials, serve

__all__ = ["ScalerError", "credentials", "serve"]
