from collections.abc import Callable
from typing import Any

from numpy import float32, float64, floating, int32, int_, intp, uint8
from numpy.typing import NDArray

SPARSE_LANES: int
PANEL: int
OUTPUTS: int
PARTIAL_SUMS: int
OUTPUT_COLUMNS: tuple[int, ...]

def instruction_set() -> str: ...
def near_box(
    low: NDArray[float64],
    high: NDArray[float64],
    Zt: NDArray[float64],
    reach: float,
    scratch: NDArray[float64],
    found: NDArray[intp],
) -> int: ...

class Strips:
    n: int
    size: int
    turns: int
    def __init__(self, n: int, size: int, turns: int = 1) -> None: ...

class Team:
    count: int
    def __init__(self, count: int) -> None: ...
    def serve(self, number: int) -> None: ...
    def run(self, work: Callable[[], None], there: Callable[[], None], helpers: int) -> None: ...

class KernelPass:
    n: int
    count: int
    panels: int
    def __init__(
        self,
        form: tuple[int, float, float, int],
        rows: NDArray[Any] | tuple[NDArray[Any], NDArray[int32], NDArray[int32]],
        points: NDArray[Any] | list[tuple[NDArray[Any], ...]],
        count: int,
        features: int,
        a: NDArray[Any] | None = None,
        b: NDArray[Any] | None = None,
        widths: NDArray[Any] | None = None,
        narrow: bool = False,
    ) -> None: ...
    def run(
        self,
        start: int,
        stop: int,
        V: NDArray[Any] | None = None,
        out: NDArray[float64] | None = None,
        values: NDArray[Any] | None = None,
    ) -> None: ...
    def run_strips(
        self,
        strips: Strips,
        team: Team | None = None,
        helpers: int = 0,
        V: NDArray[Any] | None = None,
        out: NDArray[float64] | None = None,
        values: NDArray[Any] | None = None,
        symmetric: bool = False,
    ) -> None: ...
    def fill_rows(
        self, strips: Strips, team: Team | None, helpers: int, values: NDArray[Any], which: NDArray[intp]
    ) -> None: ...
    def add_near(
        self,
        starts: NDArray[intp],
        rows: NDArray[intp],
        low: NDArray[float64],
        high: NDArray[float64],
        placed: NDArray[float64],
        reach: float,
        points: NDArray[Any],
        V: NDArray[Any],
        out: NDArray[float64],
        first: int,
        last: int,
    ) -> None: ...

def run_together(
    passes: list[KernelPass],
    weights: list[NDArray[Any]],
    columns: list[NDArray[intp]],
    strips: Strips,
    out: NDArray[float64],
    team: Team | None = None,
    helpers: int = 0,
) -> None: ...
def panels_of_sparse(
    data: NDArray[Any],
    features: NDArray[int32],
    starts: NDArray[int32],
    out: NDArray[Any],
    first: int,
    last: int,
) -> None: ...
def convert_rows(
    X: NDArray[Any],
    centre: NDArray[float64] | None,
    floats: NDArray[float32] | None,
    doubles: NDArray[float64] | None,
    norms: NDArray[float64],
    first: int,
    last: int,
) -> None: ...
def row_squares(data: NDArray[Any], starts: NDArray[int32], norms: NDArray[float64], first: int, last: int) -> None: ...
def count_nonzeros(X: NDArray[Any], first: int, last: int, counts: NDArray[int32]) -> None: ...
def fill_sparse(
    X: NDArray[Any],
    first: int,
    last: int,
    starts: NDArray[int32],
    narrow_data: NDArray[float32] | None,
    data: NDArray[float64] | None,
    features: NDArray[int32],
) -> None: ...
def panels_of(points: NDArray[Any], out: NDArray[Any], first: int, last: int) -> None: ...
def sum_rows(
    rows: NDArray[float32],
    which: NDArray[intp],
    v: NDArray[float32],
    out: NDArray[float64],
    strip: int,
    team: Team | None = None,
    helpers: int = 0,
) -> None: ...
def smo(
    K: NDArray[floating],
    y: NDArray[floating],
    cap: NDArray[float64],
    alpha: NDArray[float64],
    v: NDArray[floating],
    tol: float,
    max_steps: int,
    room: float = ...,
) -> tuple[int, float]: ...

class KernelCopy:
    def __init__(self, rows: int, block: NDArray[floating]) -> None: ...
    def clear(self) -> None: ...

class Ranges:
    def __init__(self, starts: NDArray[intp], counts: NDArray[intp]) -> None: ...

