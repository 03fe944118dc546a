/* What the tags of a body make a parser of HTML do: crawler/reduce/nesting.py.
 *
 * Bodies come from strangers. What has been read is never read again, so that any of them costs
 * time in proportion to its length. */

#include "core.h"

#include <stdlib.h>
#include <string.h>

#define LONGEST 8

/* A name of at most so many letters that the parser treats in a way of its own. `closes` are the
 * bits of those that a start tag of this name closes. */
struct name {
    uint64_t letters, bit, closes, kinds;
};

enum { VOID = 1, YIELDING = 2, RAW = 4, FORMATTING = 8 };

/* The rest of a body; `at` is never past `end`. */
struct rest {
    const uint8_t *at, *end;
};

static bool is_space(uint8_t octet)
{
    return octet == ' ' || octet == '\t' || octet == '\n' || octet == '\f' || octet == '\r';
}

static uint8_t lower(uint8_t octet)
{
    return octet - 'A' < 26u ? octet + 32 : octet;
}

static bool is_letter(uint8_t octet)
{
    return lower(octet) - 'a' < 26u;
}

static bool ends_name(uint8_t octet)
{
    return is_space(octet) || octet == '/' || octet == '>';
}

/* Go past a text, in any case, if it stands here. */
static bool skip(struct rest *rest, const char *text)
{
    const uint8_t *at = rest->at;
    for (; *text; text++, at++)
        if (at == rest->end || lower(*at) != (uint8_t)*text)
            return false;
    rest->at = at;
    return true;
}

/* Go to the next such octet, or to the end. */
static void find(struct rest *rest, uint8_t octet)
{
    size_t length = rest->end - rest->at;
    const void *found = length ? memchr(rest->at, octet, length) : NULL;
    rest->at = found ? found : rest->end;
}

static void skip_space(struct rest *rest)
{
    while (rest->at < rest->end && is_space(*rest->at))
        rest->at++;
}

/* Go past a name, or so many octets of it, and return its length. */
static size_t skip_name(struct rest *rest, size_t most)
{
    const uint8_t *start = rest->at;
    while (rest->at < rest->end && !ends_name(*rest->at) && (size_t)(rest->at - start) < most)
        rest->at++;
    return rest->at - start;
}

/* Return the entry of a name, or NULL. */
static const struct name *known(
    const uint8_t *name, size_t length, const struct name *names, size_t count)
{
    uint64_t letters = 0;
    if (length > LONGEST)
        return NULL;
    for (size_t i = 0; i < length; i++)
        letters |= (uint64_t)lower(name[i]) << 8 * i;
    if (length && !(letters >> 8 * (length - 1)))
        return NULL;
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (names[middle].letters < letters)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && names[low].letters == letters ? names + low : NULL;
}

/* Go past a comment, from behind its "<!--". */
static void skip_comment(struct rest *rest)
{
    if (skip(rest, ">") || skip(rest, "->"))
        return;
    for (find(rest, '-'); rest->at < rest->end; rest->at++, find(rest, '-'))
        if (skip(rest, "-->") || skip(rest, "--!>"))
            return;
}

/* Go past the attributes of a tag and its ">". */
static void skip_attributes(struct rest *rest)
{
    while (rest->at < rest->end) {
        uint8_t octet = *rest->at++;
        if (octet == '>')
            return;
        if (ends_name(octet))
            continue;
        while (rest->at < rest->end && !ends_name(*rest->at) && *rest->at != '=')
            rest->at++;
        struct rest value = *rest;
        skip_space(&value);
        if (!skip(&value, "="))
            continue;
        skip_space(&value);
        if (value.at < value.end && (*value.at == '"' || *value.at == '\'')) {
            uint8_t quote = *value.at++;
            find(&value, quote);
            value.at += value.at < value.end;
        } else {
            while (value.at < value.end && !is_space(*value.at) && *value.at != '>')
                value.at++;
        }
        *rest = value;
    }
}

