/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What the viewer holds: the window, what is open, what the scene shows; and the table of tools, each with a state of
 * its own. Panels and steps of scripts change the plain fields; the next frame makes the rest follow. */
#ifndef LR_VIEWER_APP_H
#define LR_VIEWER_APP_H

#include "io/files/file_kind.h"
#include "io/sessions/session.h"
#include "viewer/frame/camera.h"
#include "viewer/frame/draw.h"
#include "viewer/frame/ui.h"
#include "viewer/frame/window.h"
#include "viewer/script/script.h"
#include "viewer/study/study.h"
#include "viewer/view.h"

/* The nearest module or slice under the mouse in the scene, and the slice's value there. */
struct probe {
    struct pick_hit hit; /* of a module; module -1: none, or a slice is nearer */
    int axis;            /* the slice across it; -1: none, or a module is nearer */
    double point_mm[3];  /* on the slice */
    int voxel[3];        /* of the image that the slices show, that holds the point */
    double value;        /* of that voxel, as the device has it */
    double tube;         /* of the tube that is laid over it; NaN: none is */
};

/* A tool: a tab among the tools, or a part of the viewer without one. All functions may be NULL. */
struct viewer_tool {
    const char *name;          /* of its tab; NULL = it has none */
    const char *word;          /* of its tab, in scripts */
    enum lr_session_mode mode; /* of its tab, in sessions */
    size_t state_bytes;        /* of its state, which is zero when it is opened */
    enum lr_file_kind opens;   /* files that it reads, by: */
    lr_status (*open_file)(struct app *app, const char *path);

    lr_status (*open)(struct app *app);
    void (*close)(struct app *app); /* also where it could not be opened */

    /* Called when an opening has ended, well or not; is_new: app->open has changed. */
    lr_status (*take_study)(struct app *app, bool is_new);
    lr_status (*update)(struct app *app); /* once a frame */
    void (*panel)(struct app *app);

    bool (*click)(struct app *app, const struct probe *probe);          /* in the scene; true: it was the tool's */
    bool (*describe)(const struct app *app, char *text, size_t length); /* numbers under the mouse; false: none */
    bool (*is_busy)(const struct app *app);                             /* apart from its task runners */
    void (*cancel)(struct app *app);                                    /* apart from its task runners */

    void (*write_session)(const struct app *app, struct lr_view_session *session);
    void (*read_session)(struct app *app, const struct lr_view_session *session);

    /* Words of scripts; arrays end with a name of NULL. */
    const struct command *commands;
    const struct command_setting *settings;
    bool (*get_value)(struct app *app, const char *name, struct command_value *value); /* false: it has none */
};

enum { APP_TOOLS = 16, APP_RUNNERS = 8, APP_MESSAGES = 64, APP_MESSAGE = 1024 };

struct app_message {
    lr_log_level level;
    char text[APP_MESSAGE];
};

struct app {
    const struct view_params *params;
    lr_log log; /* of the window's thread: keeps sentences as messages, and passes them on */
    struct window *window;
    struct gl_context *ctx;
    struct ui *ui;
    struct draw *draw;
    struct gl_target *target; /* of the window's size */
    struct script *script;    /* NULL: a person */

    const struct viewer_tool *const *tools; /* ends with NULL */
    void *states[APP_TOOLS];                /* owned, in the order of the tools */
    struct task_runner *runners[APP_RUNNERS];
    int num_runners;

    struct study *study;
    struct study_view open;                    /* what is open: held */
    struct job_report opening;                 /* as of this frame */
    lr_status failure;                         /* of a job, and no step of a script has waited for it yet */
    double wait_start_s;                       /* of a step of a script */
    bool waits;                                /* a step of a script, for work */
    bool is_pictured;                          /* a step of a script needs this frame drawn, though nobody sees it */
    bool saves_view;                           /* somebody wants a picture of this frame */
    char watched[COMMAND_WORDS][COMMAND_TEXT]; /* values, as the step `stay` last printed them */
    int64_t asked_frame;                       /* whose values a script has asked for */
    char saved_path[1024];                     /* of the last picture or session */

