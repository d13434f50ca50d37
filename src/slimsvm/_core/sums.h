/* Sums over rows for one floating-point type: include with REAL, VECTOR of LANE numbers and the names of pass.h. */

#define OF_(name, type) JOIN(name##_##type, SUFFIX)
#define OF(name) OF__(name, REAL)
#define OF__(name, type) OF_(name, type)
#define COLUMNS (LANE * VECTORS)
#define FULL(count) (((count) + COLUMNS - 1) / COLUMNS * COLUMNS)

/* C (together, COLUMNS) = sum_k P[k][0 .. together - 1]' A[k][0 .. COLUMNS - 1] over `rows` lines of both. */
#define OUTER(name, together)                                                                                          \
    static void OF(name)(const REAL *P, ptrdiff_t p_stride, const REAL *A, ptrdiff_t a_stride, ptrdiff_t rows, REAL *C)  \
    {                                                                                                                  \
        VECTOR sum[together][VECTORS] = {0};                                                                           \
        for (ptrdiff_t k = 0; k < rows; k++) {                                                                         \
            VECTOR a[VECTORS];                                                                                         \
            UNROLL for (int l = 0; l < VECTORS; l++)                                                                   \
                a[l] = *(const VECTOR *)(A + k * a_stride + l * LANE);                                                 \
            UNROLL for (int r = 0; r < together; r++) {                                                                \
                const REAL p = P[k * p_stride + r];                                                                    \
                UNROLL for (int l = 0; l < VECTORS; l++)                                                               \
                    sum[r][l] += p * a[l];                                                                             \
            }                                                                                                          \
        }                                                                                                              \
        UNROLL for (int r = 0; r < together; r++)                                                                      \
            UNROLL for (int l = 0; l < VECTORS; l++)                                                                   \
                *(VECTOR *)(C + r * COLUMNS + l * LANE) = sum[r][l];                                                   \
    }

OUTER(outer, ROWS)
OUTER(outer_of_one, 1)

static int OF(outer_product)(const REAL *P, ptrdiff_t p_stride, ptrdiff_t left, const REAL *A, ptrdiff_t a_stride, ptrdiff_t rows,
                             REAL *C)
{
    const int count = left < ROWS ? (int)left : ROWS;
    if (count == ROWS)
        OF(outer)(P, p_stride, A, a_stride, rows, C);
    else
        for (int r = 0; r < count; r++)
            OF(outer_of_one)(P + r, p_stride, A, a_stride, rows, C + r * COLUMNS);
    return count;
}

/* total (points, width) += P' A, of which A is filled up to full columns; with `lower` for width <= point only. */
static void OF(add_product)(const REAL *P, ptrdiff_t p_stride, ptrdiff_t points, const REAL *A, ptrdiff_t a_stride, ptrdiff_t width,
                            ptrdiff_t rows, int lower, double *restrict total)
{
    REAL C[ROWS * COLUMNS];
    for (ptrdiff_t from = 0; from < width; from += COLUMNS) {
        const ptrdiff_t columns = width - from < COLUMNS ? width - from : COLUMNS;
        for (ptrdiff_t j = lower ? from / ROWS * ROWS : 0; j < points; j += ROWS) {
            const int count = OF(outer_product)(P + j, p_stride, points - j, A + from, a_stride, rows, C);
            for (int r = 0; r < count; r++) {
                double *restrict line = total + (j + r) * width + from;
                for (ptrdiff_t c = 0; c < columns; c++)
                    line[c] += C[r * COLUMNS + c];
            }
        }
    }
}

/* total (m + 1, m + 1) += the sum of w d d' with d = (1, k) over the rows of a list, in its lower triangle. The weights of rows
 * from the place `minus` on are subtracted. */
int OF(add_squares)(const Squares *of, const ptrdiff_t *list, ptrdiff_t count, ptrdiff_t minus, double *total)
{
    const ptrdiff_t m = of->m, wide = FULL(m + 1);
    REAL *space = calloc((size_t)(2 * wide * SUM_ROWS), sizeof(REAL)), *weighted = space + wide * SUM_ROWS;
    if (!space)
        return -1;
    for (ptrdiff_t first = 0; first < count; first += SUM_ROWS) {
        const ptrdiff_t rows = count - first < SUM_ROWS ? count - first : SUM_ROWS;
        for (ptrdiff_t i = 0; i < rows; i++) {
            const ptrdiff_t row = list[first + i];
            const REAL *restrict k = (const REAL *)of->K + row * of->stride;
            const REAL w = (REAL)(first + i < minus ? of->weights[row] : -of->weights[row]);
            REAL *restrict line = space + i * wide, *restrict other = weighted + i * wide;
            line[0] = 1;
            other[0] = w;
            for (ptrdiff_t j = 0; j < m; j++) {
                line[j + 1] = k[j];
                other[j + 1] = w * k[j];
            }
        }
        OF(add_product)(space, wide, m + 1, weighted, wide, m + 1, rows, 1, total);
    }
    free(space);
    return 0;
}

