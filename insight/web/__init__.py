"""The history of a cluster's groups over HTTP: JSON, live messages, metrics, and a page for people."""

from ringleader.insight.web.guard import TOKEN_VARIABLE, check_access, page_tls, read_token
from ringleader.insight.web.serving import page, serve

__all__ = ["TOKEN_VARIABLE", "check_access", "page", "page_tls", "read_token", "serve"]
