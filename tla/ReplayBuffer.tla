----------------------------- MODULE ReplayBuffer ------------------------------
(* A replay buffer that makes its writers wait, or overwrites its oldest      *)
(* records.                                                                   *)
(*                                                                            *)
(* Producers write batches of records into a fixed number of slots, readers   *)
(* draw batches out, and every record is drawn a fixed number of times, or    *)
(* until it is overwritten.                                                   *)
(* Whoever cannot be served waits in one list of tickets: writers for room,   *)
(* readers for records. Six things make that hard, and this module is         *)
(* about them.                                                                *)
(*                                                                            *)
(* A batch is copied outside the lock, so a slot has a life of its own while  *)
(* it is being filled or held: free, filling, live, dropped.                  *)
(* A wait may end by service, deadline, cancel flag, closing or a dead end,   *)
(* and exactly one of these must win.                                         *)
(* Writers and readers can wait for each other for ever, and that must be an  *)
(* error and not a hang.                                                      *)
(* A process may be killed, and what it had is stuck until somebody finds it. *)
(* Batches are drawn ahead, so records are gone which nobody has seen yet.    *)
(* All of it is saved at one boundary while it goes on, and brought back.     *)
(*                                                                            *)
(* One action is one critical section of the library. The questions that the  *)
(* actions ask are in ReplayBufferCore, what overwriting changes is in        *)
(* ReplayBufferOverwriting, what the machine promises is in                   *)
(* ReplayBufferProperties, broken variants are in Bugs, and                   *)
(* docs/state-machine.md tells the same in words.                             *)
EXTENDS ReplayBufferOverwriting

TicketLeaves(x) == tickets' = Without(tickets, PlaceOf(x))
NothingButTickets == UNCHANGED <<slots, free, fresh, filling, holds, around, left>>
OnlyTicketLeaves(x) == TicketLeaves(x) /\ NothingButTickets

\* A call is served, starts to wait, or is told why neither; then nothing has changed.
Calls(ticket, Served) ==
    LET verdict == OnArrival(ticket)
    IN  \/ verdict = "SERVE" /\ Served /\ UNCHANGED tickets
        \/ verdict = "WAIT" /\ tickets' = Append(tickets, ticket) /\ NothingButTickets
        \/ verdict \notin {"SERVE", "WAIT"} /\ UNCHANGED vars

--------------------------------------------------------------------------------
(* Writing.                                                                   *)

Fill(p, n) ==
    LET batch == RoomFor(n)
        sl == [s \in Slots |-> IF s \in Range(batch) THEN Blank("filling") ELSE slots[s]]
    IN  /\ IF n <= Len(free) THEN slots' = sl /\ UNCHANGED holds ELSE Become(sl, holds)
        /\ filling' = [filling EXCEPT ![p] = batch]
        /\ free' = SubSeq(free, n + 1, Len(free))
        /\ fresh' = Min(fresh, Len(free'))
        /\ left' = LeftAfterFill(batch)
        /\ UNCHANGED around

\* A producer calls with a batch of n, and reserves slots if it is served.
Arrive(p, n) == Idle(p) /\ Calls(Ticket("write", p, n, n), Fill(p, n))

\* A waiting producer wakes and finds room for its whole batch.
Admit(p) ==
    /\ OnWaking(p) = "SERVE"
    /\ LET ticket == tickets[PlaceOf(p)]
       IN  Side(ticket) = "writer" /\ Fill(p, ticket.n)
    /\ TicketLeaves(p)

\* A producer has copied its rows, outside the lock: all of them become visible.
Publish(p) ==
    LET batch == filling[p]
    IN  /\ Fills(p) /\ p \notin dead
        /\ Become([s \in Slots |-> IF s \in Range(batch)
                        THEN [Blank("live") EXCEPT !.stamp = AtTail(PositionOf(s, batch))]
                        ELSE slots[s]], holds)
        /\ filling' = [filling EXCEPT ![p] = <<>>]
        /\ left' = LeftWith(batch)
        /\ UNCHANGED <<free, fresh, tickets, around>>

