/* The clock of one site: scheduler/estimate/site_model.py has the model. */

#include <string.h>

#include "core.h"

static const double ALPHA = 0.2;
/* The part of the evidence for the cold clock that counts in all areas. */
static const double POOLED = 0.2;
enum { DROPPED = 256 };

static void empty_bins(const struct clock *clock, int64_t from)
{
    int64_t areas = clock->areas;
    for (int64_t k = from; k < BINS; k++) {
        clock->changes[k] = clock->exposure[k] = 0.0;
        clock->all_changes[k] = clock->all_exposure[k] = 0.0;
    }
    for (int64_t k = from * areas; k < BINS * areas; k++)
        clock->cold_changes[k] = clock->cold_exposure[k] = 0.0;
}

/* Begin anew on this day, with bins of this width. Return 0, or WRONG_INDEX without bins. */
EXPORTED int64_t clock_restart(const struct clock *clock, double at, double width)
{
    if (clock->bins != BINS)
        return WRONG_INDEX;
    struct clock_facts *facts = clock->facts;
    facts->width = width;
    facts->at = facts->begin = at;
    facts->summed = facts->oldest = facts->next = 0;
    empty_bins(clock, 0);
    clock->shared[0] = 0.0;
    for (int64_t area = 0; area < clock->areas; area++)
        clock->cold[area] = 0.0;
    return 0;
}

/* -- reading ------------------------------------------------------------------------------- */

/* Return the place of a day among the edges of the bins; before the first one it is that. */
static double place_of(const struct clock *clock, double day)
{
    return larger(day - clock->facts->at, 0.0) / clock->facts->width;
}

/* Return M(t) on a day that is kept; it passes at the pace 1 after the last visit. */
double shared_at(const struct clock *clock, double day)
{
    const struct clock_facts *facts = clock->facts;
    double place = place_of(clock, day);
    if (!(place < (double)facts->summed)) {
        double further = (place - (double)facts->summed) * facts->width;
        return clock->shared[facts->summed] + further;
    }
    int64_t first = (int64_t)place;
    double edge = clock->shared[first];
    return edge + (place - (double)first) * (clock->shared[first + 1] - edge);
}

/* Return Y(t), the sum of the cold clock's jumps in an area up to a day that is kept. */
double cold_at(const struct clock *clock, double day, int64_t area)
{
    const struct clock_facts *facts = clock->facts;
    const double *cold = clock->cold + area;
    double place = place_of(clock, day);
    if (!(place < (double)facts->summed)) {
        double further = (place - (double)facts->summed) * facts->width * REWRITTEN;
        return cold[facts->summed * clock->areas] + further;
    }
    int64_t first = (int64_t)place;
    double edge = cold[first * clock->areas];
    return edge + (place - (double)first) * (cold[(first + 1) * clock->areas] - edge);
}

/* Return the factor that keeps rates in days: the mean pace one interval before is 1. */
double pace_before(const struct clock *clock, double end)
{
    double turn = BINS_A_TURN * clock->facts->width;
    double day = larger(end - turn, clock->facts->at);
    double settled = day - clock->facts->begin;
    return (settled + 2 * turn) / (shared_at(clock, day) + 2 * turn);
}

/* -- taking in ----------------------------------------------------------------------------- */

/* Return whether the oldest bins must be dropped before a visit on this day. */
bool crowded(const struct clock *clock, double day)
{
    return (day - clock->facts->at) / clock->facts->width >= BINS;
}

/* Return the day before which nothing is known after `drop_oldest`. */
double dropped_before(const struct clock *clock)
{
    return clock->facts->at + DROPPED * clock->facts->width;
}

static void move_bins(double *bins, int64_t width, int64_t kept)
{
    memmove(bins, bins + DROPPED * width, (size_t)(kept * width) * sizeof *bins);
}

