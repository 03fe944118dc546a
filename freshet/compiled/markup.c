/* The tags and texts of a document that Lexbor wrote: crawler/reduce/markup.py and main_text.py.
 *
 * Lexbor writes "<" and ">" as references in texts and values. A "<" in a text begins a tag or a
 * comment, a tag ends at the next ">", and a "<" before that is part of a name. Exceptions are
 * comments and raw text, which `unmarked` takes out.
 * What a tag means is Python's to say, once for all tags of the same octets (`markup_mean`).
 *
 * Documents are made by strangers: nothing here trusts their form. No function recurses, and all of
 * them take time and memory in proportion to the document. */

#include "core.h"
#include "octets.h"

#include <stdlib.h>
#include <string.h>

static bool begins(struct span text, const char *prefix, size_t length)
{
    return (size_t)(text.end - text.at) >= length && !memcmp(text.at, prefix, length);
}

#define BEGINS(text, prefix) begins(text, prefix, sizeof prefix - 1)

/* Return where a text begins with the next such octets, or its end. */
static const uint8_t *find(struct span text, const char *wanted, size_t length)
{
    while (text.at < text.end) {
        text.at = memchr(text.at, wanted[0], text.end - text.at);
        if (!text.at)
            break;
        if (begins(text, wanted, length))
            return text.at;
        text.at++;
    }
    return text.end;
}

#define FIND(text, wanted) find(text, wanted, sizeof wanted - 1)

/* Return where the last such octets of a text begin, or its end. */
static const uint8_t *find_last(struct span text, const char *wanted, size_t length)
{
    for (const uint8_t *at = text.end - length; at >= text.at; at--)
        if (!memcmp(at, wanted, length))
            return at;
    return text.end;
}

/* -- raw text --------------------------------------------------------------------------------- */

static bool add_escaped(struct growing *all, struct span text)
{
    for (; text.at < text.end; text.at++) {
        bool added = *text.at == '&' ? add(all, "&amp;", 5)
            : *text.at == '<' ? add(all, "&lt;", 4)
            : *text.at == '>' ? add(all, "&gt;", 4)
            : add(all, text.at, 1);
        if (!added)
            return false;
    }
    return true;
}

/* Elements whose text is raw, with the lengths of their start tags, and their end tags. */
static const struct raw {
    const char *start;
    size_t length;
    const char *end;
    bool is_script, is_shown, is_last;
} RAW[] = {
    {"<script", 7, "</script>", .is_script = true}, {"<style", 6, "</style>"},
    {"<xmp", 4, "</xmp>", .is_shown = true}, {"<iframe", 7, "</iframe>"},
    {"<noembed", 8, "</noembed>"}, {"<noframes", 9, "</noframes>"},
    /* All that follows was its text. */
    {"<plaintext", 10, "</plaintext>", .is_shown = true, .is_last = true},
};

/* Return the element of raw text whose start tag a text begins with, or NULL. */
static const struct raw *raw_element(struct span text)
{
    /* Nearly all tags are told by their first letters. */
    if (text.end - text.at < 3 || !memchr("sxinp", text.at[1], 5))
        return NULL;
    for (size_t i = 0; i < sizeof RAW / sizeof *RAW; i++) {
        const struct raw *raw = RAW + i;
        if (text.at[2] == raw->start[2] && begins(text, raw->start, raw->length)
            && (size_t)(text.end - text.at) > raw->length
            && (text.at[raw->length] == ' ' || text.at[raw->length] == '>'))
            return raw;
    }
    return NULL;
}

/* Return 1 at the start tag of a script in any case, 2 at its end tag, else 0. */
static int script_tag(struct span text)
{
    int found = 1;
    const char *name = "script";
    text.at++;
    if (BEGINS(text, "/")) {
        found = 2;
        text.at++;
    }
    for (; *name; name++, text.at++)
        if (text.at == text.end || (*text.at | 0x20) != *name)
            return 0;
    return text.at < text.end && memchr("\t\n\f\r />", *text.at, 7) ? found : 0;
}

/* Return the end of the text of a script: HTML, section 13.2.5.17, script data double escape. */
static const uint8_t *script_end(struct span text)
{
    const uint8_t *comment = NULL;
    size_t starts = 0, ends = 0;
    while (text.at < text.end) {
        struct span gap = text;
        text.at = FIND(text, "<");
        gap.end = text.at;
        /* The dashes that open a comment may be those that close it. */
        if (comment && gap.at < comment + 2)
            gap.at = gap.end - comment < 2 ? gap.end : comment + 2;
        if (comment && FIND(gap, "-->") < gap.end)
            comment = NULL;
        if (BEGINS(text, "</script>") && (!comment || ends >= starts))
            break;
        if (BEGINS(text, "<!--")) {
            comment = text.at;
            starts = ends = 0;
        } else if (text.at < text.end) {
            int found = script_tag(text);
            starts += found == 1;
            ends += found == 2;
        }
        text.at += text.at < text.end;
    }
    return text.at;
}

