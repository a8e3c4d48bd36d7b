--------------------------------- MODULE Bugs ----------------------------------
(* Faults that a replay buffer may have, one definition each. A               *)
(* configuration MC*_bug_<fault>.cfg puts it in the place of the honest       *)
(* definition and must fail with the property that manifest.toml names: this  *)
(* shows that the property can fail, and which fault it stands against.       *)
EXTENDS ReplayBufferProperties

--------------------------------------------------------------------------------
(* Faults in writing.                                                         *)

\* partial_publish: rows become visible one by one.
PublishRowByRow(p) ==
    /\ Fills(p)
    /\ Become([slots EXCEPT ![Head(filling[p])] =
                  [Blank("live") EXCEPT !.stamp = AtTail(1)]], holds)
    /\ filling' = [filling EXCEPT ![p] = Tail(@)]
    /\ UNCHANGED <<free, fresh, tickets, around, left>>

\* overwrite_sampleable: a ring buffer, which counts the oldest records as room.
Overwritable == {s \in Sampleable : slots[s].pins = 0}
RoomAsRing(side) ==
    IF side = "writer" THEN Len(free) + Cardinality(Overwritable) ELSE Cardinality(Sampleable)
FillAsRing(p, n) ==
    LET batch == SubSeq(free \o OldestFirst(Overwritable), 1, n)
    IN  /\ Become([s \in Slots |-> IF s \in Range(batch) THEN Blank("filling") ELSE slots[s]],
                  holds)
        /\ filling' = [filling EXCEPT ![p] = batch]
        /\ free' = SubSeq(free, n + 1, Len(free))
        /\ fresh' = Min(fresh, Len(free'))
        /\ UNCHANGED <<around, left>>

\* abandoned_slots_lost: nobody gives back the slots of a copy that raised.
AbandonWithoutReturn(p) ==
    /\ "Abandon" \in Features /\ Fills(p)
    /\ slots' = [s \in Slots |-> IF s \in Range(filling[p]) THEN Blank("free") ELSE slots[s]]
    /\ filling' = [filling EXCEPT ![p] = <<>>]
    /\ UNCHANGED <<free, fresh, tickets, holds, around, left>>

--------------------------------------------------------------------------------
(* Faults in drawing.                                                         *)

\* use_count_off_by_one: a record is drawn once too often.
SampleableOnceMore == {s \in Slots : Live(s) /\ slots[s].uses <= UsesPerRecord}

\* youngest_first: a stack in the place of a queue.
YoungestBatch(k) ==
    LET r == Min(k, Cardinality(Sampleable))
        oldest == OldestFirst(Sampleable)
    IN  {[i \in 1 .. r |-> oldest[Len(oldest) + 1 - i]]}

\* draw_with_replacement: one batch names a record twice.
BatchesWithReplacement(k) == [1 .. Min(k, Cardinality(Sampleable)) -> Sampleable]

\* least_ignored: a reader is served with less than will do.
OneWillDo(ticket) == IF Side(ticket) = "reader" THEN 1 ELSE ticket.n

\* freed_while_held: the first of two readers frees the slot that both hold.
DeliverAlone(h) ==
    LET After(s) == IF Pinning({h + 1}, s) = {} THEN slots[s]
                    ELSE IF Spent(s) \/ Dropped(s) THEN Blank("free")
                    ELSE [slots[s] EXCEPT !.pins = @ - 1]
    IN  /\ InState(h, "ready")
        /\ EndHolds({h + 1}, After, <<>>)
        /\ UNCHANGED <<filling, tickets, closing, dead, boundary, left>>

ReturnAs(h, After(_)) ==
    /\ InState(h, "failed") \/ OnLease(h)
    /\ EndHolds({h + 1}, After, <<>>)
    /\ UNCHANGED <<filling, tickets, closing, dead, boundary, left>>

\* What becomes of a slot when these holds count as used.
Used(hs, s) ==
    LET mine == Pinning(hs, s)
        pins == slots[s].pins - Cardinality(mine)
    IN  IF mine # {} /\ pins = 0 /\ (Spent(s) \/ Dropped(s)) THEN Blank("free")
        ELSE [slots[s] EXCEPT !.pins = pins]

