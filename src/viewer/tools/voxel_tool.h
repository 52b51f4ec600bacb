/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Voxel mode in the viewer: asks for rows, and shows them in pictures and in the scene. */
#ifndef LR_VIEWER_VOXEL_TOOL_H
#define LR_VIEWER_VOXEL_TOOL_H

#include "viewer/frame/ui.h"
#include "viewer/study/sheet.h"
#include "viewer/study/voxel_gap.h"

struct app;

struct voxel_tool {
    struct voxel *voxel;
    struct voxel_request request; /* what a person wants; ask after changes */
    bool is_asked;                /* with the scanner that is open */
    struct job_report report;     /* as of this frame; polling elsewhere would replace the result */
    bool seeks_primary;           /* of a new scanner, until a person or a session chooses one */
    bool is_side_by_side;         /* sampled, exact and difference */
    enum sheet_kind kind;
    int64_t serial; /* of the result that is shown */
    enum sheet_kind shown_kind;
    bool shown_side_by_side;
    struct sheet sheets[3];
    int num_sheets;
    enum sheet_kind sheet_kinds[3];
    struct voxel_gap gap; /* of the result's only window */
    int num_lines;        /* LORs drawn in the scene: the strongest */
    bool has_touch;       /* the pixel under the mouse, in the last frame */
    struct voxel_pixel touched;
    char said[1024]; /* why cpu draws: it is said once */
};

lr_status voxel_tool_open(struct app *app);
void voxel_tool_close(struct app *app);

/* What is asked for changes with `request`; with a new scanner it begins at the grid's middle. */
void voxel_tool_ask(struct app *app);
void voxel_tool_take_study(struct app *app);

/* The same with all LORs of the voxel, however many there are. */
void voxel_tool_ask_whole(struct app *app);

/* Once a frame. */
lr_status voxel_tool_update(struct app *app);

/* The module that sees the point best: the one farthest along the first LOR. */
const struct voxel_result *voxel_tool_result(const struct app *app);

/* Which of voxel_backends is wanted. */
int voxel_tool_backend(const struct app *app);

void voxel_tool_panel(struct app *app);

#endif
