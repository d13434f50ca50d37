/* The pass for one floating-point type: include with REAL, INTEGER of its size, VECTOR of LANE numbers and POWER_OF_TWO. */

#define OF_(name, type) JOIN(name##_##type, SUFFIX)
#define OF(name) OF__(name, REAL)
#define OF__(name, type) OF_(name, type)
/* As many points at a time as keep the sums of ROWS rows in registers. */
#define COLUMNS (LANE * VECTORS)

#define ADD_PRODUCT(sum, x, z) ((sum) + (x) * (z))
#ifdef __GNUC__
typedef INTEGER OF(bits) __attribute__((vector_size(LANE * sizeof(REAL)), aligned(sizeof(REAL)), may_alias));
static inline VECTOR OF(distance)(REAL x, VECTOR z)
{
    const INTEGER sign = (INTEGER)1 << (sizeof(REAL) * 8 - 1);
    return (VECTOR)((OF(bits))(x - z) & ~sign);
}
static inline VECTOR OF(chi_squared)(REAL x, VECTOR z)
{
    const VECTOR total = x + z, ones = (total - total) + (REAL)1;
    return (x - z) * (x - z) / (total + (VECTOR)((OF(bits))ones & (OF(bits))(total == (REAL)0)));
}
#else
static inline VECTOR OF(distance)(REAL x, VECTOR z)
{
    return x > z ? x - z : z - x;
}
static inline VECTOR OF(chi_squared)(REAL x, VECTOR z)
{
    return x + z != 0 ? (x - z) * (x - z) / (x + z) : 0;
}
#endif
#define ADD_DISTANCE(sum, x, z) ((sum) + OF(distance)(x, z))
#define ADD_CHI_SQUARED(sum, x, z) ((sum) + OF(chi_squared)(x, z))

/* G = the sums over the features first .. last - 1 for `together` rows and a panel of LANES points; added to G if `onto`. */
#define SUMS(name, together, ADD)                                                                                      \
    static void OF(name)(const REAL *const *rows, ptrdiff_t first, ptrdiff_t last, const REAL *panel, int onto, REAL *G) \
    {                                                                                                                  \
        for (int from = 0; from < LANES; from += COLUMNS) {                                                            \
            VECTOR sum[together][VECTORS];                                                                             \
            UNROLL for (int r = 0; r < together; r++)                                                                  \
                UNROLL for (int l = 0; l < VECTORS; l++)                                                               \
                    sum[r][l] = onto ? *(const VECTOR *)(G + r * LANES + from + l * LANE) : (VECTOR){0};               \
            for (ptrdiff_t f = first; f < last; f++) {                                                                 \
                const REAL *line = panel + f * LANES + from;                                                           \
                VECTOR z[VECTORS];                                                                                     \
                UNROLL for (int l = 0; l < VECTORS; l++)                                                               \
                    z[l] = *(const VECTOR *)(line + l * LANE);                                                         \
                UNROLL for (int r = 0; r < together; r++) {                                                            \
                    const REAL x = rows[r][f];                                                                         \
                    UNROLL for (int l = 0; l < VECTORS; l++)                                                           \
                        sum[r][l] = ADD(sum[r][l], x, z[l]);                                                           \
                }                                                                                                      \
            }                                                                                                          \
            UNROLL for (int r = 0; r < together; r++)                                                                  \
                UNROLL for (int l = 0; l < VECTORS; l++)                                                               \
                    *(VECTOR *)(G + r * LANES + from + l * LANE) = sum[r][l];                                          \
        }                                                                                                              \
    }

SUMS(products, ROWS, ADD_PRODUCT)
SUMS(products_of_one, 1, ADD_PRODUCT)
SUMS(distances, ROWS, ADD_DISTANCE)
SUMS(distances_of_one, 1, ADD_DISTANCE)
SUMS(chi_squares, ROWS, ADD_CHI_SQUARED)
SUMS(chi_squares_of_one, 1, ADD_CHI_SQUARED)

