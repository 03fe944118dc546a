/* The pieces of a page, and the text of each: crawler/reduce/pieces.py. cutting.py cuts the same
 * ones in Python, and says what they are.
 *
 * Pages are made by strangers. Each step takes time and memory in proportion to the tree, whose
 * levels are bounded. No function recurses. */

#include "core.h"
#include "pieces.h"

/* Blocks of an item of a list, and characters of a cell of a table; beyond it is a layout. */
#define PARTS 6
#define LONGEST_CELL 1000
/* Characters of an item on the average; beyond it the list is one of comments or articles. */
#define LONGEST_ITEM 600
/* Digits of the number of the first line of code, and of another one. */
#define FIRST_DIGITS 6
#define MOST_DIGITS 18

EXPORTED void pieces_drop(struct pieces *all)
{
    if (!all)
        return;
    free(all->pieces.items);
    free(all->nodes.items);
    free(all->texts.items);
    free(all->begins.items);
    free(all);
}

/* -- characters -------------------------------------------------------------------------------- */

bool is_one_of(const uint8_t *at, size_t octets, struct span word)
{
    const uint8_t *end = at + octets;
    while (at < end) {
        const uint8_t *own = word.at;
        while (own < word.end && at < end && *at != '\n'
               && (*own >= 'A' && *own <= 'Z' ? *own | 0x20 : *own) == *at) {
            own++;
            at++;
        }
        if (own == word.end && (at == end || *at == '\n'))
            return true;
        while (at < end && *at != '\n')
            at++;
        at++;
    }
    return false;
}

size_t decoded(struct span text, uint32_t *code)
{
    const uint8_t *at = text.at;
    size_t length = at[0] < 0xE0 ? 2 : at[0] < 0xF0 ? 3 : 4;
    if (length > (size_t)(text.end - at))
        length = (size_t)(text.end - at);
    *code = at[0] & (0xFF >> (length + 1));
    for (size_t i = 1; i < length; i++)
        *code = *code << 6 | (at[i] & 0x3F);
    return length;
}

/* -- texts ------------------------------------------------------------------------------------- */

/* A text that grows, in which each run of white space is one space, with none at the ends. */
struct line {
    const struct pieces *all;
    struct growing *into;
    /* The blocks of characters that are met. */
    uint8_t *blocks;
    size_t begin;
    bool after_space;
    /* Where elements end whose words do not join those beside them, the innermost last. */
    struct growing *ends;
};

static bool add_words(struct line *line, struct span text)
{
    struct growing *into = line->into;
    if (!make_room(into, (size_t)(text.end - text.at) + 1, 1))
        return false;
    uint8_t *octets = into->items, *to = octets + into->count;
    while (text.at < text.end) {
        size_t blank = space(text);
        if (blank) {
            line->after_space = true;
            text.at += blank;
            continue;
        }
        if (line->after_space && to > octets + line->begin)
            *to++ = ' ';
        line->after_space = false;
        do {
            size_t length = 1;
            if (*text.at >= 0x80) {
                uint32_t code;
                length = decoded(text, &code);
                line->blocks[code >> 8 < BLOCKS ? code >> 8 : 0] = 1;
            }
            while (length--)
                *to++ = *text.at++;
            uint8_t *begin = to;
            to = copy_plain(to, &text);
            line->after_space = to > begin && to[-1] == ' ';
            to -= line->after_space;
            while (!line->after_space && text.at < text.end && *text.at > ' ' && *text.at < 0x80)
                *to++ = *text.at++;
        } while (!line->after_space && text.at < text.end && !space(text));
    }
    into->count = (size_t)(to - octets);
    return true;
}

/* Begin a word where an element has ended that stands apart. */
static void pass_ends(struct line *line, uint32_t at)
{
    const uint32_t *ends = line->ends->items;
    for (; line->ends->count && ends[line->ends->count - 1] <= at; line->ends->count--)
        line->after_space |= ends[line->ends->count - 1] == at;
}

