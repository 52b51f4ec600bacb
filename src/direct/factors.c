/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Factors of a scanner: docs/method/direct.md, "Factors of a scanner". Directions are handled in batches. Threads first
 * make one table of lines for each direction of a batch. Each thread then works on slices of all histo-images. The
 * order of every sum is therefore the same for any number of threads. */
#include "base/log.h"

#include "base/mem.h"
#include "base/parallel.h"
#include "base/units.h"
#include "base/vec.h"
#include "model/lors/attenuation.h"
#include "model/scanner/coincidence.h"
#include "model/simulate/rays.h"

#include <lr/design.h>
#include <lr/direct.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A crystal as an end of LORs. */
struct factor_crystal {
    double hit_mm[3]; /* position of the crystal's hits */
    int module;
    float efficiency;
};

/* Data that all directions share. A zero struct is valid, and then needs no finish. */
struct factor_scene {
    const lr_lors *lors;
    lr_grid grid;
    lr_view_set set;                 /* complete */
    struct factor_crystal *crystals; /* owned [num_crystals] */
    struct lr_mu_lines mu;           /* if has_mu */
    bool has_mu;
    double mu_step_mm;     /* distance between the lines along which mu is integrated */
    double outer_mm;       /* distance from the axis beyond which there are no crystals */
    double cell_mm[2];     /* cells of tables, along the radial and the axial axis */
    int lines_per_cell[2]; /* along the radial and the axial axis */
    int most_size[2];      /* largest size of a table */
};

struct factor_direction {
    double axes[3][3]; /* unit vectors tof, radial and axial, defined as for a view */
    double weight;     /* solid angle of the direction's share of a patch, divided by that of all lines */
    double shift[2];   /* shift of the lattice of lines, 0 .. 1, in steps of the lattice */
    int view;          /* view of the direction; -1 = beyond the acceptance */
};

/* The values of lines, sorted by the view of their LOR. A zero struct is valid, and then needs no finish. */
struct factor_table {
    double first_mm[2]; /* middle of the first cell */
    int size[2];        /* in cells; the middles of the outermost cells are a cell or more beyond the voxel centres */
    int num_planes;
    struct factor_plane {
        int view;
        int low[2], high[2]; /* cells outside this range are 0 */
        float *cells;        /* owned [size[1]][size[0]] */
    } * planes;              /* owned */
};

/* Scratch memory of a thread. A zero struct is valid, and then needs no finish. */
struct factor_worker {
    struct lr_bundle bundle;
    double *integrals; /* owned: line integrals of mu on a lattice with step mu_step_mm; NaN = not computed yet */
};

/* The width of the zone along a view's border, relative to the view's range of angles. lr_view_set_find decides which
 * view a direction in this zone belongs to. */
static const double near_border = 1e-6;

/* --- views of LORs --- */

/* The range of azimuths and tilts of a direction's view. Nearly all LORs of the direction are in this range. Azimuths
 * are unit vectors across the axis, tilts are slopes. */
struct inside {
    int view; /* -1 = no view */
    double azimuth[2][2], slope[2];
};

static struct inside find_inside(const lr_view_set *set, const struct factor_direction *direction)
{
    struct inside inside = {.view = direction->view};
    if (inside.view < 0) return inside;
    const lr_view middle = lr_view_set_at(set, inside.view);
    for (int n = 0; n < 2; n++) {
        const double side = (n == 0 ? -1 : 1) * (1 - near_border);
        const double azimuth = (middle.azimuth_deg + side * 90.0 / set->azimuths) * LR_DEGREE;
        const double tilt = (middle.tilt_deg + side * set->acceptance_deg / set->tilts) * LR_DEGREE;
        inside.azimuth[n][0] = cos(azimuth);
        inside.azimuth[n][1] = sin(azimuth);
        inside.slope[n] = tan(tilt);
    }
    return inside;
}

/* The view and the value of the LOR of two crystals. view: -1 if the LOR is not in coincidence, or not in a view. */
struct lor_value {
    int crystals[2];
    int view;
    float value;
};

/* --- filling --- */

