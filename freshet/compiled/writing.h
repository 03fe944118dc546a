/* What is shared by the files that write documents: writing.c (blocks), inline.c (what stands in
 * one), links.c and emphasis.c.
 *
 * Both forms of a page are written side by side, each at the end of an array of octets. What must
 * stand before something is put in afterwards, when that is known: an element moves its own octets
 * only. After an error nothing is written any more. */

#ifndef FRESHET_WRITING_H
#define FRESHET_WRITING_H

#include "core.h"
#include "pieces.h"

/* A tree has less than half as many levels. */
#define DEEPEST 256

/* What elements are to the writer, by their numbers in Python; those from STRONG_TAG to RAISED_TAG
 * have something around them. The last two are bits: an item of a list, and a line in code. */
enum {
    PLAIN_TAG, CODE_TAG, ANCHOR_TAG, BREAK_TAG, IMAGE_TAG, INPUT_TAG, MATH_TAG, RUBY_TAG, LINES_TAG,
    TIME_TAG, MEDIUM_TAG, STRONG_TAG, EM_TAG, DEL_TAG, QUOTED_TAG, READING_TAG, LOWERED_TAG, RAISED_TAG,
    TITLE_TAG, HEAD_CELL_TAG, ITEM_TAG = 32, LINE_TAG = 64,
};

/* Marks around what is emphasised, until it is known what stands beside it: of each element one for
 * its beginning, which is odd, and one for its end. */
enum { FIRST_MARK = 1, LAST_MARK = 6, DELETED = 5 };

/* Both forms of a page. */
enum { TEXT, HTML, FORMS };

/* What Python tells: the pieces and their nodes; the URLs to which all of a piece leads, of which
 * that of each ends at `url_ends`; what references are added to, if the base is an http or https
 * URL. */
struct told {
    const struct piece *pieces;
    const uint32_t *nodes, *url_ends;
    const uint8_t *urls;
    const char *home, *folder, *origin;
    size_t count, node_count;
};

/* What Python answers; the answer to each question ends at `ends`. */
struct answers {
    const uint8_t *texts;
    const uint32_t *ends;
    size_t octets, count;
};

/* What is written: the pieces in both forms, with a NUL behind each, and the number of each. */
struct writer {
    const struct markup *known;
    const struct told *told;
    const struct answers *answers;
    struct cutter cutter;
    struct growing forms[FORMS], numbers;
    /* Questions, the nodes that they are about, and blocks of characters that are not known. */
    struct growing questions, asked, unknown;
    uint8_t is_unknown[BLOCKS];
    /* What is needed for a moment. */
    struct growing spare, verbatim, url, ends, marks, runs, open;
    /* Whether the run has spaces side by side, breaks of lines, and marks. */
    bool has_spaces, has_breaks, has_marks;
    unsigned depth;
    int64_t error;
};

/* Where both forms end. */
struct place {
    size_t at[FORMS];
};

/* -- octets ------------------------------------------------------------------------------------ */

static inline struct span spelled(const char *text)
{
    return (struct span){(const uint8_t *)text, (const uint8_t *)text + strlen(text)};
}

#define NO_TEXT spelled("")

static inline struct span octets_in(const struct growing *all)
{
    const uint8_t *octets = all->items;
    return octets ? (struct span){octets, octets + all->count} : NO_TEXT;
}

static inline size_t length_of(struct span text) { return (size_t)(text.end - text.at); }

static inline bool is_equal(struct span text, const char *other)
{
    return length_of(text) == strlen(other) && !memcmp(text.at, other, strlen(other));
}

static inline bool begins_with(struct span text, const char *start)
{
    return length_of(text) >= strlen(start) && !memcmp(text.at, start, strlen(start));
}

static inline bool is_digit(uint8_t octet) { return octet >= '0' && octet <= '9'; }

static inline bool is_letter(uint8_t octet) { return (octet | 32) >= 'a' && (octet | 32) <= 'z'; }

/* Return the length of the character that a text begins with. */
static inline size_t character_length(struct span text)
{
    uint32_t code;
    return *text.at < 0x80 ? 1 : decoded(text, &code);
}

/* -- both forms -------------------------------------------------------------------------------- */

static inline void append(struct writer *w, struct growing *to, struct span text)
{
    if (!w->error && !add(to, text.at, length_of(text)))
        w->error = NO_MEMORY;
}

/* Append a number in four octets. */
static inline void append_number(struct writer *w, struct growing *to, uint32_t number)
{
    append(w, to, (struct span){(const uint8_t *)&number, (const uint8_t *)(&number + 1)});
}

static inline void append_nul(struct writer *w, struct growing *to)
{
    static const uint8_t nul[1];
    append(w, to, (struct span){nul, nul + 1});
}