\* What becomes of it when its record, if it comes back, is the youngest.
BackAtTail(hs, s) ==
    IF Live(s) /\ Pinning(hs, s) # {} THEN [Back(hs, s) EXCEPT !.stamp = AtTail(s + 1)]
    ELSE Back(hs, s)

\* failed_draw_lost: a batch whose transform raised counts as used.
ReturnAsUsed(h) == LET After(s) == Used({h + 1}, s) IN ReturnAs(h, After)

\* returned_at_tail: a record that comes back queues up again behind all others.
ReturnAtTail(h) == LET After(s) == BackAtTail({h + 1}, s) IN ReturnAs(h, After)

\* returned_pin_left: a hold that comes back leaves its pins behind.
ReturnWithoutUnpin(h) ==
    LET After(s) == IF Pinning({h + 1}, s) = {} \/ ~Live(s) THEN slots[s]
                    ELSE [slots[s] EXCEPT !.uses = @ - 1]
    IN  ReturnAs(h, After)

--------------------------------------------------------------------------------
(* Faults in waiting.                                                         *)

\* barging_writer, barging_reader: whoever fits is served, however many wait.
WriterAsHead(queue, i) ==
    Side(queue[i]) = "writer" \/ \A j \in 1 .. i - 1 : Side(queue[j]) = "writer"
ReaderAsHead(queue, i) ==
    Side(queue[i]) = "reader" \/ \A j \in 1 .. i - 1 : Side(queue[j]) = "reader"

\* expired_ticket_left: the caller is gone, its ticket still stands in the list.
ExpireInPlace(x) ==
    /\ "Expire" \in Features /\ OnWaking(x) = "WAIT"
    /\ tickets' = [tickets EXCEPT ![PlaceOf(x)].actor = "nobody"]
    /\ NothingButTickets

\* cancel_after_admit: a producer looks at its flag again when it has copied, and
\* reports that its call was cancelled although its batch is there.
CancelLate(x) ==
    \/ OnWaking(x) = "CANCELLED" /\ TicketLeaves(x) /\ NothingButTickets
    \/ TokenOf[x] \in cancelled /\ Publish(x)

\* cancel_unseen: the flag is looked at before the first wait, not after it.
HasFlagOnArrival(ticket) == TokenOf[ticket.actor] \in cancelled /\ ~Waits(ticket.actor)

\* mutual_wait_unnoticed: nobody looks for it.
NeverMutualWait(queue) == FALSE

\* mutual_wait_needs_both_kinds: it is looked for only between a writer and a reader.
MutualWaitOfBoth(queue) ==
    /\ closing = "open" /\ NothingFilling
    /\ {Side(queue[i]) : i \in 1 .. Len(queue)} = {"writer", "reader"}
    /\ AllStuck(queue)
    /\ \A i \in Heads(queue) : ~HasFlag(queue[i])
    /\ \A side \in {"writer", "reader"} : Wanted(queue, side) > Room(side)

\* close_forgets_readers: closing at once turns away writers, and readers wait on.
WritersShutOut(ticket) == Side(ticket) = "writer" /\ closing # "open"

\* draining_wants_all: a reader insists on its least number although no more will come.
LeastAlways(ticket) == ticket.m

--------------------------------------------------------------------------------
(* Faults in finding the dead.                                                *)

BatchOf(x) == IF Fills(x) THEN filling[x] ELSE <<>>
TicketsOfOthers(x) == LET Other(ticket) == ticket.actor # x IN SelectSeq(tickets, Other)

\* Its holds and its filling slots become what After says, its place in the queue is
\* left, and these slots are free.
RecoverAs(x, After(_), queue, abandoned) ==
    /\ x \in dead /\ dead' = dead \ {x}
    /\ EndHolds(HoldsOf(x), After, abandoned)
    /\ filling' = [p \in Producers |-> IF p = x THEN <<>> ELSE filling[p]]
    /\ tickets' = queue
    /\ UNCHANGED <<closing, boundary, left>>

\* dead_ticket_left: its ticket still stands in the list.
RecoverButTicket(x) ==
    LET After(s) == IF s \in Range(BatchOf(x)) THEN Blank("free") ELSE Back(HoldsOf(x), s)
    IN  RecoverAs(x, After, tickets, BatchOf(x))

