/* A page is read in one call: its tree, head, links, content, the blocks that are compared, and their
 * sketch. See crawler/reduce/native.py.
 *
 * Each step is one that Python can take by itself, too, as it does for the pages of sites with
 * selectors. What only Python knows it is asked, all that a step needs at once. */

#include "blocks.h"
#include "content.h"
#include "core.h"
#include "pieces.h"
#include "targets.h"
#include "tree.h"

/* What page_made returns beside what the steps do: Python failed to answer; readers see another page,
 * which Python makes; judging the pieces takes too long. */
#define NOT_ANSWERED -6
#define SHOWN_OTHERWISE -7
#define TOO_MANY_PIECES -8

/* What Python is asked about, in the order in which it has the answers. */
enum {
    ABOUT_BASE, ABOUT_LINKS, ABOUT_CHARACTERS, ABOUT_NAMES, ABOUT_TITLE, ABOUT_CONTROLS,
    ABOUT_MOMENTS, ABOUT_STAMPS, ABOUT_PLACES, ABOUT_CLASSES, ABOUT_LETTERS,
};

/* The columns that are told of a page. */
enum { HEAD, URLS, FETCHED, RELATIONS, ANCHORS, TEXTS, KINDS_OF_BLOCKS, PLACES, SKETCH, TOLD };

#define PERMUTATIONS 128
/* Octets of the digest of a text, and of a block's. */
#define TEXT_DIGEST 16
#define BLOCK_DIGEST 8

struct reading {
    const struct reader *reader;
    struct tree *tree;
    struct columns columns;
    struct pieces *pieces, *some;
    struct content *content;
    struct choice *choice;
    struct blocks *blocks;
    struct targets *targets;
    /* The body, or the root of a document that has none. */
    uint32_t body;
    /* What Python has answered last; what it was asked; where the base is. */
    struct growing answer, question, base;
    /* The title in the head; elements whose moment stands in place of their text. */
    struct growing title, moments;
    struct growing chosen, told[TOLD];
    bool is_cut;
};

/* What Python tells of how pages are read: what is known beforehand; lines of relations that lead to
 * pages, of parameters that say nothing, and of pragmas and relations that the head is read for; how
 * words are hashed; keys of URLs; the place of a body; numbers of names and bits; what answers. */
struct reader {
    const struct vocabulary *vocabulary;
    const struct elements *elements;
    const struct wording *wording;
    const struct trees *trees;
    const uint8_t *classes;
    const uint32_t *factors, *summands;
    const uint8_t *navigable, *tracking, *page_types, *pragmas, *relations;
    size_t navigable_length, tracking_length, page_types_length, pragmas_length, relations_length;
    size_t slice;
    double seconds;
    uint64_t key[2], root;
    uint32_t options, version;
    uint32_t base, body, link, meta, title, time, href, content, pragma, name, rel, type;
    uint32_t datetime, lang, xml_lang, label;
    uint32_t anchor, page_head, drawing, noscript;
    int64_t (*ask)(int64_t about, const void *question, size_t length, struct reading *page);
};

static void drop_steps(struct reading *page)
{
    choice_drop(page->choice);
    content_drop(page->content);
    if (page->some != page->pieces)
        pieces_drop(page->some);
    pieces_drop(page->pieces);
    blocks_drop(page->blocks);
    targets_drop(page->targets);
    page->choice = NULL;
    page->content = NULL;
    page->pieces = page->some = NULL;
    page->blocks = NULL;
    page->targets = NULL;
    struct growing *all[]
        = {&page->answer, &page->question, &page->base, &page->title, &page->moments};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        free(all[i]->items);
        *all[i] = (struct growing){0};
    }
}

EXPORTED void page_drop(struct reading *page)
{
    if (!page)
        return;
    drop_steps(page);
    tree_drop(page->tree);
    free(page->chosen.items);
    for (size_t i = 0; i < TOLD; i++)
        free(page->told[i].items);
    free(page);
}

/* -- questions --------------------------------------------------------------------------------- */

/* Take what Python answers. */
EXPORTED bool page_answered(struct reading *page, const uint8_t *octets, size_t length)
{
    page->answer.count = 0;
    return add(&page->answer, octets, length);
}

