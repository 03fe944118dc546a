/* The tree of a page in columns. What they mean is said in crawler/reduce/tree.py, whose reference
 * in Python makes the same ones; what elements mean is data of crawler/reduce/elements.toml.
 *
 * The parser is the Lexbor inside selectolax. Python finds its functions (`tree_parser`), all of
 * them exported ones, and nothing here reads a structure of Lexbor's.
 *
 * Pages are made by strangers. A page is parsed in pieces, with a look at the thread's clock behind
 * each of them, as Lexbor takes quadratic time for some. No function recurses. */

#define _POSIX_C_SOURCE 200809L
#define _DARWIN_C_SOURCE

#include "core.h"
#include "octets.h"
#include "tree.h"

#include <time.h>

/* What tree_made returns beside what tree.h names. */
#define NOT_PARSED -5

/* -- Lexbor ------------------------------------------------------------------------------------ */

typedef void *handle;

/* The functions of Lexbor in the order in which Python names them. */
static struct parser {
    handle (*create)(void);
    handle (*destroy)(handle document);
    void (*set_options)(handle document, unsigned options);
    unsigned (*begin)(handle document);
    unsigned (*parse)(handle document, const uint8_t *html, size_t length);
    unsigned (*finish)(handle document);
    handle (*first_child)(handle node);
    handle (*next)(handle node);
    handle (*parent)(handle node);
    unsigned (*type)(handle node);
    const uint8_t *(*name)(handle element, size_t *length);
    handle (*first_attribute)(handle element);
    handle (*next_attribute)(handle attribute);
    const uint8_t *(*attribute_name)(handle attribute, size_t *length);
    const uint8_t *(*attribute_value)(handle attribute, size_t *length);
    uint8_t *(*text)(handle node, size_t *length);
    handle (*free_text)(handle document, uint8_t *text);
} lexbor;

enum { FUNCTIONS = sizeof lexbor / sizeof(void (*)(void)) };
/* Types of nodes (DOM, section 4.4). */
enum { ELEMENT = 1, TEXT = 3 };

/* Octets between two looks at the clock: Lexbor takes up to 50 ms for so many of the worst. */
#define CHUNK 4096
/* Nodes between two looks at the clock. */
#define STEPS 4096

EXPORTED bool tree_parser(void (*const *functions)(void), size_t count)
{
    if (count != FUNCTIONS)
        return false;
    memcpy(&lexbor, functions, sizeof lexbor);
    return true;
}

/* -- names ------------------------------------------------------------------------------------- */

/* Distinct names of elements and attributes; `slots` has their numbers plus 1 by hash. */
struct names {
    struct growing octets, ends;
    uint32_t *slots;
    size_t room;
};

static uint32_t hash(struct span name)
{
    uint32_t found = 2166136261u;
    for (; name.at < name.end; name.at++)
        found = (found ^ *name.at) * 16777619u;
    return found ^ found >> 15;
}

static struct span nth_name(const struct names *all, uint32_t number)
{
    const uint8_t *octets = all->octets.items;
    const uint32_t *ends = all->ends.items;
    return (struct span){octets + (number ? ends[number - 1] : 0), octets + ends[number]};
}

/* Return the slot of a name, or the empty one where it belongs. */
static uint32_t *slot_of(const struct names *all, struct span name)
{
    size_t length = (size_t)(name.end - name.at);
    for (size_t i = hash(name);; i++) {
        uint32_t *slot = all->slots + (i & (all->room - 1));
        if (!*slot)
            return slot;
        struct span other = nth_name(all, *slot - 1);
        if ((size_t)(other.end - other.at) == length && !memcmp(other.at, name.at, length))
            return slot;
    }
}

static bool widen(struct names *all)
{
    uint32_t *old = all->slots;
    size_t room = all->room ? all->room * 2 : 1024;
    all->slots = calloc(room, sizeof *all->slots);
    if (!all->slots) {
        all->slots = old;
        return false;
    }
    all->room = room;
    for (uint32_t number = 0; number < all->ends.count; number++)
        *slot_of(all, nth_name(all, number)) = number + 1;
    free(old);
    return true;
}

