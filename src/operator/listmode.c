/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Operators of the family `listmode`: events, factors and backends. */
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/order.h"
#include "base/parallel.h"
#include "base/units.h"
#include "device/place.h"
#include "listmode/line.h"
#include "model/lors/place.h"
#include "model/scanner/scanner.h"
#include "operator/facade.h"
#include "plugin/plugin.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- images of blobs. Each of the two grids of blobs has a backend of tubes whose profile is the footprint of a blob.
 * Projections of the two grids are added (docs/method/listmode.md, "Blobs") --- */

/* The number of entries of a footprint table. */
enum { ENTRIES = 2001 };

struct blobs_backend {
    struct lr_backend_fns fns; /* functions of this file; other members as those of the inner backends */
    struct lr_backend inner[2];
    int64_t each; /* number of coefficients of one grid */
    const lr_log *log;
    const lr_progress *progress; /* the caller's progress; NULL = none */
    lr_progress halves;          /* receives the reports of the inner backends */
    int half;                    /* index of the grid whose projection is running */
};

/* --- progress --- */

static bool report_half(void *user, const char *what, double done, double total)
{
    const struct blobs_backend *self = user;
    return lr_progress_report(self->progress, what, done + self->half * total, 2.0 * total) == LR_OK;
}

/* --- projections, at the place of the vectors --- */

/* The values of both grids of blobs are added up. */
static lr_status project(void *user, bool is_forward, const lr_selection *part, const lr_vector *in, lr_vector *out)
{
    struct blobs_backend *self = user;
    const lr_vector_params like = {.place = out->place,
                                   .count = out->count,
                                   .precision = out->precision,
                                   .name = "values of the second grid of blobs",
                                   .log = self->log};
    lr_vector more = {0};
    LR_TRY(is_forward ? lr_vector_create(&like, &more) : LR_OK);
    lr_status status = LR_OK;
    for (int g = 0; status == LR_OK && g < 2; g++) {
        const struct lr_backend *inner = &self->inner[g];
        lr_vector half = lr_vector_part(is_forward ? in : out, g * self->each, self->each);
        self->half = g;
        status = inner->fns->project(inner->self, is_forward, part, is_forward ? &half : in,
                                     !is_forward ? &half
                                     : g == 0    ? out
                                                 : &more);
    }
    if (is_forward && status == LR_OK) status = lr_vector_add_scaled(out, 1.0, &more);
    lr_vector_destroy(&more);
    return status;
}

/* Device time of the projections of both grids, s, without the time to add their values. */
static double device_seconds(void *user)
{
    struct blobs_backend *self = user;
    double sum = 0;
    for (int g = 0; g < 2; g++) sum += self->inner[g].fns->device_seconds(self->inner[g].self);
    return sum;
}

/* --- rows --- */

struct shifted {
    const lr_row_sink *sink;
    int64_t by;
};

static lr_status take_shifted(void *user, const lr_row *row)
{
    const struct shifted *shifted = user;
    lr_row moved = *row;
    moved.row += shifted->by;
    return shifted->sink->take(shifted->sink->user, &moved);
}

static lr_status rows(void *user, const struct lr_rows *wanted, const lr_row_sink *sink)
{
    struct blobs_backend *self = user;
    for (int g = 0; g < 2; g++) {
        const int64_t first = g * self->each, end = first + self->each;
        struct lr_rows of_grid = *wanted;
        of_grid.blocks = NULL; /* blocks cannot be passed on, because row numbers in a block cannot be shifted */
        struct shifted shifted = {sink, wanted->grid != NULL ? first : 0};
        const lr_row_sink inner_sink = {take_shifted, &shifted};
        if (wanted->grid != NULL) {
            of_grid.begin = (wanted->begin > first ? wanted->begin : first) - first;
            of_grid.end = (wanted->end < end ? wanted->end : end) - first;
        }
        self->half = g;
        if (of_grid.begin < of_grid.end) LR_TRY(self->inner[g].fns->rows(self->inner[g].self, &of_grid, &inner_sink));
    }
    return LR_OK;
}