\* The copy raised: the slots are free, and the next to be taken.
Abandon(p) ==
    /\ "Abandon" \in Features /\ Fills(p) /\ p \notin dead
    /\ slots' = [s \in Slots |-> IF s \in Range(filling[p]) THEN Blank("free") ELSE slots[s]]
    /\ free' = filling[p] \o free
    /\ filling' = [filling EXCEPT ![p] = <<>>]
    /\ UNCHANGED <<fresh, tickets, holds, around, left>>

--------------------------------------------------------------------------------
(* Drawing.                                                                   *)

\* The batches that a call for k records may get: the oldest, or any in any order.
Batches(k) ==
    LET choice == Choice(k)
        r == Min(k, Cardinality(choice))
    IN  IF Order = "fifo" THEN {SubSeq(OldestFirst(choice), 1, r)}
        ELSE IF Order = "replacement" THEN [1 .. k -> choice]
        ELSE {batch \in [1 .. r -> choice] : Cardinality(Range(batch)) = r}

\* One use is spent now and not at delivery, so that nobody else counts on it.
\* Records with uses left queue up again behind the others.
DrawFor(owner, kind, k) == \E batch \in Batches(k) :
    LET Drawn(s) == [slots[s] EXCEPT
            !.uses = IF Overwrites THEN @ ELSE @ + 1,
            !.pins = @ + 1,
            !.stamp = IF slots[s].uses + 1 < UsesPerRecord
                      THEN AtTail(PositionOf(s, batch)) ELSE @]
        hold == [owner |-> owner, kind |-> kind, slots |-> batch, state |-> "gathering",
                 stamps |-> ToRemember(batch)]
    IN  /\ Become([s \in Slots |-> IF s \in Range(batch) THEN Drawn(s) ELSE slots[s]],
                  Append(StillRemembered(k), hold))
        /\ left' = LeftAfterDraw(k, batch)
        /\ UNCHANGED <<free, fresh, filling, around>>

\* The oldest batch that was drawn ahead becomes the call's own, in whatever state.
Take(c, kind) ==
    /\ holds' = [holds EXCEPT ![First(QueueOf(ProcessOf[c]))] =
                    [@ EXCEPT !.owner = c, !.kind = kind]]
    /\ UNCHANGED <<slots, free, fresh, filling, around, left>>

Serve(ticket) ==
    IF HasAhead(ticket) THEN Take(ticket.actor, ticket.kind)
    ELSE DrawFor(ticket.actor, ticket.kind, ticket.n)

\* A reader calls for k records, or at least m.
Ask(c, kind, k, m) ==
    LET ticket == Ticket(kind, c, k, m)
    IN  Idle(c) /\ MayHave(c, kind) /\ Calls(ticket, Serve(ticket))

\* A waiting reader wakes and finds enough.
Draw(c) ==
    /\ OnWaking(c) = "SERVE"
    /\ LET ticket == tickets[PlaceOf(c)] IN Side(ticket) = "reader" /\ Serve(ticket)
    /\ TicketLeaves(c)

\* A process draws ahead what its readers will ask for, while nobody waits for records.
Refill(q) ==
    /\ \E c \in Readers : ProcessOf[c] = q
    /\ \A x \in dead : ProcessOf[x] # q
    /\ \A i \in 1 .. Len(tickets) : Side(tickets[i]) = "writer"
    /\ closing # "stopped" /\ boundary.stage \notin {"restoring", "loading"} /\ ~CapturesFor(q)
    /\ Cardinality(AheadOf(q)) < PrefetchDepth
    /\ BatchSize <= Cardinality(Sampleable)
    /\ DrawFor(q, "prefetched", BatchSize)
    /\ UNCHANGED tickets

--------------------------------------------------------------------------------
(* Batches end.                                                               *)

\* Holds are named by their place, from 0.  Those of the dead, and of their processes,
\* can only be recovered.
Holds == 0 .. MostHolds - 1
OfTheDead(hold) == \E x \in dead : hold.owner = IF Ahead(hold) THEN ProcessOf[x] ELSE x
InHands(h) == h < Len(holds) /\ ~OfTheDead(holds[h + 1])
InState(h, state) == InHands(h) /\ holds[h + 1].state = state
OnLease(h) == InHands(h) /\ OutOnLease(holds[h + 1])
NothingButHolds == UNCHANGED <<slots, free, fresh, filling, tickets, around, left>>