/* The sums of at most ROWS dense rows and a panel. A row's sum is the same alone and among others. */
static void OF(dense_sums)(const Pass *p, const REAL *const *rows, int count, ptrdiff_t first, ptrdiff_t last,
                           const REAL *panel, int onto, REAL *G)
{
    void (*one)(const REAL *const *, ptrdiff_t, ptrdiff_t, const REAL *, int, REAL *) = OF(products_of_one);
    void (*several)(const REAL *const *, ptrdiff_t, ptrdiff_t, const REAL *, int, REAL *) = OF(products);
    if (p->form.kernel == LAPLACIAN)
        one = OF(distances_of_one), several = OF(distances);
    if (p->form.kernel == CHI2)
        one = OF(chi_squares_of_one), several = OF(chi_squares);
    if (count == ROWS)
        several(rows, first, last, panel, onto, G);
    else
        for (int r = 0; r < count; r++)
            one(rows + r, first, last, panel, onto, G + r * LANES);
}

/* G = the inner products of a CSR row and a panel. */
static void OF(sparse_sums)(const Pass *p, ptrdiff_t row, const REAL *panel, REAL *G)
{
    enum { TOGETHER = LANES / LANE < 8 ? LANES / LANE : 8 };
    const REAL *data = p->data;
    for (int from = 0; from < LANES; from += TOGETHER * LANE) {
        VECTOR sum[TOGETHER] = {0};
        for (int32_t t = p->starts[row]; t < p->starts[row + 1]; t++) {
            const REAL *line = panel + (ptrdiff_t)p->features_of[t] * LANES + from;
            UNROLL for (int l = 0; l < TOGETHER; l++)
                sum[l] += data[t] * *(const VECTOR *)(line + l * LANE);
        }
        memcpy(G + from, sum, sizeof sum);
    }
}

/* G (count, groups * LANES) = the inner products of CSR rows with a panel of sparse points. Features that many points have are
 * written out: place[f] is then the line of feature f in each group of `lines`, else -1. Of the others, `post` lists the points
 * that have feature f, from post_starts[f] on, and their values. frequent, values and ends are scratch. */
static void OF(panel_sums)(const Pass *p, const SparsePanel *panel, const ptrdiff_t *rows, ptrdiff_t count, int32_t *frequent,
                           REAL *values, int32_t *ends, REAL *restrict G)
{
    const ptrdiff_t stride = panel->groups * LANES;
    const REAL *data = p->data, *post_values = panel->post_values;
    int32_t used = 0;
    for (ptrdiff_t i = 0; i < count; i++) {
        REAL *restrict g = G + i * stride;
        memset(g, 0, stride * sizeof(REAL));
        for (int32_t t = p->starts[rows[i]]; t < p->starts[rows[i] + 1]; t++) {
            const int32_t f = p->features_of[t], line = panel->place[f];
            const REAL value = data[t];
            frequent[used] = line;
            values[used] = value;
            used += line >= 0;
            for (int32_t s = panel->post_starts[f]; s < panel->post_starts[f + 1]; s++)
                g[panel->post_points[s]] += value * post_values[s];
        }
        ends[i] = used;
    }
    for (ptrdiff_t group = 0; group < panel->groups; group++) {
        const REAL *lines = (const REAL *)panel->lines + group * panel->frequent * LANES;
        for (ptrdiff_t i = 0; i < count; i++)
            for (int from = 0; from < LANES; from += COLUMNS) {
                VECTOR sum[VECTORS] = {0};
                for (int32_t t = i ? ends[i - 1] : 0; t < ends[i]; t++) {
                    const REAL *line = lines + (ptrdiff_t)frequent[t] * LANES + from;
                    UNROLL for (int l = 0; l < VECTORS; l++)
                        sum[l] += values[t] * *(const VECTOR *)(line + l * LANE);
                }
                UNROLL for (int l = 0; l < VECTORS; l++)
                    *(VECTOR *)(G + i * stride + group * LANES + from + l * LANE) += sum[l];
            }
    }
}

/* b^degree by squaring. */
static inline REAL OF(raised)(REAL base, int64_t degree)
{
    REAL value = 1;
    for (; degree > 0; degree /= 2, base *= base)
        if (degree % 2)
            value *= base;
    return value;
}

