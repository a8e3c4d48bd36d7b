----------------------------- MODULE ReplayBuffer ------------------------------
(* A replay buffer that makes its writers wait instead of overwriting.        *)
(*                                                                            *)
(* Producers write batches of records into a fixed number of slots, readers   *)
(* draw batches out, and every record is drawn a fixed number of times.       *)
(* Whoever cannot be served waits in one list of tickets: writers for room,   *)
(* readers for records. Four things make that hard, and this module is        *)
(* about them.                                                                *)
(*                                                                            *)
(* A batch is copied outside the lock, so a slot has a life of its own while  *)
(* it is being filled or held: free, filling, live, dropped.                  *)
(* A wait may end by service, deadline, cancel flag, closing or a dead end,   *)
(* and exactly one of these must win.                                         *)
(* Writers and readers can wait for each other for ever, and that must be an  *)
(* error and not a hang.                                                      *)
(* A process may be killed, and what it had is stuck until somebody finds it. *)
(*                                                                            *)
(* One action is one critical section of the library. What the machine        *)
(* promises is in ReplayBufferProperties, broken variants are in Bugs, and    *)
(* docs/state-machine.md tells the same in words.                             *)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS
    Capacity,       \* number of slots
    UsesPerRecord,  \* how often a record is drawn before it is spent
    Order,          \* "fifo": the oldest records are drawn; "random": any
    Producers,      \* actors that write
    Readers,        \* actors that draw; an actor may do both
    WriteSizes,     \* batch sizes that producers write
    Requests,       \* <<kind, k, m>>: "plain" or "lease", k records at most, m will do
    TokenOf,        \* the cancel token that an actor passes with its calls, or NoToken
    Features,       \* which of "Abandon", "Fail", "Expire", "Empty", "Kill" may happen
    Closings        \* which of "draining", "stopped" may be asked for

VARIABLES
    slots,          \* for each slot its phase, its uses, the holds that pin it, its age
    free,           \* the free slots in the order in which they will be taken
    fresh,          \* how many slots at the end of free were never used
    filling,        \* for each producer the slots that it fills, in batch order
    tickets,        \* the calls that wait, in arrival order
    holds,          \* the batches that were drawn and not handed back, in draw order
    closing,        \* "open", "draining" or "stopped"
    cancelled,      \* the tokens whose flag is set
    dead            \* the actors that were killed and not yet recovered

vars == <<slots, free, fresh, filling, tickets, holds, closing, cancelled, dead>>

Slots == 0 .. Capacity - 1
Actors == Producers \union Readers
NoToken == "none"
Tokens == {TokenOf[x] : x \in Actors} \ {NoToken}

--------------------------------------------------------------------------------
(* Sequences.                                                                 *)

Range(seq) == {seq[i] : i \in 1 .. Len(seq)}
Without(seq, i) == SubSeq(seq, 1, i - 1) \o SubSeq(seq, i + 1, Len(seq))
PositionOf(x, seq) == CHOOSE i \in 1 .. Len(seq) : seq[i] = x
Min(a, b) == IF a < b THEN a ELSE b

\* The elements of a set by rising key; no two have the same.
Sorted(S, key(_)) ==
    [i \in 1 .. Cardinality(S) |->
        CHOOSE x \in S : Cardinality({y \in S : key(y) < key(x)}) = i - 1]

--------------------------------------------------------------------------------
(* Slots and their ages.                                                      *)

Blank(phase) == [phase |-> phase, uses |-> 0, pins |-> 0, stamp |-> 0]

Live(s) == slots[s].phase = "live"
Dropped(s) == slots[s].phase = "dropped"
Spent(s) == Live(s) /\ slots[s].uses = UsesPerRecord
Sampleable == {s \in Slots : Live(s) /\ slots[s].uses < UsesPerRecord}
OldestFirst(S) == LET age(s) == slots[s].stamp IN Sorted(S, age)

