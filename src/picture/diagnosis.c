/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A scanner as the geometry doctor sees it: two views of the modules' boxes and the findings. */
#include "base/mem.h"
#include "base/vec.h"

#include <lr/picture.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    VIEW = 520,    /* side of a view, with its margin */
    MARGIN = 24,   /* around the scanner in it */
    CAPTION = 40,  /* above the views */
    LINE = 14,     /* of text */
    LETTERS = 164, /* in a line */
    MOST_LINES = 60,
    ARCS = 180 /* of a circle */
};

static const lr_colour white = {255, 255, 255}, black = {0, 0, 0}, grey = {120, 120, 120},
                       red = {200, 20, 20}, blue = {40, 90, 190}, green = {20, 130, 60};

static const double pi = 3.14159265358979323846;

/* One view: two coordinates of the frame to screen pixels. */
struct view {
    lr_picture *picture;
    int axes[2];      /* to the right, upwards */
    double middle[2]; /* in mm */
    double scale;     /* pixels per mm */
    int corner[2];
};

struct sheet {
    const lr_diagnosis_params *params;
    lr_picture *picture;
    bool *suspected; /* [num_modules] */
    double low[3], high[3];
};

/* --- geometry --- */

/* The normal of a draft's module is not known to be set: outwards is away from the axis. */
static void outward_of(const lr_module *module, double outward[3])
{
    vec_cross(module->u, module->v, outward);
    const double along = outward[0] * module->centre_mm[0] + outward[1] * module->centre_mm[1];
    if ((fabs(along) > 1e-9 ? along : vec_dot(outward, module->centre_mm)) < 0) {
        for (int k = 0; k < 3; k++) {
            outward[k] = -outward[k];
        }
    }
}

/* Corner `index` of a module's box: bits for u, v and depth. */
static void box_corner(const lr_module *module, int index, double corner[3])
{
    double outward[3];
    outward_of(module, outward);
    const double half_u = 0.5 * module->crystals[0] * module->pitch_mm[0];
    const double half_v = 0.5 * module->crystals[1] * module->pitch_mm[1];
    vec_add_scaled(module->centre_mm, index & 1 ? half_u : -half_u, module->u, corner);
    vec_add_scaled(corner, index & 2 ? half_v : -half_v, module->v, corner);
    vec_add_scaled(corner, index & 4 ? module->depth_mm : 0, outward, corner);
}

static void find_extent(struct sheet *sheet)
{
    const lr_scanner_params *params = &sheet->params->draft->params;
    for (int k = 0; k < 3; k++) {
        sheet->low[k] = INFINITY;
        sheet->high[k] = -INFINITY;
    }
    for (int m = 0; m < params->num_modules; m++) {
        for (int index = 0; index < 8; index++) {
            double corner[3];
            box_corner(&params->modules[m], index, corner);
            for (int k = 0; k < 3; k++) {
                sheet->low[k] = fmin(sheet->low[k], corner[k]);
                sheet->high[k] = fmax(sheet->high[k], corner[k]);
            }
        }
    }
}

/* --- drawing --- */

static void place(const struct view *view, const double at[3], int pixel[2])
{
    const double right = (at[view->axes[0]] - view->middle[0]) * view->scale;
    const double up = (at[view->axes[1]] - view->middle[1]) * view->scale;
    /* Far outside is cut off all the same, and must fit an int. */
    pixel[0] = view->corner[0] + VIEW / 2 + (int)lround(fmax(-1e5, fmin(1e5, right)));
    pixel[1] = view->corner[1] + VIEW / 2 - (int)lround(fmax(-1e5, fmin(1e5, up)));
}

static void draw_edge(const struct view *view, const double a[3], const double b[3],
                      lr_colour colour)
{
    int from[2], to[2];
    place(view, a, from);
    place(view, b, to);
    lr_picture_line(view->picture, from, to, colour);
}

static void draw_box(const struct view *view, const lr_module *module, lr_colour colour)
{
    for (int index = 0; index < 8; index++) {
        for (int bit = 1; bit < 8; bit *= 2) {
            if (index & bit) {
                double a[3], b[3];
                box_corner(module, index, a);
                box_corner(module, index & ~bit, b);
                draw_edge(view, a, b, colour);
            }
        }
    }
}

static void number_module(const struct view *view, const lr_module *module, int number)
{
    const lr_text_style style = {.colour = red};
    double at[3], outward[3];
    char text[16];
    int corner[2];
    outward_of(module, outward);
    vec_add_scaled(module->centre_mm, -18 / view->scale, outward, at);
    place(view, at, corner);
    snprintf(text, sizeof(text), "%d", number);
    corner[0] -= lr_picture_text_width(text, &style) / 2;
    corner[1] -= 3;
    lr_picture_text(view->picture, corner, text, &style);
}

static void draw_modules(const struct sheet *sheet, const struct view *view)
{
    const lr_scanner_params *params = &sheet->params->draft->params;
    for (int pass = 0; pass < 2; pass++) { /* suspected ones on top */
        for (int m = 0; m < params->num_modules; m++) {
            if (sheet->suspected[m] == (pass == 1)) {
                draw_box(view, &params->modules[m], pass ? red : grey);
            }
            if (pass == 1 && sheet->suspected[m]) {
                number_module(view, &params->modules[m], m);
            }
        }
    }
}

