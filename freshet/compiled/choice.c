/* The choice of the pieces that are content: see crawler/reduce/content.py. The tests have the same
 * in Python (tests/crawler/reduce/reference/content.py), which says what each rule is for.
 *
 * Python is asked twice: which of some short texts only call for an action, and which of some
 * controls do. Pages are made by strangers. But for sorting, each step takes time in proportion to the
 * tree, whose levels are bounded. No function recurses. */

#include "content.h"

/* The square of the weight of recall: precision counts a little more. */
#define WEIGHT (0.75 * 0.75)
/* Pieces in a row that are kept because those around them are. */
#define GAP 3
/* Words of a long text, their least share around it, elements that make a pattern, and what is
 * too unlikely for a part of one. */
#define LONG_WORDS 2000
#define LEAST_SHARE 0.2
#define ALIKE 3
#define UNLIKELY 0.05
/* The share of the words of a page above which more of the kinds of pieces that are kept are content,
 * how many of a kind are kept then, and the share of them; what is too unlikely. */
#define MOST_OF_PAGE 0.6
#define KEPT_ALIKE 2
#define SHARE_ALIKE 3
#define UNLIKELY_ALIKE 0.1
/* Above it a text outside of the frame is content whatever it says. */
#define SURE 0.8
/* The share of the words of a page above which no label is looked for, and how many it has; words of the longest label, one of
 * how many words need not be known, and above which log odds it is none. */
#define NEARLY_ALL 0.9
#define PAGE_WITH_LABELS 200
#define LABEL_WORDS 12
#define KNOWN_OF 2
#define LABEL_ODDS (-0.5)
/* Words of a short page. */
#define FEW_WORDS 100
/* Characters and words of a text that may be one of a control. */
#define CONTROL_CHARACTERS 200
#define CONTROL_WORDS 8
/* Controls in a row that are content, and times that a page has the same control where it is none. */
#define MOST_CONTROLS 5
#define REPEATED 3

/* What is known of a place: whether it is frame; words of pieces that are kept and of others that
 * may be; whether a kept one stands there; whether a long text goes on in it. */
struct around {
    bool is_frame, is_spared, stands, goes_on;
    uint64_t kept, others;
};

struct choice {
    const struct content *content;
    const struct pieces *judged;
    struct around *around;
    double *probability;
    /* For each piece, whether it is kept, and what is to be kept, too. */
    uint8_t *kept, *more;
    uint64_t words;
    bool is_short, is_long, has_labels;
    /* What Python is asked about: texts with a "\n" behind each, of these pieces; then those of
     * controls. What is chosen of all pieces. */
    struct growing asked, texts, controls, control_texts, chosen;
};

EXPORTED void choice_drop(struct choice *choice)
{
    if (!choice)
        return;
    free(choice->around);
    free(choice->probability);
    free(choice->kept);
    free(choice->more);
    free(choice->asked.items);
    free(choice->texts.items);
    free(choice->controls.items);
    free(choice->control_texts.items);
    free(choice->chosen.items);
    free(choice);
}

static uint32_t place_of(const struct choice *choice, size_t number)
{
    return choice->content->piece_place[number];
}

static uint32_t bits_of(const struct choice *choice, size_t number)
{
    return choice->content->nodes[nth_piece(choice->judged, number)->holder].place;
}

/* -- the probable ones ------------------------------------------------------------------------- */

struct probable {
    double probability;
    uint32_t number;
};

static int by_probability(const void *a, const void *b)
{
    const struct probable *first = a, *second = b;
    if (first->probability != second->probability)
        return first->probability < second->probability ? 1 : -1;
    return (first->number > second->number) - (first->number < second->number);
}

