/* The pieces of a page in numbers, and the trees' judgement of each: crawler/reduce/content.py
 * says what the numbers mean, and its reference in Python makes the same ones.
 *
 * Python is asked twice. `content_read` makes the text of each piece and goes through the elements
 * above it; it leaves behind which elements and which characters Python must be asked about.
 * `content_judged` is told the answers. Nothing is kept from one page to the next.
 *
 * Pages are made by strangers. Each step takes time and memory in proportion to the tree, whose
 * levels are bounded. No function recurses. */

#include "content.h"

/* A paragraph has so many characters, few of them in links. */
#define LONG_RUN 80
/* Characters in which digits are counted, and words in which capitals are. */
#define START 400
#define FEW_WORDS 60
/* Characters of a name whose words have odds, and odds that speak against content. */
#define NAME 300
#define BAD -1.5
/* Elements above a piece that are described, and those to which its prose counts. */
#define ABOVE 4
#define WEIGHTED 5
/* Octets of a title that is looked at here, and characters of a heading that says too little for one. */
#define MOST_TITLE 512
#define SHORT_TITLE 5
/* Pieces that are judged at a time. */
#define BATCH 32

EXPORTED void content_drop(struct content *content)
{
    if (!content)
        return;
    struct growing *all[] = {
        &content->places, &content->odds, &content->asked, &content->asked_blocks,
        &content->titles, &content->title_texts,
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]->items);
    free(content->place_of);
    free(content->piece_place);
    free(content->sums);
    free(content->rows);
    free(content->words);
    free(content);
}

/* -- names of elements ------------------------------------------------------------------------- */

static uint8_t small(uint8_t letter)
{
    return letter >= 'A' && letter <= 'Z' ? letter | 0x20 : letter;
}

/* FNV-1a, an octet at a time. */
static uint64_t hashed(uint64_t hash, uint8_t octet)
{
    return (hash ^ octet) * 0x100000001b3u;
}

static int64_t slot_of(const struct vocabulary *known, struct span word)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (const uint8_t *at = word.at; at < word.end; at++)
        hash = hashed(hash, small(*at));
    int64_t mask = known->slots - 1, slot = (int64_t)((hash ^ hash >> 32) & (uint64_t)mask);
    for (; known->table[slot] >= 0; slot = (slot + 1) & mask) {
        int64_t number = known->table[slot], begin = number ? known->ends[number - 1] : 0;
        if (known->ends[number] - begin != word.end - word.at)
            continue;
        const uint8_t *own = known->letters + begin, *at = word.at;
        while (at < word.end && small(*at) == *own) {
            at++;
            own++;
        }
        if (at == word.end)
            break;
    }
    return slot;
}

/* Fill the table of a vocabulary, and look at its numbers. */
EXPORTED int64_t vocabulary_begin(const struct vocabulary *known)
{
    int64_t before = 0;
    for (int64_t i = 0; i < known->words; before = known->ends[i++])
        if (known->ends[i] < before || known->ends[i] > known->octets)
            return WRONG_INDEX;
    if (known->slots <= 2 * known->words || (known->slots & (known->slots - 1)))
        return WRONG_INDEX;
    for (int64_t i = 0; i < known->slots; i++)
        known->table[i] = -1;
    for (int64_t i = 0; i < known->words; i++) {
        const uint8_t *begin = known->letters + (i ? known->ends[i - 1] : 0);
        known->table[slot_of(known, (struct span){begin, known->letters + known->ends[i]})] = i;
    }
    return 0;
}

static bool is_upper(uint8_t letter) { return letter >= 'A' && letter <= 'Z'; }
static bool is_lower(uint8_t letter) { return letter >= 'a' && letter <= 'z'; }

/* Go past the next word of a name in ASCII: letters, of which no capital is behind a small one.
 * Returns whether there is one. */
static bool next_word(struct span *name, struct span *word)
{
    const uint8_t *at = name->at;
    while (at < name->end && !is_upper(*at) && !is_lower(*at))
        at++;
    word->at = at;
    while (at < name->end && is_upper(*at))
        at++;
    while (at < name->end && is_lower(*at))
        at++;
    word->end = name->at = at;
    return word->at < at;
}

int64_t number_of_word(const struct vocabulary *known, struct span word)
{
    return known->table[slot_of(known, word)];
}

/* Return whether a part of an id or class names a part of the frame: is_frame_name in
 * crawler/reduce/boilerplate.py. */
