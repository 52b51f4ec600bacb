/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "album.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

lr_status album_add(struct album *album, lr_picture *picture, const char *format, ...)
{
    char text[128];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    if (picture == NULL) return report_reason(album->report);
    char *caption = malloc(strlen(text) + 1);
    if (caption == NULL || !common_grow(&album->tiles, &album->room, album->num_tiles + 1, sizeof(*album->tiles))) {
        free(caption);
        lr_picture_destroy(picture);
        return report_error(album->report, LR_FAILED, "no memory for the picture \"%s\"", text);
    }
    strcpy(caption, text);
    album->tiles[album->num_tiles++] = (lr_tile){picture, caption};
    return LR_OK;
}

lr_status album_write_picture(struct report *report, const char *path, const lr_picture *picture)
{
    return lr_png_write(path, picture->rgb, picture->size, &report->log);
}

static lr_status write_panel(const struct album *album, const char *path, lr_mosaic_params params)
{
    params.subtitle = album->note;
    params.log = &album->report->log;
    lr_picture *sheet = lr_picture_mosaic(&params);
    if (sheet == NULL) return report_reason(album->report);
    const lr_status status = album_write_picture(album->report, path, sheet);
    lr_picture_destroy(sheet);
    return status;
}

lr_status album_write(const struct album *album, const char *path, int columns, const char *title)
{
    return write_panel(
        album, path,
        (lr_mosaic_params){.tiles = album->tiles, .num_tiles = album->num_tiles, .columns = columns, .title = title});
}

lr_status album_write_last(const struct album *album, const char *path)
{
    const lr_tile *last = &album->tiles[album->num_tiles - 1];
    return write_panel(album, path, (lr_mosaic_params){.tiles = last, .num_tiles = 1});
}

void album_finish(struct album *album)
{
    for (int k = 0; k < album->num_tiles; k++) {
        /* The album made both; tiles only lend them out as const. */
        lr_picture_destroy((lr_picture *)album->tiles[k].picture);
        free((char *)album->tiles[k].caption);
    }
    free(album->tiles);
    *album = (struct album){0};
}
