"""Copies of long arrays between the memory of the host and that of a GPU.

A GPU reads and writes page-locked memory several times as fast as any other. Two buffers of it are
used by turns: while one is transferred, threads of the host copy to or from the other.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from manifoldry.util.threads import map_threads
from manifoldry.util.typing import Array
from manifoldry.util.validation import row_blocks

if TYPE_CHECKING:
    from manifoldry.device.cuda import CudaDevice

LEAST_BYTES = 2**23
"""Size of arrays below which threads and buffers do not pay."""
_BUFFER = 2**25  # bytes of a buffer
_PIECE = 2**21  # bytes that a thread copies at a time


class PinnedBuffers:
    """Two buffers of page-locked memory, and the stream that transfers them.

    Threads that find them in use copy without them.
    """

    def __init__(self, device: CudaDevice) -> None:
        cuda = device.xp.cuda
        self.device, self.lock = device, Lock()
        memory = [cuda.alloc_pinned_memory(_BUFFER) for _ in range(2)]
        self.buffers = [np.frombuffer(part, np.uint8, _BUFFER) for part in memory]
        self.events = [cuda.Event(disable_timing=True) for _ in range(2)]

    def upload(self, host: Array) -> Any:
        """The copy of a contiguous array on the GPU."""
        if not self.lock.acquire(blocking=False):
            return self.device.xp.asarray(host)
        try:
            out = self.device.xp.empty(host.shape, host.dtype)
            source, stream = _bytes(host), self.device.xp.cuda.get_current_stream()
            for turn, part in enumerate(row_blocks(len(source), 1, _BUFFER)):
                buffer, event = self.buffers[turn % 2], self.events[turn % 2]
                if turn >= 2:
                    event.synchronize()
                size = part.stop - part.start
                _copy(source[part], buffer[:size])
                place = out.data + part.start
                place.copy_from_host_async(buffer.ctypes.data, size, stream)
                event.record(stream)
            stream.synchronize()
            return out
        finally:
            self.lock.release()

    def download(self, array: Any) -> Array:
        """The copy of a contiguous array of the GPU on the host."""
        if not self.lock.acquire(blocking=False):
            return np.asarray(array.get())
        try:
            out = np.empty(array.shape, array.dtype)
            target, stream = _bytes(out), self.device.xp.cuda.get_current_stream()
            parts = row_blocks(len(target), 1, _BUFFER)
            for turn in range(len(parts) + 1):
                if turn < len(parts):
                    place, buffer = array.data + parts[turn].start, self.buffers[turn % 2]
                    size = parts[turn].stop - parts[turn].start
                    place.copy_to_host_async(buffer.ctypes.data, size, stream)
                    self.events[turn % 2].record(stream)
                if turn:
                    before = turn - 1
                    self.events[before % 2].synchronize()
                    part = target[parts[before]]
                    _copy(self.buffers[before % 2][: len(part)], part)
            return out
        finally:
            self.lock.release()


def _bytes(array: Array) -> Array:
    """The memory of a contiguous array."""
    return array.reshape(-1).view(np.uint8)


def _copy(source: Any, target: Any) -> None:
    """Copy bytes by several threads."""

    def copy(part: slice) -> None:
        target[part] = source[part]

    map_threads(copy, row_blocks(len(source), 1, _PIECE))
