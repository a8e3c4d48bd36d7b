----------------------------- MODULE MCReaders ------------------------------
(* Readers compete for records that are used twice: short draws, failing    *)
(* gathers that return, one cancel token, closing.                          *)
EXTENDS Graph, Witnesses, Bugs

MCRequests == {<<"plain", 1, 1>>, <<"plain", 2, 1>>, <<"plain", 2, 2>>}
MCTokenOf == [x \in Actors |-> IF x = "c1" THEN "t1" ELSE NoToken]
=============================================================================
