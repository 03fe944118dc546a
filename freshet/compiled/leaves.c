/* Boosted trees: the sum of the leaves to which they send a row (crawler/reduce/content.py).
 *
 * No row goes down a tree. Each of its nodes strikes out the leaves that rows cannot reach, in many
 * rows at once; the first leaf that is left is the one where going down would end (QuickScorer,
 * Lucchese et al. 2015). Values are compared by their ranks among the limits of their column. */

#include "core.h"

#include <string.h>

/* Rows that processors compare at once, with vectors of 32 octets or two of 16, and those judged
 * together. */
#define LANES 16
#define AT_ONCE (2 * LANES)

typedef int16_t lanes __attribute__((vector_size(2 * LANES)));

/* Return the number of limits that a value is not at most. NaN is at most none. */
static int16_t rank_of(const double *limits, int64_t count, double value)
{
    int64_t rank = 0;
    while (count > 0) {
        int64_t half = (count + 1) / 2;
        /* A jump would cost more: no processor foresees where a value is. */
        rank += half & -(int64_t)!(value <= limits[rank + half - 1]);
        count -= half;
    }
    return (int16_t)rank;
}

static void rank_cells(
    const struct trees *trees, const double *cells, int64_t rows, lanes (*ranks)[AT_ONCE / LANES])
{
    int64_t begin = 0;
    for (int64_t column = 0; column < trees->columns; column++) {
        int64_t count = trees->limit_ends[column] - begin;
        double last = 0;
        int16_t rank = rank_of(trees->limits + begin, count, last);
        for (int64_t row = 0; row < rows; row++) {
            double value = cells[row * trees->columns + column];
            /* Pieces beside each other have many numbers in common. */
            if (value != last)
                rank = rank_of(trees->limits + begin, count, value);
            last = value;
            ranks[column][row / LANES][row % LANES] = rank;
        }
        begin = trees->limit_ends[column];
    }
}

/* Add the leaves of rows that stand in so many lanes, which is a constant of the caller. */
static inline __attribute__((always_inline)) void add_in_lanes(
    const struct trees *trees, const lanes (*ranks)[AT_ONCE / LANES], double *sums, int64_t rows,
    size_t wide)
{
    int64_t node = 0;
    for (int64_t tree = 0; tree < trees->count; tree++) {
        lanes struck[AT_ONCE / LANES] = {0};
        for (int64_t end = trees->branch_ends[tree]; node < end; node++) {
            const struct branch *branch = trees->branch + node;
            const lanes *rank = ranks[branch->column];
            for (size_t i = 0; i < wide; i++)
                struck[i] |= (rank[i] > branch->limit) & branch->struck;
        }
        const double *leaves = trees->leaves + tree * LEAVES;
        uint16_t all[AT_ONCE];
        memcpy(all, struck, wide * sizeof *struck);
        for (int64_t i = 0; i < rows; i++)
            sums[i] += leaves[__builtin_ctz(~(uint32_t)all[i] | 1u << (LEAVES - 1))];
    }
}

WIDER static void add_batch(const struct trees *trees, const lanes (*ranks)[AT_ONCE / LANES],
                            double *sums, int64_t rows)
{
    if (rows > LANES)
        add_in_lanes(trees, ranks, sums, rows, 2);
    else
        add_in_lanes(trees, ranks, sums, rows, 1);
}

/* Return whether all numbers of trees are of what is there. Look once: it takes as long as a page. */
EXPORTED int64_t trees_begin(const struct trees *trees)
{
    int64_t before = 0;
    if (trees->columns > MOST_COLUMNS)
        return WRONG_INDEX;
    for (int64_t i = 0; i < trees->columns; before = trees->limit_ends[i++])
        if (trees->limit_ends[i] < before || trees->limit_ends[i] > trees->limits_count
            || trees->limit_ends[i] - before > INT16_MAX)
            return WRONG_INDEX;
    before = 0;
    for (int64_t i = 0; i < trees->count; before = trees->branch_ends[i++])
        if (trees->branch_ends[i] < before || trees->branch_ends[i] > trees->nodes)
            return WRONG_INDEX;
    for (int64_t i = 0; i < trees->nodes; i++)
        if (trees->branch[i].column < 0 || trees->branch[i].column >= trees->columns)
            return WRONG_INDEX;
    return 0;
}

/* Sum the leaves of each row, tree by tree. */
void add_leaves(const struct trees *trees, const double *cells, double *sums, int64_t rows)
{
    lanes ranks[MOST_COLUMNS][AT_ONCE / LANES] = {0};
    for (int64_t begin = 0, count; begin < rows; begin += count) {
        count = smaller_int(rows - begin, AT_ONCE);
        rank_cells(trees, cells + begin * trees->columns, count, ranks);
        for (int64_t i = 0; i < count; i++)
            sums[begin + i] = 0;
        add_batch(trees, ranks, sums + begin, count);
    }
}

/* Sum the leaves of each row. */
EXPORTED int64_t leaf_sums(
    const struct trees *trees, const double *cells, int64_t count, double *sums, int64_t rows)
{
    if (rows && count != rows * trees->columns)
        return WRONG_INDEX;
    add_leaves(trees, cells, sums, rows);
    return 0;
}
