"""What a record of the topic `__ringleader_journal` says: why each group of this daemon rebalanced, for any
Kafka client to read.

One partition. Key: the group id in UTF-8, empty for what concerns the whole daemon. Value: one JSON object in
UTF-8. The record's timestamp is its `at_ms`. Times (`..._at_ms`, `at_ms`, `began_ms`, `last_..._ms`,
`first_commit_ms`, `joined_ms`, `synced_ms`) are Unix time in milliseconds, all others lengths of time in
milliseconds. What is not known is null. New fields may come without a new format: skip what you do not know.

Every record has

- `format`: 1. `kind`: "rebalance", "first-commit" or "event". `group`: the group id. `at_ms`: when it was.

kind "rebalance": one completed rebalance, written when its last follower has its share, when the next
rebalance begins, or 10 seconds after the assignment was stored, whichever comes first. The names and words of
`coordinator.groups.journal.JournalEntry`, whose texts hold here as well:

- `generation`, `cause` (words of `Cause`), `cause_member`, `reason`, `outcome` ("stable", "empty",
  "superseded"), `protocol_type`, `protocol`, `leader`: "" where there is none;
- `members_before`, `members_after`, `joined`: member ids, in join order;
- `began_ms`, `at_ms`, `duration_ms` = `join_ms` + `leader_ms` + `sync_ms`; `join_last_member`; `synced`: how
  many had asked for their share by `at_ms`;
- `members`: the members of this generation, in join order, each an object: `member_id`, `client_id`,
  `client_host` (Java's form, "/127.0.0.1"), `group_instance_id` (or null), `session_timeout_ms`,
  `rebalance_timeout_ms`, `topics` (its subscription, sorted), `assigned` ([[topic, [partition, ...]], ...],
  sorted), `joined_ms` (its JoinGroup came; null: it sent none, a static member that is away), `synced_ms`
  (its share was sent to it; null: it had not asked for it by `at_ms`). `topics` and `assigned` are null where
  they cannot be read (another protocol type than "consumer"), `assigned` of a superseded rebalance too;
- `before`: the members as the last stored generation had them, likewise, without `joined_ms` and `synced_ms`;
- `left`: {member_id: {`why` (words of `Departure`), `at_ms`, `last_heard_ms`, `silent_ms` (at `at_ms`),
  `client_id`, `client_host`, `group_instance_id`}};
- `moves`: [[topic, partition, giver, heir, unowned_ms], ...], sorted: every partition that another member has
  than in the last stored generation. Giver and heir are member ids, or null for nobody. `unowned_ms`: how
  long nobody had it when the heir got its share; null where there is no heir, or its beginning is not known;
- `unowned_ms`: partition-milliseconds: the same summed over all partitions that were without an owner and
  have one again by `at_ms`, those that did not move too (an eager member gives up all it has).
  A partition is without an owner from when its member gives it up until a member's share with it is sent. An
  eager member gives up with its JoinGroup; a cooperative one (what its JoinGroup says it owns, it keeps) when
  it is sent a share without the partition; one that leaves, when it says so; one that did not rejoin or sync
  in time, when it is put out; one whose session ended, or that came back as a static member, when it was last
  heard of;
- `last_commit_ms`: the group's last commit before the assignment was stored; `first_commit_ms`: the first
  one after, if it came before this record was written;
- `cut`: true when the record would have been too large (1 MB): then `before` is [], and `members` and `moves`
  have the first ones only.

kind "first-commit": the first commit after a rebalance, when its record was written already: `generation`,
`member_id`, `after_ms` (since the assignment was stored).

kind "event": something else that an operator asks about. `event` is one of the words below; `member_id`,
`client_id`, `client_host`, `group_instance_id`: who asked, "" (or null) where nobody did; `error`: Kafka's
name of the error, "" where there is none; `count`: how often the same happened since the last record of it (a
client that tries for ever makes one record in 10 seconds); `partitions`: [[topic, partition, before, after],
...], offsets, null for none, 1,000 at most.

- "join refused": with `error`;
- "instance fenced": a request of a static member whose place another process has taken; `member_id` is the
  old one's;
- "static member returned": another process took the place of a static member, and the group just went on;
  `old_member_id`: who it was until then;
- "offsets reset": somebody who is no member committed for a group that had members and has none now;
- "offsets deleted", "group deleted": by a tool; "offsets expired", "group expired": by retention;
- "started", "stopped" (group ""): the daemon. A "started" without a "stopped" before it: it was killed.

What a kill -9 loses: rebalances whose record was not written yet, that is those in their third phase, and
what was decided in the last few milliseconds; the group's own record of the generation, in
`__consumer_offsets`, is never lost once a member was told. A crash of the machine loses no more: each record
is synced.
"""

from __future__ import annotations

TOPIC = "__ringleader_journal"
FORMAT = 1