/* Return the number of a name, which may be new; -1: no memory. */
static int64_t number_of(struct names *all, struct span name)
{
    if ((all->ends.count + 1) * 2 > all->room && !widen(all))
        return -1;
    uint32_t *slot = slot_of(all, name);
    if (!*slot) {
        if (!make_room(&all->ends, 1, sizeof(uint32_t))
            || !add(&all->octets, name.at, (size_t)(name.end - name.at)))
            return -1;
        ((uint32_t *)all->ends.items)[all->ends.count++] = (uint32_t)all->octets.count;
        *slot = (uint32_t)all->ends.count;
    }
    return *slot - 1;
}

static void free_names(struct names *all)
{
    free(all->octets.items);
    free(all->ends.items);
    free(all->slots);
}

static bool copy_names(struct names *copy, const struct names *all)
{
    *copy = (struct names){.room = all->room, .slots = malloc(all->room * sizeof *all->slots)};
    if (!copy->slots || !add(&copy->octets, all->octets.items, all->octets.count)
        || !make_room(&copy->ends, all->ends.count, sizeof(uint32_t))) {
        free_names(copy);
        return false;
    }
    memcpy(copy->slots, all->slots, all->room * sizeof *all->slots);
    memcpy(copy->ends.items, all->ends.items, all->ends.count * sizeof(uint32_t));
    copy->ends.count = all->ends.count;
    return true;
}

/* -- what elements mean ------------------------------------------------------------------------ */

/* What is told of a name: see _Meaning in tree.py. */
struct meaning {
    uint32_t place, never, trait, shown, tells;
};

enum { TELLS_ALONE = 1, TELLS_WITH = 2 };

/* Bits of places and traits: `control` is a place, `acts` its trait. */
struct bits {
    uint32_t unseen, link, control, acts, alternatives, preferred, first;
};

/* The names that are known beforehand. */
static struct {
    struct names names;
    struct growing meanings;
    struct bits bits;
} table;

/* Tell the table, once a process, as other threads may read it: names, each behind the other, with
 * their ends and meanings. */
EXPORTED bool tree_table(
    const uint8_t *octets, const uint32_t *ends, const struct meaning *meanings, size_t count,
    const struct bits *bits)
{
    if (table.meanings.count)
        return true;
    struct growing copy = {0};
    struct names names = {0};
    bool done = make_room(&copy, count, sizeof *meanings);
    for (size_t i = 0, begin = 0; done && i < count; begin = ends[i++])
        done = number_of(&names, (struct span){octets + begin, octets + ends[i]}) == (int64_t)i;
    if (!done) {
        free(copy.items);
        free_names(&names);
        return false;
    }
    memcpy(copy.items, meanings, count * sizeof *meanings);
    copy.count = count;
    table.names = names;
    table.bits = *bits;
    table.meanings = copy;
    return true;
}

static struct meaning meaning_of(uint32_t number)
{
    return number < table.meanings.count ? ((struct meaning *)table.meanings.items)[number]
                                         : (struct meaning){0};
}

static struct meaning known_meaning(struct span name)
{
    uint32_t found = *slot_of(&table.names, name);
    return found ? meaning_of(found - 1) : (struct meaning){0};
}

static void add_meaning(struct meaning *all, struct meaning more)
{
    all->place |= more.place;
    all->never |= more.never;
    all->trait |= more.trait;
    if (all->shown < more.shown)
        all->shown = more.shown;
}

/* Octets of the longest name. */
#define NAME 96

/* Add what tag[attribute] or tag[attribute=word] means. The tag may be empty; a word that begins
 * nowhere is none. */