/* Add what stands in a node, but in none of these places. */
static bool add_node(struct line *line, uint32_t top, int64_t without)
{
    const struct node *nodes = line->all->tree.nodes;
    const struct elements *elements = line->all->elements;
    for (uint32_t at = top, end = nodes[top].end; at < end;) {
        const struct node *node = nodes + at;
        pass_ends(line, at);
        if (node->place & without) {
            at = node->end;
            continue;
        }
        if (!node->name) {
            if (!add_words(line, text_in(&line->all->tree, node)))
                return false;
        } else if (node->trait & elements->apart) {
            line->after_space = true;
            if (!make_room(line->ends, 1, sizeof node->end))
                return false;
            ((uint32_t *)line->ends->items)[line->ends->count++] = node->end;
        } else if ((node->trait | node->holds) & elements->block || node->name == elements->br) {
            line->after_space = true;
        }
        at++;
    }
    return true;
}

/* Add the text of a piece, but for what stands in none of these places. */
static bool read_text(struct line *line, size_t number, int64_t without)
{
    const struct piece *piece = nth_piece(line->all, number);
    const uint32_t *nodes = line->all->nodes.items;
    bool done = true;
    line->begin = line->into->count;
    line->after_space = false;
    line->ends->count = 0;
    /* A heading is read with its controls: it may be a button that opens what follows. */
    if (piece->kind >= HEADING)
        without &= ~line->all->elements->in_control;
    for (uint32_t k = piece->nodes; done && k < piece->nodes_end; k++)
        done = add_node(line, nodes[k], without);
    return done && add(line->into, "\n", 1);
}

bool add_seen_text(const struct pieces *all, size_t number, struct growing *into)
{
    uint8_t blocks[BLOCKS];
    struct growing ends = {0};
    struct line line = {.all = all, .into = into, .blocks = blocks, .ends = &ends};
    bool done = read_text(&line, number, all->elements->unseen);
    free(ends.items);
    return done;
}

static bool read_texts(struct pieces *all)
{
    if (!make_room(&all->begins, all->pieces.count + 1, sizeof(size_t)))
        return false;
    size_t *begins = all->begins.items;
    struct growing ends = {0};
    struct line line = {.all = all, .into = &all->texts, .blocks = all->blocks, .ends = &ends};
    bool done = true;
    for (size_t i = 0; done && i < all->pieces.count; i++) {
        begins[i] = all->texts.count;
        done = read_text(&line, i, all->elements->unseen | all->elements->in_control);
    }
    free(ends.items);
    begins[all->pieces.count] = all->texts.count;
    all->begins.count = all->pieces.count + 1;
    return done;
}

/* -- cutting ----------------------------------------------------------------------------------- */

int64_t kind_in(const struct pieces *all, const struct node *node)
{
    return node->name < (uint64_t)all->elements->names ? all->elements->kinds[node->name]
                                                       : IS_NOTHING;
}

static bool is_seen(const struct pieces *all, uint32_t node)
{
    return !(all->tree.nodes[node].place & all->elements->unseen);
}

bool shows(const struct pieces *all, uint32_t node)
{
    const struct node *row = all->tree.nodes + node;
    return row->chars || (row->trait | row->holds) & all->elements->image
        || row->holds & all->elements->control;
}

static bool is_block(const struct pieces *all, uint32_t node)
{
    const struct node *row = all->tree.nodes + node;
    return (row->trait | row->holds) & all->elements->block;
}

/* Return whether a node is a control, or has nothing else in it. */
static bool is_control(const struct pieces *all, uint32_t top)
{
    const struct node *nodes = all->tree.nodes;
    for (uint32_t at = top, end = nodes[top].end; at < end;) {
        bool counts = at == top || (is_seen(all, at) && shows(all, at));
        if (!counts || nodes[at].place & all->elements->in_control) {
            at = nodes[at].end;
            continue;
        }
        if (!nodes[at].name || nodes[at].end == at + 1 || nodes[at].trait & all->elements->image)
            return false;
        at++;
    }
    return true;
}

