/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * STIR's crystal map as a scanner: lines "ring det [layer] x y z" in mm. Positions are taken as
 * they stand. Crystals are listed by their places alone; their size may stand in comments:
 * "# depth_mm: 13" and "# face_mm: 2.12 2.12". */
#include "base/log.h"
#include "base/path.h"
#include "io/scanners/crystal_map.h"
#include "io/scanners/listed_crystals.h"
#include "io/scanners/scanner_formats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LINE = 1024 };

struct draft {
    const char *path;
    const lr_log *log;
    struct lr_listed_crystals list;
    double depth_mm, face_mm[2];
    int columns;
};

bool lr_stir_map_recognises(const struct lr_file_head *head)
{
    char line[MAX_LINE];
    double numbers[6];
    for (const char *at = head->bytes; *at != '\0';) {
        const size_t length = strcspn(at, "\r\n");
        snprintf(line, sizeof(line), "%.*s", (int)(length < MAX_LINE ? length : MAX_LINE - 1), at);
        line[strcspn(line, "#")] = '\0';
        if (line[strspn(line, " \t")] != '\0')
            return lr_crystal_map_numbers(line, numbers) > 0 && numbers[0] >= 0 && numbers[1] >= 0;
        at += length + strspn(at + length, "\r\n");
    }
    return false;
}

static void take_comment(struct draft *draft, const char *comment)
{
    const char *depth = strstr(comment, "depth_mm:"), *face = strstr(comment, "face_mm:");
    double values[2];
    if (depth != NULL && sscanf(depth + 9, "%lf", values) == 1 && values[0] > 0 && isfinite(values[0]))
        draft->depth_mm = values[0];
    if (face != NULL && sscanf(face + 8, "%lf %lf", &values[0], &values[1]) == 2 && values[0] > 0 && values[1] > 0 &&
        isfinite(values[0] + values[1])) {
        draft->face_mm[0] = values[0];
        draft->face_mm[1] = values[1];
    }
}

static lr_status take_line(void *user, const struct lr_crystal_map_line *line)
{
    struct draft *draft = user;
    if (line->comment != NULL) take_comment(draft, line->comment);
    if (line->columns == 0) return LR_OK;
    if (line->columns < 0 || (draft->columns != 0 && line->columns != draft->columns)) {
        return lr_error(draft->log, LR_BAD_INPUT,
                        "%s:%d: a crystal is 'ring det [layer] x y z' with as many columns as in "
                        "the other lines, found '%.60s'",
                        draft->path, line->line, line->text);
    }
    draft->columns = line->columns;
    lr_crystal crystal = {.group = -1};
    memcpy(crystal.centre_mm, &line->numbers[line->columns - 3], sizeof(crystal.centre_mm));
    if (line->columns == 6) {
        if (!(line->numbers[2] >= 0 && line->numbers[2] < LR_MAX_LAYERS &&
              line->numbers[2] == floor(line->numbers[2]))) {
            return lr_error(draft->log, LR_BAD_INPUT,
                            "%s:%d: layers of crystals are whole numbers from 0 to %d, found "
                            "'%.60s'",
                            draft->path, line->line, LR_MAX_LAYERS - 1, line->text);
        }
        crystal.layer = (int)line->numbers[2];
    }
    return lr_listed_crystals_add(&draft->list, &crystal, draft->path, draft->log);
}

/* Maps may number layers from either side, and from 1: the nearest to the axis is in front. */
static void number_layers(struct lr_listed_crystals *list)
{
    double radius[LR_MAX_LAYERS] = {0};
    int count[LR_MAX_LAYERS] = {0}, number[LR_MAX_LAYERS] = {0};
    for (int c = 0; c < list->count; c++) {
        const lr_crystal *crystal = &list->items[c];
        radius[crystal->layer] += hypot(crystal->centre_mm[0], crystal->centre_mm[1]);
        count[crystal->layer]++;
    }
    for (int k = 0; k < LR_MAX_LAYERS; k++)
        for (int other = 0; other < LR_MAX_LAYERS; other++)
            number[k] += count[k] > 0 && count[other] > 0 && radius[other] / count[other] < radius[k] / count[k];
    for (int c = 0; c < list->count; c++) list->items[c].layer = number[list->items[c].layer];
}

