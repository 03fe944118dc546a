/* What tests call of the compiled core that Python does not call by itself. */

#include "grid.c"

/* Add ln P of an interval to a row of log-likelihoods. */
EXPORTED void days_of(float *sums, double days, bool changed) { add_days(sums, days, changed); }

/* Write the posterior; return the probability that nothing changed, and the days of staleness. */
EXPORTED double prospect(
    const float *sums, const double *prior, float *belief, double days, double *stale)
{
    posterior(sums, prior, belief);
    *stale = stale_days(belief, days);
    return unchanged(belief, days);
}

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
