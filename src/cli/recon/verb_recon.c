/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The verb recon: one reconstruction, or one for each frame. */
#include "base/path.h"
#include "cli/recon/run.h"
#include "cli/report.h"
#include "cli/stop.h"
#include "cli/verbs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* All data of the verb. A struct of zeros is valid. The struct must not move. */
struct recon {
    struct recon_request request;
    struct measurement measured;
    struct recon_frame *frames; /* owned [num_intervals]; NULL = no frames */
    struct recon_run run;
    struct run_bar bar;
};

/* Counts projections, in units of a projection of all LORs. The sensitivity is one projection. Each iteration has two
 * (forward and back), which need only the LORs with data. A projection of single LORs takes up to five times as long as
 * a projection of the same LORs in whole module pairs (backend native). */
static double count_projections(const struct recon *recon)
{
    const lr_lor_data *data = recon->measured.data;
    const double share = (double)data->count / (double)recon->measured.setup.lors->count;
    const double part = data->index != NULL ? fmin(5.0 * share, 1.0) : 1.0;
    return 1.0 + 2.0 * recon->run.iterations * part;
}

/* Writes the image and its picture, and reports both files. */
static lr_status write_image(const struct recon_run *run, bool stopped)
{
    const struct measurement *measured = run->measured;
    struct report *report = measured->setup.report;
    if (!measured->request->frames_in_one) CLI_TRY(lr_image_write(run->output, run->image, &report->log));
    if (measured->request->picture != NULL) CLI_TRY(recon_draw(run));
    if (stopped) {
        report_warn(report, "stopped after iteration %d, which is in %s", run->iterations_before + run->num_done,
                    run->output);
    }
    recon_report(run, stopped);
    return LR_OK;
}