static inline void put(struct writer *w, int form, struct span text)
{
    append(w, &w->forms[form], text);
}

static inline void say(struct writer *w, int form, const char *text)
{
    put(w, form, spelled(text));
}

static inline void say_both(struct writer *w, const char *text)
{
    say(w, TEXT, text);
    say(w, HTML, text);
}

static inline struct place here(const struct writer *w)
{
    return (struct place){{w->forms[TEXT].count, w->forms[HTML].count}};
}

static inline void go_back(struct writer *w, struct place place)
{
    for (int form = 0; form < FORMS; form++)
        w->forms[form].count = place.at[form];
}

/* Return what was written from there on. */
static inline struct span since(const struct writer *w, int form, size_t begin)
{
    struct span all = octets_in(&w->forms[form]);
    all.at += all.at < all.end ? begin : 0;
    return all;
}

/* Put octets in; they are not of the same form. */
void insert(struct writer *w, int form, size_t at, struct span text);

/* Take what was written from there on out, and return a copy of it in `spare`. */
struct span taken(struct writer *w, int form, size_t begin);

/* Leave only `text` of all octets from `begin` on, which is among them. */
void keep(struct growing *all, size_t begin, struct span text);

/* Write each run of white space from there on as one space, with none at the ends. */
void join_words(struct growing *all, size_t begin);

/* Return where a text, which is not empty, begins in another; NULL: nowhere. */
const uint8_t *found_in(struct span text, const char *wanted);

/* -- the tree ---------------------------------------------------------------------------------- */

static inline const struct node *node_at(const struct writer *w, uint32_t node)
{
    return w->cutter.all->tree.nodes + node;
}

static inline bool is_seen(const struct writer *w, uint32_t node)
{
    return !(node_at(w, node)->place & w->cutter.all->elements->unseen);
}

static inline bool is_element(const struct writer *w, uint32_t node)
{
    return node_at(w, node)->name && is_seen(w, node);
}

/* Return what an element is, with the bits for more of them. */
static inline int64_t markup_of(const struct writer *w, uint32_t node)
{
    uint32_t name = node_at(w, node)->name;
    return name < w->known->names ? w->known->kinds[name] : PLAIN_TAG;
}

static inline int64_t tag_of(const struct writer *w, uint32_t node)
{
    return markup_of(w, node) & (ITEM_TAG - 1);
}

static inline struct span said_of(const struct writer *w, uint32_t node, int64_t name)
{
    return attribute_of(w->cutter.all, node, name);
}

/* Return the number that an attribute is, or another one. */
int64_t number_of(const struct writer *w, uint32_t node, int64_t name, int64_t otherwise);

/* -- links.c ----------------------------------------------------------------------------------- */

/* Ask about the nodes of pieces: references that are not plain, formulas without TeX, times and media. */
void ask_about_pieces(struct writer *w);

/* Return the answer about a node, an empty text if it says no. */
struct span answer_about(const struct writer *w, uint32_t node);

/* Return the absolute URL of the reference of an element, an empty text if no reader can follow
 * it. */
struct span url_of(struct writer *w, uint32_t node, struct span reference);

/* Write a URL as the target of a link in Markdown. */
void put_target(struct writer *w, struct span url);

/* Make a link of what was written from there on. */
void put_link(struct writer *w, struct place begin, struct span url);

/* -- emphasis.c -------------------------------------------------------------------------------- */

/* Write the marks from there on as signs of Markdown, or as tags where it would take no signs. */
void emphasise(struct writer *w, size_t begin);

/* -- inline.c ---------------------------------------------------------------------------------- */

/* Return what is known of the character that a text begins with, or ends with. */
uint8_t kind_of(struct writer *w, struct span text);
uint8_t kind_before(struct writer *w, struct span text);

/* Return whether the "&" that a text begins with would be taken for a character reference. */
bool is_reference(struct writer *w, struct span text);

/* Write a text as HTML, or as the value of an attribute. */
void put_html(struct writer *w, struct span text, bool in_quotes);

/* Put these around the words of both forms that were written from there on, if there are any. */
void wrap_both(struct writer *w, struct place begin, const struct span around[FORMS][2]);

/* Return the source of an image, or the first one of a set, that is no image itself. */
struct span source_of(const struct writer *w, uint32_t node);

/* Return whether an element is a formula that does not say its TeX itself. */
bool is_mathml(const struct writer *w, uint32_t node);

/* Write a run of nodes, or what stands in an element, in both forms, without white space around
 * it. */
void put_run(struct writer *w, const uint32_t *nodes, size_t count);
void put_run_in(struct writer *w, uint32_t node);

void put_code_block(struct writer *w, uint32_t node);

#endif