/* Return whether a piece is only controls, or stands in one. */
static bool are_controls(const struct pieces *all, const struct piece *piece)
{
    const uint32_t *nodes = all->nodes.items;
    if (all->tree.nodes[piece->holder].place & all->elements->in_control)
        return true;
    bool acts = piece->kind == RUN || piece->kind == LIST;
    for (uint32_t i = piece->nodes; i < piece->nodes_end && acts; i++)
        acts = !shows(all, nodes[i]) || is_control(all, nodes[i]);
    return acts;
}

struct span attribute_of(const struct pieces *all, uint32_t node, int64_t name)
{
    const struct node *row = all->tree.nodes + node;
    for (uint32_t i = row->said; i < row->said_end; i++)
        if (all->tree.said[i].name == name)
            return value_in(&all->tree, all->tree.said + i);
    return (struct span){NULL, NULL};
}

/* Return whether a list is one to a reader: its items are no parts of the page's layout. */
static bool is_list(const struct pieces *all, uint32_t list)
{
    const struct node *nodes = all->tree.nodes;
    uint64_t items = 0;
    for (uint32_t item = list + 1; item < nodes[list].end; item = nodes[item].end) {
        if (!nodes[item].name || !is_seen(all, item))
            continue;
        items++;
        uint32_t parts = 0;
        for (uint32_t part = item + 1; part < nodes[item].end; part = nodes[part].end)
            parts += is_seen(all, part) && is_block(all, part);
        if (parts > PARTS)
            return false;
    }
    return nodes[list].chars <= LONGEST_ITEM * items;
}

/* Return whether a table holds data: rows and columns of short cells. */
static bool is_table(const struct pieces *all, uint32_t table)
{
    static const char LAYOUT[] = "presentation";
    const struct node *nodes = all->tree.nodes;
    struct span role = attribute_of(all, table, all->elements->role);
    if (role.at && role.end - role.at == sizeof LAYOUT - 1
        && !memcmp(role.at, LAYOUT, sizeof LAYOUT - 1))
        return false;
    uint32_t rows = 0, widest = 0, longest = 0;
    for (uint32_t at = table + 1; at < nodes[table].end;) {
        int64_t kind = kind_in(all, nodes + at);
        if (is_seen(all, at) && kind == IS_ROWS) {
            at++;
            continue;
        }
        uint32_t cells = 0;
        for (uint32_t cell = at + 1; kind == IS_ROW && cell < nodes[at].end;
             cell = nodes[cell].end) {
            if (!is_seen(all, at) || !nodes[cell].name || !is_seen(all, cell))
                continue;
            cells++;
            longest = longest < nodes[cell].chars ? nodes[cell].chars : longest;
        }
        rows += kind == IS_ROW && is_seen(all, at);
        widest = widest < cells ? cells : widest;
        at = nodes[at].end;
    }
    return rows > 1 && widest > 1 && longest <= LONGEST_CELL;
}

static bool is_table_whole(const struct pieces *all, uint32_t table)
{
    int64_t layout = all->elements->large | all->elements->table;
    return !(all->tree.nodes[table].holds & layout) && is_table(all, table);
}

/* Return whether a block of that kind is one piece, and no part of the page's layout. */
static bool is_whole(const struct pieces *all, uint32_t node, int64_t kind)
{
    const struct node *nodes = all->tree.nodes;
    if (kind >= IS_HEADING || kind == IS_CODE || kind == IS_LINES)
        return true;
    if (kind == IS_TABLE)
        return is_table_whole(all, node);
    if (nodes[node].holds & all->elements->large
        || !(kind == IS_QUOTE || (kind == IS_LIST && is_list(all, node))))
        return false;
    if (nodes[node].holds & all->elements->table)
        for (uint32_t at = node + 1; at < nodes[node].end; at++)
            if (kind_in(all, nodes + at) == IS_TABLE && !is_table_whole(all, at))
                return false;
    return true;
}

