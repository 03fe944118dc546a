/* The blocks of the main text of a page: crawler/reduce/main_text.py. The tests have the same in
 * Python (tests/crawler/reduce/reference/main_text.py).
 *
 * Pages are made by strangers. Each step takes time and memory in proportion to the tree, whose
 * levels are bounded. No function recurses. */

#include "core.h"
#include "blocks.h"

/* Digits of the number of a line. */
#define MOST_DIGITS 7

/* What elements are to this walk, by their numbers in Python; inline ones make no place. */
enum { IS_OTHER, IS_VERBATIM, IS_BREAK, IS_RAISED, IS_LOWERED, IS_APART, IS_TIME, IS_LINK, IS_INLINE = 16 };

/* Where a name of an element is looked for among the different ones; with more it counts as another
 * one. Bounded, because strangers choose what collides. */
#define SLOTS 1024
#define PROBES 16

/* What Python has to look at: a text that NFC may change, and one that may be a stamp. */
enum { IS_ODD = 1, MAY_BE_STAMP = 2 };

/* An element in which a block stands, or one around it: the number of the one around it, which is
 * less, and that of its name plus 1; 0: it makes no place. The first is the body. */
struct standing {
    uint32_t up, name;
};

/* A name of an element: its tag, id and classes; what they hash to here, and what in stores. */
struct name {
    uint64_t hash, stored;
    uint32_t tag, node;
    struct span id, classes;
    bool is_asked;
};

/* The blocks, with a "\n" behind each of their texts; the elements in which they stand, and their
 * different names; the nodes with names that Python must read. The kind and the place of each
 * block. */
struct blocks {
    const struct wording *known;
    struct growing blocks, texts, standing, names, asked, kinds, places;
};

EXPORTED void blocks_drop(struct blocks *all)
{
    if (!all)
        return;
    free(all->blocks.items);
    free(all->texts.items);
    free(all->standing.items);
    free(all->names.items);
    free(all->asked.items);
    free(all->kinds.items);
    free(all->places.items);
    free(all);
}

/* -- characters -------------------------------------------------------------------------------- */

/* Return whether a character is default-ignorable (Unicode, DerivedCoreProperties.txt), such as a
 * soft hyphen or a zero-width space: readers see no difference. */
