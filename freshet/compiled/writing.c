/* The pieces of a page as Markdown and as clean HTML: crawler/reduce/markdown.py. The tests have the
 * same in Python (tests/crawler/reduce/reference/markdown.py).
 *
 * Both forms are written side by side, each at the end of an array of octets. What must stand before
 * something is put in afterwards, when that is known: an element moves its own octets only.
 *
 * Pages are made by strangers. Each step takes time and memory in proportion to the tree, whose
 * levels are bounded; functions recurse by a level of the tree each, and no deeper than DEEPEST. */

#include <stdio.h>

#include "core.h"
#include "pieces.h"

/* A tree has less than half as many levels. */
#define DEEPEST 256
/* Lists and quotes deeper than this in each other are written at this level. */
#define INDENTS 8
#define MOST_COLUMNS 100
#define MOST_ROWS 1000
/* Numbers of items that are written in letters. */
#define MOST_LETTERS 4000
/* Digits of a number in an attribute. */
#define MOST_DIGITS 6
/* An image with a shorter side is none to a reader. */
#define LEAST_SIDE 3
/* Digits of the number of a line. */
#define LINE_DIGITS 7
/* Digits of the number of an item, at most (CommonMark, section 5.2). */
#define ITEM_DIGITS 9

/* What elements are to the writer, by their numbers in Python. */
enum {
    PLAIN_TAG, CODE_TAG, ANCHOR_TAG, BREAK_TAG, IMAGE_TAG, INPUT_TAG, MATH_TAG, RUBY_TAG, LINES_TAG, TIME_TAG,
    STRONG_TAG, EM_TAG, DEL_TAG, QUOTED_TAG, READING_TAG, LOWERED_TAG, RAISED_TAG, TITLE_TAG, HEAD_CELL_TAG,
    /* More of them, as bits: an item of a list, and a line in code. */
    ITEM_TAG = 32, LINE_TAG = 64,
};

/* Both forms of a page. */
enum { TEXT, HTML, FORMS };

/* Marks around what is emphasised, until it is known what stands beside it: of each element one for
 * its beginning, which is odd, and one for its end. */
enum { FIRST_MARK = 1, LAST_MARK = 6, DELETED = 5 };

/* What Python tells: the pieces and their nodes; the URLs to which all of a piece leads, of which
 * that of each ends at `url_ends`; what references are added to, if the base is an http or https URL. */
struct told {
    const struct piece *pieces;
    const uint32_t *nodes, *url_ends;
    const uint8_t *urls;
    const char *home, *folder, *origin;
    size_t count, node_count;
};

/* What Python answers; the answer to each question ends at `ends`. */
struct answers {
    const uint8_t *texts;
    const uint32_t *ends;
    size_t octets, count;
};

/* A mark in the text: where it is, the run of marks that it stands in, and what it becomes. */
struct mark {
    size_t at, run;
    uint8_t sign, becomes;
};

enum { NOTHING, A_SIGN, A_TAG };

/* Marks side by side: the first of them. `is_apart`: what stands there is punctuation. */
struct run {
    size_t first;
    bool is_apart;
};

/* What is written: the pieces in both forms, with a NUL behind each, and the number of each. */
struct writer {
    const struct markup *known;
    const struct told *told;
    const struct answers *answers;
    struct cutter cutter;
    struct growing forms[FORMS], numbers;
    /* Questions, the nodes that they are about, and blocks of characters that are not known. */
    struct growing questions, asked, unknown;
    uint8_t is_unknown[BLOCKS];
    /* What is needed for a moment. */
    struct growing spare, verbatim, url, ends, marks, runs, open;
    /* Whether the run has spaces side by side, breaks of lines, and marks. */
    bool has_spaces, has_breaks, has_marks;
    unsigned depth;
    int64_t error;
};

/* Where both forms end. */
struct place {
    size_t at[FORMS];
};

/* -- octets ------------------------------------------------------------------------------------ */

#define SPAN(literal) \
    ((struct span){(const uint8_t *)(literal), (const uint8_t *)(literal) + sizeof(literal) - 1})
#define NO_TEXT SPAN("")
#define NUL ((struct span){(const uint8_t *)"", (const uint8_t *)"" + 1})

static size_t length_of(struct span text) { return (size_t)(text.end - text.at); }

static bool is_equal(struct span text, struct span other)
{
    return length_of(text) == length_of(other) && !memcmp(text.at, other.at, length_of(text));
}

static bool begins_with(struct span text, struct span start)
{
    return length_of(text) >= length_of(start) && !memcmp(text.at, start.at, length_of(start));
}

/* Return where a text, which is not empty, begins in another; NULL: nowhere. */
static const uint8_t *found_in(struct span text, struct span wanted)
{
    while (length_of(text) >= length_of(wanted)) {
        size_t starts = length_of(text) - length_of(wanted) + 1;
        const uint8_t *at = memchr(text.at, *wanted.at, starts);
        if (!at || !memcmp(at, wanted.at, length_of(wanted)))
            return at;
        text.at = at + 1;
    }
    return NULL;
}

static bool is_digit(uint8_t octet) { return octet >= '0' && octet <= '9'; }

static bool is_letter(uint8_t octet) { return (octet | 32) >= 'a' && (octet | 32) <= 'z'; }

/* Return whether an octet is of a word in ASCII. */
static bool is_word(uint8_t octet) { return is_letter(octet) || is_digit(octet) || octet == '_'; }

static void append(struct writer *w, struct growing *to, struct span text)
{
    if (!w->error && !add(to, text.at, length_of(text)))
        w->error = NO_MEMORY;
}

static struct growing *form_of(struct writer *w, int form) { return &w->forms[form]; }

static struct span spelled(const char *text)
{
    return (struct span){(const uint8_t *)text, (const uint8_t *)text + strlen(text)};
}

static void put(struct writer *w, int form, struct span text) { append(w, form_of(w, form), text); }

static void put_both(struct writer *w, struct span text)
{
    put(w, TEXT, text);
    put(w, HTML, text);
}

/* A number in digits. */
struct digits {
    char octets[24];
    size_t length;
};

static struct digits digits_of(int64_t number)
{
    struct digits digits;
    digits.length
        = (size_t)snprintf(digits.octets, sizeof digits.octets, "%lld", (long long)number);
    return digits;
}

static struct span in_digits(const struct digits *digits)
{
    const uint8_t *at = (const uint8_t *)digits->octets;
    return (struct span){at, at + digits->length};
}

static void put_number(struct writer *w, int form, int64_t number)
{
    struct digits digits = digits_of(number);
    put(w, form, in_digits(&digits));
}

static struct place here(const struct writer *w)
{
    return (struct place){{w->forms[TEXT].count, w->forms[HTML].count}};
}

static void go_back(struct writer *w, struct place place)
{
    for (int form = 0; form < FORMS; form++)
        form_of(w, form)->count = place.at[form];
}

/* Return what was written from there on. */
static struct span since(struct writer *w, int form, size_t begin)
{
    const uint8_t *octets = form_of(w, form)->items;
    /* It may be that nothing was written yet. */
    return octets ? (struct span){octets + begin, octets + form_of(w, form)->count} : NO_TEXT;
}

static void insert(struct writer *w, int form, size_t at, struct span text)
{
    struct growing *to = form_of(w, form);
    size_t behind = to->count - at;
    put(w, form, text);
    if (w->error || text.at == text.end)
        return;
    uint8_t *octets = (uint8_t *)to->items + at;
    memmove(octets + length_of(text), octets, behind);
    memcpy(octets, text.at, length_of(text));
}

/* Take what was written from there on out, and return a copy of it. */
static struct span taken(struct writer *w, int form, size_t begin)
{
    w->spare.count = 0;
    append(w, &w->spare, since(w, form, begin));
    if (w->error)
        return NO_TEXT;
    form_of(w, form)->count = begin;
    const uint8_t *octets = w->spare.items;
    return (struct span){octets, octets + w->spare.count};
}

/* Leave out the last octets from `begin` on that are not in `text`, which is among them. */
static void keep(struct growing *all, size_t begin, struct span text)
{
    if (text.at < text.end)
        memmove((uint8_t *)all->items + begin, text.at, length_of(text));
    all->count = begin + length_of(text);
}

/* Leave out white space around what was written from there on. */
static void strip(struct writer *w, int form, size_t begin)
{
    keep(form_of(w, form), begin, stripped(since(w, form, begin)));
}

/* Write each run of white space from there on as one space, with none at the ends. */
static void join_words(struct growing *all, size_t begin)
{
    uint8_t *octets = all->items;
    if (all->count == begin)
        return;
    struct span text = {octets + begin, octets + all->count}, word;
    uint8_t *to = octets + begin;
    while (pass_word(&text, &word)) {
        if (to > octets + begin)
            *to++ = ' ';
        memmove(to, word.at, length_of(word));
        to += length_of(word);
    }
    all->count = (size_t)(to - octets);
}

/* -- questions --------------------------------------------------------------------------------- */

/* Ask Python for something of a node: its kind, what it is about and a NUL. */
static void ask(struct writer *w, uint32_t node, char kind, struct span text)
{
    append(w, &w->questions, (struct span){(uint8_t *)&kind, (uint8_t *)&kind + 1});
    append(w, &w->questions, text);
    append(w, &w->questions, NUL);
    append(w, &w->asked, (struct span){(uint8_t *)&node, (uint8_t *)(&node + 1)});
}

/* Return the answer about a node, an empty text if it says no. */
static struct span answer_about(const struct writer *w, uint32_t node)
{
    const uint32_t *asked = w->asked.items;
    size_t low = 0, high = w->asked.count / sizeof *asked;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (asked[middle] < node)
            low = middle + 1;
        else
            high = middle;
    }
    if (low >= w->answers->count || asked[low] != node)
        return NO_TEXT;
    size_t begin = low ? w->answers->ends[low - 1] : 0, end = w->answers->ends[low];
    return begin < end && end <= w->answers->octets
        ? (struct span){w->answers->texts + begin, w->answers->texts + end}
        : NO_TEXT;
}