/* Ask Python; returns 0 or a failure. */
static int64_t ask(struct reading *page, int64_t about, const void *question, size_t length)
{
    page->answer.count = 0;
    return page->reader->ask(about, question, length, page);
}

/* Ask about what was written as a question. */
static int64_t ask_written(struct reading *page, int64_t about)
{
    return ask(page, about, page->question.items, page->question.count);
}

static bool write(struct growing *all, struct span text)
{
    return add(all, text.at, (size_t)(text.end - text.at)) && add(all, "", 1);
}

static struct span spelled(const char *text)
{
    const uint8_t *at = (const uint8_t *)text;
    return (struct span){at, at + strlen(text)};
}

/* Return where the octets of an array are, which may be none. */
static const uint8_t *at_of(const struct growing *all)
{
    return all->items ? all->items : (const uint8_t *)"";
}

static struct span lines_in(const uint8_t *octets, size_t length)
{
    return (struct span){octets, octets + length};
}

/* -- the tree ---------------------------------------------------------------------------------- */

static const struct node *node_at(const struct reading *page, uint32_t number)
{
    return page->columns.nodes + number;
}

static struct span value_of(const struct reading *page, uint32_t number, uint32_t name)
{
    const struct node *node = node_at(page, number);
    for (uint32_t i = node->said; i < node->said_end; i++)
        if (page->columns.said[i].name == name)
            return value_in(&page->columns, page->columns.said + i);
    return (struct span){NULL, NULL};
}

static struct columns columns_in(const struct tree *tree)
{
    return (struct columns){
        .nodes = tree->nodes.items, .said = tree->said.items, .text = at_of(&tree->text),
        .values = at_of(&tree->values), .node_count = tree->nodes.count,
        .said_count = tree->said.count, .text_length = tree->text.count,
        .values_length = tree->values.count,
    };
}

/* Return whether Cloudflare hides addresses in a page, or it may have shadow roots. */
static bool is_shown_otherwise(const struct reading *page)
{
    static const char HIDDEN[] = "/cdn-cgi/l/email-protection";
    if (tree_names(page->tree, "data-cfemail") || tree_names(page->tree, "shadowrootmode"))
        return true;
    const uint8_t *at = page->columns.values, *end = at + page->columns.values_length;
    while ((size_t)(end - at) >= sizeof HIDDEN - 1) {
        at = memchr(at, '/', (size_t)(end - at) - (sizeof HIDDEN - 2));
        if (!at)
            return false;
        if (!memcmp(at, HIDDEN, sizeof HIDDEN - 1))
            return true;
        at++;
    }
    return false;
}

/* -- the head ---------------------------------------------------------------------------------- */

static bool is_plain(struct span text)
{
    uint8_t all = 0;
    for (; text.at < text.end; text.at++)
        all |= *text.at;
    return all < 0x80;
}

/* Return whether a text may be one of some lines: Python makes other letters small. */
static bool may_be_one_of(struct span lines, struct span text)
{
    if (text.at == text.end)
        return false;
    text = stripped(text);
    return !is_plain(text)
        || (text.at < text.end && is_one_of(lines.at, (size_t)(lines.end - lines.at), text));
}

static bool has_relation(struct span lines, struct span text)
{
    if (!is_plain(text))
        return true;
    for (struct span word; pass_word(&text, &word);)
        if (is_one_of(lines.at, (size_t)(lines.end - lines.at), word))
            return true;
    return false;
}

/* Add a row of the head: what it is, and three texts. */
static bool add_said(
    struct reading *page, const char *what, struct span first, struct span second, struct span third)
{
    struct growing *head = page->told + HEAD;
    return write(head, spelled(what)) && write(head, first) && write(head, second)
        && write(head, third);
}

/* Write a text with white space collapsed. */
static bool write_collapsed(struct growing *into, struct span text)
{
    into->count = 0;
    bool done = true;
    for (struct span word; done && pass_word(&text, &word);)
        done = (!into->count || add(into, " ", 1))
            && add(into, word.at, (size_t)(word.end - word.at));
    return done;
}

static struct span octets_of(const struct growing *all)
{
    return lines_in(at_of(all), all->count);
}

/* What was met in the head. */
struct met {
    bool title, own_title, base;
};

