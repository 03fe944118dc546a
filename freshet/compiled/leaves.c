/* Boosted trees: the sum of the leaves to which they send a row (crawler/reduce/content.py). */

#include "core.h"

/* Rows that go down a tree together, so that none waits for another. */
#define AT_ONCE 32

static bool in(int64_t index, int64_t count)
{
    return index >= 0 && index < count;
}

/* Return whether trees judge rows of so many columns, and all their numbers are of nodes. */
bool trees_fit(const struct trees *trees, int64_t columns)
{
    for (int64_t node = 0; node < trees->nodes; node++) {
        const struct branch *branch = trees->branch + node;
        if (!in(branch->column, columns) || !in(branch->yes, trees->nodes)
            || !in(branch->no, trees->nodes))
            return false;
    }
    for (int64_t tree = 0; tree < trees->count; tree++)
        if (!in(trees->roots[tree], trees->nodes))
            return false;
    return true;
}

/* Sum the leaves of each row, tree by tree. */
void add_leaves(
    const struct trees *trees, const double *cells, int64_t width, double *sums, int64_t rows)
{
    const struct branch *first = trees->branch, *at[AT_ONCE];
    for (int64_t row = 0; row < rows; row++)
        sums[row] = 0;
    for (int64_t begin = 0, count; begin < rows; begin += count) {
        count = smaller_int(rows - begin, AT_ONCE);
        for (int64_t tree = 0; tree < trees->count; tree++) {
            for (int64_t i = 0; i < count; i++)
                at[i] = first + trees->roots[tree];
            for (int64_t level = 0; level < trees->levels; level++) {
                const double *cell = cells + begin * width;
                for (int64_t i = 0; i < count; i++, cell += width) {
                    /* A jump would cost more: no processor foresees where a row goes. */
                    int64_t is_yes = cell[at[i]->column] <= at[i]->limit;
                    at[i] = first + (at[i]->no ^ ((at[i]->yes ^ at[i]->no) & -is_yes));
                }
            }
            for (int64_t i = 0; i < count; i++)
                sums[begin + i] += at[i]->value;
        }
    }
}

/* Sum the leaves of each row. */
EXPORTED int64_t leaf_sums(
    const struct trees *trees, const double *cells, int64_t count, double *sums, int64_t rows)
{
    int64_t width = rows ? count / rows : 0;
    if (rows && !trees_fit(trees, width))
        return WRONG_INDEX;
    add_leaves(trees, cells, width, sums, rows);
    return 0;
}
