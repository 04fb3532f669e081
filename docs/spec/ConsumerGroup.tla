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
   what that came to; Heartbeat says whether it has to join again. Its generation is its epoch here. The group stays
   one of the consumer protocol: the first JoinGroup of an empty group, which makes a classic one, is not handled
   here, and when the last member of the consumer protocol goes, the migration policy keeps the group as it is.

   The requests of one member are handled in the order in which it sent them. The protocol rests on that: with
   LateRequests a request that its sender has given up is handled after a later one, and TLC shows how the
   partitions of its sender are then given away while it still owns them (`late.cfg`). *)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS Members, Statics, Classics, Partitions, AtFirst, MaxFaults, MaxOffset, LateRequests,
          TargetsWait   (* whether a heartbeat may leave an old target as it is: there is a least time between two *)

VARIABLES there, mem, lag, disk, client, net, late, acked, faults,
          commit   (* the commit of each member that is on its way; at most one of its requests is not handled yet *)
vars == <<there, mem, lag, disk, client, net, late, acked, faults, commit>>

Nothing == [p \in Partitions |-> 0]
Of(some) == {p \in Partitions : some[p] # 0}

Empty == [epoch |-> 1, aim |-> 0, in |-> {}, away |-> {}, seen |-> {},
          target |-> [m \in Members |-> {}], at |-> [m \in Members |-> 0], prev |-> [m \in Members |-> 0],
          state |-> [m \in Members |-> "stable"],
          life |-> [m \in Members |-> 0],        (* which of the processes that were m has its place *)
          got |-> [m \in Members |-> Nothing],   (* partition -> the epoch in which the member got it; 0: not its *)
          due |-> [m \in Members |-> Nothing],   (* likewise, what it has to give up *)
          off |-> [p \in Partitions |-> 0]]

(* `blind`: partitions that it owns, and has not fetched the offset of. `does`: what a classic member asks next,
   to "join", to "sync" or to "stay". *)
Born(life) == [epoch |-> 0, owned |-> {}, wanted |-> {}, told |-> {}, full |-> TRUE, life |-> life,
               pos |-> Nothing, blind |-> {}, does |-> "join"]
Idle == [phase |-> "idle"]

Start == /\ mem = Empty /\ disk = Empty /\ lag = <<>>
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
              !.prev[m] = 0, !.state[m] = "stable", !.life[m] = 0, !.got[m] = Nothing, !.due[m] = Nothing]

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

(* All states that a request may make of a state: a heartbeat, or JoinGroup. *)
Beaten(s, m, r) ==
    IF m \in Classics /\ r.does # "join" THEN {s}
    ELSE LET joined == IF r.epoch = 0 \/ m \in Classics THEN Joined(s, m, r) ELSE s
         IN {Reconciled(t, m, r) : t \in Aimed(Noticed(joined))}

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

Quiet == UNCHANGED <<there, mem, lag, disk, acked>>
Fault == faults < MaxFaults /\ faults' = faults + 1

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
Keeps(c) == IF c.does = "join" THEN {c.owned, {}} ELSE {c.owned}

SendClassic(m) ==
    /\ \E owned \in Keeps(client[m]) :
       LET c == client[m]
           r == [epoch |-> c.epoch, owned |-> owned \cap there, says |-> TRUE, full |-> FALSE, life |-> c.life,
                 does |-> c.does]
       IN /\ net' = [net EXCEPT ![m] = [phase |-> "sent", ask |-> r]]
          /\ client' = [client EXCEPT ![m] = Owning(c, owned)]
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

