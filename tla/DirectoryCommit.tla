---------------------------- MODULE DirectoryCommit ----------------------------
(* Putting a new checkpoint in the place of an old one, though the process    *)
(* may be killed and the machine may lose power between any two operations.   *)
(*                                                                            *)
(* A checkpoint is a directory with some files and a manifest that names them *)
(* and their digests.  What an operation has done is there for all processes  *)
(* at once, and stays when its process is killed.  The disk is another        *)
(* matter: what is in a file is safe once the file is synced, and which names *)
(* a directory has once the directory is.  Until then a loss of power keeps   *)
(* or loses each of these changes by itself: a later one may be kept and an   *)
(* earlier one lost.  Only a single name never becomes half of something.  So *)
(* a dump                                                                     *)
(*                                                                            *)
(*   1. makes the directory if there is none,                                 *)
(*   2. takes the lock, which its death gives back,                           *)
(*   3. syncs the directory and the one above, and sweeps: it removes what    *)
(*      the manifest does not name,                                           *)
(*   4. writes its files under names of its own and syncs each,               *)
(*   5. and so its manifest, which also has a name of its own for now,        *)
(*   6. syncs the directory,                                                  *)
(*   7. renames its manifest over the old one: the only step that counts,     *)
(*   8. syncs the directory again,                                            *)
(*   9. and sweeps again, which now removes the old checkpoint.               *)
(*                                                                            *)
(* If something fails in 4 to 6 it removes its own files.  A reader takes the *)
(* manifest and then the files that it names.  If one is not there it looks   *)
(* at the manifest again, which names others by then.                         *)
(*                                                                            *)
(* After a death nothing is repaired: the next dump is the repair.  Broken    *)
(* variants are in MCDirectoryCommit.                                         *)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
    Writers,        \* processes that dump
    Readers,        \* processes that read
    Files,          \* the files beside the manifest, in the order of writing
    Dumps,          \* how many dumps there are, killed ones counted
    Failures,       \* whether operations may fail, as on a full disk
    Rots            \* whether the disk may damage a file, once

Parts == Append(Files, "manifest")
Ids == 1 .. Dumps

\* A name, and also a file: the one that was made under this name, wherever it is now.
Own(dump) == {<<dump, Parts[i]>> : i \in 1 .. Len(Parts)}
Named(dump) == {<<dump, Files[i]>> : i \in 1 .. Len(Files)}
Manifest == <<0, "manifest">>
Names == UNION {Own(dump) : dump \in Ids} \union {Manifest}
Nothing == <<0, "nothing">>
Nobody == "nobody"

VARIABLES
    place,          \* whether the directory is there
    entry,          \* which file each name stands for
    data,           \* of which dump the content of each file is; 0 is garbage
    rotted,         \* whether the disk has damaged a file
    lock,           \* who has it
    writer,         \* for each writer its step, its dump and how many parts it has done
    reader,         \* for each reader its step, the dump it reads, how many files it has read,
                    \* and for the properties: whether they were whole, and `least`
    made,           \* how many dumps have begun
    order,          \* only for the properties: the dumps in the order of their renames
    returned        \* only for the properties: how many of these are known to be safe

\* `place`, and each `entry` and `data`, is what it is now and what it may be after a loss of
\* power, [now, may].
vars == <<place, entry, data, rotted, lock, writer, reader, made, order, returned>>
files == <<place, entry, data>>
ghosts == <<order, returned>>

Certain(value) == [now |-> value, may |-> {value}]
Changed(cell, value) == [now |-> value, may |-> cell.may \union {value}]
Synced(cell) == Certain(cell.now)

There(name) == entry[name].now # Nothing
Content(name) == data[entry[name].now].now

--------------------------------------------------------------------------------
(* Writers.  The step of a writer is the operation that it does next.         *)

Idle == [step |-> "idle", dump |-> 0, done |-> 0]
Rest == [step |-> "idle", dump |-> 0, done |-> 0, whole |-> TRUE, least |-> 0]
At(w, step) == writer[w].step = step
Goes(w, step) == writer' = [writer EXCEPT ![w].step = step]
Part(w) == <<writer[w].dump, Parts[writer[w].done + 1]>>
Position(dump) == CHOOSE i \in 1 .. Len(order) : order[i] = dump

\* What comes after a step that is done once.  The parts are written between "sweep old" and
\* "sync entries".
After(step) ==
    CASE step = "make place" -> "lock"
      [] step = "lock" -> "sync place"
      [] step = "sync place" -> "sync old"
      [] step = "sync old" -> "sweep old"
      [] step = "sweep old" -> "create"
      [] step = "sync entries" -> "rename"
      [] step = "rename" -> "sync rename"
      [] step = "sync rename" -> "sweep"
      [] step = "sweep" -> "return"

