/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "base/log.h"
#include "viewer/script/command.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void get_hover_module(struct app *app, struct command_value *value)
{
    value->number = app->probe.hit.module;
}

static void get_hover_crystal(struct app *app, struct command_value *value)
{
    const struct pick_hit *hit = &app->probe.hit;
    const bool is_there = hit->module >= 0;
    snprintf(value->text, sizeof(value->text), "%d,%d", is_there ? hit->crystal[0] : -1,
             is_there ? hit->crystal[1] : -1);
}

static void get_scanner(struct app *app, struct command_value *value)
{
    const lr_scanner *scanner = app->open.scanner;
    snprintf(value->text, sizeof(value->text), "%s", scanner != NULL ? scanner->name : "none");
}

static void get_modules(struct app *app, struct command_value *value)
{
    const lr_scanner *scanner = app->open.scanner;
    value->number = scanner != NULL ? scanner->num_modules : 0;
}

static void get_fps(struct app *app, struct command_value *value)
{
    value->number = app->frame_s > 0.0 ? 1.0 / app->frame_s : 0.0;
}

static void get_longest(struct app *app, struct command_value *value)
{
    value->number = app->longest_frame_s;
    app->longest_frame_s = 0.0;
}

static void get_message(struct app *app, struct command_value *value)
{
    snprintf(value->text, sizeof(value->text), "%s",
             app->num_messages > 0 ? app->messages[(app->num_messages - 1) % APP_MESSAGES].text : "none");
}

static void get_turn(struct app *app, struct command_value *value)
{
    value->number = app->camera.turn_deg;
}

static void get_distance(struct app *app, struct command_value *value)
{
    value->number = app->camera.distance_mm;
}

static void get_touched(struct app *app, struct command_value *value)
{
    const struct voxel_pixel *pixel = &app->voxel.touched;
    if (!app->voxel.has_touch) {
        snprintf(value->text, sizeof(value->text), "none");
        return;
    }
    snprintf(value->text, sizeof(value->text), "%d,%d,%d,%d,%d,%d", pixel->module, pixel->p, pixel->q, pixel->other,
             pixel->r, pixel->s);
}

static void get_touched_lor(struct app *app, struct command_value *value)
{
    value->number = app->voxel.has_touch ? (double)app->voxel.touched.lor : -1.0;
}

static void get_touched_exact(struct app *app, struct command_value *value)
{
    value->number = app->voxel.has_touch ? app->voxel.touched.voxel_exact : NAN;
}

static void get_touched_sampled(struct app *app, struct command_value *value)
{
    value->number = app->voxel.has_touch ? app->voxel.touched.voxel_sampled : NAN;
}

static void get_touched_point_exact(struct app *app, struct command_value *value)
{
    value->number = app->voxel.has_touch ? app->voxel.touched.point_exact : NAN;
}

static void get_touched_point_sampled(struct app *app, struct command_value *value)
{
    value->number = app->voxel.has_touch ? app->voxel.touched.point_sampled : NAN;
}

static void get_touched_weight(struct app *app, struct command_value *value)
{
    value->number = app->voxel.has_touch ? app->voxel.touched.weight : NAN;
}

static void get_voxel_row(struct app *app, struct command_value *value)
{
    const struct voxel_result *result = voxel_tool_result(app);
    value->number = result != NULL ? (double)result->voxel_row : -1.0;
}

static void get_voxel_gap(struct app *app, struct command_value *value)
{
    const char *why = app->voxel.gap.why;
    snprintf(value->text, sizeof(value->text), "%s", why[0] != '\0' ? why : "none");
}

static void get_voxel_better(struct app *app, struct command_value *value)
{
    value->number = app->voxel.gap.better;
}

static void get_voxel_primary(struct app *app, struct command_value *value)
{
    value->number = app->voxel.request.all_primaries ? -1 : app->voxel.request.primary;
}

