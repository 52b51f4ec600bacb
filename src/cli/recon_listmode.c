/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * recon --operator listmode: events one by one instead of LOR data. */
#include "recon.h"

#include <lr/listmode.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

const struct cli_option recon_listmode_options[] = {
    {"--kernel", "NAME", "tube (of response), line (a thin ray) or exact (solid angles); default tube", false},
    {"--tube-mm", "MM", "diameter of the tube; default where its Gaussian has fallen to 1 %", false},
    {"--tube-fwhm-mm", "MM", "FWHM of the tube's Gaussian; default half of the crystals' pitch", false},
    {"--as-paper", NULL, "shares and times of flight as Cui et al. 2011 have them", false},
    {"--tof-ps", "PS", "time resolution, FWHM; default: of the events, or the scanner's", false},
    {"--without-tof", NULL, "leave times of flight out", false},
    {"--blobs", NULL, "image of overlapping blobs, whose line integrals take the kernel's place", false},
    {"--blob-radius-mm", "MM", "of --blobs; default 10", false},
    {"--variant", "NAME",
     "how cuda projects, by the paper's steps: simple, coalesced, cached, partitioned, sorted or "
     "fastmath; default its fastest way",
     false},
    {"--corrections", "FILE",
     "corrections.h5 of GE list mode: attenuation, efficiencies, randoms and scatter of each event", false},
    {"--sensitivity-lines", "N", "LORs of the sensitivity; default 33,554,432 or more; more at ends", false},
    {0},
};

/* --- events --- */

static lr_status bin_delayeds(struct recon *recon, const lr_event_list *list)
{
    const lr_log *log = &recon->setup.report->log;
    int64_t count = 0;
    int64_t *lors = malloc((size_t)(list->count > 0 ? list->count : 1) * sizeof(*lors));
    if (lors == NULL) return report_error(recon->setup.report, LR_FAILED, "no memory for the delayeds");
    for (int64_t k = 0; k < list->count; k++) {
        const lr_event *event = &list->events[k];
        if (event->is_delayed)
            lors[count++] = lr_lors_number(recon->setup.lors, event->crystals[0], event->crystals[1]);
    }
    recon->inputs.delayeds = lr_lor_data_bin(lors, count, log);
    free(lors);
    return recon->inputs.delayeds != NULL ? LR_OK : report_reason(recon->setup.report);
}

/* Events whose LORs are looked up at a time. */
enum { LORS_AT_ONCE = 1 << 20 };

/* Keeps those of some events in a row that count, behind `kept` others. */
static int64_t keep_some(struct recon_inputs *inputs, const lr_event_span *span, const int64_t *lors, int64_t kept)
{
    const int64_t first = span->events - inputs->list->events;
    for (int64_t k = 0; k < span->count; k++) {
        const bool counts = !span->events[k].is_delayed && lors[k] >= 0;
        inputs->list->info.counts.not_in_coincidence += !span->events[k].is_delayed && !counts;
        if (counts && kept < first + k) recon_keep_event(inputs, first + k, kept);
        kept += counts;
    }
    return kept;
}

/* Whether there is nothing but prompts in coincidence, as most files have it. */
static bool are_all_kept(const struct recon *recon)
{
    const lr_event_list *list = recon->inputs.list;
    const lr_event_span all = {list->events, list->count, recon->setup.params.threads};
    return list->info.counts.delayeds == 0 &&
           (list->are_joined || lr_events_count_joined(recon->setup.lors, &all) == list->count);
}

/* Delayeds, and prompts out of coincidence, which no sensitivity counts, go. */
static lr_status keep_prompts(struct recon *recon)
{
    lr_event_list *list = recon->inputs.list;
    if (are_all_kept(recon)) return LR_OK;

    int64_t *lors = malloc(LORS_AT_ONCE * sizeof(*lors));
    int64_t kept = 0;
    if (lors == NULL) return report_error(recon->setup.report, LR_FAILED, "no memory for LORs of events");
    for (int64_t first = 0; first < list->count; first += LORS_AT_ONCE) {
        const int64_t left = list->count - first;
        const lr_event_span span = {list->events + first, left < LORS_AT_ONCE ? left : LORS_AT_ONCE,
                                    recon->setup.params.threads};
        const int64_t joined = lr_events_lors(recon->setup.lors, &span, lors);
        const bool are_in_place = kept == first && joined == span.count && list->info.counts.delayeds == 0;
        kept = are_in_place ? kept + joined : keep_some(&recon->inputs, &span, lors, kept);
    }
    free(lors);
    list->count = kept;
    return LR_OK;
}

