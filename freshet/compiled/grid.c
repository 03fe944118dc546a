/* Posteriors of change rates on a grid: scheduler/estimate/site_model.py has the method. */

#include <stdlib.h>

#include "core.h"

static const double PAGES_OF_PRIOR = 10.0;
/* T, days. */
static const double KEPT_DAYS = 1500.0;
static const double LEAST = 1e-12;
static const double LEAST_PROBABILITY = 1e-4;
/* Pages that a prior is fitted to, at most twice as many. */
enum { SAMPLE = 4096 };

static double RATES[POINTS], LOGS[POINTS];

__attribute__((constructor)) static void fill(void)
{
    double first = log(2e-4), last = log(50.0);
    for (int k = 0; k < POINTS; k++) {
        RATES[k] = exp(k < POINTS - 1 ? first + k * ((last - first) / (POINTS - 1)) : last);
        LOGS[k] = log(RATES[k]);
    }
}

/* Write the rates (POINTS); return 0. */
EXPORTED int64_t grid_rates(double *rates)
{
    for (int k = 0; k < POINTS; k++)
        rates[k] = RATES[k];
    return 0;
}

static float largest(const float *sums)
{
    float most = sums[0];
    for (int k = 1; k < POINTS; k++)
        most = sums[k] > most ? sums[k] : most;
    return most;
}

/* Add ln P of an interval with the hazards d * own + cold, with a change or without.
 *
 * An unchanged interval speaks of the page's own time alone. */
void add_interval(float *sums, double own, double cold, bool changed)
{
    if (changed)
        for (int k = 0; k < POINTS; k++)
            sums[k] = (float)(sums[k] + log(larger(-expm1(-RATES[k] * own - cold), LEAST)));
    else
        for (int k = 0; k < POINTS; k++)
            sums[k] = (float)(sums[k] - RATES[k] * own);
}

/* Let a page's rate have changed within these days: p <- (1 - e) p + e * prior. */
void drift(float *sums, const double *prior, double days)
{
    float most = largest(sums);
    float relative[POINTS];
    double total = 0.0;
    for (int k = 0; k < POINTS; k++) {
        relative[k] = expf(sums[k] - most);
        total += prior[k] * relative[k];
    }
    double another = -expm1(-days / KEPT_DAYS);
    for (int k = 0; k < POINTS; k++)
        sums[k] = (float)log((1 - another) * relative[k] / total + another);
}

/* Return exp(E[ln d]) under a row of log-likelihoods and a prior. */
double mean_rate(const float *sums, const double *prior)
{
    float most = largest(sums);
    double total = 0.0, mean = 0.0;
    for (int k = 0; k < POINTS; k++) {
        double weight = prior[k] * expf(sums[k] - most);
        total += weight;
        mean += weight * LOGS[k];
    }
    return exp(mean / total);
}

/* Return -ln of the probability that was given to the outcome, clipped away from 0 and 1. */
double log_loss(double hazard, bool changed)
{
    double probability = larger(-expm1(-hazard), LEAST_PROBABILITY);
    probability = smaller(probability, 1 - LEAST_PROBABILITY);
    return changed ? -log(probability) : -log(1 - probability);
}

/* Return the sum of `row` * `prior` (POINTS): four sums, which the processor adds up at once. */
static double mixed(const float *row, const double *prior)
{
    double sums[4] = {0};
    for (int k = 0; k < POINTS; k += 4)
        for (int lane = 0; lane < 4; lane++)
            sums[lane] += row[k + lane] * prior[k + lane];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

/* Fit a prior to the pages in these rows (NULL: the first `count`), or to a sample of them, near
 * `parent`, by expectation and maximisation. Return false where there is no memory for it. */
bool fit(
    const float *sums, const int64_t *rows, int64_t count,
    double *prior, const double *parent, int64_t steps)
{
    int64_t every = larger_int(1, count / SAMPLE);
    int64_t taken = (count + every - 1) / every;
    float *likelihood = malloc((size_t)larger_int(taken, 1) * POINTS * sizeof *likelihood);
    if (!likelihood)
        return false;
    for (int64_t j = 0; j < taken; j++) {
        const float *row = sums + POINTS * (rows ? rows[j * every] : j * every);
        float most = largest(row);
        for (int k = 0; k < POINTS; k++)
            likelihood[POINTS * j + k] = expf(row[k] - most);
    }
    /* From the same start each time: few steps keep it smooth. */
    for (int k = 0; k < POINTS; k++)
        prior[k] = parent[k];
    for (int64_t step = 0; step < steps; step++) {
        double shares[POINTS] = {0};
        for (int64_t j = 0; j < taken; j++) {
            const float *row = likelihood + POINTS * j;
            double each = 1 / mixed(row, prior);
            for (int k = 0; k < POINTS; k++)
                shares[k] += row[k] * each;
        }
        for (int k = 0; k < POINTS; k++) {
            double own = prior[k] * shares[k] + PAGES_OF_PRIOR * parent[k];
            prior[k] = own / ((double)taken + PAGES_OF_PRIOR);
        }
    }
    free(likelihood);
    return true;
}
