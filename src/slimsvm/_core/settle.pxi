# Problems whose kernel matrix is in memory, alone or along a path of folds and values of C.

cdef int64_t settle_one(Py_ssize_t size, const Settling *p, Room *room, double *gap, double *level) noexcept nogil:
    return build.settle_float(p, room, gap, level) if size == sizeof(float) else build.settle_double(p, room, gap, level)


cdef class KernelCopy:
    """Work space for problems of at most `rows` rows, and kernel values among some of them in the memory of `block`.

    They stay there for the next problem, which must have the same kernel matrix and rows, until `clear`.
    """

    cdef Room room
    cdef char *memory
    cdef readonly Py_ssize_t rows, size
    cdef unsigned char[::1] block

    def __cinit__(self, Py_ssize_t rows, block):
        cdef Py_ssize_t k
        if rows < 1 or block.size < 1 or block.itemsize not in (sizeof(float), sizeof(double)):
            raise ValueError(f"a copy of {block.size} kernel values of {block.itemsize} bytes among {rows} rows")
        self.rows, self.size, self.block = rows, block.itemsize, block.view("uint8")
        self.memory = <char *>malloc(rows * (sizeof(void *) + 4 * sizeof(ptrdiff_t) + 3 * sizeof(double) + 5 * self.size))
        if self.memory == NULL:
            raise MemoryError
        self.room.cap = <double *>self.memory
        self.room.alpha, self.room.change = self.room.cap + rows, self.room.cap + 2 * rows
        self.room.row = <const void **>(self.room.cap + 3 * rows)
        self.room.near = <ptrdiff_t *>(self.room.row + rows)
        self.room.place, self.room.column = self.room.near + rows, self.room.near + 2 * rows
        self.room.slot = self.room.near + 3 * rows
        self.room.work = self.room.slot + rows
        self.room.held, self.room.needed, self.room.block = 0, 0, &self.block[0]
        self.room.most = min(<Py_ssize_t>sqrt(block.size), rows)
        for k in range(rows):
            self.room.slot[k] = -1

    def __dealloc__(self):
        free(self.memory)

    def clear(self):
        """Forget the kernel values."""
        self.room.needed = 0
        build.trim(&self.room)


cdef class Ranges:
    """The lines and columns of a kernel matrix that the rows of a problem have: `counts` of them from each of `starts` on."""

    cdef ptrdiff_t *line
    cdef readonly Py_ssize_t rows, most
    cdef const Py_ssize_t[::1] starts, counts

    def __cinit__(self, const Py_ssize_t[::1] starts, const Py_ssize_t[::1] counts):
        cdef Py_ssize_t k, t
        same(starts.shape[0], counts.shape[0])
        self.starts, self.counts, self.rows, self.most = starts, counts, 0, 0
        for k in range(starts.shape[0]):
            if starts[k] < 0 or counts[k] < 0:
                raise IndexError(f"{counts[k]} rows from {starts[k]} on")
            self.rows += counts[k]
            self.most = max(self.most, starts[k] + counts[k])
        self.line = <ptrdiff_t *>malloc(max(self.rows, 1) * sizeof(ptrdiff_t))
        if self.line == NULL:
            raise MemoryError
        self.rows = 0
        for k in range(starts.shape[0]):
            for t in range(counts[k]):
                self.line[self.rows] = starts[k] + t
                self.rows += 1

    def __dealloc__(self):
        free(self.line)


cdef Settling problem(const real[:, :] K, Ranges ranges, const double[::1] linear, const double[::1] y, KernelCopy copy, double tol,
                      int64_t max_steps) except *:
    """A problem without its box and its solution."""
    cdef Py_ssize_t w = ranges.rows
    if ranges.most > min(K.shape[0], K.shape[1]):
        raise IndexError(f"row {ranges.most} of {min(K.shape[0], K.shape[1])}")
    same(linear.shape[0], w)
    same(y.shape[0], w)
    same(K.strides[1], sizeof(real))
    same(copy.size, sizeof(real))
    if w > copy.rows:
        raise ValueError(f"a copy for {copy.rows} rows for a problem of {w}")
    return Settling(w, K.strides[0] // <Py_ssize_t>sizeof(real), ranges.starts.shape[0], ranges.line,
                    <const ptrdiff_t *>&ranges.starts[0], <const ptrdiff_t *>&ranges.counts[0], &K[0, 0], &linear[0], &y[0], NULL,
                    NULL, NULL, tol, max_steps)


def settle(const real[:, :] K, Ranges ranges, const double[::1] linear, const double[::1] y, const double[::1] cap,
           double[::1] alpha, double[::1] f, double tol, int64_t max_steps, KernelCopy copy):
    """Pair steps until the largest violation of all rows, with f summed up in double, is within `tol`.

    `f` is K (y alpha) at the start and at the end; alpha and f change in place. Rows with a cap of 0 keep their alpha, and
    get their f. The lines of K are contiguous. Each round takes the rows that are free or near the margin, with their kernel
    values in the copy if there is room, since steps pass over all of them. Returns the number of steps, the largest violation
    left, and the bias. It ends early after `max_steps`, or where steps make no progress any more.
    """
    cdef Py_ssize_t w = ranges.rows
    cdef double gap, level
    cdef int64_t steps
    for size in (cap.shape[0], alpha.shape[0], f.shape[0]):
        same(size, w)
    if w == 0:
        return 0, 0.0, 0.0
    cdef Settling p = problem(K, ranges, linear, y, copy, tol, max_steps)
    p.cap, p.alpha, p.f = &cap[0], &alpha[0], &f[0]
    with nogil:
        steps = settle_one(sizeof(real), &p, &copy.room, &gap, &level)
    return steps, gap, level