def settle(
    K: NDArray[floating],
    ranges: Ranges,
    linear: NDArray[float64],
    y: NDArray[float64],
    cap: NDArray[float64],
    alpha: NDArray[float64],
    f: NDArray[float64],
    tol: float,
    max_steps: int,
    copy: KernelCopy,
) -> tuple[int, float, float]: ...
def advance(
    linear: NDArray[float64],
    y: NDArray[float64],
    cap: NDArray[float64],
    t: float,
    alpha: NDArray[float64],
    f: NDArray[float64],
    earlier: NDArray[float64],
    earlier_f: NDArray[float64],
    next_alpha: NDArray[float64],
    next_f: NDArray[float64],
    change: NDArray[float64],
) -> None: ...
def settle_path(
    K: NDArray[floating],
    ranges: Ranges,
    linear: NDArray[float64],
    y: NDArray[float64],
    weights: NDArray[float64],
    Cs: NDArray[float64],
    first: int,
    tol: float,
    max_steps: int,
    alpha: NDArray[float64],
    f: NDArray[float64],
    bias: NDArray[float64],
    gap: NDArray[float64],
    copy: KernelCopy,
) -> int: ...
def gathered(K: NDArray[floating], rows: NDArray[intp], columns: NDArray[intp], out: NDArray[floating]) -> None: ...
def copy_transposed(tile: NDArray[floating], out: NDArray[floating]) -> None: ...
def bounds(
    alpha: NDArray[float64],
    cap: NDArray[float64],
    y: NDArray[float64],
    v: NDArray[float64],
    grow: NDArray[float64],
    shrink: NDArray[float64],
) -> None: ...

class RbfRows:
    def __init__(self, scale: float, X: NDArray[float32], norms: NDArray[float32]) -> None: ...
    @property
    def evaluated(self) -> int: ...
    def smo(
        self,
        y: NDArray[float32],
        cap: NDArray[float64],
        alpha: NDArray[float64],
        v: NDArray[float32],
        tol: float,
        max_steps: int,
    ) -> tuple[int, float]: ...
    def add_product(self, v: NDArray[float64], out: NDArray[float64]) -> None: ...

def smo_pairs(
    own: NDArray[float64],
    across: NDArray[float64],
    others: NDArray[float64],
    sizes: NDArray[intp],
    cap: NDArray[float64],
    other_caps: NDArray[float64],
    tol: float,
    exact: float,
    max_steps: int,
    dual: NDArray[float64],
    other_dual: NDArray[float64],
    bias: NDArray[float64],
    gap: NDArray[float64],
    steps: NDArray[int_],
) -> None: ...
def rbf_pairs(
    scale: float,
    X: NDArray[float32],
    norms: NDArray[float32],
    own: NDArray[intp],
    others: NDArray[intp],
    sizes: NDArray[intp],
    cap: NDArray[float64],
    other_caps: NDArray[float64],
    tol: float,
    max_steps: int,
    dual: NDArray[float64],
    other_dual: NDArray[float64],
    bias: NDArray[float64],
    gap: NDArray[float64],
    steps: NDArray[int_],
) -> int: ...
def best_merge(
    point: int, squares: NDArray[float64], products: NDArray[float64], kernel: NDArray[float64]
) -> tuple[int, float]: ...
def expansion(
    form: int,
    gamma: float,
    coef0: float,
    degree: int,
    X: NDArray[float64],
    points: NDArray[float64],
    coef: NDArray[float64],
    bias: NDArray[float64],
    out: NDArray[float64],
    widths: NDArray[float64] | None = None,
) -> None: ...
def line_minimum(
    low: NDArray[float64],
    high: NDArray[float64],
    outputs: NDArray[float64],
    change: NDArray[float64],
    weights: NDArray[float64],
    linear: float,
    quadratic: float,
    start: float,
    precision: float,
    steps: int,
) -> float: ...
def line_moves(
    low: NDArray[float64],
    high: NDArray[float64],
    weights: NDArray[float64],
    change: NDArray[float64],
    going: NDArray[intp],
    linear: NDArray[float64],
    quadratic: NDArray[float64],
    precision: float,
    steps: int,
    outputs: NDArray[float64],
    residual: NDArray[float64],
    lengths: NDArray[float64],
    sums: NDArray[float64],
    switched: NDArray[intp],
    team: Team | None = None,
    helpers: int = 0,
) -> None: ...
def times(
    K: NDArray[Any],
    V: NDArray[Any],
    out: NDArray[float64],
    strip: int,
    team: Team | None = None,
    helpers: int = 0,
) -> None: ...
def back(
    K: NDArray[Any], W: NDArray[float64], out: NDArray[float64], team: Team | None = None, helpers: int = 0
) -> None: ...
def backward(
    K: NDArray[Any],
    rows: NDArray[Any] | tuple[NDArray[Any], NDArray[int32], NDArray[int32]],
    W: NDArray[float64],
    V: NDArray[Any],
    squares: NDArray[Any],
    pulls: NDArray[Any] | None,
    out: NDArray[float64],
    team: Team | None = None,
    helpers: int = 0,
) -> None: ...
def pair_outputs(
    K: NDArray[float64],
    against: NDArray[float64],
    counts: NDArray[intp],
    out: NDArray[float64],
    space: NDArray[float64],
) -> None: ...
def update_curvatures(
    K: NDArray[Any],
    weights: NDArray[float64],
    outputs: NDArray[intp],
    residual: NDArray[float64],
    active: NDArray[uint8],
    known: NDArray[uint8],
    values: NDArray[float64],
    lists: NDArray[intp],
    counts: NDArray[intp],
    team: Team | None = None,
    helpers: int = 0,
) -> None: ...
def factor_sums(
    values: NDArray[float64],
    outputs: NDArray[intp],
    R: NDArray[float64],
    share: float,
    more: float,
    factors: NDArray[float64],
    team: Team | None = None,
    helpers: int = 0,
) -> bool: ...
def solve_factored(
    factors: list[NDArray[float64]], right: NDArray[float64], team: Team | None = None, helpers: int = 0
) -> None: ...
