"""Authorization by ACLs, as Kafka's StandardAuthorizer decides (KIP-11, KIP-290, KIP-430).

An ACL allows or denies a principal, from a host, an operation on the resources that a pattern matches. A deny
counts, whatever else allows; without an ACL the operation is denied, too, unless the resource has no ACL at
all and `allow.everyone.if.no.acl.found` is set. Numbers are those of the wire.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from enum import IntEnum
from itertools import chain
from typing import Final, NamedTuple

from ringleader.coordinator.enums import at_hand
from ringleader.coordinator.security.principal import Principal
from ringleader.protocol import json_text
from ringleader.protocol.errors import ErrorCode, KafkaError

WILDCARD: Final = "*"
"""As a name with a literal pattern: every resource; as a host: from everywhere."""
EVERYBODY: Final = "User:*"
CLUSTER_NAME: Final = "kafka-cluster"
"""The one resource of type cluster."""

MAX_ACLS = 20_000
"""More are refused."""
MAX_TEXT_BYTES = 1_024
"""Of a name, a principal or a host, in UTF-8."""
REMEMBERED_VERDICTS = 20_000
"""When there are as many, all are forgotten and computed again."""
REMEMBERED_NAME_CHARACTERS = 1_024
"""A decision about a longer name is not remembered: callers may make up names of any length."""


@at_hand
class ResourceType(IntEnum):
    """The kind of a resource."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7

    __hash__ = int.__hash__


class PatternType(IntEnum):
    """How a pattern's name is meant; ANY and MATCH are for filters only."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4

    __hash__ = int.__hash__


@at_hand
class Operation(IntEnum):
    """The operation on a resource."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15

    __hash__ = int.__hash__


