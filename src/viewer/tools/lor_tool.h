/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * LOR mode in the viewer: two crystals, and their tube of response in slices, volume and curves. */
#ifndef LR_VIEWER_LOR_TOOL_H
#define LR_VIEWER_LOR_TOOL_H

#include "viewer/study/tube.h"

struct app;

/* In the order of enum tube_kernel, as scripts and sessions name them; NULL at the end. */
extern const char *const lor_kernels[];

struct lor_tool {
    struct tube *tube;
    struct tube_request request;
    int next_end; /* crystal that the next click in the scene sets */
    bool is_asked;
    struct job_report report; /* as of this frame; polling elsewhere would replace the result */
    char error[JOB_SENTENCE]; /* why there is no tube; "" = there is */
    int64_t serial;
};

lr_status lor_tool_open(struct app *app);
void lor_tool_close(struct app *app);

/* After changes of the request. */
void lor_tool_ask(struct app *app);

/* Places an event's time of flight, and asks; NAN = it has none. errors: LR_BAD_INPUT, with a sentence,
 * where elements are of the LOR, or the scanner has no time resolution. */
lr_status lor_tool_set_tof(struct app *app, double tof_mm);

/* The LOR of that number: both crystals. */
void lor_tool_choose(struct app *app, int64_t lor);

/* A crystal that was clicked on. */
void lor_tool_take_crystal(struct app *app, int module, const int crystal[2]);

lr_status lor_tool_update(struct app *app);

void lor_tool_panel(struct app *app);

#endif
