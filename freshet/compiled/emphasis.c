/* Signs of emphasis in Markdown: the tests have the same in Python
 * (tests/crawler/reduce/reference/emphasis.py). */

#include "writing.h"

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
    struct span inner = {before.end, text.at + marks[last->first].at};
    struct span behind = {inner.end, text.end};
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

void emphasise(struct writer *w, size_t begin)
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
        if (is_beginning(marks[i].sign)) {
            open[w->open.count++] = i;
        } else if (w->open.count) {
            w->open.count--;
            settle(w, text, marks + open[w->open.count], marks + i);
        }
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
            say(w, TEXT, is_beginning(marks[i].sign) ? "<" : "</");
        put(w, TEXT, spelled(said));
        if (is_tag)
            say(w, TEXT, ">");
    }
    put(w, TEXT, (struct span){done, text.end});
}
