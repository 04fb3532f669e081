"""HTTP requests to an address that is configured, by the standard library; they block."""

from __future__ import annotations

import ssl
import urllib.request
from typing import Any


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Redirects are not followed: the server of another address is not known."""

    def redirect_request(self, *_: Any) -> None:
        return None


def opener(context: ssl.SSLContext) -> urllib.request.OpenerDirector:
    """Follows no redirect: one is an HTTPError, as every status other than 2xx."""
    return urllib.request.build_opener(_NoRedirect(), urllib.request.HTTPSHandler(context=context))
