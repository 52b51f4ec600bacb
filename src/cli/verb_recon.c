/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "forecast.h"
#include "recon.h"
#include "stop.h"
#include "verbs.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the command line --- */

static void check_measurement(struct cli_args *args, const struct recon_request *request)
{
    if (request->family == RECON_DIRECT) {
        args_required(args, "--data");
        return;
    }
    if (request->family == RECON_LISTMODE && (request->data != NULL || request->events == NULL))
        args_complain(args, "--operator listmode needs --events FILE, and no --data");
    if ((request->data != NULL) == (request->events != NULL))
        args_complain(args, "recon needs either --data FILE or --events FILE");
    if (request->crystal_map != NULL && request->events == NULL)
        args_complain(args, "--crystal-map belongs to --events");
    if (request->header != NULL && request->events == NULL) args_complain(args, "--header belongs to --events");
    if (request->until_damage && request->events == NULL)
        args_complain(args, "%s belongs to --events", COMMON_UNTIL_DAMAGE);
    if (request->header != NULL && request->crystal_map != NULL) {
        args_complain(args, "--header is of Siemens list mode and --crystal-map of SAFIR's: give "
                            "one of them");
    }
}

/* Whether updates have a step length. */
static bool has_steps(enum recon_algorithm algorithm)
{
    return algorithm == RECON_RAMLA || algorithm == RECON_BSREM;
}

static void check_model(struct cli_args *args, const struct recon_request *request)
{
    if (request->algorithm == RECON_MLEM && args_has(args, "--subsets"))
        args_complain(args, "--subsets belongs to --algorithm osem, ramla or bsrem");
    if (!has_steps(request->algorithm) && (args_has(args, "--relaxation") || args_has(args, "--fall")))
        args_complain(args, "--relaxation and --fall belong to --algorithm ramla or bsrem");
    if (args_has(args, "--after") && request->initial == NULL)
        args_complain(args, "--after says of how many iterations --initial is: give that image");
    if (request->additive != NULL && args_has(args, "--randoms") && request->randoms == RECON_RANDOMS_AUTO)
        args_complain(args, "--additive gives the randoms: leave out --randoms auto");
}

static bool read_steps(struct cli_args *args, const struct recon_request *request)
{
    static const char *const names[] = {"own", "common", NULL};
    const int usual = request->family == RECON_DIRECT;
    if (args_has(args, "--steps") && request->algorithm != RECON_RAMLA)
        args_complain(args, "--steps belongs to --algorithm ramla");
    return args_word(args, "--steps", names, usual) == 0 && request->algorithm == RECON_RAMLA;
}

const char *const recon_algorithms[] = {
    [RECON_MLEM] = "mlem", [RECON_OSEM] = "osem", [RECON_RAMLA] = "ramla", [RECON_BSREM] = "bsrem", NULL};

static void read_algorithm(struct cli_args *args, struct recon_request *request)
{
    static const int64_t range[2] = {1, 1000000};
    request->algorithm = (enum recon_algorithm)args_word(args, "--algorithm", recon_algorithms, RECON_MLEM);
    const bool mlem = request->algorithm == RECON_MLEM, bsrem = request->algorithm == RECON_BSREM;
    const int usual = request->family == RECON_DIRECT ? 10 : 7;
    request->iterations = (int)args_int(args, "--iterations", bsrem ? 30 : mlem ? 10 : 3, range);
    request->iterations_before = (int)args_int(args, "--after", 0, range);
    request->subsets = (int)args_int(args, "--subsets", mlem ? 1 : usual, range);
    request->save_every = (int)args_int(args, "--save-every", 0, range);
    request->relaxation = args_number(args, "--relaxation", bsrem ? 1 : lr_ramla_relaxation(request->subsets), true);
    request->own_steps = read_steps(args, request);
    request->relaxation_fall = args_number(args, "--fall", bsrem ? 0.1 : 0, false);
    if (request->relaxation_fall < 0)
        args_complain(args, "--fall %s: it must not be negative", args_text(args, "--fall"));
    recon_read_prior(args, request);
}

static void read_psf(struct cli_args *args, struct recon_request *request)
{
    request->has_psf = args_triple(args, "--psf-mm", true, request->psf_mm);
    for (int axis = 0; request->has_psf && axis < 3; axis++) {
        if (!(request->psf_mm[axis] >= 0)) {
            args_complain(args, "--psf-mm %s: FWHMs must not be negative", args_text(args, "--psf-mm"));
            return;
        }
    }
}