/* Return what is known of the character that a text begins with. */
static uint8_t kind_of(struct writer *w, struct span text)
{
    uint32_t code = *text.at;
    if (code >= 0x80)
        decoded(text, &code);
    uint32_t block = code >> 8;
    if (block >= BLOCKS)
        return 0;
    if (!w->known->characters[code] && !w->is_unknown[block]) {
        w->is_unknown[block] = 1;
        append(w, &w->unknown, (struct span){(uint8_t *)&block, (uint8_t *)(&block + 1)});
    }
    return w->known->characters[code];
}

static uint8_t kind_before(struct writer *w, struct span text)
{
    const uint8_t *at = text.end - 1;
    while (at > text.at && (*at & 0xC0) == 0x80)
        at--;
    return kind_of(w, (struct span){at, text.end});
}

/* -- texts ------------------------------------------------------------------------------------- */

/* What an octet may be in a text of the page, as bits. */
enum { TO_SPACE = 1, TO_CLEAN = 2, TO_ESCAPE = 4, TO_QUOTE = 8, TO_BREAK = 16 };

static const uint8_t OCTETS[256] = {
    [1] = TO_CLEAN, [2] = TO_CLEAN, [3] = TO_CLEAN, [4] = TO_CLEAN, [5] = TO_CLEAN, [6] = TO_CLEAN,
    ['\t'] = TO_SPACE, ['\n'] = TO_SPACE, ['\f'] = TO_SPACE, ['\r'] = TO_SPACE, [' '] = TO_SPACE,
    ['\v'] = TO_BREAK,
    ['"'] = TO_QUOTE, ['\''] = TO_QUOTE, ['&'] = TO_ESCAPE | TO_QUOTE,
    ['<'] = TO_ESCAPE | TO_QUOTE, ['>'] = TO_QUOTE, ['\\'] = TO_ESCAPE, ['`'] = TO_ESCAPE,
    ['*'] = TO_ESCAPE, ['['] = TO_ESCAPE, [']'] = TO_ESCAPE, ['_'] = TO_ESCAPE, ['~'] = TO_ESCAPE,
    /* Spaces and soft hyphens begin with it. */
    [0xC2] = TO_SPACE | TO_CLEAN,
};

/* Return a copy of a text of the page with one space for white space; if it is `clean`, without soft
 * hyphens and what stands for our marks. */
static struct span spaced(struct writer *w, struct span text, bool clean)
{
    w->spare.count = 0;
    if (!w->error && !make_room(&w->spare, length_of(text) + 1, 1))
        w->error = NO_MEMORY;
    if (w->error)
        return NO_TEXT;
    uint8_t *begin = w->spare.items, *to = begin;
    while (text.at < text.end) {
        uint8_t octet = *text.at++, may_be = OCTETS[octet];
        if (!(may_be & (TO_SPACE | TO_CLEAN))) {
            /* It stands for a break of a line in our texts. */
            w->has_breaks |= may_be == TO_BREAK;
            *to++ = octet;
            continue;
        }
        bool is_wide = octet == 0xC2 && text.at < text.end, is_blank = may_be == TO_SPACE;
        if (is_wide && (*text.at == 0xA0 || (*text.at == 0xAD && clean)))
            is_blank = *text.at++ == 0xA0;
        else if (may_be != TO_SPACE && !(may_be == TO_CLEAN && clean))
            *to++ = octet;
        if (is_blank && (to == begin || to[-1] != ' '))
            *to++ = ' ';
    }
    return (struct span){begin, to};
}

static bool is_reference(struct writer *w, struct span text)
{
    text.at++;
    text.at += text.at < text.end && *text.at == '#';
    const uint8_t *begin = text.at;
    while (text.at < text.end && kind_of(w, text) & WORD) {
        uint32_t code;
        text.at += *text.at < 0x80 ? 1 : decoded(text, &code);
    }
    return text.at > begin && text.at < text.end && *text.at == ';';
}

/* Return whether what `text` begins with, behind `before`, would be taken for markup. */
static bool is_markup(struct writer *w, const uint8_t *before, struct span text)
{
    bool is_last = text.at + 1 == text.end;
    switch (*text.at) {
    case '_':
        return text.at == before || is_last
            || !(kind_before(w, (struct span){before, text.at}) & WORD)
            || !(kind_of(w, (struct span){text.at + 1, text.end}) & WORD);
    case '~':
        return !is_last && text.at[1] == '~';
    case '<':
        return !is_last && (is_letter(text.at[1]) || strchr("/!?", text.at[1]));
    case '&':
        return is_reference(w, text);
    default:
        return true;
    }
}

/* Write a text that nothing of is taken for markup. */
static void put_escaped(struct writer *w, struct span text)
{
    const uint8_t *begin = text.at, *done = text.at;
    for (; text.at < text.end; text.at++) {
        if (!(OCTETS[*text.at] & TO_ESCAPE) || !is_markup(w, begin, text))
            continue;
        put(w, TEXT, (struct span){done, text.at});
        put(w, TEXT, SPAN("\\"));
        done = text.at;
        /* Both signs of a pair are of one mark. */
        text.at += *text.at == '~';
    }
    put(w, TEXT, (struct span){done, text.end});
}

static struct span reference_of(uint8_t octet, bool in_quotes)
{
    switch (octet) {
    case '&': return SPAN("&amp;");
    case '<': return SPAN("&lt;");
    case '>': return SPAN("&gt;");
    case '"': return in_quotes ? SPAN("&quot;") : NO_TEXT;
    case '\'': return in_quotes ? SPAN("&#x27;") : NO_TEXT;
    default: return NO_TEXT;
    }
}

static void put_html(struct writer *w, struct span text, bool in_quotes)
{
    const uint8_t *done = text.at;
    for (; text.at < text.end; text.at++) {
        if (!(OCTETS[*text.at] & TO_QUOTE))
            continue;
        struct span reference = reference_of(*text.at, in_quotes);
        if (reference.at == reference.end)
            continue;
        put(w, HTML, (struct span){done, text.at});
        put(w, HTML, reference);
        done = text.at + 1;
    }
    put(w, HTML, (struct span){done, text.end});
}

static bool ends_blank(const struct writer *w, int form)
{
    const struct growing *to = &w->forms[form];
    return to->count && ((const uint8_t *)to->items)[to->count - 1] == ' ';
}

static void put_text(struct writer *w, struct span text)
{
    text = spaced(w, text, true);
    w->has_spaces |= text.at < text.end && *text.at == ' '
        && (ends_blank(w, TEXT) || ends_blank(w, HTML));
    put_escaped(w, text);
    put_html(w, text, false);
}

/* Put these around the words that were written from there on, if there are any. */
static void wrap(struct writer *w, int form, size_t begin, struct span before, struct span behind)
{
    struct span text = since(w, form, begin), words = stripped(text);
    size_t first = begin + (size_t)(words.at - text.at), last = begin + (size_t)(words.end - text.at);
    if (first == last)
        return;
    insert(w, form, last, behind);
    insert(w, form, first, before);
}

static void wrap_both(
    struct writer *w, struct place begin, struct span before, struct span behind,
    struct span before_html, struct span behind_html)
{
    wrap(w, TEXT, begin.at[TEXT], before, behind);
    wrap(w, HTML, begin.at[HTML], before_html, behind_html);
}

/* -- the tree ---------------------------------------------------------------------------------- */

static const struct node *node_at(const struct writer *w, uint32_t node)
{
    return w->cutter.all->tree.nodes + node;
}

static bool is_seen(const struct writer *w, uint32_t node)
{
    return !(node_at(w, node)->place & w->cutter.all->elements->unseen);
}

static bool is_element(const struct writer *w, uint32_t node)
{
    return node_at(w, node)->name && is_seen(w, node);
}

static int64_t markup_of(const struct writer *w, uint32_t node)
{
    uint32_t name = node_at(w, node)->name;
    return name < w->known->names ? w->known->kinds[name] : PLAIN_TAG;
}

/* Return what one element is, without the bits for more of them. */
static int64_t tag_of(const struct writer *w, uint32_t node)
{
    return markup_of(w, node) & (ITEM_TAG - 1);
}

static struct span said_of(const struct writer *w, uint32_t node, int64_t name)
{
    return attribute_of(w->cutter.all, node, name);
}

static struct span name_of(const struct writer *w, uint32_t node)
{
    uint32_t name = node_at(w, node)->name;
    if (name >= w->known->names)
        return NO_TEXT;
    const uint8_t *letters = w->known->letters;
    return (struct span){
        letters + (name ? w->known->ends[name - 1] : 0), letters + w->known->ends[name]};
}

static struct span text_of(struct writer *w, uint32_t node)
{
    const struct node *row = node_at(w, node);
    return characters_in(&w->cutter.texts, row->text, row->text_end);
}

/* Return the text in an element if it has nothing else, or 0. */
static uint32_t only_text(const struct writer *w, uint32_t node)
{
    const struct node *row = node_at(w, node);
    return row->end == node + 2 && !row[1].name && row[1].place == row->place ? node + 1 : 0;
}

/* Return the number that an attribute is, or another one. */
static int64_t number_of(const struct writer *w, uint32_t node, int64_t name, int64_t otherwise)
{
    struct span text = said_of(w, node, name);
    if (text.at)
        text = stripped(text);
    int64_t number = 0;
    for (const uint8_t *at = text.at; at < text.end && at < text.at + MOST_DIGITS; at++) {
        if (!is_digit(*at))
            return otherwise;
        number = number * 10 + (*at - '0');
    }
    return text.at < text.end ? number : otherwise;
}

/* -- URLs -------------------------------------------------------------------------------------- */