\* All ages that still matter: of the live slots, and the former ages of live
\* slots that holds remember in case the batch comes back.
Ages(sl, hs) ==
    {sl[s].stamp : s \in {s \in Slots : sl[s].phase = "live"}} \union
    UNION {{hs[h].stamps[i] : i \in {i \in 1 .. Len(hs[h].slots) :
                                        sl[hs[h].slots[i]].phase = "live"}}
              : h \in 1 .. Len(hs)}

\* Only the order of ages matters.  Every step that changes them ends here, where
\* the distinct ones are numbered from 1, so that the state space is finite.
Become(sl, hs) ==
    LET ages == Ages(sl, hs)
        Rank(a) == IF Order = "fifo" THEN Cardinality({b \in ages : b <= a}) ELSE 0
        Now(s, a) == IF sl[s].phase = "live" THEN Rank(a) ELSE 0
    IN  /\ slots' = [s \in Slots |-> [sl[s] EXCEPT !.stamp = Now(s, @)]]
        /\ holds' = [h \in 1 .. Len(hs) |-> [hs[h] EXCEPT !.stamps =
                        [i \in 1 .. Len(@) |-> Now(hs[h].slots[i], @[i])]]]

\* The age of the i-th record that goes to the tail: younger than all there are.
AtTail(i) == Cardinality(Ages(slots, holds)) + i

\* Slots that become free again go behind the used ones and before the fresh ones.
Behind(batch) ==
    LET used == Len(free) - fresh
    IN  SubSeq(free, 1, used) \o batch \o SubSeq(free, used + 1, Len(free))

--------------------------------------------------------------------------------
(* What a call gets. All of it is decided by Verdict, at the first critical   *)
(* section of the call and whenever it wakes.                                 *)

Ticket(kind, x, n, m) == [kind |-> kind, actor |-> x, n |-> n, m |-> m]
Side(ticket) == IF ticket.kind = "write" THEN "writer" ELSE "reader"

Waits(x) == \E i \in 1 .. Len(tickets) : tickets[i].actor = x
PlaceOf(x) == CHOOSE i \in 1 .. Len(tickets) : tickets[i].actor = x
Fills(x) == x \in Producers /\ filling[x] # <<>>
HoldsOf(x) == {h \in 1 .. Len(holds) : holds[h].owner = x}
Pinning(hs, s) == {h \in hs : s \in Range(holds[h].slots)}
NothingFilling == \A p \in Producers : filling[p] = <<>>
OutOnLease(hold) == hold.kind = "lease" /\ hold.state = "ready"
Idle(x) ==
    /\ x \notin dead /\ ~Waits(x) /\ ~Fills(x)
    /\ \A h \in HoldsOf(x) : OutOnLease(holds[h])

IsHead(queue, i) == \A j \in 1 .. i - 1 : Side(queue[j]) # Side(queue[i])
Heads(queue) == {i \in 1 .. Len(queue) : IsHead(queue, i)}
HasFlag(ticket) == TokenOf[ticket.actor] \in cancelled

\* What one side waits for: writers for free slots, readers for records.
Room(side) == IF side = "writer" THEN Len(free) ELSE Cardinality(Sampleable)

\* Nothing more will come: a reader then takes what is there.
Drained == closing = "draining" /\ NothingFilling
Least(ticket) == IF Side(ticket) = "reader" /\ Drained THEN 1 ELSE ticket.m

ShutOut(ticket) == IF Side(ticket) = "writer" THEN closing # "open" ELSE closing = "stopped"
NothingToCome(ticket) == Side(ticket) = "reader" /\ Drained /\ Sampleable = {}

\* What would have to be there for anybody of this side to be served.  If none
\* waits, that is the most modest newcomer: one for a single record.
Wanted(queue, side) ==
    LET heads == {i \in Heads(queue) : Side(queue[i]) = side}
    IN  IF heads = {} THEN 1 ELSE queue[CHOOSE i \in heads : TRUE].m

\* Nobody will ever be served again, unless somebody gives up.  (The dead give back.)
MutualWait(queue) ==
    /\ closing = "open" /\ queue # <<>> /\ NothingFilling /\ dead = {}
    /\ \A h \in 1 .. Len(holds) :
          OutOnLease(holds[h]) /\ \E i \in 1 .. Len(queue) : queue[i].actor = holds[h].owner
    /\ \A i \in Heads(queue) : ~HasFlag(queue[i])
    /\ \A side \in {"writer", "reader"} : Wanted(queue, side) > Room(side)