/* K = the kernel values of sums G for `count` rows and LANES points. a has the norms of the rows, b those of the points; widths
 * are NULL for ones. Loops over rows are inside the cases, so that constants stay in registers. */
#define EACH(value)                                                                                                    \
    for (int r = 0; r < count; r++) {                                                                                  \
        const REAL *restrict g = G + r * stride;                                                                       \
        REAL *restrict k = K + r * LANES;                                                                              \
        const REAL norm = a[r];                                                                                        \
        (void)norm;                                                                                                    \
        for (int j = 0; j < LANES; j++)                                                                                \
            k[j] = value;                                                                                              \
    }

/* exp(-gamma |x - z|^2) = 2^(2 scale <x, z> - a - b) with scale = gamma log2(e) */
static inline REAL OF(exponent)(REAL g, REAL two_scale, REAL norms)
{
    const REAL x = two_scale * g - norms;
    return x < 0 ? x : 0;
}

/* tanh t = (1 - e) / (1 + e) for t > 0, with e = exp(-2 t) */
static inline REAL OF(hyperbolic)(REAL t)
{
    const REAL e = POWER_OF_TWO((REAL)-2.8853900817779268 * (t > 0 ? t : -t)), value = (1 - e) / (1 + e);
    return t > 0 ? value : -value;
}

static void OF(tail)(const Pass *p, const REAL *G, ptrdiff_t stride, int count, const REAL *a, const REAL *restrict b,
                     const REAL *restrict widths, REAL *K)
{
    const REAL scale = (REAL)p->scale, gamma = (REAL)p->form.gamma, coef0 = (REAL)p->form.coef0;
    const int64_t degree = p->form.degree;
    switch (p->form.kernel) {
    case RBF:
        if (p->narrow && widths)
            EACH(exp2_of_nonpositive((float)(widths[j] * OF(exponent)(g[j], 2 * scale, norm + b[j]))))
        else if (p->narrow)
            EACH(exp2_of_nonpositive((float)OF(exponent)(g[j], 2 * scale, norm + b[j])))
        else if (widths)
            EACH(POWER_OF_TWO(widths[j] * OF(exponent)(g[j], 2 * scale, norm + b[j])))
        else
            EACH(POWER_OF_TWO(OF(exponent)(g[j], 2 * scale, norm + b[j])))
        break;
    case LAPLACIAN:
    case CHI2:
        if (widths)
            EACH(POWER_OF_TWO(-scale * widths[j] * g[j]))
        else
            EACH(POWER_OF_TWO(-scale * g[j]))
        break;
    case POLY:
        if (degree == 2)
            EACH((gamma * g[j] + coef0) * (gamma * g[j] + coef0))
        else if (degree == 3)
            EACH((gamma * g[j] + coef0) * (gamma * g[j] + coef0) * (gamma * g[j] + coef0))
        else
            EACH(OF(raised)(gamma * g[j] + coef0, degree))
        break;
    case SIGMOID:
        EACH(OF(hyperbolic)(gamma * g[j] + coef0))
        break;
    default:
        EACH(g[j])
    }
}

/* Sums of a block of rows: `sums` has Q numbers for each of them, the LANES of one output folded to Q or those of several. */
typedef struct {
    REAL *G, *sums, *values;
    int32_t *frequent, *ends;
} OF(Space);

/* part (count, Q) += K V for at most ROWS rows of K and a panel of V (LANES, Q). Sums over points are in their order. */
static void OF(add_outputs)(const REAL *K, int count, const REAL *V, ptrdiff_t Q, REAL *part)
{
    for (ptrdiff_t c = 0; c < Q; c += LANE)
        if (count == ROWS) {
            VECTOR sum[ROWS];
            UNROLL for (int r = 0; r < ROWS; r++)
                sum[r] = *(const VECTOR *)(part + r * Q + c);
            for (int j = 0; j < LANES; j++) {
                const VECTOR v = *(const VECTOR *)(V + j * Q + c);
                UNROLL for (int r = 0; r < ROWS; r++)
                    sum[r] += K[r * LANES + j] * v;
            }
            UNROLL for (int r = 0; r < ROWS; r++)
                *(VECTOR *)(part + r * Q + c) = sum[r];
        } else
            for (int r = 0; r < count; r++) {
                VECTOR sum = *(const VECTOR *)(part + r * Q + c);
                for (int j = 0; j < LANES; j++)
                    sum += K[r * LANES + j] * *(const VECTOR *)(V + j * Q + c);
                *(VECTOR *)(part + r * Q + c) = sum;
            }
}

