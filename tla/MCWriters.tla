------------------------------- MODULE MCWriters -------------------------------
(* Writers compete for room: small and large batches, failing copies,         *)
(* deadlines, closing.                                                        *)
EXTENDS Graph, Witnesses, Bugs

MCRequests == {<<"plain", 1, 1>>, <<"plain", 2, 2>>}
MCTokenOf == [x \in Actors |-> IF x = "p1" THEN "t1" ELSE NoToken]

\* For the full tier.
FullRequests == {<<"plain", 1, 1>>, <<"plain", 3, 2>>}
FullTokenOf == [x \in Actors |-> IF x = "p1" THEN "t1" ELSE NoToken]
================================================================================
