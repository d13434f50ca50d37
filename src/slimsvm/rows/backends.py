"""Array libraries behind one interface: a namespace of the array API standard, a device, and copies to and from it.

A backend is opened by the device's name. `array_api_compat` gives torch and CuPy the standard's functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np
from scipy.sparse import issparse

from ..kernels import Array, Matrix, dense
from .precision import Given
from .threads import blocks

#: numbers of a tile, and the factor by which tiles of a GPU are larger; more: more memory; fewer: an idle GPU between calls
TILE_VALUES, GPU_TILES = 1 << 24, 4
#: numbers that are sent at a time, and to CUDA, which reads one block while the host writes the next; more: more memory
#: for a copy; fewer: more calls
SENT_VALUES, STAGED_VALUES = 1 << 22, 1 << 20

FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
#: the names of types that each call needs: NumPy makes a name anew whenever it is asked for it
TYPE_NAMES = {FLOAT32: "float32", FLOAT64: "float64"}


@dataclass(frozen=True)
class Held:
    """Rows or points on a device in one precision, with their squared norms.

    `lifted` has the norms as further columns, (x, |x|^2, 1). One product of such rows with (2 z, -1, -|z|^2) gives the
    squared distances, without a pass over the tile for each of the norms.
    """

    lifted: Any  # (n, d + 2); for a precomputed kernel its rows, or the numbers of columns
    d: int
    radius: float  # the largest squared norm
    dtype: np.dtype

    @property
    def values(self) -> Any:
        """The features, (n, d)."""
        return self.lifted[:, : self.d] if self.d else self.lifted

    @property
    def norms(self) -> Any:
        """The squared norms, (n,)."""
        return self.lifted[:, self.d]

    def part(self, some: slice) -> Held:
        """Return the rows of a slice."""
        return Held(self.lifted[some, :], self.d, self.radius, self.dtype)


@dataclass(frozen=True)
class Backend:
    """Arrays of one library on one device.

    `plain_float32` is whether float32 products have float32's precision. Some devices round the factors to fewer digits if
    the user has asked for speed (TF32).
    """

    name: str
    xp: Any
    device: Any
    host: Any  # the library's name for host memory
    has_float64: bool
    plain_float32: bool
    is_gpu: bool = False
    tile_values: int = TILE_VALUES

    @property
    def sum_dtype(self) -> np.dtype:
        """The highest precision of the device."""
        return FLOAT64 if self.has_float64 else FLOAT32

    # To and from the device.

    def send(self, array: Array, dtype: np.dtype | type) -> Any:
        """Return a copy of a host array on the device."""
        if not self.is_gpu:
            return self.xp.asarray(np.array(array, dtype=dtype, order="C"), device=self.device)
        if self.is_cuda and np.size(array) <= 2 * STAGED_VALUES:
            return self._staged(np.asarray(array), np.dtype(dtype))
        own = np.ascontiguousarray(array, dtype=dtype)
        if self.is_torch and own.flags.writeable:
            import torch

            return torch.from_numpy(own).to(self.device)  # torch.asarray makes a copy on the host first
        return self.xp.asarray(own, device=self.device)

    def _staged(self, array: Array, dtype: np.dtype) -> Any:
        """Return a host array on a CUDA device, through memory that is held in place.

        The host is done when the array is written there, in the precision asked for: torch keeps that memory until the
        device has read it, and then lends it again.
        """
        import torch

        staged = torch.empty(array.shape, dtype=self._type(dtype), pin_memory=True)
        if array.flags.writeable and array.flags.c_contiguous and array.dtype in (FLOAT32, FLOAT64):
            staged.copy_(torch.from_numpy(array))  # by several threads
        else:
            staged.numpy()[...] = array  # torch does not read all kinds of memory and numbers
        return staged.to(self.device, non_blocking=True)

    def fetch(self, array: Any, dtype: np.dtype = FLOAT64) -> Array:
        """Return a copy of a device array on the host."""
        if self.is_cuda and array.numel() <= 2 * STAGED_VALUES:
            import torch

            # through memory that is held in place, and that torch lends again: the device writes it several times as fast
            staged = torch.empty(array.shape, dtype=array.dtype, pin_memory=True)
            return np.array(staged.copy_(array).numpy(), dtype=dtype)
        from array_api_compat import to_device

        return np.array(np.asarray(to_device(array, self.host)), dtype=dtype)

    def fetch_into(self, array: Any, out: Array) -> None:
        """Copy a device array to host memory, in the precision of `out`; fastest to memory of `host_memory`."""
        if self.is_torch:
            import torch

            torch.from_numpy(out).copy_(array)
        else:
            out[...] = self.fetch(array, out.dtype)

    def host_memory(self, size: int, dtype: np.dtype) -> Array:
        """Return pinned host memory, which the device reads and writes without another copy."""
        if self.is_cuda:
            import torch

            return torch.empty(size, dtype=getattr(torch, dtype.name), pin_memory=True).numpy()
        return np.empty(size, dtype)

    @property
    def is_torch(self) -> bool:
        """Whether arrays are torch's tensors."""
        return self.xp.__name__.endswith("torch")

    @property
    def is_cuda(self) -> bool:
        """Whether the device is a CUDA GPU with torch's tensors."""
        return self.is_gpu and self.is_torch and self.device.type == "cuda"

    def empty(self, shape: tuple[int, ...], dtype: np.dtype) -> Any:
        """Return memory on the device."""
        return self.xp.empty(shape, dtype=self._type(dtype), device=self.device)

    def zeros(self, shape: tuple[int, ...], dtype: np.dtype) -> Any:
        """Return zeros on the device."""
        return self.xp.zeros(shape, dtype=self._type(dtype), device=self.device)

    def cast(self, array: Any, dtype: np.dtype) -> Any:
        """Return the array in another precision."""
        return self.xp.astype(array, self._type(dtype), copy=False)

    def _type(self, dtype: np.dtype) -> Any:
        return getattr(self.xp, TYPE_NAMES.get(dtype) or dtype.name)

    def exp(self, exponents: Any, *, at_most_1: bool) -> Any:
        """Return exp of an array, in its own memory if the library can; `at_most_1` replaces positive exponents by 0."""
        if self.is_torch:
            return (exponents.clamp_(max=0.0) if at_most_1 else exponents).exp_()
        return self.xp.exp(self.xp.clip(exponents, max=0.0) if at_most_1 else exponents)

    def cholesky(self, matrix: Any) -> Any:
        """Return the lower Cholesky factor of a matrix on the device; None where it is not definite."""
        try:
            lower = self.xp.linalg.cholesky(matrix)
        except (np.linalg.LinAlgError, RuntimeError) as error:  # torch raises a subclass of RuntimeError
            if is_out_of_memory(error):
                raise
            return None
        return lower if bool(self.xp.all(self.xp.isfinite(lower))) else None  # CuPy leaves NaN

    def empty_or_none(self, shape: tuple[int, ...], dtype: np.dtype) -> Any:
        """Return memory on the device; None if there is not enough."""
        try:
            return self.empty(shape, dtype)
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            return None

    def take(self, array: Any, index: Array, axis: int = 0) -> Any:
        """Return some rows, or columns, of a device array."""
        places = self.send(index, np.int64)
        if self.is_torch:
            return array.index_select(axis, places)  # the standard's function asks for negative numbers first
        return self.xp.take(array, places, axis=axis)

    def permutation(self, count: int, rng: np.random.Generator) -> Any:
        """Return the numbers below `count` in random order; drawn by the GPU if its library can."""
        if not (self.is_torch and self.is_gpu):
            return self.send(rng.permutation(count), np.int64)
        import torch

        drawn = torch.Generator(device=self.device).manual_seed(int(rng.integers(2**62)))
        return torch.randperm(count, generator=drawn, device=self.device)

    # Rows.

    def upload(self, given: Given, dtype: np.dtype, centre: Array | None) -> Held:
        """Return dense rows on the device, relative to the centre, sent a block at a time.

        Rows travel in the precision that they will have. That rounds features before the centre is taken off, which adds
        no more than `rounding_error` allows unless the centre is further out than all rows are from it. Rows of such a
        centre are sent again, as they are.
        """
        held, rounded = self._uploaded(given, dtype, centre, dtype), dtype == FLOAT32 != given.X.dtype
        if centre is None or not rounded or not self.has_float64 or float(centre @ centre) <= held.radius:
            return held
        return self._uploaded(given, dtype, centre, FLOAT64)

    def _uploaded(self, given: Given, dtype: np.dtype, centre: Array | None, sent: np.dtype) -> Held:
        """Return rows on the device; `sent` is the precision in which they travel."""
        placed, most = self.placing(centre, sent), STAGED_VALUES if self.is_cuda else SENT_VALUES
        parts = ((some, placed(rows)) for some, rows in _sent_blocks(given, most))
        return self._lifted(parts, given.n, given.d, dtype)

    def placing(self, centre: Array | None, sent: np.dtype) -> Callable[[Any], Any]:
        """Return a function that brings rows of the host or of the device into coordinates relative to the centre, there.

        Differences have the device's highest precision; without float64 they are taken on the host. `sent` is the
        precision in which float64 rows travel.
        """
        middle = None if centre is None else self.send(centre[None], self.sum_dtype)

        def placed(rows: Any) -> Any:
            if isinstance(rows, np.ndarray) or issparse(rows):
                rows = dense(rows)
                if middle is not None and not self.has_float64:
                    return self.send(rows - centre, FLOAT32)
                rows = self.send(rows, FLOAT32 if rows.dtype == FLOAT32 or not self.has_float64 else sent)
            there = rows if self.is_torch else self.cast(rows, self.sum_dtype)  # torch's differences have it by themselves
            with np.errstate(invalid="ignore"):  # the caller checks the largest norm
                return there if middle is None else there - middle

        return placed

    def _lifted(self, parts: Iterator[tuple[slice, Any]], n: int, d: int, dtype: np.dtype) -> Held:
        """Return rows with the norms of their values, from blocks in the device's highest precision."""
        lifted, largest = self.empty((n, d + 2), dtype), [self.zeros((), self.sum_dtype)]
        for some, rows in parts:
            largest.append(self.lift(rows, lifted[some, :], dtype))
        return Held(lifted, d, self.largest(largest), dtype)

    def lift(self, rows: Any, lifted: Any, dtype: np.dtype) -> Any:
        """Write rows and the norms of their values into memory of d + 2 columns; return the largest norm, on the device."""
        n, d = rows.shape
        with np.errstate(over="ignore", invalid="ignore"):  # the caller checks the largest norm
            lifted[:, :d] = rows if self.is_torch else self.cast(rows, dtype)  # torch converts while it writes
            values = lifted[:, :d]
            norms = self.xp.sum(values * values, axis=1, dtype=self._type(self.sum_dtype))
            lifted[:, d] = norms if self.is_torch else self.cast(norms, dtype)
            lifted[:, d + 1] = 1.0
            return self.xp.max(norms) if n else self.zeros((), self.sum_dtype)

    def largest(self, numbers: list[Any]) -> float:
        """Return the largest of several numbers on the device: the one time that the host waits for it."""
        return float(self.xp.max(self.xp.stack(numbers)))

    def points(self, placed: Matrix, dtype: np.dtype) -> Held:
        """Return points on the device, given relative to the centre."""
        return self.upload(Given(placed), dtype, None)

    def columns(self, numbers: Array) -> Held:
        """Return points of a precomputed kernel, given as column numbers."""
        return Held(self.send(np.ravel(numbers), np.int64), 0, 0.0, FLOAT64)

    def subset(self, rows: Held, index: Array) -> Held:
        return Held(self.take(rows.lifted, index), rows.d, rows.radius, rows.dtype)

    def converted(self, rows: Held, dtype: np.dtype) -> Held:
        """Return rows in another precision, with the norms of their values."""
        return rows if rows.dtype == dtype else self.with_norms(rows.values, dtype)

    def with_norms(self, values: Any, dtype: np.dtype, centre: Array | None = None) -> Held:
        """Return rows that are on the device, relative to a centre, with the norms of their values."""
        (n, d), placed = values.shape, self.placing(centre, self.sum_dtype)
        parts = ((some, placed(values[some, :])) for some in blocks(n, max(SENT_VALUES // (d + 1), 1)))
        return self._lifted(parts, n, d, dtype)

    # Tiles.

    def tiled(self, count: int, width: int, work: Callable[[slice], None], most: int = TILE_VALUES) -> None:
        """Call work(some) for slices that cover range(count), in tiles of about `tile_values` numbers, `width` an item.

        A tile for which the device has no memory is halved and tried again, so `work` must store its result at its end.
        """
        values = self.tile_values * (GPU_TILES if self.is_gpu else 1)
        size = max(min(values // (width + 1), most), 1)
        start = 0
        while start < count:
            some = slice(start, min(start + size, count))
            if self._done(work, some):
                start = some.stop
            else:
                size = max((some.stop - some.start) // 2, 1)

    def _done(self, work: Callable[[slice], None], some: slice) -> bool:
        """Do the work; return False if the memory is not enough."""
        try:
            work(some)
        except (MemoryError, RuntimeError) as error:  # torch raises RuntimeError, CuPy MemoryError
            if not is_out_of_memory(error) or some.stop - some.start <= 1:
                raise
            return False
        return True

    def needs_float64(self, reason: str) -> None:
        """Raise ValueError where the device has no float64."""
        if not self.has_float64:
            raise ValueError(
                f"device {self.name!r} has no float64, and {reason}; scale the features to norms of about 1, or use "
                "device='cpu' or 'cuda'"
            )


def _sent_blocks(given: Given, most: int) -> Iterator[tuple[slice, Matrix]]:
    """Yield blocks of rows of at most this many numbers."""
    for some in blocks(given.n, max(most // (given.d + 1), 1)):
        yield some, given.X[some] if given.index is None else given.X[given.index[some]]


def is_out_of_memory(error: Exception) -> bool:
    """Return whether an error says that the device's memory is not enough."""
    return isinstance(error, MemoryError) or "out of memory" in str(error).lower()


def _backend(name: str, xp: Any, device: Any, host: Any, *, is_gpu: bool = False) -> Backend:
    has_float64 = "float64" in xp.__array_namespace_info__().dtypes(device=device, kind="real floating")
    return Backend(name, xp, device, host, has_float64, _keeps_float32(xp, device), is_gpu)


def _keeps_float32(xp: Any, device: Any) -> bool:
    """Return whether a product of float32 matrices tells 1 + 2^-12 from 1; tried once for each setting of the library."""
    return _tells(xp, device) if (setting := _product_setting(xp)) is None else _tells_under(xp, device, setting)


def _product_setting(xp: Any) -> tuple[str, str] | None:
    """Return torch's settings of float32 products on CUDA devices; None for versions and libraries without them."""
    if not xp.__name__.endswith("torch"):
        return None
    import torch

    own, all_backends = (getattr(each, "fp32_precision", None) for each in (torch.backends.cuda.matmul, torch.backends))
    return None if own is None or all_backends is None else (own, all_backends)


@lru_cache
def _tells_under(xp: Any, device: Any, setting: tuple[str, str]) -> bool:  # noqa: ARG001
    return _tells(xp, device)


def _tells(xp: Any, device: Any) -> bool:
    A = xp.full((64, 64), 1 + 2.0**-12, dtype=xp.float32, device=device)
    return abs(float((A @ A)[0, 0]) / 64 - (1 + 2.0**-12) ** 2) < 1e-6


def open_torch(device: str) -> Backend:
    """Return torch on "cuda", "cuda:1", "mps" or, as "torch:name", any device of torch."""
    torch = _needed("torch", device, "pip install 'slimsvm[gpu]'")
    xp = _needed("array_api_compat.torch", device, "pip install 'slimsvm[gpu]'")
    where = device.removeprefix("torch:").removeprefix("torch") or "cpu"
    kind, _, number = where.partition(":")
    if kind == "cuda":
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if not count:
            raise ValueError(
                f"device={device!r}: torch {torch.__version__} sees no CUDA GPU here; check the driver and that torch is "
                "built for CUDA, or use device='cpu'"
            )
        if number and not (number.isdigit() and int(number) < count):
            raise ValueError(f"device={device!r}: there are {count} CUDA GPUs, 'cuda:0' to 'cuda:{count - 1}'")
    elif kind == "mps" and not torch.backends.mps.is_available():
        raise ValueError(f"device={device!r}: torch {torch.__version__} sees no Apple GPU here; use device='cpu'")
    try:
        place = torch.device(where)
    except RuntimeError as error:
        raise ValueError(f"unknown device {device!r}: torch says {str(error).splitlines()[0]}") from error
    return _backend(device, xp, place, "cpu", is_gpu=place.type != "cpu")


def open_cupy(device: str) -> Backend:
    """Return CuPy on its current GPU, or on the one with a number: "cupy:1"."""
    how = "pip install cupy-cuda12x array-api-compat"
    cupy = _needed("cupy", device, how)
    xp = _needed("array_api_compat.cupy", device, how)
    number = device.partition(":")[2]
    return _backend(device, xp, cupy.cuda.Device(int(number) if number else None), "cpu", is_gpu=True)


def open_strict(device: str) -> Backend:
    """Return array_api_strict on a device of its own, whose arrays NumPy cannot read: for tests."""
    xp = _needed("array_api_strict", device, "pip install array-api-strict array-api-compat")
    return _backend(device, xp, xp.Device(device.partition(":")[2] or "device1"), xp.Device("CPU_DEVICE"))


def _needed(module: str, device: str, how: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ImportError(f"device={device!r} needs {package}, which is not installed: {how}") from error


def has_torch_device(kind: str) -> bool:
    """Return whether torch is installed and has a GPU of that kind, "cuda" or "mps"."""
    try:
        open_torch(kind)
    except (ImportError, ValueError):
        return False
    return True
