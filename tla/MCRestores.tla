------------------------------ MODULE MCRestores -------------------------------
(* Restores while others wait and keep leases.                                *)
EXTENDS Graph, Witnesses, Bugs

MCRequests == {<<"plain", 1, 1>>, <<"lease", 2, 2>>}
MCTokenOf == [x \in Actors |-> NoToken]
MCProcessOf == [x \in Actors |-> "q1"]
================================================================================
