/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "correspondence/plan.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "base/vec.h"
#include "common/bindings.h"
#include "model/scanner/scanner.h"

#include <stdlib.h>
#include <string.h>

/* The relative tolerance of lengths. With this tolerance, a module hides nothing if it only touches another module or
 * is in one plane with the point. */
static const double touching = 1e-9;

/* The rectangle of a module as seen from a point: the rays that hit it form a pyramid. */
struct view {
    double corners[4][3]; /* corners relative to the point, mm */
    double sides[4][3];   /* inward unit normals of the planes through the point and an edge */
    double towards[3];    /* unit vector to the centre */
    double sine, cosine;  /* sine and cosine of the angular radius of the sphere around the rectangle */
    double height;        /* n . (w - c): height of the point w over the module's plane, mm */
    double reach;         /* distance to the farthest corner, mm */
    bool inside;          /* true if the point is within the sphere */
    bool flat;            /* true if the point is in the plane of the rectangle; then no line hits the rectangle */
};

/* The modules that may block lines from one point to other modules. Every module that blocks a line is listed. Some
 * listed modules may block no line. */
struct lr_plan_hiding {
    const lr_scanner *scanner;
    int num_words;
    struct view *views; /* [num_modules] */
    uint64_t *hiders;   /* [num_modules][num_words]: for each module, a bit set of the modules that may hide it */
    /* [num_modules][num_words]: for each module, a bit set of the modules of which at least a part is beyond this
     * module's plane. From a point that it faces, the module can hide only modules of this set. */
    uint64_t *candidates;
    double (*corners)[4][3]; /* [num_modules], in the scanner's frame */
};

/* Returns true if a corner of `other` is farther than the tolerance on one side of the plane of `module`. sign: 1 = the
 * side to which the normal points, -1 = the other side. */
static bool reaches(const struct lr_plan_hiding *hiding, int module, int other, double sign)
{
    const lr_module *plane = &hiding->scanner->modules[module];
    for (int k = 0; k < 4; k++) {
        double offset[3];
        vec_sub(hiding->corners[other][k], hiding->corners[module][0], offset);
        if (sign * vec_dot(plane->normal, offset) > touching * vec_length(offset)) return true;
    }
    return false;
}

/* Creates plan->hidden and plan->hiders, which the plan destroys even after an error. errors: LR_FAILED, logged. */
static lr_status plan_hiding_create(struct lr_plan *plan, const lr_log *log)
{
    const lr_scanner *scanner = plan->scanner;
    const int64_t num_modules = scanner->num_modules;
    struct lr_plan_hiding *hiding = plan->hidden = lr_alloc(1, sizeof(*hiding), "modules that hide others", log);
    if (hiding == NULL) return LR_FAILED;
    hiding->scanner = scanner;
    hiding->num_words = (int)((num_modules + 63) / 64);
    const int64_t words = num_modules * hiding->num_words;
    hiding->views = lr_alloc(num_modules, sizeof(*hiding->views), "views of modules", log);
    hiding->corners = lr_alloc(num_modules, sizeof(*hiding->corners), "corners of modules", log);
    hiding->hiders = lr_alloc(words, sizeof(uint64_t), "modules that hide others", log);
    hiding->candidates = lr_alloc(words, sizeof(uint64_t), "modules that hide others", log);
    plan->hiders = lr_alloc(hiding->num_words, sizeof(uint64_t), "modules that hide others", log);
    if (!hiding->views || !hiding->corners || !hiding->hiders || !hiding->candidates || !plan->hiders) return LR_FAILED;
    for (int m = 0; m < num_modules; m++) {
        const lr_module *module = &scanner->modules[m];
        double centre[3];
        lr_scanner_detection_centre(scanner, m, centre);
        for (int k = 0; k < 4; k++) {
            const double a = (k == 1 || k == 2 ? 0.5 : -0.5) * module->crystals[0];
            const double b = (k >= 2 ? 0.5 : -0.5) * module->crystals[1];
            double *corner = hiding->corners[m][k];
            vec_add_scaled(centre, a * module->pitch_mm[0], module->u, corner);
            vec_add_scaled(corner, b * module->pitch_mm[1], module->v, corner);
        }
    }
    for (int k = 0; k < num_modules; k++)
        for (int a = 0; a < num_modules; a++)
            if (a != k && reaches(hiding, k, a, -1.0))
                hiding->candidates[(int64_t)k * hiding->num_words + a / 64] |= (uint64_t)1 << a % 64;
    return LR_OK;
}

