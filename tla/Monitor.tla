-------------------------------- MODULE Monitor --------------------------------
(* Waiting between processes that may be killed at any instruction.           *)
(*                                                                            *)
(* Processes share a lock, a word that is counted up with every change (the   *)
(* sequence word), and what they wait for.  Here that is a level: givers      *)
(* raise it while there is room, takers lower it while it is not zero.  To    *)
(* its callers a call is one atomic step, "await the condition, then change   *)
(* the level"; below it is made of single steps of single processes, and any  *)
(* of them may be the last one that a process takes.  Five things keep that   *)
(* from being noticed:                                                        *)
(*                                                                            *)
(* The lock is robust: who enters after a dead owner is told so, undoes what  *)
(* is half made, marks the lock sound and wakes everybody.                    *)
(* Waits are level-triggered: the word is read before the conditions are      *)
(* looked at, and nobody sleeps unless it is still the same.                  *)
(* All sleepers are woken, never one: the one might be of the wrong kind.     *)
(* Sleeps are cut into slices: who dies between its change and its wake-up    *)
(* leaves nobody asleep for ever.                                             *)
(* The dead are looked for when a second has passed since the last look:      *)
(* their entries do not stay in the count of those who wait.                  *)
(*                                                                            *)
(* Monitor refines Await, the module inside it.  Broken variants are in       *)
(* MCMonitor.  How a change of many cells is made whole is told in Journal.   *)
EXTENDS Naturals, FiniteSets

CONSTANTS
    Givers,         \* processes that raise the level
    Takers,         \* processes that lower it
    Limit,          \* the highest level
    Cancellable,    \* processes whose calls end when the flag is set
    Features,       \* which of "Expire", "Signal", "Cancel" may happen
    MaxKills        \* how many processes may be killed

Procs == Givers \union Takers

--------------------------------- MODULE Await ---------------------------------
(* What callers see: nothing happens between the condition and the change.    *)
VARIABLES level, stage

May(p) == IF p \in Givers THEN level < Limit ELSE level > 0

\* A process calls.
Call(p) == stage[p] = "out" /\ stage' = [stage EXCEPT ![p] = "in"] /\ UNCHANGED level

\* The condition of a call holds, and the call is served.
Serve(p) ==
    /\ stage[p] = "in" /\ May(p)
    /\ level' = IF p \in Givers THEN level + 1 ELSE level - 1
    /\ stage' = [stage EXCEPT ![p] = "out"]

\* A call ends without having done anything.
GiveUp(p) == stage[p] = "in" /\ stage' = [stage EXCEPT ![p] = "out"] /\ UNCHANGED level

\* A process is killed; a call of it has been served or not.
Die(p) == stage[p] # "dead" /\ stage' = [stage EXCEPT ![p] = "dead"] /\ UNCHANGED level

Init == level = 0 /\ stage = [p \in Procs |-> "out"]
Next == \E p \in Procs : Call(p) \/ Serve(p) \/ GiveUp(p) \/ Die(p)
Spec == Init /\ [][Next]_<<level, stage>>
================================================================================

Nobody == "nobody"

VARIABLES
    at,             \* for each process the step that it takes next, or "asleep" or "dead"
    back,           \* for each process how its last sleep ended: "woken" or "signal"
    owner,          \* the process that holds the lock, dead or alive, or Nobody
    lock,           \* "sound", "found" (after a dead owner), "lost" (nobody can enter)
    level,          \* what is waited for
    half,           \* the ledger is half changed
    waits,          \* the processes that have an entry as waiting
    count,          \* how many entries there are; asked instead of looking at all of them
    same,           \* the processes that read the sequence word as it still is
    flag,           \* the cancel flag, which is set without the lock
    due,            \* a second has passed since anybody looked for the dead
    orphans         \* only for the properties: those whose waker died before it rang

vars == <<at, back, owner, lock, level, half, waits, count, same, flag, due, orphans>>

--------------------------------------------------------------------------------
(* Where a process is.                                                        *)

Goes(p, step) == at' = [at EXCEPT ![p] = step]
ComesBack(p, how) == back' = [back EXCEPT ![p] = how]

Dead == {p \in Procs : at[p] = "dead"}
Asleep == {p \in Procs : at[p] = "asleep"}
Living(entries) == entries \ Dead
HasDeadOwner == owner \in Dead

May(p) == IF p \in Givers THEN level < Limit ELSE level > 0
Flagged(p) == flag /\ p \in Cancellable

--------------------------------------------------------------------------------
(* Entering and leaving.                                                      *)

\* A process outside starts a call.
Call(p) ==
    /\ at[p] = "out"
    /\ Goes(p, "read")
    /\ UNCHANGED <<back, owner, lock, level, half, waits, count, same, flag, orphans, due>>

\* It reads the sequence word, before the lock and so before all conditions.  Only
\* whether the word is still the same matters, so numbers need not grow here.
ReadSequence(p) ==
    /\ at[p] = "read"
    /\ same' = same \union {p}
    /\ Goes(p, "enter")
    /\ UNCHANGED <<back, owner, lock, level, half, waits, count, flag, orphans, due>>

\* It takes the free lock; while another lives that holds it, it is blocked.
Enter(p) ==
    /\ at[p] = "enter" /\ owner = Nobody /\ lock # "lost"
    /\ owner' = p
    /\ Goes(p, "check")
    /\ UNCHANGED <<back, lock, level, half, waits, count, same, flag, orphans, due>>

\* It is given the lock of a dead owner, and told so.
FindDead(p) ==
    /\ at[p] = "enter" /\ HasDeadOwner
    /\ owner' = p /\ lock' = "found"
    /\ Goes(p, "repair")
    /\ UNCHANGED <<back, level, half, waits, count, same, flag, orphans, due>>

\* The finder undoes what is half made, and forgets the entries of the dead.  A finder
\* that dies here has changed nothing that the next one would not change again.
Recount == Cardinality(Living(waits))
Repair(p) ==
    /\ at[p] = "repair"
    /\ half' = FALSE /\ waits' = Living(waits) /\ count' = Recount /\ due' = FALSE
    /\ Goes(p, "mark")
    /\ UNCHANGED <<back, owner, lock, level, same, flag, orphans>>

\* The finder marks the lock sound.  It does not know whether the dead owner had
\* changed something, so it wakes everybody, and only then goes on with its own call.
Mark(p) ==
    /\ at[p] = "mark"
    /\ lock' = "sound"
    /\ Goes(p, "bump")
    /\ UNCHANGED <<back, owner, level, half, waits, count, same, flag, orphans, due>>

\* A process leaves after its call has ended.  Whoever leaves wakes the others, if there
\* are any; it has asked for that inside.
LeaveLock == owner' = Nobody /\ lock' = IF lock = "found" THEN "lost" ELSE lock
Leave(p) ==
    /\ at[p] = "leave"
    /\ LeaveLock
    /\ Goes(p, IF count > 0 THEN "bump" ELSE "out")
    /\ UNCHANGED <<back, level, half, waits, count, same, flag, orphans, due>>

--------------------------------------------------------------------------------
(* Inside.                                                                    *)

\* Time passes.  It is counted from the last look for the dead, whoever had it, and not
\* from when one's own sleep began: who is woken often would never sleep a whole slice.
Tick ==
    /\ ~due /\ waits \intersect Dead # {}
    /\ due' = TRUE
    /\ UNCHANGED <<at, back, owner, lock, level, half, waits, count, same, flag, orphans>>

\* Whoever is inside when it is time looks for the dead, and forgets them.
MustSweep == due /\ waits \intersect Dead # {}
Sweep(p) ==
    /\ at[p] = "check" /\ MustSweep
    /\ waits' = Living(waits) /\ count' = Recount /\ due' = FALSE
    /\ UNCHANGED <<at, back, owner, lock, level, half, same, flag, orphans>>

\* The process looks at its conditions: it gives up, is served, or has to wait.
Check(p) ==
    /\ at[p] = "check" /\ ~MustSweep
    /\ Goes(p, IF back[p] = "signal" \/ Flagged(p) THEN "part"
               ELSE IF May(p) THEN "begin"
               ELSE IF p \in waits THEN "letgo" ELSE "join")
    /\ ComesBack(p, "woken")
    /\ UNCHANGED <<owner, lock, level, half, waits, count, same, flag, orphans, due>>

\* It would have to wait, but its deadline has passed.
Expire(p) ==
    /\ "Expire" \in Features
    /\ at[p] = "check" /\ ~MustSweep /\ ~May(p)
    /\ Goes(p, "part")
    /\ ComesBack(p, "woken")
    /\ UNCHANGED <<owner, lock, level, half, waits, count, same, flag, orphans, due>>

\* It gets an entry as waiting.
Join(p) ==
    /\ at[p] = "join"
    /\ waits' = waits \union {p} /\ count' = count + 1
    /\ Goes(p, "letgo")
    /\ UNCHANGED <<back, owner, lock, level, half, same, flag, orphans, due>>

\* It is served: it begins to change the ledger, ...
Begin(p) ==
    /\ at[p] = "begin"
    /\ half' = TRUE
    /\ Goes(p, "finish")
    /\ UNCHANGED <<back, owner, lock, level, waits, count, same, flag, orphans, due>>

\* ... and the change has happened in one store, that of the mark (see Journal).
Finish(p) ==
    /\ at[p] = "finish"
    /\ half' = FALSE
    /\ level' = IF p \in Givers THEN level + 1 ELSE level - 1
    /\ Goes(p, "part")
    /\ UNCHANGED <<back, owner, lock, waits, count, same, flag, orphans, due>>

\* Its call has ended, one way or the other: its entry goes.
Part(p) ==
    /\ at[p] = "part"
    /\ waits' = waits \ {p} /\ count' = IF p \in waits THEN count - 1 ELSE count
    /\ same' = same \ {p}
    /\ Goes(p, "leave")
    /\ UNCHANGED <<back, owner, lock, level, half, flag, orphans, due>>

--------------------------------------------------------------------------------
(* Sleeping and waking.                                                       *)

\* A process that must wait leaves, ...
LetGo(p) ==
    /\ at[p] = "letgo"
    /\ LeaveLock
    /\ Goes(p, "sleep")
    /\ UNCHANGED <<back, level, half, waits, count, same, flag, orphans, due>>

\* ... and sleeps if the word is still as it was read.  Comparing and falling asleep is
\* one step; that is what a futex is for.
Sleep(p) ==
    /\ at[p] = "sleep"
    /\ Goes(p, IF p \in same THEN "asleep" ELSE "read")
    /\ same' = same \ {p}
    /\ orphans' = IF p \in same THEN orphans ELSE orphans \ {p}
    /\ UNCHANGED <<back, owner, lock, level, half, waits, count, flag, due>>

\* A slice of sleep is over: the sleeper looks again, as if it had been woken.
SliceEnds(p) ==
    /\ at[p] = "asleep"
    /\ Goes(p, "read")
    /\ orphans' = orphans \ {p}
    /\ UNCHANGED <<back, owner, lock, level, half, waits, count, same, flag, due>>

\* A signal ends the sleep, and its handler raises: the call must only be tidied up.
Interrupt(p) ==
    /\ "Signal" \in Features
    /\ at[p] \in {"sleep", "asleep"}
    /\ Goes(p, "enter")
    /\ ComesBack(p, "signal")
    /\ same' = same \ {p} /\ orphans' = orphans \ {p}
    /\ UNCHANGED <<owner, lock, level, half, waits, count, flag, due>>

\* A process that has changed something changes the word, ...
Bump(p) ==
    /\ at[p] = "bump"
    /\ same' = {}
    /\ Goes(p, "ring")
    /\ UNCHANGED <<back, owner, lock, level, half, waits, count, flag, orphans, due>>

\* ... and wakes all who sleep on it.  Then its call is over, or, if it is a finder that
\* is still inside, goes on.
AfterRinging(p) == IF owner = p THEN "check" ELSE "out"
Ring(p) ==
    /\ at[p] = "ring"
    /\ at' = [q \in Procs |-> IF q = p THEN AfterRinging(p)
                              ELSE IF q \in Asleep THEN "read" ELSE at[q]]
    /\ orphans' = orphans \ Asleep
    /\ UNCHANGED <<back, owner, lock, level, half, waits, count, same, flag, due>>

\* A process outside sets the cancel flag: one store without the lock.
SetFlag(p) ==
    /\ "Cancel" \in Features /\ ~flag
    /\ at[p] = "out"
    /\ flag' = TRUE
    /\ Goes(p, "bump")
    /\ UNCHANGED <<back, owner, lock, level, half, waits, count, same, orphans, due>>

\* A process is killed, wherever it is.  The lock remembers its owner, the ledger what was
\* half made and who waits; everything else is gone.
MustRing(p) == at[p] \in {"bump", "ring"} /\ owner # p
Kill(p) ==
    /\ p \notin Dead /\ Cardinality(Dead) < MaxKills
    /\ Goes(p, "dead")
    /\ ComesBack(p, "woken")
    /\ same' = same \ {p}
    /\ orphans' = (orphans \ {p}) \union
           (IF MustRing(p) THEN {q \in Procs : at[q] \in {"join", "letgo", "sleep", "asleep"}}
            ELSE {})
    /\ UNCHANGED <<owner, lock, level, half, waits, count, flag, due>>

--------------------------------------------------------------------------------
(* The machine.                                                               *)

Init ==
    /\ at = [p \in Procs |-> "out"]
    /\ back = [p \in Procs |-> "woken"]
    /\ owner = Nobody /\ lock = "sound"
    /\ level = 0 /\ half = FALSE
    /\ waits = {} /\ count = 0
    /\ same = {} /\ flag = FALSE /\ due = FALSE
    /\ orphans = {}

Comes(p) == Enter(p) \/ FindDead(p)
GoesOn(p) ==
    \/ ReadSequence(p) \/ Repair(p) \/ Mark(p) \/ Sweep(p) \/ Check(p) \/ Join(p)
    \/ Begin(p) \/ Finish(p) \/ Part(p) \/ Leave(p) \/ LetGo(p) \/ Sleep(p)
    \/ Bump(p) \/ Ring(p)

Next ==
    \/ \E p \in Procs :
          \/ Call(p) \/ Comes(p) \/ GoesOn(p) \/ SliceEnds(p)
          \/ Expire(p) \/ Interrupt(p) \/ SetFlag(p) \/ Kill(p)
    \/ Tick

Spec == Init /\ [][Next]_vars

\* Who lives goes on; nobody is passed over for ever at the lock, and time passes.
Fair ==
    /\ \A p \in Procs : WF_vars(GoesOn(p)) /\ SF_vars(Comes(p)) /\ WF_vars(SliceEnds(p))
    /\ WF_vars(Tick)
FairSpec == Spec /\ Fair

--------------------------------------------------------------------------------
(* The refinement.  A call is in from its first step to the one that decides. *)

Stage == [p \in Procs |->
    IF at[p] = "dead" THEN "dead"
    ELSE IF at[p] \in {"out", "part", "leave"} \/ MustRing(p) THEN "out"
    ELSE "in"]

Atomic == INSTANCE Await WITH stage <- Stage

RefinesAwait == Atomic!Spec

\* The same for single steps, with a name that a counterexample can give: whoever is
\* served had its condition true at that point, and nobody else changes the level.
AtomicSteps == [][<<level, Stage>>' # <<level, Stage>> => Atomic!Next]_vars

--------------------------------------------------------------------------------
(* In every state and step.                                                   *)

TypeOK ==
    /\ at \in [Procs -> {"out", "read", "enter", "repair", "mark", "check", "join", "begin",
                         "finish", "part", "leave", "letgo", "sleep", "asleep", "bump",
                         "ring", "dead"}]
    /\ back \in [Procs -> {"woken", "signal"}]
    /\ owner \in Procs \union {Nobody} /\ lock \in {"sound", "found", "lost"}
    /\ level \in 0 .. Limit /\ half \in BOOLEAN /\ flag \in BOOLEAN /\ due \in BOOLEAN
    /\ waits \subseteq Procs /\ count \in Nat
    /\ same \subseteq Procs /\ orphans \subseteq Procs

Inside == {p \in Procs : at[p] \in
    {"repair", "mark", "check", "join", "begin", "finish", "part", "leave", "letgo"}}

\* One process is inside, and it holds the lock.
MutualExclusion == \A p \in Inside : owner = p

\* Nobody who is inside decides by what is half made, and whoever enters can.
SoundInside ==
    /\ half => owner # Nobody
    /\ \A p \in Inside : at[p] \notin {"repair", "finish"} => ~half
    /\ lock # "lost"

\* The count is that of the entries, and these are the living that wait, and dead ones
\* that nobody has looked for yet.
CountTrue ==
    /\ count = Cardinality(waits)
    /\ \A p \in Living(waits) : Stage[p] = "in" \/ at[p] = "part"
    /\ Asleep \subseteq waits

\* After a recovery only the living count.
RecoveryCounts == [][
    \A p \in Procs : Sweep(p) \/ Repair(p) => waits' \intersect Dead = {}
                                              /\ count' = Cardinality(Living(waits))
    ]_vars

\* Whoever sleeps and could go on will be woken: somebody is inside (or has died there,
\* and its finder will wake all), or somebody who lives has still to ring.  The others have
\* a dead waker, and their slices.
NoLostWakeup == \A p \in Asleep \ orphans :
    May(p) \/ Flagged(p) => owner # Nobody \/ \E q \in Procs : at[q] \in {"bump", "ring"}

--------------------------------------------------------------------------------
(* In the end (FairSpec).                                                     *)

\* A call whose condition holds for good is served (or gives up).  This is the weak
\* fairness of Await's Serve.
Released == \A p \in Procs : []<>~(Stage[p] = "in" /\ May(p))

\* A call whose flag is set ends.
CancelEnds == \A p \in Procs : Stage[p] = "in" /\ Flagged(p) ~> Stage[p] # "in"

\* Nobody waits at the lock for ever, whoever died with it.
Enters == \A p \in Procs : at[p] = "enter" ~> at[p] # "enter"

\* As long as somebody waits, the dead do not stay in the count.
DeadForgotten == \A p \in Procs :
    at[p] = "dead" /\ p \in waits ~> p \notin waits \/ Living(waits) = {}
================================================================================
