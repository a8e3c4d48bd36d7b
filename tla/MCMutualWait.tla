----------------------------- MODULE MCMutualWait ------------------------------
(* How large may writes and requests be, so that writers and readers never    *)
(* wait for each other? If all writes have n records, all requests k, and a   *)
(* record is used once: if and only if n + k <= Capacity + gcd(n, k).         *)
(*                                                                            *)
(* One run covers all n and k of a capacity: both are chosen at the start     *)
(* and kept. Where the bound is met BoundKept must hold; every other pair     *)
(* must be printed, since it must be able to go wrong.                        *)
EXTENDS ReplayBufferProperties, TLC

VARIABLES n, k

Divides(d, a) == \E q \in 1 .. a : d * q = a
Gcd(a, b) == CHOOSE d \in 1 .. a :
    /\ Divides(d, a) /\ Divides(d, b)
    /\ \A e \in d + 1 .. a : ~(Divides(e, a) /\ Divides(e, b))

Small == n + k <= Capacity + Gcd(n, k)

MCSizes == 1 .. Capacity
MCRequests == {<<"plain", size, size>> : size \in MCSizes}
MCTokenOf == [x \in Actors |-> NoToken]

MCInit == Init /\ n \in MCSizes /\ k \in MCSizes
MCNext ==
    /\ \/ \E p \in Producers : Arrive(p, n) \/ Admit(p) \/ Publish(p)
       \/ \E c \in Readers : Ask(c, "plain", k, k) \/ Draw(c)
       \/ \E h \in Holds : Ready(h) \/ Deliver(h)
       \/ \E x \in Actors : Refuse(x)
    /\ UNCHANGED <<n, k>>
MCSpec == MCInit /\ [][MCNext]_<<vars, n, k>>

\* Whether a call can be served is a question of numbers: which slots they are, the
\* view forgets.
Numbers == <<
    n, k, tickets, Len(free), Cardinality(Sampleable),
    [p \in Producers |-> Len(filling[p])],
    [h \in 1 .. Len(holds) |-> <<holds[h].owner, holds[h].state, Len(holds[h].slots)>>]>>

\* The next call, or one that waits, is told that it is in a mutual wait.
Found ==
    LET Told(ticket) == Idle(ticket.actor) /\ OnArrival(ticket) = "MUTUAL_WAIT"
    IN  \/ \E i \in 1 .. Len(tickets) : Verdict(tickets, i) = "MUTUAL_WAIT"
        \/ \E p \in Producers : Told(Ticket("write", p, n, n))
        \/ \E c \in Readers : Told(Ticket("plain", c, k, k))

BoundKept == Small => ~Found

\* Prints each pair once for each worker.
Pair == n * 100 + k
ASSUME \A a \in MCSizes, b \in MCSizes : TLCSet(a * 100 + b, FALSE)
PrintFound == TLCGet(Pair) \/ (Found =>
    TLCSet(Pair, TRUE) /\ PrintT(<<"MUTUAL", Capacity, n, k>>))
================================================================================