/* Keep the pieces with the greatest expected F score of words. */
static bool keep_probable(struct choice *choice)
{
    const struct content *content = choice->content;
    size_t count = choice->judged->pieces.count, best = 0;
    struct probable *order = malloc(count * sizeof *order);
    double *found = malloc(count * sizeof *found);
    bool done = order && found;
    double sum = 0, sizes = 0, most = 0;
    for (uint32_t i = 0; done && i < count; i++) {
        choice->probability[i] = 1 / (1 + exp(-content->sums[i]));
        order[i] = (struct probable){choice->probability[i], i};
        choice->words += content->words[i].words;
    }
    if (done)
        qsort(order, count, sizeof *order, by_probability);
    for (size_t i = 0; done && i < count; i++) {
        sum += order[i].probability * content->words[order[i].number].words;
        found[i] = sum;
    }
    for (size_t i = 0; done && i < count; i++) {
        sizes += content->words[order[i].number].words;
        double expected = found[i] / (sizes + WEIGHT * sum + 1e-9);
        if (!i || expected > most) {
            most = expected;
            best = i;
        }
    }
    for (size_t i = 0; done && i <= best; i++)
        choice->kept[order[i].number] = true;
    free(order);
    free(found);
    return done;
}

/* -- the frame --------------------------------------------------------------------------------- */

/* Find the places that are frame by their names and bits, or hidden. What holds a piece that is kept
 * is none. */
static void find_frame(struct choice *choice)
{
    const struct content *content = choice->content;
    const struct vocabulary *known = content->known;
    for (size_t i = 0; i < choice->judged->pieces.count; i++)
        if (choice->kept[i])
            for (uint32_t k = nth_place(content, place_of(choice, i))->up;
                 k != NONE && !choice->around[k].is_spared; k = nth_place(content, k)->up)
                choice->around[k].is_spared = true;
    /* Those above stand before. */
    for (uint32_t i = 0; i < content->places.count; i++) {
        const struct place *place = nth_place(content, i);
        struct around *around = choice->around + i;
        if (place->up == NONE || around->is_spared)
            continue;
        uint32_t bits = content->nodes[place->node].place;
        /* Edges of the page, not of an article. */
        bool is_edge = bits & (known->header | known->footer)
            && !(bits & (known->main | known->in_article));
        around->is_frame = place->is_frame || place->is_marked_hidden || is_edge
            || choice->around[place->up].is_frame;
    }
}

/* Return whether a piece is prose, not most of it links, and stands outside of the frame. */
static bool is_outside(const struct choice *choice, size_t number)
{
    const struct vocabulary *known = choice->content->known;
    const struct piece *piece = nth_piece(choice->judged, number);
    int64_t none = known->nav | known->frame | known->aside | known->link | known->noscript;
    if (piece->link != NONE || bits_of(choice, number) & none)
        return false;
    const uint32_t *nodes = choice->judged->nodes.items;
    uint64_t linked = 0;
    for (uint32_t k = piece->nodes; k < piece->nodes_end; k++)
        linked += choice->content->nodes[nodes[k]].linked;
    return 2 * linked < choice->content->words[number].characters
        && !choice->around[place_of(choice, number)].is_frame;
}

/* Keep what is to be kept, too. */
static void keep_more(struct choice *choice)
{
    for (size_t i = 0; i < choice->judged->pieces.count; i++)
        choice->kept[i] |= choice->more[i];
}

/* Keep the prose beside a kept piece that stands in its block, a few pieces at most. */
static void keep_beside(struct choice *choice)
{
    const struct node *nodes = choice->content->nodes;
    size_t count = choice->judged->pieces.count;
    for (size_t begin = 0, end; begin < count; begin = end + 1) {
        for (end = begin; end < count && !choice->kept[end];)
            end++;
        if (end == begin || end - begin > GAP)
            continue;
        for (size_t i = begin; i < end; i++) {
            uint32_t block = nodes[nth_piece(choice->judged, i)->holder].parent;
            bool is_near = (begin
                    && nodes[nth_piece(choice->judged, begin - 1)->holder].parent == block)
                || (end < count && nodes[nth_piece(choice->judged, end)->holder].parent == block);
            choice->more[i]
                = is_near && choice->probability[i] > UNLIKELY_ALIKE && is_outside(choice, i);
        }
    }
    keep_more(choice);
}