/* --- life --- */

/* The second backend may use programs of the first one, so it is destroyed first. */
static void destroy(void *user)
{
    struct blobs_backend *self = user;
    for (int g = 1; g >= 0; g--)
        if (self->inner[g].fns != NULL) self->inner[g].fns->destroy(self->inner[g].self);
    free(self);
}

lr_status lr_listmode_open(const struct lr_listmode_family *family, const struct lr_listmode_backend_params *params,
                           struct lr_backend *backend)
{
    if (family->info.blobs.radius_mm == 0) return family->choice->create_listmode(params, backend);
    struct blobs_backend *self = lr_alloc(1, sizeof(*self), "the grids of blobs", params->log);
    if (self == NULL) return LR_FAILED;
    self->log = params->log;
    self->progress = params->progress;
    self->halves = (lr_progress){report_half, self};
    self->each = lr_grid_num_voxels(&family->model.grid);

    /* The backends of both grids exist at the same time, so each may use half of the memory. */
    struct lr_listmode_backend_params of_grid = *params;
    const int64_t device = params->place != NULL ? params->place->memory_bytes / 2 : 0;
    const int64_t all = params->max_memory_bytes > 0 ? params->max_memory_bytes : device;
    of_grid.max_memory_bytes = all > 0 ? all / 2 + 1 : 0;
    of_grid.progress = params->progress != NULL ? &self->halves : NULL;
    for (int g = 0; g < 2; g++) {
        of_grid.model = g == 0 ? &family->model : &family->second;
        /* A backend can share the compiled programs of an earlier backend. If there is an earlier operator, this is its
         * backend of the same grid. Otherwise, the backend of the second grid shares the programs of the first grid's
         * backend, which has the same kernel. */
        of_grid.stands_for = params->stands_for != NULL
                                 ? &((const struct blobs_backend *)params->stands_for->self)->inner[g]
                             : g > 0 ? &self->inner[0]
                                     : NULL;
        const lr_status status = family->choice->create_listmode(&of_grid, &self->inner[g]);
        if (status != LR_OK) {
            destroy(self);
            return status;
        }
    }
    const struct lr_backend_fns *inner = self->inner[0].fns;
    self->fns = (struct lr_backend_fns){.name = inner->name,
                                        .computes_in_double = inner->computes_in_double,
                                        .has_parts = inner->has_parts,
                                        .voxel_bytes = inner->voxel_bytes,
                                        .project = project,
                                        .rows = rows,
                                        .device_seconds = inner->device_seconds != NULL ? device_seconds : NULL,
                                        .destroy = destroy};
    *backend = self->inner[0];
    backend->fns = &self->fns;
    backend->self = self;
    return LR_OK;
}

/* --- the family --- */

/* The default for the smallest number of lines of a sensitivity. */
static const int64_t usual_lines = INT64_C(1) << 25;

lr_status lr_listmode_arrange(const struct lr_listmode_family *family, struct lr_listmode_events *events,
                              const lr_listmode_params *params, const struct lr_listmode_backend_params *backend_params)
{
    if (family->choice->arrange != NULL && !events->is_arranged && events->held == NULL) {
        struct lr_listmode_backend_params arranging = *backend_params;
        arranging.shares_events = family->info.blobs.radius_mm > 0; /* two backends, one for each grid, share the
                                                                       events */
        LR_TRY(family->choice->arrange(events, &arranging));
    }
    return events->held != NULL ? LR_OK : lr_listmode_events_arrange(events, params);
}

/* --- the caller's params --- */

enum { LINE_VECTORS = 4 };

/* The parameters of an operator, with its lines on the host. */
struct given {
    lr_listmode_params params;
    lr_lines lines;
    lr_vector vectors[LINE_VECTORS]; /* [LINE_VECTORS]: start_mm, end_mm, tof_mm, tof_resolutions_ps */
    bool is_copy[LINE_VECTORS];      /* true if the vector is an owned copy */
    lr_events_info info;             /* time of flight of the lines */
};