static bool is_frame_token(const struct vocabulary *known, struct span token)
{
    int64_t any = 0, all = KNOWN_WORD, first = -1;
    for (struct span word; next_word(&token, &word);) {
        int64_t number = number_of_word(known, word), flags = number < 0 ? 0 : known->flags[number];
        first = first < 0 ? flags : first;
        any |= flags;
        all &= flags;
    }
    if (first < 0)
        return false;
    return all ? any & FRAME_WORD : any & SURE_WORD && !(first & STATE_WORD);
}

static bool is_frame_class(const struct vocabulary *known, struct span classes)
{
    while (classes.at < classes.end) {
        struct span token = {classes.at, classes.at};
        while (token.end < classes.end && !space((struct span){token.end, classes.end}))
            token.end++;
        if (is_frame_token(known, token))
            return true;
        classes.at = token.end + 1;
    }
    return false;
}

/* Return whether a style, without spaces and in small letters, has "display:none". */
static bool hides(struct span style)
{
    static const char WANTED[] = "display:none";
    for (; style.at < style.end; style.at++) {
        const char *wanted = WANTED;
        for (const uint8_t *at = style.at; at < style.end && *wanted; at++) {
            if (*at == ' ' && at > style.at)
                continue;
            if (small(*at) != (uint8_t)*wanted)
                break;
            wanted++;
        }
        if (!*wanted)
            return true;
    }
    return false;
}

static bool is_plain(struct span text)
{
    uint8_t all = 0;
    for (; text.at < text.end; text.at++)
        all |= *text.at;
    return all < 0x80;
}

static int by_number(const void *a, const void *b)
{
    uint32_t first = *(const uint32_t *)a, second = *(const uint32_t *)b;
    return (first > second) - (first < second);
}

/* What the names of an element are read with: for each word the place that had it last, plus 1. */
struct names {
    uint32_t *met;
    struct growing numbers;
};

/* Add the words of a name that are known to those of a place. */
static bool add_name(
    struct content *content, struct names *names, struct place *place, struct span name)
{
    const struct vocabulary *known = content->known;
    if (name.end - name.at > NAME)
        name.end = name.at + NAME;
    for (struct span word; next_word(&name, &word);) {
        int64_t number = number_of_word(known, word);
        if (number < 0 || names->met[number] == content->places.count + 1)
            continue;
        names->met[number] = (uint32_t)content->places.count + 1;
        if (known->flags[number] & COMMENT_WORD)
            place->has_comments = true;
        if (known->flags[number] & ODDS_WORD) {
            uint32_t found = (uint32_t)number;
            if (!make_room(&names->numbers, 1, sizeof found))
                return false;
            ((uint32_t *)names->numbers.items)[names->numbers.count++] = found;
        }
    }
    return true;
}

/* Return whether a text has a word at a place, in any case. */
static bool stands_at(const uint8_t *at, const uint8_t *end, const char *word)
{
    while (*word && at < end && small(*at) == (uint8_t)*word) {
        at++;
        word++;
    }
    return !*word;
}

static bool ends_name(const uint8_t *at, const uint8_t *end)
{
    return at >= end
        || !(is_upper(*at) || is_lower(*at) || (*at >= '0' && *at <= '9') || *at == '_');
}

/* Return whether a name in ASCII is one of a part that opens at a click: _OPENED in
 * crawler/reduce/boilerplate.py. */
static bool opens(struct span name)
{
    static const char *const PARTS[] = {"accordion", "collaps", "expand", "faq", "answer", "spoiler"};
    for (const uint8_t *at = name.at; at < name.end; at++) {
        for (size_t i = 0; i < sizeof PARTS / sizeof *PARTS; i++)
            if (stands_at(at, name.end, PARTS[i]))
                return true;
        if ((stands_at(at, name.end, "panel") && ends_name(at + 5, name.end))
            || (stands_at(at, name.end, "region") && ends_name(at + 6, name.end)))
            return true;
        if (!stands_at(at, name.end, "tab") || (at > name.at && !ends_name(at - 1, name.end)))
            continue;
        const uint8_t *behind = at + 3;
        if (ends_name(behind, name.end) || *behind == '_')
            return true;
        if (small(*behind) == 's' && (ends_name(behind + 1, name.end) || behind[1] == '_'))
            return true;
    }
    return false;
}

