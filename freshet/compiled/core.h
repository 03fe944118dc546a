/* What the files of the compiled core share.
 *
 * Structures are read by freshet/compiled/numeric.py, which makes numpy's records of them: a line
 * declares members of one type, and the layout is C's own.
 */

#ifndef FRESHET_CORE_H
#define FRESHET_CORE_H

#include <stdbool.h>
#include <stdint.h>

#define EXPORTED __attribute__((visibility("default")))

#endif
