------------------------------- MODULE MCMonitor -------------------------------
(* Two takers and a giver, of whom some are killed: what must at least be     *)
(* possible, and the faults that the properties stand against.                *)
EXTENDS Monitor, Sequences, TLC

--------------------------------------------------------------------------------
(* At least possible, each seen in a step.                                    *)

Served(p) == level' # level /\ Stage[p] = "in" /\ at[p] = "finish"

SleepsThenServed == \E p \in Procs : p \in waits /\ Served(p)
ChangeSeenBeforeSleep == \E p \in Procs : at[p] = "sleep" /\ at'[p] = "read"
BothKindsAsleep == Asleep \intersect Givers # {} /\ Asleep \intersect Takers # {}
KilledAsleep == \E p \in Asleep : at'[p] = "dead"
KilledInside == \E p \in Inside : at'[p] = "dead"
HalfMadeUndone == half /\ \E p \in Procs : at[p] = "repair" /\ at'[p] = "mark"
FinderDies == \E p \in Procs : at[p] = "repair" /\ at'[p] = "dead"
KilledBeforeRinging == orphans' \ orphans # {}
SliceSavesOrphan == \E p \in Asleep \intersect orphans : SliceEnds(p) /\ May(p)
SweptByLiving == \E p \in Procs : Sweep(p)
SignalEndsWait == \E p \in Procs : at[p] = "check" /\ back[p] = "signal" /\ at'[p] = "part"
FlagEndsWait == \E p \in waits : at[p] = "check" /\ Flagged(p) /\ at'[p] = "part"
ExpiresAfterWait == \E p \in waits : Expire(p)

WitnessNames == <<
    "SleepsThenServed", "ChangeSeenBeforeSleep", "BothKindsAsleep", "KilledAsleep",
    "KilledInside", "HalfMadeUndone", "FinderDies", "KilledBeforeRinging",
    "SliceSavesOrphan", "SweptByLiving", "SignalEndsWait", "FlagEndsWait",
    "ExpiresAfterWait">>

Seen(name) ==
    CASE name = "SleepsThenServed" -> SleepsThenServed
      [] name = "ChangeSeenBeforeSleep" -> ChangeSeenBeforeSleep
      [] name = "BothKindsAsleep" -> BothKindsAsleep
      [] name = "KilledAsleep" -> KilledAsleep
      [] name = "KilledInside" -> KilledInside
      [] name = "HalfMadeUndone" -> HalfMadeUndone
      [] name = "FinderDies" -> FinderDies
      [] name = "KilledBeforeRinging" -> KilledBeforeRinging
      [] name = "SliceSavesOrphan" -> SliceSavesOrphan
      [] name = "SweptByLiving" -> SweptByLiving
      [] name = "SignalEndsWait" -> SignalEndsWait
      [] name = "FlagEndsWait" -> FlagEndsWait
      [] name = "ExpiresAfterWait" -> ExpiresAfterWait

ASSUME \A i \in 1 .. Len(WitnessNames) : TLCSet(i, FALSE)

PrintWitness == \A i \in 1 .. Len(WitnessNames) :
    TLCGet(i) \/ (Seen(WitnessNames[i]) =>
        TLCSet(i, TRUE) /\ PrintT(<<"WITNESS", WitnessNames[i]>>))

--------------------------------------------------------------------------------
(* Faults, one definition each (some need two), put in the place of the       *)
(* honest ones by MCMonitor_bug_<fault>.cfg.                                  *)

\* lock_not_robust: nobody is told that the owner is dead.
NeverFindDead(p) == FALSE

\* lock_not_marked: the finder forgets to mark the lock, so leaving it loses it for all.
LeaveUnmarked(p) ==
    /\ at[p] = "mark"
    /\ Goes(p, "bump")
    /\ UNCHANGED <<back, owner, lock, level, half, waits, count, same, flag, orphans, due>>

\* half_change_kept: the finder does not undo what is half made.
RepairNothing(p) ==
    /\ at[p] = "repair"
    /\ waits' = Living(waits) /\ count' = Recount /\ due' = FALSE
    /\ Goes(p, "mark")
    /\ UNCHANGED <<back, owner, lock, level, half, same, flag, orphans>>

\* finder_is_silent: the finder wakes nobody, although the dead owner may have owed it.
MarkSilently(p) ==
    /\ at[p] = "mark"
    /\ lock' = "sound"
    /\ Goes(p, "check")
    /\ UNCHANGED <<back, owner, level, half, waits, count, same, flag, orphans, due>>

\* notify_one: one sleeper is woken, who may be of the wrong kind.
RingOne(p) ==
    /\ at[p] = "ring"
    /\ \E lucky \in IF Asleep = {} THEN {p} ELSE Asleep :
          /\ at' = [q \in Procs |-> IF q = p THEN AfterRinging(p)
                                    ELSE IF q = lucky THEN "read" ELSE at[q]]
          /\ orphans' = orphans \ {lucky}
    /\ UNCHANGED <<back, owner, lock, level, half, waits, count, same, flag, due>>

\* sequence_after_check: the word is read when the conditions have been looked at, which
\* is too late for a flag that is set without the lock.
ReadNothing(p) ==
    /\ at[p] = "read"
    /\ Goes(p, "enter")
    /\ UNCHANGED <<back, owner, lock, level, half, waits, count, same, flag, orphans, due>>
ReadAndLetGo(p) ==
    /\ at[p] = "letgo"
    /\ LeaveLock
    /\ same' = same \union {p}
    /\ Goes(p, "sleep")
    /\ UNCHANGED <<back, level, half, waits, count, flag, orphans, due>>

\* check_outside_lock: the condition is looked at before the lock is taken, not after it.
ReadAndCheck(p) ==
    /\ at[p] = "read"
    /\ same' = same \union {p}
    /\ Goes(p, "enter")
    /\ ComesBack(p, IF May(p) THEN "sure" ELSE back[p])
    /\ UNCHANGED <<owner, lock, level, half, waits, count, flag, orphans, due>>
CheckNothing(p) ==
    /\ at[p] = "check" /\ ~MustSweep
    /\ Goes(p, IF back[p] = "signal" \/ Flagged(p) THEN "part"
               ELSE IF back[p] = "sure" THEN "begin"
               ELSE IF p \in waits THEN "letgo" ELSE "join")
    /\ ComesBack(p, "woken")
    /\ UNCHANGED <<owner, lock, level, half, waits, count, same, flag, orphans, due>>

\* dead_counted: the entries of the dead go, but the count stays.
CountAsBefore == count

\* never_swept: nobody looks for the dead unless one of them held the lock.
NeverMustSweep == FALSE

\* sweep_after_slice: only who has slept a whole slice looks for the dead; two who wake each
\* other never do.
NeverTick == FALSE
SliceMakesDue(p) ==
    /\ at[p] = "asleep"
    /\ Goes(p, "read")
    /\ due' = (waits \intersect Dead # {}) /\ orphans' = orphans \ {p}
    /\ UNCHANGED <<back, owner, lock, level, half, waits, count, same, flag>>

\* no_slices: sleepers rely on being woken; time passes, and none of them looks.
SleepOn(p) == at[p] = "asleep" /\ UNCHANGED vars
================================================================================
