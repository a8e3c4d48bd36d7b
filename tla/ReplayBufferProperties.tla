------------------------ MODULE ReplayBufferProperties -------------------------
(* What the replay buffer promises: what holds in every state, what holds in  *)
(* every step, what must happen in the end, who must go on for that, and what *)
(* must at least be possible, because a model in which nobody ever waits      *)
(* keeps every promise.                                                       *)
(* Step properties look at every slot before and after instead of numbering   *)
(* records: a record is a slot and its life there.                            *)
EXTENDS ReplayBuffer

InPhase(phase) == {s \in Slots : slots[s].phase = phase}
PinnedBy(h) == Range(holds[h].slots)
HeldBy(s) == Pinning(1 .. Len(holds), s)
Has(x) == Waits(x) \/ Fills(x) \/ HoldsOf(x) # {}

--------------------------------------------------------------------------------
(* In every state.                                                            *)

SlotsFit ==
    /\ slots \in [Slots -> [phase : {"free", "filling", "live", "dropped"},
                            uses : 0 .. UsesPerRecord, pins : Nat, stamp : Nat]]
    /\ \A s \in Slots :
          /\ slots[s].pins = Cardinality(HeldBy(s))
          /\ slots[s].phase \in {"free", "filling"} => slots[s] = Blank(slots[s].phase)
          /\ Dropped(s) => slots[s].uses = 0 /\ slots[s].stamp = 0
    /\ Ages(slots, holds) =
          IF Order = "fifo" THEN 1 .. Cardinality(Ages(slots, holds))
          ELSE {0 : s \in InPhase("live")}

FreeFits ==
    /\ Range(free) = InPhase("free") /\ Len(free) = Cardinality(InPhase("free"))
    /\ fresh \in 0 .. Len(free)

FillingFits ==
    /\ DOMAIN filling = Producers
    /\ UNION {Range(filling[p]) : p \in Producers} = InPhase("filling")
    /\ \A p, q \in Producers : p # q => Range(filling[p]) \intersect Range(filling[q]) = {}

TicketsFit ==
    /\ \A i \in 1 .. Len(tickets) :
          /\ \/ /\ tickets[i].actor \in Producers /\ tickets[i].n \in WriteSizes
                /\ tickets[i] = Ticket("write", tickets[i].actor, tickets[i].n, tickets[i].n)
             \/ /\ tickets[i].actor \in Readers
                /\ <<tickets[i].kind, tickets[i].n, tickets[i].m>> \in Requests
          /\ ~Fills(tickets[i].actor)
          /\ \A j \in 1 .. i - 1 : tickets[j].actor # tickets[i].actor

HoldsFit == Len(holds) <= Cardinality(Holds) /\ \A h \in 1 .. Len(holds) :
    /\ holds[h].owner \in Readers /\ holds[h].kind \in {"plain", "lease"}
    /\ holds[h].state \in {"gathering", "ready", "failed"}
    /\ Len(holds[h].stamps) = Len(holds[h].slots)
    /\ PinnedBy(h) \subseteq InPhase("live") \union InPhase("dropped")
    /\ OutOnLease(holds[h]) \/
          /\ ~Waits(holds[h].owner) /\ ~Fills(holds[h].owner)
          /\ \A g \in 1 .. Len(holds) :
                g # h /\ holds[g].owner = holds[h].owner => OutOnLease(holds[g])

\* Every variable has a value of its type, and all of them tell the same story.
TypeOK ==
    /\ SlotsFit /\ FreeFits /\ FillingFits /\ TicketsFit /\ HoldsFit
    /\ closing \in {"open", "draining", "stopped"}
    /\ cancelled \subseteq Tokens
    /\ dead \subseteq {x \in Actors : Has(x)}

\* No slot is lost or counted twice, and no batch is larger than the buffer.
Bounded ==
    LET RECURSIVE Sum(_)
        Sum(P) == IF P = {} THEN 0
                  ELSE LET p == CHOOSE p \in P : TRUE IN Len(filling[p]) + Sum(P \ {p})
    IN  /\ Len(free) + Sum(Producers) + Cardinality(InPhase("live"))
              + Cardinality(InPhase("dropped")) = Capacity
        /\ \A h \in 1 .. Len(holds) : Len(holds[h].slots) \in 1 .. Capacity

\* No record is drawn too often, and what is used up stays only while it is held.
UseBound == \A s \in Slots :
    /\ slots[s].uses <= UsesPerRecord
    /\ Spent(s) \/ Dropped(s) => slots[s].pins > 0

