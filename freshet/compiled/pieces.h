/* The pieces of a page and their texts (pieces.c): see crawler/reduce/pieces.py. */

#ifndef FRESHET_PIECES_H
#define FRESHET_PIECES_H

#include "octets.h"
#include "tree.h"

#define NONE UINT32_MAX

/* Kinds of pieces, by their numbers in Python; the six headings are the last, the first one h6. */
enum {
    RUN, QUOTE, LIST, TABLE, CODE, HEADING,
    SECOND_HEADING = HEADING + 4, FIRST_HEADING, KINDS,
};

/* What elements are to the cutter, by their numbers in Python; the six headings are the last. */
enum {
    IS_NOTHING, IS_QUOTE, IS_LIST, IS_TABLE, IS_CODE, IS_LINES, IS_ROW, IS_ROWS, IS_HEADING,
};

/* Blocks of 256 characters in Unicode. */
#define BLOCKS 4352

/* The columns of a tree, and the octets of its texts and values. */
struct columns {
    const struct node *nodes;
    const struct said *said;
    const uint8_t *text, *values;
    size_t node_count, said_count, text_length, values_length;
};

/* A piece: its nodes are those from `nodes` to `nodes_end` in a column of their own. `link` is the
 * element with the reference to which all of it leads; NONE: there is none. It may be only controls,
 * or stand in one. */
struct piece {
    uint32_t kind, holder, link, nodes, nodes_end, is_control;
};

/* The pieces in an element, their nodes, their texts with a "\n" behind each, where these begin,
 * and the blocks of characters that are in them. What stands in a tree must outlive its pieces. */
struct pieces {
    const struct elements *elements;
    struct columns tree;
    uint32_t top;
    struct growing pieces, nodes, texts, begins;
    uint8_t blocks[BLOCKS];
};

/* A block that is being cut: which it is, and the element with the reference to which it leads. */
struct cut_block {
    uint32_t holder, end, link;
};

struct cutter {
    struct pieces *all;
    /* The open blocks, and where the nodes of the run begin. */
    struct growing levels;
    size_t run;
};

static inline const struct piece *nth_piece(const struct pieces *all, size_t number)
{
    return (const struct piece *)all->pieces.items + number;
}

static inline struct span nth_text(const struct pieces *all, size_t number)
{
    const uint8_t *texts = all->texts.items;
    const size_t *begins = all->begins.items;
    return (struct span){texts + begins[number], texts + begins[number + 1] - 1};
}

/* Return the length of the character, no ASCII one, that a text begins with, and its code. */
size_t decoded(struct span text, uint32_t *code);

/* Return all text in a node of a tree, and the value of an attribute. */
static inline struct span text_in(const struct columns *tree, const struct node *node)
{
    return (struct span){tree->text + node->text, tree->text + node->text_end};
}

static inline struct span value_in(const struct columns *tree, const struct said *said)
{
    return (struct span){tree->values + said->value, tree->values + said->value_end};
}

/* Return whether a word, in any case, is one of the lines in these octets. */
bool is_one_of(const uint8_t *at, size_t octets, struct span word);
bool pass_host(struct span *text);

/* Return whether the rows of a tree name only what is there. */
bool is_tree(const struct columns *tree);

/* Return whether the rows of a tree, its top and its pieces do so. */
bool are_pieces_in(
    const struct columns *tree, uint32_t top, const struct piece *pieces, size_t count,
    const uint32_t *nodes, size_t node_count);

/* Make room for the pieces of a tree, to be given back to pieces_drop; NULL: no memory. */
struct pieces *pieces_in(
    const struct elements *elements, const struct columns *tree, uint32_t top);
void pieces_drop(struct pieces *all);

/* Cut an element of a tree, whose rows are right, into pieces; returns 0 or NO_MEMORY. */
int64_t pieces_of(
    const struct elements *elements, const struct columns *tree, uint32_t top, struct pieces **made);
/* Take the pieces of these numbers; returns 0 or a failure. */
int64_t pieces_only(
    const struct pieces *all, const uint32_t *numbers, size_t count, struct pieces **made);
/* Add the text of a piece with what stands in controls, and a "\n"; false: no memory. */
bool add_seen_text(const struct pieces *all, size_t number, struct growing *into);

/* Add the pieces in an element, or those that it is; false: no memory. */
bool cut_in(struct cutter *cutter, uint32_t node);
bool cut_node(struct cutter *cutter, uint32_t node);

/* Return what an element is to the cutter. */
int64_t kind_in(const struct pieces *all, const struct node *node);

/* Return whether there is a word or an image in a node. */
bool shows(const struct pieces *all, uint32_t node);

/* Return the value of the first attribute of an element with that name; its start is NULL if it has
 * none. */
struct span attribute_of(const struct pieces *all, uint32_t node, int64_t name);

#endif