/* Go past a host, as parsing writes it and with letters at its end; returns whether there is one. */
static bool pass_host(struct span *text)
{
    for (size_t labels = 1;; labels++, text->at++) {
        struct span label = {text->at, text->at};
        size_t letters = 0;
        for (; label.end < text->end; label.end++) {
            bool is_small = *label.end >= 'a' && *label.end <= 'z';
            if (!is_small && !is_digit(*label.end) && *label.end != '-')
                break;
            letters += is_small;
        }
        if (label.at == label.end || begins_with(label, SPAN("xn--")))
            return false;
        text->at = label.end;
        if (text->at == text->end || *text->at != '.')
            return labels > 1 && letters == length_of(label) && letters > 1;
    }
}

/* Go past octets of words and others. */
static void pass(struct span *text, const char *others)
{
    while (text->at < text->end && *text->at && (is_word(*text->at) || strchr(others, *text->at)))
        text->at++;
}

/* Return what is left of the base's folder above so many others, which may be all of them. */
static struct span folder_above(const struct told *told, size_t levels)
{
    const uint8_t *at = (const uint8_t *)told->folder, *end = at + strlen(told->folder);
    const uint8_t *root = at + strlen(told->origin) + 1;
    for (; levels && end > root; levels--)
        do
            end--;
        while (end > root && end[-1] != '/');
    return (struct span){at, end};
}

/* Write a reference as an absolute URL to `url`, if it is one that is added to a part of the base as
 * it is, behind "../": `Base.plain` in crawler/urls.py. */
static bool resolve_plain(struct writer *w, struct span reference)
{
    const struct told *told = w->told;
    w->url.count = 0;
    if (!*told->home)
        return false;
    struct span start, rest = reference;
    size_t levels = 0;
    for (; begins_with(rest, SPAN("../")); rest.at += 3)
        levels++;
    reference.at = rest.at;
    if (levels) {
        start = folder_above(told, levels);
    } else if (begins_with(rest, SPAN("http://")) || begins_with(rest, SPAN("https://"))) {
        start = NO_TEXT;
        rest.at += rest.at[4] == 's' ? sizeof "https://" - 1 : sizeof "http://" - 1;
        if (!pass_host(&rest) || rest.at == rest.end || *rest.at++ != '/')
            return false;
    } else if (rest.at < rest.end && *rest.at == '/') {
        start = spelled(told->origin);
        rest.at++;
    } else {
        start = spelled(rest.at == rest.end || *rest.at == '#' ? told->home : told->folder);
    }
    const uint8_t *path = rest.at;
    while (rest.at < rest.end && (is_word(*rest.at) || *rest.at == '-')) {
        pass(&rest, ".~-");
        if (rest.at == rest.end || *rest.at != '/')
            break;
        rest.at++;
    }
    if (rest.at > path && rest.at < rest.end && *rest.at == '?') {
        rest.at++;
        pass(&rest, ".~=&;%+,-");
    }
    if (rest.at < rest.end && *rest.at == '#') {
        rest.at++;
        pass(&rest, ".~=&;%+,:()-");
    }
    append(w, &w->url, start);
    append(w, &w->url, reference);
    return rest.at == rest.end;
}

/* Return the absolute URL of the reference of an element, an empty text if no reader can follow it. */
static struct span url_of(struct writer *w, uint32_t node, struct span reference)
{
    if (!reference.at || w->error)
        return NO_TEXT;
    if (!resolve_plain(w, reference))
        return answer_about(w, node);
    const uint8_t *octets = w->url.items;
    return (struct span){octets, octets + w->url.count};
}

/* Write a URL as the target of a link in Markdown: parentheses that do not pair end it. */
static void put_target(struct writer *w, struct span url)
{
    int64_t depth = 0, lowest = 0;
    for (const uint8_t *at = url.at; at < url.end; at++) {
        depth += (*at == '(') - (*at == ')');
        lowest = smaller_int(lowest, depth);
    }
    const uint8_t *done = url.at;
    for (; url.at < url.end; url.at++) {
        bool is_open = (depth || lowest) && (*url.at == '(' || *url.at == ')');
        if (!is_open && !(*url.at == '&' && is_reference(w, url)))
            continue;
        put(w, TEXT, (struct span){done, url.at});
        done = is_open ? url.at : url.at + 1;
        put(w, TEXT, is_open ? SPAN("\\") : SPAN("&amp;"));
    }
    put(w, TEXT, (struct span){done, url.end});
}

/* Make a link of what was written from there on. */
static void put_link(struct writer *w, struct place begin, struct span url)
{
    /* Links do not nest. */
    if (url.at == url.end || found_in(since(w, HTML, begin.at[HTML]), SPAN("<a ")))
        return;
    /* No line break stands in one. */
    uint8_t *octets = form_of(w, TEXT)->items;
    for (size_t i = begin.at[TEXT]; i < form_of(w, TEXT)->count; i++)
        if (octets[i] == '\v' || octets[i] == '\n') {
            octets[i] = ' ';
            w->has_spaces = true;
        }
    struct place end = here(w);
    put(w, TEXT, SPAN("]("));
    put_target(w, url);
    put(w, TEXT, SPAN(")"));
    put(w, HTML, SPAN("<a href=\""));
    put_html(w, url, true);
    put(w, HTML, SPAN("\">"));
    /* They are known now, and written again where they stand. */
    w->verbatim.count = 0;
    append(w, &w->verbatim, since(w, TEXT, end.at[TEXT]));
    append(w, &w->verbatim, since(w, HTML, end.at[HTML]));
    if (w->error)
        return;
    size_t behind = form_of(w, TEXT)->count - end.at[TEXT];
    go_back(w, end);
    const uint8_t *marks = w->verbatim.items;
    wrap_both(
        w, begin, SPAN("["), (struct span){marks, marks + behind},
        (struct span){marks + behind, marks + w->verbatim.count}, SPAN("</a>"));
}

/* -- code -------------------------------------------------------------------------------------- */

static bool is_line_number(struct writer *w, uint32_t node)
{
    struct span classes = said_of(w, node, w->known->class), word;
    if (!classes.at || node_at(w, node)->chars > LINE_DIGITS)
        return false;
    struct span text = stripped(text_of(w, node));
    for (const uint8_t *at = text.at; at < text.end; at++)
        if (!is_digit(*at))
            return false;
    while (text.at < text.end && pass_word(&classes, &word))
        if (is_one_of(w->known->line_numbers, (size_t)w->known->octets, word))
            return true;
    return false;
}

static void end_lines(struct writer *w, uint32_t at)
{
    const uint32_t *ends = w->ends.items;
    for (; w->ends.count && ends[w->ends.count - 1] <= at; w->ends.count--)
        append(w, &w->verbatim, SPAN("\n"));
}

/* Read the text of code as it stands into `verbatim`, with line breaks. */
static void read_verbatim(struct writer *w, uint32_t top)
{
    w->verbatim.count = w->ends.count = 0;
    uint32_t only = only_text(w, top);
    if (only) {
        append(w, &w->verbatim, text_of(w, only));
        return;
    }
    const struct elements *elements = w->cutter.all->elements;
    int64_t hides = (elements->unseen | elements->in_control) & ~(int64_t)node_at(w, top)->place;
    for (uint32_t at = top + 1, end = node_at(w, top)->end; at < end;) {
        const struct node *node = node_at(w, at);
        end_lines(w, at);
        if (node->place & hides || (node->name && is_line_number(w, at))) {
            at = node->end;
            continue;
        }
        if (!node->name) {
            append(w, &w->verbatim, text_of(w, at));
        } else if (markup_of(w, at) & LINE_TAG) {
            if (!make_room(&w->ends, 1, sizeof node->end))
                w->error = NO_MEMORY;
            else
                ((uint32_t *)w->ends.items)[w->ends.count++] = node->end;
        } else {
            int64_t tag = tag_of(w, at);
            append(w, &w->verbatim, tag == BREAK_TAG ? SPAN("\n")
                : tag == LOWERED_TAG ? SPAN("_") : tag == RAISED_TAG ? SPAN("^") : NO_TEXT);
        }
        at++;
    }
    end_lines(w, UINT32_MAX);
}

static struct span verbatim_of(const struct writer *w)
{
    const uint8_t *octets = w->verbatim.items;
    return w->error || !octets ? NO_TEXT : (struct span){octets, octets + w->verbatim.count};
}

/* Write so many "`" that no run of them in the text is as long. */
static void put_fence(struct writer *w, struct span text, size_t least)
{
    size_t longest = 0, run = 0;
    for (; text.at < text.end; text.at++) {
        run = *text.at == '`' ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    for (size_t i = 0; i < least || i <= longest; i++)
        put(w, TEXT, SPAN("`"));
}

static void put_code(struct writer *w, uint32_t node)
{
    read_verbatim(w, node);
    struct span all = verbatim_of(w);
    size_t length = 0;
    for (const uint8_t *at = all.at; at < all.end; at++)
        if (*at < FIRST_MARK || *at > LAST_MARK)
            ((uint8_t *)w->verbatim.items)[length++] = *at;
    w->verbatim.count = length;
    join_words(&w->verbatim, 0);
    struct span text = verbatim_of(w);
    if (text.at == text.end)
        return;
    struct span space = *text.at == '`' || text.end[-1] == '`' ? SPAN(" ") : NO_TEXT;
    /* One alone is none. */
    put_fence(w, text, 1);
    put(w, TEXT, space);
    put(w, TEXT, text);
    put(w, TEXT, space);
    put_fence(w, text, 1);
    put(w, HTML, SPAN("<code>"));
    put_html(w, text, false);
    put(w, HTML, SPAN("</code>"));
}

/* Return whether a text begins with a character of the name of a language. */
static bool is_of_name(struct writer *w, struct span text)
{
    return text.at < text.end
        && (*text.at == '+' || *text.at == '#' || *text.at == '-' || kind_of(w, text) & WORD);
}

/* Return the language that a class of code names, behind a word for it, or an empty text. */
static struct span language_in(struct writer *w, struct span classes)
{
    const struct span words[] = {
        SPAN("language"), SPAN("lang"), SPAN("highlight-source"), SPAN("highlight"), SPAN("brush:"),
    };
    struct span rest = classes;
    for (; rest.at < rest.end; rest.at++) {
        if (!strchr("lhb", *rest.at)
            || (rest.at > classes.at
                && kind_before(w, (struct span){classes.at, rest.at}) & WORD))
            continue;
        for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
            if (!begins_with(rest, words[i]))
                continue;
            const uint8_t *begin = rest.at + length_of(words[i]), *at = begin;
            while (at < rest.end && strchr("-: ", *at))
                at++;
            /* A hyphen may be the name. */
            while (at > begin && !is_of_name(w, (struct span){at, rest.end}))
                at--;
            struct span name = {at, at};
            while (is_of_name(w, (struct span){name.end, rest.end})) {
                uint32_t code;
                name.end += *name.end < 0x80
                    ? 1 : decoded((struct span){name.end, rest.end}, &code);
            }
            if (name.at < name.end)
                return name;
        }
    }
    return NO_TEXT;
}

