/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include <lr/picture.h>

#include "base/log.h"
#include "base/mem.h"
#include "picture/font.h"

#include <stdlib.h>
#include <string.h>

enum { usual_gap = 12, caption_height = 12, title_height = 22, title_scale = 2, letter = 6 };
enum { line_height = 12, after_subtitle = 6, narrowest_subtitle = 60 /* letters */ };

static const lr_colour black = {0, 0, 0}, white = {255, 255, 255};

/* Where tiles go: each column as wide as its widest picture or caption, each row as high as its
 * highest picture. */
struct arrangement {
    int columns, rows, gap;
    int64_t *x, *y; /* [columns + 1], [rows + 1]: corners of the cells */
    int64_t width;  /* of the panel */
};

static void release(struct arrangement *arrangement)
{
    free(arrangement->x);
    free(arrangement->y);
}

static void make_room(int64_t *room, int wanted)
{
    *room = wanted > *room ? wanted : *room;
}

/* Turns extents in place into corners, the first at `start`. */
static void sum_up(int64_t *extents, int count, int64_t start, int64_t between)
{
    int64_t at = start;
    for (int n = 0; n <= count; n++) {
        const int64_t extent = n < count ? extents[n] : 0;
        extents[n] = at;
        at += extent + between;
    }
}

/* --- text over the tiles --- */

static int64_t title_width(const char *title)
{
    return title != NULL ? (int64_t)title_scale * letter * (int64_t)strlen(title) : 0;
}

static int64_t narrowest_width(const char *subtitle)
{
    const int64_t letters = subtitle != NULL ? (int64_t)strlen(subtitle) : 0;
    return letter * (letters < narrowest_subtitle ? letters : narrowest_subtitle);
}

/* Draws the subtitle into lines from `top` on, or, without a picture, only counts them. */
static int break_subtitle(lr_picture *picture, const struct arrangement *arrangement,
                          const char *text, int top)
{
    const size_t most = (size_t)((arrangement->width - 2 * arrangement->gap) / letter);
    int lines = 0;
    for (; text != NULL && *text != '\0'; lines++) {
        struct lr_font_text line;
        lr_font_next_line(&text, most, &line);
        if (picture != NULL) {
            const int corner[2] = {arrangement->gap, top + lines * line_height};
            lr_picture_text(picture, corner, line.text, &(lr_text_style){.colour = black});
        }
    }
    return lines;
}

static int heading_height(const struct arrangement *arrangement, const lr_mosaic_params *params)
{
    const int lines = break_subtitle(NULL, arrangement, params->subtitle, 0);
    return (params->title != NULL ? title_height : 0) +
           (lines > 0 ? lines * line_height + after_subtitle : 0);
}

static int64_t page_width(const struct arrangement *arrangement, const lr_mosaic_params *params)
{
    const int64_t titled = title_width(params->title), noted = narrowest_width(params->subtitle);
    const int64_t headed = 2 * (int64_t)arrangement->gap + (titled > noted ? titled : noted);
    const int64_t tiled = arrangement->x[arrangement->columns];
    return headed > tiled ? headed : tiled;
}

/* --- tiles --- */

static int caption_width(const char *caption)
{
    return caption != NULL ? lr_picture_text_width(caption, &(lr_text_style){.colour = black}) : 0;
}

static lr_status arrange(struct arrangement *arrangement, const lr_mosaic_params *params)
{
    const int columns = params->columns > 0 && params->columns < params->num_tiles
                            ? params->columns
                            : params->num_tiles;
    *arrangement = (struct arrangement){.columns = columns,
                                        .rows = (params->num_tiles - 1) / columns + 1,
                                        .gap = params->gap > 0 ? params->gap : usual_gap};
    arrangement->x = lr_alloc(columns + 1, sizeof(int64_t), "a panel", params->log);
    arrangement->y = lr_alloc(arrangement->rows + 1, sizeof(int64_t), "a panel", params->log);
    if (arrangement->x == NULL || arrangement->y == NULL) {
        release(arrangement);
        return LR_FAILED;
    }
    for (int n = 0; n < params->num_tiles; n++) {
        const lr_tile *tile = &params->tiles[n];
        make_room(&arrangement->x[n % columns], caption_width(tile->caption));
        if (tile->picture != NULL) {
            make_room(&arrangement->x[n % columns], tile->picture->size[0]);
            make_room(&arrangement->y[n / columns], tile->picture->size[1]);
        }
    }
    sum_up(arrangement->x, columns, arrangement->gap, arrangement->gap);
    arrangement->width = page_width(arrangement, params);
    sum_up(arrangement->y, arrangement->rows,
           arrangement->gap + caption_height + heading_height(arrangement, params),
           arrangement->gap + caption_height);
    return LR_OK;
}

static void draw_tile(lr_picture *picture, const struct arrangement *arrangement,
                      const lr_tile *tile, int n)
{
    const int column = n % arrangement->columns;
    const int corner[2] = {(int)arrangement->x[column],
                           (int)arrangement->y[n / arrangement->columns]};
    if (tile->picture != NULL) {
        lr_picture_paste(picture, corner, tile->picture);
    }
    if (tile->caption != NULL) {
        lr_picture_text(picture, (int[2]){corner[0], corner[1] - caption_height}, tile->caption,
                        &(lr_text_style){.colour = black});
    }
}

static lr_picture *create_page(const struct arrangement *arrangement,
                               const lr_mosaic_params *params)
{
    const int64_t width = arrangement->width;
    const int64_t height = arrangement->y[arrangement->rows] - caption_height;
    const int size[2] = {(int)(width < INT32_MAX ? width : INT32_MAX),
                         (int)(height < INT32_MAX ? height : INT32_MAX)};
    lr_picture *page = lr_picture_create(size, params->log);
    if (page != NULL) {
        lr_picture_fill(page, (int[2]){0, 0}, size, white);
    }
    return page;
}

static void draw_heading(lr_picture *page, const struct arrangement *arrangement,
                         const lr_mosaic_params *params)
{
    const int top = arrangement->gap;
    if (params->title != NULL) {
        lr_picture_text(page, (int[2]){arrangement->gap, top}, params->title,
                        &(lr_text_style){.colour = black, .scale = title_scale});
    }
    break_subtitle(page, arrangement, params->subtitle,
                   top + (params->title != NULL ? title_height : 0));
}

lr_picture *lr_picture_mosaic(const lr_mosaic_params *params)
{
    if (params->tiles == NULL || params->num_tiles <= 0) {
        (void)lr_error(params->log, LR_USAGE, "a panel needs at least one picture");
        return NULL;
    }
    struct arrangement arrangement;
    if (arrange(&arrangement, params) != LR_OK) {
        return NULL;
    }
    lr_picture *page = create_page(&arrangement, params);
    if (page != NULL) {
        draw_heading(page, &arrangement, params);
    }
    for (int n = 0; page != NULL && n < params->num_tiles; n++) {
        draw_tile(page, &arrangement, &params->tiles[n], n);
    }
    release(&arrangement);
    return page;
}
