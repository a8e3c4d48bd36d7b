-------------------------------- MODULE MCCrash --------------------------------
(* Processes die while they wait, copy, gather or keep a lease, and the       *)
(* buffer is emptied and closed before anybody finds them.                    *)
EXTENDS Graph, Witnesses, Bugs

MCRequests == {<<"plain", 1, 1>>, <<"lease", 2, 1>>}
MCTokenOf == [x \in Actors |-> NoToken]

\* For the full tier.
FullRequests == {<<"lease", 1, 1>>}
================================================================================
