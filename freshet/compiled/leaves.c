/* Boosted trees: the sum of the leaves to which they send a row (crawler/reduce/content.py). */

#include "core.h"

static bool in(int64_t index, int64_t count)
{
    return index >= 0 && index < count;
}

/* Sum the leaves of each row. A node sends a row to `yes` where the value of its column is at most
 * its limit, else to `no`; a leaf leads to itself. */
EXPORTED int64_t leaf_sums(
    const double *cells, int64_t cell_count, const int64_t *column, const double *limit,
    const int64_t *yes, const int64_t *no, const double *value, int64_t nodes,
    const int64_t *roots, int64_t trees, int64_t levels, double *sums, int64_t rows)
{
    int64_t width = rows ? cell_count / rows : 0;
    for (int64_t node = 0; rows && node < nodes; node++)
        if (!in(column[node], width) || !in(yes[node], nodes) || !in(no[node], nodes))
            return WRONG_INDEX;
    for (int64_t tree = 0; tree < trees; tree++)
        if (!in(roots[tree], nodes))
            return WRONG_INDEX;
    for (int64_t row = 0; row < rows; row++) {
        const double *cell = cells + row * width;
        sums[row] = 0;
        for (int64_t tree = 0; tree < trees; tree++) {
            int64_t node = roots[tree];
            for (int64_t level = 0; level < levels; level++)
                node = cell[column[node]] <= limit[node] ? yes[node] : no[node];
            sums[row] += value[node];
        }
    }
    return 0;
}