static bool is_ignorable(uint32_t code)
{
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

/* Return whether a character is a box that a reader may tick: that is a state, and no word. */
static bool is_box(uint32_t code) { return code == 0x2610 || code == 0x2611; }

/* Return whether NFC leaves a character beyond ASCII alone, whatever stands beside it: below
 * U+0300, most punctuation, and the ideographs from U+4E00 to U+9FFF. */
static bool is_composed(uint32_t code)
{
    return code < 0x300 || (code >= 0x2010 && code <= 0x2027) || (code >= 0x4E00 && code <= 0x9FFF);
}

/* -- texts ------------------------------------------------------------------------------------- */

/* A text that grows, in which each run of white space is one space, with none at the ends. */
struct line {
    struct growing *into;
    size_t begin, characters;
    bool after_space, is_odd;
};

static bool add_text(struct line *line, struct span text)
{
    /* A space may stand before it. */
    if (!make_room(line->into, (size_t)(text.end - text.at) + 1, 1))
        return false;
    uint8_t *octets = line->into->items, *to = octets + line->into->count;
    while (text.at < text.end) {
        size_t blank = space(text);
        if (blank) {
            line->after_space = true;
            text.at += blank;
            continue;
        }
        uint32_t code = *text.at;
        size_t length = code < 0x80 ? 1 : decoded(text, &code);
        if (code >= 0x80 && (is_ignorable(code) || is_box(code))) {
            text.at += length;
            continue;
        }
        if (line->after_space && line->characters) {
            *to++ = ' ';
            line->characters++;
        }
        line->after_space = false;
        line->is_odd |= code >= 0x80 && !is_composed(code);
        line->characters++;
        while (length--)
            *to++ = *text.at++;
        uint8_t *begin = to;
        to = copy_plain(to, &text);
        line->after_space = to > begin && to[-1] == ' ';
        to -= line->after_space;
        line->characters += (size_t)(to - begin);
        if (line->after_space)
            continue;
        for (; text.at < text.end && *text.at > ' ' && *text.at < 0x80; line->characters++)
            *to++ = *text.at++;
    }
    line->into->count = (size_t)(to - octets);
    return true;
}

static bool add_sign(struct line *line, char sign)
{
    const uint8_t *at = (const uint8_t *)&sign;
    return add_text(line, (struct span){at, at + 1});
}

/* Add TeX without the style that some tools put around all of it: plain_tex in markdown.py. */
static bool add_tex(struct line *line, struct span text)
{
    static const char *const STYLES[] = {"{\\displaystyle", "{\\textstyle"};
    text = stripped(text);
    for (size_t i = 0; i < 2; i++) {
        size_t length = strlen(STYLES[i]);
        struct span rest = {text.at + length, text.end};
        if ((size_t)(text.end - text.at) > length + 1 && !memcmp(text.at, STYLES[i], length)
            && space(rest) && text.end[-1] == '}') {
            text = (struct span){rest.at, text.end - 1};
            break;
        }
    }
    return add_sign(line, ' ') && add_text(line, text) && add_sign(line, ' ');
}

/* -- stamps ------------------------------------------------------------------------------------ */

/* What a group of three characters tells: that it may begin a stamp, is within one, or is within one
 * that begins with a number, or that it begins a relative time. */
enum { BEGINS_STAMP = 1, IN_STAMP = 2, COUNTED = 4, BEGINS_RELATIVE = 8 };

/* Characters count by their last five bits: what is no letter only makes a group tell too much. */
static uint8_t told_by(const struct wording *known, const uint8_t *three)
{
    return known->groups[(three[0] & 31) << 10 | (three[1] & 31) << 5 | (three[2] & 31)];
}

static bool is_digit(uint8_t octet) { return octet >= '0' && octet <= '9'; }

static bool is_word(uint8_t octet)
{
    return is_digit(octet) || ((octet | 0x20) >= 'a' && (octet | 0x20) <= 'z') || octet == '_';
}

/* Return whether a text begins as stamps do. */
static bool begins_stamp(const struct wording *known, struct span text)
{
    if (!(told_by(known, text.at) & BEGINS_STAMP))
        return false;
    const uint8_t *start = known->starts, *end = start + known->start_octets;
    while (start < end) {
        const uint8_t *at = text.at;
        while (at < text.end && (*at >= 'A' && *at <= 'Z' ? *at | 0x20 : *at) == *start) {
            at++;
            start++;
        }
        if (*start == '\n')
            return true;
        while (*start != '\n')
            start++;
        start++;
    }
    return false;
}

/* Return whether a text may be a stamp: whether it is one is Python's to say. */
static bool may_be_stamp(const struct wording *known, const struct line *line)
{
    const uint8_t *text = (const uint8_t *)line->into->items + line->begin;
    size_t length = line->into->count - line->begin, first = length;
    int64_t spaces = 0;
    bool is_plain = !line->is_odd;
    uint8_t within = 0;
    if (is_plain && line->characters > (size_t)known->most)
        return false;
    for (size_t i = 0; i < length && spaces < known->words; i++)
        spaces += text[i] == ' ';
    if (spaces >= known->words)
        return false;
    for (size_t i = 0; i < length; i++) {
        first = first == length && is_word(text[i]) ? i : first;
        if (i + 2 < length)
            within |= told_by(known, text + i);
        /* Punctuation from U+2010 on is plain, too: NFC leaves nothing else with 0xE2 alone. */
        is_plain &= text[i] < 0x80 || text[i] == 0xE2;
        i += text[i] == 0xE2 ? 2 : 0;
    }
    if (!is_plain)
        return true;
    if (first + 2 >= length)
        return false;
    if (within & (is_digit(text[first]) ? COUNTED | IN_STAMP : IN_STAMP))
        return true;
    struct span whole = {text, text + length}, words = {text + first, text + length};
    uint8_t groups = (is_digit(text[first]) ? 0 : told_by(known, words.at)) | told_by(known, text);
    return (groups & BEGINS_RELATIVE && line->characters <= (size_t)known->relative)
        || begins_stamp(known, whole) || (!is_digit(text[first]) && begins_stamp(known, words));
}

/* -- the walk ---------------------------------------------------------------------------------- */

/* An open element: where it ends, and the block around it. */
struct level {
    uint32_t end, holder;
    bool is_block;
};

struct walk {
    const struct wording *known;
    const struct columns *tree;
    /* The elements that show something else than their text, in order: times that a machine reads. */
    const uint32_t *replaced;
    size_t replaced_count;
    struct blocks *made;
    struct line line;
    uint32_t holder;
    struct growing levels;
};

static bool end_block(struct walk *walk)
{
    struct line *line = &walk->line;
    bool done = true;
    if (line->characters) {
        struct growing *blocks = &walk->made->blocks;
        struct block block = {
            walk->holder,
            (line->is_odd ? IS_ODD : 0) | (may_be_stamp(walk->known, line) ? MAY_BE_STAMP : 0),
        };
        done = make_room(blocks, 1, sizeof block) && add(line->into, "\n", 1);
        if (done)
            ((struct block *)blocks->items)[blocks->count++] = block;
    }
    *line = (struct line){.into = line->into, .begin = line->into->count};
    return done;
}

static bool open_level(struct walk *walk, uint32_t node, bool is_block)
{
    struct level level = {walk->tree->nodes[node].end, walk->holder, is_block};
    if (!make_room(&walk->levels, 1, sizeof level))
        return false;
    ((struct level *)walk->levels.items)[walk->levels.count++] = level;
    return true;
}

static bool close_level(struct walk *walk)
{
    struct level level = ((struct level *)walk->levels.items)[--walk->levels.count];
    if (level.holder != walk->holder && !end_block(walk))
        return false;
    walk->holder = level.holder;
    return level.is_block || add_sign(&walk->line, ' ');
}

static struct span text_of(struct walk *walk, const struct node *node)
{
    return text_in(walk->tree, node);
}

static struct span value_of(struct walk *walk, const struct node *node, int64_t name)
{
    for (uint32_t i = node->said; i < node->said_end; i++) {
        const struct said *said = walk->tree->said + i;
        if (said->name == name)
            return value_in(walk->tree, said);
    }
    return (struct span){NULL, NULL};
}

static bool is_replaced(const struct walk *walk, uint32_t node)
{
    size_t low = 0, high = walk->replaced_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (walk->replaced[middle] < node)
            low = middle + 1;
        else
            high = middle;
    }
    return low < walk->replaced_count && walk->replaced[low] == node;
}

