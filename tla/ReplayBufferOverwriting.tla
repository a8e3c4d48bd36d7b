------------------------ MODULE ReplayBufferOverwriting ------------------------
(* What is different when a replay buffer overwrites its oldest records       *)
(* instead of making writers wait until they are used up.                     *)
(*                                                                            *)
(* Under "replacement" every place of a batch is any record, whatever the     *)
(* others are. Under "epochs" every record is drawn once before any is drawn  *)
(* again. So a draw uses nothing up, and a record goes when a writer takes    *)
(* its slot: the oldest first, but none that is being gathered or copied.     *)
(*                                                                            *)
(* Two things need care. A batch may outlive its records, since what has been *)
(* gathered is a copy and pins nothing; so it must forget the ages of records *)
(* that are gone. And a batch that comes back must be drawn again in its own  *)
(* epoch, but not in a later one, which draws those records anyhow; so when   *)
(* an epoch begins all batches forget all ages. What a hold remembers is thus *)
(* what it may put back.                                                      *)
EXTENDS ReplayBufferCore

\* Whether an epoch ends before a batch that would be short.  A configuration may put
\* TRUE in its place.
DropLast == FALSE

--------------------------------------------------------------------------------
(* Writing.                                                                   *)

\* The slots that a writer of n gets: free ones, and for want of them the oldest others.
RoomFor(n) == SubSeq(free \o OldestFirst(Evictable), 1, n)

--------------------------------------------------------------------------------
(* Holding.                                                                   *)

\* Records that were used up would bound how many leases an actor has.  Here one is enough.
MayHave(c, kind) == Overwrites /\ kind = "lease" => HoldsOf(c) = {}

\* How many holds there are at most: one for each use of a slot; or a lease and another
\* batch of each reader, and what is drawn ahead.
MostHolds ==
    IF Overwrites THEN 2 * Cardinality(Readers) + PrefetchDepth * Cardinality(Processes)
    ELSE Capacity * UsesPerRecord

\* What these holds gather is gathered, and they pin their slots no more.
NoLongerPinned(hs) ==
    LET After(s) == Unpinned(hs, s)
    IN  /\ slots' = [s \in Slots |-> After(s)]
        /\ free' = FreeThen(hs, After, <<>>)
        /\ UNCHANGED <<fresh, filling, tickets, around, left>>

--------------------------------------------------------------------------------
(* What is left of the epoch.                                                 *)

\* A draw of k begins another epoch, since nothing or not enough is left of this one.
EpochIsOver(k) == left = {} \/ (DropLast /\ Cardinality(left) < k)

\* The records that a draw of k chooses from.
Choice(k) == IF InEpochs /\ ~EpochIsOver(k) THEN left ELSE Sampleable

\* What holds remember after a draw of k.
Forgotten(hs) == [h \in 1 .. Len(hs) |->
    [hs[h] EXCEPT !.stamps = [i \in 1 .. Len(@) |-> 0]]]
StillRemembered(k) == IF InEpochs /\ EpochIsOver(k) THEN Forgotten(holds) ELSE holds

\* What a hold remembers of the records that it draws: under "epochs" that they are of
\* this epoch, else in case that it comes back how old they were.
ToRemember(batch) ==
    [i \in 1 .. Len(batch) |-> IF Order = "replacement" THEN 0 ELSE slots[batch[i]].stamp]

\* A writer has taken these slots.
LeftAfterFill(batch) == left \ Range(batch)

\* New records may be drawn in this epoch.
LeftWith(batch) == IF InEpochs THEN left \union Range(batch) ELSE left

\* A draw of k has drawn these.
LeftAfterDraw(k, batch) == IF InEpochs THEN Choice(k) \ Range(batch) ELSE left

\* Batches come back: what was drawn in this epoch is left again.
Remembered(h) ==
    {holds[h].slots[i] : i \in {i \in 1 .. Len(holds[h].slots) : holds[h].stamps[i] > 0}}
LeftAfterReturn(hs) ==
    IF InEpochs THEN left \union UNION {Remembered(h) : h \in hs} ELSE left
================================================================================