MakePlace(w) ==
    /\ At(w, "idle") /\ made < Dumps
    /\ made' = made + 1
    /\ place' = IF place.now THEN place ELSE Changed(place, TRUE)
    /\ writer' = [writer EXCEPT ![w] =
          [step |-> After("make place"), dump |-> made + 1, done |-> 0]]
    /\ UNCHANGED <<entry, data, rotted, lock, reader, ghosts>>

MayLock == lock = Nobody
Lock(w) ==
    /\ At(w, "lock") /\ MayLock
    /\ lock' = w
    /\ Goes(w, After("lock"))
    /\ UNCHANGED <<files, rotted, reader, made, ghosts>>

\* Though it was there already: who made it may not have lived to sync it.
PlaceSynced == Synced(place)
SyncPlace(w) ==
    /\ At(w, "sync place")
    /\ place' = PlaceSynced
    /\ Goes(w, After("sync place"))
    /\ UNCHANGED <<entry, data, rotted, lock, reader, made, ghosts>>

\* The manifest that is there may be that of a killed dump, and not be on the disk.  It has
\* to be before what it replaced is swept.
AllSynced == [name \in Names |-> Synced(entry[name])]
OldSynced == AllSynced
SyncOld(w) ==
    /\ At(w, "sync old")
    /\ entry' = OldSynced
    /\ Goes(w, After("sync old"))
    /\ UNCHANGED <<place, data, rotted, lock, reader, made, ghosts>>

\* The names that nobody needs; none if the manifest is garbage and does not tell.
Unnamed(w) ==
    LET kept == IF There(Manifest) THEN {Manifest} \union Named(Content(Manifest)) ELSE {}
    IN  IF There(Manifest) /\ Content(Manifest) = 0 THEN {}
        ELSE {name \in Names \ kept : There(name)}
Sweep(w) ==
    /\ At(w, "sweep old") \/ At(w, "sweep")
    /\ \E name \in Unnamed(w) : entry' = [entry EXCEPT ![name] = Changed(@, Nothing)]
    /\ UNCHANGED <<place, data, rotted, lock, writer, reader, made, ghosts>>
Swept(w) ==
    /\ At(w, "sweep old") \/ At(w, "sweep")
    /\ Unnamed(w) = {}
    /\ Goes(w, After(writer[w].step))
    /\ UNCHANGED <<files, rotted, lock, reader, made, ghosts>>

Create(w) ==
    /\ At(w, "create")
    /\ entry' = [entry EXCEPT ![Part(w)] = Changed(@, Part(w))]
    /\ Goes(w, "write")
    /\ UNCHANGED <<place, data, rotted, lock, reader, made, ghosts>>

\* Until it is written there is garbage in it.
Write(w) ==
    /\ At(w, "write")
    /\ data' = [data EXCEPT ![Part(w)] = Changed(@, writer[w].dump)]
    /\ Goes(w, "sync")
    /\ UNCHANGED <<place, entry, rotted, lock, reader, made, ghosts>>

FileSynced(name) == Synced(data[name])
Sync(w) ==
    /\ At(w, "sync")
    /\ data' = [data EXCEPT ![Part(w)] = FileSynced(Part(w))]
    /\ LET done == writer[w].done + 1
       IN  writer' = [writer EXCEPT ![w].done = done,
               ![w].step = IF done < Len(Parts) THEN "create" ELSE "sync entries"]
    /\ UNCHANGED <<place, entry, rotted, lock, reader, made, ghosts>>

EntriesSynced == AllSynced
SyncEntries(w) ==
    /\ At(w, "sync entries")
    /\ entry' = EntriesSynced
    /\ Goes(w, After("sync entries"))
    /\ UNCHANGED <<place, data, rotted, lock, reader, made, ghosts>>

\* One step for whoever looks.
Rename(w) ==
    /\ At(w, "rename")
    /\ LET from == <<writer[w].dump, "manifest">>
       IN  entry' = [entry EXCEPT ![from] = Changed(@, Nothing),
                                  ![Manifest] = Changed(@, entry[from].now)]
    /\ order' = Append(order, writer[w].dump)
    /\ Goes(w, After("rename"))
    /\ UNCHANGED <<place, data, rotted, lock, reader, made, returned>>

RenameSynced == AllSynced
SyncRename(w) ==
    /\ At(w, "sync rename")
    /\ entry' = RenameSynced
    /\ Goes(w, After("sync rename"))
    /\ UNCHANGED <<place, data, rotted, lock, reader, made, ghosts>>

