/* slim.c: see slim.h. SPDX-License-Identifier: 0BSD */
#include "slim.h"

enum { HEAD = 64, VERSION = 1, MOST = 1 << 24, MOST_DEGREE = 1024 };
enum { SCALED = 1, CLIPS = 2, PROJECTED = 4, WIDTHS = 8 };
enum { LINEAR, RBF, POLY, SIGMOID, LAPLACIAN, CHI2, KERNELS };
enum { NO_MAP, LOGISTIC, ISOTONIC, TEMPERATURE, MAPS };

static const float LEAST = 1e-7f;

/* Numbers of an image, which may lie at any address. */

static uint32_t u16(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

static uint32_t u32(const uint8_t *p)
{
    return u16(p) | u16(p + 2) << 16;
}

static float f32(const uint8_t *p, size_t i)
{
    union { uint32_t bits; float number; } both;
    both.bits = u32(p + 4 * i);
    return both.number;
}

static uint32_t crc32(const uint8_t *p, size_t size)
{
    uint32_t crc = 0xFFFFFFFFu;
    while (size--) {
        crc ^= *p++;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
    }
    return ~crc;
}

static float number(const slim_table *table, size_t row, size_t column)
{
    const size_t i = row * table->columns + column;
    if (table->bits == 32)
        return f32(table->codes, i);
    const size_t pair = table->columns <= table->rows ? column : row;
    const uint32_t code = table->bits == 4 ? (uint32_t)table->codes[i / 2] >> i % 2 * 4 & 15
                          : table->bits == 8 ? table->codes[i] : u16(table->codes + 2 * i);
    const float product = f32(table->step, pair) * (float)code;
    return f32(table->low, pair) + product;
}

/* Loading: the arrays lie one after the other, and each begins at a multiple of 4. */

typedef struct {
    const uint8_t *next;
    uint64_t left;
    int failed;
} Cursor;

static const uint8_t *take(Cursor *cursor, uint64_t bytes)
{
    const uint8_t *found = cursor->next;
    bytes = (bytes + 3) / 4 * 4;
    if (cursor->failed || bytes > cursor->left) {
        cursor->failed = 1;
        return NULL;
    }
    cursor->next += bytes;
    cursor->left -= bytes;
    return found;
}

static void take_table(Cursor *cursor, slim_table *table, uint32_t rows, uint32_t columns, uint8_t bits)
{
    const uint64_t pairs = rows < columns ? rows : columns;
    table->rows = rows;
    table->columns = columns;
    table->bits = bits;
    table->codes = take(cursor, ((uint64_t)rows * columns * bits + 7) / 8);
    table->low = bits < 32 ? take(cursor, 4 * pairs) : NULL;
    table->step = bits < 32 ? take(cursor, 4 * pairs) : NULL;
}

/* Whether the outputs and classes are those of the decision. */
static int fits_decision(const slim_model *m)
{
    const uint64_t pairs = (uint64_t)m->classes * (m->classes ? m->classes - 1 : 0) / 2;
    switch (m->decision) {
    case SLIM_SIGN:
        return m->outputs == 1 && m->classes == 2;
    case SLIM_LARGEST:
        return m->outputs == m->classes && m->classes > 2;
    case SLIM_VALUE:
    case SLIM_SIDE:
        return m->outputs == 1 && m->classes == 0;
    default:
        return m->outputs == pairs && m->classes > 2;
    }
}

/* Whether the knots of each score begin where those of the last one end. */
static int fits_knots(const slim_model *m)
{
    const uint8_t *starts = m->map + 8 * (size_t)m->knots;
    for (uint32_t k = 0; k < m->scores; k++)
        if (u32(starts + 4 * k) >= u32(starts + 4 * k + 4))
            return 0;
    return u32(starts) == 0 && u32(starts + 4 * m->scores) == m->knots;
}

static int fits_labels(Cursor *cursor, uint32_t classes)
{
    uint64_t at = 4;
    for (uint32_t k = 0; k < classes; k++) {
        if (cursor->failed || at + 2 > cursor->left)
            return 0;
        at += 2 + u16(cursor->next + at);
    }
    return classes == 0 || at <= cursor->left;
}

slim_status slim_load(slim_model *m, const void *image, size_t size)
{
    const uint8_t *head = image;
    if (size < HEAD)
        return SLIM_SHORT;
    if (head[0] != 'S' || head[1] != 'L' || head[2] != 'M' || head[3] != 'I')
        return SLIM_OTHER;
    if (u16(head + 4) != VERSION || u16(head + 6) != HEAD)
        return SLIM_VERSION;
    const uint32_t length = u32(head + 8);
    if (length < HEAD || length > size)
        return SLIM_SHORT;
    if (crc32(head + 16, length - 16) != u32(head + 12))
        return SLIM_CHECKSUM;
    const uint8_t bits = head[19];
    m->kernel = head[16];
    m->decision = head[17];
    m->map_kind = head[18];
    m->flags = head[20];
    if (m->kernel >= KERNELS || m->decision > SLIM_SIDE || m->map_kind >= MAPS || m->flags > 15 || head[21] || head[22]
        || head[23] || (bits != 4 && bits != 8 && bits != 16 && bits != 32))
        return SLIM_UNKNOWN;
    uint32_t *counts[] = { &m->features, &m->columns, &m->size, &m->outputs, &m->classes, &m->knots };
    for (size_t i = 0; i < 6; i++) {
        *counts[i] = u32(head + 24 + 4 * i);
        if (*counts[i] >= MOST || (i < 4 && *counts[i] == 0))
            return SLIM_LENGTHS;
    }
    m->gamma = f32(head, 12);
    m->coef0 = f32(head, 13);
    m->degree = u32(head + 56);
    m->temperature = f32(head, 15);
    m->scores = m->decision >= SLIM_VOTES && m->decision <= SLIM_DAG ? m->classes : m->outputs;
    const int projected = m->flags & PROJECTED;
    if (!fits_decision(m) || (projected ? m->columns > m->features : m->columns != m->features)
        || m->degree > MOST_DEGREE || (m->map_kind && m->classes == 0) || (m->flags & CLIPS && !(m->flags & SCALED)))
        return SLIM_LENGTHS;

    Cursor cursor = { head + HEAD, length - HEAD, 0 };
    const uint64_t features = 4 * (uint64_t)m->features;
    m->centre = m->flags & SCALED ? take(&cursor, 2 * features) : NULL;
    m->low = m->flags & CLIPS ? take(&cursor, 2 * features) : NULL;
    if (projected)
        take_table(&cursor, &m->projection, m->features, m->columns, bits);
    take_table(&cursor, &m->points, m->size, m->columns, bits);
    m->widths = m->flags & WIDTHS ? take(&cursor, 4 * (uint64_t)m->size) : NULL;
    take_table(&cursor, &m->coef, m->size, m->outputs, bits);
    m->bias = take(&cursor, 4 * (uint64_t)m->outputs);
    const uint64_t numbers[] = { 0, 2 * (uint64_t)m->scores, 2 * (uint64_t)m->knots + m->scores + 1, 0 };
    m->map = take(&cursor, 4 * numbers[m->map_kind]);
    m->labels = cursor.next;
    if (cursor.failed || !fits_labels(&cursor, m->classes) || (m->map_kind == ISOTONIC && !fits_knots(m)))
        return SLIM_LENGTHS;
    return SLIM_OK;
}

size_t slim_work(const slim_model *m)
{
    return (size_t)m->columns + m->outputs + 2 * (size_t)m->classes + m->scores;
}

/* Predictions: in float32, operation by operation as Python does. */

/* exp(x): a polynomial about the nearest power of 2. */
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
    union { uint32_t bits; float number; } two;
    two.bits = (uint32_t)(n + 127) << 23;
    return p * two.number;
}

