-------------------------------- MODULE MCRing ---------------------------------
(* A writer overwrites while batches are drawn ahead with replacement, fail   *)
(* and are kept as leases, and the buffer is emptied.                         *)
EXTENDS Graph, Witnesses, Bugs

MCRequests == {<<"lease", 2, 1>>}
MCTokenOf == [x \in Actors |-> NoToken]
================================================================================
