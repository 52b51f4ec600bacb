/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The kernels. The file of each instruction set defines KERNELS as the name of its table, and includes this file. */
#include "listmode/line.h"
#include "listmode/native/kernels.h"

/* STEPS: number of slices that one pass over a line handles. FETCHED: number of events whose lines and values are
 * fetched together. Lines and values are scattered in memory; if a group of them is fetched together, the caches load
 * all of them before the first one is needed. */
enum { STEPS = 32, FETCHED = 16 };

/* The path of an event's line through the slices. */
struct path {
    struct lr_listmode_line line;
    struct lr_listmode_walk walk;
    int slices[2];
    double halves[2]; /* largest distance between the crossing and a share, in voxels */
    int width[2];     /* size of the rectangle of shares */
};

/* STEPS consecutive slices of a path, from `first` on. */
struct steps {
    int first, count;
    float factor[STEPS];
    int32_t corner[STEPS]; /* first voxel of the shares, within the plane */
    float off[2][STEPS];   /* from the crossing to the corner, in voxels */
    double bounds[STEPS + 1];
};

/* --- slices in which a line may have shares --- */

/* Finds the path of a line through slices limits[0] .. limits[1] - 1. Returns false if the line crosses none of
 * them. */
static bool find_path(const struct lr_native_listmode_job *job, const int limits[2], struct path *path)
{
    const struct lr_listmode_model *model = job->model;
    lr_listmode_walk_of(&path->line, &model->grid, &path->walk);
    lr_listmode_slices(&path->walk, path->slices);
    path->slices[0] = path->slices[0] > limits[0] ? path->slices[0] : limits[0];
    path->slices[1] = path->slices[1] < limits[1] ? path->slices[1] : limits[1];
    if (path->slices[0] >= path->slices[1]) return false;
    path->halves[0] = path->halves[1] = 1.0;
    if (model->kernel == LR_LISTMODE_TUBE) lr_listmode_tube_halves(model, &path->line, &path->walk, path->halves);
    int *slices = path->slices;
    for (int c = 0; c < 2; c++) {
        /* Slices are left out if their crossing is so far outside that no share lies in the image. */
        const double position = path->walk.position[c], step = path->walk.step[c];
        const double low = -path->halves[c], high = job->frame->size[c] - 1 + path->halves[c];
        path->width[c] = (int)(2.0 * path->halves[c]) + 1;
        if (fabs(step) < 1e-9) {
            slices[1] = position > low - 1.0 && position < high + 1.0 ? slices[1] : slices[0];
            continue;
        }
        const double a = (low - position) / step, b = (high - position) / step;
        const double from = floor(a < b ? a : b), to = ceil(a < b ? b : a) + 1.0;
        slices[0] = from < slices[0] ? slices[0] : from > slices[1] ? slices[1] : (int)from;
        slices[1] = to > slices[1] ? slices[1] : to < slices[0] ? slices[0] : (int)to;
    }
    return slices[0] < slices[1];
}

/* --- factors --- */

static void find_factors(const struct path *path, struct steps *steps)
{
    const struct lr_listmode_walk walk = path->walk;
    const double tof = path->line.tof_mm, sigma = path->line.sigma_mm;
    const int first = steps->first, count = steps->count;
    double *restrict bounds = steps->bounds;
    for (int j = 0; j <= count; j++) {
        const double bound = walk.place + (first + j - 0.5) * walk.chord;
        const double most = bound < walk.end ? bound : walk.end;
        bounds[j] = most > walk.begin ? most : walk.begin;
    }
    double scale = 1.0;
    if (sigma > 0) {
        const double per_sigma = 1.0 / sigma;
        const double bin = path->line.bin_mm * per_sigma;
        for (int j = 0; bin == 0 && j <= count; j++) {
            const double z = (bounds[j] - tof) * per_sigma;
            bounds[j] = z * normal_over_z(z * z);
        }
        for (int j = 0; bin > 0 && j <= count; j++) {
            const double z = (bounds[j] - tof) * per_sigma;
            bounds[j] = lr_native_normal_sum(z + 0.5 * bin) - lr_native_normal_sum(z - 0.5 * bin);
        }
        scale = 1.0 / (bin > 0 ? LR_LISTMODE_HELD * bin : LR_LISTMODE_HELD);
    }
    for (int j = 0; j < count; j++) {
        const double share = (bounds[j + 1] - bounds[j]) * scale;
        steps->factor[j] = share > 0.0 ? (float)share : 0.0f;
    }
}

