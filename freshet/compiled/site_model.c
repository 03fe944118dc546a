/* Change rates of a site's pages, learnt visit by visit: scheduler/estimate/site_model.py has the
 * method, scheduler/agenda/site_clock_ranker.py the worth of a visit. */

#include <stdlib.h>

#include "core.h"

enum {
    PAGES_OF_A_CLOCK = 5,
    /* Visits from one fit of the priors to the next: a quarter of the pages, at least this number,
     * but after the first fits half of the visits until then. */
    FIT_EVERY = 200,
    STEPS = 30,
    STEPS_OF_AREAS = 10,
};
static const double MEMORY = 500.0;
/* A change of the mean time between visits by this factor begins bins of another width. */
static const double ANOTHER_WIDTH = 4.0;
/* A named day is that of a change if that is as likely as this, and if the site's named days are
 * not much nearer to the visits than chance has it, as where each request makes a page anew. */
static const double LIKELY = 0.7, USUAL = 0.25, NAMED_KEPT = 100.0;
/* The length of the interval in which a dated change came. */
static const double MOMENT_DAYS = 1e-3;
static const double LEAST = 1e-12;
static const double LONGER_SILENCE = 4.0;

/* What goes together through all functions here. */
struct learner {
    const struct pages *pages;
    const struct site *site;
    const struct clock *clock;
};

static float *sums_of(const struct learner *my, int64_t row)
{
    return my->site->likelihood + POINTS * my->pages->page[row].place;
}

static float *plain_sums_of(const struct learner *my, int64_t row)
{
    return my->site->plain_likelihood + POINTS * my->pages->page[row].place;
}

static const double *prior_of(const struct learner *my, const struct page *page)
{
    return my->site->prior + POINTS * page->area;
}

static const double *plain_prior_of(const struct learner *my, const struct page *page)
{
    return my->site->plain_prior + POINTS * page->area;
}

/* Return theta: near 1 for a page that changes more rarely than others of its site, else near 0. */
static double coldness(const struct learner *my, double rate)
{
    double share = my->site->facts->mean_rate / (my->site->facts->mean_rate + rate);
    return share * share;
}

/* -- an interval on the clock -------------------------------------------------------------- */

/* Add an interval by the clock's time. */
static void add_by_clock(
    const struct learner *my, float *sums, double begin, double end, double cold, bool changed)
{
    double shared = shared_at(my->clock, end) - shared_at(my->clock, begin);
    double own = (1 - SHARED) * (end - begin) + SHARED * shared * pace_before(my->clock, end);
    add_interval(sums, larger(own, 1e-9), cold, changed);
}

/* Add the pending interval of a page, as the clock sees it now. */
static void add_pending(const struct learner *my, const struct page *page, float *sums)
{
    double days = page->end - page->begin;
    drift(sums, prior_of(my, page), days);
    if (!my->site->facts->clocked || page->begin < my->clock->facts->at) {
        /* It is older than the clock. */
        add_interval(sums, days, 0.0, page->changed);
        return;
    }
    double cold = page->number < 0 ? 0.0 : suspected(my->clock, page->number);
    add_by_clock(my, sums, page->begin, page->end, cold, page->changed);
}

/* Commit the pending interval of a page. */
static void commit(const struct learner *my, int64_t row)
{
    struct page *page = my->pages->page + row;
    if (page->pending) {
        add_pending(my, page, sums_of(my, row));
        page->pending = false;
    }
}

/* Return a page's rate with its pending interval as the clock sees it now. */
static double estimate(const struct learner *my, int64_t row)
{
    const struct page *page = my->pages->page + row;
    const float *sums = sums_of(my, row);
    float with_pending[POINTS];
    if (page->pending) {
        for (int k = 0; k < POINTS; k++)
            with_pending[k] = sums[k];
        add_pending(my, page, with_pending);
        sums = with_pending;
    }
    return mean_rate(sums, prior_of(my, page));
}

/* Commit the oldest interval of the ring, if it is pending. */
static void commit_oldest(const struct learner *my)
{
    int64_t number = my->clock->facts->oldest;
    int64_t row = my->clock->ring[number % my->clock->size].owner;
    if (my->pages->page[row].number == number)
        commit(my, row);
}