Handle(m) ==
    /\ net[m].phase = "sent"
    /\ m \in Classics /\ net[m].ask.does = "join" => mem.in # {}
    /\ LET r == net[m].ask
       IN IF Passes(mem, m, r)
          THEN \E s \in Beaten(mem, m, r) :
               /\ Emit(s)
               /\ LET again == JoinsAgain(s, m, r)
                      news == IF m \in Classics THEN r.does = "sync" /\ ~again
                              ELSE r.epoch = 0 \/ r.full \/ Of(s.got[m]) # Of(mem.got[m])
                  IN net' = [net EXCEPT ![m] = [phase |-> "answered", ok |-> TRUE, epoch |-> s.at[m], again |-> again,
                                                news |-> news, all |-> Given(s, m), after |-> ToTheGroups(lag')]]
          ELSE /\ net' = [net EXCEPT ![m] = [phase |-> "answered", ok |-> FALSE, ask |-> r,
                                             after |-> ToTheGroups(lag)]]
               /\ UNCHANGED <<mem, lag>>
    /\ UNCHANGED <<there, disk, client, late, acked, faults, commit>>

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
       IN IF MayCommit(mem, m, r.p, r.epoch)
          THEN /\ Emit([mem EXCEPT !.off[r.p] = r.to])
               /\ commit' = [commit EXCEPT ![m] = answered(TRUE, Len(lag'))]
          ELSE /\ commit' = [commit EXCEPT ![m] = answered(FALSE, ToTheGroups(lag))]
               /\ UNCHANGED <<mem, lag>>
    /\ UNCHANGED <<there, disk, client, net, late, acked, faults>>

Acknowledged(m) ==
    /\ commit[m].phase = "answered" /\ commit[m].after = 0
    /\ acked' = IF commit[m].ok THEN [acked EXCEPT ![commit[m].p] = Last({@, commit[m].to})] ELSE acked
    /\ commit' = [commit EXCEPT ![m] = Idle]
    /\ UNCHANGED <<there, mem, lag, disk, client, net, late, faults>>

(* ---- the log, and what goes wrong ---- *)

Flush ==
    /\ lag # <<>>
    /\ disk' = Head(lag) /\ lag' = Tail(lag)
    /\ LET nearer(a) == IF a.phase = "answered" /\ a.after > 0 THEN [a EXCEPT !.after = @ - 1] ELSE a
       IN /\ net' = [m \in Members |-> nearer(net[m])]
          /\ commit' = [m \in Members |-> nearer(commit[m])]
    /\ UNCHANGED <<there, mem, client, late, acked, faults>>

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
    /\ \E r \in late[m] :
        /\ IF Passes(mem, m, r) THEN \E s \in Beaten(mem, m, r) : Emit(s) ELSE UNCHANGED <<mem, lag>>
        /\ late' = [late EXCEPT ![m] = {}]
    /\ UNCHANGED <<there, disk, client, net, acked, faults, commit>>

FailOver ==
    /\ Fault
    /\ \E n \in 0..Len(lag) :
        /\ disk' = IF n = 0 THEN disk ELSE lag[n]
        /\ mem' = disk'
    /\ lag' = <<>>
    /\ client' = [m \in Members |-> IF net[m].phase = "answered" THEN Failed(m) ELSE client[m]]
    /\ net' = [m \in Members |-> IF net[m].phase = "answered" THEN Idle ELSE net[m]]
    /\ commit' = [m \in Members |-> IF commit[m].phase = "answered" THEN Idle ELSE commit[m]]
    /\ UNCHANGED <<there, late, acked>>

