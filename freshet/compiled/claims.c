/* Change signals, by event and by page: scheduler/estimate/sources_trust.py has the model. */

#include "core.h"

/* The number of recent claims and changes that count. */
static const double LATELY = 50.0;
/* s, the weight of what is known of events of a size beside what is seen of one. */
static const double WEIGHT = 1.0;
/* The total weight of events that is remembered of a source. */
static const double SHARES_KEPT = 200.0, FADING = 0.995;
static const double MOST_CHANGES = 3.0;
static const double MEMORY = 500.0, EXPECTED_KEPT = 50.0, DAYS_KEPT = 60.0;
static const double TINY = 1e-12, LEAST_SHARE = 1e-3;
enum { FIT_EVERY = 200, STEPS = 15 };

/* The worth of visits and polls. */
static const double QUEUE = 1.0;
/* So many moves at the rate of the site stand beside a page's own, to tell their rate. */
static const double MOVES_BEFORE = 1.0;
static const double LEAST = 1e-6;
/* The least belief in a source: it is polled now and then. */
static const double NOW_AND_THEN = 0.001;
/* Part of the gain of a source that a poll itself brings: some of its pages would have been visited
 * anyway, or wait for their turn. By trial on recorded sites, where 0.1 to 1 are much alike. */
static const double POLL = 0.3;
/* How much more asking a source is worth after a surprise: a change that it had not claimed. */
static const double NEWS = 20.0;

/* Return exp(psi(x)), x > 0, to 2e-4: by recurrence and exp(psi(y + 1/2)) = y + 1/(24 y) - ... */
static double exp_digamma(double x)
{
    x = larger(x, 1.0 / 300);
    double y = x <= 8 ? x + 2.5 : x - 0.5, found = y + 1 / (24 * y);
    return x <= 8 ? found * exp(-((3 * x + 6) * x + 2) / (x * (x + 1) * (x + 2))) : found;
}

/* Return whether the ring still has an event. */
static bool remembered(const struct claims *claims, int64_t number)
{
    return number >= claims->facts->events - claims->size;
}

static struct event *event_of(const struct claims *claims, int64_t number)
{
    return claims->event + number % claims->size;
}

static double *share_of(const struct claims *claims, int64_t source, int64_t size)
{
    return claims->share + (source * SIZES + size) * 2;
}

/* Return the sum of the shares of events, as far as they are remembered. */
static double sum_of(const struct claims *claims, const int64_t *numbers, int64_t count)
{
    double total = 0.0;
    for (int64_t j = 0; j < count; j++)
        if (remembered(claims, numbers[j]))
            total += event_of(claims, numbers[j])->share;
    return total;
}

/* Return S of a page. */
static double shares(const struct claims *claims, int64_t slot)
{
    return sum_of(claims, claims->standing + STANDING * slot, claims->page[slot].standing);
}

/* -- how often sources are right ----------------------------------------------------------- */

/* Note the delay from a change to its claim, if it came since the source's last signal. */
static void time_claim(struct source *it, const struct claim *claim, double polled_before)
{
    if (claim->until > polled_before) {
        it->late += it->received - claim->until;
        it->timed += 1.0;
        if (it->timed > LATELY) {
            it->late *= LATELY / it->timed;
            it->timed = LATELY;
        }
    }
}

/* Return 1 where an event of a source stands for a page, else 0. */
static double claims_it(const struct claims *claims, int64_t slot, int64_t source)
{
    for (int64_t j = 0; j < claims->page[slot].standing; j++) {
        int64_t number = claims->standing[STANDING * slot + j];
        if (remembered(claims, number) && event_of(claims, number)->source == source)
            return 1.0;
    }
    return 0.0;
}

/* Note for each source of a page whether its claim was right or a change was missed.
 *
 * A source is not blamed for changes after it was polled last. */