/* Return the language that the element of code, one in it, or the one around it names. */
static struct span language_of(struct writer *w, uint32_t node)
{
    struct span found = language_in(w, said_of(w, node, w->known->class));
    uint32_t end = node_at(w, node)->end;
    for (uint32_t at = node + 1; found.at == found.end && at < end; at = node_at(w, at)->end)
        if (is_element(w, at))
            found = language_in(w, said_of(w, at, w->known->class));
    return found.at < found.end
        ? found
        : language_in(w, said_of(w, node_at(w, node)->parent, w->known->class));
}

static void put_code_block(struct writer *w, uint32_t node)
{
    read_verbatim(w, node);
    struct span all = verbatim_of(w);
    size_t length = 0;
    for (const uint8_t *at = all.at; at < all.end; at++)
        if (*at != '\r' || at + 1 == all.end || at[1] != '\n')
            ((uint8_t *)w->verbatim.items)[length++] = *at;
    w->verbatim.count = length;
    struct span text = verbatim_of(w);
    while (text.at < text.end && *text.at == '\n')
        text.at++;
    struct span words = stripped(text);
    if (words.at == words.end)
        return;
    text.end = words.end;
    put_fence(w, text, 3);
    put(w, TEXT, language_of(w, node));
    put(w, TEXT, SPAN("\n"));
    put(w, TEXT, text);
    put(w, TEXT, SPAN("\n"));
    put_fence(w, text, 3);
    put(w, HTML, SPAN("<pre><code>"));
    put_html(w, text, false);
    put(w, HTML, SPAN("</code></pre>"));
}

/* -- emphasis ---------------------------------------------------------------------------------- */

static bool is_mark(uint8_t octet) { return octet >= FIRST_MARK && octet <= LAST_MARK; }

static bool is_beginning(uint8_t mark) { return mark & 1; }

/* Return the mark of the beginning of the same element. */
static uint8_t element_of(uint8_t mark) { return mark - !is_beginning(mark); }

/* Return whether a sign between two characters begins or ends emphasis of the inner one (CommonMark
 * 0.31, section 6.2): 「強調」**です** is none. */
static bool flanks(struct writer *w, bool is_inner_apart, struct span outer, bool is_before)
{
    if (!is_inner_apart || outer.at == outer.end)
        return true;
    if (is_before)
        return blank_behind(outer) || kind_before(w, outer) & PUNCTUATION;
    return space(outer) || kind_of(w, outer) & PUNCTUATION;
}

/* Read the marks of a text, and the runs of those side by side. */
static void read_marks(struct writer *w, struct span text)
{
    w->marks.count = w->runs.count = w->open.count = 0;
    for (const uint8_t *at = text.at; at < text.end; at++) {
        if (!is_mark(*at))
            continue;
        bool goes_on = at > text.at && is_mark(at[-1]);
        if (!make_room(&w->marks, 1, sizeof(struct mark))
            || !make_room(&w->runs, 1, sizeof(struct run))
            || !make_room(&w->open, w->marks.count + 1, sizeof(size_t))) {
            w->error = NO_MEMORY;
            return;
        }
        struct mark *marks = w->marks.items;
        struct run *runs = w->runs.items;
        if (!goes_on)
            runs[w->runs.count++] = (struct run){w->marks.count, false};
        struct run *run = runs + w->runs.count - 1;
        /* Other signs beside "~~" are punctuation to it. */
        if ((element_of(marks[run->first].sign) == DELETED) != (element_of(*at) == DELETED)
            && goes_on)
            run->is_apart = true;
        marks[w->marks.count++] = (struct mark){
            (size_t)(at - text.at), w->runs.count - 1, *at, NOTHING};
    }
}

/* Say what two marks become that begin and end an element. */
static void settle(struct writer *w, struct span text, struct mark *begin, struct mark *end)
{
    struct mark *marks = w->marks.items;
    struct run *runs = w->runs.items;
    struct run *first = runs + begin->run, *last = runs + end->run;
    const size_t *open = w->open.items;
    for (size_t i = 0; i < w->open.count; i++)
        if (marks[open[i]].sign == begin->sign)
            return;
    bool is_signed = true;
    for (size_t i = first->first; marks + i < begin; i++)
        is_signed = is_signed && is_beginning(marks[i].sign);
    /* The texts around the runs of both. */
    struct span before = {text.at, text.at + marks[first->first].at};
    struct span inner = {before.end, text.at + marks[last->first].at}, behind = {inner.end, text.end};
    while (inner.at < inner.end && is_mark(*inner.at))
        inner.at++;
    while (behind.at < behind.end && is_mark(*behind.at))
        behind.at++;
    if (inner.at == inner.end)
        return;
    bool begins_apart = first->is_apart || kind_of(w, inner) & PUNCTUATION;
    bool ends_apart = last->is_apart || kind_before(w, inner) & PUNCTUATION;
    is_signed = is_signed && flanks(w, begins_apart, before, true)
        && flanks(w, ends_apart, behind, false);
    begin->becomes = end->becomes = is_signed ? A_SIGN : A_TAG;
    first->is_apart |= !is_signed;
    last->is_apart |= !is_signed;
}

/* Write the marks from there on as signs of Markdown, or as tags where it would take no signs. */
static void emphasise(struct writer *w, size_t begin)
{
    static const char *const SIGNS[] = {"**", "*", "~~"}, *const NAMES[] = {"strong", "em", "del"};
    struct span text = since(w, TEXT, begin);
    const uint8_t *first = text.at;
    while (first < text.end && !is_mark(*first))
        first++;
    if (first == text.end)
        return;
    read_marks(w, text);
    struct mark *marks = w->marks.items;
    size_t *open = w->open.items;
    for (size_t i = 0; !w->error && i < w->marks.count; i++) {
        if (is_beginning(marks[i].sign))
            open[w->open.count++] = i;
        else if (w->open.count)
            w->open.count--, settle(w, text, marks + open[w->open.count], marks + i);
    }
    text = taken(w, TEXT, begin);
    const uint8_t *done = text.at;
    for (size_t i = 0; !w->error && i < w->marks.count; i++) {
        size_t element = (size_t)(element_of(marks[i].sign) - FIRST_MARK) / 2;
        const char *said = marks[i].becomes == A_SIGN ? SIGNS[element] : NAMES[element];
        bool is_tag = marks[i].becomes == A_TAG;
        put(w, TEXT, (struct span){done, text.at + marks[i].at});
        done = text.at + marks[i].at + 1;
        if (marks[i].becomes == NOTHING)
            continue;
        if (is_tag)
            put(w, TEXT, is_beginning(marks[i].sign) ? SPAN("<") : SPAN("</"));
        put(w, TEXT, spelled(said));
        if (is_tag)
            put(w, TEXT, SPAN(">"));
    }
    put(w, TEXT, (struct span){done, text.end});
}

/* -- inline ------------------------------------------------------------------------------------ */

static void put_inside(struct writer *w, uint32_t node);

/* Return whether a text, without white space around it, stands in a link to its own heading. */
static bool is_permalink(const struct writer *w, struct span text)
{
    text = stripped(text);
    return text.at == text.end || is_one_of(w->known->permalinks, (size_t)w->known->permalink_octets, text);
}

static void put_anchor(struct writer *w, uint32_t node)
{
    struct place begin = here(w);
    put_inside(w, node);
    struct span url = url_of(w, node, said_of(w, node, w->known->href));
    if (is_permalink(w, since(w, TEXT, begin.at[TEXT])))
        go_back(w, begin);
    else
        put_link(w, begin, url);
}

/* Return the source of an image, or the first one of a set, that is no image itself. */
static struct span source_of(const struct writer *w, uint32_t node)
{
    for (int64_t i = 0; i < w->known->all_sources; i++) {
        struct span said = said_of(w, node, w->known->source[i]);
        if (said.at && i >= w->known->sources) {
            said = stripped(said);
            const uint8_t *at = said.at;
            while (at < said.end && *at != ',' && *at != ' ')
                at++;
            said.end = at;
        }
        if (said.at < said.end && !begins_with(said, SPAN("data:")))
            return said;
    }
    return (struct span){NULL, NULL};
}

static void put_image(struct writer *w, uint32_t node)
{
    struct span url = url_of(w, node, source_of(w, node));
    if (url.at == url.end || number_of(w, node, w->known->width, LEAST_SIDE) < LEAST_SIDE
        || number_of(w, node, w->known->height, LEAST_SIDE) < LEAST_SIDE)
        return;
    struct span said = said_of(w, node, w->known->alt);
    w->verbatim.count = 0;
    append(w, &w->verbatim, said.at ? spaced(w, said, true) : NO_TEXT);
    join_words(&w->verbatim, 0);
    said = verbatim_of(w);
    put(w, TEXT, SPAN("!["));
    put_escaped(w, said);
    put(w, TEXT, SPAN("]("));
    put_target(w, url);
    put(w, TEXT, SPAN(")"));
    put(w, HTML, SPAN("<img src=\""));
    put_html(w, url, true);
    put(w, HTML, SPAN("\" alt=\""));
    put_html(w, said, true);
    put(w, HTML, SPAN("\">"));
}