static void find_factors_as_paper(const struct path *path, struct steps *steps)
{
    const struct lr_listmode_walk *walk = &path->walk;
    const double per_sigma = path->line.sigma_mm > 0 ? 1.0 / path->line.sigma_mm : 0.0;
    const double bin = path->line.bin_mm * per_sigma, root_of_two_pi = 2.5066282746310002;
    for (int j = 0; j < steps->count; j++) {
        const double middle = walk->place + (steps->first + j) * walk->chord;
        const double off = (middle - path->line.tof_mm) * per_sigma;
        const bool counts = middle >= walk->begin && middle <= walk->end;
        const double value =
            bin > 0 ? (lr_native_normal(off + 0.5 * bin) - lr_native_normal(off - 0.5 * bin)) * root_of_two_pi / bin
                    : exp(-0.5 * off * off);
        steps->factor[j] = counts ? (float)value : 0.0f;
    }
}

/* --- crossings --- */

/* Finds for each slice, along one axis, the first voxel that has a share: the lowest whole number that is not below
 * crossing - half, counted from the start of the border. Also finds the distance of this voxel from the crossing. If a
 * crossing is too far outside for any share in the image, it is first moved to the border. */
static void find_corners(const struct lr_native_frame *frame, const struct path *path, int axis, struct steps *steps)
{
    const double position = path->walk.position[axis], step = path->walk.step[axis];
    const double half = path->halves[axis], border = frame->border[axis];
    const double low = -half - LR_NATIVE_LISTMODE_SLACK;
    const double high = frame->size[axis] - 1 + half + LR_NATIVE_LISTMODE_SLACK;
    const int first = steps->first, count = steps->count;
    float *restrict off = steps->off[axis];
    int32_t *restrict corner = steps->corner;
    const int32_t stride = axis == 0 ? 1 : (int32_t)frame->row;
    for (int j = 0; j < count; j++) {
        const double at = position + (first + j) * step;
        const double most = at < high ? at : high;
        const double crossing = (most > low ? most : low) + border;
        const double edge = crossing - half;
        const int below = (int)edge; /* edge > -1, so this line and the next one find the ceiling of edge */
        const int lowest = below + (edge > (double)below);
        off[j] = (float)((double)lowest - crossing);
        corner[j] = (axis == 0 ? 0 : corner[j]) + lowest * stride;
    }
}

/* Moves to the next slices of the path, and finds their factors and first voxels. Returns false if no slices are
 * left. */
static bool next_steps(const struct lr_native_listmode_job *job, const struct path *path, struct steps *steps)
{
    const int end = path->slices[1];
    steps->first += steps->count;
    steps->count = end - steps->first < STEPS ? end - steps->first : STEPS;
    if (steps->count <= 0) return false;
    (job->model->tube.as_paper ? find_factors_as_paper : find_factors)(path, steps);
    find_corners(job->frame, path, 0, steps);
    find_corners(job->frame, path, 1, steps);
    return true;
}

/* --- thin lines --- */

/* Finds the shares of the four voxels around the crossing. The first is the one with the lowest indices. */
static inline void line_shares(const struct steps *steps, int j, float shares[4])
{
    const float low[2] = {1.0f + steps->off[0][j], 1.0f + steps->off[1][j]};
    const float high[2] = {-steps->off[0][j], -steps->off[1][j]};
    shares[0] = low[0] * low[1];
    shares[1] = high[0] * low[1];
    shares[2] = low[0] * high[1];
    shares[3] = high[0] * high[1];
}

