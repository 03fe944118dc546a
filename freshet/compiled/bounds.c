/* Costs of visits to archived pages, and the least cost: scheduler/evaluate/bounds.py has both. */

#include <stdlib.h>

#include "core.h"

/* -- the costs of visits ------------------------------------------------------------------- */

enum { HARMONIC = 0, BINARY = 3, COUNTED = 6, COPIED = 7, AGE = 8, COLUMNS = 9 };

/* Add a stretch of time in which only the age of the copy grows; `missed` are the changes since the
 * visit, optimistic, early and pessimistic. */
static void add_stretch(
    const struct bill *bill, int64_t page, double begin, double end, double visit,
    const int64_t missed[3])
{
    begin = larger(begin, *bill->start) - *bill->start;
    end -= *bill->start;
    if (end <= begin)
        return;
    bool copied = visit > -INFINITY;
    double values[COLUMNS] = {[COUNTED] = 1.0, [COPIED] = copied ? 1.0 : 0.0};
    for (int way = 0; way < 3; way++) {
        values[HARMONIC + way] = bill->harmonic[smaller_int(missed[way], bill->most - 1)];
        values[BINARY + way] = missed[way] > 0 ? 1.0 : 0.0;
    }
    values[AGE] = copied ? (begin + end) / 2 + *bill->start - visit : 0.0;
    int64_t first = (int64_t)begin, last = smaller_int((int64_t)end, bill->days - 1);
    double weight = bill->importance[page];
    for (int column = 0; column < COLUMNS; column++) {
        double value = values[column];
        bill->pages[page * COLUMNS + column] += value * (end - begin);
        double *bins = bill->bins + column, *steps = bill->steps + column;
        if (first == last) {
            bins[first * COLUMNS] += weight * value * (end - begin);
        } else {
            bins[first * COLUMNS] += weight * value * ((double)(first + 1) - begin);
            bins[last * COLUMNS] += weight * value * (end - (double)last);
            /* Their sums are added to the days between. */
            steps[(first + 1) * COLUMNS] += weight * value;
            steps[last * COLUMNS] -= weight * value;
        }
    }
}

/* Add the cost of a copy from its visit to the next one. */
static void add_interval_of_copy(
    const struct timeline *known, const struct bill *bill, int64_t page, int64_t first,
    double visit, double end)
{
    int64_t certain = 0, possible = 0, hidden = 0;
    for (int64_t k = first; k < known->offsets[page + 1]; k++) {
        double since = known->since[k], at = known->at[k];
        if (since >= end)
            break;
        bool missed =
            at > visit && (known->changed[k] || (known->appears[k] && visit == -INFINITY));
        bool unsure = known->gap_counts[k] && !known->changed[k] && since < at;
        if (unsure && since < visit && visit < at)
            hidden = 1;
        possible += missed;
        if (known->gap_counts[k]) {
            int64_t counts[3] = {certain, possible, possible + (unsure ? 1 : hidden)};
            add_stretch(bill, page, larger(since, visit), smaller(at, end), visit, counts);
        }
        certain += missed && since >= visit;
        if (known->counts[k]) {
            int64_t counts[3] = {certain, possible, possible + hidden};
            add_stretch(
                bill, page, larger(at, visit), smaller(known->until[k], end), visit, counts);
        }
    }
}

/* Return whether `pages` + 1 offsets, of which there are `count`, go from 0 to a length. */
static bool are_offsets(const int64_t *offsets, int64_t count, int64_t pages, int64_t length)
{
    if (count != pages + 1 || offsets[0] != 0 || offsets[pages] != length)
        return false;
    for (int64_t page = 0; page < pages; page++)
        if (offsets[page] > offsets[page + 1])
            return false;
    return true;
}

static bool is_sound(const struct timeline *known)
{
    return are_offsets(known->offsets, known->pages + 1, known->pages, known->captures);
}

/* Go through each page's visits, and from each to the next through the captures; `offsets` and `at`
 * are the visits, `copy` the days of those before them. Return 0, or WRONG_INDEX for offsets that
 * are none, or other numbers of pages. */
EXPORTED int64_t bounds_bill(
    const struct timeline *known, const int64_t *offsets, int64_t offset_count, const double *at,
    int64_t visits, const double *copy, int64_t pages, const struct bill *bill, double end)
{
    if (!is_sound(known) || pages != known->pages || bill->count != pages
        || !are_offsets(offsets, offset_count, pages, visits) || bill->most < 1 || bill->days < 1)
        return WRONG_INDEX;
    for (int64_t page = 0; page < known->pages; page++) {
        int64_t place = known->offsets[page], stop = known->offsets[page + 1];
        int64_t last = offsets[page + 1];
        for (int64_t k = offsets[page] - 1; k < last; k++) {
            double visit = k < offsets[page] ? copy[page] : at[k];
            double until = k + 1 < last ? smaller(at[k + 1], end) : end;
            while (place < stop && known->at[place] <= visit && known->until[place] <= visit)
                place++;
            add_interval_of_copy(known, bill, page, place, visit, until);
        }
    }
    return 0;
}