/* Read what the attributes of an element say that is above a piece. */
static bool read_names(struct content *content, struct names *names, struct place *place)
{
    const struct vocabulary *known = content->known;
    const struct node *node = content->nodes + place->node;
    static const char FOUND[] = "until-found";
    enum { ID, CLASS, ROLE, NAMING = 5, STYLE = NAMING, HIDDEN, ARIA_HIDDEN, READ };
    const int64_t wanted[READ] = {
        known->id, known->class, known->role, known->itemprop, known->testid, known->style,
        known->hidden, known->aria_hidden,
    };
    struct span values[READ] = {{0}};
    for (uint32_t i = node->said; i < node->said_end; i++) {
        const struct said *said = content->pieces->tree.said + i;
        for (size_t k = 0; k < READ; k++)
            if (said->name == wanted[k])
                values[k] = value_in(&content->pieces->tree, said);
    }
    place->has_attributes = node->said < node->said_end;
    place->odds = place->odds_end = (uint32_t)content->odds.count;
    for (size_t k = 0; k < NAMING; k++)
        place->is_asked |= !is_plain(values[k]);
    if (place->is_asked) {
        if (!make_room(&content->asked, 1, sizeof place->node))
            return false;
        ((uint32_t *)content->asked.items)[content->asked.count++] = place->node;
        return true;
    }
    struct span hidden = values[HIDDEN].at ? stripped(values[HIDDEN]) : values[HIDDEN];
    place->is_marked_hidden = values[HIDDEN].at
        || (values[ARIA_HIDDEN].end - values[ARIA_HIDDEN].at == 4
            && !memcmp(values[ARIA_HIDDEN].at, "true", 4));
    /* A search in the page finds it, and shows it then (HTML, section 6.1). */
    if (place->is_marked_hidden)
        place->is_marked_hidden
            = !(stands_at(hidden.at, hidden.end, FOUND) && hidden.end - hidden.at == sizeof FOUND - 1)
            && !opens(values[ID]) && !opens(values[CLASS]) && !opens(values[ROLE]);
    place->is_hidden = place->is_marked_hidden || hides(values[STYLE]);
    place->is_frame = is_frame_token(known, values[ID]) || is_frame_class(known, values[CLASS]);
    names->numbers.count = 0;
    for (size_t k = 0; k < NAMING; k++)
        if (!add_name(content, names, place, values[k]))
            return false;
    size_t count = names->numbers.count;
    if (!count)
        return true;
    if (!make_room(&content->odds, count, sizeof(double)))
        return false;
    uint32_t *numbers = names->numbers.items;
    qsort(numbers, count, sizeof *numbers, by_number);
    for (size_t i = 0; i < count; i++)
        ((double *)content->odds.items)[content->odds.count++] = known->odds[numbers[i]];
    place->odds_end = (uint32_t)content->odds.count;
    return true;
}

/* Read the elements above each piece, each of them once, those above it first. */
static bool read_places(struct content *content)
{
    struct names names = {0};
    struct growing chain = {0};
    bool done = true;
    names.met = calloc((size_t)content->known->words + 1, sizeof *names.met);
    content->place_of = calloc(content->pieces->tree.node_count + 1, sizeof *content->place_of);
    content->piece_place = calloc(content->pieces->pieces.count + 1, sizeof *content->piece_place);
    done = names.met && content->place_of && content->piece_place;
    for (size_t i = 0; done && i < content->pieces->pieces.count; i++) {
        uint32_t node = nth_piece(content->pieces, i)->holder;
        chain.count = 0;
        while (done && !content->place_of[node]) {
            done = make_room(&chain, 1, sizeof node);
            if (done)
                ((uint32_t *)chain.items)[chain.count++] = node;
            if (node == content->pieces->top || !node)
                break;
            node = content->nodes[node].parent;
        }
        while (done && chain.count) {
            struct place place = {.up = NONE, .near = NONE, .near_above = NONE};
            place.node = ((uint32_t *)chain.items)[--chain.count];
            if (place.node != content->pieces->top && place.node) {
                place.up = content->place_of[content->nodes[place.node].parent] - 1;
                place.depth = nth_place(content, place.up)->depth;
            }
            place.depth++;
            done = read_names(content, &names, &place)
                && make_room(&content->places, 1, sizeof place);
            if (done) {
                *nth_place(content, (uint32_t)content->places.count++) = place;
                content->place_of[place.node] = (uint32_t)content->places.count;
            }
        }
        if (done)
            content->piece_place[i] = content->place_of[nth_piece(content->pieces, i)->holder] - 1;
    }
    free(names.met);
    free(names.numbers.items);
    free(chain.items);
    return done;
}

