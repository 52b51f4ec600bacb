/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "recon.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- the measurement --- */

void recon_say_events(const struct recon *recon)
{
    const lr_event_counts *counts = &recon->inputs.events;
    report_info(recon->setup.report,
                "%s: %lld prompts, %lld delayeds, %lld time marks; left out: %lld of unknown "
                "crystals, %lld out of coincidence",
                recon->request.events, (long long)counts->prompts, (long long)counts->delayeds,
                (long long)counts->time_marks, (long long)counts->unknown_crystals,
                (long long)counts->not_in_coincidence);
    const double share = (double)counts->not_in_coincidence / fmax(1.0, (double)counts->prompts);
    if (share > 0.1) {
        report_warn(recon->setup.report,
                    "%s: %.3g %% of the prompts join crystals that are not in coincidence: are "
                    "they of this scanner, "
                    "and are its rules (field_of_view_mm, min_module_difference, "
                    "max_ring_difference) those of the "
                    "measurement?",
                    recon->request.events, 100.0 * share);
    }
}

/* The format by what was given with the events, else by the file itself. */
static lr_events_format choose_format(const struct recon_request *request)
{
    if (request->header != NULL) return LR_EVENTS_SIEMENS;
    const bool is_map = request->crystal_map != NULL && lr_events_recognise(request->events) != LR_EVENTS_CASTOR;
    return is_map ? LR_EVENTS_SAFIR : LR_EVENTS_UNKNOWN;
}

lr_events_source recon_events_source(const struct recon *recon)
{
    const struct recon_request *request = &recon->request;
    return (lr_events_source){
        .path = request->events,
        .format = choose_format(request),
        .companion = request->header != NULL ? request->header : request->crystal_map,
        .scanner = recon->setup.scanner,
        .until_damage = request->until_damage,
        .threads = recon->setup.params.threads,
        .log = &recon->setup.report->log,
    };
}

void recon_say_binned(struct recon *recon, const lr_events_info *info)
{
    recon->inputs.events = info->counts;
    if (info->has_tof) {
        report_info(recon->setup.report, "%s: its times of flight are not used: --operator listmode uses them",
                    recon->request.events);
    }
    recon_say_events(recon);
}

static lr_status read_events(struct recon *recon)
{
    struct recon_inputs *inputs = &recon->inputs;
    const lr_events_source source = recon_events_source(recon);
    lr_prompts_delayeds found;
    lr_events_info info;
    const lr_status status = lr_events_bin(&source, recon->setup.lors, &found, &info);
    if (status == LR_OK) {
        inputs->data = found.prompts;
        inputs->delayeds = found.delayeds;
        recon_say_binned(recon, &info);
    }
    lr_events_info_finish(&info);
    return status;
}

static lr_status read_measurement(struct recon *recon)
{
    const char *path = recon->request.data;
    if (path == NULL) return read_events(recon);
    recon->inputs.data = lr_lor_data_read(path, recon->setup.lors, &recon->setup.report->log);
    return recon->inputs.data != NULL ? LR_OK : report_reason(recon->setup.report);
}

/* --- the additive term --- */

lr_status recon_estimate_randoms(struct recon *recon, const double *ends, double prompts)
{
    struct recon_inputs *inputs = &recon->inputs;
    struct report *report = recon->setup.report;
    const lr_lors *lors = recon->setup.lors;
    inputs->randoms = ends != NULL ? lr_randoms_of_ends(lors, ends, &report->log)
                                   : lr_randoms_estimate(lors, inputs->delayeds, &report->log);
    if (inputs->randoms == NULL) return report_reason(report);
    report_info(report,
                "randoms by fan sums of the delayeds, %d crystals to each: %.6g in all, %.2f %% of "
                "the prompts",
                inputs->randoms->pooled, inputs->randoms->delayeds,
                prompts > 0 ? 100 * inputs->randoms->delayeds / prompts : 0);
    return LR_OK;
}

static lr_status read_additive(struct recon *recon)
{
    struct recon_inputs *inputs = &recon->inputs;
    if (recon->request.additive != NULL) {
        inputs->additive = lr_lor_data_read(recon->request.additive, recon->setup.lors, &recon->setup.report->log);
        return inputs->additive != NULL ? LR_OK : report_reason(recon->setup.report);
    }
    const bool wanted = recon->request.randoms == RECON_RANDOMS_AUTO;
    return wanted && inputs->delayeds != NULL && inputs->delayeds->count > 0
               ? recon_estimate_randoms(recon, NULL, common_sum(inputs->data->values, inputs->data->count))
               : LR_OK;
}

/* --- factors --- */

static lr_status read_efficiencies(struct recon *recon)
{
    struct setup *setup = &recon->setup;
    const char *path = recon->request.efficiencies;
    const int count = setup->scanner->num_crystals;
    CLI_TRY(lor_factors_efficiencies(setup, path));
    report_info(setup->report, "%s: efficiencies of %d crystals, %g on average", path, count,
                common_sum(setup->factors.efficiencies, count) / count);
    return LR_OK;
}