/* Returns true if b is completely outside one side of the pyramid of a. mirror: -1 if b is mirrored at the point,
 * otherwise 1. */
static bool side_parts(const struct view *a, const struct view *b, double mirror)
{
    for (int side = 0; side < 4; side++) {
        double most = -INFINITY;
        for (int k = 0; k < 4; k++) most = fmax(most, mirror * vec_dot(a->sides[side], b->corners[k]));
        if (vec_dot(a->sides[side], a->sides[side]) > 0.5 && most <= touching * b->reach) return true;
    }
    return false;
}

/* Returns true if some ray may hit both modules. mirror: -1 if b is mirrored at the point, otherwise 1. */
static bool share_ray(const struct view *a, const struct view *b, double mirror)
{
    return !a->flat && !b->flat &&
           (a->inside || b->inside ||
            mirror * vec_dot(a->towards, b->towards) >= a->cosine * b->cosine - a->sine * b->sine - touching) &&
           !side_parts(a, b, mirror) && !side_parts(b, a, mirror);
}

/* Finds for each module the modules that a line from the point may hit first. Module k can hide module a only if a part
 * of k is on the point's side of a's plane, and a part of a is beyond k's plane. Only modules of the same layer hide
 * each other. */
static void plan_hiding_look(struct lr_plan_hiding *hiding, const double point_mm[3])
{
    const int num_modules = hiding->scanner->num_modules, num_words = hiding->num_words;
    memset(hiding->hiders, 0, (size_t)num_modules * (size_t)num_words * sizeof(uint64_t));
    for (int m = 0; m < num_modules; m++) {
        struct view *view = &hiding->views[m];
        double middle[3] = {0, 0, 0}, radius = 0.0;
        *view = (struct view){0};
        for (int k = 0; k < 4; k++) {
            vec_sub(hiding->corners[m][k], point_mm, view->corners[k]);
            vec_add_scaled(middle, 0.25, view->corners[k], middle);
            view->reach = fmax(view->reach, vec_length(view->corners[k]));
        }
        for (int k = 0; k < 4; k++) {
            double arm[3];
            vec_sub(view->corners[k], middle, arm);
            radius = fmax(radius, vec_length(arm));
        }
        const double distance = vec_length(middle);
        view->height = -vec_dot(hiding->scanner->modules[m].normal, middle);
        view->flat = fabs(view->height) <= touching * view->reach;
        view->inside = distance <= radius;
        if (!view->inside) {
            view->sine = radius / distance;
            view->cosine = sqrt(1.0 - view->sine * view->sine);
            vec_add_scaled(view->towards, 1.0 / distance, middle, view->towards);
        }

        /* If the point is on the line through an edge, this side of the pyramid has the normal 0 and excludes no
         * ray. */
        for (int k = 0; k < 4; k++) {
            double *side = view->sides[k];
            const double *from = view->corners[k], *to = view->corners[(k + 1) % 4];
            vec_cross(from, to, side);
            const double length = vec_length(side);
            double factor = length > touching * vec_length(from) * vec_length(to) ? 1.0 / length : 0.0;
            factor = vec_dot(side, middle) < 0.0 ? -factor : factor;
            for (int axis = 0; axis < 3; axis++) side[axis] *= factor;
        }
    }
    for (int k = 0; k < num_modules; k++) {
        const uint64_t *candidates = &hiding->candidates[(int64_t)k * num_words];
        const struct view *near = &hiding->views[k];
        const bool facing = near->height > 0.0;
        for (int a = 0; a < num_modules; a++) {
            if (facing && a % 64 == 0 && candidates[a / 64] == 0) {
                a += 63;
                continue;
            }
            const struct view *far = &hiding->views[a];
            if (a != k && (!facing || ((candidates[a / 64] >> a % 64 & 1) != 0)) &&
                hiding->scanner->modules[k].layer == hiding->scanner->modules[a].layer && share_ray(near, far, 1.0) &&
                reaches(hiding, a, k, far->height > 0.0 ? 1.0 : -1.0) && reaches(hiding, k, a, facing ? -1.0 : 1.0))
                hiding->hiders[(int64_t)a * num_words + k / 64] |= (uint64_t)1 << k % 64;
        }
    }
}

/* --- plan --- */