/* Returns true if elements contain the solid angle of the LOR. */
static bool has_solid_angles(const lr_listmode_params *params)
{
    if (params->lines != NULL) return false;
    if (params->blobs == NULL && params->kernel == LR_LISTMODE_EXACT) return true;
    return !params->no_solid_angles && (params->blobs != NULL || !params->tube.as_paper);
}

static bool has_numbers(const lr_vector *vector)
{
    return vector != NULL && (vector->values != NULL || vector->storage != NULL);
}

/* Warns if the ends of all lines lie in the grid, and not on detectors around it. */
static void warn_of_inner_ends(const struct given *given)
{
    const lr_grid *grid = given->params.grid;
    double largest_mm = 0.0;
    for (int64_t k = 0; k < 6 * given->params.count; k++) {
        const lr_vector *ends = &given->vectors[k % 2];
        const int64_t at = k / 2;
        const double mm = ends->precision == LR_FLOAT64 ? ((const double *)ends->values)[at]
                                                        : (double)((const float *)ends->values)[at];
        const int axis = (int)(at % 3);
        const double edge_mm = grid->voxel_mm[axis], first_mm = grid->origin_mm[axis] - 0.5 * edge_mm;
        if (!(mm > first_mm && mm < first_mm + grid->size[axis] * edge_mm)) return;
        largest_mm = fmax(largest_mm, fabs(mm));
    }
    lr_warn(given->params.log,
            "the ends of all lines lie inside the grid, at most %.3g mm from 0 along an axis: are they in mm, and not "
            "in cm or m?",
            largest_mm);
}

static lr_status take_lines(struct given *given)
{
    lr_listmode_params *params = &given->params;
    const lr_lines *lines = params->lines;
    const lr_log *log = params->log;
    if (!has_numbers(lines->start_mm) || !has_numbers(lines->end_mm))
        return lr_error(log, LR_USAGE, "lines need their starts and ends, of x, y and z in mm each");
    const int64_t numbers = lines->start_mm->count;
    if (numbers == 0 || numbers % 3 != 0 || lines->end_mm->count != numbers) {
        return lr_error(
            log, LR_USAGE,
            "lines have %lld numbers for their starts and %lld for their ends: give three of each for every line",
            (long long)numbers, (long long)lines->end_mm->count);
    }
    params->count = numbers / 3;
    if (lines->tof_mm != NULL && (!has_numbers(lines->tof_mm) || lines->tof_mm->count != params->count)) {
        return lr_error(log, LR_USAGE, "%lld lines have %lld centres of time of flight: give one for every line",
                        (long long)params->count, (long long)lines->tof_mm->count);
    }
    const bool has_own = lines->tof_mm != NULL && lines->tof_resolutions_ps != NULL;
    if (has_own && (!has_numbers(lines->tof_resolutions_ps) || lines->tof_resolutions_ps->count != params->count)) {
        return lr_error(log, LR_USAGE, "%lld lines have %lld resolutions of time of flight: give one for every line",
                        (long long)params->count, (long long)lines->tof_resolutions_ps->count);
    }
    if (!(lines->tof_resolution_ps >= 0) || !(lines->tof_bin_mm >= 0) || !isfinite(lines->tof_bin_mm) ||
        (lines->tof_mm != NULL && !has_own && lines->tof_resolution_ps == 0)) {
        return lr_error(log, LR_USAGE,
                        "lines with time of flight need its resolution in ps FWHM, and bins that are no narrower than "
                        "0 mm: they have %g ps and %g mm",
                        lines->tof_resolution_ps, lines->tof_bin_mm);
    }
    if (params->info != NULL || params->factors != NULL) {
        return lr_error(log, LR_USAGE,
                        "lines have a time of flight of their own and no LORs: give tof_mm in place of info, and "
                        "event_factors in place of factors");
    }

    /* Vectors that are on the host and in the right precision are not copied, all others are. Ends are floats or
     * doubles; centres and resolutions are floats. */
    const lr_vector *from[LINE_VECTORS] = {lines->start_mm, lines->end_mm, lines->tof_mm,
                                           has_own ? lines->tof_resolutions_ps : NULL};
    static const char *const names[LINE_VECTORS] = {"starts of lines", "ends of lines", "centres of time of flight",
                                                    "resolutions of time of flight"};
    for (int k = 0; k < LINE_VECTORS && from[k] != NULL; k++) {
        const lr_precision precision = k < 2 ? from[k]->precision : LR_FLOAT32;
        given->vectors[k] = *from[k];
        if (from[k]->values != NULL && from[k]->precision == precision) continue;
        const lr_vector_params copy = {.count = from[k]->count, .precision = precision, .name = names[k], .log = log};
        LR_TRY(lr_vector_create(&copy, &given->vectors[k]));
        given->is_copy[k] = true;
        LR_TRY(lr_vector_copy(from[k], &given->vectors[k]));
    }
    warn_of_inner_ends(given);
    given->lines = (lr_lines){.start_mm = &given->vectors[0], .end_mm = &given->vectors[1]};
    params->lors = NULL;
    params->lines = &given->lines;
    if (lines->tof_mm == NULL) return LR_OK;
    given->lines.tof_mm = &given->vectors[2];
    given->lines.tof_resolutions_ps = has_own ? &given->vectors[3] : NULL;
    given->info = (lr_events_info){
        .has_tof = true, .tof_resolution_ps = lines->tof_resolution_ps, .tof_bin_mm = lines->tof_bin_mm};
    params->info = &given->info;
    return LR_OK;
}

