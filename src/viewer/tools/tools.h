/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The viewer's tools, one file each, and the functions that they provide to each other. */
#ifndef LR_VIEWER_TOOLS_H
#define LR_VIEWER_TOOLS_H

#include "viewer/app.h"
#include "viewer/study/voxel.h"

#include <lr/direct.h>

/* All tools, in the order in which they are opened and updated; ends with NULL. */
extern const struct viewer_tool *const viewer_tools[];

extern const struct viewer_tool study_tool;   /* open files, displayed parts, and frames */
extern const struct viewer_tool voxel_tool;   /* rows of the matrix, as pictures and in the scene */
extern const struct viewer_tool lor_tool;     /* two crystals, and their tube of response */
extern const struct viewer_tool maps_tool;    /* sensitivity and LOR data */
extern const struct viewer_tool live_tool;    /* live reconstruction */
extern const struct viewer_tool doctor_tool;  /* findings of the geometry doctor, also for a refused file */
extern const struct viewer_tool direct_tool;  /* the family direct: LORmap, kernels and histo-images of a view */
extern const struct viewer_tool opener_tool;  /* the dialog that opens files, and the start screen */
extern const struct viewer_tool session_tool; /* saves and restores the view in a file */
extern const struct viewer_tool window_tool;  /* commands and values of the window and the scene (script/steps.c) */

/* --- the voxel tool --- */

const double *voxel_tool_point(const struct app *app);                /* the chosen point, in mm */
void voxel_tool_set_point(struct app *app, const double point_mm[3]); /* sets the point and requests its rows */
const struct voxel *voxel_tool_voxel(const struct app *app);          /* has the newest result and its study */

/* --- the LOR tool --- */

/* Chooses both crystals of a LOR and brings the tool to the front. lor: the LOR's number. */
void lor_tool_choose(struct app *app, int64_t lor);

/* --- the tool of the family direct --- */

const lr_histo_images *direct_tool_histo(const struct app *app); /* the open histo-images; NULL = none */

/* The kernel that a person has set. Its time resolution is that of the scanner if a person has not set it. */
const lr_direct_kernel *direct_tool_kernel(struct app *app);

/* --- sessions --- */

lr_status session_tool_write(struct app *app, const char *path);

/* --- panels without a tab --- */

void study_tool_panel(struct app *app);

enum opener_kind {
    OPENER_ANY = 0, /* the kind that the file itself indicates */
    OPENER_SCANNER,
    OPENER_IMAGE,
    OPENER_MU,
    OPENER_DATA,
    OPENER_NUM_KINDS
};

/* Shows the dialog while app->shows_opener is true. Shows the start screen while neither a scanner nor an image is
 * open. */
void opener_tool_panels(struct app *app);

#endif
