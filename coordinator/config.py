"""Settings: one source for flags, environment, file and documentation.

A setting that Apache Kafka has keeps Kafka's name. `group.initial.rebalance.delay.ms` is that in a file,
`--group-initial-rebalance-delay-ms` on the command line, `RINGLEADER_GROUP_INITIAL_REBALANCE_DELAY_MS` in the
environment and `group_initial_rebalance_delay_ms` here. Flags win over the environment, the environment over
the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, SecretStr, ValidationError

from ringleader.coordinator.config_text import (
    ENV_PREFIX,
    LISTENER_NAME,
    Option,
    SettingsError,
    gathered,
    of_listener,
    one_sentence,
    options_of,
)
from ringleader.coordinator.groups.settings import GroupSettings
from ringleader.coordinator.security.listeners import (
    DEFAULT_PROTOCOLS,
    NOT_SET,
    Address,
    Listener,
    NamedAddress,
    NamedProtocol,
    listeners_of,
    parse_address,
    parse_named_addresses,
    parse_named_protocols,
)
from ringleader.coordinator.security.settings import TlsSettings
from ringleader.coordinator.topics.settings import TopicSettings
from ringleader.coordinator.transactions.settings import TransactionSettings
from ringleader.host.words import Words, parse_words
from ringleader.protocol.wire import INT32_MAX, INT64_MAX

OAUTHBEARER = "OAUTHBEARER"
SASL_MECHANISMS = ("SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN", OAUTHBEARER)
CLEARTEXT_MECHANISMS = ("PLAIN", OAUTHBEARER)
"""Anybody on the way can read the password or token, and use it."""


__all__ = ["Address", "Option", "Settings", "SettingsError", "TopicSpec", "load_settings", "options"]


class TopicSpec(NamedTuple):
    """A topic to create at start when it is missing."""

    name: str
    partitions: int

    def __str__(self) -> str:
        return f"{self.name}:{self.partitions}"


def _principals(text: str) -> str:
    for one in filter(None, map(str.strip, text.split(";"))):
        if ":" not in one:
            raise ValueError("give principals as User:NAME, separated by semicolons")
    return text


def parse_topics(value: Any) -> Any:
    """NAME:PARTITIONS, or a comma separated text or a sequence of these. Raises ValueError."""
    if isinstance(value, str):
        value = [part for part in value.split(",") if part.strip()]
    if not isinstance(value, list | tuple):
        return value
    return tuple(_parse_topic(entry) for entry in value)


def _parse_topic(entry: Any) -> TopicSpec:
    if not isinstance(entry, str):
        return TopicSpec(*entry)
    name, colon, count = entry.strip().rpartition(":")
    if not colon or not name or not count.isascii() or not count.isdigit() or int(count) < 1:
        raise ValueError(f"give a topic as NAME:PARTITIONS, for example orders:6, not {entry.strip()!r}")
    return TopicSpec(name, int(count))


def _unique(topics: tuple[TopicSpec, ...]) -> tuple[TopicSpec, ...]:
    names = [topic.name for topic in topics]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"topic {name} is given more than once")
    return topics


def parse_mechanisms(value: Any) -> Any:
    """A comma separated text or a sequence of SASL mechanisms. Raises ValueError."""
    names = parse_words(value)
    if not isinstance(names, tuple):
        return names
    for name in names:
        if name.upper() not in SASL_MECHANISMS:
            raise ValueError(f"there are {', '.join(SASL_MECHANISMS)}, not {name}")
    return tuple(dict.fromkeys(name.upper() for name in names))


def parse_bootstrap(value: Any) -> Any:
    """HOST:PORT, or a comma separated text or a sequence of these. Raises ValueError."""
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list | tuple):
        return value
    parts = [part for entry in value for part in (entry.split(",") if isinstance(entry, str) else [entry])]
    addresses = tuple(Address(*parse_address(part)) for part in parts)
    if any(address.port == 0 for address in addresses):
        raise ValueError("a broker's port is not 0")
    return addresses


def _with_classic(protocols: tuple[str, ...]) -> tuple[str, ...]:
    if "classic" not in protocols or not {*protocols} <= {"classic", "consumer"}:
        raise ValueError(f"{','.join(protocols)!r} is neither classic nor classic,consumer")
    return protocols


ENV_LISTENER_NAME = ENV_PREFIX + "LISTENER_NAME_"

AddressField = Annotated[Address, BeforeValidator(parse_address)]
MechanismsField = Annotated[tuple[str, ...], BeforeValidator(parse_mechanisms)]
ListenersField = Annotated[tuple[NamedAddress, ...], BeforeValidator(parse_named_addresses)]
ProtocolsField = Annotated[tuple[NamedProtocol, ...], BeforeValidator(parse_named_protocols)]
BootstrapField = Annotated[tuple[Address, ...], BeforeValidator(parse_bootstrap)]
TopicsField = Annotated[tuple[TopicSpec, ...], BeforeValidator(parse_topics), AfterValidator(_unique)]


class Settings(GroupSettings, TransactionSettings, TopicSettings, TlsSettings):
    """Everything an operator may change. The descriptions are the documentation (docs/settings.md)."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)

    # --- the node ---
    listen: AddressField = Field(
        Address("127.0.0.1", 9092),
        description="Where clients connect, HOST:PORT. Port 0 takes a free one.",
    )
    advertised_address: AddressField | None = Field(
        None,
        description="Address (HOST:PORT) that clients connect to. They must be able to reach "
        "it. Default: the address of `listen`.",
    )
    listeners: ListenersField = Field(
        (),
        description="Replaces `listen`: comma-separated NAME://HOST:PORT of every listener. An empty HOST "
        "means all addresses. NAME is a security protocol, or `listener.security.protocol.map` maps it to "
        "one.",
    )
    advertised_listeners: ListenersField = Field(
        (),
        description="Comma-separated NAME://HOST:PORT: the address advertised to clients that are "
        "connected through the listener NAME. Default: the address of that listener.",
    )
    listener_security_protocol_map: ProtocolsField = Field(
        DEFAULT_PROTOCOLS,
        description="Comma-separated NAME:PROTOCOL for every listener. PROTOCOL is PLAINTEXT, SSL, "
        "SASL_PLAINTEXT or SASL_SSL.",
    )
    inter_broker_listener_name: str | None = Field(
        None,
        description="Name of the listener through which other nodes of the cluster connect to this node. "
        "Default: the first listener.",
    )
    allow_plaintext: bool = Field(
        False,
        description="Allow clients on other machines to connect without authentication, to listeners and "
        "to `http.listen`. Needed for an address other than loopback that requires neither SASL nor "
        "client certificates.",
    )
    listener_name: dict[str, dict[str, Any]] = Field({}, exclude=True)
    """By listener, in lower case: what it has for itself, as `listener.name.NAME.SETTING` says."""
    reauth_ms_by_mechanism: dict[str, int] = Field({}, exclude=True)
    """Of one listener: its `connections.max.reauth.ms` for one mechanism alone."""
    data_dir: Path = Field(
        Path("ringleader-data"),
        description="Directory for all durable data. Only one daemon can use it at a time.",
    )
    topic: TopicsField = Field(
        (),
        description="Topic (NAME:PARTITIONS) to create at start if it does not exist. Can be given "
        "several times; in the environment and in a file, separate topics by commas.",
    )
    http_listen: AddressField | None = Field(
        None,
        description="Address (HOST:PORT) for health checks (`/health`, `/ready`) and Prometheus metrics "
        "(`/metrics`). Default: none.",
    )
    telemetry_enable: bool = Field(
        False,
        description="Ask clients for [telemetry](telemetry.md) (KIP-714): how often they poll, how long "
        "rebalances and fetches take them. Java clients and librdkafka report it by default.",
    )
    telemetry_interval_ms: int = Field(
        60_000,
        ge=100,
        le=3_600_000,
        description="How often each client reports it (`interval.ms` of Kafka's client metrics).",
    )
    telemetry_max_bytes: int = Field(
        1_048_576,
        ge=1,
        le=4_194_304,
        description="Largest push of a client, compressed, and what it may inflate to.",
    )
    http_token_file: Path | None = Field(
        None,
        description="File with a token of at least 16 characters. `/metrics` then requires "
        "`Authorization: Bearer TOKEN`; health checks do not. Only the file's owner may be able to read "
        "it.",
    )
    http_recording_token_file: Path | None = Field(
        None,
        description="File with a token, other than that of `http.token.file`, with which clients may record "
        "the requests of a group (`ringleader record`), names and metadata included. Default: nobody may.",
    )
    http_ssl_keystore_location: Path | None = Field(
        None,
        description="PEM file with the private key and certificate chain for `http.listen`, which then "
        "uses TLS. The file is read again when it changes.",
    )
    http_ssl_key_password: SecretStr | None = Field(
        None,
        description="Password of that private key. Not available on the command line, where other users "
        "could see it.",
    )
    http_ssl_truststore_location: Path | None = Field(
        None,
        description="PEM file with the CA certificates trusted to sign client certificates for "
        "`http.listen`.",
    )
    http_ssl_client_auth: Literal["none", "requested", "required"] = Field(
        "none",
        description="Whether HTTP clients must present a certificate. `requested`: `/metrics` requires a "
        "certificate or the token.",
    )
    node_id: int = Field(1, ge=0, le=INT32_MAX, description="Broker id that clients see.")
    broker_rack: str = Field(
        "",
        max_length=255,
        description="Rack or availability zone of this node. Consumers with the same `client.rack` fetch "
        "through it; see [racks](nodes.md#racks). Default: none.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="Least severe level that is logged."
    )
    log_format: Literal["console", "json"] = Field(
        "console",
        description="Format of log lines: `console` for people, `json` for one JSON object per line.",
    )
    debug_turn_ms: int = Field(
        0,
        ge=0,
        le=INT32_MAX,
        description="For debugging: log a warning, with what ran, for each turn of the event loop that "
        "takes more CPU time than this. Slows everything down. 0: off.",
    )
    storage_sync: Literal["full", "off"] = Field(
        "full",
        description="`full`: acknowledge a commit when it is on the disk. `off`: acknowledge it when the "
        "operating system has it; a crash of the machine can then lose acknowledged commits.",
    )
    storage_timeout_ms: int = Field(
        30_000,
        ge=1_000,
        le=INT32_MAX,
        description="A daemon whose disk does not respond within this time stops with exit code 1. With "
        "several nodes: if the cluster does not acknowledge an append within five sixths of this time, "
        "and nobody confirms that no other node was given the partition of groups, the node gives that "
        "partition up.",
    )
    shutdown_grace_ms: int = Field(
        5_000,
        ge=0,
        le=600_000,
        description="How long a clean stop waits for clients to read their last responses.",
    )

    # --- more than one node: groups here, their records and all topics in a Kafka cluster ---
    cluster: BootstrapField = Field(
        (),
        description="Comma-separated HOST:PORT of brokers of the Kafka cluster that stores all records. "
        "This node is then one of several and stores nothing in `data.dir`. Default: a single daemon "
        "without a cluster.",
    )
    cluster_properties: Path | None = Field(
        None,
        description="File of Kafka client properties (`security.protocol`, `sasl.jaas.config`, ...) with "
        "which this node authenticates to the cluster.",
    )
    cluster_groups_topic: str = Field(
        "__ringleader_groups",
        pattern=r"^[a-zA-Z0-9._-]{1,249}$",
        description="Compacted topic on the cluster that stores the groups of all nodes. Created with "
        "`offsets.topic.num.partitions` partitions if it does not exist.",
    )
    cluster_replication_factor: int = Field(
        3,
        ge=1,
        le=32_767,
        description="Replication factor of `cluster.groups.topic` and `cluster.security.topic` when they "
        "are created.",
    )
    cluster_security_topic: str = Field(
        "__ringleader_security",
        pattern=r"^[a-zA-Z0-9._-]{1,249}$",
        description="Compacted topic on the cluster that stores users, ACLs and quotas of all nodes. "
        "Created with one partition if it does not exist. Nodes never show it to clients; deny read "
        "access to everybody else.",
    )
    cluster_transactional_id_prefix: str = Field(
        "__ringleader",
        pattern=r"^\S{1,200}$",
        description="Prefix of the transactional ids PREFIX-P with which the owner of partition P fences "
        "its predecessor.",
    )
    cluster_group_id: str = Field(
        "__ringleader_nodes",
        pattern=r"^\S{1,200}$",
        description="Group on the cluster whose members are the nodes. Its leader assigns the partitions "
        "of groups.",
    )
    cluster_session_timeout_ms: int = Field(
        6_000,
        ge=1_000,
        le=600_000,
        description="A node that sends no heartbeat to the cluster for this long is removed, and its "
        "partitions go to other nodes, unless those noticed earlier.",
    )

    # --- who may ---
    authorizer: Literal["none", "acl"] = Field(
        "none",
        description="`none`: all operations are allowed. `acl`: ACLs decide, as with Kafka's "
        "StandardAuthorizer (Kafka's own setting is `authorizer.class.name`).",
    )
    super_users: Annotated[str, AfterValidator(_principals)] = Field(
        "",
        description="Semicolon-separated principals that may perform all operations regardless of ACLs: "
        "`User:admin;User:CN=ops,O=example`.",
    )
    allow_everyone_if_no_acl_found: bool = Field(
        False, description="Allow everybody, not only super users, to access resources that have no ACL."
    )

    # --- connections ---
    socket_request_max_bytes: int = Field(
        104_857_600,
        ge=1_024,
        le=INT32_MAX,
        description="Largest request. A connection that announces a larger one is closed at once. Only "
        "Produce may be this large. The limit of JoinGroup is twice `member.max.metadata.bytes`, that of "
        "SyncGroup `group.max.record.bytes` (each plus 128 KiB for ids), that of all others "
        "`request.max.bytes`.",
    )
    request_max_bytes: int = Field(
        4_194_304,
        ge=65_536,
        le=INT32_MAX,
        description="Largest request other than Produce, JoinGroup and SyncGroup.",
    )
    request_max_elements: int = Field(
        20_000,
        ge=1_000,
        le=1_000_000,
        description="Largest number of entries (topics, partitions, members, groups) in one request, so "
        "that no request delays the heartbeats of others: 20,000 entries take about 25 ms to decode. "
        "Entries of numbers only count as a third, plain numbers (partitions of OffsetFetch) as 1/24. "
        "Fetch, ListOffsets and OffsetForLeaderEpoch may have twice as many. A connection that sends more "
        "is closed. Responses are not limited.",
    )
    connection_first_request_max_bytes: int = Field(
        2_228_224,
        ge=65_536,
        le=INT32_MAX,
        description="Largest request on a connection from which no valid request has been read yet.",
    )
    max_connections: int = Field(
        20_000,
        ge=1,
        le=INT32_MAX,
        description="Largest number of connections. Further connections are closed at once, unless an "
        "unauthenticated connection can be closed in their place.",
    )
    max_connections_per_ip: int = Field(
        INT32_MAX, ge=1, le=INT32_MAX, description="Largest number of connections from one address."
    )
    max_connection_creation_rate: int = Field(
        INT32_MAX,
        ge=1,
        le=INT32_MAX,
        description="Connections accepted per second; further connections wait. For limits per address, "
        "use [quotas](quotas.md).",
    )
    quota_window_num: int = Field(
        11,
        ge=2,
        le=1_000,
        description="Number of windows over which a client's rate is measured; see [quotas](quotas.md).",
    )
    quota_window_size_seconds: int = Field(1, ge=1, le=3_600, description="Length of such a window.")
    controller_quota_window_num: int = Field(
        11,
        ge=2,
        le=1_000,
        description="Number of windows of `controller_mutation_rate` that can be used up at once.",
    )
    controller_quota_window_size_seconds: int = Field(
        1, ge=1, le=3_600, description="Length of such a window."
    )
    connections_max_idle_ms: int = Field(
        600_000,
        ge=1_000,
        le=INT64_MAX,
        description="An idle connection is closed after this time. A connection that waits for a "
        "rebalance or for records is not idle.",
    )
    tls_handshake_timeout_ms: int = Field(
        10_000,
        ge=100,
        le=600_000,
        description="A client has this long to send its ClientHello, and again, from its turn on, to "
        "finish its TLS handshake. Otherwise the connection is closed.",
    )
    tls_max_handshakes: int = Field(
        100,
        ge=1,
        le=100_000,
        description="Largest number of TLS handshakes that run at a time. Further ones wait after their "
        "ClientHello, served fairly by address. After 250 ms a slow handshake no longer blocks others: it "
        "continues, and the next one starts.",
    )
    connections_unauthenticated_max_bytes: int = Field(
        67_108_864,
        ge=1_048_576,
        le=INT64_MAX,
        description="Memory shared by all clients that have not authenticated (listeners with SASL) or "
        "not finished their TLS handshake: 8 KiB for each, 64 KiB after its ClientHello, 640 KiB more "
        "after its first read above 16 KiB over TLS, and the requests that have arrived. Above this "
        "limit, connections of the address that uses most are closed. They are also the first to be "
        "closed when `queued.max.request.bytes`, `max.connections` or `max.connections.per.ip` is "
        "reached. A login needs less than 80 KiB for less than a second, so the default is enough for 800 "
        "at a time.",
    )
    socket_listen_backlog_size: int = Field(
        4_096,
        ge=1,
        le=65_535,
        description="Connections that can wait to be accepted (the operating system may allow fewer).",
    )
    queued_max_request_bytes: int = Field(
        1_073_741_824,
        ge=1_048_576,
        le=INT64_MAX,
        description="Memory that all connections may use for requests that have arrived or are being "
        "processed, responses that are being built, and responses that clients have not read. Above this "
        "limit, the connections that use most are closed. Not counted for each connection: up to "
        "`connection.output.max.bytes`, and a waiting request of up to 1 KiB.",
    )
    connection_input_max_bytes: int = Field(
        1_048_576,
        ge=16_384,
        le=INT32_MAX,
        description="Bytes of requests that can wait on one connection while another request is "
        "processed. Above this limit, the connection is not read.",
    )
    connection_output_max_bytes: int = Field(
        65_536,
        ge=16_384,
        le=INT32_MAX,
        description="Bytes of responses that a client has not read. Above this limit, the connection's "
        "next requests wait, and it is not read.",
    )

    group_coordinator_rebalance_protocols: Annotated[
        tuple[str, ...], Words, AfterValidator(_with_classic)
    ] = Field(
        ("classic", "consumer"),
        description="Comma-separated group protocols that are served: classic, and consumer (KIP-848). "
        "`classic` has to be among them. All nodes of a cluster need the same.",
    )

    # --- who clients are: SASL ---
    sasl_enabled_mechanisms: MechanismsField = Field(
        ("SCRAM-SHA-512", "SCRAM-SHA-256"),
        description="Comma-separated SASL mechanisms for listeners with SASL: SCRAM-SHA-512, "
        "SCRAM-SHA-256, PLAIN, OAUTHBEARER.",
    )
    sasl_cleartext_without_tls: bool = Field(
        False,
        description="Offer PLAIN and OAUTHBEARER on SASL_PLAINTEXT listeners, too. Anybody who can read "
        "the network traffic can then read passwords and tokens.",
    )
    sasl_oauthbearer_jwks_endpoint_url: str | None = Field(
        None,
        description="URL (`file:` or `https:`) of the public keys (JWKS) that verify OAUTHBEARER tokens.",
    )
    sasl_oauthbearer_jwks_endpoint_refresh_ms: int = Field(
        3_600_000,
        ge=10_000,
        le=INT32_MAX,
        description="How often these keys are read again. A token signed with an unknown key causes an "
        "earlier read.",
    )
    sasl_oauthbearer_jwks_truststore_location: Path | None = Field(
        None,
        description="PEM file with the CA certificates trusted for the `https:` URL. Default: the CA "
        "certificates of this machine.",
    )
    sasl_oauthbearer_expected_issuer: str | None = Field(
        None, description="Required `iss` of a token. Default: any issuer that signs with one of the keys."
    )
    sasl_oauthbearer_expected_audience: Annotated[tuple[str, ...], Words] = Field(
        (),
        description="Comma-separated audiences; the `aud` of a token must contain one of them. Default: a "
        "token must not have an `aud`.",
    )
    sasl_oauthbearer_sub_claim_name: str = Field(
        "sub", min_length=1, description="Claim of a token that contains the user's name."
    )
    sasl_oauthbearer_clock_skew_seconds: int = Field(
        30, ge=0, le=3_600, description="Allowed clock skew of the token issuer."
    )
    sasl_server_max_receive_size: int = Field(
        524_288,
        ge=1_024,
        le=INT32_MAX,
        description="Largest request, in bytes, from a client that has not authenticated.",
    )
    sasl_authentication_timeout_ms: int = Field(
        30_000,
        ge=100,
        le=INT32_MAX,
        description="A connection that has not authenticated within this time is closed.",
    )
    connection_failed_authentication_delay_ms: int = Field(
        100,
        ge=0,
        le=60_000,
        description="Delay before a failed authentication is answered and its connection closed.",
    )
    connections_max_reauth_ms: int = Field(
        0,
        ge=0,
        le=INT64_MAX,
        description="Longest time that an authentication is valid. Clients authenticate again before it "
        "ends (KIP-368); a connection that has not is closed at its next request. 0: as long as the "
        "connection.",
    )

    # --- groups, besides those of `GroupSettings` ---
    offsets_topic_num_partitions: int = Field(
        50,
        ge=1,
        le=1_000,
        description="Number of partitions over which groups are distributed. Fixed when the data "
        "directory is created; a different number is refused later.",
    )
    group_max_own_offsets: int = Field(
        100_000,
        ge=0,
        le=INT32_MAX,
        description="Largest number of offsets that a group may commit for names that are not topics. "
        "Only groups with a protocol type other than `consumer`, which share something other than topics, "
        "may do so. 0: none, as in Kafka.",
    )

    journal_retention_ms: int = Field(
        2_592_000_000,
        ge=-1,
        le=INT64_MAX,
        description="How long records of the topic `__ringleader_journal`, which explains rebalances, are "
        "kept. -1: forever.",
    )
    journal_retention_bytes: int = Field(
        268_435_456,
        ge=16_777_216,
        le=INT64_MAX,
        description="Size to which `__ringleader_journal` is limited. The oldest records are deleted, in "
        "whole files of an eighth of this size (64 MiB at most).",
    )

    # --- topics, besides those of `TopicSettings` ---
    auto_create_topics_enable: bool = Field(
        True, description="Create a topic when a client first requests it."
    )
    delete_topic_enable: bool = Field(True, description="Allow clients to delete topics.")
    fetch_max_bytes: int = Field(
        57_671_680, ge=1_024, le=INT32_MAX, description="Largest size of the records in one Fetch response."
    )

    def served(self) -> tuple[Listener, ...]:
        """Where clients connect, the first one first. Raises ValueError: one sentence."""
        if not self.listeners:
            if self.advertised_listeners:
                raise ValueError("advertised.listeners needs listeners")
            advertised = self.advertised_address or NOT_SET
            found = listeners_of([NamedAddress("PLAINTEXT", self.listen)], protocols=DEFAULT_PROTOCOLS)
            found = (replace(found[0], advertised=advertised),)
        elif {"listen", "advertised_address"} & self.model_fields_set:
            raise ValueError(
                "listeners takes the place of listen and advertised.address: give listeners and "
                "advertised.listeners alone"
            )
        else:
            found = listeners_of(
                self.listeners, self.advertised_listeners, self.listener_security_protocol_map
            )
        for listener in found:
            self._check(listener)
        return found

    def between_nodes(self) -> Listener:
        """Where the other nodes of a cluster reach this one. Raises ValueError: one sentence."""
        found = self.served()
        if self.inter_broker_listener_name is None:
            return found[0]
        names = [listener.name for listener in found]
        if self.inter_broker_listener_name.upper() not in names:
            raise ValueError(
                f"inter.broker.listener.name is {self.inter_broker_listener_name}, which is none of "
                f"listeners: {', '.join(names)}"
            )
        return found[names.index(self.inter_broker_listener_name.upper())]

    def _check(self, listener: Listener) -> None:
        protocol = listener.security_protocol
        if protocol.sasl:
            self._check_sasl(listener)
            return
        authenticates = protocol.tls and self.for_listener(listener).ssl_client_auth == "required"
        if not authenticates and not self.allow_plaintext and not listener.address.is_loopback:
            raise ValueError(
                f"every client that reaches {listener} could do everything, as clients do not authenticate "
                "there: listen on 127.0.0.1, set ssl.client.auth to required where it is SSL, or give "
                f"--allow-plaintext if the network lets nobody else in"
            )

    def _check_sasl(self, listener: Listener) -> None:
        own = self.for_listener(listener)
        if not own.mechanisms(listener):
            raise ValueError(
                f"{listener}: sasl.enabled.mechanisms has none that may be offered without TLS; PLAIN and "
                f"OAUTHBEARER may with sasl.cleartext.without.tls"
            )
        if OAUTHBEARER in own.sasl_enabled_mechanisms and not own.sasl_oauthbearer_jwks_endpoint_url:
            raise ValueError(
                "sasl.enabled.mechanisms has OAUTHBEARER, which needs sasl.oauthbearer.jwks.endpoint.url"
            )

    def mechanisms(self, listener: Listener) -> list[str]:
        """By which SASL mechanisms clients may prove who they are at this listener, whose settings these
        are."""
        hidden = listener.security_protocol.tls or self.sasl_cleartext_without_tls
        return [name for name in self.sasl_enabled_mechanisms if hidden or name not in CLEARTEXT_MECHANISMS]

    def max_reauth_ms(self, mechanism: str) -> int:
        """How long an authentication by this mechanism counts at a listener whose settings these are; 0: as
        long as the connection."""
        return self.reauth_ms_by_mechanism.get(mechanism, self.connections_max_reauth_ms)

    def for_listener(self, listener: Listener) -> Settings:
        """The settings as this listener has them: its own before those of all."""
        own = self.listener_name.get(listener.name.lower(), {})
        read = Settings(**own)
        more = {field: getattr(read, field) for field in own}
        if listener.security_protocol.sasl and "ssl_client_auth" not in own:
            more["ssl_client_auth"] = "none"  # as in Kafka: who it is, SASL says
        return self.model_copy(update=more)


