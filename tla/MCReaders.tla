------------------------------- MODULE MCReaders -------------------------------
(* Readers compete for records that are used twice: short draws, failing      *)
(* gathers that return their records to their old place.                      *)
EXTENDS Graph, Witnesses, Bugs

MCRequests == {<<"plain", 2, 1>>, <<"plain", 2, 2>>}
MCTokenOf == [x \in Actors |-> NoToken]

\* For the full tier.
FullRequests == {<<"plain", 1, 1>>, <<"plain", 2, 1>>, <<"plain", 2, 2>>}
FullTokenOf == [x \in Actors |-> IF x = "c1" THEN "t1" ELSE NoToken]
ThreeRequests == {<<"plain", 1, 1>>, <<"plain", 3, 2>>}
================================================================================