static lr_status read_events(struct recon *recon)
{
    const lr_events_source source = recon_events_source(recon);
    recon->inputs.list = lr_event_list_read_joined(&source, recon->setup.lors);
    if (recon->inputs.list == NULL) return report_reason(recon->setup.report);
    CLI_TRY(recon_bootstrap_events(recon));
    recon->inputs.events = recon->inputs.list->info.counts;
    recon->inputs.events_format = recon->inputs.list->info.format;
    return LR_OK;
}

static lr_status check_subsets(const struct recon *recon)
{
    const int64_t count = recon->inputs.list->count;
    return recon->request.subsets <= count
               ? LR_OK
               : report_error(recon->setup.report, LR_USAGE,
                              "%d subsets: they are made of ranges of events, of which there are "
                              "%lld; give 1 to that many, and far fewer for an image",
                              recon->request.subsets, (long long)count);
}

/* Delayeds aside, and prompts in coincidence alone. */
static lr_status sort_events(struct recon *recon)
{
    struct recon_inputs *inputs = &recon->inputs;
    if (inputs->list->info.counts.delayeds > 0 && recon->request.additive == NULL)
        CLI_TRY(bin_delayeds(recon, inputs->list));
    CLI_TRY(keep_prompts(recon));
    inputs->events = inputs->list->info.counts;
    if (recon->frames.count == 0) recon_say_events(recon);
    recon->digest = 0;
    for (int64_t k = 0; recon->request.checkpoint != NULL && k < inputs->list->count; k++)
        recon_digest_event(&recon->digest, &inputs->list->events[k]);
    CLI_TRY(inputs->list->count > 0 ? check_subsets(recon) : LR_OK);
    return inputs->list->count > 0
               ? recon_deal_events(recon)
               : report_error(recon->setup.report, LR_BAD_INPUT,
                              "%s: holds no prompts in coincidence, of which no image comes", recon->request.events);
}

/* What measured means: each event once, or as often as its weight says. */
static void weigh_events(void *user)
{
    const struct recon *recon = user;
    const lr_event_list *list = recon->inputs.list;
    lr_events_weights(&(lr_event_span){list->events, list->count, recon->setup.params.threads},
                      recon->inputs.data->values);
}

static lr_status make_data(struct recon *recon)
{
    const lr_lors events = {.count = recon->inputs.list->count};
    recon->inputs.data = lr_lor_data_create(&events, &recon->setup.report->log);
    return recon->inputs.data != NULL ? LR_OK : report_reason(recon->setup.report);
}

/* --- randoms --- */

/* Width over which randoms of a LOR are spread evenly, in mm of the place; 1 without time of flight; 0
 * where it is not known. */
static double window_mm(const struct recon *recon, bool has_tof)
{
    const lr_events_info *info = &recon->inputs.list->info;
    if (!has_tof) return 1.0;
    return info->num_tof_bins > 0 ? (double)info->tof_edges_mm[info->num_tof_bins] - (double)info->tof_edges_mm[0]
                                  : info->tof_range_mm;
}

/* Ends of the delayeds of all ranks; NULL where there are none, or one process, which has them itself. */
static const double *ends_of(const struct recon *recon)
{
    const struct recon_own *own = &recon->own;
    return own->frames != NULL ? own->frames[recon->frames.count > 0 ? recon->frames.current : 0].ends : NULL;
}

static lr_status estimate_randoms(struct recon *recon, double window)
{
    struct recon_inputs *inputs = &recon->inputs;
    const lr_log *log = &recon->setup.report->log;
    const double *ends = ends_of(recon);
    inputs->randoms = ends != NULL ? lr_randoms_of_ends(recon->setup.lors, ends, log)
                                   : lr_randoms_estimate(recon->setup.lors, inputs->delayeds, log);
    inputs->additive = lr_lor_data_create(lr_operator_get_info(recon->setup.op)->lors, log);
    if (inputs->randoms == NULL || inputs->additive == NULL) return report_reason(recon->setup.report);
    const lr_crystal_product *product = &inputs->randoms->product;
    for (int64_t k = 0; k < inputs->list->count; k++) {
        const int32_t *crystals = inputs->list->events[k].crystals;
        inputs->additive->values[k] =
            (float)(product->scale * product->values[crystals[0]] * product->values[crystals[1]] / window);
    }
    inputs->additive_sum = inputs->randoms->delayeds;
    return LR_OK;
}

