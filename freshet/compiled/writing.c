/* The pieces of a page as Markdown and as clean HTML: crawler/reduce/main_text.py. The tests have
 * the same in Python (tests/crawler/reduce/reference/markdown.py).
 *
 * Pages are made by strangers. Each step takes time and memory in proportion to the tree, whose
 * levels are bounded; functions recurse by a level of the tree each, and no deeper than DEEPEST. */

#include <stdio.h>

#include "writing.h"

/* Lists and quotes deeper than this in each other are written at this level. */
#define INDENTS 8
#define MOST_COLUMNS 100
#define MOST_ROWS 1000
/* Numbers of items that are written in letters. */
#define MOST_LETTERS 4000
/* Digits of a number in an attribute. */
#define MOST_DIGITS 6
/* Digits of the number of an item, at most (CommonMark, section 5.2). */
#define ITEM_DIGITS 9

/* -- octets ------------------------------------------------------------------------------------ */

const uint8_t *found_in(struct span text, const char *wanted)
{
    size_t length = strlen(wanted);
    while (length_of(text) >= length) {
        size_t starts = length_of(text) - length + 1;
        const uint8_t *at = memchr(text.at, *wanted, starts);
        if (!at || !memcmp(at, wanted, length))
            return at;
        text.at = at + 1;
    }
    return NULL;
}

void insert(struct writer *w, int form, size_t at, struct span text)
{
    struct growing *to = &w->forms[form];
    size_t behind = to->count - at;
    put(w, form, text);
    if (w->error || text.at == text.end)
        return;
    uint8_t *octets = (uint8_t *)to->items + at;
    memmove(octets + length_of(text), octets, behind);
    memcpy(octets, text.at, length_of(text));
}

struct span taken(struct writer *w, int form, size_t begin)
{
    w->spare.count = 0;
    append(w, &w->spare, since(w, form, begin));
    if (w->error)
        return NO_TEXT;
    w->forms[form].count = begin;
    return octets_in(&w->spare);
}

void keep(struct growing *all, size_t begin, struct span text)
{
    if (text.at < text.end)
        memmove((uint8_t *)all->items + begin, text.at, length_of(text));
    all->count = begin + length_of(text);
}

void join_words(struct growing *all, size_t begin)
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

int64_t number_of(const struct writer *w, uint32_t node, int64_t name, int64_t otherwise)
{
    struct span text = said_of(w, node, name);
    if (text.at)
        text = stripped(text);
    int64_t number = 0;
    for (const uint8_t *at = text.at; at < text.end && at - text.at < MOST_DIGITS; at++) {
        if (!is_digit(*at))
            return otherwise;
        number = number * 10 + (*at - '0');
    }
    return text.at < text.end ? number : otherwise;
}

static void say_number(struct writer *w, int form, int64_t number)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%lld", (long long)number);
    say(w, form, digits);
}

/* -- blocks ------------------------------------------------------------------------------------ */

static void put_piece(struct writer *w, struct piece piece, struct span url, unsigned level);

/* Where the pieces end that were cut, and their nodes. */
struct cut {
    size_t pieces, nodes;
};

/* Cut the pieces in an element, or those that it is itself; returns where they begin. */
static struct cut cut_pieces(struct writer *w, uint32_t node, bool itself)
{
    struct pieces *all = w->cutter.all;
    struct cut begin = {all->pieces.count, w->cutter.run = all->nodes.count};
    if (!w->error && !(itself ? cut_node(&w->cutter, node) : cut_in(&w->cutter, node)))
        w->error = NO_MEMORY;
    return begin;
}

/* Forget the pieces from there on. */
static void forget(struct writer *w, struct cut begin)
{
    w->cutter.all->pieces.count = begin.pieces;
    w->cutter.all->nodes.count = begin.nodes;
}

/* What was written of pieces in a quote or an item: how many, the kind of the first, whether all
 * others are lists, and where both forms of the first end. */
struct parts {
    size_t count;
    uint32_t kind;
    bool has_lists_only;
    struct place end;
};