/* Return whether a link leads to its own heading, which documents leave out, too. */
static bool is_permalink(struct walk *walk, const struct node *node)
{
    struct span text = stripped(text_of(walk, node));
    return node->chars == 1
        && is_one_of(walk->known->permalinks, (size_t)walk->known->permalink_octets, text);
}

/* Return whether an element in code is the number of a line: is_line_number in markdown.py. */
static bool is_line_number(struct walk *walk, const struct node *node)
{
    if (node->said == node->said_end || node->chars > MOST_DIGITS)
        return false;
    struct span classes = value_of(walk, node, walk->known->class);
    if (classes.at == classes.end)
        return false;
    struct span digits = stripped(text_of(walk, node));
    for (const uint8_t *at = digits.at; at < digits.end; at++)
        if (!is_digit(*at))
            return false;
    if (digits.at == digits.end)
        return false;
    while (classes.at < classes.end) {
        size_t blank = space(classes);
        if (blank) {
            classes.at += blank;
            continue;
        }
        struct span word = {classes.at, classes.at};
        while (classes.at < classes.end && !space(classes))
            classes.at++;
        word.end = classes.at;
        if (is_one_of(walk->known->line_numbers, (size_t)walk->known->octets, word))
            return true;
    }
    return false;
}

static int64_t kind_of(const struct walk *walk, const struct node *node)
{
    int64_t kind
        = node->name < (uint64_t)walk->known->names ? walk->known->kinds[node->name] : IS_OTHER;
    return kind & ~(int64_t)IS_INLINE;
}

static bool makes_place(const struct walk *walk, const struct node *node)
{
    return node->name >= (uint64_t)walk->known->names
        || !(walk->known->kinds[node->name] & IS_INLINE);
}

/* Add an element or a text; *next is the node that follows. */
static bool add_node(struct walk *walk, uint32_t at, uint32_t *next)
{
    const struct wording *known = walk->known;
    const struct node *node = walk->tree->nodes + at;
    int64_t kind = kind_of(walk, node);
    *next = at + 1;
    if (!node->name)
        return add_text(&walk->line, text_of(walk, node));
    if (node->trait & known->tex) {
        *next = node->end;
        return add_tex(&walk->line, text_of(walk, node));
    }
    if (node->trait & known->block) {
        bool done = end_block(walk) && open_level(walk, at, true);
        walk->holder = at;
        return done;
    }
    if (kind == IS_BREAK)
        return end_block(walk);
    if ((kind >= IS_RAISED && kind <= IS_APART) || node->trait & known->apart)
        /* Words do not join those beside them: 10^2 is not 102. */
        return add_sign(&walk->line, kind == IS_RAISED ? '^' : kind == IS_LOWERED ? '_' : ' ')
            && open_level(walk, at, false);
    if (kind == IS_TIME && is_replaced(walk, at)) {
        *next = node->end;
        return add_text(&walk->line, value_of(walk, node, known->datetime));
    }
    return true;
}