/* Return whether verbatim text is only the numbers of another block's lines. */
static bool counts_lines(struct cutter *cutter, uint32_t node)
{
    const struct node *row = cutter->all->tree.nodes + node;
    struct span text = text_in(&cutter->all->tree, row), word;
    uint64_t first = 0, count = 0;
    for (; pass_word(&text, &word); count++) {
        uint64_t number = 0;
        size_t digits = (size_t)(word.end - word.at);
        for (const uint8_t *at = word.at; at < word.end; at++) {
            if (*at < '0' || *at > '9' || digits > MOST_DIGITS)
                return false;
            number = number * 10 + (uint64_t)(*at - '0');
        }
        if (digits > 1 && *word.at == '0')
            return false;
        first = count ? first : number;
        if (number != first + count || (!count && digits > FIRST_DIGITS))
            return false;
    }
    return count > 1;
}

/* Make the next nodes up to an end a piece. */
static bool add_piece(
    struct cutter *cutter, uint32_t kind, uint32_t holder, uint32_t link, size_t end)
{
    struct pieces *all = cutter->all;
    struct piece piece = {
        .kind = kind, .holder = holder, .link = link, .nodes = (uint32_t)cutter->run,
        .nodes_end = (uint32_t)end,
    };
    piece.is_control = are_controls(all, &piece);
    cutter->run = end;
    if (!make_room(&all->pieces, 1, sizeof piece))
        return false;
    ((struct piece *)all->pieces.items)[all->pieces.count++] = piece;
    return true;
}

static bool add_to_run(struct cutter *cutter, uint32_t node)
{
    struct growing *nodes = &cutter->all->nodes;
    if (!make_room(nodes, 1, sizeof node))
        return false;
    ((uint32_t *)nodes->items)[nodes->count++] = node;
    return true;
}

static bool is_button(const struct pieces *all, uint32_t node)
{
    const struct node *row = all->tree.nodes + node;
    return (row->trait | row->holds) & all->elements->button;
}

/* Make the nodes that are no piece yet one, if they show anything. If they are nothing but controls,
 * make one of each button, and of the fields and labels between two of them. */
static bool end_run(struct cutter *cutter, const struct cut_block *level)
{
    const struct pieces *all = cutter->all;
    uint32_t *nodes = all->nodes.items;
    bool shown = false, acts = false, are_all = true;
    for (size_t i = cutter->run; i < all->nodes.count; i++) {
        const struct node *row = all->tree.nodes + nodes[i];
        acts |= ((row->trait | row->holds) & all->elements->control) != 0;
        if (shows(all, nodes[i])) {
            shown = true;
            are_all = are_all && is_control(all, nodes[i]);
        }
    }
    if (shown && !(acts && are_all))
        return add_piece(cutter, RUN, level->holder, level->link, all->nodes.count);
    size_t end = cutter->run;
    for (size_t i = cutter->run; i < all->nodes.count; i++)
        if (shows(all, nodes[i]))
            nodes[end++] = nodes[i];
    cutter->all->nodes.count = end;
    while (cutter->run < end) {
        size_t next = cutter->run + 1;
        if (!is_button(all, nodes[cutter->run]))
            while (next < end && !is_button(all, nodes[next]))
                next++;
        if (!add_piece(cutter, RUN, level->holder, level->link, next))
            return false;
    }
    return true;
}

/* Return whether a node is a line break after another one: they part paragraphs. */
static bool breaks_twice(const struct cutter *cutter, uint32_t node)
{
    const struct pieces *all = cutter->all;
    const uint32_t *run = all->nodes.items;
    if (all->tree.nodes[node].name != all->elements->br)
        return false;
    for (size_t i = all->nodes.count; i > cutter->run; i--) {
        const struct node *last = all->tree.nodes + run[i - 1];
        if (last->name || last->chars)
            return last->name == all->elements->br;
    }
    return false;
}

static bool open_block(struct cutter *cutter, uint32_t node, uint32_t link)
{
    const struct pieces *all = cutter->all;
    const struct node *row = all->tree.nodes + node;
    if (row->name == all->elements->a) {
        struct span href = attribute_of(all, node, all->elements->href);
        link = href.at < href.end ? node : link;
    }
    struct cut_block level = {node, row->end, link};
    if (!make_room(&cutter->levels, 1, sizeof level))
        return false;
    ((struct cut_block *)cutter->levels.items)[cutter->levels.count++] = level;
    return true;
}