\* dead_slots_lost: nobody fills its slots any more, and nobody frees them.
RecoverButSlots(x) ==
    LET After(s) == Back(HoldsOf(x), s)
    IN  RecoverAs(x, After, TicketsOfOthers(x), <<>>)

\* dead_batch_published: what it had half copied becomes visible.
RecoverByPublish(x) ==
    LET After(s) ==
            IF s \in Range(BatchOf(x))
            THEN [Blank("live") EXCEPT !.stamp = AtTail(PositionOf(s, BatchOf(x)))]
            ELSE Back(HoldsOf(x), s)
    IN  RecoverAs(x, After, TicketsOfOthers(x), <<>>)

\* dead_holds_used: what it held counts as delivered.
RecoverAsUsed(x) ==
    LET After(s) == IF s \in Range(BatchOf(x)) THEN Blank("free") ELSE Used(HoldsOf(x), s)
    IN  RecoverAs(x, After, TicketsOfOthers(x), BatchOf(x))

\* dead_returned_at_tail: the records that it held queue up again behind all others.
RecoverAtTail(x) ==
    LET After(s) == IF s \in Range(BatchOf(x)) THEN Blank("free")
                    ELSE BackAtTail(HoldsOf(x), s)
    IN  RecoverAs(x, After, TicketsOfOthers(x), BatchOf(x))

\* dead_waiter_overlooked: only slots are looked at, not who stands in the list.
RecoverWhoHasSlots(x) ==
    LET After(s) == IF s \in Range(BatchOf(x)) THEN Blank("free") ELSE Back(HoldsOf(x), s)
    IN  /\ Fills(x) \/ HoldsOf(x) # {}
        /\ RecoverAs(x, After, TicketsOfOthers(x), BatchOf(x))

\* mutual_wait_with_dead: those who wait give up, although what the dead have would help.
MutualWaitWithDead(queue) ==
    /\ closing = "open" /\ queue # <<>> /\ NothingFilling
    /\ AllStuck(queue)
    /\ \A i \in Heads(queue) : ~HasFlag(queue[i])
    /\ \A side \in {"writer", "reader"} : Wanted(queue, side) > Room(side)

--------------------------------------------------------------------------------
(* Faults in drawing ahead.                                                   *)

\* youngest_taken: a stack of batches in the place of a queue.
TakeYoungest(c, kind) ==
    /\ holds' = [holds EXCEPT ![Last(QueueOf(ProcessOf[c]))] =
                    [@ EXCEPT !.owner = c, !.kind = kind]]
    /\ UNCHANGED <<slots, free, fresh, filling, around, left>>

\* stale_taken: a batch is handed out although its records were dropped.
QueueWithStale(q) == AheadOf(q)

\* recall_missing: what was drawn ahead stays so, whoever waits for it.
NeverRecall == FALSE

--------------------------------------------------------------------------------
(* Faults in captures and restores.                                           *)

\* capture_unsettled: a capture does not wait for the batches that are being gathered.
WhoeverGathers(q) == TRUE

\* waiters_captured: those who wait are taken into the snapshot.
CaptureWithWaiters(x) ==
    /\ At("capturing", x) /\ NoneGathers(ProcessOf[x])
    /\ saved' = <<SnapshotOf(ProcessOf[x])>>
    /\ boundary' = StillToCopy(x, OldestFirst({s \in Slots : Live(s)}))
    /\ tickets' = <<>>
    /\ UNCHANGED <<slots, free, fresh, filling, holds, closing, cancelled, dead, left>>

\* filling_captured: slots that are being filled are saved as such.
SnapshotWithFilling(q) ==
    LET others == (1 .. Len(holds)) \ {h \in AheadOf(q) : holds[h].state = "ready"}
        After(s) == Back(others, s)
    IN  SnapshotBut(others, After, <<>>)

\* queue_not_captured: batches that were drawn ahead come back like all others.
SnapshotWithoutQueue(q) ==
    LET all == 1 .. Len(holds)
        filled == {s \in Slots : slots[s].phase = "filling"}
        After(s) == IF s \in filled THEN Blank("free") ELSE Back(all, s)
    IN  SnapshotBut(all, After, Rising(filled))