/* Reconstructs one image. name: the text of the progress bar. */
static lr_status reconstruct_one(struct recon *recon, const char *name)
{
    struct measurement *measured = &recon->measured;
    struct setup *setup = &measured->setup;
    struct recon_run *run = &recon->run;
    bool goes_on = true; /* false with --dry-run */
    CLI_TRY(measurement_count(measured));
    recon_say_corrections(measured);
    recon->bar.name = name;
    recon->bar.subsets = measured->subsets;
    recon->bar.before = 1;
    recon->bar.of_lines = recon->request.family == RECON_LISTMODE;
    recon->bar.each = recon->bar.of_lines ? 2 * (double)measured->data->count
                      : recon->request.family != RECON_CORRESPONDENCE
                          ? 2
                          : (count_projections(recon) - 1) / run->iterations;
    if (setup->op == NULL) { /* histograms have no operator yet */
        setup->params.progress = measured->progress;
        if (measured->subset_of == NULL)
            CLI_TRY(lr_osem_interleave(setup->lors, measured->subsets, &measured->interleave, &setup->report->log));
        /* The projections that a stored matrix would replace are counted by their cost without the matrix. A pass over
         * subsets of interleaved LORs costs more than one projection of all LORs. A list of single LORs does not. */
        const double all = count_projections(recon), cost = lr_osem_cost(setup->lors, measured->interleave);
        setup->params.projections = measured->data->index != NULL ? all - 1 + cost : all * cost;
        CLI_TRY(setup_operator(setup));

        /* On a software renderer, making the matrix takes at least as long as 50 projections. --store auto therefore does
         * not keep it there, which costs time if many projections follow. */
        const lr_operator_info *info = lr_operator_get_info(setup->op);
        if (!setup->dry_run && setup->store == LR_STORE_AUTO && !info->stored && !info->is_gpu &&
            setup->params.projections >= 100 && strcmp(info->backend, "compute") == 0) {
            lr_forecast forecast;
            char size[32];
            CLI_TRY(lr_operator_forecast_projections(setup->op, setup->params.projections, LR_STORE_YES, &forecast));
            report_info(setup->report, "the matrix is not kept: --store yes would take %s",
                        common_bytes(size, (int64_t)forecast.matrix_bytes));
        }

        const double voxels = (double)lr_grid_num_voxels(&setup->grid), bytes = sizeof(float);
        const double array_bytes = bytes * (voxels * (2 + measured->subsets) + (double)measured->data->count);
        const bool is_deflated = lr_path_ends(run->output, ".gz");
        CLI_TRY(forecast_projections(setup,
                                     &(struct forecast_projections){.projections = setup->params.projections,
                                                                    .array_bytes = array_bytes,
                                                                    .output = run->output,
                                                                    .output_bytes = is_deflated ? 0 : bytes * voxels},
                                     &goes_on));
    }
    if (!goes_on) return LR_OK;

    if (measured->cluster.comm != NULL) { /* ranks can combine results only if their models are equal */
        char text[160];
        const lr_operator_info *info = lr_operator_get_info(setup->op);
        snprintf(text, sizeof(text), "%s, %s, %d rays, %d x %d x %d samples, %lld voxels", info->backend,
                 info->mode == LR_MODE_EXACT ? "exact" : "sampled", info->rays, info->samples[0], info->samples[1],
                 info->samples[2], (long long)info->num_voxels);
        CLI_TRY(lr_comm_same(measured->cluster.comm, "backend or model", text));
    }
    if (recon->request.has_psf) CLI_TRY(lr_operator_set_psf(setup->op, recon->request.psf_mm));
    CLI_TRY(checkpoint_resume(&run->checkpoint, &run->iterations, &run->iterations_before));
    recon->bar.iterations = run->iterations;
    if (run->checkpoint.start != NULL && run->iterations == 0) {
        /* The checkpoint has the image after all iterations. This image may not have been written to its file. */
        const lr_vector image = lr_vector_of_floats(run->checkpoint.start, run->checkpoint.read.num_values);
        CLI_TRY(measurement_take_image(measured, &image, run->image));
        return measured->cluster.rank == 0 ? write_image(run, false) : LR_OK;
    }
    CLI_TRY(early_sensitivity_wait(&measured->early, measured->progress, &setup->report->log));
    setup->report->causes = (struct report_causes){recon_list_causes, measured};
    const lr_status status = recon_iterate(run);
    setup->report->causes = (struct report_causes){NULL, NULL};

    /* If Ctrl-C stopped the run, the image of the last complete iteration is written. */
    const bool stopped = status == LR_CANCELLED;
    if (run->num_done == 0 && stopped && measured->cluster.rank == 0)
        report_warn(setup->report, "no iteration was finished: %s was not written", run->output);
    if (run->num_done == 0 || (status != LR_OK && !stopped)) return status;
    if (stopped)
        stop_wait_for_results();
    else
        CLI_TRY(cluster_note_memory(&measured->cluster, setup->report));
    if (measured->cluster.rank != 0) return status;
    CLI_TRY(recon_check_image(run));
    CLI_TRY(write_image(run, stopped));
    return status;
}

/* Writes the frames that were kept. If the run stopped early, these are the first frames. */
static lr_status write_frames(const struct recon *recon)
{
    const struct recon_request *request = &recon->request;
    struct report *report = recon->measured.setup.report;
    const int most = request->num_intervals;
    const lr_image **images = calloc((size_t)most, sizeof(*images));
    if (images == NULL) return report_error(report, LR_FAILED, "no memory for %d frames", most);
    lr_image_frames all = {.images = images, .step_s = request->intervals[0].end_s - request->intervals[0].begin_s};
    for (; all.count < most && recon->frames[all.count].image != NULL; all.count++) {
        const struct recon_interval *interval = &request->intervals[all.count];
        images[all.count] = recon->frames[all.count].image;
        if (fabs(interval->end_s - interval->begin_s - all.step_s) > 1e-6) all.step_s = 0;
    }
    if (all.count > 0 && all.count < most)
        report_warn(report, "%s has %d of %d frames", request->output, all.count, most);
    const lr_status status = all.count > 0 ? lr_image_write_frames(request->output, &all, &report->log) : LR_OK;
    free(images);
    return status;
}

