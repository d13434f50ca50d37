/* The C export, for every kernel, layout and precision: `c.py` writes the tables and constants of a model in front of this
 * text, keeps the branches of #if that the model needs, and puts words and expressions in the place of these:
 *
 *   Input, Entry, RowEntry, Number   types: of a row, of numbers of points and rows, and of sums over the features
 *   TERM, OWN_TERM, JOINT_TERM       the kernel's sum over features, feature by feature (`kernels.spec`)
 *   VALUE                            the kernel value of a sum s
 *   POINT, COEF, PROJECTION, KERNEL  a number of the tables, and the kernel value of a point
 *   model_..., row_...               functions for callers; where rows may be sparse, row_... are inner ones
 *
 * With names and words as macros (tests/ship/test_sources.py), a compiler reads it as it is. */

#if SPARSE
/* A row: the values of all features, or of those that are listed in increasing order. */
typedef struct {
    const float *value;
    const uint32_t *index; /* NULL: all features */
    size_t count;
} Row;

#if LISTED
/* The first column whose feature is not below the given one. */
static uint32_t column_of(uint32_t feature)
{
    uint32_t low = 0, high = COLUMNS;
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        if (columns[middle] < feature)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}
#endif
#endif

#if UPPER_HALVES
/* The float whose upper half is given. */
static float upper_half(uint16_t code)
{
    const union { uint32_t bits; float number; } both = { (uint32_t)code << 16 };
    return both.number;
}
#endif

#if WIDTHS == SMALL_FLOATS
/* A small float: a mantissa and, in the upper bits, an exponent of 2. */
static float small_float(uint32_t code, int bits)
{
    return (float)(((1u << bits) + (code & ((1u << bits) - 1))) << (code >> bits));
}
#endif

#if CODED
#if LEARNS == 0
/* The number of a code: its steps above the low end. */
static float number(const FLASH Code *codes, uint32_t entry, Pair low, Pair step)
{
#if BITS == 4
    return upper_half(low) + upper_half(step) * (float)(codes[entry / 2] >> entry % 2 * 4 & 15);
#else
    return low + step * (float)codes[entry];
#endif
}
#endif

#if EXPONENTIAL
/* exp(x): a polynomial about the nearest power of 2. Other programs do the same, operation by operation. */
static float exponential(float x)
{
    x = x > -87 ? x < 88 ? x : 88 : -87;
    const int32_t n = (int32_t)(x * 1.44269504f + (x < 0 ? -0.5f : 0.5f));
    const float r = (x - (float)n * 0.693359375f) - (float)n * -2.12194440e-4f;
    float p = 1.38888892e-3f;
    p = p * r + 8.33333377e-3f;
    p = p * r + 4.16666679e-2f;
    p = p * r + 0.166666672f;
    p = p * r + 0.5f;
    p = p * r + 1;
    p = p * r + 1;
    const union { uint32_t bits; float number; } two = { (uint32_t)(n + 127) << 23 };
    return p * two.number;
}
#endif

#if TANGENT
static float tangent(float x)
{
    const float share = exponential(x < 0 ? 2 * x : -2 * x);
    const float size = (1 - share) / (1 + share);
    return x < 0 ? -size : size;
}
#endif
#endif

#if PREPARED
#if INTEGER_TABLES
/* Features in the units of the tables, clipped to their range. */
#elif PROJECTED
/* The projection of scaled features. */
#else
/* Scaled features. */
#endif
static void prepare(const float *x, RowEntry *row)
{
#if PROJECTED
    for (int r = 0; r < RANK; r++)
        row[r] = 0;
#endif
    for (int i = 0; i < FEATURES; i++) {
#if SHORT_SCALING
        float t = upper_half(SCALE) * x[i] - (float)SHIFT;
#elif SCALED
        float t = (x[i] - CENTRE) * SCALE;
#else
        const float t = x[i];
#endif
#if CLIPS
        t = t < LOW ? LOW : t > HIGH ? HIGH : t;
#endif
#if INTEGER_TABLES
        row[i] = (RowEntry)((int32_t)((!(t > -ROW_END) ? -ROW_END : t > ROW_END ? ROW_END : t) + ROW_HALF) - ROW_END);
#elif PROJECTED
        if (t != 0)
            for (int r = 0; r < RANK; r++)
                row[r] += t * PROJECTION;
#else
        row[i] = t;
#endif
    }
}
#endif