static void read_model(struct cli_args *args, struct recon_request *request)
{
    static const char *const randoms[] = {"auto", "none", NULL};
    request->randoms = (enum recon_randoms)args_word(args, "--randoms", randoms, RECON_RANDOMS_AUTO);
    request->mu_as = lor_factors_mu_as(args, MU_FACTORS);
    read_psf(args, request);
}

static struct recon_request read_request(struct cli_args *args)
{
    static const char *const families[] = {"correspondence", "direct", "listmode", NULL};
    struct recon_request request = {
        .family = (enum recon_family)args_word(args, "--operator", families, 0),
        .data = args_text(args, "--data"),
        .events = args_text(args, "--events"),
        .crystal_map = args_text(args, "--crystal-map"),
        .header = args_text(args, "--header"),
        .until_damage = args_has(args, COMMON_UNTIL_DAMAGE),
        .additive = args_text(args, "--additive"),
        .efficiencies = args_text(args, "--efficiencies"),
        .corrections = args_text(args, "--corrections"),
        .initial = args_text(args, "--initial"),
        .truth = args_text(args, "--truth"),
        .output = args_required(args, "-o"),
        .picture = args_text(args, "--png"),
    };
    read_algorithm(args, &request);
    read_model(args, &request);
    recon_read_bootstrap(args, &request);
    recon_read_ranks(args, &request);
    recon_read_checkpoint(args, &request);
    request.without_fit = request.family == RECON_DIRECT && !args_has(args, "--fit");
    recon_check_family(args, request.family);
    check_measurement(args, &request);
    check_model(args, &request);
    return request;
}

/* --- iterating --- */

static lr_status save_iteration(const struct recon *recon, const lr_iteration *done)
{
    CLI_TRY(recon_take_image(recon, done->image));
    return common_write_iteration(recon->setup.report, &(struct common_iteration){.output = recon->request.output,
                                                                                  .number = done->number,
                                                                                  .grid = &recon->setup.grid,
                                                                                  .values = recon->image->values});
}

static lr_status on_iteration(void *user, const lr_iteration *done)
{
    struct recon *recon = user;
    CLI_TRY(recon_note_step(recon, done->image));
    recon->history[recon->num_done] = *done;
    recon->history[recon->num_done].image = NULL;
    recon->num_done++;
    recon_say_iteration(recon, done);
    CLI_TRY(recon_save_checkpoint(recon, done));
    const int every = recon->request.save_every;
    const bool is_due = every > 0 && done->number % every == 0;
    return is_due && recon->cluster.rank == 0 ? save_iteration(recon, done) : LR_OK;
}

/* ML-EM is OSEM with one subset. */
static lr_status iterate(struct recon *recon)
{
    static const lr_recon_algorithm rules[] = {[RECON_MLEM] = LR_ALGORITHM_OSEM,
                                               [RECON_OSEM] = LR_ALGORITHM_OSEM,
                                               [RECON_RAMLA] = LR_ALGORITHM_RAMLA,
                                               [RECON_BSREM] = LR_ALGORITHM_BSREM};
    const struct recon_request *request = &recon->request;
    const bool steps = has_steps(request->algorithm);
    lr_recon_params params = {
        .op = recon->setup.op,
        .data = recon->inputs.data,
        .additive = recon->inputs.additive,
        .initial = recon->start != NULL            ? recon->start
                   : recon->inputs.initial != NULL ? recon->inputs.initial->values
                                                   : NULL,
        .iterations = request->iterations,
        .iterations_before = request->iterations_before,
        .subsets = request->subsets,
        .without_fit = request->without_fit,
        .algorithm = rules[request->algorithm],
        .relaxation = steps ? request->relaxation : 0,
        .relaxation_fall = steps ? request->relaxation_fall : 0,
        .own_steps = request->own_steps,
        .prior = request->has_prior ? &request->prior : NULL,
        .iteration = on_iteration,
        .user = recon,
        .comm = recon->cluster.comm,
        .subset_of = recon->share.subset_of,
        .interleave = recon->share.interleave,
        .log = &recon->setup.report->log,
        .progress = &recon->bar.steps,
    };
    if (recon->request.family == RECON_LISTMODE) {
        params.additive_sum = recon->inputs.additive_sum;
    } else if (recon->inputs.randoms != NULL) {
        params.additive_source = lr_crystal_product_source(&recon->inputs.randoms->product);
        params.additive_sum = recon->inputs.randoms->delayeds;
    }
    return recon_combine(recon, &params);
}

