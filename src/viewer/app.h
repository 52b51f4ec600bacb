/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * State of the viewer: the window, the open files, what the scene shows, and the table of tools, each of which has
 * its own state. Panels and script steps change plain fields of this state; the next frame updates everything that
 * depends on them. */
#pragma once

#include "io/files/file_kind.h"
#include "io/sessions/session.h"
#include "viewer/frame/camera.h"
#include "viewer/frame/draw.h"
#include "viewer/frame/ui.h"
#include "viewer/frame/window.h"
#include "viewer/script/script.h"
#include "viewer/study/survey.h"
#include "viewer/study/voxel.h"
#include "viewer/view.h"

#include <lr/direct.h>

/* The parts of the window's middle: the panes across x, y and z, and the scene. */
enum { PANE_SCENE = 3, NUM_PANES = 4, PANE_FOUR = -1 };

/* The nearest module or slice under the mouse in the scene or a pane, and the value of the slice at that point. */
struct probe {
    int pane;            /* the pane or scene under the mouse; -1: none */
    struct pick_hit hit; /* module under the mouse; hit.module is -1 if there is none or a slice is nearer */
    int axis;            /* axis of the slice; -1: no slice, or a module is nearer */
    double point_mm[3];  /* point on the slice */
    int voxel[3];        /* voxel at the point, in the image that the slices show */
    double value;        /* the voxel's value, read from the device */
    double tube;         /* value of the overlaid tube; NaN: no tube */
    double second;       /* value of the second image, which is combined with the first; NaN: no value there */
};

/* A tool of the viewer. Some tools have a tab in the panel Tools. All functions may be NULL. */
struct viewer_tool {
    const char *name;          /* name of the tool's tab; NULL = no tab */
    const char *word;          /* the tab's name in scripts */
    enum lr_session_mode mode; /* the tab's name in sessions */
    size_t state_bytes;        /* size of the tool's state in bytes; the state is all zeros when the tool is opened */
    enum lr_file_kind opens;   /* kind of the files that `open_file` reads */
    lr_status (*open_file)(struct app *app, const char *path);
    const char *(*input)(const struct app *app); /* path of the file that is open in the tool; returns NULL for none */

    lr_status (*open)(struct app *app);
    void (*close)(struct app *app); /* also called if `open` has failed */

    /* Called when files have been opened or could not be opened. is_new: app->open has changed. */
    lr_status (*take_study)(struct app *app, bool is_new);
    lr_status (*update)(struct app *app); /* called once a frame */
    void (*panel)(struct app *app);

    /* Called for input outside of the panels, before the mouse's place in `app` changes; true: the tool uses the
     * input. */
    bool (*take)(struct app *app, const struct input_event *event);
    void (*mark)(struct app *app); /* called once a frame: draws marks over the scene and the panes, below the panels */

    bool (*click)(struct app *app, const struct probe *probe);          /* true: the tool uses the click */
    bool (*describe)(const struct app *app, char *text, size_t length); /* writes the numbers under the mouse; false:
                                                                           none */
    bool (*is_busy)(const struct app *app);                             /* app_is_busy itself checks task runners */
    void (*cancel)(struct app *app);                                    /* the viewer itself cancels task runners */

    void (*write_session)(const struct app *app, struct lr_view_session *session);
    void (*read_session)(struct app *app, const struct lr_view_session *session);

    /* Words of scripts. The arrays end with NULL. */
    const struct command *commands;
    const char *const *settings; /* names that can follow the word `set` */
    lr_status (*set)(struct app *app, const struct command_words *words, int setting); /* setting: index of the name */
    bool (*get_value)(struct app *app, const char *name, struct command_value *value); /* false: no such value */
};

enum { APP_TOOLS = 16, APP_RUNNERS = 8, APP_MESSAGES = 64, APP_MESSAGE = 1024 };

struct app_message {
    lr_log_level level;
    char text[APP_MESSAGE];
};

