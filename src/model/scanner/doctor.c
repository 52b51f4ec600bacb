/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The geometry doctor: drafts of scanners, the examination, and modules that hide others from the field of view; the
 * other checks are in doctor_checks.c. */
#include "model/scanner/doctor.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/vec.h"
#include "model/scanner/arrangement.h"
#include "model/scanner/scanner.h"

#include <lr/doctor.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- findings --- */

static bool append(struct lr_examination *examination, const lr_finding *finding)
{
    lr_diagnosis *diagnosis = examination->diagnosis;
    lr_finding *grown = lr_resize(diagnosis->findings, (int64_t)diagnosis->num_findings + 1, sizeof(*grown), "findings",
                                  examination->log);
    if (grown == NULL) return false;
    diagnosis->findings = grown;
    grown[diagnosis->num_findings++] = *finding;
    diagnosis->num_suspects += finding->severity == LR_SUSPECT;
    return true;
}

void lr_examination_add(struct lr_examination *examination, const struct lr_finding_head *head, const char *format, ...)
{
    char sentence[1024];
    va_list values;
    va_start(values, format);
    vsnprintf(sentence, sizeof(sentence), format, values);
    va_end(values);
    lr_finding finding = {head->severity,
                          head->kind,
                          {head->modules[0], head->modules[1]},
                          lr_copy_string(sentence, examination->log),
                          lr_copy_string(head->remedy, examination->log)};
    if (finding.sentence == NULL || finding.remedy == NULL || !append(examination, &finding)) {
        free(finding.sentence);
        free(finding.remedy);
        examination->failed = true;
    }
}

void lr_examination_rest(struct lr_examination *examination, const struct lr_finding_head *head, int count)
{
    if (count > LR_FINDINGS_SPELLED) {
        const struct lr_finding_head rest = {head->severity, head->kind, {-1, -1}, head->remedy};
        lr_examination_add(examination, &rest, "%d more like these", count - LR_FINDINGS_SPELLED);
    }
}

/* --- drafts --- */

/* Frees memory that a draft owns; it is const in lr_scanner_params. */
static void release(const void *owned)
{
    free((void *)(uintptr_t)owned);
}

static bool copy(const lr_scanner *scanner, lr_scanner_draft *draft, const lr_log *log)
{
    lr_module *modules = lr_alloc(scanner->num_modules, sizeof(*modules), "a scanner's modules", log);
    draft->params = (lr_scanner_params){
        .name = lr_copy_string(scanner->name, log),
        .modules = modules,
        .num_modules = scanner->num_modules,
        .num_positions = scanner->num_positions,
        .coincidence = scanner->coincidence,
        .detection_depth_mm = scanner->detection_depth_mm,
        .tof_resolution_ps = scanner->tof_resolution_ps,
        .crystal_mu_per_mm = scanner->crystal_mu_per_mm,
        .source = lr_copy_string(scanner->source, log),
    };
    if (modules == NULL || draft->params.name == NULL || (scanner->source != NULL && draft->params.source == NULL))
        return false;
    memcpy(modules, scanner->modules, (size_t)scanner->num_modules * sizeof(*modules));
    return true;
}

lr_scanner_draft *lr_scanner_draft_create(const lr_scanner *scanner, const lr_log *log)
{
    lr_scanner_draft *draft = lr_alloc(1, sizeof(*draft), "a scanner", log);
    if (draft != NULL && !copy(scanner, draft, log)) {
        lr_scanner_draft_destroy(draft);
        return NULL;
    }
    return draft;
}

void lr_scanner_draft_destroy(lr_scanner_draft *draft)
{
    if (draft == NULL) return;
    release(draft->params.name);
    release(draft->params.source);
    release(draft->params.modules);
    free(draft);
}

/* --- the examination --- */

/* A belt is closed when its modules' normals nearly cancel (share of their number). */
static const double closed_share = 0.3;
enum { LEAST_CLOSED = 3 };