/* Drop the oldest bins, and the intervals that reach into them. */
void drop_oldest(const struct clock *clock)
{
    struct clock_facts *facts = clock->facts;
    if (facts->summed < BINS)
        clock_sum_from(clock, facts->summed, BINS);
    int64_t kept = BINS - DROPPED;
    move_bins(clock->changes, 1, kept);
    move_bins(clock->exposure, 1, kept);
    move_bins(clock->all_changes, 1, kept);
    move_bins(clock->all_exposure, 1, kept);
    move_bins(clock->cold_changes, clock->areas, kept);
    move_bins(clock->cold_exposure, clock->areas, kept);
    empty_bins(clock, kept);
    move_bins(clock->shared, 1, kept + 1);
    move_bins(clock->cold, clock->areas, kept + 1);
    facts->at += DROPPED * facts->width;
    facts->summed = kept;
    for (int64_t number = facts->oldest; number < facts->next; number++) {
        struct interval *it = clock->ring + number % clock->size;
        it->first -= DROPPED;
        if (it->first < 0)
            it->bins = 0;
    }
}

/* Return whether the next changed interval takes the place of the oldest one. */
bool ring_is_full(const struct clock *clock)
{
    struct clock_facts *facts = clock->facts;
    while (facts->oldest < facts->next && clock->ring[facts->oldest % clock->size].bins == 0)
        facts->oldest++;
    return facts->next - facts->oldest == clock->size;
}

/* Return an area's evidence mixed with that of all areas. */
static double pooled(double everywhere, double here)
{
    return POOLED * everywhere + (1 - POOLED) * here;
}

/* Sum the clocks up anew, from bin `first` up to `stop` or as far as they were summed. Return 0, or
 * WRONG_INDEX without bins. */
EXPORTED int64_t clock_sum_from(const struct clock *clock, int64_t first, int64_t stop)
{
    if (clock->bins != BINS)
        return WRONG_INDEX;
    struct clock_facts *facts = clock->facts;
    int64_t areas = clock->areas;
    double prior = ALPHA * facts->width, cold_prior = REWRITTEN * facts->width;
    first = larger_int(0, smaller_int(first, facts->summed));
    stop = smaller_int(BINS, larger_int(stop, facts->summed));
    for (int64_t k = first; k < stop; k++) {
        double pace = (prior + clock->changes[k]) / (prior + clock->exposure[k]);
        clock->shared[k + 1] = clock->shared[k] + facts->width * pace;
        for (int64_t area = 0; area < areas; area++) {
            int64_t here = k * areas + area;
            double shape = pooled(clock->all_changes[k], clock->cold_changes[here]);
            double scale = pooled(clock->all_exposure[k], clock->cold_exposure[here]);
            clock->cold[here + areas] = clock->cold[here] + (cold_prior + shape) / (1 + scale);
        }
    }
    facts->summed = stop;
    return 0;
}

/* Return the days of an interval that lie in a bin. */
static double overlap(const struct clock *clock, double begin, double end, int64_t k)
{
    double left = clock->facts->at + (double)k * clock->facts->width;
    return larger(0.0, smaller(end, left + clock->facts->width) - larger(begin, left));
}

/* Return the bin of a day that is kept; of one past the last bin that one. */
static int64_t bin_of(const struct clock *clock, double day)
{
    double place = (day - clock->facts->at) / clock->facts->width;
    return place < 0 ? 0 : place < BINS ? (int64_t)place : BINS - 1;
}

/* Return the day from which on the bins of an interval count. */
static double reaching(const struct clock *clock, double begin, double end)
{
    return larger(larger(begin, end - REACH * clock->facts->width), clock->facts->at);
}

/* -- attribution --------------------------------------------------------------------------- */

/* The newest intervals of the ring that are divided anew at each visit that found a change. */
enum { AT_ONCE = 100 };
static const double MOST_CHANGES = 1000.0;
/* Smaller values count as exp(-300). */
static const double LEAST_LOG = -300.0;
static const double LEAST_WEIGHT = 5.148200222412013e-131;