/* What is expected beside the image, of each event. */
static lr_status find_additive(struct recon *recon, bool has_tof)
{
    const struct recon_inputs *inputs = &recon->inputs;
    const bool has_file = recon->request.additive != NULL || inputs->corrections != NULL;
    const bool is_measured = ends_of(recon) != NULL || (inputs->delayeds != NULL && inputs->delayeds->count > 0);
    const bool has_delayeds = is_measured && recon->request.randoms != RECON_RANDOMS_NONE;
    if (!has_file && !has_delayeds) return LR_OK;
    const double window = window_mm(recon, has_tof);
    if (inputs->corrections == NULL && !(window > 0)) {
        return report_error(recon->setup.report, LR_USAGE,
                            "%s: the width of its coincidence window is not known, over which "
                            "randoms are spread: --without-tof, or --randoms none",
                            recon->request.events);
    }
    return has_file ? recon_read_event_terms(recon, window) : estimate_randoms(recon, window);
}

/* --- the operator --- */

static void check_kernel(struct cli_args *args, const lr_listmode_params *params)
{
    if (params->kernel != LR_LISTMODE_TUBE && (args_has(args, "--tube-mm") || args_has(args, "--tube-fwhm-mm")))
        args_complain(args, "--tube-mm and --tube-fwhm-mm belong to --kernel tube");
    if (params->kernel == LR_LISTMODE_EXACT && params->tube.as_paper)
        args_complain(args, "--as-paper belongs to --kernel tube or line");
    if (params->kernel != LR_LISTMODE_EXACT && args_has(args, "--samples"))
        args_complain(args, "in list mode --samples belongs to --kernel exact");
}

static void check_blobs(struct cli_args *args)
{
    static const char *const of_kernels[] = {"--kernel", "--tube-mm", "--tube-fwhm-mm", "--as-paper", NULL};
    for (int k = 0; args_has(args, "--blobs") && of_kernels[k] != NULL; k++)
        if (args_has(args, of_kernels[k]))
            args_complain(args, "%s and --blobs exclude each other: blobs are the kernel", of_kernels[k]);
    if (args_has(args, "--blobs") && args_has(args, "--initial"))
        args_complain(args, "--initial is an image of voxels, which --blobs cannot begin with");
    if (args_has(args, "--blobs") && (args_has(args, "--prior") || args_has(args, "--psf-mm")))
        args_complain(args, "--prior and --psf-mm are of voxels, and --blobs has none");
    if (args_has(args, "--blob-radius-mm") && !args_has(args, "--blobs"))
        args_complain(args, "--blob-radius-mm belongs to --blobs");
}

static void check_variant(struct cli_args *args)
{
    const char *backend = args_text(args, "--backend");
    if (args_has(args, "--variant") && (backend == NULL || strcasecmp(backend, "cuda") != 0))
        args_complain(args, "--variant is for --backend cuda");
}

static lr_listmode_params read_params(struct cli_args *args)
{
    static const char *const kernels[] = {"tube", "line", "exact", NULL};
    static const int64_t lines[2] = {1, INT64_MAX};
    lr_listmode_params params = {
        .kernel = (lr_listmode_kernel)args_word(args, "--kernel", kernels, LR_LISTMODE_TUBE),
        .tube = {.width_mm = args_number(args, "--tube-mm", 0, true),
                 .fwhm_mm = args_number(args, "--tube-fwhm-mm", 0, true),
                 .as_paper = args_has(args, "--as-paper")},
        .sensitivity_lines = args_int(args, "--sensitivity-lines", 0, lines),
        .variant = common_listmode_variant(args),
    };
    check_variant(args);
    check_kernel(args, &params);
    check_blobs(args);
    recon_check_corrections(args);
    if (args_has(args, "--tof-ps") && args_has(args, "--without-tof"))
        args_complain(args, "--tof-ps and --without-tof contradict each other");
    return params;
}

