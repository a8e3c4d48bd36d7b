"""A bounded, consuming replay buffer whose producers wait, and one that overwrites instead.

The buffers are `BlockingReplayBuffer` and `ReplayBuffer`. They keep their records in a storage of
this package, and their calls end with a result or with one of the errors below. Their decisions are
functions of `forebay_spec.kernel`, whose contracts are confirmed over all paths.
"""

from forebay._buffer import BlockingReplayBuffer
from forebay._checkpoint import read_records
from forebay._cuda_storage import CudaStorage
from forebay._errors import (
    AdmissionTimeout,
    Cancelled,
    CheckpointError,
    LimitReached,
    MutualWait,
    PeerLost,
    RecordMismatch,
    SampleTimeout,
    ShutDown,
)
from forebay._layout import Limits
from forebay._lease import Lease
from forebay._list_storage import ListStorage
from forebay._producer import Producer
from forebay._replay import ReplayBuffer
from forebay._samplers import RandomSampler, SamplerWithoutReplacement
from forebay._shared_storage import SharedStorage
from forebay._stats import BufferStats
from forebay._storage import Storage
from forebay._tensor_storage import TensorStorage
from forebay._tokens import CancelToken
from forebay._trace import Trace
from forebay._writer import Writer

__all__ = [
    "AdmissionTimeout",
    "BlockingReplayBuffer",
    "BufferStats",
    "CancelToken",
    "Cancelled",
    "CheckpointError",
    "CudaStorage",
    "Lease",
    "LimitReached",
    "Limits",
    "ListStorage",
    "MutualWait",
    "PeerLost",
    "Producer",
    "RandomSampler",
    "RecordMismatch",
    "ReplayBuffer",
    "SampleTimeout",
    "SamplerWithoutReplacement",
    "SharedStorage",
    "ShutDown",
    "Storage",
    "TensorStorage",
    "Trace",
    "Writer",
    "read_records",
]