static void add_named(
    struct meaning *all, struct span tag, struct span attribute, struct span word)
{
    uint8_t name[NAME], *to = name;
    size_t tag_length = (size_t)(tag.end - tag.at), length = (size_t)(word.end - word.at),
           attribute_length = (size_t)(attribute.end - attribute.at);
    if (tag_length > NAME / 4 || attribute_length > NAME / 4 || length > NAME / 4)
        return;
    if (tag_length)
        memcpy(to, tag.at, tag_length);
    to += tag_length;
    *to++ = '[';
    memcpy(to, attribute.at, attribute_length);
    to += attribute_length;
    if (word.at) {
        *to++ = '=';
        for (const uint8_t *at = word.at; at < word.end; at++)
            *to++ = *at >= 'A' && *at <= 'Z' ? *at | 0x20 : *at;
    }
    *to++ = ']';
    add_meaning(all, known_meaning((struct span){name, to}));
}

static bool ends_word(uint8_t octet)
{
    return octet == ' ' || octet == ';' || octet == '\t' || octet == '\n' || octet == '\f'
        || octet == '\r';
}

/* Add what an attribute tells of an element; `tells` is what is said of both of their names. */
static void add_said(
    struct meaning *all, struct span tag, struct span attribute, struct span value,
    uint32_t tells)
{
    struct span none = {0};
    for (uint32_t bit = TELLS_ALONE; bit <= TELLS_WITH; bit <<= 1) {
        if (!(tells & bit))
            continue;
        struct span before = bit == TELLS_WITH ? tag : none;
        add_named(all, before, attribute, none);
        for (const uint8_t *at = value.at; at < value.end; at++) {
            const uint8_t *begin = at, *part = at;
            for (; at < value.end && !ends_word(*at); at++)
                if (*at == '-' || *at == '_') {
                    add_named(all, before, attribute, (struct span){part, at});
                    part = at + 1;
                }
            if (part > begin)
                add_named(all, before, attribute, (struct span){part, at});
            add_named(all, before, attribute, (struct span){begin, at});
        }
    }
}

/* Return what is said of both names; an attribute alone tells of all elements. */
static uint32_t tells(struct meaning tag, struct meaning attribute)
{
    return attribute.tells & (tag.tells | TELLS_ALONE);
}

/* Return the next attribute of an element; the first one if `it` is none. */
static handle next_attribute(handle element, handle it, struct span *name, struct span *value)
{
    size_t length = 0, value_length = 0;
    it = it ? lexbor.next_attribute(it) : lexbor.first_attribute(element);
    if (it) {
        name->at = lexbor.attribute_name(it, &length);
        name->end = name->at + length;
        const uint8_t *said = lexbor.attribute_value(it, &value_length);
        value->at = said ? said : (const uint8_t *)"";
        value->end = value->at + (said ? value_length : 0);
    }
    return it;
}

/* Return whether an element has one directly in it that is seen in place of its siblings. */
static bool has_preferred(handle element)
{
    for (handle child = lexbor.first_child(element); child; child = lexbor.next(child)) {
        if (lexbor.type(child) != ELEMENT)
            continue;
        size_t length = 0;
        const uint8_t *at = lexbor.name(child, &length);
        struct span tag = {at, at + length}, name, value;
        struct meaning own = known_meaning(tag), all = own;
        for (handle it = NULL; (it = next_attribute(child, it, &name, &value));)
            add_said(&all, tag, name, value, tells(own, known_meaning(name)));
        if (all.trait & table.bits.preferred)
            return true;
    }
    return false;
}

/* -- columns ----------------------------------------------------------------------------------- */

/* A text in UTF-8, and its length in characters. */
struct text {
    struct growing octets;
    size_t characters;
};

struct tree {
    struct growing nodes, said;
    struct text text, values;
    struct names names;
};

/* Where names of Lexbor's are known to be. */
#define KNOWN 256

struct builder {
    struct tree *tree;
    handle document;
    size_t most_nodes, most_octets;
    /* Elements below this level are no nodes; `deeper` of these are open, the last `muted` of them
     * in one that is not seen. */
    size_t levels, level, deeper, muted;
    /* The open element, and the octets before the text that is its last node. */
    uint32_t open;
    bool in_text;
    size_t text_at;
    struct {
        const uint8_t *at;
        size_t length;
        uint32_t number;
    } known[KNOWN];
};

