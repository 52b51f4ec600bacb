/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include <lr/picture.h>

#include "base/log.h"
#include "base/mem.h"
#include "picture/axes.h"
#include "picture/font.h"

#include <stdlib.h>

enum { usual_gap = 12, line_space = 2, after_subtitle = 6 };
enum { widest_caption = 420, widest_title = 1000, narrowest_subtitle = 420 };

static const lr_colour white = {255, 255, 255};
static const lr_text_style title_style = {.size_px = lr_font_title, .bold = true},
                           subtitle_style = {.size_px = lr_font_small}, caption_style = {0};

/* Replaces the width of each column (or height of each row) by the position of its first pixel. The first column begins
 * at `start`, and `between` pixels separate neighbours. */
static void sum_up(int64_t *extents, int count, int64_t start, int64_t between)
{
    int64_t at = start;
    for (int n = 0; n <= count; n++) {
        const int64_t extent = n < count ? extents[n] : 0;
        extents[n] = at;
        at += extent + between;
    }
}

lr_picture *lr_picture_mosaic_sized(size_t given_bytes, const lr_mosaic_params *given)
{
    LR_TAKE(lr_mosaic_params, params, given, given_bytes);
    if (params->tiles == NULL || params->num_tiles <= 0) {
        (void)lr_error(params->log, LR_USAGE, "a panel needs at least one picture");
        return NULL;
    }
    const int num = params->num_tiles, columns = params->columns > 0 && params->columns < num ? params->columns : num;
    const int rows = (num - 1) / columns + 1, gap = params->gap > 0 ? params->gap : usual_gap;
    const int caption_height = lr_picture_text_height(&caption_style) + line_space;
    const int title_height = lr_picture_text_height(&title_style) + 2 * line_space;
    const int line_height = lr_picture_text_height(&subtitle_style) + line_space;
    lr_picture *page = NULL;

    /* The widths and heights of the cells. A column is as wide as its widest picture or caption, a row as high as its
     * highest picture. */
    int64_t *x = lr_alloc(columns + 1, sizeof(*x), "a panel", params->log);
    int64_t *y = lr_alloc(rows + 1, sizeof(*y), "a panel", params->log);
    if (x == NULL || y == NULL) goto finish;
    for (int n = 0; n < num; n++) {
        const lr_tile *tile = &params->tiles[n];
        const int caption = lr_font_width_within(tile->caption, &caption_style, widest_caption);
        const int width = tile->picture != NULL ? lr_larger(tile->picture->size[0], caption) : caption;
        const int height = tile->picture != NULL ? tile->picture->size[1] : 0;
        x[n % columns] = lr_larger((int)x[n % columns], width);
        y[n / columns] = lr_larger((int)y[n / columns], height);
    }
    sum_up(x, columns, gap, gap);
    const int headed = lr_larger(lr_font_width_within(params->title, &title_style, widest_title),
                                 lr_font_width_within(params->subtitle, &subtitle_style, narrowest_subtitle));
    const int64_t wanted = 2 * (int64_t)gap + headed, panel = wanted > x[columns] ? wanted : x[columns];
    lr_text_style title = title_style, subtitle = subtitle_style;
    title.most_px = subtitle.most_px = (int)(panel - 2 * gap);
    const int lines = lr_font_lines(NULL, NULL, params->subtitle, &subtitle, line_height);
    const int heading =
        (params->title != NULL ? title_height : 0) + (lines > 0 ? lines * line_height + after_subtitle : 0);
    sum_up(y, rows, gap + caption_height + heading, gap + caption_height);

    const int64_t height = y[rows] - caption_height;
    const int size[2] = {(int)(panel < INT32_MAX ? panel : INT32_MAX), (int)(height < INT32_MAX ? height : INT32_MAX)};
    page = lr_picture_create(size, params->log);
    if (page == NULL) goto finish;
    lr_picture_fill(page, (int[2]){0, 0}, size, white);
    int corner[2] = {gap, gap};
    if (params->title != NULL) {
        lr_picture_text(page, corner, params->title, &title);
        corner[1] += title_height;
    }
    lr_font_lines(page, corner, params->subtitle, &subtitle, line_height);
    for (int n = 0; n < num; n++) {
        const lr_tile *tile = &params->tiles[n];
        const int column = n % columns, at[2] = {(int)x[column], (int)y[n / columns]};
        if (tile->picture != NULL) lr_picture_paste(page, at, tile->picture);
        if (tile->caption == NULL) continue;
        lr_text_style style = caption_style;
        style.most_px = (int)(x[column + 1] - gap - x[column]);
        lr_picture_text(page, (int[2]){at[0], at[1] - caption_height}, tile->caption, &style);
    }

finish:
    lr_free_all(x, y);
    lr_font_tell(params->log);
    return page;
}
