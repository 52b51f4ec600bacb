/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Live reconstruction in the viewer. */
#ifndef LR_VIEWER_LIVE_TOOL_H
#define LR_VIEWER_LIVE_TOOL_H

#include "viewer/tools/guesses_tool.h"

struct app;

enum { LIVE_HISTORY = 512 };

/* In the order of lr_recon_algorithm, as scripts name them; NULL at the end. */
extern const char *const live_algorithms[];

/* In the order of enum live_family, alike. */
extern const char *const live_families[];

/* In the order of lr_listmode_kernel, alike. */
extern const char *const live_kernels[];

struct live_tool {
    struct live *live;
    struct live_request request;
    bool on_device; /* the image is to stay there, where that can be */
    bool is_on_device;
    char why[LIVE_WHY]; /* it is not */
    char backend[LIVE_BACKEND];
    struct handover *handover; /* owned; its texture is lent to the scene */
    bool compares;             /* measured data: with the image that is open */
    enum live_state state;
    lr_image *image; /* the newest on the host; owned */
    int64_t serial;
    int num_iterations;
    struct live_iteration last;
    float likelihood[LIVE_HISTORY], difference[LIVE_HISTORY]; /* of the first iterations */
    char scanner[128];                                        /* that was open at its start */
    char error[JOB_SENTENCE];
    struct guesses_tool guesses; /* where the image is composed of them */
};

lr_status live_tool_open(struct app *app);
void live_tool_close(struct app *app);
void live_tool_start(struct app *app);

/* For the next start. errors: LR_BAD_INPUT, with a sentence: the first must be above 0, the second 0
 * or more. */
lr_status live_tool_relax(struct app *app, double relaxation, double fall);

/* Views of counts that are drawn, for the next start of family direct. errors: LR_BAD_INPUT for
 * numbers below 1, LR_USAGE for too many; with a sentence. */
lr_status live_tool_set_views(struct app *app, int azimuths, int tilts);

lr_status live_tool_update(struct app *app);

void live_tool_panel(struct app *app);

#endif
