------------------------ MODULE ReplayBufferProperties -------------------------
(* What the replay buffer promises: that a snapshot is a state, what holds in *)
(* every step, what must happen in the end, and who must go on for that.      *)
(* What holds in every state is in ReplayBufferInvariants, what must at least *)
(* be possible in Witnesses.                                                  *)
(* Step properties look at every slot before and after instead of numbering   *)
(* records: a record is a slot and its life there.                            *)
EXTENDS ReplayBufferInvariants

\* The last snapshot as a state of its own, in which nobody does anything.
AsState == INSTANCE ReplayBufferInvariants WITH
    slots <- saved[1].slots, free <- saved[1].free, fresh <- saved[1].fresh,
    filling <- [p \in Producers |-> <<>>], tickets <- <<>>,
    holds <- [i \in 1 .. Len(saved[1].queue) |->
                 [owner |-> CHOOSE q \in Processes : TRUE, kind |-> "prefetched",
                  slots |-> saved[1].queue[i].slots, stamps |-> saved[1].queue[i].stamps,
                  state |-> "ready"]],
    closing <- "open", cancelled <- {}, dead <- {}, boundary <- NoBoundary,
    left <- saved[1].left, saved <- <<>>

\* A snapshot is a state: nothing in it is half done.
CaptureAtomic == saved # <<>> =>
    AsState!TypeOK /\ AsState!Bounded /\ AsState!UseBound /\ AsState!DistinctRows

--------------------------------------------------------------------------------
(* In every step.                                                             *)