/* Write the pieces in an element, or those that it is itself. */
static struct parts put_parts(
    struct writer *w, uint32_t node, bool itself, bool in_item, unsigned level)
{
    struct cut first = cut_pieces(w, node, itself);
    struct parts parts = {.has_lists_only = true};
    size_t end = w->cutter.all->pieces.count;
    for (size_t i = first.pieces; !w->error && i < end; i++) {
        struct piece piece = *nth_piece(w->cutter.all, i);
        struct place before = here(w);
        bool is_close = in_item && piece.kind == LIST;
        say(w, TEXT, !parts.count ? "" : is_close ? "\n" : "\n\n");
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
    forget(w, first);
    return parts;
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
        say(w, TEXT, line.at < line.end ? "> " : ">");
        put(w, TEXT, line);
        if (text.at == text.end)
            return;
        say(w, TEXT, "\n");
        text.at++;
    }
}

static void put_quote(struct writer *w, uint32_t node, unsigned level)
{
    struct place begin = here(w);
    say(w, HTML, "<blockquote>");
    if (!put_parts(w, node, false, false, level + 1).count) {
        go_back(w, begin);
        return;
    }
    say(w, HTML, "</blockquote>");
    if (level < INDENTS)
        quote_lines(w, begin.at[TEXT]);
}

/* Write a mark of an item before what was written from there on, and so many spaces before its
 * other lines, but for empty ones: of several such lines in a row every other one. */
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
        say_number(w, TEXT, number);
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
    uint8_t *octets = w->forms[TEXT].items;
    for (size_t i = begin; letters < 'a' && i < w->forms[TEXT].count; i++)
        octets[i] -= is_letter(octets[i]) ? 'a' - 'A' : 0;
    say(w, TEXT, ". ");
}

/* Write the name of a list, or of an item. */
static void put_name(struct writer *w, uint32_t node, bool is_item)
{
    uint32_t name = node_at(w, node)->name;
    const int64_t *ends = w->known->ends;
    if (is_item && !(markup_of(w, node) & ITEM_TAG))
        say(w, HTML, "li");
    else if (name < w->known->names)
        put(w, HTML, (struct span){
            w->known->letters + (name ? ends[name - 1] : 0), w->known->letters + ends[name]});
}

static void put_attribute(struct writer *w, const char *name, int64_t number)
{
    say(w, HTML, name);
    say_number(w, HTML, number);
    say(w, HTML, "\"");
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
    say(w, HTML, "<");
    put_name(w, list, false);
    if (letter) {
        say(w, HTML, " type=\"");
        put(w, HTML, (struct span){&letter, &letter + 1});
        say(w, HTML, "\"");
    }
    if (start >= 0)
        put_attribute(w, " start=\"", start);
    say(w, HTML, said_of(w, list, w->known->reversed).at ? " reversed>" : ">");
}

