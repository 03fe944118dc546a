/* What the files of the compiled core share.
 *
 * freshet/compiled/numeric.py reads the constants and structures of this file and makes records of
 * numpy of them; so each line declares members of one type, and the layout is C's own. A comment
 * behind a pointer has the shape of its array.
 */

#ifndef FRESHET_CORE_H
#define FRESHET_CORE_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A function that is compiled twice, for vectors of 32 octets, too; the C library chooses when it
 * loads the core. (The digits of a build with clang's clones were others.) */
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__)
#define WIDER __attribute__((target_clones("avx2", "default")))
#else
#define WIDER
#endif

#define EXPORTED __attribute__((visibility("default")))

/* What functions return in place of a number of at least 0. */
#define NO_MEMORY -1
#define WRONG_INDEX -2

/* NaN in `a` stays, as in Python. */
static inline double larger(double a, double b) { return b > a ? b : a; }
static inline double smaller(double a, double b) { return b < a ? b : a; }
static inline int64_t larger_int(int64_t a, int64_t b) { return b > a ? b : a; }
static inline int64_t smaller_int(int64_t a, int64_t b) { return b < a ? b : a; }

/* -- pages, their rates, and the clocks of sites (grid.c, site_model.c) -- */

/* Rates of the grid: from 1/20,000 to 50 changes a day. */
#define POINTS 40
/* Areas of a site. */
#define AREAS 16
/* Sessions that a site keeps apart, at most. */
#define SESSIONS 256

struct page {
    bool known, alive;
    int16_t area;
    /* By so many points of the grid its rate is presumed to be above the usual one. */
    int16_t above;
    /* Its place among the pages of its site, and the session of its last visit. */
    int64_t place, session;
    double last;
    /* Days of its clock from the last visit to the first session that is kept. */
    double before;
};

struct visit {
    int64_t row;
    double at;
    bool compared, changed, gone;
    /* Whether its bytes were others, changed or not. */
    bool moved;
    /* Filled in: the day of the visit before, -inf if none, and the changes expected. */
    double begin, hazard;
};

/* Whether a page changed between two sessions, and so many days of its clock before them. */
struct note {
    int64_t place, first, stop;
    double before;
    bool changed;
};

struct site_facts {
    int64_t known, alive, sessions;
    /* Compared visits in the present session. */
    int64_t compared;
    /* Notes; those of sessions before the present one; those that are fitted, and the sessions that
     * had begun by then. */
    int64_t notes, closed, fitted, edges;
    /* Whether a fit is due, and the last one has a clock. */
    bool is_due, is_clocked;
};

/* All pages of all sites. */
struct pages {
    int64_t count;
    struct page *page; /* [count] */
};

/* A site: of its visited pages, by their places, the rows, and for the first `based` the
 * log-likelihoods of what is noted no more; the notes, and the days on which sessions began. */
struct site {
    int64_t room, note_room, session_room, based;
    struct site_facts *facts; /* [1] */
    int64_t *rows; /* [room] */
    struct note *notes; /* [note_room] */
    double *began; /* [session_room] */
    float *base; /* [based][POINTS] */
};

/* What the notes of a site say: the prior of its pages, and how far the clocks of its areas had gone
 * when each session began, the last one being that of areas to come; AREAS + 1 at most. */
struct fit {
    int64_t areas, edges;
    double *prior; /* [POINTS] */
    double *passed; /* [areas][edges] */
};

extern double RATES[POINTS], LOGS[POINTS], GENERAL_PRIOR[POINTS];
void add_interval(float *sums, double own, double cold, bool changed);
void add_days(float *sums, double days, bool changed);
void posterior(const float *sums, const double *prior, float *found);
double unchanged(const float *belief, double days);
double stale_days(const float *belief, double days);
void drift(float *sums, const double *prior, double days);
double mean_rate(const float *sums, const double *prior);
double log_loss(double hazard, bool changed);
bool fit(
    const float *sums, const int64_t *rows, int64_t count,
    double *prior, const double *parent, int64_t steps);

/* -- claims about the pages of a site (claims.c) -- */

/* Visits before the prior of claimed pages is fitted for the first time. */
#define FIRST_FIT 32
/* Claims on a page that stand until the next visit; of more the oldest are forgotten. */
#define STANDING 12
/* Sources whose pages are told apart. */
#define SOURCES 63
/* Events by how much of the site is in them. */
#define SIZES 5
/* Claims count where they predict better by this share of the log loss. */
#define LEAST_GAIN 0.12

struct claimed_page {
    int64_t row;
    /* The sources (bits, by their places) that have claimed something of the page. */
    int64_t by;
    /* Since when something is claimed of the page, and how often that moved. */
    double since;
    int64_t moves;
    /* kappa: expected changes by unit of an event's share. */
    double weight;
    int64_t standing;
    /* The visit before, committed at the next one, when its events have settled. */
    int64_t past;
    double past_days, past_other;
    bool past_changed;
    /* A visit that found an unclaimed change, until the sources have been polled again. */
    bool held, changed;
    double begin, at, hazard;
};