/* -- reading ----------------------------------------------------------------------------------- */

/* Note the headings of the first two ranks: one may be the page's title. */
static bool read_titles(struct content *content)
{
    for (uint32_t i = 0; i < content->pieces->pieces.count; i++) {
        uint32_t kind = nth_piece(content->pieces, i)->kind;
        struct span text = nth_text(content->pieces, i);
        if (kind < SECOND_HEADING)
            continue;
        /* With the "\n" behind it. */
        if (!add(&content->titles, &i, sizeof i) || !add(&content->titles, &kind, sizeof kind)
            || !add(&content->title_texts, text.at, (size_t)(text.end - text.at) + 1))
            return false;
    }
    return true;
}

/* Read the elements above pieces, which must outlive what was read; to be given back to
 * content_drop. */
EXPORTED int64_t content_read(
    const struct vocabulary *known, const struct pieces *pieces, struct content **made)
{
    struct content *content = *made = calloc(1, sizeof *content);
    if (!content)
        return NO_MEMORY;
    content->known = known;
    content->pieces = pieces;
    content->nodes = pieces->tree.nodes;
    bool done = read_places(content);
    for (uint32_t i = 0; done && i < BLOCKS; i++)
        if (pieces->blocks[i] && !(known->characters[256 * i] & KNOWN_CHARACTER))
            done = add(&content->asked_blocks, &i, sizeof i);
    done = done && read_titles(content);
    if (done)
        return 0;
    content_drop(content);
    *made = NULL;
    return NO_MEMORY;
}

/* Tell where the blocks of characters and the elements are to be asked about, the headings, and the
 * texts of these, and their octets. */
EXPORTED void content_questions(const struct content *content, const void **columns, size_t *octets)
{
    columns[0] = content->asked_blocks.items;
    octets[0] = content->asked_blocks.count;
    columns[1] = content->asked.items;
    octets[1] = content->asked.count * sizeof(uint32_t);
    columns[2] = content->titles.items;
    octets[2] = content->titles.count;
    columns[3] = content->title_texts.items;
    octets[3] = content->title_texts.count;
}

/* Write the small letters of a text in ASCII; returns whether it is one. */
static bool write_small(uint8_t *to, struct span text)
{
    for (const uint8_t *at = text.at; at < text.end; at++)
        *to++ = small(*at);
    return is_plain(text);
}

bool find_titles(
    const struct content *content, struct span title, int64_t *titled, int64_t *headline)
{
    uint8_t whole[MOST_TITLE], small[MOST_TITLE];
    size_t length = (size_t)(title.end - title.at), rows = content->titles.count / 8, heads = 0;
    const uint32_t *row = content->titles.items;
    *titled = *headline = -1;
    if (!rows)
        return true;
    if (length > MOST_TITLE || !write_small(whole, title)
        || !is_plain((struct span){content->title_texts.items,
                                   (uint8_t *)content->title_texts.items + content->title_texts.count}))
        return false;
    int64_t first = -1;
    for (size_t i = 0; i < rows; i++) {
        struct span text = nth_text(content->pieces, row[2 * i]);
        heads += row[2 * i + 1] == FIRST_HEADING && text.at < text.end;
    }
    for (size_t i = 0; i < rows; i++) {
        struct span text = nth_text(content->pieces, row[2 * i]);
        bool is_first = row[2 * i + 1] == FIRST_HEADING, is_in = false;
        size_t own = (size_t)(text.end - text.at);
        if (own <= length) {
            write_small(small, text);
            for (size_t k = 0; k + own <= length && !is_in; k++)
                is_in = !memcmp(whole + k, small, own);
        }
        if (is_first && first < 0)
            first = row[2 * i];
        if (*titled < 0 && is_in && own > SHORT_TITLE)
            *titled = row[2 * i];
        if (*headline < 0 && is_first && own && (heads == 1 || is_in))
            *headline = row[2 * i];
    }
    if (*titled < 0)
        *titled = first;
    return true;
}

/* -- numbers ----------------------------------------------------------------------------------- */

enum { IS_HIDDEN = 1, IS_FRAME = 2, HAS_COMMENTS = 4, IS_MARKED_HIDDEN = 8 };

static uint8_t kind_of(const struct vocabulary *known, uint32_t code)
{
    return code < CHARACTERS ? known->characters[code] : 0;
}

static bool ends_with(struct span text, const char *end)
{
    size_t length = strlen(end);
    return (size_t)(text.end - text.at) >= length && !memcmp(text.end - length, end, length);
}

