------------------------------- MODULE Witnesses -------------------------------
(* What must at least be possible, because a model in which nobody ever waits *)
(* keeps every promise. Each witness names a state, or a step out of it, that *)
(* a model worth checking reaches.                                            *)
(* PrintWitness prints the name of each when it is first seen. It is an       *)
(* action constraint that is always TRUE; each worker of TLC keeps its own    *)
(* account.                                                                   *)
EXTENDS ReplayBufferProperties, TLC

\* A ticket gets this answer now, or a call would get it if it were made now.
Due(Answer(_, _)) ==
    LET Newcomer(ticket) ==
            Idle(ticket.actor) /\ Answer(Append(tickets, ticket), Len(tickets) + 1)
    IN  \/ \E i \in 1 .. Len(tickets) : tickets[i].actor \notin dead /\ Answer(tickets, i)
        \/ \E p \in Producers, n \in WriteSizes : Newcomer(Ticket("write", p, n, n))
        \/ \E c \in Readers, r \in Requests : Newcomer(Ticket(r[1], c, r[2], r[3]))

Captured == \E x \in Actors : Capture(x)
Loaded == \E x \in Actors : Load(x)

DueToMutualWait(queue, i) ==
    Verdict(queue, i) = "MUTUAL_WAIT" /\ GivesUp(queue, i)
DueToOwnLeases(queue, i) ==
    Verdict(queue, i) = "MUTUAL_WAIT" /\ Overleased(queue[i])

WriterWaitsThenAdmitted == \E p \in Producers : StartsToFill(p) /\ Waits(p)
ReaderWaitsThenDraws == \E c \in Readers : Draw(c)
SmallBehindLarge == \E i \in Heads(tickets), j \in 1 .. Len(tickets) :
    /\ Side(tickets[i]) = "writer" /\ Side(tickets[j]) = "writer"
    /\ tickets[i].n > Len(free) /\ tickets[j].n <= Len(free)
MutualWaitFound == Due(DueToMutualWait)
OwnLeaseRefused == Due(DueToOwnLeases)
DrawReturned == \E h \in Holds : InState(h, "failed") /\ Return(h)
LeaseReturned == \E h \in Holds : OnLease(h) /\ Return(h)
ShortByLeast == closing = "open" /\
    \E q \in Requests : Answers(q) /\ Len(Drawn.slots) < q[2]
ShortByDraining == closing = "draining" /\
    \E q \in Requests : Answers(q) /\ Len(Drawn.slots) < q[3]
DroppedWhileHeld == InPhase("dropped") # {}
CancelAfterAdmit == \E p \in Producers : Fills(p) /\ TokenOf[p] \in cancelled' \ cancelled
PublishAfterClose == closing # "open" /\ BecomeLive # {}
KilledWhileWaiting == \E x \in dead : Waits(x)
KilledWhileFilling == \E x \in dead : Fills(x)
KilledWhileGathering == \E x \in dead : \E h \in HoldsOf(x) : holds[h].state = "gathering"
KilledWhileLeasing == \E x \in dead : \E h \in HoldsOf(x) : OutOnLease(holds[h])
RecoveredThenServed == \E x \in dead : Recover(x) /\ \E y \in Actors \ dead :
    Waits(y) /\ OnWaking(y) # "SERVE" /\ OnWaking(y)' = "SERVE"