EndHolds(hs, After(_), abandoned) ==
    /\ Become([s \in Slots |-> After(s)], Staying(hs))
    /\ free' = FreeThen(hs, After, abandoned)
    /\ UNCHANGED <<fresh, cancelled, saved>>

GiveBack(h) ==
    LET After(s) == Back({h + 1}, s)
    IN  /\ EndHolds({h + 1}, After, <<>>)
        /\ left' = LeftAfterReturn({h + 1})
        /\ UNCHANGED <<filling, tickets, closing, dead, boundary>>

\* The rows are gathered, outside the lock.  If their records were dropped meanwhile, a
\* batch that was drawn ahead is nobody's, and ends.
Gathered(h, state) ==
    /\ InState(h, "gathering")
    /\ IF Stale(holds[h + 1]) THEN GiveBack(h)
       ELSE /\ holds' = [holds EXCEPT ![h + 1].state = state]
            /\ IF Overwrites THEN NoLongerPinned({h + 1}) ELSE NothingButHolds

\* The reader has gathered and transformed its rows.
Ready(h) == Gathered(h, "ready")

\* The gather or the transform raised.
Fail(h) == "Fail" \in Features /\ Gathered(h, "failed")

\* The caller has its batch, or commits its lease: what nobody needs any more is free.
Deliver(h) ==
    LET After(s) == Unpinned({h + 1}, s)
    IN  /\ InState(h, "ready") /\ ~Ahead(holds[h + 1])
        /\ EndHolds({h + 1}, After, <<>>)
        /\ UNCHANGED <<filling, tickets, closing, dead, boundary, left>>

\* A batch failed, the owner of a lease gives it back, or a process its queue.
Return(h) ==
    /\ \/ InState(h, "failed") /\ ~Ahead(holds[h + 1])
       \/ OnLease(h)
       \/ "Flush" \in Features /\ InHands(h) /\ h + 1 \in SettledAhead
    /\ GiveBack(h)

\* Those who wait find that a batch which nobody asked for yet would help them.
Recall == MayRecall /\ GiveBack(Last(SettledAhead) - 1)

--------------------------------------------------------------------------------
(* Giving up, closing, emptying.                                              *)

\* A caller's deadline passes while it waits.
Expire(x) == "Expire" \in Features /\ OnWaking(x) = "WAIT" /\ OnlyTicketLeaves(x)

\* A waiting caller wakes and sees its flag.
Cancel(x) == OnWaking(x) = "CANCELLED" /\ OnlyTicketLeaves(x)

\* A waiting caller wakes and learns that it will never be served.
Refuse(x) == OnWaking(x) \in {"SHUT_DOWN", "MUTUAL_WAIT"} /\ OnlyTicketLeaves(x)

\* Anybody sets a flag, without the lock.  Calls that are past their wait ignore it.
SetCancel(token) ==
    /\ token \in Tokens \ cancelled
    /\ cancelled' = cancelled \union {token}
    /\ UNCHANGED <<slots, free, fresh, filling, tickets, holds, closing, dead, boundary, left,
                   saved>>

\* Anybody closes the buffer: no more writes, and for "stopped" no more draws.
Close(mode) ==
    /\ closing' = IF closing = "open" \/ mode = "stopped" THEN mode ELSE closing
    /\ UNCHANGED <<slots, free, fresh, filling, tickets, holds, cancelled, dead, boundary, left,
                   saved>>

\* Anybody throws the records away, and the batches drawn ahead.  Slots that are held,
\* or still to be copied, stay until they are let go.
Empty ==
    LET Still(s) == slots[s].pins - Cardinality(Pinning(SettledAhead, s))
        gone == {s \in Slots : Live(s) /\ Still(s) = 0 /\ ~ToCopy(s)}
    IN  /\ "Empty" \in Features
        /\ Become([s \in Slots |->
                      IF s \in gone THEN Blank("free")
                      ELSE IF Live(s) THEN [Blank("dropped") EXCEPT !.pins = Still(s)]
                      ELSE slots[s]], Staying(SettledAhead))
        /\ free' = Behind(Rising(gone))
        /\ left' = {}
        /\ UNCHANGED <<fresh, filling, tickets, around>>