static lr_status reconstruct(struct cli_args *args, struct recon *recon)
{
    static const struct measurement_kind *const kinds[] = {
        [RECON_CORRESPONDENCE] = &histogram_kind, [RECON_DIRECT] = &views_kind, [RECON_LISTMODE] = &events_kind};
    struct measurement *measured = &recon->measured;
    struct recon_run *run = &recon->run;
    const size_t count = (size_t)recon->request.iterations;
    if (recon->request.family == RECON_LISTMODE) CLI_TRY(recon_request_read_listmode(&recon->request, args));
    measured->kind = kinds[recon->request.family];
    measured->subsets = recon->request.subsets;
    measured->progress = &recon->bar.within;
    CLI_TRY(measured->kind->open(measured, args));

    run->measured = measured;
    run->progress = &recon->bar.steps;
    run->output = recon->request.output;
    run->iterations = recon->request.iterations;
    run->iterations_before = measured->iterations_before;
    run->checkpoint.measured = measured;
    run->checkpoint.resumes = recon->request.resumes;
    run->checkpoint.begun_after = run->checkpoint.saved = measured->iterations_before;
    run->image = lr_image_create(&measured->setup.grid, &args->report->log);
    if (run->image == NULL) return report_error(args->report, LR_FAILED, "no memory for the image");
    const int num_frames = recon->request.num_intervals;
    if (num_frames == 0) {
        run->history = calloc(count, sizeof(*run->history));
        run->steps = calloc(count, sizeof(*run->steps));
        if (run->history == NULL || run->steps == NULL)
            return report_error(args->report, LR_FAILED, "no memory for the image");
        return reconstruct_one(recon, "recon");
    }

    struct recon_frame *frames = recon->frames = calloc((size_t)num_frames, sizeof(*frames));
    bool has_room = frames != NULL;
    for (int k = 0; has_room && k < num_frames; k++) {
        char path[PATH_MAX];
        common_numbered_path(path, recon->request.output, "-", k + 1);
        frames[k].output = strdup(recon->request.frames_in_one ? recon->request.output : path);
        frames[k].history = calloc(count, sizeof(*frames[k].history));
        has_room = frames[k].output != NULL && frames[k].history != NULL;
    }
    if (!has_room) return report_error(args->report, LR_FAILED, "no memory for %d frames", num_frames);
    int64_t *range = measured->frame_range, first = range[0];
    lr_status status = checkpoint_find_frame(&run->checkpoint, frames, &first);
    range[0] = first;
    bool any = false;
    for (int k = (int)range[0]; status == LR_OK && k < (int)range[1]; k++) {
        char name[64];
        snprintf(name, sizeof(name), "recon, frame %d of %d", k + 1, num_frames);
        run_bar_init(&recon->bar, args->report);
        run->output = frames[k].output;
        run->history = frames[k].history;
        run->num_done = 0;
        status = measured->kind->open_frame(measured, k);
        status = status == LR_OK ? reconstruct_one(recon, name) : status;
        frames[k].num_done = run->num_done;
        const int64_t num_voxels = lr_grid_num_voxels(&run->image->grid);
        if (recon->request.frames_in_one && measured->cluster.rank == 0 && run->num_done > 0) {
            frames[k].image = lr_image_create(&run->image->grid, &args->report->log);
            if (frames[k].image != NULL)
                memcpy(frames[k].image->values, run->image->values, (size_t)num_voxels * sizeof(float));
            else if (status == LR_OK)
                status = report_reason(args->report);
        }
        frames[k].image_sum = common_sum(run->image->values, num_voxels);
        any = any || run->num_done > 0;
        run->history = NULL;
        measured->kind->close_frame(measured);
        run->iterations = recon->request.iterations;
        run->iterations_before = measured->iterations_before;
        checkpoint_forget(&run->checkpoint);
    }
    if (recon->request.frames_in_one) {
        if (status == LR_CANCELLED) stop_wait_for_results();
        const lr_status written = write_frames(recon);
        if (status == LR_OK || (status == LR_CANCELLED && written != LR_OK)) status = written;
    }
    if (args->report->json && measured->cluster.rank == 0 && (status == LR_OK || any)) {
        measured->setup.op = measured->first_op; /* the JSON output describes this operator */
        recon_report_frames(run, frames, status == LR_CANCELLED);
        measured->setup.op = NULL;
    }
    return status;
}

