/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The scanner in the coordinates of the native backend: one coordinate along the columns of sample points, two across
 * the columns (docs/method/correspondence.md, "Columns in native"). Coordinates are in mm, double.
 *
 * The time-critical loops are compiled for several instruction sets, and all give the same bits: no multiplication is
 * fused with an addition, and sums always have eight lanes. */
#pragma once

#include "model/lors/place.h"
#include "model/scanner/coincidence.h"
#include "operator/backend.h"

#include <math.h>

/* A module: a segment of crystal columns across the axis, and a row of cells along the axis. Cells are numbered by
 * ascending coordinate, even if the scanner numbers its crystals in the other direction. */
struct lr_native_module {
    double centre[2], tangent[2], normal[2]; /* coordinates across the axis */
    double pitch, face;
    int num_columns;
    double start_along; /* coordinate of the lower edge of the first cell */
    double pitch_along, face_along;
    int num_cells;
    int step, step_along; /* step of the crystal number from one column to the next (step), and from one cell to the
                             next (step_along) */
    int first_crystal;    /* crystal number of column 0, cell 0 */
};

struct lr_native_pair {
    int i, j;           /* modules, i < j */
    const float *along; /* [cells of i][cells of j]: 1 for cells in coincidence, else 0; NULL = all 1 */
};

/* The scanner and the grid, which do not change after init. params: not owned. */
struct lr_native_scene {
    struct lr_backend_params params;
    int axis;      /* grid axis along the columns */
    int across[2]; /* the other two grid axes */
    struct lr_native_module *modules;
    struct lr_native_pair *pairs; /* in the order of lr_lors.pairs */
    float **tables;               /* owned: tables for the pairs */
    int num_tables;
    int num_points[3], num_samples[3]; /* numbers of sample points of the grid, and of one voxel: two axes across the
                                          columns, then the axis along them */
    int num_voxels[3];                 /* two axes across the columns, then the axis along them */
    double *points[3];                 /* [num_points] coordinates */
    double spacing[3];
    int num_all_samples; /* number of sample points of a voxel */
};

/* errors: LR_USAGE, logged, if the backend cannot project this scanner; LR_FAILED. Finish is not needed after an
 * error. */
lr_status lr_native_scene_init(struct lr_native_scene *scene, const struct lr_backend_params *params);
void lr_native_scene_finish(struct lr_native_scene *scene);

/* Returns the number of a crystal within its module. */
static inline int lr_native_crystal(const struct lr_native_module *module, int column, int cell)
{
    return module->first_crystal + column * module->step + cell * module->step_along;
}

/* Returns the number of values of a block. A block has the values [cells of i][cells of j] for one column ci of module
 * i and one column cj of module j. Its number is ci * (columns of j) + cj. */
static inline int64_t lr_native_block_size(const struct lr_native_scene *scene, int64_t pair)
{
    const struct lr_native_pair *at = &scene->pairs[pair];
    return (int64_t)scene->modules[at->i].num_cells * scene->modules[at->j].num_cells;
}

/* Returns true if column ci of module i and column cj of module j may have LORs in coincidence. */
bool lr_native_columns_allowed(const struct lr_native_scene *scene, int64_t pair, int ci, int cj);

/* Returns true if a LOR is in coincidence. columns, cells: those of the LOR's crystals in modules i and j. */
bool lr_native_allowed(const struct lr_native_scene *scene, int64_t pair, const int columns[2], const int cells[2]);

/* Returns true if the mask of a pair has one bit per LOR. */
static inline bool lr_native_mask_is_full(const struct lr_native_scene *scene, int64_t pair)
{
    return scene->params.lors->masks->pairs[pair].kind == LR_MASK_FULL;
}

/* --- the view from a column of sample points, across the axis. Modules are segments. A strip is the part of a primary
 * crystal column that is visible through a secondary crystal column: an interval of the primary's coordinate u. All
 * points of the column and all cells have the same strips. Along the axis, the edge of a secondary cell is projected
 * through a point onto the primary: from coordinate b to -b tau. Here tau is the distance from the point to the primary
 * divided by the distance to the secondary; it is linear in u. Lengths are in mm. --- */

/* A module seen from a column. */
struct lr_native_side {
    const struct lr_native_module *module;
    double centre[2]; /* the module's centre, relative to the column */
    double foot;      /* coordinate of the module's centre, relative to the foot of the column on the module */
    double height;    /* height of the column over the module; if positive, the column sees the face */
};