static void draw_grid(const struct sheet *sheet, const struct view *view)
{
    const lr_grid *grid = sheet->params->grid;
    double corners[4][3] = {{0}};
    if (grid == NULL) {
        return;
    }
    for (int c = 0; c < 4; c++) {
        for (int k = 0; k < 2; k++) {
            const int axis = view->axes[k];
            const bool last = k == 0 ? c == 1 || c == 2 : c >= 2;
            corners[c][axis] = grid->origin_mm[axis] +
                               (last ? grid->size[axis] - 0.5 : -0.5) * grid->voxel_mm[axis];
        }
    }
    for (int c = 0; c < 4; c++) {
        draw_edge(view, corners[c], corners[(c + 1) % 4], green);
    }
}

static void draw_field(const struct sheet *sheet, const struct view *view)
{
    const double radius = 0.5 * sheet->params->draft->params.coincidence.field_of_view_mm;
    for (int k = 0; k < ARCS && radius > 0; k++) {
        const double a = 2 * pi * k / ARCS, b = 2 * pi * (k + 1) / ARCS;
        draw_edge(view, (double[]){radius * cos(a), radius * sin(a), 0},
                  (double[]){radius * cos(b), radius * sin(b), 0}, blue);
    }
}

static void draw_view(const struct sheet *sheet, int column, const char *caption, bool side)
{
    const lr_text_style style = {.colour = black};
    struct view view = {
        .picture = sheet->picture, .axes = {side ? 2 : 0, 1}, .corner = {column * VIEW, CAPTION}};
    double widest = 0;
    for (int k = 0; k < 2; k++) {
        const int axis = view.axes[k];
        view.middle[k] = 0.5 * (sheet->low[axis] + sheet->high[axis]);
        widest = fmax(widest, sheet->high[axis] - sheet->low[axis]);
    }
    view.scale = widest > 0 ? (VIEW - 2 * MARGIN) / widest : 1;
    char text[80];
    snprintf(text, sizeof(text), "%s, %.4g mm across", caption, widest);
    const int corner[2] = {column * VIEW + MARGIN, 26};
    lr_picture_text(sheet->picture, corner, text, &style);
    if (!side) {
        draw_field(sheet, &view);
    }
    draw_grid(sheet, &view);
    draw_modules(sheet, &view);
}

static void write_title(const struct sheet *sheet)
{
    const lr_text_style style = {.colour = black};
    const lr_scanner_params *params = &sheet->params->draft->params;
    char text[160];
    static const int corner[2] = {MARGIN, 8};
    snprintf(text, sizeof(text), "%.120s: %d modules",
             params->name != NULL ? params->name : "unnamed scanner", params->num_modules);
    lr_picture_text(sheet->picture, corner, text, &style);
}

/* --- findings --- */

/* Writes a text in lines broken at blanks; returns how many. Without a picture it only counts. */
static int write_lines(lr_picture *picture, int line, const char *text, lr_colour colour)
{
    const lr_text_style style = {.colour = colour};
    int count = 0;
    while (*text != '\0') {
        size_t length = strlen(text);
        if (length > LETTERS) {
            length = LETTERS;
            while (length > 1 && text[length] != ' ') {
                length--;
            }
        }
        if (picture != NULL) {
            char part[LETTERS + 1];
            snprintf(part, sizeof(part), "%.*s", (int)length, text);
            const int corner[2] = {MARGIN, CAPTION + VIEW + (line + count) * LINE};
            lr_picture_text(picture, corner, part, &style);
        }
        text += length + (text[length] == ' ');
        count++;
    }
    return count;
}

static int write_findings(lr_picture *picture, const lr_diagnosis *diagnosis)
{
    int line = 0;
    for (int k = 0; k < diagnosis->num_findings && line < MOST_LINES; k++) {
        const lr_finding *finding = &diagnosis->findings[k];
        const bool suspect = finding->severity == LR_SUSPECT;
        char text[2048];
        snprintf(text, sizeof(text), "%s %s: %s%s%s", suspect ? "suspect" : "note",
                 lr_finding_kind_name(finding->kind), finding->sentence,
                 finding->remedy[0] != '\0' ? "; " : "", finding->remedy);
        line += write_lines(picture, line, text, suspect ? red : black);
    }
    return line;
}

/* --- all of it --- */

static void mark_suspected(struct sheet *sheet)
{
    const lr_diagnosis *diagnosis = sheet->params->diagnosis;
    const int count = sheet->params->draft->params.num_modules;
    for (int k = 0; k < diagnosis->num_findings; k++) {
        const lr_finding *finding = &diagnosis->findings[k];
        for (int n = 0; n < 2 && finding->severity == LR_SUSPECT; n++) {
            if (finding->modules[n] >= 0 && finding->modules[n] < count) {
                sheet->suspected[finding->modules[n]] = true;
            }
        }
    }
}

lr_picture *lr_picture_diagnosis(const lr_diagnosis_params *params)
{
    struct sheet sheet = {.params = params};
    const int size[2] = {2 * VIEW,
                         CAPTION + VIEW + write_findings(NULL, params->diagnosis) * LINE + MARGIN};
    static const int top_left[2] = {0, 0};
    sheet.suspected = lr_alloc(params->draft->params.num_modules, sizeof(*sheet.suspected),
                               "a picture", params->log);
    sheet.picture = sheet.suspected != NULL ? lr_picture_create(size, params->log) : NULL;
    if (sheet.picture != NULL) {
        lr_picture_fill(sheet.picture, top_left, size, white);
        mark_suspected(&sheet);
        find_extent(&sheet);
        write_title(&sheet);
        draw_view(&sheet, 0, "from +z: x to the right, y up", false);
        draw_view(&sheet, 1, "from the side: z to the right, y up", true);
        write_findings(sheet.picture, params->diagnosis);
    }
    free(sheet.suspected);
    return sheet.picture;
}
