------------------------------- MODULE MCPrefetch ------------------------------
(* A process draws ahead while others fail, empty and close.                  *)
EXTENDS Graph, Witnesses, Bugs

MCRequests == {<<"plain", 1, 1>>, <<"plain", 2, 2>>}
MCTokenOf == [x \in Actors |-> NoToken]
================================================================================
