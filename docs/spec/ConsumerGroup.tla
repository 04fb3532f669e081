--------------------------- MODULE ConsumerGroup ---------------------------
(* A group of the consumer protocol (KIP-848) as Ringleader's coordinator keeps it: heartbeats, a target that
   any balanced assignor may make, reconciliation member by member, static members that go away and come back,
   commits of members, and fail-over.

   What is durable is the last value of each key of a compacted log: `disk`. The machine's memory, `mem`, is
   what the log says plus the events that are on their way to it, `lag`; each event is one append, in the log
   whole or not at all. An answer leaves when the events before it are durable. A fail-over keeps any prefix
   of the events on their way. All members subscribe to one topic.

   The requests of one member are handled in the order in which it sent them. The protocol rests on that: with
   LateRequests a request that its sender has given up is handled after a later one, and TLC shows how the
   partitions of its sender are then given away while it still owns them (`late.cfg`). *)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS Members, Statics, Partitions, MaxFaults, MaxOffset, LateRequests,
          TargetsWait   (* whether a heartbeat may leave an old target as it is: there is a least time between two *)

VARIABLES mem, lag, disk, client, net, late, acked, faults
vars == <<mem, lag, disk, client, net, late, acked, faults>>

Nothing == [p \in Partitions |-> 0]
Of(some) == {p \in Partitions : some[p] # 0}

Empty == [epoch |-> 1, aim |-> 0, in |-> {}, away |-> {},
          target |-> [m \in Members |-> {}], at |-> [m \in Members |-> 0], prev |-> [m \in Members |-> 0],
          state |-> [m \in Members |-> "stable"],
          life |-> [m \in Members |-> 0],        (* which of the processes that were m has its place *)
          got |-> [m \in Members |-> Nothing],   (* partition -> the epoch in which the member got it; 0: not its *)
          due |-> [m \in Members |-> Nothing],   (* likewise, what it has to give up *)
          off |-> [p \in Partitions |-> 0]]

Born(life) == [epoch |-> 0, owned |-> {}, wanted |-> {}, told |-> {}, full |-> TRUE, pos |-> Nothing, life |-> life]
Idle == [phase |-> "idle"]

Init == /\ mem = Empty /\ disk = Empty /\ lag = <<>>
        /\ client = [m \in Members |-> Born(0)]
        /\ net = [m \in Members |-> Idle]
        /\ late = [m \in Members |-> {}]
        /\ acked = [p \in Partitions |-> 0]
        /\ faults = 0

(* ---- the coordinator ---- *)

Held(s, m) == Of(s.got[m]) \cup Of(s.due[m])

Without(s, m) ==
    [s EXCEPT !.in = @ \ {m}, !.away = @ \ {m}, !.epoch = @ + 1, !.target[m] = {}, !.at[m] = 0,
              !.prev[m] = 0, !.state[m] = "stable", !.life[m] = 0, !.got[m] = Nothing, !.due[m] = Nothing]

(* A static member's place is not another process's before the first one is away, or is removed. *)
Passes(s, m, r) ==
    \/ r.epoch = 0 /\ (m \in s.in \ s.away => r.life = s.life[m])
    \/ /\ m \in s.in /\ m \notin s.away /\ r.life = s.life[m]
       /\ \/ r.epoch = s.at[m]
          \/ r.epoch = s.prev[m] /\ r.epoch < s.at[m] /\ r.says /\ r.owned \subseteq Of(s.got[m])

Joined(s, m, r) ==
    IF m \notin s.in THEN [s EXCEPT !.in = @ \cup {m}, !.epoch = @ + 1, !.life[m] = r.life]
    ELSE IF m \in s.away THEN [s EXCEPT !.away = @ \ {m}, !.prev[m] = 0, !.life[m] = r.life]
    ELSE s

Balanced(s, f) == \A m, n \in s.in :
    Cardinality({p \in Partitions : f[p] = m}) <= Cardinality({p \in Partitions : f[p] = n}) + 1

Shares(s) == {f \in [Partitions -> s.in] : Balanced(s, f)}

Aimed(s) ==
    IF s.aim = s.epoch \/ s.in = {} THEN {s}
    ELSE {[s EXCEPT !.aim = s.epoch,
                    !.target = [m \in Members |-> {p \in Partitions : f[p] = m}]] : f \in Shares(s)}
         \cup (IF TargetsWait /\ s.aim > 0 THEN {s} ELSE {})

Reconciled(s, m, r) ==
    LET had == Of(s.got[m])
        kept == had \cap s.target[m]
        revoked == had \ kept
        free == {p \in s.target[m] \ kept : \A n \in s.in \ {m} : p \notin Held(s, n)}
        only(some) == [p \in Partitions |-> IF p \in some THEN s.got[m][p] ELSE 0]
    IN IF s.state[m] = "stable" /\ s.at[m] = s.aim THEN s
       ELSE IF s.state[m] = "unrevoked" /\ (~r.says \/ r.owned \cap Of(s.due[m]) # {}) THEN s
       ELSE IF revoked # {} /\ (~r.says \/ r.owned \cap revoked # {})
       THEN [s EXCEPT !.state[m] = "unrevoked", !.prev[m] = s.at[m], !.got[m] = only(kept),
                      !.due[m] = only(revoked)]
       ELSE [s EXCEPT !.state[m] = IF kept \cup free = s.target[m] THEN "stable" ELSE "unreleased",
                      !.prev[m] = s.at[m], !.at[m] = s.aim, !.due[m] = Nothing,
                      !.got[m] = [p \in Partitions |-> IF p \in free THEN s.aim ELSE only(kept)[p]]]

(* All states that a heartbeat may make of a state. *)
Beaten(s, m, r) == {Reconciled(t, m, r) : t \in Aimed(IF r.epoch = 0 THEN Joined(s, m, r) ELSE s)}

Emit(s) == /\ mem' = s
           /\ lag' = IF s = mem THEN lag ELSE Append(lag, s)

Quiet == UNCHANGED <<mem, lag, disk, acked>>
Fault == faults < MaxFaults /\ faults' = faults + 1

(* ---- members ---- *)

(* Whether it says all, whatever it said before. *)
SaysAll(c) == {c.full}

Send(m) ==
    /\ net[m].phase = "idle"
    /\ \E full \in SaysAll(client[m]) :
       LET c == client[m]
           r == [epoch |-> c.epoch, owned |-> c.owned, says |-> full \/ c.owned # c.told, full |-> full,
                 life |-> c.life]
       IN /\ net' = [net EXCEPT ![m] = [phase |-> "sent", ask |-> r]]
          /\ client' = [client EXCEPT ![m].told = c.owned]
    /\ Quiet /\ UNCHANGED <<late, faults>>

Handle(m) ==
    /\ net[m].phase = "sent"
    /\ LET r == net[m].ask
       IN IF Passes(mem, m, r)
          THEN \E s \in Beaten(mem, m, r) :
               /\ Emit(s)
               /\ LET news == r.epoch = 0 \/ r.full \/ Of(s.got[m]) # Of(mem.got[m])
                  IN net' = [net EXCEPT ![m] = [phase |-> "answered", ok |-> TRUE, epoch |-> s.at[m],
                                                news |-> news, all |-> Of(s.got[m]), after |-> Len(lag')]]
          ELSE /\ net' = [net EXCEPT ![m] = [phase |-> "answered", ok |-> FALSE, after |-> Len(lag)]]
               /\ UNCHANGED <<mem, lag>>
    /\ UNCHANGED <<disk, client, late, acked, faults>>

(* `after`: the events that were on their way when it was answered, and still are. *)
Receive(m) ==
    /\ net[m].phase = "answered" /\ net[m].after = 0
    /\ LET a == net[m]
           c == client[m]
           wanted == IF a.news THEN a.all ELSE c.wanted
           owned == IF c.owned \subseteq wanted THEN wanted ELSE c.owned
       IN client' = [client EXCEPT ![m] =
            IF ~a.ok THEN Born(c.life)
            ELSE [epoch |-> a.epoch, owned |-> owned, wanted |-> wanted, told |-> c.told, full |-> FALSE,
                  life |-> c.life,
                  pos |-> [p \in Partitions |-> IF p \in owned \ c.owned THEN mem.off[p] ELSE c.pos[p]]]]
    /\ net' = [net EXCEPT ![m] = Idle]
    /\ Quiet /\ UNCHANGED <<late, faults>>

Revoke(m) ==
    /\ ~(client[m].owned \subseteq client[m].wanted)
    /\ client' = [client EXCEPT ![m].owned = client[m].wanted,
                                ![m].pos = [p \in Partitions |->
                                    IF p \in client[m].wanted \ client[m].owned THEN mem.off[p]
                                    ELSE client[m].pos[p]]]
    /\ Quiet /\ UNCHANGED <<net, late, faults>>

MayCommit(s, m, p, e) ==
    /\ m \in s.in /\ m \notin s.away
    /\ \/ e = s.at[m]
       \/ /\ e < s.at[m]
          /\ \/ s.got[m][p] # 0 /\ s.got[m][p] <= e
             \/ s.due[m][p] # 0 /\ s.due[m][p] <= e

Commit(m, p) ==
    /\ p \in client[m].owned /\ client[m].epoch > 0 /\ client[m].pos[p] < MaxOffset
    /\ MayCommit(mem, m, p, client[m].epoch)
    /\ Emit([mem EXCEPT !.off[p] = client[m].pos[p] + 1])
    /\ client' = [client EXCEPT ![m].pos[p] = @ + 1]
    /\ UNCHANGED <<disk, net, late, acked, faults>>

(* ---- the log, and what goes wrong ---- *)

Flush ==
    /\ lag # <<>>
    /\ disk' = Head(lag) /\ lag' = Tail(lag)
    /\ acked' = disk'.off
    /\ net' = [m \in Members |-> IF net[m].phase = "answered" /\ net[m].after > 0
                                 THEN [net[m] EXCEPT !.after = @ - 1] ELSE net[m]]
    /\ UNCHANGED <<mem, client, late, faults>>