/* A table that is being filled. */
struct work {
    struct factor_table *table;
    const struct factor_scene *scene;
    const struct factor_direction *direction;
    struct factor_worker *worker;
    struct inside inside;
    int room;                   /* room for planes */
    struct factor_plane *plane; /* the plane that was used last */
};

/* Finds the view and the value of a LOR. The direction's own view is tested first, because nearly all LORs are in it.
 * For other LORs, the set of views decides. */
static struct lor_value find_value(const struct work *work, int a, int b)
{
    const struct factor_scene *scene = work->scene;
    const lr_scanner *scanner = scene->lors->scanner;
    const struct factor_crystal *ends[2] = {&scene->crystals[a], &scene->crystals[b]};
    struct lor_value found = {.crystals = {a, b}, .view = -1};
    const int low = a < b ? a : b, high = a < b ? b : a;
    const int i = ends[!(a < b)]->module, j = ends[a < b]->module;
    const int64_t pair = i != j ? lr_lors_pair(scene->lors, i, j) : -1;
    if (pair < 0) return found;
    const int on_i = low - scanner->first_crystal[i], on_j = high - scanner->first_crystal[j];
    const int nu_i = scanner->modules[i].crystals[0], nu_j = scanner->modules[j].crystals[0];
    if (!lr_coincidence_allows(scene->lors, pair, on_i % nu_i, on_i / nu_i, on_j % nu_j, on_j / nu_j)) return found;

    const struct inside *inside = &work->inside;
    const double(*border)[2] = inside->azimuth;
    double along[3];
    vec_sub(ends[1]->hit_mm, ends[0]->hit_mm, along);
    bool is_inside = inside->view >= 0 && scene->set.azimuths > 1;
    if (is_inside) {
        const double across = hypot(along[0], along[1]);
        is_inside = border[0][0] * along[1] - border[0][1] * along[0] > 0 &&
                    along[0] * border[1][1] - along[1] * border[1][0] > 0 && along[2] > inside->slope[0] * across &&
                    along[2] < inside->slope[1] * across;
    }
    found.view = is_inside ? inside->view : lr_view_set_find(&scene->set, along);
    found.value = ends[0]->efficiency * ends[1]->efficiency;
    return found;
}

/* Adds a row of lines to the cells that contain the lines. backward, forward: the crystals of one layer that the lines
 * cross on either side; -1 = no crystal. */
static lr_status add_row(struct work *work, int k, const int32_t *backward, const int32_t *forward)
{
    struct factor_table *table = work->table;
    const int *per_cell = work->scene->lines_per_cell;
    const int64_t row = (int64_t)(k / per_cell[1]) * table->size[0];
    struct lor_value lor = {.crystals = {-1, -1}, .view = -1};
    for (int i = 0; i < table->size[0] * per_cell[0]; i++) {
        const int a = backward[i], b = forward[i];
        if (a < 0 || b < 0) continue;
        if (a != lor.crystals[0] || b != lor.crystals[1]) lor = find_value(work, a, b);
        if (lor.view < 0) continue;
        if (work->plane == NULL || work->plane->view != lor.view) {
            int at = 0;
            while (at < table->num_planes && table->planes[at].view != lor.view) at++;
            if (at == work->room) {
                const int room = 2 * work->room + 4;
                struct factor_plane *planes = lr_resize(table->planes, room, sizeof(*planes), "tables of lines", NULL);
                if (planes == NULL) return LR_FAILED;
                table->planes = planes;
                work->room = room;
            }
            work->plane = &table->planes[at];
            if (at == table->num_planes) { /* the first LOR of this view */
                const int64_t cells = (int64_t)table->size[0] * table->size[1];
                *work->plane = (struct factor_plane){
                    .view = lor.view,
                    .low = {table->size[0], table->size[1]},
                    .high = {-1, -1},
                    .cells = lr_alloc(cells, sizeof(float), "a table of lines", NULL),
                };
                if (work->plane->cells == NULL) return LR_FAILED;
                table->num_planes++;
            }
        }
        work->plane->cells[row + i / per_cell[0]] += lor.value;
    }
    return LR_OK;
}

