/* Change rates of a site's pages and its clock, learnt by sessions: scheduler/estimate/site_model.py
 * has the method, scheduler/queue/site_clock_ranker.py the worth of a visit. */

#include <stdlib.h>

#include "core.h"

enum {
    PAGES_OF_A_CLOCK = 5,
    /* Rounds of a fit, and those of them that go by the calendar; rounds without a clock. */
    ROUNDS = 6,
    BY_DAYS = 2,
    WITHOUT_CLOCK = 4,
    /* Rounds in which the clock of the present interval is found. */
    PRESENT_ROUNDS = 5,
    /* A fit has learnt one visit more in so many pages. */
    PAGES_A_VISIT = 40,
};
static const double SESSION_DAYS = 1.0;
static const double PAGES_OF_PRIOR = 8.0;
/* kappa of the site and of its areas. */
static const double OF_SITE = 0.5, OF_AREA = 0.3;
/* Changes come in bursts where their variance is so many standard errors above that of independent
 * pages, by the visits and so many sessions more in which it is three times as much. */
static const double ERRORS = 2.0, SESSIONS_OF_PRIOR = 4.0, USUAL = 3.0;
static const double LEAST_DAYS = 1e-3, LEAST = 1e-9;
static const double LONGER_SILENCE = 4.0;
/* Within so many days a page may have got another rate. */
static const double KEPT_DAYS = 1500.0;

/* -- visits -- */

static bool begins_session(const struct site *site, double at)
{
    const struct site_facts *facts = site->facts;
    int64_t now = facts->sessions - 1;
    if (now < 0)
        return true;
    if (at <= site->began[now])
        return false;
    return at - site->began[now] >= SESSION_DAYS
        || (double)facts->compared >= 2 * sqrt((double)facts->known);
}

/* Close the present session; let the next fit learn it, if there is enough since the last one. */
static void close_session(const struct site *site, bool at_once)
{
    struct site_facts *facts = site->facts;
    facts->closed = facts->notes;
    int64_t more = facts->closed - facts->fitted;
    if (at_once || (more && more * PAGES_A_VISIT >= facts->known)) {
        facts->fitted = facts->closed;
        facts->edges = facts->sessions;
        facts->is_due = true;
    }
}

/* Close the present session, and let the next fit learn it; return 0. */
EXPORTED int64_t site_close(const struct site *site)
{
    close_session(site, true);
    return 0;
}

/* Note visits from one on, and fill in when those before were; return their number, or that of the
 * visit before which there must be more room, or a fit; WRONG_INDEX before anything is written. */
EXPORTED int64_t site_note(
    const struct pages *pages, const struct site *site, struct visit *visits, int64_t count,
    int64_t first)
{
    struct site_facts *facts = site->facts;
    for (int64_t k = first; k < count; k++)
        if (visits[k].row < 0 || visits[k].row >= pages->count)
            return WRONG_INDEX;
    for (int64_t k = first; k < count; k++) {
        struct visit *visit = visits + k;
        struct page *page = pages->page + visit->row;
        if (facts->notes == site->note_room || (!page->known && facts->known == site->room))
            return k;
        if (begins_session(site, visit->at)) {
            if (facts->sessions == site->session_room)
                return k;
            close_session(site, false);
            facts->compared = 0;
            site->began[facts->sessions++] = visit->at;
            facts->edges = larger_int(facts->edges, 1);
        }
        int64_t now = facts->sessions - 1;
        visit->begin = page->known ? page->last : -INFINITY;
        if (!page->known) {
            page->known = true;
            page->place = facts->known;
            site->rows[facts->known++] = visit->row;
        } else if (page->alive && visit->compared && !visit->gone) {
            facts->compared++;
            /* Within a session, which has no time, that of the calendar counts. */
            double days = page->session < now ? page->before : visit->at - page->last;
            site->notes[facts->notes++] = (struct note){
                page->place, page->session, now, larger(days, 0.0), visit->changed};
        }
        facts->alive += (int64_t)!visit->gone - (int64_t)page->alive;
        page->alive = !visit->gone;
        page->session = now;
        page->before = 0.0;
        page->last = visit->at;
    }
    return count;
}

/* -- the clock -- */

/* Return the area of the page in a place: the last one, if it was met after the fit. */
static int64_t area_of(
    const struct pages *pages, const struct site *site, const struct fit *fit, int64_t place)
{
    return smaller_int(pages->page[site->rows[place]].area, fit->areas - 1);
}