static struct node *nth(const struct builder *b, uint32_t number)
{
    return (struct node *)b->tree->nodes.items + number;
}

static size_t characters_in(const uint8_t *at, size_t length)
{
    size_t count = 0;
    for (size_t i = 0; i < length; i++)
        count += (at[i] & 0xC0) != 0x80;
    return count;
}

static bool add_text(struct text *all, const uint8_t *at, size_t length)
{
    if (!add(&all->octets, at, length))
        return false;
    all->characters += characters_in(at, length);
    return true;
}

/* Return the characters of a text without the white space around it. */
static size_t shown_characters(struct span text)
{
    while (text.at < text.end) {
        size_t length = space(text);
        if (!length)
            break;
        text.at += length;
    }
    while (text.at < text.end) {
        const uint8_t *last = text.end - 1;
        while (last > text.at && (*last & 0xC0) == 0x80)
            last--;
        if (!space((struct span){last, text.end}))
            break;
        text.end = last;
    }
    return characters_in(text.at, (size_t)(text.end - text.at));
}

/* Return the number of a name that Lexbor has at an address; -1: no memory. */
static int64_t known_number(struct builder *b, const uint8_t *at, size_t length)
{
    size_t i = ((uintptr_t)at >> 3 ^ (uintptr_t)at >> 11) & (KNOWN - 1);
    if (b->known[i].at != at || b->known[i].length != length) {
        int64_t number = number_of(&b->tree->names, (struct span){at, at + length});
        if (number < 0)
            return number;
        b->known[i].at = at;
        b->known[i].length = length;
        b->known[i].number = (uint32_t)number;
    }
    return b->known[i].number;
}

/* Add what a node holds to its parent, unless it is not seen. Words of a control do not count in the
 * element around it. */
static void add_up(const struct builder *b, uint32_t number)
{
    struct node *node = nth(b, number), *parent = nth(b, node->parent);
    if (number == 0 || node->place & table.bits.unseen)
        return;
    parent->holds |= node->holds | (node->chars ? node->trait : node->trait & ~table.bits.acts);
    if (node->place & ~parent->place & table.bits.control)
        return;
    bool is_link = meaning_of(node->name).place & table.bits.link;
    parent->chars += node->chars;
    parent->linked += is_link ? node->chars : node->linked;
}

/* End the text that more octets could still belong to. */
static void end_text(struct builder *b)
{
    if (!b->in_text)
        return;
    b->in_text = false;
    uint32_t number = (uint32_t)b->tree->nodes.count - 1;
    const struct growing *octets = &b->tree->text.octets;
    const uint8_t *from = octets->items;
    nth(b, number)->chars
        = (uint32_t)shown_characters((struct span){from + b->text_at, from + octets->count});
    add_up(b, number);
}

/* Add octets to the text that goes on, or begin one. */
static int append_text(struct builder *b, const uint8_t *at, size_t length)
{
    struct tree *tree = b->tree;
    if (!length)
        return 0;
    if (tree->text.octets.count + length > b->most_octets)
        return TOO_LARGE;
    if (!b->in_text) {
        if (tree->nodes.count >= b->most_nodes)
            return TOO_LARGE;
        if (!make_room(&tree->nodes, 1, sizeof(struct node)))
            return NO_MEMORY;
        uint32_t number = (uint32_t)tree->nodes.count++;
        *nth(b, number) = (struct node){
            .parent = b->open, .end = number + 1, .place = nth(b, b->open)->place,
            .text = (uint32_t)tree->text.characters, .said = (uint32_t)tree->said.count,
            .said_end = (uint32_t)tree->said.count,
        };
        b->in_text = true;
        b->text_at = tree->text.octets.count;
    }
    bool done = add_text(&tree->text, at, length);
    nth(b, (uint32_t)tree->nodes.count - 1)->text_end = (uint32_t)tree->text.characters;
    return done ? 0 : NO_MEMORY;
}