Most(a, b) == IF a < b THEN b ELSE a
Return(w) ==
    /\ At(w, "return")
    /\ writer' = [writer EXCEPT ![w] = Idle]
    /\ lock' = IF lock = w THEN Nobody ELSE lock
    /\ returned' = Most(returned, Position(writer[w].dump))
    /\ UNCHANGED <<files, rotted, reader, made, order>>

\* Something fails.  From the rename on nothing is removed, since nobody can tell which
\* manifest is on the disk: a failure is like a kill then.
Undone == {"create", "write", "sync", "sync entries"}
Fail(w) ==
    /\ Failures /\ writer[w].step \in Undone
    /\ Goes(w, "discard")
    /\ UNCHANGED <<files, rotted, lock, reader, made, ghosts>>
Discard(w) ==
    /\ At(w, "discard")
    /\ \E name \in Own(writer[w].dump) :
          There(name) /\ entry' = [entry EXCEPT ![name] = Changed(@, Nothing)]
    /\ UNCHANGED <<place, data, rotted, lock, writer, reader, made, ghosts>>
GiveUp(w) ==
    /\ At(w, "discard") /\ \A name \in Own(writer[w].dump) : ~There(name)
    /\ writer' = [writer EXCEPT ![w] = Idle]
    /\ lock' = IF lock = w THEN Nobody ELSE lock
    /\ UNCHANGED <<files, rotted, reader, made, ghosts>>

--------------------------------------------------------------------------------
(* Readers.  A file that was found stays readable, removed or not, so finding *)
(* and reading it are one step.                                               *)

\* The manifest is read and names a dump, or is not there, or is garbage.
Looks(least) ==
    [Rest EXCEPT
        !.step = IF ~There(Manifest) THEN "none"
                 ELSE IF Content(Manifest) = 0 THEN "damaged" ELSE "read",
        !.dump = IF There(Manifest) THEN Content(Manifest) ELSE 0, !.least = least]

Look(r) ==
    /\ reader[r].step = "idle"
    /\ reader' = [reader EXCEPT ![r] = Looks(returned)]
    /\ UNCHANGED <<files, rotted, lock, writer, made, ghosts>>

\* The digest in the manifest tells whether a file is the one that was meant.
Accepts(content, dump) == content = dump

Read(r) ==
    /\ reader[r].step = "read"
    /\ LET me == reader[r]
           name == <<me.dump, Files[me.done + 1]>>
           last == me.done + 1 = Len(Files)
       IN  reader' = [reader EXCEPT ![r] =
               IF ~There(name) THEN [me EXCEPT !.step = "again"]
               ELSE IF ~Accepts(Content(name), me.dump) THEN [me EXCEPT !.step = "damaged"]
               ELSE [me EXCEPT !.step = IF last THEN "found" ELSE "read",
                     !.done = @ + 1, !.whole = @ /\ Content(name) = me.dump]]
    /\ UNCHANGED <<files, rotted, lock, writer, made, ghosts>>

\* A file was not there.  If the manifest is still the same there is something wrong.
LookAgain(r) ==
    /\ reader[r].step = "again"
    /\ LET seen == Looks(reader[r].least)
       IN  reader' = [reader EXCEPT ![r] =
               IF seen.step = "read" /\ seen.dump = reader[r].dump
               THEN [seen EXCEPT !.step = "damaged"] ELSE seen]
    /\ UNCHANGED <<files, rotted, lock, writer, made, ghosts>>

\* It has told its caller "found", "none" or "damaged".
Leave(r) ==
    /\ reader[r].step \in {"found", "none", "damaged"}
    /\ reader' = [reader EXCEPT ![r] = Rest]
    /\ UNCHANGED <<files, rotted, lock, writer, made, ghosts>>

--------------------------------------------------------------------------------
(* What may happen at any time.                                               *)

\* A writer is killed: what it did stays.  (A reader that is killed changes nothing.)
Kill(w) ==
    /\ ~At(w, "idle")
    /\ writer' = [writer EXCEPT ![w] = Idle]
    /\ lock' = IF lock = w THEN Nobody ELSE lock
    /\ UNCHANGED <<files, rotted, reader, made, ghosts>>

\* All that these cells may be: a value for each that is open.
RECURSIVE Choices(_, _)
Choices(cells, open) ==
    IF open = {} THEN {[name \in {} |-> 0]}
    ELSE LET name == CHOOSE it \in open : TRUE
         IN  {[it \in open |-> IF it = name THEN value ELSE choice[it]] :
                 choice \in Choices(cells, open \ {name}), value \in cells[name].may}