/* Write a control, whose boxes are check boxes in both forms. */
static void put_input(struct writer *w, uint32_t node)
{
    struct place begin = here(w);
    w->has_spaces = true;
    put_both(w, SPAN(" "));
    put_inside(w, node);
    struct span text = stripped(since(w, TEXT, begin.at[TEXT]));
    bool is_ticked = is_equal(text, SPAN("☑"));
    if (is_ticked || is_equal(text, SPAN("☐"))) {
        go_back(w, begin);
        put(w, TEXT, is_ticked ? SPAN(" [x]") : SPAN(" [ ]"));
        put(w, HTML, SPAN(" <input type=\"checkbox\""));
        put(w, HTML, is_ticked ? SPAN(" checked disabled>") : SPAN(" disabled>"));
    }
    put_both(w, SPAN(" "));
}

/* Return the length of the line break that a text begins with, as Python's splitlines, or 0. */
static size_t line_break(struct span text)
{
    if (*text.at < 0x80) {
        bool is_break = (*text.at >= '\n' && *text.at <= '\r') || (*text.at >= 28 && *text.at <= 30);
        return is_break + begins_with(text, SPAN("\r\n"));
    }
    if (begins_with(text, SPAN("\xC2\x85")))
        return 2;
    return begins_with(text, SPAN("\xE2\x80\xA8")) || begins_with(text, SPAN("\xE2\x80\xA9")) ? 3 : 0;
}

/* Write text that breaks its lines itself. */
static void put_lines(struct writer *w, uint32_t node)
{
    read_verbatim(w, node);
    struct span rest = verbatim_of(w);
    for (bool is_first = true; rest.at < rest.end;) {
        struct span line = {rest.at, rest.at};
        size_t length = 0;
        for (; rest.at < rest.end && !(length = line_break(rest)); rest.at++)
            line.end = rest.at + 1;
        rest.at += length;
        line = stripped(line);
        if (line.at == line.end)
            continue;
        w->has_breaks |= !is_first;
        put(w, TEXT, is_first ? NO_TEXT : SPAN("\v"));
        put(w, HTML, is_first ? NO_TEXT : SPAN("<br>"));
        put_escaped(w, spaced(w, line, true));
        put_html(w, spaced(w, line, false), false);
        is_first = false;
    }
}

/* Return the TeX in `verbatim` on one line, without the style that some tools put around it. */
static struct span plain_tex(struct writer *w)
{
    join_words(&w->verbatim, 0);
    struct span tex = verbatim_of(w);
    const struct span styles[] = {SPAN("{\\displaystyle "), SPAN("{\\textstyle ")};
    for (size_t i = 0; i < 2; i++)
        if (begins_with(tex, styles[i]) && tex.end[-1] == '}'
            && length_of(tex) > length_of(styles[i]))
            return (struct span){tex.at + length_of(styles[i]), tex.end - 1};
    return tex;
}

/* Return whether a formula does not say its TeX itself. */
static bool is_mathml(const struct writer *w, uint32_t node)
{
    return tag_of(w, node) == MATH_TAG && !(node_at(w, node)->holds & w->known->tex);
}

/* Write a formula as TeX between dollars. */
static void put_formula(struct writer *w, uint32_t node)
{
    struct span tex;
    if (is_mathml(w, node)) {
        tex = answer_about(w, node);
    } else {
        read_verbatim(w, node);
        tex = plain_tex(w);
    }
    struct span said = said_of(w, node, w->known->display);
    if (said.at == said.end)
        said = said_of(w, node, w->known->type);
    if (tex.at == tex.end)
        return;
    bool is_display = said.at
        && (is_equal(said, SPAN("block")) || is_equal(said, SPAN("block\n"))
            || found_in(said, SPAN("mode=display")));
    struct span mark = is_display ? SPAN("$$") : SPAN("$");
    tex = spaced(w, tex, true);
    put_both(w, mark);
    put(w, TEXT, tex);
    put_html(w, tex, false);
    put_both(w, mark);
}

/* Write a time; HTML has the one that a machine reads, too, which is compared. */
static void put_time(struct writer *w, uint32_t node)
{
    struct place begin = here(w);
    struct span moment = answer_about(w, node);
    if (moment.at == moment.end) {
        put_inside(w, node);
        return;
    }
    put(w, HTML, SPAN("<time datetime=\""));
    put_html(w, stripped(spaced(w, moment, false)), true);
    put(w, HTML, SPAN("\">"));
    size_t inner = here(w).at[HTML];
    put_inside(w, node);
    if (here(w).at[HTML] == inner)
        form_of(w, HTML)->count = begin.at[HTML];
    else
        put(w, HTML, SPAN("</time>"));
}

/* Put signs or tags around what is in an element, but for tags that it begins with already. */
static void put_emphasis(struct writer *w, uint32_t node, int64_t tag)
{
    const struct span marks[][2] = {
        {SPAN("\1"), SPAN("\2")}, {SPAN("\3"), SPAN("\4")}, {SPAN("\5"), SPAN("\6")},
    };
    const struct span tags[][2] = {
        {SPAN("<strong>"), SPAN("</strong>")}, {SPAN("<em>"), SPAN("</em>")},
        {SPAN("<del>"), SPAN("</del>")},
    };
    struct place begin = here(w);
    put_inside(w, node);
    const struct span *mark = marks[tag - STRONG_TAG], *around = tags[tag - STRONG_TAG];
    w->has_marks = true;
    if (!begins_with(stripped(since(w, HTML, begin.at[HTML])), around[0]))
        wrap_both(w, begin, mark[0], mark[1], around[0], around[1]);
}

static void put_element(struct writer *w, uint32_t node)
{
    const struct elements *elements = w->cutter.all->elements;
    uint32_t trait = node_at(w, node)->trait;
    int64_t tag = tag_of(w, node);
    struct place begin = here(w);
    switch (tag) {
    case CODE_TAG: put_code(w, node); return;
    case ANCHOR_TAG: put_anchor(w, node); return;
    case BREAK_TAG:
        w->has_breaks = true;
        put(w, TEXT, SPAN("\v"));
        put(w, HTML, SPAN("<br>"));
        return;
    case IMAGE_TAG: put_image(w, node); return;
    case INPUT_TAG: put_input(w, node); return;
    case MATH_TAG: put_formula(w, node); return;
    case RUBY_TAG:
        put(w, HTML, SPAN("<ruby>"));
        put_inside(w, node);
        put(w, HTML, SPAN("</ruby>"));
        return;
    case LINES_TAG: put_lines(w, node); return;
    case TIME_TAG: put_time(w, node); return;
    }
    if (trait & w->known->tex) {
        put_formula(w, node);
        return;
    }
    switch (tag) {
    case STRONG_TAG: case EM_TAG: case DEL_TAG:
        put_emphasis(w, node, tag);
        return;
    }
    /* A block in a run, such as one in a heading, or a control. */
    bool is_apart = tag < QUOTED_TAG || tag > RAISED_TAG;
    is_apart = is_apart && trait & (elements->block | elements->apart);
    w->has_spaces |= is_apart;
    put_both(w, is_apart ? SPAN(" ") : NO_TEXT);
    put_inside(w, node);
    put_both(w, is_apart ? SPAN(" ") : NO_TEXT);
    switch (tag) {
    case QUOTED_TAG:
        wrap_both(w, begin, SPAN("“"), SPAN("”"), SPAN("<q>"), SPAN("</q>"));
        return;
    case READING_TAG:
        wrap_both(
            w, begin, SPAN("("), SPAN(")"), SPAN("<rp>(</rp><rt>"), SPAN("</rt><rp>)</rp>"));
        return;
    case LOWERED_TAG:
        wrap_both(w, begin, SPAN("<sub>"), SPAN("</sub>"), SPAN("<sub>"), SPAN("</sub>"));
        return;
    case RAISED_TAG:
        wrap_both(w, begin, SPAN("<sup>"), SPAN("</sup>"), SPAN("<sup>"), SPAN("</sup>"));
        return;
    }
}

/* Write a node of a run, behind the one that begins at `before`; returns where it begins. */
static size_t put_node(struct writer *w, uint32_t node, size_t before)
{
    size_t begin = here(w).at[TEXT];
    if (++w->depth > DEEPEST)
        w->error = w->error ? w->error : WRONG_INDEX;
    else if (node_at(w, node)->name)
        put_element(w, node);
    else
        put_text(w, text_of(w, node));
    w->depth--;
    struct span text = since(w, TEXT, begin);
    if (w->error || begin == before || text.at == text.end || *text.at != '[' || text.at[-1] != '!')
        return begin;
    /* With a link behind it the sign would begin an image. */
    insert(w, TEXT, begin - 1, SPAN("\\"));
    return begin + 1;
}

static void put_children(struct writer *w, uint32_t node)
{
    size_t before = here(w).at[TEXT];
    uint32_t end = node_at(w, node)->end;
    for (uint32_t at = node + 1; !w->error && at < end; at = node_at(w, at)->end)
        if (is_seen(w, at))
            before = put_node(w, at, before);
}

/* Write what is in an element, most often one text. */
static void put_inside(struct writer *w, uint32_t node)
{
    uint32_t only = only_text(w, node);
    if (only) {
        put_text(w, text_of(w, only));
        return;
    }
    put_children(w, node);
}

/* Write one space in the place of several from there on. */
static void collapse(struct growing *all, size_t begin)
{
    uint8_t *octets = all->items;
    size_t to = begin;
    for (size_t i = begin; i < all->count; i++)
        if (octets[i] != ' ' || to == begin || octets[to - 1] != ' ')
            octets[to++] = octets[i];
    all->count = to;
}