/* A module as seen from the current sample point. */
struct lr_plan_sight {
    double towards[3]; /* unit vector from the point to the module's centre */
    double distance_squared;
    double sine, cosine; /* sine and cosine of the angular radius of the module's bounding sphere */
    bool facing;
    bool inside; /* true if the point is within the bounding sphere */
};

/* Distances count as equal if their relative difference is below this. For points on symmetry planes, distances are
 * equal except for rounding. The roles of the modules must be the same in every run, so they are decided in double
 * (docs/method/correspondence.md, "Roles"). */
static const double tie_tolerance = 1e-9;

static bool is_primary(const struct lr_plan_sight *sights, int i, int j)
{
    const double difference = sights[i].distance_squared - sights[j].distance_squared;
    const double larger = fmax(sights[i].distance_squared, sights[j].distance_squared);
    return fabs(difference) <= tie_tolerance * larger ? i < j : difference > 0.0;
}

/* Returns true if a line through the point may hit both bounding spheres. side: 1 if both are on the same side of the
 * point, -1 if they are on opposite sides. */
static bool may_share_line(const struct lr_plan_sight *a, const struct lr_plan_sight *b, int side)
{
    if (a->inside || b->inside) return true;
    const double cosine = side * vec_dot(a->towards, b->towards);
    return cosine >= a->cosine * b->cosine - a->sine * b->sine - 1e-9;
}

/* An image's primary, and the layer of the modules that are drawn into it. */
struct lr_plan_subject {
    int primary, layer;
};

static bool is_secondary(const struct lr_plan *plan, struct lr_plan_subject subject, int j)
{
    const int primary = subject.primary;
    return j != primary && plan->scanner->modules[j].layer == subject.layer && plan->sights[j].facing &&
           is_primary(plan->sights, primary, j) && may_share_line(&plan->sights[primary], &plan->sights[j], -1) &&
           (!plan->hiding || share_ray(&plan->hidden->views[primary], &plan->hidden->views[j], -1.0));
}

/* Lists the draws of an image if it shows a pair of the window. Returns false if there is no room for the draws. All
 * modules of the layer that the primary may see are drawn, even if they are not in coincidence, because they stop
 * lines. If modules may hide each other, all modules that stop lines are drawn, on both sides of the point. If photons
 * can penetrate crystals, all modules are drawn that lines through the primary's box may cross. */
static bool plan_image(struct lr_plan *plan, const struct lr_plan_work *work, struct lr_batch *batch,
                       struct lr_plan_subject subject)
{
    const int num_modules = plan->scanner->num_modules, primary = subject.primary, first_draw = batch->num_draws;
    const struct lr_plan_hiding *hidden = plan->hidden;
    const struct lr_plan_sight *sights = plan->sights;
    const uint32_t image = (uint32_t)batch->num_images;
    bool shows_pair = plan->hiding && work->whole;
    if (plan->hiding) {
        /* Finds the modules that may hide a secondary, and then draws the modules that may hide the primary. */
        memset(plan->hiders, 0, (size_t)hidden->num_words * sizeof(*plan->hiders));
        for (int j = 0; j < num_modules; j++) {
            const uint64_t *hiders = &hidden->hiders[(int64_t)j * hidden->num_words];
            if (!is_secondary(plan, subject, j)) continue;
            for (int word = 0; word < hidden->num_words; word++) plan->hiders[word] |= hiders[word];
        }
        const uint64_t *before = &hidden->hiders[(int64_t)primary * hidden->num_words];
        for (int k = 0; k < num_modules; k++) {
            if ((before[k / 64] >> k % 64 & 1) == 0) continue;
            if (batch->num_draws == plan->max_draws) return false;
            plan->draws[batch->num_draws++] = (struct lr_plan_draw){image, (uint32_t)k | LR_BEFORE_PRIMARY};
        }
    }
    for (int j = 0; j < num_modules; j++) {
        bool is_drawn = false, pairs = false;
        uint32_t flags = 0;
        if (j == primary) continue;
        if (plan->penetration) {
            const bool opposite = may_share_line(&sights[primary], &sights[j], -1);
            const bool has_role = is_primary(sights, primary, j);
            is_drawn = opposite || may_share_line(&sights[primary], &sights[j], 1);
            pairs = opposite && has_role;
            flags = has_role ? 0 : LR_ONLY_STOPS;
        } else {
            const bool hides = plan->hiding && (plan->hiders[j / 64] >> j % 64 & 1) != 0;
            pairs = is_secondary(plan, subject, j);
            const bool stops = plan->hiding && (hides || work->whole) && !pairs &&
                               plan->scanner->modules[j].layer == subject.layer &&
                               share_ray(&hidden->views[primary], &hidden->views[j], -1.0);
            is_drawn = pairs || stops;
            flags = stops ? LR_ONLY_STOPS : hides ? LR_HIDES : 0;
        }
        if (is_drawn && batch->num_draws == plan->max_draws) return false;
        if (is_drawn) plan->draws[batch->num_draws++] = (struct lr_plan_draw){image, (uint32_t)j | flags};
        shows_pair = shows_pair || (pairs && lr_pair_window_has(&work->window, lr_lors_pair(plan->lors, primary, j)));
    }
    if (!shows_pair) batch->num_draws = first_draw;
    return true;
}