/* Checks the parameters, and copies vectors where necessary. The caller frees the copies (is_copy) even after an
 * error. */
static lr_status take_params(struct given *given, const lr_listmode_params *asked)
{
    *given = (struct given){.params = *asked};
    const lr_listmode_params *params = &given->params;
    const int sources = (params->events != NULL) + (params->columns != NULL) + (params->lines != NULL);
    if (params->grid == NULL || sources == 0 || (params->lors == NULL && params->lines == NULL)) {
        return lr_error(params->log, LR_USAGE,
                        "an operator of the family listmode needs LORs, a grid and events, or lines and a grid");
    }
    if (sources > 1)
        return lr_error(params->log, LR_USAGE,
                        "list mode takes one of events, columns of events, and lines, not several");
    if (params->lines != NULL) LR_TRY(take_lines(given));
    if (params->columns != NULL) {
        given->params.count = params->columns->count;
        if (params->columns->crystals == NULL)
            return lr_error(params->log, LR_USAGE, "columns of events need the crystals of each event");
    }

    if (params->threads < 0 || params->device < 0 || params->max_memory_bytes < 0 || params->sensitivity_lines < 0 ||
        params->block_threads < 0 || params->blocks_each < 0) {
        return lr_error(params->log, LR_USAGE,
                        "threads, blocks, device, memory and lines of the sensitivity must not be negative");
    }
    if (params->variant != LR_LISTMODE_FASTEST && (params->backend == NULL || strcmp(params->backend, "cuda") != 0))
        return lr_error(params->log, LR_USAGE, "variants are ways of the backend cuda: name it, or name no variant");
    if (params->variant != LR_LISTMODE_FASTEST && params->kernel == LR_LISTMODE_EXACT)
        return lr_error(params->log, LR_USAGE, "variants are of tubes and thin lines: exact elements have none");
    if ((int)params->variant < 0 || params->variant > LR_LISTMODE_FASTMATH)
        return lr_error(params->log, LR_USAGE, "list mode has no variant %d", (int)params->variant);
    const int parts = params->sensitivity_parts > 0 ? params->sensitivity_parts : 1;
    if (params->sensitivity_part < 0 || params->sensitivity_part >= parts) {
        return lr_error(params->log, LR_USAGE, "part %d of the sensitivity, of %d parts: give 0 to %d",
                        params->sensitivity_part, parts, parts - 1);
    }
    const lr_operator *like = params->sensitivity_of;
    const bool is_like =
        like == NULL ||
        (like->listmode != NULL && lr_grid_num_voxels(&like->listmode->grid) == lr_grid_num_voxels(params->grid) &&
         (like->listmode->info.blobs.radius_mm > 0) == (params->blobs != NULL));
    if (!is_like) {
        return lr_error(params->log, LR_USAGE,
                        "the operator whose sensitivity is to be taken has another grid, blobs where this one has "
                        "voxels, or is none of the family listmode");
    }
    if (like != NULL && like->listmode->info.has_solid_angles != has_solid_angles(params)) {
        return lr_error(params->log, LR_USAGE,
                        "only one of this operator and that whose sensitivity is to be taken has solid angles: give "
                        "both the same kernel, as_paper and no_solid_angles; lines given by their ends have none");
    }
    return LR_OK;
}

