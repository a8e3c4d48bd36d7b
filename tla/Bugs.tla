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
    /\ UNCHANGED <<free, fresh, tickets, closing, cancelled>>

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
        /\ UNCHANGED <<closing, cancelled>>

\* abandoned_slots_lost: nobody gives back the slots of a copy that raised.
AbandonWithoutReturn(p) ==
    /\ "Abandon" \in Features /\ Fills(p)
    /\ slots' = [s \in Slots |-> IF s \in Range(filling[p]) THEN Blank("free") ELSE slots[s]]
    /\ filling' = [filling EXCEPT ![p] = <<>>]
    /\ UNCHANGED <<free, fresh, tickets, holds, closing, cancelled>>

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
    LET Gone(s) == Spent(s) \/ Dropped(s)
        After(s) == [slots[s] EXCEPT !.pins = @ - 1]
    IN  /\ InState(h, "ready")
        /\ EndHold(h, After, SelectSeq(holds[h + 1].slots, Gone))

ReturnAs(h, After(_), Gone(_)) ==
    /\ InState(h, "failed") \/ OnLease(h)
    /\ EndHold(h, After, SelectSeq(holds[h + 1].slots, Gone))
LastOfDropped(s) == slots[s].pins = 1 /\ Dropped(s)
LessOne(count, s) == IF Live(s) THEN count - 1 ELSE count

\* failed_draw_lost: a batch whose transform raised counts as used.
ReturnAsUsed(h) ==
    LET Gone(s) == slots[s].pins = 1 /\ (Spent(s) \/ Dropped(s))
        After(s) == [slots[s] EXCEPT !.pins = @ - 1]
    IN  ReturnAs(h, After, Gone)

\* returned_at_tail: a record that comes back queues up again behind all others.
ReturnAtTail(h) ==
    LET After(s) == [slots[s] EXCEPT
            !.pins = @ - 1,
            !.uses = LessOne(@, s),
            !.stamp = IF Live(s) THEN AtTail(PositionOf(s, holds[h + 1].slots)) ELSE @]
    IN  ReturnAs(h, After, LastOfDropped)

\* returned_pin_left: a hold that comes back leaves its pins behind.
ReturnWithoutUnpin(h) ==
    LET After(s) == [slots[s] EXCEPT !.uses = LessOne(@, s)]
    IN  ReturnAs(h, After, LastOfDropped)

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
    /\ \A h \in 1 .. Len(holds) :
          OutOnLease(holds[h]) /\ \E i \in 1 .. Len(queue) : queue[i].actor = holds[h].owner
    /\ \A i \in Heads(queue) : ~HasFlag(queue[i])
    /\ \A side \in {"writer", "reader"} : Wanted(queue, side) > Room(side)

\* close_forgets_readers: closing at once turns away writers, and readers wait on.
WritersShutOut(ticket) == Side(ticket) = "writer" /\ closing # "open"

\* draining_wants_all: a reader insists on its least number although no more will come.
LeastAlways(ticket) == ticket.m
================================================================================
