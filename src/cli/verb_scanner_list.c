/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "common.h"
#include "verbs.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A line of the table. */
struct entry {
    const char *preset;
    const lr_scanner *scanner;
    int64_t num_lors;
    double radius_mm; /* least distance of a front plane from the axis */
    double length_mm; /* along the axis, outer edges of the front faces */
    int num_unverified;
};

static int count_unverified(const char *source)
{
    static const char mark[] = "unverified: ";
    int count = 0;
    for (const char *at = source; at != NULL && (at = strstr(at, mark)) != NULL; at++) count++;
    return count;
}

static void measure(const lr_scanner *scanner, struct entry *entry)
{
    double low = INFINITY, high = -INFINITY;
    entry->radius_mm = INFINITY;
    for (int m = 0; m < scanner->num_modules; m++) {
        const lr_module *module = &scanner->modules[m];
        const double *at = module->centre_mm;
        const double half = 0.5 * (module->crystals[0] * module->pitch_mm[0] * fabs(module->u[2]) +
                                   module->crystals[1] * module->pitch_mm[1] * fabs(module->v[2]));
        const double distance = fabs(module->normal[0] * at[0] + module->normal[1] * at[1] + module->normal[2] * at[2]);
        entry->radius_mm = fmin(entry->radius_mm, distance);
        low = fmin(low, at[2] - half);
        high = fmax(high, at[2] + half);
    }
    entry->length_mm = high - low;
}

/* "1,234,567" */
static const char *grouped(char text[32], int64_t number)
{
    char digits[24];
    const int length = snprintf(digits, sizeof(digits), "%lld", (long long)number);
    int used = 0;
    for (int k = 0; k < length; k++) {
        text[used++] = digits[k];
        if ((length - k) % 3 == 1 && k + 1 < length) text[used++] = ',';
    }
    text[used] = '\0';
    return text;
}

static void print_entry(const struct entry *entry)
{
    char crystals[32], lors[32], tof[32] = "none", trust[40] = "verified";
    if (entry->scanner->tof_resolution_ps > 0) snprintf(tof, sizeof(tof), "%g ps", entry->scanner->tof_resolution_ps);
    if (entry->scanner->source == NULL)
        snprintf(trust, sizeof(trust), "no source");
    else if (entry->num_unverified > 0)
        snprintf(trust, sizeof(trust), "%d unverified", entry->num_unverified);
    printf("%-26s %8s %13s %8.1f mm %7.1f mm %9s  %s\n", entry->preset, grouped(crystals, entry->scanner->num_crystals),
           grouped(lors, entry->num_lors), entry->radius_mm, entry->length_mm, tof, trust);
}

static void entry_json(const struct entry *entry, struct json *json)
{
    json_open(json, NULL, '{');
    json_text(json, "preset", entry->preset);
    json_text(json, "name", entry->scanner->name);
    json_int(json, "num_modules", entry->scanner->num_modules);
    json_int(json, "num_crystals", entry->scanner->num_crystals);
    json_int(json, "num_lors", entry->num_lors);
    json_number(json, "radius_mm", entry->radius_mm);
    json_number(json, "axial_length_mm", entry->length_mm);
    json_number(json, "tof_resolution_ps", entry->scanner->tof_resolution_ps);
    json_int(json, "num_unverified", entry->num_unverified);
    json_close(json, '}');
}

static lr_status list_preset(const char *preset, struct report *report, struct json *json)
{
    lr_scanner *scanner = lr_scanner_read(preset, &report->log);
    lr_lors_size size;
    const lr_status status =
        scanner != NULL ? lr_lors_count(scanner, &report->progress, &size, &report->log) : report_reason(report);
    if (status == LR_OK) {
        struct entry entry = {.preset = preset, .scanner = scanner, .num_lors = size.num_lors};
        measure(scanner, &entry);
        entry.num_unverified = count_unverified(scanner->source);
        if (json != NULL)
            entry_json(&entry, json);
        else
            print_entry(&entry);
    }
    lr_scanner_destroy(scanner);
    return status;
}

static lr_status run_list(struct cli_args *args)
{
    const char *const *presets = lr_scanner_presets();
    lr_status status = LR_OK;
    struct json json = {stdout, false};
    if (args->report->json) {
        json = common_json_begin("scanner list");
        json_open(&json, "scanners", '[');
    } else {
        printf("%-26s %8s %13s %11s %10s %9s  %s\n", "preset", "crystals", "LORs", "radius", "length", "TOF",
               "numbers");
    }
    for (int k = 0; presets[k] != NULL && status == LR_OK; k++)
        status = list_preset(presets[k], args->report, args->report->json ? &json : NULL);
    if (args->report->json) {
        json_close(&json, ']');
        common_json_end(&json);
    }
    return status;
}

static const struct cli_syntax list_syntax = {
    .verb = "scanner list",
    .summary = "Lists the built-in scanners: LORs of crystal pairs in coincidence, sizes, and how "
               "many statements on their numbers are unverified.",
    .example = "loraster scanner list",
    .groups = {COMMON_GENERAL_GROUP},
};

const struct cli_verb verb_scanner_list = {&list_syntax, run_list};