/* Add all that stands in a node. */
static bool add_all(struct walk *walk, uint32_t top)
{
    const struct node *nodes = walk->tree->nodes;
    uint32_t at = top, stop = nodes[top].end, code_end = 0;
    int64_t hidden = 0;
    walk->levels.count = 0;
    while (at < stop || walk->levels.count) {
        const struct level *open = walk->levels.items;
        if (walk->levels.count && at >= open[walk->levels.count - 1].end) {
            if (!close_level(walk))
                return false;
            continue;
        }
        const struct node *node = nodes + at;
        if (kind_of(walk, node) == IS_VERBATIM && at >= code_end) {
            /* Documents show code without the buttons and the numbers of lines in it. */
            code_end = node->end;
            hidden = walk->known->in_control & ~(int64_t)node->place;
        }
        bool is_code = at < code_end;
        if (node->place & (walk->known->unseen | (is_code ? hidden : 0))
            || (is_code ? is_line_number(walk, node)
                        : kind_of(walk, node) == IS_LINK && is_permalink(walk, node)))
            at = node->end;
        else if (!add_node(walk, at, &at))
            return false;
    }
    return true;
}

/* -- where blocks stand ------------------------------------------------------------------------ */

/* The numbers plus 1 of different names by their hash. */
struct slots {
    uint32_t of[SLOTS];
};

/* FNV-1a. */
static uint64_t hashed(uint64_t hash, struct span text)
{
    for (const uint8_t *at = text.at; at < text.end; at++)
        hash = (hash ^ *at) * 0x100000001b3u;
    return (hash ^ 0xFF) * 0x100000001b3u;
}

static bool is_equal(struct span one, struct span other)
{
    size_t length = (size_t)(one.end - one.at);
    return length == (size_t)(other.end - other.at)
        && (!length || !memcmp(one.at, other.at, length));
}

static int by_letters(const void *a, const void *b)
{
    struct span first = *(const struct span *)a, second = *(const struct span *)b;
    size_t one = (size_t)(first.end - first.at), other = (size_t)(second.end - second.at);
    int order = memcmp(first.at, second.at, one < other ? one : other);
    return order ? order : (one > other) - (one < other);
}

/* What is needed while names are read. */
struct reading {
    struct slots *slots;
    struct growing words, letters;
};

/* Return whether a token has no digits: a person chose it. */
static bool tells(struct span token)
{
    for (; token.at < token.end; token.at++)
        if (is_digit(*token.at))
            return false;
    return true;
}

static bool is_plain(struct span text)
{
    uint8_t all = 0;
    for (; text.at < text.end; text.at++)
        all |= *text.at;
    return all < 0x80;
}

/* Return whether a class is one of the lines in these octets, in the same letters. */
static bool is_passing(const struct wording *known, struct span word)
{
    for (const uint8_t *at = word.at; at < word.end; at++)
        if (*at >= 'A' && *at <= 'Z')
            return false;
    return is_one_of(known->passing, (size_t)known->passing_octets, word);
}

/* Add the meaningful classes of a name, sorted, each once. */
static bool add_classes(
    const struct wording *known, struct reading *reading, struct span classes)
{
    reading->words.count = 0;
    for (struct span word; pass_word(&classes, &word);) {
        if (!tells(word) || is_passing(known, word))
            continue;
        if (!make_room(&reading->words, 1, sizeof word))
            return false;
        ((struct span *)reading->words.items)[reading->words.count++] = word;
    }
    const struct span *words = reading->words.items;
    if (!reading->words.count)
        return true;
    qsort(reading->words.items, reading->words.count, sizeof *words, by_letters);
    for (size_t i = 0; i < reading->words.count; i++) {
        if (i && is_equal(words[i - 1], words[i]))
            continue;
        if ((i && !add(&reading->letters, ".", 1))
            || !add(&reading->letters, words[i].at, (size_t)(words[i].end - words[i].at)))
            return false;
    }
    return true;
}