/* The lines through the column that join the primary and the secondary. */
struct lr_native_crossing {
    struct lr_native_side primary, secondary;
    bool i_is_primary;
    double tau[2]; /* tau at coordinate 0 of the primary, and the slope of tau */
    /* The line through coordinate u of the primary hits the secondary at the coordinate -(on_second[0] + on_second[1]
     * u) / tau(u) - secondary.foot. */
    double on_second[2];
    /* The line through coordinate w of the secondary hits the primary at the coordinate -primary.height (on_first[0] +
     * on_first[1] w) / (reach[0] + reach[1] w) - primary.foot. */
    double reach[2], on_first[2];
};

struct lr_native_strip {
    float tau;     /* tau at the middle of the strip */
    float dtau;    /* change of tau from one end of the strip to the other; 0 for modules that are parallel across
                    * the axis */
    float squared; /* squared distance across the axis from the column to the middle of the strip */
    float width;   /* sampled mode: fraction of the face that belongs to a line */
    float share;   /* height * width / 2 pi */
    float slant;   /* coordinate of the middle of the strip, relative to the foot */
    double tau_exactly;
    int parts;  /* number of pieces into which a primary cell is cut along the axis */
    int ci, cj; /* crystal columns of the pair's modules */
};

/* The largest number of pieces of a face along one axis. */
enum { LR_NATIVE_MAX_PARTS = 32 };

/* Returns true if the column sees both faces. point: coordinates of the column across the axis. */
bool lr_native_sees(const struct lr_native_scene *scene, int64_t pair, const double point[2],
                    struct lr_native_side sides[2]);

struct lr_native_crossing lr_native_cross(const struct lr_native_side sides[2], bool i_is_primary);

/* The crystal columns begin[0] <= ci < end[0] of the pair's module i, and begin[1] <= cj < end[1] of module j. If
 * `part` is not NULL, only combinations of columns with LORs of the part count. Such combinations are recognised by the
 * sum of the positions of ci and cj around the axis, first + step[0] ci + step[1] cj. */
struct lr_native_range {
    int begin[2], end[2];
    const lr_lors *lors;
    const lr_selection *part; /* NULL = all columns */
    int first, step[2];
};

static inline bool lr_native_takes(const struct lr_native_range *range, int ci, int cj)
{
    return range->part == NULL ||
           lr_has_angle(range->lors, range->part, range->first + range->step[0] * ci + range->step[1] * cj);
}

/* Finds the strips of all columns of the range, in order along the primary. Returns the number of strips. */
int lr_native_find_strips(const struct lr_native_scene *scene, const struct lr_native_crossing *crossing,
                          const struct lr_native_range *range, struct lr_native_strip *strips);

/* The number of slots is a multiple of this. Unused slots at the end have weight 0. */
enum { LR_NATIVE_LANES = 16 };

/* The cells of primary (a) and secondary (b) along the axis. */
struct lr_native_axial {
    float pitch_a;
    float half_a;   /* half size of the primary face, or of the piece of the face in use */
    float middle_a; /* middle of the face, or of the piece in use, in the first cell */
    float pitch_b, face_b;
    float gap_b; /* distance from the edge of a cell to its face */
    int num_a, num_b;
    int stride_a, stride_b; /* steps in a block of values from one cell to the next */
    double exact_pitch_a, exact_face_a, exact_pitch_b, exact_face_b;
    int rays; /* sampled mode: number of lines through a face along the axis */
};

/* Positions of the modules along the axis, relative to a point. */
struct lr_native_starts {
    double exact_a, exact_b; /* from the point to the edge of the first cell */
    float a, b;
    float base; /* position of the secondary's first edge after projection onto the primary, relative to the primary's
                   first edge */
};

/* The elements of a strip and a point. Each has a weight, and the position of its value in the block. */
struct lr_native_slots {
    float *weight;
    int32_t *offset;
    int64_t capacity; /* slots */
    int32_t *scratch; /* working memory, [3][capacity] */
    float *overlaps;  /* working memory, [4][capacity] */
};

