------------------------------- MODULE Broken -------------------------------
(* Cannot be parsed: what the runner says about that is tested.               *)
VARIABLE x
Init == x = (
=============================================================================
