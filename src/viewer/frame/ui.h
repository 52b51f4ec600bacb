/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Panels and their widgets, drawn again in every frame: a C interface to Dear ImGui. A process has at most one `ui`
 * and uses it only on the thread of the ui's context.
 *
 * A widget's label is both its displayed text and its name within the panel; text after ## is not displayed. A
 * widget that returns bool returns true if a person changed or pressed it in this frame. */
#pragma once

#include "viewer/frame/window.h"

#include <lr/log.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gl_texture;
struct gl_target;

struct ui {
    struct window *window;
    char layout_path[1024];
    bool wants_mouse, wants_keys; /* panels used the mouse or the keys in the last frame */
};

struct ui_params {
    struct window *window;   /* gives the clipboard and the size */
    const char *layout_path; /* file that stores the panels' places; NULL = none */
};

struct ui *ui_create(const struct ui_params *params, const lr_log *log);
void ui_destroy(struct ui *ui); /* NULL is allowed */

/* Handles an event; call it before ui_begin. */
void ui_take(struct ui *ui, const struct input_event *event);

/* ui_begin begins a frame; seconds: the time since the last frame. ui_end ends the frame and draws it over the target's
 * contents. If the target is NULL, the frame is not visible, and ui_end draws nothing. */
void ui_begin(struct ui *ui, double seconds);
lr_status ui_end(struct ui *ui, struct gl_target *target);

/* ui_set_look chooses light or dark panels. ui_ground returns the colour of their background, red to blue from 0 to
 * 1, for panels with ui_place.has_ground. */
void ui_set_look(bool light);
const float *ui_ground(void);

/* --- panels --- */

struct ui_place {
    double at[2], size[2]; /* screen units; used until a person moves the panel */
    bool is_fixed;         /* a person can neither move nor resize the panel */
    bool is_bare;          /* the panel has no title */
    bool has_ground;       /* the target already shows the background; this saves most of a frame's pixels */
};

/* The widgets that are added between ui_panel and ui_panel_end belong to the panel. ui_panel returns false if the panel
 * is closed. ui_panel_end must be called in both cases. */
bool ui_panel(const char *label, const struct ui_place *place, bool *is_open);
void ui_panel_end(void);

/* Finds the size of a text, in the units of ui_place. width: the text wraps there; 0 or less = it does not wrap. */
void ui_text_size(const char *text, double width, double size[2]);

/* Size of the window in the units of ui_place. */
void ui_screen(double size[2]);

/* A heading that folds the widgets below it. Returns false while it is folded. */
bool ui_section(const char *label, bool is_open_first);

/* A row of tabs. wanted: the tab to bring to the front; -1 = keep the tab that a person chose. Returns the tab in
 * front, whose widgets follow the call; -1 = no tab is visible. Widgets of different tabs need different labels. */
int ui_tabs(const char *label, const char *const *names, int count, int wanted);

/* --- text --- */

enum ui_tone { UI_PLAIN = 0, UI_DIM, UI_GOOD, UI_WARNING, UI_BAD };

void ui_text(const char *format, ...) LR_PRINTF(1, 2);
void ui_toned(enum ui_tone tone, const char *format, ...) LR_PRINTF(2, 3); /* the text wraps */
/* A tooltip for the last widget, shown while the mouse rests on it. */
void ui_hint(const char *format, ...) LR_PRINTF(1, 2);
void ui_line(void);
void ui_beside(void); /* places the next widget to the right of the last one */
void ui_space(double height);

/* A table with `columns` columns. Each cell begins with ui_cell, row by row. */
bool ui_table(const char *label, int columns); /* call ui_table_end only if true */
void ui_cell(void);
void ui_table_end(void);

/* Two cells of a table: a name and its value. */
void ui_field(const char *name, const char *format, ...) LR_PRINTF(2, 3);

/* --- widgets: the label of a field is to its left --- */

bool ui_button(const char *label, bool is_enabled);
bool ui_strip(const char *label); /* a button as large as the panel, whose label reads downwards */
bool ui_check(const char *label, bool *value);
bool ui_slide(const char *label, int *value, const int range[2]);
bool ui_slide_real(const char *label, double *value, const double range[2]);
bool ui_choose(const char *label, int *value, const char *const *names, int count);
bool ui_radio(const char *label, int *value, int mine);
bool ui_item(const char *label, bool is_chosen); /* a line of a list, or a table row if used in its first cell */
bool ui_is_double_click(void);                   /* true if the last widget was double-clicked in this frame */

/* Widgets between these two calls are in a part of the panel that scrolls separately. */
void ui_list(const char *label, double height);
void ui_list_end(void);

/* Fields in which a person types numbers. They return true when the person has finished typing a number. */
bool ui_reals(const char *label, double *values, int count);
bool ui_integers(const char *label, int *values, int count);
bool ui_write(const char *label, char *text, size_t size);
void ui_progress(double share, const char *text);

