/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/frame/scene_lines.h"

static const uint32_t grid_colour = 0xc8c8c890, cursor_colour = 0xffd24dff;
/* Told apart by the colour-blind too: vermilion, bluish green, blue (Okabe and Ito 2008). */
static const uint32_t axis_colours[3] = {0xe0643cff, 0x22b384ff, 0x4f9be8ff};

static struct draw_line line_between(const double from[3], const double to[3], uint32_t colour)
{
    return (struct draw_line){.from = {(float)from[0], (float)from[1], (float)from[2]},
                              .to = {(float)to[0], (float)to[1], (float)to[2]},
                              .colour = colour};
}

lr_status scene_lines_grid(struct draw *draw, const lr_grid *grid)
{
    struct draw_line lines[12];
    double ends[2][3];
    int count = 0;
    for (int k = 0; k < 3; k++) {
        ends[0][k] = grid->origin_mm[k] - 0.5 * grid->voxel_mm[k];
        ends[1][k] = ends[0][k] + grid->size[k] * grid->voxel_mm[k];
    }
    for (int axis = 0; axis < 3; axis++) {
        for (int corner = 0; corner < 4; corner++) {
            double from[3], to[3];
            from[axis] = ends[0][axis];
            to[axis] = ends[1][axis];
            from[(axis + 1) % 3] = to[(axis + 1) % 3] = ends[corner & 1][(axis + 1) % 3];
            from[(axis + 2) % 3] = to[(axis + 2) % 3] = ends[corner >> 1][(axis + 2) % 3];
            lines[count++] = line_between(from, to, grid_colour);
        }
    }
    return draw_set_lines(draw, DRAW_GRID, lines, grid->size[0] > 0 ? count : 0);
}

lr_status scene_lines_axes(struct draw *draw, double length_mm)
{
    static const double centre[3] = {0.0, 0.0, 0.0};
    struct draw_line lines[3];
    for (int k = 0; k < 3; k++) {
        double end[3] = {0.0, 0.0, 0.0};
        end[k] = length_mm;
        lines[k] = line_between(centre, end, axis_colours[k]);
    }
    return draw_set_lines(draw, DRAW_AXES, lines, 3);
}

lr_status scene_lines_cursor(struct draw *draw, const double point_mm[3], double size_mm)
{
    struct draw_line lines[3];
    for (int axis = 0; axis < 3; axis++) {
        double from[3], to[3];
        for (int k = 0; k < 3; k++) {
            from[k] = point_mm[k] - (k == axis ? size_mm : 0.0);
            to[k] = point_mm[k] + (k == axis ? size_mm : 0.0);
        }
        lines[axis] = line_between(from, to, cursor_colour);
    }
    return draw_set_lines(draw, DRAW_CURSOR, lines, 3);
}