/* Return the highest bit of each octet of ASCII from one to another, both of it. */
static uint64_t each_between(uint64_t octets, uint8_t first, uint8_t last)
{
    return (octets + EACH(0x80 - first)) & ~(octets + EACH(0x7F - last)) & EACH(0x80);
}

/* Read octets of a text together, if they are ASCII and no bound is between them; returns whether they
 * were. `before` is the octet before them, a space at the beginning. */
static bool read_together(struct words *words, struct span text, uint8_t before)
{
    if ((size_t)(text.end - text.at) <= TOGETHER)
        return false;
    uint64_t octets = octets_at(text.at);
    if ((octets | text.at[TOGETHER]) & EACH(0x80))
        return false;
    uint64_t spaces = each_that_is(octets, ' '), begins = spaces << 8 | (before == ' ' ? 0x80 : 0);
    size_t begun = bits_in(begins);
    if ((words->words < FEW_WORDS && words->words + begun > FEW_WORDS)
        || (words->characters < START && words->characters + TOGETHER > START))
        return false;
    uint64_t stops = each_that_is(octets, '.');
    words->stops += (uint32_t)bits_in(stops & (spaces >> 8));
    words->stops += stops >> 63 && text.at[TOGETHER] == ' ';
    words->commas += (uint32_t)bits_in(each_that_is(octets, ','));
    if (words->characters < START)
        words->digits += (uint32_t)bits_in(each_between(octets, '0', '9'));
    if (words->words < FEW_WORDS)
        words->capitals += (uint32_t)bits_in(each_between(octets, 'A', 'Z') & begins);
    words->words += (uint32_t)begun;
    words->characters += TOGETHER;
    return true;
}

static void read_words(struct words *words, struct span text, const struct vocabulary *known)
{
    static const char *ENDS[] = {".", "!", "?", "…", "。", "”", "\"", ":"};
    for (size_t i = 0; i < sizeof ENDS / sizeof *ENDS; i++)
        words->ends_sentence |= ends_with(text, ENDS[i]);
    uint8_t before = ' ';
    while (text.at < text.end) {
        while (read_together(words, text, before)) {
            text.at += TOGETHER;
            before = text.at[-1];
        }
        uint8_t octet = *text.at, kind = 0;
        if (octet < 0x80) {
            kind = is_upper(octet) ? UPPER_CASE : octet >= '0' && octet <= '9' ? DIGIT : 0;
            words->commas += octet == ',';
            words->stops += octet == '.' && text.at + 1 < text.end && text.at[1] == ' ';
            text.at++;
        } else {
            uint32_t code;
            text.at += decoded(text, &code);
            words->wide_commas += code == 0xFF0C;
            kind = kind_of(known, code);
        }
        words->digits += words->characters < START && kind & DIGIT;
        words->characters++;
        if (before == ' ') {
            words->words++;
            words->capitals += words->words <= FEW_WORDS && kind & UPPER_CASE;
        }
        before = octet;
    }
}

static double larger_than(double value, double least) { return value < least ? least : value; }

/* Return the characters in a node that are in no link. */
static int64_t prose_in(const struct content *content, uint32_t node)
{
    return (int64_t)content->nodes[node].chars - content->nodes[node].linked;
}

static double characters_of_node(const struct content *content, uint32_t node)
{
    return larger_than(content->nodes[node].chars, 1);
}

/* Take the answers about the elements that Python was asked about. */
static bool take_answers(struct content *content, const struct answers *answers)
{
    uint32_t asked = 0, begin = 0, offset = (uint32_t)content->odds.count;
    if (answers->asked != content->asked.count)
        return false;
    for (size_t i = 0; i < answers->asked; begin = answers->ends[i++])
        if (answers->ends[i] < begin || answers->ends[i] > answers->odds_count)
            return false;
    for (size_t i = 0; i < content->places.count; i++) {
        struct place *place = nth_place(content, (uint32_t)i);
        if (!place->is_asked)
            continue;
        uint8_t flags = answers->flags[asked];
        place->is_hidden = flags & IS_HIDDEN;
        place->is_marked_hidden = flags & IS_MARKED_HIDDEN;
        place->is_frame = flags & IS_FRAME;
        place->has_comments = flags & HAS_COMMENTS;
        place->odds = offset + (asked ? answers->ends[asked - 1] : 0);
        place->odds_end = offset + answers->ends[asked++];
    }
    return true;
}