/* -- the least cost ------------------------------------------------------------------------ */

/* List the certain changes that copies miss: their days and since when they could be seen, counted
 * in days that count (captures); their number and these days (pages). Return how many they are, or
 * WRONG_INDEX for offsets that are none, or other numbers of pages or captures. */
EXPORTED int64_t bounds_list(
    const struct timeline *known, const double *copy, int64_t pages, double start, double end,
    double *day, double *sight, int64_t captures, int64_t *number, double *counted)
{
    if (!is_sound(known) || pages != known->pages || captures != known->captures)
        return WRONG_INDEX;
    int64_t total = 0;
    for (int64_t page = 0; page < known->pages; page++) {
        number[page] = 0;
        counted[page] = 0.0;
        for (int64_t k = known->offsets[page]; k < known->offsets[page + 1]; k++) {
            double since = known->since[k], at = known->at[k];
            if (since >= end)
                break;
            double seen = counted[page];
            if (known->gap_counts[k])
                counted[page] += larger(smaller(at, end) - larger(since, start), 0.0);
            bool missed = known->changed[k] || (known->appears[k] && copy[page] == -INFINITY);
            if (missed && since >= copy[page] && copy[page] < at && at < end) {
                sight[total] = seen;
                day[total++] = counted[page];
                number[page]++;
            }
            if (known->counts[k])
                counted[page] += larger(smaller(known->until[k], end) - larger(at, start), 0.0);
        }
    }
    return total;
}

/* The certain changes of a page, with the least costs from each on and the visits for these. */
struct choices {
    const double *day, *since;
    int64_t count;
    double end, price;
    bool harmonic;
    double *value;
    int64_t *number;
};

/* Write the least cost after all changes before the a-th are seen, and its visits. */
static void choose(const struct choices *of, int64_t a)
{
    double best = INFINITY;
    int64_t visits = 0;
    /* What it cost until here, by how much it grows in a day, what a visit at a had spared. */
    double cost = 0.0, missed = 0.0, spared = 0.0;
    bool done = false;
    for (int64_t b = a; b < of->count && !done; b++) {
        double hidden = of->day[b] - of->since[b];
        if (of->price + cost + of->value[b + 1] < best) {
            best = of->price + cost + of->value[b + 1];
            visits = 1 + of->number[b + 1];
        }
        cost += missed * hidden;
        if (b > a && of->harmonic)
            spared += hidden / (double)(b - a);
        else if (b == a + 1)
            spared += hidden;
        missed += of->harmonic || b == a ? 1.0 / (double)(b - a + 1) : 0.0;
        double until = b + 1 < of->count ? of->since[b + 1] : of->end;
        cost += missed * (until - of->day[b]);
        if (of->harmonic || b == a)
            spared += (until - of->day[b]) / (double)(b - a + 1);
        done = spared > of->price;
    }
    bool none = !done && cost < best;
    of->value[a] = none ? cost : best;
    of->number[a] = none ? 0 : visits;
}

/* Return the visits to all pages at a price and write their cost; `offsets` (pages + 1) say where
 * each page's `changes` are in `day` and `since`, `end` (pages) how many days count in all.
 *
 * NO_MEMORY where there is none, WRONG_INDEX for offsets that are none. */
EXPORTED int64_t bounds_relaxed(
    const int64_t *offsets, int64_t offset_count, const double *day, const double *since,
    int64_t changes, const double *end, const double *importance, int64_t pages, double price,
    int64_t harmonic, double *cost)
{
    if (!are_offsets(offsets, offset_count, pages, changes))
        return WRONG_INDEX;
    int64_t most = 0, visits = 0;
    for (int64_t page = 0; page < pages; page++)
        most = larger_int(most, offsets[page + 1] - offsets[page]);
    double *value = malloc((size_t)(most + 1) * sizeof *value);
    int64_t *number = malloc((size_t)(most + 1) * sizeof *number);
    double total = 0.0;
    for (int64_t page = 0; value && number && page < pages; page++) {
        int64_t first = offsets[page], count = offsets[page + 1] - first;
        double weight = importance[page];
        if (count <= 0 || !(weight > 0))
            continue;
        struct choices of = {
            day + first, since + first, count, end[page], price / weight, harmonic != 0, value,
            number};
        for (int64_t a = count; a >= 0; a--)
            choose(&of, a);
        total += weight * value[0];
        visits += number[0];
    }
    bool done = value && number;
    free(value);
    free(number);
    *cost = total;
    return done ? visits : NO_MEMORY;
}