/* -- long texts -------------------------------------------------------------------------------- */

/* The tag and the classes of an element, these sorted with a space between, by those in a block. */
struct pattern {
    uint32_t block, tag, number;
    size_t at, end;
    const struct growing *letters;
};

static int by_letters(const void *a, const void *b)
{
    struct span first = *(const struct span *)a, second = *(const struct span *)b;
    size_t one = (size_t)(first.end - first.at), other = (size_t)(second.end - second.at);
    int order = memcmp(first.at, second.at, one < other ? one : other);
    return order ? order : (one > other) - (one < other);
}

static int by_pattern(const void *a, const void *b)
{
    const struct pattern *first = a, *second = b;
    if (first->block != second->block)
        return first->block < second->block ? -1 : 1;
    if (first->tag != second->tag)
        return first->tag < second->tag ? -1 : 1;
    const uint8_t *letters = first->letters->items;
    if (!letters)
        return 0;
    struct span one = {letters + first->at, letters + first->end};
    struct span other = {letters + second->at, letters + second->end};
    return by_letters(&one, &other);
}

/* Find the pattern of an element, whose classes are written behind the letters. */
static bool read_pattern(
    const struct choice *choice, uint32_t number, struct growing *letters, struct pattern *found)
{
    const struct place *place = nth_place(choice->content, number);
    struct growing words = {0};
    struct span classes
        = attribute_of(choice->judged, place->node, choice->content->known->class), word;
    *found = (struct pattern){
        place->up, choice->content->nodes[place->node].name, number, letters->count, letters->count,
        letters,
    };
    bool done = true;
    while (done && pass_word(&classes, &word)) {
        done = make_room(&words, 1, sizeof word);
        if (done)
            ((struct span *)words.items)[words.count++] = word;
    }
    if (words.count)
        qsort(words.items, words.count, sizeof word, by_letters);
    for (size_t i = 0; done && i < words.count; i++) {
        word = ((struct span *)words.items)[i];
        done = (!i || add(letters, " ", 1)) && add(letters, word.at, (size_t)(word.end - word.at));
    }
    found->end = letters->count;
    free(words.items);
    return done;
}

/* Return how many of the patterns, which are sorted, are that one. */
static size_t count_alike(const struct growing *patterns, const struct pattern *wanted)
{
    const struct pattern *all = patterns->items;
    size_t begins[2];
    for (int after = 0; after < 2; after++) {
        size_t low = 0, high = patterns->count;
        while (low < high) {
            size_t middle = low + (high - low) / 2;
            if (by_pattern(all + middle, wanted) < after)
                low = middle + 1;
            else
                high = middle;
        }
        begins[after] = low;
    }
    return begins[1] - begins[0];
}

/* Sum the words of pieces that are kept, and of the others of `more`, in each place. */
static void count_words(struct choice *choice)
{
    const struct content *content = choice->content;
    for (size_t i = 0; i < choice->judged->pieces.count; i++) {
        struct around *around = choice->around + place_of(choice, i);
        around->stands |= choice->kept[i];
        around->kept += choice->kept[i] ? content->words[i].words : 0;
        around->others += choice->more[i] ? content->words[i].words : 0;
    }
    for (uint32_t i = (uint32_t)content->places.count; i-- > 0;) {
        uint32_t up = nth_place(content, i)->up;
        if (up == NONE)
            continue;
        choice->around[up].stands |= choice->around[i].stands;
        choice->around[up].kept += choice->around[i].kept;
        choice->around[up].others += choice->around[i].others;
    }
}

static bool is_long(const struct around *block)
{
    double kept = (double)block->kept;
    return kept >= larger(LONG_WORDS, LEAST_SHARE * (kept + (double)block->others));
}

/* Find the places in which a long text goes on: others of the same tag and classes beside it hold
 * kept pieces, or it stands in such a place. */