struct app {
    const struct view_params *params;
    lr_log log; /* used on the window's thread; keeps messages and passes them on */
    struct window *window;
    struct gl_context *ctx;
    struct ui *ui;
    struct draw *draw;
    struct gl_target *target; /* target as large as the window */
    struct script *script;    /* NULL: a person uses the viewer */

    const struct viewer_tool *const *tools;   /* the list ends with NULL */
    void *states[APP_TOOLS];                  /* owned, in the same order as the tools */
    struct task_runner *runners[APP_RUNNERS]; /* owned by the tools; polled once a frame, before the tools' updates */
    int num_runners;

    struct study *study;
    struct study_view open;                    /* the open files; a reference is held */
    struct job_report opening;                 /* report of the last opening of files, read once a frame */
    lr_status failure;                         /* status of a failed job that no script step has waited for yet */
    double wait_start_s;                       /* time at which a script step began to wait */
    bool is_next_frame;                        /* the open image is another frame of the image that was open before */
    bool waits;                                /* a script step waits for work */
    bool is_pictured;                          /* a script step needs this frame drawn, even if invisible */
    bool saves_view;                           /* a picture of this frame is requested */
    char watched[COMMAND_WORDS][COMMAND_TEXT]; /* values that the step `stay` printed last */
    int64_t asked_frame;                       /* frame of the last step if the step read what is shown, otherwise -1 */
    char saved_path[1024];                     /* path of the last picture or session */

    /* the displayed state */
    double area_at[2], area_size[2]; /* pixels from the upper left: the area that panels leave free */
    struct app_pane {
        double at[2], size[2]; /* pixels; the size is 0 while the pane is not shown */
    } panes[NUM_PANES];
    int alone;                         /* the only pane that is shown; PANE_FOUR: all four are shown */
    double pane_zoom;                  /* zoom of all panes; 1: the image fits */
    double pane_offset_mm[3];          /* from the image's middle to the middle of the panes */
    double scene_at[2], scene_size[2]; /* the area of the scene in pixels, at least one pixel */
    bool folds[2];                     /* [0]: the panel Study is folded into a strip; [1]: the panel Tools */
    bool is_narrow;                    /* the window has room for only one of the two panels at a time */
    bool is_light;                     /* light panels */
    bool has_room;                     /* the panels do not overlap; draw_clear then paints their background */
    struct camera camera;
    struct camera_view seen;
    const lr_scanner *drawn; /* the scanner in the scene: of a refused file, otherwise the open one; NULL = none */
    struct draw_slices slices;
    double ranges[DRAW_NUM_IMAGES][2];  /* lowest and highest value shown for each image */
    const char *units[DRAW_NUM_IMAGES]; /* unit of each image's values; NULL = the unit in scene_images */
    struct survey whole;                /* the last complete statistics of the image on the slices; 0 voxels = none */
    bool hides_scanner, hides_lors, has_volume, shows_help, shows_messages;
    double point_mm[3]; /* the chosen point, whose voxel the tools show */
    bool shows_opener;
    int opener_kind;                /* enum opener_kind: how the dialog opens files */
    struct ui_reading reading;      /* the curve's value under the mouse in the last frame; index -1: no value */
    const struct viewer_tool *tool; /* the tool whose tab is in front */
    bool wants_tool;                /* the next frame brings the tab of `tool` to the front */

    /* the mouse */
    double mouse[2];
    int held_button;    /* -1: no button is pressed */
    bool holds_pane;    /* a button is pressed in a pane */
    bool has_moved;     /* the mouse has moved since the button was pressed */
    struct probe probe; /* module or slice under the mouse in the scene */

    /* messages and frames */
    struct app_message messages[APP_MESSAGES];
    int num_messages; /* number of all messages so far; only the last APP_MESSAGES are kept */
    bool wants_quit;
    double start_s, first_frame_s; /* time of the start, by base/clock.h; seconds from the start to the first frame */
    double now_s, frame_s;         /* time on base/clock.h; smoothed duration of a frame */
    double longest_frame_s;        /* longest duration of a frame since a script last read this value */
    int64_t num_frames;
};

/* --- tools --- */