/* Go to the end tag of an element of raw text, or to the end. */
static void skip_raw(struct rest *rest, const uint8_t *name, size_t length)
{
    for (find(rest, '<'); rest->at < rest->end; rest->at++, find(rest, '<')) {
        struct rest tag = *rest;
        if (!skip(&tag, "</") || (size_t)(tag.end - tag.at) <= length)
            continue;
        size_t same = 0;
        while (same < length && lower(tag.at[same]) == lower(name[same]))
            same++;
        if (same == length && ends_name(tag.at[length]))
            return;
    }
}

/* -- the depth -------------------------------------------------------------------------------- */

/* An open element: its name in the body, and 1 more than the number of its entry, or 0. */
struct element {
    uint32_t start, length, entry;
};

struct opened {
    struct element *elements;
    size_t count, room;
    const uint8_t *body;
    const struct name *names;
};

/* Open elements that are searched for the one that a tag ends. */
#define LOOK_BACK 32

static bool is_named(const struct opened *opened, size_t i, const struct element *other)
{
    const struct element *element = opened->elements + i;
    if (element->entry || other->entry)
        return element->entry == other->entry;
    if (element->length != other->length)
        return false;
    for (uint32_t k = 0; k < element->length; k++)
        if (lower(opened->body[element->start + k]) != lower(opened->body[other->start + k]))
            return false;
    return true;
}

static const struct name *entry_of(const struct opened *opened, size_t i)
{
    uint32_t entry = opened->elements[i].entry;
    return entry ? opened->names + entry - 1 : NULL;
}

/* Close the nearest element of that name, or all near ones that it closes, each with all that is
 * open in it; only elements that yield may be open in them. */
static void close_elements(struct opened *opened, const struct element *end, uint64_t closes)
{
    size_t last = opened->count, first = last > LOOK_BACK ? last - LOOK_BACK : 0;
    for (size_t i = last; i-- > first;) {
        const struct name *entry = entry_of(opened, i);
        if (end ? is_named(opened, i, end) : entry && (entry->bit & closes)) {
            opened->count = i;
            if (end)
                return;
        } else if (!entry || !(entry->kinds & YIELDING)) {
            return;
        }
    }
}

static bool open_element(struct opened *opened, struct element element)
{
    if (opened->count == opened->room) {
        size_t room = opened->room ? 2 * opened->room : 64;
        struct element *more = realloc(opened->elements, room * sizeof *more);
        if (!more)
            return false;
        opened->elements = more;
        opened->room = room;
    }
    opened->elements[opened->count++] = element;
    return true;
}

/* Return the greatest number of elements open at once; of 4 GiB or more it is WRONG_INDEX. */
EXPORTED int64_t max_depth(
    const uint8_t *body, size_t length, const struct name *names, size_t count)
{
    struct rest rest = {body, body + length};
    struct opened opened = {NULL, 0, 0, body, names};
    size_t deepest = 0;
    if (length > UINT32_MAX)
        return WRONG_INDEX;
    for (find(&rest, '<'); rest.at < rest.end; find(&rest, '<')) {
        rest.at++;
        if (skip(&rest, "!--")) {
            skip_comment(&rest);
            continue;
        }
        if (skip(&rest, "!") || skip(&rest, "?")) {
            find(&rest, '>');
            continue;
        }
        struct rest tag = rest;
        bool ends = skip(&tag, "/");
        if (tag.at == tag.end || !is_letter(*tag.at))
            continue;
        const uint8_t *name = tag.at;
        size_t size = skip_name(&tag, SIZE_MAX);
        const struct name *entry = known(name, size, names, count);
        rest = tag;
        skip_attributes(&rest);
        if (entry && entry->kinds & RAW && !ends && tag.at < tag.end) {
            skip_raw(&rest, name, size);
            continue;
        }
        struct element element = {name - body, size, entry ? entry - names + 1 : 0};
        if (ends) {
            close_elements(&opened, &element, 0);
        } else if (!entry || !(entry->kinds & VOID)) {
            if (entry && entry->closes)
                close_elements(&opened, NULL, entry->closes);
            if (!open_element(&opened, element)) {
                free(opened.elements);
                return NO_MEMORY;
            }
            deepest = opened.count > deepest ? opened.count : deepest;
        }
    }
    free(opened.elements);
    return (int64_t)deepest;
}

