/* Links of documents, and what Python is asked of a page before it is written. */

#include "writing.h"

/* -- URLs -------------------------------------------------------------------------------------- */

/* Go past a host, as parsing writes it and with letters at its end; returns whether there is
 * one. */
bool pass_host(struct span *text)
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
        if (label.at == label.end || begins_with(label, "xn--"))
            return false;
        text->at = label.end;
        if (text->at == text->end || *text->at != '.')
            return labels > 1 && letters == length_of(label) && letters > 1;
    }
}

/* Return whether an octet is of a word in ASCII, or one of the others. */
static bool is_word(uint8_t octet, const char *others)
{
    return is_letter(octet) || is_digit(octet) || octet == '_' || (octet && strchr(others, octet));
}

/* Go past octets of words in ASCII, and others. */
static void pass(struct span *text, const char *others)
{
    while (text->at < text->end && is_word(*text->at, others))
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

/* Write a reference as an absolute URL to `url`, if it is one that is added to a part of the base
 * as it is, but for any "../" before it: compare `Base.plain` in crawler/urls.py. */
static bool resolve_plain(struct writer *w, struct span reference)
{
    const struct told *told = w->told;
    w->url.count = 0;
    if (!*told->home)
        return false;
    struct span start, rest = reference;
    size_t levels = 0;
    for (; begins_with(rest, "../"); rest.at += 3)
        levels++;
    reference.at = rest.at;
    if (levels) {
        start = folder_above(told, levels);
    } else if (begins_with(rest, "http://") || begins_with(rest, "https://")) {
        start = NO_TEXT;
        rest.at += rest.at[4] == 's' ? strlen("https://") : strlen("http://");
        if (!pass_host(&rest) || rest.at == rest.end || *rest.at++ != '/')
            return false;
    } else if (rest.at < rest.end && *rest.at == '/') {
        start = spelled(told->origin);
        rest.at++;
    } else {
        start = spelled(rest.at == rest.end || *rest.at == '#' ? told->home : told->folder);
    }
    const uint8_t *path = rest.at;
    while (rest.at < rest.end && is_word(*rest.at, "-")) {
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

struct span url_of(struct writer *w, uint32_t node, struct span reference)
{
    if (!reference.at || w->error)
        return NO_TEXT;
    if (!resolve_plain(w, reference))
        return answer_about(w, node);
    return octets_in(&w->url);
}

/* Parentheses that do not pair would end it. */
void put_target(struct writer *w, struct span url)
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
        say(w, TEXT, is_open ? "\\" : "&amp;");
    }
    put(w, TEXT, (struct span){done, url.end});
}

void put_link(struct writer *w, struct place begin, struct span url)
{
    /* Links do not nest. */
    if (url.at == url.end || found_in(since(w, HTML, begin.at[HTML]), "<a "))
        return;
    /* No line break stands in one. */
    uint8_t *octets = w->forms[TEXT].items;
    for (size_t i = begin.at[TEXT]; i < w->forms[TEXT].count; i++)
        if (octets[i] == '\v' || octets[i] == '\n') {
            octets[i] = ' ';
            w->has_spaces = true;
        }
    struct place end = here(w);
    say(w, TEXT, "](");
    put_target(w, url);
    say(w, TEXT, ")");
    say(w, HTML, "<a href=\"");
    put_html(w, url, true);
    say(w, HTML, "\">");
    /* They are known now, and written again where they stand. */
    w->verbatim.count = 0;
    append(w, &w->verbatim, since(w, TEXT, end.at[TEXT]));
    append(w, &w->verbatim, since(w, HTML, end.at[HTML]));
    if (w->error)
        return;
    size_t behind = w->forms[TEXT].count - end.at[TEXT];
    go_back(w, end);
    struct span target = octets_in(&w->verbatim), tag = target;
    tag.at = target.end = target.at + behind;
    const struct span around[FORMS][2]
        = {{spelled("["), target}, {tag, spelled("</a>")}};
    wrap_both(w, begin, around);
}

/* -- questions --------------------------------------------------------------------------------- */

/* Ask Python for something of a node: its kind, what it is about and a NUL. */
static void ask(struct writer *w, uint32_t node, const char *kind, struct span text)
{
    append(w, &w->questions, spelled(kind));
    append(w, &w->questions, text);
    append_nul(w, &w->questions);
    append_number(w, &w->asked, node);
}

struct span answer_about(const struct writer *w, uint32_t node)
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

/* Return what is to be asked of a node, and what about; NULL: nothing. */
static const char *question_about(struct writer *w, uint32_t node, struct span *told)
{
    switch (node_at(w, node)->name ? tag_of(w, node) : PLAIN_TAG) {
    case ANCHOR_TAG:
        *told = said_of(w, node, w->known->href);
        return told->at && !resolve_plain(w, *told) ? "u" : NULL;
    case IMAGE_TAG:
        *told = source_of(w, node);
        return told->at && !resolve_plain(w, *told) ? "u" : NULL;
    case TIME_TAG:
        *told = said_of(w, node, w->known->datetime);
        return told->at ? "t" : NULL;
    case MATH_TAG:
        *told = NO_TEXT;
        return is_mathml(w, node) ? "f" : NULL;
    case MEDIUM_TAG:
        *told = NO_TEXT;
        return "m";
    default:
        return NULL;
    }
}

/* They are in document order. */
void ask_about_pieces(struct writer *w)
{
    const uint32_t *nodes = w->cutter.all->nodes.items;
    uint32_t at = 0;
    for (size_t i = 0; !w->error && i < w->cutter.all->nodes.count; i++) {
        at = at > nodes[i] ? at : nodes[i];
        for (uint32_t end = node_at(w, nodes[i])->end; !w->error && at < end; at++) {
            struct span told;
            const char *question = question_about(w, at, &told);
            if (question)
                ask(w, at, question, told);
        }
    }
}