/* out[j] += sum_i w_i K_ij for the rows from first to last; those of weight 0 are left out. */
void OF(add_lines)(const Squares *of, const double *w, ptrdiff_t first, ptrdiff_t last, REAL *restrict run, double *restrict out)
{
    const ptrdiff_t m = of->m;
    int count = 0;
    memset(run, 0, (size_t)m * sizeof(REAL));
    for (ptrdiff_t i = first; i < last; i++) {
        if (w[i] == 0.0)
            continue;
        const REAL *restrict k = (const REAL *)of->K + i * of->stride;
        const REAL weight = (REAL)w[i];
        for (ptrdiff_t j = 0; j < m; j++)
            run[j] += weight * k[j];
        if (++count == SUM_ROWS) {
            for (ptrdiff_t j = 0; j < m; j++)
                out[j] += run[j];
            memset(run, 0, (size_t)m * sizeof(REAL));
            count = 0;
        }
    }
    for (ptrdiff_t j = 0; j < m; j++)
        out[j] += run[j];
}

/* out[i] = sum_j K_ij v_j for the rows from first to last. */
void OF(row_products)(const Squares *of, const void *given, ptrdiff_t first, ptrdiff_t last, double *out)
{
    const REAL *restrict v = given;
    for (ptrdiff_t i = first; i < last; i++) {
        const REAL *restrict k = (const REAL *)of->K + i * of->stride;
        REAL part[SUMMED] = {0};
        ptrdiff_t j = 0;
        for (; j + SUMMED <= of->m; j += SUMMED)
            for (int l = 0; l < SUMMED; l++)
                part[l] += k[j + l] * v[j + l];
        double total = 0.0;
        for (; j < of->m; j++)
            total += (double)k[j] * v[j];
        for (int l = 0; l < SUMMED; l++)
            total += part[l];
        out[i] = total;
    }
}

/* The backward sums of some rows of a list (`Backward`), added to total. Returns 0, or -1 without memory. */
int OF(add_backward)(const Backward *b, const ptrdiff_t *list, ptrdiff_t count, double *total)
{
    const ptrdiff_t d = b->features, m = b->points, q = b->outputs, width = d + 2, wide = FULL(width), across = (m + LANES - 1) / LANES * LANES;
    const ptrdiff_t most = wide + across > SUM_NUMBERS / SUM_ROWS ? SUM_NUMBERS / (wide + across) : SUM_ROWS;
    const ptrdiff_t block = most < 16 ? 16 : most;
    const REAL *squares = b->squares, *pulls = b->pulls, *V = b->V;
    double *spread = total + m * width;
    REAL *space = calloc((size_t)(block * (wide + 2 * across + q) + d), sizeof(REAL));
    if (!space)
        return -1;
    REAL *A = space, *P = A + block * wide, *K = P + block * across, *by_output = K + block * across;
    REAL *spread_here = by_output + block * q, C[ROWS * COLUMNS];
    for (ptrdiff_t first = 0; first < count; first += block) {
        const ptrdiff_t rows = count - first < block ? count - first : block;
        for (ptrdiff_t i = 0; i < rows; i++) {
            const ptrdiff_t row = list[first + i];
            REAL *restrict line = A + i * wide, norm = 0;
            if (b->rows)
                memcpy(line, (const REAL *)b->rows + row * d, (size_t)d * sizeof(REAL));
            else {
                memset(line, 0, (size_t)d * sizeof(REAL));
                for (int32_t t = b->starts[row]; t < b->starts[row + 1]; t++)
                    line[b->features_of[t]] = ((const REAL *)b->data)[t];
            }
            for (ptrdiff_t f = 0; f < d; f++)
                norm += squares[f] * line[f] * line[f];
            line[d] = norm;
            line[d + 1] = 1;
            memcpy(K + i * across, (const REAL *)b->K + row * b->stride, (size_t)m * sizeof(REAL));
            for (ptrdiff_t c = 0; c < q; c++)
                by_output[c * block + i] = (REAL)b->W[c * b->w_stride + row];
        }
        if (q == 1)
            for (ptrdiff_t i = 0; i < rows; i++)
                for (ptrdiff_t j = 0; j < m; j++)
                    P[i * across + j] = by_output[i] * K[i * across + j];
        else
            for (ptrdiff_t from = 0; from < m; from += COLUMNS)
                for (ptrdiff_t i = 0; i < rows; i += ROWS) {
                    const int some = OF(outer_product)(by_output + i, block, rows - i, V + from, across, q, C);
                    for (int r = 0; r < some; r++)
                        for (int c = 0; c < COLUMNS; c++)
                            P[(i + r) * across + from + c] = C[r * COLUMNS + c] * K[(i + r) * across + from + c];
                }
        OF(add_product)(P, across, m, A, wide, width, rows, 0, total);
        if (!pulls)
            continue;
        memset(spread_here, 0, (size_t)d * sizeof(REAL));
        for (ptrdiff_t i = 0; i < rows; i++) {
            const REAL *restrict p = P + i * across, *restrict line = A + i * wide;
            REAL part[SUMMED] = {0}, pull = 0;
            for (ptrdiff_t j = 0; j < across; j += LANE)
                for (int l = 0; l < LANE; l++)
                    part[l % SUMMED] += p[j + l] * pulls[j + l];
            for (int l = 0; l < SUMMED; l++)
                pull += part[l];
            for (ptrdiff_t f = 0; f < d; f++)
                spread_here[f] += pull * line[f] * line[f];
        }
        for (ptrdiff_t f = 0; f < d; f++)
            spread[f] += spread_here[f];
    }
    free(space);
    return 0;
}

#undef OF
#undef COLUMNS
#undef FULL
#undef OUTER
