/* Where the links of a page lead: see crawler/reduce/links.py. The tests have the same in Python
 * (tests/crawler/reduce/reference/links.py).
 *
 * Most references are added to a part of the base as they are. Python is asked about the others
 * between the two calls. Pages are made by strangers: different URLs are told apart by a keyed hash,
 * and every step takes time in proportion to what it reads. */

#include "core.h"
#include "targets.h"

/* A part of the octets that are made here. */
struct part {
    size_t at, end;
};

/* What is known of a link. `fetched` and `canonical` are empty if it leads nowhere. */
struct target {
    struct span anchor;
    struct part relations, fetched, canonical;
    bool is_asked;
};

enum { URLS, FETCHED, RELATIONS, ANCHORS, MADE };

struct targets {
    const struct linked *told;
    struct growing all, octets, asked, made[MADE];
    bool is_cut;
};

EXPORTED void targets_drop(struct targets *targets)
{
    if (!targets)
        return;
    free(targets->all.items);
    free(targets->octets.items);
    free(targets->asked.items);
    for (size_t i = 0; i < MADE; i++)
        free(targets->made[i].items);
    free(targets);
}

static size_t length_of(struct span text) { return (size_t)(text.end - text.at); }

static struct span spelled(const char *text)
{
    const uint8_t *at = (const uint8_t *)text;
    return (struct span){at, at + strlen(text)};
}

static bool begins_with(struct span text, const char *start)
{
    size_t length = strlen(start);
    return length_of(text) >= length && !memcmp(text.at, start, length);
}

static uint8_t small(uint8_t letter)
{
    return letter >= 'A' && letter <= 'Z' ? letter | 0x20 : letter;
}

/* -- references -------------------------------------------------------------------------------- */

/* What an octet may be part of as it is: a word, a path, a query. */
enum { IN_NAME = 1, IN_PATH = 2, IN_QUERY = 4 };

static const uint8_t MAY_STAND[256] = {
    ['0' ... '9'] = 7, ['A' ... 'Z'] = 7, ['a' ... 'z'] = 7, ['_'] = 7, ['-'] = 7,
    ['.'] = 6, ['~'] = 6, ['!'] = 6, ['$'] = 6, ['&'] = 6, ['('] = 6, [')'] = 6, ['*'] = 6,
    ['+'] = 6, [','] = 6, [';'] = 6, ['='] = 6, [':'] = 6, ['@'] = 6, ['%'] = 6,
    ['/'] = 4, ['?'] = 4, ['|'] = 4, ['['] = 4, [']'] = 4,
};

/* Return what is left of the base's folder above so many others, which may be all of them. */
static struct span folder_above(const struct linked *told, size_t levels)
{
    struct span folder = spelled(told->folder);
    const uint8_t *root = folder.at + strlen(told->origin) + 1;
    for (; levels && folder.end > root; levels--)
        do
            folder.end--;
        while (folder.end > root && folder.end[-1] != '/');
    return folder;
}

/* Go past a path, but for a "/" before it, and a query; returns whether nothing in them is written
 * otherwise in a URL. */
static bool pass_path(struct span *rest)
{
    const uint8_t *at = rest->at, *end = rest->end;
    while (at < end && *at != '?') {
        /* A segment of dots leads elsewhere; they may be escapes. */
        if (!(MAY_STAND[*at] & IN_PATH) || *at == '.'
            || (*at == '%' && end - at > 2 && at[1] == '2' && small(at[2]) == 'e'))
            return false;
        while (at < end && MAY_STAND[*at] & IN_PATH)
            at++;
        if (at < end && *at == '/')
            at++;
        else
            break;
    }
    if (at < end && *at == '?')
        for (at++; at < end && MAY_STAND[*at] & IN_QUERY;)
            at++;
    rest->at = at;
    return at == end;
}

/* Return whether a reference may begin with a scheme: a ":" stands before the first "/". */
static bool may_have_scheme(struct span text)
{
    for (; text.at < text.end && *text.at != '/' && *text.at != '?'; text.at++)
        if (*text.at == ':')
            return true;
    return false;
}

/* Go past a host, a path and a query. Behind a host alone `*behind` is a "/". */
static bool pass_place(struct span *rest, const char **behind)
{
    if (!pass_host(rest))
        return false;
    if (rest->at == rest->end) {
        *behind = "/";
        return true;
    }
    return *rest->at++ == '/' && pass_path(rest);
}

/* Find the part of the base to which a reference is added, what of it, and what stands behind it;
 * returns whether that is its URL. */