/* The state of a tool of the table. */
void *app_state(const struct app *app, const struct viewer_tool *tool);

/* Brings a tool's tab to the front. */
void app_choose(struct app *app, const struct viewer_tool *tool);

/* True while anything is being opened or computed. */
bool app_is_busy(const struct app *app);

/* Opens a panel: 0 = Study, 1 = Tools. In a narrow window, the other panel becomes a strip. */
void app_unfold(struct app *app, int side);

/* Gives a click at the mouse to the first tool that uses it. */
void app_click(struct app *app);

/* Opens a file with the tool that reads its kind, or otherwise with the study. app_drop detects the kind and brings
 * the tool to the front. */
lr_status app_open_file(struct app *app, enum lr_file_kind kind, const char *path);
void app_drop(struct app *app, const char *path);

/* --- the tools, each in its own file, and the functions that tools provide to each other --- */

/* All tools, in the order in which they are opened and updated; ends with NULL. */
extern const struct viewer_tool *const viewer_tools[];

extern const struct viewer_tool study_tool;   /* open files, displayed parts, and frames */
extern const struct viewer_tool voxel_tool;   /* rows of the matrix, as pictures and in the scene */
extern const struct viewer_tool lor_tool;     /* two crystals, and their tube of response */
extern const struct viewer_tool maps_tool;    /* sensitivity and LOR data */
extern const struct viewer_tool live_tool;    /* live reconstruction */
extern const struct viewer_tool doctor_tool;  /* findings of the geometry doctor, also for a refused file */
extern const struct viewer_tool direct_tool;  /* family direct: LORmap and kernels of a view, and histo-images */
extern const struct viewer_tool opener_tool;  /* the dialog that opens files, and the start screen */
extern const struct viewer_tool session_tool; /* saves and restores the view in a file */
extern const struct viewer_tool export_tool;  /* saves slices, profiles and the turning scene */
extern const struct viewer_tool history_tool; /* undoes and redoes changes of the view */
extern const struct viewer_tool measure_tool; /* regions, lines and histograms of the image on the slices */
extern const struct viewer_tool panes_tool;   /* transaxial, coronal and sagittal slices beside the scene */
extern const struct viewer_tool window_tool;  /* commands and values of the window and the scene (script/steps.c) */

void voxel_tool_set_point(struct app *app, const double point_mm[3]); /* chooses a point and requests its rows */
const struct voxel *voxel_tool_voxel(const struct app *app);          /* has the newest result and its study */

/* Chooses both crystals of a LOR and brings the tool to the front. lor: the LOR's number. */
void lor_tool_choose(struct app *app, int64_t lor);

const lr_histo_images *direct_tool_histo(const struct app *app); /* the open histo-images; NULL = none */

/* The kernel that a person has set. If the person has not set its time resolution, the scanner's time resolution is
 * used. */
const lr_direct_kernel *direct_tool_kernel(struct app *app);

lr_status session_tool_write(struct app *app, const char *path);

/* Lists the values along the line of the tool Measure, and sets the line's length. Returns the number of values; 0:
 * there is no line. */
int measure_tool_profile(const struct app *app, const float **values, double *length_mm);

/* Panels without a tab. */
void study_tool_panel(struct app *app);
void export_tool_panel(struct app *app);

enum opener_kind {
    OPENER_ANY = 0, /* the kind that the file itself indicates */
    OPENER_SCANNER,
    OPENER_IMAGE,
    OPENER_MU,
    OPENER_SECOND,
    OPENER_DATA,
    OPENER_NUM_KINDS
};

/* Shows the dialog while app->shows_opener is true. Shows the start screen while neither a scanner nor an image is
 * open. */
void opener_tool_panels(struct app *app);

/* --- messages --- */

/* Keeps a message for display and passes it on to the program's log. This is the function of app->log. user: the app. */
void app_keep_message(void *user, lr_log_level level, lr_status status, const char *sentence);
void app_say(struct app *app, lr_log_level level, const char *format, ...) LR_PRINTF(3, 4);

