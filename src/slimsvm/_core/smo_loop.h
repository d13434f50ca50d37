/* The inner SMO loop for one floating-point type: include with REAL, QUOTIENT and SMO defined.
 *
 *   min 1/2 a'Qa - 1'a,  0 <= a_k <= cap_k,  y'a constant,   Q_kl = y_k y_l K_kl
 *
 * on w rows. row[k] is row k of K, or NULL until `evaluate` is asked for it, which happens when a step first needs it.
 * v_k = y_k - f_k is minus y times the gradient. A pair (i, j) violates the optimality
 * conditions when a_i y_i can grow, a_j y_j can shrink and v_i > v_j; i is the worst, j the one with the largest
 * gain (v_i - v_j)^2 / (K_ii + K_jj - 2 K_ij) (Fan, Chen & Lin 2005, WSS 2).
 *
 * The loop keeps v twice, up_k = v_k where a_k y_k can grow, else -infinity, and down_k = v_k where it can shrink, else
 * infinity: a step then passes over 4 arrays and its two kernel rows. Maxima are found by chunks, which vectorises, and their
 * places are looked up in one chunk.
 *
 * The sum of a may have a limit, `room` above what it is. Rows 0 .. split-1 then have y = +1 and the others y = -1, each
 * part with maxima of its own: at the limit only pairs that keep or lower the sum may move (as in nu-SVM), which are a j
 * of y = +1 with any i, and a j of y = -1 with an i of y = -1. Without a limit, room is infinite and split is w.
 */

/* The place of a score in a chunk; -1 if it is not there, which happens only if something is not a number. */
static ptrdiff_t JOIN(SMO, _place)(const REAL *score, ptrdiff_t from, ptrdiff_t w, REAL best)
{
    int32_t size = (int32_t)(w - from < CHUNK ? w - from : CHUNK), at = size;
#pragma omp simd reduction(min : at)
    for (int32_t k = 0; k < size; k++) {
        int32_t found = score[from + k] == best ? k : size;
        at = found < at ? found : at;
    }
    return at < size ? from + at : -1;
}

/* up and down -= step (K_i - K_j). Returns the largest up, with its place, and the smallest down. */
static REAL JOIN(SMO, _update)(REAL *restrict up, REAL *restrict down, const REAL *restrict Ki, const REAL *restrict Kj,
                               REAL step, ptrdiff_t w, REAL *lowest, ptrdiff_t *at)
{
    REAL best = -INFINITY, low = INFINITY;
    ptrdiff_t from = 0;
    for (ptrdiff_t c = 0; c < w; c += CHUNK) {
        ptrdiff_t to = c + CHUNK < w ? c + CHUNK : w;
        REAL m = -INFINITY, l = INFINITY;
#pragma omp simd reduction(max : m) reduction(min : l)
        for (ptrdiff_t k = c; k < to; k++) {
            REAL change = step * (Ki[k] - Kj[k]);
            REAL u = up[k] - change, d = down[k] - change;
            up[k] = u;
            down[k] = d;
            m = u > m ? u : m;
            l = d < l ? d : l;
        }
        from = m > best ? c : from;
        best = m > best ? m : best;
        low = l < low ? l : low;
    }
    *lowest = low;
    *at = JOIN(SMO, _place)(up, from, w, best);
    return best;
}

static inline REAL JOIN(SMO, _gain)(REAL vi, REAL Kii, REAL down, REAL Kij, REAL Kjj)
{
    REAL d = vi - down; /* minus infinity where a_j y_j cannot shrink */
    REAL curve = Kii + Kjj - 2 * Kij;
    curve = curve > (REAL)TAU ? curve : (REAL)TAU;
    d = d > 0 ? d : 0;
    return QUOTIENT(d * d, curve);
}

/* The largest gain of a pair (i, k), with the place of k. */
static REAL JOIN(SMO, _partner)(const REAL *restrict down, const REAL *restrict Ki, const REAL *restrict diag, REAL vi,
                                REAL Kii, ptrdiff_t w, ptrdiff_t *at)
{
    REAL best = -1, score[CHUNK];
    ptrdiff_t from = 0;
    for (ptrdiff_t c = 0; c < w; c += CHUNK) {
        ptrdiff_t to = c + CHUNK < w ? c + CHUNK : w;
        REAL m = -1;
#pragma omp simd reduction(max : m)
        for (ptrdiff_t k = c; k < to; k++) {
            REAL s = JOIN(SMO, _gain)(vi, Kii, down[k], Ki[k], diag[k]);
            m = s > m ? s : m;
        }
        from = m > best ? c : from;
        best = m > best ? m : best;
    }
    ptrdiff_t size = w - from < CHUNK ? w - from : CHUNK;
    REAL m = -1;
#pragma omp simd reduction(max : m)
    for (ptrdiff_t k = 0; k < size; k++) {
        REAL s = JOIN(SMO, _gain)(vi, Kii, down[from + k], Ki[from + k], diag[from + k]);
        score[k] = s;
        m = s > m ? s : m;
    }
    ptrdiff_t place = JOIN(SMO, _place)(score, 0, size, m);
    *at = place < 0 ? -1 : from + place;
    return best;
}