static bool resolve(
    const struct linked *told, struct span *start, struct span *reference, const char **behind)
{
    *behind = "";
    if (!*told->home)
        return false;
    struct span rest = *reference;
    size_t levels = 0;
    while (begins_with(rest, "./"))
        rest.at += 2;
    bool is_path = rest.at > reference->at;
    for (; begins_with(rest, "../"); rest.at += 3)
        levels++;
    *reference = rest;
    if (levels || is_path) {
        *start = folder_above(told, levels);
        return pass_path(&rest);
    }
    bool has_scheme = begins_with(rest, "http://") || begins_with(rest, "https://");
    if (has_scheme || begins_with(rest, "//")) {
        *start = spelled(has_scheme ? "" : told->home);
        /* A base has a scheme. */
        if (!has_scheme)
            start->end = (const uint8_t *)strchr(told->home, ':') + 1;
        rest.at = (const uint8_t *)memchr(rest.at, '/', length_of(rest)) + strlen("//");
        return pass_place(&rest, behind);
    }
    if (rest.at < rest.end && *rest.at == '/') {
        *start = spelled(told->origin);
        rest.at++;
        return pass_path(&rest);
    }
    bool is_query = rest.at < rest.end && *rest.at == '?';
    *start = spelled(rest.at == rest.end ? told->home : is_query ? told->place : told->folder);
    return !may_have_scheme(rest) && pass_path(&rest);
}

/* Return whether a reference surely has a scheme that no crawler follows. */
static bool leads_nowhere(struct span reference)
{
    static const char *const SCHEMES[] = {"javascript:", "mailto:", "tel:", "data:"};
    while (reference.at < reference.end && *reference.at <= ' ')
        reference.at++;
    for (size_t i = 0; i < sizeof SCHEMES / sizeof *SCHEMES; i++) {
        size_t length = strlen(SCHEMES[i]), same = 0;
        while (same < length && same < length_of(reference)
               && small(reference.at[same]) == (uint8_t)SCHEMES[i][same])
            same++;
        if (same == length)
            return true;
    }
    return false;
}

/* -- canonical URLs ---------------------------------------------------------------------------- */

/* Return whether a parameter only says how a visitor came: its name is one of the lines. */
static bool is_tracking(const struct linked *told, struct span parameter)
{
    struct span name = {parameter.at, parameter.at};
    while (name.end < parameter.end && *name.end != '=')
        name.end++;
    static const char PREFIX[] = "utm_";
    size_t same = 0;
    while (PREFIX[same] && same < length_of(name) && small(name.at[same]) == (uint8_t)PREFIX[same])
        same++;
    if (!PREFIX[same])
        return true;
    const uint8_t *line = told->tracking, *end = line + told->tracking_length;
    while (line < end) {
        const uint8_t *stop = memchr(line, '\n', (size_t)(end - line));
        if ((size_t)(stop - line) == length_of(name)) {
            for (same = 0; same < length_of(name) && small(name.at[same]) == line[same];)
                same++;
            if (same == length_of(name))
                return true;
        }
        line = stop + 1;
    }
    return false;
}

