"""The calls of the C library that buffers between processes need, through ctypes.

A function of `quick()` keeps the interpreter lock while it runs, so it must never block; the same
function of `blocking()` gives the lock up, so that other threads run meanwhile. All is looked up
when it is first used: the package can be imported where none of this exists.
"""

import ctypes
import errno
import os
import platform
import sys
import time
from collections.abc import Callable
from functools import cache, partial
from itertools import starmap
from operator import call
from typing import Final

MUTEX_BYTES: Final = 64
"""Room for a `pthread_mutex_t`, which takes 40 bytes on x86-64 and 48 on AArch64."""

_CLOCK_MONOTONIC: Final = 1
_ERRORCHECK: Final = 2
_ROBUST: Final = 1
_SHARED: Final = 1
_ATTRIBUTE_BYTES: Final = 64
_PROT_READ_WRITE: Final = 3
_MAP_SHARED: Final = 1
_FUTEX: Final = {"x86_64": 202, "aarch64": 98, "riscv64": 98, "ppc64le": 221}
"""Numbers of the system call, which the C library has no function for."""
_FUTEX_WAIT: Final = 0
_FUTEX_WAKE_OP: Final = 5
_ADD_ONE: Final = (1 << 12) | (1 << 28)
"""What a FUTEX_WAKE_OP does to its word: operation 1, "add", from bit 28 on; its operand 1 from
bit 12 on."""
_EVERYBODY: Final = 2**31 - 1


class Moment(ctypes.Structure):
    """A `struct timespec`."""

    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))

    @classmethod
    def of(cls, seconds: float) -> "Moment":
        """Return a point in time or a duration, in seconds, as the C library takes it."""
        whole = int(seconds)
        return cls(whole, min(int((seconds - whole) * 1e9), 999_999_999))


class Owned(list[int]):
    """What a call of C has given; it is given back when nobody has this object any more.

    The call and the note of what it gave are one step of C: no signal handler of Python comes
    between them, so what it raises loses nothing. At the end of a process the system takes all
    back.

    Args:
        give_back: undoes the call.
    """

    def __init__(self, give_back: Callable[[int], object]) -> None:
        super().__init__()
        self.give_back = give_back

    def take(self, call: Callable[..., int], *arguments: object) -> int:
        """Make a call, and own what it gives."""
        self.extend(starmap(call, [arguments]))
        return self[-1]

    def close(self) -> None:
        """Give all back now."""
        while self:
            self.give_back(self.pop())

    def __del__(self, exiting: Callable[[], bool] = sys.is_finalizing) -> None:
        if not exiting():
            self.close()


def demand_linux() -> None:
    """Raise unless buffers can be shared between processes here.

    Raises:
        NotImplementedError: this is not a 64-bit Linux that is known.
    """
    if sys.platform != "linux" or sys.maxsize < 2**32 or platform.machine() not in _FUTEX:
        raise NotImplementedError(
            "sharing a buffer between processes needs 64-bit Linux (anonymous shared memory, "
            f"robust locks, futexes); this is {sys.platform} on {platform.machine()}. Threads of "
            "one process can share a buffer over TensorStorage or ListStorage everywhere"
        )


@cache
def quick() -> ctypes.PyDLL:
    """Return the C library with the interpreter lock kept, for calls that never block."""
    demand_linux()
    return _typed(ctypes.PyDLL(None, use_errno=True))


@cache
def blocking() -> ctypes.CDLL:
    """Return the C library with the interpreter lock given up during a call."""
    demand_linux()
    library = ctypes.CDLL(None, use_errno=True)
    _typed(library)
    return library


