/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * phantom, simulate. */
#include "base/path.h"
#include "common.h"
#include "verbs.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reads an option's positive number; 0 if the option is not given. */
static double read_number(struct cli_args *args, const char *name)
{
    const char *text = args_text(args, name);
    char *end = NULL;
    const double value = text != NULL ? strtod(text, &end) : 0;
    if (text != NULL && (end == text || *end != '\0' || !(isfinite(value) && value > 0))) {
        args_complain(args, "%s %s: a positive number is needed", name, text);
        return 0;
    }
    return value;
}

static lr_status run(struct cli_args *args)
{
    struct setup setup = {.report = args->report};
    lr_image *image = NULL;
    const char *output = args_required(args, "-o");
    const char *name = args->num_positional == 1 ? args->positional[0] : NULL;
    double at_mm[3];
    const lr_phantom_params params = {.name = name,
                                      .radius_mm = read_number(args, "--radius-mm"),
                                      .contrast = read_number(args, "--contrast"),
                                      .at_mm = args_triple(args, "--at", false, at_mm) ? at_mm : NULL,
                                      .value = read_number(args, "--value"),
                                      .log = &args->report->log,
                                      .progress = &args->report->progress};
    const bool has_place = name != NULL && (strcmp(name, "point") == 0 || strcmp(name, "line") == 0);
    if (args->num_positional != 1) args_complain(args, "phantom needs the name of one, such as six-spheres");
    const bool has_contrast = name == NULL || strstr(name, "spheres") != NULL;
    if (params.contrast > 0 && !has_contrast)
        report_warn(args->report, "--contrast has no effect: %s has no spheres", name);
    if (params.at_mm != NULL && !has_place) args_complain(args, "--at belongs to the phantoms point and line");
    lr_status status = args->status;
    if (status == LR_OK) status = setup_grid(&setup, args, NULL);
    if (status != LR_OK) goto finish;
    image = lr_phantom_create(&params, &setup.grid);
    status = image != NULL ? lr_image_write(output, image, &args->report->log) : report_reason(args->report);
    if (status != LR_OK) goto finish;

    const double sum = common_sum(image->values, lr_grid_num_voxels(&image->grid));
    report_clear(args->report);
    if (sum == 0)
        report_warn(
            args->report,
            "%s is 0 everywhere: no voxel's middle lies in the %s: take smaller voxels, or a larger --radius-mm",
            output, name);
    if (args->report->json) {
        struct json json = common_json_begin(stdout, args->verb->name);
        json_text(&json, "output", output);
        json_text(&json, "phantom", name);
        common_json_grid(&json, "grid", &image->grid);
        json_number(&json, "sum", sum);
        common_json_end(&json);
    } else {
        printf("%s: %s, sum %.9g\n", output, name, sum);
    }

finish:
    lr_image_destroy(image);
    setup_finish(&setup);
    return status;
}

static const struct cli_option options[] = {
    {"--radius-mm", "MM", "of the cylinder; default 0.46 of the grid's width", NULL},
    {"--contrast", "C", "spheres over cylinder; default 4 of spheres, 6 of six-spheres", NULL},
    {"--at", "X,Y,Z", "place of point, or of line, in mm; default the scanner's centre", NULL},
    {"--value", "V", "factor for all voxels; 0.0096 makes a mu-map of water; default 1", NULL},
    {"-o", "IMAGE", "activity to write (.nii, .nii.gz, .hv, .hdr, .mhd, .mha, .npy)", NULL},
    {0},
};

const struct cli_verb verb_phantom = {
    .name = "phantom",
    .positionals = "NAME",
    .summary = "Draws a phantom: derenzo, spheres, six-spheres, cylinder, line or point.",
    .example = "loraster phantom six-spheres --radius-mm 175 --grid 180,180,95 --voxel-mm 2 -o activity.nii.gz",
    .outputs = {{"-o", common_image_endings}},
    .groups = {{"phantom and output", options}, {COMMON_GRID_GROUP}},
    .run = run,
};

/* --- simulate --- */

static const char labels_phantom[] = "colin27";

