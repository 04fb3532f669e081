--------------------------- MODULE ConsumerGroup ---------------------------
(* A group of the consumer protocol (KIP-848) as Ringleader's coordinator keeps it: heartbeats, a target that
   any balanced assignor may make, reconciliation member by member, static members that go away and come back,
   commits of members, and fail-over.

   What is durable is the last value of each key of a compacted log: `disk`. The machine's memory, `mem`, is
   what the log says plus the events that are on their way to it, `lag`; each event is one append, in the log
   whole or not at all. A fail-over keeps any prefix of the events on their way.

   All members subscribe to the same topics. `there` are the partitions that exist by now, which the coordinator
   sees at once: they come when a topic is made or grows, and go when it is deleted; a topic that is made anew has
   other ones. A group sees it at the next heartbeat, and notes what it has seen: `seen`.

   An answer leaves when what it depends on is durable, and as the log is in order, all events before that:
   - of a heartbeat, refusals included, and of a commit that is refused: the last event that changed the group
     (its epochs, members, target, or what a member has). Commits on their way do not hold it up;
   - of a commit: its own event;
   - of a fetch: the last commit, too. It shows what is durable when it leaves.
   - of a heartbeat of a member that goes on in its epoch while a target is on its way: perhaps none, see GoOn.
   So no answer shows what is not durable: AnswersShowWhatIsDurable.

   Members of Classics speak the classic protocol (KIP-848, "Migration"): no member waits for others in JoinGroup,
   and none leads. JoinGroup is a step of the reconciliation, and reports what the member owns; SyncGroup gives it
   what that came to; Heartbeat says whether it has to join again. Its generation is its epoch here.

   With Migrates the group changes its protocol. It begins as a classic one; the first heartbeat of a member of the
   consumer protocol upgrades it, in whatever phase it is; when the last such member is removed, it is downgraded.
   `room` is what the memory has of a classic group: its members, its generation, what they reported last, and who
   waits in JoinGroup. The log has less of it: each number of a generation before anybody hears it, and what was
   synced last. The leader's assignor gives nobody a partition that another member reports. Static members of the
   classic protocol are in no group that migrates; nor is the first request of the other protocol to an empty
   group here, which makes a new one. Without Migrates the migration policy keeps the group as it is.

   The requests of one member are handled in the order in which it sent them. The protocol rests on that: with
   LateRequests a request that its sender has given up is handled after a later one, and TLC shows how the
   partitions of its sender are then given away while it still owns them (`late.cfg`). *)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS Members, Statics, Classics, Partitions, AtFirst, MaxFaults, MaxOffset, LateRequests,
          Migrates,     (* whether the group changes its protocol *)
          TargetsWait   (* whether a heartbeat may leave an old target as it is: there is a least time between two *)

VARIABLES there, mem, lag, disk, room, client, net, late, acked, faults,
          commit   (* the commit of each member that is on its way; at most one of its requests is not handled yet *)
vars == <<there, mem, lag, disk, room, client, net, late, acked, faults, commit>>

