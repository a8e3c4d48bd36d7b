"""What the specification lets each operation of a history do, one step of the machine at a time.

An operation of the library is more than one critical section, so it does not happen at one point:
a write is Admit and then Publish, a sample is Draw and then Deliver, and others may come in
between. So an operation is taken here as the steps that `forebay_spec` has for it, each at some
point of its interval, and a history is right if the steps of all its operations can be put into one
order that is a path of the machine with the results that were seen:

- a write: Arrive, Admit (its slots must be the ones that were returned), Publish;
- a sample: Ask, Draw (the very records that were got, in their order), Ready and Deliver; if the
  transform raised, Fail and Return instead;
- a lease: Ask, Draw and Ready; its commit is Deliver, its release Return;
- a call that timed out, was cancelled or refused: at most a ticket, and it leaves by the step that
  the verdict of the specification allows just then; a timeout while it could have been served is as
  wrong as a service out of turn;
- `len`, `empty`, `shutdown` and the setting of a token: one step.

The tickets are the specification's, so the order of those who wait is judged, too: a call joins the
list at any point after its call at which it would have to wait. Time itself is not modelled:
whoever has a finite timeout may find it passed whenever it would have to wait.

Ready of a lease is taken together with Draw, and Ready of a sample with Deliver. Nobody can tell:
the hold matters to others only as one that is busy, and it is that until its owner waits again.

**Deaths.** A kill is Kill at some point between its call and its return; behind it the victim takes
no step. What it had stays as it is, so that its ticket is in the way of others, until it is
recovered at some later point, all at once: its ticket leaves, what it was filling is free again,
and what it held is returned. So, of the call in which it was killed:

- a write is there as a whole or not at all, and if it is, it was published before the death;
- the records of a sample are gone for good if it was delivered before the death, else they come
  back, to their old place in the order, by itself if its transform raised; those of a lease that
  was not committed all come back;
- a call that waited is gone, and those behind it go on only then.

Everything that returned before counts as for the living. `recover`, a look for the dead, returns
when all of them are recovered, so what comes behind it finds all that has come back. A death that
leaves nothing is no step: it is nothing to anybody.

An operation that never returned, though nobody was killed, may take any of its steps or none, and
what it has may be given back at any later point. Histories from elsewhere may say so of what has
died unseen: a lease whose owner died between two calls is then a release that never returned. One
that was interrupted may have been undone in the same way before it returned.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from forebay_spec.actions import Label
from forebay_spec.effects import (
    abandoned,
    admitted,
    delivered,
    drawn,
    emptied,
    gathered,
    published,
    recovered,
    returned,
    taken,
    without_ticket,
)
from forebay_spec.kernel import Closing, Phase, Verdict, batch_rows, close_to
from forebay_spec.state import (
    State,
    Ticket,
    filling_of,
    has_something,
    initial,
    sampleable,
    ticket_of,
)
from forebay_spec.verdicts import head_of, verdict

from forebay_models.linear.calls import (
    ENDINGS,
    LEAVING,
    arrival,
    bounds_of,
    no_such_ending,
    reader_kind,
    ticket_for,
)
from forebay_models.linear.history import CALLS, History, Operation


class Config(NamedTuple):
    """A point of a search.

    `done` counts the completed operations of each actor. The specification does not number records
    and does not know which call drew a hold, nor which token a call has: `records` are the numbers
    by slot (0 in a free one), `drawers` the calls by hold, `flags` the tokens that are set.
    `gone` are those who were killed, recovered or not. `state.cancelled` stays empty.
    """

    done: tuple[int, ...]
    state: State
    records: tuple[int, ...]
    drawers: tuple[int, ...]
    flags: frozenset[str]
    gone: frozenset[str] = frozenset()


class Move(NamedTuple):
    """A step of an operation: what the machine does (nothing for a look), and where that leads."""

    op: Operation
    labels: tuple[Label, ...]
    after: Config


class Model:
    """The steps that the operations of one history may take."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.actors = history.actors
        self.programs = tuple(
            tuple(op for op in history.operations if op.actor == actor) for actor in self.actors
        )
        self.bounds = bounds_of(history)
        self._kills = history.kills
        self._place = {actor: place for place, actor in enumerate(self.actors)}

    def initial(self) -> Config:
        """Return where every history begins."""
        state = initial(self.bounds)
        return Config((0,) * len(self.actors), state, (0,) * len(state.slots), (), frozenset())

    def current(self, config: Config) -> list[Operation]:
        """Return the operation that each actor is at, those that may happen next, soonest first.

        An operation may take a step only if no operation that is not complete has returned before
        it was called.
        """
        there = [
            program[done]
            for program, done in zip(self.programs, config.done, strict=True)
            if done < len(program) and program[done].actor not in config.gone
        ]
        border = min((op.returned for op in there if op.returned is not None), default=None)
        if border is None:
            return there
        there = [op for op in there if op.call < border]
        return sorted(there, key=lambda op: (op.returned is None, op.returned))

    def finished(self, config: Config) -> bool:
        """Tell whether every operation that returned is complete."""
        return all(
            program[place].returned is None
            for program, done in zip(self.programs, config.done, strict=True)
            for place in range(done, len(program))
        )

    def moves(self, config: Config) -> Iterator[Move]:
        """Yield what may happen next, what is most likely first.

        Who would have to wait has probably joined the others at once, so joining comes first. An
        end that changes nothing, of a call that cannot wait any more, is best taken now: whatever
        could follow can follow afterwards, so there is nothing else to try. The dead are recovered
        when nothing else goes on.
        """
        later: list[Move] = []
        joins: list[Move] = []
        for op in self.current(config):
            settled = self._settled(config, op)
            for move in self.steps(config, op):
                if settled and move.after.done != config.done:
                    yield move
                    return
                joining = len(move.after.state.tickets) > len(config.state.tickets)
                (joins if joining else later).append(move)
        yield from joins
        yield from later
        for dead in sorted(config.state.dead):
            label = Label("Recover", (dead,))
            yield Move(self._kills[dead], (label,), self._recovered(config, dead))

    def _settled(self, config: Config, op: Operation) -> bool:
        """Tell whether an operation that can end here changes nothing, now or ever."""
        if op.loose or ticket_of(config.state, op.actor) is not None:
            return False
        if op.ended == "shut down":
            return op.kind == "extend" or config.state.closing == Closing.STOPPED
        if op.ended == "done" or op.kind not in CALLS:
            return op.kind in ("len", "recover")
        return op.ended == "cancelled" or (op.waits == "not at all" and op.ended != "failed")

    def steps(self, config: Config, op: Operation) -> Iterator[Move]:
        """Yield the steps that an operation may take here."""
        if no_such_ending(op):
            return
        if op.kind not in CALLS:
            yield from self._at_once(config, op)
        elif filling_of(config.state, op.actor):
            yield from self._filled(config, op)
        elif op.call in config.drawers:
            yield from self._held(config, op)
        else:
            yield from self._judged(config, op)

    def verdict(self, config: Config, op: Operation) -> tuple[State, Verdict]:
        """Return the state with an operation's ticket in it, and what it gets there."""
        state = config.state
        if ticket_of(state, op.actor) is None:
            state = state._replace(tickets=(*state.tickets, ticket_for(op)))
        judged = state
        if config.flags:
            cancelled = {t.actor for t in state.tickets if self._token(config, t) in config.flags}
            judged = state._replace(cancelled=frozenset(cancelled))
        return state, verdict(self.bounds, judged, op.actor)

    def _token(self, config: Config, ticket: Ticket) -> str:
        """Return the token of the call that a ticket belongs to."""
        place = self._place[ticket.actor]
        return self.programs[place][config.done[place]].token

    def _judged(self, config: Config, op: Operation) -> Iterator[Move]:
        """Yield the steps of a call that was not served so far."""
        waits = ticket_of(config.state, op.actor) is not None
        if waits and op.ended in ("done", "failed"):
            head = head_of(config.state, op.kind == "extend")
            if head is None or head.actor != op.actor:
                return
        queued, found = self.verdict(config, op)
        first = () if waits else (arrival(op),)
        if found == Verdict.SERVE:
            if op.ended in ("done", "failed") or op.loose:
                yield from self._served(config, op, queued, first)
        elif found != Verdict.WAIT or op.waits != "for ever":
            ending = ENDINGS[found]
            if op.ended == ending or (waits and self._dies_in(op)):
                # Who is refused at once has no ticket that could leave.
                leaves = waits or found == Verdict.WAIT
                labels = (*first, *((Label(LEAVING[ending], (op.actor,)),) if leaves else ()))
                yield self._over(config, op, labels, without_ticket(queued, op.actor))
        if found == Verdict.WAIT and not waits and op.waits != "not at all":
            yield Move(op, first, config._replace(state=queued))
        if op.ended == "interrupted" or (self._may_undo(op) and waits):
            yield self._over(config, op, (), without_ticket(config.state, op.actor))

    def _served(
        self, config: Config, op: Operation, queued: State, first: tuple[Label, ...]
    ) -> Iterator[Move]:
        """Yield the ways in which a call can be admitted or draw, with what it got."""
        state = without_ticket(queued, op.actor)
        labels = first or (Label("Admit" if op.kind == "extend" else "Draw", (op.actor,)),)
        if op.kind == "extend":
            slots = state.free[: op.n]
            if op.slots is None or op.slots == slots:
                numbers = dict(zip(slots, op.records or (), strict=True))
                after = config._replace(
                    state=admitted(state, op.actor, op.n),
                    records=tuple(numbers.get(s, n) for s, n in enumerate(config.records)),
                )
                yield Move(op, labels, after)
            return
        for after_draw in self._draws(config, op, state):
            after = config._replace(state=after_draw, drawers=(*config.drawers, op.call))
            if op.kind == "take" and op.ended == "done":
                h = len(after_draw.holds) - 1
                ready = gathered(self.bounds, after_draw, h, "ready")
                yield self._over(after, op, (*labels, Label("Ready", (h,))), ready)
            else:
                yield Move(op, labels, after)

    def _draws(self, config: Config, op: Operation, state: State) -> Iterable[State]:
        """Return the states in which a reader has drawn what it is known to have got."""
        there = sampleable(self.bounds, state)
        rows = batch_rows(op.n, len(there))
        kind = reader_kind(op)
        slots = op.slots
        if slots is None and op.records is not None:
            where = {config.records[number]: number for number in there}
            slots = tuple(where.get(number, -1) for number in op.records)
        if slots is None:
            return drawn(self.bounds, state, op.actor, kind, op.n)
        if len(slots) != rows or len(set(slots)) != rows or not set(slots) <= set(there):
            return ()
        if op.records is not None and op.records != tuple(config.records[s] for s in slots):
            return ()
        if self.bounds.fifo:
            oldest = sorted(there, key=lambda number: state.slots[number].stamp)
            if list(slots) != oldest[:rows]:
                return ()
        return (taken(self.bounds, state, op.actor, kind, slots),)

    def _filled(self, config: Config, op: Operation) -> Iterator[Move]:
        """Yield the ends of a write that was admitted."""
        if op.ended == "done" or op.loose:
            after = published(self.bounds, config.state, op.actor)
            yield self._over(config, op, (Label("Publish", (op.actor,)),), after)
        if self._may_undo(op):
            after = abandoned(config.state, op.actor)
            yield self._over(config, op, (Label("Abandon", (op.actor,)),), after)

    def _held(self, config: Config, op: Operation) -> Iterator[Move]:
        """Yield the ends of a read that has drawn."""
        h = config.drawers.index(op.call)
        if op.kind == "sample" and (op.ended == "done" or op.loose):
            yield self._ends_hold(config, op, h, Label("Ready", (h,)), Label("Deliver", (h,)))
        if op.ended == "failed" or op.loose:
            yield self._ends_hold(config, op, h, Label("Fail", (h,)), Label("Return", (h,)))

    def _at_once(self, config: Config, op: Operation) -> Iterator[Move]:
        """Yield the step of an operation that does not wait."""
        state = config.state
        if op.kind in ("commit", "release"):
            name = "Deliver" if op.kind == "commit" else "Return"
            if op.lease in config.drawers:
                h = config.drawers.index(op.lease)
                yield self._ends_hold(config, op, h, Label(name, (h,)))
                if self._may_undo(op) and name == "Deliver":
                    yield self._ends_hold(config, op, h, Label("Return", (h,)))
        elif op.kind == "cancel":
            label = Label("SetCancel", (op.token,))
            yield self._over(config._replace(flags=config.flags | {op.token}), op, (label,), state)
        elif op.kind == "shutdown":
            closing = close_to(state.closing, Closing[op.mode.upper()])
            closed = state._replace(closing=closing)
            yield self._over(config, op, (Label("Close", (op.mode,)),), closed)
        elif op.kind == "kill":
            if self._has_answers(config, op.victim):
                killed = config._replace(gone=config.gone | {op.victim})
                if has_something(state, op.victim):
                    label = Label("Kill", (op.victim,))
                    dying = state._replace(dead=state.dead | {op.victim})
                    yield self._over(killed, op, (label,), dying)
                else:
                    yield self._over(killed, op, (), state)
        elif op.kind == "recover":
            if op.loose or not state.dead:
                yield self._over(config, op, (), state)
        elif op.kind == "empty":
            yield self._over(config, op, (Label("Empty"),), emptied(self.bounds, state))
        elif op.loose or op.length == len(sampleable(self.bounds, state)):
            yield self._over(config, op, (), state)
        if op.ended == "interrupted":
            yield self._over(config, op, (), state)

    def _ends_hold(self, config: Config, op: Operation, h: int, *labels: Label) -> Move:
        """Return the step that ends a hold: delivered or returned, as the last label says."""
        end = delivered if labels[-1].name == "Deliver" else returned
        drawers = config.drawers[:h] + config.drawers[h + 1 :]
        state = end(self.bounds, config.state, h)
        return self._over(config._replace(drawers=drawers), op, labels, state)

    def _dies_in(self, op: Operation) -> bool:
        """Tell whether an operation is the one in which its actor is killed."""
        return op.returned is None and op.actor in self._kills

    def _may_undo(self, op: Operation) -> bool:
        """Tell whether what an operation has may come back without anybody's recovery."""
        return op.loose and not self._dies_in(op)

    def _has_answers(self, config: Config, actor: str) -> bool:
        """Tell whether all operations of an actor that returned are complete."""
        place = self._place.get(actor)
        if place is None:  # it was killed before it called anything
            return True
        return all(op.returned is None for op in self.programs[place][config.done[place] :])

    def _recovered(self, config: Config, actor: str) -> Config:
        """Return the point after the recovery of a dead actor."""
        kept = zip(config.drawers, config.state.holds, strict=True)
        drawers = tuple(drawer for drawer, hold in kept if hold.owner != actor)
        state = recovered(self.bounds, config.state, actor)
        return config._replace(state=state, records=_records(config, state), drawers=drawers)

    def _over(self, config: Config, op: Operation, labels: tuple[Label, ...], state: State) -> Move:
        """Return the last step of an operation."""
        place = self._place[op.actor]
        done = (*config.done[:place], config.done[place] + 1, *config.done[place + 1 :])
        records = _records(config, state)
        return Move(op, labels, config._replace(done=done, state=state, records=records))


def _records(config: Config, state: State) -> tuple[int, ...]:
    """Return the records by slot when the state has changed: none in a free one."""
    return tuple(
        0 if slot.phase == Phase.FREE else number
        for slot, number in zip(state.slots, config.records, strict=True)
    )
