"""Work on a CUDA device that is recorded once and replayed, so that the host makes one call for many operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from .backends import Backend

#: runs before the recording, in which libraries choose their functions and allocate their memory
TRIALS = 3
#: replays after which the host waits for the device; more: the host is further ahead, and a clock on it says less
AHEAD = 8


class Recording:
    """A CUDA graph of some work, which must do the same operations on the same memory in every run.

    The trials before the recording run the work too. `changed` are the arrays that it changes and depends on, which have
    their former values again when the recording is made.
    """

    def __init__(self, work: Callable[[], None], changed: Sequence[Any]) -> None:
        import torch

        self.torch, self.replays, self.graph = torch, 0, torch.cuda.CUDAGraph()
        before = [array.clone() for array in changed]
        try:
            self._record(work)
        finally:
            for array, values in zip(changed, before, strict=True):
                array.copy_(values)

    def _record(self, work: Callable[[], None]) -> None:
        """Run the work a few times and record it; both beside the stream that other work is in, as CUDA asks."""
        cuda = self.torch.cuda
        side = cuda.Stream()
        side.wait_stream(cuda.current_stream())
        with cuda.stream(side):
            for _ in range(TRIALS):
                work()
        cuda.current_stream().wait_stream(side)
        with cuda.graph(self.graph, capture_error_mode="thread_local"):
            work()

    def __call__(self) -> None:
        """Repeat the work."""
        self.graph.replay()
        self.replays += 1
        if self.replays % AHEAD == 0:
            self.torch.cuda.current_stream().synchronize()


def recorded(on: Backend, work: Callable[[], None], changed: Sequence[Any]) -> Callable[[], None] | None:
    """Return a function that repeats some work on a CUDA device; None where nothing can be recorded."""
    if not on.is_cuda:
        return None
    import torch

    with suppress(RuntimeError), torch.cuda.device(on.device):  # operations that cannot be recorded, too little memory
        return Recording(work, changed)
    return None


def captured(on: Backend, work: Callable[[], None]) -> Any:
    """Return a CUDA graph of some work that was done before, without doing it again; None where nothing can be recorded.

    Unlike a `Recording`, it does not give the device's spare memory back first, which would take longer than short runs.
    """
    if not on.is_cuda:
        return None
    import torch

    graph, side, here = torch.cuda.CUDAGraph(), torch.cuda.Stream(on.device), torch.cuda.current_stream(on.device)
    side.wait_stream(here)
    try:
        with torch.cuda.stream(side):
            graph.capture_begin(capture_error_mode="thread_local")
            try:
                work()
            finally:
                graph.capture_end()
    except RuntimeError:  # operations that cannot be recorded, too little memory
        return None
    here.wait_stream(side)
    return graph
