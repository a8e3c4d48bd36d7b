----------------------------- MODULE DeviceStreams -----------------------------
(* Records on a device whose ledger is on the host.                           *)
(*                                                                            *)
(* A host thread that copies on a device only puts the copy into the queue of *)
(* a stream.  It runs at any later time, after what is in front of it in its  *)
(* stream, and in no order with other streams.  So a slot is published before *)
(* there is a record in it, and free before its last record has been read.    *)
(* Events put this in order.  To record one notes how far the queue of a      *)
(* stream reaches now, and a stream that waits for it goes on when all that   *)
(* has run.  The storage keeps one for the last copy into each slot, and one  *)
(* for each stream that has read it since.                                    *)
(*                                                                            *)
(*   To write, between Admit and Publish, a stream waits for the last copy    *)
(*   and the reads of the slot, copies, and records: that is the last copy    *)
(*   now, whether it is published or abandoned.  The reads are forgotten,     *)
(*   since who waits for this copy waits for them.                            *)
(*                                                                            *)
(*   To read, between Draw and Ready, a stream waits for the last copy,       *)
(*   gathers, and records: that is its last read of the slot, whether the     *)
(*   batch is delivered or fails.                                             *)
(*                                                                            *)
(* Rows from the host go through a staging buffer, and the host waits for its *)
(* last copy before it writes there again.  A batch that one stream gathered  *)
(* may be used on the stream of a caller, which waits for the gather, and the *)
(* allocator does not give its memory away before the use has run.  A capture *)
(* waits on the host for what it reads, since it is the host that uses it.    *)
(*                                                                            *)
(* A wait is for the event as it was last recorded when the wait was queued,  *)
(* so for something that is queued already: no two streams wait for each      *)
(* other.  To wait for an event that was never recorded is no wait.           *)
(*                                                                            *)
(* Of the ledger there is what matters here: a record may be drawn by anybody *)
(* at any time, and its slot may be given to a writer whenever nobody on the  *)
(* host has it.  Whatever ReplayBuffer does with batches of one record is     *)
(* among this.  Broken variants are in MCDeviceStreams.                       *)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
    Capacity,       \* number of slots; a batch is one record
    Writers,        \* threads that write
    Staged,         \* those of them that write from the host, through a staging buffer
    Readers,        \* threads that draw, each with memory for one batch
    Savers,         \* threads that capture
    StreamOf,       \* for each thread its stream
    UseOn,          \* for each reader the stream of the caller that uses its batches
    Limit           \* how many operations a queue holds before the host has to wait

Slots == 1 .. Capacity
Threads == Writers \union Readers \union Savers
Streams == {StreamOf[x] : x \in Threads} \union {UseOn[r] : r \in Readers}
Halves == {1, 2}            \* a copy and a gather are two steps each, so that both can be torn

VARIABLES
    \* on the device
    memory,         \* which record is in each half of each slot
    area,           \* and in the memory that belongs to a thread: the staging buffer of a
                    \* writer, the batch of a reader, what has come to the host for a saver
    queue,          \* for each stream the operations that have not run
    \* on the host
    thread,         \* for each thread its step, with the slot and the record that it has
    live,           \* for each slot the record that can be drawn, or none
    written,        \* for each slot the event of the last copy
    reads,          \* for each slot the events of the reads since, at most one a stream
    last,           \* for each thread the event of the operation that uses its area
    kept            \* for each reader the event that the allocator waits for

vars == <<memory, area, queue, thread, live, written, reads, last, kept>>
device == <<memory, area, queue>>
events == <<written, reads, last, kept>>

Nothing == <<0, 0>>         \* no record; else a record is <<slot, number>>
Empty == <<Nothing, Nothing>>
Whole(record) == <<record, record>>

--------------------------------------------------------------------------------
(* Streams and events.  A recorded event is how many operations of a stream   *)
(* are still in front of it.  It is complete when none is.                    *)

Complete == [on |-> "any", behind |-> 0]
Unrecorded == [on |-> "none", behind |-> 0]
Over(event) == event.behind = 0