/* Write an item, but for its mark; returns whether anything is in it. */
static bool put_item(
    struct writer *w, uint32_t item, uint8_t letter, int64_t number, unsigned level)
{
    struct place begin = here(w);
    bool is_list = kind_in(w->cutter.all, node_at(w, item)) == IS_LIST;
    int64_t value = number_of(w, item, w->known->value, -1);
    say(w, HTML, "<");
    put_name(w, item, true);
    if (value >= 0)
        put_attribute(w, " value=\"", value);
    say(w, HTML, ">");
    if (letter)
        put_label(w, letter, number);
    size_t inner = here(w).at[HTML];
    struct parts parts = {0};
    if (shows(w->cutter.all, item))
        parts = put_parts(w, item, is_list, true, level + 1);
    if (w->error || !parts.count) {
        go_back(w, begin);
        return false;
    }
    if (parts.kind == RUN && parts.has_lists_only) {
        /* It needs no tag of its own. */
        struct growing *html = &w->forms[HTML];
        struct span text = since(w, HTML, parts.end.at[HTML]);
        keep(html, parts.end.at[HTML] - strlen("</p>"), text);
        text = since(w, HTML, inner + strlen("<p>"));
        keep(html, inner, text);
    }
    say(w, HTML, "</");
    put_name(w, item, true);
    say(w, HTML, ">");
    struct span text = since(w, TEXT, begin.at[TEXT]);
    text.end = text.at + (parts.end.at[TEXT] - begin.at[TEXT]);
    if (node_at(w, item)->name == w->known->dt && !found_in(text, "**")) {
        insert(w, TEXT, parts.end.at[TEXT], spelled("**"));
        insert(w, TEXT, begin.at[TEXT], spelled("**"));
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
        say(w, TEXT, is_empty ? "" : "\n");
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
    say(w, HTML, "</");
    put_name(w, list, false);
    say(w, HTML, ">");
    if (is_empty)
        go_back(w, begin);
}

/* -- tables ------------------------------------------------------------------------------------ */

/* A row that is written: how many columns it has, and whether any has a text. By column, how many
 * of the next rows a cell above takes, too. */
struct row {
    size_t width;
    bool has_text;
    uint64_t taken[MOST_COLUMNS];
};

/* Begin a cell of a row; those behind the last column that is written are in HTML only. */
static void begin_cell(struct writer *w, struct row *row)
{
    if (row->width < MOST_COLUMNS)
        say(w, TEXT, row->width ? " | " : "| ");
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
    struct cut first = cut_pieces(w, cell, false);
    struct place begin = here(w);
    for (size_t i = first.pieces; !w->error && i < all->pieces.count; i++) {
        const struct piece *piece = nth_piece(all, i);
        struct place before = here(w);
        say(w, TEXT, " ");
        say(w, HTML, before.at[HTML] > begin.at[HTML] ? "<br>" : "");
        size_t html = here(w).at[HTML];
        put_run(w, (uint32_t *)all->nodes.items + piece->nodes, piece->nodes_end - piece->nodes);
        if (here(w).at[HTML] == html)
            w->forms[HTML].count = before.at[HTML];
    }
    forget(w, first);
    if (w->error)
        return;
    join_words(&w->forms[TEXT], begin.at[TEXT]);
    struct span text = since(w, TEXT, begin.at[TEXT]);
    if (!found_in(text, "|"))
        return;
    text = taken(w, TEXT, begin.at[TEXT]);
    for (const uint8_t *at; (at = found_in(text, "|")); text.at = at + 1) {
        put(w, TEXT, (struct span){text.at, at});
        say(w, TEXT, "\\|");
    }
    put(w, TEXT, text);
}

static void put_cell(struct writer *w, uint32_t cell, struct row *row)
{
    pass_over(w, row);
    int64_t span = smaller_int(number_of(w, cell, w->known->colspan, 1), MOST_COLUMNS);
    int64_t high = number_of(w, cell, w->known->rowspan, 1);
    high = larger_int(1, smaller_int(high, MOST_ROWS));
    const char *tag = tag_of(w, cell) == HEAD_CELL_TAG ? "th" : "td";
    for (size_t i = row->width; i < row->width + (size_t)span && i < MOST_COLUMNS; i++)
        row->taken[i] += (uint64_t)high - 1;
    say(w, HTML, "<");
    say(w, HTML, tag);
    if (span > 1)
        put_attribute(w, " colspan=\"", span);
    if (high > 1)
        put_attribute(w, " rowspan=\"", high);
    say(w, HTML, ">");
    bool is_shown = row->width < MOST_COLUMNS;
    begin_cell(w, row);
    size_t begin = here(w).at[TEXT];
    put_cell_text(w, cell);
    row->has_text |= here(w).at[TEXT] > begin;
    if (!is_shown)
        w->forms[TEXT].count = begin;
    for (int64_t i = 1; i < span; i++)
        begin_cell(w, row);
    say(w, HTML, "</");
    say(w, HTML, tag);
    say(w, HTML, ">");
}

static void put_row(struct writer *w, uint32_t node, struct row *row)
{
    row->width = 0;
    row->has_text = false;
    say(w, HTML, "<tr>");
    for (uint32_t cell = node + 1; !w->error && cell < node_at(w, node)->end;
         cell = node_at(w, cell)->end)
        if (is_element(w, cell))
            put_cell(w, cell, row);
    pass_over(w, row);
    say(w, TEXT, " |");
    say(w, HTML, "</tr>");
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
    say(w, HTML, "<caption>");
    struct place inner = here(w);
    put_run_in(w, at);
    if (here(w).at[TEXT] == inner.at[TEXT]) {
        go_back(w, begin);
        return;
    }
    say(w, TEXT, "\n\n");
    say(w, HTML, "</caption>");
}

static void put_table(struct writer *w, uint32_t table)
{
    struct place begin = here(w);
    struct row row = {0};
    say(w, HTML, "<table>");
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
            say(w, TEXT, rows ? "\n" : "");
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
    say(w, HTML, "</table>");
    /* The first row is the head: it has all columns. */
    w->verbatim.count = 0;
    for (size_t i = first; i < widest; i++)
        append(w, &w->verbatim, spelled("  |"));
    append(w, &w->verbatim, spelled("\n|"));
    for (size_t i = 0; i < widest; i++)
        append(w, &w->verbatim, spelled(" --- |"));
    insert(w, TEXT, end_of_first, octets_in(&w->verbatim));
}

/* -- pieces ------------------------------------------------------------------------------------ */

/* Return whether a line would be taken for the beginning of something else, but for a "\" behind its
 * first `digits`. */
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
    for (int i = 0; i < ITEM_DIGITS && rest.at < rest.end && kind_of(w, rest) & DIGIT; i++)
        rest.at += character_length(rest);
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
            insert(w, TEXT, begin + digits, spelled("\\"));
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
            say(w, TEXT, "\\");
            line.at += digits;
        }
        put(w, TEXT, line);
        if (w->error || text.at == text.end)
            return;
        say(w, TEXT, "  \n");
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
    static const char *const NAMES[] = {"p", "h1", "h2", "h3", "h4", "h5", "h6"};
    const char *name = NAMES[signs];
    put(w, TEXT, (struct span){SIGNS, SIGNS + signs});
    say(w, TEXT, is_heading ? " " : "");
    say(w, HTML, "<");
    say(w, HTML, name);
    say(w, HTML, ">");
    struct place inner = here(w);
    put_run(w, (const uint32_t *)nodes + piece.nodes, piece.nodes_end - piece.nodes);
    if (piece.link != NONE)
        url = url_of(w, piece.link, said_of(w, piece.link, w->known->href));
    put_link(w, inner, url);
    if (here(w).at[TEXT] == inner.at[TEXT]) {
        go_back(w, begin);
        return;
    }
    uint8_t *octets = w->forms[TEXT].items;
    for (size_t i = inner.at[TEXT]; is_heading && i < here(w).at[TEXT]; i++)
        octets[i] = octets[i] == '\n' ? ' ' : octets[i];
    if (!is_heading)
        put_lines_begun(w, inner.at[TEXT]);
    say(w, HTML, "</");
    say(w, HTML, name);
    say(w, HTML, ">");
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

/* Begin to write pieces of a tree, which are in document order, and find what is to be asked
 * before; to be given back to writer_drop. What is told must outlive the writer. */
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

/* Write the pieces with these answers. What is unknown then must be asked, and all written
 * again. */
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
        append_nul(w, &w->forms[TEXT]);
        append_nul(w, &w->forms[HTML]);
        append_number(w, &w->numbers, (uint32_t)i);
    }
    return w->error;
}

/* Tell where both forms are, the numbers of their pieces, the questions, the nodes that they are
 * about, and the blocks of characters that are not known, and their octets. */
EXPORTED void writer_columns(const struct writer *w, const void **columns, size_t *octets)
{
    const struct growing *each[] = {
        &w->forms[TEXT], &w->forms[HTML], &w->numbers, &w->questions, &w->asked, &w->unknown};
    for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
        columns[i] = each[i]->items;
        octets[i] = each[i]->count;
    }
}