OF_LISTENERS = (
    *TlsSettings.model_fields,
    *(name for name in Settings.model_fields if name.startswith("sasl_")),
    "connections_max_reauth_ms",
)
"""The settings that one listener may have for itself."""


def options() -> list[Option]:
    """Every setting with its four names, for the command line and the documentation."""
    return options_of(Settings)


def load_settings(
    flags: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    file: Path | None = None,
) -> Settings:
    """Settings from flags (by field name; None = not given), the environment and a file, in that order.

    The file is TOML if its name ends so, else Java properties, with dotted names. Raises `SettingsError`: one
    sentence that names the setting, where it came from and what is allowed.
    """
    values, origin = gathered(options(), flags or {}, environ or {}, file)
    listeners: dict[str, dict[str, Any]] = {}
    for name in [name for name in values if name.startswith(LISTENER_NAME)]:
        _keep(listeners, name.removeprefix(LISTENER_NAME), ".", values.pop(name), origin[name])
    for name, value in (environ or {}).items():
        if name.startswith(ENV_LISTENER_NAME):
            _keep(listeners, name.removeprefix(ENV_LISTENER_NAME), "_", value, f"environment {name}")
    if listeners:
        values["listener_name"] = listeners
    try:
        settings = Settings(**values)
    except ValidationError as error:
        raise SettingsError(one_sentence(error, origin)) from None
    if settings.group_min_session_timeout_ms > settings.group_max_session_timeout_ms:
        raise SettingsError("group.min.session.timeout.ms is larger than group.max.session.timeout.ms.")
    if settings.cluster and "node_id" not in values:
        raise SettingsError("cluster needs node.id: give each node of the cluster a number of its own.")
    if settings.cluster_security_topic == settings.cluster_groups_topic:
        raise SettingsError("cluster.security.topic is another topic than cluster.groups.topic.")
    if settings.cluster and settings.topic:
        raise SettingsError("topic is for a node by itself: make topics of a cluster with its own tools.")
    try:
        _check_listeners(settings)
        _check_http(settings)
    except ValueError as error:
        raise SettingsError(f"{error}.") from None
    return settings