static lr_status read_file(struct draft *draft)
{
    const struct lr_crystal_map_sink sink = {take_line, draft};
    LR_TRY(lr_crystal_map_lines(draft->path, INT64_MAX, &sink, draft->log));
    return draft->list.count > 0 ? LR_OK : lr_error(draft->log, LR_BAD_INPUT, "%s: lists no crystals", draft->path);
}

/* --- the scanner --- */

/* Crystals as long as they are far from each other, with hits in their middles: STIR, too, has the
 * listed places as the ends of LORs. */
static void infer_depth(lr_crystal_list *list, const char *path)
{
    const double spacing = lr_crystals_spacing_mm(list);
    list->depth_mm = fmax(1e-3, round(spacing * 100) / 100);
    list->detection_depth_mm = 0.5 * list->depth_mm;
    lr_warn(list->log,
            "%s: does not say how long crystals are: they are taken as long as they are far from "
            "each other, %.6g mm, and hits are read at the listed places; where these are middles "
            "of crystals and hits are read on their fronts, add the comment '# depth_mm: 20' "
            "(with the right number)",
            path, list->depth_mm);
}

static void look_at_axis(struct lr_listed_crystals *list)
{
    for (int c = 0; c < list->count; c++) {
        lr_crystal *crystal = &list->items[c];
        const double r = hypot(crystal->centre_mm[0], crystal->centre_mm[1]);
        if (r > 0) {
            crystal->axes[2][0] = crystal->centre_mm[0] / r;
            crystal->axes[2][1] = crystal->centre_mm[1] / r;
        }
    }
}

/* Crystals that make no flat panels are taken as they are: lines of them along the axis. */
static lr_scanner *create(struct draft *draft, const lr_crystal_list *list)
{
    lr_scanner *scanner = lr_listed_crystals_try(list, NULL);
    if (scanner != NULL) return scanner;
    look_at_axis(&draft->list);
    scanner = lr_listed_crystals_try(list, NULL);
    if (scanner == NULL) {
        for (int c = 0; c < draft->list.count; c++)
            memset(draft->list.items[c].axes, 0, sizeof(draft->list.items[c].axes));
        return lr_scanner_from_crystals(list, NULL, NULL);
    }
    lr_warn(list->log,
            "%s: its crystals make no flat panels: each line of them that looks at the axis is a "
            "module of its own, %d in all, of crystals %.4g x %.4g mm",
            draft->path, scanner->num_modules, scanner->modules[0].face_mm[0], scanner->modules[0].face_mm[1]);
    return scanner;
}

lr_scanner *lr_stir_map_build(const char *path, const lr_crystal_list *given)
{
    struct draft draft = {.path = path, .log = given->log};
    lr_scanner *scanner = NULL;
    if (read_file(&draft) == LR_OK) {
        number_layers(&draft.list);
        lr_crystal_list list = *given;
        list.crystals = draft.list.items;
        list.num_crystals = draft.list.count;
        list.infers_sizes = true;
        list.depth_mm = draft.depth_mm > 0 ? draft.depth_mm : given->depth_mm;
        for (int k = 0; k < 2; k++) list.face_mm[k] = draft.face_mm[k] > 0 ? draft.face_mm[k] : given->face_mm[k];
        if (!(list.depth_mm > 0)) infer_depth(&list, path);
        scanner = create(&draft, &list);
    }
    free(draft.list.items);
    return scanner;
}

lr_scanner *lr_stir_map_read(const char *path, const lr_log *log)
{
    char stem[128];
    const lr_crystal_list list = {.name = lr_path_stem(path, stem), .source = "a STIR crystal map", .log = log};
    return lr_stir_map_build(path, &list);
}
