------------------------------ MODULE MCLiveness -------------------------------
(* Small enough for fairness: what waits must come to an end.                 *)
EXTENDS Graph, Witnesses, Bugs

MCRequests == {<<"plain", 1, 1>>}
MCTokenOf == [x \in Actors |-> IF x = "p1" THEN "t1" ELSE NoToken]

\* For the full tier.
FullRequests == {<<"plain", 2, 1>>}

\* For single faults.
RequestsOfTwo == {<<"plain", 1, 1>>, <<"plain", 2, 2>>}
NoTokens == [x \in Actors |-> NoToken]
================================================================================
