/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "scanner_summary.h"

#include <math.h>

static void add_module(struct scanner_summary *summary, const lr_module *module)
{
    const double radius = hypot(module->centre_mm[0], module->centre_mm[1]);
    const double half = 0.5 * (module->crystals[0] * module->pitch_mm[0] * fabs(module->u[2]) +
                               module->crystals[1] * module->pitch_mm[1] * fabs(module->v[2]));
    summary->radius_mm[0] = fmin(summary->radius_mm[0], radius);
    summary->radius_mm[1] = fmax(summary->radius_mm[1], radius);
    summary->axial_mm[0] = fmin(summary->axial_mm[0], module->centre_mm[2] - half);
    summary->axial_mm[1] = fmax(summary->axial_mm[1], module->centre_mm[2] + half);
    summary->num_layers = module->layer >= summary->num_layers ? module->layer + 1 : summary->num_layers;
}

lr_status scanner_summarise(const lr_scanner *scanner, struct report *report, struct scanner_summary *summary)
{
    lr_lors_size size;
    const lr_status status = lr_lors_count(scanner, &report->progress, &size, &report->log);
    if (status != LR_OK) return status;
    *summary = (struct scanner_summary){{INFINITY, 0}, {INFINITY, -INFINITY}, size.num_lors, size.num_pairs, 1};
    for (int m = 0; m < scanner->num_modules; m++) add_module(summary, &scanner->modules[m]);
    return LR_OK;
}

void scanner_summary_json(const lr_scanner *scanner, const struct scanner_summary *summary, struct json *json)
{
    const lr_coincidence *rules = &scanner->coincidence;
    json_text(json, "name", scanner->name);
    json_int(json, "num_modules", scanner->num_modules);
    json_int(json, "num_positions", scanner->num_positions);
    json_int(json, "num_layers", summary->num_layers);
    json_int(json, "num_crystals", scanner->num_crystals);
    json_int(json, "num_lors", summary->num_lors);
    json_int(json, "num_pairs", summary->num_pairs);
    json_numbers(json, "radius_mm", summary->radius_mm, 2);
    json_numbers(json, "axial_mm", summary->axial_mm, 2);
    json_number(json, "detection_depth_mm", scanner->detection_depth_mm);
    json_number(json, "tof_resolution_ps", scanner->tof_resolution_ps);
    json_number(json, "crystal_mu_per_mm", scanner->crystal_mu_per_mm > 0 ? scanner->crystal_mu_per_mm : NAN);
    json_open(json, "coincidence", '{');
    json_number(json, "field_of_view_mm", rules->field_of_view_mm > 0 ? rules->field_of_view_mm : NAN);
    json_number(json, "min_module_difference", rules->min_module_difference > 0 ? rules->min_module_difference : NAN);
    json_number(json, "max_ring_difference", rules->limits_ring_difference ? rules->max_ring_difference : NAN);
    json_close(json, '}');
    json_text(json, "source", scanner->source);
}