/* --- the whole --- */

/* Every count is of an emission, unless it is of the additive term. RAMLA and BSREM get there in time
 * only, and a prior may keep from it. */
static void warn_of_emissions(const struct recon *recon, double emissions)
{
    const double counts = recon->history[recon->num_done - 1].measured_counts;
    const bool has_additive = recon->inputs.additive != NULL || recon->inputs.randoms != NULL;
    const bool is_scaled = recon->request.family != RECON_DIRECT && recon_counts_emissions(recon);
    if (is_scaled && !has_additive && !has_steps(recon->request.algorithm) && emissions < counts) {
        report_warn(recon->setup.report,
                    "%.6g counts give %.6g emissions, fewer than one each: elements times factors "
                    "exceed 1: are efficiencies or factors in percent, or their inverses "
                    "(normalisation)?",
                    counts, emissions);
    }
}

/* RAMLA nears the number of counts in steps; EM has it after each. */
static void warn_of_slow_steps(const struct recon *recon)
{
    const lr_iteration *last = &recon->history[recon->num_done - 1];
    const double share = last->estimated_counts / last->measured_counts;
    if (recon->request.algorithm == RECON_RAMLA && last->has_fit && fabs(share - 1) > 0.05) {
        report_warn(recon->setup.report, "the image explains %.4g of the %.4g counts: %s", last->estimated_counts,
                    last->measured_counts,
                    recon->request.own_steps ? "take more --iterations, or --algorithm osem"
                                             : "common steps go by the largest sensitivity, and are small where "
                                               "attenuation makes it less: take --steps own, or more --iterations");
    }
}

static lr_status check_image(const struct recon *recon)
{
    const int64_t count = lr_grid_num_voxels(&recon->setup.grid);
    CLI_TRY(common_check_result(
        recon->setup.report, &(struct common_result){.output = recon->request.output,
                                                     .values = recon->image->values,
                                                     .count = count,
                                                     .causes = "the data have no counts that the grid's voxels could "
                                                               "have caused: are they the right data, is the grid in "
                                                               "the scanner, and is --additive no more than a part of "
                                                               "them?"}));
    warn_of_slow_steps(recon);
    warn_of_emissions(recon, common_sum(recon->image->values, count));
    return LR_OK;
}

/* Writes what there is: after the last iteration, or the last one before Ctrl-C. */
static lr_status conclude(struct recon *recon, lr_status status)
{
    const bool stopped = status == LR_CANCELLED;
    if (recon->num_done == 0 || (status != LR_OK && !stopped)) return status;
    if (stopped) stop_wait_for_results();
    CLI_TRY(stopped ? LR_OK : cluster_note_memory(&recon->cluster, recon->setup.report));
    if (recon->cluster.rank != 0) return status;
    CLI_TRY(check_image(recon));
    CLI_TRY(lr_image_write(recon->request.output, recon->image, &recon->setup.report->log));
    if (recon->request.picture != NULL) CLI_TRY(recon_draw(recon));
    if (stopped) {
        report_warn(recon->setup.report, "stopped after iteration %d, which is in %s",
                    recon->request.iterations_before + recon->num_done, recon->request.output);
    }
    recon_report(recon, stopped);
    return status;
}

static lr_status check_counts(struct recon *recon)
{
    const lr_lor_data *data = recon->inputs.data;
    const char *path = recon->request.data != NULL ? recon->request.data : recon->request.events;
    double counts = common_sum(data->values, data->count);
    CLI_TRY(lr_comm_sum_numbers(recon->cluster.comm, &counts, 1));
    recon->inputs.counts = counts;
    if (counts > 0) return LR_OK;
    for (int64_t k = 0; k < data->count; k++)
        if (data->values[k] != 0.0f) return LR_OK; /* negative ones: the algorithm names the first */
    return report_error(recon->setup.report, LR_BAD_INPUT,
                        "%s: holds no counts: every LOR has 0, of which no image comes: is it the "
                        "right file?",
                        path);
}