/* Return the cold hazard, theta * sum of o * y, of a changed interval without its own evidence. */
double suspected(const struct clock *clock, int64_t number)
{
    if (number < clock->facts->oldest)
        return 0.0;
    int64_t slot = number % clock->size;
    const struct interval *it = clock->ring + slot;
    const float *own = clock->of_cold + slot * clock->span;
    double width = clock->facts->width, prior = REWRITTEN * width;
    double total = it->theta * (cold_at(clock, it->begin, it->area)
                                - cold_at(clock, it->begin - it->before, it->area));
    for (int64_t j = 0; j < it->bins; j++) {
        int64_t k = it->first + j, here = k * clock->areas + it->area;
        double part = overlap(clock, it->begin, it->end, k) / width;
        double shape = pooled(clock->all_changes[k], clock->cold_changes[here]);
        double scale = pooled(clock->all_exposure[k], clock->cold_exposure[here]);
        shape = prior + larger(shape - own[j], 0.0);
        scale = 1.0 + larger(scale - it->theta * part, 0.0);
        total += it->theta * part * shape / scale;
    }
    return total;
}

/* Add the exposure of an interval between two visits; return its first bin. */
int64_t expose(
    const struct clock *clock, double begin, double end, double rate, double theta, int64_t area)
{
    begin = reaching(clock, begin, end);
    int64_t first = bin_of(clock, begin), last = bin_of(clock, end);
    for (int64_t k = first; k <= last; k++) {
        double days = overlap(clock, begin, end, k);
        clock->exposure[k] += SHARED * rate * days;
        clock->cold_exposure[k * clock->areas + area] += theta * days / clock->facts->width;
        clock->all_exposure[k] += theta * days / clock->facts->width;
    }
    return first;
}

/* Return the expected changes of a changed interval over its hazard. */
static double changes_for_each(double hazard)
{
    return hazard > 0 ? smaller(MOST_CHANGES, hazard / -expm1(-hazard)) / hazard : 0.0;
}

/* Return e^x for -700 < x <= 0, to 1e-11 of it: 2^k by its bits, and the series of the rest.
 *
 * Nothing is called and nothing branches, so that several are computed at once. */
static inline double exp_of(double x)
{
    static const double SERIES[] = {
        1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5, 1.0, 1.0,
    };
    const double ROUNDING = 0x1.8p52; /* what is added to it is rounded to a whole number */
    union { double real; uint64_t bits; } power = {.real = x * 0x1.71547652b82fep0 + ROUNDING};
    double rest = x - (power.real - ROUNDING) * 0x1.62e42fefa39efp-1;
    double series = SERIES[0];
    for (int n = 1; n < 10; n++)
        series = series * rest + SERIES[n];
    power.bits = (power.bits + 1023) << 52;
    return series * power.real;
}

/* Return exp(psi(x)), x > 0, to 2e-4: by recurrence and exp(psi(y + 1/2)) = y + 1/(24 y) - ... */
static inline double weight_of(double x)
{
    double near = smaller(larger(x, -1 / LEAST_LOG), 8.0);
    double recurred = exp_of(-((3 * near + 6) * near + 2) / (near * (near + 1) * (near + 2)));
    double y = x <= 8 ? x + 2.5 : x - 0.5;
    double found = (y + 1 / (24 * y)) * (x <= 8 ? recurred : 1.0);
    return x * LEAST_LOG > -1 ? LEAST_WEIGHT : found;
}

double exp_digamma(double x) { return weight_of(x); }

/* Four bins at once, for the same digits. */

/* Return the hazard of bins at the rate 1; write the weight of each, several at once. */
WIDER static double weighed(
    int64_t bins, const double *restrict exposed, const double *restrict shape,
    const double *restrict scale, double *restrict weights)
{
    double hazards[REACH + 1], hazard = 0.0;
    for (int64_t j = 0; j < bins; j++) {
        double share = exposed[j] / scale[j];
        hazards[j] = share * shape[j];
        weights[j] = share * weight_of(shape[j]);
    }
    for (int64_t j = 0; j < bins; j++)
        hazard += hazards[j];
    return hazard;
}

/* Divide these changes among bins by their weights. */
static void ascribe_to(int64_t bins, float *own, const double *weights, double changes)
{
    double total = 0.0;
    for (int64_t j = 0; j < bins; j++)
        total += weights[j];
    double each = total > 0 ? changes / total : 0.0;
    for (int64_t j = 0; j < bins; j++)
        own[j] = (float)(each * weights[j]);
}

