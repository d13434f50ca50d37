/* The inner SMO loop for one floating-point type: include with REAL and SMO defined.
 *
 *   min 1/2 a'Qa - 1'a,  0 <= a_k <= cap_k,  y'a constant,   Q_kl = y_k y_l K_kl
 *
 * on w rows. row[k] is row k of K, or NULL until `evaluate` is asked for it, which happens when a step first needs it.
 * v_k = y_k - f_k is minus y times the gradient. A pair (i, j) violates the optimality
 * conditions when a_i y_i can grow, a_j y_j can shrink and v_i > v_j; i is the worst, j the one with the largest
 * gain (v_i - v_j)^2 / (K_ii + K_jj - 2 K_ij) (Fan, Chen & Lin 2005, WSS 2). Maxima are kept per chunk so that
 * the passes vectorise and the index is found in one chunk.
 *
 * The sum of a may have a limit, `room` above what it is. Rows 0 .. split-1 then have y = +1 and the others y = -1, each
 * part with maxima of its own: at the limit only pairs that keep or lower the sum may move (as in nu-SVM), which are a j
 * of y = +1 with any i, and a j of y = -1 with an i of y = -1. Without a limit, room is infinite and split is w.
 */

static ptrdiff_t JOIN(SMO, _argmax)(const REAL *score, const REAL *chunk_max, ptrdiff_t w, REAL best)
{
    for (ptrdiff_t c = 0; c * CHUNK < w; c++)
        if (chunk_max[c] == best)
            for (ptrdiff_t k = c * CHUNK; k < w; k++)
                if (score[k] == best)
                    return k;
    return -1;
}

/* v -= step (K_i - K_j); score_k = v_k where a_k y_k can grow. Returns the largest score and the smallest v of the
 * rows that can shrink. */
static REAL JOIN(SMO, _update)(REAL *restrict v, const REAL *restrict Ki, const REAL *restrict Kj, REAL step,
                               const REAL *restrict grow, const REAL *restrict shrink, REAL *restrict score,
                               REAL *restrict chunk_max, ptrdiff_t w, REAL *lowest)
{
    REAL best = -INFINITY, low = INFINITY;
    for (ptrdiff_t c = 0; c * CHUNK < w; c++) {
        ptrdiff_t to = (c + 1) * CHUNK < w ? (c + 1) * CHUNK : w;
        REAL m = -INFINITY, l = INFINITY;
#pragma omp simd reduction(max : m) reduction(min : l)
        for (ptrdiff_t k = c * CHUNK; k < to; k++) {
            REAL vk = v[k] - step * (Ki[k] - Kj[k]);
            REAL s = vk + grow[k], t = vk + shrink[k];
            v[k] = vk;
            score[k] = s;
            m = s > m ? s : m;
            l = t < l ? t : l;
        }
        chunk_max[c] = m;
        best = m > best ? m : best;
        low = l < low ? l : low;
    }
    *lowest = low;
    return best;
}

static REAL JOIN(SMO, _gain)(const REAL *restrict v, const REAL *restrict Ki, const REAL *restrict diag, REAL vi,
                             REAL Kii, const REAL *restrict shrink, REAL *restrict score, REAL *restrict chunk_max,
                             ptrdiff_t w)
{
    REAL best = -1;
    for (ptrdiff_t c = 0; c * CHUNK < w; c++) {
        ptrdiff_t to = (c + 1) * CHUNK < w ? (c + 1) * CHUNK : w;
        REAL m = -1;
#pragma omp simd reduction(max : m)
        for (ptrdiff_t k = c * CHUNK; k < to; k++) {
            REAL d = vi - (v[k] + shrink[k]); /* minus infinity where a_k y_k cannot shrink */
            REAL curve = Kii + diag[k] - 2 * Ki[k];
            curve = curve > (REAL)TAU ? curve : (REAL)TAU;
            REAL positive = d > 0 ? d : 0;
            REAL s = positive * positive / curve;
            score[k] = s;
            m = s > m ? s : m;
        }
        chunk_max[c] = m;
        best = m > best ? m : best;
    }
    return best;
}

static void JOIN(SMO, _room)(double a, double cap, REAL y, REAL *grow, REAL *shrink)
{
    int can_rise = a < cap, can_fall = a > 0;
    *grow = (y > 0 ? can_rise : can_fall) ? 0 : -INFINITY;
    *shrink = (y > 0 ? can_fall : can_rise) ? 0 : INFINITY;
}

