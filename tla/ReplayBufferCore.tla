--------------------------- MODULE ReplayBufferCore ----------------------------
(* The state of a replay buffer and the questions that are asked of it: which *)
(* records may be drawn, how ages are kept, what a call gets, and what        *)
(* becomes of a slot when a batch ends. The steps are in ReplayBuffer.        *)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS
    Capacity,       \* number of slots
    UsesPerRecord,  \* how often a record is drawn before it is spent
    Order,          \* "fifo": the oldest records are drawn; "random": any; "replacement",
                    \* "epochs": any, and they are overwritten instead of used up
    Producers,      \* actors that write
    Readers,        \* actors that draw; an actor may do both
    WriteSizes,     \* batch sizes that producers write
    Requests,       \* <<kind, k, m>>: "plain" or "lease", k records at most, m will do
    TokenOf,        \* the cancel token that an actor passes with its calls, or NoToken
    ProcessOf,      \* the process of an actor: its actors share the batches drawn ahead
    PrefetchDepth,  \* how many batches a process may have drawn ahead
    BatchSize,      \* how many records such a batch has
    Features,       \* which of "Abandon", "Fail", "Expire", "Empty", "Flush", "Capture",
                    \* "Restore", "Kill" may happen
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
    dead,           \* the actors that were killed and not yet recovered
    boundary,       \* the capture or restore in progress: its stage, whose it is, and the
                    \* slots that it has still to copy
    left,           \* under "epochs" the slots that were not drawn in this epoch yet
    saved           \* <<the last snapshot>>, or <<>>

vars == <<slots, free, fresh, filling, tickets, holds, closing, cancelled, dead,
          boundary, left, saved>>

\* What no call of a writer or a reader changes.
around == <<closing, cancelled, dead, boundary, saved>>

\* Writers overwrite the oldest records, and no draw uses one up.
Overwrites == Order \in {"replacement", "epochs"}
InEpochs == Order = "epochs"
HasAges == Order # "random"

Slots == 0 .. Capacity - 1
Actors == Producers \union Readers
NoToken == "none"
Tokens == {TokenOf[x] : x \in Actors} \ {NoToken}
EachItsOwn == [x \in Actors |-> x]
Processes == {ProcessOf[x] : x \in Actors}
NoBoundary == [stage |-> "none", actor |-> "nobody", slots |-> <<>>]

--------------------------------------------------------------------------------
(* Sequences.                                                                 *)

Range(seq) == {seq[i] : i \in 1 .. Len(seq)}
Without(seq, i) == SubSeq(seq, 1, i - 1) \o SubSeq(seq, i + 1, Len(seq))
PositionOf(x, seq) == CHOOSE i \in 1 .. Len(seq) : seq[i] = x
Min(a, b) == IF a < b THEN a ELSE b
First(S) == CHOOSE a \in S : \A b \in S : a <= b
Last(S) == CHOOSE a \in S : \A b \in S : b <= a

\* The elements of a set by rising key; no two have the same.
Sorted(S, key(_)) ==
    [i \in 1 .. Cardinality(S) |->
        CHOOSE x \in S : Cardinality({y \in S : key(y) < key(x)}) = i - 1]
Rising(S) == LET Self(x) == x IN Sorted(S, Self)

--------------------------------------------------------------------------------
(* Slots and their ages.                                                      *)

Blank(phase) == [phase |-> phase, uses |-> 0, pins |-> 0, stamp |-> 0]

Live(s) == slots[s].phase = "live"
Dropped(s) == slots[s].phase = "dropped"
Spent(s) == Live(s) /\ slots[s].uses = UsesPerRecord
Sampleable == {s \in Slots : Live(s) /\ slots[s].uses < UsesPerRecord}
OldestFirst(S) == LET age(s) == slots[s].stamp IN Sorted(S, age)

\* A capture has still to copy this slot, and until then it keeps its record.
ToCopy(s) == s \in Range(boundary.slots)

\* An overwriting buffer may take this slot from its record.
Evictable ==
    IF Overwrites THEN {s \in Slots : Live(s) /\ slots[s].pins = 0 /\ ~ToCopy(s)} ELSE {}

\* All ages that still matter: of the live slots, and the former ages of live
\* slots that holds remember in case the batch comes back.  0 is no age.
Ages(sl, hs) ==
    ({sl[s].stamp : s \in {s \in Slots : sl[s].phase = "live"}} \union
     UNION {{hs[h].stamps[i] : i \in {i \in 1 .. Len(hs[h].slots) :
                                         sl[hs[h].slots[i]].phase = "live"}}
               : h \in 1 .. Len(hs)}) \ {0}

\* Only the order of ages matters.  So the distinct ones are numbered from 1, on the
\* slots and in what holds remember, and the state space is finite.
Rank(slot, ages, a) ==
    IF slot.phase = "live" /\ HasAges THEN Cardinality({b \in ages : b <= a}) ELSE 0