/* The command line. */
struct request {
    const char *phantom, *image, *labels, *output, *truth, *efficiencies, *additive;
    double counts;  /* 0 = no scaling of the counts */
    double randoms; /* share of the counts */
    double duration_s;
    double tof_ps; /* time resolution of simulated photon pairs, FWHM; 0 = counts are drawn from a projection */
    bool expected, is_list;
    enum mu_way mu_as;
    uint64_t seed;
};

static struct request read_request(struct cli_args *args)
{
    struct request request = {
        .phantom = args_text(args, "--phantom"),
        .image = args_text(args, "--image"),
        .labels = args_text(args, "--labels"),
        .output = args_required(args, "-o"),
        .truth = args_text(args, "--truth"),
        .counts = (double)args_int(args, "--counts", 0, (const int64_t[]){1, 1000000000000}),
        .tof_ps = args_tof_ps(args),
        .expected = args_has(args, "--expected"),
        .efficiencies = args_text(args, "--efficiencies"),
        .additive = args_text(args, "--additive"),
        .randoms = args_number(args, "--randoms", 0, true),
        .mu_as = lor_factors_mu_as(args),
        .seed = (uint64_t)args_int(args, "--seed", 1, args_seeds),
    };
    /* There must be exactly one source of activity, with only its own options. */
    const bool is_labels = request.phantom != NULL && strcmp(request.phantom, labels_phantom) == 0;
    char names[256] = "";
    bool is_known = is_labels;
    for (const char *const *name = lr_phantom_names(); *name != NULL; name++) {
        const size_t used = strlen(names);
        is_known = is_known || (request.phantom != NULL && strcmp(*name, request.phantom) == 0);
        snprintf(names + used, sizeof(names) - used, "%s, ", *name);
    }
    if ((request.phantom != NULL) == (request.image != NULL))
        args_complain(args, "simulate needs either --phantom NAME or --image IMAGE");
    else if (request.phantom != NULL && !is_known)
        args_complain(args, "there is no phantom %s: there are %s%s", request.phantom, names, labels_phantom);
    else if (is_labels && request.labels == NULL)
        args_complain(args, "--phantom %s needs --labels FILE, its label image", labels_phantom);
    else if (!is_labels && request.labels != NULL)
        args_complain(args, "--labels belongs to --phantom %s", labels_phantom);

    /* List mode is requested by the output's ending. */
    request.is_list = lr_path_ends_in(request.output, common_event_endings);
    request.duration_s = (double)args_int(args, "--duration", 60, (const int64_t[]){1, 4000000});
    if (request.is_list && request.expected)
        args_complain(args, "--expected gives no events: write LOR data (HDF5) instead of %s", request.output);
    if (!request.is_list && args_has(args, "--duration"))
        args_complain(args, "--duration belongs to list mode (.petsird, .Cdh, .tsv)");

    if (request.randoms >= 1)
        args_complain(args,
                      "--randoms %s: the share of the counts that are randoms must be below 1: give 0.3 for 30 %%",
                      args_text(args, "--randoms"));
    if (request.additive != NULL && !(request.randoms > 0))
        args_complain(args, "--additive writes the expected randoms: give their share with --randoms");

    /* Photon pairs need only the scanner's geometry, and no matrix. */
    static const char *const others[] = {"--backend", "--mode",        "--rays",         "--samples",
                                         "--mu-as",   "--penetration", "--layers-alone", "--deterministic",
                                         "--store",   "--dry-run",     "--mu-steps",     "--efficiencies"};
    if (request.tof_ps > 0 && (!request.is_list || !(request.counts > 0))) {
        args_complain(args, "--tof-ps follows photon pairs one by one: it needs --counts N, and list "
                            "mode to write (-o FILE.petsird, .Cdh or .tsv)");
    }
    for (size_t k = 0; request.tof_ps > 0 && k < sizeof(others) / sizeof(others[0]); k++) {
        if (args_has(args, others[k])) {
            args_complain(args,
                          "%s belongs to counts per LOR, which are drawn from a projection; with --tof-ps pairs are "
                          "drawn one by one and detected by where they meet crystals: leave out %s",
                          others[k], others[k]);
        }
    }
    if (request.tof_ps > 0) request.mu_as = MU_LINES;
    if (request.expected && args_has(args, "--seed")) args_complain(args, "--expected draws nothing: leave out --seed");
    return request;
}

