/* The blocks that pages have shown (crawler/admission/copies.py). */

#include "core.h"

#include <stdlib.h>

/* A block of a host, and the page that showed it first. */
struct shown {
    uint64_t mark;
    int64_t page;
};

static int in_order(const void *one, const void *other)
{
    uint64_t left = *(const uint64_t *)one, right = *(const uint64_t *)other;
    return (left > right) - (left < right);
}

/* Add the blocks of a page, given by their digests, to a table of 2**bits places; two blocks have
 * one place at times, and the greater one keeps it. Return how many are different.
 *
 * Of those, others[0..*other_count) are the pages that had shown the rest. The digests are used up. */
EXPORTED size_t blocks_shown(
    struct shown *table, uint32_t bits, uint64_t *digests, size_t count, uint64_t host,
    int64_t page, int64_t *others, size_t *other_count)
{
    const uint64_t scatter = 0x9E3779B97F4A7C15u;
    size_t kept = 0, found = 0;
    for (size_t i = 0; i < count; i++)
        digests[i] = (digests[i] * scatter + host) * scatter | 1;
    qsort(digests, count, sizeof *digests, in_order);
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || digests[i] != digests[kept - 1])
            digests[kept++] = digests[i];
    /* All are looked up before any takes a place. */
    for (size_t i = 0; i < kept; i++) {
        const struct shown *known = table + (digests[i] >> (64 - bits));
        others[i] = known->mark == digests[i] ? known->page : page;
    }
    for (size_t i = 0; i < kept; i++) {
        table[digests[i] >> (64 - bits)] = (struct shown){digests[i], others[i]};
        if (others[i] != page)
            others[found++] = others[i];
    }
    *other_count = found;
    return kept;
}
