/* Learning row by row within a fixed memory, for models exported with update=True: `model.c` includes this text. The first
 * `size` seats hold the points, and there is one seat more than the budget. `learning.py` makes the same operations in the
 * same order. RULE is DESCENT, REGRESSION, NOVELTY, FORGETRON or RANDOM; MAINTENANCE is MERGING, REMOVAL or 0. */

static void sums(const float *row, float *out)
{
    for (int k = 0; k < OUTPUTS; k++)
        out[k] = 0;
    for (int j = 0; j < size; j++) {
        const float v = kernel(row, (uint32_t)j);
        for (int k = 0; k < OUTPUTS; k++)
            out[k] += v * coef[j * OUTPUTS + k];
    }
}

OUTER void outputs(const float *x, float *out)
{
#if PREPARED
    float row[FEATURES];
    prepare(x, row);
    sums(row, out);
#else
    sums(x, out);
#endif
#if RULE == DESCENT
    for (int k = 0; k < OUTPUTS; k++)
        out[k] = unit * out[k];
#elif RULE == REGRESSION || RULE == NOVELTY
    out[0] = unit * out[0] + offset;
#endif
}

#if ROOT
/* The square root by Newton's method, from an estimate that halves the exponent. */
static float root(float x)
{
    if (!(x > 0))
        return 0;
    union { float number; uint32_t bits; } both = { x };
    both.bits = 0x1fbd1df5u + (both.bits >> 1);
    float y = both.number;
    for (int i = 0; i < 4; i++)
        y = 0.5f * (y + x / y);
    return y;
}
#endif

#if MAINTENANCE || RULE == FORGETRON
static float product(int p, int j)
{
    float sum = 0;
    for (int k = 0; k < OUTPUTS; k++)
        sum += coef[p * OUTPUTS + k] * coef[j * OUTPUTS + k];
    return sum;
}
#endif

/* The point of one seat goes to another one. */
static void move_point(int to, int from)
{
    for (int i = 0; i < FEATURES; i++)
        points[to * FEATURES + i] = points[from * FEATURES + i];
    for (int k = 0; k < OUTPUTS; k++)
        coef[to * OUTPUTS + k] = coef[from * OUTPUTS + k];
#if MAINTENANCE
    born[to] = born[from];
#endif
}

#if MAINTENANCE
/* The point whose term has the least norm; of equal ones the oldest. */
static int least(void)
{
    float lowest = 0;
    int found = -1;
    for (int j = 0; j < size; j++) {
        const float norm = product(j, j)OWN_KERNEL;
        if (found < 0 || norm < lowest) {
            lowest = norm;
            found = j;
        }
    }
    const float bound = lowest * 1.00000095f;
    for (int j = 0; j < size; j++)
        if (product(j, j)OWN_KERNEL <= bound && born[j] < born[found])
            found = j;
    return found;
}
#endif

#if MAINTENANCE == MERGING
static float far_apart(int p, int j)
{
    float s = 0;
    for (int i = 0; i < FEATURES; i++)
        s += term(points[p * FEATURES + i], points[j * FEATURES + i]);
    return GAMMA * s;
}

/* exp(x) - 1 for x <= 0. */
static float growth(float x)
{
    if (x < -0.5f)
        return exponential(x) - 1;
    float p = 2.48015876e-5f;
    p = p * x + 1.98412701e-4f;
    p = p * x + 1.38888892e-3f;
    p = p * x + 8.33333377e-3f;
    p = p * x + 4.16666679e-2f;
    p = p * x + 0.166666672f;
    p = p * x + 0.5f;
    p = p * x + 1;
    return p * x;
}

/* The share of the first point in the best point between two, with squares a <= b and product c of their coefficients:
 * Newton's steps for the zero of the derivative, kept between its bounds. */