static void get_voxel_sum(struct app *app, struct command_value *value)
{
    const struct voxel_result *result = voxel_tool_result(app);
    value->number = result == NULL ? 0.0 : result->is_part ? NAN : result->voxel_exact.sum;
}

static void get_drawn_by(struct app *app, struct command_value *value)
{
    const struct voxel_result *result = voxel_tool_result(app);
    snprintf(value->text, sizeof(value->text), "%s", result != NULL ? result->drawn_by : "none");
}

static void get_sampled_by(struct app *app, struct command_value *value)
{
    const struct voxel_result *result = voxel_tool_result(app);
    snprintf(value->text, sizeof(value->text), "%s", result != NULL ? result->sampled_by : "none");
}

static void get_exact_by(struct app *app, struct command_value *value)
{
    const struct voxel_result *result = voxel_tool_result(app);
    const char *name = result != NULL ? result->exact_by : NULL;
    snprintf(value->text, sizeof(value->text), "%s", name != NULL ? name : "none");
}

static void get_voxel_pairs(struct app *app, struct command_value *value)
{
    const struct voxel_result *result = voxel_tool_result(app);
    value->number = result != NULL && result->is_part ? (double)result->num_pairs : 0.0;
}

static void get_tube_sum(struct app *app, struct command_value *value)
{
    const struct tube_result *result = tube_result(app->lor.tube, NULL);
    value->number = result != NULL ? result->sum : 0.0;
}

static void get_tube_voxels(struct app *app, struct command_value *value)
{
    const struct tube_result *result = tube_result(app->lor.tube, NULL);
    value->number = result != NULL ? (double)result->num_voxels : 0.0;
}

static void get_tube_peak(struct app *app, struct command_value *value)
{
    const struct tube_result *result = tube_result(app->lor.tube, NULL);
    value->number = result != NULL ? result->peak_mm : NAN;
}

static void get_tube_kernel(struct app *app, struct command_value *value)
{
    snprintf(value->text, sizeof(value->text), "%s", lor_kernels[app->lor.request.kernel]);
}

static void get_tube_tof(struct app *app, struct command_value *value)
{
    value->number = app->lor.request.has_tof ? app->lor.request.tof_mm : NAN;
}

static void get_frame(struct app *app, struct command_value *value)
{
    value->number = app->frames.number;
}

static void get_num_frames(struct app *app, struct command_value *value)
{
    value->number = app->frames.count;
}

static void get_tube_error(struct app *app, struct command_value *value)
{
    snprintf(value->text, sizeof(value->text), "%.255s", app->lor.error[0] != '\0' ? app->lor.error : "none");
}

static void get_sensitivity(struct app *app, struct command_value *value)
{
    const struct sensitivity_result *result = sensitivity_result(app->maps.sensitivity, NULL);
    value->number = result != NULL ? result->largest : 0.0;
}

static void get_iterations(struct app *app, struct command_value *value)
{
    value->number = app->live.num_iterations;
}

static void get_likelihood(struct app *app, struct command_value *value)
{
    value->number = app->live.num_iterations > 0 ? app->live.last.log_likelihood : 0.0;
}

/* --- the record of a run --- */

/* NULL where none is open. */
static const struct lr_run_image *recorded(const struct app *app)
{
    const struct record_tool *tool = &app->record;
    return tool->record.num_images > 0 ? &tool->record.images[tool->shown] : NULL;
}

static void get_record_iterations(struct app *app, struct command_value *value)
{
    value->number = recorded(app) != NULL ? recorded(app)->count : 0;
}

static void get_record_frame(struct app *app, struct command_value *value)
{
    value->number = app->record.record.has_frames ? app->record.shown + 1 : 0;
}

static void get_record_frames(struct app *app, struct command_value *value)
{
    value->number = app->record.record.has_frames ? app->record.record.num_images : 0;
}

static double last_of(const struct app *app, enum lr_run_curve curve)
{
    const struct lr_run_image *image = recorded(app);
    return image != NULL && image->has[curve] ? (double)image->values[curve][image->count - 1] : 0.0;
}

