-------------------------------- MODULE Journal --------------------------------
(* Changing many cells of a shared ledger, though the process that does it    *)
(* may be killed between any two of its stores.                               *)
(*                                                                            *)
(* Only a single store is whole by itself, and an action of the buffer        *)
(* changes a dozen cells: the phases of slots, the order in which they are    *)
(* free, the order of ages, counts.  The lock keeps the living from seeing    *)
(* the cells in between, but not those who enter after the dead.  So an       *)
(* action is one list of stores, and a process                                *)
(*                                                                            *)
(*   1. works the list out in its own memory,                                 *)
(*   2. writes it into a journal, which is shared and lives as long as the    *)
(*      ledger,                                                               *)
(*   3. marks the journal valid: one store, and the only one that counts,     *)
(*   4. carries the list out,                                                 *)
(*   5. clears the mark.                                                      *)
(*                                                                            *)
(* Whoever finds it dead looks at the mark.  Without one nothing has          *)
(* happened.  With one the whole list is carried out again, from its first    *)
(* store; that is right however many had been done, and however often finders *)
(* die in their turn, because stores are absolute: "this cell becomes 7".     *)
(*                                                                            *)
(* Journal refines Atomic, the module inside it, in which an action is one    *)
(* step.  How the dead are found is told in Monitor, what the actions mean in *)
(* ReplayBuffer: here records are used once and there is one reader, so that  *)
(* what comes back is always the oldest.  Broken variants are in MCJournal.   *)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
    Capacity,       \* number of slots
    Writers,        \* actors that write
    Reader,         \* the actor that draws
    Sizes           \* how many slots are asked for at once

Slots == 0 .. Capacity - 1
Actors == Writers \union {Reader}

-------------------------------- MODULE Atomic ---------------------------------
(* Every slot is in one place, and each action moves some of them at once.    *)
VARIABLES
    free,           \* the free slots in the order in which they will be taken
    aged,           \* those with records that can be drawn, oldest first
    batch           \* for each actor what it fills or has drawn, in batch order

From(seq, n) == SubSeq(seq, n + 1, Len(seq))
Gets(x, slots) == batch[x] = <<>> /\ batch' = [batch EXCEPT ![x] = slots]
Lets(x) == batch[x] # <<>> /\ batch' = [batch EXCEPT ![x] = <<>>]

\* A writer reserves n slots.
Admit(p, n) ==
    /\ n <= Len(free) /\ Gets(p, SubSeq(free, 1, n))
    /\ free' = From(free, n) /\ UNCHANGED aged

\* A writer has copied its rows: they are there, behind all others.
Publish(p) == Lets(p) /\ aged' = aged \o batch[p] /\ UNCHANGED free

\* A writer has failed, or is dead: its slots are the next to be taken.
Abandon(p) == Lets(p) /\ free' = batch[p] \o free /\ UNCHANGED aged

\* The reader takes the k oldest.
Draw(k) ==
    /\ k <= Len(aged) /\ Gets(Reader, SubSeq(aged, 1, k))
    /\ aged' = From(aged, k) /\ UNCHANGED free

\* The reader has its rows: the slots are free, behind the others.
Deliver == Lets(Reader) /\ free' = free \o batch[Reader] /\ UNCHANGED aged

\* The reader has failed, or is dead: its records are the oldest again.
Return == Lets(Reader) /\ aged' = batch[Reader] \o aged /\ UNCHANGED free

Init ==
    /\ free = [i \in 1 .. Capacity |-> i - 1] /\ aged = <<>>
    /\ batch = [x \in Actors |-> <<>>]
Next ==
    \/ \E p \in Writers : Publish(p) \/ Abandon(p) \/ \E n \in Sizes : Admit(p, n)
    \/ \E k \in Sizes : Draw(k)
    \/ Deliver \/ Return
Spec == Init /\ [][Next]_<<free, aged, batch>>
================================================================================