/* --- factors of events --- */

/* The LOR of an event, and the event's number. */
struct numbered {
    int64_t lor, event;
};

struct numbering {
    const lr_lors *lors;
    const struct lr_listmode_input *from;
    struct numbered *numbered;
};

enum { NUMBERED_AT_ONCE = 1 << 14 };

static void number_share(void *user, int64_t begin, int64_t end)
{
    const struct numbering *numbering = user;
    for (int64_t k = begin; k < end; k++) {
        int32_t crystals[2];
        lr_listmode_input_crystals(numbering->from, k, crystals);
        numbering->numbered[k] = (struct numbered){lr_lors_number(numbering->lors, crystals[0], crystals[1]), k};
    }
}

/* Gets the factors of events. This is an lr_lor_source, in which LOR numbers are event numbers. */
static lr_status get_factors(void *user, const lr_lor_span *span, float *values)
{
    const float *factors = user;
    for (int64_t k = 0; k < span->count; k++) values[k] = factors[lr_span_lor(span, k)];
    return LR_OK;
}

/* --- life --- */

static lr_status make_models(struct lr_listmode_family *family, const lr_listmode_params *params)
{
    LR_TRY(lr_grid_check(params->grid, params->log));
    lr_listmode_params complete = *params;
    if (params->blobs == NULL) {
        /* The exact kernel has the same default sample points as the family correspondence. */
        int usual[3] = {1, 1, 1};
        if (params->kernel == LR_LISTMODE_EXACT && params->lors != NULL)
            lr_operator_default_samples(params->lors->scanner, params->grid, usual);
        for (int k = 0; k < 3; k++) complete.samples[k] = params->samples[k] != 0 ? params->samples[k] : usual[k];
        return lr_listmode_model_init(&family->model, &complete);
    }

    /* If the image consists of blobs, each grid has a model of tubes with a blob's footprint. */
    lr_grid grids[2];
    lr_blobs *blobs = &family->info.blobs;
    *blobs = *params->blobs;
    LR_TRY(lr_blobs_complete(blobs, params->log));
    lr_blobs_grids(blobs, params->grid, grids);
    double *table = lr_alloc(ENTRIES, sizeof(*table), "the footprint of a blob", params->log);
    lr_status status = table != NULL ? LR_OK : LR_FAILED;
    for (int k = 0; status == LR_OK && k < ENTRIES; k++)
        table[k] = lr_blobs_footprint(blobs, blobs->radius_mm * k / (ENTRIES - 1));
    complete.kernel = LR_LISTMODE_TUBE;
    complete.tube = (lr_listmode_tube){
        .width_mm = 2.0 * blobs->radius_mm, .table = table, .table_count = ENTRIES, .as_paper = true};
    for (int g = 0; status == LR_OK && g < 2; g++) {
        complete.grid = &grids[g];
        status = lr_listmode_model_init(g == 0 ? &family->model : &family->second, &complete);
    }
    free(table);
    return status;
}

#define ROOT_OF_TWO_PI 2.5066282746310002