static const REAL *JOIN(SMO, _row)(const REAL **row, ptrdiff_t i, const REAL *(*evaluate)(void *, ptrdiff_t), void *source)
{
    if (!row[i])
        row[i] = evaluate(source, i);
    return row[i];
}

/* Returns the number of pair steps; on return *gap is the largest remaining violation.
 * diag is the diagonal of K; work holds 4 w + 1 numbers. */
int64_t BUILD(SMO)(const REAL **row, const REAL *(*evaluate)(void *, ptrdiff_t), void *source, const REAL *diag,
                ptrdiff_t w, const REAL *y, const double *cap, double *alpha, REAL *v, REAL *work, double tol,
                int64_t max_steps, ptrdiff_t split, double room, double *gap)
{
    REAL *grow = work, *shrink = work + w, *score = work + 2 * w, *chunk_max = work + 3 * w;
    REAL *chunk_max2 = chunk_max + (split + CHUNK - 1) / CHUNK; /* of the second part */
    const ptrdiff_t rest = w - split;
    for (ptrdiff_t k = 0; k < w; k++)
        JOIN(SMO, _room)(alpha[k], cap[k], y[k], grow + k, shrink + k);
    const REAL *Ki = diag, *Kj = diag; /* any row will do: the first step has length 0 */
    REAL step = 0;
    for (int64_t steps = 0;; steps++) {
        REAL low, low2;
        REAL high = JOIN(SMO, _update)(v, Ki, Kj, step, grow, shrink, score, chunk_max, split, &low);
        REAL high2 = JOIN(SMO, _update)(v + split, Ki + split, Kj + split, step, grow + split, shrink + split,
                                        score + split, chunk_max2, rest, &low2);
        REAL highest = high >= high2 ? high : high2, highest2 = room > 0 ? highest : high2;
        *gap = (double)highest - low;
        *gap = *gap >= (double)highest2 - low2 ? *gap : (double)highest2 - low2;
        if (!(*gap > tol) || steps >= max_steps)
            return steps;
        /* i is for a j of the first part, i2 for one of the second */
        ptrdiff_t second = split + JOIN(SMO, _argmax)(score + split, chunk_max2, rest, high2);
        ptrdiff_t i = high >= high2 ? JOIN(SMO, _argmax)(score, chunk_max, split, high) : second;
        ptrdiff_t i2 = room > 0 ? i : second;
        if (i < 0 || i2 < 0) /* not a number in K or v */
            return steps;
        Ki = JOIN(SMO, _row)(row, i, evaluate, source);
        const REAL *Ki2 = JOIN(SMO, _row)(row, i2, evaluate, source);
        REAL gain = JOIN(SMO, _gain)(v, Ki, diag, highest, diag[i], shrink, score, chunk_max, split);
        REAL gain2 = JOIN(SMO, _gain)(v + split, Ki2 + split, diag + split, highest2, diag[i2], shrink + split,
                                      score + split, chunk_max2, rest);
        ptrdiff_t j;
        if (gain >= gain2) {
            j = JOIN(SMO, _argmax)(score, chunk_max, split, gain);
        } else {
            i = i2;
            Ki = Ki2;
            j = split + JOIN(SMO, _argmax)(score + split, chunk_max2, rest, gain2);
        }
        if (j < 0)
            return steps;
        Kj = JOIN(SMO, _row)(row, j, evaluate, source);
        double curve = (double)diag[i] + diag[j] - 2.0 * Ki[j];
        double t = ((double)v[i] - v[j]) / (curve > TAU ? curve : TAU);
        double room_i = y[i] > 0 ? cap[i] - alpha[i] : alpha[i];
        double room_j = y[j] > 0 ? alpha[j] : cap[j] - alpha[j];
        double most = room_i < room_j ? room_i : room_j;
        most = y[i] > y[j] && room / 2 < most ? room / 2 : most; /* both rise */
        t = t < most ? t : most;
        alpha[i] = t == room_i ? (y[i] > 0 ? cap[i] : 0) : alpha[i] + t * y[i];
        alpha[j] = t == room_j ? (y[j] > 0 ? 0 : cap[j]) : alpha[j] - t * y[j];
        room -= t * (y[i] - y[j]);
        JOIN(SMO, _room)(alpha[i], cap[i], y[i], grow + i, shrink + i);
        JOIN(SMO, _room)(alpha[j], cap[j], y[j], grow + j, shrink + j);
        step = (REAL)t;
    }
}
