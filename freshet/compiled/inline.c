/* What stands in a block, as Markdown and as clean HTML: texts, code, images, formulas. The
 * tests have the same in Python (tests/crawler/reduce/reference/markdown.py). */

#include "writing.h"

/* Digits of the number of a line. */
#define LINE_DIGITS 7
/* An image with a shorter side is none to a reader. */
#define LEAST_SIDE 3

/* -- characters -------------------------------------------------------------------------------- */

uint8_t kind_of(struct writer *w, struct span text)
{
    uint32_t code = *text.at;
    if (code >= 0x80)
        decoded(text, &code);
    uint32_t block = code >> 8;
    if (block >= BLOCKS)
        return 0;
    if (!w->known->characters[code] && !w->is_unknown[block]) {
        w->is_unknown[block] = 1;
        append_number(w, &w->unknown, block);
    }
    return w->known->characters[code];
}

uint8_t kind_before(struct writer *w, struct span text)
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

/* Return a copy of a text of the page with one space for white space; if it is `clean`, without
 * soft hyphens and what stands for our marks. */
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

bool is_reference(struct writer *w, struct span text)
{
    text.at++;
    text.at += text.at < text.end && *text.at == '#';
    const uint8_t *begin = text.at;
    while (text.at < text.end && kind_of(w, text) & WORD)
        text.at += character_length(text);
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
        say(w, TEXT, "\\");
        done = text.at;
        /* Both signs of a pair are of one mark. */
        text.at += *text.at == '~';
    }
    put(w, TEXT, (struct span){done, text.end});
}

void put_html(struct writer *w, struct span text, bool in_quotes)
{
    static const char *const REFERENCES[]
        = {['&'] = "&amp;", ['<'] = "&lt;", ['>'] = "&gt;", ['"'] = "&quot;", ['\''] = "&#x27;"};
    const uint8_t *done = text.at;
    for (; text.at < text.end; text.at++) {
        bool is_quote = *text.at == '"' || *text.at == '\'';
        if (!(OCTETS[*text.at] & TO_QUOTE) || (is_quote && !in_quotes))
            continue;
        put(w, HTML, (struct span){done, text.at});
        say(w, HTML, REFERENCES[*text.at]);
        done = text.at + 1;
    }
    put(w, HTML, (struct span){done, text.end});
}

static bool ends_blank(const struct writer *w, int form)
{
    struct span all = octets_in(&w->forms[form]);
    return all.at < all.end && all.end[-1] == ' ';
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
    size_t first = begin + (size_t)(words.at - text.at);
    size_t last = first + length_of(words);
    if (first == last)
        return;
    insert(w, form, last, behind);
    insert(w, form, first, before);
}

void wrap_both(
    struct writer *w, struct place begin, const struct span around[FORMS][2])
{
    for (int form = 0; form < FORMS; form++)
        wrap(w, form, begin.at[form], around[form][0], around[form][1]);
}

/* -- the tree ---------------------------------------------------------------------------------- */

static struct span text_of(struct writer *w, uint32_t node)
{
    const struct node *row = node_at(w, node);
    return text_in(&w->cutter.all->tree, row);
}

/* Return the text in an element if it has nothing else, or 0. */
static uint32_t only_text(const struct writer *w, uint32_t node)
{
    const struct node *row = node_at(w, node);
    return row->end == node + 2 && !row[1].name && row[1].place == row->place ? node + 1 : 0;
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
        append(w, &w->verbatim, spelled("\n"));
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
            append(w, &w->verbatim, spelled(
                tag == BREAK_TAG ? "\n" : tag == LOWERED_TAG ? "_" : tag == RAISED_TAG ? "^" : ""));
        }
        at++;
    }
    end_lines(w, UINT32_MAX);
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
        say(w, TEXT, "`");
}