VARIABLES
    cells,          \* the shared ledger: for the name of each cell its value
    journal,        \* the shared list of stores, as far as it is written
    valid,          \* the mark, one shared cell: the journal is to be carried out
    step,           \* of the process inside: "quiet" if there is none, "write", "carry",
                    \* "redo" for a finder, "dead" until a finder enters
    plan,           \* the list in the memory of that process
    done,           \* how many stores it has carried out, in its memory too
    before, after   \* only for the properties: the ledger without and with the action

vars == <<cells, journal, valid, step, plan, done, before, after>>

--------------------------------------------------------------------------------
(* The ledger.  A store names a cell and what it will be.  A cell is a word;  *)
(* that the few slots of a batch fit into one is for brevity.                 *)

Cells ==
    ({"phase", "uses", "pins", "free", "aged"} \X Slots)    \* of a slot, or of a ring
    \union ({"head"} \X {"free", "aged"})                   \* where a ring begins
    \union ({"count"} \X {"free", "sampleable", "filling", "pinned"})
    \union ({"batch"} \X Actors)

Store(kind, of, value) == [cell |-> <<kind, of>>, value |-> value]
Perform(memory, store) == [memory EXCEPT ![store.cell] = store.value]

RECURSIVE PerformAll(_, _)
PerformAll(memory, stores) ==
    IF stores = <<>> THEN memory
    ELSE PerformAll(Perform(memory, Head(stores)), Tail(stores))

\* A circular array: n slots from a place on, and the stores that put slots there.
Window(memory, ring, n) ==
    [i \in 1 .. n |-> memory[<<ring, (memory[<<"head", ring>>] + i - 1) % Capacity>>]]
IntoRing(ring, start, slots) ==
    [i \in 1 .. Len(slots) |-> Store(ring, (start + i - 1) % Capacity, slots[i])]
Free(memory) == Window(memory, "free", memory[<<"count", "free">>])
Aged(memory) == Window(memory, "aged", memory[<<"count", "sampleable">>])

Batch(x) == cells[<<"batch", x>>]
HeadOf(ring) == cells[<<"head", ring>>]
Count(what) == cells[<<"count", what>>]

--------------------------------------------------------------------------------
(* The lists.  Each is worked out from the cells as they are.                 *)

All(slots, kind, value) == [i \in 1 .. Len(slots) |-> Store(kind, slots[i], value)]
HeadMoves(ring, by) == <<Store("head", ring, (HeadOf(ring) + by) % Capacity)>>
FreeCount(by) == <<Store("count", "free", Count("free") + by)>>
IsBatch(x, slots) == <<Store("batch", x, slots)>>

\* Counts say what the slots say, too.  They are kept so that nobody has to look at all of
\* them, and are in the list like everything else.
Counted(what, by) == <<Store("count", what, Count(what) + by)>>

ToAdmit(p, slots) ==
    All(slots, "phase", "filling")
    \o HeadMoves("free", Len(slots)) \o FreeCount(-Len(slots))
    \o Counted("filling", Len(slots)) \o IsBatch(p, slots)

ToPublish(p, slots) ==
    All(slots, "phase", "live")
    \o IntoRing("aged", HeadOf("aged") + Count("sampleable"), slots)
    \o Counted("sampleable", Len(slots)) \o Counted("filling", -Len(slots))
    \o IsBatch(p, <<>>)

ToAbandon(p, slots) ==
    All(slots, "phase", "free")
    \o IntoRing("free", HeadOf("free") - Len(slots), slots)
    \o HeadMoves("free", -Len(slots)) \o FreeCount(Len(slots))
    \o Counted("filling", -Len(slots)) \o IsBatch(p, <<>>)

ToDraw(slots) ==
    All(slots, "uses", 1) \o All(slots, "pins", 1)
    \o HeadMoves("aged", Len(slots))
    \o Counted("sampleable", -Len(slots)) \o Counted("pinned", Len(slots))
    \o IsBatch(Reader, slots)

ToDeliver(slots) ==
    All(slots, "pins", 0) \o All(slots, "phase", "free") \o All(slots, "uses", 0)
    \o IntoRing("free", HeadOf("free") + Count("free"), slots) \o FreeCount(Len(slots))
    \o Counted("pinned", -Len(slots)) \o IsBatch(Reader, <<>>)