def _keep(listeners: dict[str, dict[str, Any]], rest: str, separator: str, value: Any, origin: str) -> None:
    """One setting that a listener has for itself, perhaps for one mechanism alone. Raises `SettingsError`."""
    if rest.lower().endswith(".sasl.jaas.config"):
        raise SettingsError(
            f"{origin}: users are not in settings here; add them with `ringleader users add`."
        )
    found = of_listener(rest, OF_LISTENERS, separator)
    listener, field = found or ("", "")
    name, _, mechanism = listener.rpartition(".")
    mechanism = mechanism.upper() if name and mechanism.upper() in SASL_MECHANISMS else ""
    if not field or (mechanism and not _is_of(mechanism, field)):
        raise SettingsError(f"{origin}: there is no such setting of a listener.")
    try:
        read = Settings(**{field: value})
    except ValidationError as error:
        raise SettingsError(one_sentence(error, {field: origin})) from None
    if not mechanism:
        listeners.setdefault(listener, {})[field] = value
        return
    own = listeners.setdefault(name, {})
    if field == "connections_max_reauth_ms":
        own.setdefault("reauth_ms_by_mechanism", {})[mechanism] = read.connections_max_reauth_ms
    else:
        own[field] = value


def _is_of(mechanism: str, field: str) -> bool:
    """Whether a mechanism may have this for itself. Settings of one listener alone belong to that
    listener."""
    return field == "connections_max_reauth_ms" or field.startswith(f"sasl_{mechanism.lower()}_")


def _check_http(settings: Settings) -> None:
    """Raises ValueError: one sentence."""
    if settings.http_listen is not None:
        from ringleader.coordinator.http_access import access_of

        access_of(settings)


def _check_listeners(settings: Settings) -> None:
    """Raises ValueError: one sentence."""
    found = settings.served()
    settings.between_nodes()
    names = [listener.name.lower() for listener in found]
    for name in settings.listener_name:
        if name not in names:
            raise ValueError(f"listener.name.{name} is of no listener; there are {', '.join(names)}")
    for listener in found:
        if listener.security_protocol.tls:
            from ringleader.coordinator.security.tls import context_of

            try:
                context_of(settings.for_listener(listener))
            except ValueError as error:
                raise ValueError(f"{listener}: {error}") from None