/* -- calm bodies ------------------------------------------------------------------------------ */

/* Over-count the start tags; write the length of the longest stretch without a "<". */
EXPORTED size_t start_tags(const uint8_t *body, size_t length, size_t *longest)
{
    struct rest rest = {body, body + length};
    size_t tags = 0;
    *longest = 0;
    while (rest.at < rest.end) {
        const uint8_t *start = rest.at;
        find(&rest, '<');
        if ((size_t)(rest.at - start) > *longest)
            *longest = rest.at - start;
        if (skip(&rest, "<"))
            tags += rest.at == rest.end || *rest.at != '/';
    }
    return tags;
}

/* Go past the attributes of a tag and its ">" if they are in their strict form, in which the end
 * of the tag is unambiguous. */
static bool skip_strict(struct rest *rest)
{
    for (;;) {
        const uint8_t *start = rest->at;
        skip_space(rest);
        if (skip(rest, ">"))
            return true;
        if (rest->at == start || rest->at == rest->end || !is_letter(*rest->at))
            return false;
        while (rest->at < rest->end && (is_letter(*rest->at) || *rest->at - '0' < 10u
               || *rest->at == '_' || *rest->at == '-' || *rest->at == ':' || *rest->at == '.'))
            rest->at++;
        if (!skip(rest, "="))
            continue;
        start = rest->at;
        if (skip(rest, "\"") || skip(rest, "'")) {
            while (rest->at < rest->end && *rest->at != *start
                   && *rest->at != '<' && *rest->at != '>')
                rest->at++;
            if (rest->at == rest->end || *rest->at++ != *start)
                return false;
        } else {
            while (rest->at < rest->end && !is_space(*rest->at)
                   && !memchr("\"'<>=`", *rest->at, 6))
                rest->at++;
            if (rest->at == start)
                return false;
        }
    }
}

/* Go past an element that holds nothing but text, links and spans, from behind its name. */
static bool skip_closed(struct rest *rest, const uint8_t *name, size_t length)
{
    if (!skip_strict(rest))
        return false;
    for (;;) {
        find(rest, '<');
        struct rest tag = *rest;
        if (skip(&tag, "</span>") || skip(&tag, "</a>")) {
            *rest = tag;
            continue;
        }
        tag = *rest;
        if ((skip(&tag, "<span") || skip(&tag, "<a")) && skip_strict(&tag)) {
            *rest = tag;
            continue;
        }
        if (!skip(rest, "</") || (size_t)(rest->end - rest->at) <= length)
            return false;
        for (size_t i = 0; i < length; i++)
            if (lower(rest->at[i]) != lower(name[i]))
                return false;
        rest->at += length;
        return skip(rest, ">");
    }
}

/* Return how many formatting elements may be open at once: those that do not close at once. */
EXPORTED size_t left_open(
    const uint8_t *body, size_t length, const struct name *names, size_t count)
{
    struct rest rest = {body, body + length};
    size_t left = 0;
    for (find(&rest, '<'); rest.at < rest.end; find(&rest, '<')) {
        const uint8_t *name = ++rest.at;
        struct rest tag = rest;
        size_t size = skip_name(&tag, LONGEST + 1);
        const struct name *entry = known(name, size, names, count);
        if (!entry || !(entry->kinds & FORMATTING) || tag.at == tag.end)
            continue;
        left++;
        if (skip_closed(&tag, name, size)) {
            left--;
            rest = tag;
        }
    }
    return left;
}