/* Return the value of a hexadecimal digit, or -1. */
static int digit_of(uint8_t octet)
{
    uint8_t letter = small(octet);
    return octet >= '0' && octet <= '9' ? octet - '0'
        : letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

/* Write a URL with its escapes normal; returns where it ends. What needs no escape has none. Behind
 * a stray "%" nobody knows where an escape begins. */
static uint8_t *write_normal(uint8_t *to, const uint8_t *begin, const uint8_t *end)
{
    static const char DIGITS[] = "0123456789ABCDEF";
    for (const uint8_t *at = begin; at < end; at++) {
        int high = *at == '%' && end - at > 2 ? digit_of(at[1]) : -1;
        int low = high < 0 ? -1 : digit_of(at[2]);
        /* A host stands before the first one. */
        bool is_stray = low < 0 || at[-1] == '%' || (at[-2] == '%' && digit_of(at[-1]) >= 0);
        if (*at != '%' || is_stray) {
            *to++ = *at;
            continue;
        }
        uint8_t meant = (uint8_t)(high << 4 | low);
        if (MAY_STAND[meant] & IN_NAME || meant == '.' || meant == '~') {
            *to++ = meant;
        } else {
            *to++ = '%';
            *to++ = (uint8_t)DIGITS[high];
            *to++ = (uint8_t)DIGITS[low];
        }
        at += 2;
    }
    return to;
}

/* Write the identity of the page at a URL: identity() in storage/identity.py, where no session stands
 * in it. Returns 1; 0 if Python must be asked; -1: no memory. */
static int write_identity(struct targets *targets, struct target *target)
{
    struct growing *octets = &targets->octets;
    size_t length = target->fetched.end - target->fetched.at;
    if (!make_room(octets, 2 * length, 1))
        return -1;
    const uint8_t *at = (uint8_t *)octets->items + target->fetched.at, *end = at + length;
    uint8_t *to = (uint8_t *)octets->items + octets->count;
    if (memchr(at, '%', length)) {
        end = write_normal(to, at, end);
        at = to;
        to += end - at;
    }
    target->canonical.at = (size_t)(to - (uint8_t *)octets->items);
    /* Credentials are none of a URL that is made here. */
    for (; at < end && *at != '?'; at++) {
        struct span rest = {at, end};
        if (*at == ';' || (*at == '/' && (begins_with(rest, "/(") || begins_with(rest, "/%28"))))
            return 0;
        *to++ = *at;
    }
    bool any = false;
    const uint8_t *query = to;
    while (at < end) {
        /* A "?" or a "&" stands there. */
        struct span parameter = {at + 1, at + 1};
        while (parameter.end < end && *parameter.end != '&')
            parameter.end++;
        at = parameter.end;
        if (is_tracking(targets->told, parameter))
            continue;
        *to++ = any ? '&' : '?';
        any = true;
        memcpy(to, parameter.at, length_of(parameter));
        to += length_of(parameter);
    }
    /* Of an empty query nothing stays. */
    if (to == query + 1)
        to--;
    target->canonical.end = octets->count = (size_t)(to - (uint8_t *)octets->items);
    return 1;
}

/* -- relations --------------------------------------------------------------------------------- */

static int by_letters(const void *a, const void *b)
{
    struct span first = *(const struct span *)a, second = *(const struct span *)b;
    size_t one = length_of(first), other = length_of(second);
    int order = memcmp(first.at, second.at, one < other ? one : other);
    return order ? order : (one > other) - (one < other);
}

/* Write the different relations in small letters, sorted. */
static bool write_relations(struct targets *targets, struct target *target, struct span text)
{
    struct growing *octets = &targets->octets, words = {0};
    size_t length = length_of(text);
    target->relations = (struct part){octets->count, octets->count};
    if (!length)
        return true;
    /* The small letters, and behind them the relations. */
    if (!make_room(octets, 2 * length, 1))
        return false;
    uint8_t *from = (uint8_t *)octets->items + octets->count, *begin = from + length, *to = begin;
    for (size_t i = 0; i < length; i++)
        from[i] = small(text.at[i]);
    text = (struct span){from, from + length};
    bool done = true;
    for (struct span word; done && pass_word(&text, &word);) {
        done = make_room(&words, 1, sizeof word);
        if (done)
            ((struct span *)words.items)[words.count++] = word;
    }
    if (done && words.count) {
        const struct span *all = words.items;
        qsort(words.items, words.count, sizeof *all, by_letters);
        for (size_t i = 0; i < words.count; i++) {
            if (i && !by_letters(all + i - 1, all + i))
                continue;
            if (i)
                *to++ = ' ';
            memcpy(to, all[i].at, length_of(all[i]));
            to += length_of(all[i]);
        }
    }
    free(words.items);
    target->relations.at = (size_t)(begin - (uint8_t *)octets->items);
    target->relations.end = octets->count = (size_t)(to - (uint8_t *)octets->items);
    return done;
}

static bool is_plain(struct span text)
{
    uint8_t all = 0;
    for (; text.at < text.end; text.at++)
        all |= *text.at;
    return all < 0x80;
}

/* -- reading ----------------------------------------------------------------------------------- */

/* Go past the next of lines with a "\n" behind each. */
static struct span next_line(struct span *text)
{
    struct span line = {text->at, text->at};
    const uint8_t *stop = length_of(*text) ? memchr(text->at, '\n', length_of(*text)) : NULL;
    line.end = stop ? stop : text->end;
    text->at = stop ? stop + 1 : text->end;
    return line;
}

static bool read_target(
    struct targets *targets, struct target *target, struct span reference, struct span relations)
{
    struct growing *octets = &targets->octets;
    struct span start;
    const char *behind;
    if (leads_nowhere(reference))
        return true;
    target->is_asked
        = !is_plain(relations) || !resolve(targets->told, &start, &reference, &behind);
    if (target->is_asked)
        return true;
    target->fetched.at = octets->count;
    if (!add(octets, start.at, length_of(start)) || !add(octets, reference.at, length_of(reference))
        || !add(octets, behind, strlen(behind)))
        return false;
    target->fetched.end = octets->count;
    int done = write_identity(targets, target);
    target->is_asked = !done;
    return done >= 0 && (!done || write_relations(targets, target, relations));
}

/* Return whether a "link" element may lead to a page by one of its relations. */
static bool may_lead(const struct linked *told, struct span relations)
{
    if (!is_plain(relations))
        return true;
    for (struct span word; pass_word(&relations, &word);)
        if (is_one_of(told->navigable, told->navigable_length, word))
            return true;
    return false;
}

/* Read the links of a page, to be given back to targets_drop. What is told must live as long. */
EXPORTED int64_t targets_read(const struct linked *told, struct targets **made)
{
    struct targets *targets = *made = calloc(1, sizeof *targets);
    if (!targets)
        return NO_MEMORY;
    targets->told = told;
    struct span references = {told->references, told->references + told->references_length};
    struct span relations = {told->relations, told->relations + told->relations_length};
    struct span anchors = {told->anchors, told->anchors + told->anchors_length};
    bool done = true;
    size_t other = 0;
    for (uint32_t i = 0; done && references.at < references.end; i++) {
        struct target target = {0};
        struct span reference = next_line(&references), said = next_line(&relations);
        target.anchor = next_line(&anchors);
        uint8_t kind = IS_LINK_READ;
        if (other < told->others_count && told->others[other] == i) {
            kind = told->kinds[other];
            if (kind >= IS_LINK_READ)
                target.anchor = told->called[other];
            other++;
        }
        if (kind < IS_NOWHERE)
            target.is_asked = kind == IS_ASKED || may_lead(told, said);
        else if (kind != IS_NOWHERE)
            done = read_target(
                targets, &target, reference, kind == IS_READ ? (struct span){0} : said);
        done = done && make_room(&targets->all, 1, sizeof target)
            && (!target.is_asked || make_room(&targets->asked, 1, sizeof i));
        if (!done)
            break;
        ((struct target *)targets->all.items)[targets->all.count++] = target;
        if (target.is_asked)
            ((uint32_t *)targets->asked.items)[targets->asked.count++] = i;
    }
    if (done)
        return 0;
    targets_drop(targets);
    *made = NULL;
    return NO_MEMORY;
}

/* Tell where the numbers of the links are about which Python is asked, and their octets. */
EXPORTED void targets_asked(const struct targets *targets, const void **columns, size_t *octets)
{
    columns[0] = targets->asked.items;
    octets[0] = targets->asked.count * sizeof(uint32_t);
}

/* -- different URLs ---------------------------------------------------------------------------- */

static uint64_t turned(uint64_t word, unsigned by) { return word << by | word >> (64 - by); }

static void round_of(uint64_t v[4])
{
    v[0] += v[1];
    v[2] += v[3];
    v[1] = turned(v[1], 13) ^ v[0];
    v[3] = turned(v[3], 16) ^ v[2];
    v[0] = turned(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = turned(v[1], 17) ^ v[2];
    v[3] = turned(v[3], 21) ^ v[0];
    v[2] = turned(v[2], 32);
}

/* SipHash-1-3 (Aumasson and Bernstein): strangers who choose URLs do not know the key. */
static uint64_t hashed(const uint64_t key[2], struct span text)
{
    uint64_t v[4] = {
        key[0] ^ 0x736f6d6570736575u, key[1] ^ 0x646f72616e646f6du,
        key[0] ^ 0x6c7967656e657261u, key[1] ^ 0x7465646279746573u,
    };
    uint64_t last = (uint64_t)length_of(text) << 56;
    while (text.at < text.end) {
        uint64_t word = 0;
        size_t length = length_of(text) < 8 ? length_of(text) : 8;
        memcpy(&word, text.at, length);
        text.at += length;
        if (length < 8) {
            last |= word;
            break;
        }
        v[3] ^= word;
        round_of(v);
        v[0] ^= word;
    }
    v[3] ^= last;
    round_of(v);
    v[0] ^= last;
    v[2] ^= 0xff;
    for (int i = 0; i < 3; i++)
        round_of(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static struct target *nth_target(const struct targets *targets, size_t number)
{
    return (struct target *)targets->all.items + number;
}

static struct span text_of(const struct targets *targets, struct part part)
{
    const uint8_t *octets = targets->octets.items;
    return octets ? (struct span){octets + part.at, octets + part.end} : (struct span){0};
}

/* Return whether a link's relations ask not to follow it. */
static bool is_refused(const struct targets *targets, const struct target *target)
{
    struct span text = text_of(targets, target->relations), word;
    while (pass_word(&text, &word))
        if (length_of(word) == strlen("nofollow") && begins_with(word, "nofollow"))
            return true;
    return false;
}

/* For each different URL find its link: the first one, or the first that may be followed. The slots
 * have numbers of places in `found`, plus 1, which has numbers of links. */
static size_t find_different(
    struct targets *targets, uint32_t *slots, size_t room, uint32_t *found)
{
    size_t count = 0;
    for (uint32_t i = 0; i < targets->all.count; i++) {
        const struct target *target = nth_target(targets, i);
        struct span url = text_of(targets, target->canonical);
        if (url.at == url.end)
            continue;
        size_t at = (size_t)hashed(targets->told->key, url);
        uint32_t *slot;
        for (;; at++) {
            slot = slots + (at & (room - 1));
            if (!*slot)
                break;
            struct span other
                = text_of(targets, nth_target(targets, found[*slot - 1])->canonical);
            if (length_of(other) == length_of(url) && !memcmp(other.at, url.at, length_of(url)))
                break;
        }
        if (*slot) {
            if (is_refused(targets, nth_target(targets, found[*slot - 1]))
                && !is_refused(targets, target))
                found[*slot - 1] = i;
            continue;
        }
        targets->is_cut = count >= targets->told->most;
        if (targets->is_cut)
            break;
        found[count++] = i;
        *slot = (uint32_t)count;
    }
    return count;
}

static bool write(struct growing *all, struct span text)
{
    return add(all, text.at, length_of(text)) && add(all, "", 1);
}

/* Take what Python says of the links that it was asked about: four texts of each, with a NUL behind
 * each: its URL, the canonical one, the relations and the anchor. */
static bool take_answers(struct targets *targets, struct span said)
{
    struct growing *octets = &targets->octets;
    size_t start = octets->count, begin = start;
    if (!add(octets, said.at, length_of(said)))
        return false;
    const uint32_t *asked = targets->asked.items;
    const uint8_t *all = octets->items;
    for (size_t i = 0; i < targets->asked.count; i++) {
        struct target *target = nth_target(targets, asked[i]);
        struct part parts[4];
        for (size_t k = 0; k < 4; k++) {
            const uint8_t *end = begin < octets->count
                ? memchr(all + begin, 0, octets->count - begin) : NULL;
            if (!end)
                return false;
            parts[k] = (struct part){begin, (size_t)(end - all)};
            begin = parts[k].end + 1;
        }
        target->fetched = parts[0];
        target->canonical = parts[1];
        target->relations = parts[2];
        target->anchor
            = (struct span){said.at + (parts[3].at - start), said.at + (parts[3].end - start)};
    }
    return true;
}

/* Tell the texts of the links to different URLs, with a NUL behind each, at most so many: canonical
 * URLs, URLs, relations and anchors. `said` is what Python answers. Returns whether there are
 * more. */
EXPORTED int64_t targets_written(struct targets *targets, const uint8_t *said, size_t length)
{
    if (!take_answers(targets, (struct span){said, said + length}))
        return WRONG_INDEX;
    size_t room = 16;
    while (room < 2 * targets->all.count)
        room *= 2;
    uint32_t *slots = calloc(room, sizeof *slots);
    uint32_t *found = malloc((targets->all.count + 1) * sizeof *found);
    bool done = slots && found;
    size_t count = done ? find_different(targets, slots, room, found) : 0;
    for (size_t i = 0; done && i < count; i++) {
        const struct target *target = nth_target(targets, found[i]);
        done = write(targets->made + URLS, text_of(targets, target->canonical))
            && write(targets->made + FETCHED, text_of(targets, target->fetched))
            && write(targets->made + RELATIONS, text_of(targets, target->relations))
            && write(targets->made + ANCHORS, target->anchor);
    }
    free(slots);
    free(found);
    return done ? targets->is_cut : NO_MEMORY;
}

/* Tell where the texts are, and their octets. */
EXPORTED void targets_found(const struct targets *targets, const void **columns, size_t *octets)
{
    for (size_t i = 0; i < MADE; i++) {
        columns[i] = targets->made[i].items;
        octets[i] = targets->made[i].count;
    }
}