static float logistic(float x)
{
    return 1 / (1 + exponential(-x));
}

/* The row in the coordinates of the points. */
static const float *prepare(const slim_model *m, const float *x, float *row)
{
    if (!(m->flags & (SCALED | PROJECTED)))
        return x;
    for (uint32_t r = 0; r < m->columns; r++)
        row[r] = 0;
    for (uint32_t i = 0; i < m->features; i++) {
        float t = x[i];
        if (m->flags & SCALED)
            t = (t - f32(m->centre, i)) * f32(m->centre, m->features + (size_t)i);
        if (m->flags & CLIPS) {
            const float low = f32(m->low, i), high = f32(m->low, m->features + (size_t)i);
            t = t < low ? low : t > high ? high : t;
        }
        if (m->flags & PROJECTED)
            for (uint32_t r = 0; r < m->columns; r++)
                row[r] += t * number(&m->projection, i, r);
        else
            row[i] = t;
    }
    return row;
}

static float kernel(const slim_model *m, const float *x, uint32_t j)
{
    float s = 0;
    for (uint32_t i = 0; i < m->columns; i++) {
        const float z = number(&m->points, j, i), d = x[i] - z;
        switch (m->kernel) {
        case RBF:
            s += d * d;
            break;
        case LAPLACIAN:
            s += d < 0 ? -d : d;
            break;
        case CHI2:
            s += x[i] + z != 0 ? d * d / (x[i] + z) : 0;
            break;
        default:
            s += x[i] * z;
        }
    }
    if (m->kernel == LINEAR)
        return s;
    if (m->kernel == POLY) {
        float p = 1, base = m->gamma * s + m->coef0;
        for (uint32_t n = m->degree; n > 0; n /= 2, base *= base)
            if (n % 2)
                p *= base;
        return p;
    }
    if (m->kernel == SIGMOID) {
        const float t = m->gamma * s + m->coef0, share = exponential(t < 0 ? 2 * t : -2 * t);
        return t < 0 ? -(1 - share) / (1 + share) : (1 - share) / (1 + share);
    }
    return exponential((m->widths ? -m->gamma * f32(m->widths, j) : -m->gamma) * s);
}