struct lr_native_kernels {
    const char *name;
    /* Each function returns the number of slots that it fills. `exact` is for modules that are not parallel across the
     * axis. */
    int (*exact)(const struct lr_native_strip *strip, const struct lr_native_axial *axial,
                 const struct lr_native_starts *starts, const struct lr_native_slots *slots);
    int (*sampled)(const struct lr_native_strip *strip, const struct lr_native_axial *axial,
                   const struct lr_native_starts *starts, const struct lr_native_slots *slots);
    /* Computes [count] weights of overlaps whose first moments are 0. */
    void (*straight)(const struct lr_native_strip *strip, const float *overlaps[2], int count, float *weight);
    float (*sum)(const float *weight, int count);
    float (*dot)(const float *weight, const int32_t *offset, int count, const float *block);
};

/* Returns one of the kernels that this processor can run, fastest first; NULL after the last one. */
const struct lr_native_kernels *lr_native_kernels_at(int index);

/* Restricts the view to one of several equal pieces of each primary face. */
static inline void lr_native_look_at(struct lr_native_axial *axial, int part, int parts)
{
    const double offset = (part + 0.5) / parts - 0.5;
    axial->half_a = (float)(0.5 * axial->exact_face_a / parts);
    axial->middle_a = (float)(0.5 * axial->exact_pitch_a + offset * axial->exact_face_a);
}

static inline struct lr_native_starts lr_native_start(const struct lr_native_strip *strip, const double starts[2])
{
    return (struct lr_native_starts){starts[0], starts[1], (float)starts[0], (float)starts[1],
                                     (float)(-starts[1] * strip->tau_exactly - starts[0])};
}

/* --- the arithmetic of one element along the axis (docs/method/correspondence.md, "Columns in native"), in single
 * precision and without branches, so that loops become vector code. Kernels and sums over single LORs use these
 * functions, so that both give the same bits --- */

/* An overlap below this fraction of a cell is a rounding error. */
#define LR_NATIVE_THIN 1e-6f

/* The overlap of a primary cell with the shadow of a secondary cell: its middle y and its height along the axis. Each
 * of its two edges has a first moment over the width of the strip. taper is the difference of these moments, skew is
 * their sum. */
struct lr_native_overlap {
    float y, height, taper, skew;
};

static inline float lr_native_most(float a, float b)
{
    return a > b ? a : b;
}

static inline float lr_native_clamp(float x, float low, float high)
{
    const float above = lr_native_most(x, low);
    return above < high ? above : high;
}

/* Limits a straight line over the width of the strip to -half .. half. out: its mean, and its first moment over the
 * width (-1/2 .. 1/2). middle: value of the line at the middle of the strip. rise: change from one end to the other. */
static inline void lr_native_clamped_line(float middle, float rise, float half, float out[2])
{
    const float steep = fabsf(rise);
    const float inverse = 1.0f / lr_native_most(steep, 1e-20f);
    const float above = middle + half, over = middle - half;
    /* fractions of the width where the line is above -half, and above half */
    const float f = lr_native_clamp(above * inverse + 0.5f, 0.0f, 1.0f);
    const float g = lr_native_clamp(over * inverse + 0.5f, 0.0f, 1.0f);
    const float ff = f * f, gg = g * g, bend = 0.5f * steep;
    out[0] = lr_native_most(above - bend, 0.0f) - lr_native_most(over - bend, 0.0f) + bend * (ff - gg) - half;
    out[1] = rise * (1.0f / 12.0f) * (ff * (3.0f - 2.0f * f) - gg * (3.0f - 2.0f * g));
}

/* The overlap of modules that are not parallel across the axis. q_middle: middle of the primary cell, relative to the
 * start of the primary. below: lower edge of the secondary cell, relative to the start of the secondary. base: position
 * of the secondary's start after projection onto the primary, relative to the start of the primary. */
static inline struct lr_native_overlap lr_native_bent_overlap(const struct lr_native_strip *strip,
                                                              const struct lr_native_axial *axial,
                                                              const struct lr_native_starts *starts, const float at[2])
{
    const float q_middle = at[0], below = at[1], above = below + axial->face_b;
    float upper[2], lower[2];
    lr_native_clamped_line(starts->base - below * strip->tau - q_middle, -(starts->b + below) * strip->dtau,
                           axial->half_a, upper);
    lr_native_clamped_line(starts->base - above * strip->tau - q_middle, -(starts->b + above) * strip->dtau,
                           axial->half_a, lower);
    return (struct lr_native_overlap){starts->a + q_middle + 0.5f * (upper[0] + lower[0]), upper[0] - lower[0],
                                      upper[1] - lower[1], upper[1] + lower[1]};
}