/* Add the pending interval of a page to the clock. */
static void tell_clock(const struct learner *my, int64_t row)
{
    struct page *page = my->pages->page + row;
    const struct clock *clock = my->clock;
    if (page->end <= clock->facts->at)
        return;
    double theta = coldness(my, page->rate), begin = page->begin, end = page->end;
    int64_t first = expose(clock, begin, end, page->rate, theta, page->area);
    if (page->changed) {
        if (ring_is_full(clock))
            commit_oldest(my);
        first = smaller_int(
            first, ascribe(clock, begin, end, page->rate, theta, page->area, row));
        page->number = clock->facts->next - 1;
    }
    clock_sum_from(clock, first, (int64_t)((end - clock->facts->at) / clock->facts->width) + 1);
}

/* Add the days without a change that followed a change on a named day. */
static void add_quiet(const struct learner *my, int64_t row, double begin, double end)
{
    const struct page *page = my->pages->page + row;
    const struct clock *clock = my->clock;
    float *sums = sums_of(my, row);
    drift(sums, prior_of(my, page), end - page->last);
    if (!my->site->facts->clocked || begin < clock->facts->at) {
        add_interval(sums, end - begin, 0.0, false);
        return;
    }
    add_by_clock(my, sums, begin, end, 0.0, false);
    int64_t first = expose(clock, begin, end, page->rate, coldness(my, page->rate), page->area);
    clock_sum_from(clock, first, (int64_t)((end - clock->facts->at) / clock->facts->width) + 1);
}

/* -- the clock of the day ------------------------------------------------------------------ */

/* Note the clock's readings at the last visits before it began: as if it had gone evenly. */
static void mark_all(const struct learner *my)
{
    for (int64_t j = 0; j < my->site->facts->known; j++) {
        struct page *page = my->pages->page + my->site->rows[j];
        page->shared = page->last - my->clock->facts->at;
        page->cold = page->shared * REWRITTEN;
    }
}

/* Note the clock's reading at a visit on a day before its first bin. */
static void mark(const struct learner *my, struct page *page)
{
    const struct clock *clock = my->clock;
    if (my->site->facts->clocked && page->last < clock->facts->at) {
        double before = page->last - clock->facts->at;
        page->shared = clock->shared[0] + before;
        page->cold = clock->cold[page->area] + before * REWRITTEN;
    }
}

/* Move the clock to the day of a visit: with a new bin width, or without the oldest bins. */
static void keep_up(const struct learner *my, const struct visit *visit)
{
    const struct clock *clock = my->clock;
    double width = visit->turn / BINS_A_TURN, other = width / clock->facts->width;
    if (!(1 / ANOTHER_WIDTH < other && other < ANOTHER_WIDTH)) {
        for (int64_t j = 0; j < my->site->facts->known; j++)
            commit(my, my->site->rows[j]);
        clock_restart(clock, visit->at, width);
        mark_all(my);
    }
    while (crowded(clock, visit->at)) {
        double before = dropped_before(clock);
        for (int64_t j = 0; j < my->site->facts->known; j++) {
            int64_t row = my->site->rows[j];
            struct page *page = my->pages->page + row;
            if (page->pending && page->begin < before)
                commit(my, row);
            if (clock->facts->at <= page->last && page->last < before) {
                page->shared = shared_at(clock, page->last);
                page->cold = cold_at(clock, page->last, page->area);
            }
        }
        drop_oldest(clock);
    }
}

/* Write the time on the shared and the cold clock since a page was visited. */
static void passed(
    const struct learner *my, const struct page *page, double day, double *shared, double *cold)
{
    const struct clock *clock = my->clock;
    bool kept = page->last >= clock->facts->at;
    double shared_then = kept ? shared_at(clock, page->last) : page->shared;
    double cold_then = kept ? cold_at(clock, page->last, page->area) : page->cold;
    *cold = cold_at(clock, day, page->area) - cold_then;
    *shared = shared_at(clock, day) - shared_then;
}

/* -- priors -------------------------------------------------------------------------------- */