(* A static member's process dies without a word, and another one comes in its stead. *)
Crash(m) ==
    /\ Fault /\ m \in Statics
    /\ client' = [client EXCEPT ![m] = Born(client[m].life + 1)]
    /\ net' = [net EXCEPT ![m] = Idle] /\ commit' = [commit EXCEPT ![m] = Idle]
    /\ Quiet /\ UNCHANGED late

IsDead(m) == m \in mem.in \ mem.away /\ mem.life[m] # client[m].life

(* Its session, or its time to give up, is over. *)
Expire(m) ==
    /\ m \in mem.in
    /\ IF IsDead(m) THEN UNCHANGED faults ELSE Fault
    /\ Emit(Without(mem, m))
    /\ UNCHANGED <<there, disk, client, net, late, acked, commit>>

Leave(m) ==
    /\ Fault /\ m \in mem.in /\ net[m].phase = "idle" /\ commit[m].phase # "sent"
    /\ Emit(Without(mem, m))
    /\ client' = [client EXCEPT ![m] = Born(client[m].life)]
    /\ UNCHANGED <<there, disk, net, late, acked, commit>>

(* It keeps what it has, and its successor may commit what it has read in whatever epoch (KIP-1251). *)
Ever == 1
GoAway(m) ==
    /\ Fault /\ m \in Statics \ Classics /\ m \in mem.in /\ m \notin mem.away /\ client[m].epoch > 0
    /\ net[m].phase = "idle" /\ commit[m].phase # "sent"
    /\ Emit([mem EXCEPT !.away = @ \cup {m}, !.at[m] = 0, !.due[m] = Nothing,
                        !.got[m] = [p \in Partitions |-> IF @[p] = 0 THEN 0 ELSE Ever]])
    /\ client' = [client EXCEPT ![m] = Born(client[m].life)]
    /\ UNCHANGED <<there, disk, net, late, acked, commit>>

(* A topic is made, grows, is deleted. *)
Become(new) ==
    /\ Fault /\ there' = new
    /\ UNCHANGED <<mem, lag, disk, client, net, late, acked, commit>>

Next ==
    \/ \E m \in Members : \/ Send(m) \/ Handle(m) \/ GoOn(m) \/ Receive(m) \/ Revoke(m) \/ Lose(m) \/ HandleLate(m)
                          \/ Expire(m) \/ Crash(m) \/ Leave(m) \/ GoAway(m)
                          \/ HandleCommit(m) \/ Acknowledged(m) \/ LoseCommit(m)
                          \/ \E p \in Partitions : Fetch(m, p) \/ SendCommit(m, p)
    \/ Flush \/ FailOver
    \/ \E p \in Partitions : \/ p \in there /\ Become(there \ {p})
                             \/ p \notin there \cup AtFirst /\ Become(there \cup {p})

Fairness == /\ WF_vars(Flush)
            /\ \A m \in Members : /\ WF_vars(Send(m)) /\ WF_vars(Handle(m)) /\ WF_vars(Receive(m))
                                 /\ WF_vars(Revoke(m)) /\ WF_vars(IsDead(m) /\ Expire(m))
                                 /\ WF_vars(HandleCommit(m))

Spec == Init /\ [][Next]_vars /\ Fairness

(* ---- what holds ---- *)

NoPartitionHasTwoHolders == \A s \in {mem, disk} : \A p \in Partitions :
    Cardinality({m \in s.in : p \in Held(s, m)}) <= 1

(* A member whose epoch the coordinator would accept. One that was removed hears of it at its next heartbeat. *)
Present(m) == m \in mem.in /\ m \notin mem.away /\ 0 < client[m].epoch /\ client[m].epoch <= mem.at[m]

(* A classic member hears when it joins that a topic is deleted. *)
Owns(m) == IF m \in Classics THEN client[m].owned \cap there ELSE client[m].owned

OwnersHoldWhatTheyOwn == \A m \in Members : Present(m) => Owns(m) \subseteq Held(mem, m)

NoPartitionHasTwoOwners == \A m, n \in Members :
    m # n /\ Present(m) /\ Present(n) => Owns(m) \cap Owns(n) = {}

AtTheTargetAMemberHasItsOwn == \A m \in mem.in \ mem.away :
    mem.state[m] = "stable" /\ mem.at[m] = mem.aim => Of(mem.got[m]) \cap there = mem.target[m] \cap there

EpochsAreInOrder == mem.aim <= mem.epoch /\ \A m \in mem.in : mem.at[m] <= mem.aim

Leaves(a) == a.phase = "answered" /\ a.after = 0
ShowsAll(s, m, all) == IF m \in Classics THEN all \subseteq Of(s.got[m]) ELSE all = Of(s.got[m])
Shows(s, m, a) == IF a.ok THEN a.epoch = s.at[m] /\ ShowsAll(s, m, a.all) ELSE ~Passes(s, m, a.ask)
ShowsCommit(s, m, a) == IF a.ok THEN a.to = s.off[a.p] ELSE ~MayCommit(s, m, a.p, a.epoch)

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
TargetsAreWhole == mem.aim = mem.epoch /\ mem.in # {} =>
    \A p \in mem.seen : Cardinality({m \in mem.in : p \in mem.target[m]}) = 1

Settled == /\ mem.in = Members /\ mem.away = {} /\ mem.aim = mem.epoch /\ mem.seen = there
           /\ \A m \in Members : mem.state[m] = "stable" /\ mem.at[m] = mem.aim /\ client[m].owned = mem.target[m]
           /\ UNION {client[m].owned : m \in Members} = there

Converges == <>[]Settled
=============================================================================
