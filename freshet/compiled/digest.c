/* BLAKE2b (RFC 7693) without a key: digests that are stored and compared over years. */

#include "core.h"

#include <string.h>

#define BLOCK 128
#define ROUNDS 12

static const uint64_t START[8] = {
    0x6a09e667f3bcc908u, 0xbb67ae8584caa73bu, 0x3c6ef372fe94f82bu, 0xa54ff53a5f1d36f1u,
    0x510e527fade682d1u, 0x9b05688c2b3e6c1fu, 0x1f83d9abfb41bd6bu, 0x5be0cd19137e2179u,
};

static const uint8_t ORDER[ROUNDS][16] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
    {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
    {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
    {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
    {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
    {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
    {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
};

/* Octets of numbers are little-endian, as are all processors that the core is built for. */
static uint64_t word_at(const uint8_t *octets)
{
    uint64_t word;
    memcpy(&word, octets, sizeof word);
    return word;
}

static inline uint64_t turned(uint64_t word, unsigned by) { return word >> by | word << (64 - by); }

/* One of the eight steps of a round: a and d are of one column or diagonal, and so on. */
#define MIX(a, b, c, d, x, y) \
    do { \
        a += b + (x); \
        d = turned(d ^ a, 32); \
        c += d; \
        b = turned(b ^ c, 24); \
        a += b + (y); \
        d = turned(d ^ a, 16); \
        c += d; \
        b = turned(b ^ c, 63); \
    } while (0)

static void compress(uint64_t state[8], const uint8_t *block, uint64_t length, bool is_last)
{
    uint64_t m[16];
    for (int i = 0; i < 16; i++)
        m[i] = word_at(block + 8 * i);
    uint64_t a0 = state[0], a1 = state[1], a2 = state[2], a3 = state[3];
    uint64_t b0 = state[4], b1 = state[5], b2 = state[6], b3 = state[7];
    uint64_t c0 = START[0], c1 = START[1], c2 = START[2], c3 = START[3];
    uint64_t d0 = START[4] ^ length, d1 = START[5], d2 = START[6], d3 = START[7];
    d2 ^= is_last ? UINT64_MAX : 0;
#pragma GCC unroll 12
    for (int round = 0; round < ROUNDS; round++) {
        const uint8_t *o = ORDER[round];
        MIX(a0, b0, c0, d0, m[o[0]], m[o[1]]);
        MIX(a1, b1, c1, d1, m[o[2]], m[o[3]]);
        MIX(a2, b2, c2, d2, m[o[4]], m[o[5]]);
        MIX(a3, b3, c3, d3, m[o[6]], m[o[7]]);
        MIX(a0, b1, c2, d3, m[o[8]], m[o[9]]);
        MIX(a1, b2, c3, d0, m[o[10]], m[o[11]]);
        MIX(a2, b3, c0, d1, m[o[12]], m[o[13]]);
        MIX(a3, b0, c1, d2, m[o[14]], m[o[15]]);
    }
    const uint64_t made[8] = {
        a0 ^ c0, a1 ^ c1, a2 ^ c2, a3 ^ c3, b0 ^ d0, b1 ^ d1, b2 ^ d2, b3 ^ d3,
    };
    for (int i = 0; i < 8; i++)
        state[i] ^= made[i];
}

void digest(const uint8_t *octets, size_t length, uint8_t *made, size_t size)
{
    salted_digest(0, octets, length, made, size);
}

/* The salt has as many octets as the number, the lowest first, and zeros behind them. */
void salted_digest(
    uint64_t salt, const uint8_t *octets, size_t length, uint8_t *made, size_t size)
{
    uint64_t state[8];
    memcpy(state, START, sizeof state);
    state[0] ^= 0x01010000u ^ size;
    state[4] ^= salt;
    size_t done = 0;
    for (; length - done > BLOCK; done += BLOCK)
        compress(state, octets + done, done + BLOCK, false);
    uint8_t last[BLOCK] = {0};
    if (length > done)
        memcpy(last, octets + done, length - done);
    compress(state, last, length, true);
    for (size_t i = 0; i < size; i++)
        made[i] = (uint8_t)(state[i / 8] >> 8 * (i % 8));
}

/* Hash the bands of a sketch, each with its number as the salt: so many minima of four octets, one
 * band behind the other. */
EXPORTED void band_keys(const uint8_t *minima, size_t bands, size_t rows, int64_t *keys)
{
    for (size_t band = 0; band < bands; band++)
        salted_digest(band, minima + 4 * rows * band, 4 * rows, (uint8_t *)(keys + band), 8);
}