def _typed(library: ctypes.PyDLL | ctypes.CDLL) -> ctypes.PyDLL:
    library.syscall.restype = ctypes.c_long
    library.mmap.restype = ctypes.c_void_p
    size = ctypes.c_size_t
    library.mmap.argtypes = [
        *(ctypes.c_void_p, size, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
    ]
    library.munmap.argtypes = [ctypes.c_void_p, size]
    return library  # type: ignore[return-value]  # both kinds are called in the same way


def map_shared(descriptor: int, nbytes: int) -> Owned:
    """Map a file's first bytes into memory, shared; what is owned is their address."""
    mapping = Owned(partial(_unmap, quick().munmap, nbytes))
    arguments = nbytes, _PROT_READ_WRITE, _MAP_SHARED, descriptor, 0
    if mapping.take(quick().mmap, None, *arguments) == ctypes.c_void_p(-1).value:
        mapping.clear()
        raise failure("mapping shared memory")
    return mapping


def _unmap(munmap: Callable[[int, int], int], nbytes: int, address: int) -> None:
    munmap(address, nbytes)


def make_semaphore(address: int, value: int) -> None:
    """Make a semaphore in shared memory, which takes 32 bytes."""
    if quick().sem_init(ctypes.c_void_p(address), 1, value) != 0:
        raise failure("making a semaphore")


def try_acquire(address: int) -> bool:
    """Take one from a semaphore unless it is at 0; say whether that was done. Never blocks."""
    taken: bool = quick().sem_trywait(ctypes.c_void_p(address)) == 0
    return taken


def make_mutex(address: int) -> None:
    """Make a mutex in shared memory: robust, and of the kind that notices its misuse.

    Robust: when its holder dies, the next one learns of it. Noticing: locking twice, and unlocking
    what this thread does not hold, are errors without effect.
    """
    library = quick()
    attribute = ctypes.create_string_buffer(_ATTRIBUTE_BYTES)
    _demand_success("pthread_mutexattr_init", attribute)
    _demand_success("pthread_mutexattr_settype", attribute, _ERRORCHECK)
    _demand_success("pthread_mutexattr_setrobust", attribute, _ROBUST)
    _demand_success("pthread_mutexattr_setpshared", attribute, _SHARED)
    _demand_success("pthread_mutex_init", ctypes.c_void_p(address), attribute)
    library.pthread_mutexattr_destroy(attribute)


def mutex_call(name: str, address: int) -> Callable[[], int]:
    """Return a call of a mutex function that never blocks; it gives an error number or 0.

    The call is one step of C: no signal handler of Python runs inside it.
    """
    return partial(quick()[name], ctypes.c_void_p(address))


class _Ignored:
    """The type of an argument of any kind, which becomes a number that says nothing.

    A `py_object` does the same and takes four times as long.
    """

    from_param = staticmethod(callable)


class Calls:
    """Calls that one step of C makes one after the other: `answers.extend(calls)`.

    An iteration finds `__iter__` as a slot of the type, and what is in it is all C.
    """

    __slots__ = ("__iter__",)

    def __init__(self, *calls: Callable[[], int]) -> None:
        self.__iter__ = partial(map, call, calls)


def unlock_at_exit(address: int) -> Callable[..., None]:
    """Return a call that unlocks a mutex and may stand for the `__exit__` of a `with` block.

    It is one step of C, and it takes and ignores what `__exit__` is given: arguments that a C
    function does not look for do no harm. It returns None, so it never swallows an exception.
    """
    function = quick()["pthread_mutex_unlock"]
    function.argtypes = [ctypes.c_void_p, *3 * [_Ignored]]  # type: ignore[list-item]  # has what it takes
    function.restype = None
    return partial(function, ctypes.c_void_p(address))


def lock_within(address: int, seconds: float) -> Callable[[], int]:
    """Return a call that waits for a mutex so long at most; it gives an error number or 0.

    C libraries before glibc 2.30 wait by the wall clock only. Should that be set back meanwhile,
    the wait lasts longer by as much.
    """
    library = blocking()
    where = ctypes.c_void_p(address)
    if hasattr(library, "pthread_mutex_clocklock"):
        until = Moment.of(time.monotonic() + seconds)
        function = library.pthread_mutex_clocklock
        return partial(function, where, _CLOCK_MONOTONIC, ctypes.byref(until))
    until = Moment.of(time.time() + seconds)
    return partial(library.pthread_mutex_timedlock, where, ctypes.byref(until))


def wake_call(address: int) -> Callable[[], int]:
    """Return a call that adds 1 to the 32-bit word at an address and wakes all who sleep there.

    It is one system call, and gives a number below 0 if that fails. The kernel adds atomically, so
    several wakers never make the same number, and no death comes between the addition and the
    waking.
    """
    word = ctypes.c_void_p(address)
    arguments = _futex(), word, _FUTEX_WAKE_OP, _EVERYBODY, None, word, _ADD_ONE
    return partial(quick().syscall, *arguments)


def sleep_at(address: int, seen: int, seconds: float) -> None:
    """Sleep while the 32-bit word at an address is `seen`; so long at most, or until a signal.

    May also return for no reason.
    """
    length = ctypes.byref(Moment.of(seconds))
    word, number = ctypes.c_void_p(address), ctypes.c_uint32(seen)
    if blocking().syscall(_futex(), word, _FUTEX_WAIT, number, length, None, 0) < 0 and (
        ctypes.get_errno() not in (errno.EAGAIN, errno.ETIMEDOUT, errno.EINTR)
    ):
        raise failure("sleeping")


@cache
def _futex() -> int:
    demand_linux()
    return _FUTEX[platform.machine()]


def _demand_success(name: str, *arguments: object) -> None:
    number: int = quick()[name](*arguments)
    if number != 0:
        raise OSError(number, f"{name}: {os.strerror(number)}")


def failure(what: str) -> OSError:
    """Return the error of a call that has failed, by the error number that it has left."""
    number = ctypes.get_errno()
    return OSError(number, f"{what} failed: {os.strerror(number)}")
