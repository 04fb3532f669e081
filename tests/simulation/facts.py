"""The memory of the checks of a simulated run, and their complaints."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from ringleader.coordinator.groups.group import Group
from ringleader.coordinator.groups.states import GroupState
from ringleader.protocol.messages import (
    GroupMetadataValue,
    LeaveGroupRequest,
    LeaveGroupRequestMemberIdentity,
)

if TYPE_CHECKING:
    from tests.simulation.world import Call, World

Place = tuple[str, str, int]
"""Where an offset is committed: group, topic, partition."""


class ViolationError(AssertionError):
    """An invariant does not hold. `name` is its id in the module docstring of checks.py, `again` the command
    that runs this once more."""

    def __init__(self, name: str, text: str, seed: int, where: str, again: str = "") -> None:
        again = again or f"python -m tests.simulation --seed {seed}{' --clocks' if name == 'D6' else ''}"
        super().__init__(f"{name}: {text} ({where}; again: {again})")
        self.name = name
        self.seed = seed


@dataclass
class Generation:
    """The facts that answers have stated about one generation."""

    leaders: set[str]
    """The leader's member id, and for a static one those that it took later."""
    listed: dict[str, bytes] | None = None
    answered: set[str] = field(default_factory=set)
    owners: dict[tuple[str, int], str] = field(default_factory=dict)
    """Partition -> the member that it was assigned to."""


@dataclass
class Life:
    """One incarnation of a group: from its first record to its deletion. Restarts do not end it."""

    group: Group | None
    highest: int = 0
    """The highest generation of any member set."""
    emptied: int = 0
    """The generation in which the group became empty last."""
    current: int = 0
    generations: dict[int, Generation] = field(default_factory=dict)
    submissions: dict[int, list[dict[str, bytes]]] = field(default_factory=dict)
    """Generation -> the assignments that its leader sent, or somebody in its name, perhaps before it had its
    answer."""
    begun: set[int] = field(default_factory=set)
    """Generations that members were seen in, or that nobody was left in."""
    rows: set[int] = field(default_factory=set)
    last_row: int | None = None
    """The generation of the last row of the journal; None: not known since a restart."""
    crashed_since: bool = False
    disturbed: int = 0
    """How often something came that may cause a rebalance."""
    birth: int = 0
    """How many deletions of the group were written before."""
    previous: Life | None = None
    """The incarnation before, whose deletion may not be durable."""


@dataclass
class Facts:
    """The facts that held when a request arrived."""

    serving: bool = False
    unloaded: bool = False
    state: GroupState | None = None
    code: int | list[int] | None = None
    """The error code that the request must get (for LeaveGroup one for each member); None: not certain."""
    generation: int = -1
    unchanged: bool = False
    """A JoinGroup that changes nothing: its member gets its generation once more."""
    quiet_restart: bool = False
    """A static member comes back unchanged to a stable group: no rebalance."""
    disturbed: int = 0
    fenced: bool = False
    """Its member id had been replaced."""
    holder: str = ""
    """The holder of the request's group instance id."""
    places: dict[Place, int] = field(default_factory=dict)
    """Commits and deletions: where in the histories they stand."""
    taken: set[Place] = field(default_factory=set)
    """Commits: what was answered with success."""
    open: set[Place] = field(default_factory=set)
    """Fetches: what open transactions have offsets for."""
    life: int = -1
    group_position: int = 0
    """The last append with a record of its group, when it had been handed over."""
    offsets_position: int = 0
    """The same of the group's offsets."""
    counted_bytes: int = 0
    """The bytes that all groups held."""
    emptied: bool = False
    """The group was empty when it had been handed over."""


class Seen(NamedTuple):
    """A member between two steps."""

    instance_id: str | None
    awaiting_join: bool
    awaiting_sync: bool
    is_new: bool
    owes_sync: bool
    session_timeout_ms: int
    rebalance_timeout_ms: int


