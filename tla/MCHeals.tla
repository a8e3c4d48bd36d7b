-------------------------------- MODULE MCHeals --------------------------------
(* Small enough for fairness: once nobody is killed any more, all is well.    *)
EXTENDS Graph, Witnesses, Bugs

MCRequests == {<<"plain", 1, 1>>}
MCTokenOf == [x \in Actors |-> NoToken]
================================================================================
