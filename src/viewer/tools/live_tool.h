/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Live reconstruction in the viewer. */
#ifndef LR_VIEWER_LIVE_TOOL_H
#define LR_VIEWER_LIVE_TOOL_H

#include "viewer/study/live.h"

struct app;

enum { LIVE_HISTORY = 512 };

struct live_tool {
    struct live *live;
    struct live_request request;
    bool on_device; /* the image is to stay there, where that can be */
    bool is_on_device;
    char why[LIVE_WHY];        /* it is not */
    struct handover *handover; /* owned; its texture is lent to the scene */
    bool compares;             /* measured data: with the image that is open */
    enum live_state state;
    lr_image *image; /* the newest on the host; owned */
    int64_t serial;
    int num_iterations;
    struct live_iteration last;
    float likelihood[LIVE_HISTORY], difference[LIVE_HISTORY]; /* of the first iterations */
    char error[JOB_SENTENCE];
};

lr_status live_tool_open(struct app *app);
void live_tool_close(struct app *app);
void live_tool_start(struct app *app);
lr_status live_tool_update(struct app *app);

void live_tool_panel(struct app *app);

#endif