/* Finds the factor of each event's LOR. errors: those of the source; also if a LOR is not in coincidence. */
static lr_status look_up_factors(struct lr_listmode_family *family, const lr_listmode_params *params)
{
    const int64_t count = params->count;
    const int threads = params->threads > 0 ? params->threads : lr_num_processors();
    float *of_lors = NULL;
    struct numbered *spare = NULL;
    struct numbered *numbered = lr_alloc(count, sizeof(*numbered), "LORs of events", params->log);
    int64_t *lors = lr_alloc(count, sizeof(*lors), "LORs of events", params->log);
    family->event_factors = lr_alloc(count, sizeof(*family->event_factors), "factors of events", params->log);
    lr_status status = numbered != NULL && lors != NULL && family->event_factors != NULL ? LR_OK : LR_FAILED;
    if (status != LR_OK) goto done;
    const struct lr_listmode_input *from = &family->events.from;
    lr_parallel_for(threads, count, NUMBERED_AT_ONCE, number_share, &(struct numbering){params->lors, from, numbered});
    for (int64_t k = 0; status == LR_OK && k < count; k++) {
        if (numbered[k].lor < 0) {
            int32_t crystals[2];
            lr_listmode_input_crystals(from, k, crystals);
            status = lr_error(params->log, LR_BAD_INPUT,
                              "event %lld joins crystals %d and %d, whose modules are not in coincidence, so that it "
                              "has no factor: leave it out",
                              (long long)k, (int)crystals[0], (int)crystals[1]);
        }
    }
    spare = status == LR_OK ? lr_alloc(count, sizeof(*spare), "LORs of events", params->log) : NULL;
    if (status == LR_OK && spare == NULL) status = LR_FAILED;
    if (status != LR_OK) goto done;

    /* A source of factors needs LORs in ascending order without repeats. */
    if (lr_radix_sort(numbered, spare, sizeof(*spare), count, params->lors->count + 1)) {
        struct numbered *const sorted = spare;
        spare = numbered;
        numbered = sorted;
    }
    free(spare);
    spare = NULL;
    int64_t listed = 0;
    for (int64_t n = 0; n < count; n++)
        if (listed == 0 || lors[listed - 1] != numbered[n].lor) lors[listed++] = numbered[n].lor;
    of_lors = lr_alloc(listed, sizeof(*of_lors), "factors of events", params->log);
    const lr_lor_span span = {.numbers = lors, .count = listed};
    status = of_lors != NULL ? params->factors->get(params->factors->user, &span, of_lors) : LR_FAILED;
    for (int64_t k = 0, at = 0; status == LR_OK && k < count; k++) {
        at += lors[at] != numbered[k].lor;
        family->event_factors[numbered[k].event] = of_lors[at];
    }

done:
    lr_free_all(of_lors, numbered, lors);
    return status;
}

struct weighing {
    struct lr_listmode_family *family;
    bool has_densities;
};

/* Multiplies factors of events by the solid angles of their LORs, and, for blobs, by the density of time of flight at
 * its peak: the paper's tubes use Gaussians with peak 1, but blobs need Gaussians with integral 1. */
static void weigh_share(void *user, int64_t begin, int64_t end)
{
    const struct weighing *weighing = user;
    const struct lr_listmode_family *family = weighing->family;
    const struct lr_listmode_events *events = &family->events;
    for (int64_t k = begin; k < end; k++) {
        int32_t crystals[2];
        lr_listmode_input_crystals(&events->from, k, crystals);
        double factor = family->event_factors[k];
        if (family->faces.areas_mm2 != NULL) {
            factor *=
                lr_listmode_solid_angle(&family->faces, (const double(*)[3])events->hits, crystals[0], crystals[1]);
        }
        const double sigma = weighing->has_densities ? lr_listmode_sigma(events, crystals) : 0.0;
        if (sigma > 0) factor /= LR_LISTMODE_HELD * ROOT_OF_TWO_PI * sigma;
        family->event_factors[k] = (float)factor;
    }
}

