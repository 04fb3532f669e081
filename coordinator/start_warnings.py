"""Likely mistakes in how a node is secured: a line for each in the log of the start, with its fix."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ringleader.coordinator.config import OAUTHBEARER
from ringleader.coordinator.config_text import DEPRECATED, dotted
from ringleader.coordinator.security.acls import AllowAll, Operation, Permission, ResourceType

if TYPE_CHECKING:
    from ringleader.coordinator.config import Settings
    from ringleader.coordinator.logs import Log
    from ringleader.coordinator.security.acls import Authority
    from ringleader.coordinator.security.directory import Security
    from ringleader.coordinator.server.server import Server

FLIGHTS = 10
"""Of a handshake; TLS has no more than four."""


def warn(settings: Settings, server: Server, security: Security, log: Log) -> None:
    """Of a node that listens."""
    authenticates = False
    for listener in server.listeners:
        own = server.settings_of[listener.name]
        protocol = listener.security_protocol
        authenticates = authenticates or protocol.sasl or (protocol.tls and own.ssl_client_auth == "required")
        if protocol.sasl and not security.users.known() and OAUTHBEARER not in own.mechanisms(listener):
            log.warning(
                "nobody can log in: there are no users",
                listener=listener.name,
                text=f"add one with `ringleader users add` (listener {listener.name})",
            )
        if protocol.tls:
            host = listener.advertised.host
            reason = certificate_refusal(server.tls[listener.name].context, host)
            if reason:
                where = f"listener {listener.name}, advertised {listener.advertised}"
                log.warning(
                    "clients will not accept the certificate under the advertised name",
                    listener=listener.name,
                    advertised=str(listener.advertised),
                    reason=reason,
                    text=f"{reason.rstrip('.')} ({where}): issue one with this name, or set "
                    f"advertised.listeners to a name that it has",
                )
    for field in sorted(DEPRECATED.keys() & settings.model_fields_set):
        reason = DEPRECATED[field]
        log.warning("a deprecated setting is set", setting=dotted(field), text=f"remove it: {reason}")
    for event, text in _rights(settings, security.authorizer, authenticates):
        log.warning(event, text=text)


def _rights(settings: Settings, authorizer: Authority, authenticates: bool) -> Iterator[tuple[str, str]]:
    if isinstance(authorizer, AllowAll):
        if authenticates:
            yield (
                "clients say who they are, and every one of them may do everything: there is no authorizer",
                "set authorizer=acl and super.users",
            )
        return
    administrators = any(
        acl.resource_type == ResourceType.CLUSTER
        and acl.operation in (Operation.ALTER, Operation.ALL)
        and acl.permission == Permission.ALLOW
        for acl in authorizer.all()
    )
    if not settings.super_users.strip("; ") and not administrators:
        yield (
            "nobody may make an ACL: there is an authorizer, and no super user",
            "set super.users, for example User:admin",
        )


def certificate_refusal(context: ssl.SSLContext, host: str) -> str:
    """The reason why a client that trusts the certificate of a listener with this context does not accept it
    for this host name or address, or ""."""
    looking = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    looking.check_hostname = False
    looking.verify_mode = ssl.CERT_NONE
    verify_mode = context.verify_mode
    # For these handshakes only, which end before any other begins: this client has no certificate.
    context.verify_mode = ssl.CERT_NONE
    try:
        shown = _shaken(context, looking, host).getpeercert(binary_form=True)
        assert shown is not None
        asking = ssl.create_default_context(cadata=ssl.DER_cert_to_PEM_cert(shown))
        asking.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        _shaken(context, asking, host)
    except ssl.SSLCertVerificationError as error:
        return error.verify_message
    except (ssl.SSLError, ValueError) as error:
        return str(error)
    finally:
        context.verify_mode = verify_mode
    return ""


def _shaken(serving: ssl.SSLContext, asking: ssl.SSLContext, host: str) -> ssl.SSLObject:
    """A client that has verified the server, in memory. Raises ssl.SSLError, ValueError."""
    there, here = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = serving.wrap_bio(there, here, server_side=True)
    client = asking.wrap_bio(here, there, server_hostname=host)
    for _ in range(FLIGHTS):
        try:
            client.do_handshake()
            return client
        except ssl.SSLWantReadError:
            pass
        with contextlib.suppress(ssl.SSLWantReadError):
            server.do_handshake()
    raise ValueError("the handshake does not end")