/* The file that has the scanner where none is named: the crystal map, or PETSIRD events. */
static const char *find_described(const struct recon_request *request)
{
    const bool is_petsird = request->crystal_map == NULL && request->events != NULL &&
                            lr_events_recognise(request->events) == LR_EVENTS_PETSIRD;
    return is_petsird ? request->events : request->crystal_map;
}

static lr_status open_scanner(struct cli_args *args, struct recon *recon)
{
    const char *map = find_described(&recon->request);
    lr_scanner *listed = NULL;
    if (map != NULL && !args_has(args, "--scanner")) {
        listed = lr_scanner_read(map, &args->report->log);
        if (listed == NULL) return report_reason(args->report);
    }
    return setup_scanner_or(&recon->setup, args, LR_STORE_AUTO, listed);
}

/* Scanner, data and operator. */
static lr_status open_all(struct cli_args *args, struct recon *recon)
{
    struct setup *setup = &recon->setup;
    if (recon->request.family == RECON_DIRECT) {
        CLI_TRY(recon_open_direct(recon, args));
        return recon_read_images(recon);
    }
    CLI_TRY(open_scanner(args, recon));
    CLI_TRY(setup_grid(setup, args, NULL));
    cluster_choose(&recon->cluster, args, &setup->params);
    return recon->request.family == RECON_LISTMODE ? recon_open_listmode(recon, args) : recon_read_inputs(recon);
}

/* Of all LORs, forward or back: the sensitivity, and both ways of each iteration where there is
 * data. LORs one by one take longer than in whole pairs of modules: five times on backend native. */
static double count_projections(const struct recon *recon)
{
    const lr_lor_data *data = recon->inputs.data;
    const double share = (double)data->count / (double)recon->setup.lors->count;
    const double part = data->index != NULL ? fmin(5.0 * share, 1.0) : 1.0;
    return 1.0 + 2.0 * recon->request.iterations * part;
}

/* What the bar has to know of the work. */
static void open_bar(struct recon *recon)
{
    const struct recon_request *request = &recon->request;
    struct run_bar *bar = &recon->bar;
    bar->name = recon->frame_name != NULL ? recon->frame_name : "recon";
    bar->iterations = request->iterations;
    bar->subsets = request->subsets;
    bar->before = 1;
    bar->each = request->family != RECON_CORRESPONDENCE ? 2 : (count_projections(recon) - 1) / bar->iterations;
}

/* *goes_on: not with --dry-run. */
static lr_status forecast(struct recon *recon, bool *goes_on)
{
    const lr_lor_data *data = recon->inputs.data;
    const double voxels = (double)lr_grid_num_voxels(&recon->setup.grid), bytes = sizeof(float);
    const bool is_deflated = common_ends_with(recon->request.output, ".gz");
    return forecast_projections(
        &recon->setup,
        &(struct forecast_projections){.projections = count_projections(recon),
                                       .array_bytes =
                                           bytes * (voxels * (2 + recon->request.subsets) + (double)data->count),
                                       .output = recon->request.output,
                                       .output_bytes = is_deflated ? 0 : bytes * voxels},
        goes_on);
}

/* All iterations are in the checkpoint; their image may not have been written. */
static lr_status write_finished(struct recon *recon)
{
    const lr_vector image = lr_vector_of_floats(recon->start, recon->checkpoint.num_values);
    CLI_TRY(recon_take_image(recon, &image));
    if (recon->cluster.rank != 0) return LR_OK;
    CLI_TRY(lr_image_write(recon->request.output, recon->image, &recon->setup.report->log));
    CLI_TRY(recon->request.picture != NULL ? recon_draw(recon) : LR_OK);
    recon_report(recon, false);
    return LR_OK;
}

/* Of the data at hand. */
static lr_status reconstruct_one(struct recon *recon)
{
    struct setup *setup = &recon->setup;
    bool goes_on = true;
    CLI_TRY(check_counts(recon));
    open_bar(recon);
    if (setup->op == NULL) {
        setup->params.progress = &recon->bar.within;
        setup->params.projections = count_projections(recon);
        CLI_TRY(setup_operator(setup));
        CLI_TRY(forecast(recon, &goes_on));
    }
    if (!goes_on) return LR_OK;
    CLI_TRY(recon_compare_operators(recon));
    if (recon->request.has_psf) CLI_TRY(lr_operator_set_psf(setup->op, recon->request.psf_mm));
    CLI_TRY(recon_resume(recon));
    if (recon->start != NULL && recon->request.iterations == 0) return write_finished(recon);
    const lr_status known = early_sensitivity_wait(&recon->early, &recon->bar.within, &setup->report->log);
    return conclude(recon, known == LR_OK ? iterate(recon) : known);
}