static void score(const struct claims *claims, int64_t slot, bool changed, double polled)
{
    for (int64_t j = 0; j < smaller_int(claims->known, SOURCES); j++) {
        if (!(claims->page[slot].by >> j & 1))
            continue;
        struct source *it = claims->source + j;
        double claimed = claims_it(claims, slot, j);
        it->visited += claimed;
        it->found += claimed * changed;
        it->claimed += claimed * changed * polled;
        it->changes += changed * polled;
        if (it->visited > LATELY) {
            it->found *= LATELY / it->visited;
            it->visited = LATELY;
        }
        if (it->changes > LATELY) {
            it->claimed *= LATELY / it->changes;
            it->changes = LATELY;
        }
    }
}

/* -- what comes unclaimed ------------------------------------------------------------------ */

/* Return the day on which a source was polled last; inf: none is ever polled. */
static double last_poll(const struct claims *claims)
{
    double received = -INFINITY;
    bool asked = false;
    for (int64_t j = 0; j < claims->known; j++) {
        if (claims->source[j].asked >= 0) {
            asked = true;
            received = larger(received, claims->source[j].received);
        }
    }
    return asked ? received : INFINITY;
}

/* Return the part of the time between two days after the sources were polled last. */
static double unpolled(const struct claims *claims, double begin, double end)
{
    double received = last_poll(claims);
    if (end <= begin || received >= end)
        return 0.0;
    return (end - larger(begin, received)) / (end - begin);
}

/* Return omega, the part of expected changes between two days that come without a claim.
 *
 * It is 1 for the time after the sources were polled last. */
static double unclaimed(const struct claims *claims, double begin, double end)
{
    double part = smaller(claims->facts->unclaimed / claims->facts->expected, 1.0);
    double missed = unpolled(claims, begin, end);
    return missed + part * (1 - missed);
}

static void count_unclaimed(const struct claims *claims, double hazard, bool changed)
{
    struct claim_facts *facts = claims->facts;
    facts->unclaimed += changed ? 1.0 : 0.0;
    facts->expected += hazard;
    if (facts->expected > EXPECTED_KEPT) {
        facts->unclaimed *= EXPECTED_KEPT / facts->expected;
        facts->expected = EXPECTED_KEPT;
    }
}

/* Count visits that found unclaimed changes, once all polled sources were polled again. */
static void settle_held(const struct claims *claims)
{
    double received = INFINITY;
    for (int64_t j = 0; j < claims->known; j++)
        if (claims->source[j].asked >= 0)
            received = smaller(received, claims->source[j].received);
    for (int64_t slot = 0; slot < claims->facts->pages; slot++) {
        struct claimed_page *page = claims->page + slot;
        if (page->held && page->at <= received) {
            page->held = false;
            count_unclaimed(claims, page->hazard, page->changed);
        }
    }
}

/* -- signals ------------------------------------------------------------------------------- */

/* Return the size class of an event of `pages` pages at a site of `alive`. */
static int64_t size_of(int64_t pages, int64_t alive)
{
    double part = (double)pages / (double)larger_int(alive, 1);
    return pages <= 2 ? 0 : part <= 0.05 ? 1 : part <= 0.2 ? 2 : part <= 0.6 ? 3 : 4;
}

static void stand(const struct claims *claims, int64_t slot, int64_t number)
{
    struct claimed_page *page = claims->page + slot;
    int64_t *standing = claims->standing + STANDING * slot;
    if (page->standing == STANDING) {
        for (int j = 0; j < STANDING - 1; j++)
            standing[j] = standing[j + 1];
        page->standing--;
    }
    standing[page->standing++] = number;
}

/* Let an event stand for the pages that were not visited since. */
static void add_event(
    const struct claims *claims, int64_t source, double at, const struct claim *said,
    int64_t count, int64_t alive)
{
    struct claim_facts *facts = claims->facts;
    int64_t number = facts->events++, size = size_of(count, alive);
    const double *kept = share_of(claims, source, size);
    struct event *event = event_of(claims, number);
    *event = (struct event){.source = source, .size = size, .at = at, .share = kept[0] / kept[1]};
    for (int64_t j = 0; j < count; j++) {
        const struct claim *claim = said + j;
        struct claimed_page *page = claims->page + claim->slot;
        if (page->held && page->begin < claim->until && claim->until <= page->at)
            page->held = false;
        page->moves++;
        if (source < SOURCES)
            page->by |= (int64_t)1 << source;
        facts->share_sum += event->share;
        facts->shares += 1.0;
        if (claim->until > claim->last && claim->last > -INFINITY)
            stand(claims, claim->slot, number);
    }
    if (facts->shares > SHARES_KEPT) {
        facts->share_sum *= SHARES_KEPT / facts->shares;
        facts->shares = SHARES_KEPT;
    }
}

