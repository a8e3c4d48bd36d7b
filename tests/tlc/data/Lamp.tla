-------------------------------- MODULE Lamp --------------------------------
(* A toy whose counterexample goes round for ever: the lamp is never blue.    *)
EXTENDS Naturals
VARIABLE lamp
Turn == lamp' = IF lamp = 3 THEN 1 ELSE lamp + 1
Init == lamp = 0
Spec == Init /\ [][Turn]_lamp /\ WF_lamp(Turn)
Blue == <>(lamp = 7)
=============================================================================
