/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Panels and what is in them, drawn anew in every frame: an interface in C to Dear ImGui. A process
 * has one `ui` at most, and uses it on the thread of its context.
 *
 * A widget's label is what it shows and its name within the panel; what follows ## is not shown.
 * Widgets that return bool say whether a person changed or pressed them in this frame. */
#ifndef LR_VIEWER_UI_H
#define LR_VIEWER_UI_H

#include "viewer/frame/window.h"

#include <lr/log.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ui;
struct gl_texture;
struct gl_target;

struct ui_params {
    struct window *window;   /* for its clipboard and size */
    const char *layout_path; /* file that keeps places of panels; NULL = none */
};

struct ui *ui_create(const struct ui_params *params, const lr_log *log);
void ui_destroy(struct ui *ui); /* NULL is allowed */

/* Hands an event on; call before ui_begin. */
void ui_take(struct ui *ui, const struct input_event *event);

/* True if panels want the mouse or the keys, as of the last frame. */
bool ui_wants_mouse(const struct ui *ui);
bool ui_wants_keys(const struct ui *ui);

/* A frame: seconds since the last one. ui_end draws over what is in the target; NULL: nothing is drawn,
 * since nobody would see it. */
void ui_begin(struct ui *ui, double seconds);
lr_status ui_end(struct ui *ui, struct gl_target *target);

/* --- panels --- */

struct ui_place {
    double at[2], size[2]; /* in units of the screen, where the panel has not been moved */
    bool is_fixed;         /* neither moved nor resized by a person */
    bool is_bare;          /* without title */
    bool has_ground;       /* its background is there already: by far the most of a frame's pixels */
};

/* Widgets between ui_panel and ui_panel_end are in the panel. ui_panel_end is called in any case; false: it is
 * closed. */
bool ui_panel(const char *label, const struct ui_place *place, bool *is_open);
void ui_panel_end(void);

/* Height of a text in lines of that width, in the units of ui_place. */
double ui_text_height(const char *text, double width);

/* Size of the window in the units of ui_place. */
void ui_screen(double size[2]);

/* Parts of a panel that fold; one of several, of which one shows. */
bool ui_section(const char *label, bool is_open_first);
bool ui_tabs(const char *label);
bool ui_tab(const char *label, bool wants_it); /* true: ui_tab_end */
void ui_tab_end(void);
void ui_tabs_end(void);

/* --- text --- */

enum ui_tone { UI_PLAIN = 0, UI_DIM, UI_GOOD, UI_WARNING, UI_BAD };

void ui_text(const char *format, ...) LR_PRINTF(1, 2);
void ui_toned(enum ui_tone tone, const char *format, ...) LR_PRINTF(2, 3); /* wraps */
/* A text next to the last widget, shown while the mouse rests on it. */
void ui_hint(const char *format, ...) LR_PRINTF(1, 2);
void ui_line(void);
void ui_beside(void); /* the next widget stands to the right of the last one */
void ui_space(double height);

/* A table of `columns`; each cell is begun by ui_cell, row after row. */
bool ui_table(const char *label, int columns); /* true: ui_table_end */
void ui_cell(void);
void ui_table_end(void);

/* Two cells of a table: what it is, and what it is worth. */
void ui_field(const char *name, const char *format, ...) LR_PRINTF(2, 3);

/* --- widgets --- */

bool ui_button(const char *label, bool is_enabled);
bool ui_check(const char *label, bool *value);
bool ui_slide(const char *label, int *value, const int range[2]);
bool ui_slide_real(const char *label, double *value, const double range[2]);
bool ui_choose(const char *label, int *value, const char *const *names, int count);
bool ui_radio(const char *label, int *value, int mine);
bool ui_item(const char *label, bool is_chosen); /* a line of a list, or a row of a table in its first cell */
bool ui_is_double_click(void);                   /* in this frame, on the last widget */

/* Widgets between the two are in a part of the panel that scrolls by itself. */
void ui_list(const char *label, double height);
void ui_list_end(void);

/* Numbers that are typed; true when a person is done with one. */
bool ui_reals(const char *label, double *values, int count);
bool ui_integers(const char *label, int *values, int count);
bool ui_write(const char *label, char *text, size_t size);
void ui_progress(double share, const char *text);