static lr_status take_factors(struct lr_listmode_family *family, const lr_listmode_params *params)
{
    const bool has_source = params->factors != NULL && params->factors->get != NULL;
    const bool has_densities = params->blobs != NULL && family->events.reach_mm > 0;
    const bool is_exact = params->kernel == LR_LISTMODE_EXACT && params->blobs == NULL;
    const bool is_weighted = family->info.has_solid_angles && !is_exact;
    const int threads = params->threads > 0 ? params->threads : lr_num_processors();
    if (has_source) family->factors = *params->factors;
    if (has_source || is_weighted || params->blobs != NULL) /* these need the crystals of an event */
        LR_TRY(lr_listmode_events_check(&family->events, threads, params->log));
    if (is_weighted) {
        const lr_scanner *scanner = params->lors->scanner;
        const double *edge = params->grid->voxel_mm;
        struct lr_listmode_faces *faces = &family->faces;
        faces->per_voxel = 1.0 / (2.0 * LR_PI * edge[0] * edge[1] * edge[2]);
        faces->areas_mm2 = lr_alloc(scanner->num_crystals, sizeof(*faces->areas_mm2), "faces of crystals", params->log);
        LR_TRY(faces->areas_mm2 != NULL ? LR_OK : LR_FAILED);
        for (int m = 0; m < scanner->num_modules; m++) {
            const lr_module *module = &scanner->modules[m];
            for (int c = scanner->first_crystal[m]; c < scanner->first_crystal[m + 1]; c++)
                for (int k = 0; k < 3; k++)
                    faces->areas_mm2[c][k] = module->face_mm[0] * module->face_mm[1] * module->normal[k];
        }
    }

    if (params->event_factors == NULL && has_source) {
        LR_TRY(look_up_factors(family, params));
    } else if (params->event_factors != NULL || has_densities || is_weighted) {
        family->event_factors =
            lr_alloc(params->count, sizeof(*family->event_factors), "factors of events", params->log);
        LR_TRY(family->event_factors != NULL ? LR_OK : LR_FAILED);
        for (int64_t k = 0; k < params->count; k++) {
            const float factor = params->event_factors != NULL ? params->event_factors[k] : 1.0f;
            if (!(factor >= 0.0f && factor <= FLT_MAX)) {
                return lr_error(params->log, LR_BAD_INPUT,
                                "the factor of event %lld is %g: it must be finite and not negative", (long long)k,
                                (double)factor);
            }
            family->event_factors[k] = factor;
        }
    }
    struct weighing weighing = {family, has_densities};
    if (has_densities || is_weighted) lr_parallel_for(threads, params->count, NUMBERED_AT_ONCE, weigh_share, &weighing);
    return LR_OK;
}

struct opening {
    const lr_listmode_params *params;
    struct lr_listmode_backend_params backend;
};

/* Arranges the events for a backend and opens it. If this fails, the next choice starts again with its own place and
 * the caller's events. */
static lr_status open_choice(struct lr_operator *op, const void *user, const struct lr_backend_choice *choice,
                             struct lr_backend *backend)
{
    const struct opening *opening = user;
    struct lr_listmode_family *family = op->listmode;
    struct lr_listmode_backend_params own = opening->backend;
    lr_status status = LR_OK;
    if (choice->place != LR_PLACE_HOST) {
        const lr_place_params place = {.kind = choice->place, .device = own.device, .log = own.log};
        status = lr_place_open_on(&place, &family->place);
        own.place = family->place;
    }
    family->choice = choice;
    if (status == LR_OK) status = lr_listmode_arrange(family, &family->events, opening->params, &own);
    if (status == LR_OK) status = lr_listmode_open(family, &own, backend);
    if (status == LR_OK) {
        family->events.from = (struct lr_listmode_input){0};
    } else {
        lr_listmode_events_release(&family->events);
        lr_place_close(family->place);
        family->place = NULL;
    }
    return status;
}