def advance(const double[::1] linear, const double[::1] y, const double[:, ::1] cap, double t, const double[:, ::1] alpha,
            const double[:, ::1] f, const double[:, ::1] earlier, const double[:, ::1] earlier_f, double[:, ::1] next_alpha,
            double[:, ::1] next_f, double[:, ::1] change):
    """Move the solutions of all folds along the lines from `earlier` ones, times t, into the boxes of `cap` (settle.c)."""
    cdef Py_ssize_t folds = alpha.shape[0], n = alpha.shape[1], fold
    cdef Settling p
    same(linear.shape[0], n)
    same(y.shape[0], n)
    for given in (cap.shape[0], f.shape[0], earlier.shape[0], earlier_f.shape[0], next_alpha.shape[0], next_f.shape[0],
                  change.shape[0]):
        same(given, folds)
    for given in (cap.shape[1], f.shape[1], earlier.shape[1], earlier_f.shape[1], next_alpha.shape[1], next_f.shape[1],
                  change.shape[1]):
        same(given, n)
    if n == 0:
        return
    with nogil:
        for fold in range(folds):
            p = Settling(n, 0, 0, NULL, NULL, NULL, NULL, &linear[0], &y[0], &cap[fold, 0], <double *>&alpha[fold, 0],
                         <double *>&f[fold, 0], 0, 0)
            build.advance(&p, &earlier[fold, 0], &earlier_f[fold, 0], t, &next_alpha[fold, 0], &next_f[fold, 0],
                          &change[fold, 0])


def settle_path(const real[:, :] K, Ranges ranges, const double[::1] linear, const double[::1] y,
                const double[:, ::1] weights, const double[::1] Cs, Py_ssize_t first, double tol, int64_t max_steps,
                double[:, :, ::1] alpha, double[:, :, ::1] f, double[:, ::1] bias, double[:, ::1] gap, KernelCopy copy):
    """Solve a problem for rising Cs, from the number `first` on, and all folds, whose caps are C times `weights`.

    alpha and f, (Cs, folds, rows), hold the solutions before the first, from which the others start; if there is none, the
    first solution starts from 0. f is summed up anew whenever C has doubled, since rounding grows with C too. Returns the
    number of steps.
    """
    cdef Py_ssize_t folds = weights.shape[0], w = weights.shape[1], k, c, fold, n = Cs.shape[0]
    for given, wanted in ((ranges.rows, w), (alpha.shape[0], n), (alpha.shape[1], folds), (alpha.shape[2], w),
                          (f.shape[0], n), (f.shape[1], folds), (f.shape[2], w), (bias.shape[0], n), (bias.shape[1], folds),
                          (gap.shape[0], n), (gap.shape[1], folds)):
        same(given, wanted)
    if not 0 <= first <= n:
        raise IndexError(f"value {first} of {n}")
    if w == 0 or folds == 0:
        return 0
    cdef Settling p = problem(K, ranges, linear, y, copy, tol, max_steps)
    cdef int64_t steps = 0
    cdef double *zeros = <double *>calloc(3 * w, sizeof(double))
    cdef double *cap = zeros + w
    cdef double *change = cap + w
    cdef double *own
    cdef double *own_f
    cdef bint anew
    if zeros == NULL:
        raise MemoryError
    p.cap = cap
    with nogil:
        for c in range(first, n):
            build.trim(&copy.room)
            anew = c > 0 and floor(log(Cs[c]) / log(2)) > floor(log(Cs[c - 1]) / log(2))
            for fold in range(folds):
                for k in range(w):
                    cap[k] = Cs[c] * weights[fold, k]
                own, own_f = &alpha[c, fold, 0], &f[c, fold, 0]
                if c == 0:
                    memset(own, 0, w * sizeof(double))
                    memset(own_f, 0, w * sizeof(double))
                else:
                    p.alpha, p.f = &alpha[c - 1, fold, 0], &f[c - 1, fold, 0]
                    if c == 1:
                        build.advance(&p, zeros, zeros, Cs[c] / Cs[c - 1] - 1, own, own_f, change)
                    else:
                        build.advance(&p, &alpha[c - 2, fold, 0], &f[c - 2, fold, 0],
                                      (Cs[c] - Cs[c - 1]) / (Cs[c - 1] - Cs[c - 2]), own, own_f, change)
                p.alpha, p.f = own, own_f
                if c:
                    if anew:
                        for k in range(w):
                            own_f[k], change[k] = 0, y[k] * own[k]
                    if sizeof(real) == sizeof(float):
                        build.moved_float(&p, &copy.room, change)
                    else:
                        build.moved_double(&p, &copy.room, change)
                steps += settle_one(sizeof(real), &p, &copy.room, &gap[c, fold], &bias[c, fold])
    free(zeros)
    return steps


def gathered(const real[:, :] K, const Py_ssize_t[::1] rows, const Py_ssize_t[::1] columns, real[:, :] out):
    """out <- K[rows][:, columns]."""
    cdef Py_ssize_t i, j, n = rows.shape[0], m = columns.shape[0]
    cdef const real *line
    cdef real *target
    same(out.shape[0], n)
    same(out.shape[1], m)
    same(out.strides[1], sizeof(real))
    for i in range(n):
        if not 0 <= rows[i] < K.shape[0]:
            raise IndexError(f"row {rows[i]} of {K.shape[0]}")
    for j in range(m):
        if not 0 <= columns[j] < K.shape[1]:
            raise IndexError(f"column {columns[j]} of {K.shape[1]}")
    if n == 0 or m == 0:
        return
    with nogil:
        for i in range(n):
            line, target = &K[rows[i], 0], &out[i, 0]
            for j in range(m):
                target[j] = line[columns[j]]