static double line_forward(const struct lr_native_listmode_job *job, const struct steps *steps)
{
    const int64_t row = job->frame->row, plane = job->frame->plane;
    const float *slice = job->image + steps->first * plane;
    double sum = 0;
    for (int j = 0; j < steps->count; j++, slice += plane) {
        const float *at = slice + steps->corner[j];
        float shares[4];
        line_shares(steps, j, shares);
        sum += (double)(steps->factor[j] *
                        (shares[0] * at[0] + shares[1] * at[1] + shares[2] * at[row] + shares[3] * at[row + 1]));
    }
    return sum;
}

static void line_back(const struct lr_native_listmode_job *job, const struct steps *steps, float value)
{
    const int64_t row = job->frame->row, plane = job->frame->plane;
    double *slice = job->sums + steps->first * plane;
    for (int j = 0; j < steps->count; j++, slice += plane) {
        double *at = slice + steps->corner[j];
        const float factor = steps->factor[j] * value;
        float shares[4];
        line_shares(steps, j, shares);
        at[0] += (double)(factor * shares[0]);
        at[1] += (double)(factor * shares[1]);
        at[row] += (double)(factor * shares[2]);
        at[row + 1] += (double)(factor * shares[3]);
    }
}

/* --- tubes --- */

enum { LANES = LR_NATIVE_LISTMODE_LANES };

/* The voxels of the rectangle that contains an event's shares in a slice. */
struct rectangle {
    int count;      /* number of voxels, rounded up to a multiple of LANES */
    float *mm[2];   /* [count] positions relative to the rectangle's first voxel; voxels that were added by rounding up
                       are outside any tube */
    int32_t *place; /* [count] offset from the first voxel, within the plane */
    float *shares;  /* [count] shares of the current slice */
    float *entries; /* [count] positions in the tube's table, in entries */
};

static struct rectangle list_voxels(const struct lr_native_listmode_job *job, const struct path *path, float *memory)
{
    if (job->model->kernel != LR_LISTMODE_TUBE) return (struct rectangle){0};
    const int64_t capacity = job->tube->capacity;
    const double *edge = job->model->grid.voxel_mm;
    const float edges[2] = {(float)edge[job->frame->across[0]], (float)edge[job->frame->across[1]]};
    struct rectangle box = {.mm = {memory, memory + capacity},
                            .shares = memory + 2 * capacity,
                            .entries = memory + 4 * capacity,
                            .place = (int32_t *)(memory + 3 * capacity)};
    for (int v = 0; v < path->width[1]; v++) {
        for (int u = 0; u < path->width[0]; u++, box.count++) {
            box.mm[0][box.count] = (float)u * edges[0];
            box.mm[1][box.count] = (float)v * edges[1];
            box.place[box.count] = (int32_t)(v * job->frame->row + u);
        }
    }
    for (; box.count % LANES != 0; box.count++) {
        box.mm[0][box.count] = box.mm[1][box.count] = 1e6f;
        box.place[box.count] = 0;
    }
    return box;
}

static inline float sum_lanes(const float lanes[LANES])
{
    return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}

/* Finds each voxel's position in the tube's table. Also sets the shares to the factors of the tube's rim
 * (LR_LISTMODE_RIM). corner: position of the first voxel relative to the crossing, in mm. */
static void find_entries(const struct lr_native_listmode_job *job, const struct path *path, const float corner[2],
                         const struct rectangle *box)
{
    const int *across = job->frame->across;
    const float direction_x = (float)path->line.direction[across[0]];
    const float direction_y = (float)path->line.direction[across[1]];
    const float first_x = corner[0], first_y = corner[1];
    const float last = (float)job->tube->last, scale = job->tube->scale;
    const float rim = job->tube->rim, per_square = job->tube->fall;
    const float *restrict mm_x = box->mm[0], *restrict mm_y = box->mm[1];
    float *restrict entries = box->entries, *restrict shares = box->shares;
    const int count = box->count;
    for (int m = 0; m < count; m++) {
        const float x = first_x + mm_x[m], y = first_y + mm_y[m];
        const float along = x * direction_x + y * direction_y;
        const float square = x * x + y * y - along * along;
        const float entry = sqrtf(square > 0.0f ? square : 0.0f) * scale;
        const float fall = (rim - square) * per_square, most = fall < 1.0f ? fall : 1.0f;
        entries[m] = entry < last ? entry : last;
        shares[m] = most > 0.0f ? most : 0.0f;
    }
}

