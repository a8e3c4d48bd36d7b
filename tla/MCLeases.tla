------------------------------- MODULE MCLeases --------------------------------
(* Leases are kept across calls, one actor both writes and draws, and the     *)
(* buffer is emptied under them.                                              *)
EXTENDS Graph, Witnesses, Bugs

MCRequests == {<<"lease", 1, 1>>, <<"lease", 2, 2>>}
MCTokenOf == [x \in Actors |-> NoToken]

\* For the full tier.
FullRequests == {<<"plain", 1, 1>>, <<"lease", 2, 1>>}
================================================================================
