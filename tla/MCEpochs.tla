------------------------------- MODULE MCEpochs --------------------------------
(* Two readers share epochs, and batches come back before and after the end of*)
(* theirs.                                                                    *)
EXTENDS Graph, Witnesses, Bugs

MCRequests == {<<"lease", 2, 1>>}
MCTokenOf == [x \in Actors |-> NoToken]
================================================================================