lr_operator *lr_listmode_create_sized(size_t caller_bytes, const lr_listmode_params *caller)
{
    LR_TAKE(lr_listmode_params, asked, caller, caller_bytes);
    const double begin = lr_clock_seconds();
    struct given given;
    const lr_listmode_params *params = &given.params;
    bool is_made = false;
    lr_operator *op = take_params(&given, asked) == LR_OK ? lr_operator_alloc(params->log, params->progress) : NULL;
    struct lr_listmode_family *family = op != NULL ? lr_alloc(1, sizeof(*family), "an operator", params->log) : NULL;
    if (family == NULL) goto done;
    op->listmode = family;
    family->lors = params->lors;
    family->grid = *params->grid;
    family->wanted_lines = params->sensitivity_lines > 0 ? params->sensitivity_lines : usual_lines;
    family->lines_are_usual = params->sensitivity_lines == 0;
    family->seed = params->seed;
    family->sensitivity_part = params->sensitivity_part;
    family->sensitivity_parts = params->sensitivity_parts > 0 ? params->sensitivity_parts : 1;
    family->sensitivity_of = params->sensitivity_of;
    family->info.has_solid_angles = has_solid_angles(params);
    if (make_models(family, params) != LR_OK || lr_listmode_events_open(&family->events, params, NULL) != LR_OK ||
        take_factors(family, params) != LR_OK)
        goto done;
    op->factors = family->event_factors != NULL ? (lr_lor_source){get_factors, family->event_factors} : op->factors;

    /* Factors of events and the values that they multiply take memory of the device, too. */
    const int64_t most_bytes = params->max_memory_bytes, factors_bytes = 2 * params->count * (int64_t)sizeof(float);
    const int64_t left_bytes = most_bytes - (family->event_factors != NULL ? factors_bytes : 0);
    const struct opening opening = {
        .params = params,
        .backend = {.model = &family->model,
                    .events = &family->events,
                    .threads = params->threads > 0 ? params->threads : lr_num_processors(),
                    .device = params->device,
                    .max_memory_bytes = left_bytes > most_bytes / 2 ? left_bytes : (most_bytes + 1) / 2,
                    .variant = params->variant,
                    .block_threads = params->block_threads,
                    .blocks_each = params->blocks_each,
                    .log = &op->log_filter.log,
                    .progress = &op->progress_filter.progress},
    };
    struct lr_choices choices = lr_all_choices(LR_LISTMODE);
    choices.needs_hiding = family->model.kernel == LR_LISTMODE_EXACT && lr_modules_may_hide(family->model.scanner);
    choices.open = open_choice;
    choices.user = &opening;
    op->grid = family->model.grid;
    if (params->blobs != NULL) op->grid.size[2] *= 2; /* coefficients of the first grid, then of the second */
    op->params = (struct lr_backend_params){.lors = &family->events.layout,
                                            .grid = &op->grid,
                                            .samples = {1, 1, 1},
                                            .threads = opening.backend.threads,
                                            .device = params->device,
                                            .max_memory_bytes = params->max_memory_bytes,
                                            .log = opening.backend.log,
                                            .progress = opening.backend.progress};
    if (lr_choose_backend(op, params->backend, &choices) != LR_OK) goto done;
    family->info = (lr_listmode_info){.kernel = family->model.kernel,
                                      .tube = family->model.tube,
                                      .blobs = family->info.blobs,
                                      .has_solid_angles = family->info.has_solid_angles,
                                      .has_tof = family->events.reach_mm > 0,
                                      .count = params->count,
                                      .num_ranges = (int)family->events.layout.num_pairs,
                                      .partition_seconds = family->events.partition_seconds,
                                      .sort_seconds = family->events.sort_seconds};
    lr_operator_describe(op, begin);
    op->info.of_events = true;
    op->info.of_lines = family->lors == NULL && family->sensitivity_of == NULL;
    memcpy(op->info.samples, family->model.samples, sizeof(op->info.samples));
    op->info.max_memory_bytes = params->max_memory_bytes;
    is_made = true;

done:
    for (int k = 0; k < LINE_VECTORS; k++)
        if (given.is_copy[k]) lr_vector_destroy(&given.vectors[k]);
    if (!is_made) lr_operator_destroy(op);
    return is_made ? op : NULL;
}

const lr_listmode_info *lr_listmode_get_info(const lr_operator *op)
{
    return op->listmode != NULL ? &op->listmode->info : NULL;
}
