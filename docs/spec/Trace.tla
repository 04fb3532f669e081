------------------------------- MODULE Trace -------------------------------
(* What was seen of groups is what ConsumerGroup.tla allows: each line of a trace has to be one step of it.

   TraceData is written for each check (tests/spec/traces.py): Runs is a sequence of traces, a trace one of
   lines; There[run] are the partitions of its topics at first, and Changes[run] says whether the group may be
   downgraded. A line says the kind of its step, the member, and what was seen of it: the request, what the client
   knows after an answer, the records of the log. Of a state of the coordinator a line has the epochs, who is
   there, and of the members those whose records changed. Where nobody but the members was watched (Open), it
   has nothing of it, and TLC looks for a target by which the answers are what they were.

   TLC takes every trace as far as it goes, and says each line that it reaches. *)
EXTENDS ConsumerGroup, TraceData, TLC

VARIABLES run, line

Line == Runs[run][line]
Wide(some) == [p \in Partitions |-> IF p \in DOMAIN some THEN some[p] ELSE 0]

(* The state of the coordinator that the log says. *)
Seen(s, e) ==
    IF "rows" \notin DOMAIN e THEN s
    ELSE LET of(m, was, is) == IF m \in DOMAIN e.rows THEN is ELSE was
         IN [s EXCEPT !.protocol = e.protocol, !.led = e.led, !.epoch = e.epoch, !.aim = e.aim,
                      !.in = e.in, !.away = e.away, !.seen = e.seen,
                      !.target = [m \in Members |-> of(m, @[m], e.rows[m].target)],
                      !.at = [m \in Members |-> of(m, @[m], e.rows[m].at)],
                      !.prev = [m \in Members |-> of(m, @[m], e.rows[m].prev)],
                      !.state = [m \in Members |-> of(m, @[m], e.rows[m].state)],
                      !.life = [m \in Members |-> of(m, @[m], e.rows[m].life)],
                      !.got = [m \in Members |-> of(m, @[m], Wide(e.rows[m].got))],
                      !.due = [m \in Members |-> of(m, @[m], Wide(e.rows[m].due))],
                      !.reports = [m \in Members |-> of(m, @[m], e.rows[m].reports)]]

(* In ConsumerGroup's place: the shares that were seen, if they are ones. There are too many to try all. *)
SharesSeen(s) ==
    IF Open[run]
    THEN {f \in [there -> s.in] : Balanced(s, f)}
    ELSE
    LET seen == Seen(s, Line).target
        whose(p) == {m \in Members : p \in seen[m]}
        one == [p \in there |-> IF Cardinality(whose(p)) = 1 THEN CHOOSE m \in whose(p) : TRUE ELSE "nobody"]
    IN IF (\A p \in there : one[p] \in s.in) /\ UNION {seen[m] : m \in Members} = there /\ Balanced(s, one)
       THEN {one} ELSE {}

(* Likewise: a member may say all again at any time, as it does when it subscribes. *)
SaysAllAtTimes(c) == {c.full, TRUE}

(* Likewise: a classic member may join again at any time, as a leader does that sees other topics. *)
JoinsAtTimes(c) == IF c.does = "stay" THEN {"stay", "join"} ELSE {c.does}

ChangesNow == Changes[run]

(* Likewise: what the leader was seen to give, if it may give that. *)
PlanSeen == LET seen == Seen(mem, Line).target IN IF TakesNothingAway(seen) THEN {seen} ELSE {}

Part(s, m) == [protocol |-> s.protocol, led |-> s.led, epoch |-> s.epoch, aim |-> s.aim, in |-> s.in,
               away |-> s.away, seen |-> s.seen, target |-> s.target, reports |-> s.reports[m],
               at |-> s.at[m], prev |-> s.prev[m], state |-> s.state[m], life |-> s.life[m],
               got |-> [p \in Of(s.got[m]) |-> s.got[m][p]], due |-> [p \in Of(s.due[m]) |-> s.due[m][p]]]

(* Else it is said what the specification makes of it. *)
Agrees(is, wanted, told) == is = wanted \/ (~Open[run] /\ PrintT(<<"refuses", run, line, told>>) /\ FALSE)
Follows(e) == Open[run] \/ Agrees(mem', Seen(mem, e), Part(mem', e.m))

