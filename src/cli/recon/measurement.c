/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "cli/recon/measurement.h"

#include "base/path.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- digests --- */

/* This is the hash of Fowler, Noll and Vo with 64 bits (FNV-1a). */
uint64_t recon_digest(uint64_t digest, const void *bytes, int64_t count)
{
    digest = digest != 0 ? digest : LR_HASH_BEGIN;
    for (int64_t k = 0; k < count; k++) digest = lr_hash_add(digest, ((const unsigned char *)bytes)[k]);
    return digest;
}

/* Only one of the three multiplications depends on the preceding event, so that long lists take little time. */
void recon_digest_event(uint64_t *digest, const lr_event *event)
{
    uint64_t ends, rest;
    unsigned char bytes[sizeof(rest)];
    memcpy(&ends, event->crystals, sizeof(ends));
    memcpy(bytes, &event->tof_mm, sizeof(event->tof_mm));
    memcpy(bytes + sizeof(event->tof_mm), &event->weight, sizeof(event->weight));
    memcpy(&rest, bytes, sizeof(rest));
    uint64_t mixed = ends * UINT64_C(0x9e3779b97f4a7c15) ^ rest;
    mixed = (mixed ^ mixed >> 32) * UINT64_C(0xbf58476d1ce4e5b9);
    *digest = *digest != 0 ? *digest : LR_HASH_BEGIN;
    *digest = (*digest ^ mixed ^ mixed >> 29) * UINT64_C(0x94d049bb133111eb);
    *digest ^= *digest >> 32;
}

uint64_t recon_digest_scanner(const lr_scanner *scanner)
{
    const lr_coincidence *rules = &scanner->coincidence;
    const double whole[] = {rules->field_of_view_mm, rules->min_module_difference,
                            rules->limits_ring_difference ? rules->max_ring_difference : -1,
                            scanner->detection_depth_mm, scanner->crystal_mu_per_mm};
    uint64_t digest = recon_digest(0, whole, sizeof(whole));
    for (int m = 0; m < scanner->num_modules; m++) {
        const lr_module *module = &scanner->modules[m];
        const double *c = module->centre_mm, *u = module->u, *v = module->v;
        const double numbers[] = {c[0],
                                  c[1],
                                  c[2],
                                  u[0],
                                  u[1],
                                  u[2],
                                  v[0],
                                  v[1],
                                  v[2],
                                  module->crystals[0],
                                  module->crystals[1],
                                  module->pitch_mm[0],
                                  module->pitch_mm[1],
                                  module->face_mm[0],
                                  module->face_mm[1],
                                  module->depth_mm,
                                  module->mu_per_mm,
                                  module->layer};
        digest = recon_digest(digest, numbers, sizeof(numbers));
    }
    return digest;
}

static uint64_t digest_grid(const lr_grid *grid)
{
    const double lengths[] = {grid->voxel_mm[0],  grid->voxel_mm[1],  grid->voxel_mm[2],
                              grid->origin_mm[0], grid->origin_mm[1], grid->origin_mm[2]};
    return recon_digest(recon_digest(0, grid->size, sizeof(grid->size)), lengths, sizeof(lengths));
}

uint64_t recon_digest_image(const lr_image *image)
{
    const int64_t bytes = lr_grid_num_voxels(&image->grid) * (int64_t)sizeof(*image->values);
    return recon_digest(digest_grid(&image->grid), image->values, bytes);
}

/* --- several ranks --- */

lr_status measurement_compare_numbers(const struct measurement *measured, const char *what, uint64_t digest,
                                      int64_t count)
{
    char text[64];
    snprintf(text, sizeof(text), "%lld numbers, digest %016llx", (long long)count, (unsigned long long)digest);
    return lr_comm_same(measured->cluster.comm, what, text);
}

/* The first pass compares a digest of all options. If ranks differ, the second pass compares the options one by one, so
 * that the error names the first option that differs. */
