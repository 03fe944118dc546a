/* The choice of the worthiest pages, a few of each host: scheduler/queue/ready.py. */

#include "core.h"

/* Write the two worthiest rows of each host; -1 without a row above 0.
 *
 * Return 0, or WRONG_INDEX where a row above 0 is of none of `hosts`. */
EXPORTED int64_t two_of_each(
    const double *worth, const int64_t *host, int64_t rows,
    int64_t *first, int64_t *second, int64_t hosts)
{
    for (int64_t h = 0; h < hosts; h++)
        first[h] = second[h] = -1;
    for (int64_t row = 0; row < rows; row++) {
        if (!(worth[row] > 0))
            continue;
        int64_t h = host[row];
        if (h < 0 || h >= hosts)
            return WRONG_INDEX;
        if (first[h] < 0 || worth[row] > worth[first[h]]) {
            second[h] = first[h];
            first[h] = row;
        } else if (second[h] < 0 || worth[row] > worth[second[h]]) {
            second[h] = row;
        }
    }
    return 0;
}