\* The later head gives up: the earlier call has the older claim.
GivesUp(queue, i) ==
    MutualWait(queue) /\ i \in Heads(queue) /\ \A j \in Heads(queue) : j <= i

\* A call that can never be served beside its own actor's leases.  They keep a
\* slot from a writer always, and from a reader if no use of it can come back
\* from anybody else.
Overleased(ticket) ==
    LET own == {h \in HoldsOf(ticket.actor) : holds[h].kind = "lease"}
        leased == {s \in Slots : Pinning(own, s) # {}}
        Others(s) == Cardinality(Pinning((1 .. Len(holds)) \ own, s))
        blocked == {s \in leased : Dropped(s) \/
                       (Live(s) /\ slots[s].uses - Others(s) = UsesPerRecord)}
    IN  ticket.m + Cardinality(IF Side(ticket) = "writer" THEN leased ELSE blocked) > Capacity

\* The first line that holds counts.  A call that would wait beyond its deadline
\* expires instead, so time needs no line of its own.
Verdict(queue, i) ==
    LET ticket == queue[i]
    IN  IF ShutOut(ticket) THEN "SHUT_DOWN"
        ELSE IF HasFlag(ticket) THEN "CANCELLED"
        ELSE IF IsHead(queue, i) /\ Least(ticket) <= Room(Side(ticket)) THEN "SERVE"
        ELSE IF NothingToCome(ticket) THEN "SHUT_DOWN"
        ELSE IF GivesUp(queue, i) \/ Overleased(ticket) THEN "MUTUAL_WAIT"
        ELSE "WAIT"

OnArrival(ticket) == Verdict(Append(tickets, ticket), Len(tickets) + 1)
OnWaking(x) ==
    IF Waits(x) /\ x \notin dead THEN Verdict(tickets, PlaceOf(x)) ELSE "NO_CALL"

TicketLeaves(x) == tickets' = Without(tickets, PlaceOf(x))
NothingButTickets == UNCHANGED <<slots, free, fresh, filling, holds, closing, cancelled, dead>>
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
    LET batch == SubSeq(free, 1, n)
    IN  /\ slots' = [s \in Slots |-> IF s \in Range(batch) THEN Blank("filling") ELSE slots[s]]
        /\ filling' = [filling EXCEPT ![p] = batch]
        /\ free' = SubSeq(free, n + 1, Len(free))
        /\ fresh' = Min(fresh, Len(free) - n)
        /\ UNCHANGED <<holds, closing, cancelled, dead>>

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
        /\ UNCHANGED <<free, fresh, tickets, closing, cancelled, dead>>

\* The copy raised: the slots are free as before, and the next to be taken.
Abandon(p) ==
    /\ "Abandon" \in Features /\ Fills(p) /\ p \notin dead
    /\ slots' = [s \in Slots |-> IF s \in Range(filling[p]) THEN Blank("free") ELSE slots[s]]
    /\ free' = filling[p] \o free
    /\ filling' = [filling EXCEPT ![p] = <<>>]
    /\ UNCHANGED <<fresh, tickets, holds, closing, cancelled, dead>>

--------------------------------------------------------------------------------
(* Drawing.                                                                   *)

\* The batches that a call for k records may get: the oldest, or any in any order.
Batches(k) ==
    LET r == Min(k, Cardinality(Sampleable))
    IN  IF Order = "fifo"
        THEN {SubSeq(OldestFirst(Sampleable), 1, r)}
        ELSE {batch \in [1 .. r -> Sampleable] : Cardinality(Range(batch)) = r}

\* One use is spent now and not at delivery, so that nobody else counts on it.
\* Records with uses left queue up again behind the others.
Take(c, kind, k) == \E batch \in Batches(k) :
    LET Drawn(s) == [slots[s] EXCEPT
            !.uses = @ + 1,
            !.pins = @ + 1,
            !.stamp = IF slots[s].uses + 1 < UsesPerRecord
                      THEN AtTail(PositionOf(s, batch)) ELSE @]
        hold == [owner |-> c, kind |-> kind, slots |-> batch, state |-> "gathering",
                 stamps |-> [i \in 1 .. Len(batch) |-> slots[batch[i]].stamp]]
    IN  /\ Become([s \in Slots |-> IF s \in Range(batch) THEN Drawn(s) ELSE slots[s]],
                  Append(holds, hold))
        /\ UNCHANGED <<free, fresh, filling, closing, cancelled, dead>>

\* A reader calls for k records, or at least m.
Ask(c, kind, k, m) == Idle(c) /\ Calls(Ticket(kind, c, k, m), Take(c, kind, k))

\* A waiting reader wakes and finds enough.
Draw(c) ==
    /\ OnWaking(c) = "SERVE"
    /\ LET ticket == tickets[PlaceOf(c)]
       IN  Side(ticket) = "reader" /\ Take(c, ticket.kind, ticket.n)
    /\ TicketLeaves(c)

\* Holds are named by their place, from 0.  Every hold has a use of some slot.  Those
\* of the dead can only be recovered.
Holds == 0 .. Capacity * UsesPerRecord - 1
InHands(h) == h < Len(holds) /\ holds[h + 1].owner \notin dead
InState(h, state) == InHands(h) /\ holds[h + 1].state = state
OnLease(h) == InHands(h) /\ OutOnLease(holds[h + 1])
NothingButHolds == UNCHANGED <<slots, free, fresh, filling, tickets, closing, cancelled, dead>>

\* The reader has gathered and transformed its rows, outside the lock.
Ready(h) ==
    /\ InState(h, "gathering")
    /\ holds' = [holds EXCEPT ![h + 1].state = "ready"] /\ NothingButHolds

\* The gather or the transform raised.
Fail(h) ==
    /\ "Fail" \in Features /\ InState(h, "gathering")
    /\ holds' = [holds EXCEPT ![h + 1].state = "failed"] /\ NothingButHolds

\* Holds end, and slots become what After says.  Those that are free now go behind, in
\* draw order and batch order, where a slot that several of the holds pin goes with the
\* last; slots that were abandoned with the holds go in front.
EndHolds(hs, After(_), abandoned) ==
    LET last(s) == CHOOSE h \in Pinning(hs, s) : \A g \in Pinning(hs, s) : g <= h
        place(s) == last(s) * Capacity + PositionOf(s, holds[last(s)].slots)
        gone == {s \in Slots : Pinning(hs, s) # {} /\ After(s).phase = "free"}
        Self(h) == h
        stay == Sorted((1 .. Len(holds)) \ hs, Self)
    IN  /\ Become([s \in Slots |-> After(s)], [i \in 1 .. Len(stay) |-> holds[stay[i]]])
        /\ free' = abandoned \o Behind(Sorted(gone, place))
        /\ UNCHANGED <<fresh, closing, cancelled>>

\* The caller has its batch, or commits its lease: what nobody needs any more is free.
Deliver(h) ==
    LET After(s) == IF Pinning({h + 1}, s) = {} THEN slots[s]
                    ELSE IF slots[s].pins = 1 /\ (Spent(s) \/ Dropped(s)) THEN Blank("free")
                    ELSE [slots[s] EXCEPT !.pins = @ - 1]
    IN  /\ InState(h, "ready")
        /\ EndHolds({h + 1}, After, <<>>) /\ UNCHANGED <<filling, tickets, dead>>

\* What becomes of a slot when batches come back that were not used: its record gets
\* back the uses, and its place in the order of ages, the oldest that is remembered.
Back(hs, s) ==
    LET mine == Pinning(hs, s)
        left == slots[s].pins - Cardinality(mine)
        ages == {slots[s].stamp} \union
                {holds[h].stamps[PositionOf(s, holds[h].slots)] : h \in mine}
    IN  IF Live(s)
        THEN [slots[s] EXCEPT !.pins = left, !.uses = @ - Cardinality(mine),
                              !.stamp = CHOOSE a \in ages : \A b \in ages : a <= b]
        ELSE IF Dropped(s) /\ left = 0 THEN Blank("free")
        ELSE [slots[s] EXCEPT !.pins = left]

\* A batch failed, or the owner of a lease gives it back.
Return(h) ==
    LET After(s) == Back({h + 1}, s)
    IN  /\ InState(h, "failed") \/ OnLease(h)
        /\ EndHolds({h + 1}, After, <<>>) /\ UNCHANGED <<filling, tickets, dead>>

--------------------------------------------------------------------------------
(* Giving up, closing, emptying, dying.                                       *)

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
    /\ UNCHANGED <<slots, free, fresh, filling, tickets, holds, closing, dead>>

\* Anybody closes the buffer: no more writes, and for "stopped" no more draws.
Close(mode) ==
    /\ closing' = IF closing = "open" \/ mode = "stopped" THEN mode ELSE closing
    /\ UNCHANGED <<slots, free, fresh, filling, tickets, holds, cancelled, dead>>

\* Anybody throws the records away.  Slots that are held stay until they are let go.
Empty ==
    LET Self(s) == s
        gone == {s \in Slots : Live(s) /\ slots[s].pins = 0}
    IN  /\ "Empty" \in Features
        /\ Become([s \in Slots |->
                      IF s \in gone THEN Blank("free")
                      ELSE IF Live(s) THEN [Blank("dropped") EXCEPT !.pins = slots[s].pins]
                      ELSE slots[s]], holds)
        /\ free' = Behind(Sorted(gone, Self))
        /\ UNCHANGED <<fresh, filling, tickets, closing, cancelled, dead>>

\* A process dies while it waits, copies or holds a batch.  Nobody knows yet.
Kill(x) ==
    /\ "Kill" \in Features /\ x \notin dead
    /\ Waits(x) \/ Fills(x) \/ HoldsOf(x) # {}
    /\ dead' = dead \union {x}
    /\ UNCHANGED <<slots, free, fresh, filling, tickets, holds, closing, cancelled>>

\* Somebody finds a dead process and takes from it all that it had: what it copied is
\* abandoned, what it held comes back.  From now on the name is that of a new process.
Recover(x) ==
    LET batch == IF Fills(x) THEN filling[x] ELSE <<>>
        After(s) == IF s \in Range(batch) THEN Blank("free") ELSE Back(HoldsOf(x), s)
        Others(ticket) == ticket.actor # x
    IN  /\ x \in dead /\ dead' = dead \ {x}
        /\ EndHolds(HoldsOf(x), After, batch)
        /\ filling' = [p \in Producers |-> IF p = x THEN <<>> ELSE filling[p]]
        /\ tickets' = SelectSeq(tickets, Others)

--------------------------------------------------------------------------------
(* The machine.                                                               *)

Init ==
    /\ slots = [s \in Slots |-> Blank("free")]
    /\ free = [i \in 1 .. Capacity |-> i - 1] /\ fresh = Capacity
    /\ filling = [p \in Producers |-> <<>>]
    /\ tickets = <<>> /\ holds = <<>>
    /\ closing = "open" /\ cancelled = {} /\ dead = {}

Arrives(p) == \E n \in WriteSizes : Arrive(p, n)
Asks(c) == \E r \in Requests : Ask(c, r[1], r[2], r[3])

Next ==
    \/ \E p \in Producers : Arrives(p) \/ Admit(p) \/ Publish(p) \/ Abandon(p)
    \/ \E c \in Readers : Asks(c) \/ Draw(c)
    \/ \E h \in Holds : Ready(h) \/ Fail(h) \/ Deliver(h) \/ Return(h)
    \/ \E x \in Actors : Expire(x) \/ Cancel(x) \/ Refuse(x) \/ Kill(x) \/ Recover(x)
    \/ \E token \in Tokens : SetCancel(token)
    \/ \E mode \in Closings : Close(mode)
    \/ Empty

Spec == Init /\ [][Next]_vars
================================================================================