lr_status measurement_compare_options(const struct measurement *measured, const struct cli_args *args)
{
    /* These options may differ between ranks: devices, messages, and files that only rank 0 writes. */
    static const char *const own[] = {"--device",  "--threads",    "--max-memory", "-o",     "--png",
                                      "--verbose", "--checkpoint", "--quiet",      "--json", NULL};
    lr_comm *comm = measured->cluster.comm;
    for (int pass = 0; comm != NULL && pass < 2; pass++) {
        uint64_t digest = 0;
        const struct cli_option *option;
        for (int n = 0; (option = args_option(args->verb, n)) != NULL; n++) {
            char text[256];
            int k = 0;
            while (own[k] != NULL && strcmp(own[k], option->name) != 0) k++;
            if (own[k] != NULL) continue;
            /* On other machines files may have other names. Their contents are compared after reading. */
            const char *kind = option->metavar != NULL ? option->metavar : "";
            const bool is_file = strstr(kind, "FILE") != NULL || strstr(kind, "IMAGE") != NULL;
            const char *value = is_file ? NULL : args_text(args, option->name);
            const char *otherwise = args_has(args, option->name) ? "given" : "none";
            snprintf(text, 256, "%s", value != NULL ? value : otherwise);

            digest = recon_digest(digest, text, (int64_t)strlen(text) + 1);
            CLI_TRY(pass == 1 ? lr_comm_same(comm, option->name, text) : LR_OK);
        }
        const double number = (double)(digest >> 12);
        double ends[2] = {number, -number};
        CLI_TRY(lr_comm_least(comm, ends, 2));
        if (ends[0] == -ends[1]) break;
    }
    return LR_OK;
}

lr_status measurement_compare_contents(const struct measurement *measured, const char *what, uint64_t digest)
{
    char text[64];
    snprintf(text, sizeof(text), digest != 0 ? "one with digest %016llx" : "none", (unsigned long long)digest);
    return lr_comm_same(measured->cluster.comm, what, text);
}

/* --- list mode --- */

void measurement_say_events(const struct measurement *measured)
{
    const lr_event_counts *counts = &measured->events;
    report_info(measured->setup.report,
                "%s: %lld prompts, %lld delayed coincidences, %lld marks of time; left out: %lld of unknown "
                "crystals, %lld out of coincidence",
                measured->request->events, (long long)counts->prompts, (long long)counts->delayeds,
                (long long)counts->time_marks, (long long)counts->unknown_crystals,
                (long long)counts->not_in_coincidence);
    if (measured->request->asks_for_randoms && counts->delayeds == 0) {
        report_warn(measured->setup.report,
                    "%s has no delayeds (delayed coincidences), from which --randoms auto finds the randoms: give the "
                    "expected randoms by --additive",
                    measured->request->events);
    }
    const double share = (double)counts->not_in_coincidence / fmax(1.0, (double)counts->prompts);
    if (share > 0.1) {
        report_warn(measured->setup.report,
                    "%s: %.3g %% of the prompts join crystals that are not in coincidence: are they of this scanner, "
                    "and are its rules (field_of_view_mm, min_module_difference, max_ring_difference) those of the "
                    "measurement?",
                    measured->request->events, 100.0 * share);
    }
}

lr_events_source measurement_events_source(const struct measurement *measured)
{
    lr_events_source source = measured->request->source;
    source.scanner = measured->setup.scanner;
    source.threads = measured->setup.params.threads;
    return source;
}

void measurement_limit_subsets(struct measurement *measured, int64_t most)
{
    if (measured->request->has_subsets || most < 1 || measured->subsets <= most) return;
    report_info(measured->setup.report, "%lld subsets, because there cannot be the usual %d here", (long long)most,
                measured->subsets);
    measured->subsets = (int)most;
}

bool measurement_interleaves_events(const struct measurement *measured)
{
    return measured->subsets > 1 && measured->events_format == LR_EVENTS_GE;
}

void measurement_say_replicate(const struct measurement *measured, double before, double after)
{
    report_info(measured->setup.report, "bootstrap replicate of seed %llu: %.9g counts, drawn from %.9g",
                (unsigned long long)measured->request->bootstrap_seed, after, before);
}

lr_status measurement_bootstrap(struct measurement *measured)
{
    lr_poisson_stream stream = {.seed = measured->request->bootstrap_seed, .purpose = LR_RANDOM_REPLICATE};
    const lr_log *log = &measured->setup.report->log;
    if (!measured->request->bootstraps) return LR_OK;
    const double before = common_sum(measured->data->values, measured->data->count);
    CLI_TRY(lr_poisson_part(measured->data->values, measured->data->count, &stream, log));
    if (measured->delayeds != NULL) {
        stream.purpose = LR_RANDOM_DELAYEDS;
        CLI_TRY(lr_poisson_part(measured->delayeds->values, measured->delayeds->count, &stream, log));
    }
    measurement_say_replicate(measured, before, common_sum(measured->data->values, measured->data->count));
    return LR_OK;
}

/* --- scanner and factors --- */

lr_status measurement_open_scanner(struct measurement *measured, struct cli_args *args)
{
    const struct recon_request *request = measured->request;
    const char *described = common_events_scanner(request->events, request->crystal_map);
    lr_scanner *listed = NULL;
    if (described != NULL && !args_has(args, "--scanner")) {
        listed = lr_scanner_read(described, &args->report->log);
        if (listed == NULL) return report_reason(args->report);
    }
    CLI_TRY(setup_scanner(&measured->setup, args, LR_STORE_AUTO, listed));
    CLI_TRY(setup_grid(&measured->setup, args, NULL));
    cluster_choose(&measured->cluster, args, &measured->setup.params);
    return LR_OK;
}

