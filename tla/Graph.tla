--------------------------------- MODULE Graph ---------------------------------
(* Prints the labelled state graph, one step a line, so that it can be        *)
(* compared with the graph of the Python model. TLC's own dump has neither    *)
(* the parameters of actions nor a form that is easy to read back. PrintInit  *)
(* is an invariant, PrintEdge an action constraint; both are TRUE.            *)
EXTENDS ReplayBuffer, TLC

\* Slots are printed as a sequence, those of a snapshot too.
InOrder(sl) == [i \in 1 .. Capacity |-> sl[i - 1]]

StateAsRecord(sl, fr, fs, fi, ti, ho, cl, ca, de, bo, sa) ==
    [slots |-> InOrder(sl), free |-> fr, fresh |-> fs,
     filling |-> fi, tickets |-> ti, holds |-> ho, closing |-> cl, cancelled |-> ca,
     dead |-> de, boundary |-> bo,
     saved |-> [i \in 1 .. Len(sa) |-> [sa[i] EXCEPT !.slots = InOrder(@)]]]

Canon ==
    StateAsRecord(slots, free, fresh, filling, tickets, holds, closing, cancelled, dead,
                  boundary, saved)
CanonNext ==
    StateAsRecord(slots', free', fresh', filling', tickets', holds', closing', cancelled',
                  dead', boundary', saved')

\* Every action with its parameters that explains the step to the primed state.
Labels ==
    {<<"Arrive", p, n>> : <<p, n>> \in {a \in Producers \X WriteSizes : Arrive(a[1], a[2])}}
    \union {<<"Admit", p>> : p \in {p \in Producers : Admit(p)}}
    \union {<<"Publish", p>> : p \in {p \in Producers : Publish(p)}}
    \union {<<"Abandon", p>> : p \in {p \in Producers : Abandon(p)}}
    \union {<<"Ask", a[1], a[2][1], a[2][2], a[2][3]>> :
               a \in {a \in Readers \X Requests : Ask(a[1], a[2][1], a[2][2], a[2][3])}}
    \union {<<"Draw", c>> : c \in {c \in Readers : Draw(c)}}
    \union {<<"Refill", q>> : q \in {q \in Processes : Refill(q)}}
    \union {<<"Ready", h>> : h \in {h \in Holds : Ready(h)}}
    \union {<<"Fail", h>> : h \in {h \in Holds : Fail(h)}}
    \union {<<"Deliver", h>> : h \in {h \in Holds : Deliver(h)}}
    \union {<<"Return", h>> : h \in {h \in Holds : Return(h)}}
    \union {<<"Recall">> : e \in {e \in {0} : Recall}}
    \union {<<"Expire", x>> : x \in {x \in Actors : Expire(x)}}
    \union {<<"Cancel", x>> : x \in {x \in Actors : Cancel(x)}}
    \union {<<"Refuse", x>> : x \in {x \in Actors : Refuse(x)}}
    \union {<<"SetCancel", t>> : t \in {t \in Tokens : SetCancel(t)}}
    \union {<<"Close", m>> : m \in {m \in Closings : Close(m)}}
    \union {<<"Empty">> : e \in {e \in {0} : Empty}}
    \union {<<"CaptureAsk", x>> : x \in {x \in Actors : CaptureAsk(x)}}
    \union {<<"Capture", x>> : x \in {x \in Actors : Capture(x)}}
    \union {<<"CaptureDone", x>> : x \in {x \in Actors : CaptureDone(x)}}
    \union {<<"RestoreAsk", x>> : x \in {x \in Actors : RestoreAsk(x)}}
    \union {<<"Load", x>> : x \in {x \in Actors : Load(x)}}
    \union {<<"Restore", x>> : x \in {x \in Actors : Restore(x)}}
    \union {<<"Reject", x>> : x \in {x \in Actors : Reject(x)}}
    \union {<<"Kill", x>> : x \in {x \in Actors : Kill(x)}}
    \union {<<"Recover", x>> : x \in {x \in Actors : Recover(x)}}

\* A string is printed on one line however long it is; a value is not.
PrintInit == Init => PrintT(ToString(<<"INIT", Canon>>))
PrintEdge == PrintT(ToString(<<"EDGE", Canon, Labels, CanonNext>>))
================================================================================
