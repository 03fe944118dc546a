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

static inline struct place *nth_place(const struct content *content, uint32_t number)
{
    return (struct place *)content->places.items + number;
}

#endif
