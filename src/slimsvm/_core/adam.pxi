# Steps of Adam.

def adam_step(double rate, double[::1] settings, const double[::1] slope, double[::1] x, double[::1] mean, double[::1] square):
    """Take a step in place; settings are the decay rates of `mean` and `square`, and a number that is added to the root."""
    same(settings.shape[0], 3)
    for each in (slope.shape[0], mean.shape[0], square.shape[0]):
        same(each, x.shape[0])
    if x.shape[0]:
        with nogil:
            build.adam_step(x.shape[0], rate, &settings[0], &slope[0], &x[0], &mean[0], &square[0])