\* copied_too_late: what is used up is free at once, copied or not.
DeliverUncopied(h) ==
    LET After(s) == IF Pinning({h + 1}, s) = {} THEN slots[s]
                    ELSE LetGo([slots[s] EXCEPT !.pins = @ - 1])
    IN  /\ InState(h, "ready") /\ ~Ahead(holds[h + 1])
        /\ Become([s \in Slots |-> After(s)], Staying({h + 1}))
        /\ free' = Behind(Rising({s \in Slots : After(s).phase = "free"} \ Range(free)))
        /\ UNCHANGED <<fresh, filling, tickets, around, left>>

\* restored_unseen: the old records go before it is known that others can come.
RestoreAskAtOnce(x) ==
    /\ "Restore" \in Features /\ Idle(x) /\ boundary.stage = "none"
    /\ NothingFilling /\ holds = <<>>
    /\ slots' = [s \in Slots |-> Blank("free")]
    /\ free' = [i \in 1 .. Capacity |-> i - 1] /\ fresh' = Capacity
    /\ boundary' = [stage |-> "restoring", actor |-> x, slots |-> <<>>]
    /\ UNCHANGED <<filling, tickets, holds, closing, cancelled, dead, left, saved>>

\* queue_order_lost: the batches of the queue come back in another order.
RestoreTurned(x) ==
    LET queue == saved[1].queue
    IN  /\ At("loading", x)
        /\ slots' = saved[1].slots /\ free' = saved[1].free /\ fresh' = saved[1].fresh
        /\ holds' = [i \in 1 .. Len(queue) |->
                        [owner |-> ProcessOf[x], kind |-> "prefetched", state |-> "ready",
                         slots |-> queue[Len(queue) + 1 - i].slots,
                         stamps |-> queue[Len(queue) + 1 - i].stamps]]
        /\ boundary' = NoBoundary
        /\ UNCHANGED <<filling, tickets, closing, cancelled, dead, left, saved>>

\* dead_loader_ignored: a buffer that was restored only in part stays open.
ClosingKept(x) == closing

--------------------------------------------------------------------------------
(* Faults in overwriting.                                                     *)

\* pinned_evicted: a record is overwritten while somebody gathers it.
EvictablePinned == {s \in Slots : Live(s) /\ ~ToCopy(s)}

\* uncopied_evicted: a record is overwritten although a capture has still to copy it.
EvictableUncopied == {s \in Slots : Live(s) /\ slots[s].pins = 0}

\* youngest_evicted: the records that were written last go first.
RoomFromYoungest(n) ==
    LET oldest == OldestFirst(Evictable)
    IN  SubSeq(free \o [i \in 1 .. Len(oldest) |-> oldest[Len(oldest) + 1 - i]], 1, n)

\* evicted_still_left: the epoch goes on to count on records that are gone.
LeftUnchanged(batch) == left

\* pinned_until_end: a batch keeps its records from writers until it is handed back.
PinsAlways(hold) == TRUE

\* drawn_still_left: what is drawn may be drawn again in the same epoch.
LeftUndrawn(k, batch) == Choice(k)

\* returned_too_late: a batch that comes back is drawn again, whatever its epoch was.
LeftAfterAnyReturn(hs) ==
    left \union {s \in Slots : Live(s) /\ \E h \in hs : s \in Range(holds[h].slots)}

\* epoch_not_forgotten: batches remember their records when another epoch has begun.
RememberedForEver(k) == holds

\* last_not_dropped: an epoch ends only when nothing is left of it.
OnlyWhenNothingIsLeft(k) == left = {}

\* left_not_captured: a snapshot does not say what is left of the epoch.
CaptureWithoutLeft(x) ==
    /\ At("capturing", x) /\ NoneGathers(ProcessOf[x])
    /\ saved' = <<[SnapshotOf(ProcessOf[x]) EXCEPT !.left = {}]>>
    /\ boundary' = StillToCopy(x, OldestFirst({s \in Slots : Live(s)}))
    /\ UNCHANGED <<slots, free, fresh, filling, tickets, holds, closing, cancelled, dead, left>>
================================================================================