static float merge_share(float a, float c, float b, float far)
{
    float low = 0, high = 0.5f, h = 0, r = exponential(-far);
    if ((a * r + c) * r <= 1e-16f * b)
        return 0;
    for (int n = 0; n < 24; n++) {
        r = exponential(far * (2 * h - 1));
        const float value = (a * r * (1 - h) + c * (1 - 2 * h)) * r - b * h;
        if (value > 0)
            low = h;
        else
            high = h;
        const float slope = (4 * far * a * r * (1 - h) - a * r + 2 * c * (far * (1 - 2 * h) - 1)) * r - b;
        float step = slope < 0 ? h - value / slope : -1;
        if (!(low <= step && step <= high))
            step = 0.5f * (low + high);
        const float change = step < h ? h - step : step - h;
        h = step;
        if (change <= 2e-7f * high)
            break;
    }
    return h;
}

/* Replace the point of the least norm and its best partner by one point between them. */
static void maintain(void)
{
    const int p = least(), last = size - 1;
    const float a = product(p, p);
    float lowest = 0, share = 0, far = 0;
    int best = -1;
    for (int j = 0; j < size; j++) {
        if (j == p)
            continue;
        const float b = product(j, j), c = product(p, j), s = far_apart(p, j), h = merge_share(a, c, b, s);
        const float joint = exponential(-s * ((1 - h) * (1 - h))) * exponential(-s * (h * h));
        const float loss = 2 * c * joint * growth(-2 * s * (h * (1 - h))) - a * growth(-2 * s * ((1 - h) * (1 - h)))
            - b * growth(-2 * s * (h * h));
        if (best < 0 || loss < lowest) {
            lowest = loss;
            best = j;
            share = h;
            far = s;
        }
    }
    const float rest = 1 - share, u = exponential(-far * (rest * rest)), v = exponential(-far * (share * share));
    for (int i = 0; i < FEATURES; i++)
        points[best * FEATURES + i] = share * points[p * FEATURES + i] + rest * points[best * FEATURES + i];
    for (int k = 0; k < OUTPUTS; k++)
        coef[best * OUTPUTS + k] = u * coef[p * OUTPUTS + k] + v * coef[best * OUTPUTS + k];
    if (p != last)
        move_point(p, last);
    size = last;
}
#elif MAINTENANCE == REMOVAL
/* Remove the point of the least norm. */
static void maintain(void)
{
    const int p = least(), last = size - 1;
    if (p != last)
        move_point(p, last);
    size = last;
}
#endif

#if RULE == FORGETRON
/* The factor by which all coefficients shrink before the point in a seat leaves (Dekel, Shalev-Shwartz & Singer 2008);
 * `slack` is the damage of all removals less what the mistakes allow. The new point is in the free seat. */
static float shrinkage(int seat)
{
    const float *leaving = points + seat * FEATURES;
    float value = 0;
    for (int j = 0; j <= size; j++)
        value += kernel(leaving, (uint32_t)j) * product(seat, j);
    float square = product(seat, seat) * kernel(leaving, (uint32_t)seat);
    square = square > 0 ? square : 0;
    const float a = square - 2 * value, b = 2 * root(square);
    const float phi = a + b + slack <= 0 ? 1 : -2 * slack / (b + root(b * b - 4 * a * slack));
    slack += a * phi * phi + b * phi;
    return phi;
}
#elif RULE == RANDOM
/* NumPy's PCG64: a step of 128 bits, of which 32 bits are used at a time. */
static uint32_t random_bits(void)
{
    if (kept) {
        kept = 0;
        return rest;
    }
    const uint64_t factor = 0x4385df649fccf645u, ends = 0xffffffffu;
    const uint64_t low = (state_low & ends) * (factor & ends), high = (state_low >> 32) * (factor >> 32);
    const uint64_t first = (state_low >> 32) * (factor & ends), second = (state_low & ends) * (factor >> 32);
    const uint64_t middle = (low >> 32) + (first & ends) + (second & ends);
    state_high = state_high * factor + state_low * 0x2360ed051fc65da4u;
    state_high += high + (first >> 32) + (second >> 32) + (middle >> 32) + INC_HIGH;
    state_low = state_low * factor + INC_LOW;
    state_high += state_low < INC_LOW;
    const uint64_t mixed = state_high ^ state_low;
    const int turn = (int)(state_high >> 58);
    const uint64_t found = turn ? mixed >> turn | mixed << (64 - turn) : mixed;
    rest = (uint32_t)(found >> 32);
    kept = 1;
    return (uint32_t)found;
}