static void get_record_likelihood(struct app *app, struct command_value *value)
{
    value->number = last_of(app, LR_RUN_LIKELIHOOD);
}

static void get_record_error(struct app *app, struct command_value *value)
{
    value->number = last_of(app, LR_RUN_ERROR);
}

/* --- guesses, composed --- */

static const struct live_round *last_round(const struct app *app)
{
    return app->live.guesses.rounds > 0 ? &app->live.guesses.last : NULL;
}

static void get_rounds(struct app *app, struct command_value *value)
{
    value->number = app->live.guesses.rounds;
}

static void get_condition(struct app *app, struct command_value *value)
{
    value->number = last_round(app) != NULL ? last_round(app)->condition : NAN;
}

static void get_residual(struct app *app, struct command_value *value)
{
    value->number = last_round(app) != NULL ? last_round(app)->residual : NAN;
}

static void get_clipped_residual(struct app *app, struct command_value *value)
{
    value->number = last_round(app) != NULL ? last_round(app)->clipped_residual : NAN;
}

static void get_negative_voxels(struct app *app, struct command_value *value)
{
    value->number = last_round(app) != NULL ? (double)last_round(app)->negative_voxels : NAN;
}

static void write_numbers(const double *numbers, int count, struct command_value *value)
{
    size_t length = 0;
    for (int k = 0; k < count; k++) {
        length += (size_t)snprintf(value->text + length, sizeof(value->text) - length, "%s%.*g", k > 0 ? "," : "",
                                   count > 12 ? 8 : 10, numbers[k]);
        length = length < sizeof(value->text) ? length : sizeof(value->text) - 1;
    }
}

static void get_weights(struct app *app, struct command_value *value)
{
    const struct live_round *round = last_round(app);
    snprintf(value->text, sizeof(value->text), "none");
    write_numbers(round != NULL ? round->weights : NULL, round != NULL ? round->count : 0, value);
}

static void get_residuals(struct app *app, struct command_value *value)
{
    const struct live_round *round = last_round(app);
    snprintf(value->text, sizeof(value->text), "none");
    write_numbers(round != NULL ? round->residuals : NULL, round != NULL ? round->count : 0, value);
}

static void get_on_device(struct app *app, struct command_value *value)
{
    value->number = app->live.is_on_device;
}

static void get_live_backend(struct app *app, struct command_value *value)
{
    snprintf(value->text, sizeof(value->text), "%s", app->live.backend);
}

static void get_live_error(struct app *app, struct command_value *value)
{
    const char *error = app->live.error;
    snprintf(value->text, sizeof(value->text), "%.255s", error[0] != '\0' ? error : "none");
}

static void get_to_device(struct app *app, struct command_value *value)
{
    value->number = app->live.num_iterations > 0 ? (double)app->live.last.traffic.to_device : 0.0;
}

static void get_to_host(struct app *app, struct command_value *value)
{
    value->number = app->live.num_iterations > 0 ? (double)app->live.last.traffic.to_host : 0.0;
}

static void get_suspects(struct app *app, struct command_value *value)
{
    value->number = app->doctor.diagnosis != NULL ? app->doctor.diagnosis->num_suspects : 0;
}

/* --- the family direct --- */

static const lr_direct_tables_info *tables_info(const struct app *app)
{
    const struct direct_result *result = direct_tool_result(app);
    return result != NULL ? lr_direct_tables_get_info(result->tables) : NULL;
}

static void get_identifiers(struct app *app, struct command_value *value)
{
    const lr_direct_tables_info *info = tables_info(app);
    value->number = info != NULL ? info->num_identifiers : 0;
}

static void get_offsets(struct app *app, struct command_value *value)
{
    const lr_direct_tables_info *info = tables_info(app);
    value->number = info != NULL ? (double)info->num_offsets : 0.0;
}