/* Splits the last image into several images, each with at most image_crystals crystals of the primary. Returns false if
 * there is no room for so many images. */
static bool share_crystals(struct lr_plan *plan, struct lr_batch *batch)
{
    const struct lr_plan_image image = plan->images[batch->num_images - 1];
    const int num_draws = batch->num_draws - image.first_draw;
    const int *edges = plan->scanner->modules[image.primary].crystals;
    const int crystals = edges[0] * edges[1], share = plan->image_crystals;
    batch->num_images--;
    for (int from = 0; from<crystals; from += share> 0 ? share : crystals) {
        const int first_draw = image.first_draw + (from > 0 ? batch->num_draws - image.first_draw : 0);
        if (batch->num_images == plan->max_images || first_draw + num_draws > plan->max_draws) return false;
        for (int k = 0; k < num_draws; k++) {
            plan->draws[first_draw + k] =
                (struct lr_plan_draw){(uint32_t)batch->num_images, plan->draws[image.first_draw + k].secondary};
        }
        struct lr_plan_image *part = &plan->images[batch->num_images++];
        *part = image;
        part->tile_x = from;
        part->tile_y = share > 0 && from + share < crystals ? from + share : crystals;
        part->first_draw = first_draw;
        batch->num_draws = first_draw + num_draws;
    }
    return true;
}

/* Adds all images of one sample point. If there is no room for all of them, returns false and leaves the batch
 * unchanged. */
static bool plan_point(struct lr_plan *plan, const struct lr_plan_work *work, const double point_mm[3],
                       struct lr_batch *batch)
{
    const struct lr_batch before = *batch;
    /* The bounding sphere of a module contains its detection plane or, with penetration, its crystals. With
     * penetration, every module counts as facing the point, because photons are stopped from any side. */
    for (int m = 0; m < plan->scanner->num_modules; m++) {
        const lr_module *module = &plan->scanner->modules[m];
        struct lr_plan_sight *sight = &plan->sights[m];
        const double edges[3] = {module->crystals[0] * module->pitch_mm[0], module->crystals[1] * module->pitch_mm[1],
                                 module->depth_mm};
        double middle[3], offset[3];
        lr_scanner_detection_centre(plan->scanner, m, middle);
        vec_sub(middle, point_mm, offset);
        double distance = vec_length(offset), radius = 0.5 * hypot(edges[0], edges[1]);
        *sight = (struct lr_plan_sight){.distance_squared = distance * distance,
                                        .facing = plan->penetration || vec_dot(module->normal, offset) < 0.0};
        if (plan->penetration) {
            vec_add_scaled(module->centre_mm, -0.5 * module->depth_mm, module->normal, middle);
            vec_sub(middle, point_mm, offset);
            distance = vec_length(offset);
            radius = 0.5 * vec_length(edges);
        }
        sight->inside = distance <= radius;
        if (!sight->inside) {
            sight->sine = radius / distance;
            sight->cosine = sqrt(1.0 - sight->sine * sight->sine);
            vec_add_scaled((const double[3]){0, 0, 0}, 1.0 / distance, offset, sight->towards);
        }
    }
    if (plan->hiding) plan_hiding_look(plan->hidden, point_mm);
    for (int primary = 0; primary < plan->scanner->num_modules; primary++) {
        const bool is_left_out = work->primary != NULL && *work->primary != primary;
        const int own = plan->scanner->modules[primary].layer;
        for (int layer = 0; layer < plan->layers; layer++) {
            if (!plan->sights[primary].facing || is_left_out ||
                (work->primary != NULL && !plan->penetration && layer != own))
                continue;
            const struct lr_plan_subject subject = {primary, layer};
            const int slot = batch->num_images, first_draw = batch->num_draws;
            bool fits = slot < plan->max_images && plan_image(plan, work, batch, subject);
            const int num_draws = batch->num_draws - first_draw;
            if (fits && num_draws > 0) {
                struct lr_plan_image *image = &plan->images[batch->num_images++];
                *image = (struct lr_plan_image){.primary = primary, .first_draw = first_draw};
                if (plan->columns > 0) {
                    image->tile_x = slot % plan->columns * plan->tile[0];
                    image->tile_y = slot / plan->columns * plan->tile[1];
                }
                for (int k = 0; k < 3; k++) lr_split_float(point_mm[k], &image->point[k], &image->rest[k]);
                batch->most_draws = num_draws > batch->most_draws ? num_draws : batch->most_draws;
                fits = !plan->hiding || plan->columns > 0 || share_crystals(plan, batch);
            }
            if (!fits) {
                *batch = before;
                return false;
            }
        }
    }
    return true;
}

