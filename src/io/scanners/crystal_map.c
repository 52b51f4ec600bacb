/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "io/scanners/crystal_map.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/order.h"
#include "base/vec.h"
#include "io/files/regular_file.h"
#include "io/scanners/scanner_formats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

lr_status lr_centre_index_init(struct lr_centre_index *index, const lr_scanner *scanner, const lr_log *log)
{
    *index = (struct lr_centre_index){0};
    index->centres_mm = lr_alloc(scanner->num_crystals, sizeof(*index->centres_mm), "crystal centres", log);
    if (index->centres_mm == NULL) return LR_FAILED;
    lr_scanner_crystal_centres(scanner, index->centres_mm);
    const struct lr_points points = {index->centres_mm[0], sizeof(index->centres_mm[0]), scanner->num_crystals};
    const lr_status status = lr_point_hash_init(&index->hash, &points, 1.0, log);
    if (status != LR_OK) lr_centre_index_finish(index);
    return status;
}

void lr_centre_index_finish(struct lr_centre_index *index)
{
    free(index->centres_mm);
    lr_point_hash_finish(&index->hash);
    *index = (struct lr_centre_index){0};
}

struct nearest {
    int crystal; /* -1 = none */
    double distance2;
};

static void consider(void *user, int crystal, double distance2)
{
    struct nearest *nearest = user;
    if (nearest->crystal < 0 || distance2 < nearest->distance2 ||
        (distance2 == nearest->distance2 && crystal < nearest->crystal))
        *nearest = (struct nearest){crystal, distance2};
}

int lr_centre_index_find(const struct lr_centre_index *index, const double position_mm[3], double reach_mm)
{
    struct nearest nearest = {-1, 0.0};
    lr_point_hash_visit(&index->hash, position_mm, reach_mm, &(struct lr_point_visit){consider, &nearest});
    return nearest.crystal;
}

double lr_centre_index_distance(const struct lr_centre_index *index, const double position_mm[3])
{
    double least = INFINITY;
    for (int k = 0; k < index->hash.points.count; k++) {
        double difference[3];
        vec_sub(index->centres_mm[k], position_mm, difference);
        least = fmin(least, vec_length(difference));
    }
    return least;
}

/* Coordinates in maps are rounded to 4 decimals. No two crystals are this close to each other. */
static const double reach_mm = 0.01;

enum { MAX_RING = 255, MAX_DETECTOR = 65535, MAX_LAYER = 15, MAX_LINE = 1024 };

struct entry {
    uint32_t key;
    int crystal;
    int line;
};

/* A map being read. */
struct draft {
    const char *path;
    const lr_scanner *scanner;
    const lr_log *log;
    struct lr_centre_index index;
    int *claimed; /* [num_crystals] line that named the crystal, 0 = none */
    struct entry *entries;
    int64_t count, room;
    int columns; /* 5 or 6, 0 = not known yet */
};

/* --- lines --- */

/* Separators of columns. Besides blanks, STIR allows tabs or commas. */
static const char blanks[] = " \t,";

int lr_crystal_map_numbers(const char *text, double numbers[6])
{
    int count = 0;
    for (;;) {
        text += strspn(text, blanks);
        if (*text == '\0') return count == 0 || count == 5 || count == 6 ? count : -1;
        char *end;
        const double number = strtod(text, &end);
        if (end == text || count == 6 || !isfinite(number) || (*end != '\0' && strchr(blanks, *end) == NULL)) return -1;
        numbers[count++] = number;
        text = end;
    }
}

lr_status lr_crystal_map_lines(const char *path, int64_t most, const struct lr_crystal_map_sink *sink,
                               const lr_log *log)
{
    char text[MAX_LINE];
    struct lr_crystal_map_line line = {0};
    lr_status status = LR_OK;
    FILE *file = lr_file_open_text(path, "the crystal map ", most, log);
    if (file == NULL) return LR_BAD_INPUT;
    while (status == LR_OK && fgets(text, sizeof(text), file) != NULL) {
        line.line++;
        if (strlen(text) == sizeof(text) - 1 && text[sizeof(text) - 2] != '\n') {
            status = lr_error(log, LR_BAD_INPUT, "%s:%d: the line is longer than %d bytes: this is no crystal map",
                              path, line.line, MAX_LINE - 2);
            break;
        }
        text[strcspn(text, "\r\n")] = '\0';
        char *comment = strchr(text, '#');
        if (comment != NULL) *comment++ = '\0';
        line.text = text;
        line.comment = comment;
        line.columns = lr_crystal_map_numbers(text, line.numbers);
        status = sink->take(sink->user, &line);
    }
    if (status == LR_OK) status = lr_file_check_read(file, path, log);
    fclose(file);
    return status;
}

