------------------------------- MODULE MCResumed -------------------------------
(* An epoch that is captured and restored, with a batch that was drawn ahead. *)
EXTENDS Graph, Witnesses, Bugs

MCRequests == {<<"plain", 1, 1>>}
MCTokenOf == [x \in Actors |-> NoToken]
MCProcessOf == [x \in Actors |-> "q1"]
================================================================================