const char *lr_finding_kind_name(lr_finding_kind kind)
{
    static const char *const names[] = {"arc",    "radius",     "units",       "overlap", "gap",     "length",
                                        "normal", "handedness", "coincidence", "size",    "refused", "hiding"};
    return kind >= LR_FINDING_ARC && kind <= LR_FINDING_HIDING ? names[kind] : "unknown";
}

/* --- preparation --- */

static double plane_distance(const lr_module *module)
{
    return fabs(vec_dot(module->normal, module->centre_mm));
}

/* True if `back` is a deeper layer of crystals behind `front`. */
static bool is_behind(const lr_module *back, const lr_module *front)
{
    double way[3];
    vec_sub(back->centre_mm, front->centre_mm, way);
    return vec_dot(back->normal, front->normal) > 0.9998 &&
           plane_distance(back) > plane_distance(front) + 0.5 * front->depth_mm &&
           fabs(vec_dot(way, front->u)) < 0.5 * front->crystals[0] * front->pitch_mm[0];
}

struct direction {
    double angle;
    int module;
};

static int compare_directions(const void *a, const void *b)
{
    const struct direction *left = a, *right = b;
    return lr_compare_doubles(&left->angle, &right->angle);
}

static bool find_belt(struct lr_examination *examination)
{
    const int count = examination->draft->params.num_modules;
    struct direction *directions = lr_alloc(count, sizeof(*directions), "an examination", examination->log);
    double *scratch = lr_alloc(count, sizeof(*scratch), "an examination", examination->log);
    struct lr_belt *belt = &examination->belt;
    belt->modules = lr_alloc(count, sizeof(*belt->modules), "an examination", examination->log);
    const bool good = directions != NULL && scratch != NULL && belt->modules != NULL;
    for (int m = 0; m < count && good; m++) {
        const lr_module *module = &examination->modules[m];
        const double half = 0.5 * (module->crystals[1] * module->pitch_mm[1] * fabs(module->v[2]) +
                                   module->crystals[0] * module->pitch_mm[0] * fabs(module->u[2]));

        if (fabs(module->centre_mm[2] - examination->modules[0].centre_mm[2]) <= half) {
            directions[belt->count].module = m;
            directions[belt->count++].angle = atan2(module->centre_mm[1], module->centre_mm[0]);
        }
    }
    if (good) {
        /* Drops layers of crystals behind others, which fill no more of the circumference. */
        int kept = 0;
        for (int a = 0; a < belt->count; a++) {
            const lr_module *module = &examination->modules[directions[a].module];
            bool behind = false;
            for (int b = 0; b < belt->count && !behind; b++) {
                /* Modules left out before are behind one that stays. */
                behind = b < kept || b >= a ? is_behind(module, &examination->modules[directions[b].module]) : false;
            }
            if (!behind) directions[kept++] = directions[a];
        }
        belt->count = kept;

        /* Sorts the belt's modules by angle; `scratch` has room for one number each. */
        double sum[2] = {0, 0};
        qsort(directions, (size_t)belt->count, sizeof(*directions), compare_directions);
        for (int k = 0; k < belt->count; k++) {
            const lr_module *module = &examination->modules[directions[k].module];
            belt->modules[k] = directions[k].module;
            belt->width_mm += module->crystals[0] * module->pitch_mm[0];
            sum[0] += module->normal[0];
            sum[1] += module->normal[1];
            scratch[k] = plane_distance(module);
        }
        qsort(scratch, (size_t)belt->count, sizeof(*scratch), lr_compare_doubles);
        belt->radius_mm = belt->count > 0 ? scratch[belt->count / 2] : 0;
        belt->closed =
            belt->count >= LEAST_CLOSED && belt->radius_mm > 0 && hypot(sum[0], sum[1]) < closed_share * belt->count;
    }
    free(directions);
    free(scratch);
    return good;
}

