---------------------------- MODULE MCDeviceStreams ----------------------------
(* Few slots and streams: what must at least be possible, and the faults that *)
(* the properties stand against.                                              *)
EXTENDS DeviceStreams, TLC

\* Each thread has a stream of its own.  The batches of "r2" are gathered ahead, for a
\* caller with another stream; in AllOnWriter that is the stream of "w1", which trains and
\* writes.
OwnStreams == [x \in Threads |-> x]
SomeHanded == [r \in Readers |-> IF r = "r2" THEN "caller" ELSE r]
AllOnWriter == [r \in Readers |-> "w1"]

--------------------------------------------------------------------------------
(* At least possible, each seen in a step.                                    *)

Queues(kind, record) == \E it \in Pending : it.kind = kind /\ it.record = record
Waits(kind) == {Head(queue[stream]) : stream \in {it \in Streams :
    queue[it] # <<>> /\ Head(queue[it]).kind = kind /\ ~Runnable(it)}}
WaitsFor(kind, others) == \E it \in Waits(kind) : \E event \in it.after :
    event.on \in {StreamOf[x] : x \in others} \ {StreamOf[it.by]}

PublishedBeforeCopied == \E w \in Writers : Publish(w) /\ Queues("copy", Record(w))
AbandonedBeforeCopied == \E w \in Writers :
    At(w, "copied") /\ Queues("copy", Record(w)) /\ Abandon(w)
DrawnBeforeCopied == \E r \in Readers : Draw(r) /\ Queues("copy", thread'[r].record)
GatherWaits == Waits("gather") # {}
FailedBeforeGathered == \E r \in Readers :
    At(r, "gathered") /\ Queues("gather", Record(r)) /\ Fail(r)
FreedBeforeGathered == \E w \in Writers : Admit(w) /\ Queues("gather", live[thread'[w].slot])
CopyWaitsForCopy == WaitsFor("copy", Writers)
CopyWaitsForRead == WaitsFor("copy", Readers)
CopyWaitsForTwoReads == \E it \in Waits("copy") :
    Cardinality({event \in it.after : event.on \in {StreamOf[r] : r \in Readers}}) > 1
CopiesInOneQueue == \E stream \in Streams :
    Cardinality({i \in DOMAIN queue[stream] : queue[stream][i].kind = "copy"}) > 1
StagingBusy == \E w \in Staged : At(w, "filling") /\ ~StagingFree(w)
UseWaits == Waits("use") # {}
MemoryKept == \E r \in Readers : At(r, "drawn") /\ ~MayAllocate(r)
HostWaitsForCapture == \E k \in Savers : At(k, "saving") /\ ~HostHasWaited(k)
GivenUpBeforeSaved == \E k \in Savers : Queues("save", Record(k)) /\ GiveUp(k)
CopyWaitsForSave == WaitsFor("copy", Savers)

WitnessNames == <<
    "PublishedBeforeCopied", "AbandonedBeforeCopied", "DrawnBeforeCopied", "GatherWaits",
    "FailedBeforeGathered", "FreedBeforeGathered", "CopyWaitsForCopy", "CopyWaitsForRead",
    "CopyWaitsForTwoReads", "CopiesInOneQueue", "StagingBusy", "UseWaits", "MemoryKept",
    "HostWaitsForCapture", "GivenUpBeforeSaved", "CopyWaitsForSave">>

Seen(name) ==
    CASE name = "PublishedBeforeCopied" -> PublishedBeforeCopied
      [] name = "AbandonedBeforeCopied" -> AbandonedBeforeCopied
      [] name = "DrawnBeforeCopied" -> DrawnBeforeCopied
      [] name = "GatherWaits" -> GatherWaits
      [] name = "FailedBeforeGathered" -> FailedBeforeGathered
      [] name = "FreedBeforeGathered" -> FreedBeforeGathered
      [] name = "CopyWaitsForCopy" -> CopyWaitsForCopy
      [] name = "CopyWaitsForRead" -> CopyWaitsForRead
      [] name = "CopyWaitsForTwoReads" -> CopyWaitsForTwoReads
      [] name = "CopiesInOneQueue" -> CopiesInOneQueue
      [] name = "StagingBusy" -> StagingBusy
      [] name = "UseWaits" -> UseWaits
      [] name = "MemoryKept" -> MemoryKept
      [] name = "HostWaitsForCapture" -> HostWaitsForCapture
      [] name = "GivenUpBeforeSaved" -> GivenUpBeforeSaved
      [] name = "CopyWaitsForSave" -> CopyWaitsForSave

ASSUME \A i \in 1 .. Len(WitnessNames) : TLCSet(i, FALSE)

PrintWitness == \A i \in 1 .. Len(WitnessNames) :
    TLCGet(i) \/ (Seen(WitnessNames[i]) =>
        TLCSet(i, TRUE) /\ PrintT(<<"WITNESS", WitnessNames[i]>>))

--------------------------------------------------------------------------------
(* Faults, one definition each (some need two), put in the place of the       *)
(* honest ones by MCDeviceStreams_bug_<fault>.cfg.                            *)

\* copy_not_noted: a record is published without the event of its copy.
NotesNoCopy(w, event) == UNCHANGED <<written, reads>>

\* never_recorded: the event is made and noted, and nobody records it.
NeverRecorded(w, ops) == Unrecorded

\* recorded_too_early: the event is recorded before the copy is queued.
RecordedBefore(w, ops) == Recorded(StreamOf[w], SubSeq(ops, 1, Len(ops) - 1))

\* event_shared: there is one event for the copies of two batches.  Recording it for one slot
\* moves it for another that was noted before.
NotesSharedEvent(w, event) ==
    /\ written' = [slot \in Slots |->
          IF slot = Slot(w) \/ ~Over(written[slot]) THEN event ELSE written[slot]]
    /\ reads' = [reads EXCEPT ![Slot(w)] = {}]

\* abandoned_forgotten: a copy is noted when it is published, so that of an abandoned one
\* nobody knows.  With NotesNoCopy in the place of NotesCopy.
PublishNotes(w) ==
    /\ At(w, "copied")
    /\ written' = [written EXCEPT ![Slot(w)] = Recorded(StreamOf[w], queue[StreamOf[w]])]
    /\ reads' = [reads EXCEPT ![Slot(w)] = {}]
    /\ live' = [live EXCEPT ![Slot(w)] = Record(w)]
    /\ Leaves(w)
    /\ UNCHANGED <<device, last, kept>>

\* copy_not_awaited: a reader does not wait for the copy.
AwaitsNothing(x) == {}

\* reads_not_awaited: a slot is used again without the events of those who read it.
AwaitsCopyOnly(slot) == {written[slot]}

\* one_read_noted: of a slot the last read is noted, on whatever stream it was.
NotesLastRead(slot, event) == reads' = [reads EXCEPT ![slot] = Incomplete({event})]

\* read_on_current: the event is recorded on the stream of the caller, which did not gather.
RecordedOnCurrent(x, stream, ops) == Recorded(UseOn[x], queue[UseOn[x]])

\* failed_forgotten: a read is noted when the batch is ready, so that of a failed one nobody
\* knows.  With NotesNoRead in the place of NotesRead.
NotesNoRead(slot, event) == UNCHANGED reads
ReadyNotes(r) ==
    /\ At(r, "gathered")
    /\ reads' = [reads EXCEPT ![Slot(r)] =
          Incomplete({other \in @ : other.on # StreamOf[r]} \union {last[r]})]
    /\ Goes(r, "ready")
    /\ UNCHANGED <<device, live, written, last, kept>>

\* given_up_forgotten: what a capture reads is not noted, since it waits for it, unless it is
\* interrupted.
NotesReadersOnly(x, stream, ops) == IF x \in Savers THEN Complete ELSE Recorded(stream, ops)

\* staging_reused: the host does not wait for the last copy out of a staging buffer.
Always(x) == TRUE

\* staging_lost: a staging buffer is in use until its batch is published, and so for ever
\* when that is abandoned.
InUse == [on |-> "publish", behind |-> 1]
StagingInUse(w, event) == last' = [last EXCEPT ![w] = InUse]
PublishFreesStaging(w) ==
    /\ At(w, "copied")
    /\ last' = [last EXCEPT ![w] = Recorded(StreamOf[w], queue[StreamOf[w]])]
    /\ live' = [live EXCEPT ![Slot(w)] = Record(w)]
    /\ Leaves(w)
    /\ UNCHANGED <<device, written, reads, kept>>

\* gather_not_awaited: a batch is handed over without the event of its gather.  With
\* AwaitsNothing in the place of BeforeUse.

\* next_awaited: the stream of a caller waits for an event as it will be recorded next, by a
\* gather that may never come.
AwaitsNext(r) == {[on |-> StreamOf[r], behind |-> Len(queue[StreamOf[r]]) + 1]}

\* memory_not_kept: the allocator is not told of the stream of the caller.
KeptForNobody(r, ops) == Complete

\* capture_not_awaited: the host uses what a capture reads without waiting for it.  With
\* Always in the place of HostHasWaited.
================================================================================