static bool read_title(struct reading *page, uint32_t number, struct met *met)
{
    const struct node *node = node_at(page, number);
    struct span none = {0};
    if (!met->own_title && node->place & page->reader->page_head) {
        met->own_title = true;
        if (!write_collapsed(&page->title, text_in(&page->columns, node)))
            return false;
    }
    if (met->title || node->place & page->reader->drawing)
        return true;
    if (!write_collapsed(&page->question, text_in(&page->columns, node)))
        return false;
    met->title = page->question.count > 0;
    return !met->title || add_said(page, "title", octets_of(&page->question), none, none);
}

/* Note what an element says of the page; returns 0 or a failure. */
static int64_t read_said(struct reading *page, uint32_t number, struct span robots, struct met *met)
{
    const struct reader *reader = page->reader;
    uint32_t name = node_at(page, number)->name;
    bool done = true;
    if (name == reader->title) {
        done = read_title(page, number, met);
    } else if (name == reader->meta) {
        struct span content = value_of(page, number, reader->content);
        struct span pragma = value_of(page, number, reader->pragma);
        struct span called = value_of(page, number, reader->name);
        bool is_other = node_at(page, number)->place & reader->noscript;
        if (content.at
            && (may_be_one_of(lines_in(reader->pragmas, reader->pragmas_length), pragma)
                || may_be_one_of(robots, called)))
            done = add_said(page, is_other ? "noscript" : "meta", pragma, called, content);
    } else if (name == reader->link) {
        struct span href = value_of(page, number, reader->href);
        struct span rel = value_of(page, number, reader->rel);
        if (href.at && has_relation(lines_in(reader->relations, reader->relations_length), rel))
            done = add_said(page, "link", rel, value_of(page, number, reader->type), href);
    } else if (name == reader->base && !met->base) {
        struct span href = value_of(page, number, reader->href);
        met->base = href.at;
        if (href.at < href.end) {
            int64_t failure = ask(page, ABOUT_BASE, href.at, (size_t)(href.end - href.at));
            if (failure)
                return failure;
            page->base.count = 0;
            done = add(&page->base, page->answer.items, page->answer.count);
        }
    } else if (name == reader->time) {
        struct span moment = value_of(page, number, reader->datetime);
        done = moment.at == moment.end || add(&page->moments, &number, sizeof number);
    }
    return done ? 0 : NO_MEMORY;
}

static int64_t read_head(struct reading *page, struct span robots)
{
    const struct reader *reader = page->reader;
    struct span none = {0}, language = value_of(page, 0, reader->lang);
    struct met met = {0};
    bool has_body = false;
    if (language.at == language.end)
        language = value_of(page, 0, reader->xml_lang);
    if (language.at < language.end && !add_said(page, "lang", language, none, none))
        return NO_MEMORY;
    for (uint32_t i = 0; i < page->columns.node_count; i++) {
        uint32_t name = node_at(page, i)->name;
        if (name == reader->body && !has_body) {
            has_body = true;
            page->body = i;
        }
        int64_t failure = read_said(page, i, robots, &met);
        if (failure)
            return failure;
    }
    return 0;
}

/* -- links ------------------------------------------------------------------------------------- */

/* Find the four parts of the base, each with a NUL behind it. */
static bool find_base(const struct reading *page, const char *parts[4])
{
    const char *at = page->base.items, *end = at ? at + page->base.count : at;
    for (size_t i = 0; i < 4; i++) {
        const char *stop = at < end ? memchr(at, 0, (size_t)(end - at)) : NULL;
        if (!stop)
            return false;
        parts[i] = at;
        at = stop + 1;
    }
    return true;
}

/* Go past the next of lines with a "\n" behind each. */
static struct span next_line(struct span *text)
{
    struct span line = {text->at, text->at};
    const uint8_t *stop
        = text->at < text->end ? memchr(text->at, '\n', (size_t)(text->end - text->at)) : NULL;
    line.end = stop ? stop : text->end;
    text->at = stop ? stop + 1 : text->end;
    return line;
}

