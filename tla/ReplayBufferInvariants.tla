------------------------ MODULE ReplayBufferInvariants -------------------------
(* What holds in every state of the replay buffer.                            *)
EXTENDS ReplayBuffer

InPhase(phase) == {s \in Slots : slots[s].phase = phase}
PinnedBy(h) == Range(holds[h].slots)
HeldBy(s) == Pinning(1 .. Len(holds), s)

SlotsFit ==
    /\ slots \in [Slots -> [phase : {"free", "filling", "live", "dropped"},
                            uses : 0 .. UsesPerRecord, pins : Nat, stamp : Nat]]
    /\ \A s \in Slots :
          /\ slots[s].pins = Cardinality(HeldBy(s))
          /\ slots[s].phase \in {"free", "filling"} => slots[s] = Blank(slots[s].phase)
          /\ Dropped(s) => slots[s].uses = 0 /\ slots[s].stamp = 0
    /\ Ages(slots, holds) = 1 .. Cardinality(Ages(slots, holds))
    /\ \A s \in InPhase("live") : HasAges <=> slots[s].stamp > 0

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

OwnHoldFits(h) ==
    /\ holds[h].owner \in Readers /\ holds[h].kind \in {"plain", "lease"}
    /\ OutOnLease(holds[h]) \/
          /\ ~Waits(holds[h].owner) /\ ~Fills(holds[h].owner)
          /\ \A g \in HoldsOf(holds[h].owner) \ {h} : OutOnLease(holds[g])

HoldsFit == Len(holds) <= Cardinality(Holds) /\ \A h \in 1 .. Len(holds) :
    /\ holds[h].state \in {"gathering", "ready", "failed"}
    /\ Len(holds[h].stamps) = Len(holds[h].slots)
    /\ Pins(holds[h]) => PinnedBy(h) \subseteq InPhase("live") \union InPhase("dropped")
    /\ IF Ahead(holds[h])
       THEN holds[h].owner \in Processes /\ (Stale(holds[h]) => ~Settled(holds[h]))
       ELSE OwnHoldFits(h)

\* What is left of the epoch, and what may come back to it.
LeftFits ==
    /\ left \subseteq IF InEpochs THEN InPhase("live") ELSE {}
    /\ Order = "replacement" => \A h \in 1 .. Len(holds) : Remembered(h) = {}
    /\ InEpochs => \A h \in 1 .. Len(holds) : Remembered(h) \subseteq InPhase("live") \ left

\* Whoever captures or restores does nothing else.
BoundaryFits ==
    /\ boundary.stage \in {"none", "capturing", "copying", "restoring", "loading"}
    /\ boundary.stage = "copying" <=> boundary.slots # <<>>
    /\ Range(boundary.slots) \subseteq InPhase("live") \union InPhase("dropped")
    /\ Cardinality(Range(boundary.slots)) = Len(boundary.slots)
    /\ IF boundary.stage = "none" THEN boundary = NoBoundary
       ELSE /\ boundary.actor \in Actors
            /\ ~Waits(boundary.actor) /\ ~Fills(boundary.actor)
            /\ \A h \in HoldsOf(boundary.actor) : OutOnLease(holds[h])
    /\ boundary.stage = "loading" => InPhase("free") = Slots

\* Every variable has a value of its type, and all of them tell the same story.
TypeOK ==
    /\ SlotsFit /\ FreeFits /\ FillingFits /\ TicketsFit /\ HoldsFit /\ LeftFits
    /\ BoundaryFits
    /\ closing \in {"open", "draining", "stopped"}
    /\ cancelled \subseteq Tokens
    /\ dead \subseteq {x \in Actors : Has(x)}
    /\ Len(saved) <= 1

\* No slot is lost or counted twice, and no batch is larger than the buffer.
Bounded ==
    LET RECURSIVE Sum(_)
        Sum(P) == IF P = {} THEN 0
                  ELSE LET p == CHOOSE p \in P : TRUE IN Len(filling[p]) + Sum(P \ {p})
    IN  /\ Len(free) + Sum(Producers) + Cardinality(InPhase("live"))
              + Cardinality(InPhase("dropped")) = Capacity
        /\ \A h \in 1 .. Len(holds) : Len(holds[h].slots) \in 1 .. Capacity

\* No record is drawn too often, and what is used up stays only while it is held or
\* still to be copied.
UseBound == \A s \in Slots :
    /\ slots[s].uses <= UsesPerRecord
    /\ Spent(s) \/ Dropped(s) => slots[s].pins > 0 \/ ToCopy(s)

\* No batch names a slot twice, unless it was drawn with replacement.
DistinctRows ==
    LET Distinct(batch) == Cardinality(Range(batch)) = Len(batch)
    IN  /\ \A p \in Producers : Distinct(filling[p])
        /\ Order # "replacement" => \A h \in 1 .. Len(holds) : Distinct(holds[h].slots)

\* Somebody copies or gathers, can hand back a batch, captures or restores, is dead and
\* will be found, or is told one of these verdicts.
SomebodyGoesOn(queue, verdicts) ==
    \/ ~NothingFilling \/ dead # {} \/ boundary.stage # "none"
    \/ \E h \in 1 .. Len(holds) :
          IF Ahead(holds[h]) THEN ~Settled(holds[h])
          ELSE OutOnLease(holds[h]) => \A i \in 1 .. Len(queue) : queue[i].actor # holds[h].owner
    \/ \E i \in 1 .. Len(queue) : Verdict(queue, i) \in verdicts

\* If nobody inside a call can go on, then somebody outside can make a call that is
\* served.  (Otherwise those who wait would wait for ever and not be told.)
NoSilentDeadlock ==
    LET served(ticket) == Idle(ticket.actor) /\ OnArrival(ticket) = "SERVE"
    IN  \/ tickets = <<>>
        \/ SomebodyGoesOn(tickets, {"SERVE", "CANCELLED", "SHUT_DOWN", "MUTUAL_WAIT"})
        \/ MayRecall
        \/ \E p \in Producers, n \in WriteSizes : served(Ticket("write", p, n, n))
        \/ \E c \in Readers, r \in Requests : served(Ticket(r[1], c, r[2], r[3]))

\* Conversely, nobody who waits is refused for a mutual wait while a step of somebody
\* inside a call could help, or a batch that was drawn ahead.  (A cancelled call makes
\* way for others only if it is a head.)
NoFalseDeadlock ==
    \A i \in 1 .. Len(tickets) :
        /\ closing = "open" /\ tickets[i].actor \notin dead
        /\ Verdict(tickets, i) = "MUTUAL_WAIT" /\ ~Overleased(tickets[i])
        => /\ ~SomebodyGoesOn(tickets, {"SERVE"})
           /\ \A h \in 1 .. Len(holds) : ~Ahead(holds[h])
           /\ \A j \in Heads(tickets) : ~HasFlag(tickets[j])

\* Where writers overwrite, nobody waits for ever: what pins a record is soon over.
NoMutualWait == Overwrites =>
    LET Told(ticket) == Idle(ticket.actor) /\ OnArrival(ticket) = "MUTUAL_WAIT"
    IN  /\ \A i \in 1 .. Len(tickets) : Verdict(tickets, i) # "MUTUAL_WAIT"
        /\ \A p \in Producers, n \in WriteSizes : ~Told(Ticket("write", p, n, n))
        /\ \A c \in Readers, r \in Requests : ~Told(Ticket(r[1], c, r[2], r[3]))
================================================================================