#if POWER
static float power(float base)
{
    float p = 1;
    for (int n = DEGREE; n > 0; n /= 2, base *= base)
        if (n % 2)
            p *= base;
    return p;
}
#endif

#if SPARSE
#if OWN
static Number own_term(Number x)
{
    return OWN_TERM;
}
#endif

static Number joint_term(Number x, Number z)
{
    return JOINT_TERM;
}

static void sums(const Row *row, Number *s)
{
#if OWN
    Number own_sum = 0;
    for (int j = 0; j < POINTS; j++)
        s[j] = own[j];
#else
    for (int j = 0; j < POINTS; j++)
        s[j] = 0;
#endif
    for (size_t n = 0; n < row->count; n++) {
        const uint32_t feature = row->index ? row->index[n] : (uint32_t)n;
        const Number x = ROW_VALUE;
        if (x == 0)
            continue;
#if OWN
        own_sum += own_term(x);
#endif
#if LISTED
        const uint32_t c = column_of(feature);
        if (c == COLUMNS || columns[c] != feature)
            continue;
#else
        const uint32_t c = feature;
#endif
#if RAGGED
        for (uint32_t e = starts[c]; e < starts[c + 1]; e++)
            s[owners[e]] += joint_term(x, POINT_VALUE);
#else
        for (uint32_t j = 0, e = c * POINTS; j < POINTS; j++, e++)
            s[j] += joint_term(x, POINT_VALUE);
#endif
    }
#if OWN
    for (int j = 0; j < POINTS; j++)
        s[j] += own_sum;
#endif
}

#if WIDTHS
static float kernel(float s, float width)
#else
static float kernel(float s)
#endif
{
    return VALUE;
}
#else
static Number term(Number x, Number z)
{
    return TERM;
}

#if CODED
#if WIDTHS
static float kernel(const float *x, uint32_t j, float width)
#else
static float kernel(const float *x, uint32_t j)
#endif
{
    float s = 0;
    for (uint32_t i = 0, entry = j * RANK; i < RANK; i++, entry++)
        s += term(x[i], POINT);
    return VALUE;
}
#else
#if WIDTHS
static float kernel(const RowEntry *x, const FLASH Entry *z, float width)
#else
static float kernel(const RowEntry *x, const FLASH Entry *z)
#endif
{
#if BITS == 8
    Number sum = 0;
    for (int i = 0; i < LENGTH; i++)
        sum += term(x[i], FINER z[i]);
    const float s = (float)sum;
#else
    Number s0 = 0, s1 = 0, s2 = 0, s3 = 0; /* four sums that the CPU adds to in parallel */
    int i = 0;
    for (; i < LENGTH - 3; i += 4) {
        s0 += term(x[i + 0], z[i + 0]);
        s1 += term(x[i + 1], z[i + 1]);
        s2 += term(x[i + 2], z[i + 2]);
        s3 += term(x[i + 3], z[i + 3]);
    }
    for (; i < LENGTH; i++)
        s0 += term(x[i], z[i]);
    const float s = SUM_OF_FOUR;
#endif
    return VALUE;
}
#endif
#endif

#if LEARNS
#include "learning.c"
#elif DECISION == DAG
static void evaluate(const Input *x, float *values)
{
#if SPARSE
    Number s[POINTS];
    sums(x, s);
    for (int j = 0; j < POINTS; j++)
        values[j] = KERNEL;
#else
#if CODED == 0
    const FLASH Entry *z = points;
#endif
#if PREPARED
    RowEntry row[LENGTH];
    prepare(x, row);
#endif
    for (int j = 0; j < POINTS; NEXT_VALUE)
        values[j] = KERNEL;
#endif
}