/* Ask where links lead: what each is, its reference and relations, its type, and what it is called. */
static int64_t ask_links(struct reading *page)
{
    const struct reader *reader = page->reader;
    const struct tree *tree = page->tree;
    const void *column;
    size_t octets;
    targets_asked(page->targets, &column, &octets);
    const uint32_t *asked = column, *links = tree->links.items;
    size_t count = octets / sizeof *asked, next = 0;
    page->question.count = page->answer.count = 0;
    if (!count)
        return 0;
    struct span references = octets_of(&tree->references), relations = octets_of(&tree->relations);
    struct span anchors = octets_of(&tree->anchors), none = {0};
    bool done = true;
    for (uint32_t i = 0; done && next < count; i++) {
        struct span reference = next_line(&references), said = next_line(&relations);
        struct span anchor = next_line(&anchors);
        if (i != asked[next])
            continue;
        next++;
        const struct node *node = node_at(page, links[i]);
        bool is_anchor = node->trait & reader->anchor, is_link = node->name == reader->link;
        struct growing *to = &page->question;
        done = write(to, spelled(is_link ? "link" : is_anchor ? "anchor" : ""))
            && write(to, reference) && write(to, is_link || is_anchor ? said : none)
            && write(to, is_link ? value_of(page, links[i], reader->type) : none)
            && write(to, is_anchor ? anchor : value_of(page, links[i], reader->label));
    }
    return done ? ask_written(page, ABOUT_LINKS) : NO_MEMORY;
}

/* Return what an element is that leads elsewhere and is no anchor. */
static uint8_t kind_of(const struct reading *page, uint32_t number)
{
    const struct reader *reader = page->reader;
    if (node_at(page, number)->name != reader->link)
        return IS_READ;
    struct span relations = value_of(page, number, reader->rel), word;
    struct span type = value_of(page, number, reader->type);
    if (!is_plain(relations) || !is_plain(type))
        return IS_LINK_ASKED;
    bool leads = false;
    while (pass_word(&relations, &word)) {
        leads |= is_one_of(reader->navigable, reader->navigable_length, word);
        if (is_one_of((const uint8_t *)"stylesheet\n", sizeof "stylesheet", word))
            return IS_NOWHERE;
    }
    const uint8_t *stop = type.at < type.end ? memchr(type.at, ';', (size_t)(type.end - type.at)) : NULL;
    type.end = stop ? stop : type.end;
    type = type.at ? stripped(type) : type;
    leads = leads && is_one_of(reader->page_types, reader->page_types_length, type);
    return leads ? IS_LINK_READ : IS_NOWHERE;
}

static int64_t read_links(struct reading *page, size_t most)
{
    const struct reader *reader = page->reader;
    const struct tree *tree = page->tree;
    const uint32_t *links = tree->links.items;
    struct growing others = {0}, kinds = {0}, called = {0};
    const char *base[4];
    if (!find_base(page, base))
        return WRONG_INDEX;
    bool done = true;
    for (uint32_t i = 0; done && i < tree->links.count; i++) {
        if (node_at(page, links[i])->trait & reader->anchor)
            continue;
        uint8_t kind = kind_of(page, links[i]);
        struct span label = value_of(page, links[i], reader->label);
        done = add(&others, &i, sizeof i) && add(&kinds, &kind, 1)
            && add(&called, &label, sizeof label);
    }
    struct linked told = {
        .references = at_of(&tree->references), .relations = at_of(&tree->relations),
        .anchors = at_of(&tree->anchors), .others = others.items, .kinds = kinds.items,
        .called = called.items, .navigable = reader->navigable, .home = base[0], .folder = base[1], .origin = base[2],
        .place = base[3], .tracking = reader->tracking,
        .references_length = tree->references.count, .relations_length = tree->relations.count,
        .anchors_length = tree->anchors.count, .others_count = kinds.count,
        .navigable_length = reader->navigable_length, .tracking_length = reader->tracking_length,
        .most = most, .key = {reader->key[0], reader->key[1]},
    };
    int64_t failure = done ? targets_read(&told, &page->targets) : NO_MEMORY;
    failure = failure ? failure : ask_links(page);
    failure = failure ? failure
                      : targets_written(page->targets, at_of(&page->answer), page->answer.count);
    if (failure >= 0) {
        page->is_cut = failure;
        const void *columns[4];
        size_t octets[4];
        targets_found(page->targets, columns, octets);
        failure = 0;
        for (size_t i = 0; i < 4; i++)
            if (!add(page->told + URLS + i, columns[i], octets[i]))
                failure = NO_MEMORY;
    }
    free(others.items);
    free(kinds.items);
    free(called.items);
    return failure;
}

