/* Posteriors of change rates on a grid: the rates of a page, and what follows of them;
 * scheduler/estimate/site_model.py has the method. */

#include <stdlib.h>

#include "core.h"

static const double PAGES_OF_PRIOR = 10.0;
/* T, days. */
static const double KEPT_DAYS = 1500.0;
static const double LEAST = 1e-12;
static const double LEAST_PROBABILITY = 1e-4;
/* Pages that a prior is fitted to, at most twice as many. */
enum { SAMPLE = 4096 };

/* Functions of x = rate * days on an even grid of ln x, FINE times as fine as that of the rates: the
 * entries for all rates are FINE apart. */
enum { FINE = 16, DAYS = 1248, ENTRIES = DAYS + FINE * POINTS };
static const double FEWEST_DAYS = 1e-6;
static double STEP, CHANGED[ENTRIES], STILL[ENTRIES], STALE[ENTRIES];

double RATES[POINTS], LOGS[POINTS], GENERAL_PRIOR[POINTS];
/* The general prior: x^SHAPE e^-x of rates around a mean, and a little of everything. */
static const double MEAN = 0.004, SHAPE = 0.3, ANYTHING = 0.02;

__attribute__((constructor)) static void fill(void)
{
    double first = log(1.0 / 20000), last = log(50.0), total = 0.0;
    for (int k = 0; k < POINTS; k++) {
        LOGS[k] = first + k * ((last - first) / (POINTS - 1));
        RATES[k] = exp(LOGS[k]);
        double x = SHAPE * RATES[k] / MEAN;
        GENERAL_PRIOR[k] = pow(x, SHAPE) * exp(-x);
        total += GENERAL_PRIOR[k];
    }
    for (int k = 0; k < POINTS; k++)
        GENERAL_PRIOR[k] = (1 - ANYTHING) * GENERAL_PRIOR[k] / total + ANYTHING / POINTS;
    STEP = (last - first) / (POINTS - 1) / FINE;
    for (int j = 0; j < ENTRIES; j++) {
        double x = exp(first + log(FEWEST_DAYS) + j * STEP);
        CHANGED[j] = log(larger(-expm1(-x), LEAST));
        STILL[j] = exp(-x);
        STALE[j] = x < 1e-3 ? x * x / 2 - x * x * x / 6 : x + expm1(-x);
    }
}

/* Return the entry of so many days and the lowest rate, and how far they are on to the next. */
static int entry_of(double days, double *on)
{
    double place = larger(log(days / FEWEST_DAYS) / STEP, 0.0);
    int entry = (int)smaller(place, DAYS - 2);
    *on = smaller(place - entry, 1.0);
    return entry;
}

static double at(const double *table, int entry, double on)
{
    return table[entry] + on * (table[entry + 1] - table[entry]);
}

/* Add ln P that a page has changed, or not, within these days, at each rate. */
void add_days(float *sums, double days, bool changed)
{
    if (!changed) {
        for (int k = 0; k < POINTS; k++)
            sums[k] -= (float)(RATES[k] * days);
        return;
    }
    double on;
    int entry = entry_of(days, &on);
    for (int k = 0; k < POINTS; k++)
        sums[k] += (float)at(CHANGED, entry + FINE * k, on);
}

/* Return the probability that a page is as it was these days ago. */
double unchanged(const float *belief, double days)
{
    if (days <= FEWEST_DAYS)
        return 1.0;
    double on, sum = 0.0;
    int entry = entry_of(days, &on);
    for (int k = 0; k < POINTS; k++)
        sum += belief[k] * at(STILL, entry + FINE * k, on);
    return sum;
}

/* Return the expected days of these on which a copy that was right before them was stale. */
double stale_days(const float *belief, double days)
{
    if (days <= FEWEST_DAYS)
        return 0.0;
    double on, sum = 0.0;
    int entry = entry_of(days, &on);
    for (int k = 0; k < POINTS; k++)
        sum += belief[k] / RATES[k] * at(STALE, entry + FINE * k, on);
    return sum;
}

/* Write the rates and the general prior (POINTS); return 0. */
EXPORTED int64_t grid_rates(double *rates, double *prior)
{
    for (int k = 0; k < POINTS; k++) {
        rates[k] = RATES[k];
        prior[k] = GENERAL_PRIOR[k];
    }
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

/* Write the posterior by a row of log-likelihoods and a prior. */
void posterior(const float *sums, const double *prior, float *found)
{
    float most = largest(sums);
    double total = 0.0;
    for (int k = 0; k < POINTS; k++) {
        found[k] = (float)prior[k] * expf(sums[k] - most);
        total += found[k];
    }
    for (int k = 0; k < POINTS; k++)
        found[k] = (float)(found[k] / total);
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
