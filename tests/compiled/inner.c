/* What tests call of the compiled core that Python does not call by itself. */

#include "grid.c"
#include "site_clock.c"

/* Let a clock learn of an interval, as a site's learner does. */
EXPORTED void look(
    const struct clock *clock, double begin, double end, double rate, double theta, int64_t area,
    bool changed)
{
    while (crowded(clock, end))
        drop_oldest(clock);
    int64_t first = expose(clock, begin, end, rate, theta, area);
    if (changed)
        first = smaller_int(first, ascribe(clock, begin, end, rate, theta, area, 0));
    clock_sum_from(clock, first, (int64_t)((end - clock->facts->at) / clock->facts->width) + 1);
}

/* Read both clocks on these days. */
EXPORTED void read_days(
    const struct clock *clock, const double *days, int64_t count, int64_t area, double *shared,
    double *cold)
{
    for (int64_t k = 0; k < count; k++) {
        shared[k] = shared_at(clock, days[k]);
        cold[k] = cold_at(clock, days[k], area);
    }
}

EXPORTED double exp_digamma_of(double x) { return exp_digamma(x); }

/* Let a row of log-likelihoods drift, learn of an interval, and tell its mean rate. */
EXPORTED double row(
    float *sums, const double *prior, double days, double own, double cold, bool changed)
{
    drift(sums, prior, days);
    add_interval(sums, own, cold, changed);
    return mean_rate(sums, prior);
}

EXPORTED bool fit_rows(
    const float *sums, const int64_t *rows, int64_t count, double *prior, const double *parent,
    int64_t steps)
{
    return fit(sums, rows, count, prior, parent, steps);
}