/* -- the choice -------------------------------------------------------------------------------- */

/* Ask about the names of elements. The three columns are what is answered, to be given back. */
static int64_t ask_names(struct reading *page, struct growing *flags, struct growing *ends,
                         struct growing *odds, struct answers *answers)
{
    const uint32_t *asked = page->content->asked.items;
    size_t count = page->content->asked.count;
    answers->asked = count;
    if (!count)
        return 0;
    page->question.count = 0;
    bool done = true;
    for (size_t i = 0; done && i < count; i++) {
        const struct node *node = node_at(page, asked[i]);
        const uint8_t *letters = page->tree->names.octets.items;
        const uint32_t *names = page->tree->names.ends.items;
        for (uint32_t k = node->said; done && k < node->said_end; k++) {
            const struct said *said = page->columns.said + k;
            struct span name
                = {letters + (said->name ? names[said->name - 1] : 0), letters + names[said->name]};
            done = write(&page->question, name)
                && write(&page->question, value_in(&page->columns, said));
        }
        done = done && add(&page->question, "", 1);
    }
    int64_t failure = done ? ask_written(page, ABOUT_NAMES) : NO_MEMORY;
    if (failure)
        return failure;
    /* For each its bits and the number of its odds, and then these. */
    size_t begin = count * 2 * sizeof(uint32_t);
    if (page->answer.count < begin || (page->answer.count - begin) % sizeof(double))
        return WRONG_INDEX;
    const uint8_t *at = at_of(&page->answer);
    uint32_t end = 0;
    for (size_t i = 0; done && i < count; i++) {
        uint32_t told[2];
        memcpy(told, at + i * sizeof told, sizeof told);
        uint8_t bits = (uint8_t)told[0];
        end += told[1];
        done = add(flags, &bits, 1) && add(ends, &end, sizeof end);
    }
    done = done && add(odds, at + begin, page->answer.count - begin);
    answers->flags = flags->items;
    answers->ends = ends->items;
    answers->odds = odds->items;
    answers->odds_count = odds->count / sizeof(double);
    return done ? 0 : NO_MEMORY;
}

/* Find the title and the headline among the headings. */
static int64_t ask_titles(struct reading *page, int64_t *titled, int64_t *headline)
{
    const struct content *content = page->content;
    if (find_titles(content, octets_of(&page->title), titled, headline))
        return 0;
    page->question.count = 0;
    uint32_t rows = (uint32_t)(content->titles.count / 8);
    bool done = add(&page->question, &rows, sizeof rows)
        && add(&page->question, content->titles.items, content->titles.count)
        && add(&page->question, content->title_texts.items, content->title_texts.count)
        && add(&page->question, page->title.items, page->title.count);
    int64_t failure = done ? ask_written(page, ABOUT_TITLE) : NO_MEMORY;
    if (failure)
        return failure;
    int64_t said[2];
    if (page->answer.count != sizeof said)
        return WRONG_INDEX;
    memcpy(said, page->answer.items, sizeof said);
    *titled = said[0];
    *headline = said[1];
    return 0;
}

static int64_t judge(struct reading *page, int64_t *headline)
{
    const struct reader *reader = page->reader;
    struct growing flags = {0}, ends = {0}, odds = {0};
    struct answers answers = {.seconds = reader->seconds};
    int64_t failure = content_read(reader->vocabulary, page->some, &page->content);
    if (!failure && page->content->asked_blocks.count)
        failure = ask(page, ABOUT_CHARACTERS, page->content->asked_blocks.items,
                      page->content->asked_blocks.count);
    failure = failure ? failure : ask_names(page, &flags, &ends, &odds, &answers);
    failure = failure ? failure : ask_titles(page, &answers.titled, headline);
    failure = failure ? failure : content_judged(page->content, reader->trees, &answers);
    failure = failure == TOO_SLOW ? TOO_MANY_PIECES : failure;
    free(flags.items);
    free(ends.items);
    free(odds.items);
    return failure;
}

/* Ask which of some texts only call for an action. */
static int64_t ask_controls(struct reading *page, const void *texts, size_t length)
{
    page->answer.count = 0;
    return length ? ask(page, ABOUT_CONTROLS, texts, length) : 0;
}