/* Learn the claims of a source (by its place), given in the order of their events, at a site of
 * `alive` pages. Return 0, or WRONG_INDEX before anything is learnt. */
EXPORTED int64_t claims_receive(
    const struct claims *claims, int64_t source, double at, const struct claim *said,
    int64_t count, int64_t alive)
{
    if (source < 0 || source >= claims->known)
        return WRONG_INDEX;
    for (int64_t j = 0; j < count; j++)
        if (said[j].slot < 0 || said[j].slot >= claims->facts->pages)
            return WRONG_INDEX;
    struct source *it = claims->source + source;
    double polled_before = it->received;
    it->days += at - polled_before;
    it->received = at;
    it->claims += count;
    for (int64_t first = 0, stop; first < count; first = stop) {
        for (stop = first + 1; stop < count && said[stop].number == said[first].number; stop++)
            ;
        add_event(claims, source, at, said + first, stop - first, alive);
        time_claim(it, said + first, polled_before);
    }
    if (it->asked >= 0) {
        claims->facts->news = false;
        settle_held(claims);
    }
    return 0;
}

/* Write the probabilities (pages with claims) of stale copies; `hazard` (rows) is without claims.
 * Return 0, or WRONG_INDEX. */
EXPORTED int64_t claims_stale(
    const struct claims *claims, const struct page *pages, const double *hazard, int64_t rows,
    double now, double *stale, int64_t room)
{
    if (room < claims->facts->pages)
        return WRONG_INDEX;
    for (int64_t slot = 0; slot < claims->facts->pages; slot++) {
        int64_t row = claims->page[slot].row;
        if (row < 0 || row >= rows)
            return WRONG_INDEX;
        stale[slot] = 0.0;
        if (pages[row].alive) {
            double other = unclaimed(claims, pages[row].last, now) * hazard[row];
            stale[slot] = -expm1(-claims->page[slot].weight * shares(claims, slot) - other);
        }
    }
    return 0;
}

/* Count the gain of a signal of a source, which there is. */
EXPORTED int64_t claims_credit(const struct claims *claims, int64_t source, double news)
{
    if (source < 0 || source >= claims->known)
        return WRONG_INDEX;
    struct source *it = claims->source + source;
    it->gain += news;
    if (it->days > DAYS_KEPT) {
        it->gain *= DAYS_KEPT / it->days;
        it->days = DAYS_KEPT;
    }
    return 0;
}

/* -- visits -------------------------------------------------------------------------------- */

static void add_past(const struct claims *claims, int64_t slot, float *sums)
{
    const struct claimed_page *page = claims->page + slot;
    drift(sums, claims->prior, page->past_days);
    double share = sum_of(claims, claims->past + STANDING * slot, page->past);
    if (share > LEAST_SHARE)
        add_interval(sums, share, page->past_other, page->past_changed);
}

/* Return kappa of a page by all its visits, the last one with its events as known now. */
static double weight_of_page(const struct claims *claims, int64_t slot)
{
    const float *sums = claims->likelihood + POINTS * slot;
    float with_past[POINTS];
    if (claims->page[slot].past) {
        for (int k = 0; k < POINTS; k++)
            with_past[k] = sums[k];
        add_past(claims, slot, with_past);
        sums = with_past;
    }
    return mean_rate(sums, claims->prior);
}

