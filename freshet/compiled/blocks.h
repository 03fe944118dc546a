/* The blocks of the main text of a page (blocks.c): see crawler/reduce/main_text.py. */

#ifndef FRESHET_BLOCKS_H
#define FRESHET_BLOCKS_H

#include "core.h"
#include "pieces.h"

/* A block: the element in which it stands, by its number among those, and what Python has to look
 * at. */
struct block {
    uint32_t holder, flags;
};

struct blocks;

/* Make the blocks of the pieces of so many numbers, or of the first ones. Returns 0 or NO_MEMORY. */
int64_t blocks_of(
    const struct wording *known, const struct pieces *pieces, const uint32_t *numbers, size_t count,
    const uint32_t *replaced, size_t replaced_count, struct blocks **made);
void blocks_asked(const struct blocks *all, const void **columns, size_t *octets);
int64_t blocks_placed(
    struct blocks *all, uint64_t body, const uint64_t *said, size_t said_count);
void blocks_columns(const struct blocks *all, const void **columns, size_t *octets);
void blocks_drop(struct blocks *all);

#endif