/* Work out what is stored of a name, or leave it to Python: named() in crawler/reduce/blocks.py. */
static bool read_name(const struct wording *known, struct reading *reading, struct name *name)
{
    name->is_asked = name->tag >= (uint64_t)known->names || !is_plain(name->classes);
    if (name->is_asked)
        return true;
    /* Ids of leaves are made from their words, or count them. */
    bool is_leaf = known->block_kinds[name->tag] != 0;
    name->is_asked = !is_leaf && !is_plain(name->id);
    if (name->is_asked)
        return true;
    struct growing *letters = &reading->letters;
    int64_t begin = name->tag ? known->ends[name->tag - 1] : 0;
    letters->count = 0;
    bool done = add(letters, known->letters + begin, (size_t)(known->ends[name->tag] - begin))
        && add(letters, "#", 1);
    if (done && !is_leaf && tells(name->id))
        done = add(letters, name->id.at, (size_t)(name->id.end - name->id.at));
    done = done && add(letters, ".", 1) && add_classes(known, reading, name->classes);
    if (!done)
        return false;
    uint8_t octets[8];
    digest(letters->items, letters->count, octets, sizeof octets);
    for (size_t i = sizeof octets; i--;)
        name->stored = name->stored << 8 | octets[i];
    return true;
}

/* Find the number of an element's name plus 1, and note it if it is another one. */
static bool find_name(
    struct walk *walk, struct reading *reading, uint32_t node, uint32_t *number)
{
    const struct node *row = walk->tree->nodes + node;
    struct growing *names = &walk->made->names;
    struct name name = {
        .tag = row->name, .id = value_of(walk, row, walk->known->id),
        .classes = value_of(walk, row, walk->known->class), .node = node,
    };
    name.hash = hashed(hashed(0xcbf29ce484222325u ^ name.tag, name.id), name.classes);
    uint32_t *slot = NULL;
    for (uint64_t probe = 0; probe < PROBES; probe++) {
        slot = reading->slots->of + (((name.hash ^ name.hash >> 32) + probe) & (SLOTS - 1));
        if (!*slot)
            break;
        const struct name *other = (const struct name *)names->items + *slot - 1;
        if (other->hash == name.hash && other->tag == name.tag && is_equal(other->id, name.id)
            && is_equal(other->classes, name.classes)) {
            *number = *slot;
            return true;
        }
    }
    if (!read_name(walk->known, reading, &name) || !make_room(names, 1, sizeof name)
        || (name.is_asked && !add(&walk->made->asked, &node, sizeof node)))
        return false;
    ((struct name *)names->items)[names->count++] = name;
    *number = *slot = (uint32_t)names->count;
    return true;
}

/* Number the elements in which blocks stand, those around them first. */
static bool find_standing(struct walk *walk, uint32_t body)
{
    struct growing *standing = &walk->made->standing, chain = {0};
    struct block *blocks = walk->made->blocks.items;
    struct reading reading = {.slots = calloc(1, sizeof *reading.slots)};
    /* The number of each node among them plus 1. */
    uint32_t *numbers = calloc(walk->tree->node_count, sizeof *numbers);
    bool done = reading.slots && numbers && make_room(standing, 1, sizeof(struct standing));
    if (done) {
        ((struct standing *)standing->items)[standing->count++] = (struct standing){0};
        numbers[0] = numbers[body] = 1;
    }
    for (size_t i = 0; done && i < walk->made->blocks.count; i++) {
        uint32_t node = blocks[i].holder;
        for (chain.count = 0; done && !numbers[node]; node = walk->tree->nodes[node].parent) {
            done = make_room(&chain, 1, sizeof node);
            if (done)
                ((uint32_t *)chain.items)[chain.count++] = node;
        }
        while (done && chain.count) {
            node = ((uint32_t *)chain.items)[--chain.count];
            const struct node *row = walk->tree->nodes + node;
            struct standing found = {numbers[row->parent] - 1, 0};
            done = (!makes_place(walk, row) || find_name(walk, &reading, node, &found.name))
                && make_room(standing, 1, sizeof found);
            if (done) {
                ((struct standing *)standing->items)[standing->count++] = found;
                numbers[node] = (uint32_t)standing->count;
            }
        }
        if (done)
            blocks[i].holder = numbers[blocks[i].holder] - 1;
    }
    free(reading.slots);
    free(reading.words.items);
    free(reading.letters.items);
    free(numbers);
    free(chain.items);
    return done;
}

/* -- a page ------------------------------------------------------------------------------------ */