static void get_kernel(struct app *app, struct command_value *value)
{
    const struct direct_result *result = direct_tool_result(app);
    value->number = result != NULL && result->is_inside ? result->kernel : -1;
}

static void get_kernel_value(struct app *app, struct command_value *value)
{
    const struct direct_result *result = direct_tool_result(app);
    value->number = result != NULL && result->is_inside ? direct_model_value(result, app->direct.offset) : 0.0;
}

static void get_histo_counts(struct app *app, struct command_value *value)
{
    value->number = app->direct.counts;
}

static const struct command_source values[] = {
    {"touched", get_touched},
    {"touched.lor", get_touched_lor},
    {"touched.exact", get_touched_exact},
    {"touched.sampled", get_touched_sampled},
    {"touched.point_exact", get_touched_point_exact},
    {"touched.point_sampled", get_touched_point_sampled},
    {"touched.weight", get_touched_weight},
    {"voxel.row", get_voxel_row},
    {"voxel.sum", get_voxel_sum},
    {"voxel.module", get_voxel_primary},
    {"voxel.gap", get_voxel_gap},
    {"voxel.better", get_voxel_better},
    {"voxel.pairs", get_voxel_pairs},
    {"voxel.drawn_by", get_drawn_by},
    {"voxel.sampled_by", get_sampled_by},
    {"voxel.exact_by", get_exact_by},
    {"tube.sum", get_tube_sum},
    {"tube.error", get_tube_error},
    {"tube.voxels", get_tube_voxels},
    {"tube.peak_mm", get_tube_peak},
    {"tube.kernel", get_tube_kernel},
    {"tube.tof_mm", get_tube_tof},
    {"image.frame", get_frame},
    {"image.frames", get_num_frames},
    {"sensitivity.largest", get_sensitivity},
    {"live.iterations", get_iterations},
    {"live.log_likelihood", get_likelihood},
    {"live.on_device", get_on_device},
    {"record.frame", get_record_frame},
    {"record.frames", get_record_frames},
    {"record.iterations", get_record_iterations},
    {"record.log_likelihood", get_record_likelihood},
    {"record.image_error", get_record_error},
    {"compose.rounds", get_rounds},
    {"compose.weights", get_weights},
    {"compose.condition", get_condition},
    {"compose.residual", get_residual},
    {"compose.residuals", get_residuals},
    {"compose.clipped_residual", get_clipped_residual},
    {"compose.negative_voxels", get_negative_voxels},
    {"live.backend", get_live_backend},
    {"live.error", get_live_error},
    {"live.to_device", get_to_device},
    {"live.to_host", get_to_host},
    {"doctor.suspects", get_suspects},
    {"direct.identifiers", get_identifiers},
    {"direct.offsets", get_offsets},
    {"direct.kernel", get_kernel},
    {"direct.value", get_kernel_value},
    {"direct.counts", get_histo_counts},
    {"hover.module", get_hover_module},
    {"hover.crystal", get_hover_crystal},
    {"scanner.name", get_scanner},
    {"scanner.modules", get_modules},
    {"frames_per_second", get_fps},
    {"longest_frame_s", get_longest},
    {"message", get_message},
    {"camera.turn_deg", get_turn},
    {"camera.distance_mm", get_distance},
};

static const struct command_source *find(const struct command_source *sources, size_t count, const char *name)
{
    for (size_t k = 0; k < count; k++)
        if (strcmp(sources[k].name, name) == 0) return &sources[k];
    return NULL;
}

lr_status command_value(struct app *app, const char *name, struct command_value *value)
{
    const struct command_source *source = find(values, sizeof(values) / sizeof(values[0]), name);
    if (source == NULL) source = find(command_state_values, (size_t)command_num_state_values, name);
    if (source == NULL) {
        return lr_error(&app->log, LR_BAD_INPUT,
                        "there is no value %s: docs/guide/viewer-scripts.md lists them, such as %s", name,
                        values[0].name);
    }
    source->get(app, value);
    return LR_OK;
}
