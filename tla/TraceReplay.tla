------------------------------ MODULE TraceReplay ------------------------------
(* Is what a running buffer has written down a behaviour of ReplayBuffer?     *)
(*                                                                            *)
(* The events are in TraceData, which is generated for each run of TLC.  Each *)
(* has to be a step of its own name, by its own actor, with the outcome and   *)
(* the slots that were recorded.                                              *)
(* A trace is accepted when the position behind its last event is reached;    *)
(* Reached prints how far each trace got.                                     *)
(*                                                                            *)
(* Two things are not in a trace.  Steps of actors who are not observed may   *)
(* happen anywhere.  And a flag is set without the lock: a thread that was in *)
(* the critical section then may have read the old one, although its event    *)
(* stands behind.  So a SetCancel takes effect where it stands, or right      *)
(* behind the next event of a critical section.                               *)
EXTENDS TraceData

VARIABLES
    trace,       \* the number of the trace
    position,    \* the place of the next event
    late,        \* tokens set, but not seen by whoever is in the critical section
    due          \* tokens that will be seen by everybody before the next event

replayVars == <<trace, position, late, due>>

More == position <= Len(Traces[trace])
Event == Events[Traces[trace][position]]

--------------------------------------------------------------------------------
(* In place of what ReplayBuffer defines.  A thread may bring another token   *)
(* with each call, and of the draws at random only the recorded one counts.   *)

HasFlagNow(ticket) ==
    /\ cancelled # {}
    /\ (IF More THEN TokenMaps[Event.tokens] ELSE NoTokens)[ticket.actor] \in cancelled

BatchesNow(k) ==
    LET choice == Choice(k)
        r == IF Order = "replacement" THEN k ELSE Min(k, Cardinality(choice))
        fits(batch) == Range(batch) \subseteq choice /\
                       (Order = "replacement" \/ Cardinality(Range(batch)) = r)
        isDraw(e) == e.name \in {"Ask", "Draw"} /\ Len(e.slots) = r
        recorded == {batch \in {Event.slots} : isDraw(Event) /\ fits(batch)}
    IN  IF Order = "fifo" THEN {SubSeq(OldestFirst(choice), 1, r)}
        ELSE IF Unobserved = {} THEN recorded
        ELSE {batch \in [1 .. r -> choice] : fits(batch)}

\* A program may have any number of leases.
MayHaveAny(c, kind) == TRUE

--------------------------------------------------------------------------------
(* The observed events.                                                       *)

\* A call with timeout 0 that has to wait arrives and expires at once.
Call(ticket, arrival, batch) ==
    LET verdict == OnArrival(ticket)
    IN  /\ Idle(ticket.actor)
        /\ 1 <= ticket.m /\ ticket.m <= ticket.n /\ ticket.n <= Capacity
        /\ \/ /\ Event.outcome = "TIMEOUT" /\ verdict = "WAIT" /\ Event.slots = <<>>
              /\ UNCHANGED vars
           \/ /\ Event.outcome = verdict /\ arrival
              /\ Event.slots = IF verdict = "SERVE" THEN batch ELSE <<>>

Newest(hs) == IF hs = <<>> THEN <<>> ELSE hs[Len(hs)].slots

\* An exception ends a wait, whatever the call would have got.
GivesUpWaiting(x) == Waits(x) /\ TicketLeaves(x) /\ NothingButTickets

\* An exception ends a batch that was ready, such as that of a cancelled task.
FailsLate(h) ==
    /\ InState(h, "ready")
    /\ holds' = [holds EXCEPT ![h + 1].state = "failed"] /\ NothingButHolds

OfHold(h) ==
    /\ h \in 0 .. Len(holds) - 1
    /\ holds[h + 1].owner = Event.actor /\ holds[h + 1].slots = Event.slots

Leaving(x) ==
    /\ Event.slots = <<>>
    /\ \/ Event.name = "Expire" /\ Event.outcome = "TIMEOUT" /\ Expire(x)
       \/ Event.name = "Expire" /\ Event.outcome = "INTERRUPTED" /\ GivesUpWaiting(x)
       \/ Event.name = "Refuse" /\ Event.outcome = OnWaking(x) /\ Refuse(x)
       \* Nobody knows which token the call had of one who is not observed.
       \/ /\ Event.name = "Cancel"
          /\ IF \E u \in Unobserved : u[1] = x THEN GivesUpWaiting(x) ELSE Cancel(x)