static const uint8_t *raw_end(const struct raw *raw, struct span text)
{
    size_t length = strlen(raw->end);
    return raw->is_script ? script_end(text)
        : raw->is_last ? find_last(text, raw->end, length)
        : find(text, raw->end, length);
}

/* Copy a document without its comments and raw texts; those that readers see are escaped. Write
 * the copy, to be given back to `discard`, and return its length. */
EXPORTED int64_t unmarked(const uint8_t *html, size_t length, uint8_t **copy)
{
    struct span rest = {html, html + length};
    struct growing kept = {malloc(length + 1), 0, length + 1};
    const uint8_t *from = html;
    bool failed = !kept.items;
    while (!failed && (rest.at = FIND(rest, "<")) < rest.end) {
        if (BEGINS(rest, "<!--")) {
            failed = !add(&kept, from, rest.at - from);
            rest.at = FIND(rest, "-->");
            rest.at += rest.at < rest.end ? 3 : 0;
            from = rest.at;
            continue;
        }
        const struct raw *raw = raw_element(rest);
        /* The whole tag: a name in it may hold what begins a comment. */
        rest.at = FIND(rest, ">");
        rest.at += rest.at < rest.end;
        if (!raw)
            continue;
        failed = !add(&kept, from, rest.at - from);
        struct span text = rest;
        from = text.end = rest.at = raw_end(raw, text);
        if (!failed && raw->is_shown)
            failed = !add_escaped(&kept, text);
    }
    if (failed || !add(&kept, from, rest.end - from)) {
        free(kept.items);
        return NO_MEMORY;
    }
    *copy = kept.items;
    return (int64_t)kept.count;
}

EXPORTED void discard(uint8_t *octets)
{
    free(octets);
}

/* -- characters ------------------------------------------------------------------------------- */