/* Attribute the changes that a visit found to the events that stand. */
static void attribute(const struct claims *claims, int64_t slot, double expected, bool changed)
{
    struct claim_facts *facts = claims->facts;
    const struct claimed_page *page = claims->page + slot;
    const int64_t *standing = claims->standing + STANDING * slot;
    double changes = 0.0;
    if (changed)
        changes = expected > TINY ? smaller(MOST_CHANGES, expected / -expm1(-expected)) : 1.0;
    facts->weight_sum += page->weight;
    facts->weights += 1.0;
    if (facts->weights > SHARES_KEPT) {
        facts->weight_sum *= SHARES_KEPT / facts->weights;
        facts->weights = SHARES_KEPT;
    }
    double before = WEIGHT * facts->weight_sum / facts->weights;
    double parts[STANDING] = {0}, total = 0.0;
    for (int64_t j = 0; j < page->standing; j++) {
        if (!remembered(claims, standing[j]))
            continue;
        const struct event *event = event_of(claims, standing[j]);
        const double *kept = share_of(claims, event->source, event->size);
        double shape = before * kept[0] / kept[1] + event->found;
        parts[j] = exp_digamma(shape) / (before + event->exposed);
        total += parts[j];
    }
    for (int64_t j = 0; j < page->standing; j++) {
        if (!(parts[j] > 0))
            continue;
        struct event *event = event_of(claims, standing[j]);
        double *kept = share_of(claims, event->source, event->size);
        double part = changes * parts[j] / total;
        event->found += part;
        event->exposed += page->weight;
        kept[0] += part;
        kept[1] += page->weight;
        if (kept[1] > SHARES_KEPT) {
            kept[0] *= FADING;
            kept[1] *= FADING;
        }
        double shape = before * kept[0] / kept[1] + event->found;
        event->share = shape / (before + event->exposed);
    }
}

static void learn_visit(
    const struct claims *claims, int64_t slot, const struct visit *visit, int64_t alive)
{
    struct claim_facts *facts = claims->facts;
    struct claimed_page *page = claims->page + slot;
    double own = page->weight * shares(claims, slot);
    double other = unclaimed(claims, visit->begin, visit->at) * visit->hazard;
    /* Changes since the last poll are not held against the sources. */
    double polled = 1 - unpolled(claims, visit->begin, visit->at);
    double decay = 1 - polled / larger(MEMORY, 2.0 * (double)alive);
    facts->loss = facts->loss * decay + polled * log_loss(own + other, visit->changed);
    facts->loss_without *= decay;
    facts->loss_without += polled * log_loss(visit->hazard, visit->changed);
    facts->visits++;
    score(claims, slot, visit->changed, polled);
    if (page->standing == 0) {
        if (visit->moved) {
            facts->news = true;
            page->held = true;
            page->changed = visit->changed;
            page->hazard = visit->hazard;
            page->begin = visit->begin;
            page->at = visit->at;
        } else {
            count_unclaimed(claims, visit->hazard, visit->changed);
        }
        return;
    }
    if (page->past > 0) {
        /* The result of the visit before is committed. */
        add_past(claims, slot, claims->likelihood + POINTS * slot);
        page->past = 0;
    }
    attribute(claims, slot, own + other, visit->changed);
    page->past = page->standing;
    page->past_days = visit->at - visit->begin;
    page->past_other = other;
    page->past_changed = visit->changed;
    for (int64_t j = 0; j < page->standing; j++)
        claims->past[STANDING * slot + j] = claims->standing[STANDING * slot + j];
    page->weight = weight_of_page(claims, slot);
}

/* Fit the prior of the weights, and the weights by it; false: there is no memory. */
static bool fit_weights(const struct claims *claims)
{
    int64_t count = claims->facts->pages;
    bool done = fit(claims->likelihood, NULL, count, claims->prior, claims->parent, STEPS);
    for (int64_t slot = 0; done && slot < count; slot++)
        claims->page[slot].weight = weight_of_page(claims, slot);
    return done;
}

/* Learn visits to pages of a site in their order (slots; -1: without claims), with the days of the
 * visits before and the changes expected without claims.
 *
 * Return 0, NO_MEMORY, or WRONG_INDEX before anything is learnt. */