/* Determines the setup's grid and makes the activity on it. */
static lr_status make_activity(struct cli_args *args, struct setup *setup, const struct request *request,
                               lr_image **activity)
{
    const lr_log *log = &setup->report->log;
    if (request->image == NULL) CLI_TRY(setup_grid(setup, args, NULL));
    if (request->image != NULL) {
        *activity = setup_read_image(setup, args, request->image);
    } else if (request->labels != NULL) {
        lr_image *labels = lr_image_read_on(request->labels, &setup->grid, log);
        if (labels != NULL) *activity = lr_phantom_from_labels(labels, &setup->grid, log);
        lr_image_destroy(labels);
    } else {
        *activity = lr_phantom_create(
            &(lr_phantom_params){.name = request->phantom, .log = log, .progress = &setup->report->progress},
            &setup->grid);
    }
    if (*activity == NULL) return report_reason(setup->report);
    if (request->image == NULL) return LR_OK;

    const int *size = (*activity)->grid.size;
    const float *values = (*activity)->values;
    const int64_t count = lr_grid_num_voxels(&(*activity)->grid);
    for (int64_t row = 0; row < count; row++) {
        if (values[row] < 0.0f) {
            return report_error(setup->report, LR_BAD_INPUT,
                                "%s: voxel (%lld, %lld, %lld) is %g: an activity is at least 0 everywhere: set "
                                "negative voxels to 0 first",
                                request->image, (long long)(row % size[0]), (long long)(row / size[0] % size[1]),
                                (long long)(row / size[0] / size[1]), (double)values[row]);
        }
    }
    return setup_grid(setup, args, &(*activity)->grid);
}

/* The activity, and the counts that it causes. */
struct simulation {
    lr_image *activity;
    double emissions, scale; /* emissions of the whole image, and their number per unit of the activity */
    lr_lor_data *data;
    lr_randoms *fans;     /* singles of the crystals; NULL = no randoms */
    lr_lor_data *randoms; /* expected randoms; NULL = none, or not asked for */
};

/* Computes the expected randoms of all LORs, `sum` counts in all, from simulation->fans. */
static lr_status expect_randoms(const struct setup *setup, double sum, struct simulation *simulation)
{
    lr_randoms *fans = simulation->fans;
    if (fans == NULL) return report_reason(setup->report);
    simulation->randoms = lr_lor_data_create(setup->lors, &setup->report->log);
    if (simulation->randoms == NULL) return report_reason(setup->report);
    fans->product.scale *= sum / fans->delayeds;
    const lr_lor_source source = lr_crystal_product_source(&fans->product);
    return source.get(source.user, &(lr_lor_span){.count = simulation->randoms->count}, simulation->randoms->values);
}

static lr_status count_ends(void *user, const lr_event *events, int64_t count)
{
    double *ends = user;
    for (int64_t k = 0; k < count; k++)
        for (int end = 0; end < 2; end++) ends[events[k].crystals[end]]++;
    return LR_OK;
}

/* Replaces some of the photon pairs by randoms. The probability that a random joins two crystals is proportional to the
 * singles of both. The singles are found from the first pairs, a million at most. */
