/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "common.h"
#include "scanner_summary.h"
#include "verbs.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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

/* The layers of the first block. */
static void print_layers(const lr_scanner *scanner, int num_layers)
{
    const lr_module *first = &scanner->modules[0];
    const char *separator = "";
    if (num_layers == 1) return;
    printf("layers         up to %d a block; that of module 0 has ", num_layers);
    for (int m = 0; m < scanner->num_modules; m++) {
        const lr_module *module = &scanner->modules[m];
        if (m == 0 || (first->block > 0 && module->block == first->block)) {
            printf("%s%d x %d of %g mm", separator, module->crystals[0], module->crystals[1], module->depth_mm);
            separator = ", ";
        }
    }
    putchar('\n');
}

static void print_summary(const lr_scanner *scanner, const struct scanner_summary *summary)
{
    const lr_module *first = &scanner->modules[0];
    printf("name           %s\n", scanner->name);
    printf("modules        %d", scanner->num_modules);
    if (scanner->num_positions > 0) printf(" at %d places around the ring", scanner->num_positions);
    printf("\ncrystals       %d; module 0 has %d x %d, pitch %g x %g mm, face %g x %g mm, "
           "depth %g mm\n",
           scanner->num_crystals, first->crystals[0], first->crystals[1], first->pitch_mm[0], first->pitch_mm[1],
           first->face_mm[0], first->face_mm[1], first->depth_mm);
    print_layers(scanner, summary->num_layers);
    printf("LORs           %lld in %lld pairs of modules\n", (long long)summary->num_lors,
           (long long)summary->num_pairs);
    printf("radius         %.6g to %.6g mm\n", summary->radius_mm[0], summary->radius_mm[1]);
    printf("axial extent   %.6g to %.6g mm\n", summary->axial_mm[0], summary->axial_mm[1]);
    printf("hits read      %g mm behind the front face\n", scanner->detection_depth_mm);
    const double mu = first->mu_per_mm > 0 ? first->mu_per_mm : scanner->crystal_mu_per_mm;
    if (mu > 0) {
        printf("crystals stop  with %g/mm at 511 keV: %.3g %% along the depth of module 0\n", mu,
               -100 * expm1(-mu * first->depth_mm));
    } else {
        printf("crystals stop  not known\n");
    }
    print_rules(&scanner->coincidence);
    if (scanner->tof_resolution_ps > 0)
        printf("time of flight %g ps FWHM\n", scanner->tof_resolution_ps);
    else
        printf("time of flight none\n");
    printf("source         %s\n", scanner->source ? scanner->source : "not given");
}

/* Calls `take` for each crystal in the order of its number. */
static void visit_crystals(const lr_scanner *scanner, struct json *json,
                           void (*take)(struct json *json, int module, const int cell[2], const double place[6]))
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
    for (int k = 0; k < 6; k++) printf(" %.9g", place[k]);
    putchar('\n');
}

static void crystal_json(struct json *json, int module, const int cell[2], const double place[6])
{
    json_open(json, NULL, '[');
    json_int(json, NULL, module);
    json_int(json, NULL, cell[0]);
    json_int(json, NULL, cell[1]);
    for (int k = 0; k < 6; k++) json_number(json, NULL, place[k]);
    json_close(json, ']');
}

static void show(const struct cli_args *args, const lr_scanner *scanner, const struct scanner_summary *summary)
{
    const bool crystals = args_has(args, "--crystals");
    if (args->report->json) {
        struct json json = common_json_begin("scanner show");
        scanner_summary_json(scanner, summary, &json);
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
        print_summary(scanner, summary);
    }
}

/* Opens the scanner that the command line names, which belongs to the setup. */
static lr_status open_scanner(struct cli_args *args, struct setup *setup, struct scanner_summary *summary)
{
    if (args->num_positional != 1) {
        args_complain(args, "%s needs one %s", args->syntax->verb, args->syntax->positionals);
        return args->status;
    }
    setup->report = args->report;
    setup->scanner = lr_scanner_read(args->positional[0], &args->report->log);
    return setup->scanner != NULL ? scanner_summarise(setup->scanner, args->report, summary)
                                  : report_reason(args->report);
}

static lr_status run_show(struct cli_args *args)
{
    struct setup setup = {0};
    struct scanner_summary summary;
    const lr_status status = open_scanner(args, &setup, &summary);
    if (status == LR_OK) show(args, setup.scanner, &summary);
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

const struct cli_verb verb_scanner_show = {&show_syntax, run_show};