/* Work out what all elements from the body down to each say. */
static void inherit(struct content *content, double prose)
{
    static const double SHARE[SHARES] = {0.25, 0.5, 0.8};
    static const struct place NOTHING = {.near = NONE, .near_above = NONE};
    const double *odds = content->odds.items;
    uint32_t articles = 0;
    for (uint32_t i = 0; i < content->places.count; i++) {
        struct place *place = nth_place(content, i);
        const struct place *up = place->up == NONE ? &NOTHING : nth_place(content, place->up);
        bool is_article = content->nodes[place->node].name == content->known->article;
        articles += is_article;
        place->article = is_article ? articles : up->article;
        place->is_hidden |= up->is_hidden;
        place->has_comments |= up->has_comments;
        place->frame_names = up->frame_names + place->is_frame;
        place->near = place->has_attributes ? i : up->near;
        place->near_above = place->has_attributes ? up->near : up->near_above;
        place->least = up->least;
        place->most = up->most;
        place->sum = up->sum;
        place->bad_names = up->bad_names;
        place->has_odds = up->has_odds;
        for (uint32_t k = place->odds; k < place->odds_end; k++) {
            place->least = place->has_odds ? smaller(place->least, odds[k]) : odds[k];
            place->most = place->has_odds ? larger(place->most, odds[k]) : odds[k];
            place->has_odds = true;
            place->sum += odds[k];
            place->bad_names += odds[k] < BAD;
        }
        double held = (double)prose_in(content, place->node);
        for (size_t k = 0; k < SHARES; k++)
            place->climbed[k] = held >= SHARE[k] * prose ? 0 : up->climbed[k] + 1;
    }
}

static double linked_share(
    const struct content *content, const struct piece *piece, const struct words *words)
{
    const uint32_t *nodes = content->pieces->nodes.items;
    uint32_t node = nth_place(content, words->place)->node;
    if (piece->link != NONE || content->nodes[node].place & content->known->link)
        return 1;
    int64_t linked = 0;
    for (uint32_t i = piece->nodes; i < piece->nodes_end; i++) {
        const struct node *each = content->nodes + nodes[i];
        linked += each->name == content->pieces->elements->a ? each->chars : each->linked;
    }
    return smaller(1, (double)linked / larger_than(words->characters, 1));
}

/* Count the paragraphs in each element, and return the place that holds the most prose; NONE: none
 * does. As Readability finds it: paragraphs count for the elements above them, less for those far
 * above, by their length and commas. */
static uint32_t weigh(struct content *content, const struct words *words)
{
    static const double LESS[WEIGHTED] = {1, 2, 6, 9, 12};
    uint32_t weighted = 0;
    for (size_t i = 0; i < content->pieces->pieces.count; i++) {
        const struct words *own = words + i;
        uint32_t kind = nth_piece(content->pieces, i)->kind;
        if (own->characters >= LONG_RUN && own->linked < 0.3)
            for (uint32_t k = own->place; k != NONE; k = nth_place(content, k)->up)
                nth_place(content, k)->paragraphs++;
        if (kind == TABLE || kind >= HEADING || own->linked >= 0.5 || own->characters <= 25)
            continue;
        double weight = (double)(1 + own->commas + own->wide_commas)
            + smaller(own->characters / 100.0, 3);
        uint32_t at = own->place;
        for (size_t k = 0; k < WEIGHTED && at != NONE; k++) {
            struct place *place = nth_place(content, at);
            if (!place->weighted)
                place->weighted = ++weighted;
            place->weight += weight / LESS[k];
            at = place->up;
        }
    }
    /* Of equal ones the one that had some first. */
    uint32_t best = NONE, first = 0;
    double most = 0;
    for (uint32_t i = 0; i < content->places.count; i++) {
        const struct place *place = nth_place(content, i);
        if (!place->weighted)
            continue;
        const struct node *node = content->nodes + place->node;
        double weight
            = place->weight * (1 - node->linked / characters_of_node(content, place->node));
        if (best == NONE || weight > most || (weight == most && place->weighted < first)) {
            best = i;
            most = weight;
            first = place->weighted;
        }
    }
    return best;
}

struct alike {
    struct span text;
    uint32_t piece;
};

static int by_text(const void *a, const void *b)
{
    struct span first = ((const struct alike *)a)->text, second = ((const struct alike *)b)->text;
    ptrdiff_t more = (first.end - first.at) - (second.end - second.at);
    return more ? (more > 0) - (more < 0)
                : memcmp(first.at, second.at, (size_t)(first.end - first.at));
}