static lr_status reconstruct_frames(struct recon *recon)
{
    const int iterations = recon->request.iterations;
    lr_status status = recon_find_frame(recon);
    for (int k = (int)recon->frames.range[0]; status == LR_OK && k < (int)recon->frames.range[1]; k++) {
        char name[64];
        snprintf(name, sizeof(name), "recon, frame %d of %d", k + 1, recon->frames.count);
        run_bar_init(&recon->bar, recon->setup.report);
        status = recon_open_frame(recon, k);
        recon->frame_name = name;
        status = status == LR_OK ? reconstruct_one(recon) : status;
        recon_close_frame(recon, k);
        recon->request.iterations = iterations;
        recon->request.iterations_before = recon->request.first_after;
        recon_forget_checkpoint(recon);
    }
    if (recon->setup.report->json && recon->cluster.rank == 0 && (status == LR_OK || recon_has_frames(recon))) {
        recon->setup.op = recon->frames.first; /* of which JSON tells */
        recon_frames_json(recon, status == LR_CANCELLED);
        recon->setup.op = NULL;
    }
    return status;
}

static lr_status reconstruct(struct cli_args *args, struct recon *recon)
{
    struct setup *setup = &recon->setup;
    const bool has_frames = recon->frames.count > 0;
    CLI_TRY(open_all(args, recon));
    recon->request.first_after = recon->saved = recon->request.iterations_before;
    recon->image = lr_image_create(&setup->grid, &setup->report->log);
    recon->history = has_frames ? NULL : calloc((size_t)recon->request.iterations, sizeof(*recon->history));
    recon->steps = has_frames ? NULL : calloc((size_t)recon->request.iterations, sizeof(*recon->steps));
    if (recon->image == NULL || ((recon->history == NULL || recon->steps == NULL) && !has_frames))
        return report_error(setup->report, LR_FAILED, "no memory for the image");
    return has_frames ? reconstruct_frames(recon) : reconstruct_one(recon);
}

/* What several ranks cannot do, and what one alone has not. */
static lr_status check_ranks(const struct recon *recon, const struct cli_args *args)
{
    if (recon->cluster.comm != NULL && args_has(args, "--dry-run"))
        return report_error(args->report, LR_USAGE, "--dry-run forecasts one process: leave mpirun out");
    return recon->cluster.comm != NULL || recon->request.combine == RECON_EXACT
               ? LR_OK
               : report_error(args->report, LR_USAGE,
                              "--combine %s needs several ranks: mpirun -n 2 loraster recon ...",
                              args_text(args, "--combine"));
}

static lr_status run(struct cli_args *args)
{
    struct recon recon = {.request = read_request(args), .start_s = report_seconds()};
    run_bar_init(&recon.bar, args->report);
    recon_read_frames(args, &recon);
    lr_status status = args->status;
    status = status == LR_OK ? cluster_open(&recon.cluster, args->report, recon.request.exchange) : status;
    status = status == LR_OK ? check_ranks(&recon, args) : status;
    status = status == LR_OK ? recon_check_names(args, &recon) : status;
    status = status == LR_OK ? recon_compare_options(&recon, args) : status;
    status = status == LR_OK ? reconstruct(args, &recon) : status;
    early_sensitivity_give_up(&recon.early);
    status = cluster_close(&recon.cluster, args->report, status);
    recon_forget_checkpoint(&recon);
    recon_finish_share(&recon);
    recon_own_finish(&recon.own);
    free(recon.history);
    recon_finish_steps(&recon);
    lr_image_destroy(recon.image);
    lr_operator_destroy(recon.setup.op); /* before the factors that it asks */
    recon.setup.op = NULL;
    recon_finish_frames(&recon);
    early_sensitivity_finish(&recon.early); /* after those that took it */
    recon_finish_direct(&recon);
    recon_finish_inputs(&recon.inputs);
    setup_finish(&recon.setup);
    return status;
}

