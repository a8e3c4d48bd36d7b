------------------------------- MODULE Witnesses -------------------------------
(* Prints the name of each witness when it is first seen. An action           *)
(* constraint that is always TRUE; each worker of TLC keeps its own account.  *)
EXTENDS ReplayBufferProperties, TLC

WitnessNames == <<
    "WriterWaitsThenAdmitted", "ReaderWaitsThenDraws", "SmallBehindLarge",
    "MutualWaitFound", "OwnLeaseRefused", "DrawReturned", "LeaseReturned",
    "ShortByLeast", "ShortByDraining", "DroppedWhileHeld", "CancelAfterAdmit",
    "PublishAfterClose", "KilledWhileWaiting", "KilledWhileFilling",
    "KilledWhileGathering", "KilledWhileLeasing", "RecoveredThenServed">>

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

ASSUME \A i \in 1 .. Len(WitnessNames) : TLCSet(i, FALSE)

PrintWitness == \A i \in 1 .. Len(WitnessNames) :
    TLCGet(i) \/ (Seen(WitnessNames[i]) =>
        TLCSet(i, TRUE) /\ PrintT(<<"WITNESS", WitnessNames[i]>>))
================================================================================
