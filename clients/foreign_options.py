"""Names that other Kafka clients give to options of a consumer, and ours, for the answer to a name that is
none of ours. docs/migrating.md shows them side by side, and tests compare them with those clients.

Names are as in aiokafka and kafka-python; those of librdkafka and Java are read with `_` in place of `.`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

RENAMED: Mapping[str, str] = {
    "enable_auto_commit": "auto_commit",
    "fetch_message_max_bytes": "max_partition_fetch_bytes",
    "fetch_wait_max_ms": "fetch_max_wait_ms",
    "partition_assignment_strategy": "assignors",
    "queued_max_messages_kbytes": "buffer_max_bytes",
    "reconnect_backoff_max_ms": "retry_backoff_max_ms",
    "reconnect_backoff_ms": "retry_backoff_ms",
    "socket_timeout_ms": "request_timeout_ms",
    "ssl_context": "tls",
    "topic_metadata_refresh_interval_ms": "metadata_max_age_ms",
}
"""Their option -> ours."""

_SECURITY = "give tls= and sasl=, which security_from_properties() makes from Kafka's properties"
_LEAVE_OUT = "leave it out"
ELSEWHERE: Mapping[str, str] = {
    "allow_auto_create_topics": "a consumer creates no topics: leave it out",
    "api_version": "versions are agreed on with each broker: leave it out",
    "api_version_request": "versions are agreed on with each broker: leave it out",
    "bootstrap_servers": "the first argument is the bootstrap address, then group_id and topics",
    "bootstrap_timeout_ms": "start(timeout_s=...) bounds the first connection",
    "client_dns_lookup": "every address of a name is tried: leave it out",
    "connections_max_idle_ms": _LEAVE_OUT,
    "consumer_timeout_ms": "getmany(timeout_s=...) bounds one wait for records",
    "default_offset_commit_callback": "commit_nowait(on_done=...) reports one commit",
    "enable_auto_offset_store": "a batch counts as processed when the next one is asked for; with "
    "auto_commit=False and commit(batch) you say what is",
    "enable_incremental_fetch_sessions": "fetch sessions are used where brokers have them: leave it out",
    "enable_partition_eof": "position() and end_offsets() say where the end is",
    "exclude_internal_topics": "a pattern never matches internal topics: leave it out",
    "group_id": "group_id is the second argument",
    "kafka_client": _LEAVE_OUT,
    "loop": "the running event loop is used: leave it out",
    "max_in_flight_requests_per_connection": _LEAVE_OUT,
    "metric_group_prefix": "metrics() has all figures: leave it out",
    "metric_reporters": "prometheus_lines() and opentelemetry_instruments() export metrics()",
    "metrics_enabled": "metrics() has all figures: leave it out",
    "metrics_num_samples": "metrics() has all figures: leave it out",
    "metrics_sample_window_ms": "metrics() has all figures: leave it out",
    "on_commit": "commit_nowait(on_done=...) reports one commit",
    "proxy_url": "proxies are not supported",
    "receive_buffer_bytes": "the system's buffers are used: leave it out",
    "receive_message_max_bytes": "fetch_max_bytes bounds an answer: leave it out",
    "sasl_kerberos_domain_name": "Kerberos is not supported",
    "sasl_kerberos_name": "Kerberos is not supported",
    "sasl_kerberos_service_name": "Kerberos is not supported",
    "sasl_mechanism": _SECURITY,
    "sasl_mechanisms": _SECURITY,
    "sasl_oauth_token_provider": "give sasl=SaslOAuthBearer(...)",
    "sasl_password": _SECURITY,
    "sasl_plain_password": "give sasl=SaslPlain(...) or sasl=SaslScram(...)",
    "sasl_plain_username": "give sasl=SaslPlain(...) or sasl=SaslScram(...)",
    "sasl_username": _SECURITY,
    "security_protocol": _SECURITY,
    "selector": _LEAVE_OUT,
    "send_buffer_bytes": "the system's buffers are used: leave it out",
    "socket_options": "the system's options are used: leave it out",
    "socks5_proxy": "proxies are not supported",
    "ssl_ca_location": _SECURITY,
    "ssl_cafile": _SECURITY,
    "ssl_certfile": _SECURITY,
    "ssl_certificate_location": _SECURITY,
    "ssl_check_hostname": _SECURITY,
    "ssl_ciphers": _SECURITY,
    "ssl_crlfile": _SECURITY,
    "ssl_key_location": _SECURITY,
    "ssl_keyfile": _SECURITY,
    "ssl_password": _SECURITY,
    "statistics_interval_ms": "metrics() has all figures at any time: leave it out",
}
"""Their option -> what to do, where none of ours has its place."""


def ours(name: str, known: Collection[str]) -> str | None:
    """Our counterpart of another client's option, as the end of a sentence; None: no other client has it.
    `known`: the options of the call that was given it."""
    plain = name.replace(".", "_")
    option = RENAMED.get(plain, plain)
    if option in known:
        return f"it is {option} here"
    return ELSEWHERE.get(plain)
