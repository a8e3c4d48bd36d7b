----------------------------- MODULE MCReaders ------------------------------
(* Readers compete for records that are used twice: short draws, failing    *)
(* gathers that return their records to their old place.                    *)
EXTENDS Graph, Witnesses, Bugs

MCRequests == {<<"plain", 2, 1>>, <<"plain", 2, 2>>}
MCTokenOf == [x \in Actors |-> NoToken]
=============================================================================
