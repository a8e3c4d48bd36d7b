------------------------------ MODULE MCCaptures -------------------------------
(* Captures while others fill, wait, gather and use up records.               *)
EXTENDS Graph, Witnesses, Bugs

MCRequests == {<<"plain", 1, 1>>}
MCTokenOf == [x \in Actors |-> NoToken]
MCProcessOf == [x \in Actors |-> "q1"]
================================================================================