static int64_t choose(struct reading *page)
{
    size_t total = page->pieces->pieces.count;
    struct growing numbers = {0};
    if (!total)
        return 0;
    bool done = true;
    for (uint32_t i = 0; done && i < total; i++)
        done = nth_piece(page->pieces, i)->is_control || add(&numbers, &i, sizeof i);
    size_t count = numbers.count / sizeof(uint32_t);
    page->some = page->pieces;
    int64_t failure = done ? 0 : NO_MEMORY;
    if (done && count && count < total)
        failure = pieces_only(page->pieces, numbers.items, count, &page->some);
    free(numbers.items);
    int64_t headline = -1;
    const void *columns[3];
    size_t octets[3];
    failure = failure ? failure : judge(page, &headline);
    failure = failure ? failure : choice_made(page->content, headline, &page->choice);
    if (failure)
        return failure;
    choice_columns(page->choice, columns, octets);
    failure = ask_controls(page, columns[0], octets[0]);
    failure = failure ? failure
                      : choice_settled(page->choice, page->pieces, at_of(&page->answer),
                                       page->answer.count);
    if (failure)
        return failure;
    choice_columns(page->choice, columns, octets);
    failure = ask_controls(page, columns[2], octets[2]);
    failure = failure ? failure
                      : choice_finished(page->choice, at_of(&page->answer), page->answer.count);
    if (failure)
        return failure;
    choice_columns(page->choice, columns, octets);
    return add(&page->chosen, columns[1], octets[1]) ? 0 : NO_MEMORY;
}

/* -- blocks ------------------------------------------------------------------------------------ */

/* Find the elements whose machine-readable time stands in place of their text. */
static int64_t ask_moments(struct reading *page)
{
    uint32_t *nodes = page->moments.items;
    size_t count = page->moments.count / sizeof *nodes, kept = 0;
    if (!count)
        return 0;
    page->question.count = 0;
    bool done = true;
    for (size_t i = 0; done && i < count; i++)
        done = write(&page->question, value_of(page, nodes[i], page->reader->datetime));
    int64_t failure = done ? ask_written(page, ABOUT_MOMENTS) : NO_MEMORY;
    if (failure)
        return failure;
    if (page->answer.count != count)
        return WRONG_INDEX;
    for (size_t i = 0; i < count; i++)
        if (((const uint8_t *)page->answer.items)[i])
            nodes[kept++] = nodes[i];
    page->moments.count = kept * sizeof *nodes;
    return 0;
}

/* Work out where the blocks stand. */
static int64_t place_blocks(struct reading *page)
{
    const void *column;
    size_t octets;
    blocks_asked(page->blocks, &column, &octets);
    const uint32_t *asked = column;
    size_t count = octets / sizeof *asked;
    page->question.count = page->answer.count = 0;
    bool done = true;
    for (size_t i = 0; done && i < count; i++) {
        uint32_t name = node_at(page, asked[i])->name;
        const uint8_t *letters = page->tree->names.octets.items;
        const uint32_t *ends = page->tree->names.ends.items;
        struct span tag = {letters + (name ? ends[name - 1] : 0), letters + ends[name]};
        done = write(&page->question, tag)
            && write(&page->question, value_of(page, asked[i], (uint32_t)page->reader->wording->id))
            && write(&page->question,
                     value_of(page, asked[i], (uint32_t)page->reader->wording->class));
    }
    int64_t failure = !done ? NO_MEMORY : count ? ask_written(page, ABOUT_PLACES) : 0;
    if (failure)
        return failure;
    if (page->answer.count != count * sizeof(uint64_t))
        return WRONG_INDEX;
    return blocks_placed(page->blocks, page->reader->root, page->answer.items, count);
}

/* Keep the blocks that are no stamps, with their texts as NFC has them: Python says of those at which
 * it has to look what stays of them. */