RankedSlots(sl, ages) == [s \in Slots |-> [sl[s] EXCEPT !.stamp = Rank(sl[s], ages, @)]]
RankedHolds(sl, hs, ages) ==
    [h \in 1 .. Len(hs) |-> [hs[h] EXCEPT !.stamps =
        [i \in 1 .. Len(@) |-> Rank(sl[hs[h].slots[i]], ages, @[i])]]]

\* Every step that changes ages ends here.
Become(sl, hs) ==
    LET ages == Ages(sl, hs)
    IN  slots' = RankedSlots(sl, ages) /\ holds' = RankedHolds(sl, hs, ages)

\* The age of the i-th record that goes to the tail: younger than all there are.
AtTail(i) == Cardinality(Ages(slots, holds)) + i

\* Slots that become free again go behind the used ones and before the fresh ones.
Behind(batch) ==
    LET used == Len(free) - fresh
    IN  SubSeq(free, 1, used) \o batch \o SubSeq(free, used + 1, Len(free))

--------------------------------------------------------------------------------
(* Holds. One that was drawn ahead belongs to a process, not to an actor.     *)

Ahead(hold) == hold.kind = "prefetched"
Settled(hold) == hold.state # "gathering"
OutOnLease(hold) == hold.kind = "lease" /\ hold.state = "ready"

\* Its records were dropped: it is nobody's any more.
Stale(hold) == Ahead(hold) /\ \E i \in 1 .. Len(hold.slots) : Dropped(hold.slots[i])

HoldsOf(x) == {h \in 1 .. Len(holds) : ~Ahead(holds[h]) /\ holds[h].owner = x}
AheadOf(q) == {h \in 1 .. Len(holds) : Ahead(holds[h]) /\ holds[h].owner = q}
QueueOf(q) == {h \in AheadOf(q) : ~Stale(holds[h])}
SettledAhead == {h \in 1 .. Len(holds) : Ahead(holds[h]) /\ Settled(holds[h])}

\* The holds that pin a slot. What an overwriting buffer has gathered is a copy, which
\* needs its record no more.
Pins(hold) == ~(Overwrites /\ Settled(hold))
Pinning(hs, s) == {h \in hs : s \in Range(holds[h].slots) /\ Pins(holds[h])}

\* Nothing keeps a slot any more but its record and its pins.
LetGo(slot) ==
    IF /\ slot.pins = 0
       /\ slot.phase = "dropped" \/ (slot.phase = "live" /\ slot.uses = UsesPerRecord)
    THEN Blank("free") ELSE slot

\* What becomes of a slot when these holds pin it no more.
Unpinned(hs, s) ==
    LET slot == [slots[s] EXCEPT !.pins = @ - Cardinality(Pinning(hs, s))]
    IN  IF ToCopy(s) THEN slot ELSE LetGo(slot)

\* What becomes of a slot when batches come back that were not used: its record gets
\* back the uses, and its place in the order of ages, the oldest that is remembered.
Back(hs, s) ==
    LET mine == Pinning(hs, s)
        ages == {slots[s].stamp} \union
                {holds[h].stamps[PositionOf(s, holds[h].slots)] : h \in mine}
    IN  IF Live(s) /\ ~Overwrites
        THEN [slots[s] EXCEPT !.pins = @ - Cardinality(mine),
                              !.uses = @ - Cardinality(mine), !.stamp = First(ages)]
        ELSE Unpinned(hs, s)

\* Holds end, and slots become what After says: these holds stay ...
Staying(hs) ==
    LET stay == Rising((1 .. Len(holds)) \ hs)
    IN  [i \in 1 .. Len(stay) |-> holds[stay[i]]]

