/* One problem whose kernel values are in memory, for one floating-point type: include with REAL, SMO and SETTLE defined. */

/* f += the kernel values of some rows, each times a number. */
static void JOIN(SETTLE, _add)(const Settling *p, Room *r, ptrdiff_t count)
{
    const REAL *const *row = (const REAL *const *)r->row;
    REAL *weight = r->work;
    for (ptrdiff_t s = 0; s < count; s++)
        weight[s] = (REAL)r->change[s];
    double *f = p->f;
    for (ptrdiff_t range = 0; range < p->ranges; f += p->counts[range++]) {
        for (ptrdiff_t from = 0; from < p->counts[range]; from += CHUNK) {
            const ptrdiff_t rest = p->counts[range] - from, size = rest < CHUNK ? rest : CHUNK;
            const ptrdiff_t at = p->starts[range] + from;
            double sum[CHUNK];
            memset(sum, 0, sizeof sum);
            ptrdiff_t s = 0;
            for (; s + 4 <= count; s += 4) {
                const REAL *restrict a = row[s] + at, *restrict b = row[s + 1] + at, *restrict c = row[s + 2] + at,
                           *restrict d = row[s + 3] + at;
                for (ptrdiff_t k = 0; k < size; k++)
                    sum[k] += weight[s] * a[k] + weight[s + 1] * b[k] + weight[s + 2] * c[k] + weight[s + 3] * d[k];
            }
            for (; s < count; s++)
                for (ptrdiff_t k = 0; k < size; k++)
                    sum[k] += weight[s] * row[s][at + k];
            for (ptrdiff_t k = 0; k < size; k++)
                f[from + k] += sum[k];
        }
    }
}

/* f += K y change, for the rows whose change is not 0. */
void JOIN(SETTLE, _moved)(const Settling *p, Room *r, const double *change)
{
    ptrdiff_t count = 0;
    for (ptrdiff_t k = 0; k < p->rows; k++)
        if (change[k] != 0) {
            r->row[count] = (const REAL *)p->K + p->line[k] * p->stride;
            r->change[count++] = change[k];
        }
    JOIN(SETTLE, _add)(p, r, count);
}

/* Hold the kernel values among some rows, at most `most`, in the block, with those that are there if there is room. */
static void JOIN(SETTLE, _hold)(const Settling *p, Room *r, ptrdiff_t count)
{
    REAL *block = r->block;
    ptrdiff_t more = 0, from = r->held;
    for (ptrdiff_t k = 0; k < count; k++)
        more += r->slot[r->near[k]] < 0;
    r->needed = count > r->needed ? count : r->needed;
    if (from + more > r->most) {
        drop(r);
        from = 0;
    }
    for (ptrdiff_t k = 0; k < count; k++)
        if (r->slot[r->near[k]] < 0) {
            r->slot[r->near[k]] = r->held;
            r->column[r->held] = p->line[r->near[k]];
            r->place[r->held++] = r->near[k];
        }
    for (ptrdiff_t k = 0; k < r->held; k++) {
        const REAL *line = (const REAL *)p->K + r->column[k] * p->stride;
        REAL *to = block + k * r->most;
        for (ptrdiff_t t = k < from ? from : 0; t < r->held; t++)
            to[t] = line[r->column[t]];
    }
}

/* Pair steps on the rows that are held, at most `most`, or on all, until their violation is at most `goal`; f of all rows
 * follows. */
static int64_t JOIN(SETTLE, _part)(const Settling *p, Room *r, int all, double goal, int64_t most)
{
    const REAL *K = p->K, *block = r->block;
    const REAL **row = (const REAL **)r->row;
    REAL *diag = r->work, *signs = diag + p->rows, *v = signs + p->rows, *bounds = v + p->rows;
    const ptrdiff_t m = all ? p->rows : r->held;
    double left;
    for (ptrdiff_t k = 0; k < m; k++) {
        const ptrdiff_t j = all ? k : r->place[k];
        const REAL *line = K + p->line[j] * p->stride;
        diag[k] = line[p->line[j]];
        signs[k] = (REAL)p->y[j];
        v[k] = (REAL)(p->linear[j] - p->f[j]);
        r->cap[k] = p->cap[j];
        r->alpha[k] = p->alpha[j];
        row[k] = all ? line + p->starts[0] : block + k * r->most;
    }
    int64_t steps = BUILD(SMO)(row, NULL, NULL, diag, m, signs, r->cap, r->alpha, v, bounds, goal, most, m, INFINITY, &left);
    ptrdiff_t count = 0;
    for (ptrdiff_t k = 0; k < m; k++) {
        const ptrdiff_t j = all ? k : r->place[k];
        const double cap = p->cap[j], a = at_bound(r->alpha[k], cap);
        if (a != p->alpha[j]) {
            row[count] = K + p->line[j] * p->stride;
            r->change[count++] = p->y[j] * (a - p->alpha[j]);
            p->alpha[j] = a;
        }
    }
    JOIN(SETTLE, _add)(p, r, count);
    return steps;
}

/* Pair steps until the violation of all rows is within `tol`, with f summed up in double. Returns their number.
 *
 * Each round takes the rows that are free or near the margin, in a copy of their kernel values if they are few, since steps
 * pass over all of them. It ends early after `max_steps`, or where steps make no progress. */
int64_t SETTLE(const Settling *p, Room *r, double *gap, double *bias)
{
    double best = INFINITY;
    int64_t steps = 0;
    for (int idle = 0;;) {
        *gap = violation(p, bias);
        idle = *gap < 0.9 * best ? 0 : idle + 1;
        best = *gap < best ? *gap : best;
        if (!(*gap > p->tol) || steps >= p->max_steps || idle > PATIENCE * (1 + p->rows / r->most))
            return steps;
        ptrdiff_t count = near_margin(p, r->near, *bias, -REACH * *gap);
        const int all = p->ranges == 1 && (count > FEW * p->rows || count > r->most);
        if (!all) {
            if (count > r->most)
                count = worst(p, r->near, *gap, r->most);
            JOIN(SETTLE, _hold)(p, r, count);
        }
        const int64_t most = 20000 + 4 * p->rows, left = p->max_steps - steps;
        const double goal = CLOSE * *gap > p->tol / 2 ? CLOSE * *gap : p->tol / 2;
        steps += JOIN(SETTLE, _part)(p, r, all, goal, most < left ? most : left);
    }
}