/* Return how far an area's clock went in a note, which ends before the last reading. */
static double passed_in(const struct fit *fit, int64_t area, const struct note *note)
{
    const double *passed = fit->passed + area * fit->edges;
    return passed[note->stop] - passed[note->first] + note->before;
}

static double mean_of(const float *belief, const double *weights)
{
    double sum = 0.0;
    for (int k = 0; k < POINTS; k++)
        sum += belief[k] * weights[k];
    return sum;
}

static int within(int k)
{
    return k < 0 ? 0 : k < POINTS ? k : POINTS - 1;
}

/* Write the prior of a page whose rate is presumed to be by so many points above the usual one. */
static void raise_prior(const double *usual, int above, double *prior)
{
    for (int k = 0; k < POINTS; k++)
        prior[k] = 0.0;
    for (int k = 0; k < POINTS; k++)
        prior[within(k + above)] += usual[k];
}

/* Write the beliefs of all pages, in one step of expectation; set `prior` to their mean. */
static void believe(
    const struct pages *pages, const struct site *site, const struct fit *fit, double *since,
    float *sums, float *belief)
{
    int64_t known = site->facts->known;
    double prior[POINTS];
    for (int64_t p = 0; p < known; p++) {
        since[p] = site->began[0];
        for (int k = 0; k < POINTS; k++)
            sums[POINTS * p + k] = p < site->based ? site->base[POINTS * p + k] : 0.0f;
    }
    for (int64_t j = 0; j < site->facts->fitted; j++) {
        const struct note *note = site->notes + j;
        double days = passed_in(fit, area_of(pages, site, fit, note->place), note);
        if (note->changed) {
            /* What was unchanged for long may have got another rate; only a change can tell. */
            double at = site->began[note->stop];
            raise_prior(fit->prior, pages->page[site->rows[note->place]].above, prior);
            drift(sums + POINTS * note->place, prior, at - since[note->place]);
            since[note->place] = at;
        }
        add_days(sums + POINTS * note->place, days, note->changed);
    }
    double mean[POINTS] = {0};
    for (int64_t p = 0; p < known; p++) {
        float *mine = belief + POINTS * site->rows[p];
        int above = pages->page[site->rows[p]].above;
        raise_prior(fit->prior, above, prior);
        posterior(sums + POINTS * p, prior, mine);
        /* What the page tells of the usual rates: each is as probable as its own one. */
        for (int k = 0; k < POINTS; k++)
            mean[k] += mine[within(k + above)] * fit->prior[k] / prior[within(k + above)];
    }
    for (int k = 0; k < POINTS; k++)
        fit->prior[k] =
            (PAGES_OF_PRIOR * GENERAL_PRIOR[k] + mean[k]) / (PAGES_OF_PRIOR + (double)known);
}

/* Return whether the changes a session vary more than those of independent pages; `sums` (edges, 3)
 * are of the changes found, of those expected, and of their variances. */
static bool comes_in_bursts(
    const struct pages *pages, const struct site *site, const struct fit *fit,
    const float *belief, double *sums)
{
    for (int64_t j = 0; j < 3 * fit->edges; j++)
        sums[j] = 0.0;
    for (int64_t j = 0; j < site->facts->fitted; j++) {
        const struct note *note = site->notes + j;
        double *mine = sums + 3 * note->stop;
        double days = passed_in(fit, area_of(pages, site, fit, note->place), note);
        double changed = 1 - unchanged(belief + POINTS * site->rows[note->place], days);
        mine[0] += note->changed;
        mine[1] += changed;
        mine[2] += changed * (1 - changed);
    }
    double squares = 0.0, variances = 0.0, sessions = 0.0;
    for (int64_t j = 0; j < fit->edges; j++) {
        double off = sums[3 * j] - sums[3 * j + 1];
        squares += off * off;
        variances += sums[3 * j + 2];
        sessions += sums[3 * j + 2] > 0;
    }
    double usual = SESSIONS_OF_PRIOR * variances / larger(sessions, 1.0);
    double bound = 1 + ERRORS * sqrt(2 / (sessions + SESSIONS_OF_PRIOR));
    return squares + USUAL * usual > bound * (variances + usual);
}

/* Estimate the clock of the site and of its areas anew, with room for `events` and `exposure` (areas,
 * edges) and `site_days` (edges). */
