/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "album.h"
#include "recon.h"

#include <math.h>
#include <stdio.h>

/* Bytes between the host and the operator's device since the last iteration. */
static void say_traffic(struct recon *recon)
{
    char there[32], back[32];
    const lr_place *place = lr_operator_place(recon->setup.op);
    const lr_traffic now = lr_place_get_info(place).traffic, before = recon->traffic;
    recon->traffic = now;
    if (place != NULL && recon->setup.report->verbose) {
        report_info(recon->setup.report, "%s to the device and %s back since the last iteration",
                    common_bytes(there, now.to_device - before.to_device),
                    common_bytes(back, now.to_host - before.to_host));
    }
}

void recon_say_iteration(struct recon *recon, const lr_iteration *done)
{
    if (done->has_fit) {
        report_info(recon->setup.report,
                    "iteration %d: log-likelihood %.9g, measured %.9g, estimated %.9g counts, %.2f s", done->number,
                    done->log_likelihood, done->measured_counts, done->estimated_counts, done->seconds);
        if (done->penalty > 0)
            report_info(recon->setup.report, "iteration %d: penalty %.9g", done->number, done->penalty);
    } else {
        report_info(recon->setup.report, "iteration %d: %.3g s, device %.3g s", done->number, done->seconds,
                    done->device_seconds);
    }
    say_traffic(recon);
}

static const char *unit_of(const struct recon *recon)
{
    return recon_counts_emissions(recon) ? "emissions" : "in all, of its own scale";
}

static double emissions(const struct recon *recon)
{
    return common_sum(recon->image->values, lr_grid_num_voxels(&recon->setup.grid));
}

/* --- JSON --- */

static double left_out_share(const lr_iteration *done)
{
    const double all = done->measured_counts + done->left_out_counts;
    return all > 0 ? done->left_out_counts / all : 0;
}

static void fit_json(struct json *json, const lr_iteration *done)
{
    json_number(json, "log_likelihood", done->log_likelihood);
    json_number(json, "measured_counts", done->measured_counts);
    json_number(json, "estimated_counts", done->estimated_counts);
    json_int(json, "left_out_lors", done->left_out_lors);
    json_number(json, "left_out_counts", done->left_out_counts);
    json_number(json, "left_out_share", left_out_share(done));
    json_number(json, "sensitive_counts", done->sensitive_counts);
    if (done->penalty > 0) json_number(json, "penalty", done->penalty);
}