/* Fit the prior of a site, and near to it those of its areas; false: there is no memory. */
static bool fit_areas(const struct learner *my, const float *sums, double *prior)
{
    int64_t known = my->site->facts->known, *mine = malloc((size_t)(known + 1) * sizeof *mine);
    double even[POINTS], *whole = prior + AREAS * POINTS;
    for (int k = 0; k < POINTS; k++)
        even[k] = 1.0 / POINTS;
    bool done = mine && fit(sums, NULL, known, whole, even, STEPS);
    for (int area = 0; done && area < AREAS; area++) {
        double *own = prior + area * POINTS;
        int64_t count = 0;
        for (int64_t j = 0; j < known; j++)
            if (my->pages->page[my->site->rows[j]].area == area)
                mine[count++] = j;
        if (count)
            done = fit(sums, mine, count, own, whole, STEPS_OF_AREAS);
        else
            for (int k = 0; k < POINTS; k++)
                own[k] = whole[k];
    }
    free(mine);
    return done;
}

/* Fit the priors to all pages that were ever there, and estimate all under these. */
static bool fit_priors(const struct learner *my)
{
    struct site_facts *facts = my->site->facts;
    if (!fit_areas(my, my->site->likelihood, my->site->prior)
        || !fit_areas(my, my->site->plain_likelihood, my->site->plain_prior))
        return false;
    double total = 0.0;
    for (int64_t j = 0; j < facts->known; j++) {
        int64_t row = my->site->rows[j];
        struct page *page = my->pages->page + row;
        page->plain_rate = mean_rate(plain_sums_of(my, row), plain_prior_of(my, page));
        page->rate = estimate(my, row);
        if (page->alive)
            total += log(page->rate);
    }
    facts->mean_rate = exp(total / (double)larger_int(facts->alive, 1));
    return true;
}

/* -- visits -------------------------------------------------------------------------------- */

/* Return whether something must be allocated before this visit. */
static bool needs_room(const struct learner *my, const struct visit *visit)
{
    const struct site_facts *facts = my->site->facts;
    const struct clock *clock = my->clock;
    if (!facts->clocked)
        return visit->compared && facts->alive >= PAGES_OF_A_CLOCK;
    if (my->pages->page[visit->row].area >= clock->areas)
        return true;
    return visit->changed && clock->size < RING && ring_is_full(clock);
}

/* Count a page that is visited for the first time, is gone, or there again. */
static void meet(const struct learner *my, int64_t row, bool gone)
{
    struct site_facts *facts = my->site->facts;
    struct page *page = my->pages->page + row;
    if (!page->known) {
        page->known = true;
        page->last = -INFINITY;
        page->place = facts->known++;
        my->site->rows[page->place] = row;
        page->rate = mean_rate(sums_of(my, row), prior_of(my, page));
        page->plain_rate = mean_rate(plain_sums_of(my, row), plain_prior_of(my, page));
    }
    if (page->alive == gone) {
        page->alive = !gone;
        facts->alive += gone ? -1 : 1;
    }
}

/* Return the mean time since the last of Poisson events, by the interval; x are expected. */
static double mean_age(double x) { return x < 1e-3 ? 0.5 - x / 12 : 1 / x + 1 / expm1(-x) + 1; }

/* Return whether a page changed on the day that the server names, and learn of the days. */
static bool is_dated(const struct learner *my, const struct visit *visit, double rate)
{
    struct site_facts *facts = my->site->facts;
    double begin = visit->begin, end = visit->at, named = visit->modified;
    if (!(begin < named - MOMENT_DAYS && named < end - MOMENT_DAYS))
        return false;
    double share = (facts->found + 1) / (facts->named + 2), x = rate * (end - begin);
    double usual_age = (end - begin) * mean_age(x / share);
    bool is_likely = share * expm1(-x / share) / expm1(-x) >= LIKELY;
    bool is_usual = facts->ages + usual_age >= USUAL * (facts->usual_ages + usual_age);
    double kept = smaller(1.0, NAMED_KEPT / (facts->named + 1));
    facts->named = kept * (facts->named + 1);
    facts->found = kept * (facts->found + visit->changed);
    facts->ages = kept * (facts->ages + end - named);
    facts->usual_ages = kept * (facts->usual_ages + usual_age);
    return visit->changed && is_likely && is_usual;
}

/* Let both times predict the outcome; the better one so far decides. */
static void judge(const struct learner *my, struct visit *visit)
{
    struct site_facts *facts = my->site->facts;
    const struct page *page = my->pages->page + visit->row;
    double days = visit->at - page->last, shared, cold;
    passed(my, page, visit->at, &shared, &cold);
    double own = (1 - SHARED) * days + SHARED * shared;
    double clocked = page->rate * own + coldness(my, page->rate) * cold;
    if (facts->loss < 0)
        visit->hazard = clocked;
    facts->loss *= 1 - 1 / larger(MEMORY, 2.0 * (double)facts->alive);
    facts->loss += log_loss(clocked, visit->changed);
    facts->loss -= log_loss(page->plain_rate * days, visit->changed);
}

