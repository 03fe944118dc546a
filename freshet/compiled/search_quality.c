/* Terms of a page, and rows of scores: scheduler/search_quality.py has the method. */

#include <string.h>

#include "core.h"

/* -- terms -------------------------------------------------------------------------------------- */

/* FNV-1a, an octet at a time. */
static const uint64_t BASIS = 0xcbf29ce484222325u;
static inline uint64_t hashed(uint64_t hash, uint8_t octet)
{
    return (hash ^ octet) * 0x100000001b3u;
}

/* Return the place of a word in the table, or the empty one where it would be; `slots` is a power
 * of two, and some are empty (-1). */
static inline int64_t place_of(
    const int64_t *table, int64_t slots, const uint8_t *words, const int64_t *ends,
    const uint8_t *word, int64_t length, uint64_t hash)
{
    int64_t place = (int64_t)((hash ^ (hash >> 32)) & (uint64_t)(slots - 1));
    while (table[place] >= 0) {
        int64_t begin = table[place] ? ends[table[place] - 1] : 0;
        if (ends[table[place]] - begin == length && !memcmp(words + begin, word, (size_t)length))
            break;
        place = (place + 1) & (slots - 1);
    }
    return place;
}

/* Return whether `ends` go up from 0 to `size`, and the slots are a power of two and enough. */
static bool is_table(const int64_t *ends, int64_t count, int64_t size, int64_t slots)
{
    int64_t before = 0;
    for (int64_t k = 0; k < count; before = ends[k++])
        if (ends[k] < before || ends[k] > size)
            return false;
    return slots > 2 * count && (slots & (slots - 1)) == 0;
}

/* Fill the table, all -1, with the numbers of words, which stand one behind the other. */
EXPORTED int64_t terms_table(
    const uint8_t *words, int64_t size, const int64_t *ends, int64_t count, int64_t *table,
    int64_t slots)
{
    if (!is_table(ends, count, size, slots))
        return WRONG_INDEX;
    for (int64_t k = 0; k < slots; k++)
        table[k] = -1;
    for (int64_t k = 0; k < count; k++) {
        int64_t begin = k ? ends[k - 1] : 0;
        uint64_t hash = BASIS;
        for (int64_t place = begin; place < ends[k]; place++)
            hash = hashed(hash, words[place]);
        table[place_of(table, slots, words, ends, words + begin, ends[k] - begin, hash)] = k;
    }
    return 0;
}

/* Count the terms in the lines of a text, each with the weight of its line; return all words. */
EXPORTED int64_t terms_count(
    const uint8_t *words, int64_t size, const int64_t *ends, int64_t count, const int64_t *table,
    int64_t slots, const uint8_t *text, int64_t length, const double *weights, int64_t lines,
    double *counts, int64_t terms)
{
    if (!is_table(ends, count, size, slots) || terms != count || lines < 1)
        return WRONG_INDEX;
    for (int64_t k = 0; k < slots; k++)
        if (table[k] >= count)
            return WRONG_INDEX;
    int64_t found = 0, line = 0;
    for (int64_t begin = 0; begin < length;) {
        if (text[begin] == ' ' || text[begin] == '\n') {
            line += text[begin] == '\n' && line < lines - 1;
            begin++;
            continue;
        }
        int64_t end = begin;
        uint64_t hash = BASIS;
        for (; end < length && text[end] != ' ' && text[end] != '\n'; end++)
            hash = hashed(hash, text[end]);
        int64_t term = table[place_of(table, slots, words, ends, text + begin, end - begin, hash)];
        if (term >= 0)
            counts[term] += weights[line];
        found++;
        begin = end;
    }
    return found;
}

/* Score a page for queries, whose terms end at `stops`: 0 where it lacks a term, -1 where it has
 * all and the query has no statistics yet. */
EXPORTED int64_t query_scores(
    const int64_t *stops, int64_t queries, const int64_t *terms, const double *idf, int64_t size,
    const double *per_word, const double *counts, int64_t all, double length, double *scores)
{
    int64_t before = 0;
    for (int64_t k = 0; k < size; k++)
        if (terms[k] < 0 || terms[k] >= all)
            return WRONG_INDEX;
    for (int64_t query = 0; query < queries; before = stops[query++])
        if (stops[query] < before || stops[query] > size)
            return WRONG_INDEX;
    int64_t k = 0;
    for (int64_t query = 0; query < queries; query++) {
        double norm = 0.3 + per_word[query] * length, sum = 0.0;
        bool matches = k < stops[query];
        for (; k < stops[query]; k++) {
            double count = counts[terms[k]];
            matches &= count > 0;
            sum += idf[k] * 2.2 * count / (count + norm);
        }
        scores[query] = !matches ? 0.0 : per_word[query] > 0 ? sum : -1.0;
    }
    return 0;
}

/* -- rows --------------------------------------------------------------------------------------- */

static double moved(const struct score_rows *rows, int64_t query, int64_t page, double s1, double s2)
{
    int64_t *pages = rows->pages + query * rows->top, length = rows->length[query], old = length;
    double *scores = rows->scores + query * rows->top, *views = rows->views, passed = 0.0;
    bool *cut = rows->cut + query;
    /* Behind a cut row nothing moves but the page itself, which is hardly viewed. */
    if (*cut && (length == 0 || (s1 < scores[length - 1] && s2 < scores[length - 1])))
        return 0.0;
    for (int64_t k = 0; k < length && s1 > 0; k++)
        if (pages[k] == page) {
            old = k;
            break;
        }
    double viewed = old < length || (*cut && s1 > 0) ? views[old] : 0.0;
    if (old < length) {
        length--;
        memmove(pages + old, pages + old + 1, (size_t)(length - old) * sizeof *pages);
        memmove(scores + old, scores + old + 1, (size_t)(length - old) * sizeof *scores);
    }
    int64_t new = 0;
    while (new < length && (scores[new] > s2 || (scores[new] == s2 && pages[new] < page)))
        new++;
    for (int64_t k = smaller_int(old, new); k < larger_int(old, new); k++)
        passed += (views[k] - views[k + 1]) * scores[k];
    double gain = (views[new] - viewed) * s2 + (new > old ? passed : -passed);
    if (s2 > 0 && !(*cut && new == length)) {
        if (length == rows->top) {
            *cut = true;
            length--;
        }
        if (new < rows->top) {
            memmove(pages + new + 1, pages + new, (size_t)(length - new) * sizeof *pages);
            memmove(scores + new + 1, scores + new, (size_t)(length - new) * sizeof *scores);
            pages[new] = page;
            scores[new] = s2;
        }
        length++;
    }
    rows->length[query] = length;
    return gain;
}

/* Move a page in the rows of all queries for which its score has changed; write what that gains. */
EXPORTED int64_t score_rows_move(
    const struct score_rows *rows, int64_t page, const double *before, const double *after,
    int64_t queries, double *gain)
{
    if (queries != rows->queries || rows->top < 1)
        return WRONG_INDEX;
    for (int64_t query = 0; query < queries; query++)
        if (rows->length[query] < 0 || rows->length[query] > rows->top)
            return WRONG_INDEX;
    gain[0] = 0.0;
    for (int64_t query = 0; query < queries; query++)
        if (before[query] != after[query])
            gain[0] += rows->frequency[query]
                * moved(rows, query, page, before[query], after[query]);
    return 0;
}