/* A curve through `count` values, as wide as the panel, with numbers along both axes. */
struct ui_series {
    const char *name; /* NULL = as the one before it: the legend has it once */
    const float *values;
    uint32_t colour; /* 0xRRGGBBAA */
};
struct ui_curve {
    const float *values; /* one that is not finite leaves a gap */
    int count;
    const struct ui_series *beside; /* [num_beside] others of as many values, drawn before it */
    int num_beside;
    const char *name; /* in the legend, where there are others */
    uint32_t colour;  /* 0 = the usual one */
    double x[2];      /* places of the first value and the last */
    bool is_counted;  /* places are whole numbers: iterations */
    double height;    /* 0 = 124 */
    const char *title, *x_label;
};

/* The value nearest to the mouse, which a tooltip next to the curve shows. index: -1 if the mouse is elsewhere. */
struct ui_reading {
    int index;
    double x, value;
};
struct ui_reading ui_curve(const char *label, const struct ui_curve *curve);

/* Bars over the numbers 1, 2 ..., up from 0 or, in another colour, down from there. Each has its value
 * beside it, where there is room. Returns which is under the mouse, which then has a tooltip; -1 = none. */
struct ui_bars {
    const double *values;
    int count;
    double height; /* 0 = 124 */
    const char *title, *x_label;
};
int ui_bars(const char *label, const struct ui_bars *bars);

/* A picture; what the mouse does on it. */
struct ui_touch {
    bool is_over, is_pressed, is_held; /* pressed: the left button went down in this frame */
    double at[2];                      /* 0 .. 1 from the left and from the top */
    double scroll;
};

struct ui_image {
    const struct gl_texture *texture; /* row 0 at the bottom unless `is_top_down` */
    double size[2];
    bool is_top_down;
};
struct ui_touch ui_image(const char *label, const struct ui_image *image);

/* A text next to the mouse, in this frame: never over that part of the picture last shown, and outside
 * the whole picture if the window has room. Coordinates are those of ui_touch.at. */
struct ui_part {
    double from[2], to[2]; /* two opposite corners */
};
void ui_tooltip(const struct ui_part *part, const char *format, ...) LR_PRINTF(2, 3);

/* A line or a box over the picture last shown, in the coordinates of ui_touch.at. colour: 0xRRGGBBAA. */
void ui_mark(const double from[2], const double to[2], bool is_box, uint32_t colour);

/* A text over everything, in units of ui_place. */
void ui_label(const double at[2], uint32_t colour, const char *text);

/* A colour bar: a title, the colours from low to high, numbers below. */
enum { UI_BAR_COLOURS = 33 };
struct ui_bar {
    char title[96];
    double low, high;
    double width;
    uint32_t colours[UI_BAR_COLOURS]; /* 0xRRGGBBAA, evenly from low to high */
};
void ui_bar(const struct ui_bar *bar);
void ui_bar_at(const struct ui_bar *bar, const double at[2]); /* over the scene, below all panels */
double ui_bar_height(const struct ui_bar *bar);               /* a long title takes several lines */

/* A square with colours between those of its corners: lower left, lower right, upper left, upper
 * right. */
void ui_square(const uint32_t colours[4], double size);

/* --- places and numbers, without Dear ImGui: ui_layout.c --- */

/* Pixels from the screen's upper left. */
struct place_box {
    double from[2], to[2];
};

/* Puts a box of that size next to `part`, to its right, left, below it or above it, with a gap
 * between, and sets `at` to its upper left corner. Returns whether all of the box is on the screen;
 * where it is not, the box stands on the side with the most room and the screen's edge cuts it. It
 * never covers any of `part`. */
bool place_beside(const struct place_box *part, const double size[2], const double screen[2], double at[2]);

enum { TICKS_MOST = 12, TICKS_TEXT = 32 };

struct ticks {
    int count; /* 0 where low .. high is no range of finite numbers */
    double values[TICKS_MOST];
    int digits; /* significant digits that distinguish neighbours */
};

/* Multiples of 1, 2 or 5 times a power of ten from low to high, both included, at most `most` of
 * them (3 .. TICKS_MOST), at least one. are_whole: steps of at least 1. */
struct ticks ticks_make(const double range[2], int most, bool are_whole);

/* "0.25", "2e-05", "-2447340" */
void ticks_write(const struct ticks *ticks, int k, char text[TICKS_TEXT]);

#ifdef __cplusplus
}
#endif

#endif