static int read_attributes(
    struct builder *b, handle element, struct span tag, uint32_t number, struct meaning *means)
{
    struct tree *tree = b->tree;
    struct meaning own = *means;
    struct span name, value;
    for (handle it = NULL; (it = next_attribute(element, it, &name, &value));) {
        size_t length = (size_t)(value.end - value.at);
        if (tree->said.count >= b->most_nodes
            || tree->values.octets.count + length > b->most_octets)
            return TOO_LARGE;
        int64_t known = name.at ? known_number(b, name.at, (size_t)(name.end - name.at)) : -1;
        struct said said = {number, (uint32_t)known, (uint32_t)tree->values.characters, 0};
        if (known < 0 || !make_room(&tree->said, 1, sizeof said)
            || !add_text(&tree->values, value.at, length))
            return NO_MEMORY;
        said.value_end = (uint32_t)tree->values.characters;
        ((struct said *)tree->said.items)[tree->said.count++] = said;
        add_said(means, tag, name, value, tells(own, meaning_of(said.name)));
    }
    means->place &= ~means->never;
    return 0;
}

/* Return whether the next element is not seen in the open one, as another one is. */
static bool is_alternative(const struct builder *b, struct meaning means)
{
    uint32_t trait = nth(b, b->open)->trait, before = (uint32_t)b->tree->nodes.count - b->open - 1;
    if (trait & table.bits.alternatives)
        return !(means.trait & table.bits.preferred);
    /* A text, such as a line break, may stand before the first element. */
    return trait & table.bits.first && (before > 1 || (before && nth(b, b->open + 1)->name));
}

/* Add the text that an empty element shows: the value of the attribute of that number, or its name
 * if there is none. */
static int show(struct builder *b, handle element, uint32_t number)
{
    struct span shown = nth_name(&table.names, number), name, value;
    size_t length = (size_t)(shown.end - shown.at);
    for (handle it = NULL; (it = next_attribute(element, it, &name, &value));)
        if ((size_t)(name.end - name.at) == length && !memcmp(name.at, shown.at, length))
            return append_text(b, value.at, (size_t)(value.end - value.at));
    return append_text(b, shown.at, length);
}

static int open_element(struct builder *b, handle element)
{
    struct tree *tree = b->tree;
    size_t length = 0;
    const uint8_t *at = lexbor.name(element, &length);
    struct span tag = {at, at + length};
    if (!at)
        return NO_MEMORY;
    end_text(b);
    if (b->deeper || b->level > b->levels) {
        b->deeper++;
        b->muted += b->muted || known_meaning(tag).place & table.bits.unseen;
        return 0;
    }
    int64_t name = known_number(b, at, length);
    if (name < 0)
        return NO_MEMORY;
    if (tree->nodes.count >= b->most_nodes)
        return TOO_LARGE;
    if (!make_room(&tree->nodes, 1, sizeof(struct node)))
        return NO_MEMORY;
    uint32_t number = (uint32_t)tree->nodes.count;
    struct node row = {
        .parent = b->open, .name = (uint32_t)name, .text = (uint32_t)tree->text.characters,
        .said = (uint32_t)tree->said.count,
    };
    struct meaning means = meaning_of((uint32_t)name);
    int failure = read_attributes(b, element, tag, number, &means);
    if (failure)
        return failure;
    row.said_end = (uint32_t)tree->said.count;
    row.place = means.place;
    row.trait = means.trait;
    if (row.trait & table.bits.alternatives)
        row.trait &= ~(has_preferred(element) ? table.bits.first : table.bits.alternatives);
    if (number) {
        row.place |= nth(b, b->open)->place;
        if (is_alternative(b, means))
            row.place |= table.bits.unseen;
    }
    *nth(b, number) = row;
    tree->nodes.count++;
    b->open = number;
    b->level++;
    return means.shown && !lexbor.first_child(element) ? show(b, element, means.shown) : 0;
}