static lr_status add_random_pairs(const struct setup *setup, const struct request *request,
                                  struct simulation *simulation, lr_photon_params *photons)
{
    static const int64_t most = 1000000;
    const int64_t counts = photons->count, wished = llround(request->randoms * request->counts);
    const int64_t num_randoms = wished < counts ? wished : counts - 1;
    const lr_log *log = &setup->report->log;
    double *ends = calloc((size_t)setup->scanner->num_crystals, sizeof(*ends));
    if (ends == NULL) return report_error(setup->report, LR_FAILED, "no memory for the crystals' singles");
    photons->count = counts - num_randoms < most ? counts - num_randoms : most;
    lr_status status = lr_events_from_activity(photons, &(lr_event_sink){.take = count_ends, .user = ends}, NULL);
    if (status == LR_OK) {
        simulation->fans = lr_randoms_of_ends(setup->lors, ends, log);
        status = simulation->fans != NULL ? LR_OK : report_reason(setup->report);
    }
    free(ends);
    CLI_TRY(status);
    photons->count = counts - num_randoms;
    photons->num_randoms = num_randoms;
    photons->randoms = &simulation->fans->product;
    photons->window_mm = lr_events_window_mm(setup->scanner, request->tof_ps);
    return request->additive != NULL ? expect_randoms(setup, (double)num_randoms, simulation) : LR_OK;
}

/* Writes list mode: events drawn from the counts, or photon pairs of the activity if there are no counts. */
static lr_status write_list(struct setup *setup, const struct request *request, struct simulation *simulation)
{
    const lr_log *log = &setup->report->log;
    const bool has_tof = request->tof_ps > 0;
    const bool has_window = has_tof && request->randoms > 0;
    const lr_events_info info = {.has_tof = has_tof,
                                 .tof_resolution_ps = request->tof_ps,
                                 .tof_range_mm = has_window ? lr_events_window_mm(setup->scanner, request->tof_ps) : 0,
                                 .duration_s = request->duration_s};
    lr_events_writer *writer = lr_events_writer_create(
        &(lr_events_writer_params){.path = request->output, .lors = setup->lors, .info = &info, .log = log});
    if (writer == NULL) return report_reason(setup->report);
    const lr_event_sink sink = lr_events_writer_sink(writer);
    lr_status status;
    if (!has_tof) {
        const lr_list_params list = {.lors = setup->lors,
                                     .data = simulation->data,
                                     .duration_s = request->duration_s,
                                     .seed = request->seed,
                                     .log = log};
        status = lr_events_from_counts(&list, &sink);
    } else {
        int64_t emissions = 0;
        lr_photon_params photons = {.lors = setup->lors,
                                    .activity = simulation->activity,
                                    .mu = setup->params.mu,
                                    .count = (int64_t)request->counts,
                                    .tof_resolution_ps = request->tof_ps,
                                    .duration_s = request->duration_s,
                                    .seed = request->seed,
                                    .threads = setup->params.threads,
                                    .log = log,
                                    .progress = &setup->report->progress,
                                    .emissions = &emissions};
        status = request->randoms > 0 ? add_random_pairs(setup, request, simulation, &photons) : LR_OK;
        if (status == LR_OK) status = lr_events_from_activity(&photons, &sink, NULL);
        simulation->emissions = (double)emissions;
    }
    if (status == LR_OK) return lr_events_writer_finish(writer);
    lr_events_writer_abandon(writer);
    return status;
}

/* Projects the activity. Scales the activity and its projection to the requested counts, draws counts and writes
   them. */