/* Opens the cluster. Refuses options that do not suit the number of ranks, and names for the images of frames and
 * iterations that would overwrite an input. */
static lr_status begin(struct cli_args *args, struct recon *recon)
{
    const struct recon_request *request = &recon->request;
    struct cluster *cluster = &recon->measured.cluster;
    const int range[2] = {request->iterations_before, request->iterations_before + request->iterations};
    CLI_TRY(args->status);
    CLI_TRY(cluster_open(cluster, args->report, request->exchange));
    if (cluster->comm != NULL && args_has(args, "--dry-run"))
        return report_error(args->report, LR_USAGE, "--dry-run forecasts one process: leave mpirun out");
    if (cluster->comm == NULL && request->combine != RECON_EXACT) {
        return report_error(args->report, LR_USAGE, "--combine %s needs several ranks: mpirun -n 2 loraster recon ...",
                            args_text(args, "--combine"));
    }
    if (request->checkpoint != NULL && !request->resumes && access(request->checkpoint, F_OK) == 0)
        report_info(args->report, "%s is there and is overwritten: --resume would go on from it", request->checkpoint);
    if (request->num_intervals == 0)
        CLI_TRY(outputs_check_iterations(args, request->output, request->save_every, range));
    for (int k = 0; k < request->num_intervals && !request->frames_in_one; k++) {
        char path[PATH_MAX];
        common_numbered_path(path, request->output, "-", k + 1);
        CLI_TRY(outputs_check_name(args, path));
        CLI_TRY(outputs_check_iterations(args, path, request->save_every, range));
    }
    return measurement_compare_options(&recon->measured, args);
}

static lr_status run(struct cli_args *args)
{
    struct recon recon = {.run.start_s = report_seconds()};
    run_bar_init(&recon.bar, args->report);
    recon_request_read(&recon.request, args);
    recon.measured.request = &recon.request;
    lr_status status = begin(args, &recon);
    if (status == LR_OK) status = reconstruct(args, &recon);
    early_sensitivity_give_up(&recon.measured.early);
    status = cluster_close(&recon.measured.cluster, args->report, status);
    checkpoint_forget(&recon.run.checkpoint);
    for (int k = 0; recon.run.steps != NULL && k < recon.request.iterations; k++) free(recon.run.steps[k].weights);
    free(recon.run.steps);
    free(recon.run.history);
    lr_image_destroy(recon.run.image);
    measurement_finish(&recon.measured);
    for (int k = 0; recon.frames != NULL && k < recon.request.num_intervals; k++) {
        free(recon.frames[k].output);
        free(recon.frames[k].history);
        lr_image_destroy(recon.frames[k].image);
    }
    free(recon.frames);
    free(recon.request.intervals);
    return status;
}

const struct cli_verb verb_recon = {
    .name = "recon",
    .summary = "Reconstructs an image from LOR data, histo-images or list mode.",
    .example = "loraster recon --scanner siemens-mmr --events small_listmode_file.l --grid 90,90,32 --voxel-mm "
               "6.6,6.6,8.1 --algorithm osem --subsets 7 --iterations 3 -o head.nii.gz --png head.png",
    .takes_ranks = true,
    .outputs = {{"-o", common_image_endings}, {"--png", common_picture_endings}, {"--checkpoint", common_hdf5_endings}},
    .groups = {{"input and output", recon_input_options},
               {"algorithm and model", recon_algorithm_options},
               {"prior of --algorithm bsrem", recon_prior_options},
               {COMMON_SCANNER_GROUP},
               {COMMON_GRID_GROUP},
               {COMMON_OPERATOR_GROUP},
               {"kernel of --operator direct", direct_kernel_options},
               {"views and device of --operator direct", recon_direct_options},
               {"kernel of --operator listmode", recon_listmode_options},
               {"frames of --operator listmode", recon_frame_options},
               {"checkpoints", recon_checkpoint_options},
               {"several ranks (mpirun -n G loraster recon ...)", recon_ranks_options}},
    .run = run,
};