/* Write breaks of lines from there on as "\n", without spaces around them. */
static void break_lines(struct growing *all, size_t begin)
{
    uint8_t *octets = all->items;
    size_t to = begin;
    for (size_t i = begin; i < all->count; i++) {
        bool is_break = octets[i] == '\v' || octets[i] == '\n';
        if (is_break && to > begin && octets[to - 1] == ' ')
            to--;
        if (octets[i] != ' ' || to == begin || octets[to - 1] != '\n')
            octets[to++] = is_break ? '\n' : octets[i];
    }
    all->count = to;
}

/* Leave out spaces around breaks of lines in HTML from there on, and one break at each end. */
static void trim_breaks(struct writer *w, size_t begin)
{
    struct span tag = SPAN("<br>"), html = since(w, HTML, begin);
    if (w->error || !found_in(html, tag))
        return;
    html = taken(w, HTML, begin);
    const uint8_t *at;
    while ((at = found_in(html, tag))) {
        struct span text = {html.at, at};
        while (text.at < text.end && text.end[-1] == ' ')
            text.end--;
        put(w, HTML, text);
        put(w, HTML, tag);
        html.at = at + length_of(tag);
        while (html.at < html.end && *html.at == ' ')
            html.at++;
    }
    put(w, HTML, html);
    html = since(w, HTML, begin);
    if (length_of(html) >= length_of(tag)
        && begins_with((struct span){html.end - length_of(tag), html.end}, tag))
        html.end -= length_of(tag);
    if (begins_with(html, tag))
        html.at += length_of(tag);
    keep(form_of(w, HTML), begin, html);
}

/* Finish a run in both forms, without white space around it. */
static void finish_run(struct writer *w, struct place begin)
{
    if (w->error)
        return;
    for (int form = 0; w->has_spaces && form < FORMS; form++)
        collapse(form_of(w, form), begin.at[form]);
    if (w->has_breaks)
        break_lines(form_of(w, TEXT), begin.at[TEXT]);
    if (w->has_marks)
        emphasise(w, begin.at[TEXT]);
    strip(w, TEXT, begin.at[TEXT]);
    strip(w, HTML, begin.at[HTML]);
    if (w->has_breaks)
        trim_breaks(w, begin.at[HTML]);
    w->has_spaces = w->has_breaks = w->has_marks = false;
}

/* Write a run. No nodes are added while it is written. */
static void put_run(struct writer *w, const uint32_t *nodes, size_t count)
{
    struct place begin = here(w);
    size_t before = begin.at[TEXT];
    for (size_t i = 0; !w->error && i < count; i++)
        before = put_node(w, nodes[i], before);
    finish_run(w, begin);
}

/* -- blocks ------------------------------------------------------------------------------------ */

static void put_piece(struct writer *w, struct piece piece, struct span url, unsigned level);

/* What was written of pieces in a quote or an item: how many, the kind of the first, whether all
 * others are lists, and where both forms of the first end. */
struct parts {
    size_t count;
    uint32_t kind;
    bool has_lists_only;
    struct place end;
};

/* Write the pieces that were cut from there on, and forget them. */
static struct parts put_parts(struct writer *w, size_t from, size_t nodes, bool in_item, unsigned level)
{
    struct pieces *all = w->cutter.all;
    struct parts parts = {.has_lists_only = true};
    size_t end = all->pieces.count;
    for (size_t i = from; !w->error && i < end; i++) {
        struct piece piece = *nth_piece(all, i);
        struct place before = here(w);
        bool is_close = in_item && piece.kind == LIST;
        put(w, TEXT, !parts.count ? NO_TEXT : is_close ? SPAN("\n") : SPAN("\n\n"));
        size_t begin = here(w).at[TEXT];
        put_piece(w, piece, NO_TEXT, level);
        if (here(w).at[TEXT] == begin) {
            go_back(w, before);
            continue;
        }
        if (parts.count++) {
            parts.has_lists_only = parts.has_lists_only && piece.kind == LIST;
        } else {
            parts.kind = piece.kind;
            parts.end = here(w);
        }
    }
    all->pieces.count = from;
    all->nodes.count = w->cutter.run = nodes;
    return parts;
}

/* Write the pieces in an element; `itself`: the pieces that it is. */
static struct parts put_pieces_in(
    struct writer *w, uint32_t node, bool itself, bool in_item, unsigned level)
{
    struct pieces *all = w->cutter.all;
    size_t from = all->pieces.count, nodes = all->nodes.count;
    w->cutter.run = nodes;
    if (!w->error && !(itself ? cut_node(&w->cutter, node) : cut_in(&w->cutter, node)))
        w->error = NO_MEMORY;
    return put_parts(w, from, nodes, in_item, level);
}

/* Write each line from there on as one of a quote. */
static void quote_lines(struct writer *w, size_t begin)
{
    struct span text = taken(w, TEXT, begin);
    while (!w->error) {
        struct span line = {text.at, text.at};
        while (line.end < text.end && *line.end != '\n')
            line.end++;
        text.at = line.end;
        line.end -= blank_behind(line);
        put(w, TEXT, line.at < line.end ? SPAN("> ") : SPAN(">"));
        put(w, TEXT, line);
        if (text.at == text.end)
            return;
        put(w, TEXT, SPAN("\n"));
        text.at++;
    }
}

static void put_quote(struct writer *w, uint32_t node, unsigned level)
{
    struct place begin = here(w);
    put(w, HTML, SPAN("<blockquote>"));
    if (!put_pieces_in(w, node, false, false, level + 1).count) {
        go_back(w, begin);
        return;
    }
    put(w, HTML, SPAN("</blockquote>"));
    if (level < INDENTS)
        quote_lines(w, begin.at[TEXT]);
}

/* Write a mark of an item before what was written from there on, and so many spaces before its other
 * lines, but for empty ones: of several such lines in a row every other one. */
static void indent_lines(
    struct writer *w, size_t begin, struct span mark, size_t indent, unsigned level)
{
    static const uint8_t SPACES[] = "                                ";
    struct span text = since(w, TEXT, begin);
    if (level >= INDENTS || !length_of(text) || !memchr(text.at, '\n', length_of(text))) {
        insert(w, TEXT, begin, mark);
        return;
    }
    text = taken(w, TEXT, begin);
    put(w, TEXT, mark);
    struct span spaces = {SPACES, SPACES + indent};
    bool was_left_out = false;
    while (!w->error && text.at < text.end) {
        const uint8_t *at = memchr(text.at, '\n', length_of(text));
        at = at ? at + 1 : text.end;
        put(w, TEXT, (struct span){text.at, at});
        if (at[-1] == '\n') {
            was_left_out = !was_left_out && at < text.end && *at == '\n';
            put(w, TEXT, was_left_out ? NO_TEXT : spaces);
        }
        text.at = at;
    }
}

/* Write the number of an item in letters or Roman numerals. */
static void put_label(struct writer *w, uint8_t letters, int64_t number)
{
    static const int VALUES[] = {1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1};
    static const char SIGNS[][3]
        = {"m", "cm", "d", "cd", "c", "xc", "l", "xl", "x", "ix", "v", "iv", "i"};
    size_t begin = here(w).at[TEXT];
    if (number <= 0 || number >= MOST_LETTERS) {
        put_number(w, TEXT, number);
    } else if ((letters | 32) == 'i') {
        for (size_t i = 0; number; i++)
            for (; number >= VALUES[i]; number -= VALUES[i])
                put(w, TEXT, spelled(SIGNS[i]));
    } else {
        for (; number; number = (number - 1) / 26) {
            uint8_t digit = (uint8_t)('a' + (number - 1) % 26);
            insert(w, TEXT, begin, (struct span){&digit, &digit + 1});
        }
    }
    if (letters < 'a')
        for (uint8_t *at = (uint8_t *)form_of(w, TEXT)->items + begin; !w->error && at < since(w, TEXT, begin).end; at++)
            *at -= is_letter(*at) ? 32 : 0;
    put(w, TEXT, SPAN(". "));
}

/* Write the tag of an element that has one, or of an item. */
static void put_tag(struct writer *w, uint32_t node, bool is_item)
{
    put(w, HTML, is_item && !(markup_of(w, node) & ITEM_TAG) ? SPAN("li") : name_of(w, node));
}

static void put_attribute(struct writer *w, struct span name, int64_t number)
{
    put(w, HTML, name);
    put_number(w, HTML, number);
    put(w, HTML, SPAN("\""));
}

/* Return the letter by which a list counts, or 0. */
static uint8_t letter_of(const struct writer *w, uint32_t list)
{
    struct span said = said_of(w, list, w->known->type);
    return said.at && length_of(said) == 1 && memchr("aAiI", *said.at, 4) ? *said.at : 0;
}

/* Write the tag of a list with what it says of its numbers. */
static void put_list_tag(struct writer *w, uint32_t list)
{
    uint8_t letter = letter_of(w, list);
    int64_t start = number_of(w, list, w->known->start, -1);
    put(w, HTML, SPAN("<"));
    put_tag(w, list, false);
    if (letter) {
        put(w, HTML, SPAN(" type=\""));
        put(w, HTML, (struct span){&letter, &letter + 1});
        put(w, HTML, SPAN("\""));
    }
    if (start >= 0)
        put_attribute(w, SPAN(" start=\""), start);
    put(w, HTML, said_of(w, list, w->known->reversed).at ? SPAN(" reversed>") : SPAN(">"));
}