\* ... and this is free then.  What the holds leave goes behind, in draw order and batch
\* order, where a slot that several of them pin goes with the last; then what was copied;
\* slots that were abandoned go in front.
FreeThen(hs, After(_), abandoned) ==
    LET last(s) == Last(Pinning(hs, s))
        place(s) == last(s) * Capacity + PositionOf(s, holds[last(s)].slots)
        IsFree(s) == After(s).phase = "free"
        gone == {s \in Slots : Pinning(hs, s) # {} /\ ~ToCopy(s) /\ IsFree(s)}
    IN  abandoned \o Behind(Sorted(gone, place) \o SelectSeq(boundary.slots, IsFree))

--------------------------------------------------------------------------------
(* What a call gets. All of it is decided by Verdict, at the first critical   *)
(* section of the call and whenever it wakes.                                 *)

Ticket(kind, x, n, m) == [kind |-> kind, actor |-> x, n |-> n, m |-> m]
Side(ticket) == IF ticket.kind = "write" THEN "writer" ELSE "reader"

Waits(x) == \E i \in 1 .. Len(tickets) : tickets[i].actor = x
PlaceOf(x) == CHOOSE i \in 1 .. Len(tickets) : tickets[i].actor = x
Fills(x) == x \in Producers /\ filling[x] # <<>>
NothingFilling == \A p \in Producers : filling[p] = <<>>
Idle(x) ==
    /\ x \notin dead /\ ~Waits(x) /\ ~Fills(x) /\ boundary.actor # x
    /\ \A h \in HoldsOf(x) : OutOnLease(holds[h])

IsHead(queue, i) == \A j \in 1 .. i - 1 : Side(queue[j]) # Side(queue[i])
Heads(queue) == {i \in 1 .. Len(queue) : IsHead(queue, i)}
HasFlag(ticket) == TokenOf[ticket.actor] \in cancelled

\* What one side waits for: writers for slots that are free or may be overwritten,
\* readers for records.
Room(side) == IF side = "writer" THEN Len(free) + Cardinality(Evictable)
              ELSE Cardinality(Sampleable)

\* Nothing more will come: a reader then takes what is there.
Drained == closing = "draining" /\ NothingFilling
Least(ticket) == IF Side(ticket) = "reader" /\ Drained THEN 1 ELSE ticket.m

ShutOut(ticket) == IF Side(ticket) = "writer" THEN closing # "open" ELSE closing = "stopped"
NothingToCome(ticket) == Side(ticket) = "reader" /\ Drained /\ Sampleable = {}

\* A restore lets nobody in, and a capture no reader of its process.
CapturesFor(q) == boundary.stage = "capturing" /\ ProcessOf[boundary.actor] = q
HeldOff(ticket) ==
    \/ boundary.stage \in {"restoring", "loading"}
    \/ Side(ticket) = "reader" /\ CapturesFor(ProcessOf[ticket.actor])

\* A batch that was drawn ahead is there for a call of its size.
HasAhead(ticket) ==
    /\ Side(ticket) = "reader" /\ ticket.n = BatchSize
    /\ QueueOf(ProcessOf[ticket.actor]) # {}

\* What would have to be there for anybody of this side to be served.  If none
\* waits, that is the most modest newcomer: one for a single record.
Wanted(queue, side) ==
    LET heads == {i \in Heads(queue) : Side(queue[i]) = side}
    IN  IF heads = {} THEN 1 ELSE queue[CHOOSE i \in heads : TRUE].m

\* Every batch is with somebody who waits himself, or was drawn ahead.
AllStuck(queue) == \A h \in 1 .. Len(holds) :
    IF Ahead(holds[h]) THEN Settled(holds[h])
    ELSE OutOnLease(holds[h]) /\ \E i \in 1 .. Len(queue) : queue[i].actor = holds[h].owner

\* Nobody will ever be served again, unless somebody gives up.  (The dead give back.)
MutualWait(queue) ==
    /\ closing = "open" /\ queue # <<>> /\ NothingFilling /\ dead = {}
    /\ boundary.stage = "none" /\ AllStuck(queue)
    /\ \A i \in Heads(queue) : ~HasFlag(queue[i])
    /\ \A i \in 1 .. Len(queue) : ~HasAhead(queue[i])
    /\ \A side \in {"writer", "reader"} : Wanted(queue, side) > Room(side)

\* First the batches that were drawn ahead are given up, since nobody has seen them.
MayRecall == SettledAhead # {} /\ MutualWait(tickets)

\* Then the later head gives up: the earlier call has the older claim.
GivesUp(queue, i) ==
    /\ SettledAhead = {} /\ MutualWait(queue)
    /\ i \in Heads(queue) /\ \A j \in Heads(queue) : j <= i

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
Fits(queue, i) ==
    HasAhead(queue[i]) \/ (IsHead(queue, i) /\ Least(queue[i]) <= Room(Side(queue[i])))
Verdict(queue, i) ==
    LET ticket == queue[i]
    IN  IF ShutOut(ticket) THEN "SHUT_DOWN"
        ELSE IF HasFlag(ticket) THEN "CANCELLED"
        ELSE IF ~HeldOff(ticket) /\ Fits(queue, i) THEN "SERVE"
        ELSE IF ~HeldOff(ticket) /\ NothingToCome(ticket) THEN "SHUT_DOWN"
        ELSE IF GivesUp(queue, i) \/ Overleased(ticket) THEN "MUTUAL_WAIT"
        ELSE "WAIT"

OnArrival(ticket) == Verdict(Append(tickets, ticket), Len(tickets) + 1)
OnWaking(x) ==
    IF Waits(x) /\ x \notin dead THEN Verdict(tickets, PlaceOf(x)) ELSE "NO_CALL"
================================================================================