lr_status measurement_read_factors(struct measurement *measured)
{
    struct setup *setup = &measured->setup;
    const char *path = measured->request->efficiencies;
    const int count = setup->scanner->num_crystals;
    if (path != NULL) {
        CLI_TRY(lor_factors_efficiencies(setup, path));
        report_info(setup->report, "%s: efficiencies of %d crystals, %g on average", path, count,
                    common_sum(setup->factors.efficiencies, count) / count);
    }
    if (measured->cluster.comm != NULL) {
        const float *efficiencies = setup->factors.efficiencies;
        const int64_t bytes = count * (int64_t)sizeof(*efficiencies);
        CLI_TRY(measurement_compare_contents(measured, "scanner", recon_digest_scanner(setup->scanner)));
        CLI_TRY(measurement_compare_contents(measured, "grid", digest_grid(&setup->grid)));
        CLI_TRY(measurement_compare_contents(measured, "list of efficiencies",
                                             efficiencies != NULL ? recon_digest(0, efficiencies, bytes) : 0));
        CLI_TRY(measurement_compare_contents(measured, "map of attenuation",
                                             setup->mu != NULL ? recon_digest_image(setup->mu) : 0));
    }
    return lor_factors_give(setup, measured->request->mu_as);
}

/* --- images --- */

static lr_status read_image(const struct setup *setup, const char *path, lr_image **image)
{
    if (path == NULL) return LR_OK;
    *image = lr_image_read_on(path, &setup->grid, &setup->report->log);
    if (*image == NULL) return report_reason(setup->report);
    const lr_grid *grid = &setup->grid, *own = &(*image)->grid;
    if (!lr_grid_same(grid, own)) {
        return report_error(
            setup->report, LR_BAD_INPUT,
            "%s: its grid is not the one to reconstruct on: it is %d,%d,%d of %g,%g,%g mm from (%g, %g, "
            "%g) on, and not %d,%d,%d of %g,%g,%g mm from (%g, %g, %g) on: take its grid with --like, "
            "or resample it",
            path, own->size[0], own->size[1], own->size[2], own->voxel_mm[0], own->voxel_mm[1], own->voxel_mm[2],
            own->origin_mm[0], own->origin_mm[1], own->origin_mm[2], grid->size[0], grid->size[1], grid->size[2],
            grid->voxel_mm[0], grid->voxel_mm[1], grid->voxel_mm[2], grid->origin_mm[0], grid->origin_mm[1],
            grid->origin_mm[2]);
    }
    return LR_OK;
}

lr_status measurement_read_images(struct measurement *measured)
{
    const struct recon_request *request = measured->request;
    const char *initial = request->initial;
    const bool is_checkpoint = initial != NULL && lr_path_ends_in(initial, common_hdf5_endings);
    measured->iterations_before = request->iterations_before;
    CLI_TRY(read_image(&measured->setup, request->kappa, &measured->kappa));
    CLI_TRY(read_image(&measured->setup, request->truth, &measured->truth));
    if (is_checkpoint) {
        /* The initial image is the image of the checkpoint. The run that wrote the checkpoint may have had other
           settings and data. */
        const lr_grid *grid = &measured->setup.grid;
        struct report *report = measured->setup.report;
        lr_status status = LR_OK;
        lr_checkpoint checkpoint;
        CLI_TRY(lr_checkpoint_read(initial, NULL, &checkpoint, &report->log));
        if (!lr_grid_same(grid, &checkpoint.grid)) {
            status = report_error(report, LR_BAD_INPUT,
                                  "%s: its grid is not the one to reconstruct on: give the same --grid and --voxel-mm",
                                  initial);
        } else if (checkpoint.num_images != 1 || checkpoint.num_values != lr_grid_num_voxels(&checkpoint.grid)) {
            status = report_error(report, LR_BAD_INPUT,
                                  "%s holds guesses of ranks or coefficients of blobs, and no image to "
                                  "start from: --resume goes on with it",
                                  initial);
        } else {
            measured->initial = lr_image_create(grid, &report->log);
            status = measured->initial != NULL ? LR_OK : report_reason(report);
        }
        if (status == LR_OK) {
            memcpy(measured->initial->values, checkpoint.images,
                   (size_t)checkpoint.num_values * sizeof(*checkpoint.images));
            if (measured->iterations_before == 0) measured->iterations_before = checkpoint.iterations;
        }
        lr_checkpoint_finish(&checkpoint);
        CLI_TRY(status);
    } else {
        CLI_TRY(read_image(&measured->setup, initial, &measured->initial));
    }
    static const char *const names[] = {"image of the prior's weights", "image to start from", "true image"};
    const lr_image *const images[] = {measured->kappa, measured->initial, measured->truth};
    if (measured->cluster.comm == NULL) return LR_OK;
    for (int k = 0; k < 3; k++) {
        const uint64_t digest = images[k] != NULL ? recon_digest_image(images[k]) : 0;
        CLI_TRY(measurement_compare_contents(measured, names[k], digest));
    }
    return measurement_compare_contents(measured, "number of iterations before",
                                        recon_digest(0, &measured->iterations_before, sizeof(int)));
}

