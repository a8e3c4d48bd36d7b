------------------------------- MODULE MCCopies --------------------------------
(* Captures of two batches that were drawn ahead, and the buffer is emptied   *)
(* while their records are copied.                                            *)
EXTENDS Graph, Witnesses, Bugs

MCRequests == {<<"plain", 1, 1>>}
MCTokenOf == [x \in Actors |-> NoToken]
MCProcessOf == [x \in Actors |-> "q1"]
================================================================================
