/* The C export in integers only: `c_integers.py` writes the tables and constants of a model in front of this text, keeps the
 * branches of #if that the model needs, and puts words and expressions in the place of these:
 *
 *   RowEntry, Entry, Coef            types: of a row, of numbers of points, and of coefficients
 *   POINT, COEF                      a number of the tables
 *   model_..., row_...               functions for callers
 *
 * `integers.py` computes the same in Python, integer by integer. */

#if PROJECTED
/* The coordinates of points: a row times a matrix of codes with a low end and a step for each coordinate. */
static void project(const RowEntry *x, int16_t *u)
{
    int32_t sum = 0, products[RANK];
    for (int r = 0; r < RANK; r++)
        products[r] = 0;
    for (int i = 0; i < FEATURES; i++) {
        const RowEntry q = x[i];
        if (q == 0)
            continue;
        sum += q;
        for (int r = 0; r < RANK; r++)
            products[r] += (int32_t)q * PROJECTION;
    }
    sum >>= SUM_SHIFT;
    for (int r = 0; r < RANK; r++) {
        const int32_t moved = sum * projection_low[r] + (products[r] >> PRODUCT_SHIFT) * projection_step[r];
        const int32_t t = (moved >> PROJECTION_SHIFT) + projection_offset[r];
        u[r] = (int16_t)(t > END ? END : t < -END ? -END : t);
    }
}
#endif