bool lr_plan_next(struct lr_plan *plan, const struct lr_plan_work *work, struct lr_plan_cursor *cursor,
                  struct lr_batch *batch)
{
    const int64_t num_rows = work->rows->end - work->rows->begin;
    const int per_row = lr_rows_per_row(work->rows);
    const float factor = (float)(1.0 / per_row);
    *batch = (struct lr_batch){.images = plan->images, .draws = plan->draws, .rows = plan->batch_rows};
    if (cursor->row >= num_rows) return false;
    while (cursor->row < num_rows) {
        const float emission = work->emission ? work->emission[cursor->row] : 1.0f;
        if (emission == 0.0f) {
            cursor->row++;
            continue;
        }
        const int first_image = batch->num_images;
        double point_mm[3];
        lr_rows_point(work->rows, work->rows->begin + cursor->row, cursor->point, point_mm);
        if (!plan_point(plan, work, point_mm, batch)) break;
        for (int k = first_image; k < batch->num_images; k++) {
            plan->images[k].scale = emission * factor;
            plan->images[k].row = (uint32_t)cursor->row;
        }

        /* The images of all points of a row follow one another. */
        struct lr_plan_row *last = batch->num_rows > 0 ? &plan->batch_rows[batch->num_rows - 1] : NULL;
        if (batch->num_images > first_image && last != NULL && last->row == (uint32_t)cursor->row)
            last->end_image = (uint32_t)batch->num_images;
        else if (batch->num_images > first_image)
            plan->batch_rows[batch->num_rows++] =
                (struct lr_plan_row){(uint32_t)first_image, (uint32_t)batch->num_images, (uint32_t)cursor->row, factor};
        if (++cursor->point == per_row) {
            cursor->point = 0;
            cursor->row++;
        }
    }
    if (plan->columns > 0) batch->atlas_rows = (batch->num_images + plan->columns - 1) / plan->columns;
    return true;
}

void lr_plan_tile_size(const lr_scanner *scanner, int rays, int tile[2])
{
    tile[0] = tile[1] = 0;
    for (int m = 0; m < scanner->num_modules; m++) {
        for (int k = 0; k < 2; k++) {
            const int edge = scanner->modules[m].crystals[k] * rays;
            tile[k] = edge > tile[k] ? edge : tile[k];
        }
    }
}

/* The largest number of images in an atlas. Atlases with more images would not be faster, and their lists would need
 * more memory of the host. */
enum { MOST_ATLAS_IMAGES = 65535 };

struct lr_plan *lr_plan_create(const struct lr_plan_params *params)
{
    struct lr_plan *plan = lr_alloc(1, sizeof(*plan), "a plan", params->log);
    if (plan == NULL) return NULL;
    plan->scanner = params->lors->scanner;
    plan->lors = params->lors;
    plan->rays = params->rays;
    plan->penetration = params->penetration;
    plan->image_crystals = params->image_crystals;
    plan->layers = params->penetration ? 1 : lr_scanner_num_layers(plan->scanner);
    plan->hiding = !params->penetration && lr_modules_may_hide(plan->scanner);

