------------------------------- MODULE MCThreads -------------------------------
(* Two readers of one process share the batches that it has drawn ahead, and  *)
(* others give them back.                                                     *)
EXTENDS Graph, Witnesses, Bugs

MCRequests == {<<"plain", 1, 1>>, <<"plain", 2, 2>>}
MCTokenOf == [x \in Actors |-> NoToken]
MCProcessOf == [x \in Actors |-> "q1"]
================================================================================
