/* Hashes of words and shingles, and their minima: the arithmetic of crawler/reduce/sketch.py.
 *
 * All values are stored and compared over years. No function allocates; every array is the
 * caller's, with its length.
 */

#include "core.h"

#define PERMUTATIONS 128
#define SHINGLE_WORDS 4

/* The finaliser of MurmurHash3 (A. Appleby), a bijection of 32-bit values. */
static uint32_t mixed(uint32_t value)
{
    value ^= value >> 16;
    value *= 0x85EBCA6Bu;
    value ^= value >> 13;
    value *= 0xC2B2AE35u;
    return value ^ (value >> 16);
}

/* Classes of characters; 0: not asked for yet. A cased one is another in lower case. */
enum { BETWEEN = 1, IN_WORD = 2, ALONE = 3, CASED = 4 };

/* Decode the character of UTF-8 at octets[0..length), length > 0; write its length. What is not
 * well-formed is a character of one byte. */
static uint32_t character(const uint8_t *octets, size_t length, size_t *size)
{
    uint32_t first = octets[0];
    size_t more = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : first >= 0xC0 ? 1 : 0;
    *size = 1;
    if (more == 0 || more >= length)
        return first;
    uint32_t value = first & (0x3Fu >> more);
    for (size_t i = 1; i <= more; i++) {
        if ((octets[i] & 0xC0) != 0x80)
            return first;
        value = value << 6 | (octets[i] & 0x3Fu);
    }
    if (value >= CHARACTERS)
        return first;
    *size = more + 1;
    return value;
}

/* Write the characters that have no class yet, as often as they come; return their number.
 *
 * classes has CHARACTERS members, asked has room for as many as there are octets. */
EXPORTED size_t unclassed(
    const uint8_t *octets, size_t length, const uint8_t *classes, uint32_t *asked)
{
    size_t count = 0, size;
    for (size_t i = 0; i < length; i += size) {
        uint32_t value = character(octets + i, length - i, &size);
        if (!classes[value])
            asked[count++] = value;
    }
    return count;
}

/* Return the hash of a word: the polynomial of its bytes modulo 2**64, the first byte at power 0, and
 * then mixed. Letters of ASCII count as small ones. */
static uint32_t word_hash(const uint8_t *begin, const uint8_t *end)
{
    uint64_t sum = 0;
    while (end > begin) {
        uint8_t octet = *--end;
        uint64_t small = octet + (uint64_t)(octet >= 'A' && octet <= 'Z' ? 'a' - 'A' : 0);
        sum = sum * UINT64_C(0x9E3779B97F4A7C15) + small;
    }
    /* The upper half of a sum of few bytes says nothing, the lower half of many little. */
    sum ^= sum >> 32;
    return (uint32_t)(sum * UINT64_C(0xD6E8FEB86659FD93) >> 32);
}

/* The classes of ASCII; 0 of what is none. */
static const uint8_t PLAIN[256] = {
    [0 ... '/'] = BETWEEN, ['0' ... '9'] = IN_WORD, [':' ... '@'] = BETWEEN, ['A' ... 'Z'] = IN_WORD,
    ['[' ... '^'] = BETWEEN, ['_'] = IN_WORD, ['`'] = BETWEEN, ['a' ... 'z'] = IN_WORD,
    ['{' ... 127] = BETWEEN,
};

/* Hash the words of a text in UTF-8, in lower case, in order; return their number.
 *
 * Returns -1 if a character has no class yet, -2 if one beyond ASCII is cased in a text that is not
 * `lowered`.
 *
 * A word is a run of characters of that class, or one that stands alone. The text is cut into slices
 * of at most so many characters, after a blank where there is one, and a word ends with its slice.
 * hashes has room for as many values as there are octets. */
EXPORTED int64_t word_hashes(
    const uint8_t *octets, size_t length, bool lowered,
    const uint8_t *classes, size_t slice, uint32_t *hashes)
{
    size_t count = 0, size, read = 0, slice_from = 0, after_blank = 0;
    /* Where the open word begins. */
    const uint8_t *word = NULL, *end = octets + length;
    for (const uint8_t *at = octets; at < end; at += size) {
        bool cut = false;
        if (read - slice_from == slice) {
            cut = after_blank <= slice_from;
            slice_from = cut ? read : after_blank;
        }
        if (word && cut) {
            hashes[count++] = word_hash(word, at);
            word = NULL;
        }
        if (*at < 0x80) {
            /* A run of ASCII, as far as the slice goes on. */
            size_t left = slice - (read - slice_from);
            const uint8_t *to = at, *stop = (size_t)(end - at) < left ? end : at + left;
            while (to < stop && *to < 0x80) {
                if (!word && PLAIN[*to] == IN_WORD)
                    word = to;
                while (to < stop && PLAIN[*to] == IN_WORD)
                    to++;
                if (to == stop || *to >= 0x80)
                    break;
                if (word)
                    hashes[count++] = word_hash(word, to);
                word = NULL;
                for (; to < stop && PLAIN[*to] == BETWEEN; to++)
                    if (*to == ' ')
                        after_blank = read + (size_t)(to - at) + 1;
            }
            size = (size_t)(to - at);
            read += size;
            continue;
        }
        uint32_t value = character(at, (size_t)(end - at), &size);
        read++;
        uint8_t class = classes[value] & (CASED - 1);
        if (!class)
            return UNKNOWN_CHARACTER;
        if ((classes[value] & CASED) && !lowered)
            return -2;
        if (word && class != IN_WORD) {
            hashes[count++] = word_hash(word, at);
            word = NULL;
        }
        if (class == ALONE)
            hashes[count++] = word_hash(at, at + size);
        else if (class == IN_WORD && !word)
            word = at;
    }
    if (word)
        hashes[count++] = word_hash(word, end);
    return (int64_t)count;
}

