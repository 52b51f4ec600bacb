/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Pictures that end up together on one sheet. */
#ifndef LR_CLI_ALBUM_H
#define LR_CLI_ALBUM_H

#include "common.h"

#include <lr/picture.h>

/* Zero is an empty album. It owns its pictures. */
struct album {
    struct report *report;
    lr_tile *tiles;   /* owned [num_tiles], with pictures and captions */
    const char *note; /* a line on every PNG of it, such as what made them; NULL = none */
    int num_tiles;
    int64_t room;
};

/* Takes over the picture; NULL is passed through as the failure of who made it. The caption is
 * formatted. */
lr_status album_add(struct album *album, lr_picture *picture, const char *format, ...) LR_PRINTF(3, 4);

/* Writes the last picture added as a PNG of its own, with its caption and the note. */
lr_status album_write_last(const struct album *album, const char *path);

/* Writes all of them as one PNG. title may be NULL. */
lr_status album_write(const struct album *album, const char *path, int columns, const char *title);
void album_finish(struct album *album);

/* One picture as PNG. */
lr_status album_write_picture(struct report *report, const char *path, const lr_picture *picture);

#endif
