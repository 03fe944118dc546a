/* What the tags of a body make a parser of HTML do: crawler/reduce/tree.py.
 *
 * Bodies come from strangers. What has been read is never read again, so that any of them costs
 * time in proportion to its length. */

/* For memmem. */
#define _GNU_SOURCE

#include "core.h"

#include <stdlib.h>
#include <string.h>

#define LONGEST 8

/* A name of at most so many letters that the parser treats in a way of its own. `closes` are the
 * bits of those that a start tag of this name closes. */
struct name {
    uint64_t letters, bit, closes, kinds;
};

enum { VOID = 1, YIELDING = 2, RAW = 4, FORMATTING = 8, EMPTY = 16, SHAPE = 32, CLOSED = 64,
    IN_TABLE = 128, SWALLOWS = 256, LEADS = 512 };

/* Names as numbers. */
#define LINK 0x61u
#define SPAN 0x6e617073u
#define TABLE 0x656c626174u

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

/* Return the letters of a name as the table of names has them; 0 of a name that is not there. */
static uint64_t spelling(const uint8_t *name, size_t length)
{
    uint64_t letters = 0;
    if (length > LONGEST)
        return 0;
    for (size_t i = 0; i < length; i++)
        letters |= (uint64_t)lower(name[i]) << 8 * i;
    return length && letters >> 8 * (length - 1) ? letters : 0;
}

/* Return the entry of a name with these letters, or NULL. */
static const struct name *known(uint64_t letters, const struct name *names, size_t count)
{
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

/* Go past the attributes of a tag, which are counted, and its ">", if there is one. */
static bool skip_attributes(struct rest *rest, uint64_t *attributes)
{
    for (*attributes = 0; rest->at < rest->end;) {
        uint8_t octet = *rest->at++;
        if (octet == '>')
            return true;
        if (ends_name(octet))
            continue;
        ++*attributes;
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
    return false;
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
        const struct name *entry = known(spelling(name, size), names, count);
        uint64_t attributes;
        rest = tag;
        skip_attributes(&rest, &attributes);
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

/* -- the work of a parser ---------------------------------------------------------------------- */

/* Bounds on what a body can make a parser do, whatever the parser takes its octets for:
 * the tags; the elements that may be open at once, but for those that the parser adds; the
 * formatting elements that may be rebuilt; the squares of the attributes that a tag may have; the
 * tags that the parser may ignore, so that it joins the texts around them; those texts; and the
 * links. */
struct work {
    uint64_t tags, deepest, left, squares, ignored, text, links;
};

/* An element that its end tag will surely close, and the number of tags before it in which
 * formatting elements are rebuilt. */
struct sure {
    const struct name *name;
    uint64_t before;
};

/* Elements at once that can surely be closed, and names that are remembered. */
enum { SURE = 64, NAMES = 64 };

/* Times the length of the body that may be read again. */
#define SCANS 4

/* Write those bounds of a body.
 *
 * An end tag closes the last element that is open if everything since its start tag was text,
 * tags of the common kind and elements that were closed in the same way: whatever a parser
 * makes of that, it ends with no more elements than it had. A tag of any other kind, a comment or
 * raw text leaves all elements around it open for good. */
EXPORTED void parser_work(const uint8_t *body, size_t length, const struct name *names,
    size_t count, struct work *work)
{
    struct rest rest = {body, body + length};
    struct sure open[SURE];
    uint64_t for_good = 0, depth = 0, rebuilding = 0, tables = 0, swallowing = 0, scanned = 0;
    bool has_drawing = false;
    /* Pages use few names. */
    struct { uint64_t letters; const struct name *name; } found[NAMES] = {{0, NULL}};
    *work = (struct work){0};
    for (find(&rest, '<'); rest.at < rest.end;) {
        const uint8_t *start = ++rest.at;
        struct rest tag = rest;
        find(&rest, '<');
        tag.end = rest.at;
        bool ends = skip(&tag, "/");
        const uint8_t *letters = tag.at;
        bool is_tag = tag.at < tag.end && is_letter(*letters);
        size_t size = skip_name(&tag, SIZE_MAX);
        uint64_t attributes;
        bool is_whole = is_tag && skip_attributes(&tag, &attributes);
        if (is_tag && !is_whole) {
            /* A parser that reads a tag here finds its end behind others. */
            struct rest all = {letters, body + length};
            skip_name(&all, SIZE_MAX);
            skip_attributes(&all, &attributes);
            scanned += all.at - letters;
            if (scanned > SCANS * length) {
                work->squares = UINT64_MAX;
                return;
            }
        }
        work->tags++;
        work->squares += is_tag ? attributes * attributes : 0;
        work->text += rest.at - (is_whole ? tag.at : start);
        if (!is_tag && !ends && (start == tag.end || (*start != '!' && *start != '?')))
            continue;
        uint64_t spelled = spelling(letters, size), kept = spelled * 0x9e3779b97f4a7c15u >> 58;
        if (found[kept].letters != spelled) {
            found[kept].letters = spelled;
            found[kept].name = known(spelled, names, count);
        }
        const struct name *name = found[kept].name;
        uint64_t kinds = name ? name->kinds : 0;
        /* What is open when one of these begins is rebuilt at most once, if it closes in order. */
        bool is_word = kinds & FORMATTING || spelled == LINK || spelled == SPAN;
        bool is_sure = is_whole && (ends || kinds & (CLOSED | EMPTY | SHAPE));
        bool is_end = is_sure && ends && depth && open[depth - 1].name == name;
        work->left += !ends && kinds & FORMATTING;
        work->links += !ends && is_tag && attributes && kinds & LEADS;
        work->ignored += swallowing || !(is_end || (is_sure && !ends && (tables || !(kinds & IN_TABLE))));
        has_drawing |= !ends && kinds & SHAPE;
        swallowing += !ends && kinds & SWALLOWS;
        rebuilding += !(is_word && (ends ? is_end : is_sure));
        if (is_end) {
            depth--;
            tables -= spelled == TABLE;
            swallowing -= kinds & SWALLOWS && swallowing;
            if (kinds & FORMATTING && open[depth].before == rebuilding)
                work->left--;
        } else if (!is_sure || (!ends && kinds & CLOSED && depth == SURE)) {
            for_good += depth;
            depth = tables = 0;
        }
        if (!ends && is_sure && kinds & CLOSED) {
            tables += spelled == TABLE;
            open[depth++] = (struct sure){name, rebuilding};
        } else if (!ends && is_tag) {
            for_good += !(is_sure && kinds & EMPTY) || has_drawing;
        }
        work->deepest = for_good + depth > work->deepest ? for_good + depth : work->deepest;
    }
}

/* Return which of some texts a body holds, a bit each, in a third of the time that Python takes. Each
 * text ends with a zero; an empty one ends them. */
EXPORTED uint32_t holds(const uint8_t *body, size_t length, const char *sought)
{
    uint32_t held = 0;
    for (uint32_t bit = 1; *sought; bit <<= 1) {
        size_t count = strlen(sought);
        held |= memmem(body, length, sought, count) ? bit : 0;
        sought += count + 1;
    }
    return held;
}