\* What happens inside a critical section.
Section ==
    LET x == Event.actor
        a == Event.args
        Self(s) == s
    IN  \/ /\ Event.name = "Arrive"
           /\ Call(Ticket("write", x, a[1], a[1]), Arrive(x, a[1]), filling'[x])
        \/ /\ Event.name = "Ask"
           /\ Call(Ticket(a[1], x, a[2], a[3]), Ask(x, a[1], a[2], a[3]), Newest(holds'))
        \/ Event.name = "Admit" /\ Admit(x) /\ filling'[x] = Event.slots
        \/ Event.name = "Draw" /\ Draw(x) /\ Newest(holds') = Event.slots
        \/ Event.name = "Publish" /\ filling[x] = Event.slots /\ Publish(x)
        \/ Event.name = "Abandon" /\ filling[x] = Event.slots /\ Abandon(x)
        \/ Event.name = "Deliver" /\ OfHold(a[1]) /\ Deliver(a[1])
        \/ Event.name = "Return" /\ OfHold(a[1]) /\ Return(a[1])
        \/ Leaving(x)
        \/ Event.name = "Close" /\ Close(a[1])
        \/ Event.name = "Empty" /\ Event.slots = Sorted({s \in Slots : Live(s)}, Self) /\ Empty

\* What needs no critical section, so that it may happen while somebody is inside; in an
\* overwriting buffer it does, since it takes pins away.
Gathers ==
    LET h == Event.args[1]
    IN  \/ Event.name = "Ready" /\ OfHold(h) /\ Ready(h)
        \/ /\ Event.name = "Fail" /\ OfHold(h)
           /\ IF Event.outcome = "INTERRUPTED" THEN FailsLate(h) ELSE Fail(h)

Observed ==
    /\ More /\ due = {}
    /\ position' = position + 1
    /\ \/ (Section \/ (Overwrites /\ Gathers)) /\ due' = late /\ late' = {}
       \/ ~Overwrites /\ Gathers /\ UNCHANGED <<late, due>>
       \/ /\ Event.name = "SetCancel" /\ Event.args[1] \notin late
          /\ SetCancel(Event.args[1]) /\ UNCHANGED <<late, due>>
       \/ /\ Event.name = "SetCancel" /\ Event.actor = "nobody"
          /\ Event.args[1] \in AllTokens \ (cancelled \union late)
          /\ late' = late \union {Event.args[1]} /\ UNCHANGED <<vars, due>>

SeenNow ==
    /\ \E token \in due : SetCancel(token) /\ due' = due \ {token}
    /\ UNCHANGED <<position, late>>

--------------------------------------------------------------------------------
(* The others.                                                                *)

Missing(x, kind) ==
    \/ /\ kind = "write"
       /\ (\E n \in 1 .. Capacity : Arrive(x, n)) \/ Admit(x) \/ Publish(x) \/ Abandon(x)
    \/ /\ kind # "write"
       /\ \/ \E n \in 1 .. Capacity : \E m \in 1 .. n : Ask(x, kind, n, m)
          \/ Draw(x)
          \/ \E h \in 0 .. Len(holds) - 1 :
                holds[h + 1].owner = x /\ (Ready(h) \/ Fail(h) \/ Deliver(h) \/ Return(h))
    \/ GivesUpWaiting(x)

NotObserved ==
    /\ due = {}
    /\ \E u \in Unobserved : Missing(u[1], u[2])
    /\ UNCHANGED <<position, late, due>>

\* Steps that are not observed can lead anywhere.  Beyond so many states nothing is
\* followed any more, which is printed; without such steps there is no limit.
Within ==
    \/ Unobserved = {} \/ TLCGet("distinct") < MostStates
    \/ ~TLCGet(0) /\ PrintT(<<"FULL", MostStates>>) /\ TLCSet(0, TRUE) /\ FALSE

--------------------------------------------------------------------------------

ReplayInit ==
    /\ Init
    /\ trace \in 1 .. Len(Traces) /\ position = 1 /\ late = {} /\ due = {}

\* The last disjunct lets a trace end, as it must.
ReplayNext ==
    \/ (Observed \/ SeenNow \/ NotObserved) /\ UNCHANGED trace
    \/ UNCHANGED <<vars, replayVars>>

ReplaySpec == ReplayInit /\ [][ReplayNext]_<<vars, replayVars>>

\* Prints each place that a trace reaches, once; it is TRUE.
ASSUME TLCSet(0, FALSE) /\ \A t \in 1 .. Len(Traces) : TLCSet(t, 0)
Reached ==
    \/ TLCGet(trace) >= position
    \/ TLCSet(trace, position) /\ PrintT(<<"AT", trace, position>>)
================================================================================
