/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "cli/recon/run.h"

#include "cli/pictures.h"
#include "cli/report.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *unit_of(const struct measurement *measured)
{
    if (measurement_counts_emissions(measured)) return "emissions";
    return measured->request->family == RECON_DIRECT
               ? "in all (relative; emissions only with --factors of direct factors)"
               : "in all (relative: by --as-paper and --corrections)";
}

static double emissions(const struct recon_run *run)
{
    return common_sum(run->image->values, lr_grid_num_voxels(&run->image->grid));
}

/* Appends a cause to the list. The list may begin with a sentence about the additive term. */
static void add_cause(char *text, size_t size, const char *format, ...) LR_PRINTF(3, 4);
static void add_cause(char *text, size_t size, const char *format, ...)
{
    static const char heading[] = ". Other causes in this run: ";
    size_t used = strlen(text);
    va_list values;
    used += (size_t)snprintf(text + used, size - used, strstr(text, heading) != NULL ? "; " : heading);
    va_start(values, format);
    if (used < size) vsnprintf(text + used, size - used, format, values);
    va_end(values);
}

/* Returns the number of zeros among the values. values NULL: there are no values. */
static long long count_zeros(const float *values, int64_t count)
{
    long long zeros = 0;
    for (int64_t k = 0; values != NULL && k < count; k++) zeros += values[k] == 0.0f;
    return zeros;
}

void recon_list_causes(const void *user, char *text, size_t size)
{
    const struct measurement *measured = user;
    const struct setup *setup = &measured->setup;
    const lr_operator_info *info = lr_operator_get_info(setup->op);
    const lr_listmode_info *listmode = lr_listmode_get_info(setup->op);
    const lr_event_corrections *corrections = measured->corrections;
    const lr_image *initial = measured->initial;
    const float *efficiencies = setup->factors.efficiencies,
                *factors = corrections != NULL ? corrections->factors : NULL;
    const int num_crystals = setup->scanner != NULL ? setup->scanner->num_crystals : 0;
    const long long dead = count_zeros(efficiencies, num_crystals);
    const long long without = count_zeros(factors, measured->data->count);
    const long long empty = initial != NULL ? count_zeros(initial->values, lr_grid_num_voxels(&initial->grid)) : 0;
    text[0] = '\0';
    if (measured->additive == NULL && measured->randoms == NULL) {
        snprintf(text, size, ". Expected randoms and scatter are given by --additive%s",
                 measured->events.delayeds > 0 ? ", or randoms alone by --randoms auto" : "");
    }
    if (dead > 0) add_cause(text, size, "%lld of %d crystals have an efficiency of 0", dead, num_crystals);
    if (without > 0) add_cause(text, size, "%lld events have a factor of 0 in --corrections", without);
    if (empty > 0) add_cause(text, size, "%lld voxels are 0 in --initial, and stay 0", empty);
    if (listmode != NULL && listmode->sensitivity_left > 0) {
        add_cause(text, size,
                  "%lld voxels are 0, because few lines of the sensitivity's sample see them: more "
                  "--sensitivity-lines",
                  (long long)listmode->sensitivity_left);
    }
    if (measured->blind_voxels > 0) {
        add_cause(text, size, "%lld histo-image voxels with counts have a factor of 0",
                  (long long)measured->blind_voxels);
    }
    if (measured->request->family == RECON_CORRESPONDENCE && info->mode == LR_MODE_SAMPLED)
        add_cause(text, size, "%d x %d lines to a crystal, which may miss LORs: more --rays", info->rays, info->rays);
    if (setup->params.samples[0] > 0 && measurement_counts_emissions(measured))
        add_cause(text, size, "few points in a voxel: more --samples");
}

/* Appends `item` to a list in words. */
static void add_item(char text[256], const char *item)
{
    const size_t used = strlen(text);
    snprintf(text + used, 256 - used, "%s%s", used > 0 ? ", " : "", item);
}