static bool find_goes_on(struct choice *choice)
{
    const struct content *content = choice->content;
    struct growing patterns = {0}, letters = {0};
    struct pattern pattern;
    bool done = true;
    for (uint32_t i = 0; done && i < content->places.count; i++) {
        uint32_t up = nth_place(content, i)->up;
        if (up == NONE || !choice->around[i].stands || !is_long(choice->around + up))
            continue;
        done = read_pattern(choice, i, &letters, &pattern) && make_room(&patterns, 1, sizeof pattern);
        if (done)
            ((struct pattern *)patterns.items)[patterns.count++] = pattern;
    }
    if (patterns.count)
        qsort(patterns.items, patterns.count, sizeof pattern, by_pattern);
    for (uint32_t i = 0; done && i < content->places.count; i++) {
        uint32_t up = nth_place(content, i)->up;
        if (up == NONE)
            continue;
        choice->around[i].goes_on = choice->around[up].goes_on;
        if (choice->around[i].goes_on || !choice->around[i].others || !is_long(choice->around + up))
            continue;
        size_t before = letters.count;
        done = read_pattern(choice, i, &letters, &pattern);
        choice->around[i].goes_on = done && count_alike(&patterns, &pattern) >= ALIKE;
        letters.count = before;
    }
    free(patterns.items);
    free(letters.items);
    return done;
}

/* Keep the prose that goes on with a long text, such as the later sections of a law. */
static bool keep_continued(struct choice *choice)
{
    const struct content *content = choice->content;
    size_t count = choice->judged->pieces.count;
    uint64_t words = 0;
    for (size_t i = 0; i < count; i++)
        words += choice->kept[i] ? content->words[i].words : 0;
    if (words < LONG_WORDS)
        return true;
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        choice->more[i] = !choice->kept[i] && choice->probability[i] > UNLIKELY && is_outside(choice, i);
        any |= choice->more[i];
    }
    if (!any)
        return true;
    count_words(choice);
    if (!find_goes_on(choice))
        return false;
    for (size_t i = 0; i < count; i++)
        choice->more[i] &= choice->around[place_of(choice, i)].goes_on;
    keep_more(choice);
    return true;
}

/* -- pieces of one kind ------------------------------------------------------------------------ */

/* A piece by its kind, and by the tags and classes of the element in which it stands and of the one
 * around that. */
struct like {
    uint32_t kind, own, around, number;
};

static int by_likeness(const void *a, const void *b)
{
    const struct like *first = a, *second = b;
    if (first->kind != second->kind)
        return first->kind < second->kind ? -1 : 1;
    if (first->own != second->own)
        return first->own < second->own ? -1 : 1;
    return (first->around > second->around) - (first->around < second->around);
}

/* Number the places so that those of the same tag and classes have the same number. */
static bool number_patterns(const struct choice *choice, uint32_t *numbers)
{
    size_t count = choice->content->places.count;
    struct growing letters = {0};
    struct pattern *patterns = malloc((count + 1) * sizeof *patterns);
    bool done = patterns;
    for (uint32_t i = 0; done && i < count; i++) {
        done = read_pattern(choice, i, &letters, patterns + i);
        patterns[i].block = 0;
    }
    if (done)
        qsort(patterns, count, sizeof *patterns, by_pattern);
    for (uint32_t i = 0; done && i < count; i++) {
        const struct pattern *it = patterns + i;
        numbers[it->number] = i && !by_pattern(it - 1, it) ? numbers[(it - 1)->number] : i;
    }
    free(patterns);
    free(letters.items);
    return done;
}

/* Find the pieces from `begin` to `end`, which are alike, that are content if others are. */
static void find_alike(struct choice *choice, const struct like *begin, const struct like *end)
{
    size_t kept = 0;
    for (const struct like *it = begin; it < end; it++)
        kept += choice->kept[it->number];
    if (kept < KEPT_ALIKE || kept * SHARE_ALIKE < (size_t)(end - begin))
        return;
    for (const struct like *it = begin; it < end; it++)
        choice->more[it->number] = !choice->kept[it->number]
            && choice->probability[it->number] > UNLIKELY_ALIKE && is_outside(choice, it->number);
}

