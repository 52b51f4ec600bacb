/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Part of the live tool: guesses that are composed, their weights, residuals and slices. */
#ifndef LR_VIEWER_GUESSES_TOOL_H
#define LR_VIEWER_GUESSES_TOOL_H

#include "viewer/study/live.h"

struct app;
struct gl_texture;

enum { GUESSES_HISTORY = 256 };

/* What a picture of slices shows, so that it is painted again when that changes. */
struct guesses_look {
    int64_t serials; /* of all guesses together, */
    int64_t image;   /* and of the composed image */
    int slice, size[2];
    double range[2];
    int colours;
};

/* Zero is valid: no guesses. */
struct guesses_tool {
    int count;  /* of the reconstruction that is shown; 0 = none are composed */
    int asked;  /* of the last start */
    int rounds; /* compositions so far */
    struct live_round last;
    float residuals[LIVE_MOST_GUESSES][GUESSES_HISTORY]; /* of the first compositions */
    float composed[GUESSES_HISTORY], clipped[GUESSES_HISTORY], condition[GUESSES_HISTORY];
    lr_grid grid;
    float *images; /* owned [count][num_voxels] */
    int64_t serials[LIVE_MOST_GUESSES];
    struct gl_texture *texture; /* owned */
    struct guesses_look painted;
};

/* For the next start. errors: LR_BAD_INPUT, with a sentence, for more guesses than can be, or no iteration. */
lr_status guesses_tool_set(struct app *app, int guesses, int local_iterations);

/* After a start; once a frame; before the end. */
void guesses_tool_start(struct app *app);
lr_status guesses_tool_update(struct app *app);
void guesses_tool_close(struct app *app);

void guesses_tool_choose(struct app *app); /* sliders, of the next start */
void guesses_tool_panel(struct app *app);  /* what has come, where guesses are composed */

#endif