ToReturn(slots) ==
    All(slots, "pins", 0) \o All(slots, "uses", 0)
    \o IntoRing("aged", HeadOf("aged") - Len(slots), slots) \o HeadMoves("aged", -Len(slots))
    \o Counted("sampleable", Len(slots)) \o Counted("pinned", -Len(slots))
    \o IsBatch(Reader, <<>>)

--------------------------------------------------------------------------------
(* The actions of the buffer, up to their list.  A process enters, and stores *)
(* nothing yet.  What a dead actor held ends in the same way: then the finder *)
(* takes Abandon or Return for it, as an action of its own.                   *)

Enter(stores) ==
    /\ step = "quiet"
    /\ step' = "write" /\ plan' = stores
    /\ before' = cells /\ after' = PerformAll(cells, stores)
    /\ UNCHANGED <<cells, journal, valid, done>>

Has(x) == Batch(x) # <<>>

Admit(p, n) ==
    /\ step = "quiet" /\ ~Has(p) /\ n <= Count("free")
    /\ Enter(ToAdmit(p, SubSeq(Free(cells), 1, n)))
Publish(p) == step = "quiet" /\ Has(p) /\ Enter(ToPublish(p, Batch(p)))
Abandon(p) == step = "quiet" /\ Has(p) /\ Enter(ToAbandon(p, Batch(p)))
Draw(k) ==
    /\ step = "quiet" /\ ~Has(Reader) /\ k <= Count("sampleable")
    /\ Enter(ToDraw(SubSeq(Aged(cells), 1, k)))
Deliver == step = "quiet" /\ Has(Reader) /\ Enter(ToDeliver(Batch(Reader)))
Return == step = "quiet" /\ Has(Reader) /\ Enter(ToReturn(Batch(Reader)))

--------------------------------------------------------------------------------
(* The way of a list into the ledger, store by store.                         *)

\* The lock is free again.  A journal without a mark is not read by anybody, so what
\* stands in it is forgotten here.
Quiet ==
    /\ step' = "quiet" /\ journal' = <<>> /\ plan' = <<>> /\ done' = 0
    /\ before' = <<>> /\ after' = <<>>

\* The process writes down the next store of its list.  That takes two or three stores of
\* its own, which are one step here, since nobody reads an entry before the mark is set.
WriteDown ==
    /\ step = "write" /\ Len(journal) < Len(plan)
    /\ journal' = Append(journal, plan[Len(journal) + 1])
    /\ UNCHANGED <<cells, valid, step, plan, done, before, after>>

\* The list is written down (how long it is, is a cell of the journal).  With this store
\* the action has happened.
MarkValid ==
    /\ step = "write" /\ Len(journal) = Len(plan)
    /\ valid' = TRUE /\ step' = "carry" /\ plan' = <<>>
    /\ UNCHANGED <<cells, journal, done, before, after>>

\* The process, or a finder, carries out the next store of the journal.
CarryOut ==
    /\ step \in {"carry", "redo"} /\ done < Len(journal)
    /\ cells' = Perform(cells, journal[done + 1]) /\ done' = done + 1
    /\ UNCHANGED <<journal, valid, step, plan, before, after>>

\* All of them are carried out: the mark goes, and the process leaves.
ClearMark ==
    /\ step \in {"carry", "redo"} /\ done = Len(journal)
    /\ valid' = FALSE /\ Quiet
    /\ UNCHANGED cells

\* The process inside is killed.  What is shared stays as it is, what it knew is gone.
Crash ==
    /\ step \in {"write", "carry", "redo"}
    /\ step' = "dead" /\ plan' = <<>> /\ done' = 0
    /\ UNCHANGED <<cells, journal, valid, before, after>>

\* Another process enters and is told that the owner is dead.
FindDead ==
    /\ step = "dead"
    /\ IF valid THEN step' = "redo" /\ UNCHANGED <<journal, plan, done, before, after>>
       ELSE Quiet
    /\ UNCHANGED <<cells, valid>>