Recorded(stream, ops) == IF ops = <<>> THEN Complete ELSE [on |-> stream, behind |-> Len(ops)]
Incomplete(all) == all \ {Complete}

\* The first operation of the stream has run.
Nearer(event, stream) ==
    IF event.on # stream THEN event
    ELSE IF event.behind = 1 THEN Complete ELSE [event EXCEPT !.behind = @ - 1]
AllNearer(all, stream) == Incomplete({Nearer(event, stream) : event \in all})

\* An operation, with the events that its stream waits for before it.  `half` is the one
\* that it does next.
Operation(kind, x, slot, record, awaited) ==
    [kind |-> kind, by |-> x, slot |-> slot, record |-> record, half |-> 1,
     after |-> Incomplete(awaited)]

Room(stream) == Len(queue[stream]) < Limit
Puts(stream, operation) == queue' = [queue EXCEPT ![stream] = Append(@, operation)]

Runnable(stream) == queue[stream] # <<>> /\ \A event \in Head(queue[stream]).after : Over(event)
Pending == UNION {{queue[stream][i] : i \in DOMAIN queue[stream]} : stream \in Streams}
Running == {Head(queue[stream]) : stream \in {it \in Streams : Runnable(it)}}

--------------------------------------------------------------------------------
(* The ledger, as far as it matters here.                                     *)

Out == [step |-> "out", slot |-> 0, record |-> Nothing]
At(x, step) == thread[x].step = step
Slot(x) == thread[x].slot
Record(x) == thread[x].record
Goes(x, step) == thread' = [thread EXCEPT ![x].step = step]
Leaves(x) == thread' = [thread EXCEPT ![x] = Out]
Takes(x, step, slot) == live[slot] # Nothing
    /\ thread' = [thread EXCEPT ![x] = [step |-> step, slot |-> slot, record |-> live[slot]]]

\* A slot is somebody's while it is filled, until its gather is queued, and until a capture
\* has its record on the host.
Has(x, slot) == Slot(x) = slot /\ thread[x].step \in
    {"filling", "copied", "drawn", "gathered", "saving", "saved"}

\* The records of a slot are numbered by their age, from 1 for the youngest.  Those that
\* nobody asks for any more have no number.
Wanted(slot) == {record \in {operation.record : operation \in Pending}
    \union {Record(x) : x \in Threads} : record[1] = slot}
Older(record, slot) ==
    IF record[1] # slot THEN record
    ELSE IF record \notin Wanted(slot) THEN Nothing
    ELSE <<slot, 1 + Cardinality({other \in Wanted(slot) : other[2] <= record[2]})>>
AllOlder(halves, slot) == [half \in Halves |-> Older(halves[half], slot)]

--------------------------------------------------------------------------------
(* Writers.                                                                   *)

\* A writer is given a slot.  What was in it is gone, for the ledger.
Admit(w) ==
    /\ At(w, "out")
    /\ \E slot \in Slots :
          /\ \A x \in Threads : ~Has(x, slot)
          /\ thread' = [x \in Threads |->
                IF x = w THEN [step |-> "filling", slot |-> slot, record |-> <<slot, 1>>]
                ELSE [thread[x] EXCEPT !.record = Older(@, slot)]]
          /\ live' = [live EXCEPT ![slot] = Nothing]
          /\ memory' = [memory EXCEPT ![slot] = AllOlder(@, slot)]
          /\ area' = [x \in Threads |-> AllOlder(area[x], slot)]
          /\ queue' = [stream \in Streams |-> [i \in DOMAIN queue[stream] |->
                [queue[stream][i] EXCEPT !.record = Older(@, slot)]]]
    /\ UNCHANGED events

\* The host has waited for the staging buffer, and puts the rows of a host batch there.
StagingFree(w) == Over(last[w])
Stages(w) ==
    IF w \in Staged THEN StagingFree(w) /\ area' = [area EXCEPT ![w] = Whole(Record(w))]
    ELSE UNCHANGED area