Nothing == [p \in Partitions |-> 0]
Of(some) == {p \in Partitions : some[p] # 0}

Silent == [at |-> 0, owned |-> {}]

Empty == [protocol |-> "consumer", epoch |-> 1, aim |-> 0, in |-> {}, away |-> {}, seen |-> {},
          target |-> [m \in Members |-> {}], at |-> [m \in Members |-> 0], prev |-> [m \in Members |-> 0],
          state |-> [m \in Members |-> "stable"],
          life |-> [m \in Members |-> 0],        (* which of the processes that were m has its place *)
          got |-> [m \in Members |-> Nothing],   (* partition -> the epoch in which the member got it; 0: not its *)
          due |-> [m \in Members |-> Nothing],   (* likewise, what it has to give up *)
          reports |-> [m \in Members |-> Silent],   (* what a classic member reported last, in which generation *)
          led |-> FALSE,                            (* of a classic group: whether a leader made its assignment *)
          off |-> [p \in Partitions |-> 0]]

NoRoom == [phase |-> "none", in |-> {}, gen |-> 0, joined |-> {}, lead |-> {},
           reports |-> Empty.reports, life |-> Empty.life]

(* `blind`: partitions that it owns, and has not fetched the offset of. `does`: what a classic member asks next,
   to "join", to "sync" or to "stay". *)
Born(life) == [epoch |-> 0, owned |-> {}, wanted |-> {}, told |-> {}, full |-> TRUE, life |-> life,
               pos |-> Nothing, blind |-> {}, does |-> "join"]
Idle == [phase |-> "idle"]

Beginning == IF Migrates THEN [Empty EXCEPT !.protocol = "classic", !.epoch = 0, !.led = TRUE] ELSE Empty

(* What a classic group is after a load, and after the downgrade that its record says: without a leader's assignment
   it rebalances. *)
Loaded(s) == IF s.protocol = "consumer" THEN NoRoom
             ELSE [phase |-> IF s.in = {} THEN "empty" ELSE IF s.led THEN "stable" ELSE "preparing",
                   in |-> s.in, gen |-> s.aim, joined |-> {}, lead |-> {}, reports |-> s.reports, life |-> s.life]

Start == /\ mem = Beginning /\ disk = Beginning /\ lag = <<>> /\ room = Loaded(Beginning)
        /\ client = [m \in Members |-> Born(0)]
        /\ net = [m \in Members |-> Idle]
        /\ late = [m \in Members |-> {}]
        /\ commit = [m \in Members |-> Idle]
        /\ acked = [p \in Partitions |-> 0]
        /\ faults = 0

Init == there = AtFirst /\ Start

(* ---- the coordinator ---- *)

Held(s, m) == Of(s.got[m]) \cup Of(s.due[m])

Without(s, m) ==
    [s EXCEPT !.in = @ \ {m}, !.away = @ \ {m}, !.epoch = @ + 1, !.target[m] = {}, !.at[m] = 0,
              !.seen = IF s.in = {m} THEN {} ELSE there,
              !.prev[m] = 0, !.state[m] = "stable", !.life[m] = 0, !.got[m] = Nothing, !.due[m] = Nothing,
              !.reports[m] = Silent]

(* A classic member that was removed is not taken in with partitions, which may be others' by now. A static one
   takes the place of another process at once. *)
PassesClassic(s, m, r) ==
    IF r.does = "join" THEN m \in s.in \/ r.owned = {}
    ELSE m \in s.in /\ r.life = s.life[m] /\ r.epoch = s.at[m]

(* A static member's place is not another process's before the first one is away, or is removed. *)
PassesNew(s, m, r) ==
    \/ r.epoch = 0 /\ (m \in s.in \ s.away => r.life = s.life[m])
    \/ /\ m \in s.in /\ m \notin s.away /\ r.life = s.life[m]
       /\ \/ r.epoch = s.at[m]
          \/ r.epoch = s.prev[m] /\ r.epoch < s.at[m] /\ r.says /\ r.owned \subseteq Of(s.got[m])

Passes(s, m, r) == IF m \in Classics THEN PassesClassic(s, m, r) ELSE PassesNew(s, m, r)

Joined(s, m, r) ==
    IF m \notin s.in THEN [s EXCEPT !.in = @ \cup {m}, !.epoch = @ + 1, !.seen = there, !.life[m] = r.life]
    ELSE IF m \in s.away THEN [s EXCEPT !.away = @ \ {m}, !.prev[m] = 0, !.life[m] = r.life]
    ELSE IF r.life # s.life[m] THEN [s EXCEPT !.at[m] = 0, !.prev[m] = 0, !.life[m] = r.life]
    ELSE s

Noticed(s) == IF s.seen = there THEN s ELSE [s EXCEPT !.epoch = @ + 1, !.seen = there]

Balanced(s, f) == \A m, n \in s.in :
    Cardinality({p \in there : f[p] = m}) <= Cardinality({p \in there : f[p] = n}) + 1

Shares(s) == {f \in [there -> s.in] : Balanced(s, f)}

Aimed(s) ==
    IF s.aim = s.epoch \/ s.in = {} THEN {s}
    ELSE {[s EXCEPT !.aim = s.epoch,
                    !.target = [m \in Members |-> {p \in there : f[p] = m}]] : f \in Shares(s)}
         \cup (IF TargetsWait /\ s.aim > 0 THEN {s} ELSE {})

Reconciled(s, m, r) ==
    LET had == Of(s.got[m])
        wanted == s.target[m] \cap there
        kept == had \cap wanted
        revoked == had \ kept
        free == {p \in wanted \ kept : \A n \in s.in \ {m} : p \notin Held(s, n)}
        only(some) == [p \in Partitions |-> IF p \in some THEN s.got[m][p] ELSE 0]
    IN IF s.state[m] = "stable" /\ s.at[m] = s.aim THEN s
       ELSE IF s.state[m] = "unrevoked" /\ (~r.says \/ r.owned \cap Of(s.due[m]) # {}) THEN s
       ELSE IF revoked # {} /\ (~r.says \/ r.owned \cap revoked # {})
       THEN [s EXCEPT !.state[m] = "unrevoked", !.prev[m] = s.at[m], !.got[m] = only(kept),
                      !.due[m] = only(revoked)]
       ELSE [s EXCEPT !.state[m] = IF kept \cup free = wanted THEN "stable" ELSE "unreleased",
                      !.prev[m] = s.at[m], !.at[m] = s.aim, !.due[m] = Nothing,
                      !.got[m] = [p \in Partitions |-> IF p \in free THEN s.aim ELSE only(kept)[p]]]

MayDowngrade == Migrates

Report(r) == [at |-> r.epoch, owned |-> r.owned]

(* All states that a request may make of a state: a heartbeat, or JoinGroup. *)
Beaten(s, m, r) ==
    IF m \in Classics /\ r.does # "join" THEN {s}
    ELSE LET joined == IF r.epoch = 0 \/ m \in Classics THEN Joined(s, m, r) ELSE s
             heard == IF MayDowngrade /\ m \in Classics THEN [joined EXCEPT !.reports[m] = Report(r)] ELSE joined
         IN {Reconciled(t, m, r) : t \in Aimed(Noticed(heard))}

(* Whether a classic member has news that it gets when it joins again. Where there are only such members, none of
   their heartbeats makes a target: one has to join for that. *)
IsBehind(s, m) ==
    \/ s.at[m] < s.aim \/ s.state[m] = "unrevoked"
    \/ s.state[m] = "unreleased" /\ \A p \in s.target[m] \ Of(s.got[m]), n \in s.in : p \notin Held(s, n)
    \/ s.in \subseteq Classics /\ (s.seen # there \/ s.at[m] < s.epoch)

(* Whether the answer to a classic member is REBALANCE_IN_PROGRESS. *)
JoinsAgain(s, m, r) ==
    /\ m \in Classics
    /\ \/ r.does = "stay" /\ IsBehind(s, m)
       \/ r.does = "sync" /\ s.at[m] < s.aim /\ s.state[m] # "unrevoked"

Emit(s) == /\ mem' = s
           /\ lag' = IF s = mem THEN lag ELSE Append(lag, s)

(* All of a group but its offsets; and how many of the events on their way there are to the last one that
   changed that. *)
Ours(s) == [s EXCEPT !.off = Nothing]
Last(some) == IF some = {} THEN 0 ELSE CHOOSE i \in some : \A j \in some : j <= i
ToTheGroups(events) ==
    Last({i \in 1..Len(events) : Ours(events[i]) # Ours(IF i = 1 THEN disk ELSE events[i - 1])})

Quiet == UNCHANGED <<there, mem, lag, disk, room, acked>>
Fault == faults < MaxFaults /\ faults' = faults + 1

(* ---- a classic group, "Old" in the names of its steps ---- *)

Only(some, epoch) == [p \in Partitions |-> IF p \in some THEN epoch ELSE 0]

(* The record of a classic group. What a member was assigned it got in this generation. *)
Classic(s, members, gen, target, reports, life, led) ==
    LET of(m, is, none) == IF m \in members THEN is ELSE none
        given == [m \in Members |-> of(m, target[m], {})]
    IN [Empty EXCEPT !.protocol = "classic", !.epoch = Last({s.epoch, gen}), !.aim = gen, !.in = members,
                     !.target = given, !.led = led, !.off = s.off,
                     !.at = [m \in Members |-> of(m, gen, 0)], !.prev = [m \in Members |-> of(m, gen, 0)],
                     !.life = [m \in Members |-> of(m, life[m], 0)],
                     !.got = [m \in Members |-> Only(given[m], gen)],
                     !.reports = [m \in Members |-> of(m, reports[m], Silent)]]

(* Its generation is the group's epoch, and the next one follows at once. Until then each member is assigned what it
   has or owes, for it may own that: an upgrade that comes first must not give it away. *)
Downgraded(s, m) ==
    Classic(s, s.in \ {m}, s.epoch, [n \in Members |-> Held(s, n) \cap there], s.reports, s.life, FALSE)

(* The members that reported a partition last. *)
Latest(p) ==
    LET those == {m \in room.in : p \in room.reports[m].owned}
    IN {m \in those : \A n \in those : room.reports[n].at <= room.reports[m].at}

(* Each member has what was synced last, but for what another one reports, and owes what it reports besides: it may
   own that still. The latest report counts; a member that reports what it was assigned has it. *)
Upgraded(s) ==
    LET given(m) == IF m \in room.in THEN s.target[m] \cap there ELSE {}
        says(m) == IF m \in room.in THEN room.reports[m].owned \cap there ELSE {}
        both(p) == {m \in room.in : p \in given(m) \cap says(m)}
        claims(p) == IF both(p) = {} THEN Latest(p) ELSE both(p)
        has(m) == {p \in given(m) : claims(p) \subseteq {m}}
        owes(m) == {p \in says(m) \ given(m) : m \in claims(p)}
        at == [m \in Members |-> IF m \in room.in THEN room.gen ELSE 0]
    IN [Empty EXCEPT !.epoch = s.epoch, !.aim = room.gen, !.in = room.in, !.seen = there, !.off = s.off,
                     !.target = [m \in Members |-> given(m)], !.at = at, !.prev = at, !.life = room.life,
                     !.state = [m \in Members |-> IF owes(m) # {} THEN "unrevoked"
                                                  ELSE IF has(m) = given(m) THEN "stable" ELSE "unreleased"],
                     !.got = [m \in Members |-> Only(has(m), room.gen)],
                     !.due = [m \in Members |-> Only(owes(m), room.gen)], !.reports = room.reports]

IsClassic == mem.protocol = "classic"
Waits(m) == net[m].phase = "waits"

(* The answer to a member of a classic group: `again`, it has to join again; `news`, its assignment. *)
Reply(epoch, again, news, all, events) ==
    [phase |-> "answered", ok |-> TRUE, epoch |-> epoch, again |-> again, news |-> news, all |-> all,
     after |-> ToTheGroups(events)]
Again(m) == Reply(net[m].ask.epoch, TRUE, FALSE, {}, lag)
Refused(r) == [phase |-> "answered", ok |-> FALSE, ask |-> r, after |-> ToTheGroups(lag)]

(* A rebalance begins, or goes on. Those that wait for an assignment have to join again. *)
Preparing ==
    IF room.phase = "preparing" THEN room ELSE [room EXCEPT !.phase = "preparing", !.joined = {}, !.lead = {}]
Called == [m \in Members |-> IF Waits(m) /\ room.phase = "completing" THEN Again(m) ELSE net[m]]

(* Who is not in the group has no partitions when it joins. *)
PassesOld(m, r) ==
    /\ m \in Classics
    /\ IF r.does = "join" THEN m \in room.in \/ (r.epoch = 0 /\ r.owned = {})
       ELSE m \in room.in /\ r.epoch = room.gen

(* A member that says what it said before may get the present generation once more. *)
JoinOld(m, r) ==
    LET report == Report(r)
    IN \/ /\ room.phase \in {"completing", "stable"} /\ m \in room.in /\ room.reports[m] = report
          /\ net' = [net EXCEPT ![m] = Reply(room.gen, FALSE, FALSE, {}, lag)]
          /\ UNCHANGED room
       \/ /\ room' = [Preparing EXCEPT !.in = @ \cup {m}, !.joined = @ \cup {m}, !.reports[m] = report,
                                        !.life[m] = r.life]
          /\ net' = [Called EXCEPT ![m] = [phase |-> "waits", ask |-> r]]

(* What a leader may make of the reports: a partition that a member reports is that member's, or nobody's as yet. *)
TakesNothingAway(target) ==
    \A m \in Members : \A p \in target[m] :
        /\ p \in there /\ m \in room.in /\ Latest(p) \subseteq {m}
        /\ \A n \in Members \ {m} : p \notin target[n]
(* Which of these it makes: all that nobody reports is somebody's, and a member loses what is more than its share. *)
Plans ==
    {target \in {[m \in Members |-> {p \in there : f[p] = {m}}] :
                  f \in [there -> {{m} : m \in room.in} \cup {{}}]} :
     /\ TakesNothingAway(target)
     /\ \A p \in there : Latest(p) = {} => \E m \in room.in : p \in target[m]
     /\ \A m \in room.in :
        LET had == {p \in there : m \in Latest(p)}
            least == Cardinality(there) \div Cardinality(room.in)
        IN had \subseteq target[m] \/ (target[m] \subseteq had /\ Cardinality(target[m]) >= least)}

SyncOld(m, r) ==
    IF room.phase = "preparing"
    THEN net' = [net EXCEPT ![m] = Again(m)] /\ UNCHANGED <<mem, lag, room>>
    ELSE IF room.phase = "stable"
    THEN /\ net' = [net EXCEPT ![m] = Reply(room.gen, FALSE, TRUE, mem.target[m] \cap there, lag)]
         /\ UNCHANGED <<mem, lag, room>>
    ELSE IF m \notin room.lead
    THEN net' = [net EXCEPT ![m] = [phase |-> "waits", ask |-> r]] /\ UNCHANGED <<mem, lag, room>>
    ELSE \E target \in Plans :
         /\ Emit(Classic(mem, room.in, room.gen, target, room.reports, room.life, TRUE))
         /\ room' = [room EXCEPT !.phase = "stable", !.lead = {}]
         /\ net' = [n \in Members |-> IF n = m \/ Waits(n)
                                      THEN Reply(room.gen, FALSE, TRUE, target[n], lag') ELSE net[n]]

(* An id that a member was given, and did not use yet, may be forgotten: it comes again. *)
HandleOld(m) ==
    /\ net[m].phase = "sent" /\ IsClassic
    /\ LET r == net[m].ask
       IN \/ /\ ~PassesOld(m, r) /\ (m \in Classics \/ r.epoch > 0)
             /\ net' = [net EXCEPT ![m] = Refused(r)] /\ UNCHANGED <<mem, lag, room, faults>>
          \/ /\ PassesOld(m, r) /\ m \notin room.in /\ Fault
             /\ net' = [net EXCEPT ![m] = Refused(r)] /\ UNCHANGED <<mem, lag, room>>
          \/ /\ PassesOld(m, r) /\ UNCHANGED faults
             /\ \/ r.does = "join" /\ JoinOld(m, r) /\ UNCHANGED <<mem, lag>>
                \/ r.does = "sync" /\ SyncOld(m, r)
                \/ /\ r.does = "stay" /\ UNCHANGED <<mem, lag, room>>
                   /\ LET called == room.phase = "preparing"
                      IN net' = [net EXCEPT ![m] = Reply(room.gen, called, FALSE, {}, lag)]
    /\ UNCHANGED <<there, disk, client, late, acked, commit>>

(* All wait in JoinGroup: the next generation, or an empty group. Who is late was removed before. *)
EndJoins ==
    /\ room.phase = "preparing" /\ room.in = room.joined
    /\ LET gen == mem.epoch + 1
       IN IF room.in = {}
          THEN /\ Emit(Classic(mem, {}, gen, Empty.target, Empty.reports, Empty.life, TRUE))
               /\ room' = Loaded(mem') /\ UNCHANGED net
          ELSE /\ Emit([mem EXCEPT !.epoch = gen])
               /\ \E m \in room.in :
                  room' = [room EXCEPT !.phase = "completing", !.gen = gen, !.joined = {}, !.lead = {m}]
               /\ net' = [m \in Members |->
                          IF Waits(m) THEN Reply(gen, FALSE, FALSE, {}, lag') ELSE net[m]]
    /\ UNCHANGED <<there, disk, client, late, acked, faults, commit>>

Removed(s, m) ==
    IF MayDowngrade /\ s.in \ {m} # {} /\ s.in \ {m} \subseteq Classics THEN Downgraded(s, m) ELSE Without(s, m)

(* A member leaves the group, or is removed from it. *)
Remove(m) ==
    IF IsClassic
    THEN /\ m \in room.in
         /\ room' = [Preparing EXCEPT !.in = @ \ {m}, !.joined = @ \ {m}, !.reports[m] = Silent, !.life[m] = 0]
         /\ net' = IF Waits(m) THEN [Called EXCEPT ![m] = Refused(net[m].ask)] ELSE Called
         /\ UNCHANGED <<mem, lag>>
    ELSE m \in mem.in /\ Emit(Removed(mem, m)) /\ room' = Loaded(mem') /\ UNCHANGED net

(* ---- members ---- *)

(* Whether it says all, whatever it said before. *)
SaysAll(c) == {c.full}

(* Its positions once it owns these: it fetches those of what it did not have. Without commits there is nothing
   to fetch, and TLC has less to visit. *)
Blind(c, owned) == IF MaxOffset = 0 THEN {} ELSE (c.blind \cap owned) \cup (owned \ c.owned)
Known(c, owned) == [p \in Partitions |-> IF p \in owned \cap c.owned THEN c.pos[p] ELSE 0]
Owning(c, owned) == [c EXCEPT !.owned = owned, !.wanted = owned, !.pos = Known(c, owned), !.blind = Blind(c, owned)]

(* A classic member that joins keeps its partitions, or gives all of them up before (an eager one). It names
   topics, so it reports, and gets, partitions that there are. *)
Keeps(c, does) == IF does = "join" THEN {c.owned, {}} ELSE {c.owned}
Asks(c) == {c.does}

SendClassic(m) ==
    /\ \E does \in Asks(client[m]) : \E owned \in Keeps(client[m], does) :
       LET c == client[m]
           r == [epoch |-> c.epoch, owned |-> owned \cap there, says |-> TRUE, full |-> FALSE, life |-> c.life,
                 does |-> does]
       IN /\ net' = [net EXCEPT ![m] = [phase |-> "sent", ask |-> r]]
          /\ client' = [client EXCEPT ![m] = [Owning(c, owned) EXCEPT !.does = does]]
    /\ Quiet /\ UNCHANGED <<late, faults, commit>>

SendNew(m) ==
    /\ \E full \in SaysAll(client[m]) :
       LET c == client[m]
           r == [epoch |-> c.epoch, owned |-> c.owned, says |-> full \/ c.owned # c.told, full |-> full,
                 life |-> c.life]
       IN /\ net' = [net EXCEPT ![m] = [phase |-> "sent", ask |-> r]]
          /\ client' = [client EXCEPT ![m].told = c.owned]
    /\ Quiet /\ UNCHANGED <<late, faults, commit>>

Send(m) == /\ net[m].phase = "idle" /\ commit[m].phase # "sent"
           /\ IF m \in Classics THEN SendClassic(m) ELSE SendNew(m)

Given(s, m) == IF m \in Classics THEN Of(s.got[m]) \cap there ELSE Of(s.got[m])

(* The answer to a heartbeat, or to a request of a classic member, that makes `s` of `before`. *)
Answer(before, s, m, r) ==
    LET again == JoinsAgain(s, m, r)
        news == IF m \in Classics THEN r.does = "sync" /\ ~again
                ELSE r.epoch = 0 \/ r.full \/ Of(s.got[m]) # Of(before.got[m])
    IN [phase |-> "answered", ok |-> TRUE, epoch |-> s.at[m], again |-> again, news |-> news,
        all |-> Given(s, m), after |-> ToTheGroups(lag')]

HandleNew(m) ==
    /\ net[m].phase = "sent" /\ ~IsClassic
    /\ m \in Classics /\ net[m].ask.does = "join" => mem.in # {}
    /\ LET r == net[m].ask
       IN IF Passes(mem, m, r)
          THEN \E s \in Beaten(mem, m, r) : Emit(s) /\ net' = [net EXCEPT ![m] = Answer(mem, s, m, r)]
          ELSE net' = [net EXCEPT ![m] = Refused(r)] /\ UNCHANGED <<mem, lag>>
    /\ UNCHANGED <<there, disk, room, client, late, acked, faults, commit>>

(* The first heartbeat of the consumer protocol. Members that wait have to join again. *)
Upgrade(m) ==
    /\ net[m].phase = "sent" /\ IsClassic /\ m \notin Classics /\ net[m].ask.epoch = 0 /\ room.in # {}
    /\ LET r == net[m].ask
           before == Upgraded(mem)
       IN \E s \in Beaten(before, m, r) :
          /\ Emit(s)
          /\ net' = [n \in Members |-> IF n = m THEN Answer(before, s, m, r)
                                       ELSE IF Waits(n) THEN Again(n) ELSE net[n]]
    /\ room' = NoRoom
    /\ UNCHANGED <<there, disk, client, late, acked, faults, commit>>

Handle(m) == HandleNew(m) \/ HandleOld(m) \/ Upgrade(m)

(* While a target is on its way to the log, a member that says only that it is there, and whose step towards the
   target would move no partition, may go on in its epoch. It is answered at once if what it has is durable, or
   behind the target. *)
TargetIsOnItsWay == \E i \in 1..Len(lag) : lag[i].aim # (IF i = 1 THEN disk ELSE lag[i - 1]).aim

MayGoOn(m, r) ==
    LET then == Reconciled(mem, m, r)
    IN /\ m \notin Classics /\ m \in mem.in \ mem.away /\ r.life = mem.life[m]
       /\ r.epoch > 0 /\ r.epoch = mem.at[m] /\ r.epoch # mem.aim /\ ~r.says /\ ~r.full
       /\ mem.seen = there /\ TargetIsOnItsWay
       /\ then.got[m] = mem.got[m] /\ Of(mem.due[m]) = {} /\ Of(then.due[m]) = {}

IsDurable(m) == m \in disk.in /\ disk.at[m] = mem.at[m] /\ disk.got[m] = mem.got[m]

GoOn(m) ==
    /\ net[m].phase = "sent" /\ MayGoOn(m, net[m].ask)
    /\ \E after \in {ToTheGroups(lag)} \cup (IF IsDurable(m) THEN {0} ELSE {}) :
       net' = [net EXCEPT ![m] = [phase |-> "answered", ok |-> TRUE, epoch |-> mem.at[m], again |-> FALSE,
                                  news |-> FALSE, all |-> Given(mem, m), after |-> after]]
    /\ Quiet /\ UNCHANGED <<client, late, faults, commit>>

(* What SyncGroup does not give it again it gives up, and joins again to say so. *)
HeardClassic(m) ==
    LET a == net[m]
        c == client[m]
        owned == IF a.news THEN a.all ELSE c.owned
    IN [Owning(c, owned) EXCEPT !.epoch = a.epoch,
            !.does = IF a.again \/ ~(c.owned \subseteq owned) THEN "join"
                     ELSE IF c.does = "join" THEN "sync" ELSE "stay"]

HeardNew(m) ==
    LET a == net[m]
        c == client[m]
        wanted == IF a.news THEN a.all ELSE c.wanted
        owned == IF c.owned \subseteq wanted THEN wanted ELSE c.owned
    IN [c EXCEPT !.epoch = a.epoch, !.owned = owned, !.wanted = wanted, !.full = FALSE,
                 !.pos = Known(c, owned), !.blind = Blind(c, owned)]

(* `after`: as many events have to be durable before it leaves. *)
Receive(m) ==
    /\ net[m].phase = "answered" /\ net[m].after = 0
    /\ client' = [client EXCEPT ![m] = IF ~net[m].ok THEN Born(@.life)
                                      ELSE IF m \in Classics THEN HeardClassic(m) ELSE HeardNew(m)]
    /\ net' = [net EXCEPT ![m] = Idle]
    /\ Quiet /\ UNCHANGED <<late, faults, commit>>

Revoke(m) ==
    /\ ~(client[m].owned \subseteq client[m].wanted)
    /\ LET c == client[m]
       IN client' = [client EXCEPT ![m] = Owning(c, c.wanted)]
    /\ Quiet /\ UNCHANGED <<net, late, faults, commit>>

(* Nobody but the member commits what it has, so what its fetch shows is what is durable when it hears it. *)
Fetch(m, p) ==
    /\ p \in client[m].blind
    /\ client' = [client EXCEPT ![m].blind = @ \ {p}, ![m].pos[p] = disk.off[p]]
    /\ Quiet /\ UNCHANGED <<net, late, faults, commit>>

MayCommit(s, m, p, e) ==
    /\ m \in s.in /\ m \notin s.away
    /\ \/ e = s.at[m]
       \/ /\ e < s.at[m]
          /\ \/ s.got[m][p] # 0 /\ s.got[m][p] <= e
             \/ s.due[m][p] # 0 /\ s.due[m][p] <= e

(* In a classic group: while its leader assigns, what the member had may be another's. *)
Counts(m, r) == IF IsClassic THEN m \in room.in /\ r.epoch = room.gen /\ room.phase # "completing"
                ELSE MayCommit(mem, m, r.p, r.epoch)

(* It has read one more record. *)
SendCommit(m, p) ==
    /\ commit[m].phase = "idle" /\ net[m].phase # "sent"
    /\ p \in client[m].owned \ client[m].blind /\ client[m].epoch > 0 /\ client[m].pos[p] < MaxOffset
    /\ commit' = [commit EXCEPT ![m] = [phase |-> "sent", p |-> p, to |-> client[m].pos[p] + 1,
                                        epoch |-> client[m].epoch]]
    /\ client' = [client EXCEPT ![m].pos[p] = @ + 1]
    /\ Quiet /\ UNCHANGED <<net, late, faults>>

HandleCommit(m) ==
    /\ commit[m].phase = "sent"
    /\ LET r == commit[m]
           answered(ok, after) == [phase |-> "answered", ok |-> ok, p |-> r.p, to |-> r.to, epoch |-> r.epoch,
                                   after |-> after]
       IN IF Counts(m, r)
          THEN /\ Emit([mem EXCEPT !.off[r.p] = r.to])
               /\ commit' = [commit EXCEPT ![m] = answered(TRUE, Len(lag'))]
          ELSE /\ commit' = [commit EXCEPT ![m] = answered(FALSE, ToTheGroups(lag))]
               /\ UNCHANGED <<mem, lag>>
    /\ UNCHANGED <<there, disk, room, client, net, late, acked, faults>>