static bool is_count(double number, int largest)
{
    return number >= 0 && number <= largest && number == floor(number);
}

static lr_status take_crystal(void *user, const struct lr_crystal_map_line *line)
{
    struct draft *draft = user;
    if (line->columns == 0) return LR_OK;

    /* The first columns must have only decimal digits, not 1.0 or 0x5. */
    const double *numbers = line->numbers, layer = line->columns == 6 ? numbers[2] : 0;
    bool is_good = line->columns > 0 && is_count(numbers[0], MAX_RING) && is_count(numbers[1], MAX_DETECTOR) &&
                   is_count(layer, MAX_LAYER);
    const char *text = line->text;
    for (int k = 0; k < line->columns - 3 && is_good; k++) {
        text += strspn(text, blanks);
        text += *text == '+';
        const size_t digits = strspn(text, "0123456789");
        is_good = digits > 0 && (text[digits] == '\0' || strchr(blanks, text[digits]) != NULL);
        text += digits;
    }
    if (!is_good) {
        return lr_error(draft->log, LR_BAD_INPUT,
                        "%s:%d: a crystal is 'ring det [layer] x y z' with ring <= %d, det <= %d, "
                        "layer <= %d and millimetres, found '%.80s'",
                        draft->path, line->line, MAX_RING, MAX_DETECTOR, MAX_LAYER, line->text);
    }
    if (draft->columns != 0 && draft->columns != line->columns) {
        return lr_error(draft->log, LR_BAD_INPUT,
                        "%s:%d: %d columns, but %d in the lines before: name the layer in every line or in none",
                        draft->path, line->line, line->columns, draft->columns);
    }
    draft->columns = line->columns;

    const double *position_mm = &numbers[line->columns - 3];
    const int crystal = lr_centre_index_find(&draft->index, position_mm, reach_mm);
    if (crystal < 0) {
        return lr_error(draft->log, LR_BAD_INPUT,
                        "%s:%d: no crystal of scanner '%s' has its centre within %g mm of "
                        "(%g, %g, %g) mm; the nearest is %.4g mm away: the map belongs to another "
                        "scanner, or it does not list centres (half the depth behind the face)",
                        draft->path, line->line, draft->scanner->name, reach_mm, position_mm[0], position_mm[1],
                        position_mm[2], lr_centre_index_distance(&draft->index, position_mm));
    }
    if (draft->claimed[crystal] != 0) {
        return lr_error(draft->log, LR_BAD_INPUT,
                        "%s:%d: the crystal at (%g, %g, %g) mm is the one of line %d already: each "
                        "crystal may appear once",
                        draft->path, line->line, position_mm[0], position_mm[1], position_mm[2],
                        draft->claimed[crystal]);
    }
    draft->claimed[crystal] = line->line;

    const struct lr_items items = {sizeof(*draft->entries), "a crystal map", draft->log};
    LR_TRY(lr_grow(&draft->entries, &draft->room, draft->count + 1, &items));
    const uint32_t key = lr_crystal_key((unsigned)numbers[0], (unsigned)numbers[1], (unsigned)layer);
    draft->entries[draft->count++] = (struct entry){key, crystal, line->line};
    return LR_OK;
}

/* --- the whole map --- */

static int compare_entries(const void *a, const void *b)
{
    const struct entry *left = a, *right = b;
    return lr_order_then(lr_order_whole(left->key, right->key), lr_order_whole(left->line, right->line));
}