void recon_say_corrections(const struct measurement *measured)
{
    const struct recon_request *request = measured->request;
    const struct setup *setup = &measured->setup;
    char made[256] = "", missing[256] = "";
    if (request->family == RECON_DIRECT) {
        if (measured->direct_factors != NULL)
            add_item(made, "what --factors has of attenuation, efficiencies and geometry");
        else
            add_item(missing, "attenuation, efficiencies and geometry (--factors, of loraster direct factors)");
    } else if (measured->corrections != NULL) {
        add_item(made, "attenuation, efficiencies, randoms and scatter (--corrections)");
    } else {
        add_item(setup->mu != NULL ? made : missing, "attenuation (--mu)");
        add_item(setup->factors.efficiencies != NULL ? made : missing, "efficiencies (--efficiencies)");
    }
    if (request->additive != NULL) {
        add_item(made, "what --additive has of randoms and scatter");
    } else if (measured->randoms != NULL) {
        add_item(made, "randoms (from the delayeds)");
        add_item(missing, "scatter (--additive)");
    } else if (measured->corrections == NULL && measured->events.delayeds > 0) {
        add_item(missing, "randoms (--randoms auto or --additive), scatter (--additive)");
    } else if (measured->corrections == NULL) {
        add_item(missing, "randoms and scatter (--additive)");
    }
    report_info(setup->report, "%s%s%s%s", made[0] != '\0' ? "corrected for " : "not corrected for ",
                made[0] != '\0' ? made : missing, made[0] != '\0' && missing[0] != '\0' ? "; not for " : "",
                made[0] != '\0' ? missing : "");
    if (request->family == RECON_DIRECT && !measurement_counts_emissions(measured)) {
        report_info(setup->report, "the image has a scale of its own, and is not in emissions: %s%s",
                    measured->direct_factors != NULL ? request->factors : "there are no --factors",
                    measured->direct_factors != NULL
                        ? " does not say that its factors are probabilities, as those of loraster direct factors are"
                        : ", which loraster direct factors writes");
    }
}

lr_status recon_check_image(const struct recon_run *run)
{
    const struct measurement *measured = run->measured;
    const struct recon_request *request = measured->request;
    struct report *report = measured->setup.report;
    CLI_TRY(common_check_result(
        report, &(struct common_result){.output = run->output,
                                        .values = run->image->values,
                                        .count = lr_grid_num_voxels(&run->image->grid),
                                        .causes = "the data have no counts that the grid's voxels could have caused: "
                                                  "are they the right data, is the grid in the scanner, and is "
                                                  "--additive no more than a part of them?"}));

    setup_warn_of_air(&measured->setup, run->image, 0.25, ", or are scatter and randoms not corrected");

    /* EM makes the estimated counts add up to the measured counts in every iteration. RAMLA needs several iterations
     * for this. */
    const lr_iteration *last = &run->history[run->num_done - 1];
    const double share = last->estimated_counts / last->measured_counts;
    if (request->algorithm == RECON_RAMLA && last->has_fit && fabs(share - 1) > 0.05) {
        report_warn(report, "the image explains %.4g of the %.4g counts: %s", last->estimated_counts,
                    last->measured_counts,
                    request->own_steps ? "take more --iterations, or --algorithm osem"
                                       : "common steps go by the largest sensitivity, and are small where "
                                         "attenuation makes it less: take --steps own, or more --iterations");
    }

    const double found = emissions(run);
    const lr_image *truth = measured->truth;
    const double due = truth != NULL ? common_sum(truth->values, lr_grid_num_voxels(&truth->grid)) : 0;
    if (due > 0 && measurement_counts_emissions(measured) && !(found < 10 * due && due < 10 * found)) {
        report_warn(report,
                    "%s adds up to %.4g and the image to %.4g emissions: the difference from --truth says nothing if "
                    "the truth is a concentration or a relative activity: give emissions per voxel, such as simulate "
                    "--truth writes, or multiply it by about %.3g",
                    request->truth, due, found, found / due);
    }
    return LR_OK;
}

