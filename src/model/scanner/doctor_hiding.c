/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The geometry doctor on modules that hide others from the field of view. */
#include "model/scanner/doctor.h"

#include "base/vec.h"
#include "model/scanner/arrangement.h"

/* Lines from points of the field of view to points of a module's face. */
struct sampling {
    int points[3]; /* along x, y and z */
    int faces;     /* along each axis of the face */
};

/* Largest product of lines and modules that may stand in their way. */
static const double most_meetings = 3e8;

/* Least share that is reported. */
static const double least_share = 1e-3;

struct hidden_pair {
    int hider, hidden;
    double share; /* of the hidden module's face, in the mean over points that it faces */
    double least, most;
};

struct hunt {
    const lr_scanner *scanner;
    double middle_mm[3], half_mm[3]; /* of the field of view */
    struct sampling sampling;
    struct hidden_pair found[LR_FINDINGS_SPELLED]; /* the largest shares, descending */
    int num_found;                                 /* all of them */
    int num_hidden;                                /* modules */
};

static double radius_of(const lr_module *module)
{
    return 0.5 * hypot(module->crystals[0] * module->pitch_mm[0], module->crystals[1] * module->pitch_mm[1]);
}

/* True if a module comes near any line between the field of view and another one: all lines stay within the hull of
 * the spheres around both. */
static bool may_hide(const struct hunt *hunt, int hider, int hidden)
{
    const lr_module *modules = hunt->scanner->modules;
    double to[3], way[3], foot[3];
    if (hider == hidden || modules[hider].layer != modules[hidden].layer) return false;
    vec_sub(modules[hidden].centre_mm, hunt->middle_mm, way);
    vec_sub(modules[hider].centre_mm, hunt->middle_mm, to);
    const double length2 = vec_dot(way, way);
    const double part = length2 > 0 ? fmin(fmax(vec_dot(to, way) / length2, 0), 1) : 0;
    vec_add_scaled(to, -part, way, foot);
    const double width = fmax(vec_length(hunt->half_mm), radius_of(&modules[hidden]));
    const double depth = modules[hider].depth_mm + modules[hidden].depth_mm; /* of the planes */
    return vec_length(foot) <= radius_of(&modules[hider]) + width + depth;
}

/* Chooses the finest sampling that the number of candidates allows. */
static void choose_sampling(struct hunt *hunt)
{
    static const struct sampling choices[] = {{{5, 5, 3}, 16}, {{5, 5, 3}, 6}, {{3, 3, 1}, 4}, {{1, 1, 1}, 1}};
    const int last = (int)(sizeof(choices) / sizeof(choices[0])) - 1;
    double candidates = 0;
    for (int hidden = 0; hidden < hunt->scanner->num_modules; hidden++)
        for (int hider = 0; hider < hunt->scanner->num_modules; hider++) candidates += may_hide(hunt, hider, hidden);
    for (int k = 0; k <= last; k++) {
        const struct sampling *choice = &choices[k];
        const double lines =
            (double)choice->points[0] * choice->points[1] * choice->points[2] * choice->faces * choice->faces;
        hunt->sampling = *choice;
        if (lines * candidates <= most_meetings) return;
    }
}

static void field_point(const struct hunt *hunt, int number, double point_mm[3])
{
    for (int k = 0; k < 3; k++) {
        const int count = hunt->sampling.points[k];
        const double part = (number % count + 0.5) / count;
        point_mm[k] = hunt->middle_mm[k] + (2 * part - 1) * hunt->half_mm[k];
        number /= count;
    }
}

/* A module's rectangle on its detection plane. */
struct plate {
    const lr_module *module;
    double centre_mm[3];
};

static struct plate plate_of(const lr_scanner *scanner, int m)
{
    struct plate plate = {.module = &scanner->modules[m]};
    lr_scanner_detection_centre(scanner, m, plate.centre_mm);
    return plate;
}

static void face_point(const struct plate *plate, const struct sampling *sampling, int number, double place_mm[3])
{
    const lr_module *module = plate->module;
    const int at[2] = {number % sampling->faces, number / sampling->faces};
    vec_add_scaled(plate->centre_mm, 0, module->u, place_mm);
    for (int k = 0; k < 2; k++) {
        const double extent = module->crystals[k] * module->pitch_mm[k];
        vec_add_scaled(place_mm, extent * ((at[k] + 0.5) / sampling->faces - 0.5), k == 0 ? module->u : module->v,
                       place_mm);
    }
}

/* True if the line from a point to a place crosses the plate. */
static bool stops(const struct plate *plate, const double point_mm[3], const double place_mm[3])
{
    const lr_module *module = plate->module;
    double ray[3], offset[3], hit[3];
    vec_sub(place_mm, point_mm, ray);
    vec_sub(point_mm, plate->centre_mm, offset);
    const double part = -vec_dot(module->normal, offset) / vec_dot(module->normal, ray);
    if (!(part > 0 && part < 1 - 1e-9)) return false;
    vec_add_scaled(offset, part, ray, hit);
    return fabs(vec_dot(hit, module->u)) < 0.5 * module->crystals[0] * module->pitch_mm[0] &&
           fabs(vec_dot(hit, module->v)) < 0.5 * module->crystals[1] * module->pitch_mm[1];
}

