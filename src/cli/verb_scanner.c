/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "common.h"
#include "verbs.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* What a person wants to know of a scanner at a glance. */
struct summary {
    double radius_mm[2]; /* least and greatest distance of a front face's centre from the axis */
    double axial_mm[2];  /* lowest and highest z of the front faces' corners */
    int64_t num_lors;    /* numbered ones */
    int64_t num_pairs;
};

static void add_module(struct summary *summary, const lr_module *module)
{
    const double radius = hypot(module->centre_mm[0], module->centre_mm[1]);
    const double half = 0.5 * (module->crystals[0] * module->pitch_mm[0] * fabs(module->u[2]) +
                               module->crystals[1] * module->pitch_mm[1] * fabs(module->v[2]));
    summary->radius_mm[0] = fmin(summary->radius_mm[0], radius);
    summary->radius_mm[1] = fmax(summary->radius_mm[1], radius);
    summary->axial_mm[0] = fmin(summary->axial_mm[0], module->centre_mm[2] - half);
    summary->axial_mm[1] = fmax(summary->axial_mm[1], module->centre_mm[2] + half);
}

static struct summary summarise(const lr_scanner *scanner, const lr_lors *lors)
{
    struct summary summary = {{INFINITY, 0}, {INFINITY, -INFINITY}, lors->count, lors->num_pairs};
    for (int m = 0; m < scanner->num_modules; m++) {
        add_module(&summary, &scanner->modules[m]);
    }
    return summary;
}

static void print_rules(const lr_coincidence *rules)
{
    const char *separator = "";
    printf("coincidence    ");
    if (rules->field_of_view_mm > 0) {
        printf("field of view %g mm", rules->field_of_view_mm);
        separator = ", ";
    }
    if (rules->min_module_difference > 0) {
        printf("%smodules at least %d apart", separator, rules->min_module_difference);
        separator = ", ";
    }
    if (rules->limits_ring_difference) {
        printf("%sring difference at most %d", separator, rules->max_ring_difference);
        separator = ", ";
    }
    printf("%s\n", *separator ? "" : "every pair of modules");
}

static void print_summary(const lr_scanner *scanner, const struct summary *summary)
{
    const lr_module *first = &scanner->modules[0];
    printf("name           %s\n", scanner->name);
    printf("modules        %d", scanner->num_modules);
    if (scanner->num_positions > 0) {
        printf(" at %d places around the ring", scanner->num_positions);
    }
    printf("\ncrystals       %d; module 0 has %d x %d, pitch %g x %g mm, face %g x %g mm, "
           "depth %g mm\n",
           scanner->num_crystals, first->crystals[0], first->crystals[1], first->pitch_mm[0],
           first->pitch_mm[1], first->face_mm[0], first->face_mm[1], first->depth_mm);
    printf("LORs           %lld in %lld pairs of modules\n", (long long)summary->num_lors,
           (long long)summary->num_pairs);
    printf("radius         %.6g to %.6g mm\n", summary->radius_mm[0], summary->radius_mm[1]);
    printf("axial extent   %.6g to %.6g mm\n", summary->axial_mm[0], summary->axial_mm[1]);
    printf("hits read      %g mm behind the front face\n", scanner->detection_depth_mm);
    if (scanner->crystal_mu_per_mm > 0) {
        printf("crystals stop  with %g/mm at 511 keV: %.3g %% along the depth of module 0\n",
               scanner->crystal_mu_per_mm,
               -100 * expm1(-scanner->crystal_mu_per_mm * first->depth_mm));
    } else {
        printf("crystals stop  not known\n");
    }
    print_rules(&scanner->coincidence);
    if (scanner->tof_resolution_ps > 0) {
        printf("time of flight %g ps FWHM\n", scanner->tof_resolution_ps);
    } else {
        printf("time of flight none\n");
    }
    printf("source         %s\n", scanner->source ? scanner->source : "not given");
}

static void summary_json(const lr_scanner *scanner, const struct summary *summary,
                         struct json *json)
{
    const lr_coincidence *rules = &scanner->coincidence;
    json_text(json, "name", scanner->name);
    json_int(json, "num_modules", scanner->num_modules);
    json_int(json, "num_positions", scanner->num_positions);
    json_int(json, "num_crystals", scanner->num_crystals);
    json_int(json, "num_lors", summary->num_lors);
    json_int(json, "num_pairs", summary->num_pairs);
    json_numbers(json, "radius_mm", summary->radius_mm, 2);
    json_numbers(json, "axial_mm", summary->axial_mm, 2);
    json_number(json, "detection_depth_mm", scanner->detection_depth_mm);
    json_number(json, "tof_resolution_ps", scanner->tof_resolution_ps);
    json_number(json, "crystal_mu_per_mm",
                scanner->crystal_mu_per_mm > 0 ? scanner->crystal_mu_per_mm : NAN);
    json_open(json, "coincidence", '{');
    json_number(json, "field_of_view_mm",
                rules->field_of_view_mm > 0 ? rules->field_of_view_mm : NAN);
    json_number(json, "min_module_difference",
                rules->min_module_difference > 0 ? rules->min_module_difference : NAN);
    json_number(json, "max_ring_difference",
                rules->limits_ring_difference ? rules->max_ring_difference : NAN);
    json_close(json, '}');
    json_text(json, "source", scanner->source);
}