static void set_clock(
    const struct pages *pages, const struct site *site, const struct fit *fit,
    const float *belief, double *events, double *exposure, double *site_days)
{
    int64_t edges = fit->edges, spans = edges - 1;
    for (int64_t j = 0; j < fit->areas * edges; j++)
        events[j] = exposure[j] = 0.0;
    for (int64_t j = 0; j < site->facts->fitted; j++) {
        const struct note *note = site->notes + j;
        int64_t area = area_of(pages, site, fit, note->place);
        double *found = events + area * edges, *exposed = exposure + area * edges;
        double rate = mean_of(belief + POINTS * site->rows[note->place], RATES);
        exposed[note->first] += rate;
        exposed[note->stop] -= rate;
        if (note->changed) {
            double days = passed_in(fit, area, note);
            double share = rate / larger(-expm1(-rate * days), LEAST);
            found[note->first] += share;
            found[note->stop] -= share;
        }
    }
    for (int64_t g = 0; g < fit->areas; g++) {
        double *found = events + g * edges, *exposed = exposure + g * edges;
        const double *passed = fit->passed + g * edges;
        for (int64_t j = 1; j < edges; j++) {
            found[j] += found[j - 1];
            exposed[j] += exposed[j - 1];
        }
        for (int64_t j = 0; j < spans; j++)
            found[j] *= passed[j + 1] - passed[j];
    }
    double total = 0.0, all = 0.0;
    for (int64_t j = 0; j < spans; j++) {
        double days = larger(site->began[j + 1] - site->began[j], LEAST_DAYS);
        double found = OF_SITE, exposed = OF_SITE / days;
        for (int64_t g = 0; g < fit->areas; g++) {
            found += events[g * edges + j];
            exposed += exposure[g * edges + j];
        }
        site_days[j] = found / exposed;
        total += site_days[j];
        all += days;
    }
    for (int64_t g = 0; g < fit->areas; g++) {
        double *passed = fit->passed + g * edges;
        for (int64_t j = 0; j < spans; j++) {
            double days = larger(site_days[j] * all / total, LEAST_DAYS);
            double found = OF_AREA + events[g * edges + j];
            passed[j + 1] = passed[j] + found / (OF_AREA / days + exposure[g * edges + j]);
        }
    }
}

/* Return whether there is all that the facts speak of, the notes from `first` on included. */
static bool fits(
    const struct pages *pages, const struct site *site, const struct fit *fit, int64_t first)
{
    const struct site_facts *facts = site->facts;
    if (fit->areas < 1 || fit->areas > AREAS + 1 || fit->edges != facts->edges || facts->edges < 1 || facts->edges > facts->sessions
        || facts->sessions > site->session_room || facts->known > site->room
        || facts->fitted > facts->notes
        || (first < facts->notes && facts->notes > site->note_room))
        return false;
    for (int64_t p = 0; p < facts->known; p++) {
        int64_t row = site->rows[p];
        if (row < 0 || row >= pages->count)
            return false;
        const struct page *page = pages->page + row;
        if (page->area < 0 || page->session < 0 || page->session >= facts->sessions)
            return false;
    }
    for (int64_t j = first; j < facts->notes; j++) {
        const struct note *note = site->notes + j;
        int64_t edges = j < facts->fitted ? facts->edges : facts->sessions;
        if (note->place < 0 || note->place >= facts->known || note->first < 0
            || note->first > note->stop || note->stop >= edges)
            return false;
    }
    return true;
}

/* Fit the rates of a site's pages and its clock to the noted visits: write the beliefs (pages,
 * POINTS), and set the fit. Return 0, WRONG_INDEX or NO_MEMORY before anything is written. */
EXPORTED int64_t site_fit(
    const struct pages *pages, const struct site *site, const struct fit *fit, float *belief,
    int64_t cells)
{
    if (cells != POINTS * pages->count || !fits(pages, site, fit, 0))
        return WRONG_INDEX;
    int64_t known = site->facts->known, edges = fit->edges;
    float *sums = malloc((size_t)larger_int(known, 1) * POINTS * sizeof *sums);
    double *parts = malloc((size_t)(2 * fit->areas * edges + 3 * edges) * sizeof *parts);
    double *since = malloc((size_t)larger_int(known, 1) * sizeof *since);
    if (!sums || !parts || !since) {
        free(since);
        free(sums);
        free(parts);
        return NO_MEMORY;
    }
    for (int k = 0; k < POINTS; k++)
        fit->prior[k] = GENERAL_PRIOR[k];
    for (int64_t g = 0; g < fit->areas; g++) {
        double *passed = fit->passed + g * edges;
        passed[0] = 0.0;
        for (int64_t j = 1; j < edges; j++)
            passed[j] = passed[j - 1] + larger(site->began[j] - site->began[j - 1], LEAST_DAYS);
    }
    bool clocked = false;
    double *events = parts, *exposure = parts + fit->areas * edges;
    double *others = exposure + fit->areas * edges;
    for (int round = 0; round < ROUNDS; round++) {
        believe(pages, site, fit, since, sums, belief);
        if (!site->facts->fitted || (round >= WITHOUT_CLOCK && !clocked))
            break;
        if (round == BY_DAYS - 1)
            clocked = known >= PAGES_OF_A_CLOCK
                && comes_in_bursts(pages, site, fit, belief, others);
        if (clocked)
            set_clock(pages, site, fit, belief, events, exposure, others);
    }
    site->facts->is_clocked = clocked;
    site->facts->is_due = false;
    free(since);
    free(sums);
    free(parts);
    return 0;
}