\* No batch names a slot twice.
DistinctRows ==
    LET Distinct(batch) == Cardinality(Range(batch)) = Len(batch)
    IN  /\ \A p \in Producers : Distinct(filling[p])
        /\ \A h \in 1 .. Len(holds) : Distinct(holds[h].slots)

\* Somebody copies or gathers, can hand back a batch, is dead and will be found, or is
\* told one of these verdicts.
SomebodyGoesOn(queue, verdicts) ==
    \/ ~NothingFilling \/ dead # {}
    \/ \E h \in 1 .. Len(holds) : OutOnLease(holds[h]) =>
          \A i \in 1 .. Len(queue) : queue[i].actor # holds[h].owner
    \/ \E i \in 1 .. Len(queue) : Verdict(queue, i) \in verdicts

\* If nobody inside a call can go on, then somebody outside can make a call that is
\* served.  (Otherwise those who wait would wait for ever and not be told.)
NoSilentDeadlock ==
    LET served(ticket) == Idle(ticket.actor) /\ OnArrival(ticket) = "SERVE"
    IN  \/ tickets = <<>>
        \/ SomebodyGoesOn(tickets, {"SERVE", "CANCELLED", "SHUT_DOWN", "MUTUAL_WAIT"})
        \/ \E p \in Producers, n \in WriteSizes : served(Ticket("write", p, n, n))
        \/ \E c \in Readers, r \in Requests : served(Ticket(r[1], c, r[2], r[3]))

\* A ticket gets this answer now, or a call would get it if it were made now.
Due(Answer(_, _)) ==
    LET Newcomer(ticket) ==
            Idle(ticket.actor) /\ Answer(Append(tickets, ticket), Len(tickets) + 1)
    IN  \/ \E i \in 1 .. Len(tickets) : tickets[i].actor \notin dead /\ Answer(tickets, i)
        \/ \E p \in Producers, n \in WriteSizes : Newcomer(Ticket("write", p, n, n))
        \/ \E c \in Readers, r \in Requests : Newcomer(Ticket(r[1], c, r[2], r[3]))

\* Conversely, nobody who waits is refused for a mutual wait while a step of somebody
\* inside a call could help.  (A cancelled call makes way for others only if it is a
\* head.)
NoFalseDeadlock ==
    \A i \in 1 .. Len(tickets) :
        /\ closing = "open" /\ tickets[i].actor \notin dead
        /\ Verdict(tickets, i) = "MUTUAL_WAIT" /\ ~Overleased(tickets[i])
        => /\ ~SomebodyGoesOn(tickets, {"SERVE"})
           /\ \A j \in Heads(tickets) : ~HasFlag(tickets[j])

--------------------------------------------------------------------------------
(* In every step.                                                             *)

