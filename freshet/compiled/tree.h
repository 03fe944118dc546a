/* The rows of a page's tree: see Tree in crawler/reduce/tree.py. */

#ifndef FRESHET_TREE_H
#define FRESHET_TREE_H

#include <stdint.h>

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

/* Return the seconds of a processor that this thread has used (tree.c). */
double seconds_used(void);

#endif
