/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Frames: the open image as one of NAME-1.nii, NAME-2.nii and so on, as `recon --frames` writes them, or
 * as one of the volumes of its file, whose path then is NAME.nii:1, NAME.nii:2 and so on. */
#ifndef LR_VIEWER_FRAMES_TOOL_H
#define LR_VIEWER_FRAMES_TOOL_H

#include <lr/log.h>

struct app;

enum { FRAMES_PATH = 4096, FRAMES_MOST = 10000 };

/* Zero is valid. */
struct frames_tool {
    char path[FRAMES_PATH]; /* of the image that was looked at last */
    int before, after;      /* lengths of its path before the number and behind it */
    int number;             /* of the frame that is open, from 1; 0 = the image is no frame */
    int wanted;             /* that was asked for last */
    int count;              /* frames that lie beside it, one number after the other; 0 = it is none */
};

/* Looks what has been opened. Returns whether that is another frame of the same ones: what is shown of
 * it stays as it was. */
bool frames_tool_take_study(struct app *app);

/* Begins to open a frame. errors: LR_USAGE, with a sentence, where there is none of that number. */
lr_status frames_tool_show(struct app *app, int number);

/* A slider, where there are frames. */
void frames_tool_panel(struct app *app);

#endif