/* Count how often each text is there. Sorting takes no longer for texts that a stranger chose. */
static bool count_alike(const struct content *content, struct words *words)
{
    size_t count = content->pieces->pieces.count;
    struct alike *all = malloc((count + 1) * sizeof *all);
    if (!all)
        return false;
    for (size_t i = 0; i < count; i++)
        all[i] = (struct alike){nth_text(content->pieces, i), (uint32_t)i};
    qsort(all, count, sizeof *all, by_text);
    for (size_t begin = 0, end = 0; begin < count; begin = end) {
        while (end < count && !by_text(all + begin, all + end))
            end++;
        for (size_t i = begin; i < end; i++)
            words[all[i].piece].alike = (uint32_t)(end - begin);
    }
    free(all);
    return true;
}

static uint32_t elements_in(const struct content *content, uint32_t node)
{
    uint32_t count = 0;
    for (uint32_t at = node + 1, end = content->nodes[node].end; at < end;
         at = content->nodes[at].end)
        count += content->nodes[at].name && !(content->nodes[at].place & content->pieces->elements->unseen);
    return count;
}

/* What all rows of a page have in common. */
struct whole {
    const struct words *words;
    double prose, characters;
    uint32_t best;
    int64_t titled;
};

static double *add_text(double *cell, const struct content *content, const struct piece *piece,
                        const struct words *own)
{
    double start = smaller(own->characters, START), few = smaller(own->words, FEW_WORDS);
    *cell++ = piece->kind;
    *cell++ = log1p(own->characters);
    *cell++ = log1p(own->words);
    *cell++ = own->linked;
    *cell++ = own->ends_sentence;
    *cell++ = (double)(own->commas + own->stops + own->wide_commas) / larger_than(own->words, 1);
    *cell++ = own->digits / larger_than(start, 1);
    *cell++ = own->capitals / larger_than(few, 1);
    *cell++ = piece->kind == LIST ? elements_in(content, piece->holder) : 0;
    *cell++ = own->alike;
    return cell;
}

static double *add_place(double *cell, const struct content *content, const struct place *place)
{
    const struct vocabulary *known = content->known;
    const double *odds = content->odds.items;
    uint32_t bits = content->nodes[place->node].place;
    for (size_t i = 0; i < TAG_PLACES; i++)
        *cell++ = (bits & known->places[i]) != 0;
    *cell++ = place->is_hidden;
    *cell++ = place->frame_names;
    *cell++ = (bits & known->frame) != 0;
    *cell++ = place->depth;
    *cell++ = place->has_comments;
    *cell++ = place->article;
    *cell++ = place->least;
    *cell++ = place->most;
    *cell++ = place->sum;
    *cell++ = place->bad_names;
    double least = 0, sum = 0;
    bool any = false;
    const uint32_t near[] = {place->near, place->near_above};
    for (size_t i = 0; i < 2; i++) {
        const struct place *each = near[i] == NONE ? NULL : nth_place(content, near[i]);
        for (uint32_t k = each ? each->odds : 0; each && k < each->odds_end; k++) {
            least = any ? smaller(least, odds[k]) : odds[k];
            any = true;
            sum += odds[k];
        }
    }
    *cell++ = least;
    *cell++ = sum;
    return cell;
}

static double *add_above(double *cell, const struct content *content, const struct whole *whole,
                         uint32_t place)
{
    for (size_t i = 0; i < ABOVE; i++) {
        const struct place *each = nth_place(content, place);
        double held = (double)prose_in(content, each->node);
        *cell++ = 1 - held / characters_of_node(content, each->node);
        *cell++ = held / whole->prose;
        *cell++ = smaller(30, each->paragraphs);
        place = each->up == NONE ? place : each->up;
    }
    return cell;
}

static double *add_near(double *cell, const struct content *content, const struct whole *whole,
                        int64_t number)
{
    bool is_there = number >= 0 && number < (int64_t)content->pieces->pieces.count;
    *cell++ = is_there ? log1p(whole->words[number].characters) : -1;
    *cell++ = is_there ? whole->words[number].linked : -1;
    *cell++ = is_there && nth_piece(content->pieces, (size_t)number)->kind >= HEADING;
    return cell;
}