/* What is said of the time resolution goes before what the file says. */
static bool settle_time(struct recon *recon, struct cli_args *args)
{
    lr_events_info *info = &recon->inputs.list->info;
    const double asked = args_number(args, "--tof-ps", 0, true);
    const double least_ps = 10, most_ps = 5000; /* as scanner check has them */
    if (asked > 0 && !(asked >= least_ps && asked <= most_ps)) {
        report_warn(args->report, "--tof-ps %g: time resolutions are between %g and %g ps: is it in picoseconds?",
                    asked, least_ps, most_ps);
    }
    if (asked > 0) {
        info->tof_resolution_ps = asked;
        for (int k = 0; info->kinds.tof != NULL && k < info->kinds.count * info->kinds.count; k++)
            info->kinds.tof[k].resolution_ps = asked;
    }
    recon->beside = recon_digest(recon->beside, &info->tof_resolution_ps, sizeof(info->tof_resolution_ps));
    for (int k = 0; info->kinds.tof != NULL && k < info->kinds.count * info->kinds.count; k++) {
        const double resolution_ps = info->kinds.tof[k].resolution_ps;
        recon->beside = recon_digest(recon->beside, &resolution_ps, sizeof(resolution_ps));
    }
    return info->has_tof && !args_has(args, "--without-tof");
}

/* All but what depends on events. */
static void complete_params(struct recon *recon)
{
    const struct setup *setup = &recon->setup;
    lr_listmode_params *params = recon->frames.params;
    params->lors = setup->lors;
    params->grid = &setup->grid;
    params->sensitivity_part = recon->cluster.rank;
    params->sensitivity_parts = recon->cluster.size;
    memcpy(params->samples, setup->params.samples, sizeof(params->samples));
    params->factors = setup->params.factors;
    params->backend = setup->params.backend;
    params->threads = setup->params.threads;
    params->device = setup->params.device;
    params->max_memory_bytes = setup->params.max_memory_bytes;
    params->log = &setup->report->log;
}

static lr_status make_operator(struct recon *recon, bool has_tof)
{
    const struct setup *setup = &recon->setup;
    lr_listmode_params *params = recon->frames.params;
    const lr_event_list *list = recon->inputs.list;
    params->events = list->events;
    params->count = list->count;
    params->info = has_tof ? &list->info : NULL;
    params->num_ranges = recon->request.subsets;
    params->ranges = recon->share.ranges;
    params->factors = setup->params.factors; /* those of corrections are read with the events */
    params->event_factors = recon->inputs.corrections != NULL ? recon->inputs.corrections->factors : NULL;
    params->progress = &recon->bar.within;
    if (params->factors != NULL) /* which one thread may ask at a time */
        CLI_TRY(early_sensitivity_wait(&recon->early, params->progress, params->log));
    params->sensitivity_of = early_sensitivity_of(&recon->early);
    if (params->sensitivity_of == NULL) params->sensitivity_of = recon->frames.first;
    recon->setup.op = lr_listmode_create(params);
    return recon->setup.op != NULL ? LR_OK : report_reason(setup->report);
}

static void say_operator(const struct recon *recon, bool has_tof)
{
    static const char *const kernels[] = {"tubes of response", "thin lines", "exact elements"};
    const lr_operator_info *info = lr_operator_get_info(recon->setup.op);
    const lr_listmode_info *listmode = lr_listmode_get_info(recon->setup.op);
    report_info(recon->setup.report, "%lld events, %s time of flight, %s; backend %s, %s", (long long)listmode->count,
                has_tof ? "with" : "without", listmode->blobs.radius_mm > 0 ? "blobs" : kernels[listmode->kernel],
                info->backend, info->device);
}

/* The operator has what matters of them. Giving back much memory takes a while, in which iterations begin. */
static void forget_events(void *user)
{
    lr_event_list_drop(((struct recon *)user)->inputs.list);
}

lr_status recon_open_events(struct recon *recon)
{
    const bool has_tof = recon->frames.has_tof;
    CLI_TRY(recon->own.frames != NULL ? recon_own_open(recon) : sort_events(recon));
    CLI_TRY(make_data(recon));
    struct lr_background weighing = {.body = NULL};
    lr_background_start(&weighing, weigh_events, recon);
    const lr_status status = make_operator(recon, has_tof);
    lr_background_wait(&weighing);
    CLI_TRY(status);
    say_operator(recon, has_tof);
    CLI_TRY(find_additive(recon, has_tof));
    if (recon->frames.count == 0) lr_background_start(&recon->inputs.freeing, forget_events, recon);
    return LR_OK;
}