Heard(m) ==
    LET c == client'[m]
    IN IF m \in Classics THEN [epoch |-> c.epoch, owned |-> c.owned, does |-> c.does]
       ELSE [epoch |-> c.epoch, owned |-> c.owned, wanted |-> c.wanted, full |-> c.full]
Got(m) == IF net[m].ok THEN [ok |-> TRUE, epoch |-> net[m].epoch, again |-> net[m].again, news |-> net[m].news,
                             all |-> IF net[m].news THEN net[m].all ELSE {}]
          ELSE [ok |-> FALSE]
Commits(m) == [epoch |-> commit'[m].epoch, to |-> commit'[m].to]

Begun == [in |-> room'.in, gen |-> room'.gen, lead |-> room'.lead]
Begins(e) == room'.lead = e.lead /\ Agrees(Begun, [in |-> e.members, gen |-> e.gen, lead |-> e.lead], Begun)

Step(e) ==
    \/ e.kind = "send" /\ Send(e.m) /\ Agrees(net'[e.m].ask, e.ask, net'[e.m].ask)
    \/ e.kind = "handle" /\ (Handle(e.m) \/ GoOn(e.m)) /\ Follows(e)
    \/ e.kind = "generation" /\ EndJoins /\ Begins(e) /\ Follows(e)
    \/ e.kind = "receive" /\ Receive(e.m) /\ Agrees(Got(e.m), e.answer, Got(e.m))
                                          /\ Agrees(Heard(e.m), e.client, Heard(e.m))
    \/ e.kind = "revoke" /\ Revoke(e.m) /\ Agrees(client'[e.m].owned, e.owned, client'[e.m].owned)
    \/ e.kind = "fetch" /\ Fetch(e.m, e.p) /\ Agrees(disk.off[e.p], e.shows, disk.off[e.p])
    \/ e.kind = "commit" /\ SendCommit(e.m, e.p) /\ Agrees(Commits(e.m), e.ask, Commits(e.m))
    \/ e.kind = "committed" /\ HandleCommit(e.m) /\ Agrees(commit'[e.m].ok, e.ok, Part(mem, e.m))
                          /\ IF Open[run] THEN TRUE ELSE Agrees(mem'.off[commit[e.m].p], e.to, mem'.off)
    \/ e.kind = "acknowledged" /\ Acknowledged(e.m)
    \/ e.kind = "losecommit" /\ LoseCommit(e.m)
    \/ e.kind = "lose" /\ Lose(e.m)
    \/ e.kind = "crash" /\ Crash(e.m)
    \/ e.kind = "expire" /\ Expire(e.m) /\ Follows(e)
    \/ e.kind = "leave" /\ Leave(e.m) /\ Follows(e)
    \/ e.kind = "goaway" /\ GoAway(e.m) /\ Follows(e)
    \/ e.kind = "flush" /\ Flush
    \/ e.kind = "landed" /\ IF lag = <<>> THEN UNCHANGED vars ELSE Flush  (* if there was anything to write *)
    \/ e.kind = "topics" /\ Become(e.there)
    \/ e.kind = "failover" /\ FailOver /\ mem' = [Seen(mem, e) EXCEPT !.off = mem'.off]
                                      /\ \A p \in there : mem'.off[p] = Wide(e.off)[p]

TraceInit == Start /\ run \in 1..Len(Runs) /\ line = 1 /\ there = There[run]
TraceNext == /\ line <= Len(Runs[run])
             /\ Step(Line)
             /\ line' = line + 1 /\ run' = run
TraceSpec == TraceInit /\ [][TraceNext]_<<vars, run, line>>

Reached == PrintT(<<"reached", run, line>>)
=============================================================================
