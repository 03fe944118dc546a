/* The rows of a page's tree: see Tree in crawler/reduce/tree.py. */

#ifndef FRESHET_TREE_H
#define FRESHET_TREE_H

#include "octets.h"

/* What functions over a page return beside NO_MEMORY and WRONG_INDEX. */
#define TOO_LARGE -3
#define TOO_SLOW -4

/* A row of the nodes and one of the attributes. */
struct node {
    uint32_t parent, end, name, place, trait, holds, chars, linked, text, text_end, said, said_end;
};
struct said {
    uint32_t node, name, value, value_end;
};

/* Distinct names of elements and attributes; `slots` has their numbers plus 1 by hash. */
struct name_table {
    struct growing octets, ends;
    uint32_t *slots;
    size_t room;
};

/* Of each link there are its node, and three texts that end with a newline: the reference, the
 * relations, and what it is called. */
struct tree {
    struct growing nodes, said, text, values;
    struct name_table names;
    struct growing links, references, relations, anchors;
};

/* Bounds on a page: nodes or attributes, octets of texts or values, seconds, octets that Lexbor is
 * given, links that are read, and levels of nodes. */
struct limits {
    size_t nodes, octets;
    double seconds;
    size_t memory, links, levels;
};

/* Make the tree of a page, to be given back to tree_drop. Returns 0, or why there is none, or a part
 * of one only (tree.c). */
int64_t tree_made(
    const uint8_t *html, size_t length, uint32_t options, const struct limits *limits,
    struct tree **made);
void tree_drop(struct tree *tree);

/* Return whether an element or an attribute of a page has that name. */
bool tree_names(const struct tree *tree, const char *name);

/* Return the seconds of a processor that this thread has used (tree.c). */
double seconds_used(void);

#endif