/* Learn from a visit that could be compared with one before; false: there is no memory. */
static bool learn_one(const struct learner *my, struct visit *visit)
{
    struct site_facts *facts = my->site->facts;
    int64_t row = visit->row;
    struct page *page = my->pages->page + row;
    double last = page->last, at = visit->at;
    visit->hazard = page->plain_rate * (at - last);
    if (facts->clocked) {
        keep_up(my, visit);
        judge(my, visit);
    }
    bool dated = is_dated(my, visit, page->plain_rate);
    double begin = dated ? visit->modified - MOMENT_DAYS : last;
    double end = dated ? visit->modified : at;
    float *plain = plain_sums_of(my, row);
    drift(plain, plain_prior_of(my, page), at - last);
    add_interval(plain, end - begin, 0.0, visit->changed);
    if (dated)
        add_interval(plain, at - end, 0.0, false);
    page->plain_rate = mean_rate(plain, plain_prior_of(my, page));
    commit(my, row);
    if (dated)
        add_quiet(my, row, end, at);
    page->pending = true;
    page->begin = begin;
    page->end = end;
    page->changed = visit->changed;
    page->number = -1;
    page->last = at;
    if (facts->clocked)
        tell_clock(my, row);
    page->rate = estimate(my, row);
    facts->visits++;
    if (facts->visits >= facts->fit_at) {
        if (!fit_priors(my))
            return false;
        int64_t every = larger_int(FIT_EVERY, facts->alive / 4);
        facts->fit_at += larger_int(FIRST_FIT, smaller_int(facts->visits / 2, every));
    }
    return true;
}

/* Return whether these are visits to pages, all of them of areas and places that there are, with
 * room for those that are new. */
static bool are_sound(
    const struct pages *pages, const struct site *site, const struct visit *visits, int64_t count)
{
    int64_t left = site->room - site->facts->known;
    for (int64_t k = 0; k < count; k++) {
        int64_t row = visits[k].row;
        if (row < 0 || row >= pages->count)
            return false;
        const struct page *page = pages->page + row;
        if (page->area < 0 || page->area >= AREAS)
            return false;
        if (page->known ? page->place < 0 || page->place >= site->facts->known : --left < 0)
            return false;
    }
    return left >= 0;
}

/* Learn `count` visits from `first` on, for whose pages the site has room. Return `count`, the one
 * that needs room elsewhere, NO_MEMORY, or WRONG_INDEX before anything is learnt. */
EXPORTED int64_t site_learn(
    const struct pages *pages, const struct site *site, const struct clock *clock,
    struct visit *visits, int64_t count, int64_t first)
{
    const struct learner my = {pages, site, clock};
    if (first < 0 || first > count || (site->facts->clocked && !clock->bins)
        || !are_sound(pages, site, visits + first, count - first))
        return WRONG_INDEX;
    for (int64_t k = first; k < count; k++) {
        struct visit *visit = visits + k;
        if (needs_room(&my, visit))
            return k;
        struct page *page = pages->page + visit->row;
        bool tells = visit->compared && page->known && visit->at > page->last;
        visit->begin = page->known ? page->last : -INFINITY;
        meet(&my, visit->row, visit->gone);
        if (!tells) {
            commit(&my, visit->row);
            page->last = larger(page->last, visit->at);
            mark(&my, page);
        } else if (!learn_one(&my, visit)) {
            return NO_MEMORY;
        }
    }
    return count;
}

/* Note the clock's readings at the last visits to the pages of a site, as it begins; return 0. */
EXPORTED int64_t site_mark_all(
    const struct pages *pages, const struct site *site, const struct clock *clock)
{
    mark_all(&(struct learner){pages, site, clock});
    return 0;
}

/* -- worth --------------------------------------------------------------------------------- */

/* Fill in how long a turn is at each visit, to pages of which `there` (rows) says whether they
 * count; return how many count in the end, or WRONG_INDEX before anything is written. */