static float output(const float *values, int k)
{
    float sum = START;
    for (int j = 0; j < POINTS; j++)
        sum += values[j] * COEF_OF;
#if INTEGER_TABLES
    return COEF_UNIT * sum + BIAS;
#else
    return sum;
#endif
}
#else
OUTER void outputs(const Input *x, float *out)
{
#if SPARSE
    const FLASH float *c = coef;
    Number s[POINTS];
    sums(x, s);
#else
#if CODED == 0
    const FLASH Entry *z = points;
    const FLASH Coef *c = coef;
#endif
#if PREPARED
    RowEntry row[LENGTH];
    prepare(x, row);
#endif
#endif
    for (int k = 0; k < OUTPUTS; k++)
        out[k] = START;
    for (int j = 0; j < POINTS; NEXT) {
        const float v = KERNEL;
        for (int k = 0; k < OUTPUTS; k++)
            out[k] += v * COEF;
    }
#if INTEGER_TABLES
    for (int k = 0; k < OUTPUTS; k++)
        out[k] = COEF_UNIT * out[k] + BIAS;
#endif
}
#endif

#if DECISION == VOTES || DECISION == SCORED_VOTES
static void tally(const Input *x, float *votes, float *confidence)
{
    float out[OUTPUTS];
    outputs(x, out);
    for (int i = 0; i < CLASSES; i++)
        votes[i] = confidence[i] = 0;
    for (int i = 0, pair = 0; i < CLASSES; i++)
        for (int j = i + 1; j < CLASSES; j++, pair++) {
            const float f = out[pair];
            votes[f > 0 ? i : j] += 1;
            confidence[i] += f;
            confidence[j] -= f;
        }
}

PUBLIC void row_scores(const Input *x, float *scores)
{
    float confidence[CLASSES];
    tally(x, scores, confidence);
    for (int k = 0; k < CLASSES; k++)
        scores[k] += confidence[k] / (3 * ((confidence[k] < 0 ? -confidence[k] : confidence[k]) + 1));
}
#endif

#if DECISION == DAG
static int winner(const float *values)
{
    int first = 0, last = CLASSES - 1;
    while (first < last) {
        const int pair = first * (2 * CLASSES - first - 1) / 2 + last - first - 1;
        if (output(values, pair) > 0)
            last--;
        else
            first++;
    }
    return first;
}

PUBLIC void row_scores(const Input *x, float *scores)
{
    float confidence[CLASSES];
    float values[POINTS];
    evaluate(x, values);
    for (int i = 0; i < CLASSES; i++)
        scores[i] = confidence[i] = 0;
    for (int i = 0, pair = 0; i < CLASSES; i++)
        for (int j = i + 1; j < CLASSES; j++, pair++) {
            const float f = output(values, pair);
            scores[f > 0 ? i : j] += 1;
            confidence[i] += f;
            confidence[j] -= f;
        }
    for (int k = 0; k < CLASSES; k++)
        scores[k] += confidence[k] / (3 * ((confidence[k] < 0 ? -confidence[k] : confidence[k]) + 1));
    scores[winner(values)] += CLASSES;
}
#endif

#if MAP
#if MAP == ISOTONIC
static float curve(float score, int k)
{
    int i = knot_starts[k];
    const int last = knot_starts[k + 1] - 1;
    if (!(score > knot_scores[i]))
        return knot_values[i];
    while (i < last && score >= knot_scores[i + 1])
        i++;
    if (i == last)
        return knot_values[last];
    const float share = (score - knot_scores[i]) / (knot_scores[i + 1] - knot_scores[i]);
    return knot_values[i] + share * (knot_values[i + 1] - knot_values[i]);
}
#endif

