"""Real threads of which one runs at a time, and every point at which another one could go on.

The threads pass a baton: whoever reaches a choice point asks the strategy who runs next, and hands
over if that is somebody else. Nobody else decides anything, so equal choices give equal runs. A
thread that would block says so instead of blocking; where nobody can run any more, the run is over.

Besides running a thread there are two choices that belong to the world: a timed sleep may end by
itself (`EXPIRE`), and any sleep may end for no reason (`SPURIOUS`).
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, NamedTuple, Protocol

PATIENCE: Final = 20.0
"""Seconds within which a whole run has to end; it needs about a millisecond."""

LONGEST: Final = 5_000
"""Choices after which a run counts as one that never ends."""


class Kind(IntEnum):
    """What can be chosen at a choice point."""

    RUN = 0
    EXPIRE = 1
    SPURIOUS = 2


class Option(NamedTuple):
    """One choice: who goes on, or whose sleep ends; `cost` is 1 where it is not what would happen
    by itself: taking the baton from somebody who could go on, or a sleep that ends early."""

    kind: Kind
    player: int
    cost: int


Pick = Callable[[Sequence[Option]], int]
"""A strategy: returns the index of an option. The first option is what happens by itself."""


class Status(IntEnum):
    """Whether a player can run."""

    READY = 0
    LOCKED_OUT = 1
    ASLEEP = 2
    DONE = 3
    IDLE = 4
    """Has nothing to do; others make it ready when there is something."""


class Failure(AssertionError):
    """What is wrong with a run."""


class LeftToChance(Failure):
    """The same choices led to different runs."""


class Died(Failure):
    """A thread ended with an exception that is none of its calls' outcomes."""


class Endless(Failure):
    """A run does not come to an end."""


class Stuck(Failure):
    """A thread came to no choice point in time: it blocks where the monitor does not see it."""


class Pruned(Exception):
    """What a strategy raises that does not want to see the rest of a run."""


class Released(BaseException):
    """Unwinds a thread whose run is over."""


class Watch(Protocol):
    """Looks at a run while it happens; each method may raise `Failure`."""

    def slice_ends(self, player: int, label: str) -> None:
        """A player has run alone since the last call and now stands at a point of that name."""

    def sleep_ends(self, player: int, kind: Kind) -> None:
        """A player's sleep ends though nobody has woken it."""

    def run_ends(self) -> None:
        """The run is over, and no thread has been unwound yet."""


@dataclass(eq=False)
class Player:
    """One thread.

    Attributes:
        index: its number; what happens by itself is that the lowest one goes on.
        name: the actor's name.
        status: whether it can run.
        label: the choice point at which it stands.
        timeout: seconds after which its sleep ends by itself, or None for never.
        ahead: seconds that its clock is ahead of the others'.
        gate: what it waits for while others run.
        program: what it does in the present run.
    """

    index: int
    name: str
    status: Status = Status.DONE
    label: str = ""
    timeout: float | None = None
    ahead: float = 0.0
    gate: threading.Lock = field(default_factory=threading.Lock)
    program: Callable[[], None] | None = None