static void close_element(struct builder *b)
{
    end_text(b);
    if (b->deeper) {
        b->deeper--;
        b->muted -= b->muted > 0;
        return;
    }
    struct node *node = nth(b, b->open);
    node->end = (uint32_t)b->tree->nodes.count;
    node->text_end = (uint32_t)b->tree->text.characters;
    add_up(b, b->open);
    b->open = node->parent;
    b->level--;
}

static int read_text(struct builder *b, handle node)
{
    if (b->muted || !b->level)
        return 0;
    size_t length = 0;
    uint8_t *at = lexbor.text(node, &length);
    if (!at)
        return NO_MEMORY;
    int failure = append_text(b, at, length);
    lexbor.free_text(b->document, at);
    return failure;
}

/* -- a page ------------------------------------------------------------------------------------ */

double seconds_used(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static int read_nodes(struct builder *b, double until)
{
    handle node = lexbor.first_child(b->document);
    for (size_t steps = 1; node; steps++) {
        unsigned type = lexbor.type(node);
        int failure = type == ELEMENT ? open_element(b, node)
            : type == TEXT ? read_text(b, node)
            : 0;
        if (!failure && steps % STEPS == 0 && seconds_used() > until)
            failure = TOO_SLOW;
        if (failure)
            return failure;
        if (type == ELEMENT) {
            handle child = lexbor.first_child(node);
            if (child) {
                node = child;
                continue;
            }
            close_element(b);
        }
        handle next;
        while (!(next = lexbor.next(node))) {
            node = lexbor.parent(node);
            if (!node || node == b->document)
                return 0;
            close_element(b);
        }
        node = next;
    }
    return 0;
}

static int parse(handle document, const uint8_t *html, size_t length, double until)
{
    if (lexbor.begin(document))
        return NOT_PARSED;
    for (size_t at = 0; at < length; at += CHUNK) {
        if (lexbor.parse(document, html + at, length - at < CHUNK ? length - at : CHUNK))
            return NOT_PARSED;
        if (seconds_used() > until)
            return TOO_SLOW;
    }
    return lexbor.finish(document) ? NOT_PARSED : 0;
}

EXPORTED void tree_drop(struct tree *tree)
{
    if (!tree)
        return;
    free(tree->nodes.items);
    free(tree->said.items);
    free(tree->text.octets.items);
    free(tree->values.octets.items);
    free_names(&tree->names);
    free(tree);
}

/* Make the tree of a page, to be given back to tree_drop; returns 0 or why there is none. */
EXPORTED int64_t tree_made(
    const uint8_t *html, size_t length, uint32_t options, size_t levels, size_t most_nodes,
    size_t most_octets, double seconds, struct tree **made)
{
    double until = seconds_used() + seconds;
    *made = NULL;
    if (length > most_octets)
        return TOO_LARGE;
    struct tree *tree = calloc(1, sizeof *tree);
    handle document = tree ? lexbor.create() : NULL;
    int failure = NO_MEMORY;
    if (document && copy_names(&tree->names, &table.names)) {
        lexbor.set_options(document, options);
        failure = parse(document, html, length, until);
        struct builder builder = {
            .tree = tree, .document = document, .levels = levels, .most_nodes = most_nodes,
            .most_octets = most_octets,
        };
        if (!failure)
            failure = read_nodes(&builder, until);
    }
    if (document)
        lexbor.destroy(document);
    if (failure) {
        tree_drop(tree);
        return failure;
    }
    *made = tree;
    return 0;
}

/* Tell where a tree's columns are, and their octets: nodes, attributes, text, values, and the names
 * with their ends. */
EXPORTED void tree_columns(const struct tree *tree, const void **columns, size_t *octets)
{
    const struct {
        const struct growing *column;
        size_t size;
    } all[] = {
        {&tree->nodes, sizeof(struct node)}, {&tree->said, sizeof(struct said)},
        {&tree->text.octets, 1}, {&tree->values.octets, 1}, {&tree->names.octets, 1},
        {&tree->names.ends, sizeof(uint32_t)},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        columns[i] = all[i].column->items;
        octets[i] = all[i].column->count * all[i].size;
    }
}
