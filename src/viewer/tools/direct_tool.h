/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The family `direct` in the viewer: LORmap, kernels and histo-images of a view. */
#ifndef LR_VIEWER_DIRECT_TOOL_H
#define LR_VIEWER_DIRECT_TOOL_H

#include "gl/resource.h"
#include "viewer/study/direct_model.h"

struct app;

enum { DIRECT_PATH = 1024 };

struct direct_tool {
    struct direct_model *model;
    struct direct_request request;
    bool has_tof;  /* a person has given the time resolution; else it is the scanner's */
    bool is_asked; /* the tables follow what is set from then on */
    struct job_report report, histo_report;
    int64_t serial, histo_serial;
    int offset[3]; /* whose value is shown */
    struct gl_texture *map;
    int view;               /* of the histo-images */
    double counts;          /* in it */
    char path[DIRECT_PATH]; /* of a file to open */
};

lr_status direct_tool_open(struct app *app);
void direct_tool_close(struct app *app);
lr_status direct_tool_update(struct app *app);

/* What a person has set, with the scanner's time resolution where nobody has set that. */
const lr_direct_kernel *direct_tool_kernel(struct app *app);

void direct_tool_ask(struct app *app); /* tables of the view, and the kernel of the chosen voxel */
void direct_tool_open_histo(struct app *app, const char *path);

/* That view's histo-image comes into the scene, and the tables become that view's. */
void direct_tool_show_view(struct app *app, int view);

const struct direct_result *direct_tool_result(const struct app *app); /* NULL: none */

void direct_tool_panel(struct app *app);

#endif
