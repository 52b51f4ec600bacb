/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Everything the viewer holds, and its frames: what has happened, what has been computed, what is
 * drawn. Panels and commands change the plain fields; app_update makes the rest follow. */
#ifndef LR_VIEWER_APP_H
#define LR_VIEWER_APP_H

#include "io/sessions/session.h"
#include "viewer/frame/camera.h"
#include "viewer/frame/draw.h"
#include "viewer/frame/probe.h"
#include "viewer/frame/ui.h"
#include "viewer/frame/window.h"
#include "viewer/study/study.h"
#include "viewer/tools/direct_tool.h"
#include "viewer/tools/doctor_tool.h"
#include "viewer/tools/frames_tool.h"
#include "viewer/tools/live_tool.h"
#include "viewer/tools/lor_tool.h"
#include "viewer/tools/maps_tool.h"
#include "viewer/tools/opener_tool.h"
#include "viewer/tools/record_tool.h"
#include "viewer/tools/start_tool.h"
#include "viewer/tools/voxel_tool.h"
#include "viewer/view.h"

enum app_tool { TOOL_VOXEL = 0, TOOL_LOR, TOOL_MAPS, TOOL_LIVE, TOOL_DOCTOR, TOOL_DIRECT, NUM_TOOLS };
extern const char *const app_tool_names[NUM_TOOLS];

enum { APP_MESSAGES = 64, APP_MESSAGE = 1024, COMMAND_WATCHED = 15, COMMAND_TEXT = 256 };

struct app_message {
    lr_log_level level;
    char text[APP_MESSAGE];
};

struct app {
    const struct view_params *params;
    lr_log log; /* of what is done in the window's thread: kept, and passed on */
    struct window *window;
    struct gl_context *ctx;
    struct ui *ui;
    struct draw *draw;
    struct gl_target *target; /* of the window's size */
    struct script *script;    /* NULL: a person */

    struct study *study;
    struct study_view open;                      /* what is open: held */
    struct job_report opening;                   /* as of this frame; jobs are polled by tools_update alone */
    int64_t endings;                             /* of openings that have been seen */
    lr_status failure;                           /* of a job, and no step of a script has waited for it yet */
    double wait_start_s;                         /* of a step of a script */
    bool waits;                                  /* a step of a script, for work */
    bool is_pictured;                            /* a step of a script wants this frame drawn, though nobody sees it */
    bool saves_view;                             /* somebody wants a picture of this frame */
    char watched[COMMAND_WATCHED][COMMAND_TEXT]; /* values, as the step `stay` last told */
    int64_t asked_frame;                         /* whose values a script has asked for */
    char saved_path[1024];                       /* of the last picture or session */

    /* what is shown */
    double scene_at[2], scene_size[2]; /* pixels, from the upper left: what panels leave free */
    bool has_room;                     /* panels stand beside each other, where the scene has painted their ground */
    struct camera camera;
    struct camera_view seen;
    struct draw_slices slices;
    double ranges[DRAW_NUM_IMAGES][2]; /* lowest and highest value shown of each */
    bool hides_scanner, hides_lors, has_volume, shows_help, shows_messages;
    struct opener_tool opener;
    struct start_tool start;
    struct ui_reading reading; /* of the curve under the mouse, in the last frame; index -1: none */
    enum app_tool tool;
    bool wants_tool; /* the tab follows `tool` in the next frame */

    struct voxel_tool voxel;
    struct lor_tool lor;
    struct maps_tool maps;
    struct live_tool live;
    struct doctor_tool doctor;
    struct direct_tool direct;
    struct frames_tool frames;
    struct record_tool record;
    struct lr_view_session session; /* that was read, until what it names is open */
    bool has_session;

    /* the mouse */
    double mouse[2];
    int held_button;    /* -1: none */
    bool has_moved;     /* since it was pressed */
    struct probe probe; /* what is under it in the scene */

    /* talk */
    struct app_message messages[APP_MESSAGES];
    int num_messages; /* ever; the last are kept */
    bool wants_quit;
    double start_s, first_frame_s; /* on base/clock.h; from start_s on */
    double now_s, frame_s;         /* on base/clock.h; smoothed time of a frame */
    double longest_frame_s;        /* since a script last asked */
    int64_t num_frames;
};

/* errors: NULL, and why in *status. */
struct app *app_open(const struct view_params *params, lr_status *status);
void app_close(struct app *app); /* NULL is allowed */

/* One frame: input, what has become ready, drawing, showing. */
lr_status app_frame(struct app *app);

/* Whether anything is still being opened or computed. */
bool app_is_busy(const struct app *app);

/* Says something to the person. */
void app_say(struct app *app, lr_log_level level, const char *format, ...) LR_PRINTF(3, 4);

/* Says why a job has failed. is_expected: a script goes on. */
void app_take_failure(struct app *app, const struct job_report *report, bool is_expected);

/* The picture as it was last drawn, written to a PNG file. */
lr_status app_write_picture(struct app *app, const char *path);

#endif
