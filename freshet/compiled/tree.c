/* The tree of a page in columns. What they mean is said in crawler/reduce/tree.py;
 * tree_reference.py makes the same ones; what elements mean is data of crawler/reduce/elements.toml.
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
#ifdef __APPLE__
#include <malloc/malloc.h>
#define SIZE_OF(place) malloc_size(place)
#else
#include <malloc.h>
#define SIZE_OF(place) malloc_usable_size(place)
#endif

/* What tree_made returns beside what tree.h names; with TOO_LARGE or TOO_SLOW there is a tree of what
 * was read until then. */
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
    unsigned (*use_memory)(
        void *(*allocate)(size_t size), void *(*resize)(void *place, size_t size),
        void *(*allocate_zeros)(size_t count, size_t size), void (*give_back)(void *place));
} lexbor;

enum { FUNCTIONS = sizeof lexbor / sizeof(void (*)(void)) };
/* Types of nodes (DOM, section 4.4). */
enum { ELEMENT = 1, TEXT = 3 };

/* Octets between two looks at the clock: Lexbor takes up to 50 ms for so many of the worst. */
#define CHUNK 4096
/* Nodes between two looks at the clock. */
#define STEPS 4096

/* The octets that Lexbor has been given in this thread since a page began. */
static _Thread_local int64_t given;

static void *counted(void *place)
{
    given += place ? (int64_t)SIZE_OF(place) : 0;
    return place;
}

static void *allocate(size_t size)
{
    return counted(malloc(size));
}

static void *allocate_zeros(size_t count, size_t size)
{
    return counted(calloc(count, size));
}

static void give_back(void *place)
{
    given -= place ? (int64_t)SIZE_OF(place) : 0;
    free(place);
}

static void *resize(void *place, size_t size)
{
    int64_t before = place ? (int64_t)SIZE_OF(place) : 0;
    void *other = realloc(place, size);
    given -= other ? before : 0;
    return counted(other);
}

EXPORTED bool tree_parser(void (*const *functions)(void), size_t count)
{
    if (count != FUNCTIONS)
        return false;
    memcpy(&lexbor, functions, sizeof lexbor);
    return !lexbor.use_memory(allocate, resize, allocate_zeros, give_back);
}

/* -- names ------------------------------------------------------------------------------------- */

static uint32_t hash(struct span name)
{
    uint32_t found = 2166136261u;
    for (; name.at < name.end; name.at++)
        found = (found ^ *name.at) * 16777619u;
    return found ^ found >> 15;
}

static struct span nth_name(const struct name_table *all, uint32_t number)
{
    const uint8_t *octets = all->octets.items;
    const uint32_t *ends = all->ends.items;
    return (struct span){octets + (number ? ends[number - 1] : 0), octets + ends[number]};
}

/* Return the slot of a name, or the empty one where it belongs. */
static uint32_t *slot_of(const struct name_table *all, struct span name)
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

static bool widen(struct name_table *all)
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
static int64_t number_of(struct name_table *all, struct span name)
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

static void free_names(struct name_table *all)
{
    free(all->octets.items);
    free(all->ends.items);
    free(all->slots);
}

static bool copy_names(struct name_table *copy, const struct name_table *all)
{
    *copy = (struct name_table){.room = all->room, .slots = malloc(all->room * sizeof *all->slots)};
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
    uint32_t place, never, trait, shown, tells, leads_by;
};

enum { TELLS_ALONE = 1, TELLS_WITH = 2 };

/* Bits of places and traits: `control` is a place, `acts` its trait. Numbers of attributes. */
struct bits {
    uint32_t unseen, link, control, acts, alternatives, preferred, first, medium;
    uint32_t lasting, raw, anchor, picture;
    uint32_t rel, alt;
};