static int64_t settle_blocks(struct reading *page)
{
    const void *columns[4];
    size_t octets[4];
    blocks_columns(page->blocks, columns, octets);
    const struct block *blocks = columns[0];
    size_t count = octets[0] / sizeof *blocks;
    const uint8_t *kinds = columns[2];
    const uint64_t *places = columns[3];
    struct span texts = columns[1] ? lines_in(columns[1], octets[1]) : (struct span){0}, rest = texts;
    page->question.count = page->answer.count = 0;
    bool done = true;
    for (size_t i = 0; done && i < count; i++) {
        struct span line = next_line(&rest);
        if (blocks[i].flags)
            done = add(&page->question, line.at, (size_t)(line.end - line.at) + 1);
    }
    int64_t failure = !done ? NO_MEMORY
        : page->question.count ? ask_written(page, ABOUT_STAMPS) : 0;
    if (failure)
        return failure;
    struct span answers = octets_of(&page->answer);
    rest = texts;
    for (size_t i = 0; done && i < count; i++) {
        struct span line = next_line(&rest), said = line;
        if (blocks[i].flags)
            said = next_line(&answers);
        if (said.at == said.end)
            continue;
        done = add(page->told + TEXTS, said.at, (size_t)(said.end - said.at))
            && add(page->told + TEXTS, "\n", 1) && add(page->told + KINDS_OF_BLOCKS, kinds + i, 1)
            && add(page->told + PLACES, places + i, sizeof *places);
    }
    return done ? 0 : NO_MEMORY;
}

static int64_t make_blocks(struct reading *page)
{
    int64_t failure = ask_moments(page);
    failure = failure ? failure
                      : blocks_of(page->reader->wording, page->pieces, page->chosen.items,
                                  page->chosen.count / sizeof(uint32_t), page->moments.items,
                                  page->moments.count / sizeof(uint32_t), &page->blocks);
    failure = failure ? failure : place_blocks(page);
    return failure ? failure : settle_blocks(page);
}

/* -- the sketch -------------------------------------------------------------------------------- */

/* Hash the words of a text to `hashes`; Python is asked about characters that are not known, and for
 * the small letters of texts beyond ASCII. Returns their number, or a failure. */
static int64_t hash_words(struct reading *page, struct span text, struct growing *hashes)
{
    const struct reader *reader = page->reader;
    struct growing letters = {0};
    bool is_small = false;
    int64_t found;
    while (true) {
        size_t length = (size_t)(text.end - text.at);
        if (!make_room(hashes, length + 1, sizeof(uint32_t))) {
            found = NO_MEMORY;
            break;
        }
        found = word_hashes(text.at, length, is_small, reader->classes, reader->slice, hashes->items);
        if (found >= 0)
            break;
        if (found == UNKNOWN_CHARACTER) {
            size_t asked = unclassed(text.at, length, reader->classes, hashes->items);
            found = ask(page, ABOUT_CLASSES, hashes->items, asked * sizeof(uint32_t));
        } else {
            found = ask(page, ABOUT_LETTERS, text.at, length);
            letters.count = 0;
            if (!found && !add(&letters, page->answer.items, page->answer.count))
                found = NO_MEMORY;
            text = octets_of(&letters);
            is_small = true;
        }
        if (found)
            break;
    }
    free(letters.items);
    return found;
}

static void put_number(uint8_t *to, uint32_t number)
{
    for (size_t i = 0; i < sizeof number; i++)
        to[i] = (uint8_t)(number >> 8 * i);
}

/* Write the sketch as Sketch.to_bytes in crawler/reduce/sketch.py. */
static int64_t write_sketch(struct reading *page, uint32_t count, uint8_t *text, size_t length,
                            const uint32_t *hashes)
{
    struct growing *made = page->told + SKETCH;
    const struct growing *places = page->told + PLACES;
    size_t blocks = places->count / sizeof(uint64_t), header = 1 + 4 + 4 + TEXT_DIGEST;
    if (!make_room(made, header + PERMUTATIONS * 4 + blocks * 16, 1))
        return NO_MEMORY;
    uint8_t *to = made->items;
    *to = (uint8_t)page->reader->version;
    put_number(to + 1, count);
    put_number(to + 5, (uint32_t)blocks);
    uint32_t minima[PERMUTATIONS];
    memset(minima, 0xFF, sizeof minima);
    lower_minima(hashes, count, page->reader->factors, page->reader->summands, minima);
    memcpy(to + header, minima, sizeof minima);
    uint8_t *digests = to + header + sizeof minima;
    uint8_t *at = text, *end = text + length;
    for (size_t i = 0; i < blocks; i++) {
        uint8_t *stop = memchr(at, '\n', (size_t)(end - at));
        digest(at, (size_t)(stop - at), digests + BLOCK_DIGEST * i, BLOCK_DIGEST);
        /* A space stands between two of them. */
        *stop = ' ';
        at = stop + 1;
    }
    digest(text, length ? length - 1 : 0, to + 1 + 4 + 4, TEXT_DIGEST);
    if (places->count)
        memcpy(digests + BLOCK_DIGEST * blocks, places->items, places->count);
    made->count = header + PERMUTATIONS * 4 + blocks * 16;
    return 0;
}