static const struct cli_option input_options[] = {
    {"--operator", "FAMILY",
     "correspondence; direct: histo-images; listmode: events one by one, with their times of "
     "flight; "
     "default correspondence",
     false},
    {"--data", "FILE", "LOR data (HDF5, or STIR's .hs); direct: histo-images (HDF5)", false},
    {"--events", "FILE", "list mode instead: PETSIRD, CASToR (.Cdh), SAFIR, Siemens (.l), GE (.BLF)", false},
    {"--crystal-map", "FILE",
     "of SAFIR (*crystal_map.txt) or CASToR (.lut, .geom); default: the one beside; without "
     "--scanner it "
     "is the scanner, too",
     false},
    {"--header", "FILE", "of Siemens events; default: the *.hdr* beside that names them", false},
    COMMON_UNTIL_DAMAGE_OPTION,
    {"--bootstrap", "SEED", "draw the counts or events again from themselves: a replicate", false},
    {"-o", "IMAGE", "image to write (.nii.gz, .hv, .mhd, .npy ...): emissions per voxel", false},
    {"--png", "FILE", "also draw three slices through the centre of the activity", false},
    FORECAST_DRY_RUN,
    {"--save-every", "K", "also write every K-th iteration, as NAME.iterK before the ending", false},
    {0},
};

static const struct cli_option algorithm_options[] = {
    {"--algorithm", "NAME", "mlem, osem, ramla, or bsrem (with a prior); default mlem", false},
    {"--iterations", "N", "default 10; of osem and ramla 3; of bsrem 30", false},
    {"--subsets", "N", "of osem, ramla and bsrem; default 7, of direct 10", false},
    {"--relaxation", "L",
     "ramla, bsrem: of the first iteration; above 1 voxels may become 0; default 1, of "
     "ramla with M subsets 10 / (9 + "
     "M)",
     false},
    {"--steps", "WHOSE",
     "ramla: own, by the voxel's sensitivity, or common, by the largest of all; default own, of "
     "direct common",
     false},
    {"--fall", "F", "ramla, bsrem: iteration k = 0, 1, ... has L / (1 + F k); default 0, of bsrem 0.1", false},
    {"--initial", "IMAGE", "image to start from, or a checkpoint (.h5); default: uniform", false},
    {"--after", "N",
     "of how many iterations --initial is, as a checkpoint tells: --fall and numbers go on from "
     "there",
     false},
    {"--truth", "IMAGE", "tell in --json how far each iteration's image is from this one", false},
    {"--additive", "FILE", "expected randoms and scatter, as --data", false},
    {"--factors", "FILE", "direct: attenuation, efficiencies, geometry: histo-images", false},
    {"--fit", NULL,
     "direct: tell the log-likelihood of each iteration, for which a graphics processor takes "
     "longer",
     false},
    {"--randoms", "HOW", "auto (by fan sums where the events have delayeds) or none", false},
    {"--efficiencies", "FILE", "one number per crystal (.npy, text or .petsird)", false},
    LOR_FACTORS_MU_AS("factors"),
    {"--psf-mm", "FWHM|X,Y,Z", "resolution in image space: a Gaussian of this width; default none", false},
    {0},
};

static const struct cli_syntax syntax = {
    .verb = "recon",
    .summary = "Reconstructs an image from LOR data or list mode.",
    .example = "loraster recon --scanner siemens-mmr --events small_listmode_file.l "
               "--grid 90,90,32 --voxel-mm 6.6,6.6,8.1 --algorithm osem --subsets 7 "
               "--iterations 3 -o head.nii.gz --png head.png",
    .takes_ranks = true,
    .outputs = {{"-o", common_image_endings}, {"--png", common_picture_endings}, {"--checkpoint", common_hdf5_endings}},
    .groups = {{"input and output", input_options},
               {"algorithm and model", algorithm_options},
               {"prior of --algorithm bsrem", recon_prior_options},
               COMMON_SCANNER_GROUP,
               COMMON_GRID_GROUP,
               COMMON_OPERATOR_GROUP,
               {"kernel of --operator direct", direct_kernel_options},
               {"kernel of --operator listmode", recon_listmode_options},
               {"frames of --operator listmode", recon_frame_options},
               {"checkpoints", recon_checkpoint_options},
               {"several ranks (mpirun -n G loraster recon ...)", recon_ranks_options},
               COMMON_GENERAL_GROUP},
};

const struct cli_verb verb_recon = {&syntax, run};
