------------------------------- MODULE MCRandom --------------------------------
(* Draws in any order, in batches that overlap because a record is used twice.*)
(* Emptied under the readers, and gathers fail.                               *)
EXTENDS Graph, Witnesses, Bugs

MCRequests == {<<"plain", 1, 1>>, <<"lease", 2, 2>>}
MCTokenOf == [x \in Actors |-> NoToken]

\* For the full tier.
FullRequests == {<<"plain", 1, 1>>, <<"lease", 2, 2>>}
================================================================================
