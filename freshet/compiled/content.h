/* The pieces of a page as trees judge them (content.c), for the choice among them (choice.c). */

#ifndef FRESHET_CONTENT_H
#define FRESHET_CONTENT_H

#include "core.h"
#include "pieces.h"

#define SHARES 3

/* An element above a piece: what it says itself, and what all from the body down to it do. The
 * numbers of others are those of places; NONE of what is not there. */
struct place {
    uint32_t node, up, depth;
    /* Log odds of its own names. */
    uint32_t odds, odds_end;
    /* Whether it is hidden by a style or in another way, also in one that is, and whether its own
     * attributes hide it. */
    bool is_hidden, is_marked_hidden;
    bool has_attributes, is_asked, is_frame, has_comments, has_odds;
    uint32_t frame_names, article, bad_names, near, near_above;
    double least, most, sum;
    uint32_t climbed[SHARES];
    /* Paragraphs in it, the weight of its prose, and how many places had some before it, plus 1. */
    uint32_t paragraphs, weighted;
    double weight;
};

/* What a piece's text and links say. */
struct words {
    uint32_t place, characters, words, commas, wide_commas, stops, digits, capitals, alike;
    bool ends_sentence;
    double linked;
};

struct content {
    const struct vocabulary *known;
    const struct pieces *pieces;
    const struct node *nodes;
    /* The places, the place of each node plus 1, and that of each piece. */
    struct growing places, odds;
    uint32_t *place_of, *piece_place;
    /* Elements and blocks of characters that Python must be asked about; the numbers and kinds of the
     * first headings, and their texts with a "\n" behind each. */
    struct growing asked, asked_blocks, titles, title_texts;
    /* What was found: log odds of each piece, what its text says, and the rows. */
    double *sums, *rows;
    struct words *words;
};

/* What Python says: of each element that it was asked about, in order, whether it is hidden (1), is
 * named as frame (2) and as comments (4), and hidden by its own attributes (8), and the log odds of
 * its names, which end at `ends`. `titled` is the number of the piece that is the page's title, or
 * -1. */
struct answers {
    const uint8_t *flags;
    const uint32_t *ends;
    const double *odds;
    size_t asked, odds_count;
    int64_t titled;
    double seconds;
};

/* Return the number of a word in the vocabulary, whatever the case of its letters, or -1. */
int64_t number_of_word(const struct vocabulary *known, struct span word);

/* The choice among judged pieces (choice.c). */
struct choice;

/* Return 0 or a failure, as the functions of the same names say that Python calls. */
int64_t content_read(
    const struct vocabulary *known, const struct pieces *pieces, struct content **made);
int64_t content_judged(
    struct content *content, const struct trees *trees, const struct answers *answers);
void content_drop(struct content *content);
int64_t choice_made(const struct content *content, int64_t headline, struct choice **made);
int64_t choice_settled(
    struct choice *choice, const struct pieces *all, const uint8_t *said, size_t said_count);
int64_t choice_finished(struct choice *choice, const uint8_t *said, size_t said_count);
void choice_columns(const struct choice *choice, const void **columns, size_t *octets);
void choice_drop(struct choice *choice);

/* Find the headings that repeat the title of a page and that are its own, -1: none. Returns whether
 * they are found: texts beyond ASCII are for Python to compare. */
bool find_titles(
    const struct content *content, struct span title, int64_t *titled, int64_t *headline);

static inline struct place *nth_place(const struct content *content, uint32_t number)
{
    return (struct place *)content->places.items + number;
}

#endif