/* --- attenuation --- */

static int64_t size_of_integrals(const struct factor_scene *scene, const int size[2], int integrals[2])
{
    for (int n = 0; n < 2; n++) integrals[n] = (int)(size[n] * scene->cell_mm[n] / scene->mu_step_mm) + 2;
    return (int64_t)integrals[0] * integrals[1];
}

/* The survival probability at the middle of a cell. It is interpolated from integrals of mu along the lines around the
 * cell. Each integral is computed at its first use. The line of an integral ends at the distance outer_mm from the
 * axis, beyond which there are no crystals. */
static double survival(const struct work *work, int width, int i, int k)
{
    const double(*axes)[3] = work->direction->axes;
    const double outer_mm = work->scene->outer_mm;
    const double step_mm = work->scene->mu_step_mm;
    const double x = i * work->scene->cell_mm[0] / step_mm;
    const double y = k * work->scene->cell_mm[1] / step_mm;
    const int x0 = (int)x, y0 = (int)y;
    double sum = 0;
    for (int n = 0; n < 4; n++) {
        const int dx = n % 2, dy = n / 2;
        const double weight = (dx ? x - x0 : 1 - (x - x0)) * (dy ? y - y0 : 1 - (y - y0));
        if (!(weight > 0)) continue;
        double *integral = &work->worker->integrals[(int64_t)(y0 + dy) * width + x0 + dx];
        if (isnan(*integral)) {
            const double *first_mm = work->table->first_mm, slant = hypot(axes[0][0], axes[0][1]);
            const double place_mm[2] = {first_mm[0] + (x0 + dx) * step_mm, first_mm[1] + (y0 + dy) * step_mm};
            const double half_mm = sqrt(fmax(outer_mm * outer_mm - place_mm[0] * place_mm[0], 0)) / slant;
            const double nearest_mm = place_mm[1] * axes[0][2] / slant;
            double ends[2][3];
            for (int end = 0; end < 2; end++) {
                double point_mm[3] = {0};
                vec_add_scaled(point_mm, place_mm[0], axes[1], point_mm);
                vec_add_scaled(point_mm, place_mm[1], axes[2], point_mm);
                vec_add_scaled(point_mm, nearest_mm + (end == 0 ? -half_mm : half_mm), axes[0], point_mm);
                lr_mu_lines_place(&work->scene->mu, point_mm, ends[end]);
            }
            const bool is_beyond = fabs(place_mm[0]) >= outer_mm;
            *integral = is_beyond ? 0 : lr_mu_lines_integral(&work->scene->mu, ends[0], ends[1]);
        }
        sum += weight * *integral;
    }
    return exp(-sum);
}