/* A claim: of the page in a slot, last visited on a day, -inf: never. */
struct claim {
    int64_t slot;
    double until, last;
    /* Of the event that it belongs to, within the signal. */
    int64_t number;
};

struct event {
    int64_t source, size;
    double at;
    /* Changes attributed to it, the weights of the visited pages, and its share. */
    double found, exposed, share;
};

struct source {
    int64_t number, asked;
    double received;
    int64_t claims;
    /* Days observed lately, and the credit earned in these. */
    double days, gain;
    /* Recent visits to pages of which it claimed a change, and the changes found at these. */
    double visited, found;
    /* Changes found lately at any of its pages, and those that it had claimed. */
    double changes, claimed;
    /* Recent days from changes to their claims, and the number of these claims. */
    double late, timed;
};

struct claim_facts {
    int64_t pages, events, visits, fit_at;
    /* Decayed log losses with and without claims. */
    double loss, loss_without;
    /* Visits without claims: changes found, and changes expected. */
    double unclaimed, expected;
    /* The mean share of events over their claims. */
    double share_sum, shares;
    /* The mean weight of visited pages, over visits. */
    double weight_sum, weights;
    /* Whether a page has changed without a claim when the sources were last polled. */
    bool news;
};

/* The claims of a site, with `room` for pages, a ring of `size` events and `known` sources.
 *
 * `standing` and `past` are numbers of events; `share` has the changes found and the weights
 * exposed of the events of each source and size. */
struct claims {
    int64_t room, size, known;
    struct claim_facts *facts; /* [1] */
    struct claimed_page *page; /* [room] */
    int64_t *standing; /* [room][STANDING] */
    int64_t *past; /* [room][STANDING] */
    float *likelihood; /* [room][POINTS] */
    struct event *event; /* [size] */
    struct source *source; /* [known] */
    double *share; /* [known][SIZES][2] */
    double *prior; /* [POINTS] */
    double *parent; /* [POINTS] */
};

/* -- archived pages (bounds.c) -- */

/* The captures of `pages` pages, those of each together, as scheduler/evaluate/captures.py has
 * them. */
struct timeline {
    int64_t pages, captures;
    int64_t *offsets; /* [pages + 1] */
    double *since; /* [captures] */
    double *at; /* [captures] */
    double *until; /* [captures] */
    bool *appears; /* [captures] */
    bool *changed; /* [captures] */
    bool *counts; /* [captures] */
    bool *gap_counts; /* [captures] */
};

/* Where costs are added up: by page, and by day, with steps between days; `harmonic` are the first
 * `most` harmonic numbers. */
struct bill {
    int64_t count, days, most;
    double *pages; /* [count][9] */
    double *bins; /* [days][9] */
    double *steps; /* [days][9] */
    double *importance; /* [count] */
    double *harmonic; /* [most] */
    /* The day from which on they are. */
    double *start; /* [1] */
};

/* -- search quality (search_quality.c) -- */

/* The terms of queries, in UTF-8 one behind the other, and the queries: those of each stop at
 * `stops` among the entries. `counts` are those of the page that is being scored. */
struct scorer {
    int64_t octets, terms, slots, queries, entries, lines;
    uint8_t *words; /* [octets] */
    int64_t *ends; /* [terms] */
    int64_t *table; /* [slots] */
    int64_t *stops; /* [queries] */
    int64_t *term; /* [entries] */
    double *idf; /* [entries] */
    double *per_word; /* [queries] */
    double *weights; /* [lines] */
    double *counts; /* [terms] */
};

/* The first results of queries, by score and then by page; where more match, they are `cut`. */
struct score_rows {
    int64_t queries, top;
    int64_t *pages; /* [queries][top] */
    double *scores; /* [queries][top] */
    int64_t *length; /* [queries] */
    bool *cut; /* [queries] */
    double *frequency; /* [queries] */
    double *views; /* [top + 1] */
};

/* -- the choice of content (pieces.c, content.c, leaves.c) -- */

/* Numbers that describe a piece of a page, and elements whose places are among them. */
#define FEATURES 73
#define TAG_PLACES 14

/* What is known of a word in names of elements, as bits: it names a part of the frame, is one of
 * those or of the layout, says enough alone, tells of the page if it comes first, or is one of
 * comments; log odds are known of it there, or in short texts. */
#define FRAME_WORD 1
#define KNOWN_WORD 2
#define SURE_WORD 4
#define STATE_WORD 8
#define COMMENT_WORD 16
#define ODDS_WORD 32
#define LABEL_WORD 64

/* What is known of a character, as bits. */
#define KNOWN_CHARACTER 1
#define UPPER_CASE 2
#define DIGIT 4
#define WORD 8
#define PUNCTUATION 16

/* Characters of Unicode. */
#define CHARACTERS 1114112

/* What elements are to the cutter of pieces, by their numbers in every tree; the numbers of other
 * names; bits of places and traits. */