BecomeLive == {s \in Slots : ~Live(s) /\ slots'[s].phase = "live"}
BecomeFree == {s \in Slots : slots[s].phase # "free" /\ slots'[s].phase = "free"}

\* Whose call is served in this step, and as what.
StartsToFill(p) == filling[p] = <<>> /\ filling'[p] # <<>>
SomebodyDraws == Len(holds') > Len(holds)
Drawn == holds'[Len(holds')]
Answers(q) == SomebodyDraws /\
    IF Waits(Drawn.owner)
    THEN LET ticket == tickets[PlaceOf(Drawn.owner)]
         IN  q = <<ticket.kind, ticket.n, ticket.m>>
    ELSE Ask(Drawn.owner, q[1], q[2], q[3])

\* The holds that come back in this step, unused.
ComesBack(h) == Return(h - 1) \/ \E x \in dead : Recover(x) /\ holds[h].owner = x
BackAgain == {h \in 1 .. Len(holds) : ComesBack(h)}

NoOlderWaits(x, side) ==
    \A i \in 1 .. Len(tickets) :
        Side(tickets[i]) = side =>
            \E j \in 1 .. i : tickets[j].actor = x /\ Side(tickets[j]) = side

\* A record that is wanted or held is never replaced.
NoOverwrite == [][
    /\ \A s \in Slots : Live(s) \/ slots[s].pins > 0 => slots'[s].phase # "filling"
    /\ \A s \in BecomeFree : Live(s) \/ slots[s].pins > 0 =>
          \/ (Spent(s) \/ Dropped(s)) /\ HeldBy(s)' = {}
          \/ slots[s].pins = 0 /\ Empty
    ]_vars

\* A batch becomes visible wholly or not at all.
WholeBatches == [][
    BecomeLive # {} => \E p \in Producers :
        Fills(p) /\ BecomeLive = Range(filling[p]) /\ filling'[p] = <<>>
    ]_vars

\* Records come by Publish, and go by being used up or by Empty.
Conservation == [][
    /\ BecomeLive # {} => \E p \in Producers : Publish(p)
    /\ \A s \in Slots : Live(s) /\ slots'[s].phase # "live" =>
          Empty \/ \E h \in Holds : Deliver(h) /\ Spent(s) /\ s \in PinnedBy(h + 1)
    /\ \A h \in BackAgain : \A s \in PinnedBy(h) :
          Live(s) => slots'[s].phase = "live" /\ slots'[s].uses < UsesPerRecord
    ]_vars

\* Whoever is not served has changed nothing, or only stands in the list.
LeavesNoTrace == [][
    /\ \A x \in Actors : Expire(x) \/ Cancel(x) \/ Refuse(x) =>
          Waits(x) /\ TicketLeaves(x) /\ NothingButTickets
    /\ \A p \in Producers : Abandon(p) =>
          /\ UNCHANGED <<tickets, holds, fresh, closing, cancelled>>
          /\ free' = filling[p] \o free
          /\ \A s \in Slots \ Range(filling[p]) : slots'[s] = slots[s]
    /\ \A p \in Producers, n \in WriteSizes :
          Arrive(p, n) => StartsToFill(p) \/ NothingButTickets
    /\ \A c \in Readers, r \in Requests :
          Ask(c, r[1], r[2], r[3]) => SomebodyDraws \/ NothingButTickets
    /\ \A x \in Actors : Kill(x) =>
          /\ UNCHANGED <<slots, free, fresh, filling, tickets, holds, closing, cancelled>>
          /\ dead' = dead \union {x}
    ]_vars

\* Nothing is left of the dead, and the others have what they had.  (The ages that
\* their holds remember may get other numbers.)
RecoversTheDead == [][
    LET Shown(hs) == [h \in 1 .. Len(hs) |->
                         <<hs[h].owner, hs[h].kind, hs[h].slots, hs[h].state>>]
    IN  \A x \in Actors : Recover(x) =>
            LET CallOfOther(ticket) == ticket.actor # x
                OfOther(hold) == hold.owner # x
            IN  /\ dead' = dead \ {x} /\ ~Has(x)'
                /\ tickets' = SelectSeq(tickets, CallOfOther)
                /\ \A p \in Producers \ {x} : filling'[p] = filling[p]
                /\ Shown(holds') = Shown(SelectSeq(holds, OfOther))
    ]_vars

\* Writers are admitted in the order in which they came.
FifoAdmission == [][
    \A p \in Producers : StartsToFill(p) => NoOlderWaits(p, "writer")
    ]_vars

\* Readers draw in the order in which they came.
FifoSampling == [][
    SomebodyDraws => NoOlderWaits(Drawn.owner, "reader")
    ]_vars

\* The oldest records are drawn first.  Only Publish and a draw make a record younger,
\* and one that comes back is as old as before.
FifoOrder == [][
    Order = "fifo" =>
    /\ SomebodyDraws =>
          Drawn.slots = SubSeq(OldestFirst(Sampleable), 1, Len(Drawn.slots))
    /\ \A s, other \in Slots :
          LET lived == Live(s) /\ Live(other) /\ slots'[s].phase = "live"
                       /\ slots'[other].phase = "live"
              comesBack == \E h \in BackAgain : other \in PinnedBy(h)
          IN  lived /\ slots[s].stamp < slots[other].stamp =>
                 slots'[s].stamp < slots'[other].stamp \/ SomebodyDraws \/ comesBack
    /\ \A h \in BackAgain : \A i \in 1 .. Len(holds[h].slots) :
          \A other \in Slots \ UNION {PinnedBy(g) : g \in BackAgain} :
              LET s == holds[h].slots[i]
              IN  Live(s) /\ Live(other) /\ holds[h].stamps[i] < slots[other].stamp
                  => slots'[s].stamp < slots'[other].stamp
    ]_vars

\* A draw has as many records as its caller asked for.
ServedWhole == [][
    \A q \in Requests : Answers(q) =>
        LET r == Len(Drawn.slots)
        IN  r <= q[2] /\ (r >= q[3] \/ (Drained /\ r >= 1))
    ]_vars

--------------------------------------------------------------------------------
(* Who may be counted on.                                                     *)

ReadyOf(c) == \E h \in Holds : Ready(h) /\ holds[h + 1].owner = c
DeliverOf(c) == \E h \in Holds :
    Deliver(h) /\ holds[h + 1].owner = c /\ holds[h + 1].kind = "plain"
ReturnOf(c) == \E h \in Holds :
    Return(h) /\ holds[h + 1].owner = c /\ holds[h + 1].state = "failed"

\* Threads that are inside a call run on, and the dead are found.
BufferGoesOn ==
    /\ \A p \in Producers : WF_vars(Admit(p)) /\ WF_vars(Publish(p))
    /\ \A c \in Readers : /\ WF_vars(Draw(c)) /\ WF_vars(ReadyOf(c))
                          /\ WF_vars(DeliverOf(c)) /\ WF_vars(ReturnOf(c))
    /\ \A x \in Actors : WF_vars(Cancel(x)) /\ WF_vars(Refuse(x)) /\ WF_vars(Recover(x))

\* Besides, the callers call again.
CallersGoOn ==
    /\ BufferGoesOn
    /\ \A p \in Producers : WF_vars(Arrives(p))
    /\ \A c \in Readers : WF_vars(Asks(c))

BufferSpec == Spec /\ BufferGoesOn
CallersSpec == Spec /\ CallersGoOn

--------------------------------------------------------------------------------
(* In the end.                                                                *)

\* Every wait ends, if callers go on calling (CallersSpec).
EventuallyServed == \A x \in Actors : Waits(x) ~> ~Waits(x)

\* A wait whose flag is set ends, whoever else calls or not (BufferSpec).
CancelEnds == \A x \in Actors : Waits(x) /\ TokenOf[x] \in cancelled ~> ~Waits(x)

\* After Close every wait ends, whoever else calls or not (BufferSpec).
CloseEnds == \A x \in Actors : Waits(x) /\ closing # "open" ~> ~Waits(x)

\* Once nobody is killed any more, nobody stays dead and every wait ends (CallersSpec).
KillHeals ==
    <>[][\A x \in Actors : ~Kill(x)]_vars =>
        \A x \in Actors : (x \in dead ~> x \notin dead) /\ (Waits(x) ~> ~Waits(x))

--------------------------------------------------------------------------------
(* At least possible. Each names a state, or a step out of it, that a model   *)
(* worth checking reaches.                                                    *)

DueToMutualWait(queue, i) ==
    Verdict(queue, i) = "MUTUAL_WAIT" /\ GivesUp(queue, i)
DueToOwnLeases(queue, i) ==
    Verdict(queue, i) = "MUTUAL_WAIT" /\ Overleased(queue[i])

WriterWaitsThenAdmitted == \E p \in Producers : StartsToFill(p) /\ Waits(p)
ReaderWaitsThenDraws == SomebodyDraws /\ Waits(Drawn.owner)
SmallBehindLarge == \E i \in Heads(tickets), j \in 1 .. Len(tickets) :
    /\ Side(tickets[i]) = "writer" /\ Side(tickets[j]) = "writer"
    /\ tickets[i].n > Len(free) /\ tickets[j].n <= Len(free)
MutualWaitFound == Due(DueToMutualWait)
OwnLeaseRefused == Due(DueToOwnLeases)
DrawReturned == \E h \in Holds : InState(h, "failed") /\ Return(h)
LeaseReturned == \E h \in Holds : OnLease(h) /\ Return(h)
ShortByLeast == closing = "open" /\
    \E q \in Requests : Answers(q) /\ Len(Drawn.slots) < q[2]
ShortByDraining == closing = "draining" /\
    \E q \in Requests : Answers(q) /\ Len(Drawn.slots) < q[3]
DroppedWhileHeld == InPhase("dropped") # {}
CancelAfterAdmit == \E p \in Producers : Fills(p) /\ TokenOf[p] \in cancelled' \ cancelled
PublishAfterClose == closing # "open" /\ BecomeLive # {}
KilledWhileWaiting == \E x \in dead : Waits(x)
KilledWhileFilling == \E x \in dead : Fills(x)
KilledWhileGathering == \E x \in dead : \E h \in HoldsOf(x) : holds[h].state = "gathering"
KilledWhileLeasing == \E x \in dead : \E h \in HoldsOf(x) : OutOnLease(holds[h])
RecoveredThenServed == \E x \in dead : Recover(x) /\ \E y \in Actors \ dead :
    Waits(y) /\ OnWaking(y) # "SERVE" /\ OnWaking(y)' = "SERVE"
================================================================================