static lr_status factor_table_fill(struct factor_table *table, const struct factor_scene *scene,
                                   const struct factor_direction *direction, struct factor_worker *worker)
{
    struct work work = {.table = table,
                        .scene = scene,
                        .direction = direction,
                        .worker = worker,
                        .inside = find_inside(&scene->set, direction)};
    *table = (struct factor_table){.planes = NULL};
    /* The middles of cells extend one cell beyond the centres of the voxels. */
    const lr_grid *grid = &work.scene->grid;
    for (int n = 0; n < 2; n++) {
        const double *axis = work.direction->axes[1 + n];
        double low_mm = 0, high_mm = 0;
        for (int m = 0; m < 3; m++) {
            const double first_mm = axis[m] * grid->origin_mm[m];
            const double last_mm = first_mm + axis[m] * (grid->size[m] - 1) * grid->voxel_mm[m];
            low_mm += fmin(first_mm, last_mm);
            high_mm += fmax(first_mm, last_mm);
        }
        const double cell_mm = work.scene->cell_mm[n];
        work.table->first_mm[n] = low_mm - cell_mm;
        work.table->size[n] = (int)ceil((high_mm - low_mm) / cell_mm) + 3;
    }

    struct lr_bundle_lines lines = {.size = {0}};
    memcpy(lines.along, direction->axes[0], sizeof(lines.along));
    for (int n = 0; n < 2; n++) {
        const int per_cell = scene->lines_per_cell[n];
        memcpy(lines.across[n], direction->axes[1 + n], sizeof(lines.across[n]));
        lines.step_mm[n] = scene->cell_mm[n] / per_cell;
        lines.first_mm[n] = table->first_mm[n] - 0.5 * scene->cell_mm[n] + direction->shift[n] * lines.step_mm[n];
        lines.size[n] = table->size[n] * per_cell;
    }
    lr_bundle_follow(&worker->bundle, &lines);

    const struct lr_bundle *bundle = &work.worker->bundle;
    const int width = work.table->size[0] * work.scene->lines_per_cell[0];
    for (int i = 0; i < work.table->size[1] * work.scene->lines_per_cell[1]; i++) {
        const int64_t first = (int64_t)i * width;
        for (int a = 0; a < bundle->num_layers; a++) {
            for (int b = 0; b < bundle->num_layers; b++) {
                LR_TRY(add_row(&work, i, lr_bundle_crystals(bundle, a, 0) + first,
                               lr_bundle_crystals(bundle, b, 1) + first));
            }
        }
    }

    int integrals[2] = {0}; /* number of line integrals along each axis; 0 without an attenuation map */
    if (scene->has_mu && table->num_planes > 0) {
        const int64_t count = size_of_integrals(scene, table->size, integrals);
        for (int64_t n = 0; n < count; n++) worker->integrals[n] = NAN;
    }

    /* Converts sums over the lines of cells to means over the photons that reach the crystals. */
    const int layers = bundle->num_layers;
    const double norm = 1.0 / ((double)scene->lines_per_cell[0] * scene->lines_per_cell[1] * layers * layers);
    for (int k = 0; k < table->num_planes; k++) {
        struct factor_plane *plane = &table->planes[k];
        for (int64_t n = 0; n < (int64_t)table->size[0] * table->size[1]; n++) {
            const int at[2] = {(int)(n % table->size[0]), (int)(n / table->size[0])};
            if (plane->cells[n] == 0.0f) continue;
            const double reach = integrals[0] > 0 ? survival(&work, integrals[0], at[0], at[1]) : 1;
            plane->cells[n] = (float)(plane->cells[n] * norm * reach);
            for (int axis = 0; axis < 2; axis++) {
                plane->low[axis] = at[axis] < plane->low[axis] ? at[axis] : plane->low[axis];
                plane->high[axis] = at[axis] > plane->high[axis] ? at[axis] : plane->high[axis];
            }
        }
    }
    return LR_OK;
}

/* --- the job --- */

/* BATCH: largest number of directions of a batch. BATCH_VOXELS: approximate number of voxels times directions of a
 * batch. */
enum { BATCH = 64, BATCH_VOXELS = 1 << 26 };

/* LINES_A_PITCH: smallest number of lines per crystal pitch. MOST_LINES_A_CELL: largest number of lines per edge of a
 * cell. */
enum { LINES_A_PITCH = 4, MOST_LINES_A_CELL = 16 };

static const int usual_directions = 32;

/* The steepest tilt of a direction, and the largest angle by which tilts of directions go beyond the acceptance. */
static const double steepest_deg = 89.5, widest_margin_deg = 10;

/* Multiples of these steps, modulo 1, are evenly spread for any number of multiples. golden: 1 / golden ratio, for one
 * dimension. plastic: 1 / plastic number and the square of this quotient, for two dimensions. */
static const double golden = LR_GOLDEN_SHARE, plastic[2] = {0.7548776662466927, 0.5698402909980532};

struct job {
    const lr_direct_factors_params *params;
    int threads;
    struct factor_scene scene;
    double margin_deg; /* largest angle between a line and the LOR of its two crystals */
    int64_t num_directions;
    struct factor_worker *workers; /* owned [threads] */
    int num_workers;
    struct factor_direction directions[BATCH];
    struct factor_table tables[BATCH];
    lr_status made[BATCH];
    int64_t first, count; /* directions of the batch */
    lr_histo_images *histo;
};

/* --- directions --- */