static int64_t make_sketch(struct reading *page)
{
    struct growing hashes = {0}, text = {0};
    struct span texts = octets_of(page->told + TEXTS);
    size_t length = (size_t)(texts.end - texts.at);
    texts.end -= length > 0;
    int64_t count = hash_words(page, texts, &hashes), failure = count < 0 ? count : 0;
    uint32_t *room = malloc(((size_t)(count < 0 ? 0 : count) + 1) * sizeof *room);
    if (!failure && (!room || !make_room(&text, 1, 1) || !add(&text, texts.at, length)))
        failure = NO_MEMORY;
    if (!failure) {
        size_t different = shingles(hashes.items, (size_t)count, room);
        failure = write_sketch(page, (uint32_t)different, text.items, length, hashes.items);
    }
    free(room);
    free(hashes.items);
    free(text.items);
    return failure;
}

/* -- a page ------------------------------------------------------------------------------------ */

static int64_t read_page(
    struct reading *page, const uint8_t *html, size_t length, bool is_shown,
    const struct limits *limits, struct span robots, size_t most)
{
    const struct reader *reader = page->reader;
    int64_t failure = tree_made(html, length, reader->options, limits, &page->tree);
    if (failure)
        return failure;
    page->columns = columns_in(page->tree);
    if (!is_shown && is_shown_otherwise(page))
        return SHOWN_OTHERWISE;
    failure = read_head(page, robots);
    failure = failure ? failure : read_links(page, most);
    failure = failure ? failure
                      : pieces_of(reader->elements, &page->columns, page->body, &page->pieces);
    failure = failure ? failure : choose(page);
    failure = failure ? failure : make_blocks(page);
    return failure ? failure : make_sketch(page);
}

/* Read a page, to be given back to page_drop. `base` has what a base is told by in links.py, each of the
 * four with a NUL behind it; `robots` names whom a page speaks to, with a "\n" behind each; `most` links are
 * told. Returns 0, 1 if there are more, or a failure. */
EXPORTED int64_t page_made(
    const struct reader *reader, const uint8_t *html, size_t length, bool is_shown,
    const struct limits *limits, const uint8_t *base, size_t base_length, const uint8_t *robots, size_t robots_length,
    size_t most, struct reading **made)
{
    struct reading *page = calloc(1, sizeof *page);
    *made = NULL;
    if (!page)
        return NO_MEMORY;
    page->reader = reader;
    int64_t failure = add(&page->base, base, base_length)
        ? read_page(page, html, length, is_shown, limits, lines_in(robots, robots_length), most)
        : NO_MEMORY;
    if (failure) {
        page_drop(page);
        return failure;
    }
    drop_steps(page);
    *made = page;
    return page->is_cut;
}

/* Tell what was read, one column behind the other, and where each of them ends. */
EXPORTED const void *page_told(struct reading *page, size_t *ends)
{
    struct growing *all = page->told;
    size_t end = 0;
    for (size_t i = 0; i < TOLD; i++) {
        end += all[i].count;
        ends[i] = end;
    }
    for (size_t i = 1; i < TOLD; i++) {
        if (!add(all, all[i].items, all[i].count))
            return NULL;
        free(all[i].items);
        all[i] = (struct growing){0};
    }
    return all->items;
}

/* Return the tree of a page, which ends with it. */
EXPORTED const struct tree *page_tree(const struct reading *page) { return page->tree; }

/* Tell where the numbers of the chosen pieces are, and their octets. */
EXPORTED void page_chosen(const struct reading *page, const void **columns, size_t *octets)
{
    columns[0] = page->chosen.items;
    octets[0] = page->chosen.count;
}
