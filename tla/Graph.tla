--------------------------------- MODULE Graph ---------------------------------
(* Prints the labelled state graph, one step a line, so that it can be        *)
(* compared with the graph of the Python model. TLC's own dump has neither    *)
(* the parameters of actions nor a form that is easy to read back. PrintInit  *)
(* is an invariant that is TRUE. GraphSpec is Spec, but that each action says *)
(* what it does when it is taken, so a run that checks every property prints  *)
(* the graph as well.                                                         *)
EXTENDS ReplayBuffer, TLC

\* Slots are printed as a sequence, those of a snapshot too.
InOrder(sl) == [i \in 1 .. Capacity |-> sl[i - 1]]

StateAsRecord(sl, fr, fs, fi, ti, ho, cl, ca, de, bo, le, sa) ==
    [slots |-> InOrder(sl), free |-> fr, fresh |-> fs,
     filling |-> fi, tickets |-> ti, holds |-> ho, closing |-> cl, cancelled |-> ca,
     dead |-> de, boundary |-> bo, left |-> le,
     saved |-> [i \in 1 .. Len(sa) |-> [sa[i] EXCEPT !.slots = InOrder(@)]]]

Canon ==
    StateAsRecord(slots, free, fresh, filling, tickets, holds, closing, cancelled, dead,
                  boundary, left, saved)
CanonNext ==
    StateAsRecord(slots', free', fresh', filling', tickets', holds', closing', cancelled',
                  dead', boundary', left', saved')

\* A string is printed on one line however long it is; a value is not.
PrintInit == Init => PrintT(ToString(<<"INIT", Canon>>))

\* The steps of the machine, each with the print of what it is. A step that two
\* actions explain is printed by each.
Says(label) == PrintT(ToString(<<"EDGE", Canon, {label}, CanonNext>>))
GraphNext ==
    \/ \E p \in Producers, n \in WriteSizes : Arrive(p, n) /\ Says(<<"Arrive", p, n>>)
    \/ \E p \in Producers : Admit(p) /\ Says(<<"Admit", p>>)
    \/ \E p \in Producers : Publish(p) /\ Says(<<"Publish", p>>)
    \/ \E p \in Producers : Abandon(p) /\ Says(<<"Abandon", p>>)
    \/ \E c \in Readers, r \in Requests :
           Ask(c, r[1], r[2], r[3]) /\ Says(<<"Ask", c, r[1], r[2], r[3]>>)
    \/ \E c \in Readers : Draw(c) /\ Says(<<"Draw", c>>)
    \/ \E q \in Processes : Refill(q) /\ Says(<<"Refill", q>>)
    \/ \E h \in Holds : Ready(h) /\ Says(<<"Ready", h>>)
    \/ \E h \in Holds : Fail(h) /\ Says(<<"Fail", h>>)
    \/ \E h \in Holds : Deliver(h) /\ Says(<<"Deliver", h>>)
    \/ \E h \in Holds : Return(h) /\ Says(<<"Return", h>>)
    \/ Recall /\ Says(<<"Recall">>)
    \/ \E x \in Actors : Expire(x) /\ Says(<<"Expire", x>>)
    \/ \E x \in Actors : Cancel(x) /\ Says(<<"Cancel", x>>)
    \/ \E x \in Actors : Refuse(x) /\ Says(<<"Refuse", x>>)
    \/ \E t \in Tokens : SetCancel(t) /\ Says(<<"SetCancel", t>>)
    \/ \E m \in Closings : Close(m) /\ Says(<<"Close", m>>)
    \/ Empty /\ Says(<<"Empty">>)
    \/ \E x \in Actors : CaptureAsk(x) /\ Says(<<"CaptureAsk", x>>)
    \/ \E x \in Actors : Capture(x) /\ Says(<<"Capture", x>>)
    \/ \E x \in Actors : CaptureDone(x) /\ Says(<<"CaptureDone", x>>)
    \/ \E x \in Actors : RestoreAsk(x) /\ Says(<<"RestoreAsk", x>>)
    \/ \E x \in Actors : Load(x) /\ Says(<<"Load", x>>)
    \/ \E x \in Actors : Restore(x) /\ Says(<<"Restore", x>>)
    \/ \E x \in Actors : Reject(x) /\ Says(<<"Reject", x>>)
    \/ \E x \in Actors : Kill(x) /\ Says(<<"Kill", x>>)
    \/ \E x \in Actors : Recover(x) /\ Says(<<"Recover", x>>)
GraphSpec == Init /\ [][GraphNext]_vars
================================================================================