/* Write the row of a piece, with so many characters before it. */
static void describe(double *cell, const struct content *content, const struct whole *whole,
                     size_t number, double before)
{
    const struct words *own = whole->words + number;
    const struct place *place = nth_place(content, own->place);
    double count = (double)content->pieces->pieces.count;
    cell = add_text(cell, content, nth_piece(content->pieces, number), own);
    cell = add_place(cell, content, place);
    *cell++ = (double)number / count;
    *cell++ = before / whole->characters;
    *cell++ = 1 - (before + own->characters) / whole->characters;
    int64_t behind = (int64_t)number - whole->titled;
    *cell++ = whole->titled < 0 ? -40 : (double)larger_int(-30, smaller_int(60, behind));
    bool is_in_best = false;
    for (uint32_t k = own->place; k != NONE && !is_in_best; k = nth_place(content, k)->up)
        is_in_best = k == whole->best;
    *cell++ = is_in_best;
    for (size_t i = 0; i < SHARES; i++)
        *cell++ = place->climbed[i];
    cell = add_above(cell, content, whole, own->place);
    const int64_t around[] = {-2, -1, 1, 2};
    for (size_t i = 0; i < sizeof around / sizeof *around; i++)
        cell = add_near(cell, content, whole, (int64_t)number + around[i]);
    const struct place *body = nth_place(content, 0);
    *cell++ = body->paragraphs;
    *cell++ = log(whole->prose);
    *cell++ = 1 - whole->prose / characters_of_node(content, body->node);
    *cell++ = log(count);
    *cell++ = whole->best == NONE
        ? 0
        : (double)prose_in(content, nth_place(content, whole->best)->node) / whole->prose;
}

static int64_t judge(struct content *content, const struct trees *trees,
                     const struct answers *answers, struct words *words)
{
    double until = seconds_used() + answers->seconds;
    size_t count = content->pieces->pieces.count;
    struct whole whole = {.words = words, .titled = answers->titled};
    whole.prose = larger_than((double)prose_in(content, nth_place(content, 0)->node), 1);
    if (answers->odds_count && !make_room(&content->odds, answers->odds_count, sizeof(double)))
        return NO_MEMORY;
    if (!take_answers(content, answers))
        return WRONG_INDEX;
    if (answers->odds_count)
        memcpy((double *)content->odds.items + content->odds.count, answers->odds,
               answers->odds_count * sizeof(double));
    content->odds.count += answers->odds_count;
    inherit(content, whole.prose);
    for (size_t i = 0; i < count; i++) {
        words[i].place = content->piece_place[i];
        read_words(words + i, nth_text(content->pieces, i), content->known);
        words[i].linked = linked_share(content, nth_piece(content->pieces, i), words + i);
        whole.characters += words[i].characters;
    }
    whole.characters = larger_than(whole.characters, 1);
    if (!count_alike(content, words))
        return NO_MEMORY;
    whole.best = weigh(content, words);
    double before = 0, batch[BATCH][FEATURES];
    for (size_t begin = 0, size; begin < count; begin += size) {
        size = count - begin < BATCH ? count - begin : BATCH;
        for (size_t i = 0; i < size; i++) {
            describe(batch[i], content, &whole, begin + i, before);
            before += words[begin + i].characters;
        }
        if (trees)
            add_leaves(trees, batch[0], content->sums + begin, (int64_t)size);
        else
            memcpy(content->rows + begin * FEATURES, batch, size * sizeof *batch);
        if (seconds_used() > until)
            return TOO_SLOW;
    }
    return 0;
}

/* Describe the pieces, of which there is at least one, and judge each by the trees; without trees
 * keep the rows. */
EXPORTED int64_t content_judged(
    struct content *content, const struct trees *trees, const struct answers *answers)
{
    size_t count = content->pieces->pieces.count;
    if ((trees && trees->columns != FEATURES) || !count || content->sums)
        return WRONG_INDEX;
    content->words = calloc(count, sizeof *content->words);
    content->sums = malloc(count * sizeof *content->sums);
    if (!trees)
        content->rows = malloc(count * FEATURES * sizeof *content->rows);
    int64_t failure = NO_MEMORY;
    if (content->words && content->sums && (content->rows || trees))
        failure = judge(content, trees, answers, content->words);
    return failure;
}

/* Tell where the log odds of the pieces are, and the rows, where there were no trees, and their
 * octets. */
EXPORTED void content_found(const struct content *content, const void **columns, size_t *octets)
{
    size_t count = content->pieces->pieces.count;
    columns[0] = content->sums;
    octets[0] = count * sizeof *content->sums;
    columns[1] = content->rows;
    octets[1] = content->rows ? count * FEATURES * sizeof *content->rows : 0;
}