class Permission(IntEnum):
    """Whether an ACL allows or denies."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


IMPLIED_BY: Mapping[Operation, frozenset[Operation]] = {
    Operation.DESCRIBE: frozenset((Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER)),
    Operation.DESCRIBE_CONFIGS: frozenset((Operation.ALTER_CONFIGS,)),
}
"""A principal that is allowed one of these is allowed the operation; a deny counts for itself only."""

SUPPORTED: Mapping[ResourceType, tuple[Operation, ...]] = {
    ResourceType.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        Operation.READ,
        Operation.DELETE,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        Operation.CREATE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
    ),
}
"""The operations on a resource, of which the authorized ones are reported (KIP-430)."""


class AclBinding(NamedTuple):
    """One ACL."""

    resource_type: ResourceType
    name: str
    pattern_type: PatternType
    principal: str
    """`User:alice`; `User:*` is everybody."""
    host: str
    """An address as Java writes it, without a slash; `*` is everywhere."""
    operation: Operation
    permission: Permission


class AclFilter(NamedTuple):
    """Which ACLs are meant; None stands for any text."""

    resource_type: ResourceType = ResourceType.ANY
    name: str | None = None
    pattern_type: PatternType = PatternType.ANY
    """MATCH: whatever applies to the resource `name`, prefixes and the wildcard too."""
    principal: str | None = None
    host: str | None = None
    operation: Operation = Operation.ANY
    permission: Permission = Permission.ANY

    def matches(self, acl: AclBinding) -> bool:
        """Whether this ACL is meant."""
        return (
            self.resource_type in (ResourceType.ANY, acl.resource_type)
            and self._matches_pattern(acl)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (Operation.ANY, acl.operation)
            and self.permission in (Permission.ANY, acl.permission)
        )

    def _matches_pattern(self, acl: AclBinding) -> bool:
        if self.pattern_type not in (PatternType.ANY, PatternType.MATCH, acl.pattern_type):
            return False
        if self.name is None or self.name == acl.name:
            return True
        if self.pattern_type != PatternType.MATCH:
            return False
        if acl.pattern_type == PatternType.PREFIXED:
            return self.name.startswith(acl.name)
        return acl.name == WILDCARD


def check(acl: AclBinding) -> None:
    """Raises KafkaError (INVALID_REQUEST, with Kafka's words where it has any) for what cannot be an ACL."""
    if acl.resource_type == ResourceType.CLUSTER and acl.name != CLUSTER_NAME:
        raise _invalid(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    if not acl.name:
        raise _invalid("Invalid empty resource name")
    numbers = (
        ("resourceType", acl.resource_type),
        ("patternType", acl.pattern_type),
        ("operation", acl.operation),
        ("permissionType", acl.permission),
    )
    for what, number in numbers:
        if number == 0:
            raise _invalid(f"Invalid {what} UNKNOWN")
    if ":" not in acl.principal:
        raise _invalid(
            f"Could not parse principal from `{acl.principal}` "
            "(no colon is present separating the principal type from the principal name)"
        )
    if (
        max(len(text.encode(errors="replace")) for text in (acl.name, acl.principal, acl.host))
        > MAX_TEXT_BYTES
    ):
        raise _invalid(f"Names, principals and hosts have at most {MAX_TEXT_BYTES:,} bytes")


def _invalid(text: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, text)


_Bucket = dict[str, list[AclBinding]]
"""Those of one pattern, by principal."""


class AllowAll:
    """In place of an `Authorizer` where there is none: everybody may do everything."""

    is_open: Final = True
    names_hosts: Final = False

    def authorize(
        self, principal: Principal, host: str, operation: Operation, kind: ResourceType, name: str
    ) -> bool:
        """See `Authorizer`."""
        return True

    def authorize_by_resource_type(
        self, principal: Principal, host: str, operation: Operation, kind: ResourceType
    ) -> bool:
        """See `Authorizer`."""
        return True

    def authorized_operations(self, principal: Principal, host: str, kind: ResourceType, name: str) -> int:
        """See `Authorizer`."""
        return sum(1 << operation for operation in SUPPORTED[kind])

    def observe(self, observer: Callable[[], None]) -> None:
        """See `Authorizer`; nothing ever changes."""


class Authorizer:
    """Decides by the ACLs that it has. All in memory; it does not store them."""

    is_open: Final = False
    """Whether everybody may do everything."""

    def __init__(
        self, super_users: Iterable[str] = (), *, allow_everyone_if_no_acl_found: bool = False
    ) -> None:
        """`super_users`: principals as text, `User:root`; no ACL binds them."""
        self._super_users = frozenset(super_users)
        self._allow_without_acl = allow_everyone_if_no_acl_found
        self._acls: set[AclBinding] = set()
        self._patterns: dict[tuple[ResourceType, PatternType], dict[str, _Bucket]] = {}
        self._prefix_lengths: dict[ResourceType, list[int]] = {}
        self._verdicts: dict[Hashable, bool] = {}
        self._observers: list[Callable[[], None]] = []
        self.version = 0
        """Rises with every change: what was concluded from an older one is to be forgotten."""

    def __len__(self) -> int:
        return len(self._acls)

    def __contains__(self, acl: AclBinding) -> bool:
        return acl in self._acls

    # ---- what there is ----

    def apply(self, added: Iterable[AclBinding] = (), removed: Iterable[AclBinding] = ()) -> None:
        """Change the ACLs; what is there already, or is not there, changes nothing."""
        for acl in set(removed) & self._acls:
            self._acls.remove(acl)
            names = self._patterns[acl.resource_type, acl.pattern_type]
            names[acl.name][acl.principal].remove(acl)
            if not names[acl.name][acl.principal]:
                del names[acl.name][acl.principal]
            if not names[acl.name]:
                del names[acl.name]
        for acl in set(added) - self._acls:
            self._acls.add(acl)
            names = self._patterns.setdefault((acl.resource_type, acl.pattern_type), {})
            names.setdefault(acl.name, {}).setdefault(acl.principal, []).append(acl)
        self._prefix_lengths = {
            kind: sorted({len(prefix) for prefix in names})
            for (kind, pattern_type), names in self._patterns.items()
            if pattern_type == PatternType.PREFIXED
        }
        self._verdicts.clear()
        self.version += 1
        for observer in self._observers:
            observer()

    def observe(self, observer: Callable[[], None]) -> None:
        """`observer` is called after each change."""
        self._observers.append(observer)

    def all(self) -> Iterator[AclBinding]:
        """Every ACL."""
        return iter(self._acls)

    def matching(self, wanted: AclFilter) -> list[AclBinding]:
        """The ACLs that a filter means, by resource."""
        return sorted(filter(wanted.matches, self._acls))

    @property
    def names_hosts(self) -> bool:
        """Whether a verdict may depend on where a principal comes from."""
        return any(acl.host != WILDCARD for acl in self._acls)

    # ---- verdicts ----

    def authorize(
        self, principal: Principal, host: str, operation: Operation, kind: ResourceType, name: str
    ) -> bool:
        """Whether the principal, coming from `host`, may do that to the resource of this kind and name."""
        key = (principal, host, operation, kind, name)
        verdict = self._verdicts.get(key)
        if verdict is None:
            verdict = self._decide(str(principal), host, operation, kind, name)
            if len(name) <= REMEMBERED_NAME_CHARACTERS:
                self._remember(key, verdict)
        return verdict

    def _remember(self, key: Hashable, verdict: bool) -> bool:
        if len(self._verdicts) >= REMEMBERED_VERDICTS:
            self._verdicts.clear()
        self._verdicts[key] = verdict
        return verdict

    def _decide(self, principal: str, host: str, operation: Operation, kind: ResourceType, name: str) -> bool:
        if principal in self._super_users:
            return True
        implied = IMPLIED_BY.get(operation, ())
        found = allowed = False
        for bucket in self._buckets(kind, name):
            found = True
            for acl in chain(bucket.get(principal, ()), bucket.get(EVERYBODY, ())):
                if acl.host not in (WILDCARD, host):
                    continue
                if acl.operation in (operation, Operation.ALL):
                    if acl.permission == Permission.DENY:
                        return False
                    allowed = True
                elif acl.operation in implied and acl.permission == Permission.ALLOW:
                    allowed = True
        return allowed if found else self._allow_without_acl

    def _buckets(self, kind: ResourceType, name: str) -> Iterator[_Bucket]:
        """The ACLs of all patterns that match."""
        literals = self._patterns.get((kind, PatternType.LITERAL), {})
        for literal in {name, WILDCARD} & literals.keys():
            yield literals[literal]
        prefixes = self._patterns.get((kind, PatternType.PREFIXED), {})
        for length in self._prefix_lengths.get(kind, ()):
            if length > len(name):
                return
            if name[:length] in prefixes:
                yield prefixes[name[:length]]

    def authorized_operations(self, principal: Principal, host: str, kind: ResourceType, name: str) -> int:
        """Which operations the principal may do with it: a bit for each, `1 << operation` (KIP-430)."""
        return sum(
            1 << operation
            for operation in SUPPORTED[kind]
            if self.authorize(principal, host, operation, kind, name)
        )

    def authorize_by_resource_type(
        self, principal: Principal, host: str, operation: Operation, kind: ResourceType
    ) -> bool:
        """Whether there is any resource of this kind to which the principal may do that (KIP-679). As in
        Kafka what ACLs imply does not count, and a deny of a longer prefix or of one name does not matter."""
        if self.authorize(principal, host, operation, kind, "hardcode"):
            # Kafka asks with this name: super users may, and all if no ACL is needed.
            return True
        key = (principal, host, operation, kind)
        verdict = self._verdicts.get(key)
        if verdict is None:
            verdict = self._remember(key, self._decide_by_type(str(principal), host, operation, kind))
        return verdict

    def _decide_by_type(self, principal: str, host: str, operation: Operation, kind: ResourceType) -> bool:
        speaking = [
            acl
            for acl in self._acls
            if acl.resource_type == kind
            and acl.host in (WILDCARD, host)
            and acl.principal in (principal, EVERYBODY)
            and acl.operation in (operation, Operation.ALL)
        ]
        denied = {(acl.pattern_type, acl.name) for acl in speaking if acl.permission == Permission.DENY}
        if (PatternType.LITERAL, WILDCARD) in denied:
            return False
        for _, name, pattern_type, *_, permission in speaking:
            if permission == Permission.DENY:
                continue
            if (pattern_type, name) == (PatternType.LITERAL, WILDCARD):
                return True
            prefixes = (name[:length] for length in range(1, len(name) + 1))
            if (pattern_type, name) not in denied and all(
                (PatternType.PREFIXED, prefix) not in denied for prefix in prefixes
            ):
                return True
        return False


Authority = Authorizer | AllowAll
"""A node has one of these. None would be nobody to ask."""


# ---- as they are kept ----


def in_words(acl: AclBinding) -> str:
    """For people: who may or may not do what, from where."""
    return (
        f"{acl.permission.name} {acl.principal} {acl.operation.name} from {acl.host} "
        f"on {acl.resource_type.name} {acl.pattern_type.name} {acl.name}"
    )


def to_key(acl: AclBinding) -> str:
    """An ACL as the key of an entry that says nothing else."""
    kind, name, pattern_type, principal, host, operation, permission = acl
    row = [kind.name, pattern_type.name, name, principal, host, operation.name, permission.name]
    return json.dumps(row)


def from_key(key: str) -> AclBinding:
    """The other way round. Raises ValueError, KeyError or TypeError for what is no ACL."""
    kind, pattern_type, name, principal, host, operation, permission = json_text.loads(key)
    if not all(isinstance(text, str) for text in (name, principal, host)):
        raise ValueError("not a text")
    return AclBinding(
        ResourceType[kind],
        name,
        PatternType[pattern_type],
        principal,
        host,
        Operation[operation],
        Permission[permission],
    )