class Stage:
    """The players, and whose turn it is; use it as a context manager, which ends the threads.

    Args:
        names: the actors.
        patience: seconds within which a whole run has to end.
    """

    def __init__(self, names: Sequence[str], patience: float = PATIENCE) -> None:
        self.players = [Player(index, name) for index, name in enumerate(names)]
        self.current: Player | None = None
        self.holder: Player | None = None
        self.over = True
        self.failure: Failure | None = None
        self.pruned = False
        self.choices: list[int] = []
        self._patience = patience
        self._ended = False
        self._main = threading.Lock()
        self._main.acquire()
        self._pick: Pick = lambda options: 0
        self._watch: Watch | None = None
        self._threads = [
            threading.Thread(target=self._play, args=(player,), name=player.name, daemon=True)
            for player in self.players
        ]
        for player, thread in zip(self.players, self._threads, strict=True):
            player.gate.acquire()
            thread.start()

    def __enter__(self) -> "Stage":
        return self

    def __exit__(self, *error: object) -> None:
        self.over = self._ended = True
        for player in self.players:
            player.program = None
            if player.gate.locked():
                player.gate.release()
        for thread in self._threads:
            thread.join(self._patience)

    def run(
        self, programs: Sequence[Callable[[], None]], pick: Pick, watch: Watch, idle: int = 0
    ) -> None:
        """Run the programs, one for each player, until nobody can go on or something is wrong.

        The last `idle` players have nothing to do at first.

        Afterwards `failure` says what was wrong, `choices` what was chosen, and the players'
        `status` who had not come to an end; their threads have been unwound. `pruned` tells that
        the strategy has cut it short.

        Raises:
            Stuck: a thread blocks where the monitor does not see it; the stage is of no use now.
        """
        self.over, self.failure, self.holder, self.pruned = False, None, None, False
        self.choices = []
        self._pick, self._watch = pick, watch
        for player, program in zip(self.players, programs, strict=True):
            player.status, player.label, player.program = Status.READY, "start", program
            player.ahead = 0.0
        for player in self.players[len(self.players) - idle :]:
            player.status = Status.IDLE
        self._pass_on(None)
        self._await_turn()
        unfinished = [player for player in self.players if player.status is not Status.DONE]
        ends = [player.status for player in self.players]
        watch.run_ends()
        self.over = True
        for player in unfinished:
            self.current = player
            player.gate.release()
            self._await_turn()
        self.current = None
        for player, status in zip(self.players, ends, strict=True):
            player.status = status

    def reach(self, label: str) -> None:
        """The running thread has come to a choice point; nothing happens for other threads."""
        me = self.current
        if me is None or self.over:
            return
        self._end_slice(me, label)
        self._pass_on(me)

    def block(self, status: Status, label: str, timeout: float | None = None) -> None:
        """The running thread cannot go on until somebody makes it ready again."""
        me = self.current
        if me is None:
            raise AssertionError("a thread that nobody drives would block")
        if self.over:
            raise Released
        me.status, me.timeout = status, timeout
        self._end_slice(me, label)
        self._pass_on(me)

    def _end_slice(self, me: Player, label: str) -> None:
        me.label = label
        assert self._watch is not None
        try:
            self._watch.slice_ends(me.index, label)
            if len(self.choices) > LONGEST:
                raise Endless(f"the run goes on for ever: {LONGEST:,} choices and no end")
        except Failure as failure:
            self._stop(failure)
            me.gate.acquire()
            raise Released from None

    def _stop(self, failure: Failure | None) -> None:
        """End the run; the main thread takes over."""
        # The failure outlives the run, the frames in which it came about must not.
        self.failure = None if failure is None else failure.with_traceback(None)
        self.current = None
        self.over = True
        self._main.release()

    def _pass_on(self, me: Player | None) -> None:
        """Let the strategy say who goes on, and wait until it is `me` again."""
        failure, chosen = None, None
        try:
            chosen = self._choose(me)
        except Pruned:
            self.pruned = True
        except Failure as wrong:
            failure = wrong
        if chosen is me and me is not None:
            return
        # Whoever has the baton next may change the status, or begin the next run.
        goes = me is None or me.status is Status.DONE
        if chosen is None:
            self._stop(failure)
        else:
            self.current = chosen
            chosen.gate.release()
        if me is None or goes:
            return
        me.gate.acquire()
        if self.over:
            raise Released

    def _choose(self, me: Player | None) -> Player | None:
        """Return who goes on; None where nobody can."""
        while True:
            options = self._options(me)
            if not options or options[0].kind is Kind.SPURIOUS:
                return None
            index = self._pick(options) if len(options) > 1 else 0
            if len(options) > 1:
                self.choices.append(index)
            kind, number, _ = options[index]
            player = self.players[number]
            if kind is Kind.RUN:
                return player
            if kind is Kind.EXPIRE:
                assert player.timeout is not None
                player.ahead += player.timeout
            player.status = Status.READY
            assert self._watch is not None
            self._watch.sleep_ends(number, kind)

    def _options(self, me: Player | None) -> list[Option]:
        """Return what can be chosen, what happens by itself first."""
        options: list[Option] = []
        ready = me is not None and self._can_run(me)
        if ready and me is not None:
            options.append(Option(Kind.RUN, me.index, 0))
        others = [it.index for it in self.players if it is not me and self._can_run(it)]
        options += [Option(Kind.RUN, index, int(ready)) for index in others]
        cost = int(bool(options))
        sleepers = [it for it in self.players if it.status is Status.ASLEEP]
        timed = [it.index for it in sleepers if it.timeout is not None]
        options += [Option(Kind.EXPIRE, index, cost) for index in timed]
        options += [Option(Kind.SPURIOUS, it.index, 1) for it in sleepers]
        return options

    def _can_run(self, player: Player) -> bool:
        if player.status is Status.LOCKED_OUT:
            return self.holder is None
        return player.status is Status.READY

    def _play(self, player: Player) -> None:
        """Run one program after the other in the player's thread."""
        while not self._ended:
            player.gate.acquire()
            if player.program is None:
                return
            failure = None
            try:
                if not self.over:
                    player.program()
                    self._watch_end(player)
            except Released:
                pass
            except Failure as wrong:
                failure = wrong
            except BaseException as error:
                failure = Died(f"{player.name} ended with {error!r}")
            player.status = Status.DONE
            if self._ended:  # by an interrupt, in the middle of a run
                return
            if self.over:
                self._main.release()
            elif failure is not None:
                self._stop(failure)
            else:
                self._pass_on(player)
            failure = None

    def _watch_end(self, player: Player) -> None:
        if not self.over:
            player.label = "end"
            assert self._watch is not None
            self._watch.slice_ends(player.index, "end")

    def _await_turn(self) -> None:
        if not self._main.acquire(timeout=self._patience):
            where = ", ".join(f"{player.name} at {player.label!r}" for player in self.players)
            raise Stuck(f"no choice point was reached within {self._patience:g} s; last: {where}")