/* A curve through `count` values, as wide as the panel, with numbers along both axes. */
struct ui_series {
    const char *name; /* NULL = same name as the previous series; the legend lists the name once */
    const float *values;
    uint32_t colour; /* 0xRRGGBBAA */
};
struct ui_curve {
    const float *values; /* a value that is not finite leaves a gap */
    int count;
    const struct ui_series *beside; /* [num_beside] other series with the same number of values, drawn first */
    int num_beside;
    const char *name; /* shown in the legend if there are other series */
    uint32_t colour;  /* 0 = the default */
    double x[2];      /* x of the first and the last value */
    bool is_counted;  /* x values are whole numbers, such as iterations */
    double height;    /* 0 = 124 */
    const char *title, *x_label;
};

/* The value of a curve that is nearest to the mouse. A tooltip shows this value. index: -1 if the mouse is not on the
 * curve. */
struct ui_reading {
    int index;
    double x, value;
};
struct ui_reading ui_curve(const char *label, const struct ui_curve *curve);

/* Bars over the numbers 1, 2 and so on. Positive values go up from 0; negative values go down in another colour.
 * Values are written next to the bars if they fit. Returns the index of the bar under the mouse, which has a
 * tooltip; -1 = none. */
struct ui_bars {
    const double *values;
    int count;
    double height; /* 0 = 124 */
    const char *title, *x_label;
};
int ui_bars(const char *label, const struct ui_bars *bars);

/* A histogram of a range of values, with a logarithmic scale for the counts. It shows the part `window` of the range. A
 * person can drag either end of this part, or move both ends by a drag between them. Returns true if the window has
 * changed. */
struct ui_histogram {
    const float *counts;
    int count;
    double range[2];
};
bool ui_histogram(const char *label, const struct ui_histogram *histogram, double window[2]);

/* A picture, and the state of the mouse on it. */
struct ui_touch {
    bool is_over, is_pressed, is_held; /* is_pressed: the left button was pressed in this frame */
    double at[2];                      /* 0 .. 1 from the left and from the top */
    double scroll;
};

struct ui_image {
    const struct gl_texture *texture; /* row 0 is at the bottom, or at the top if is_top_down */
    double size[2];
    bool is_top_down;
};
struct ui_touch ui_image(const char *label, const struct ui_image *image);

/* Shows a tooltip at the mouse in this frame. The tooltip never covers the given part of the last picture. If the
 * window is large enough, the tooltip lies outside the whole picture. Coordinates are those of ui_touch.at. */
struct ui_part {
    double from[2], to[2]; /* two opposite corners */
};
void ui_tooltip(const struct ui_part *part, const char *format, ...) LR_PRINTF(2, 3);

/* Draws a line or a box over the last picture, in the coordinates of ui_touch.at. colour: 0xRRGGBBAA. */
void ui_mark(const double from[2], const double to[2], bool is_box, uint32_t colour);

/* Draws a text over all other contents, in units of ui_place. */
void ui_label(const double at[2], uint32_t colour, const char *text);

/* Draws a line over the scene and below all panels, in units of ui_place. */
void ui_stroke(const double from[2], const double to[2], uint32_t colour);
/* ui_clip limits ui_label and ui_stroke to a part of the window, in units of ui_place. ui_unclip ends this limit. */
void ui_clip(const double at[2], const double size[2]);
void ui_unclip(void);

/* A colour bar: a title, the colours from low to high, and numbers below them. */
enum { UI_BAR_COLOURS = 33 };
struct ui_bar {
    char title[96];
    double low, high;
    double width;
    uint32_t colours[UI_BAR_COLOURS]; /* 0xRRGGBBAA, at equal steps from low to high */
};
double ui_bar_height(const struct ui_bar *bar); /* height including a title of several lines */

/* Draws the bar in the current panel if `at` is NULL. Otherwise draws it over the scene and below all panels, with its
 * upper left corner at `at`, in the units of ui_place. */
void ui_bar(const struct ui_bar *bar, const double *at);

/* A square whose colours are interpolated between its corners: lower left, lower right, upper left, upper right. */
void ui_square(const uint32_t colours[4], double size);

/* --- places and numbers, without Dear ImGui: ui_layout.c --- */

/* Pixels from the upper left of the screen. */
struct place_box {
    double from[2], to[2];
};

/* Places a box of `size` next to `part`, with a gap: to its right, left, below it or above it. Sets `at` to the
 * box's upper left corner. Returns true if the whole box is on the screen. A box that does not fit is placed on the
 * side with the most space, and the edge of the screen cuts it. The box never covers `part`. */
bool place_beside(const struct place_box *part, const double size[2], const double screen[2], double at[2]);

enum { TICKS_MOST = 12, TICKS_TEXT = 32 };

struct ticks {
    int count; /* 0 if low .. high is not a range of finite numbers */
    double values[TICKS_MOST];
    int digits; /* significant digits needed to distinguish neighbours */
};

/* Multiples of 1, 2 or 5 times a power of ten, from low to high inclusive. Their number is between 1 and `most` (3
 * .. TICKS_MOST). are_whole: steps are at least 1. */
struct ticks ticks_make(const double range[2], int most, bool are_whole);

/* Writes the number of a tick, such as "0.25", "2e-05" or "-2447340". */
void ticks_write(const struct ticks *ticks, int k, char text[TICKS_TEXT]);

#ifdef __cplusplus
}
#endif
