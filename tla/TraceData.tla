------------------------------- MODULE TraceData -------------------------------
(* What TraceReplay judges: an example of a trace, two calls that are served  *)
(* at once.  For a real trace `forebay check trace` writes this module.       *)
(*                                                                            *)
(* These are definitions and no constants, since TLC would evaluate what a    *)
(* configuration file puts in place of a constant anew in every step.         *)
EXTENDS ReplayBuffer, TLC

NoTokens == [x \in Actors |-> NoToken]

\* The events, each once.
Events == <<
    [name |-> "Arrive", actor |-> "a1", args |-> <<2>>, outcome |-> "SERVE",
     slots |-> <<0, 1>>, tokens |-> 1],
    [name |-> "Publish", actor |-> "a1", args |-> <<>>, outcome |-> "DONE",
     slots |-> <<0, 1>>, tokens |-> 1],
    [name |-> "Ask", actor |-> "a2", args |-> <<"plain", 1, 1>>, outcome |-> "SERVE",
     slots |-> <<0>>, tokens |-> 1],
    [name |-> "Ready", actor |-> "a2", args |-> <<0>>, outcome |-> "DONE",
     slots |-> <<0>>, tokens |-> 1],
    [name |-> "Deliver", actor |-> "a2", args |-> <<0>>, outcome |-> "DONE",
     slots |-> <<0>>, tokens |-> 1]>>

\* For each trace its events, by number.
Traces == <<<<1, 2, 3, 4, 5>>>>

\* Functions from actors to tokens; an event names one, that of its time.
TokenMaps == <<NoTokens>>

\* Every token there is.
AllTokens == {}

\* <<actor, kind of call>> for calls that may be missing in a trace.
Unobserved == {}

\* So many states are followed if calls may be missing.
MostStates == 50000
================================================================================