/* Keep the prose of the kinds that are kept elsewhere, on a page most of which is kept: the headings,
 * tables and remarks of a manual. */
static bool keep_alike(struct choice *choice)
{
    const struct content *content = choice->content;
    size_t count = choice->judged->pieces.count;
    uint64_t words = 0;
    for (size_t i = 0; i < count; i++)
        words += choice->kept[i] ? content->words[i].words : 0;
    if ((double)words < MOST_OF_PAGE * (double)choice->words)
        return true;
    memset(choice->more, 0, count);
    uint32_t *numbers = malloc((content->places.count + 1) * sizeof *numbers);
    struct like *likes = malloc(count * sizeof *likes);
    bool done = numbers && likes && number_patterns(choice, numbers);
    for (uint32_t i = 0; done && i < count; i++) {
        uint32_t place = place_of(choice, i), up = nth_place(content, place)->up;
        likes[i] = (struct like){
            nth_piece(choice->judged, i)->kind, numbers[place], up == NONE ? NONE : numbers[up], i,
        };
    }
    if (done)
        qsort(likes, count, sizeof *likes, by_likeness);
    for (size_t begin = 0, end; done && begin < count; begin = end) {
        for (end = begin + 1; end < count && !by_likeness(likes + begin, likes + end);)
            end++;
        find_alike(choice, likes + begin, likes + end);
    }
    free(numbers);
    free(likes);
    keep_more(choice);
    return done;
}

/* -- what is kept ------------------------------------------------------------------------------ */

/* Leave out what stands in menus, and on a page of few words in asides; not if all does. */
static void leave_menus(struct choice *choice)
{
    const struct vocabulary *known = choice->content->known;
    int64_t edges = known->nav | known->frame | (choice->is_short ? known->aside : 0);
    size_t count = choice->judged->pieces.count;
    bool any = false;
    for (size_t i = 0; i < count; i++)
        any |= choice->kept[i] && !(bits_of(choice, i) & edges);
    for (size_t i = 0; any && i < count; i++)
        choice->kept[i] &= !(bits_of(choice, i) & edges);
}

static bool is_of_word(uint8_t octet)
{
    uint8_t small = octet | 0x20;
    return octet >= 0x80 || octet == '_' || (octet >= '0' && octet <= '9') || (small >= 'a' && small <= 'z');
}

/* Return whether a short text, of which the trees say that much, is the label of a frame by its words: most
 * of them are known. A text with a digit or an address and a question are none, nor is a clause of a long
 * text. */
static bool is_label(const struct choice *choice, struct span text, double odds)
{
    const struct vocabulary *known = choice->content->known;
    double sum = 0;
    int64_t words = 0, unknown = 0;
    if (text.at == text.end || text.end[-1] == '?'
        || (choice->is_long && strchr(".:;", text.end[-1])))
        return false;
    while (text.at < text.end) {
        struct span word = text;
        while (text.at < text.end && is_of_word(*text.at)) {
            if (*text.at >= '0' && *text.at <= '9')
                return false;
            text.at++;
        }
        word.end = text.at;
        if (text.at < text.end && *text.at++ == '@')
            return false;
        if (word.at == word.end)
            continue;
        int64_t number = number_of_word(known, word);
        words++;
        if (number >= 0 && known->flags[number] & LABEL_WORD)
            sum += known->label_odds[number];
        else
            unknown++;
    }
    return words <= LABEL_WORDS && KNOWN_OF * unknown <= words && sum < LABEL_ODDS && sum + odds < 0;
}

/* Leave out labels that are improbable, unless nearly all of the page is kept, or it is short; not if
 * nothing is left. */