/* Share of a face that is hidden from a point; negative where it does not look at the point. */
static double hidden_share(const struct hunt *hunt, const struct plate *hider, const struct plate *hidden,
                           const double point_mm[3])
{
    const int count = hunt->sampling.faces * hunt->sampling.faces;
    double offset[3];
    int stopped = 0;
    vec_sub(point_mm, hidden->centre_mm, offset);
    if (!(vec_dot(hidden->module->normal, offset) > 0)) return -1;
    for (int k = 0; k < count; k++) {
        double place_mm[3];
        face_point(hidden, &hunt->sampling, k, place_mm);
        stopped += stops(hider, point_mm, place_mm);
    }
    return (double)stopped / count;
}

static struct hidden_pair look_at(const struct hunt *hunt, int hider, int hidden)
{
    const struct plate before = plate_of(hunt->scanner, hider);
    const struct plate behind = plate_of(hunt->scanner, hidden);
    const int *points = hunt->sampling.points;
    struct hidden_pair pair = {.hider = hider, .hidden = hidden, .least = 1};
    int num_facing = 0;
    for (int k = 0; k < points[0] * points[1] * points[2]; k++) {
        double point_mm[3];
        field_point(hunt, k, point_mm);
        const double share = hidden_share(hunt, &before, &behind, point_mm);
        if (share >= 0) {
            pair.share += share;
            pair.least = fmin(pair.least, share);
            pair.most = fmax(pair.most, share);
            num_facing++;
        }
    }
    pair.share /= num_facing > 0 ? num_facing : 1;
    return pair;
}

/* Keeps the largest ones in order. */
static void keep(struct hunt *hunt, struct hidden_pair pair)
{
    for (int k = 0; k < LR_FINDINGS_SPELLED; k++) {
        if (k >= hunt->num_found || pair.share > hunt->found[k].share) {
            const struct hidden_pair smaller = hunt->found[k];
            hunt->found[k] = pair;
            pair = smaller;
        }
    }
    hunt->num_found++;
}

void lr_examine_hiding(struct lr_examination *examination, const lr_scanner *scanner)
{
    struct hunt hunt = {.scanner = scanner};
    if (lr_modules_may_hide(scanner)) {
        /* Finds the field of view: the grid; else what the rules leave of the bore, or its inner half, and half of
         * its length. */
        const lr_grid *grid = examination->grid;
        const double rule = examination->draft->params.coincidence.field_of_view_mm;
        const double bore = examination->belt.radius_mm;
        /* The square in the circle. */
        const double across = rule > 0 && rule < 2 * bore ? 0.5 * rule * sqrt(0.5) : 0.5 * bore * sqrt(0.5);
        for (int k = 0; k < 3; k++) {
            hunt.middle_mm[k] = k == 2 ? 0.5 * (examination->low_mm + examination->high_mm) : 0;
            hunt.half_mm[k] = k == 2 ? 0.25 * (examination->high_mm - examination->low_mm) : across;
            if (grid != NULL) {
                hunt.half_mm[k] = 0.5 * grid->size[k] * grid->voxel_mm[k];
                hunt.middle_mm[k] = grid->origin_mm[k] - 0.5 * grid->voxel_mm[k] + hunt.half_mm[k];
            }
        }

        choose_sampling(&hunt);
        for (int hidden = 0; hidden < hunt.scanner->num_modules; hidden++) {
            const int found_before = hunt.num_found;
            for (int hider = 0; hider < hunt.scanner->num_modules; hider++) {
                if (may_hide(&hunt, hider, hidden)) {
                    const struct hidden_pair pair = look_at(&hunt, hider, hidden);
                    if (pair.share >= least_share) keep(&hunt, pair);
                }
            }
            hunt.num_hidden += hunt.num_found > found_before;
        }

        struct lr_finding_head head = {
            LR_NOTE,
            LR_FINDING_HIDING,
            {-1, -1},
            "good where they are meant to stand so, as inserts do (layers of one block are given as "
            "layers): lines that the first "
            "stops are not counted for the second; else check their places"};
        for (int k = 0; k < hunt.num_found && k < LR_FINDINGS_SPELLED; k++) {
            const struct hidden_pair *pair = &hunt.found[k];
            head.modules[0] = pair->hider;
            head.modules[1] = pair->hidden;
            lr_examination_add(examination, &head,
                               "module %d stands before module %d and hides %.3g %% of its face from "
                               "the field of view (%.3g to %.3g %%, by the point)",
                               pair->hider, pair->hidden, 100 * pair->share, 100 * pair->least, 100 * pair->most);
        }
        if (hunt.num_found > LR_FINDINGS_SPELLED) {
            head.modules[0] = head.modules[1] = -1;
            lr_examination_add(examination, &head, "%d more like these: of %d modules %d are hidden in part, or wholly",
                               hunt.num_found - LR_FINDINGS_SPELLED, hunt.scanner->num_modules, hunt.num_hidden);
        }
    }
}