/* The sum over the features of a row and point j. */
static Total total(const Place *x, int j)
{
    Total sum = 0;
#if BYTE_SQUARES
    const FLASH Entry *point = points + (size_t)j * RANK;
    ADD_SQUARES(sum, x, point);
#else
#if CODED
    uint16_t entry = (uint16_t)(j * RANK);
    for (int i = 0; i < RANK; i++, entry++) {
        const int16_t z = POINT;
#else
    const FLASH Entry *point = points + (size_t)j * RANK;
    for (int i = 0; i < RANK; i++) {
        const Place z = FINER_POINT;
#endif
#if TERM == INNER
        sum += (int32_t)x[i] * z;
#elif TERM == MANHATTAN
        sum += (Distance)(x[i] > z ? x[i] - z : z - x[i]);
#else
        const int16_t d = (int16_t)(x[i] - z);
        sum += (uint32_t)((int32_t)d * d);
#endif
    }
#endif
    return sum;
}

#if VALUE == EXP || VALUE == TANH
/* 2^-t in units of 2^-15, t in parts of an octave: one table for each half of the bits of its fraction. */
static uint16_t power_of_half(uint16_t t, uint8_t drop)
{
    const uint16_t whole = (uint16_t)((uint32_t)coarse[COARSE_PART] * fine[t & MASK] << 1 >> 16);
    return (uint16_t)(whole >> (uint8_t)((uint8_t)(t >> 2 * HALF) + drop));
}
#endif

#if VALUE == EXP
/* The kernel value of a distance, in units of 2^-(15 - DROP). */
#if WIDTHS
static int16_t value(uint32_t s, uint16_t factor)
#else
static int16_t value(uint32_t s)
#endif
{
#if LEFT != 0
    if (s >> (32 - LEFT))
        return 0;
    s <<= LEFT;
#endif
    s = SCALED(s, FACTOR_OF) >> DOWN;
    return s < (16u << 2 * HALF) ? (int16_t)power_of_half((uint16_t)s, DROP) : 0;
}
#elif VALUE == TANH || VALUE == POWER
/* FACTOR s + OFFSET in fixed point. */
static int32_t line(int32_t s)
{
    const int32_t t = ((s >> BEFORE) * FACTOR >> AFTER) + OFFSET;
    return t > MOST ? MOST : t < -MOST ? -MOST : t;
}

#if VALUE == TANH
/* tanh in units of 2^-14. */
static int32_t value(int32_t s)
{
    const int32_t t = line(s);
    const int32_t share = power_of_half((uint16_t)(t < 0 ? -t : t), 0);
    const int32_t size = ((32768 - share) << 14) / (32768 + share);
    return t < 0 ? -size : size;
}
#else
/* A power in units of 2^-30 of the largest one. */
static int32_t value(int32_t s)
{
    const int32_t base = line(s);
    int32_t p = (int32_t)1 << 30;
    for (int n = 0; n < DEGREE; n++)
        p = (int32_t)((int64_t)p * base >> 15);
    return p;
}
#endif
#endif

OUTER void outputs(const RowEntry *x, int32_t *out)
{
#if PROJECTED
    int16_t place[RANK];
    project(x, place);
#endif
#if VALUE == IDENTITY
    for (int k = 0; k < OUTPUTS; k++)
        out[k] = total(PLACE, k) + bias[k];
#else
#if VALUE == POWER
    int64_t sums[OUTPUTS];
#endif
    for (int k = 0; k < OUTPUTS; k++)
        SUM[k] = 0;
    for (int j = 0; j < POINTS; j++) {
        const Value v = value(total(PLACE, j)WIDTH);
        if (v == 0)
            continue;
#if PLAIN_COEF
        const FLASH Coef *c = coef + (size_t)j * OUTPUTS;
#endif
        for (int k = 0; k < OUTPUTS; k++)
#if BYTE_COEF
            ADD_PRODUCT(out[k], v, COEF);
#else
            SUM[k] += (Sum)v * (int16_t)COEF;
#endif
    }
    for (int k = 0; k < OUTPUTS; k++)
#if VALUE == POWER
        out[k] = (int32_t)(sums[k] >> 16) + bias[k];
#else
        out[k] += bias[k];
#endif
#endif
}

#if PAIRS
static void tally(const RowEntry *x, int32_t *votes, int32_t *confidence, int32_t *out)
{
    outputs(x, out);
    for (int i = 0; i < CLASSES; i++)
        votes[i] = confidence[i] = 0;
    for (int i = 0, pair = 0; i < CLASSES; i++)
        for (int j = i + 1; j < CLASSES; j++, pair++) {
            const int32_t f = out[pair] >> PAIR_SHIFT;
            votes[out[pair] > 0 ? i : j] += 1;
            confidence[i] += f;
            confidence[j] -= f;
        }
}

#if DECISION == DAG
static int winner(const int32_t *out)
{
    int first = 0, last = CLASSES - 1;
    while (first < last) {
        const int pair = first * (2 * CLASSES - first - 1) / 2 + last - first - 1;
        if (out[pair] > 0)
            last--;
        else
            first++;
    }
    return first;
}
#endif

void model_scores(const RowEntry *x, int32_t *scores)
{
    int32_t confidence[CLASSES], out[OUTPUTS];
    tally(x, scores, confidence, out);
    for (int k = 0; k < CLASSES; k++)
        scores[k] = scores[k] * ((int32_t)1 << VOTE_BITS) + (confidence[k] >> (32 - VOTE_BITS));
#if DECISION == DAG
    scores[winner(out)] += (int32_t)CLASSES << VOTE_BITS;
#endif
}
#endif

Prediction model_predict(const RowEntry *x)
{
#if DECISION == SIGN
    int32_t out[OUTPUTS];
    outputs(x, out);
    return out[0] > 0;
#elif DECISION == SIDE
    int32_t out[OUTPUTS];
    outputs(x, out);
    return out[0] >= 0 ? 1 : -1;
#elif DECISION == VALUE_ITSELF
    int32_t out[OUTPUTS];
    outputs(x, out);
    return out[0];
#elif DECISION == DAG
    int32_t out[OUTPUTS];
    outputs(x, out);
    return winner(out);
#else
    int best = 0;
#if DECISION == LARGEST
    int32_t scores[OUTPUTS];
    outputs(x, scores);
#elif DECISION == SCORED_VOTES
    int32_t scores[CLASSES];
    model_scores(x, scores);
#else
    int32_t scores[CLASSES], confidence[CLASSES], out[OUTPUTS];
    tally(x, scores, confidence, out);
#endif
    for (int k = 1; k < SCORES; k++)
        if (scores[k] > scores[best])
            best = k;
    return best;
#endif
}