static void leave_labels(struct choice *choice)
{
    const struct content *content = choice->content;
    size_t count = choice->judged->pieces.count, left = 0;
    uint64_t words = 0;
    memset(choice->more, 0, count);
    for (size_t i = 0; i < count; i++)
        words += choice->kept[i] ? content->words[i].words : 0;
    choice->is_long = words >= LONG_WORDS;
    choice->has_labels
        = choice->words >= PAGE_WITH_LABELS && (double)words < NEARLY_ALL * (double)choice->words;
    for (size_t i = 0; choice->has_labels && i < count; i++) {
        uint32_t kind = nth_piece(choice->judged, i)->kind;
        bool may_be = kind != FIRST_HEADING && kind != TABLE && kind != CODE
            && content->words[i].words <= LABEL_WORDS;
        choice->more[i] = choice->kept[i]
            && !(may_be && is_label(choice, nth_text(choice->judged, i), content->sums[i]));
        left += choice->more[i];
    }
    if (left)
        memcpy(choice->kept, choice->more, count);
}

/* Return whether a piece outside of the frame is content whatever it says: the trees are sure of it, or
 * it is a sentence. */
static bool is_spared(const struct choice *choice, size_t number)
{
    struct span text = nth_text(choice->judged, number);
    return choice->probability[number] >= SURE || (text.at < text.end && text.end[-1] == '.');
}

/* Note the kept pieces that may only call for an action. */
static bool ask(struct choice *choice)
{
    for (uint32_t i = 0; i < choice->judged->pieces.count; i++) {
        const struct words *words = choice->content->words + i;
        uint32_t kind = nth_piece(choice->judged, i)->kind;
        if (!choice->kept[i] || kind == FIRST_HEADING || kind == TABLE
            || words->characters > CONTROL_CHARACTERS || words->words > CONTROL_WORDS
            || (is_outside(choice, i) && is_spared(choice, i)))
            continue;
        struct span text = nth_text(choice->judged, i);
        /* With the "\n" behind it. */
        if (!add(&choice->asked, &i, sizeof i)
            || !add(&choice->texts, text.at, (size_t)(text.end - text.at) + 1))
            return false;
    }
    return true;
}

static bool choose(struct choice *choice, int64_t headline)
{
    size_t count = choice->judged->pieces.count;
    if (!keep_probable(choice))
        return false;
    choice->is_short = choice->words <= FEW_WORDS;
    if (headline >= 0)
        choice->kept[headline] = true;
    find_frame(choice);
    keep_beside(choice);
    memset(choice->more, 0, count);
    if (!keep_continued(choice) || !keep_alike(choice))
        return false;
    /* The trees know little of short pages, most of whose tables lead to other pages. */
    for (size_t i = 0; choice->is_short && i < count; i++)
        choice->kept[i] |= nth_piece(choice->judged, i)->kind != TABLE && is_outside(choice, i);
    leave_menus(choice);
    leave_labels(choice);
    return ask(choice);
}

/* Choose among judged pieces, which must outlive the choice; to be given back to choice_drop.
 * `headline` is the number of the page's own one, or -1. */
EXPORTED int64_t choice_made(
    const struct content *content, int64_t headline, struct choice **made)
{
    *made = NULL;
    size_t count = content->pieces->pieces.count;
    if (!count || !content->sums || !content->words || headline >= (int64_t)count)
        return WRONG_INDEX;
    struct choice *choice = calloc(1, sizeof *choice);
    if (!choice)
        return NO_MEMORY;
    choice->content = content;
    choice->judged = content->pieces;
    choice->around = calloc(content->places.count + 1, sizeof *choice->around);
    choice->probability = malloc(count * sizeof *choice->probability);
    choice->kept = calloc(count, 1);
    choice->more = calloc(count, 1);
    if (choice->around && choice->probability && choice->kept && choice->more
        && choose(choice, headline)) {
        *made = choice;
        return 0;
    }
    choice_drop(choice);
    return NO_MEMORY;
}

/* -- controls and images ----------------------------------------------------------------------- */

/* Return the next element around a control or an image that has words of its own. */
static uint32_t block_of(const struct pieces *all, uint32_t node)
{
    const struct node *nodes = all->tree.nodes;
    while (node && (nodes[node].place & all->elements->in_control || !nodes[node].chars))
        node = nodes[node].parent;
    return node;
}