/* Write an item, but for its mark; returns whether anything is in it. */
static bool put_item(
    struct writer *w, uint32_t item, uint8_t letter, int64_t number, unsigned level)
{
    struct place begin = here(w);
    bool is_list = kind_in(w->cutter.all, node_at(w, item)) == IS_LIST;
    int64_t value = number_of(w, item, w->known->value, -1);
    put(w, HTML, SPAN("<"));
    put_tag(w, item, true);
    if (value >= 0)
        put_attribute(w, SPAN(" value=\""), value);
    put(w, HTML, SPAN(">"));
    if (letter)
        put_label(w, letter, number);
    size_t inner = here(w).at[HTML];
    struct parts parts = {0};
    if (shows(w->cutter.all, item))
        parts = put_pieces_in(w, item, is_list, true, level + 1);
    if (w->error || !parts.count) {
        go_back(w, begin);
        return false;
    }
    if (parts.kind == RUN && parts.has_lists_only) {
        /* It needs no tag of its own. */
        struct growing *html = form_of(w, HTML);
        struct span text = since(w, HTML, parts.end.at[HTML]);
        keep(html, parts.end.at[HTML] - length_of(SPAN("</p>")), text);
        text = since(w, HTML, inner + length_of(SPAN("<p>")));
        keep(html, inner, text);
    }
    put(w, HTML, SPAN("</"));
    put_tag(w, item, true);
    put(w, HTML, SPAN(">"));
    struct span text = since(w, TEXT, begin.at[TEXT]);
    text.end = text.at + (parts.end.at[TEXT] - begin.at[TEXT]);
    if (node_at(w, item)->name == w->known->dt && !found_in(text, SPAN("**"))) {
        insert(w, TEXT, parts.end.at[TEXT], SPAN("**"));
        insert(w, TEXT, begin.at[TEXT], SPAN("**"));
    }
    return true;
}

static void put_list(struct writer *w, uint32_t list, unsigned level)
{
    struct place begin = here(w);
    bool is_ordered = node_at(w, list)->name == w->known->ol;
    uint8_t letter = is_ordered ? letter_of(w, list) : 0;
    uint32_t end = node_at(w, list)->end;
    int64_t step = said_of(w, list, w->known->reversed).at ? -1 : 1, items = 0;
    for (uint32_t at = list + 1; is_ordered && at < end; at = node_at(w, at)->end)
        items += is_element(w, at);
    int64_t next = number_of(w, list, w->known->start, step > 0 ? 1 : items), last = -1;
    char sign = '.';
    put_list_tag(w, list);
    bool is_empty = true;
    for (uint32_t item = list + 1; !w->error && item < end; item = node_at(w, item)->end) {
        if (!is_element(w, item))
            continue;
        int64_t number = larger_int(0, number_of(w, item, w->known->value, next));
        next = number + step;
        struct place before = here(w);
        put(w, TEXT, is_empty ? NO_TEXT : SPAN("\n"));
        size_t text = here(w).at[TEXT];
        if (!put_item(w, item, letter, number, level)) {
            go_back(w, before);
            continue;
        }
        char octets[32] = "- ";
        size_t length = 2;
        if (is_ordered && !letter) {
            /* Lists in Markdown count up from their first number; another sign begins another. */
            if (!is_empty && number != last + 1)
                sign = sign == '.' ? ')' : '.';
            last = number;
            length = (size_t)snprintf(
                octets, sizeof octets, "%lld%c ", (long long)number, sign);
        }
        is_empty = false;
        size_t indent = length;
        if (node_at(w, item)->name == w->known->dd) {
            length = indent = 4;
            memcpy(octets, "  - ", length);
        } else if (kind_in(w->cutter.all, node_at(w, item)) == IS_LIST) {
            memset(octets, ' ', length);
        }
        const uint8_t *mark = (const uint8_t *)octets;
        indent_lines(w, text, (struct span){mark, mark + length}, indent, level);
    }
    put(w, HTML, SPAN("</"));
    put_tag(w, list, false);
    put(w, HTML, SPAN(">"));
    if (is_empty)
        go_back(w, begin);
}

/* -- tables ------------------------------------------------------------------------------------ */

/* A row that is written: how many columns it has, and whether any has a text. By column, how many of
 * the next rows a cell above takes, too. */
struct row {
    size_t width;
    bool has_text;
    uint64_t taken[MOST_COLUMNS];
};

/* Begin a cell of a row; those behind the last column that is written are in HTML only. */
static void begin_cell(struct writer *w, struct row *row)
{
    if (row->width < MOST_COLUMNS)
        put(w, TEXT, row->width ? SPAN(" | ") : SPAN("| "));
    row->width++;
}

/* Add empty cells up to the first column that no cell above takes. */
static void pass_over(struct writer *w, struct row *row)
{
    while (row->width < MOST_COLUMNS && row->taken[row->width]) {
        row->taken[row->width]--;
        begin_cell(w, row);
    }
}

/* Write the text of a cell on one line, and its HTML. */
static void put_cell_text(struct writer *w, uint32_t cell)
{
    struct pieces *all = w->cutter.all;
    size_t from = all->pieces.count, nodes = all->nodes.count;
    struct place begin = here(w);
    w->cutter.run = nodes;
    if (!w->error && !cut_in(&w->cutter, cell))
        w->error = NO_MEMORY;
    for (size_t i = from; !w->error && i < all->pieces.count; i++) {
        const struct piece *piece = nth_piece(all, i);
        struct place before = here(w);
        put(w, TEXT, SPAN(" "));
        put(w, HTML, before.at[HTML] > begin.at[HTML] ? SPAN("<br>") : NO_TEXT);
        size_t html = here(w).at[HTML];
        put_run(w, (uint32_t *)all->nodes.items + piece->nodes, piece->nodes_end - piece->nodes);
        if (here(w).at[HTML] == html)
            form_of(w, HTML)->count = before.at[HTML];
    }
    all->pieces.count = from;
    all->nodes.count = w->cutter.run = nodes;
    if (w->error)
        return;
    join_words(form_of(w, TEXT), begin.at[TEXT]);
    struct span text = since(w, TEXT, begin.at[TEXT]);
    if (!found_in(text, SPAN("|")))
        return;
    text = taken(w, TEXT, begin.at[TEXT]);
    for (const uint8_t *at; (at = found_in(text, SPAN("|"))); text.at = at + 1) {
        put(w, TEXT, (struct span){text.at, at});
        put(w, TEXT, SPAN("\\|"));
    }
    put(w, TEXT, text);
}

static void put_cell(struct writer *w, uint32_t cell, struct row *row)
{
    pass_over(w, row);
    int64_t span = smaller_int(number_of(w, cell, w->known->colspan, 1), MOST_COLUMNS);
    int64_t high = number_of(w, cell, w->known->rowspan, 1);
    high = larger_int(1, smaller_int(high, MOST_ROWS));
    struct span tag = tag_of(w, cell) == HEAD_CELL_TAG ? SPAN("th") : SPAN("td");
    for (size_t i = row->width; i < row->width + (size_t)span && i < MOST_COLUMNS; i++)
        row->taken[i] += (uint64_t)high - 1;
    put(w, HTML, SPAN("<"));
    put(w, HTML, tag);
    if (span > 1)
        put_attribute(w, SPAN(" colspan=\""), span);
    if (high > 1)
        put_attribute(w, SPAN(" rowspan=\""), high);
    put(w, HTML, SPAN(">"));
    bool is_shown = row->width < MOST_COLUMNS;
    begin_cell(w, row);
    size_t begin = here(w).at[TEXT];
    put_cell_text(w, cell);
    row->has_text |= here(w).at[TEXT] > begin;
    if (!is_shown)
        form_of(w, TEXT)->count = begin;
    for (int64_t i = 1; i < span; i++)
        begin_cell(w, row);
    put(w, HTML, SPAN("</"));
    put(w, HTML, tag);
    put(w, HTML, SPAN(">"));
}

static void put_row(struct writer *w, uint32_t node, struct row *row)
{
    row->width = 0;
    row->has_text = false;
    put(w, HTML, SPAN("<tr>"));
    for (uint32_t cell = node + 1; !w->error && cell < node_at(w, node)->end;
         cell = node_at(w, cell)->end)
        if (is_element(w, cell))
            put_cell(w, cell, row);
    pass_over(w, row);
    put(w, TEXT, SPAN(" |"));
    put(w, HTML, SPAN("</tr>"));
    row->width = row->width < MOST_COLUMNS ? row->width : MOST_COLUMNS;
}

static void put_caption(struct writer *w, uint32_t table)
{
    uint32_t end = node_at(w, table)->end, at = table + 1;
    while (at < end && !(is_element(w, at) && tag_of(w, at) == TITLE_TAG))
        at = node_at(w, at)->end;
    if (at >= end)
        return;
    struct place begin = here(w);
    put(w, HTML, SPAN("<caption>"));
    struct place inner = here(w);
    put_children(w, at);
    finish_run(w, inner);
    if (here(w).at[TEXT] == inner.at[TEXT]) {
        go_back(w, begin);
        return;
    }
    put(w, TEXT, SPAN("\n\n"));
    put(w, HTML, SPAN("</caption>"));
}

static void put_table(struct writer *w, uint32_t table)
{
    struct place begin = here(w);
    struct row row = {0};
    put(w, HTML, SPAN("<table>"));
    put_caption(w, table);
    /* Where the first row ends, its columns, and those of the widest. */
    size_t end_of_first = 0, first = 0, widest = 0, rows = 0;
    for (uint32_t at = table + 1; !w->error && at < node_at(w, table)->end;) {
        int64_t kind = is_seen(w, at) ? kind_in(w->cutter.all, node_at(w, at)) : IS_NOTHING;
        if (kind == IS_ROWS) {
            at++;
            continue;
        }
        struct place before = here(w);
        if (kind == IS_ROW) {
            put(w, TEXT, rows ? SPAN("\n") : NO_TEXT);
            put_row(w, at, &row);
            if (!row.has_text)
                go_back(w, before);
        }
        if (kind == IS_ROW && row.has_text) {
            end_of_first = rows ? end_of_first : here(w).at[TEXT];
            first = rows ? first : row.width;
            widest = row.width > widest ? row.width : widest;
            rows++;
        }
        at = node_at(w, at)->end;
    }
    if (!rows) {
        go_back(w, begin);
        return;
    }
    put(w, HTML, SPAN("</table>"));
    /* The first row is the head: it has all columns. */
    w->verbatim.count = 0;
    for (size_t i = first; i < widest; i++)
        append(w, &w->verbatim, SPAN("  |"));
    append(w, &w->verbatim, SPAN("\n|"));
    for (size_t i = 0; i < widest; i++)
        append(w, &w->verbatim, SPAN(" --- |"));
    insert(w, TEXT, end_of_first, verbatim_of(w));
}