static lr_status fill_data(struct setup *setup, const struct request *request, struct simulation *simulation)
{
    /* The detected fraction of emissions is far larger than this for any body that fits into a scanner. */
    static const double least_share = 1e-12;
    const lr_log *log = &setup->report->log;
    lr_image *activity = simulation->activity;
    lr_lor_data *data = simulation->data;
    const lr_vector x = lr_image_vector(activity);
    lr_vector y = lr_lor_data_vector(data);
    CLI_TRY(lr_operator_forward(setup->op, NULL, &x, &y));
    const double sum = common_sum(data->values, data->count);
    const double emitted = common_sum(activity->values, lr_grid_num_voxels(&activity->grid));
    if (!(sum > 0)) {
        return report_error(setup->report, LR_BAD_INPUT, "the activity reaches no LOR: nothing would be counted: %s",
                            emitted > 0 ? "check where its grid lies, and --mu-unit" : "it is 0 everywhere");
    }
    if (sum < least_share * emitted) {
        return report_error(setup->report, LR_BAD_INPUT,
                            "of %g emissions %g would be counted, and as many would be needed for each count: check "
                            "the units of --mu (--mu-unit), and where the activity lies",
                            emitted, sum);
    }
    const double trues = request->counts > 0 ? (1 - request->randoms) * request->counts : sum;
    simulation->scale = trues / sum;
    common_scale(data->values, data->count, trues / sum);
    common_scale(activity->values, lr_grid_num_voxels(&activity->grid), trues / sum);
    if (request->randoms > 0) {
        /* The expected randoms of a LOR are proportional to the product of the singles of its two crystals. The singles
         * are chosen so that each crystal has the same share of all randoms as of all trues. */
        simulation->fans = lr_randoms_estimate(setup->lors, data, log);
        CLI_TRY(expect_randoms(setup, trues * request->randoms / (1 - request->randoms), simulation));
        for (int64_t k = 0; k < data->count; k++) data->values[k] += simulation->randoms->values[k];
    }

    const double expected = common_sum(data->values, data->count);
    if (request->phantom != NULL && !(request->counts > 0)) {
        report_info(setup->report, "the phantom's own %.4g emissions give %.4g counts: --counts N scales them", emitted,
                    expected);
    }
    if (!request->expected) {
        CLI_TRY(lr_poisson(data->values, data->count, request->seed, log));
        report_info(setup->report, "Poisson counts drawn with seed %" PRIu64, request->seed);
        if (!(common_sum(data->values, data->count) > 0)) {
            return report_error(setup->report, LR_BAD_INPUT,
                                "%.3g counts were expected and none was drawn: ask for more with "
                                "--counts, such as --counts 1e6, or check the unit of --voxel-mm",
                                expected);
        }
    }
    if (request->truth != NULL) CLI_TRY(lr_image_write(request->truth, activity, log));
    return request->is_list ? write_list(setup, request, simulation)
                            : lr_lor_data_write(request->output, setup->lors, data, log);
}

static lr_status simulate_run(struct cli_args *args)
{
    struct setup setup = {0};
    struct simulation simulation = {0};
    const struct request request = read_request(args);
    double counts = request.counts;
    lr_status status = args->status;
    if (status == LR_OK) status = setup_scanner(&setup, args, LR_STORE_NO, NULL);
    if (status == LR_OK && request.efficiencies != NULL)
        status = lor_factors_efficiencies(&setup, request.efficiencies);
    if (status == LR_OK) status = lor_factors_give(&setup, request.mu_as);
    if (status == LR_OK) status = make_activity(args, &setup, &request, &simulation.activity);
    if (status == LR_OK) setup_warn_of_air(&setup, simulation.activity, 0.1, "");
    if (status == LR_OK && request.tof_ps > 0) {
        lr_grid_warn_slip(&setup.grid, setup.scanner, &args->report->log);
        status = write_list(&setup, &request, &simulation);
        const int64_t voxels = lr_grid_num_voxels(&simulation.activity->grid);
        simulation.scale = simulation.emissions / common_sum(simulation.activity->values, voxels);
        common_scale(simulation.activity->values, voxels, simulation.scale);
        if (status == LR_OK && request.truth != NULL)
            status = lr_image_write(request.truth, simulation.activity, &args->report->log);
    } else if (status == LR_OK) {
        status = setup_operator(&setup);
        if (status != LR_OK) goto finish;
        const double lors = (double)setup.lors->count, voxels = (double)lr_grid_num_voxels(&setup.grid);
        const double bytes = sizeof(float);
        bool goes_on = false;
        status = forecast_projections(
            &setup,
            &(struct forecast_projections){.projections = 1,
                                           .array_bytes = bytes * (lors * (request.randoms > 0 ? 2 : 1) + voxels),
                                           .output = request.output,
                                           .output_bytes = request.is_list ? 0 : bytes * lors,
                                           .also = request.additive,
                                           .also_bytes = request.additive != NULL ? bytes * lors : 0},
            &goes_on);
        if (status != LR_OK || !goes_on) goto finish;
        simulation.data = lr_lor_data_create(setup.lors, &args->report->log);
        status = simulation.data != NULL ? fill_data(&setup, &request, &simulation) : report_reason(args->report);
        if (status == LR_OK) counts = common_sum(simulation.data->values, simulation.data->count);
    }
    if (status == LR_OK && request.additive != NULL)
        status = lr_lor_data_write(request.additive, setup.lors, simulation.randoms, &args->report->log);
    if (status != LR_OK) goto finish;

    /* The sum of the image that --truth writes, whose voxels are rounded. */
    simulation.emissions = common_sum(simulation.activity->values, lr_grid_num_voxels(&simulation.activity->grid));
    report_clear(args->report);
    if (args->report->json) {
        struct json json = common_json_begin(stdout, "simulate");
        if (setup.op != NULL) {
            setup_json(&setup, &json);
        } else {
            json_text(&json, "scanner", setup.scanner->name);
            common_json_grid(&json, "grid", &setup.grid);
        }
        json_text(&json, "activity", request.image ? request.image : request.phantom);
        json_text(&json, "output", request.output);
        json_text(&json, "truth", request.truth);
        json_bool(&json, "expected", request.expected);
        if (!request.expected) json_int(&json, "seed", (int64_t)request.seed);
        json_number(&json, "counts", counts);
        json_number(&json, "emissions", simulation.emissions);
        json_number(&json, "scale", simulation.scale);
        common_json_end(&json);
    } else {
        printf("%s: %s %.9g, of %.9g emissions: the activity times %.6g\n", request.output,
               request.expected ? "expected counts" : "counts", counts, simulation.emissions, simulation.scale);
    }

finish:
    lr_randoms_destroy(simulation.fans);
    lr_lor_data_destroy(simulation.randoms);
    lr_lor_data_destroy(simulation.data);
    lr_image_destroy(simulation.activity);
    setup_finish(&setup);
    return status;
}