/* The overlap of modules that are parallel across the axis: the shadow is a rectangle. */
static inline struct lr_native_overlap lr_native_straight_overlap(const struct lr_native_strip *strip,
                                                                  const struct lr_native_axial *axial,
                                                                  const struct lr_native_starts *starts,
                                                                  const float at[2])
{
    const float q_middle = at[0], below = at[1], above = below + axial->face_b;
    const float half = axial->half_a;
    const float upper = lr_native_clamp(starts->base - below * strip->tau - q_middle, -half, half);
    const float lower = lr_native_clamp(starts->base - above * strip->tau - q_middle, -half, half);
    return (struct lr_native_overlap){starts->a + q_middle + 0.5f * (upper + lower), upper - lower, 0.0f, 0.0f};
}

/* Computes the solid angle of an overlap, divided by 2 pi: area times density at the middle, with second-order terms.
 * Each edge is replaced by a straight line with the same moments. */
static inline float lr_native_weight(const struct lr_native_strip *strip, const struct lr_native_overlap *overlap)
{
    const float y = overlap->y, height = overlap->height, slant = strip->slant;
    const float taper = overlap->taper, skew = overlap->skew, width = strip->width;
    const float inverse = 1.0f / (y * y + strip->squared);
    const float bend_u = (15.0f * slant * slant * inverse - 3.0f) * (width * width);
    const float spread = height * height + 36.0f * (skew * skew + taper * taper);
    const float bend_v = (15.0f * y * y * inverse - 3.0f) * spread;
    const float twist = 7.5f * slant * y * inverse * (width * skew);
    const float bent = height * (1.0f + ((bend_u + bend_v) * (1.0f / 24.0f) + twist) * inverse) -
                       (3.0f * slant * width + 18.0f * y * skew) * inverse * taper;
    return strip->share * inverse * sqrtf(inverse) * bent;
}

/* Computes the same weight as lr_native_weight, for an overlap whose taper and skew are 0. */
static inline float lr_native_straight_weight(const struct lr_native_strip *strip, float y, float height)
{
    const float slant = strip->slant, width = strip->width;
    const float inverse = 1.0f / (y * y + strip->squared);
    const float bend_u = (15.0f * slant * slant * inverse - 3.0f) * (width * width);
    const float bend_v = (15.0f * y * y * inverse - 3.0f) * (height * height);
    const float bent = height * (1.0f + (bend_u + bend_v) * (1.0f / 24.0f) * inverse);
    return strip->share * inverse * sqrtf(inverse) * bent;
}

/* Returns the coordinate, relative to the point, where line `ray` of primary cell q starts in sampled mode. The
 * coordinate is in double, because it decides which crystal the line hits. */
static inline double lr_native_line_start(const struct lr_native_axial *axial, double start_a, int q, int ray)
{
    return start_a + (q + 0.5) * axial->exact_pitch_a + ((ray + 0.5) / axial->rays - 0.5) * axial->exact_face_a;
}

/* Returns the coordinate where the line from coordinate y of the primary hits the secondary, in cells from the
 * secondary's start. */
static inline double lr_native_line_place(const struct lr_native_strip *strip, const struct lr_native_axial *axial,
                                          double start_b, double y)
{
    return (-y / strip->tau_exactly - start_b) / axial->exact_pitch_b;
}

/* Returns true if coordinate `place`, in cells from the secondary's start, is on the face of cell s. */
static inline bool lr_native_line_meets(const struct lr_native_axial *axial, double place, int s)
{
    return fabs(place - s - 0.5) * axial->exact_pitch_b <= 0.5 * axial->exact_face_b;
}

/* Returns the weight of a line per mm of the primary's face along the axis. */
static inline float lr_native_line_weight(const struct lr_native_strip *strip, float y)
{
    const float inverse = 1.0f / (y * y + strip->squared);
    return strip->share * inverse * sqrtf(inverse);
}

/* The kernels of each instruction set. LR_NATIVE_AVX2 is defined if the compiler can make kernels for AVX2
 * (CMakeLists.txt). */
extern const struct lr_native_kernels lr_native_kernels_baseline;
extern const struct lr_native_kernels lr_native_kernels_avx2;
/* Returns true if the processor and the operating system support AVX2. Exists only in builds with LR_NATIVE_AVX2. */
bool lr_native_has_avx2(void);
