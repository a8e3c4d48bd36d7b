------------------------------ MODULE MCOrphaned -------------------------------
(* Processes die while they gather, fill or copy, and others overwrite.       *)
EXTENDS Graph, Witnesses, Bugs

MCRequests == {<<"plain", 2, 1>>}
MCTokenOf == [x \in Actors |-> NoToken]
================================================================================
