/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Sensitivity and LOR data in the viewer. */
#ifndef LR_VIEWER_MAPS_TOOL_H
#define LR_VIEWER_MAPS_TOOL_H

#include "gl/resource.h"
#include "viewer/study/maps.h"

struct app;

enum { MAPS_HIGHEST = 12 };

struct maps_tool {
    struct sensitivity *sensitivity;
    struct sensitivity_request request;
    bool is_asked;
    struct job_report report; /* as of this frame; polling elsewhere would replace the result */
    int64_t serial;
    int modules[2];
    struct pair_image pair; /* of those modules */
    struct gl_texture *texture;
    char error[JOB_SENTENCE];
    struct lor_value highest[MAPS_HIGHEST];
    int num_highest;
    int64_t study_serial; /* that pair and list belong to */
};

lr_status maps_tool_open(struct app *app);
void maps_tool_close(struct app *app);
void maps_tool_ask(struct app *app);       /* the sensitivity */
void maps_tool_show_pair(struct app *app); /* of `modules`: from data, else from the voxel's row */
lr_status maps_tool_update(struct app *app);

void maps_tool_panel(struct app *app);

#endif