EXPORTED int64_t claims_learn(
    const struct claims *claims, const struct visit *visits, const int64_t *slots, int64_t count,
    int64_t alive)
{
    struct claim_facts *facts = claims->facts;
    for (int64_t k = 0; k < count; k++)
        if (slots[k] >= facts->pages)
            return WRONG_INDEX;
    for (int64_t k = 0; k < count; k++) {
        const struct visit *visit = visits + k;
        if (slots[k] < 0)
            continue;
        if (visit->compared && !visit->gone && visit->begin > -INFINITY
            && visit->at > visit->begin)
            learn_visit(claims, slots[k], visit, alive);
        claims->page[slots[k]].standing = 0;
        if (facts->visits >= facts->fit_at) {
            if (!fit_weights(claims))
                return NO_MEMORY;
            int64_t every = larger_int(FIT_EVERY, facts->pages / 4);
            facts->fit_at += larger_int(FIRST_FIT, smaller_int(facts->visits / 2, every));
        }
    }
    return 0;
}

/* -- worth --------------------------------------------------------------------------------- */

/* Return the evidence (nats) against the claims, negative where it speaks for them. */
static double against(const struct claims *claims)
{
    return claims->facts->loss - (1 - LEAST_GAIN) * claims->facts->loss_without;
}

/* Write y, changes a day, the addition to W and its divisor (rows), for pages with claims.
 * Return 0, or WRONG_INDEX before anything is written. */
EXPORTED int64_t claims_value(
    const struct claims *claims, const struct page *pages, int64_t rows, double now, double turn,
    double *hazard, double *rate, double *jump, double *per)
{
    const struct claim_facts *facts = claims->facts;
    double moves = 0.0, days = 1.0;
    for (int64_t slot = 0; slot < facts->pages; slot++) {
        const struct claimed_page *page = claims->page + slot;
        if (page->row < 0 || page->row >= rows)
            return WRONG_INDEX;
        if (pages[page->row].alive) {
            moves += (double)page->moves;
            days += larger(now - page->since, 0.0);
        }
    }
    double mean = facts->share_sum / facts->shares;
    for (int64_t slot = 0; slot < facts->pages; slot++) {
        const struct claimed_page *page = claims->page + slot;
        int64_t row = page->row;
        double own = larger(now - page->since, 0.0);
        double signals = ((double)page->moves + MOVES_BEFORE)
                         / (own + MOVES_BEFORE * days / larger(moves, 1.0));
        double other = unclaimed(claims, pages[row].last, now);
        double q = -expm1(-page->weight * mean);
        double claimed = page->weight * shares(claims, slot);
        hazard[row] = larger(claimed + other * hazard[row], LEAST);
        /* Only what is claimed is a signal; jump > 0 says that there may be some. */
        jump[row] = larger(q * expm1(-claimed) / expm1(-hazard[row]), LEAST);
        per[row] = larger(q * (signals + QUEUE / turn) + other * rate[row], LEAST);
        rate[row] = q * signals + other * rate[row];
    }
    return 0;
}

/* Raise the worth (rows) of polling a source to what it tells, as far as it is believed.
 * Return 0, or WRONG_INDEX before anything is written. */
EXPORTED int64_t claims_value_polls(
    const struct claims *claims, double now, double *worth, int64_t rows)
{
    double part = POLL * smaller(larger(exp(-against(claims)), NOW_AND_THEN), 1.0);
    if (claims->facts->news)
        part *= 1 + NEWS;
    for (int64_t j = 0; j < claims->known; j++)
        if (claims->source[j].asked >= rows)
            return WRONG_INDEX;
    for (int64_t j = 0; j < claims->known; j++) {
        const struct source *source = claims->source + j;
        if (source->asked >= 0) {
            double since = larger(now - source->received, 0.0);
            double found = part * source->gain / source->days * since * since / 2;
            worth[source->asked] = larger(worth[source->asked], found);
        }
    }
    return 0;
}
