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

WitnessNames == <<
    "WriterWaitsThenAdmitted", "ReaderWaitsThenDraws", "SmallBehindLarge",
    "MutualWaitFound", "OwnLeaseRefused", "DrawReturned", "LeaseReturned", "ShortByLeast",
    "ShortByDraining", "DroppedWhileHeld", "CancelAfterAdmit", "PublishAfterClose",
    "KilledWhileWaiting", "KilledWhileFilling", "KilledWhileGathering",
    "KilledWhileLeasing", "RecoveredThenServed", "TakenWhileGathering", "TakenFailed",
    "TakenByWaiting", "Recalled", "FlushedQueue", "StaleGathering",
    "CaptureWhileWriterWaits", "CaptureWhileFilling", "CaptureAskWhileGathering",
    "CaptureWithQueue", "SpentWhileCopied", "DroppedWhileCopied", "HeldOffByCapture",
    "RestoredWithQueue", "RestoredWhileWaiting", "LeaseMadeVoid", "Rejected",
    "KilledWhileCopying", "KilledWhileLoading">>

\* Those of overwriting buffers alone; the others need not look for them.
OverwritingNames == <<
    "Evicted", "EvictedPastPinned", "EvictedWhileLeased", "EvictedWhileCopying",
    "WriterWaitsForGather", "DrawnTwice", "EpochEnds", "NewEpoch", "BackInEpoch",
    "TooLateForEpoch", "LastDropped", "RestoredLeft">>

Seen(name) ==
    CASE name = "WriterWaitsThenAdmitted" -> WriterWaitsThenAdmitted
      [] name = "ReaderWaitsThenDraws" -> ReaderWaitsThenDraws
      [] name = "SmallBehindLarge" -> SmallBehindLarge
      [] name = "MutualWaitFound" -> MutualWaitFound
      [] name = "OwnLeaseRefused" -> OwnLeaseRefused
      [] name = "DrawReturned" -> DrawReturned
      [] name = "LeaseReturned" -> LeaseReturned
      [] name = "ShortByLeast" -> ShortByLeast
      [] name = "ShortByDraining" -> ShortByDraining
      [] name = "DroppedWhileHeld" -> DroppedWhileHeld
      [] name = "CancelAfterAdmit" -> CancelAfterAdmit
      [] name = "PublishAfterClose" -> PublishAfterClose
      [] name = "KilledWhileWaiting" -> KilledWhileWaiting
      [] name = "KilledWhileFilling" -> KilledWhileFilling
      [] name = "KilledWhileGathering" -> KilledWhileGathering
      [] name = "KilledWhileLeasing" -> KilledWhileLeasing
      [] name = "RecoveredThenServed" -> RecoveredThenServed
      [] name = "TakenWhileGathering" -> TakenWhileGathering
      [] name = "TakenFailed" -> TakenFailed
      [] name = "TakenByWaiting" -> TakenByWaiting
      [] name = "Recalled" -> Recalled
      [] name = "FlushedQueue" -> FlushedQueue
      [] name = "StaleGathering" -> StaleGathering
      [] name = "CaptureWhileWriterWaits" -> CaptureWhileWriterWaits
      [] name = "CaptureWhileFilling" -> CaptureWhileFilling
      [] name = "CaptureAskWhileGathering" -> CaptureAskWhileGathering
      [] name = "CaptureWithQueue" -> CaptureWithQueue
      [] name = "SpentWhileCopied" -> SpentWhileCopied
      [] name = "DroppedWhileCopied" -> DroppedWhileCopied
      [] name = "HeldOffByCapture" -> HeldOffByCapture
      [] name = "RestoredWithQueue" -> RestoredWithQueue
      [] name = "RestoredWhileWaiting" -> RestoredWhileWaiting
      [] name = "LeaseMadeVoid" -> LeaseMadeVoid
      [] name = "Rejected" -> Rejected
      [] name = "KilledWhileCopying" -> KilledWhileCopying
      [] name = "KilledWhileLoading" -> KilledWhileLoading

SeenOverwriting(name) ==
    CASE name = "Evicted" -> Evicted
      [] name = "EvictedPastPinned" -> EvictedPastPinned
      [] name = "EvictedWhileLeased" -> EvictedWhileLeased
      [] name = "EvictedWhileCopying" -> EvictedWhileCopying
      [] name = "WriterWaitsForGather" -> WriterWaitsForGather
      [] name = "DrawnTwice" -> DrawnTwice
      [] name = "EpochEnds" -> EpochEnds
      [] name = "NewEpoch" -> NewEpoch
      [] name = "BackInEpoch" -> BackInEpoch
      [] name = "TooLateForEpoch" -> TooLateForEpoch
      [] name = "LastDropped" -> LastDropped
      [] name = "RestoredLeft" -> RestoredLeft

Count == Len(WitnessNames) + Len(OverwritingNames)
ASSUME \A i \in 1 .. Count : TLCSet(i, FALSE)

PrintOnce(i, name) == TLCSet(i, TRUE) /\ PrintT(<<"WITNESS", name>>)
PrintWitness ==
    /\ \A i \in 1 .. Len(WitnessNames) :
          TLCGet(i) \/ (Seen(WitnessNames[i]) => PrintOnce(i, WitnessNames[i]))
    /\ Overwrites => \A i \in Len(WitnessNames) + 1 .. Count :
          LET name == OverwritingNames[i - Len(WitnessNames)]
          IN  TLCGet(i) \/ (SeenOverwriting(name) => PrintOnce(i, name))
================================================================================