/* Return the reference that a text begins with, for Lexbor writes but four, and its length. */
static char reference(struct span text, size_t *length)
{
    static const struct {
        const char *text;
        char means;
    } all[] = {{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&nbsp;", ' '}};
    for (size_t i = 0; i < 4; i++) {
        *length = strlen(all[i].text);
        if (begins(text, all[i].text, *length))
            return all[i].means;
    }
    *length = 1;
    return '&';
}

/* One character of a text: a space of any kind, or octets. */
struct character {
    const uint8_t *octets;
    size_t length;
    bool is_space;
};

static const uint8_t REFERRED[] = "&<> ";

/* Go past a character; references are read as what they mean, unless the text is `raw`. */
static struct character next(struct span *text, bool raw)
{
    struct character found = {text->at, space(*text), true};
    if (!found.length) {
        found.is_space = false;
        found.length = 1;
        if (*text->at >= 0xC0)
            while (text->at + found.length < text->end
                   && (text->at[found.length] & 0xC0) == 0x80)
                found.length++;
    }
    size_t length = found.length;
    if (*text->at == '&' && !raw) {
        char means = reference(*text, &length);
        found.is_space = means == ' ';
        found.octets = (const uint8_t *)strchr((const char *)REFERRED, means);
    }
    text->at += length;
    return found;
}

/* Return whether a character is default-ignorable (Unicode, DerivedCoreProperties.txt), such as
 * a soft hyphen or a zero-width space: readers see no difference. */
static bool is_ignorable(struct character one)
{
    const uint8_t *at = one.octets;
    uint32_t code;
    if (one.length == 2)
        code = (at[0] & 0x1F) << 6 | (at[1] & 0x3F);
    else if (one.length == 3)
        code = (at[0] & 0x0F) << 12 | (at[1] & 0x3F) << 6 | (at[2] & 0x3F);
    else if (one.length == 4)
        code = (at[0] & 0x07) << 18 | (at[1] & 0x3F) << 12 | (at[2] & 0x3F) << 6 | (at[3] & 0x3F);
    else
        return false;
    switch (code >> 8) {
    case 0x00: return code == 0xAD;
    case 0x03: return code == 0x34F;
    case 0x06: return code == 0x61C;
    case 0x11: return code == 0x115F || code == 0x1160;
    case 0x17: return code == 0x17B4 || code == 0x17B5;
    case 0x18: return code >= 0x180B && code <= 0x180F;
    case 0x20:
        return (code >= 0x200B && code <= 0x200F) || (code >= 0x202A && code <= 0x202E)
            || (code >= 0x2060 && code <= 0x206F);
    case 0x31: return code == 0x3164;
    case 0xFE: return (code >= 0xFE00 && code <= 0xFE0F) || code == 0xFEFF;
    case 0xFF: return code == 0xFFA0 || (code >= 0xFFF0 && code <= 0xFFF8);
    case 0x1BC: return code >= 0x1BCA0 && code <= 0x1BCA3;
    case 0x1D1: return code >= 0x1D173 && code <= 0x1D17A;
    default: return code >= 0xE0000 && code <= 0xE0FFF;
    }
}

/* Return where the plain words end that a text begins with, those with one space between them. */
static const uint8_t *plain_end(struct span text, bool raw)
{
    const uint8_t *at = text.at;
    for (; at < text.end; at++) {
        const uint8_t *letter = *at == ' ' && at > text.at && at + 1 < text.end ? at + 1 : at;
        if (*letter <= ' ' || *letter >= 0x80 || (*letter == '&' && !raw))
            break;
    }
    return at;
}

/* Return the number of characters between the white space at both ends of a text, without those
 * that are ignorable. */
static uint64_t stripped_length(struct span text, bool raw)
{
    uint64_t count = 0, until_last = 0;
    while (text.at < text.end) {
        const uint8_t *end = plain_end(text, raw);
        if (end > text.at) {
            until_last = count += end - text.at;
            text.at = end;
            continue;
        }
        struct character one = next(&text, raw);
        if ((one.is_space && !count) || is_ignorable(one))
            continue;
        count++;
        if (!one.is_space)
            until_last = count;
    }
    return until_last;
}

/* -- tags ------------------------------------------------------------------------------------- */

/* What a tag means: `Tag` of markup.py, whose numbers these are. */
struct meaning {
    uint32_t name, flags;
    uint64_t place;
    uint8_t step, spared, kind, zone;
};

enum {
    ENDS = 1, VOID = 2, ANCHOR = 4, BODY = 8, TEMPLATE = 16, HOLDS_MAIN = 32, TELLS = 64,
    LEADS = 128, INCLUDED = 256, IMAGE = 512, MOMENT = 1024
};
enum { PASS, OPEN, CLOSE, BREAK, SKIP, NAMED, EDGE, HIDDEN, STEPS };
enum { IN_MAIN = 1, IN_ARTICLE = 2, IN_LINK = 4, IN_LIST = 8, IN_TABLE = 16 };

/* A tag: which of the different ones it is, the text after it, its element's end tag, and whether
 * it stays in the walk at hand although its name sounds like frame. */
struct tag {
    uint32_t which, text, text_end, end;
    bool holds;
};

struct block {
    uint64_t place;
    uint8_t kind, zone, is_link, is_odd, phrases;
};

struct markup {
    const uint8_t *html;
    struct tag *tags;
    size_t tags_count;
    /* Each different tag by the number of its first one, and then by its meaning. */
    struct growing first;
    struct meaning *meanings;
    struct growing names;
    /* Whether machine-readable times stand in place of their texts. */
    bool has_moments;
    /* The blocks of the last walk; their texts end with "\n". */
    struct growing texts;
    struct growing blocks;
    /* The characters that it left out, by the step of their element, if that is NAMED or HIDDEN;
     * at 0 the elements that it walked over. */
    uint64_t left_out[STEPS];
};

EXPORTED void markup_drop(struct markup *markup)
{
    if (!markup)
        return;
    free(markup->tags);
    free(markup->first.items);
    free(markup->meanings);
    free(markup->names.items);
    free(markup->texts.items);
    free(markup->blocks.items);
    free(markup);
}

static uint32_t hash(struct span text)
{
    uint64_t value = text.end - text.at;
    for (; text.at < text.end; text.at += text.end - text.at < 8 ? text.end - text.at : 8) {
        uint64_t some = 0;
        memcpy(&some, text.at, text.end - text.at < 8 ? text.end - text.at : 8);
        value = (value ^ some) * UINT64_C(0x9E3779B97F4A7C15);
        value ^= value >> 29;
    }
    return (uint32_t)(value >> 16);
}

/* Where a tag is looked for among the different ones; with more it counts as another one. Bounded,
 * because strangers choose what collides. */
#define PROBES 16

struct slot {
    uint32_t hash, which_plus_1;
};

/* A table of slots, as many as a power of two. */
struct table {
    struct slot *slots;
    size_t room;
};

/* Double a table; what finds no slot there is forgotten. */
static bool double_table(struct table *table)
{
    size_t room = table->room ? 2 * table->room : 512;
    struct slot *slots = calloc(room, sizeof *slots);
    if (!slots)
        return false;
    for (size_t i = 0; i < table->room; i++)
        for (size_t probe = 0; table->slots[i].which_plus_1 && probe < PROBES; probe++) {
            struct slot *slot = slots + ((table->slots[i].hash + probe) & (room - 1));
            if (!slot->which_plus_1) {
                *slot = table->slots[i];
                break;
            }
        }
    free(table->slots);
    *table = (struct table){slots, room};
    return true;
}

static struct span tag_text(const struct markup *markup, const uint32_t *starts, size_t i)
{
    return (struct span){markup->html + starts[i], markup->html + markup->tags[i].text - 1};
}

/* Return the slot of a tag, or the one that it gets: free, or of another one that is forgotten. */
static struct slot *slot_of(
    const struct markup *markup, const uint32_t *starts, const struct table *table,
    struct span text, uint32_t value)
{
    const uint32_t *first = markup->first.items;
    struct slot *slot = NULL;
    for (size_t probe = 0; probe < PROBES; probe++) {
        slot = table->slots + ((value + probe) & (table->room - 1));
        if (!slot->which_plus_1)
            return slot;
        if (slot->hash != value)
            continue;
        struct span other = tag_text(markup, starts, first[slot->which_plus_1 - 1]);
        if (other.end - other.at == text.end - text.at
            && !memcmp(other.at, text.at, text.end - text.at))
            return slot;
    }
    slot->which_plus_1 = 0;
    return slot;
}

/* Number the different tags. `starts` has the octet at which each tag begins, behind its "<". */
static bool tell_apart(struct markup *markup, const uint32_t *starts)
{
    struct table table = {0};
    struct growing *first = &markup->first;
    bool done = true;
    for (size_t i = 0; done && i < markup->tags_count; i++) {
        struct span text = tag_text(markup, starts, i);
        uint32_t value = hash(text);
        if (2 * first->count >= table.room && !double_table(&table)) {
            done = false;
            break;
        }
        struct slot *slot = slot_of(markup, starts, &table, text, value);
        if (!slot->which_plus_1) {
            done = make_room(first, 1, sizeof *starts)
                && add(&markup->names, text.at, text.end - text.at) && add(&markup->names, ">", 1);
            if (!done)
                break;
            ((uint32_t *)first->items)[first->count++] = (uint32_t)i;
            *slot = (struct slot){value, (uint32_t)first->count};
        }
        markup->tags[i].which = slot->which_plus_1 - 1;
    }
    free(table.slots);
    return done;
}

/* Cut a document, which must stay where it is, into tags and texts, for `markup_drop` in the end.
 *
 * Writes the different tags, between their brackets, each with a ">" behind it, and their length.
 * Returns NULL if there is no memory, or the document has 4 GiB or more. */
EXPORTED struct markup *markup_cut(
    const uint8_t *html, size_t length, const uint8_t **names, size_t *names_length)
{
    struct markup *markup = length < UINT32_MAX ? calloc(1, sizeof *markup) : NULL;
    if (!markup)
        return NULL;
    struct span rest = {html, html + length};
    size_t most = 1;
    while ((rest.at = FIND(rest, "<")) < rest.end) {
        rest.at++;
        most++;
    }
    markup->html = html;
    markup->tags = calloc(most, sizeof *markup->tags);
    uint32_t *starts = calloc(most, sizeof *starts);
    bool done = markup->tags && starts;
    rest.at = html;
    while (done) {
        struct span tag = {FIND(rest, "<"), rest.end};
        const uint8_t *end = FIND(tag, ">");
        bool is_last = end == rest.end;
        if (markup->tags_count)
            markup->tags[markup->tags_count - 1].text_end = (is_last ? rest.end : tag.at) - html;
        if (is_last || markup->tags_count == most)
            break;
        rest.at = end + 1;
        starts[markup->tags_count] = tag.at + 1 - html;
        markup->tags[markup->tags_count++].text = rest.at - html;
    }
    done = done && tell_apart(markup, starts);
    free(starts);
    if (!done) {
        markup_drop(markup);
        return NULL;
    }
    *names = markup->names.items;
    *names_length = markup->names.count;
    return markup;
}

static const struct meaning *meaning(const struct markup *markup, size_t i)
{
    return markup->meanings + markup->tags[i].which;
}

/* Find the end tag of each element: the next end tag of that name that ends no later element. */
static bool find_ends(struct markup *markup, size_t names)
{
    size_t count = markup->tags_count, last = count ? count - 1 : 0, last_body = 0;
    /* By name the open element that began last, and by element the one before it; 0: none. */
    uint32_t *opened = calloc(names + 1, sizeof *opened);
    uint32_t *before = calloc(count + 1, sizeof *before);
    bool done = opened && before;
    for (size_t i = 0; done && i < count; i++) {
        const struct meaning *means = meaning(markup, i);
        uint32_t *open = opened + means->name;
        if (means->flags & BODY)
            last_body = i;
        if (!(means->flags & ENDS)) {
            before[i] = *open;
            *open = (uint32_t)i + 1;
            markup->tags[i].end = (uint32_t)(means->flags & VOID ? i : last);
        } else {
            markup->tags[i].end = (uint32_t)last;
            if (*open) {
                size_t start = *open - 1;
                if (!(means->flags & VOID))
                    markup->tags[start].end = (uint32_t)i;
                *open = before[start];
            }
        }
    }
    for (size_t i = 0; done && i < count; i++)
        if (meaning(markup, i)->flags & BODY)
            markup->tags[i].end = (uint32_t)last_body;
    free(opened);
    free(before);
    return done;
}

/* Leave templates empty. */
static void empty_templates(struct markup *markup)
{
    size_t kept = 0, resume = 0, last = markup->tags_count - 1;
    for (size_t i = 0; i <= last; i++) {
        if (i < resume)
            continue;
        const struct meaning *means = meaning(markup, i);
        if (means->flags & TEMPLATE && !(means->flags & ENDS))
            resume = markup->tags[i].end;
        struct tag tag = markup->tags[i];
        if (resume > i)
            tag.text_end = tag.text;
        markup->tags[kept++] = tag;
    }
    markup->tags_count = kept;
}

static int64_t take(struct markup *markup, size_t count, size_t names)
{
    bool has_templates = false;
    for (size_t i = 0; i < count; i++) {
        const struct meaning *means = markup->meanings + i;
        if (means->name >= names || means->step >= STEPS || means->spared >= STEPS)
            return WRONG_INDEX;
        has_templates |= means->flags & TEMPLATE;
    }
    if (!find_ends(markup, names))
        return NO_MEMORY;
    if (has_templates && markup->tags_count) {
        empty_templates(markup);
        if (!find_ends(markup, names))
            return NO_MEMORY;
    }
    return 0;
}

/* Say what the different tags mean, in the order in which `markup_cut` wrote them. Names are
 * numbers below `names`. Returns 0, NO_MEMORY or, where these numbers are wrong, WRONG_INDEX. */
EXPORTED int64_t markup_mean(
    struct markup *markup, const void *meanings, size_t count, size_t names)
{
    if (count != markup->first.count || markup->meanings)
        return WRONG_INDEX;
    markup->meanings = calloc(count + 1, sizeof *markup->meanings);
    if (!markup->meanings)
        return NO_MEMORY;
    if (count)
        memcpy(markup->meanings, meanings, count * sizeof *markup->meanings);
    int64_t failure = take(markup, count, names);
    if (failure) {
        free(markup->meanings);
        markup->meanings = NULL;
    }
    return failure;
}

/* Write the tags that say something about the page, and which they are: of those that only lead
 * elsewhere the first of each. Both have room for `most` of them; returns how many there are. */
EXPORTED size_t markup_telling(
    struct markup *markup, size_t most, uint32_t *tags, uint32_t *which)
{
    size_t count = 0;
    if (!markup->meanings)
        return 0;
    /* From here on `first` says whether a tag was met. */
    uint32_t *met = markup->first.items;
    if (met)
        memset(met, 0, markup->first.count * sizeof *met);
    for (size_t i = 0; i < markup->tags_count; i++) {
        uint32_t flags = meaning(markup, i)->flags;
        if (!(flags & (TELLS | LEADS)))
            continue;
        if (met[markup->tags[i].which]++ && !(flags & TELLS))
            continue;
        if (count < most) {
            tags[count] = (uint32_t)i;
            which[count] = markup->tags[i].which;
        }
        count++;
    }
    return count;
}

static struct span text_after(const struct markup *markup, size_t i)
{
    const struct tag *tag = markup->tags + i;
    return (struct span){markup->html + tag->text, markup->html + tag->text_end};
}

/* Texts in which each run of white space is one space, with none at the ends. One is odd if it has
 * characters that NFC may change. */
struct words {
    struct growing *into;
    size_t start, characters;
    bool after_space, is_odd;
};

/* Return whether NFC leaves a character beyond ASCII alone, whatever stands beside it: below
 * U+0300, most punctuation, and the ideographs from U+4E00 to U+9FFF. */
static bool is_composed(const uint8_t *octets, size_t length)
{
    if (length == 2)
        return octets[0] < 0xCC;
    return length == 3
        && ((octets[0] >= 0xE5 && octets[0] <= 0xE9) || (octets[0] == 0xE4 && octets[1] >= 0xB8)
            || (octets[0] == 0xE2 && octets[1] == 0x80 && octets[2] >= 0x90 && octets[2] <= 0xA7));
}

/* Add octets, of so many characters, or a space. */
static bool add_word(struct words *words, const uint8_t *octets, size_t length, size_t characters)
{
    if (!characters) {
        words->after_space = true;
        return true;
    }
    if (words->after_space && words->characters) {
        words->characters++;
        if (!add(words->into, " ", 1))
            return false;
    }
    words->after_space = false;
    words->characters += characters;
    words->is_odd |= octets[0] >= 0x80 && !is_composed(octets, length);
    return add(words->into, octets, length);
}

/* Add a text without ignorable characters. */
static bool add_text(struct words *words, struct span text)
{
    while (text.at < text.end) {
        const uint8_t *start = text.at, *end = plain_end(text, false);
        struct character one = {start, end - start, false};
        if (start == end)
            one = next(&text, false);
        else
            text.at = end;
        if (start == end && is_ignorable(one))
            continue;
        size_t characters = start < end ? one.length : !one.is_space;
        if (!add_word(words, one.octets, one.length, characters))
            return false;
    }
    return true;
}

/* Write the texts in elements, of up to `read` characters, as words of up to `written`, each with
 * a "\n" behind it, and which tag is the first image in it, that has a text of its own (or -1).
 * Returns their length; they are in *texts, until the next call or walk. */
EXPORTED int64_t markup_texts_in(
    struct markup *markup, const uint32_t *elements, size_t count, size_t read, size_t written,
    int64_t *images, const uint8_t **texts)
{
    struct growing *into = &markup->texts;
    into->count = 0;
    if (!markup->meanings)
        return WRONG_INDEX;
    for (size_t k = 0; k < count; k++) {
        size_t start = elements[k], characters = 0;
        struct words words = {into, into->count, 0, false, false};
        images[k] = -1;
        if (start >= markup->tags_count)
            return WRONG_INDEX;
        size_t end = markup->tags[start].end;
        for (size_t i = start; i < end && characters < read; i++) {
            struct span text = text_after(markup, i);
            for (; text.at < text.end && characters < read; characters++) {
                struct character found = next(&text, false);
                size_t more = found.is_space ? 0 : words.after_space && words.characters ? 2 : 1;
                if (words.characters + more > written) {
                    characters = read;
                    break;
                }
                if (!add_word(&words, found.octets, found.length, !found.is_space))
                    return NO_MEMORY;
            }
        }
        for (size_t i = start; !words.characters && images[k] < 0 && (i < end || i == start); i++)
            if (meaning(markup, i)->flags & IMAGE)
                images[k] = markup->tags[i].which;
        if (!add(into, "\n", 1))
            return NO_MEMORY;
    }
    *texts = into->items;
    return (int64_t)into->count;
}

/* -- the walk of the main text ---------------------------------------------------------------- */

struct walk {
    struct markup *markup;
    bool spares, shows_hidden;
    double bar;
    /* What groups of three characters tell of phrases, and their most characters and words. */
    const uint8_t *told;
    size_t most, stamp_words, control_words;
};

static uint8_t step(const struct walk *walk, size_t i)
{
    const struct meaning *means = meaning(walk->markup, i);
    return walk->spares ? means->spared : means->step;
}

/* Find the elements that contain a main element, or whose text outweighs the bar. */
static bool find_holders(const struct walk *walk)
{
    struct markup *markup = walk->markup;
    struct growing opened = {0};
    uint32_t *starts = NULL;
    bool weighs = walk->bar < INFINITY, done = true;
    size_t count = markup->tags_count;
    /* The characters up to each tag, and with those behind it. */
    uint64_t *weights = weighs ? calloc(count + 1, sizeof *weights) : NULL;
    if (weighs && !weights)
        return false;
    for (size_t i = 0; done && i < count; i++) {
        const struct meaning *means = meaning(markup, i);
        uint8_t here = step(walk, i);
        markup->tags[i].holds = false;
        if (weighs)
            weights[i] = (i ? weights[i - 1] : 0) + stripped_length(text_after(markup, i), true);
        if (!here)
            continue;
        if (means->flags & ENDS) {
            size_t start = 0;
            while (opened.count) {
                start = starts[--opened.count];
                if (meaning(markup, start)->name == means->name)
                    break;
            }
            if (weighs && opened.count && step(walk, start) == NAMED
                && (double)(weights[i] - weights[start]) > walk->bar)
                markup->tags[start].holds = true;
        } else if (here != BREAK) {
            if (!(done = make_room(&opened, 1, sizeof *starts)))
                break;
            starts = opened.items;
            starts[opened.count++] = (uint32_t)i;
            if (means->flags & HOLDS_MAIN)
                for (size_t k = opened.count; k-- && !markup->tags[starts[k]].holds;)
                    markup->tags[starts[k]].holds = true;
        }
    }
    free(opened.items);
    free(weights);
    return done;
}

/* Return the end of an element if it is left out: a "menu-page" with the article is not. */
static size_t passed(const struct walk *walk, size_t i, uint8_t here, uint8_t zone)
{
    struct markup *markup = walk->markup;
    if ((here == HIDDEN && walk->shows_hidden)
        || (here == EDGE && (zone & (IN_MAIN | IN_ARTICLE)))
        || ((here == NAMED || here == EDGE) && markup->tags[i].holds))
        return i;
    size_t end = markup->tags[i].end;
    for (size_t k = i; k < end && (here == NAMED || here == HIDDEN); k++)
        markup->left_out[here] += stripped_length(text_after(markup, k), true);
    return end;
}

static bool push(struct growing *all, struct block block)
{
    if (!make_room(all, 1, sizeof block))
        return false;
    ((struct block *)all->items)[all->count++] = block;
    return true;
}

/* The phrases that a block may be, and what tells so: within a stamp, and within one of either that
 * begins with a number. */
enum { STAMP = 1, CONTROL = 2, IN_STAMP = 4, COUNTED = 8 };

/* Characters count by their last five bits: what is no letter only makes a group tell too much. */
static uint8_t told_by(const uint8_t *groups, const uint8_t *three)
{
    return groups[(three[0] & 31) << 10 | (three[1] & 31) << 5 | (three[2] & 31)];
}

/* Return which phrases a block may be: whether it is one is Python's to say. */
static uint8_t phrases_of(const struct walk *walk, const struct words *words)
{
    const uint8_t *text = (const uint8_t *)words->into->items + words->start;
    size_t length = words->into->count - words->start, first = length, spaces = 0;
    bool is_plain = !words->is_odd;
    uint8_t within = 0, found = 0;
    if (is_plain && words->characters > walk->most)
        return 0;
    for (size_t i = 0; i < length; i++) {
        bool is_word = (text[i] | 0x20) - 'a' < 26u || text[i] - '0' < 10u || text[i] == '_';
        first = first == length && is_word ? i : first;
        if (i + 2 < length)
            within |= told_by(walk->told, text + i);
        spaces += text[i] == ' ';
        /* Punctuation from U+2010 on is plain, too: NFC leaves nothing else with 0xE2 alone. */
        is_plain &= text[i] < 0x80 || text[i] == 0xE2;
        i += text[i] == 0xE2 ? 2 : 0;
    }
    if (first + 2 < length) {
        found = text[first] - '0' >= 10u ? told_by(walk->told, text + first)
            : within & COUNTED ? STAMP | CONTROL : 0;
        found |= (told_by(walk->told, text) & STAMP) | (within & IN_STAMP ? STAMP : 0);
    }
    return (is_plain ? found : STAMP | CONTROL) & ((spaces < walk->stamp_words ? STAMP : 0)
        | (spaces < walk->control_words ? CONTROL : 0));
}

/* End a block; it is a link if more than this share of its characters stands in anchors. */
static bool finish(
    const struct walk *walk, struct words *words, struct block block, uint64_t linked)
{
    if (words->characters) {
        block.is_odd = words->is_odd;
        block.phrases = phrases_of(walk, words);
        block.is_link = (double)linked > 0.7 * (double)words->characters;
        if (!push(&walk->markup->blocks, block) || !add(words->into, "\n", 1))
            return false;
    }
    *words = (struct words){words->into, words->into->count, 0, false, false};
    return true;
}

static uint64_t within(uint64_t place, uint64_t name)
{
    uint64_t mixed = (place ^ name) * UINT64_C(0x9E3779B97F4A7C15);
    mixed ^= mixed >> 29;
    return mixed ? mixed : 1;
}

/* Add the blocks in an element. The depth of the tree costs no stack. */
static bool gather(const struct walk *walk, size_t root, uint64_t place, struct growing *above)
{
    struct markup *markup = walk->markup;
    struct words words = {&markup->texts, markup->texts.count, 0, false, false};
    struct block block = {place, meaning(markup, root)->kind, 0, 0, 0, 0};
    /* The characters of the block that stand in anchors. */
    uint64_t linked = 0;
    size_t before = root, stop = markup->tags[root].end;
    above->count = 0;
    for (size_t i = root + 1; i <= stop; i++) {
        const struct meaning *means = meaning(markup, i);
        uint8_t here = step(walk, i);
        if (!here && i < stop)
            continue;
        bool counts = (block.zone & (IN_LIST | IN_TABLE)) != IN_TABLE
            && (before + 1 < i || block.zone & IN_LINK);
        for (size_t k = before; k < i; k++) {
            struct span text = text_after(markup, k);
            if (counts) {
                uint32_t flags = meaning(markup, k)->flags;
                if (k > before && flags & ANCHOR)
                    block.zone = flags & ENDS ? block.zone & ~IN_LINK : block.zone | IN_LINK;
                if (block.zone & IN_LINK)
                    linked += stripped_length(text, false);
            }
            if (!add_text(&words, text))
                return false;
        }
        before = i;
        if (here >= SKIP) {
            size_t end = passed(walk, i, here, block.zone | means->zone);
            before = end;
            /* An inline element has no place and ends no block. */
            if (end > i || !means->place) {
                i = end;
                continue;
            }
            here = OPEN;
        }
        if (!finish(walk, &words, block, linked))
            return false;
        linked = 0;
        if (here == OPEN) {
            if (!push(above, block))
                return false;
            block.kind = means->kind;
            block.zone |= means->zone;
            block.place = within(block.place, means->place);
        } else if (here == CLOSE && above->count) {
            block = ((struct block *)above->items)[--above->count];
        }
    }
    words.into->count = words.start;
    return true;
}

/* Put the machine-readable time of each element that has one in place of its text: "3 hours ago"
 * reads otherwise tomorrow. */
static void put_moments(struct markup *markup)
{
    static const char NAME[] = " datetime=\"";
    for (size_t i = 0; i < markup->tags_count && !markup->has_moments; i++) {
        if (!(meaning(markup, i)->flags & MOMENT))
            continue;
        const uint8_t *bracket = markup->html + markup->tags[i].text - 1;
        struct span value = {bracket, bracket};
        while (value.at > markup->html && *value.at != '<')
            value.at--;
        value.at = FIND(value, NAME);
        if (value.at == bracket)
            continue;
        value.at += sizeof NAME - 1;
        value.end = FIND(value, "\"");
        size_t end = markup->tags[i].end;
        for (size_t k = i + 1; k < end; k++)
            markup->tags[k].text_end = markup->tags[k].text;
        markup->tags[i].text = value.at - markup->html;
        markup->tags[i].text_end = value.end - markup->html;
        i = end > i ? end - 1 : i;
    }
    markup->has_moments = true;
}

/* Walk over the body, or over the outermost elements that are marked as included; the place of
 * each of them is `root`. Returns the number of blocks. */
EXPORTED int64_t markup_walk(
    struct markup *markup, uint64_t root, const uint8_t *told, size_t most, size_t stamp_words,
    size_t control_words, bool included, bool spares, double bar, bool shows_hidden)
{
    if (!markup->meanings)
        return WRONG_INDEX;
    struct walk walk = {markup, spares, shows_hidden, bar, told, most, stamp_words, control_words};
    struct growing above = {0};
    put_moments(markup);
    bool done = find_holders(&walk);
    markup->texts.count = markup->blocks.count = 0;
    memset(markup->left_out, 0, sizeof markup->left_out);
    for (size_t i = 0, end = 0; done && i < markup->tags_count; i++) {
        if (!(meaning(markup, i)->flags & (included ? INCLUDED : BODY)) || i < end)
            continue;
        done = gather(&walk, i, root, &above);
        markup->left_out[PASS]++;
        if (!included)
            break;
        end = markup->tags[i].end;
    }
    free(above.items);
    return done ? (int64_t)markup->blocks.count : NO_MEMORY;
}

/* Tell where the blocks of the last walk are, their texts, and the characters that were left out;
 * returns the length of the texts. */
EXPORTED size_t markup_walked(
    const struct markup *markup,
    const void **blocks, const uint8_t **texts, const uint64_t **left_out)
{
    *blocks = markup->blocks.items;
    *texts = markup->texts.items;
    *left_out = markup->left_out;
    return markup->texts.count;
}