/* Return the kind of the piece that a block of that kind is. */
static uint32_t piece_of(int64_t kind)
{
    return kind >= IS_HEADING ? HEADING + (uint32_t)(kind - IS_HEADING)
        : kind == IS_LINES ? RUN
        : QUOTE + (uint32_t)(kind - IS_QUOTE);
}

/* Cut what stands in the open block, from a node on. */
static bool cut(struct cutter *cutter, uint32_t at)
{
    struct pieces *all = cutter->all;
    while (cutter->levels.count) {
        struct cut_block level = ((struct cut_block *)cutter->levels.items)[cutter->levels.count - 1];
        if (at >= level.end) {
            cutter->levels.count--;
            if (!end_run(cutter, &level))
                return false;
            continue;
        }
        uint32_t node = at;
        at = all->tree.nodes[node].end;
        if (!is_seen(all, node))
            continue;
        bool parts = is_block(all, node);
        if (!parts && !breaks_twice(cutter, node)) {
            if (!add_to_run(cutter, node))
                return false;
            continue;
        }
        if (!end_run(cutter, &level))
            return false;
        if (!parts || !shows(all, node))
            continue;
        int64_t kind = kind_in(all, all->tree.nodes + node);
        if (!is_whole(all, node, kind)) {
            if (!open_block(cutter, node, level.link))
                return false;
            at = node + 1;
        } else if (kind != IS_CODE || !counts_lines(cutter, node)) {
            if (!add_to_run(cutter, node)
                || !add_piece(cutter, piece_of(kind), node, level.link, all->nodes.count))
                return false;
        }
    }
    return true;
}

bool cut_in(struct cutter *cutter, uint32_t node)
{
    return open_block(cutter, node, NONE) && cut(cutter, node + 1);
}

bool cut_node(struct cutter *cutter, uint32_t node)
{
    struct cut_block level = {cutter->all->top, cutter->all->tree.nodes[node].end, NONE};
    if (!make_room(&cutter->levels, 1, sizeof level))
        return false;
    ((struct cut_block *)cutter->levels.items)[cutter->levels.count++] = level;
    return cut(cutter, node);
}

/* -- a page ------------------------------------------------------------------------------------ */

bool is_tree(const struct columns *tree)
{
    for (size_t i = 0; i < tree->node_count; i++) {
        const struct node *node = tree->nodes + i;
        if (node->end <= i || node->end > tree->node_count
            || (i ? node->parent >= i || node->end > tree->nodes[node->parent].end : node->parent)
            || node->said > node->said_end || node->said_end > tree->said_count
            || node->text > node->text_end || node->text_end > tree->text_length)
            return false;
    }
    for (size_t i = 0; i < tree->said_count; i++)
        if (tree->said[i].value > tree->said[i].value_end
            || tree->said[i].value_end > tree->values_length)
            return false;
    return tree->node_count > 0;
}

bool are_pieces_in(
    const struct columns *tree, uint32_t top, const struct piece *pieces, size_t count,
    const uint32_t *nodes, size_t node_count)
{
    if (!is_tree(tree) || top >= tree->node_count)
        return false;
    for (size_t i = 0; i < count; i++)
        if (pieces[i].kind >= KINDS || pieces[i].holder >= tree->node_count
            || pieces[i].nodes > pieces[i].nodes_end || pieces[i].nodes_end > node_count)
            return false;
    for (size_t i = 0; i < node_count; i++)
        if (nodes[i] >= tree->node_count)
            return false;
    return true;
}

struct pieces *pieces_in(
    const struct elements *elements, const struct columns *tree, uint32_t top)
{
    struct pieces *all = calloc(1, sizeof *all);
    if (!all)
        return NULL;
    all->elements = elements;
    all->tree = *tree;
    all->top = top;
    return all;
}

static int64_t made_or_dropped(struct pieces *all, bool done, struct pieces **made)
{
    if (!done) {
        pieces_drop(all);
        return NO_MEMORY;
    }
    *made = all;
    return 0;
}