struct elements {
    int64_t names, a, br, href, role;
    int64_t unseen, in_control;
    int64_t block, large, table, image, control, button, apart, stated;
    int64_t *kinds; /* [names] */
};

/* What elements are to the writer of documents, by their numbers in every tree, and what they are
 * called; the numbers of other names, those of attributes with the source of an image and with sets
 * of such; a trait; the classes of numbers of lines, and the texts of links to a heading itself, each
 * with a "\n" behind it; what is known of each character, 0 if nothing. */
struct markup {
    int64_t names, octets, name_octets, permalink_octets, sources, all_sources;
    int64_t ol, dt, dd, href, alt, class, width, height, colspan, rowspan, start, type, value;
    int64_t reversed, datetime, display, tex;
    int64_t *kinds; /* [names] */
    int64_t *ends; /* [names] */
    uint8_t *letters; /* [name_octets] */
    int64_t *source; /* [all_sources] */
    uint8_t *line_numbers; /* [octets] */
    uint8_t *permalinks; /* [permalink_octets] */
    uint8_t *characters; /* [CHARACTERS] */
};

/* The words in names of elements and in labels, sorted, in UTF-8 one behind the other, with what is
 * known of each; the numbers of the names of elements and attributes in every tree; bits of places; what is
 * known of each character, 0 if nothing. */
struct vocabulary {
    int64_t octets, words, slots;
    int64_t article, id, class, role, itemprop, testid, style, hidden, aria_hidden;
    int64_t link, frame, nav, aside, noscript, header, footer, main, in_article, caption;
    uint8_t *letters; /* [octets] */
    int64_t *ends; /* [words] */
    int64_t *table; /* [slots] */
    int64_t *flags; /* [words] */
    double *odds; /* [words] */
    double *label_odds; /* [words] */
    int64_t *places; /* [TAG_PLACES] */
    uint8_t *characters; /* [CHARACTERS] */
};

/* Leaves of a tree, at most, and columns of the rows that trees judge. */
#define LEAVES 16
#define MOST_COLUMNS 80

/* A node of boosted trees: of rows whose value has a greater rank in its column than its limit, it
 * strikes out these leaves, as bits. */
struct branch {
    int16_t column, limit, struck;
};

/* Boosted trees: the distinct limits of each column in order, the nodes of each tree, but for its
 * leaves, and the values of these, those where a value is at most the limit first. */
struct trees {
    int64_t columns, count, nodes, limits_count;
    double *limits; /* [limits_count] */
    int64_t *limit_ends; /* [columns] */
    struct branch *branch; /* [nodes] */
    int64_t *branch_ends; /* [count] */
    double *leaves; /* [count][LEAVES] */
};

/* -- the main text (blocks.c) -- */

/* Groups of three characters, by the last five bits of each. */
#define GROUPS 32768

/* What elements are to the walk over the main text, by their numbers in every tree, the kinds of
 * blocks in them, and what they are called; the numbers of other names; bits of places and traits; the
 * most characters of a stamp, the words that are too many for one, the most characters of a relative
 * time, what groups tell of stamps, and what begins one, each with a "\n" behind it; so have the
 * classes of numbers of lines, texts of links to a heading itself, and classes that say nothing of a
 * place. */
struct wording {
    int64_t names, id, class, datetime;
    int64_t unseen, in_control, block, apart, tex;
    int64_t most, words, relative, start_octets;
    int64_t octets, permalink_octets, passing_octets, name_octets;
    int64_t *kinds; /* [names] */
    int64_t *block_kinds; /* [names] */
    int64_t *ends; /* [names] */
    uint8_t *letters; /* [name_octets] */
    uint8_t *groups; /* [GROUPS] */
    uint8_t *starts; /* [start_octets] */
    uint8_t *line_numbers; /* [octets] */
    uint8_t *permalinks; /* [permalink_octets] */
    uint8_t *passing; /* [passing_octets] */
};

/* What word_hashes returns where a character has no class yet. */
#define UNKNOWN_CHARACTER -1

/* Words and shingles (sketch.c). */
size_t unclassed(
    const uint8_t *octets, size_t length, const uint8_t *classes, uint32_t *asked);
int64_t word_hashes(
    const uint8_t *octets, size_t length, bool lowered,
    const uint8_t *classes, size_t slice, uint32_t *hashes);
size_t shingles(uint32_t *words, size_t count, uint32_t *room);
void lower_minima(
    const uint32_t *hashes, size_t count,
    const uint32_t *factors, const uint32_t *summands, uint32_t *minima);

/* Write so many octets of the BLAKE2b digest of octets, at most 64 (digest.c). */
void digest(const uint8_t *octets, size_t length, uint8_t *made, size_t size);
void salted_digest(
    uint64_t salt, const uint8_t *octets, size_t length, uint8_t *made, size_t size);

void add_leaves(const struct trees *trees, const double *cells, double *sums, int64_t rows);

#endif