/* Return whether a piece is a control, a caption, or has no words, such as an image or a list of
 * them: what stands beside it decides. A heading without words is none of these. */
static bool depends(const struct choice *choice, const struct pieces *all, size_t number)
{
    const struct piece *piece = nth_piece(all, number);
    const struct node *nodes = all->tree.nodes;
    if (piece->is_control || nodes[piece->holder].place & choice->content->known->caption)
        return true;
    const uint32_t *column = all->nodes.items;
    bool is_wordless = piece->kind < HEADING;
    for (uint32_t k = piece->nodes; is_wordless && k < piece->nodes_end; k++)
        is_wordless = !nodes[column[k]].chars || nodes[column[k]].place & all->elements->in_control;
    return is_wordless;
}

/* Keep the controls and images from `begin` to `end` that stand inside of content: both neighbours
 * are kept, or one in the block around them. Python is asked what the controls say. */
static bool keep_between(
    struct choice *choice, const struct pieces *all, const uint8_t *kept, uint8_t *more, size_t begin,
    size_t end)
{
    const uint32_t *column = all->nodes.items;
    uint32_t near[2], count = 0;
    const size_t beside[] = {begin - 1, end};
    for (size_t k = begin ? 0 : 1; k < 2; k++) {
        const struct piece *piece
            = beside[k] < all->pieces.count && kept[beside[k]] ? nth_piece(all, beside[k]) : NULL;
        if (piece && piece->nodes < piece->nodes_end)
            near[count++] = column[piece->nodes];
    }
    size_t controls = 0;
    for (size_t i = begin; i < end; i++)
        controls += nth_piece(all, i)->is_control > 0;
    for (uint32_t i = (uint32_t)begin; count && i < end; i++) {
        const struct piece *piece = nth_piece(all, i);
        uint32_t block = block_of(all, piece->holder);
        bool is_inside = count == 2
            || (block <= near[0] && near[0] < all->tree.nodes[block].end);
        if (!is_inside || (piece->is_control && controls > MOST_CONTROLS))
            continue;
        if (!piece->is_control)
            more[i] = true;
        else if (!add(&choice->controls, &i, sizeof i))
            return false;
    }
    return true;
}

/* Return how often that text is among those of the controls, which are sorted. */
static size_t times_of(const struct span *all, size_t count, struct span text)
{
    size_t begins[2];
    for (int after = 0; after < 2; after++) {
        size_t low = 0, high = count;
        while (low < high) {
            size_t middle = low + (high - low) / 2;
            if (by_letters(all + middle, &text) < after)
                low = middle + 1;
            else
                high = middle;
        }
        begins[after] = low;
    }
    return begins[1] - begins[0];
}

static struct span line_at(const struct growing *lines, size_t begin)
{
    const uint8_t *at = (const uint8_t *)lines->items + begin;
    return (struct span){at, memchr(at, '\n', lines->count - begin)};
}

/* Ask about the noted controls, but for those that stand at each entry of a page. */
static bool ask_controls(struct choice *choice, const struct pieces *all)
{
    size_t total = all->pieces.count, count = 0, kept = 0;
    size_t asked = choice->controls.count / sizeof(uint32_t);
    if (!asked)
        return true;
    uint32_t *noted = choice->controls.items;
    struct growing lines = {0};
    size_t *begins = malloc(total * sizeof *begins);
    struct span *sorted = malloc(total * sizeof *sorted);
    bool done = begins && sorted;
    for (size_t i = 0; done && i < total; i++) {
        begins[i] = lines.count;
        done = !nth_piece(all, i)->is_control || add_seen_text(all, i, &lines);
    }
    for (size_t i = 0; done && i < total; i++)
        if (nth_piece(all, i)->is_control)
            sorted[count++] = line_at(&lines, begins[i]);
    if (done)
        qsort(sorted, count, sizeof *sorted, by_letters);
    for (size_t i = 0; done && i < asked; i++) {
        struct span text = line_at(&lines, begins[noted[i]]);
        if (text.at == text.end || times_of(sorted, count, text) >= REPEATED
            || (choice->has_labels && is_label(choice, text, 0)))
            continue;
        noted[kept++] = noted[i];
        /* With the "\n" behind it. */
        done = add(&choice->control_texts, text.at, (size_t)(text.end - text.at) + 1);
    }
    choice->controls.count = kept * sizeof *noted;
    free(lines.items);
    free(begins);
    free(sorted);
    return done;
}