int64_t pieces_of(
    const struct elements *elements, const struct columns *tree, uint32_t top, struct pieces **made)
{
    struct pieces *all = pieces_in(elements, tree, top);
    struct cutter cutter = {.all = all};
    bool done = all && cut_in(&cutter, top) && read_texts(all);
    free(cutter.levels.items);
    return made_or_dropped(all, done, made);
}

/* Cut an element of a tree into pieces, to be given back to pieces_drop. The tree must outlive
 * them. */
EXPORTED int64_t pieces_cut(
    const struct elements *elements, const struct columns *tree, uint32_t top,
    struct pieces **made)
{
    *made = NULL;
    if (!is_tree(tree) || top >= tree->node_count)
        return WRONG_INDEX;
    return pieces_of(elements, tree, top, made);
}

/* Take pieces that were cut elsewhere, as pieces_cut. */
EXPORTED int64_t pieces_given(
    const struct elements *elements, const struct columns *tree, uint32_t top,
    const struct piece *pieces, size_t count, const uint32_t *nodes, size_t node_count,
    struct pieces **made)
{
    *made = NULL;
    if (!are_pieces_in(tree, top, pieces, count, nodes, node_count))
        return WRONG_INDEX;
    struct pieces *all = pieces_in(elements, tree, top);
    bool done = all && make_room(&all->pieces, count, sizeof *pieces)
        && make_room(&all->nodes, node_count, sizeof *nodes);
    if (done) {
        if (count)
            memcpy(all->pieces.items, pieces, count * sizeof *pieces);
        if (node_count)
            memcpy(all->nodes.items, nodes, node_count * sizeof *nodes);
        all->pieces.count = count;
        all->nodes.count = node_count;
        for (size_t i = 0; i < count; i++) {
            struct piece *piece = (struct piece *)all->pieces.items + i;
            piece->is_control = are_controls(all, piece);
        }
        done = read_texts(all);
    }
    return made_or_dropped(all, done, made);
}

/* Take the pieces of these numbers, as pieces_cut. */
EXPORTED int64_t pieces_only(
    const struct pieces *all, const uint32_t *numbers, size_t count, struct pieces **made)
{
    *made = NULL;
    for (size_t i = 0; i < count; i++)
        if (numbers[i] >= all->pieces.count)
            return WRONG_INDEX;
    struct pieces *some = pieces_in(all->elements, &all->tree, all->top);
    bool done = some && make_room(&some->pieces, count, sizeof(struct piece))
        && make_room(&some->begins, count + 1, sizeof(size_t))
        && make_room(&some->nodes, all->nodes.count, sizeof(uint32_t));
    if (done) {
        memcpy(some->blocks, all->blocks, sizeof all->blocks);
        if (all->nodes.count)
            memcpy(some->nodes.items, all->nodes.items, all->nodes.count * sizeof(uint32_t));
        some->nodes.count = all->nodes.count;
    }
    for (size_t i = 0; done && i < count; i++) {
        struct span text = nth_text(all, numbers[i]);
        ((size_t *)some->begins.items)[i] = some->texts.count;
        ((struct piece *)some->pieces.items)[i] = *nth_piece(all, numbers[i]);
        /* With the "\n" behind it. */
        done = add(&some->texts, text.at, (size_t)(text.end - text.at) + 1);
    }
    if (done) {
        ((size_t *)some->begins.items)[count] = some->texts.count;
        some->pieces.count = count;
        some->begins.count = count + 1;
    }
    return made_or_dropped(some, done, made);
}

/* Tell where the pieces are, and their octets. */
EXPORTED void pieces_rows(const struct pieces *all, const void **columns, size_t *octets)
{
    columns[0] = all->pieces.items;
    octets[0] = all->pieces.count * sizeof(struct piece);
}

/* Tell where the texts of the pieces are, and their nodes, and their octets. */
EXPORTED void pieces_columns(const struct pieces *all, const void **columns, size_t *octets)
{
    columns[0] = all->texts.items;
    octets[0] = all->texts.count;
    columns[1] = all->nodes.items;
    octets[1] = all->nodes.count * sizeof(uint32_t);
}