Open(cells) == {name \in Names : cells[name].may # {cells[name].now}}
Chosen(cells, choice, name) ==
    IF name \in DOMAIN choice THEN choice[name] ELSE cells[name].now

\* The machine loses power: everybody is dead, and on the disk is what was synced, with any
\* of what was not.  What has no name any more is forgotten.
LosePower ==
    /\ \E here \in place.may :
       \E found \in Choices(entry, IF here THEN Open(entry) ELSE {}) :
          LET names == [name \in Names |->
                IF here THEN Chosen(entry, found, name) ELSE Nothing]
              named == {names[name] : name \in Names} \ {Nothing}
          IN  \E contents \in Choices(data, Open(data) \intersect named) :
                /\ place' = Certain(here)
                /\ entry' = [name \in Names |-> Certain(names[name])]
                /\ data' = [file \in Names |->
                      Certain(IF file \in named THEN Chosen(data, contents, file) ELSE 0)]
    /\ writer' = [w \in Writers |-> Idle] /\ reader' = [r \in Readers |-> Rest]
    /\ lock' = Nobody
    /\ UNCHANGED <<rotted, made, ghosts>>

\* The disk damages a file that was good.
Rot ==
    /\ Rots /\ ~rotted /\ rotted' = TRUE
    /\ \E file \in Names :
          data[file].may = {data[file].now} /\ data[file].now # 0
          /\ data' = [data EXCEPT ![file] = Certain(0)]
    /\ UNCHANGED <<place, entry, lock, writer, reader, made, ghosts>>

--------------------------------------------------------------------------------
(* The machine.                                                               *)

Init ==
    /\ place = Certain(FALSE)
    /\ entry = [name \in Names |-> Certain(Nothing)]
    /\ data = [file \in Names |-> Certain(0)]
    /\ rotted = FALSE /\ lock = Nobody
    /\ writer = [w \in Writers |-> Idle] /\ reader = [r \in Readers |-> Rest]
    /\ made = 0 /\ order = <<>> /\ returned = 0

WriterGoes(w) ==
    \/ Lock(w) \/ SyncOld(w) \/ Sweep(w) \/ Swept(w)
    \/ Create(w) \/ Write(w) \/ Sync(w) \/ SyncEntries(w) \/ SyncPlace(w)
    \/ Rename(w) \/ SyncRename(w) \/ Return(w) \/ Discard(w) \/ GiveUp(w)
ReaderGoes(r) == Read(r) \/ LookAgain(r) \/ Leave(r)
Next ==
    \/ \E w \in Writers : MakePlace(w) \/ WriterGoes(w) \/ Fail(w) \/ Kill(w)
    \/ \E r \in Readers : Look(r) \/ ReaderGoes(r)
    \/ LosePower \/ Rot

Spec == Init /\ [][Next]_vars

\* Who lives goes on.
FairSpec ==
    /\ Spec
    /\ \A w \in Writers : WF_vars(WriterGoes(w))
    /\ \A r \in Readers : WF_vars(ReaderGoes(r))

--------------------------------------------------------------------------------
(* In every state and step.                                                   *)

TypeOK ==
    /\ place.now \in place.may
    /\ \A name \in Names : entry[name].now \in entry[name].may
    /\ \A file \in Names : data[file].now \in data[file].may
    /\ lock = Nobody \/ ~At(lock, "idle")
    /\ returned <= Len(order) /\ made \in 0 .. Dumps
    /\ \A r \in Readers : reader[r].done \in 0 .. Len(Files)

\* A reader gets the checkpoint whose dump had returned before it began, or a later one,
\* whole.  It gets none only if no dump had returned, and an error only if the disk has
\* damaged something.
OldOrNew == \A r \in Readers :
    LET me == reader[r]
    IN  /\ me.step = "found" => me.whole /\ Position(me.dump) >= me.least
        /\ me.step = "none" => me.least = 0
        /\ me.step = "damaged" => rotted

\* What a dump has written is there until it is renamed, whoever else dumps.
OwnFilesStay == \A w \in Writers :
    writer[w].step \in {"sync entries", "rename"} =>
        \A name \in Own(writer[w].dump) : There(name)

\* When a dump returns there is the manifest with its files, and nothing else.
NothingLeft == [][
    ~rotted => \A w \in Writers : Return(w) =>
        {name \in Names : There(name)} = {Manifest} \union Named(writer[w].dump)
    ]_vars

--------------------------------------------------------------------------------
(* In the end (FairSpec).                                                     *)

\* A dump ends, and a reader too: after the last dump it finds what it looks for.
DumpEnds == \A w \in Writers : ~At(w, "idle") ~> At(w, "idle")
ReadEnds == \A r \in Readers : reader[r].step # "idle" ~> reader[r].step = "idle"
================================================================================