static void evaluate(const slim_model *m, const float *x, float *out, float *row)
{
    x = prepare(m, x, row);
    for (uint32_t k = 0; k < m->outputs; k++)
        out[k] = f32(m->bias, k);
    for (uint32_t j = 0; j < m->size; j++) {
        const float v = kernel(m, x, j);
        for (uint32_t k = 0; k < m->outputs; k++)
            out[k] += v * number(&m->coef, j, k);
    }
}

static uint32_t largest(const float *values, uint32_t count)
{
    uint32_t best = 0;
    for (uint32_t k = 1; k < count; k++)
        if (values[k] > values[best])
            best = k;
    return best;
}

/* The class of the DAG: the output of the first and the last remaining class removes one, until one is left. */
static uint32_t winner(const slim_model *m, const float *out)
{
    size_t first = 0, last = m->classes - 1;
    while (first < last) {
        if (out[first * (2 * (size_t)m->classes - first - 1) / 2 + last - first - 1] > 0)
            last--;
        else
            first++;
    }
    return (uint32_t)first;
}

/* Scores of outputs; for pairs of classes also the votes alone, if there is a place for them. */
static void score(const slim_model *m, const float *out, float *scores, float *confidence, float *votes)
{
    if (m->decision < SLIM_VOTES || m->decision > SLIM_DAG) {
        for (uint32_t k = 0; k < m->outputs; k++)
            scores[k] = out[k];
        return;
    }
    for (uint32_t k = 0; k < m->classes; k++)
        scores[k] = confidence[k] = 0;
    for (size_t i = 0, pair = 0; i < m->classes; i++)
        for (size_t j = i + 1; j < m->classes; j++, pair++) {
            scores[out[pair] > 0 ? i : j] += 1;
            confidence[i] += out[pair];
            confidence[j] -= out[pair];
        }
    for (uint32_t k = 0; k < m->classes; k++) {
        if (votes)
            votes[k] = scores[k];
        scores[k] += confidence[k] / (3 * ((confidence[k] < 0 ? -confidence[k] : confidence[k]) + 1));
    }
    if (m->decision == SLIM_DAG)
        scores[winner(m, out)] += (float)m->classes;
}