@dataclass
class GroupSeen:
    """A group between two steps."""

    state: GroupState
    generation: int
    since_ms: int
    shortest_ms: int
    """The rebalance timeout of the group, the longest of its members: the least since the state began."""
    longest_ms: int
    """The most since the state began."""
    members: dict[str, Seen]
    pending: set[str]
    collecting_ms: int = 0
    """Preparing: since when somebody waits for its end."""
    life: Life | None = None
    from_empty: bool = False
    """Preparing began from Empty: an initial rebalance."""


class Memory:
    """The memory that all checks of one run share."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.lives: dict[str, Life] = {}
        self.record_sizes: dict[str, tuple[GroupMetadataValue | None, int]] = {}
        """By group: its record, and how long that is."""
        self.open_calls: list[Call] = []
        """Joins and leaves that are unanswered, and those answered in this step."""
        self.fenced: set[str] = set()
        """Member ids that were replaced: they never come back."""
        self.replaces: dict[str, str] = {}
        """Member id of a static member -> the one that it had before."""
        self.instances: dict[str, str] = {}
        """Member id of a static member -> its group instance id."""
        self.seen: dict[str, GroupSeen] = {}
        """The groups after the last step."""
        self.tombstones: dict[str, int] = {}
        """Group -> how often its deletion was written, as the present shard sees it."""
        self.tombstones_landed: dict[str, int] = {}

    def must(self, condition: Any, name: str, text: str) -> None:
        """Raise unless the condition holds."""
        if not condition:
            world = self.world
            raise ViolationError(name, text, world.seed, f"{world.now_ms} ms, step {world.steps}")

    def person(self, member_id: str) -> str:
        """The owner of this member id: for a static member its instance id, which outlives its member ids."""
        instance_id = self.instances.get(member_id)
        return member_id if instance_id is None else self.static(instance_id)

    def static(self, instance_id: str) -> str:
        """A static member as a person."""
        return f"instance {instance_id}"

    def learn(self, group_id: str) -> None:
        """See who is in a group, and which static members have taken their places again since the last
        step."""
        group, before = self.group(group_id), self.seen.get(group_id)
        if group is None:
            return
        seen = before.members if before is not None else {}
        holders = {one.instance_id: member_id for member_id, one in seen.items()}
        for member_id, member in group.members.items():
            if member.group_instance_id is None or member_id in self.instances:
                continue
            self.instances[member_id] = member.group_instance_id
            old_id = holders.get(member.group_instance_id)
            if old_id is not None and not self._leaves(group_id, old_id, member.group_instance_id):
                self.replaces[member_id] = old_id

    def _leaves(self, group_id: str, member_id: str, instance_id: str) -> bool:
        """Whether somebody asks for its removal: then another one may come in its stead, as a new member."""
        return any(
            member_id == one.member_id or instance_id == one.group_instance_id
            for call in self.open_calls
            if isinstance(call.request, LeaveGroupRequest) and call.request.group_id == group_id
            for one in (
                LeaveGroupRequestMemberIdentity(member_id=call.request.member_id),
                *call.request.members,
            )
        )

    def groups(self) -> dict[str, Group]:
        """The groups as the machines have them, of partitions that serve."""
        return {
            group_id: group
            for one in self.world.partitions
            if one.serving
            for group_id, group in one.shard._groups.items()
        }

    def group(self, group_id: str) -> Group | None:
        """A group, if its partition serves."""
        partition = self.world.partition(group_id)
        return partition.shard._groups.get(group_id) if partition.serving else None

    def life(self, group_id: str) -> Life:
        """The present incarnation of a group: deleted and made again, it is another object and starts
        clean."""
        group = self.group(group_id)
        known = self.lives.get(group_id)
        if known is None or (group is not None and known.group is not group):
            birth = self.tombstones.get(group_id, 0)
            known = self.lives[group_id] = Life(group, birth=birth, previous=known)
        return known

    def life_of_log(self, group_id: str, group: Group) -> Life:
        """The incarnation that was loaded: a deletion that was not durable has not happened."""
        deletions = self.tombstones_landed.get(group_id, 0)
        life = self.lives.get(group_id)
        while life is not None and life.birth != deletions:
            life = life.previous
        if life is None:
            life = Life(group, birth=deletions)
        self.lives[group_id] = life
        life.group, life.previous = group, None
        return life