static const struct cli_option simulate_options[] = {
    {"--phantom", "NAME", "derenzo, spheres, six-spheres, cylinder, line, point, or colin27 with --labels", NULL},
    {"--labels", "IMAGE", "label image of colin27 (0 air .. 4 CSF)", NULL},
    {"--image", "IMAGE", "activity per voxel instead of a phantom; its grid is used", NULL},
    {"--counts", "N", "scale the expectation to N counts in all", NULL},
    {"--expected", NULL, "write the expectation instead of Poisson counts", NULL},
    {"--seed", "N", "of the Poisson counts; default 1", NULL},
    {"--truth", "IMAGE", "also write the activity, as emissions per voxel", NULL},
    {"-o", "FILE", "LOR data (.h5, .hdf5, STIR's .hs) or list mode (.petsird, .Cdh, .tsv)", NULL},
    {"--duration", "S", "of list mode, seconds; default 60", NULL},
    {"--tof-ps", "PS", "list mode with times of flight, FWHM: photon pairs followed one by one, N = --counts", NULL},
    {LOR_FACTORS_MU_AS},
    {"--efficiencies", "FILE", "one number per crystal (.npy, text or .petsird)", NULL},
    {"--randoms", "SHARE",
     "of the counts, such as 0.3: spread as the crystals' singles, and evenly over time of flight", NULL},
    {"--additive", "FILE", "also write the expected randoms, for recon --additive", NULL},
    {"--dry-run", NULL, FORECAST_DRY_RUN_WORDS "; not with --tof-ps", NULL},
    {0},
};

static const char *const endings[] = {".h5", ".hdf5", ".hs", LR_EVENTS_WRITTEN, NULL};

const struct cli_verb verb_simulate = {
    .name = "simulate",
    .summary = "Simulates a measurement of a phantom or an image.",
    .example = "loraster simulate --scanner ge-explore-vista-dr --phantom derenzo "
               "--grid 96,96,8 --voxel-mm 0.45 --counts 20000000 -o counts.h5",
    .outputs = {{"-o", endings}, {"--truth", common_image_endings}, {"--additive", common_data_endings}},
    .groups = {{"input and output", simulate_options},
               {COMMON_SCANNER_GROUP},
               {COMMON_GRID_GROUP},
               {COMMON_OPERATOR_GROUP}},
    .run = simulate_run,
};