/* -- pieces ------------------------------------------------------------------------------------ */

/* Return how many octets of a line, at its beginning, would be taken for that of something else; a
 * "\" may stand behind them, or before if there are none. */
static bool begins_block(struct writer *w, struct span line, size_t *digits)
{
    *digits = 0;
    if (line.at == line.end || is_letter(*line.at))
        return false;
    size_t signs = 0;
    while (signs < length_of(line) && line.at[signs] == *line.at)
        signs++;
    struct span rest = {line.at + signs, line.end}, second = {line.at + 1, line.end};
    switch (*line.at) {
    case '#': return signs <= 6 && (rest.at == rest.end || space(rest));
    case '+': return second.at == second.end || space(second);
    case '-': return signs > 1 || second.at == second.end || space(second);
    case '>': return true;
    case '=': return signs > 1;
    }
    rest = line;
    for (int i = 0; i < ITEM_DIGITS && rest.at < rest.end && kind_of(w, rest) & DIGIT; i++) {
        uint32_t code;
        rest.at += *rest.at < 0x80 ? 1 : decoded(rest, &code);
    }
    if (rest.at == line.at || rest.at == rest.end || !(*rest.at == '.' || *rest.at == ')'))
        return false;
    *digits = (size_t)(rest.at - line.at);
    rest.at++;
    return rest.at == rest.end || space(rest);
}

/* Write the lines from there on so that none is taken for the beginning of something else. */
static void put_lines_begun(struct writer *w, size_t begin)
{
    struct span text = since(w, TEXT, begin);
    size_t digits;
    if (w->error || !length_of(text))
        return;
    if (!memchr(text.at, '\n', length_of(text))) {
        if (begins_block(w, text, &digits))
            insert(w, TEXT, begin + digits, SPAN("\\"));
        return;
    }
    text = taken(w, TEXT, begin);
    for (;;) {
        struct span line = {text.at, text.at};
        while (line.end < text.end && *line.end != '\n')
            line.end++;
        text.at = line.end;
        if (begins_block(w, line, &digits)) {
            put(w, TEXT, (struct span){line.at, line.at + digits});
            put(w, TEXT, SPAN("\\"));
            line.at += digits;
        }
        put(w, TEXT, line);
        if (w->error || text.at == text.end)
            return;
        put(w, TEXT, SPAN("  \n"));
        text.at++;
    }
}

/* Write a run or a heading. */
static void put_paragraph(struct writer *w, struct piece piece, struct span url)
{
    static const uint8_t SIGNS[] = "######";
    bool is_heading = piece.kind >= HEADING;
    size_t signs = is_heading ? KINDS - piece.kind : 0;
    const uint8_t *nodes = w->cutter.all->nodes.items;
    struct place begin = here(w);
    struct digits level = digits_of((int64_t)signs);
    struct span tag = is_heading ? in_digits(&level) : NO_TEXT;
    put(w, TEXT, (struct span){SIGNS, SIGNS + signs});
    put(w, TEXT, is_heading ? SPAN(" ") : NO_TEXT);
    put(w, HTML, is_heading ? SPAN("<h") : SPAN("<p"));
    put(w, HTML, tag);
    put(w, HTML, SPAN(">"));
    struct place inner = here(w);
    put_run(w, (const uint32_t *)nodes + piece.nodes, piece.nodes_end - piece.nodes);
    if (piece.link != NONE)
        url = url_of(w, piece.link, said_of(w, piece.link, w->known->href));
    put_link(w, inner, url);
    if (here(w).at[TEXT] == inner.at[TEXT]) {
        go_back(w, begin);
        return;
    }
    uint8_t *octets = form_of(w, TEXT)->items;
    for (size_t i = inner.at[TEXT]; is_heading && i < here(w).at[TEXT]; i++)
        octets[i] = octets[i] == '\n' ? ' ' : octets[i];
    if (!is_heading)
        put_lines_begun(w, inner.at[TEXT]);
    put(w, HTML, is_heading ? SPAN("</h") : SPAN("</p"));
    put(w, HTML, tag);
    put(w, HTML, SPAN(">"));
}

/* Write a piece, or nothing in either form. `url` is where all of it leads, if it has no `link`. */
static void put_piece(struct writer *w, struct piece piece, struct span url, unsigned level)
{
    if (w->error || piece.nodes == piece.nodes_end)
        return;
    uint32_t node = ((uint32_t *)w->cutter.all->nodes.items)[piece.nodes];
    if (++w->depth > DEEPEST)
        w->error = WRONG_INDEX;
    else if (piece.kind == CODE)
        put_code_block(w, node);
    else if (piece.kind == LIST)
        put_list(w, node, level);
    else if (piece.kind == TABLE)
        put_table(w, node);
    else if (piece.kind == QUOTE)
        put_quote(w, node, level);
    else
        put_paragraph(w, piece, url);
    w->depth--;
}

/* Ask about the nodes of pieces, in their order: references that are not plain, formulas without TeX,
 * and times. */
static void ask_about_pieces(struct writer *w)
{
    const uint32_t *nodes = w->cutter.all->nodes.items;
    uint32_t at = 0;
    for (size_t i = 0; !w->error && i < w->cutter.all->nodes.count; i++) {
        at = at > nodes[i] ? at : nodes[i];
        for (uint32_t end = node_at(w, nodes[i])->end; !w->error && at < end; at++) {
            int64_t tag = node_at(w, at)->name ? tag_of(w, at) : PLAIN_TAG;
            struct digits digits;
            struct span told = {NULL, NULL};
            if (tag == ANCHOR_TAG)
                told = said_of(w, at, w->known->href);
            else if (tag == IMAGE_TAG)
                told = source_of(w, at);
            else if (tag == TIME_TAG)
                told = said_of(w, at, w->known->datetime);
            else if (tag == MATH_TAG && is_mathml(w, at)) {
                digits = digits_of(at);
                told = in_digits(&digits);
            }
            bool leads = tag == ANCHOR_TAG || tag == IMAGE_TAG;
            if (told.at && !(leads && resolve_plain(w, told)))
                ask(w, at, leads ? 'u' : tag == TIME_TAG ? 't' : 'f', told);
        }
    }
}

/* -- a page ------------------------------------------------------------------------------------ */

EXPORTED void writer_drop(struct writer *w)
{
    if (!w)
        return;
    struct growing *each[] = {
        &w->forms[TEXT], &w->forms[HTML], &w->numbers, &w->questions, &w->asked, &w->unknown,
        &w->spare, &w->verbatim, &w->url, &w->ends, &w->marks, &w->runs, &w->open,
        &w->cutter.levels,
    };
    for (size_t i = 0; i < sizeof each / sizeof *each; i++)
        free(each[i]->items);
    pieces_drop(w->cutter.all);
    free(w);
}

/* Begin to write pieces of a tree, which are in document order, and find what is to be asked before;
 * to be given back to writer_drop. What is told must outlive the writer. */
EXPORTED int64_t writer_begin(
    const struct elements *elements, const struct markup *known, const struct columns *tree,
    uint32_t top, const struct told *told, struct writer **made)
{
    *made = NULL;
    if (!are_pieces_in(tree, top, told->pieces, told->count, told->nodes, told->node_count))
        return WRONG_INDEX;
    struct writer *w = calloc(1, sizeof *w);
    if (!w)
        return NO_MEMORY;
    struct pieces *all = w->cutter.all = pieces_in(elements, tree, top);
    w->known = known;
    w->told = told;
    w->cutter.texts = characters_of(tree->text, tree->text_length, tree->text_count);
    if (all && make_room(&all->nodes, told->node_count + 1, sizeof *told->nodes)) {
        if (told->node_count)
            memcpy(all->nodes.items, told->nodes, told->node_count * sizeof *told->nodes);
        all->nodes.count = told->node_count;
        ask_about_pieces(w);
    } else {
        w->error = NO_MEMORY;
    }
    int64_t result = w->error;
    if (result)
        writer_drop(w);
    else
        *made = w;
    return result;
}

/* Write the pieces with these answers. What is unknown then must be asked, and all written again. */
EXPORTED int64_t writer_write(struct writer *w, const struct answers *answers)
{
    const struct told *told = w->told;
    w->answers = answers;
    go_back(w, (struct place){{0, 0}});
    w->numbers.count = w->unknown.count = 0;
    memset(w->is_unknown, 0, sizeof w->is_unknown);
    for (size_t i = 0; !w->error && i < told->count; i++) {
        struct piece piece = told->pieces[i];
        size_t begin = here(w).at[TEXT], url = i ? told->url_ends[i - 1] : 0;
        put_piece(w, piece, (struct span){told->urls + url, told->urls + told->url_ends[i]}, 0);
        if (here(w).at[TEXT] == begin)
            continue;
        uint32_t number = (uint32_t)i;
        put_both(w, NUL);
        append(w, &w->numbers, (struct span){(uint8_t *)&number, (uint8_t *)(&number + 1)});
    }
    return w->error;
}

/* Tell where both forms are, the numbers of their pieces, the questions, and the blocks of characters
 * that are not known, and their octets. */
EXPORTED void writer_columns(const struct writer *w, const void **columns, size_t *octets)
{
    const struct growing *each[] = {
        &w->forms[TEXT], &w->forms[HTML], &w->numbers, &w->questions, &w->unknown};
    for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
        columns[i] = each[i]->items;
        octets[i] = each[i]->count;
    }
}