static void put_code(struct writer *w, uint32_t node)
{
    read_verbatim(w, node);
    struct span all = octets_in(&w->verbatim);
    size_t length = 0;
    for (const uint8_t *at = all.at; at < all.end; at++)
        if (*at < FIRST_MARK || *at > LAST_MARK)
            ((uint8_t *)w->verbatim.items)[length++] = *at;
    w->verbatim.count = length;
    join_words(&w->verbatim, 0);
    struct span text = octets_in(&w->verbatim);
    if (text.at == text.end)
        return;
    const char *space = *text.at == '`' || text.end[-1] == '`' ? " " : "";
    put_fence(w, text, 1);
    say(w, TEXT, space);
    put(w, TEXT, text);
    say(w, TEXT, space);
    put_fence(w, text, 1);
    say(w, HTML, "<code>");
    put_html(w, text, false);
    say(w, HTML, "</code>");
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
    static const char *const WORDS[]
        = {"language", "lang", "highlight-source", "highlight", "brush:"};
    struct span rest = classes;
    for (; rest.at < rest.end; rest.at++) {
        if (!strchr("lhb", *rest.at)
            || (rest.at > classes.at
                && kind_before(w, (struct span){classes.at, rest.at}) & WORD))
            continue;
        for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++) {
            if (!begins_with(rest, WORDS[i]))
                continue;
            const uint8_t *begin = rest.at + strlen(WORDS[i]), *at = begin;
            while (at < rest.end && strchr("-: ", *at))
                at++;
            /* A hyphen may be the name. */
            while (at > begin && !is_of_name(w, (struct span){at, rest.end}))
                at--;
            struct span name = {at, at};
            while (is_of_name(w, (struct span){name.end, rest.end}))
                name.end += character_length((struct span){name.end, rest.end});
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

void put_code_block(struct writer *w, uint32_t node)
{
    read_verbatim(w, node);
    struct span all = octets_in(&w->verbatim);
    size_t length = 0;
    for (const uint8_t *at = all.at; at < all.end; at++)
        if (*at != '\r' || at + 1 == all.end || at[1] != '\n')
            ((uint8_t *)w->verbatim.items)[length++] = *at;
    w->verbatim.count = length;
    struct span text = octets_in(&w->verbatim);
    while (text.at < text.end && *text.at == '\n')
        text.at++;
    struct span words = stripped(text);
    if (words.at == words.end)
        return;
    text.end = words.end;
    put_fence(w, text, 3);
    put(w, TEXT, language_of(w, node));
    say(w, TEXT, "\n");
    put(w, TEXT, text);
    say(w, TEXT, "\n");
    put_fence(w, text, 3);
    say(w, HTML, "<pre><code>");
    put_html(w, text, false);
    say(w, HTML, "</code></pre>");
}

/* -- inline ------------------------------------------------------------------------------------ */

static void put_inside(struct writer *w, uint32_t node);

/* Return whether a text, without white space around it, stands in a link to its own heading. */
static bool is_permalink(const struct writer *w, struct span text)
{
    text = stripped(text);
    const struct markup *known = w->known;
    return text.at == text.end
        || is_one_of(known->permalinks, (size_t)known->permalink_octets, text);
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

struct span source_of(const struct writer *w, uint32_t node)
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
        if (said.at < said.end && !begins_with(said, "data:"))
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
    said = octets_in(&w->verbatim);
    say(w, TEXT, "![");
    put_escaped(w, said);
    say(w, TEXT, "](");
    put_target(w, url);
    say(w, TEXT, ")");
    say(w, HTML, "<img src=\"");
    put_html(w, url, true);
    say(w, HTML, "\" alt=\"");
    put_html(w, said, true);
    say(w, HTML, "\">");
}

/* Write what stands for a medium: a link to it, with what it is called. */
static void put_medium(struct writer *w, uint32_t node)
{
    struct place begin = here(w);
    struct span url = answer_about(w, node), said = url;
    while (said.at < said.end && *said.at != '\n')
        said.at++;
    url.end = said.at;
    if (said.at == said.end)
        return;
    said.at++;
    w->has_spaces = true;
    put_text(w, said);
    put_link(w, begin, url);
    for (int form = 0; form < FORMS; form++)
        insert(w, form, begin.at[form], spelled(" "));
    say_both(w, " ");
}

/* Write a control, whose boxes are check boxes in both forms. */
static void put_input(struct writer *w, uint32_t node)
{
    struct place begin = here(w);
    w->has_spaces = true;
    say_both(w, " ");
    put_inside(w, node);
    struct span text = stripped(since(w, TEXT, begin.at[TEXT]));
    bool is_ticked = is_equal(text, "☑");
    if (is_ticked || is_equal(text, "☐")) {
        go_back(w, begin);
        say(w, TEXT, is_ticked ? " [x]" : " [ ]");
        say(w, HTML, " <input type=\"checkbox\"");
        say(w, HTML, is_ticked ? " checked disabled>" : " disabled>");
    }
    say_both(w, " ");
}

/* Return the length of the line break that a text begins with, as Python's splitlines, or 0. */
static size_t line_break(struct span text)
{
    if (*text.at < 0x80) {
        uint8_t octet = *text.at;
        bool is_break = (octet >= '\n' && octet <= '\r') || (octet >= 28 && octet <= 30);
        return is_break + begins_with(text, "\r\n");
    }
    if (begins_with(text, "\xC2\x85"))
        return 2;
    return begins_with(text, "\xE2\x80\xA8") || begins_with(text, "\xE2\x80\xA9") ? 3 : 0;
}

/* Write text that breaks its lines itself. */
static void put_lines(struct writer *w, uint32_t node)
{
    read_verbatim(w, node);
    struct span rest = octets_in(&w->verbatim);
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
        say(w, TEXT, is_first ? "" : "\v");
        say(w, HTML, is_first ? "" : "<br>");
        put_escaped(w, spaced(w, line, true));
        put_html(w, spaced(w, line, false), false);
        is_first = false;
    }
}

/* Return the TeX in `verbatim` on one line, without the style that some tools put around it. */
static struct span plain_tex(struct writer *w)
{
    join_words(&w->verbatim, 0);
    struct span tex = octets_in(&w->verbatim);
    static const char *const STYLES[] = {"{\\displaystyle ", "{\\textstyle "};
    for (size_t i = 0; i < 2; i++)
        if (begins_with(tex, STYLES[i]) && tex.end[-1] == '}'
            && length_of(tex) > strlen(STYLES[i]))
            return (struct span){tex.at + strlen(STYLES[i]), tex.end - 1};
    return tex;
}

bool is_mathml(const struct writer *w, uint32_t node)
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
        && (is_equal(said, "block") || is_equal(said, "block\n")
            || found_in(said, "mode=display"));
    const char *mark = is_display ? "$$" : "$";
    tex = spaced(w, tex, true);
    say_both(w, mark);
    put(w, TEXT, tex);
    put_html(w, tex, false);
    say_both(w, mark);
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
    say(w, HTML, "<time datetime=\"");
    put_html(w, stripped(spaced(w, moment, false)), true);
    say(w, HTML, "\">");
    size_t inner = here(w).at[HTML];
    put_inside(w, node);
    if (here(w).at[HTML] == inner)
        w->forms[HTML].count = begin.at[HTML];
    else
        say(w, HTML, "</time>");
}