\* What a copy into a slot waits for, and what is noted of it.  `ops` is the queue with it.
BeforeCopy(slot) == {written[slot]} \union reads[slot]
NotesCopy(w, event) ==
    /\ written' = [written EXCEPT ![Slot(w)] = event]
    /\ reads' = [reads EXCEPT ![Slot(w)] = {}]
CopyEvent(w, ops) == Recorded(StreamOf[w], ops)
NotesStaging(w, event) == last' = IF w \in Staged THEN [last EXCEPT ![w] = event] ELSE last

\* A writer queues: wait, copy, record.
Copy(w) ==
    LET stream == StreamOf[w]
    IN  /\ At(w, "filling") /\ Room(stream)
        /\ Stages(w)
        /\ Puts(stream, Operation("copy", w, Slot(w), Record(w), BeforeCopy(Slot(w))))
        /\ NotesCopy(w, CopyEvent(w, queue'[stream]))
        /\ NotesStaging(w, Recorded(stream, queue'[stream]))
        /\ Goes(w, "copied")
        /\ UNCHANGED <<memory, live, kept>>

\* The ledger has the record, though the copy may not have run.
Publish(w) ==
    /\ At(w, "copied")
    /\ live' = [live EXCEPT ![Slot(w)] = Record(w)]
    /\ Leaves(w)
    /\ UNCHANGED <<device, events>>

\* Something has failed, before the copy was queued or after.  The ledger has nothing.
Abandon(w) ==
    /\ At(w, "filling") \/ At(w, "copied")
    /\ Leaves(w)
    /\ UNCHANGED <<device, live, events>>

--------------------------------------------------------------------------------
(* Readers.                                                                   *)

Draw(r) ==
    /\ At(r, "out") /\ \E slot \in Slots : Takes(r, "drawn", slot)
    /\ UNCHANGED <<device, live, events>>

\* What a read of a slot waits for, and what is noted of it: the last of each stream.
BeforeRead(slot) == {written[slot]}
ReadEvent(x, stream, ops) == Recorded(stream, ops)
NotesRead(slot, event) == reads' = [reads EXCEPT
    ![slot] = Incomplete({other \in @ : other.on # event.on} \union {event})]

\* The allocator gives memory that the gathering stream has had.  Of another one that may
\* still use it, it knows by `kept`.
MayAllocate(r) == Over(kept[r])

\* A reader queues: wait, gather, record.
Gather(r) ==
    LET stream == StreamOf[r]
    IN  /\ At(r, "drawn") /\ Room(stream) /\ MayAllocate(r)
        /\ Puts(stream, Operation("gather", r, Slot(r), Record(r), BeforeRead(Slot(r))))
        /\ NotesRead(Slot(r), ReadEvent(r, stream, queue'[stream]))
        /\ last' = [last EXCEPT ![r] = Recorded(stream, queue'[stream])]
        /\ Goes(r, "gathered")
        /\ UNCHANGED <<memory, area, live, written, kept>>

\* The reader lets go of the slot, though the gather may not have run.
Ready(r) ==
    /\ At(r, "gathered")
    /\ Goes(r, "ready")
    /\ UNCHANGED <<device, live, events>>

\* Something has failed, before the gather was queued or after.  The memory is given back.
Fail(r) ==
    /\ At(r, "drawn") \/ At(r, "gathered")
    /\ Leaves(r)
    /\ last' = [last EXCEPT ![r] = Complete]
    /\ UNCHANGED <<device, live, written, reads, kept>>

\* The batch is handed to a caller, who queues its use and drops it.  The allocator was told
\* of the stream of the caller, and records an event there when it gets the memory back.
BeforeUse(r) == {last[r]}
KeptFor(r, ops) == IF UseOn[r] = StreamOf[r] THEN Complete ELSE Recorded(UseOn[r], ops)
Use(r) ==
    LET stream == UseOn[r]
    IN  /\ At(r, "ready") /\ Room(stream)
        /\ Puts(stream, Operation("use", r, 0, Record(r), BeforeUse(r)))
        /\ kept' = [kept EXCEPT ![r] = KeptFor(r, queue'[stream])]
        /\ last' = [last EXCEPT ![r] = Complete]
        /\ Leaves(r)
        /\ UNCHANGED <<memory, area, live, written, reads>>

--------------------------------------------------------------------------------
(* Captures.                                                                  *)

\* A saver queues the way of one record to the host, as a read.  The record stays until it
\* is there.
Capture(k) ==
    LET stream == StreamOf[k]
    IN  \E slot \in Slots :
          /\ At(k, "out") /\ Room(stream) /\ Takes(k, "saving", slot)
          /\ Puts(stream, Operation("save", k, slot, live[slot], BeforeRead(slot)))
          /\ NotesRead(slot, ReadEvent(k, stream, queue'[stream]))
          /\ last' = [last EXCEPT ![k] = Recorded(stream, queue'[stream])]
          /\ UNCHANGED <<memory, area, live, written, kept>>

\* The host has waited for the event, and uses what has come.
HostHasWaited(k) == Over(last[k])
Synchronize(k) ==
    /\ At(k, "saving") /\ HostHasWaited(k)
    /\ Goes(k, "saved")
    /\ UNCHANGED <<device, live, events>>

CaptureDone(k) ==
    /\ At(k, "saved")
    /\ Leaves(k)
    /\ area' = [area EXCEPT ![k] = Empty]
    /\ UNCHANGED <<memory, queue, live, events>>

\* The saver is interrupted while it waits.  The slot is let go, the copy still queued.
GiveUp(k) ==
    /\ At(k, "saving")
    /\ Leaves(k)
    /\ last' = [last EXCEPT ![k] = Complete]
    /\ UNCHANGED <<device, live, written, reads, kept>>

--------------------------------------------------------------------------------
(* The device.                                                                *)

\* What an operation does in one step.  A use takes the rows, and what is in a staging
\* buffer or a batch afterwards does not matter to anybody.
Does(operation) ==
    LET x == operation.by
        slot == operation.slot
        half == operation.half
    IN  CASE operation.kind = "copy" /\ x \in Staged ->
              /\ memory' = [memory EXCEPT ![slot][half] = area[x][half]]
              /\ area' = IF half = 2 THEN [area EXCEPT ![x] = Empty] ELSE area
          [] operation.kind = "copy" /\ x \notin Staged ->
              /\ memory' = [memory EXCEPT ![slot][half] = operation.record]
              /\ UNCHANGED area
          [] operation.kind \in {"gather", "save"} ->
              /\ area' = [area EXCEPT ![x][half] = memory[slot][half]]
              /\ UNCHANGED memory
          [] operation.kind = "use" ->
              /\ area' = [area EXCEPT ![x] = Empty]
              /\ UNCHANGED memory

Ends(operation) == operation.half = 2 \/ operation.kind = "use"

\* All who know an event of the stream see that it is nearer.
Passes(stream, queues) ==
    LET Steps(all) == [of \in DOMAIN all |-> Nearer(all[of], stream)]
    IN  /\ queue' = [other \in Streams |-> [i \in DOMAIN queues[other] |->
              [queues[other][i] EXCEPT !.after = AllNearer(@, stream)]]]
        /\ written' = Steps(written)
        /\ reads' = [slot \in Slots |-> AllNearer(reads[slot], stream)]
        /\ last' = Steps(last) /\ kept' = Steps(kept)

\* A stream goes on by one step of its first operation.
Run(stream) ==
    /\ Runnable(stream)
    /\ LET operation == Head(queue[stream])
       IN  /\ Does(operation)
           /\ IF Ends(operation)
              THEN Passes(stream, [queue EXCEPT ![stream] = Tail(@)])
              ELSE /\ queue' = [queue EXCEPT ![stream][1].half = 2]
                   /\ UNCHANGED events
    /\ UNCHANGED <<thread, live>>

--------------------------------------------------------------------------------
(* The machine.                                                               *)

Init ==
    /\ memory = [slot \in Slots |-> Empty] /\ area = [x \in Threads |-> Empty]
    /\ queue = [stream \in Streams |-> <<>>]
    /\ thread = [x \in Threads |-> Out] /\ live = [slot \in Slots |-> Nothing]
    /\ written = [slot \in Slots |-> Complete] /\ reads = [slot \in Slots |-> {}]
    /\ last = [x \in Threads |-> Complete] /\ kept = [r \in Readers |-> Complete]

WriterGoes(w) == Copy(w) \/ Publish(w)
ReaderGoes(r) == Gather(r) \/ Ready(r) \/ Use(r)
SaverGoes(k) == Synchronize(k) \/ CaptureDone(k)
Next ==
    \/ \E w \in Writers : Admit(w) \/ WriterGoes(w) \/ Abandon(w)
    \/ \E r \in Readers : Draw(r) \/ ReaderGoes(r) \/ Fail(r)
    \/ \E k \in Savers : Capture(k) \/ SaverGoes(k) \/ GiveUp(k)
    \/ \E stream \in Streams : Run(stream)

Spec == Init /\ [][Next]_vars

\* A stream goes on when it can, a call too, and a writer is not passed over for ever.
FairSpec ==
    /\ Spec
    /\ \A stream \in Streams : WF_vars(Run(stream))
    /\ \A w \in Writers : WF_vars(WriterGoes(w)) /\ SF_vars(Admit(w))
    /\ \A r \in Readers : WF_vars(ReaderGoes(r))
    /\ \A k \in Savers : WF_vars(SaverGoes(k))

--------------------------------------------------------------------------------
(* In every state.                                                            *)

TypeOK ==
    /\ \A stream \in Streams : Len(queue[stream]) <= Limit
    /\ \A operation \in Pending : operation.half \in Halves /\ Complete \notin operation.after
    /\ \A slot \in Slots : live[slot] \in {Nothing, <<slot, 1>>} /\ Complete \notin reads[slot]
    /\ \A w \in Writers : At(w, "filling") \/ At(w, "copied") =>
          live[Slot(w)] = Nothing /\ \A x \in Threads \ {w} : ~Has(x, Slot(w))

Reading(operation, half) ==
    operation.kind \in {"gather", "save"} /\ operation.half <= half

\* What a read still has to read is the record that was drawn, whole.
NoTornRead == \A operation \in Running : \A half \in Halves :
    Reading(operation, half) => memory[operation.slot][half] = operation.record

\* What a copy overwrites is not to be read any more, by anything that is queued.
NoOverwriteUnderReader == \A copy \in {it \in Running : it.kind = "copy"} :
    \A operation \in Pending :
        Reading(operation, copy.half) => operation.record # memory[copy.slot][copy.half]

\* Two copies do not run into one slot together, be the first abandoned or not.
OneCopyAtATime == \A slot \in Slots :
    Cardinality({copy \in Running : copy.kind = "copy" /\ copy.slot = slot}) <= 1

\* Whatever a stream waits for has been recorded.
NoWaitUnrecorded == \A operation \in Pending : Unrecorded \notin operation.after

\* What is copied from a staging buffer is what was put there for it.
StagingKept == \A copy \in {it \in Running : it.kind = "copy"} :
    copy.by \in Staged => area[copy.by] = Whole(copy.record)

\* A batch is whole when it is used.
BatchWhole == \A use \in {it \in Running : it.kind = "use"} : area[use.by] = Whole(use.record)

\* And so is what a capture has on the host.
CaptureWhole == \A k \in Savers : At(k, "saved") => area[k] = Whole(Record(k))

--------------------------------------------------------------------------------
(* In the end (FairSpec).                                                     *)

\* Whatever is queued runs: a stream does not stand still before its queue is empty.
OperationsRun == \A stream \in Streams :
    []<>(queue[stream] = <<>>) \/ []<><<Run(stream)>>_vars

\* Nobody waits on the host for ever: not for a staging buffer, memory or a capture.
CallsEnd == \A x \in Threads : ~At(x, "out") ~> At(x, "out")

\* A writer is admitted again and again.  It needs slots that are not all read for ever, by
\* one after the other: as many as there are readers and savers will do.
AdmittedAgain == \A w \in Writers : []<>At(w, "filling")
================================================================================