/* Calls `take` for each crystal in the order of its number. */
static void visit_crystals(const lr_scanner *scanner, struct json *json,
                           void (*take)(struct json *json, int module, const int cell[2],
                                        const double place[6]))
{
    for (int m = 0; m < scanner->num_modules; m++) {
        const lr_module *module = &scanner->modules[m];
        for (int q = 0; q < module->crystals[1]; q++) {
            for (int p = 0; p < module->crystals[0]; p++) {
                const int cell[2] = {p, q};
                double place[6];
                lr_module_crystal_centre(module, p, q, place);
                memcpy(place + 3, module->normal, sizeof(module->normal));
                take(json, m, cell, place);
            }
        }
    }
}

static void crystal_line(struct json *json, int module, const int cell[2], const double place[6])
{
    (void)json;
    printf("%d %d %d", module, cell[0], cell[1]);
    for (int k = 0; k < 6; k++) {
        printf(" %.9g", place[k]);
    }
    putchar('\n');
}

static void crystal_json(struct json *json, int module, const int cell[2], const double place[6])
{
    json_open(json, NULL, '[');
    json_int(json, NULL, module);
    json_int(json, NULL, cell[0]);
    json_int(json, NULL, cell[1]);
    for (int k = 0; k < 6; k++) {
        json_number(json, NULL, place[k]);
    }
    json_close(json, ']');
}

static void show(const struct cli_args *args, const lr_scanner *scanner, const lr_lors *lors)
{
    const struct summary summary = summarise(scanner, lors);
    const bool crystals = args_has(args, "--crystals");
    if (args->report->json) {
        struct json json = common_json_begin("scanner show");
        summary_json(scanner, &summary, &json);
        if (crystals) {
            json_open(&json, "crystals", '[');
            visit_crystals(scanner, &json, crystal_json);
            json_close(&json, ']');
        }
        common_json_end(&json);
    } else if (crystals) {
        puts("module p q x_mm y_mm z_mm nx ny nz");
        visit_crystals(scanner, NULL, crystal_line);
    } else {
        print_summary(scanner, &summary);
    }
}

/* Opens the scanner that the command line names; both belong to the setup. */
static lr_status open_scanner(struct cli_args *args, struct setup *setup)
{
    if (args->num_positional != 1) {
        args_complain(args, "%s needs one %s", args->syntax->verb, args->syntax->positionals);
        return args->status;
    }
    setup->report = args->report;
    setup->scanner = lr_scanner_read(args->positional[0], &args->report->log);
    if (setup->scanner != NULL) {
        setup->lors = lr_lors_create(setup->scanner, &args->report->log);
    }
    return setup->lors != NULL ? LR_OK : report_reason(args->report);
}

static lr_status run_show(struct cli_args *args)
{
    struct setup setup = {0};
    const lr_status status = open_scanner(args, &setup);
    if (status == LR_OK) {
        show(args, setup.scanner, setup.lors);
    }
    setup_finish(&setup);
    return status;
}

static lr_status run_check(struct cli_args *args)
{
    struct setup setup = {0};
    const lr_status status = open_scanner(args, &setup);
    if (status == LR_OK && args->report->json) {
        const struct summary summary = summarise(setup.scanner, setup.lors);
        struct json json = common_json_begin("scanner check");
        json_bool(&json, "good", true);
        summary_json(setup.scanner, &summary, &json);
        common_json_end(&json);
    } else if (status == LR_OK) {
        printf("%s: good: %s, %d modules, %d crystals, %lld LORs\n", args->positional[0],
               setup.scanner->name, setup.scanner->num_modules, setup.scanner->num_crystals,
               (long long)setup.lors->count);
    }
    setup_finish(&setup);
    return status;
}

static const struct cli_option show_options[] = {
    {"--crystals", NULL, "one line per crystal: module p q x_mm y_mm z_mm nx ny nz", false},
    {0},
};

static const struct cli_syntax show_syntax = {
    .verb = "scanner show",
    .positionals = "NAME|FILE",
    .summary = "Describes a scanner, or lists its crystals (volume centre and inward normal).",
    .example = "loraster scanner show ge-explore-vista-dr --crystals",
    .groups = {{"output", show_options}, COMMON_GENERAL_GROUP},
};

static const struct cli_syntax check_syntax = {
    .verb = "scanner check",
    .positionals = "FILE",
    .summary = "Says whether a scanner file is good, and what is wrong with it.",
    .example = "loraster scanner check my-scanner.yaml",
    .groups = {COMMON_GENERAL_GROUP},
};

const struct cli_verb verb_scanner_show = {&show_syntax, run_show};
const struct cli_verb verb_scanner_check = {&check_syntax, run_check};