static int by_number(const void *a, const void *b)
{
    uint32_t first = *(const uint32_t *)a, second = *(const uint32_t *)b;
    return (first > second) - (first < second);
}

/* Choose the noted controls that call for no action, too: Python says of each whether it does. */
EXPORTED int64_t choice_finished(struct choice *choice, const uint8_t *said, size_t said_count)
{
    const uint32_t *noted = choice->controls.items;
    if (said_count * sizeof *noted != choice->controls.count)
        return WRONG_INDEX;
    bool done = true;
    for (size_t i = 0; done && i < said_count; i++)
        done = said[i] || add(&choice->chosen, noted + i, sizeof *noted);
    if (said_count && choice->chosen.count)
        qsort(choice->chosen.items, choice->chosen.count / sizeof *noted, sizeof *noted, by_number);
    return done ? 0 : NO_MEMORY;
}

/* Return whether a piece is what the page states for machines only: no tree knows of that. */
static bool is_stated(const struct pieces *all, size_t number)
{
    return all->tree.nodes[nth_piece(all, number)->holder].trait & all->elements->stated;
}

/* Leave out what only calls for an action, as Python says of each piece that it was asked about, and
 * tell what is chosen of all pieces, of which those without controls were judged, or all. */
EXPORTED int64_t choice_settled(
    struct choice *choice, const struct pieces *all, const uint8_t *said, size_t said_count)
{
    size_t count = choice->judged->pieces.count, total = all->pieces.count, number = 0;
    const uint32_t *asked = choice->asked.items;
    if (said_count * sizeof *asked != choice->asked.count || total < count)
        return WRONG_INDEX;
    size_t left = 0;
    for (size_t i = 0; i < count; i++)
        left += choice->kept[i];
    for (size_t i = 0; i < said_count; i++)
        left -= said[i] > 0;
    for (size_t i = 0; left && i < said_count; i++)
        choice->kept[asked[i]] &= !said[i];
    uint8_t *kept = calloc(total + 1, 1), *more = calloc(total + 1, 1);
    bool done = kept && more, fits = true;
    for (size_t i = 0; done && i < total; i++)
        if (total == count || !nth_piece(all, i)->is_control) {
            fits = fits && number < count;
            kept[i] = fits && choice->kept[number++];
        }
    for (size_t begin = 0, end; done && begin < total; begin = end) {
        bool is_run = depends(choice, all, begin);
        for (end = begin + 1; end < total && depends(choice, all, end) == is_run;)
            end++;
        done = !is_run || keep_between(choice, all, kept, more, begin, end);
    }
    for (uint32_t i = 0; done && i < total; i++)
        done = !(kept[i] || more[i] || is_stated(all, i))
            || add(&choice->chosen, &i, sizeof i);
    free(kept);
    free(more);
    done = done && ask_controls(choice, all);
    return !done ? NO_MEMORY : fits ? 0 : WRONG_INDEX;
}

/* Tell where the texts are about which Python is asked, what is chosen, and the texts of controls
 * that are chosen, too, if they are no calls for an action, and their octets. */
EXPORTED void choice_columns(const struct choice *choice, const void **columns, size_t *octets)
{
    columns[0] = choice->texts.items;
    octets[0] = choice->texts.count;
    columns[1] = choice->chosen.items;
    octets[1] = choice->chosen.count;
    columns[2] = choice->control_texts.items;
    octets[2] = choice->control_texts.count;
}
