--------------------------- MODULE MCDirectoryCommit ---------------------------
(* Two files and few dumps: what must at least be possible, and the faults    *)
(* that the properties stand against.                                         *)
EXTENDS DirectoryCommit, TLC

TwoFiles == <<"a", "b">>
OneFile == <<"a">>

--------------------------------------------------------------------------------
(* At least possible, each seen in a step.                                    *)

Killed(step) == \E w \in Writers : At(w, step) /\ Kill(w)
Reading(step) == \E r \in Readers : reader[r].step # step /\ reader'[r].step = step
Finds(dump) == \E r \in Readers :
    reader[r].step = "read" /\ reader'[r].step = "found" /\ reader[r].dump = dump

KilledBeforeRename == Killed("rename") /\ returned > 0
KilledAfterRename == Killed("sync rename") /\ returned > 0
KilledWhileSweeping == \E w \in Writers : At(w, "sweep") /\ Unnamed(w) # {} /\ Kill(w)
PowerKeepsRename == LosePower /\ Manifest \in Open(entry) /\ entry[Manifest].now # Nothing
    /\ entry'[Manifest].now = entry[Manifest].now
PowerUndoesRename == LosePower /\ returned > 0 /\ entry'[Manifest].now # entry[Manifest].now
PowerBringsBack == LosePower /\ \E n \in Names : ~There(n) /\ entry'[n].now # Nothing
PowerLeavesGarbage == LosePower /\ \E n \in Names :
    entry'[n].now # Nothing /\ data'[entry'[n].now].now = 0
LeftoversSwept == \E w \in Writers : At(w, "sweep old") /\ Sweep(w)
OneWaits == \E w \in Writers : At(w, "lock") /\ lock \notin {w, Nobody} /\ ~Kill(w)
    /\ writer'[w] = writer[w]
FailedIsGone == \E w \in Writers : GiveUp(w) /\ returned > 0
OldFoundDuringDump == Finds(1) /\ \E w \in Writers : ~At(w, "idle") /\ writer[w].dump > 1
ReplacedWhileRead == \E r \in Readers :
    LookAgain(r) /\ reader'[r].step = "read"
DamageSeen == Reading("damaged")
NoneYet == Reading("none")

WitnessNames == <<
    "KilledBeforeRename", "KilledAfterRename", "KilledWhileSweeping", "PowerKeepsRename",
    "PowerUndoesRename", "PowerBringsBack", "PowerLeavesGarbage", "LeftoversSwept",
    "OneWaits", "FailedIsGone", "OldFoundDuringDump", "ReplacedWhileRead", "DamageSeen",
    "NoneYet">>

Seen(name) ==
    CASE name = "KilledBeforeRename" -> KilledBeforeRename
      [] name = "KilledAfterRename" -> KilledAfterRename
      [] name = "KilledWhileSweeping" -> KilledWhileSweeping
      [] name = "PowerKeepsRename" -> PowerKeepsRename
      [] name = "PowerUndoesRename" -> PowerUndoesRename
      [] name = "PowerBringsBack" -> PowerBringsBack
      [] name = "PowerLeavesGarbage" -> PowerLeavesGarbage
      [] name = "LeftoversSwept" -> LeftoversSwept
      [] name = "OneWaits" -> OneWaits
      [] name = "FailedIsGone" -> FailedIsGone
      [] name = "OldFoundDuringDump" -> OldFoundDuringDump
      [] name = "ReplacedWhileRead" -> ReplacedWhileRead
      [] name = "DamageSeen" -> DamageSeen
      [] name = "NoneYet" -> NoneYet

ASSUME \A i \in 1 .. Len(WitnessNames) : TLCSet(i, FALSE)

PrintWitness == \A i \in 1 .. Len(WitnessNames) :
    TLCGet(i) \/ (Seen(WitnessNames[i]) =>
        TLCSet(i, TRUE) /\ PrintT(<<"WITNESS", WitnessNames[i]>>))

--------------------------------------------------------------------------------
(* Faults, one definition each, put in the place of the honest ones by        *)
(* MCDirectoryCommit_bug_<fault>.cfg.                                         *)

\* data_not_synced: files are renamed, the manifest among them, before they are synced.
FileNotSynced(name) == data[name]

\* entries_not_synced: the directory is synced after the rename only.  The rename may reach
\* the disk before the names of the files do.
NotSynced == entry

\* rename_not_synced: the directory is synced before the rename only, so that a dump returns
\* and is lost.  With NotSynced in the place of RenameSynced.

\* swept_before_synced: the old checkpoint is removed after the rename, but before that is
\* synced.
SyncsLast(step) ==
    CASE step = "make place" -> "lock"
      [] step = "lock" -> "sync place"
      [] step = "sync place" -> "sync old"
      [] step = "sync old" -> "sweep old"
      [] step = "sweep old" -> "create"
      [] step = "sync entries" -> "rename"
      [] step = "rename" -> "sweep"
      [] step = "sweep" -> "sync rename"
      [] step = "sync rename" -> "return"

\* old_not_synced: a dump sweeps what it finds, by a manifest that is not on the disk.  With
\* NotSynced in the place of OldSynced.

\* removed_before_rename: the old goes before the new has come.
UnnamedByItself(w) ==
    {name \in Names \ ({Manifest} \union Own(writer[w].dump)) : There(name)}

\* manifest_in_place: the manifest is emptied and written where it is, instead of a rename.
WriteInPlace(w) ==
    /\ At(w, "rename")
    /\ LET dump == writer[w].dump
           here == There(Manifest)
           file == IF here THEN entry[Manifest].now ELSE Manifest
           last == here /\ Content(Manifest) = 0
       IN  /\ entry' = IF here THEN entry ELSE [entry EXCEPT ![Manifest] = Changed(@, file)]
           /\ data' = [data EXCEPT ![file] = Changed(@, IF last THEN dump ELSE 0)]
           /\ order' = IF last THEN Append(order, dump) ELSE order
           /\ IF last THEN Goes(w, "sync rename") ELSE UNCHANGED writer
    /\ UNCHANGED <<place, rotted, lock, reader, made, returned>>

\* digest_unchecked: what is in a file is taken for what was meant.
AcceptsAll(content, dump) == TRUE

\* no_lock: a dump takes the files of another one, which still writes, for those of a killed
\* one, and removes them.
Always == TRUE

\* place_not_synced: the directory itself is not on the disk.  With PlaceAsItIs in the place
\* of PlaceSynced.
PlaceAsItIs == place

\* leftovers_kept: only what the last checkpoint had is swept.
UnnamedOfLast(w) == {name \in Names :
    There(name) /\ At(w, "sweep") /\ Len(order) > 1 /\ name \in Named(order[Len(order) - 1])}

\* found_discarded: a dump removes its files though it has renamed the manifest that names them.
UndoneToTheEnd == {"create", "write", "sync", "sync entries"} \union {"rename", "sync rename"}

\* one_look: a reader takes a file that is not there for damage.
LooksOnce(r) ==
    /\ reader[r].step = "again"
    /\ reader' = [reader EXCEPT ![r].step = "damaged"]
    /\ UNCHANGED <<files, rotted, lock, writer, made, ghosts>>
================================================================================