/* Put what is around an element around what was written from there on, but for tags with which that
 * begins already. */
static void put_around(struct writer *w, struct place begin, int64_t tag)
{
    static const char *const AROUND[][FORMS][2] = {
        {{"\1", "\2"}, {"<strong>", "</strong>"}},
        {{"\3", "\4"}, {"<em>", "</em>"}},
        {{"\5", "\6"}, {"<del>", "</del>"}},
        {{"“", "”"}, {"<q>", "</q>"}},
        {{"(", ")"}, {"<rp>(</rp><rt>", "</rt><rp>)</rp>"}},
        {{"<sub>", "</sub>"}, {"<sub>", "</sub>"}},
        {{"<sup>", "</sup>"}, {"<sup>", "</sup>"}},
    };
    const char *const(*own)[2] = AROUND[tag - STRONG_TAG];
    bool is_emphasis = tag <= DEL_TAG;
    if (is_emphasis && begins_with(stripped(since(w, HTML, begin.at[HTML])), own[HTML][0]))
        return;
    w->has_marks |= is_emphasis;
    const struct span around[FORMS][2] = {
        {spelled(own[TEXT][0]), spelled(own[TEXT][1])},
        {spelled(own[HTML][0]), spelled(own[HTML][1])},
    };
    wrap_both(w, begin, around);
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
        say(w, TEXT, "\v");
        say(w, HTML, "<br>");
        return;
    case IMAGE_TAG: put_image(w, node); return;
    case INPUT_TAG: put_input(w, node); return;
    case MATH_TAG: put_formula(w, node); return;
    case RUBY_TAG:
        say(w, HTML, "<ruby>");
        put_inside(w, node);
        say(w, HTML, "</ruby>");
        return;
    case LINES_TAG: put_lines(w, node); return;
    case TIME_TAG: put_time(w, node); return;
    case MEDIUM_TAG: put_medium(w, node); return;
    }
    if (trait & w->known->tex) {
        put_formula(w, node);
        return;
    }
    bool has_around = tag >= STRONG_TAG && tag <= RAISED_TAG;
    /* A block in a run, such as one in a heading, or a control. */
    bool is_apart = !has_around && trait & (elements->block | elements->apart);
    w->has_spaces |= is_apart;
    say_both(w, is_apart ? " " : "");
    put_inside(w, node);
    say_both(w, is_apart ? " " : "");
    if (has_around)
        put_around(w, begin, tag);
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
    insert(w, TEXT, begin - 1, spelled("\\"));
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
    static const char TAG[] = "<br>";
    struct span html = taken(w, HTML, begin);
    for (const uint8_t *at; (at = found_in(html, TAG));) {
        struct span text = {html.at, at};
        while (text.at < text.end && text.end[-1] == ' ')
            text.end--;
        put(w, HTML, text);
        say(w, HTML, TAG);
        html.at = at + strlen(TAG);
        while (html.at < html.end && *html.at == ' ')
            html.at++;
    }
    put(w, HTML, html);
    html = since(w, HTML, begin);
    size_t length = length_of(html);
    if (length >= strlen(TAG) && begins_with((struct span){html.end - strlen(TAG), html.end}, TAG))
        html.end -= strlen(TAG);
    html.at += begins_with(html, TAG) ? strlen(TAG) : 0;
    if (!w->error)
        keep(&w->forms[HTML], begin, html);
}

/* Finish a run in both forms, without white space around it. */
static void finish_run(struct writer *w, struct place begin)
{
    if (w->error)
        return;
    for (int form = 0; w->has_spaces && form < FORMS; form++)
        collapse(&w->forms[form], begin.at[form]);
    if (w->has_breaks)
        break_lines(&w->forms[TEXT], begin.at[TEXT]);
    if (w->has_marks)
        emphasise(w, begin.at[TEXT]);
    for (int form = 0; form < FORMS; form++)
        keep(&w->forms[form], begin.at[form], stripped(since(w, form, begin.at[form])));
    if (w->has_breaks)
        trim_breaks(w, begin.at[HTML]);
    w->has_spaces = w->has_breaks = w->has_marks = false;
}

/* No nodes are added while it is written. */
void put_run(struct writer *w, const uint32_t *nodes, size_t count)
{
    struct place begin = here(w);
    size_t before = begin.at[TEXT];
    for (size_t i = 0; !w->error && i < count; i++)
        before = put_node(w, nodes[i], before);
    finish_run(w, begin);
}

void put_run_in(struct writer *w, uint32_t node)
{
    struct place begin = here(w);
    put_children(w, node);
    finish_run(w, begin);
}