/* A seat below the budget; each is as likely (Lemire 2019). */
static int random_seat(void)
{
    if (BUDGET == 1)
        return 0;
    const uint32_t threshold = (0u - (uint32_t)BUDGET) % (uint32_t)BUDGET;
    uint64_t m;
    do
        m = (uint64_t)random_bits() * BUDGET;
    while ((uint32_t)m < threshold);
    return (int)(m >> 32);
}
#endif

int model_update(const float *x UPDATE_LABEL)
{
#if RULE == REGRESSION
    if (label - label != 0)
        return -1;
#elif RULE != NOVELTY
    if (label < 0 || label >= CLASSES)
        return -1;
#endif
    float *row = points + size * FEATURES, *c = coef + size * OUTPUTS; /* the free seat */
#if PREPARED
    prepare(x, row);
#endif
    for (int i = 0; i < FEATURES; i++) {
#if PREPARED == 0
        row[i] = x[i];
#endif
        if (row[i] - row[i] != 0)
            return -1;
    }
    float out[OUTPUTS];
    sums(row, out);
#if RULE == REGRESSION || RULE == NOVELTY
    seen += seen < 0xffffffffu;
    const float scale = LAM * ((float)seen + LATE);
    unit = 1 / scale;
#if RULE == REGRESSION
    const float residual = label - offset - out[0] / scale;
    const float beyond = (residual < 0 ? -residual : residual) - EPSILON;
    if (!(beyond > 0))
        return 0;
    const float own = kernel(row, (uint32_t)size), full = scale * beyond / own;
    c[0] = own > 0 && full < 1 ? full : 1;
    c[0] = residual < 0 ? -c[0] : c[0];
#else
    if (!(out[0] / scale < -offset)) {
        offset -= NU / scale;
        return 0;
    }
    offset += (1 - NU) / scale;
    c[0] = 1;
#endif
#else
#if OUTPUTS == 1
    const float margin = label ? out[0] : -out[0];
#else
    int rival = label == 0;
    for (int k = 0; k < OUTPUTS; k++)
        if (k != label && out[k] > out[rival])
            rival = k;
    const float margin = out[label] - out[rival];
#endif
#if RULE == DESCENT
    const float required = LAM * (float)seen;
    seen += seen < 0xffffffffu;
    unit = 1 / (LAM * (float)seen);
    if (!(margin <= required))
        return 0;
    const float step = STEP;
#else
    if (!(margin <= 0))
        return 0;
    const float own = kernel(row, (uint32_t)size), step = 1 / root(own > 0 ? MOVE_SQUARE * own : MOVE_SQUARE);
#endif
#if OUTPUTS == 1
    c[0] = label ? step : -step;
#else
    for (int k = 0; k < OUTPUTS; k++)
        c[k] = k == label ? step : k == rival ? -step : 0;
#endif
#endif
#if RULE == FORGETRON
    slack -= 0.46875f;
    if (size == BUDGET) {
        const float phi = shrinkage(oldest);
        for (int n = 0; n < (BUDGET + 1) * OUTPUTS; n++)
            coef[n] *= phi;
        move_point(oldest, size);
        oldest = oldest + 1 < BUDGET ? oldest + 1 : 0;
        return 1;
    }
#elif RULE == RANDOM
    if (size == BUDGET) {
        move_point(random_seat(), size);
        return 1;
    }
#endif
#if MAINTENANCE
    born[size] = ++moves;
#endif
    size++;
#if MAINTENANCE
    if (size > BUDGET)
        maintain();
#endif
    return 1;
}