--------------------------------------------------------------------------------
(* The machine.                                                               *)

Init ==
    /\ cells = [cell \in Cells |->
          CASE cell[1] = "phase" -> "free"
            [] cell[1] = "batch" -> <<>>
            [] cell[1] = "free" -> cell[2]
            [] cell = <<"count", "free">> -> Capacity
            [] OTHER -> 0]
    /\ journal = <<>> /\ valid = FALSE
    /\ step = "quiet" /\ plan = <<>> /\ done = 0
    /\ before = <<>> /\ after = <<>>

GoesOn == WriteDown \/ MarkValid \/ CarryOut \/ ClearMark \/ FindDead
Next ==
    \/ \E p \in Writers : Publish(p) \/ Abandon(p) \/ \E n \in Sizes : Admit(p, n)
    \/ \E k \in Sizes : Draw(k)
    \/ Deliver \/ Return
    \/ WriteDown \/ MarkValid \/ CarryOut \/ ClearMark \/ Crash \/ FindDead

Spec == Init /\ [][Next]_vars

\* Who lives goes on, and after a dead one comes another.
FairSpec == Spec /\ WF_vars(GoesOn)

--------------------------------------------------------------------------------
(* The refinement.  The ledger is what a finder would make of it now.         *)

Recovered == IF valid THEN PerformAll(cells, journal) ELSE cells

Batches(memory) == [x \in Actors |-> memory[<<"batch", x>>]]
Whole == INSTANCE Atomic WITH
    free <- Free(Recovered), aged <- Aged(Recovered), batch <- Batches(Recovered)

RefinesAtomic == Whole!Spec

\* The same for single steps, with a name that a counterexample can give.
AtomicSteps == [][Recovered' # Recovered => Whole!Next]_vars

--------------------------------------------------------------------------------
(* In every state and step.                                                   *)

TypeOK ==
    /\ DOMAIN cells = Cells
    /\ valid \in BOOLEAN /\ step \in {"quiet", "write", "carry", "redo", "dead"}
    /\ step = "quiet" => journal = <<>> /\ ~valid
    /\ step \in {"carry", "redo"} => valid
    /\ step = "write" => ~valid /\ journal = SubSeq(plan, 1, Len(journal))
    /\ done \in 0 .. Len(journal)

\* What the cells of slots, the rings, the batches and the counts say is the same.
CellsAgree ==
    LET now == Recovered
        In(seq) == {seq[i] : i \in 1 .. Len(seq)}
        Is(kind, value) == {s \in Slots : now[<<kind, s>>] = value}
        held == In(now[<<"batch", Reader>>])
        filling == UNION {In(now[<<"batch", p>>]) : p \in Writers}
    IN  /\ Is("phase", "free") = In(Free(now))
        /\ Is("phase", "filling") = filling
        /\ Is("phase", "live") = In(Aged(now)) \union held
        /\ Is("uses", 1) = held /\ Is("pins", 1) = held
        /\ now[<<"count", "free">>] = Cardinality(Is("phase", "free"))
        /\ now[<<"count", "filling">>] = Cardinality(filling)
        /\ now[<<"count", "sampleable">>] = Cardinality(Is("phase", "live") \ held)
        /\ now[<<"count", "pinned">>] = Cardinality(held)

\* Whoever leaves, after an action or after recovery, leaves the ledger as it was before
\* the action or as it is after it, never in between.
BeforeOrAfter == [][
    step # "quiet" /\ step' = "quiet" => cells' \in {before, after}
    ]_vars

\* It happens in one store, that of the mark.
OneStoreCounts == [][
    Recovered' # Recovered => valid' /\ ~valid /\ Recovered' = after
    ]_vars

--------------------------------------------------------------------------------
(* In the end (FairSpec).                                                     *)

\* If processes are not killed for ever, the ledger is repaired.
RecoveryEnds == <>[][~Crash]_vars => (step = "dead" ~> step = "quiet")
================================================================================