EXPORTED int64_t count_pages(
    bool *there, int64_t rows, struct visit *visits, int64_t visit_count, int64_t count,
    double budget)
{
    for (int64_t k = 0; k < visit_count; k++)
        if (visits[k].row < 0 || visits[k].row >= rows)
            return WRONG_INDEX;
    for (int64_t k = 0; k < visit_count; k++) {
        struct visit *visit = visits + k;
        count += (int64_t)!visit->gone - (int64_t)there[visit->row];
        there[visit->row] = !visit->gone;
        visit->turn = (double)larger_int(count, 1) / budget;
    }
    return count;
}

/* Write the hazards since the last visits and the rates of all pages by the days; return 0. */
EXPORTED int64_t plain_hazards(
    const struct page *pages, int64_t count, double now, double *hazard, double *rate)
{
    for (int64_t row = 0; row < count; row++) {
        const struct page *page = pages + row;
        double age = page->known ? larger(now - page->last, 0.0) : 0.0;
        hazard[row] = larger(page->plain_rate * age, LEAST);
        rate[row] = page->plain_rate;
    }
    return 0;
}

/* Write the hazards and rates (rows) of a site's pages by its clock. Return 0, or WRONG_INDEX before
 * anything is written, where there are other rows or it has no clock. */
EXPORTED int64_t site_hazards(
    const struct pages *pages, const struct site *site, const struct clock *clock, double now,
    double *hazard, double *rate, int64_t rows)
{
    const struct learner my = {pages, site, clock};
    if (rows != pages->count || !site->facts->clocked || !clock->bins)
        return WRONG_INDEX;
    for (int64_t j = 0; j < site->facts->known; j++) {
        int64_t row = site->rows[j];
        const struct page *page = pages->page + row;
        double age = larger(now - page->last, 0.0), shared, cold;
        passed(&my, page, larger(now, page->last), &shared, &cold);
        double theta = coldness(&my, page->rate);
        double own = page->rate * ((1 - SHARED) * age + SHARED * shared);
        hazard[row] = larger(own + theta * cold, LEAST);
        rate[row] = page->rate + theta * REWRITTEN;
    }
    return 0;
}

/* Ein(x) as scheduler/costs.py has it, to 1e-10: its series, or a continued fraction. */
static double ein(double x)
{
    if (x < 4.0) {
        double term = x, total = x;
        for (int k = 2; k < 60; k++) {
            term *= -x / k;
            total += term / k;
            if (fabs(term) < 1e-12 * total)
                break;
        }
        return total;
    }
    /* E1(x) by Lentz's method (Numerical Recipes, 6.3). */
    double b = x + 1, c = 1e300, d = 1 / b, fraction = d;
    for (int k = 1; k < 60; k++) {
        b += 2;
        d = 1 / (b - k * k * d);
        c = b - k * k / c;
        fraction *= c * d;
        if (fabs(c * d - 1) < 1e-12)
            break;
    }
    return 0.5772156649015329 + log(x) + fraction * exp(-x);
}

/* Write W of each page; one of mean importance waits at most `longest` days.
 *
 * It may wait longer where claims are believed (`jump` > 0). */
EXPORTED int64_t site_worth(
    const struct page *pages, int64_t count, const double *hazard, const double *jump,
    const double *per, const double *importance, double now, double longest, double *worth)
{
    double mean = 0.0;
    int64_t alive = 0;
    for (int64_t row = 0; row < count; row++) {
        if (pages[row].alive) {
            mean += importance[row];
            alive++;
        }
    }
    mean /= (double)larger_int(alive, 1);
    for (int64_t row = 0; row < count; row++) {
        worth[row] = 0.0;
        if (!pages[row].known)
            continue;
        double age = larger(now - pages[row].last, 0.0), x = hazard[row], gone = expm1(-x);
        double fresh = x < 1e-4 ? x * x / 2 : x + gone;
        double found = (fresh - jump[row] * gone / 2) / per[row];
        /* Ein(x) is between 1 - e^-x and x: often that decides. */
        if (jump[row] == 0 && found > age * -gone / 2)
            found = smaller(found, age * ein(x) / 2);
        worth[row] = importance[row] * found;
        double wait = jump[row] == 0 ? age : age / LONGER_SILENCE;
        if (wait * smaller(importance[row], mean) > longest * mean)
            worth[row] += mean * (longest + age);
    }
    return 0;
}