void recon_iteration_json(struct json *json, const lr_iteration *done, const struct recon_step *step)
{
    json_open(json, NULL, '{');
    json_int(json, "number", done->number);
    if (done->has_fit) fit_json(json, done);
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
    if (step != NULL) recon_step_json(json, step);
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

static void randoms_json(const struct recon *recon, struct json *json)
{
    const struct recon_inputs *inputs = &recon->inputs;
    if (inputs->randoms == NULL) return;
    json_open(json, "randoms", '{');
    json_number(json, "sum", inputs->randoms->delayeds);
    json_number(json, "fraction_of_prompts", inputs->randoms->delayeds / inputs->counts);
    json_int(json, "pooled", inputs->randoms->pooled);
    json_close(json, '}');
}

static void algorithm_json(const struct recon_request *request, struct json *json)
{
    json_text(json, "algorithm", recon_algorithms[request->algorithm]);
    json_int(json, "subsets", request->subsets);
    json_int(json, "iterations_before", request->iterations_before);
    if (request->bootstraps) json_int(json, "bootstrap_seed", (int64_t)request->bootstrap_seed);
    if (request->algorithm == RECON_RAMLA || request->algorithm == RECON_BSREM) {
        json_number(json, "relaxation", request->relaxation);
        json_number(json, "fall", request->relaxation_fall);
    }
    if (request->algorithm == RECON_RAMLA) json_text(json, "steps", request->own_steps ? "own" : "common");
    recon_prior_json(request, json);
    if (request->has_psf) json_numbers(json, "psf_mm", request->psf_mm, 3);
}

void recon_head_json(const struct recon *recon, struct json *json)
{
    setup_json(&recon->setup, json);
    algorithm_json(&recon->request, json);
    cluster_json(&recon->cluster, json);
    recon_ranks_json(recon, json);
    if (recon->frames.count > 0) events_json(json, &recon->frames.all->info.counts);
}

static void print_json(const struct recon *recon, bool stopped)
{
    struct json json = common_json_begin("recon");
    recon_head_json(recon, &json);
    json_text(&json, "output", recon->request.output);
    json_text(&json, "picture", recon->request.picture);
    json_bool(&json, "stopped", stopped);
    if (recon->request.events != NULL) events_json(&json, &recon->inputs.events);
    randoms_json(recon, &json);
    json_open(&json, "iterations", '[');
    for (int k = 0; k < recon->num_done; k++)
        recon_iteration_json(&json, &recon->history[k], recon->steps != NULL ? &recon->steps[k] : NULL);
    json_close(&json, ']');
    json_number(&json, recon_counts_emissions(recon) ? "emissions" : "image_sum", emissions(recon));
    json_number(&json, "seconds", report_seconds() - recon->start_s);
    json_int(&json, "peak_memory_bytes", common_peak_memory());
    common_json_end(&json);
}

/* --- text --- */

void recon_report(const struct recon *recon, bool stopped)
{
    char duration[32], memory[32];
    const lr_iteration none = {.number = recon->request.iterations_before};
    const lr_iteration *last = recon->num_done > 0 ? &recon->history[recon->num_done - 1] : &none;
    report_clear(recon->setup.report);
    report_info(recon->setup.report, "done in %s, peak memory %s",
                report_duration(duration, report_seconds() - recon->start_s),
                common_bytes(memory, common_peak_memory()));
    if (recon->setup.report->json) {
        if (recon->frames.count == 0) print_json(recon, stopped);
        return;
    }
    if (!last->has_fit) {
        printf("%s: iteration %d, %.9g %s\n", recon->request.output, last->number, emissions(recon), unit_of(recon));
        return;
    }
    const bool is_composed = recon->request.combine == RECON_PAPER;
    printf("%s: iteration %d, %.9g %s, log-likelihood %.9g%s, %.9g of %.9g counts used\n", recon->request.output,
           last->number, emissions(recon), unit_of(recon), last->log_likelihood,
           is_composed ? "" : " before its update", last->measured_counts,
           last->measured_counts + last->left_out_counts);
}

/* --- the picture --- */

/* Mean position of the activity; of the grid where there is none. */
static void find_centre(const lr_image *image, double centre_mm[3])
{
    const int64_t count = lr_grid_num_voxels(&image->grid);
    double sum = 0, moment[3] = {0};
    for (int64_t row = 0; row < count; row++) {
        double at[3];
        lr_grid_voxel_centre(&image->grid, row, at);
        sum += image->values[row];
        for (int k = 0; k < 3; k++) moment[k] += image->values[row] * at[k];
    }
    for (int k = 0; k < 3; k++) {
        const lr_grid *grid = &image->grid;
        centre_mm[k] = sum > 0 ? moment[k] / sum : grid->origin_mm[k] + 0.5 * (grid->size[k] - 1) * grid->voxel_mm[k];
    }
}

/* One scale for the three: about 400 pixels for the longest edge of the grid. */
static double choose_scale(const lr_grid *grid)
{
    double longest_mm = 0;
    for (int k = 0; k < 3; k++) longest_mm = fmax(longest_mm, grid->size[k] * grid->voxel_mm[k]);
    return 400 / longest_mm;
}

/* Never -0, which would be printed with its sign. */
static double to_tenths(double value)
{
    return 0.1 * round(10.0 * value) + 0.0;
}

static lr_status add_slices(const struct recon *recon, struct album *album)
{
    static const char *const names[] = {"transaxial, z", "coronal, y", "sagittal, x"};
    static const lr_plane planes[] = {LR_PLANE_TRANSAXIAL, LR_PLANE_CORONAL, LR_PLANE_SAGITTAL};
    double centre_mm[3];
    find_centre(recon->image, centre_mm);
    for (int k = 0; k < 3; k++) {
        const lr_slice_params params = {
            .image = recon->image,
            .plane = planes[k],
            .position_mm = centre_mm[2 - k],
            .pixels_per_mm = choose_scale(&recon->setup.grid),
            .colours = LR_COLOURS_INVERSE_GREY,
            .axes = true,
            .colour_bar = true,
            .unit = recon_counts_emissions(recon) ? "emissions per voxel" : "activity, of its own scale",
            .log = &recon->setup.report->log,
        };
        CLI_TRY(album_add(album, lr_picture_slice(&params), "%s = %.1f mm", names[k], to_tenths(centre_mm[2 - k])));
    }
    return LR_OK;
}

lr_status recon_draw(const struct recon *recon)
{
    const char *name = recon->setup.scanner != NULL ? recon->setup.scanner->name : "Histo-images";
    char note[96];
    struct album album = {.report = recon->setup.report, .note = note};
    const int done = recon->request.iterations_before + recon->num_done;
    snprintf(note, sizeof(note), "%d iteration%s, %.4g %s", done, done == 1 ? "" : "s", emissions(recon),
             unit_of(recon));
    lr_status status = add_slices(recon, &album);
    if (status == LR_OK) status = album_write(&album, recon->request.picture, 3, name);
    album_finish(&album);
    return status;
}