/* Elements of list mode are probabilities if they contain solid angles once; a file of corrections contains them, too.
 * Kernels of histo-images add up to 1 in each view, so the factors decide whether elements are probabilities. */
bool measurement_counts_emissions(const struct measurement *measured)
{
    const lr_histo_images *factors = measured->direct_factors;
    if (measured->request->family == RECON_DIRECT) return factors != NULL && factors->are_probabilities;
    const lr_listmode_info *info = lr_listmode_get_info(measured->setup.op);
    return info == NULL || (info->has_solid_angles && measured->request->corrections == NULL);
}

const lr_blobs *measurement_blobs(const struct measurement *measured)
{
    const lr_listmode_info *info = lr_listmode_get_info(measured->setup.op);
    return info != NULL && info->blobs.radius_mm > 0 ? &info->blobs : NULL;
}

lr_status measurement_take_image(const struct measurement *measured, const lr_vector *image, lr_image *to)
{
    const lr_blobs *blobs = measurement_blobs(measured);
    const lr_log *log = &measured->setup.report->log;
    lr_vector voxels = lr_image_vector(to);
    if (blobs == NULL) return lr_vector_copy(image, &voxels);
    const lr_vector_params like = {.count = image->count, .name = "coefficients", .log = log};
    lr_vector coefficients = {0};
    CLI_TRY(lr_vector_create(&like, &coefficients));
    lr_status status = lr_vector_copy(image, &coefficients);
    if (status == LR_OK) status = lr_blobs_evaluate(blobs, coefficients.values, to, log);
    lr_vector_destroy(&coefficients);
    return status;
}

/* --- all kinds --- */

lr_status measurement_count(struct measurement *measured)
{
    const struct recon_request *request = measured->request;
    const lr_lor_data *data = measured->data;
    measured->counts = common_sum(data->values, data->count);
    CLI_TRY(lr_comm_sum_numbers(measured->cluster.comm, &measured->counts, 1));
    if (measured->counts > 0) return LR_OK;
    for (int64_t k = 0; k < data->count; k++)
        if (data->values[k] != 0.0f) return LR_OK; /* the algorithm will report negative values */
    return report_error(measured->setup.report, LR_BAD_INPUT,
                        "%s: holds no counts: every LOR has 0, of which no image comes: is it the right file?",
                        request->data != NULL ? request->data : request->events);
}

void measurement_drop_data(struct measurement *measured)
{
    lr_randoms_destroy(measured->randoms);
    lr_lor_data_destroy(measured->data);
    lr_lor_data_destroy(measured->delayeds);
    lr_lor_data_destroy(measured->additive);
    measured->randoms = NULL;
    measured->data = measured->delayeds = measured->additive = NULL;
}

void measurement_finish(struct measurement *measured)
{
    lr_operator_destroy(measured->setup.op); /* the operator uses factors and events, so it is destroyed before them */
    measured->setup.op = NULL;
    lr_operator_destroy(measured->first_op);
    early_sensitivity_finish(&measured->early); /* the operators that use this sensitivity have been destroyed */
    struct event_share *share = &measured->share;
    for (int k = 0; share->frames != NULL && k < share->num_frames; k++) {
        free(share->frames[k].ranges);
        free(share->frames[k].begins);
        free(share->frames[k].from);
        free(share->frames[k].ends);
    }
    free(share->frames);
    free(share->batches);
    lr_background_wait(&measured->freeing);
    lr_event_list_destroy(measured->list);
    lr_event_list_destroy(measured->all_events);
    lr_event_corrections_destroy(measured->corrections);
    lr_histo_images_destroy(measured->direct_factors);
    direct_finish(&measured->direct);
    measurement_drop_data(measured);
    free(measured->ranges);
    free(measured->frame_prompts);
    free(measured->subset_of);
    lr_image_destroy(measured->initial);
    lr_image_destroy(measured->kappa);
    lr_image_destroy(measured->truth);
    setup_finish(&measured->setup);
}
