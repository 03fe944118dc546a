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