/* Sort the values, by one byte after another; room has as many. */
static void sort(uint32_t *values, size_t count, uint32_t *room)
{
    uint32_t *from = values, *to = room;
    for (int shift = 0; shift < 32; shift += 8) {
        size_t starts[256] = {0}, next = 0;
        for (size_t i = 0; i < count; i++)
            starts[from[i] >> shift & 255]++;
        for (int digit = 0; digit < 256; digit++) {
            size_t here = starts[digit];
            starts[digit] = next;
            next += here;
        }
        for (size_t i = 0; i < count; i++)
            to[starts[from[i] >> shift & 255]++] = from[i];
        uint32_t *other = from;
        from = to;
        to = other;
    }
}

/* Replace the hashes of words by the sorted distinct hashes of their shingles; return the number.
 *
 * A shingle is a run of four words, or all words of a text that has fewer: a polynomial in their
 * mixed hashes. room has as many values as words.
 */
EXPORTED size_t shingles(uint32_t *words, size_t count, uint32_t *room)
{
    if (count == 0)
        return 0;
    size_t width = count < SHINGLE_WORDS ? count : SHINGLE_WORDS, shingles = count - width + 1;
    for (size_t i = 0; i < count; i++)
        words[i] = mixed(words[i]);
    for (size_t i = 0; i < shingles; i++) {
        uint32_t hash = 0;
        for (size_t offset = 0; offset < width; offset++)
            hash = hash * 0x9E3779B1u + words[i + offset];
        words[i] = hash;
    }
    sort(words, shingles, room);
    size_t kept = 1;
    for (size_t i = 1; i < shingles; i++)
        if (words[i] != words[kept - 1])
            words[kept++] = words[i];
    return kept;
}

/* Lower each of the 128 minima to the least value of its permutation over the hashes.
 *
 * The permutations are x -> factor x + summand (mod 2**32), of the mixed hash.
 */
WIDER static void lower(
    const uint32_t *hashes, size_t count,
    const uint32_t *factors, const uint32_t *summands, uint32_t *minima)
{
    /* Signed values order themselves alike once their highest bit is turned, and processors of
     * any age compare them many at a time. */
    const uint32_t turned = 0x80000000u;
    int32_t least[PERMUTATIONS];
    uint32_t factor[PERMUTATIONS], summand[PERMUTATIONS];
    for (int p = 0; p < PERMUTATIONS; p++) {
        factor[p] = factors[p];
        summand[p] = summands[p] + turned;
        least[p] = (int32_t)(minima[p] ^ turned);
    }
    for (size_t i = 0; i < count; i++) {
        uint32_t hash = mixed(hashes[i]);
        for (int p = 0; p < PERMUTATIONS; p++) {
            int32_t value = (int32_t)(hash * factor[p] + summand[p]);
            least[p] = value < least[p] ? value : least[p];
        }
    }
    for (int p = 0; p < PERMUTATIONS; p++)
        minima[p] = (uint32_t)least[p] ^ turned;
}

EXPORTED void lower_minima(
    const uint32_t *hashes, size_t count,
    const uint32_t *factors, const uint32_t *summands, uint32_t *minima)
{
    lower(hashes, count, factors, summands, minima);
}

/* Write the digest of each block, 64 bits, and 16 octets of that of all. A space stands between two
 * of them; ends[0..count) has where each ends. Returns whether they end in order and within the text. */
EXPORTED bool block_digests(
    const uint8_t *octets, size_t length, const uint64_t *ends, size_t count, uint8_t *digests,
    uint8_t *whole)
{
    size_t begin = 0;
    for (size_t i = 0; i < count; begin = ends[i++] + 1) {
        if (ends[i] < begin || ends[i] > length)
            return false;
        digest(octets + begin, ends[i] - begin, digests + 8 * i, 8);
    }
    digest(octets, length, whole, 16);
    return true;
}