/* Reports the reason why a job has failed. is_expected: true if a script continues after the failure. */
void app_take_failure(struct app *app, const struct job_report *report, bool is_expected);

/* Keeps a curve's value under the mouse for scripts. Does nothing if the mouse is not on the curve. */
void app_take_reading(struct app *app, struct ui_reading reading);

/* --- notes: small files that the viewer keeps in its folder while its window is visible --- */

/* Returns the text of a note, or NULL if the note cannot be read. The caller frees the text. */
char *app_read_note(const struct app *app, const char *name);

/* Writes a note. Does nothing if the window is invisible. A failure is not reported. */
void app_write_note(const struct app *app, const char *name, const char *text);

/* --- panes: panes.c --- */

/* The grid of the image on the slices; NULL: there is no image, and no pane. */
const lr_grid *panes_grid(const struct app *app);

/* Divides the free area among the panes and the scene. While there is no image, the scene has the whole area. */
void panes_arrange(struct app *app);

/* Returns the pane at a place in the window, PANE_SCENE for the scene, or -1 if there is none. */
int panes_at(const struct app *app, const double at[2]);

/* Finds the slice pane at a place in the window, and the point that the pane shows there. Returns the pane's axis; -1:
 * no slice pane. */
int panes_point(const struct app *app, const double at[2], double point_mm[3]);

/* Finds the point of a slice pane's plane at a place in the window. The place may be outside of the pane. */
void panes_point_in(const struct app *app, int pane, const double at[2], double point_mm[3]);

/* The view of a pane: the place and the scale at which it shows the image of the slices. */
struct flat_view panes_flat(const struct app *app, int axis);

/* Moves the planes of the slices to the middle of the voxel that contains the point, or the voxel nearest to it. */
void panes_cross(struct app *app, const double point_mm[3]);

/* --- the scene --- */

void app_fit(struct app *app); /* moves the camera to show the open scanner */

/* Copies an image into the scene. largest: the value of its largest voxel, at which the colour map ends. An image that
 * the device cannot hold is reported and not shown. */
void app_put_image(struct app *app, enum draw_image which, const lr_image *image, double largest);

/* Shows an image on the slices, with its range. */
void app_show_image(struct app *app, enum draw_image which);

/* Sets the lowest and the highest value that the slices show. */
void app_set_window(struct app *app, double low, double high);

/* Writes what a target shows, or the last drawn picture, to a PNG file. */
lr_status app_write_target(struct app *app, const struct gl_target *target, const char *path);
lr_status app_write_picture(struct app *app, const char *path);

/* Returns the first unused name of "loraster-view-1", "loraster-view-2" ..., each with `ending`. The name is kept in
   app->saved_path. */
const char *app_choose_path(struct app *app, const char *ending);

/* Refuses to write to a file that is open. errors: LR_USAGE, logged. */
lr_status app_check_output(const struct app *app, const char *path);

/* The settings for drawing the scene, without its view and viewport. */
struct draw_params scene_draw_params(const struct app *app);

extern const struct probe scene_no_probe; /* nothing is under the mouse */

/* The nearest module or slice under the mouse, with the slice's values. */
struct probe scene_probe(const struct app *app);

/* "image 0.25, voxel (12, 30, 4), (1.20, 3.40, 5.00) mm, transaxial slice"; "" if nothing is under the mouse. */
void scene_describe_probe(const struct app *app, char *text, size_t size);

extern const char *const scene_plane_names[3];                   /* the planes across x, y and z */
extern const char *const scene_image_words[DRAW_NUM_IMAGES + 1]; /* words of scripts, NULL at the end */
extern const struct scene_image {
    const char *name, *unit; /* "reconstruction", "emissions per voxel" */
} scene_images[DRAW_NUM_IMAGES];

/* A colour bar for a range of values, as wide as all bars in panels. colours: an lr_colour_map, or DRAW_NUM_MAPS for the
 * colours of the tube. */
struct ui_bar scene_bar(int colours, const double range[2], const char *title);

/* Draws over the scene: the names of its axes, and colour bars in its lower left corner. */
void scene_show_labels(struct app *app);