/* Let the base (of all pages) take in what ended before the session `first`, which becomes the first
 * one; the notes must be fitted. Return 0, or WRONG_INDEX before anything is written. */
EXPORTED int64_t site_fold(
    const struct pages *pages, const struct site *site, const struct fit *fit, int64_t first)
{
    struct site_facts *facts = site->facts;
    if (!fits(pages, site, fit, 0) || facts->fitted != facts->notes || first < 0
        || first >= facts->edges || facts->edges != facts->sessions || site->based < facts->known)
        return WRONG_INDEX;
    int64_t kept = 0;
    float forgotten = (float)exp(-(site->began[first] - site->began[0]) / KEPT_DAYS);
    for (int64_t p = 0; p < facts->known; p++) {
        struct page *page = pages->page + site->rows[p];
        const double *passed = fit->passed + area_of(pages, site, fit, p) * fit->edges;
        if (page->session < first)
            page->before += passed[first] - passed[page->session];
        page->session = larger_int(page->session - first, 0);
        for (int k = 0; k < POINTS; k++)
            site->base[POINTS * p + k] *= forgotten;
    }
    for (int64_t j = 0; j < facts->notes; j++) {
        struct note note = site->notes[j];
        int64_t area = area_of(pages, site, fit, note.place);
        const double *passed = fit->passed + area * fit->edges;
        if (note.stop <= first) {
            add_days(site->base + POINTS * note.place, passed_in(fit, area, &note), note.changed);
            continue;
        }
        if (note.first < first)
            note.before += passed[first] - passed[note.first];
        note.first = larger_int(note.first - first, 0);
        note.stop -= first;
        site->notes[kept++] = note;
    }
    for (int64_t j = first; j < facts->sessions; j++)
        site->began[j - first] = site->began[j];
    facts->notes = facts->closed = facts->fitted = kept;
    facts->sessions -= first;
    facts->edges = facts->sessions;
    facts->is_due = true;
    return 0;
}

/* Write how far the clocks of the areas have gone in the interval that ends at the present session,
 * by its visits so far. */
static void set_present(
    const struct pages *pages, const struct site *site, const struct fit *fit,
    const float *belief, const double *readings, double *went)
{
    const struct site_facts *facts = site->facts;
    int64_t now = facts->sessions - 1;
    double days = larger(site->began[now] - site->began[now - 1], LEAST_DAYS);
    double exposed[AREAS + 1] = {0}, all = OF_SITE / days;
    for (int64_t g = 0; g < fit->areas; g++)
        went[g] = days;
    for (int64_t j = facts->closed; j < facts->notes; j++) {
        const struct note *note = site->notes + j;
        if (note->first == now)
            continue;
        double rate = mean_of(belief + POINTS * site->rows[note->place], RATES);
        exposed[area_of(pages, site, fit, note->place)] += rate;
        all += rate;
    }
    if (facts->closed == facts->notes)
        return;
    for (int round = 0; round < PRESENT_ROUNDS; round++) {
        double found[AREAS + 1] = {0}, changes = OF_SITE;
        for (int64_t j = facts->closed; j < facts->notes; j++) {
            const struct note *note = site->notes + j;
            if (!note->changed || note->first == now)
                continue;
            int64_t area = area_of(pages, site, fit, note->place);
            double rate = mean_of(belief + POINTS * site->rows[note->place], RATES);
            const double *read = readings + area * facts->sessions;
            double passed = read[now - 1] - read[note->first] + note->before + went[area];
            double events = rate * went[area] / larger(-expm1(-rate * passed), LEAST);
            found[area] += events;
            changes += events;
        }
        for (int64_t g = 0; g < fit->areas; g++)
            went[g] = (OF_AREA + found[g]) / (OF_AREA / (changes / all) + exposed[g]);
    }
}