/* Writes the numbers of an iteration. step: further numbers about its image; NULL = none. */
static void iteration_json(struct json *json, const lr_iteration *done, const struct recon_step *step)
{
    json_open(json, NULL, '{');
    json_int(json, "number", done->number);
    if (done->has_fit) {
        const double all = done->measured_counts + done->left_out_counts;
        json_number(json, "log_likelihood", done->log_likelihood);
        json_number(json, "measured_counts", done->measured_counts);
        json_number(json, "estimated_counts", done->estimated_counts);
        json_int(json, "left_out_lors", done->left_out_lors);
        json_number(json, "left_out_counts", done->left_out_counts);
        json_number(json, "left_out_share", all > 0 ? done->left_out_counts / all : 0);
        json_number(json, "sensitive_counts", done->sensitive_counts);
        if (done->penalty > 0) json_number(json, "penalty", done->penalty);
    }

    json_number(json, "seconds", done->seconds);
    json_number(json, "device_seconds", done->device_seconds);
    if (done->traffic.to_device + done->traffic.to_host > 0) {
        json_int(json, "to_device_bytes", done->traffic.to_device);
        json_int(json, "to_host_bytes", done->traffic.to_host);
    }
    if (done->sent_bytes > 0) {
        json_number(json, "project_seconds", done->project_seconds);
        json_number(json, "exchange_seconds", done->exchange_seconds);
        json_number(json, "waiting_seconds", done->waiting_seconds);
        json_number(json, "sent_bytes", done->sent_bytes);
    }
    if (step != NULL) json_number(json, "elapsed_seconds", step->elapsed_s);
    if (step != NULL && step->image_error >= 0) json_number(json, "image_error", step->image_error);
    if (step != NULL && step->weights != NULL) {
        const lr_composition *composed = &step->composition;
        json_open(json, "composition", '{');
        json_numbers(json, "weights", composed->weights, composed->count);
        json_numbers(json, "guess_residuals", composed->guess_residuals, composed->count);
        if (isfinite(composed->condition)) json_number(json, "condition", composed->condition);
        json_bool(json, "singular", !isfinite(composed->condition));
        json_number(json, "residual", composed->residual);
        json_number(json, "clipped_residual", composed->clipped_residual);
        json_int(json, "negative_voxels", composed->negative_voxels);
        json_number(json, "negative_sum", composed->negative_sum);
        json_number(json, "seconds", composed->compose_seconds);
        json_close(json, '}');
    }
    json_close(json, '}');
}

static void events_json(struct json *json, const lr_event_counts *events)
{
    json_open(json, "events", '{');
    json_int(json, "prompts", events->prompts);
    json_int(json, "delayeds", events->delayeds);
    json_int(json, "time_marks", events->time_marks);
    json_int(json, "other_words", events->other_words);
    json_int(json, "unknown_crystals", events->unknown_crystals);
    json_int(json, "not_in_coincidence", events->not_in_coincidence);
    json_close(json, '}');
}

/* Writes the keys that are common to the JSON objects of one image and of frames. */
static void head_json(struct json *json, const struct recon_run *run)
{
    const struct measurement *measured = run->measured;
    const struct recon_request *request = measured->request;
    const lr_rdp *prior = &request->prior;
    setup_json(&measured->setup, json);
    json_text(json, "algorithm", recon_algorithms[request->algorithm]);
    json_int(json, "subsets", measured->subsets);
    if (request->views_per_block > 0) json_int(json, "views_per_block", request->views_per_block);
    json_int(json, "iterations_before", run->iterations_before);
    if (request->bootstraps) json_int(json, "bootstrap_seed", (int64_t)request->bootstrap_seed);
    if (recon_has_steps(request->algorithm)) {
        json_number(json, "relaxation", recon_relaxation(request, measured->subsets));
        json_number(json, "fall", request->relaxation_fall);
    }
    if (request->algorithm == RECON_RAMLA) json_text(json, "steps", request->own_steps ? "own" : "common");
    if (request->has_prior) {
        json_open(json, "prior", '{');
        json_text(json, "name", "rdp");
        json_number(json, "beta", prior->beta);
        json_number(json, "gamma", prior->gamma);
        json_number(json, "epsilon", prior->epsilon);
        json_text(json, "kappa", request->kappa);
        json_close(json, '}');
    }
    if (request->has_psf) json_numbers(json, "psf_mm", request->psf_mm, 3);
    cluster_json(&measured->cluster, json);
    if (measured->cluster.comm != NULL) {
        json_text(json, "combine", recon_schemes[request->combine]);
        if (request->combine != RECON_EXACT) json_int(json, "local_iterations", request->local_iterations);
    }
    if (request->num_intervals > 0) events_json(json, &measured->all_events->info.counts);
}

static void end_json(struct json *json, const struct recon_run *run)
{
    json_number(json, "seconds", report_seconds() - run->start_s);
    json_int(json, "peak_memory_bytes", common_peak_memory());
    common_json_end(json);
}