Failed(m) == [client[m] EXCEPT !.full = TRUE]

(* The request, or the answer, is lost; with LateRequests a request may also come much later. *)
Lose(m) ==
    /\ Fault /\ net[m].phase # "idle"
    /\ client' = [client EXCEPT ![m] = Failed(m)]
    /\ \/ late' = late
       \/ LateRequests /\ net[m].phase = "sent" /\ late' = [late EXCEPT ![m] = {net[m].ask}]
    /\ net' = [net EXCEPT ![m] = Idle]
    /\ Quiet

HandleLate(m) ==
    /\ \E r \in late[m] :
        /\ IF Passes(mem, m, r) THEN \E s \in Beaten(mem, m, r) : Emit(s) ELSE UNCHANGED <<mem, lag>>
        /\ late' = [late EXCEPT ![m] = {}]
    /\ UNCHANGED <<disk, client, net, acked, faults>>

FailOver ==
    /\ Fault
    /\ \E n \in 0..Len(lag) :
        /\ disk' = IF n = 0 THEN disk ELSE lag[n]
        /\ mem' = disk'
    /\ lag' = <<>>
    /\ client' = [m \in Members |-> IF net[m].phase = "answered" THEN Failed(m) ELSE client[m]]
    /\ net' = [m \in Members |-> IF net[m].phase = "answered" THEN Idle ELSE net[m]]
    /\ UNCHANGED <<late, acked>>