TakenWhileGathering == \E h \in Taken : holds[h].state = "gathering"
TakenFailed == \E h \in Taken : holds[h].state = "failed"
TakenByWaiting == \E h \in Taken : Waits(holds'[h].owner)
Recalled == Recall
FlushedQueue == \E h \in SettledAhead : Return(h - 1)
StaleGathering ==
    (\E h \in 1 .. Len(holds) : Ahead(holds[h]) /\ holds[h].state = "gathering") /\ Empty
CaptureWhileWriterWaits == Captured /\ \E i \in 1 .. Len(tickets) : Side(tickets[i]) = "writer"
CaptureWhileFilling == Captured /\ ~NothingFilling
CaptureAskWhileGathering == \E x \in Actors :
    CaptureAsk(x) /\ \E h \in AheadOf(ProcessOf[x]) : ~Settled(holds[h])
CaptureWithQueue == Captured /\ saved'[1].queue # <<>>
SpentWhileCopied == \E s \in Range(boundary.slots) :
    Spent(s) /\ slots[s].pins = 1 /\ \E h \in HeldBy(s) : Deliver(h - 1)
DroppedWhileCopied == (\E s \in Range(boundary.slots) : Live(s)) /\ Empty
HeldOffByCapture == boundary.stage = "capturing" /\ \E i \in 1 .. Len(tickets) :
    Verdict(tickets, i) # "SERVE" /\ HeldOff(tickets[i]) /\ Fits(tickets, i)
    /\ ~ShutOut(tickets[i]) /\ ~HasFlag(tickets[i])
RestoredWithQueue == Restored /\ saved[1].queue # <<>>
RestoredWhileWaiting == (Restored \/ Loaded) /\ tickets # <<>>
LeaseMadeVoid == Loaded /\ \E h \in 1 .. Len(holds) : OutOnLease(holds[h])
Rejected == \E x \in Actors : Reject(x)
KilledWhileCopying == boundary.stage = "copying" /\ boundary.actor \in dead
KilledWhileLoading == boundary.stage = "loading" /\ boundary.actor \in dead
Evicted == Overwritten # {}
EvictedPastPinned == \E s \in Overwritten, older \in Slots :
    Live(older) /\ slots[older].pins > 0 /\ slots[older].stamp < slots[s].stamp
EvictedWhileLeased == \E s \in Overwritten : \E h \in 1 .. Len(holds) :
    OutOnLease(holds[h]) /\ s \in PinnedBy(h)
EvictedWhileCopying == Overwritten # {} /\ boundary.slots # <<>>
WriterWaitsForGather == Overwrites /\
    /\ \E i \in 1 .. Len(tickets) : Side(tickets[i]) = "writer" /\ tickets[i].n > Room("writer")
    /\ \E h \in 1 .. Len(holds) : ~Settled(holds[h])
DrawnTwice == SomebodyGets /\ Cardinality(Range(Drawn.slots)) < Len(Drawn.slots)
EpochEnds == InEpochs /\ SomebodyGets /\ \E k \in Wants :
    Len(Drawn.slots) < k /\ Len(Drawn.slots) < Cardinality(Sampleable)
NewEpoch == EpochBegins /\ \E h \in 1 .. Len(holds) : Remembered(h) # {}
BackInEpoch == \E h \in Holds : Return(h) /\ ~(left' \subseteq left)
TooLateForEpoch == InEpochs /\ \E h \in Holds : Return(h) /\
    \E s \in PinnedBy(h + 1) : Live(s) /\ s \notin Remembered(h + 1)
LastDropped == EpochBegins /\ left # {}
RestoredLeft == Restored /\ left' # {} /\ left' # InPhase("live")'

--------------------------------------------------------------------------------

\* Prints the name of a witness when it is first seen, and looks for it no more.
Look(i, name, seen) == TLCGet(i) \/ (seen => TLCSet(i, TRUE) /\ PrintT(<<"WITNESS", name>>))
ASSUME \A i \in 1 .. 48 : TLCSet(i, FALSE)

\* What the constants of a model rule out is not looked for.
MayLease == \E r \in Requests : r[1] = "lease"
LookForQueues ==
    /\ Look(1, "TakenWhileGathering", TakenWhileGathering)
    /\ Look(2, "TakenFailed", TakenFailed)
    /\ Look(3, "TakenByWaiting", TakenByWaiting)
    /\ Look(4, "Recalled", Recalled)
    /\ Look(5, "FlushedQueue", FlushedQueue)
    /\ Look(6, "StaleGathering", StaleGathering)
    /\ Look(7, "CaptureAskWhileGathering", CaptureAskWhileGathering)
    /\ Look(8, "CaptureWithQueue", CaptureWithQueue)
    /\ Look(9, "RestoredWithQueue", RestoredWithQueue)

LookForKills ==
    /\ Look(10, "KilledWhileWaiting", KilledWhileWaiting)
    /\ Look(11, "KilledWhileFilling", KilledWhileFilling)
    /\ Look(12, "KilledWhileGathering", KilledWhileGathering)
    /\ Look(13, "KilledWhileLeasing", KilledWhileLeasing)
    /\ Look(14, "RecoveredThenServed", RecoveredThenServed)
    /\ Look(15, "KilledWhileCopying", KilledWhileCopying)
    /\ Look(16, "KilledWhileLoading", KilledWhileLoading)

LookForCaptures ==
    /\ Look(17, "CaptureWhileWriterWaits", CaptureWhileWriterWaits)
    /\ Look(18, "CaptureWhileFilling", CaptureWhileFilling)
    /\ Look(19, "SpentWhileCopied", SpentWhileCopied)
    /\ Look(20, "DroppedWhileCopied", DroppedWhileCopied)
    /\ Look(21, "HeldOffByCapture", HeldOffByCapture)

LookForRestores ==
    /\ Look(22, "RestoredWhileWaiting", RestoredWhileWaiting)
    /\ Look(23, "LeaseMadeVoid", LeaseMadeVoid)
    /\ Look(24, "Rejected", Rejected)

LookForOverwriting ==
    /\ Look(25, "Evicted", Evicted)
    /\ Look(26, "EvictedPastPinned", EvictedPastPinned)
    /\ Look(27, "EvictedWhileLeased", EvictedWhileLeased)
    /\ Look(28, "EvictedWhileCopying", EvictedWhileCopying)
    /\ Look(29, "WriterWaitsForGather", WriterWaitsForGather)
    /\ Look(30, "DrawnTwice", DrawnTwice)
    /\ Look(31, "EpochEnds", EpochEnds)
    /\ Look(32, "NewEpoch", NewEpoch)
    /\ Look(33, "BackInEpoch", BackInEpoch)
    /\ Look(34, "TooLateForEpoch", TooLateForEpoch)
    /\ Look(35, "LastDropped", LastDropped)
    /\ Look(36, "RestoredLeft", RestoredLeft)

PrintWitness ==
    /\ Look(37, "WriterWaitsThenAdmitted", WriterWaitsThenAdmitted)
    /\ Look(38, "ReaderWaitsThenDraws", ReaderWaitsThenDraws)
    /\ Look(39, "SmallBehindLarge", SmallBehindLarge)
    /\ Look(40, "ShortByLeast", ShortByLeast)
    /\ Look(41, "ShortByDraining", ShortByDraining)
    /\ Look(42, "CancelAfterAdmit", CancelAfterAdmit)
    /\ Look(43, "PublishAfterClose", PublishAfterClose)
    /\ ~Overwrites => Look(44, "MutualWaitFound", MutualWaitFound)
    /\ MayLease /\ ~Overwrites => Look(45, "OwnLeaseRefused", OwnLeaseRefused)
    /\ "Fail" \in Features => Look(46, "DrawReturned", DrawReturned)
    /\ MayLease => Look(47, "LeaseReturned", LeaseReturned)
    /\ "Empty" \in Features => Look(48, "DroppedWhileHeld", DroppedWhileHeld)
    /\ PrefetchDepth > 0 => LookForQueues
    /\ "Kill" \in Features => LookForKills
    /\ "Capture" \in Features => LookForCaptures
    /\ "Restore" \in Features => LookForRestores
    /\ Overwrites => LookForOverwriting
================================================================================