/* Use the kernel values of at most ROWS rows and the points from `point` on. */
static void OF(consume)(const Pass *p, const Wanted *want, const ptrdiff_t *rows, ptrdiff_t place, int count, ptrdiff_t point,
                        const REAL *G, ptrdiff_t stride, const REAL *V, REAL *sums)
{
    REAL K[ROWS * LANES], a[ROWS] = {0};
    const REAL *norms = p->a, *b = p->b, *widths = p->widths;
    const ptrdiff_t width = p->points - point < LANES ? p->points - point : LANES;
    for (int r = 0; r < count && norms; r++)
        a[r] = norms[rows[r]];
    OF(tail)(p, G, stride, count, a, b ? b + point : NULL, widths ? widths + point : NULL, K);
    if (want->values)
        for (int r = 0; r < count; r++) {
            const ptrdiff_t at = (place + r - want->values_from) * want->stride + point;
            if (p->narrow)
                for (ptrdiff_t j = 0; j < width; j++)
                    ((float *)want->values)[at + j] = (float)K[r * LANES + j];
            else
                memcpy((REAL *)want->values + at, K + r * LANES, width * sizeof(REAL));
        }
    if (!want->outputs)
        return;
    if (want->outputs > 1)
        OF(add_outputs)(K, count, V + point * want->columns, want->columns, sums);
    else
        for (int r = 0; r < count; r++) {
            const REAL *restrict k = K + r * LANES, *restrict v = V + point;
            REAL part[SUMMED] = {0};
            for (int from = 0; from < LANES; from += SUMMED)
                for (int j = 0; j < SUMMED; j++)
                    part[j] += k[from + j] * v[from + j];
            for (int j = 0; j < SUMMED; j++)
                sums[r * SUMMED + j] += part[j];
        }
}

/* out += the sums so far, which begin anew. */
static void OF(flush)(const Wanted *want, ptrdiff_t place, ptrdiff_t count, REAL *sums)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        double *out = want->out + (place + i - want->out_from) * want->outputs;
        REAL *part = sums + i * want->columns;
        if (want->outputs > 1)
            for (ptrdiff_t c = 0; c < want->outputs; c++)
                out[c] += part[c];
        else {
            double total = 0.0;
            for (int l = 0; l < SUMMED; l++)
                total += part[l];
            out[0] += total;
        }
    }
    memset(sums, 0, count * want->columns * sizeof(REAL));
}

/* A block of dense rows against panels of points. */
static void OF(dense_block)(const Pass *p, const Wanted *want, const ptrdiff_t *rows, ptrdiff_t place, ptrdiff_t count,
                            const REAL *V, OF(Space) *space)
{
    const ptrdiff_t d = p->features;
    const REAL *line[ROWS];
    for (ptrdiff_t panel = want->first_panel; panel < want->last_panel; panel++) {
        const REAL *lines = (const REAL *)p->lines + panel * d * LANES;
        for (ptrdiff_t first = 0; first < d || first == 0; first += CHUNK) {
            const ptrdiff_t last = first + CHUNK < d ? first + CHUNK : d;
            for (ptrdiff_t i = 0; i < count; i += ROWS) {
                const int some = count - i < ROWS ? (int)(count - i) : ROWS;
                REAL *G = d > CHUNK ? space->G + i * LANES : space->G;
                for (int r = 0; r < some; r++)
                    line[r] = (const REAL *)p->rows + rows[i + r] * d;
                OF(dense_sums)(p, line, some, first, last, lines, first > 0, G);
                if (last == d)
                    OF(consume)(p, want, rows + i, place + i, some, panel * LANES, G, LANES, V, space->sums + i * want->columns);
            }
        }
        if (want->outputs && ((panel + 1) % FLUSH == 0 || panel + 1 == want->last_panel))
            OF(flush)(want, place, count, space->sums);
    }
}

