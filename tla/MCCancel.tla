------------------------------- MODULE MCCancel --------------------------------
(* One flag stops everybody, whatever each of them is doing.                  *)
EXTENDS Graph, Witnesses, Bugs

MCRequests == {<<"plain", 1, 1>>}
MCTokenOf == [x \in Actors |-> "t1"]

\* For the full tier.
FullRequests == {<<"plain", 1, 1>>, <<"lease", 1, 1>>}
================================================================================
