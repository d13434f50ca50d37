/* A row of floats as a row of integers, for devices that have floats where rows are made. */

void model_quantise(const float *x, RowEntry *row)
{
    for (int i = 0; i < FEATURES; i++) {
        float t = (x[i] - CENTRE) * SCALE;
        t = t > -END ? t > END ? END : t : -END;
        row[i] = (RowEntry)((int32_t)(t + (END + 0.5f)) - (int32_t)END);
    }
}

#if DECISION == VALUE_ITSELF
float model_value(int32_t prediction)
{
    return (float)prediction * UNIT + OFFSET;
}
#endif