    /* A batch must have room for all images of a point. */
    const int num_modules = plan->scanner->num_modules, share = plan->hiding ? plan->image_crystals : 0;
    int64_t of_point = 0;
    for (int m = 0; m < num_modules; m++) {
        const int *crystals = plan->scanner->modules[m].crystals;
        of_point += share > 0 ? (crystals[0] * crystals[1] + share - 1) / share : 1;
    }
    const int images = (int)(of_point * plan->layers);
    plan->max_images = params->max_images > images ? params->max_images : images;
    if (params->atlas_size > 0) {
        const int size = params->atlas_size, modules = num_modules * plan->layers;
        if (plan->rays > LR_MAX_RASTER_RAYS) {
            lr_error(params->log, LR_USAGE,
                     "%d rays per crystal edge: the raster backend takes at most %d; use fewer, or "
                     "backend cpu in exact mode, which is their limit",
                     plan->rays, LR_MAX_RASTER_RAYS);
            goto failed;
        }
        lr_plan_tile_size(plan->scanner, plan->rays, plan->tile);
        plan->columns = size / plan->tile[0];
        const int rows = size / plan->tile[1], most_rows = MOST_ATLAS_IMAGES / (plan->columns > 0 ? plan->columns : 1);
        plan->rows = rows < most_rows ? rows : most_rows;
        plan->max_images = plan->columns * plan->rows;
        if ((int64_t)plan->columns * plan->rows < modules) {
            lr_error(params->log, LR_USAGE,
                     "%d rays per crystal edge make windows of %d x %d pixels, of which an atlas of "
                     "%d x %d holds fewer than the scanner's %d modules: use fewer rays",
                     plan->rays, plan->tile[0], plan->tile[1], size, size, modules);
            goto failed;
        }
    }
    const int64_t draws = (plan->hiding ? 32 : 16) * (int64_t)plan->max_images;
    const int64_t one_point = (plan->hiding ? 2 : 1) * (int64_t)num_modules * images;
    plan->max_draws = (int)(draws > one_point ? draws : one_point);

    plan->images = lr_alloc(plan->max_images, sizeof(*plan->images), "a batch of images", params->log);
    plan->draws = lr_alloc(plan->max_draws, sizeof(*plan->draws), "a batch of draws", params->log);
    plan->batch_rows = lr_alloc(plan->max_images, sizeof(*plan->batch_rows), "the rows of a batch", params->log);
    plan->sights = lr_alloc(num_modules, sizeof(*plan->sights), "module distances", params->log);
    if (plan->images && plan->draws && plan->batch_rows && plan->sights &&
        (!plan->hiding || plan_hiding_create(plan, params->log) == LR_OK))
        return plan;

failed:
    lr_plan_destroy(plan);
    return NULL;
}

void lr_plan_destroy(struct lr_plan *plan)
{
    if (plan == NULL) return;
    lr_free_all(plan->images, plan->draws, plan->batch_rows, plan->sights, plan->hiders);
    if (plan->hidden != NULL) {
        lr_free_all(plan->hidden->views, plan->hidden->corners, plan->hidden->hiders, plan->hidden->candidates,
                    plan->hidden);
    }
    free(plan);
}

/* --- sweep --- */

lr_status lr_sweep_run(const struct lr_sweep *sweep, const struct lr_plan_work *work)
{
    struct lr_plan_cursor cursor = {0};
    struct lr_batch batch;
    while (lr_plan_next(sweep->plan, work, &cursor, &batch)) {
        LR_TRY(sweep->batch(sweep->user, &batch));
        const double share = (double)cursor.row / (double)lr_grid_num_voxels(sweep->params->grid);
        const double done = (double)work->window.begin + share * (double)(work->window.end - work->window.begin);
        LR_TRY(lr_progress_report(sweep->params->progress, sweep->what, done / (double)work->window.num_pairs, 1.0));
    }
    return LR_OK;
}

/* ---- rows in batches ---- */

/* State of a call of lr_row_batches_deliver. */
struct reading {
    const struct lr_row_batches *batches;
    const struct lr_rows *rows;
    struct lr_row_delivery delivery;
    struct lr_batch batch;
    struct lr_elements *lists;  /* [max_rows] elements of each row of the batch */
    struct lr_elements carried; /* elements of a row that still lacks points after the previous batch */
    int64_t carried_row;        /* number of the row in `carried`; -1 = none */
    int64_t next_row;           /* next row to be delivered, counted from the first */
};

