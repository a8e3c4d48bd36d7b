-------------------------------- MODULE Door --------------------------------
(* A toy for the tests of the runner: two people pass a door, one at a time.  *)
EXTENDS Naturals, Sequences, TLC

CONSTANTS People, Rounds, Careful

VARIABLES inside, passes
vars == <<inside, passes>>

Enter(x) ==
    /\ x \notin inside /\ passes[x] < Rounds
    /\ Careful => inside = {}
    /\ inside' = inside \union {x}
    /\ UNCHANGED passes

Leave(x) ==
    /\ x \in inside
    /\ inside' = inside \ {x}
    /\ passes' = [passes EXCEPT ![x] = @ + 1]

Init == inside = {} /\ passes = [x \in People |-> 0]
Rest == (\A x \in People : passes[x] = Rounds) /\ UNCHANGED vars
NoRest == FALSE
Next == (\E x \in People : Enter(x) \/ Leave(x)) \/ Rest
Spec == Init /\ [][Next]_vars
FairSpec == Spec /\ \A x \in People : WF_vars(Leave(x))

OneAtATime == \A x, y \in inside : x = y
SomebodyIsOut == \E x \in People : passes[x] < Rounds
NeverBack == [][\A x \in People : passes'[x] = passes[x]]_vars
AllPass == \A x \in People : <>(passes[x] = Rounds)
Wrong == inside.nobody = 1
Seen == inside' = {} \/ PrintT(<<"WITNESS", "SomebodyEnters">>)
=============================================================================