lr_status recon_read_factors(struct recon *recon)
{
    if (recon->request.efficiencies != NULL) CLI_TRY(read_efficiencies(recon));
    CLI_TRY(recon_compare_factors(recon));
    return lor_factors_give(&recon->setup, recon->request.mu_as);
}

/* --- the rest --- */

static lr_status read_image(const struct setup *setup, const char *path, lr_image **image)
{
    if (path == NULL) return LR_OK;
    *image = lr_image_read_on(path, &setup->grid, &setup->report->log);
    if (*image == NULL) return report_reason(setup->report);
    if (!setup_same_grid(&setup->grid, &(*image)->grid)) {
        return report_error(setup->report, LR_BAD_INPUT,
                            "%s: its grid is not the one to reconstruct on: take its grid with "
                            "--like, or resample it",
                            path);
    }
    return LR_OK;
}

static lr_status check_initial(const struct recon *recon, const lr_checkpoint *checkpoint)
{
    const char *path = recon->request.initial;
    if (!setup_same_grid(&recon->setup.grid, &checkpoint->grid)) {
        return report_error(recon->setup.report, LR_BAD_INPUT,
                            "%s: its grid is not the one to reconstruct on: give the same --grid "
                            "and --voxel-mm",
                            path);
    }
    return checkpoint->num_images == 1 && checkpoint->num_values == lr_grid_num_voxels(&checkpoint->grid)
               ? LR_OK
               : report_error(recon->setup.report, LR_BAD_INPUT,
                              "%s holds guesses of ranks or coefficients of blobs, and no image to "
                              "start from: --resume goes on with it",
                              path);
}

/* A checkpoint serves other settings and data, too: its image, and of how many iterations that is. */
static lr_status read_checkpoint(struct recon *recon)
{
    struct recon_request *request = &recon->request;
    lr_checkpoint checkpoint;
    CLI_TRY(lr_checkpoint_read(request->initial, NULL, &checkpoint, &recon->setup.report->log));
    lr_status status = check_initial(recon, &checkpoint);
    if (status == LR_OK) {
        recon->inputs.initial = lr_image_create(&recon->setup.grid, &recon->setup.report->log);
        status = recon->inputs.initial != NULL ? LR_OK : report_reason(recon->setup.report);
    }
    if (status == LR_OK) {
        memcpy(recon->inputs.initial->values, checkpoint.images,
               (size_t)checkpoint.num_values * sizeof(*checkpoint.images));
        request->iterations_before =
            request->iterations_before > 0 ? request->iterations_before : checkpoint.iterations;
    }
    lr_checkpoint_finish(&checkpoint);
    return status;
}

lr_status recon_read_images(struct recon *recon)
{
    struct recon_inputs *inputs = &recon->inputs;
    CLI_TRY(read_image(&recon->setup, recon->request.kappa, &inputs->kappa));
    recon->request.prior.kappa = inputs->kappa != NULL ? inputs->kappa->values : NULL;
    CLI_TRY(read_image(&recon->setup, recon->request.truth, &inputs->truth));
    const char *initial = recon->request.initial;
    const bool is_checkpoint = initial != NULL && (common_ends_with(initial, common_hdf5_endings[0]) ||
                                                   common_ends_with(initial, common_hdf5_endings[1]));
    CLI_TRY(is_checkpoint ? read_checkpoint(recon) : read_image(&recon->setup, initial, &inputs->initial));
    return recon_compare_images(recon);
}

/* A replicate of counts per LOR depends on their places among all: events are counted whole for it. */
static lr_status read_own(struct recon *recon)
{
    if (recon->request.bootstraps && recon->request.events != NULL) {
        CLI_TRY(read_measurement(recon));
        CLI_TRY(recon_bootstrap_counts(recon));
        CLI_TRY(recon->request.additive == NULL ? read_additive(recon) : LR_OK);
    }
    return recon_own_pairs(recon);
}

static lr_status read_all(struct recon *recon)
{
    CLI_TRY(read_measurement(recon));
    CLI_TRY(recon_bootstrap_counts(recon));
    CLI_TRY(read_additive(recon));
    return recon->request.checkpoint != NULL ? recon_digest_data(recon, recon->setup.lors) : LR_OK;
}

lr_status recon_read_inputs(struct recon *recon)
{
    CLI_TRY(recon->cluster.comm != NULL ? read_own(recon) : read_all(recon));
    CLI_TRY(recon_read_factors(recon));
    return recon_read_images(recon);
}

void recon_finish_inputs(struct recon_inputs *inputs)
{
    lr_randoms_destroy(inputs->randoms);
    lr_image_destroy(inputs->initial);
    lr_image_destroy(inputs->kappa);
    lr_image_destroy(inputs->truth);
    lr_lor_data_destroy(inputs->additive);
    lr_lor_data_destroy(inputs->delayeds);
    lr_lor_data_destroy(inputs->data);
    lr_background_wait(&inputs->freeing);
    lr_event_list_destroy(inputs->list);
    lr_event_corrections_destroy(inputs->corrections);
    *inputs = (struct recon_inputs){0};
}