/* An interval of azimuths and an interval of tilts. Its directions are spread evenly over the solid angle. */
struct patch {
    double azimuth_deg, half_deg;
    double sine[2];
    int view;
};

/* The patch of an azimuth and a tilt of the set of views. The patches of tilts -1 and set->tilts lie just beyond the
 * acceptance. Their lines may join crystals whose LOR is within the acceptance. */
static struct patch patch_at(const struct job *job, int azimuth, int tilt)
{
    const lr_view_set *set = &job->scene.set;
    const bool is_view = tilt >= 0 && tilt < set->tilts;
    const double most = set->acceptance_deg + job->margin_deg;
    const double low = tilt < 0 ? -most : set->acceptance_deg * (2.0 * tilt / set->tilts - 1);
    const double high = tilt >= set->tilts ? most : set->acceptance_deg * (2.0 * (tilt + 1) / set->tilts - 1);
    return (struct patch){.azimuth_deg = 180.0 * azimuth / set->azimuths,
                          .half_deg = 90.0 / set->azimuths,
                          .sine = {sin(low * LR_DEGREE), sin(high * LR_DEGREE)},
                          .view = is_view ? tilt * set->azimuths + azimuth : -1};
}

/* The solid angle of a patch, divided by the mean solid angle of a view. */
static double share_of(const struct job *job, const struct patch *patch)
{
    const lr_view_set *set = &job->scene.set;
    const double mean = 2 * sin(set->acceptance_deg * LR_DEGREE) / set->tilts;
    return (patch->sine[1] - patch->sine[0]) / mean;
}

/* The number of directions in each patch of a tilt. Directions beyond the acceptance are as dense as those within
 * it. */
static int count_of(const struct job *job, int tilt)
{
    const int wanted = job->params->directions > 0 ? job->params->directions : usual_directions;
    const struct patch patch = patch_at(job, 0, tilt);
    return patch.view >= 0 ? wanted : (int)ceil(wanted * share_of(job, &patch));
}

/* Directions are numbered by tilt, then by azimuth, then within the patch. */
static struct factor_direction direction_at(const struct job *job, int64_t number)
{
    int64_t left = number, count = count_of(job, -1);
    int tilt = -1;
    while (left >= count * job->scene.set.azimuths) {
        left -= count * job->scene.set.azimuths;
        count = count_of(job, ++tilt);
    }
    const struct patch patch = patch_at(job, (int)(left / count), tilt);
    const double place = (double)(left % count);
    const double x = (place + 0.5) / (double)count, y = fmod(0.5 + (place + 1) * golden, 1);
    const double sine = patch.sine[0] + x * (patch.sine[1] - patch.sine[0]);
    const lr_view along = {patch.azimuth_deg + (2 * y - 1) * patch.half_deg, asin(sine) / LR_DEGREE};
    struct factor_direction direction = {
        .weight = (patch.sine[1] - patch.sine[0]) / (2.0 * job->scene.set.azimuths * (double)count),
        .shift = {fmod((double)number * plastic[0], 1), fmod((double)number * plastic[1], 1)},
        .view = patch.view,
    };
    lr_view_axes(&along, direction.axes);
    return direction;
}

/* --- scene --- */

