/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A page of the geometry doctor: two views of the modules' boxes, and the findings. */
#include "base/log.h"
#include "base/mem.h"
#include "base/units.h"
#include "base/vec.h"
#include "model/scanner/scanner.h"
#include "picture/axes.h"
#include "picture/font.h"

#include <lr/picture.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    SIDE = 440,  /* side length of a view without its axes */
    VIEW = 520,  /* distance between the left edges of the two views */
    MARGIN = 24, /* margin around the page */
    WIDTH = 2 * VIEW + MARGIN,
    CAPTION = 60,                 /* height of the captions above the views */
    LEGEND = CAPTION + SIDE + 60, /* top edge of the legend */
    FINDINGS = LEGEND + MARGIN,   /* top edge of the list of findings */
    AIR = 30,                     /* margin around the scanner in a view */
    LINE_GAP = 3,
    MOST_LINES = 60,
    ARCS = 180 /* number of arcs that form a circle */
};

static const lr_colour white = {255, 255, 255}, black = {0, 0, 0}, grey = {120, 120, 120}, red = {200, 20, 20},
                       blue = {40, 90, 190}, green = {20, 130, 60};

static const lr_text_style plain = {.size_px = lr_font_usual}, small = {.size_px = lr_font_small};

/* A view of the scanner along one axis of its frame. */
struct view {
    lr_picture *picture;
    int axes[2]; /* axes of the scanner's frame that point right and up */
    struct lr_axes frame;
    double scale; /* pixels per mm */
};

struct sheet {
    const lr_diagnosis_params *params;
    lr_picture *picture;
    bool *suspected; /* [num_modules] */
    double low[3], high[3];
};

/* --- geometry --- */

/* Computes a module's normal that points away from the scanner's axis. In a draft, the normal may be missing. */
static void outward_of(const lr_module *module, double outward[3])
{
    vec_cross(module->u, module->v, outward);
    const double along = outward[0] * module->centre_mm[0] + outward[1] * module->centre_mm[1];
    if ((fabs(along) > 1e-9 ? along : vec_dot(outward, module->centre_mm)) < 0)
        for (int k = 0; k < 3; k++) outward[k] = -outward[k];
}

/* Computes corner 0 to 7 of a module's box. Bits 0, 1 and 2 of the index choose the far side along u, v and depth. */
static void box_corner(const lr_module *module, int index, double corner[3])
{
    double outward[3];
    outward_of(module, outward);
    lr_module_corner(module, module->centre_mm, index, corner);
    vec_add_scaled(corner, index & 4 ? module->depth_mm : 0, outward, corner);
}

/* --- drawing --- */

static void place(const struct view *view, const double at[3], int pixel[2])
{
    const struct lr_axes *frame = &view->frame;
    const double right = (at[view->axes[0]] - frame->across.low) * view->scale;
    const double up = (at[view->axes[1]] - frame->up.low) * view->scale;
    /* Points far outside the picture are not drawn, but the numbers of their pixels must fit into an int. */
    pixel[0] = frame->corner[0] + (int)lround(fmax(-1e5, fmin(1e5, right)));
    pixel[1] = frame->corner[1] + frame->size[1] - (int)lround(fmax(-1e5, fmin(1e5, up)));
}

static void draw_edge(const struct view *view, const double a[3], const double b[3], lr_colour colour)
{
    int from[2], to[2];
    place(view, a, from);
    place(view, b, to);
    lr_picture_line(view->picture, from, to, colour);
}

static void draw_modules(const struct sheet *sheet, const struct view *view)
{
    const lr_scanner_params *params = &sheet->params->draft->params;
    for (int pass = 0; pass < 2; pass++) { /* suspected modules are drawn last, on top of others */
        for (int m = 0; m < params->num_modules; m++) {
            const lr_module *module = &params->modules[m];
            if (sheet->suspected[m] != (pass == 1)) continue;
            for (int index = 0; index < 8; index++) {
                for (int bit = 1; bit < 8; bit *= 2) {
                    if (!(index & bit)) continue;
                    double a[3], b[3];
                    box_corner(module, index, a);
                    box_corner(module, index & ~bit, b);
                    draw_edge(view, a, b, pass ? red : grey);
                }
            }
            if (pass == 1) {
                const lr_text_style style = {.colour = red, .size_px = lr_font_small};
                double at[3], outward[3];
                char text[16];
                int corner[2];
                outward_of(module, outward);
                vec_add_scaled(module->centre_mm, -18 / view->scale, outward, at);
                place(view, at, corner);
                snprintf(text, sizeof(text), "%d", m);
                corner[0] -= lr_picture_text_width(text, &style) / 2;
                corner[1] -= lr_picture_text_height(&style) / 2;
                lr_picture_text(view->picture, corner, text, &style);
            }
        }
    }
}