static void read_share(void *user, int64_t begin, int64_t end)
{
    struct reading *reading = user;
    const struct lr_row_batches *batches = reading->batches;
    for (int64_t k = begin; k < end; k++) {
        struct lr_elements *list = &reading->lists[k];
        list->count = 0;
        if (batches->fill(batches->user, &reading->batch.rows[k], list) != LR_OK ||
            lr_elements_merge(list, batches->plan->lors->count, batches->params->log) != LR_OK)
            list->count = -1; /* marks a failure, which has been logged */
    }
}

/* Delivers the empty rows before `row`, then the row itself. list: elements of the row; NULL = only the empty rows are
 * delivered. */
static lr_status deliver(struct reading *reading, int64_t row, const struct lr_elements *list)
{
    const struct lr_elements none = {0};
    const int64_t first = reading->rows->begin;
    for (; reading->next_row < row; reading->next_row++)
        LR_TRY(lr_row_deliver(&reading->delivery, first + reading->next_row, &none));
    if (list == NULL) return LR_OK;
    reading->next_row = row + 1;
    return lr_row_deliver(&reading->delivery, first + row, list);
}

static lr_status deliver_carried(struct reading *reading)
{
    const int64_t row = reading->carried_row;
    if (row < 0) return LR_OK;
    reading->carried_row = -1;
    LR_TRY(lr_elements_merge(&reading->carried, reading->batches->plan->lors->count, reading->batches->params->log));
    LR_TRY(deliver(reading, row, &reading->carried));
    reading->carried.count = 0;
    return LR_OK;
}

static lr_status read_all(struct reading *reading)
{
    const struct lr_row_batches *batches = reading->batches;
    const int64_t num_rows = reading->rows->end - reading->rows->begin;
    const struct lr_rows *rows = reading->rows;
    struct lr_plan_cursor cursor = {0};
    struct lr_plan_work work = {.rows = rows, .window = lr_pair_window_all(batches->plan->lors)};
    if (rows->pairs != NULL) { /* images without any of these pairs are left out */
        work.window = lr_pair_window_begin(batches->plan->lors, rows->pairs, rows->num_pairs);
        work.window.end = rows->num_pairs;
    }
    while (lr_plan_next(batches->plan, &work, &cursor, &reading->batch)) {
        LR_TRY(batches->fetch(batches->user, &reading->batch));
        lr_parallel_for(batches->params->threads, reading->batch.num_rows, 1, read_share, reading);
        for (int k = 0; k < reading->batch.num_rows; k++) {
            const int64_t row = reading->batch.rows[k].row;
            const struct lr_elements *list = &reading->lists[k];
            if (list->count < 0) return LR_FAILED;
            if (reading->carried_row >= 0 && reading->carried_row != row) LR_TRY(deliver_carried(reading));
            if (reading->carried_row != row && (cursor.row != row || cursor.point == 0)) {
                LR_TRY(deliver(reading, row, list));
                continue;
            }
            /* A row that still lacks points is kept until the next batch. */
            for (int64_t at = 0; at < list->count; at++)
                LR_TRY(
                    lr_elements_add(&reading->carried, list->list[at].lor, list->list[at].value, batches->params->log));
            reading->carried_row = row;
        }
        if (reading->carried_row >= 0 && cursor.row != reading->carried_row) LR_TRY(deliver_carried(reading));
        LR_TRY(lr_progress_report(batches->params->progress, "rendering the matrix", (double)cursor.row,
                                  (double)num_rows));
    }
    return deliver(reading, num_rows, NULL);
}

lr_status lr_row_batches_deliver(const struct lr_row_batches *batches, const struct lr_rows *rows,
                                 const lr_row_sink *sink)
{
    const int max_rows = batches->plan->max_images;
    struct reading reading = {
        .batches = batches, .rows = rows, .delivery = {.sink = sink, .log = batches->params->log}, .carried_row = -1};
    reading.lists = lr_alloc(max_rows, sizeof(*reading.lists), "rows", batches->params->log);
    const lr_status status = reading.lists ? read_all(&reading) : LR_FAILED;
    for (int k = 0; reading.lists && k < max_rows; k++) lr_elements_finish(&reading.lists[k]);
    lr_elements_finish(&reading.carried);
    lr_owned_row_finish(&reading.delivery.row);
    free(reading.lists);
    return status;
}
