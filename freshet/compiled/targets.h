/* Where the links of a page lead (targets.c): see crawler/reduce/links.py. */

#ifndef FRESHET_TARGETS_H
#define FRESHET_TARGETS_H

#include "pieces.h"

/* What Python tells of a page: the octets of references, relations and anchors, with a "\n" behind
 * each; the numbers of links that are no anchors, in order, what each
 * is, and what those are called that are read here; relations by which these lead to pages, with a "\n" behind each; the base, its folder, its origin and
 * itself without a query, which are empty if nothing is simply added to them; names of parameters
 * that say nothing of a page, in small letters; a key. */
struct linked {
    const uint8_t *references, *relations, *anchors;
    const uint32_t *others;
    const uint8_t *kinds, *navigable;
    const struct span *called;
    const char *home, *folder, *origin, *place;
    const uint8_t *tracking;
    size_t references_length, relations_length, anchors_length, others_count, navigable_length;
    size_t tracking_length;
    size_t most;
    uint64_t key[2];
};

/* What an element is that leads elsewhere and is no anchor: Python is asked about it, or if it may lead
 * to a page by its relations; it leads nowhere; it is read with its relations, or without. */
enum { IS_ASKED, IS_LINK_ASKED, IS_NOWHERE, IS_LINK_READ, IS_READ };

struct targets;

int64_t targets_read(const struct linked *told, struct targets **made);
void targets_asked(const struct targets *targets, const void **columns, size_t *octets);
int64_t targets_written(struct targets *targets, const uint8_t *said, size_t length);
void targets_found(const struct targets *targets, const void **columns, size_t *octets);
void targets_drop(struct targets *targets);

#endif
