/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "common.h"
#include "verbs.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What to reconstruct, as the command line says it. */
struct request {
    const char *data, *events, *crystal_map, *additive, *initial, *output;
    int iterations, save_every;
};

/* One reconstruction under way. */
struct work {
    struct setup setup;
    struct request request;
    lr_lor_data *data, *additive;
    lr_image *initial, *image;
    lr_event_counts events;
    lr_iteration *history; /* owned [iterations], without images */
    int num_done;
};

static struct request read_request(struct cli_args *args)
{
    static const char *const algorithms[] = {"mlem", NULL};
    static const int64_t range[2] = {1, 1000000};
    const struct request request = {
        .data = args_text(args, "--data"),
        .events = args_text(args, "--events"),
        .crystal_map = args_text(args, "--crystal-map"),
        .additive = args_text(args, "--additive"),
        .initial = args_text(args, "--initial"),
        .output = args_required(args, "-o"),
        .iterations = (int)args_int(args, "--iterations", 10, range),
        .save_every = (int)args_int(args, "--save-every", 0, range),
    };
    args_word(args, "--algorithm", algorithms, 0);
    if ((request.data != NULL) == (request.events != NULL)) {
        args_complain(args, "recon needs either --data FILE or --events FILE");
    }
    if (request.crystal_map != NULL && request.events == NULL) {
        args_complain(args, "--crystal-map belongs to --events");
    }
    return request;
}

/* --- reading --- */

static void say_events(struct report *report, const char *path, const lr_event_counts *counts)
{
    report_info(report,
                "%s: %lld prompts, %lld delayeds, %lld time marks; left out: %lld of unknown "
                "crystals, %lld out of coincidence",
                path, (long long)counts->prompts, (long long)counts->delayeds,
                (long long)counts->time_marks, (long long)counts->unknown_crystals,
                (long long)counts->not_in_coincidence);
}

static lr_status read_measurement(struct work *work)
{
    const struct request *request = &work->request;
    struct report *report = work->setup.report;
    if (request->events != NULL) {
        const lr_safir_files files = {request->events, request->crystal_map};
        work->data = lr_safir_read(&files, work->setup.lors, &work->events, &report->log);
    } else {
        work->data = lr_lor_data_read(request->data, work->setup.lors, &report->log);
    }
    if (work->data == NULL) {
        return report_reason(report);
    }
    if (request->events != NULL) {
        say_events(report, request->events, &work->events);
    }
    return LR_OK;
}

static lr_status read_inputs(struct work *work)
{
    const struct request *request = &work->request;
    struct setup *setup = &work->setup;
    CLI_TRY(read_measurement(work));
    if (request->additive != NULL) {
        work->additive = lr_lor_data_read(request->additive, setup->lors, &setup->report->log);
        if (work->additive == NULL) {
            return report_reason(setup->report);
        }
    }
    if (request->initial != NULL) {
        work->initial = lr_image_read(request->initial, &setup->report->log);
        if (work->initial == NULL) {
            return report_reason(setup->report);
        }
        if (!setup_same_grid(&setup->grid, &work->initial->grid)) {
            return report_error(setup->report, LR_BAD_INPUT,
                                "%s: its grid is not the one to reconstruct on: take its grid with "
                                "--like, or resample it",
                                request->initial);
        }
    }
    return LR_OK;
}

/* --- iterating --- */

/* OUT.nii.gz and 5 give OUT.iter5.nii.gz. */
static void iteration_path(char path[PATH_MAX], const char *output, int number)
{
    const char *ending = common_ends_with(output, ".nii.gz") ? ".nii.gz" : ".nii";
    const int stem = (int)(strlen(output) - strlen(ending));
    snprintf(path, PATH_MAX, "%.*s.iter%d%s", stem, output, number, ending);
}

static lr_status save_iteration(const struct work *work, const lr_iteration *done)
{
    char path[PATH_MAX];
    const int64_t count = lr_grid_num_voxels(&work->setup.grid);
    lr_image *copy = lr_image_create(&work->setup.grid, &work->setup.report->log);
    if (copy == NULL) {
        return report_reason(work->setup.report);
    }
    memcpy(copy->values, done->image, (size_t)count * sizeof(*copy->values));
    iteration_path(path, work->request.output, done->number);
    const lr_status status = lr_image_write(path, copy, &work->setup.report->log);
    lr_image_destroy(copy);
    return status;
}

static void say_iteration(const struct work *work, const lr_iteration *done)
{
    report_info(work->setup.report,
                "iteration %d: log-likelihood %.9g, measured %.9g, estimated %.9g counts, %.2f s",
                done->number, done->log_likelihood, done->measured_counts, done->estimated_counts,
                done->seconds);
}

static lr_status on_iteration(void *user, const lr_iteration *done)
{
    struct work *work = user;
    work->history[work->num_done] = *done;
    work->history[work->num_done].image = NULL;
    work->num_done++;
    say_iteration(work, done);
    const int every = work->request.save_every;
    return every > 0 && done->number % every == 0 ? save_iteration(work, done) : LR_OK;
}

static lr_status iterate(struct work *work)
{
    const lr_mlem_params params = {
        .op = work->setup.op,
        .data = work->data,
        .additive = work->additive,
        .initial = work->initial != NULL ? work->initial->values : NULL,
        .iterations = work->request.iterations,
        .iteration = on_iteration,
        .user = work,
        .log = &work->setup.report->log,
        .progress = &work->setup.report->progress,
    };
    return lr_mlem(&params, work->image->values);
}