/* Make the blocks of pieces, to be given back to blocks_drop. */
EXPORTED int64_t blocks_made(
    const struct wording *known, const struct pieces *pieces, const uint32_t *replaced,
    size_t replaced_count, struct blocks **made)
{
    return blocks_of(known, pieces, NULL, pieces->pieces.count, replaced, replaced_count, made);
}

int64_t blocks_of(
    const struct wording *known, const struct pieces *pieces, const uint32_t *numbers, size_t count,
    const uint32_t *replaced, size_t replaced_count, struct blocks **made)
{
    *made = NULL;
    struct blocks *all = calloc(1, sizeof *all);
    if (!all)
        return NO_MEMORY;
    all->known = known;
    struct walk walk = {
        .known = known, .tree = &pieces->tree, .replaced = replaced, .replaced_count = replaced_count,
        .made = all, .line = {.into = &all->texts},
    };
    const uint32_t *nodes = pieces->nodes.items;
    bool done = true;
    for (size_t i = 0; done && i < count; i++) {
        const struct piece *piece = nth_piece(pieces, numbers ? numbers[i] : i);
        walk.holder = piece->holder;
        for (uint32_t k = piece->nodes; done && k < piece->nodes_end; k++)
            done = add_all(&walk, nodes[k]);
        done = done && end_block(&walk);
    }
    done = done && find_standing(&walk, pieces->top);
    free(walk.levels.items);
    if (!done) {
        blocks_drop(all);
        return NO_MEMORY;
    }
    *made = all;
    return 0;
}

/* Tell where the nodes are whose names Python must read, and their octets. */
EXPORTED void blocks_asked(const struct blocks *all, const void **columns, size_t *octets)
{
    columns[0] = all->asked.items;
    octets[0] = all->asked.count;
}

/* Where an element stands, and the kind of the blocks in it. */
struct where {
    uint64_t place;
    uint8_t kind;
};

/* Return the place of an element of a name in the element at a place: within() in
 * crawler/reduce/blocks.py. */
static uint64_t within(uint64_t place, uint64_t name)
{
    uint64_t mixed = (place ^ name) * 0x9E3779B97F4A7C15u;
    mixed ^= mixed >> 29;
    return mixed ? mixed : 1;
}

static struct name *nth_name(const struct blocks *all, size_t number)
{
    return (struct name *)all->names.items + number;
}

/* Work out where each block stands, from the place of the body on. `said` has what Python makes of
 * the names that it was asked about. */
EXPORTED int64_t blocks_placed(
    struct blocks *all, uint64_t body, const uint64_t *said, size_t said_count)
{
    size_t next = 0, count = all->standing.count, blocks = all->blocks.count;
    for (size_t i = 0; i < all->names.count; i++) {
        if (!nth_name(all, i)->is_asked)
            continue;
        if (next == said_count)
            return WRONG_INDEX;
        nth_name(all, i)->stored = said[next++];
    }
    struct where *found = malloc((count + 1) * sizeof *found);
    bool done = found && make_room(&all->kinds, blocks, 1)
        && make_room(&all->places, blocks, sizeof(uint64_t));
    for (size_t i = 0; done && i < count; i++) {
        struct standing standing = ((const struct standing *)all->standing.items)[i];
        if (!i) {
            found[i] = (struct where){body, 0};
            continue;
        }
        found[i] = found[standing.up];
        if (!standing.name)
            continue;
        const struct name *name = nth_name(all, standing.name - 1);
        bool is_known = name->tag < (uint64_t)all->known->names;
        found[i].kind = is_known ? (uint8_t)all->known->block_kinds[name->tag] : 0;
        found[i].place = within(found[i].place, name->stored);
    }
    for (size_t i = 0; done && i < blocks; i++) {
        const struct where *where = found + ((const struct block *)all->blocks.items)[i].holder;
        ((uint8_t *)all->kinds.items)[all->kinds.count++] = where->kind;
        ((uint64_t *)all->places.items)[all->places.count++] = where->place;
    }
    free(found);
    return done ? 0 : NO_MEMORY;
}

/* Tell where the blocks are, their texts, kinds and places, and their octets. */
EXPORTED void blocks_columns(const struct blocks *all, const void **columns, size_t *octets)
{
    columns[0] = all->blocks.items;
    octets[0] = all->blocks.count * sizeof(struct block);
    columns[1] = all->texts.items;
    octets[1] = all->texts.count;
    columns[2] = all->kinds.items;
    octets[2] = all->kinds.count;
    columns[3] = all->places.items;
    octets[3] = all->places.count * sizeof(uint64_t);
}
