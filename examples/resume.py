"""Kill a learner and its actors in the middle of a step, again and again, and lose nothing.

The run itself is `resume_learner.py`: a learner that draws batches ahead from a shared buffer,
actors in processes of their own, and a checkpoint every few steps. This program starts it, reads
what it prints, and now and then sends SIGKILL to all of its processes at once, between the
beginning and the end of a step. Then it starts it again, and the run goes on from its newest
checkpoint.

What is claimed, and asserted at each start and at the end: in the lineage of the restored
checkpoints, every record that was admitted was delivered once or still waits,

    admitted = delivered + sampleable + drawn ahead,

and no record was trained on twice. The steps between the last checkpoint and a kill have to be done
again; the records that they used are in the checkpoint and are used again, by weights that have not
seen them.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

LEARNER = Path(__file__).with_name("resume_learner.py")


def parse(argv: list[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description="Kill a learner and its actors in the middle of a step and resume them.",
        epilog="Ctrl-C ends the run and all its processes.",
    )
    parser.add_argument("--kills", type=int, default=3, help="how often to kill (default 3)")
    parser.add_argument("--steps", type=int, default=200, help="steps of the whole run (200)")
    parser.add_argument("--every", type=int, default=10, help="steps from save to save (10)")
    parser.add_argument("--seed", type=int, default=0, help="of the steps that are cut short")
    parser.add_argument("--place", type=Path, help="where the checkpoints go (a new directory)")
    args = parser.parse_args(argv)
    if args.kills < 0 or min(args.steps, args.every) < 1:
        parser.error("--steps and --every are at least 1, --kills at least 0")
    if args.steps <= args.kills:
        parser.error("--steps has to be more than --kills, so that each kill has a step of its own")
    return args


@contextmanager
def running(*arguments: object) -> Iterator[subprocess.Popen[str]]:
    """Start the learner as the first of a group of processes, none of which is left behind."""
    learner = subprocess.Popen(
        [sys.executable, str(LEARNER), *map(str, arguments)],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield learner
    finally:
        kill(learner)
        assert learner.stdout is not None
        learner.stdout.close()


def kill(learner: subprocess.Popen[str]) -> None:
    """Kill the learner and all its actors, wherever they are."""
    with suppress(ProcessLookupError):
        os.killpg(learner.pid, signal.SIGKILL)
    learner.wait()


def follow(learner: subprocess.Popen[str], until: int | None) -> dict[str, Any] | None:
    """Read what the learner tells up to the beginning of step `until`, or up to its end.

    Returns what it told at its end; None if the step has begun.
    """
    assert learner.stdout is not None
    for line in learner.stdout:
        told: dict[str, Any] = json.loads(line)
        if told["what"] == "starts":
            print(
                f"{'resumed' if told['resumed'] else 'started'} at step {told['step']}: "
                + balance(told)
            )
        elif told["what"] == "saved":
            print(f"  saved at step {told['step']}, loss {told['loss']:.3f}", flush=True)
        elif told["what"] == "ends":
            return told
        elif until is not None and told["step"] >= until:
            return None
    raise RuntimeError(f"the learner ended by itself, with code {learner.wait()}")


def balance(told: dict[str, Any]) -> str:
    """Say where the records are."""
    return (
        f"{told['admitted']} admitted = {told['delivered']} delivered + {told['sampleable']}"
        f" sampleable + {told['prefetched']} drawn ahead"
    )


def main(argv: list[str] | None = None) -> int:
    """Run to the end through all the kills; return 0 when nothing was lost or used twice."""
    args = parse(argv)
    # A pipe would keep the lines back, and a kill is best read as it happens.
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # standard output is a text stream here
    cut_short = sorted(random.Random(args.seed).sample(range(1, args.steps), args.kills))
    with tempfile.TemporaryDirectory() as scratch:
        place = args.place or Path(scratch)
        place.mkdir(parents=True, exist_ok=True)
        for start, step in enumerate([*cut_short, None]):
            with running(place, start, args.steps, args.every) as learner:
                told = follow(learner, step)
                if told is None:
                    kill(learner)
                    print(f"  killed, with its actors, in step {step}")
                elif learner.wait():
                    raise RuntimeError(f"the learner ended with code {learner.returncode}")
    assert told is not None
    # The learner has checked this by the ids of all records; here it is by the counts.
    assert told["admitted"] == told["delivered"] == told["ids"], told
    assert told["sampleable"] == told["prefetched"] == 0, told
    print(f"ended at step {told['step']}: {balance(told)}; loss {told['loss']:.3f}")
    print(
        f"nothing lost after {args.kills} kills: {told['admitted']} admitted ="
        f" {told['delivered']} delivered, each trained on once"
    )
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("interrupted; all processes are killed")
        sys.exit(130)