/* --- reporting --- */

static void iteration_json(struct json *json, const lr_iteration *done)
{
    json_open(json, NULL, '{');
    json_int(json, "number", done->number);
    json_number(json, "log_likelihood", done->log_likelihood);
    json_number(json, "measured_counts", done->measured_counts);
    json_number(json, "estimated_counts", done->estimated_counts);
    json_int(json, "left_out_lors", done->left_out_lors);
    json_number(json, "left_out_counts", done->left_out_counts);
    json_number(json, "sensitive_counts", done->sensitive_counts);
    json_number(json, "seconds", done->seconds);
    json_close(json, '}');
}

static void events_json(struct json *json, const lr_event_counts *events)
{
    json_open(json, "events", '{');
    json_int(json, "prompts", events->prompts);
    json_int(json, "delayeds", events->delayeds);
    json_int(json, "time_marks", events->time_marks);
    json_int(json, "unknown_crystals", events->unknown_crystals);
    json_int(json, "not_in_coincidence", events->not_in_coincidence);
    json_close(json, '}');
}

static void print_json(const struct work *work, bool stopped)
{
    struct json json = common_json_begin("recon");
    setup_json(&work->setup, &json);
    json_text(&json, "algorithm", "mlem");
    json_text(&json, "output", work->request.output);
    json_bool(&json, "stopped", stopped);
    if (work->request.events != NULL) {
        events_json(&json, &work->events);
    }
    json_open(&json, "iterations", '[');
    for (int k = 0; k < work->num_done; k++) {
        iteration_json(&json, &work->history[k]);
    }
    json_close(&json, ']');
    json_number(&json, "emissions",
                common_sum(work->image->values, lr_grid_num_voxels(&work->setup.grid)));
    common_json_end(&json);
}

static void report_result(const struct work *work, bool stopped)
{
    const lr_iteration *last = &work->history[work->num_done - 1];
    report_clear(work->setup.report);
    if (work->setup.report->json) {
        print_json(work, stopped);
        return;
    }
    printf("%s: iteration %d, %.9g emissions, log-likelihood %.9g before its update, %.9g of "
           "%.9g counts used\n",
           work->request.output, last->number,
           common_sum(work->image->values, lr_grid_num_voxels(&work->setup.grid)),
           last->log_likelihood, last->measured_counts,
           last->measured_counts + last->left_out_counts);
}

/* Writes what there is: after the last iteration, or the last one before Ctrl-C. */
static lr_status conclude(struct work *work, lr_status status)
{
    const bool stopped = status == LR_CANCELLED;
    if (work->num_done == 0 || (status != LR_OK && !stopped)) {
        return status;
    }
    CLI_TRY(lr_image_write(work->request.output, work->image, &work->setup.report->log));
    if (stopped) {
        report_warn(work->setup.report, "stopped after iteration %d, which is in %s",
                    work->num_done, work->request.output);
    }
    report_result(work, stopped);
    return status;
}

static lr_status reconstruct(struct cli_args *args, struct work *work)
{
    struct setup *setup = &work->setup;
    CLI_TRY(setup_scanner(setup, args, LR_STORE_AUTO));
    CLI_TRY(common_check_output(args->report, work->request.output, common_image_endings));
    CLI_TRY(setup_grid(setup, args, NULL));
    CLI_TRY(read_inputs(work));
    work->image = lr_image_create(&setup->grid, &setup->report->log);
    work->history = calloc((size_t)work->request.iterations, sizeof(*work->history));
    if (work->image == NULL || work->history == NULL) {
        return report_error(setup->report, LR_FAILED, "no memory for the image");
    }
    CLI_TRY(setup_operator(setup));
    return conclude(work, iterate(work));
}

static lr_status run(struct cli_args *args)
{
    struct work work = {.request = read_request(args)};
    const lr_status status = args->status == LR_OK ? reconstruct(args, &work) : args->status;
    free(work.history);
    lr_image_destroy(work.image);
    lr_image_destroy(work.initial);
    lr_lor_data_destroy(work.additive);
    lr_lor_data_destroy(work.data);
    setup_finish(&work.setup);
    return status;
}

static const struct cli_option options[] = {
    {"--algorithm", "NAME", "mlem, which is the default", false},
    {"--data", "FILE", "LOR data (HDF5)", false},
    {"--events", "FILE", "SAFIR list mode (.clm.safir) instead", false},
    {"--crystal-map", "FILE", "its crystal map; default: *crystal_map.txt beside it", false},
    {"--additive", "FILE", "expected randoms and scatter per LOR (HDF5)", false},
    {"--initial", "IMAGE", "image to start from; default: ones", false},
    {"--iterations", "N", "default 10", false},
    {"--save-every", "K", "also write every K-th iteration, as NAME.iterK.nii.gz", false},
    {"-o", "IMAGE", "image to write (.nii, .nii.gz): emissions per voxel", false},
    {0},
};

static const struct cli_syntax syntax = {
    .verb = "recon",
    .summary = "Reconstructs an image from LOR data or list mode.",
    .example = "loraster recon --scanner safir-dual-ring-prototype --events run.clm.safir "
               "--grid 41,41,17 --voxel-mm 1,1,2.2 --rays 2 --iterations 10 -o run.nii.gz",
    .groups = {{"input and output", options},
               COMMON_SCANNER_GROUP,
               COMMON_GRID_GROUP,
               COMMON_OPERATOR_GROUP,
               COMMON_GENERAL_GROUP},
};

const struct cli_verb verb_recon = {&syntax, run};