/* The names that are known beforehand. */
static struct {
    struct name_table names;
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
    struct name_table names = {0};
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

/* Return the traits that the names of a node say; a text has none. */
static uint32_t traits_of(handle node)
{
    if (lexbor.type(node) != ELEMENT)
        return 0;
    size_t length = 0;
    const uint8_t *at = lexbor.name(node, &length);
    struct span tag = {at, at + length}, name, value;
    struct meaning own = known_meaning(tag), all = own;
    for (handle it = NULL; (it = next_attribute(node, it, &name, &value));)
        add_said(&all, tag, name, value, tells(own, known_meaning(name)));
    return all.trait;
}

/* Return whether one is in an element that is seen in place of its siblings: directly, or in one with
 * alternatives that is. */
static bool has_preferred(handle element)
{
    for (handle child = lexbor.first_child(element); child; child = lexbor.next(child)) {
        uint32_t trait = traits_of(child);
        if (trait & table.bits.preferred)
            return true;
        if (!(trait & table.bits.alternatives))
            continue;
        for (handle its = lexbor.first_child(child); its; its = lexbor.next(its))
            if (traits_of(its) & table.bits.preferred)
                return true;
    }
    return false;
}

/* -- columns ----------------------------------------------------------------------------------- */

/* An element that leads elsewhere: the first node behind what stands in it, and the number of its
 * attribute. The link around it that is open, too, plus 1. */
struct link {
    uint32_t node, last, said, outer;
};

/* Where names of Lexbor's are known to be. */
#define KNOWN 256

/* Octets of a page for which room is made at once. */
#define MOST_USUAL (1 << 18)

struct builder {
    struct tree *tree;
    handle document;
    const struct limits *limits;
    /* Elements below this level are no nodes, but for lasting ones, which are empty; `deeper` of
     * these are open, the last `muted` of them in one that is not seen. One of the lasting ones is
     * known, by how many were open with it. */
    size_t level, deeper, muted, lasting_at;
    uint32_t lasting;
    struct growing links;
    /* The number of the link that is open, plus 1. */
    uint32_t open_link;
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

static struct link *nth_link(const struct builder *b, uint32_t number)
{
    return (struct link *)b->links.items + number;
}

static bool add_number(struct growing *all, size_t number)
{
    if (!make_room(all, 1, sizeof(uint32_t)))
        return false;
    ((uint32_t *)all->items)[all->count++] = (uint32_t)number;
    return true;
}

/* Add a row to the nodes; the limits allow it. */
static bool add_node(struct builder *b, struct node row)
{
    struct tree *tree = b->tree;
    if (!make_room(&tree->nodes, 1, sizeof row))
        return false;
    ((struct node *)tree->nodes.items)[tree->nodes.count++] = row;
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
    bool is_link = node->place & ~parent->place & table.bits.link;
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
    const struct growing *octets = &b->tree->text;
    const uint8_t *from = octets->items;
    nth(b, number)->chars
        = (uint32_t)shown_characters((struct span){from + b->text_at, from + octets->count});
    add_up(b, number);
}

/* Return the place of what stands in the open element; in a medium nothing is seen. */
static uint32_t place_in(const struct builder *b)
{
    const struct node *open = nth(b, b->open);
    return open->place | (open->trait & table.bits.medium ? table.bits.unseen : 0);
}

/* Add octets to the text that goes on, or begin one. */
static int append_text(struct builder *b, const uint8_t *at, size_t length)
{
    struct tree *tree = b->tree;
    if (!length)
        return 0;
    if (tree->text.count + length > b->limits->octets)
        return TOO_LARGE;
    if (!b->in_text) {
        if (tree->nodes.count >= b->limits->nodes)
            return TOO_LARGE;
        struct node row = {
            .parent = b->open, .end = (uint32_t)tree->nodes.count + 1,
            .place = place_in(b), .text = (uint32_t)tree->text.count,
            .said = (uint32_t)tree->said.count, .said_end = (uint32_t)tree->said.count,
        };
        if (!add_node(b, row))
            return NO_MEMORY;
        b->in_text = true;
        b->text_at = tree->text.count;
    }
    bool done = add(&tree->text, at, length);
    nth(b, (uint32_t)tree->nodes.count - 1)->text_end = (uint32_t)tree->text.count;
    return done ? 0 : NO_MEMORY;
}

/* Read the attributes of an element whose row will have that number. */
static int read_attributes(
    struct builder *b, handle element, struct span tag, uint32_t number, struct meaning *means)
{
    struct tree *tree = b->tree;
    struct meaning own = *means;
    struct span name, value;
    for (handle it = NULL; (it = next_attribute(element, it, &name, &value));) {
        size_t length = (size_t)(value.end - value.at);
        if (tree->said.count >= b->limits->nodes
            || tree->values.count + length > b->limits->octets)
            return TOO_LARGE;
        int64_t known = name.at ? known_number(b, name.at, (size_t)(name.end - name.at)) : -1;
        struct said said = {number, (uint32_t)known, (uint32_t)tree->values.count, 0};
        if (known < 0 || !make_room(&tree->said, 1, sizeof said)
            || !add(&tree->values, value.at, length))
            return NO_MEMORY;
        said.value_end = (uint32_t)tree->values.count;
        ((struct said *)tree->said.items)[tree->said.count++] = said;
        add_said(means, tag, name, value, tells(own, meaning_of(said.name)));
    }
    means->place &= ~means->never;
    return 0;
}

/* Return whether the next element is not seen in the open one, as another one is. */
static bool is_alternative(const struct builder *b, uint32_t trait)
{
    uint32_t above = nth(b, b->open)->trait, before = (uint32_t)b->tree->nodes.count - b->open - 1;
    if (above & table.bits.alternatives)
        return !(trait & table.bits.preferred);
    /* A text, such as a line break, may stand before the first element. */
    return above & table.bits.first && (before > 1 || (before && nth(b, b->open + 1)->name));
}

/* Add what is shown of an element: a sign, or, if the element is empty, the value of the attribute of
 * that name. */
static int show(struct builder *b, handle element, uint32_t number)
{
    struct span shown = nth_name(&table.names, number), name, value;
    size_t length = (size_t)(shown.end - shown.at);
    for (handle it = NULL; (it = next_attribute(element, it, &name, &value));)
        if ((size_t)(name.end - name.at) == length && !memcmp(name.at, shown.at, length))
            return lexbor.first_child(element)
                ? 0
                : append_text(b, value.at, (size_t)(value.end - value.at));
    return append_text(b, shown.at, length);
}

/* Return the number of an attribute of an element, or -1. */
static int64_t attribute_of(const struct builder *b, const struct node *node, uint32_t name)
{
    const struct said *said = b->tree->said.items;
    for (uint32_t i = node->said; i < node->said_end; i++)
        if (said[i].name == name)
            return i;
    return -1;
}

/* Note a node that leads elsewhere. */
static bool begin_link(struct builder *b, uint32_t number, uint32_t leads_by)
{
    int64_t said = attribute_of(b, nth(b, number), leads_by);
    if (said < 0)
        return true;
    struct link link = {number, number + 1, (uint32_t)said, b->open_link};
    if (!make_room(&b->links, 1, sizeof link))
        return false;
    *nth_link(b, (uint32_t)b->links.count) = link;
    b->open_link = (uint32_t)++b->links.count;
    return true;
}

static void end_link(struct builder *b, uint32_t node)
{
    if (!b->open_link || nth_link(b, b->open_link - 1)->node != node)
        return;
    struct link *link = nth_link(b, b->open_link - 1);
    link->last = (uint32_t)b->tree->nodes.count;
    b->open_link = link->outer;
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
    bool is_deep = b->deeper || b->level > b->limits->levels, was_muted = b->muted;
    if (is_deep) {
        struct meaning known = known_meaning(tag);
        b->deeper++;
        b->muted += b->muted || known.place & table.bits.unseen || known.trait & table.bits.medium;
        if (!(known.trait & table.bits.lasting))
            return 0;
    }
    int64_t name = known_number(b, at, length);
    if (name < 0)
        return NO_MEMORY;
    if (tree->nodes.count >= b->limits->nodes)
        return TOO_LARGE;
    uint32_t number = (uint32_t)tree->nodes.count;
    struct node row = {
        .parent = b->open, .end = number + 1, .name = (uint32_t)name,
        .text = (uint32_t)tree->text.count, .text_end = (uint32_t)tree->text.count,
        .said = (uint32_t)tree->said.count,
    };
    struct meaning means = meaning_of((uint32_t)name);
    int failure = read_attributes(b, element, tag, number, &means);
    if (failure) {
        /* They are of no node. */
        tree->said.count = row.said;
        return failure;
    }
    row.said_end = (uint32_t)tree->said.count;
    row.place = means.place | (was_muted ? table.bits.unseen : 0);
    row.trait = means.trait;
    if (row.trait & table.bits.alternatives && has_preferred(element))
        row.trait = (row.trait & ~table.bits.first) | table.bits.preferred;
    else
        row.trait &= ~table.bits.alternatives;
    if (number) {
        row.place |= place_in(b);
        if (is_alternative(b, row.trait))
            row.place |= table.bits.unseen;
    }
    if (!add_node(b, row) || (means.leads_by && !begin_link(b, number, means.leads_by)))
        return NO_MEMORY;
    if (is_deep && !b->lasting_at) {
        b->lasting = number;
        b->lasting_at = b->deeper;
    } else if (is_deep) {
        end_link(b, number);
        add_up(b, number);
    } else {
        b->open = number;
        b->level++;
    }
    return !is_deep && means.shown ? show(b, element, means.shown) : 0;
}

static void close_element(struct builder *b)
{
    end_text(b);
    if (b->deeper) {
        if (b->lasting_at == b->deeper) {
            nth(b, b->lasting)->text_end = (uint32_t)b->tree->text.count;
            end_link(b, b->lasting);
            add_up(b, b->lasting);
            b->lasting_at = 0;
        }
        b->deeper--;
        b->muted -= b->muted > 0;
        return;
    }
    struct node *node = nth(b, b->open);
    node->end = (uint32_t)b->tree->nodes.count;
    node->text_end = (uint32_t)b->tree->text.count;
    end_link(b, b->open);
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

/* -- links ------------------------------------------------------------------------------------- */

/* Characters of a text in a link that are read, and of what it is called. */
#define MOST_READ 2000
#define MOST_WRITTEN 200
/* Where a link is looked for among the different ones; with more it counts as another one. Bounded,
 * because strangers choose what collides. */
#define PROBES 16

static struct span part(const struct growing *octets, uint32_t begin, uint32_t end)
{
    const uint8_t *from = octets->items;
    return from ? (struct span){from + begin, from + end} : (struct span){NULL, NULL};
}

static struct span value_of(const struct builder *b, int64_t number)
{
    const struct said *said = (const struct said *)b->tree->said.items + (number < 0 ? 0 : number);
    return number < 0 ? (struct span){NULL, NULL}
                      : part(&b->tree->values, said->value, said->value_end);
}

static struct span text_of(const struct builder *b, uint32_t node)
{
    return part(&b->tree->text, nth(b, node)->text, nth(b, node)->text_end);
}

/* Return a reference without its fragment, unless that protects a blank before it. */
static struct span reference_of(const struct builder *b, const struct link *link)
{
    struct span whole = value_of(b, link->said);
    const uint8_t *hash = whole.at < whole.end ? memchr(whole.at, '#', whole.end - whole.at) : NULL;
    if (hash && (hash == whole.at || hash[-1] > ' '))
        whole.end = hash;
    return whole;
}

static struct span relations_of(const struct builder *b, const struct link *link)
{
    return value_of(b, attribute_of(b, nth(b, link->node), table.bits.rel));
}

static bool is_equal(struct span one, struct span other)
{
    size_t length = (size_t)(one.end - one.at);
    return length == (size_t)(other.end - other.at)
        && (!length || !memcmp(one.at, other.at, length));
}

/* Links by their references and relations, each by its number plus 1. */
struct links {
    uint32_t *slots;
    size_t room;
};

/* Return whether a link is another one of an element of the same meaning; note it if not. */
static bool is_met(const struct builder *b, struct links *met, uint32_t number)
{
    const struct link *link = nth_link(b, number);
    struct span target = reference_of(b, link), relations = relations_of(b, link);
    uint32_t value = hash(target) * 31 + hash(relations);
    for (size_t probe = 0; probe < PROBES; probe++) {
        uint32_t *slot = met->slots + ((value + probe) & (met->room - 1));
        if (!*slot) {
            *slot = number + 1;
            return false;
        }
        const struct link *other = nth_link(b, *slot - 1);
        if (is_equal(target, reference_of(b, other)) && is_equal(relations, relations_of(b, other)))
            return true;
    }
    return false;
}

/* Add octets as one line. URLs are read without line breaks and tabs (WHATWG URL, section 4.4). */
static bool add_line(struct growing *all, struct span text, bool is_url)
{
    size_t start = all->count;
    if (!add(all, text.at, (size_t)(text.end - text.at)) || !add(all, "\n", 1))
        return false;
    uint8_t *to = (uint8_t *)all->items + start, *from = to, *end = to + (text.end - text.at);
    for (; from < end; from++) {
        bool breaks = *from == '\n' || *from == '\r' || *from == '\t';
        if (!breaks || !is_url)
            *to++ = breaks ? ' ' : *from;
    }
    *to++ = '\n';
    all->count = (size_t)(to - (uint8_t *)all->items);
    return true;
}

/* What a link is called, as far as it is read. */
struct words {
    size_t read, written;
    bool after_space;
};

/* Add a text with white space collapsed. */
static bool add_words(struct growing *all, struct words *words, struct span text)
{
    while (text.at < text.end && words->read < MOST_READ) {
        size_t length = space(text);
        words->read++;
        if (length) {
            text.at += length;
            words->after_space = words->written > 0;
            continue;
        }
        if (words->written + words->after_space >= MOST_WRITTEN) {
            words->read = MOST_READ;
            return true;
        }
        length = 1;
        while (text.at + length < text.end && (text.at[length] & 0xC0) == 0x80)
            length++;
        if ((words->after_space && !add(all, " ", 1)) || !add(all, text.at, length))
            return false;
        words->written += 1 + words->after_space;
        words->after_space = false;
        text.at += length;
    }
    return true;
}

/* Return whether a text in a link counts for what it is called: raw text and values of hidden
 * controls do not. */
static bool is_called(const struct builder *b, const struct node *text)
{
    uint32_t trait = nth(b, text->parent)->trait;
    return !(trait & table.bits.raw)
        && !(trait & table.bits.acts && text->place & table.bits.unseen);
}

/* Add what a link is called: its text, or else the alternative text of the first picture in it. */
static bool add_anchor(const struct builder *b, const struct link *link, struct growing *all)
{
    struct words words = {0};
    /* Links in links, as drawings have them, may repeat a text any number of times. */
    size_t most = b->tree->text.count + b->tree->values.count;
    if (!(nth(b, link->node)->trait & table.bits.anchor) || all->count > most)
        return add(all, "\n", 1);
    for (uint32_t k = link->node + 1; k < link->last && words.read < MOST_READ; k++) {
        const struct node *node = nth(b, k);
        if (!node->name && is_called(b, node) && !add_words(all, &words, text_of(b, k)))
            return false;
    }
    for (uint32_t k = link->node; k < link->last && !words.written; k++) {
        const struct node *node = nth(b, k);
        int64_t said = node->trait & table.bits.picture
            ? attribute_of(b, node, table.bits.alt) : -1;
        if (said < 0)
            continue;
        words = (struct words){0};
        if (!add_words(all, &words, value_of(b, said)))
            return false;
        break;
    }
    return add(all, "\n", 1);
}

/* Write the different links: of equal ones the first. */
static bool write_links(const struct builder *b)
{
    struct tree *tree = b->tree;
    struct links met = {.room = 16};
    while (met.room < 2 * b->links.count)
        met.room *= 2;
    met.slots = calloc(met.room, sizeof *met.slots);
    bool done = met.slots;
    for (uint32_t i = 0; done && i < b->links.count && tree->links.count < b->limits->links; i++) {
        const struct link *link = nth_link(b, i);
        if (nth(b, link->node)->trait & table.bits.anchor && is_met(b, &met, i))
            continue;
        done = add_number(&tree->links, link->node)
            && add_line(&tree->references, reference_of(b, link), true)
            && add_line(&tree->relations, relations_of(b, link), false)
            && add_anchor(b, link, &tree->anchors);
    }
    free(met.slots);
    return done;
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

static int parse(
    handle document, const uint8_t *html, size_t length, const struct limits *limits, double until)
{
    if (lexbor.begin(document))
        return NOT_PARSED;
    for (size_t at = 0; at < length; at += CHUNK) {
        if (lexbor.parse(document, html + at, length - at < CHUNK ? length - at : CHUNK))
            return NOT_PARSED;
        if (given > (int64_t)limits->memory)
            return TOO_LARGE;
        if (seconds_used() > until)
            return TOO_SLOW;
    }
    return lexbor.finish(document) ? NOT_PARSED : 0;
}

/* Make room for the columns of a usual page of that length, so that they are seldom copied. */
static bool make_columns(struct tree *tree, size_t length)
{
    size_t usual = length < MOST_USUAL ? length : MOST_USUAL;
    return make_room(&tree->nodes, usual / 24, sizeof(struct node))
        && make_room(&tree->said, usual / 32, sizeof(struct said))
        && make_room(&tree->text, usual, 1) && make_room(&tree->values, usual / 2, 1);
}

/* Return 0, or why there is no tree, or a part of one only. */
static int read_page(struct builder *b, const uint8_t *html, size_t length)
{
    const struct limits *limits = b->limits;
    double from = seconds_used();
    given = 0;
    int failure = parse(b->document, html, length, limits, from + limits->seconds);
    if (failure == NOT_PARSED)
        return failure;
    /* What was parsed until the end of the time is worth a quarter of it. */
    int rest = make_columns(b->tree, length) ? read_nodes(b, from + limits->seconds * 1.25) : NO_MEMORY;
    while (b->level && rest != NO_MEMORY)
        close_element(b);
    if (rest == NO_MEMORY || (limits->links && !write_links(b)))
        return NO_MEMORY;
    return failure ? failure : rest;
}

EXPORTED void tree_drop(struct tree *tree)
{
    if (!tree)
        return;
    free(tree->nodes.items);
    free(tree->said.items);
    free(tree->text.items);
    free(tree->values.items);
    free_names(&tree->names);
    free(tree->links.items);
    free(tree->references.items);
    free(tree->relations.items);
    free(tree->anchors.items);
    free(tree);
}

/* Make the tree of a page, to be given back to tree_drop. Returns 0, or why there is none, or a part
 * of one only. */
EXPORTED int64_t tree_made(
    const uint8_t *html, size_t length, uint32_t options, const struct limits *limits,
    struct tree **made)
{
    *made = NULL;
    struct tree *tree = calloc(1, sizeof *tree);
    handle document = tree ? lexbor.create() : NULL;
    int failure = NO_MEMORY;
    if (document && copy_names(&tree->names, &table.names)) {
        lexbor.set_options(document, options);
        struct builder builder = {.tree = tree, .document = document, .limits = limits};
        failure = read_page(&builder, html, length);
        free(builder.links.items);
    }
    if (document)
        lexbor.destroy(document);
    if (failure == NO_MEMORY || failure == NOT_PARSED || !tree->nodes.count)
        tree_drop(tree);
    else
        *made = tree;
    return failure;
}

bool tree_names(const struct tree *tree, const char *name)
{
    const uint8_t *at = (const uint8_t *)name;
    return *slot_of(&tree->names, (struct span){at, at + strlen(name)}) != 0;
}

/* Tell where a tree's columns are, and their octets: nodes, attributes, text, values, the names with
 * their ends, links, and their references, relations and names. */
EXPORTED void tree_columns(const struct tree *tree, const void **columns, size_t *octets)
{
    const struct {
        const struct growing *column;
        size_t size;
    } all[] = {
        {&tree->nodes, sizeof(struct node)}, {&tree->said, sizeof(struct said)},
        {&tree->text, 1}, {&tree->values, 1}, {&tree->names.octets, 1},
        {&tree->names.ends, sizeof(uint32_t)}, {&tree->links, sizeof(uint32_t)},
        {&tree->references, 1}, {&tree->relations, 1}, {&tree->anchors, 1},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        columns[i] = all[i].column->items;
        octets[i] = all[i].column->count * all[i].size;
    }
}
