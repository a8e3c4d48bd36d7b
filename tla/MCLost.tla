-------------------------------- MODULE MCLost ---------------------------------
(* Processes die while they capture, copy, restore and load, or with batches  *)
(* that they have drawn ahead.                                                *)
EXTENDS Graph, Witnesses, Bugs

MCRequests == {<<"plain", 2, 2>>}
MCTokenOf == [x \in Actors |-> NoToken]

\* For the full tier.
FullRequests == {<<"plain", 1, 1>>}
================================================================================