static lr_status prepare_scene(struct job *job)
{
    const lr_direct_factors_params *params = job->params;
    const lr_scanner *scanner = params->lors->scanner;
    struct lr_sight sight;
    job->scene.lors = params->lors;
    job->scene.grid = *params->grid;
    LR_TRY(lr_grid_check(params->grid, params->log));
    LR_TRY(lr_view_set_complete(&params->set, &job->scene.set, params->log));
    LR_TRY(lr_sight_init(&sight, scanner, params->log));
    job->scene.outer_mm = sight.radius_mm[1];
    /* The largest angle between a LOR and any line that joins its two crystals: the size of the crystals divided by the
     * radius of the bore. */
    double widest_mm = 0, pitch_mm = HUGE_VAL;
    for (int m = 0; m < scanner->num_modules; m++) {
        const double *pitches = scanner->modules[m].pitch_mm;
        widest_mm = fmax(widest_mm, hypot(pitches[0], pitches[1]));
        pitch_mm = fmin(pitch_mm, fmin(pitches[0], pitches[1]));
    }
    const double margin_deg = fmin(atan2(widest_mm, sight.radius_mm[0]) / LR_DEGREE, widest_margin_deg);
    job->margin_deg = fmax(0, fmin(margin_deg, steepest_deg - job->scene.set.acceptance_deg));
    lr_sight_finish(&sight);

    for (int n = 0; params->efficiencies != NULL && n < scanner->num_crystals; n++) {
        if (!(params->efficiencies[n] >= 0 && isfinite(params->efficiencies[n]))) {
            return lr_error(params->log, LR_BAD_INPUT,
                            "crystal %d has the efficiency %g: it must be finite and not negative", n,
                            (double)params->efficiencies[n]);
        }
    }
    job->scene.crystals = lr_alloc(scanner->num_crystals, sizeof(*job->scene.crystals), "crystals", params->log);
    if (job->scene.crystals == NULL) return LR_FAILED;
    for (int m = 0; m < scanner->num_modules; m++) {
        for (int c = scanner->first_crystal[m]; c < scanner->first_crystal[m + 1]; c++) {
            struct factor_crystal *crystal = &job->scene.crystals[c];
            crystal->module = m;
            crystal->efficiency = params->efficiencies != NULL ? params->efficiencies[c] : 1;
            lr_scanner_hit_centre(scanner, c, crystal->hit_mm);
        }
    }

    /* Cells are half a voxel wide. The distance between their lines is at most a quarter of a crystal's pitch. */
    struct factor_scene *scene = &job->scene;
    const double *voxel_mm = scene->grid.voxel_mm;
    scene->cell_mm[0] = 0.5 * fmin(voxel_mm[0], voxel_mm[1]);
    scene->cell_mm[1] = 0.5 * voxel_mm[2];
    for (int n = 0; n < 2; n++) {
        const double wanted = ceil(LINES_A_PITCH * scene->cell_mm[n] / pitch_mm);
        scene->lines_per_cell[n] = (int)fmin(wanted, MOST_LINES_A_CELL);
    }

    /* The table size for the steepest direction. */
    const lr_grid *grid = &scene->grid;
    const double tilt = fmin(scene->set.acceptance_deg + job->margin_deg, steepest_deg) * LR_DEGREE;
    const double across_mm = hypot((grid->size[0] - 1) * grid->voxel_mm[0], (grid->size[1] - 1) * grid->voxel_mm[1]);
    const double extent_mm[2] = {across_mm, (grid->size[2] - 1) * grid->voxel_mm[2] + across_mm * sin(tilt)};
    for (int n = 0; n < 2; n++) scene->most_size[n] = (int)ceil(extent_mm[n] / scene->cell_mm[n]) + 4;

    const lr_image *mu = job->params->mu;
    if (mu == NULL) return LR_OK;
    job->scene.has_mu = true;
    LR_TRY(lr_mu_lines_init(&job->scene.mu, mu, job->params->log));
    job->scene.mu_step_mm = HUGE_VAL;
    for (int k = 0; k < 3; k++) {
        const double edge_mm = fmin(mu->grid.voxel_mm[k], job->scene.grid.voxel_mm[k]);
        job->scene.mu_step_mm = fmin(job->scene.mu_step_mm, edge_mm);
    }
    return LR_OK;
}

/* --- sums --- */

static void fill_tables(void *user, int64_t begin, int64_t end, int worker)
{
    struct job *job = user;
    for (int64_t k = begin; k < end; k++)
        job->made[k] = factor_table_fill(&job->tables[k], &job->scene, &job->directions[k], &job->workers[worker]);
}

