/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include <lr/picture.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/sized.h"
#include "picture/font.h"

#include <stdlib.h>

enum { usual_gap = 12, line_space = 2, after_subtitle = 6 };
enum { widest_caption = 420, widest_title = 1000, narrowest_subtitle = 420 };

static const lr_colour white = {255, 255, 255};
static const lr_text_style title_style = {.size_px = lr_font_title, .bold = true},
                           subtitle_style = {.size_px = lr_font_small}, caption_style = {0};

/* The arrangement of tiles. Each column is as wide as its widest picture or caption. Each row is as high as its highest
 * picture. */
struct arrangement {
    int columns, rows, gap;
    int caption_height, title_height, line_height;
    int64_t *x, *y; /* [columns + 1], [rows + 1]: corners of the cells */
    int64_t width;  /* width of the panel */
};

static void make_room(int64_t *room, int wanted)
{
    *room = wanted > *room ? wanted : *room;
}

/* Replaces the extents of columns or rows by their first pixels. The first one begins at `start`, and neighbours are
 * `between` pixels apart. */
static void sum_up(int64_t *extents, int count, int64_t start, int64_t between)
{
    int64_t at = start;
    for (int n = 0; n <= count; n++) {
        const int64_t extent = n < count ? extents[n] : 0;
        extents[n] = at;
        at += extent + between;
    }
}

static lr_status arrange(struct arrangement *arrangement, const lr_mosaic_params *params)
{
    const int columns =
        params->columns > 0 && params->columns < params->num_tiles ? params->columns : params->num_tiles;
    *arrangement = (struct arrangement){.columns = columns,
                                        .rows = (params->num_tiles - 1) / columns + 1,
                                        .gap = params->gap > 0 ? params->gap : usual_gap};
    arrangement->caption_height = lr_picture_text_height(&caption_style) + line_space;
    arrangement->title_height = lr_picture_text_height(&title_style) + 2 * line_space;
    arrangement->line_height = lr_picture_text_height(&subtitle_style) + line_space;
    arrangement->x = lr_alloc(columns + 1, sizeof(int64_t), "a panel", params->log);
    arrangement->y = lr_alloc(arrangement->rows + 1, sizeof(int64_t), "a panel", params->log);
    if (arrangement->x == NULL || arrangement->y == NULL) {
        free(arrangement->x);
        free(arrangement->y);
        return LR_FAILED;
    }
    for (int n = 0; n < params->num_tiles; n++) {
        const lr_tile *tile = &params->tiles[n];
        make_room(&arrangement->x[n % columns], lr_font_width_within(tile->caption, &caption_style, widest_caption));
        if (tile->picture != NULL) {
            make_room(&arrangement->x[n % columns], tile->picture->size[0]);
            make_room(&arrangement->y[n / columns], tile->picture->size[1]);
        }
    }
    sum_up(arrangement->x, columns, arrangement->gap, arrangement->gap);
    const int64_t titled = lr_font_width_within(params->title, &title_style, widest_title);
    const int64_t noted = lr_font_width_within(params->subtitle, &subtitle_style, narrowest_subtitle);
    const int64_t headed = 2 * (int64_t)arrangement->gap + (titled > noted ? titled : noted);
    const int64_t tiled = arrangement->x[arrangement->columns];
    arrangement->width = headed > tiled ? headed : tiled;

    lr_text_style style = subtitle_style;
    style.most_px = (int)(arrangement->width - 2 * arrangement->gap);
    const int lines = lr_font_lines(NULL, NULL, params->subtitle, &style, arrangement->line_height);
    const int heading = (params->title != NULL ? arrangement->title_height : 0) +
                        (lines > 0 ? lines * arrangement->line_height + after_subtitle : 0);
    const int between = arrangement->gap + arrangement->caption_height;
    sum_up(arrangement->y, arrangement->rows, between + heading, between);
    return LR_OK;
}

lr_picture *lr_picture_mosaic_sized(size_t given_bytes, const lr_mosaic_params *given)
{
    LR_TAKE(lr_mosaic_params, params, given, given_bytes);
    if (params->tiles == NULL || params->num_tiles <= 0) {
        (void)lr_error(params->log, LR_USAGE, "a panel needs at least one picture");
        return NULL;
    }
    struct arrangement arrangement;
    if (arrange(&arrangement, params) != LR_OK) return NULL;
    const int64_t width = arrangement.width;
    const int64_t height = arrangement.y[arrangement.rows] - arrangement.caption_height;
    const int size[2] = {(int)(width < INT32_MAX ? width : INT32_MAX), (int)(height < INT32_MAX ? height : INT32_MAX)};
    lr_picture *page = lr_picture_create(size, params->log);
    if (page != NULL) lr_picture_fill(page, (int[2]){0, 0}, size, white);

    if (page != NULL) {
        lr_text_style style = title_style, small = subtitle_style;
        style.most_px = small.most_px = (int)arrangement.width - 2 * arrangement.gap;
        int corner[2] = {arrangement.gap, arrangement.gap};
        if (params->title != NULL) {
            lr_picture_text(page, corner, params->title, &style);
            corner[1] += arrangement.title_height;
        }
        lr_font_lines(page, corner, params->subtitle, &small, arrangement.line_height);
    }

    for (int n = 0; page != NULL && n < params->num_tiles; n++) {
        const lr_tile *tile = &params->tiles[n];
        const int column = n % arrangement.columns;
        const int corner[2] = {(int)arrangement.x[column], (int)arrangement.y[n / arrangement.columns]};
        if (tile->picture != NULL) lr_picture_paste(page, corner, tile->picture);
        if (tile->caption != NULL) {
            const int64_t next = arrangement.x[column + 1] - arrangement.gap;
            lr_text_style style = caption_style;
            style.most_px = (int)(next - arrangement.x[column]);
            lr_picture_text(page, (int[2]){corner[0], corner[1] - arrangement.caption_height}, tile->caption, &style);
        }
    }

    free(arrangement.x);
    free(arrangement.y);
    lr_font_tell(params->log);
    return page;
}