Acknowledged(m) ==
    /\ commit[m].phase = "answered" /\ commit[m].after = 0
    /\ acked' = IF commit[m].ok THEN [acked EXCEPT ![commit[m].p] = Last({@, commit[m].to})] ELSE acked
    /\ commit' = [commit EXCEPT ![m] = Idle]
    /\ UNCHANGED <<there, mem, lag, disk, room, client, net, late, faults>>

(* ---- the log, and what goes wrong ---- *)

Flush ==
    /\ lag # <<>>
    /\ disk' = Head(lag) /\ lag' = Tail(lag)
    /\ LET nearer(a) == IF a.phase = "answered" /\ a.after > 0 THEN [a EXCEPT !.after = @ - 1] ELSE a
       IN /\ net' = [m \in Members |-> nearer(net[m])]
          /\ commit' = [m \in Members |-> nearer(commit[m])]
    /\ UNCHANGED <<there, mem, room, client, late, acked, faults>>

Failed(m) == [client[m] EXCEPT !.full = TRUE, !.does = IF @ = "sync" THEN "join" ELSE @]

(* The request, or the answer, is lost; with LateRequests a request may also come much later. *)
Lose(m) ==
    /\ Fault /\ net[m].phase # "idle"
    /\ client' = [client EXCEPT ![m] = Failed(m)]
    /\ \/ late' = late
       \/ LateRequests /\ net[m].phase = "sent" /\ late' = [late EXCEPT ![m] = {net[m].ask}]
    /\ net' = [net EXCEPT ![m] = Idle]
    /\ Quiet /\ UNCHANGED commit