static bool prepare(struct lr_examination *examination)
{
    const lr_scanner_params *params = &examination->draft->params;
    examination->modules = lr_alloc(params->num_modules, sizeof(lr_module), "an examination", examination->log);
    if (examination->modules == NULL) return false;
    examination->low_mm = INFINITY;
    examination->high_mm = -INFINITY;
    for (int m = 0; m < params->num_modules; m++) {
        lr_module *module = &examination->modules[m];
        *module = params->modules[m];
        /* The front face's normal towards the axis, or, where it contains the axis' direction, towards the centre. */
        const double *f = module->centre_mm;
        double n[3];
        vec_cross(module->u, module->v, n);
        const double radial = n[0] * f[0] + n[1] * f[1];
        const double outward = fabs(radial) > 1e-9 * vec_length(f) ? radial : vec_dot(n, f);
        const double length = vec_length(n);
        for (int k = 0; k < 3; k++) module->normal[k] = (outward > 0 ? -n[k] : n[k]) / (length > 0 ? length : 1);

        const double half = 0.5 * (module->crystals[1] * module->pitch_mm[1] * fabs(module->v[2]) +
                                   module->crystals[0] * module->pitch_mm[0] * fabs(module->u[2]));
        examination->low_mm = fmin(examination->low_mm, module->centre_mm[2] - half);
        examination->high_mm = fmax(examination->high_mm, module->centre_mm[2] + half);
    }
    return find_belt(examination);
}

/* --- what lr_scanner_create says --- */

static void keep_sentence(void *user, lr_log_level level, lr_status status, const char *sentence)
{
    (void)status;
    if (level == LR_LOG_ERROR) snprintf(user, 1024, "%s", sentence);
}

/* --- all of it --- */

static int compare_findings(const void *a, const void *b)
{
    const lr_finding *left = a, *right = b;
    if (left->severity != right->severity) return left->severity == LR_SUSPECT ? -1 : 1;
    return left->kind < right->kind ? -1 : left->kind > right->kind;
}

static void examine(struct lr_examination *examination)
{
    lr_examine_arc(examination);
    lr_examine_units(examination);
    lr_examine_overlaps(examination);
    lr_examine_gaps(examination);
    lr_examine_length(examination);
    lr_examine_normals(examination);
    lr_examine_handedness(examination);
    lr_examine_rules(examination);
    lr_examine_grid(examination);
    char sentence[1024] = "";
    const lr_log log = {keep_sentence, sentence};
    lr_scanner_params params = examination->draft->params;
    params.log = &log;
    if (lr_scanner_check_params(&params) != LR_OK) {
        const struct lr_finding_head head = {LR_SUSPECT, LR_FINDING_REFUSED, {-1, -1}, ""};
        lr_examination_add(examination, &head, "%s", sentence);
    }

    lr_examine_size(examination);
    /* Stable: findings of one kind stay in the order in which they were made. */
    lr_diagnosis *diagnosis = examination->diagnosis;
    for (int k = 1; k < diagnosis->num_findings; k++) {
        const lr_finding moved = diagnosis->findings[k];
        int to = k;
        while (to > 0 && compare_findings(&diagnosis->findings[to - 1], &moved) > 0) {
            diagnosis->findings[to] = diagnosis->findings[to - 1];
            to--;
        }
        diagnosis->findings[to] = moved;
    }
}

lr_diagnosis *lr_scanner_examine(const lr_scanner_draft *draft, const lr_grid *grid, const lr_log *log)
{
    struct lr_examination examination = {.draft = draft, .grid = grid, .log = log};
    examination.diagnosis = lr_alloc(1, sizeof(lr_diagnosis), "a diagnosis", log);
    if (examination.diagnosis != NULL) {
        examination.failed = !prepare(&examination);
        if (!examination.failed) examine(&examination);
    }
    free(examination.modules);
    free(examination.belt.modules);
    if (examination.failed) {
        lr_diagnosis_destroy(examination.diagnosis);
        return NULL;
    }
    return examination.diagnosis;
}

void lr_diagnosis_destroy(lr_diagnosis *diagnosis)
{
    if (diagnosis == NULL) return;
    for (int k = 0; k < diagnosis->num_findings; k++) {
        free(diagnosis->findings[k].sentence);
        free(diagnosis->findings[k].remedy);
    }
    free(diagnosis->findings);
    free(diagnosis);
}

/* --- modules that hide others from the field of view --- */

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