/* Write for how long the pages of a site, or the one in a row, have not been visited, in days of its
 * clock; `only` -1: all. Return 0, or WRONG_INDEX or NO_MEMORY before anything is written. */
EXPORTED int64_t site_readings(
    const struct pages *pages, const struct site *site, const struct fit *fit,
    const float *belief, int64_t cells, double now, int64_t only, double *since, int64_t rows)
{
    const struct site_facts *facts = site->facts;
    if (rows != pages->count || cells != POINTS * rows || only >= rows
        || (only >= 0 && (!pages->page[only].known || pages->page[only].place >= facts->known))
        || !fits(pages, site, fit, facts->closed))
        return WRONG_INDEX;
    int64_t last = facts->sessions - 1;
    double *readings = malloc((size_t)(fit->areas * facts->sessions) * sizeof *readings);
    if (!readings)
        return NO_MEMORY;
    for (int64_t g = 0; g < fit->areas; g++) {
        double *read = readings + g * facts->sessions;
        for (int64_t j = 0; j < facts->sessions; j++)
            read[j] = j < fit->edges
                ? fit->passed[g * fit->edges + j]
                : read[j - 1] + larger(site->began[j] - site->began[j - 1], LEAST_DAYS);
    }
    if (last > 0 && facts->edges <= last) {
        double went[AREAS + 1];
        set_present(pages, site, fit, belief, readings, went);
        for (int64_t g = 0; g < fit->areas; g++) {
            double *read = readings + g * facts->sessions;
            read[last] = read[last - 1] + went[g];
        }
    }
    double on = larger(now - site->began[last], 0.0);
    int64_t first = only < 0 ? 0 : pages->page[only].place;
    int64_t stop = only < 0 ? facts->known : first + 1;
    for (int64_t p = first; p < stop; p++) {
        const struct page *page = pages->page + site->rows[p];
        const double *read = readings + area_of(pages, site, fit, p) * facts->sessions;
        since[site->rows[p]] = page->before + read[last] - read[page->session] + on;
    }
    free(readings);
    return 0;
}

/* -- worth -- */

/* Write of all pages, by their beliefs and the days of their clocks since the last visits: the
 * changes since, -ln P(none); those of a day; and the expected days of staleness. Return 0 or
 * WRONG_INDEX. */
EXPORTED int64_t page_prospects(
    const struct page *page, int64_t count, const float *belief, int64_t cells,
    const double *since, double *hazard, double *rate, double *stale)
{
    if (cells != POINTS * count)
        return WRONG_INDEX;
    for (int64_t row = 0; row < count; row++) {
        const float *mine = belief + POINTS * row;
        hazard[row] = LEAST;
        rate[row] = larger(-log(larger(unchanged(mine, 1.0), 1e-300)), 1e-12);
        stale[row] = 0.0;
        if (page[row].known) {
            hazard[row] = larger(-log(larger(unchanged(mine, since[row]), 1e-300)), 1e-12);
            stale[row] = stale_days(mine, since[row]);
        }
    }
    return 0;
}

/* Write W of each page: of the stale days expected, or where something is claimed of it (`jump`
 * above 0) of the hazard with that, and the rate `per`. Return 0. */
EXPORTED int64_t page_worth(
    const struct page *page, int64_t count, const double *hazard, const double *stale,
    const double *jump, const double *per, const double *importance, double now, double longest,
    double *worth)
{
    double mean = 0.0;
    int64_t alive = 0;
    for (int64_t row = 0; row < count; row++) {
        if (page[row].alive) {
            mean += importance[row];
            alive++;
        }
    }
    mean /= (double)larger_int(alive, 1);
    for (int64_t row = 0; row < count; row++) {
        worth[row] = 0.0;
        if (!page[row].known)
            continue;
        double age = larger(now - page[row].last, 0.0), found = stale[row], wait = age;
        if (jump[row] > 0) {
            double x = hazard[row], gone = expm1(-x);
            found = ((x < 1e-4 ? x * x / 2 : x + gone) - jump[row] * gone / 2) / per[row];
            wait = age / LONGER_SILENCE;
        }
        /* Of pages equally fresh the one first that was not visited for longest. */
        worth[row] = importance[row] * (found + 1e-7 * age);
        if (wait * smaller(importance[row], mean) > longest * mean)
            worth[row] += mean * (longest + age);
    }
    return 0;
}