    /* what is shown */
    double scene_at[2], scene_size[2]; /* pixels, from the upper left: what panels leave free */
    bool has_room;                     /* panels stand side by side, on ground that the scene has painted */
    struct camera camera;
    struct camera_view seen;
    const lr_scanner *drawn; /* modules in the scene: of a refused file, else of the open scanner; NULL = none */
    struct draw_slices slices;
    double ranges[DRAW_NUM_IMAGES][2];  /* lowest and highest value shown of each */
    const char *units[DRAW_NUM_IMAGES]; /* of their values, where these are not the usual ones; NULL = they are */
    bool hides_scanner, hides_lors, has_volume, shows_help, shows_messages;
    bool shows_opener;
    int opener_kind;                /* enum opener_kind: how the dialog opens files */
    struct ui_reading reading;      /* of the curve under the mouse, in the last frame; index -1: none */
    const struct viewer_tool *tool; /* whose tab is in front */
    bool wants_tool;                /* the tab follows `tool` in the next frame */

    /* the mouse */
    double mouse[2];
    int held_button;    /* -1: none */
    bool has_moved;     /* since it was pressed */
    struct probe probe; /* what is under it in the scene */

    /* talk */
    struct app_message messages[APP_MESSAGES];
    int num_messages; /* ever; the last APP_MESSAGES are there */
    bool wants_quit;
    double start_s, first_frame_s; /* on base/clock.h; from start_s on */
    double now_s, frame_s;         /* on base/clock.h; smoothed time of a frame */
    double longest_frame_s;        /* since a script last asked */
    int64_t num_frames;
};

/* --- tools --- */

/* The state of a tool of the table. */
void *app_state(const struct app *app, const struct viewer_tool *tool);

/* Brings a tool's tab to the front. */
void app_choose(struct app *app, const struct viewer_tool *tool);

/* Tasks of the runner are polled once a frame before the tools' updates, and cancelled with all the rest. */
void app_add_runner(struct app *app, struct task_runner *runner);

/* True while anything is being opened or computed. */
bool app_is_busy(const struct app *app);

/* Stops all that is being opened and computed. */
void app_cancel(struct app *app);

/* Hands a file to the tool that reads its kind, else to the study. app_drop finds the kind out, and brings the
 * tool to the front. */
lr_status app_open_file(struct app *app, enum lr_file_kind kind, const char *path);
void app_drop(struct app *app, const char *path);

/* --- messages --- */

/* Keeps a message for the person, and passes it on: app->log. user: the app. */
void app_keep_message(void *user, lr_log_level level, lr_status status, const char *sentence);
void app_say(struct app *app, lr_log_level level, const char *format, ...) LR_PRINTF(3, 4);

/* Keeps an error's message for a panel, as lr_log.write. user: the text, [JOB_SENTENCE]. */
void app_keep_error(void *user, lr_log_level level, lr_status status, const char *message);

/* Says why a job has failed. is_expected: a script goes on. */
void app_take_failure(struct app *app, const struct job_report *report, bool is_expected);

/* Keeps a curve's value under the mouse, where the mouse is on that curve. */
void app_take_reading(struct app *app, struct ui_reading reading);

/* --- the scene --- */

void app_fit(struct app *app); /* the camera, to the open scanner */

/* Takes an image into the scene; one that the device cannot hold is reported and not shown. */
void app_put_image(struct app *app, enum draw_image which, const lr_image *image);

/* Puts an image on the slices, with its range. */
void app_show_image(struct app *app, enum draw_image which);

/* Writes the picture as it was last drawn to a PNG file. */
lr_status app_write_picture(struct app *app, const char *path);

/* The nearest module or slice under the mouse, without values. */
struct probe scene_probe(const struct app *app);

/* Once a frame, before it is drawn: app->probe. */
void scene_update_probe(struct app *app);

/* "image 0.25, voxel (12, 30, 4), (1.20, 3.40, 5.00) mm, transaxial slice"; "" where there is
 * nothing. */
void scene_describe_probe(const struct app *app, char *text, size_t size);

/* "reconstruction", "emissions per voxel" */
const char *scene_image_name(enum draw_image which);

/* A bar of the map's colours over that range, as wide as bars are in panels. */
struct ui_bar scene_bar(lr_colour_map colours, const double range[2], const char *title);

/* Over the scene: names of its axes, and in its lower left corner bars of what it shows in colours. */
void scene_show_labels(struct app *app);

#endif