void recon_report_frames(const struct recon_run *run, const struct recon_frame *frames, bool stopped)
{
    const struct measurement *measured = run->measured;
    struct json json = common_json_begin(stdout, "recon");
    head_json(&json, run);
    json_bool(&json, "stopped", stopped);
    json_open(&json, "frames", '[');
    for (int64_t k = measured->frame_range[0]; k < measured->frame_range[1]; k++) {
        const struct recon_frame *frame = &frames[k];
        const struct recon_interval *interval = &measured->request->intervals[k];
        if (frame->num_done == 0) continue;
        json_open(&json, NULL, '{');
        json_number(&json, "begin_s", interval->begin_s);
        json_number(&json, "end_s", interval->end_s);
        json_int(&json, "prompts", measured->frame_prompts[k]);
        json_text(&json, "output", frame->output);
        json_number(&json, "image_sum", frame->image_sum);
        json_open(&json, "iterations", '[');
        for (int n = 0; n < frame->num_done; n++) iteration_json(&json, &frame->history[n], NULL);
        json_close(&json, ']');
        json_close(&json, '}');
    }
    json_close(&json, ']');
    end_json(&json, run);
}

void recon_report(const struct recon_run *run, bool stopped)
{
    const struct measurement *measured = run->measured;
    struct report *report = measured->setup.report;
    char duration[32], memory[32];
    const lr_iteration none = {.number = run->iterations_before};
    const lr_iteration *last = run->num_done > 0 ? &run->history[run->num_done - 1] : &none;
    report_clear(report);
    report_info(report, "done in %s, peak memory %s", report_duration(duration, report_seconds() - run->start_s),
                common_bytes(memory, common_peak_memory()));
    if (report->json && measured->request->num_intervals > 0) return;
    if (report->json) {
        const lr_randoms *randoms = measured->randoms;
        struct json json = common_json_begin(stdout, "recon");
        head_json(&json, run);
        json_text(&json, "output", run->output);
        json_text(&json, "picture", measured->request->picture);
        json_bool(&json, "stopped", stopped);
        if (measured->request->events != NULL) events_json(&json, &measured->events);
        if (randoms != NULL) {
            json_open(&json, "randoms", '{');
            json_number(&json, "sum", randoms->delayeds);
            json_number(&json, "fraction_of_prompts", randoms->delayeds / measured->counts);
            json_int(&json, "pooled", randoms->pooled);
            json_close(&json, '}');
        }
        json_open(&json, "iterations", '[');
        for (int k = 0; k < run->num_done; k++)
            iteration_json(&json, &run->history[k], run->steps != NULL ? &run->steps[k] : NULL);
        json_close(&json, ']');
        json_number(&json, measurement_counts_emissions(measured) ? "emissions" : "image_sum", emissions(run));
        end_json(&json, run);
        return;
    }
    char frame[32] = ""; /* the names of files number other frames */
    if (measured->request->frames_in_one) snprintf(frame, sizeof(frame), "frame %d, ", measured->frame + 1);
    if (!last->has_fit) {
        printf("%s: %siteration %d, %.9g %s\n", run->output, frame, last->number, emissions(run), unit_of(measured));
        return;
    }
    const bool is_composed = measured->request->combine == RECON_PAPER;
    printf("%s: %siteration %d, %.9g %s, log-likelihood %.9g%s, %.9g of %.9g counts used\n", run->output, frame,
           last->number, emissions(run), unit_of(measured), last->log_likelihood,
           is_composed ? "" : " before its update", last->measured_counts,
           last->measured_counts + last->left_out_counts);
}

lr_status recon_draw(const struct recon_run *run)
{
    const struct measurement *measured = run->measured;
    const lr_scanner *scanner = measured->setup.scanner;
    const int done = run->iterations_before + run->num_done;
    char note[96];
    snprintf(note, sizeof(note), "%d iteration%s, %.4g %s", done, done == 1 ? "" : "s", emissions(run),
             unit_of(measured));
    return picture_write_slices(measured->setup.report, measured->request->picture,
                                &(struct picture_slices){.image = run->image,
                                                         .unit = measurement_counts_emissions(measured)
                                                                     ? "emissions per voxel"
                                                                     : "activity, by an unknown factor",
                                                         .title = scanner != NULL ? scanner->name : "Image (DIRECT)",
                                                         .note = note,
                                                         .colours = LR_COLOURS_INVERSE_GREY});
}