static void add_slice(struct job *job, int64_t k, int z)
{
    const int *size = job->scene.grid.size;
    const struct factor_table *table = &job->tables[k];
    const float weight = (float)job->directions[k].weight;
    const int64_t num_voxels = lr_grid_num_voxels(&job->scene.grid);
    for (int y = 0; table->num_planes > 0 && y < size[1]; y++) {
        const lr_grid *grid = &job->scene.grid;
        /* The position of the row's first voxel in the table, in cells, and the step to the next voxel. */
        float begin[2], step[2];
        for (int m = 0; m < 2; m++) {
            const double *axis = job->directions[k].axes[1 + m];
            const double cell_mm = job->scene.cell_mm[m];
            const double place_mm = axis[0] * grid->origin_mm[0] +
                                    axis[1] * (grid->origin_mm[1] + y * grid->voxel_mm[1]) +
                                    axis[2] * (grid->origin_mm[2] + z * grid->voxel_mm[2]);
            begin[m] = (float)((place_mm - table->first_mm[m]) / cell_mm);
            step[m] = (float)(axis[0] * grid->voxel_mm[0] / cell_mm);
        }

        for (int n = 0; n < table->num_planes; n++) {
            const struct factor_plane *plane = &table->planes[n];
            float *view = job->histo->values + plane->view * num_voxels;
            int range[2];
            /* range: the first voxel of the row that may touch nonzero cells of the plane, and the end (one past the
             * last). */
            const int count = size[0], width = table->size[0];
            double low = 0, high = count;
            for (int i = 0; i < 2; i++) {
                const double first = (double)begin[i], per_voxel = (double)step[i];
                const double a = plane->low[i] - 1 - first, b = plane->high[i] + 1 - first;
                if (fabs(per_voxel) * count < 0.5) {
                    high = a > 1 || b < -1 ? 0 : high; /* the row's length is less than half a cell */
                } else {
                    low = fmax(low, floor(fmin(a / per_voxel, b / per_voxel)));
                    high = fmin(high, ceil(fmax(a / per_voxel, b / per_voxel)) + 1);
                }
            }
            range[0] = (int)fmin(low, count);
            range[1] = (int)fmax(high, 0);

            /* Values are interpolated linearly between the middles of cells. */
            float *row = view + size[0] * (y + (int64_t)size[1] * z);
            for (int x = range[0]; x < range[1]; x++) {
                const float s = begin[0] + (float)x * step[0];
                const float a = begin[1] + (float)x * step[1];
                const int left = (int)s, below = (int)a;
                const float *cell = plane->cells + (int64_t)below * width + left;
                const float ws = s - (float)left, wa = a - (float)below;
                const float lower = cell[0] + ws * (cell[1] - cell[0]);
                const float upper = cell[width] + ws * (cell[width + 1] - cell[width]);
                row[x] += weight * (lower + wa * (upper - lower));
            }
        }
    }
}

static void add_slices(void *user, int64_t begin, int64_t end)
{
    struct job *job = user;
    for (int64_t z = begin; z < end; z++)
        for (int64_t k = 0; k < job->count; k++) add_slice(job, k, (int)z);
}