void slim_scores(const slim_model *m, const float *row, float *scores, float *work)
{
    float *out = work + m->columns;
    evaluate(m, row, out, work);
    score(m, out, scores, out + m->outputs, NULL);
}

static float curve(const slim_model *m, float x, uint32_t k)
{
    const uint8_t *values = m->map + 4 * (size_t)m->knots, *starts = values + 4 * (size_t)m->knots;
    size_t i = u32(starts + 4 * (size_t)k);
    const size_t last = u32(starts + 4 * (size_t)k + 4) - 1;
    if (!(x > f32(m->map, i)))
        return f32(values, i);
    while (i < last && x >= f32(m->map, i + 1))
        i++;
    if (i == last)
        return f32(values, last);
    const float share = (x - f32(m->map, i)) / (f32(m->map, i + 1) - f32(m->map, i));
    return f32(values, i) + share * (f32(values, i + 1) - f32(values, i));
}

int slim_proba(const slim_model *m, const float *row, float *proba, float *work)
{
    float *scores = work + m->columns + m->outputs + 2 * (size_t)m->classes, sum = 0;
    if (m->map_kind == NO_MAP)
        return -1;
    slim_scores(m, row, scores, work);
    const float top = m->scores > 1 ? scores[largest(scores, m->scores)] : 0;
    for (uint32_t k = 0; k < m->scores; k++) {
        float p = m->map_kind == LOGISTIC   ? logistic(f32(m->map, k) * scores[k] + f32(m->map, m->scores + (size_t)k))
                  : m->map_kind == ISOTONIC ? curve(m, scores[k], k)
                  : m->scores == 1          ? logistic(scores[0] / m->temperature)
                                            : exponential((scores[k] - top) / m->temperature);
        proba[k] = p < LEAST ? LEAST : p > 1 - LEAST ? 1 - LEAST : p;
        sum += proba[k];
    }
    if (m->scores == 1) {
        proba[1] = proba[0];
        proba[0] = 1 - proba[1];
        return 0;
    }
    for (uint32_t k = 0; k < m->classes; k++)
        proba[k] /= sum;
    return 0;
}

int slim_predict(const slim_model *m, const float *row, float *work)
{
    float *out = work + m->columns, *first = out + m->outputs, *second = first + m->classes;
    if (m->map_kind != NO_MAP) {
        slim_proba(m, row, second, work);
        return (int)largest(second, m->classes);
    }
    evaluate(m, row, out, work);
    switch (m->decision) {
    case SLIM_SIGN:
        return out[0] > 0;
    case SLIM_SIDE:
        return out[0] >= 0 ? 1 : -1;
    case SLIM_VALUE:
        return 0;
    case SLIM_LARGEST:
        return (int)largest(out, m->outputs);
    case SLIM_DAG:
        return (int)winner(m, out);
    default: {
        float *scores = second + m->classes;
        score(m, out, scores, first, second);
        return (int)largest(m->decision == SLIM_VOTES ? second : scores, m->classes);
    }
    }
}

const char *slim_label(const slim_model *m, uint32_t number_of_class, size_t *length)
{
    const uint8_t *at = m->labels + 4;
    while (number_of_class--)
        at += 2 + u16(at);
    *length = u16(at);
    return (const char *)at + 2;
}