(* A static member's process dies without a word, and another one comes in its stead. *)
Crash(m) ==
    /\ Fault /\ m \in Statics
    /\ client' = [client EXCEPT ![m] = Born(client[m].life + 1)]
    /\ net' = [net EXCEPT ![m] = Idle]
    /\ Quiet /\ UNCHANGED late

IsDead(m) == m \in mem.in \ mem.away /\ mem.life[m] # client[m].life

(* Its session, or its time to give up, is over. *)
Expire(m) ==
    /\ m \in mem.in
    /\ IF IsDead(m) THEN UNCHANGED faults ELSE Fault
    /\ Emit(Without(mem, m))
    /\ UNCHANGED <<disk, client, net, late, acked>>

Leave(m) ==
    /\ Fault /\ m \in mem.in /\ net[m].phase = "idle"
    /\ Emit(Without(mem, m))
    /\ client' = [client EXCEPT ![m] = Born(client[m].life)]
    /\ UNCHANGED <<disk, net, late, acked>>

(* It keeps what it has, and its successor may commit what it has read in whatever epoch (KIP-1251). *)
Ever == 1
GoAway(m) ==
    /\ Fault /\ m \in Statics /\ m \in mem.in /\ m \notin mem.away /\ net[m].phase = "idle" /\ client[m].epoch > 0
    /\ Emit([mem EXCEPT !.away = @ \cup {m}, !.at[m] = 0, !.due[m] = Nothing,
                        !.got[m] = [p \in Partitions |-> IF @[p] = 0 THEN 0 ELSE Ever]])
    /\ client' = [client EXCEPT ![m] = Born(client[m].life)]
    /\ UNCHANGED <<disk, net, late, acked>>

Next ==
    \/ \E m \in Members : \/ Send(m) \/ Handle(m) \/ Receive(m) \/ Revoke(m) \/ Lose(m) \/ HandleLate(m)
                          \/ Expire(m) \/ Crash(m) \/ Leave(m) \/ GoAway(m)
                          \/ \E p \in Partitions : Commit(m, p)
    \/ Flush \/ FailOver

Fairness == /\ WF_vars(Flush)
            /\ \A m \in Members : /\ WF_vars(Send(m)) /\ WF_vars(Handle(m)) /\ WF_vars(Receive(m))
                                 /\ WF_vars(Revoke(m)) /\ WF_vars(IsDead(m) /\ Expire(m))

Spec == Init /\ [][Next]_vars /\ Fairness

(* ---- what holds ---- *)

NoPartitionHasTwoHolders == \A s \in {mem, disk} : \A p \in Partitions :
    Cardinality({m \in s.in : p \in Held(s, m)}) <= 1

(* A member whose epoch the coordinator would accept. One that was removed hears of it at its next heartbeat. *)
Present(m) == m \in mem.in /\ m \notin mem.away /\ 0 < client[m].epoch /\ client[m].epoch <= mem.at[m]

OwnersHoldWhatTheyOwn == \A m \in Members : Present(m) => client[m].owned \subseteq Held(mem, m)

NoPartitionHasTwoOwners == \A m, n \in Members :
    m # n /\ Present(m) /\ Present(n) => client[m].owned \cap client[n].owned = {}

AtTheTargetAMemberHasItsOwn == \A m \in mem.in \ mem.away :
    mem.state[m] = "stable" /\ mem.at[m] = mem.aim => Of(mem.got[m]) = mem.target[m]

EpochsAreInOrder == mem.aim <= mem.epoch /\ \A m \in mem.in : mem.at[m] <= mem.aim

AcknowledgedCommitsAreDurable == \A p \in Partitions : acked[p] <= disk.off[p]

EpochsNeverGoBack == [][/\ disk'.epoch >= disk.epoch /\ disk'.aim >= disk.aim
                        /\ \A m \in (disk.in \cap disk'.in) \ (disk.away \cup disk'.away) :
                              disk'.at[m] >= disk.at[m] \/ disk'.epoch > disk.epoch]_vars

(* While a member holds a partition, its commits only go on: with MayCommit, those of a former holder never
   come between. *)
CommitsGoOn == [][\A m \in Members, p \in Partitions :
                    mem'.off[p] < mem.off[p] => lag' = <<>> /\ mem' = disk']_vars

Settled == /\ mem.in = Members /\ mem.away = {} /\ mem.aim = mem.epoch
           /\ \A m \in Members : mem.state[m] = "stable" /\ mem.at[m] = mem.aim /\ client[m].owned = mem.target[m]
           /\ UNION {client[m].owned : m \in Members} = Partitions

Converges == <>[]Settled
=============================================================================