lr_status lr_crystal_map_read(const char *path, const lr_scanner *scanner, struct lr_crystal_map *map,
                              const lr_log *log)
{
    struct draft draft = {.path = path, .scanner = scanner, .log = log};
    *map = (struct lr_crystal_map){0};
    lr_status status = lr_centre_index_init(&draft.index, scanner, log);
    if (status != LR_OK) goto done;
    status = LR_FAILED;
    draft.claimed = lr_alloc(scanner->num_crystals, sizeof(*draft.claimed), "a crystal map", log);
    if (draft.claimed == NULL) goto done;
    /* Each crystal has one line shorter than MAX_LINE. Comments may take the same number of bytes again. */
    const int64_t most = (1 << 20) + 2 * (int64_t)MAX_LINE * scanner->num_crystals;
    const struct lr_crystal_map_sink sink = {take_crystal, &draft};
    status = lr_crystal_map_lines(path, most, &sink, log);
    if (status == LR_OK && draft.count == 0) {
        status = lr_error(log, LR_BAD_INPUT,
                          "%s: lists no crystals: give a crystal map, 'ring det [layer] x y z' per line", path);
    }
    if (status != LR_OK) goto done;

    qsort(draft.entries, (size_t)draft.count, sizeof(*draft.entries), compare_entries);
    for (int64_t k = 1; k < draft.count; k++) {
        const struct entry *entry = &draft.entries[k];
        if (entry->key == entry[-1].key) {
            status = lr_error(log, LR_BAD_INPUT,
                              "%s:%d: ring %u, detector %u, layer %u is named again (first in line "
                              "%d): each crystal may appear once",
                              path, entry->line, (unsigned)(entry->key >> 20), (unsigned)(entry->key >> 4 & 0xffff),
                              (unsigned)(entry->key & 15), entry[-1].line);
            goto done;
        }
    }
    if (draft.count < scanner->num_crystals) {
        lr_warn(log, "%s: lists %lld of the scanner's %d crystals; the others see no events", path,
                (long long)draft.count, scanner->num_crystals);
    }

    map->keys = lr_alloc(draft.count, sizeof(*map->keys), "a crystal map", log);
    map->crystals = lr_alloc(draft.count, sizeof(*map->crystals), "a crystal map", log);
    if (map->keys == NULL || map->crystals == NULL) {
        lr_crystal_map_finish(map);
        status = LR_FAILED;
        goto done;
    }
    for (int64_t k = 0; k < draft.count; k++) {
        map->keys[k] = draft.entries[k].key;
        map->crystals[k] = draft.entries[k].crystal;
    }
    map->count = draft.count;
done:
    lr_centre_index_finish(&draft.index);
    lr_free_all(draft.claimed, draft.entries);
    return status;
}

void lr_crystal_map_finish(struct lr_crystal_map *map)
{
    lr_free_all(map->keys, map->crystals);
    *map = (struct lr_crystal_map){0};
}

int lr_crystal_map_find(const struct lr_crystal_map *map, uint32_t key)
{
    const int64_t at = lr_first_uint_at_least(map->keys, map->count, key);
    return at < map->count && map->keys[at] == key ? map->crystals[at] : -1;
}

/* --- crystals that a file lists one by one, and the scanner that they make --- */

lr_status lr_listed_crystals_check(double count, const char *path, const lr_log *log)
{
    if (count > LR_MAX_LISTED_CRYSTALS) {
        return lr_error(log, LR_BAD_INPUT, "%s: describes %.10g crystals: at most %d are supported", path, count,
                        LR_MAX_LISTED_CRYSTALS);
    }
    return LR_OK;
}

lr_status lr_listed_crystals_add(struct lr_listed_crystals *list, const lr_crystal *crystal, const char *path,
                                 const lr_log *log)
{
    LR_TRY(lr_listed_crystals_check((double)list->count + 1, path, log));
    LR_TRY(
        lr_grow(&list->items, &list->room, list->count + 1, &(struct lr_items){sizeof(*list->items), "crystals", log}));
    list->items[list->count++] = *crystal;
    return LR_OK;
}

static void write_but_errors(void *user, lr_log_level level, lr_status status, const char *sentence)
{
    const lr_crystal_list *list = user;
    if (level != LR_LOG_ERROR) lr_log_write(list->log, level, status, "%s", sentence);
}

lr_scanner *lr_listed_crystals_try(const lr_crystal_list *list, int *crystal_of)
{
    lr_crystal_list kept = *list, trial = *list;
    const lr_log log = {write_but_errors, &kept};
    trial.log = &log;
    return lr_scanner_from_crystals(&trial, crystal_of, NULL);
}