PUBLIC void row_proba(const Input *x, float *proba)
{
    float scores[SCORES];
    row_scores(x, scores);
#if MAP == SOFTMAX
    float top = scores[0];
    for (int k = 1; k < SCORES; k++)
        top = scores[k] > top ? scores[k] : top;
#endif
    for (int k = 0; k < SCORES; k++)
        proba[k] = PROBABILITY;
#if CLASSES == 2
    proba[1] = proba[0] < LEAST ? LEAST : proba[0] > 1 - LEAST ? 1 - LEAST : proba[0];
    proba[0] = 1 - proba[1];
#else
    float sum = 0;
    for (int k = 0; k < CLASSES; k++) {
        proba[k] = proba[k] < LEAST ? LEAST : proba[k] > 1 - LEAST ? 1 - LEAST : proba[k];
        sum += proba[k];
    }
    for (int k = 0; k < CLASSES; k++)
        proba[k] /= sum;
#endif
}

PUBLIC int row_predict(const Input *x)
{
    int best = 0;
    float proba[CLASSES];
    row_proba(x, proba);
    for (int k = 1; k < CLASSES; k++)
        if (proba[k] > proba[best])
            best = k;
    return best;
}
#elif DECISION == SIGN
PUBLIC int row_predict(const Input *x)
{
    float scores[OUTPUTS];
    row_scores(x, scores);
    return scores[0] > 0;
}
#elif DECISION == SIDE
PUBLIC int row_predict(const Input *x)
{
    float scores[OUTPUTS];
    row_scores(x, scores);
    return scores[0] >= 0 ? 1 : -1;
}
#elif DECISION == VALUE_ITSELF
PUBLIC float row_predict(const Input *x)
{
    float out[OUTPUTS];
    outputs(x, out);
    return out[0];
}
#elif DECISION == VALUES
/* row_predict is the function of outputs. */
#elif DECISION == DAG
PUBLIC int row_predict(const Input *x)
{
    float values[POINTS];
    evaluate(x, values);
    return winner(values);
}
#else
PUBLIC int row_predict(const Input *x)
{
#if DECISION == LARGEST
    int best = 0;
    float scores[OUTPUTS];
    row_scores(x, scores);
#elif DECISION == SCORED_VOTES
    float scores[CLASSES];
    int best = 0;
    row_scores(x, scores);
#else
    float scores[CLASSES], confidence[CLASSES];
    int best = 0;
    tally(x, scores, confidence);
#endif
    for (int k = 1; k < CLASSES; k++)
        if (scores[k] > scores[best])
            best = k;
    return best;
}
#endif

#if SPARSE
/* Whether features are in increasing order and below FEATURES. */
static int is_valid(const uint32_t *index, size_t count)
{
    for (size_t n = 0; n < count; n++)
        if (index[n] >= FEATURES || (n > 0 && index[n] <= index[n - 1]))
            return 0;
    return 1;
}

#if DECISION == VALUES
void model_predict(const float *x, float *values)
{
    const Row row = { x, NULL, FEATURES };
    row_predict(&row, values);
}

int model_predict_sparse(const uint32_t *index, const float *value, size_t count, float *values)
{
    const Row row = { value, index, count };
    if (!is_valid(index, count))
        return -1;
    row_predict(&row, values);
    return 0;
}
#else
Prediction model_predict(const float *x)
{
    const Row row = { x, NULL, FEATURES };
    return row_predict(&row);
}

Prediction model_predict_sparse(const uint32_t *index, const float *value, size_t count)
{
    const Row row = { value, index, count };
    return is_valid(index, count) ? row_predict(&row) : INVALID;
}
#endif

#if DECISION != VALUE_ITSELF && DECISION != VALUES
void model_scores(const float *x, float *scores)
{
    const Row row = { x, NULL, FEATURES };
    row_scores(&row, scores);
}

int model_scores_sparse(const uint32_t *index, const float *value, size_t count, float *scores)
{
    const Row row = { value, index, count };
    if (!is_valid(index, count))
        return -1;
    row_scores(&row, scores);
    return 0;
}
#endif

#if MAP
void model_proba(const float *x, float *proba)
{
    const Row row = { x, NULL, FEATURES };
    row_proba(&row, proba);
}

int model_proba_sparse(const uint32_t *index, const float *value, size_t count, float *proba)
{
    const Row row = { value, index, count };
    if (!is_valid(index, count))
        return -1;
    row_proba(&row, proba);
    return 0;
}
#endif
#endif
