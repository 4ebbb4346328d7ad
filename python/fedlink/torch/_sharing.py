"""Objects in shared memory: their large arrays are there once for any number of processes."""

from __future__ import annotations

import io
import pickle
from typing import Any

import torch

#: Arrays begin at multiples of this many bytes, as those that PyTorch allocates.
ALIGNMENT = 64


class _Pickler(pickle.Pickler):
    """Tensors as NumPy arrays, and the content of arrays apart from the stream of bytes, if ``buffers`` is
    there for it."""

    def __init__(self, file: io.BytesIO, buffers: list[pickle.PickleBuffer] | None) -> None:
        # `append` returns None, and a true answer would keep the content in the stream.
        super().__init__(file, protocol=5, buffer_callback=None if buffers is None else buffers.append)

    def reducer_override(self, value: Any) -> Any:
        plain = type(value) is torch.Tensor and value.device.type == "cpu" and not value.requires_grad
        if not plain or value.layout != torch.strided or not value.is_contiguous():
            return NotImplemented
        try:
            return torch.from_numpy, (value.numpy(),)
        except TypeError:  # A type that NumPy does not have.
            return NotImplemented


def to_bytes(value: Any) -> bytes:
    """``value`` as bytes that ``pickle.loads`` reads, tensors included. (PyTorch's own way through a pipe
    makes a segment of shared memory for each tensor, however small.)"""
    stream = io.BytesIO()
    _Pickler(stream, None).dump(value)
    return stream.getvalue()


class Packed:
    """An object as bytes and one segment of shared memory."""

    def __init__(self, value: Any) -> None:
        stream, buffers = io.BytesIO(), list[pickle.PickleBuffer]()
        _Pickler(stream, buffers).dump(value)
        contents = [buffer.raw() for buffer in buffers]
        self._stream, self._spans = stream.getvalue(), list[tuple[int, int]]()
        end = 0
        for content in contents:
            begin = -(-end // ALIGNMENT) * ALIGNMENT
            end = begin + content.nbytes
            self._spans.append((begin, end))
        self._segment = shared(end, torch.uint8)
        memory = memoryview(self._segment.numpy())
        for (begin, end), content in zip(self._spans, contents):
            memory[begin:end] = content

    def unpack(self) -> Any:
        """The object; its arrays are those of the segment."""
        memory = memoryview(self._segment.numpy())
        return pickle.loads(self._stream, buffers=[memory[begin:end] for begin, end in self._spans])


def shared(count: int, kind: torch.dtype) -> torch.Tensor:
    """This many numbers in shared memory. Under Linux its name is gone once it is open, so that nothing of it
    is left behind, in whatever way the processes end."""
    try:
        numbers: torch.Tensor = torch.empty(count, dtype=kind).share_memory_()
        return numbers
    except RuntimeError as error:
        size = count * torch.empty((), dtype=kind).element_size() / 1e6
        raise MemoryError(
            f"workers: there are no {size:.0f} MB of shared memory (/dev/shm; in a container it is often "
            f"64 MB: start it with --shm-size); workers=0 needs none ({error})"
        ) from error