/* Divide the changes of an interval among its bins anew, given all the others. */
static void divide(const struct clock *clock, int64_t slot)
{
    const struct interval *it = clock->ring + slot;
    int64_t bins = it->bins, areas = clock->areas;
    double width = clock->facts->width;
    double *changes = clock->changes + it->first, *all_changes = clock->all_changes + it->first;
    const double *exposure = clock->exposure + it->first;
    const double *all_exposure = clock->all_exposure + it->first;
    double *cold_changes = clock->cold_changes + it->first * areas + it->area;
    const double *cold_exposure = clock->cold_exposure + it->first * areas + it->area;
    float *of_shared = clock->of_shared + slot * clock->span;
    float *of_cold = clock->of_cold + slot * clock->span;
    double days[REACH + 1], parts[REACH + 1], weights[REACH + 1], cold_weights[REACH + 1];
    double shape[REACH + 1], scale[REACH + 1], cold_shape[REACH + 1], cold_scale[REACH + 1];
    for (int64_t j = 0; j < bins; j++) {
        changes[j] = larger(changes[j] - of_shared[j], 0.0);
        all_changes[j] = larger(all_changes[j] - of_cold[j], 0.0);
        cold_changes[j * areas] = larger(cold_changes[j * areas] - of_cold[j], 0.0);
        days[j] = overlap(clock, it->begin, it->end, it->first + j);
        parts[j] = days[j] / width;
        shape[j] = ALPHA * width + changes[j];
        scale[j] = ALPHA * width + exposure[j];
        double others = pooled(all_exposure[j], cold_exposure[j * areas]);
        cold_shape[j] = REWRITTEN * width + pooled(all_changes[j], cold_changes[j * areas]);
        cold_scale[j] = 1.0 + larger(others - it->theta * parts[j], 0.0);
    }
    double hazard = it->rate * SHARED * weighed(bins, days, shape, scale, weights);
    double cold_hazard = it->theta * weighed(bins, parts, cold_shape, cold_scale, cold_weights);
    double own_hazard = it->rate * (it->before + (1 - SHARED) * (it->end - it->begin));
    double each = changes_for_each(hazard + cold_hazard + own_hazard);
    ascribe_to(bins, of_shared, weights, each * hazard);
    ascribe_to(bins, of_cold, cold_weights, each * cold_hazard);
    for (int64_t j = 0; j < bins; j++) {
        changes[j] += of_shared[j];
        all_changes[j] += of_cold[j];
        cold_changes[j * areas] += of_cold[j];
    }
}

/* Divide the changes of an interval, and of those it overlaps, among bins; return the first bin.
 *
 * It has been exposed. Its number is then the last one, and `owner` whose it is. */
int64_t ascribe(
    const struct clock *clock, double begin, double end, double rate, double theta, int64_t area,
    int64_t owner)
{
    struct clock_facts *facts = clock->facts;
    double began = begin;
    begin = reaching(clock, begin, end);
    if (ring_is_full(clock))
        facts->oldest++;
    int64_t slot = facts->next % clock->size;
    facts->next++;
    struct interval *it = clock->ring + slot;
    *it = (struct interval){
        .begin = begin, .end = end, .before = begin - began, .rate = rate, .theta = theta,
        .area = area, .owner = owner, .first = bin_of(clock, begin)};
    it->bins = smaller_int(bin_of(clock, end) + 1 - it->first, clock->span);
    for (int64_t j = 0; j < it->bins; j++)
        clock->of_shared[slot * clock->span + j] = clock->of_cold[slot * clock->span + j] = 0.0f;
    int64_t lowest = it->first, oldest = larger_int(facts->oldest, facts->next - AT_ONCE);
    for (int64_t number = facts->next - 1; number >= oldest; number--) {
        const struct interval *other = clock->ring + number % clock->size;
        if (other->bins > 0 && other->end >= begin) {
            divide(clock, number % clock->size);
            lowest = smaller_int(lowest, other->first);
        }
    }
    return lowest;
}