--------------------------------------------------------------------------------
(* Capture and restore.                                                       *)

NothingButBoundary ==
    UNCHANGED <<slots, free, fresh, filling, tickets, holds, closing, cancelled, dead, left, saved>>

Begin(stage, x) ==
    /\ Idle(x) /\ boundary.stage = "none"
    /\ boundary' = [stage |-> stage, actor |-> x, slots |-> <<>>]
    /\ NothingButBoundary

At(stage, x) == boundary.stage = stage /\ boundary.actor = x /\ x \notin dead

StillToCopy(x, batch) ==
    IF batch = <<>> THEN NoBoundary ELSE [stage |-> "copying", actor |-> x, slots |-> batch]

\* The state if these holds were over and slots were what After says.
SnapshotBut(hs, After(_), abandoned) ==
    LET sl == [s \in Slots |-> After(s)]
        ages == Ages(sl, Staying(hs))
        queue == RankedHolds(sl, Staying(hs), ages)
    IN  [slots |-> RankedSlots(sl, ages), fresh |-> fresh,
         free |-> FreeThen(hs, After, abandoned), left |-> LeftAfterReturn(hs),
         queue |-> [i \in 1 .. Len(queue) |->
                       [slots |-> queue[i].slots, stamps |-> queue[i].stamps]]]

\* What a process saves: the state as if all others had given back what they fill and
\* hold. Of the batches only those count that it has drawn ahead and nobody has seen.
SnapshotOf(q) ==
    LET others == (1 .. Len(holds)) \ {h \in AheadOf(q) : holds[h].state = "ready"}
        filled == {s \in Slots : slots[s].phase = "filling"}
        After(s) == IF s \in filled THEN Blank("free") ELSE Back(others, s)
    IN  SnapshotBut(others, After, Rising(filled))

\* The process draws no more, and waits until it gathers no more.
CaptureAsk(x) == "Capture" \in Features /\ Begin("capturing", x)

NoneGathers(q) == \A h \in 1 .. Len(holds) :
    IF Ahead(holds[h]) THEN holds[h].owner = q => Settled(holds[h])
    ELSE ProcessOf[holds[h].owner] = q => Settled(holds[h])

\* The boundary.  Everything goes on at once; the payload is copied behind it.
Capture(x) ==
    LET live == {s \in Slots : Live(s)}
    IN  /\ At("capturing", x) /\ NoneGathers(ProcessOf[x])
        /\ saved' = <<SnapshotOf(ProcessOf[x])>>
        /\ boundary' = StillToCopy(x, IF HasAges THEN OldestFirst(live) ELSE Rising(live))
        /\ UNCHANGED <<slots, free, fresh, filling, tickets, holds, closing, cancelled, dead, left>>

\* The payload of one more slot is copied, and nothing keeps it any more.
CaptureDone(x) ==
    LET After(s) == IF s = Head(boundary.slots) THEN LetGo(slots[s]) ELSE slots[s]
    IN  /\ At("copying", x)
        /\ EndHolds({}, After, <<>>)
        /\ boundary' = StillToCopy(x, Tail(boundary.slots))
        /\ UNCHANGED <<filling, tickets, closing, dead, left>>

\* What is to be restored was found valid.  Nobody is let in any more.
RestoreAsk(x) == "Restore" \in Features /\ Begin("restoring", x)

\* Everybody is out, but for leases, which are void now: the old records go.
Load(x) ==
    /\ At("restoring", x) /\ saved # <<>> /\ NothingFilling /\ dead = {}
    /\ \A h \in 1 .. Len(holds) : OutOnLease(holds[h]) \/ h \in SettledAhead
    /\ slots' = [s \in Slots |-> Blank("free")]
    /\ free' = [i \in 1 .. Capacity |-> i - 1] /\ fresh' = Capacity
    /\ holds' = <<>> /\ left' = {}
    /\ boundary' = [boundary EXCEPT !.stage = "loading"]
    /\ UNCHANGED <<filling, tickets, closing, cancelled, dead, saved>>

