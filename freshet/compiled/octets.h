/* Octets of texts in UTF-8, and arrays of them that grow. */

#ifndef FRESHET_OCTETS_H
#define FRESHET_OCTETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct span {
    const uint8_t *at, *end;
};

/* An array that grows. */
struct growing {
    void *items;
    size_t count, room;
};

/* Make room for so many more items of that size. */
static inline bool make_room(struct growing *all, size_t more, size_t size)
{
    if (all->room - all->count >= more)
        return true;
    size_t room = all->count + more + all->room / 2;
    void *items = realloc(all->items, room * size);
    if (!items)
        return false;
    all->items = items;
    all->room = room;
    return true;
}

/* Add octets. */
static inline bool add(struct growing *all, const void *more, size_t length)
{
    if (!make_room(all, length, 1))
        return false;
    if (length)
        memcpy((uint8_t *)all->items + all->count, more, length);
    all->count += length;
    return true;
}

/* Octets that are looked at together, as one number, the first of them the lowest. */
#define TOGETHER sizeof(uint64_t)
#define EACH(octet) (UINT64_C(0x0101010101010101) * (octet))

static inline uint64_t octets_at(const uint8_t *at)
{
    uint64_t octets;
    memcpy(&octets, at, sizeof octets);
    return octets;
}

/* Return the highest bit of each octet of ASCII that is this one. */
static inline uint64_t each_that_is(uint64_t octets, uint8_t one)
{
    return ~((octets ^ EACH(one)) + EACH(0x7F)) & EACH(0x80);
}

/* Return how many octets have their highest bit, of numbers in which no other bit is. */
static inline size_t bits_in(uint64_t highest) { return (size_t)((highest >> 7) * EACH(1) >> 56); }

/* Return the number of characters in octets. */
static inline size_t characters_in(const uint8_t *at, size_t length)
{
    size_t count = 0, i = 0;
    for (; i + TOGETHER <= length; i += TOGETHER) {
        uint64_t octets = octets_at(at + i);
        count += TOGETHER - bits_in(octets & ~(octets << 1) & EACH(0x80));
    }
    for (; i < length; i++)
        count += (at[i] & 0xC0) != 0x80;
    return count;
}

/* Copy what a text goes on with behind a letter, as far as it is words of ASCII with one space between
 * two of them, many at a time; go past it. There is room for all of the text. Returns where the copy
 * ends, which may be behind a space. */
static inline uint8_t *copy_plain(uint8_t *to, struct span *text)
{
    uint64_t after_space = 0;
    while ((size_t)(text->end - text->at) >= TOGETHER) {
        uint64_t octets = octets_at(text->at);
        uint64_t spaces = each_that_is(octets, ' ');
        /* What is no ASCII, a control, or a space behind another one. */
        if ((octets | (octets - EACH(' ')) | (spaces & (spaces << 8 | after_space))) & EACH(0x80))
            break;
        memcpy(to, &octets, sizeof octets);
        after_space = spaces >> 56;
        to += TOGETHER;
        text->at += TOGETHER;
    }
    return to;
}

/* Return the length of the white space that a text begins with, as Python defines it, or 0. */
static inline size_t space(struct span text)
{
    const uint8_t *at = text.at;
    if (at[0] <= ' ')
        return at[0] == ' ' || (at[0] >= 9 && at[0] <= 13) || at[0] >= 28;
    if (at[0] < 0xC2 || text.end - at < 2)
        return 0;
    if (at[0] == 0xC2)
        return at[1] == 0x85 || at[1] == 0xA0 ? 2 : 0;
    if (text.end - at < 3)
        return 0;
    uint32_t value = (uint32_t)at[0] << 16 | at[1] << 8 | at[2];
    return (value >= 0xE28080 && value <= 0xE2808A) || value == 0xE280A8 || value == 0xE280A9
        || value == 0xE280AF || value == 0xE2819F || value == 0xE38080 || value == 0xE19A80 ? 3 : 0;
}

/* Return the length of the white space that a text ends with, or 0. */
static inline size_t blank_behind(struct span text)
{
    const uint8_t *end = text.end;
    /* White space is of one, two or three octets. */
    for (size_t length = 1; length <= 3 && length <= (size_t)(end - text.at);) {
        if (space((struct span){end - length, end}) == length) {
            end -= length;
            length = 1;
        } else {
            length++;
        }
    }
    return (size_t)(text.end - end);
}

static inline struct span stripped(struct span text)
{
    size_t blank;
    while (text.at < text.end && (blank = space(text)))
        text.at += blank;
    text.end -= blank_behind(text);
    return text;
}

/* Go past the next word of a text; returns whether there is one. */
static inline bool pass_word(struct span *text, struct span *word)
{
    size_t blank;
    while (text->at < text->end && (blank = space(*text)))
        text->at += blank;
    word->at = text->at;
    while (text->at < text->end && !space(*text))
        text->at++;
    word->end = text->at;
    return word->at < word->end;
}

#endif