/* Multiplies the share of each voxel by an entry of the tube's table, interpolated at the voxel's distance. */
static void look_up(const float *restrict table, const struct rectangle *box)
{
    const float *restrict entries = box->entries;
    float *restrict shares = box->shares;
    const int count = box->count;
    for (int m = 0; m < count; m++) {
        const int32_t k = (int32_t)entries[m];
        shares[m] *= table[k] + (entries[m] - (float)k) * (table[k + 1] - table[k]);
    }
}

/* Computes the shares of slice j. Returns the factor by which shares are multiplied to get elements. */
static float tube_shares(const struct lr_native_listmode_job *job, const struct path *path, const struct steps *steps,
                         int j, const struct rectangle *box)
{
    const double *edge = job->model->grid.voxel_mm;
    const float corner[2] = {steps->off[0][j] * (float)edge[job->frame->across[0]],
                             steps->off[1][j] * (float)edge[job->frame->across[1]]};
    float lanes[LANES] = {0};
    find_entries(job, path, corner, box);
    look_up(job->tube->table, box);
    for (int m = 0; m < box->count; m += LANES)
        for (int lane = 0; lane < LANES; lane++) lanes[lane] += box->shares[m + lane];
    const float sum = sum_lanes(lanes);
    return job->model->tube.as_paper ? steps->factor[j] : sum > 0.0f ? steps->factor[j] / sum : 0.0f;
}

static double tube_forward(const struct lr_native_listmode_job *job, const struct path *path, const struct steps *steps,
                           const struct rectangle *box)
{
    const int64_t plane = job->frame->plane;
    double sum = 0;
    for (int j = 0; j < steps->count; j++) {
        const float *at = job->image + (steps->first + j) * plane + steps->corner[j];
        const float factor = tube_shares(job, path, steps, j, box);
        float lanes[LANES] = {0};
        for (int m = 0; m < box->count; m += LANES)
            for (int lane = 0; lane < LANES; lane++) lanes[lane] += box->shares[m + lane] * at[box->place[m + lane]];
        sum += (double)(factor * sum_lanes(lanes));
    }
    return sum;
}

static void tube_back(const struct lr_native_listmode_job *job, const struct path *path, const struct steps *steps,
                      float value, const struct rectangle *box)
{
    const int64_t plane = job->frame->plane;
    const int count = path->width[0] * path->width[1];
    for (int j = 0; j < steps->count; j++) {
        double *at = job->sums + (steps->first + j) * plane + steps->corner[j];
        const float factor = value * tube_shares(job, path, steps, j, box);
        for (int m = 0; m < count; m++) at[box->place[m]] += (double)(factor * box->shares[m]);
    }
}

/* --- events --- */

/* The selected events: the indices of their values, the values, and the lines. */
struct fetched {
    int count;
    int64_t place[FETCHED];
    float value[FETCHED];
    struct lr_listmode_line line[FETCHED];
};

/* Fetches the selected events among begin .. end - 1 that have a value other than 0, at most FETCHED. In a forward
 * projection, every selected event is fetched. */
static void fetch(const struct lr_native_listmode_job *job, int64_t begin, int64_t end, struct fetched *fetched)
{
    int64_t event[FETCHED];
    fetched->count = 0;
    for (int64_t k = begin; k < end; k++) {
        const int64_t place = lr_listmode_place(job->places, job->events->number[k]);
        const bool has_value = place >= 0 && job->to == NULL && job->from != NULL;
        const float value = place < 0 ? 0.0f : has_value ? job->from[place] : 1.0f;
        event[fetched->count] = k;
        fetched->place[fetched->count] = place;
        fetched->value[fetched->count] = value;
        fetched->count += value != 0.0f;
    }
    for (int n = 0; n < fetched->count; n++)
        lr_listmode_line_of(job->events, event[n], job->frame->axis, &fetched->line[n]);
}