/* Writes a text on white over the lines of a view. The text is moved up or down if it would leave the view. */
static void write_over(const struct view *view, const int middle[2], const char *text, lr_colour colour)
{
    const lr_text_style style = {.colour = colour, .size_px = lr_font_small};
    const int size[2] = {lr_picture_text_width(text, &style) + 4, lr_picture_text_height(&style)};
    const int top = view->frame.corner[1] + 2;
    const int bottom = view->frame.corner[1] + view->frame.size[1] - size[1] - 2;
    const int above = middle[1] - size[1] / 2;
    const int corner[2] = {middle[0] - size[0] / 2, above < top ? top : above > bottom ? bottom : above};
    lr_picture_fill(view->picture, corner, size, white);
    lr_picture_text(view->picture, (int[2]){corner[0] + 2, corner[1]}, text, &style);
}

static void draw_view(const struct sheet *sheet, int column, const char *caption, bool side)
{
    struct view view = {.picture = sheet->picture, .axes = {side ? 2 : 0, 1}};
    /* Both axes have the same scale. The scanner fits into the view with a margin around it. */
    static const char *const names[] = {"x (mm)", "y (mm)", "z (mm)"};
    struct lr_axes *frame = &view.frame;
    struct lr_axis *drawn[2] = {&frame->across, &frame->up};
    double widest = 0, middle[2];
    for (int k = 0; k < 2; k++) {
        const int axis = view.axes[k];
        middle[k] = 0.5 * (sheet->low[axis] + sheet->high[axis]);
        widest = fmax(widest, sheet->high[axis] - sheet->low[axis]);
    }
    widest = widest > 0 ? widest : 1;
    view.scale = (SIDE - 2 * AIR) / widest;
    for (int k = 0; k < 2; k++) {
        const double half = 0.5 * SIDE / view.scale;
        *drawn[k] = (struct lr_axis){middle[k] - half, middle[k] + half, names[view.axes[k]], false};
        frame->size[k] = SIDE;
    }
    frame->ink = grey;
    frame->corner[0] = column * VIEW + MARGIN + lr_axes_margins(frame).left;
    frame->corner[1] = CAPTION;

    const int corner[2] = {view.frame.corner[0], CAPTION - 24};
    lr_picture_text(sheet->picture, corner, caption, &plain);
    lr_axes_draw(sheet->picture, &view.frame);
    const lr_grid *grid = sheet->params->grid;
    const int right = view.axes[0], up = view.axes[1];
    if (grid != NULL) {
        double corners[4][3] = {{0}};
        for (int c = 0; c < 4; c++) {
            for (int k = 0; k < 2; k++) {
                const int axis = view.axes[k];
                const bool last = k == 0 ? c == 1 || c == 2 : c >= 2;
                corners[c][axis] =
                    grid->origin_mm[axis] + (last ? grid->size[axis] - 0.5 : -0.5) * grid->voxel_mm[axis];
            }
        }
        for (int c = 0; c < 4; c++) draw_edge(&view, corners[c], corners[(c + 1) % 4], green);
    }
    draw_modules(sheet, &view);
    if (grid != NULL) {
        char text[96];
        int at[2];
        double below[3] = {0};
        below[right] = grid->origin_mm[right] + 0.5 * (grid->size[right] - 1) * grid->voxel_mm[right];
        below[up] = grid->origin_mm[up] - 0.5 * grid->voxel_mm[up];
        place(&view, below, at);
        at[1] += lr_font_small;
        snprintf(text, sizeof(text), "grid, %.4g x %.4g mm", grid->size[right] * grid->voxel_mm[right],
                 grid->size[up] * grid->voxel_mm[up]);
        write_over(&view, at, text, green);
    }

    if (!side) {
        /* The diameter of the field of view is written above its circle, or in the middle of the view if the circle is
         * outside the view. */
        const double radius = 0.5 * sheet->params->draft->params.coincidence.field_of_view_mm;
        for (int k = 0; k < ARCS && radius > 0; k++) {
            const double a = 2 * LR_PI * k / ARCS, b = 2 * LR_PI * (k + 1) / ARCS;
            draw_edge(&view, (double[]){radius * cos(a), radius * sin(a), 0},
                      (double[]){radius * cos(b), radius * sin(b), 0}, blue);
        }
        if (radius > 0) {
            char text[64];
            int at[2];
            place(&view, (double[]){0, radius, 0}, at);
            const int *box = view.frame.corner, *size = view.frame.size;
            const bool is_inside =
                at[0] > box[0] && at[0] < box[0] + size[0] && at[1] > box[1] && at[1] < box[1] + size[1];
            snprintf(text, sizeof(text), "field of view, %.4g mm across", 2 * radius);
            at[0] = is_inside ? at[0] : box[0] + size[0] / 2;
            at[1] = is_inside ? at[1] - lr_font_small : box[1] + size[1] / 2;
            write_over(&view, at, text, blue);
        }
    }
}