LoseCommit(m) ==
    /\ Fault /\ commit[m].phase # "idle"
    /\ commit' = [commit EXCEPT ![m] = Idle]
    /\ Quiet /\ UNCHANGED <<client, net, late>>

HandleLate(m) ==
    /\ ~IsClassic
    /\ \E r \in late[m] :
        /\ IF Passes(mem, m, r) THEN \E s \in Beaten(mem, m, r) : Emit(s) ELSE UNCHANGED <<mem, lag>>
        /\ late' = [late EXCEPT ![m] = {}]
    /\ UNCHANGED <<there, disk, room, client, net, acked, faults, commit>>

FailOver ==
    /\ Fault
    /\ \E n \in 0..Len(lag) :
        /\ disk' = IF n = 0 THEN disk ELSE lag[n]
        /\ mem' = disk'
    /\ lag' = <<>> /\ room' = Loaded(mem')
    /\ client' = [m \in Members |-> IF net[m].phase \in {"answered", "waits"} THEN Failed(m) ELSE client[m]]
    /\ net' = [m \in Members |-> IF net[m].phase \in {"answered", "waits"} THEN Idle ELSE net[m]]
    /\ commit' = [m \in Members |-> IF commit[m].phase = "answered" THEN Idle ELSE commit[m]]
    /\ UNCHANGED <<there, late, acked>>

(* If a fail-over takes back that a static member went, another process is to find its place taken. *)
Successor(m) == Born(IF m \in Statics THEN client[m].life + 1 ELSE client[m].life)

(* A static member's process dies without a word, and another one comes in its stead. *)
Crash(m) ==
    /\ Fault /\ m \in Statics
    /\ client' = [client EXCEPT ![m] = Successor(m)]
    /\ net' = [net EXCEPT ![m] = Idle] /\ commit' = [commit EXCEPT ![m] = Idle]
    /\ Quiet /\ UNCHANGED late

IsDead(m) == m \in mem.in \ mem.away /\ mem.life[m] # client[m].life

(* Its session, or its time to give up, is over. *)
Expire(m) ==
    /\ Remove(m)
    /\ IF IsDead(m) THEN UNCHANGED faults ELSE Fault
    /\ UNCHANGED <<there, disk, client, late, acked, commit>>

Leave(m) ==
    /\ Fault /\ Remove(m) /\ net[m].phase = "idle" /\ commit[m].phase # "sent"
    /\ client' = [client EXCEPT ![m] = Successor(m)]
    /\ UNCHANGED <<there, disk, late, acked, commit>>

(* It keeps what it has, and its successor may commit what it has read in whatever epoch (KIP-1251). *)
Ever == 1
GoAway(m) ==
    /\ Fault /\ m \in Statics \ Classics /\ m \in mem.in /\ m \notin mem.away /\ client[m].epoch > 0
    /\ net[m].phase = "idle" /\ commit[m].phase # "sent"
    /\ Emit([mem EXCEPT !.away = @ \cup {m}, !.at[m] = 0, !.due[m] = Nothing,
                        !.got[m] = [p \in Partitions |-> IF @[p] = 0 THEN 0 ELSE Ever]])
    /\ client' = [client EXCEPT ![m] = Successor(m)]
    /\ UNCHANGED <<there, disk, room, net, late, acked, commit>>

(* A topic is made, grows, is deleted. *)
Become(new) ==
    /\ Fault /\ there' = new
    /\ UNCHANGED <<mem, lag, disk, room, client, net, late, acked, commit>>

Next ==
    \/ \E m \in Members : \/ Send(m) \/ Handle(m) \/ GoOn(m) \/ Receive(m) \/ Revoke(m) \/ Lose(m) \/ HandleLate(m)
                          \/ Expire(m) \/ Crash(m) \/ Leave(m) \/ GoAway(m)
                          \/ HandleCommit(m) \/ Acknowledged(m) \/ LoseCommit(m)
                          \/ \E p \in Partitions : Fetch(m, p) \/ SendCommit(m, p)
    \/ Flush \/ FailOver \/ EndJoins
    \/ \E p \in Partitions : \/ p \in there /\ Become(there \ {p})
                             \/ p \notin there \cup AtFirst /\ Become(there \cup {p})

Fairness == /\ WF_vars(Flush) /\ WF_vars(EndJoins)
            /\ \A m \in Members : /\ WF_vars(Send(m)) /\ WF_vars(Handle(m)) /\ WF_vars(Receive(m))
                                 /\ WF_vars(Revoke(m)) /\ WF_vars(IsDead(m) /\ Expire(m))
                                 /\ WF_vars(HandleCommit(m))

Spec == Init /\ [][Next]_vars /\ Fairness

(* ---- what holds ---- *)

NoPartitionHasTwoHolders == \A s \in {mem, disk} : \A p \in Partitions :
    Cardinality({m \in s.in : p \in Held(s, m)}) <= 1

(* A member whose epoch the coordinator would accept. One that was removed hears of it at its next heartbeat. *)
Present(m) ==
    IF IsClassic THEN m \in room.in /\ 0 < client[m].epoch /\ client[m].epoch = room.gen
    ELSE m \in mem.in /\ m \notin mem.away /\ 0 < client[m].epoch /\ client[m].epoch <= mem.at[m]

(* A classic member hears when it joins that a topic is deleted. *)
Owns(m) == IF m \in Classics THEN client[m].owned \cap there ELSE client[m].owned

(* In a classic group it has what it was assigned, or what it reported since. *)
Holds(m) == Held(mem, m) \cup (IF IsClassic THEN room.reports[m].owned ELSE {})

OwnersHoldWhatTheyOwn == \A m \in Members : Present(m) => Owns(m) \subseteq Holds(m)

NoPartitionHasTwoOwners == \A m, n \in Members :
    m # n /\ Present(m) /\ Present(n) => Owns(m) \cap Owns(n) = {}

AtTheTargetAMemberHasItsOwn == \A m \in mem.in \ mem.away :
    mem.state[m] = "stable" /\ mem.at[m] = mem.aim => Of(mem.got[m]) \cap there = mem.target[m] \cap there

EpochsAreInOrder == mem.aim <= mem.epoch /\ room.gen <= mem.epoch /\ \A m \in mem.in : mem.at[m] <= mem.aim

Leaves(a) == a.phase = "answered" /\ a.after = 0
ShowsAll(s, m, all) == IF m \in Classics THEN all \subseteq Of(s.got[m]) ELSE all = Of(s.got[m])
ShowsOld(s, m, a) ==
    a.ok /\ ~a.again => a.epoch <= s.epoch /\ (a.news => a.epoch = s.aim /\ a.all \subseteq s.target[m])
Shows(s, m, a) == IF s.protocol = "classic" THEN ShowsOld(s, m, a)
                  ELSE IF a.ok THEN a.epoch = s.at[m] /\ ShowsAll(s, m, a.all) ELSE ~Passes(s, m, a.ask)
ShowsCommit(s, m, a) == IF a.ok THEN a.to = s.off[a.p] 
                        ELSE s.protocol = "consumer" => ~MayCommit(s, m, a.p, a.epoch)

(* When an answer may leave, what it says is what the log says. *)
AnswersShowWhatIsDurable == [][\A m \in Members :
    /\ Leaves(net'[m]) /\ ~Leaves(net[m]) => Shows(disk', m, net'[m])
    /\ Leaves(commit'[m]) /\ ~Leaves(commit[m]) => ShowsCommit(disk', m, commit'[m])
    /\ \A p \in (client[m].blind \ client'[m].blind) \cap client'[m].owned : client'[m].pos[p] = disk.off[p]]_vars

OnlyWhatExistsIsGiven == [][\A m \in Members, p \in Partitions :
    Len(lag') > Len(lag) /\ mem.got[m][p] = 0 /\ mem'.got[m][p] # 0 => p \in there]_vars

AcknowledgedCommitsAreDurable == \A p \in Partitions : acked[p] <= disk.off[p]

EpochsNeverGoBack == [][/\ disk'.epoch >= disk.epoch /\ disk'.aim >= disk.aim
                        /\ \A m \in (disk.in \cap disk'.in) \ (disk.away \cup disk'.away) :
                              disk'.at[m] >= disk.at[m] \/ disk'.epoch > disk.epoch]_vars

(* While a member holds a partition, its commits only go on: with MayCommit, those of a former holder never
   come between. *)
CommitsGoOn == [][\A m \in Members, p \in Partitions :
                    mem'.off[p] < mem.off[p] => lag' = <<>> /\ mem' = disk']_vars

(* A target that is up to date gives each partition that there is to one member. *)
TargetsAreWhole == ~IsClassic /\ mem.aim = mem.epoch /\ mem.in # {} =>
    \A p \in mem.seen : Cardinality({m \in mem.in : p \in mem.target[m]}) = 1

Settled == /\ mem.in = Members /\ mem.away = {} /\ mem.aim = mem.epoch /\ mem.seen = there
           /\ \A m \in Members : mem.state[m] = "stable" /\ mem.at[m] = mem.aim /\ client[m].owned = mem.target[m]
           /\ UNION {client[m].owned : m \in Members} = there

Converges == <>[]Settled
=============================================================================