static void forward(const struct lr_native_listmode_job *job, const int64_t range[2], float *memory)
{
    const int all[2] = {0, job->frame->slices};
    struct fetched some;
    for (int64_t k = range[0]; k < range[1]; k += FETCHED) {
        fetch(job, k, k + FETCHED < range[1] ? k + FETCHED : range[1], &some);
        for (int n = 0; n < some.count; n++) {
            struct path path;
            double sum = 0;
            path.line = some.line[n];
            if (find_path(job, all, &path)) {
                const struct rectangle box = list_voxels(job, &path, memory);
                struct steps steps;
                steps.first = path.slices[0];
                steps.count = 0;
                while (next_steps(job, &path, &steps)) {
                    sum += job->model->kernel == LR_LISTMODE_LINE ? line_forward(job, &steps)
                                                                  : tube_forward(job, &path, &steps, &box);
                }
            }
            job->to[some.place[n]] = (float)sum;
        }
    }
}

static void back(const struct lr_native_listmode_job *job, const int64_t range[2], const int slab[2], float *memory)
{
    struct fetched some;
    for (int64_t k = range[0]; k < range[1]; k += FETCHED) {
        fetch(job, k, k + FETCHED < range[1] ? k + FETCHED : range[1], &some);
        for (int n = 0; n < some.count; n++) {
            struct path path;
            path.line = some.line[n];
            if (!find_path(job, slab, &path)) continue;
            const struct rectangle box = list_voxels(job, &path, memory);
            struct steps steps;
            steps.first = path.slices[0];
            steps.count = 0;
            while (next_steps(job, &path, &steps))
                if (job->model->kernel == LR_LISTMODE_LINE)
                    line_back(job, &steps, some.value[n]);
                else
                    tube_back(job, &path, &steps, some.value[n], &box);
        }
    }
}

/* --- elements one by one --- */

/* Visits one element if its voxel is in the grid. at: number of the slice, and index in the frame's plane. */
static void list_voxel(const struct lr_native_listmode_job *job, const int at[2], float element,
                       const struct lr_listmode_visitor *visitor)
{
    const struct lr_native_frame *frame = job->frame;
    const int *size = job->model->grid.size;
    const int u = (int)(at[1] % frame->row) - frame->border[0];
    const int v = (int)(at[1] / frame->row) - frame->border[1];
    int voxel[3];
    if (u < 0 || u >= frame->size[0] || v < 0 || v >= frame->size[1] || !(element > 0.0f)) return;
    voxel[frame->axis] = at[0];
    voxel[frame->across[0]] = u;
    voxel[frame->across[1]] = v;
    visitor->take(visitor->user, voxel[0] + size[0] * (voxel[1] + (int64_t)size[1] * voxel[2]), (double)element);
}

static void list(const struct lr_native_listmode_job *job, int64_t k, const struct lr_listmode_visitor *visitor,
                 float *memory)
{
    const int all[2] = {0, job->frame->slices};
    struct path path;
    lr_listmode_line_of(job->events, k, job->frame->axis, &path.line);
    if (!find_path(job, all, &path)) return;
    const struct rectangle box = list_voxels(job, &path, memory);
    struct steps steps;
    steps.first = path.slices[0];
    steps.count = 0;
    while (next_steps(job, &path, &steps)) {
        for (int j = 0; j < steps.count; j++) {
            const int slice = steps.first + j, corner = steps.corner[j];
            if (job->model->kernel == LR_LISTMODE_LINE) {
                const int row = (int)job->frame->row, places[4] = {0, 1, row, row + 1};
                float shares[4];
                line_shares(&steps, j, shares);
                for (int n = 0; n < 4; n++)
                    list_voxel(job, (const int[2]){slice, corner + places[n]}, steps.factor[j] * shares[n], visitor);
            } else {
                const float factor = tube_shares(job, &path, &steps, j, &box);
                for (int m = 0; m < path.width[0] * path.width[1]; m++)
                    list_voxel(job, (const int[2]){slice, corner + box.place[m]}, factor * box.shares[m], visitor);
            }
        }
    }
}

const struct lr_native_listmode_kernels KERNELS = {KERNELS_NAME, forward, back, list};