BecomeLive == {s \in Slots : ~Live(s) /\ slots'[s].phase = "live"}
BecomeFree == {s \in Slots : slots[s].phase # "free" /\ slots'[s].phase = "free"}

Overwritten == {s \in Slots : Overwrites /\ Live(s) /\ slots'[s].phase = "filling"}

\* Whose call is served in this step, and as what.
StartsToFill(p) == filling[p] = <<>> /\ filling'[p] # <<>>
Restored == \E x \in Actors : Restore(x)
SomebodyGets == Len(holds') > Len(holds) /\ ~Restored
Drawn == holds'[Len(holds')]
SomebodyDraws == SomebodyGets /\ ~Ahead(Drawn)
Refilled == SomebodyGets /\ Ahead(Drawn)
Taken == IF Len(holds') # Len(holds) THEN {}
         ELSE {h \in 1 .. Len(holds) : Ahead(holds[h]) /\ ~Ahead(holds'[h])}
Answers(q) == SomebodyDraws /\
    IF Waits(Drawn.owner)
    THEN LET ticket == tickets[PlaceOf(Drawn.owner)]
         IN  q = <<ticket.kind, ticket.n, ticket.m>>
    ELSE Ask(Drawn.owner, q[1], q[2], q[3])

\* How many records the draw was to have, and whether it had to begin another epoch.
Wants == IF Ahead(Drawn) THEN {BatchSize} ELSE {q[2] : q \in {q \in Requests : Answers(q)}}
EpochBegins == InEpochs /\ SomebodyGets /\
    (left = {} \/ (DropLast /\ \E k \in Wants : Cardinality(left) < k))

\* The holds that come back in this step, unused.
ComesBack(h) ==
    \/ Return(h - 1)
    \/ h = Last(SettledAhead \union {0}) /\ Recall
    \/ \E x \in dead : Recover(x) /\ h \in HoldsOf(x) \union AheadOf(ProcessOf[x])
BackAgain == {h \in 1 .. Len(holds) : ComesBack(h)}

NoOlderWaits(x, side) ==
    \A i \in 1 .. Len(tickets) :
        Side(tickets[i]) = side =>
            \E j \in 1 .. i : tickets[j].actor = x /\ Side(tickets[j]) = side

\* A record that is wanted, held or still to be copied is never replaced, but for evicted
\* ones, of which OldestEvicted speaks.
NoOverwrite == [][
    LET kept == {s \in Slots : Live(s) \/ slots[s].pins > 0 \/ ToCopy(s)}
    IN  /\ \A s \in kept \ Overwritten : slots'[s].phase # "filling"
        /\ \A s \in kept \intersect BecomeFree :
              \/ (Spent(s) \/ Dropped(s)) /\ HeldBy(s)' = {} /\ ~ToCopy(s)'
              \/ HeldBy(s) \subseteq SettledAhead /\ ~ToCopy(s) /\ Empty
              \/ \E x \in Actors : Load(x)
    ]_vars

\* A batch becomes visible wholly or not at all.
WholeBatches == [][
    BecomeLive # {} /\ ~Restored => \E p \in Producers :
        Fills(p) /\ BecomeLive = Range(filling[p]) /\ filling'[p] = <<>>
    ]_vars

\* Records come by Publish and Restore, and go by being used up or evicted, by Empty or
\* by Load.
Conservation == [][
    /\ BecomeLive # {} /\ ~Restored => \E p \in Producers : Publish(p)
    /\ \A s \in Slots : Live(s) /\ slots'[s].phase # "live" =>
          \/ Empty
          \/ \E x \in Actors : Load(x)
          \/ s \in Overwritten /\ \E p \in Producers : StartsToFill(p) /\ s \in Range(filling'[p])
          \/ Spent(s) /\ \E h \in Holds : Deliver(h) /\ s \in PinnedBy(h + 1)
          \/ Spent(s) /\ ToCopy(s) /\ \E x \in Actors : CaptureDone(x) \/ Recover(x)
    /\ \A h \in BackAgain : \A s \in PinnedBy(h) :
          Live(s) => slots'[s].phase = "live" /\ slots'[s].uses < UsesPerRecord
    ]_vars

\* Whoever is not served has changed nothing, or only stands in the list.
LeavesNoTrace == [][
    /\ \A x \in Actors : Expire(x) \/ Cancel(x) \/ Refuse(x) =>
          Waits(x) /\ TicketLeaves(x) /\ NothingButTickets
    /\ \A p \in Producers : Abandon(p) =>
          /\ UNCHANGED <<tickets, holds, fresh, around, left>>
          /\ free' = filling[p] \o free
          /\ \A s \in Slots \ Range(filling[p]) : slots'[s] = slots[s]
    /\ \A p \in Producers, n \in WriteSizes :
          Arrive(p, n) => StartsToFill(p) \/ NothingButTickets
    /\ \A c \in Readers, r \in Requests :
          Ask(c, r[1], r[2], r[3]) => SomebodyDraws \/ Taken # {} \/ NothingButTickets
    /\ \A x \in Actors : Kill(x) =>
          /\ UNCHANGED <<slots, free, fresh, filling, tickets, holds, closing, cancelled>>
          /\ UNCHANGED <<boundary, left, saved>>
          /\ dead' = dead \union {x}
    /\ (\E x \in Actors : CaptureAsk(x) \/ RestoreAsk(x) \/ Reject(x)) =>
          NothingButBoundary
    ]_vars

\* Who takes a batch that was drawn ahead gets the oldest that his process has, as it is.
TakesTheOldest == [][
    /\ \A h \in Taken :
          LET c == holds'[h].owner
              ahead == {g \in 1 .. h : Ahead(holds[g]) /\ holds[g].owner = holds[h].owner}
          IN  /\ c \in Readers /\ holds[h].owner = ProcessOf[c]
              /\ \A s \in PinnedBy(h) : ~Dropped(s)
              /\ \A g \in ahead \ {h} : Stale(holds[g])
              /\ holds' = [holds EXCEPT ![h].owner = c, ![h].kind = holds'[h].kind]
              /\ tickets' = IF Waits(c) THEN Without(tickets, PlaceOf(c)) ELSE tickets
              /\ UNCHANGED <<slots, free, fresh, filling, around, left>>
    /\ LET ahead == {h \in 1 .. Len(holds) : Ahead(holds[h])}
       IN  Cardinality(ahead)' > Cardinality(ahead) =>
              Restored \/ \E q \in Processes : Refill(q)
    ]_vars

\* Nothing is left of the dead, and the others have what they had.  (The ages that
\* their holds remember may get other numbers.)
RecoversTheDead == [][
    LET Shown(hs) == [h \in 1 .. Len(hs) |->
                         <<hs[h].owner, hs[h].kind, hs[h].slots, hs[h].state>>]
    IN  \A x \in Actors : Recover(x) =>
            LET CallOfOther(ticket) == ticket.actor # x
                OfOther(hold) == hold.owner # IF Ahead(hold) THEN ProcessOf[x] ELSE x
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
    /\ SomebodyGets =>
          Drawn.slots = SubSeq(OldestFirst(Sampleable), 1, Len(Drawn.slots))
    /\ \A s, other \in Slots :
          LET lived == Live(s) /\ Live(other) /\ slots'[s].phase = "live"
                       /\ slots'[other].phase = "live"
              comesBack == \E h \in BackAgain : other \in PinnedBy(h)
          IN  lived /\ slots[s].stamp < slots[other].stamp =>
                 slots'[s].stamp < slots'[other].stamp \/ SomebodyGets \/ comesBack
    /\ \A h \in BackAgain : \A i \in 1 .. Len(holds[h].slots) :
          \A other \in Slots \ UNION {PinnedBy(g) : g \in BackAgain} :
              LET s == holds[h].slots[i]
              IN  Live(s) /\ Live(other) /\ slots'[other].phase = "live"
                  /\ holds[h].stamps[i] < slots[other].stamp
                  => slots'[s].stamp < slots'[other].stamp
    ]_vars

\* A draw has as many records as its caller asked for; at the end of an epoch, as there
\* are left of it.
ServedWhole == [][
    LET r == Len(Drawn.slots)
        Whole(k) == CASE InEpochs -> r = Min(k, Cardinality(Choice(k)))
                      [] Order = "replacement" -> r = k
                      [] OTHER -> r <= k
        AsAskedFor(taken, k) == IF InEpochs THEN taken \in 1 .. k ELSE taken = k
    IN  /\ \A q \in Requests : Answers(q) =>
              /\ Whole(q[2])
              /\ \/ (IF InEpochs THEN Cardinality(Sampleable) ELSE r) >= q[3]
                 \/ Drained /\ r >= 1
        /\ Refilled => Whole(BatchSize) /\ (InEpochs \/ r = BatchSize)
        /\ \A h \in Taken :
              LET c == holds'[h].owner
                  taken == Len(holds[h].slots)
              IN  IF Waits(c) THEN AsAskedFor(taken, tickets[PlaceOf(c)].n)
                  ELSE \E q \in Requests : Ask(c, q[1], q[2], q[3]) /\ AsAskedFor(taken, q[2])
    ]_vars

--------------------------------------------------------------------------------
(* In every step of an overwriting buffer.                                    *)

\* A writer takes the slots of records only when it has taken all that are free: those of
\* the oldest, but of none that is being gathered or has still to be copied.
OldestEvicted == [][
    LET Kept(s) == slots[s].pins > 0 \/ ToCopy(s)
        lost == {s \in Slots : Live(s) /\ slots'[s].phase = "filling"}
        others == {s \in Slots \ lost : Live(s) /\ ~Kept(s)}
    IN  lost # {} =>
            /\ Overwrites /\ free' = <<>>
            /\ \E p \in Producers : StartsToFill(p) /\ lost \subseteq Range(filling'[p])
            /\ \A s \in lost : ~Kept(s) /\ \A other \in others : slots[s].stamp < slots[other].stamp
    ]_vars

\* No record is drawn twice in an epoch, unless the batch comes back. When another one
\* begins, no batch of before can add to it.
OncePerEpoch == [][ InEpochs =>
    LET drawn == Range(Drawn.slots)
        choice == IF EpochBegins THEN Sampleable ELSE left
        published == UNION {Range(filling[p]) : p \in {p \in Producers : Publish(p)}}
        back == UNION {Remembered(h) : h \in BackAgain}
    IN  IF SomebodyGets
        THEN /\ drawn \subseteq choice /\ left' = choice \ drawn
             /\ EpochBegins => \A h \in 1 .. Len(holds) : Remembered(h)' = {}
        ELSE Restored \/ left' \subseteq left \union published \union back
    ]_vars

--------------------------------------------------------------------------------
(* In every step of a capture or a restore.                                   *)

\* The snapshot has every record, and every batch that the process was about to hand
\* out; whatever else was out has come back in it. The buffer itself goes on as it was.
CaptureComplete == [][
    \A x \in Actors : Capture(x) =>
        LET then == saved'[1]
            queue == {h \in AheadOf(ProcessOf[x]) : holds[h].state # "failed" /\ ~Stale(holds[h])}
            others == (1 .. Len(holds)) \ queue
            out(s) == IF Overwrites THEN {} ELSE HeldBy(s) \ queue
            AgeIn(h, s) == holds[h].stamps[PositionOf(s, holds[h].slots)]
            age(s) == First({slots[s].stamp} \union {AgeIn(h, s) : h \in out(s)})
            live == InPhase("live")
            order == Rising(queue)
        IN  /\ UNCHANGED <<slots, free, fresh, filling, tickets, holds, closing, cancelled, dead>>
            /\ UNCHANGED left
            /\ {s \in Slots : then.slots[s].phase = "live"} = live
            /\ \A s \in live :
                  /\ then.slots[s].uses = slots[s].uses - Cardinality(out(s))
                  /\ \A t \in live : HasAges =>
                        (age(s) < age(t) <=> then.slots[s].stamp < then.slots[t].stamp)
            /\ [i \in 1 .. Len(order) |-> holds[order[i]].slots]
                  = [i \in 1 .. Len(then.queue) |-> then.queue[i].slots]
            /\ \A i \in 1 .. Len(order) : \A j \in 1 .. Len(holds[order[i]].slots) : \A t \in live :
                  HasAges => (holds[order[i]].stamps[j] < age(t)
                                 <=> then.queue[i].stamps[j] < then.slots[t].stamp)
            /\ then.left = IF InEpochs THEN left \union UNION {Remembered(h) : h \in others}
                           ELSE {}
    ]_vars

\* Until a restore replaces the records, it may end as if it had never begun.
RejectUnchanged == [][
    /\ (\E x \in Actors : RestoreAsk(x) \/ Reject(x)) => NothingButBoundary
    /\ boundary.stage = "loading" /\ boundary'.stage = "none" =>
          Restored \/ \E x \in dead : Recover(x)
    ]_vars

\* A restored buffer goes on from the snapshot; who waits, waits on.
Continuation == [][
    Restored =>
        LET then == saved[1]
            Shown(hs) == [i \in 1 .. Len(hs) |->
                             [slots |-> hs[i].slots, stamps |-> hs[i].stamps]]
        IN  /\ slots' = then.slots /\ free' = then.free /\ fresh' = then.fresh
            /\ Shown(holds') = then.queue /\ left' = then.left
            /\ \A i \in 1 .. Len(holds') :
                  /\ Ahead(holds'[i]) /\ holds'[i].state = "ready"
                  /\ holds'[i].owner = ProcessOf[boundary.actor]
            /\ UNCHANGED <<filling, tickets, closing, cancelled, dead, saved>>
    ]_vars

\* Nobody goes on with a buffer that was restored only in part.
DeadLoader == [][
    \A x \in Actors : Recover(x) /\ boundary.stage = "loading" /\ boundary.actor = x =>
        closing' = "stopped" /\ \A s \in Slots : slots'[s].phase # "live"
    ]_vars

--------------------------------------------------------------------------------
(* Who may be counted on.                                                     *)

ReadyOf(c) == \E h \in Holds : Ready(h) /\ h + 1 \in HoldsOf(c)
ReadyAheadOf(q) == \E h \in Holds : Ready(h) /\ h + 1 \in AheadOf(q)
DeliverOf(c) == \E h \in Holds :
    Deliver(h) /\ h + 1 \in HoldsOf(c) /\ holds[h + 1].kind = "plain"
ReturnOf(c) == \E h \in Holds :
    Return(h) /\ h + 1 \in HoldsOf(c) /\ holds[h + 1].state = "failed"

\* What is never possible without a feature needs no fairness then, which would only
\* cost time.
With(feature) == IF feature \in Features THEN Actors ELSE {}
Prefetching == IF PrefetchDepth > 0 THEN Processes ELSE {}

\* Threads that are inside a call run on, and the dead are found.
BufferGoesOn ==
    /\ \A p \in Producers : WF_vars(Admit(p)) /\ WF_vars(Publish(p))
    /\ \A c \in Readers : /\ WF_vars(Draw(c)) /\ WF_vars(ReadyOf(c))
                          /\ WF_vars(DeliverOf(c)) /\ WF_vars(ReturnOf(c))
    /\ \A x \in Actors : WF_vars(Cancel(x)) /\ WF_vars(Refuse(x))
    /\ \A x \in With("Kill") : WF_vars(Recover(x))
    /\ \A x \in With("Capture") : WF_vars(Capture(x)) /\ WF_vars(CaptureDone(x))
    /\ \A x \in With("Restore") : WF_vars(Load(x)) /\ WF_vars(Restore(x))
    /\ \A q \in Prefetching : WF_vars(ReadyAheadOf(q)) /\ WF_vars(Recall)

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

\* A capture ends, whoever else calls or not (BufferSpec).
CaptureEnds == boundary.stage \in {"capturing", "copying"} ~> boundary.stage = "none"

\* Once nobody is killed any more, nobody stays dead and every wait ends (CallersSpec).
KillHeals ==
    <>[][\A x \in Actors : ~Kill(x)]_vars =>
        \A x \in Actors : (x \in dead ~> x \notin dead) /\ (Waits(x) ~> ~Waits(x))
================================================================================
