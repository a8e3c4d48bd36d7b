------------------------------- MODULE MCJournal -------------------------------
(* Two slots: what must at least be possible, and the faults that the         *)
(* properties stand against.                                                  *)
EXTENDS Journal, TLC

--------------------------------------------------------------------------------
(* At least possible, each seen in a step.                                    *)

Dies == step' = "dead" /\ step # "dead"

KilledWhileWriting == Dies /\ step = "write" /\ Len(journal) > 0
KilledBeforeMark == Dies /\ step = "write" /\ Len(journal) = Len(plan)
KilledHalfWay == Dies /\ step = "carry" /\ cells \notin {before, after}
KilledBeforeClearing == Dies /\ step = "carry" /\ done = Len(journal)
KilledInRecovery == Dies /\ step = "redo" /\ done > 0
RecoveredWithoutMark == step = "dead" /\ step' = "quiet"
RecoveredByRedoing == step = "redo" /\ step' = "quiet"
BothFill == \A p \in Writers : Has(p)
AbandonedInFront == \E p \in Writers : Abandon(p) /\ Count("free") > 0
ReturnedInFront == Return /\ Count("sampleable") > 0

WitnessNames == <<
    "KilledWhileWriting", "KilledBeforeMark", "KilledHalfWay", "KilledBeforeClearing",
    "KilledInRecovery", "RecoveredWithoutMark", "RecoveredByRedoing", "BothFill",
    "AbandonedInFront", "ReturnedInFront">>

Seen(name) ==
    CASE name = "KilledWhileWriting" -> KilledWhileWriting
      [] name = "KilledBeforeMark" -> KilledBeforeMark
      [] name = "KilledHalfWay" -> KilledHalfWay
      [] name = "KilledBeforeClearing" -> KilledBeforeClearing
      [] name = "KilledInRecovery" -> KilledInRecovery
      [] name = "RecoveredWithoutMark" -> RecoveredWithoutMark
      [] name = "RecoveredByRedoing" -> RecoveredByRedoing
      [] name = "BothFill" -> BothFill
      [] name = "AbandonedInFront" -> AbandonedInFront
      [] name = "ReturnedInFront" -> ReturnedInFront

ASSUME \A i \in 1 .. Len(WitnessNames) : TLCSet(i, FALSE)

PrintWitness == \A i \in 1 .. Len(WitnessNames) :
    TLCGet(i) \/ (Seen(WitnessNames[i]) =>
        TLCSet(i, TRUE) /\ PrintT(<<"WITNESS", WitnessNames[i]>>))

--------------------------------------------------------------------------------
(* Faults, one definition each (some need two), put in the place of the       *)
(* honest ones by MCJournal_bug_<fault>.cfg.                                  *)

\* mark_too_late: the first store is carried out before the mark is set.
MarkAfterFirst ==
    /\ step = "write" /\ Len(journal) = Len(plan)
    /\ IF done = 0
       THEN cells' = Perform(cells, plan[1]) /\ done' = 1 /\ UNCHANGED <<valid, step, plan>>
       ELSE valid' = TRUE /\ step' = "carry" /\ plan' = <<>> /\ UNCHANGED <<cells, done>>
    /\ UNCHANGED <<journal, before, after>>

\* mark_too_early: the mark is set before the last store is written down.
MarkBeforeLast ==
    /\ step = "write"
    /\ IF valid
       THEN Len(journal) = Len(plan) /\ step' = "carry" /\ plan' = <<>> /\ UNCHANGED valid
       ELSE Len(journal) >= Len(plan) - 1 /\ valid' = TRUE /\ UNCHANGED <<step, plan>>
    /\ UNCHANGED <<cells, journal, done, before, after>>

\* relative_stores: a count "becomes one more", so that doing it again makes it two more.
CountedByDifference(what, by) == <<Store("count", what, by)>>
PerformByDifference(memory, store) ==
    IF store.cell \in {"count"} \X {"sampleable", "filling", "pinned"}
    THEN [memory EXCEPT ![store.cell] = @ + store.value]
    ELSE [memory EXCEPT ![store.cell] = store.value]

\* cleared_too_soon: the mark goes before the last store is carried out.
ClearBeforeLast ==
    /\ step \in {"carry", "redo"}
    /\ IF valid
       THEN /\ done >= Len(journal) - 1
            /\ valid' = FALSE /\ UNCHANGED <<journal, step, plan, done, before, after>>
       ELSE done = Len(journal) /\ Quiet /\ UNCHANGED valid
    /\ UNCHANGED cells

\* count_not_listed: a count is not in the list, as if it could be worked out later.
CountedNotAll(what, by) ==
    IF what = "sampleable" THEN <<>> ELSE <<Store("count", what, Count(what) + by)>>

\* abandoned_behind: a list that is carried out whole, but is not what Abandon means.
ToAbandonBehind(p, slots) ==
    All(slots, "phase", "free")
    \o IntoRing("free", HeadOf("free") + Count("free"), slots) \o FreeCount(Len(slots))
    \o Counted("filling", -Len(slots)) \o IsBatch(p, <<>>)

\* journal_ignored: a finder does not look at the journal.
FindAndGoOn ==
    /\ step = "dead"
    /\ valid' = FALSE /\ Quiet
    /\ UNCHANGED cells
================================================================================