/* Its kernels are of lines between crystals, whatever stops photons on the way. */
static void warn_of_layers(const struct recon *recon)
{
    const lr_scanner *scanner = recon->setup.scanner;
    bool has_layers = false;
    for (int m = 0; scanner != NULL && m < scanner->num_modules; m++)
        has_layers = has_layers || scanner->modules[m].layer > 0;
    if (has_layers) {
        report_warn(recon->setup.report,
                    "list mode counts each layer of crystals as if it were the only one: give what "
                    "share of photons each has by --efficiencies, or reconstruct counts per LOR, "
                    "where crystals stop photons along their depth");
    }
}

lr_status recon_open_listmode(struct recon *recon, struct cli_args *args)
{
    struct recon_frames *frames = &recon->frames;
    const lr_listmode_params params = read_params(args);
    CLI_TRY(args->status);
    frames->params = malloc(sizeof(*frames->params));
    if (frames->params == NULL) return report_error(recon->setup.report, LR_FAILED, "no memory for an operator");
    *frames->params = params;
    frames->blobs = (lr_blobs){.radius_mm = args_number(args, "--blob-radius-mm", 0, true)};
    frames->params->blobs = args_has(args, "--blobs") ? &frames->blobs : NULL;
    CLI_TRY(args->status);
    CLI_TRY(recon_read_factors(recon));
    complete_params(recon);
    early_sensitivity_begin(&recon->early, frames->params, recon->request.corrections != NULL);
    CLI_TRY(recon->cluster.comm != NULL ? recon_own_survey(recon) : read_events(recon));
    CLI_TRY(recon_read_corrections(recon));
    CLI_TRY(frames->count > 0 ? recon_check_frames(recon) : LR_OK);
    CLI_TRY(recon->cluster.comm != NULL ? recon_own_take(recon) : LR_OK);
    frames->has_tof = settle_time(recon, args);
    warn_of_layers(recon);
    CLI_TRY(args->status);
    CLI_TRY(recon_compare_contents(recon, "file of what is known of events", recon->beside));
    CLI_TRY(recon_read_images(recon));
    if (frames->count > 0) {
        frames->all = recon->inputs.list;
        recon->inputs.list = NULL;
        return LR_OK;
    }
    return recon_open_events(recon);
}

/* List mode has a scale of its own, of chords in mm, but for exact elements, which are probabilities. */
bool recon_counts_emissions(const struct recon *recon)
{
    const lr_listmode_info *info = lr_listmode_get_info(recon->setup.op);
    return info == NULL || info->kernel == LR_LISTMODE_EXACT;
}

static const lr_blobs *blobs_of(const struct recon *recon)
{
    const lr_listmode_info *info = lr_listmode_get_info(recon->setup.op);
    return info != NULL && info->blobs.radius_mm > 0 ? &info->blobs : NULL;
}

lr_status recon_take_image(const struct recon *recon, const lr_vector *image)
{
    const lr_blobs *blobs = blobs_of(recon);
    const lr_log *log = &recon->setup.report->log;
    lr_vector to = lr_image_vector(recon->image);
    if (blobs == NULL) return lr_vector_copy(image, &to);
    const lr_vector_params like = {.count = image->count, .name = "coefficients", .log = log};
    lr_vector coefficients = {0};
    CLI_TRY(lr_vector_create(&like, &coefficients));
    lr_status status = lr_vector_copy(image, &coefficients);
    if (status == LR_OK) status = lr_blobs_evaluate(blobs, coefficients.values, recon->image, log);
    lr_vector_destroy(&coefficients);
    return status;
}

lr_status recon_run(struct recon *recon, const lr_recon_params *params)
{
    lr_vector image = lr_image_vector(recon->image), coefficients = {0};
    if (blobs_of(recon) == NULL) return recon_call(recon, params, &image);
    const lr_vector_params like = {.count = lr_operator_get_info(recon->setup.op)->num_voxels,
                                   .name = "coefficients of blobs",
                                   .log = &recon->setup.report->log};
    CLI_TRY(lr_vector_create(&like, &coefficients));
    const lr_status status = recon_call(recon, params, &coefficients);
    const lr_status taken = recon->num_done > 0 ? recon_take_image(recon, &coefficients) : LR_OK;
    lr_vector_destroy(&coefficients);
    return status != LR_OK ? status : taken;
}