static lr_status run(struct job *job)
{
    LR_TRY(prepare_scene(job));
    for (int tilt = -1; tilt <= job->scene.set.tilts; tilt++)
        job->num_directions += (int64_t)job->scene.set.azimuths * count_of(job, tilt);

    const struct factor_scene *scene = &job->scene;
    const lr_log *log = job->params->log;
    job->workers = lr_alloc(job->threads, sizeof(*job->workers), "threads", log);
    if (job->workers == NULL) return LR_FAILED;
    while (job->num_workers < job->threads) {
        struct factor_worker *worker = &job->workers[job->num_workers++];
        *worker = (struct factor_worker){.integrals = NULL};
        const int64_t lines =
            (int64_t)scene->most_size[0] * scene->lines_per_cell[0] * scene->most_size[1] * scene->lines_per_cell[1];
        LR_TRY(lr_bundle_init(&worker->bundle, scene->lors->scanner, lines, log));
        if (scene->has_mu) {
            int integrals[2];
            const int64_t room = size_of_integrals(scene, scene->most_size, integrals);
            worker->integrals = lr_alloc(room, sizeof(*worker->integrals), "line integrals", log);
            if (worker->integrals == NULL) return LR_FAILED;
        }
    }
    const int num_views = lr_view_set_count(&job->scene.set);
    lr_view *views = lr_alloc(num_views, sizeof(*views), "views", job->params->log);
    for (int k = 0; views != NULL && k < num_views; k++) views[k] = lr_view_set_at(&job->scene.set, k);
    job->histo = views != NULL ? lr_histo_images_create(&job->scene.grid, views, num_views, job->params->log) : NULL;
    free(views);
    if (job->histo == NULL) return LR_FAILED;
    job->histo->are_probabilities = true;
    const int64_t fitting = BATCH_VOXELS / lr_grid_num_voxels(&job->scene.grid);
    const int64_t batch = fitting < 1 ? 1 : fitting < BATCH ? fitting : BATCH;
    for (job->first = 0; job->first < job->num_directions; job->first += job->count) {
        LR_TRY(lr_progress_report(job->params->progress, "factors of views", (double)job->first,
                                  (double)job->num_directions));
        const int64_t left = job->num_directions - job->first;
        job->count = left < batch ? left : batch;

        lr_status status = LR_OK;
        for (int64_t k = 0; k < job->count; k++) job->directions[k] = direction_at(job, job->first + k);
        lr_parallel_workers(job->threads, job->count, 1, fill_tables, job);
        for (int64_t k = 0; k < job->count; k++) status = job->made[k] != LR_OK ? job->made[k] : status;
        if (status == LR_OK)
            lr_parallel_for(job->threads, job->scene.grid.size[2], 1, add_slices, job);
        else
            (void)lr_error(log, status, "no memory for tables of lines");
        for (int64_t k = 0; k < job->count; k++) {
            struct factor_table *table = &job->tables[k];
            for (int n = 0; n < table->num_planes; n++) free(table->planes[n].cells);
            free(table->planes);
            *table = (struct factor_table){.planes = NULL};
        }
        LR_TRY(status);
    }
    /* A point beyond all crystals may be on a line that the scanner measures, but it is outside the segment between the
     * line's crystals. */
    const lr_grid *grid = &job->scene.grid;
    const int64_t num_voxels = lr_grid_num_voxels(grid);
    const int64_t slice = (int64_t)grid->size[0] * grid->size[1];
    for (int64_t n = 0; n < slice; n++) {
        double centre_mm[3];
        lr_grid_voxel_centre(grid, n, centre_mm);
        if (hypot(centre_mm[0], centre_mm[1]) < job->scene.outer_mm) continue;
        for (int64_t at = n; at < job->histo->num_views * num_voxels; at += slice) job->histo->values[at] = 0;
    }

    return LR_OK;
}

lr_histo_images *lr_direct_factors_create_sized(size_t given_bytes, const lr_direct_factors_params *given)
{
    LR_TAKE(lr_direct_factors_params, params, given, given_bytes);
    if (params->lors == NULL || params->lors->scanner == NULL || params->grid == NULL || params->directions < 0 ||
        params->threads < 0) {
        lr_log_write(params->log, LR_LOG_ERROR, LR_USAGE,
                     "factors of views need LORs of a scanner, a grid, and numbers of directions "
                     "and threads that are not negative");
        return NULL;
    }
    struct job *job = lr_alloc(1, sizeof(*job), "factors of views", params->log);
    if (job == NULL) return NULL;
    lr_grid_warn_slip(params->grid, params->lors->scanner, params->log);
    job->params = params;
    job->threads = params->threads > 0 ? params->threads : lr_num_processors();
    lr_histo_images *histo = NULL;
    if (run(job) == LR_OK) {
        histo = job->histo;
        job->histo = NULL;
    }
    for (int k = 0; k < job->num_workers; k++) {
        struct factor_worker *worker = &job->workers[k];
        lr_bundle_finish(&worker->bundle);
        free(worker->integrals);
        *worker = (struct factor_worker){.integrals = NULL};
    }

    lr_free_all(job->workers, job->scene.crystals);
    lr_mu_lines_finish(&job->scene.mu);
    lr_histo_images_destroy(job->histo);
    free(job);
    return histo;
}
