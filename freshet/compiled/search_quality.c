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

/* Return the place of a word in the table of terms, or the empty one where it would be. */
static inline int64_t place_of(
    const struct scorer *scorer, const uint8_t *word, int64_t length, uint64_t hash)
{
    const int64_t *table = scorer->table, *ends = scorer->ends;
    int64_t mask = scorer->slots - 1, place = (int64_t)((hash ^ (hash >> 32)) & (uint64_t)mask);
    for (; table[place] >= 0; place = (place + 1) & mask) {
        int64_t begin = table[place] ? ends[table[place] - 1] : 0;
        if (ends[table[place]] - begin == length
            && !memcmp(scorer->words + begin, word, (size_t)length))
            break;
    }
    return place;
}

/* Fill the table of terms, and look at all numbers that are places elsewhere. */
EXPORTED int64_t scorer_begin(const struct scorer *scorer)
{
    int64_t before = 0;
    for (int64_t k = 0; k < scorer->terms; before = scorer->ends[k++])
        if (scorer->ends[k] < before || scorer->ends[k] > scorer->octets)
            return WRONG_INDEX;
    before = 0;
    for (int64_t k = 0; k < scorer->queries; before = scorer->stops[k++])
        if (scorer->stops[k] < before || scorer->stops[k] > scorer->entries)
            return WRONG_INDEX;
    for (int64_t k = 0; k < scorer->entries; k++)
        if (scorer->term[k] < 0 || scorer->term[k] >= scorer->terms)
            return WRONG_INDEX;
    if (scorer->slots <= 2 * scorer->terms || (scorer->slots & (scorer->slots - 1)))
        return WRONG_INDEX;
    for (int64_t k = 0; k < scorer->slots; k++)
        scorer->table[k] = -1;
    for (int64_t k = 0; k < scorer->terms; k++) {
        int64_t begin = k ? scorer->ends[k - 1] : 0, end = scorer->ends[k];
        uint64_t hash = BASIS;
        for (int64_t place = begin; place < end; place++)
            hash = hashed(hash, scorer->words[place]);
        scorer->table[place_of(scorer, scorer->words + begin, end - begin, hash)] = k;
    }
    return 0;
}

/* Count the terms in the lines of a text, by the weights of the lines; return all words. */
static int64_t counted(const struct scorer *scorer, const uint8_t *text, int64_t length)
{
    int64_t found = 0, line = 0;
    memset(scorer->counts, 0, (size_t)scorer->terms * sizeof *scorer->counts);
    for (int64_t begin = 0; begin < length;) {
        if (text[begin] == ' ' || text[begin] == '\n') {
            line += text[begin] == '\n' && line < scorer->lines - 1;
            begin++;
            continue;
        }
        int64_t end = begin;
        uint64_t hash = BASIS;
        for (; end < length && text[end] != ' ' && text[end] != '\n'; end++)
            hash = hashed(hash, text[end]);
        int64_t term = scorer->table[place_of(scorer, text + begin, end - begin, hash)];
        if (term >= 0)
            scorer->counts[term] += scorer->weights[line];
        found++;
        begin = end;
    }
    return found;
}

/* Score a page for all queries: 0 where it lacks a term, -1 where it has all and the query has no
 * statistics yet. */
EXPORTED int64_t scorer_score(
    const struct scorer *scorer, const uint8_t *text, int64_t length, double *scores,
    int64_t queries)
{
    if (queries != scorer->queries || scorer->lines < 1)
        return WRONG_INDEX;
    double words = (double)counted(scorer, text, length);
    int64_t k = 0;
    for (int64_t query = 0; query < queries; query++) {
        double per_word = scorer->per_word[query], norm = 0.3 + per_word * words, sum = 0.0;
        bool matches = k < scorer->stops[query];
        for (; k < scorer->stops[query]; k++) {
            double count = scorer->counts[scorer->term[k]];
            matches &= count > 0;
            sum += scorer->idf[k] * 2.2 * count / (count + norm);
        }
        scores[query] = !matches ? 0.0 : per_word > 0 ? sum : -1.0;
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