\* The payload is copied into place: the saved state is there.
Restore(x) ==
    LET snapshot == saved[1]
    IN  /\ At("loading", x)
        /\ slots' = snapshot.slots /\ free' = snapshot.free /\ fresh' = snapshot.fresh
        /\ holds' = [i \in 1 .. Len(snapshot.queue) |->
                        [owner |-> ProcessOf[x], kind |-> "prefetched", state |-> "ready",
                         slots |-> snapshot.queue[i].slots,
                         stamps |-> snapshot.queue[i].stamps]]
        /\ boundary' = NoBoundary /\ left' = snapshot.left
        /\ UNCHANGED <<filling, tickets, closing, cancelled, dead, saved>>

\* A restore waited too long for the others.
Reject(x) ==
    /\ At("restoring", x)
    /\ boundary' = NoBoundary
    /\ NothingButBoundary

--------------------------------------------------------------------------------
(* Dying.                                                                     *)

Has(x) ==
    Waits(x) \/ Fills(x) \/ HoldsOf(x) # {} \/ AheadOf(ProcessOf[x]) # {} \/ boundary.actor = x

\* A process dies while it waits, copies or holds a batch.  Nobody knows yet.
Kill(x) ==
    /\ "Kill" \in Features /\ x \notin dead /\ Has(x)
    /\ dead' = dead \union {x}
    /\ UNCHANGED <<slots, free, fresh, filling, tickets, holds, closing, cancelled,
                   boundary, left, saved>>

\* A buffer that was restored only in part is of no use.
ClosingAfter(x) ==
    IF boundary.stage = "loading" /\ boundary.actor = x THEN "stopped" ELSE closing

\* Somebody finds a dead process and takes from it all that it had: what it copied is
\* abandoned, what it held comes back, what it had still to copy is let go.  From now on
\* the name is that of a new process.
Recover(x) ==
    LET hs == HoldsOf(x) \union AheadOf(ProcessOf[x])
        batch == IF Fills(x) THEN filling[x] ELSE <<>>
        After(s) == IF s \in Range(batch) THEN Blank("free")
                    ELSE IF boundary.actor = x /\ ToCopy(s) THEN LetGo(Back(hs, s))
                    ELSE Back(hs, s)
        Others(ticket) == ticket.actor # x
    IN  /\ x \in dead /\ dead' = dead \ {x}
        /\ EndHolds(hs, After, batch)
        /\ left' = LeftAfterReturn(hs)
        /\ filling' = [p \in Producers |-> IF p = x THEN <<>> ELSE filling[p]]
        /\ tickets' = SelectSeq(tickets, Others)
        /\ closing' = ClosingAfter(x)
        /\ boundary' = IF boundary.actor = x THEN NoBoundary ELSE boundary

--------------------------------------------------------------------------------
(* The machine.                                                               *)

Init ==
    /\ slots = [s \in Slots |-> Blank("free")]
    /\ free = [i \in 1 .. Capacity |-> i - 1] /\ fresh = Capacity
    /\ filling = [p \in Producers |-> <<>>]
    /\ tickets = <<>> /\ holds = <<>>
    /\ closing = "open" /\ cancelled = {} /\ dead = {}
    /\ boundary = NoBoundary /\ left = {} /\ saved = <<>>

Arrives(p) == \E n \in WriteSizes : Arrive(p, n)
Asks(c) == \E r \in Requests : Ask(c, r[1], r[2], r[3])

Next ==
    \/ \E p \in Producers : Arrives(p) \/ Admit(p) \/ Publish(p) \/ Abandon(p)
    \/ \E c \in Readers : Asks(c) \/ Draw(c)
    \/ \E q \in Processes : Refill(q)
    \/ \E h \in Holds : Ready(h) \/ Fail(h) \/ Deliver(h) \/ Return(h)
    \/ \E x \in Actors : Expire(x) \/ Cancel(x) \/ Refuse(x) \/ Kill(x) \/ Recover(x)
    \/ \E x \in Actors : CaptureAsk(x) \/ Capture(x) \/ CaptureDone(x)
    \/ \E x \in Actors : RestoreAsk(x) \/ Load(x) \/ Restore(x) \/ Reject(x)
    \/ \E token \in Tokens : SetCancel(token)
    \/ \E mode \in Closings : Close(mode)
    \/ Recall \/ Empty

Spec == Init /\ [][Next]_vars
================================================================================