/* A block of CSR rows against panels of dense points. */
static void OF(sparse_block)(const Pass *p, const Wanted *want, const ptrdiff_t *rows, ptrdiff_t place, ptrdiff_t count,
                             const REAL *V, OF(Space) *space)
{
    for (ptrdiff_t panel = want->first_panel; panel < want->last_panel; panel++) {
        const REAL *lines = (const REAL *)p->lines + panel * p->features * LANES;
        for (ptrdiff_t i = 0; i < count; i += ROWS) {
            const int some = count - i < ROWS ? (int)(count - i) : ROWS;
            for (int r = 0; r < some; r++)
                OF(sparse_sums)(p, rows[i + r], lines, space->G + r * LANES);
            OF(consume)(p, want, rows + i, place + i, some, panel * LANES, space->G, LANES, V, space->sums + i * want->columns);
        }
        if (want->outputs && ((panel + 1) % FLUSH == 0 || panel + 1 == want->last_panel))
            OF(flush)(want, place, count, space->sums);
    }
}

/* A block of CSR rows against panels of sparse points. */
static void OF(posted_block)(const Pass *p, const Wanted *want, const ptrdiff_t *rows, ptrdiff_t place, ptrdiff_t count,
                             const REAL *V, OF(Space) *space)
{
    const ptrdiff_t groups = p->posted[0].groups;
    for (ptrdiff_t panel = want->first_panel / groups * groups; panel < want->last_panel; panel += groups) {
        const SparsePanel *points = p->posted + panel / groups;
        OF(panel_sums)(p, points, rows, count, space->frequent, space->values, space->ends, space->G);
        const ptrdiff_t first = want->first_panel > panel ? want->first_panel - panel : 0;
        for (ptrdiff_t group = first; group < points->groups && panel + group < want->last_panel; group++)
            for (ptrdiff_t i = 0; i < count; i += ROWS) {
                const int some = count - i < ROWS ? (int)(count - i) : ROWS;
                OF(consume)(p, want, rows + i, place + i, some, (panel + group) * LANES,
                            space->G + i * points->groups * LANES + group * LANES, points->groups * LANES, V,
                            space->sums + i * want->columns);
            }
        if (want->outputs)
            OF(flush)(want, place, count, space->sums);
    }
}

/* Rows start .. stop - 1 of want->index, or of all rows; returns 0, or -1 without memory. */
int OF(pass)(const Pass *p, const Wanted *want)
{
    const ptrdiff_t wide = p->rows ? p->features : 0, groups = p->posted ? p->posted[0].groups : 1;
    ptrdiff_t most = wide > BLOCK_NUMBERS / BLOCK ? BLOCK_NUMBERS / wide / ROWS * ROWS : BLOCK, entries = 0;
    most = most < ROWS ? ROWS : most;
    OF(Space) space = {0};
    ptrdiff_t rows[BLOCK];
    if (p->posted)
        for (ptrdiff_t i = want->start; i < want->stop; i += most) {
            const ptrdiff_t last = i + most < want->stop ? i + most : want->stop;
            ptrdiff_t here = 0;
            for (ptrdiff_t k = i; k < last; k++) {
                const ptrdiff_t row = want->index ? want->index[k] : k;
                here += p->starts[row + 1] - p->starts[row];
            }
            entries = here > entries ? here : entries;
        }
    space.G = malloc((most * groups * LANES + most * want->columns + (entries + 1)) * sizeof(REAL));
    space.frequent = p->posted ? malloc((entries + 1 + most) * sizeof(int32_t)) : NULL;
    if (!space.G || (p->posted && !space.frequent)) {
        free(space.G);
        free(space.frequent);
        return -1;
    }
    space.sums = space.G + most * groups * LANES;
    space.values = space.sums + most * want->columns;
    space.ends = space.frequent ? space.frequent + entries + 1 : NULL;
    memset(space.sums, 0, most * want->columns * sizeof(REAL));
    for (ptrdiff_t i = want->start; i < want->stop; i += most) {
        const ptrdiff_t count = want->stop - i < most ? want->stop - i : most;
        for (ptrdiff_t k = 0; k < count; k++)
            rows[k] = want->index ? want->index[i + k] : i + k;
        if (p->rows)
            OF(dense_block)(p, want, rows, i, count, want->V, &space);
        else if (p->posted)
            OF(posted_block)(p, want, rows, i, count, want->V, &space);
        else
            OF(sparse_block)(p, want, rows, i, count, want->V, &space);
    }
    free(space.G);
    free(space.frequent);
    return 0;
}

