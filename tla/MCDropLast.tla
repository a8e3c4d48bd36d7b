------------------------------ MODULE MCDropLast -------------------------------
(* Epochs without short batches at their end.                                 *)
EXTENDS Graph, Witnesses, Bugs

MCRequests == {<<"plain", 2, 2>>, <<"lease", 1, 1>>}
MCTokenOf == [x \in Actors |-> NoToken]
================================================================================