/* Set up and down of a row whose v is given. */
static void JOIN(SMO, _room)(double a, double cap, REAL y, REAL v, REAL *up, REAL *down)
{
    int can_rise = a < cap, can_fall = a > 0;
    *up = (y > 0 ? can_rise : can_fall) ? v : -INFINITY;
    *down = (y > 0 ? can_fall : can_rise) ? v : INFINITY;
}

static const REAL *JOIN(SMO, _row)(const REAL **row, ptrdiff_t i, const REAL *(*evaluate)(void *, ptrdiff_t), void *source)
{
    if (!row[i])
        row[i] = evaluate(source, i);
    return row[i];
}

static int64_t JOIN(SMO, _steps)(const REAL **row, const REAL *(*evaluate)(void *, ptrdiff_t), void *source,
                                 const REAL *diag, ptrdiff_t w, const REAL *y, const double *cap, double *alpha, REAL *up,
                                 REAL *down, double tol, int64_t max_steps, ptrdiff_t split, double room, double *gap)
{
    const ptrdiff_t rest = w - split;
    const REAL *Ki = diag, *Kj = diag; /* any row will do: the first step has length 0 */
    REAL step = 0;
    for (int64_t steps = 0;; steps++) {
        REAL low, low2;
        ptrdiff_t first, second; /* i is for a j of the first part, i2 for one of the second */
        REAL high = JOIN(SMO, _update)(up, down, Ki, Kj, step, split, &low, &first);
        REAL high2 = JOIN(SMO, _update)(up + split, down + split, Ki + split, Kj + split, step, rest, &low2, &second);
        REAL highest = high >= high2 ? high : high2, highest2 = room > 0 ? highest : high2;
        *gap = (double)highest - low;
        *gap = *gap >= (double)highest2 - low2 ? *gap : (double)highest2 - low2;
        if (!(*gap > tol) || steps >= max_steps)
            return steps;
        ptrdiff_t i = high >= high2 ? first : split + second;
        ptrdiff_t i2 = room > 0 ? i : split + second;
        if (i < 0 || i2 < 0) /* not a number in K or v */
            return steps;
        Ki = JOIN(SMO, _row)(row, i, evaluate, source);
        const REAL *Ki2 = JOIN(SMO, _row)(row, i2, evaluate, source);
        ptrdiff_t j, j2;
        REAL gain = JOIN(SMO, _partner)(down, Ki, diag, highest, diag[i], split, &j);
        REAL gain2 = JOIN(SMO, _partner)(down + split, Ki2 + split, diag + split, highest2, diag[i2], rest, &j2);
        if (gain < gain2) {
            i = i2;
            Ki = Ki2;
            j = split + j2;
        }
        if (j < 0)
            return steps;
        Kj = JOIN(SMO, _row)(row, j, evaluate, source);
        REAL vi = up[i], vj = down[j];
        double curve = (double)diag[i] + diag[j] - 2.0 * Ki[j];
        double t = ((double)vi - vj) / (curve > TAU ? curve : TAU);
        double room_i = y[i] > 0 ? cap[i] - alpha[i] : alpha[i];
        double room_j = y[j] > 0 ? alpha[j] : cap[j] - alpha[j];
        double most = room_i < room_j ? room_i : room_j;
        most = y[i] > y[j] && room / 2 < most ? room / 2 : most; /* both rise */
        t = t < most ? t : most;
        alpha[i] = t == room_i ? (y[i] > 0 ? cap[i] : 0) : alpha[i] + t * y[i];
        alpha[j] = t == room_j ? (y[j] > 0 ? 0 : cap[j]) : alpha[j] - t * y[j];
        room -= t * (y[i] - y[j]);
        JOIN(SMO, _room)(alpha[i], cap[i], y[i], vi, up + i, down + i);
        JOIN(SMO, _room)(alpha[j], cap[j], y[j], vj, up + j, down + j);
        step = (REAL)t;
    }
}

/* Returns the number of pair steps; on return *gap is the largest remaining violation. v of a row whose cap is 0 does not
 * change. diag is the diagonal of K; work holds 2 w numbers. */
int64_t BUILD(SMO)(const REAL **row, const REAL *(*evaluate)(void *, ptrdiff_t), void *source, const REAL *diag,
                ptrdiff_t w, const REAL *y, const double *cap, double *alpha, REAL *v, REAL *work, double tol,
                int64_t max_steps, ptrdiff_t split, double room, double *gap)
{
    REAL *up = work, *down = work + w;
    for (ptrdiff_t k = 0; k < w; k++)
        JOIN(SMO, _room)(alpha[k], cap[k], y[k], v[k], up + k, down + k);
    int64_t steps = JOIN(SMO, _steps)(row, evaluate, source, diag, w, y, cap, alpha, up, down, tol, max_steps, split, room,
                                      gap);
    for (ptrdiff_t k = 0; k < w; k++)
        v[k] = up[k] > -INFINITY ? up[k] : down[k] < INFINITY ? down[k] : v[k];
    return steps;
}