/* Writes an entry of the legend at x: a coloured line and its meaning. Returns x for the next entry. */
static int write_entry(lr_picture *picture, int x, const char *text, lr_colour colour)
{
    const int y = LEGEND, line = lr_picture_text_height(&small);
    lr_picture_fill(picture, (int[2]){x, y + line / 2}, (int[2]){22, 2}, colour);
    lr_picture_text(picture, (int[2]){x + 28, y}, text, &small);
    return x + 28 + lr_picture_text_width(text, &small) + 24;
}

/* --- findings --- */

/* Writes the findings, broken into lines at blanks, and returns the number of lines. picture NULL: only counts
 * lines. */
static int write_findings(lr_picture *picture, const lr_diagnosis *diagnosis)
{
    int count = 0;
    for (int k = 0; k < diagnosis->num_findings && count < MOST_LINES; k++) {
        const lr_finding *finding = &diagnosis->findings[k];
        const bool suspect = finding->severity == LR_SUSPECT;
        const lr_text_style style = {
            .colour = suspect ? red : black, .size_px = lr_font_usual, .most_px = WIDTH - 2 * MARGIN};
        const int height = lr_picture_text_height(&style) + LINE_GAP;
        char text[2048];
        snprintf(text, sizeof(text), "%s %s: %s%s%s", suspect ? "suspect" : "note", lr_finding_kind_name(finding->kind),
                 finding->sentence, finding->remedy[0] != '\0' ? "; " : "", finding->remedy);
        count += lr_font_lines(picture, (int[2]){MARGIN, FINDINGS + count * height}, text, &style, height);
    }
    return count;
}

/* --- the page --- */

lr_picture *lr_picture_diagnosis_sized(size_t given_bytes, const lr_diagnosis_params *given)
{
    LR_TAKE(lr_diagnosis_params, params, given, given_bytes);
    struct sheet sheet = {.params = params};
    const int line = lr_picture_text_height(&plain) + LINE_GAP;
    const int size[2] = {WIDTH, FINDINGS + write_findings(NULL, params->diagnosis) * line + MARGIN};
    static const int top_left[2] = {0, 0};
    sheet.suspected = lr_alloc(params->draft->params.num_modules, sizeof(*sheet.suspected), "a picture", params->log);
    sheet.picture = sheet.suspected != NULL ? lr_picture_create(size, params->log) : NULL;
    if (sheet.picture != NULL) {
        lr_picture_fill(sheet.picture, top_left, size, white);
        const lr_diagnosis *diagnosis = sheet.params->diagnosis;
        const int count = sheet.params->draft->params.num_modules;
        for (int k = 0; k < diagnosis->num_findings; k++) {
            const lr_finding *finding = &diagnosis->findings[k];
            for (int n = 0; n < 2 && finding->severity == LR_SUSPECT; n++)
                if (finding->modules[n] >= 0 && finding->modules[n] < count)
                    sheet.suspected[finding->modules[n]] = true;
        }

        const lr_scanner_params *scanner = &sheet.params->draft->params;
        for (int k = 0; k < 3; k++) {
            sheet.low[k] = INFINITY;
            sheet.high[k] = -INFINITY;
        }
        for (int m = 0; m < scanner->num_modules; m++) {
            for (int index = 0; index < 8; index++) {
                double corner[3];
                box_corner(&scanner->modules[m], index, corner);
                for (int k = 0; k < 3; k++) {
                    sheet.low[k] = fmin(sheet.low[k], corner[k]);
                    sheet.high[k] = fmax(sheet.high[k], corner[k]);
                }
            }
        }

        const lr_text_style bold = {.size_px = lr_font_title, .bold = true};
        lr_text_style name_style = bold;
        char modules[48];
        snprintf(modules, sizeof(modules), ": %d modules", scanner->num_modules);
        name_style.most_px = WIDTH - 2 * MARGIN - lr_picture_text_width(modules, &bold);
        const char *name = scanner->name != NULL ? scanner->name : "unnamed scanner";
        const int width = lr_picture_text_width(name, &name_style);
        const int after = MARGIN + (width < name_style.most_px ? width : name_style.most_px);
        lr_picture_text(sheet.picture, (int[2]){MARGIN, 8}, name, &name_style);
        lr_picture_text(sheet.picture, (int[2]){after, 8}, modules, &bold);

        draw_view(&sheet, 0, "seen from +z", false);
        draw_view(&sheet, 1, "seen from the side", true);
        int x = MARGIN;
        bool any = false;
        for (int m = 0; m < sheet.params->draft->params.num_modules; m++) any = any || sheet.suspected[m];
        x = write_entry(sheet.picture, x, "modules", grey);
        if (any) x = write_entry(sheet.picture, x, "modules that look wrong, by number", red);
        if (sheet.params->draft->params.coincidence.field_of_view_mm > 0)
            x = write_entry(sheet.picture, x, "field of view", blue);
        if (sheet.params->grid != NULL) (void)write_entry(sheet.picture, x, "grid", green);

        write_findings(sheet.picture, params->diagnosis);
        lr_font_tell(params->log);
    }
    free(sheet.suspected);
    return sheet.picture;
}
