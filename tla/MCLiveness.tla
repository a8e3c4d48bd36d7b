----------------------------- MODULE MCLiveness -----------------------------
(* Small enough for fairness: what waits must come to an end.               *)
EXTENDS Graph, Witnesses, Bugs

MCRequests == {<<"plain", 1, 1>>}
RequestsOfTwo == MCRequests \union {<<"plain", 2, 2>>}
MCTokenOf == [x \in Actors |-> IF x = "p1" THEN "t1" ELSE NoToken]
=============================================================================