/* The boxes from `first` to `last`: of each, out += K V for its rows and the points near it. Returns 0, or -1 without memory. */
int OF(pass_near)(const Pass *p, const Boxes *boxes, ptrdiff_t first, ptrdiff_t last, const void *coefficients,
                  ptrdiff_t outputs, double *out)
{
    const ptrdiff_t d = p->features, m = p->points, columns = outputs > 1 ? (outputs + SUMMED - 1) / SUMMED * SUMMED : SUMMED;
    const ptrdiff_t width = outputs > 1 ? columns : 1;
    const REAL *points = boxes->points, *V = coefficients, *b = p->b, *line[ROWS];
    ptrdiff_t most = 0;
    for (ptrdiff_t box = first; box < last; box++)
        most = boxes->starts[box + 1] - boxes->starts[box] > most ? boxes->starts[box + 1] - boxes->starts[box] : most;
    REAL *space = malloc(((d + 1 + width) * LANES + most * columns) * sizeof(REAL));
    double *distance = malloc((m + most * outputs + 1) * sizeof(double)), *part = distance + m;
    ptrdiff_t *found = malloc((m + 1) * sizeof(ptrdiff_t));
    if (!space || !distance || !found) {
        free(space);
        free(distance);
        free(found);
        return -1;
    }
    REAL *norms = space + d * LANES, *coef = norms + LANES, *sums = coef + width * LANES, G[ROWS * LANES];
    Pass here = *p;
    const Wanted want = {.outputs = outputs, .columns = columns, .V = coef, .out = part};
    here.b = norms;
    memset(sums, 0, most * columns * sizeof(REAL));
    for (ptrdiff_t box = first; box < last; box++) {
        const ptrdiff_t *rows = boxes->rows + boxes->starts[box], count = boxes->starts[box + 1] - boxes->starts[box];
        const ptrdiff_t near = BUILD(near_box)(boxes->low + box * boxes->axes, boxes->high + box * boxes->axes, boxes->axes,
                                               boxes->placed, m, boxes->reach, distance, found);
        memset(part, 0, count * outputs * sizeof(double));
        for (ptrdiff_t from = 0; from < near; from += LANES) {
            here.points = near - from < LANES ? near - from : LANES;
            memset(space, 0, (d + 1 + width) * LANES * sizeof(REAL));
            for (ptrdiff_t j = 0; j < here.points; j++) {
                const ptrdiff_t point = found[from + j];
                for (ptrdiff_t f = 0; f < d; f++)
                    space[f * LANES + j] = points[point * d + f];
                norms[j] = b[point];
                for (ptrdiff_t c = 0; c < outputs; c++)
                    coef[j * width + c] = V[point * outputs + c];
            }
            for (ptrdiff_t i = 0; i < count; i += ROWS) {
                const int some = count - i < ROWS ? (int)(count - i) : ROWS;
                for (int r = 0; r < some; r++)
                    line[r] = (const REAL *)p->rows + rows[i + r] * d;
                OF(dense_sums)(p, line, some, 0, d, space, 0, G);
                OF(consume)(&here, &want, rows + i, i, some, 0, G, LANES, coef, sums + i * columns);
            }
            if (from / LANES % FLUSH == FLUSH - 1 || from + LANES >= near)
                OF(flush)(&want, 0, count, sums);
        }
        for (ptrdiff_t i = 0; i < count; i++)
            for (ptrdiff_t c = 0; c < outputs; c++)
                out[rows[i] * outputs + c] += part[i * outputs + c];
    }
    free(space);
    free(distance);
    free(found);
    return 0;
}

#undef OF
#undef COLUMNS
#undef ADD_PRODUCT
#undef ADD_DISTANCE
#undef ADD_CHI_SQUARED
#undef SUMS
#undef EACH
