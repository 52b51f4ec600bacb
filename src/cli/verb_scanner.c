/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * scanner list, scanner show, scanner check, scanner convert. */
#include "common.h"
#include "report.h"
#include "verbs.h"

#include <lr/lr.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* The main figures of a scanner. */
struct scanner_summary {
    double radius_mm[2]; /* smallest and largest distance of a front face's centre from the axis */
    double axial_mm[2];  /* lowest and highest z of the front faces' corners */
    int num_layers;      /* largest number of layers of a block; 1 if blocks have no layers */
    int64_t num_lors;
    int64_t num_pairs;
};

/* Finds a scanner's main figures. errors: LR_BAD_INPUT if no modules are in coincidence, LR_CANCELLED. */
static lr_status scanner_summarise(const lr_scanner *scanner, struct report *report, struct scanner_summary *summary)
{
    lr_lors_size size;
    const lr_status status = lr_lors_count(scanner, &report->progress, &size, &report->log);
    if (status != LR_OK) return status;
    const lr_scanner_figures figures = lr_scanner_measure(scanner);
    *summary = (struct scanner_summary){.radius_mm = {INFINITY, 0},
                                        .axial_mm = {figures.low_mm[2], figures.high_mm[2]},
                                        .num_layers = figures.num_layers,
                                        .num_lors = size.num_lors,
                                        .num_pairs = size.num_pairs};
    for (int m = 0; m < scanner->num_modules; m++) {
        const double radius = hypot(scanner->modules[m].centre_mm[0], scanner->modules[m].centre_mm[1]);
        summary->radius_mm[0] = fmin(summary->radius_mm[0], radius);
        summary->radius_mm[1] = fmax(summary->radius_mm[1], radius);
    }
    return LR_OK;
}

/* Writes the keys of `scanner show --json` into an open object. */
static void scanner_summary_json(const lr_scanner *scanner, const struct scanner_summary *summary, struct json *json)
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

/* Says which of the photons that meet a crystal are counted. Absolute sensitivities depend on this. */
static const char *counted(const struct scanner_summary *summary)
{
    return summary->num_layers > 1
               ? "crystals stop photons along their depth, since blocks have layers (unless --layers-alone is given)"
               : "crystals are taken to stop every photon that meets them, unless --penetration is given";
}

/* --- show --- */

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
    const char *separator = "";
    if (summary->num_layers > 1) {
        printf("layers         up to %d a block; that of module 0 has ", summary->num_layers);
        for (int m = 0; m < scanner->num_modules; m++) {
            const lr_module *module = &scanner->modules[m];
            if (m == 0 || (first->block > 0 && module->block == first->block)) {
                printf("%s%d x %d of %g mm", separator, module->crystals[0], module->crystals[1], module->depth_mm);
                separator = ", ";
            }
        }
        putchar('\n');
    }
    printf("LORs           %lld in %lld pairs of modules\n", (long long)summary->num_lors,
           (long long)summary->num_pairs);
    printf("radius         %.6g to %.6g mm\n", summary->radius_mm[0], summary->radius_mm[1]);
    printf("axial extent   %.6g to %.6g mm\n", summary->axial_mm[0], summary->axial_mm[1]);
    printf("detected       %g mm behind the front face\n", scanner->detection_depth_mm);
    const double mu = first->mu_per_mm > 0 ? first->mu_per_mm : scanner->crystal_mu_per_mm;
    if (mu > 0) {
        printf("crystals stop  with %g/mm at 511 keV: %.3g %% along the depth of module 0\n", mu,
               -100 * expm1(-mu * first->depth_mm));
    } else {
        printf("crystals stop  not known\n");
    }
    printf("sensitivity    %s\n", counted(summary));
    separator = "";
    printf("coincidence    ");
    if (scanner->coincidence.field_of_view_mm > 0) {
        printf("field of view %g mm", scanner->coincidence.field_of_view_mm);
        separator = ", ";
    }
    if (scanner->coincidence.min_module_difference > 0) {
        printf("%smodules at least %d apart", separator, scanner->coincidence.min_module_difference);
        separator = ", ";
    }
    if (scanner->coincidence.limits_ring_difference) {
        printf("%sring difference at most %d", separator, scanner->coincidence.max_ring_difference);
        separator = ", ";
    }
    printf("%s\n", *separator ? "" : "every pair of modules");

    if (scanner->tof_resolution_ps > 0)
        printf("time of flight %g ps FWHM\n", scanner->tof_resolution_ps);
    else
        printf("time of flight none\n");
    printf("source         %s\n", scanner->source ? scanner->source : "not given");
}

/* Lists all crystals in ascending order, as arrays in `json` or, if `json` is NULL, as lines on standard output. */
static void list_crystals(const lr_scanner *scanner, struct json *json)
{
    for (int m = 0; m < scanner->num_modules; m++) {
        const lr_module *module = &scanner->modules[m];
        for (int q = 0; q < module->crystals[1]; q++) {
            for (int p = 0; p < module->crystals[0]; p++) {
                const int numbers[3] = {m, p, q};
                double place[6];
                lr_module_crystal_centre(module, p, q, place);
                memcpy(place + 3, module->normal, sizeof(module->normal));
                if (json != NULL) {
                    json_open(json, NULL, '[');
                    for (int k = 0; k < 3; k++) json_int(json, NULL, numbers[k]);
                    for (int k = 0; k < 6; k++) json_number(json, NULL, place[k]);
                    json_close(json, ']');
                } else {
                    printf("%d %d %d", m, p, q);
                    for (int k = 0; k < 6; k++) printf(" %.9g", place[k]);
                    putchar('\n');
                }
            }
        }
    }
}

static lr_status run_show(struct cli_args *args)
{
    struct scanner_summary summary;
    if (args->num_positional != 1) {
        args_complain(args, "%s needs one %s", args->verb->name, args->verb->positionals);
        return args->status;
    }
    lr_scanner *scanner = lr_scanner_read(args->positional[0], &args->report->log);
    if (scanner == NULL) return report_reason(args->report);
    const lr_status status = scanner_summarise(scanner, args->report, &summary);
    const bool crystals = args_has(args, "--crystals");
    if (status == LR_OK && args->report->json) {
        struct json json = common_json_begin(stdout, "scanner show");
        scanner_summary_json(scanner, &summary, &json);
        if (crystals) {
            json_open(&json, "crystals", '[');
            list_crystals(scanner, &json);
            json_close(&json, ']');
        }
        common_json_end(&json);
    } else if (status == LR_OK && crystals) {
        puts("module p q x_mm y_mm z_mm nx ny nz");
        list_crystals(scanner, NULL);
    } else if (status == LR_OK) {
        print_summary(scanner, &summary);
    }
    lr_scanner_destroy(scanner);
    return status;
}

static const struct cli_option show_options[] = {
    {"--crystals", NULL, "one line per crystal: module p q x_mm y_mm z_mm nx ny nz", NULL},
    {0},
};

const struct cli_verb verb_scanner_show = {
    .name = "scanner show",
    .positionals = "NAME|FILE",
    .summary = "Describes a scanner, or lists its crystals (volume centre and inward normal).",
    .example = "loraster scanner show ge-explore-vista-dr --crystals",
    .groups = {{"output", show_options}},
    .run = run_show,
};

/* --- check --- */

/* All data of one check; a struct of zeros is valid. */
struct check {
    lr_scanner_draft *draft;
    lr_diagnosis *diagnosis;
    struct setup setup; /* includes the scanner, if the draft describes a valid one */
    bool is_usable;     /* the scanner has LORs, so that there is a summary */
    struct scanner_summary summary;
};

/* Writes the finding's kind, sentence and remedy. */
static void say(const lr_finding *finding, char text[2048])
{
    snprintf(text, 2048, "%s: %s%s%s", lr_finding_kind_name(finding->kind), finding->sentence,
             finding->remedy[0] != '\0' ? "; " : "", finding->remedy);
}

/* Warns of what is suspected, each with its place in the file. The line is shown unless it was shown just before. */
static void print_suspicions(const struct check *check, const char *name)
{
    int shown = 0;
    for (int k = 0; k < check->diagnosis->num_suspects; k++) {
        const lr_finding *finding = &check->diagnosis->findings[k];
        char text[2048];
        if (finding->kind == LR_FINDING_REFUSED) continue; /* the error that follows says the same */
        say(finding, text);
        if (finding->line > 0)
            report_warn(check->setup.report, "%s:%d:%d: suspect %s%s", name, finding->line, finding->column, text,
                        finding->line != shown ? finding->excerpt : "");
        else
            report_warn(check->setup.report, "suspect %s", text);
        shown = finding->line;
    }
}

/* Prints the notes: those about a good scanner on standard output, because they are results; others on standard error.
 */
static void print_notes(const struct check *check, const char *name)
{
    const lr_diagnosis *diagnosis = check->diagnosis;
    const lr_scanner *scanner = check->setup.scanner;
    const bool good = check->is_usable && diagnosis->num_suspects == 0;
    for (int k = diagnosis->num_suspects; k < diagnosis->num_findings; k++) {
        char text[2048];
        say(&diagnosis->findings[k], text);
        if (good)
            printf("note %s\n", text);
        else
            report_info(check->setup.report, "note %s", text);
    }
    if (good) {
        printf("note sensitivity: %s\n", counted(&check->summary));
        printf("%s: good: %s, %d modules, %d crystals, %lld LORs\n", name, scanner->name, scanner->num_modules,
               scanner->num_crystals, (long long)check->summary.num_lors);
    }
}

static lr_status run_check(struct cli_args *args)
{
    struct check check = {.setup.report = args->report};
    const lr_log *log = &args->report->log;
    const char *png = args_text(args, "--png");
    const bool has_grid = args_has(args, "--grid") || args_has(args, "--like") || args_has(args, "--voxel-mm") ||
                          args_has(args, "--origin-mm");
    if (args->num_positional != 1) {
        args_complain(args, "%s needs one %s", args->verb->name, args->verb->positionals);
        return args->status;
    }
    const char *name = args->positional[0];
    lr_status status = has_grid ? setup_grid(&check.setup, args, NULL) : args->status;
    if (status != LR_OK) goto finish;
    check.draft = lr_scanner_draft_read(name, log);
    if (check.draft != NULL)
        check.diagnosis = lr_scanner_examine(check.draft, has_grid ? &check.setup.grid : NULL, log);
    if (check.diagnosis == NULL || lr_scanner_locate(name, check.diagnosis, log) != LR_OK)
        status = report_reason(args->report);
    if (status != LR_OK) goto finish;
    if (png != NULL) { /* the picture is also drawn for a scanner that looks wrong, to show the fault */
        lr_picture *picture = lr_picture_diagnosis(&(lr_diagnosis_params){
            .draft = check.draft, .diagnosis = check.diagnosis, .grid = check.setup.params.grid, .log = log});
        status = picture != NULL ? lr_png_write(png, picture->rgb, picture->size, log) : report_reason(args->report);
        lr_picture_destroy(picture);
        if (status != LR_OK) goto finish;
    }

    /* Suspicions come first, because they say why a scanner is refused. The file is then read again, because the draft
     * may describe no valid scanner; this gives the error that names file and line. */
    if (!args->report->json) print_suspicions(&check, name);
    const lr_log errors = report_errors_alone(args->report); /* warnings have been printed already */
    check.setup.scanner = lr_scanner_read(name, &errors);
    status = check.setup.scanner != NULL ? scanner_summarise(check.setup.scanner, args->report, &check.summary)
                                         : report_reason(args->report);
    check.is_usable = status == LR_OK;
    if (status == LR_FAILED || status == LR_CANCELLED) goto finish;
    if (args->report->json) {
        struct json json = common_json_begin(stdout, "scanner check");
        json_bool(&json, "good", check.is_usable && check.diagnosis->num_suspects == 0);
        json_open(&json, "findings", '[');
        for (int k = 0; k < check.diagnosis->num_findings; k++) {
            const lr_finding *finding = &check.diagnosis->findings[k];
            int count = 0;
            while (count < 2 && finding->modules[count] >= 0) count++;
            json_open(&json, NULL, '{');
            json_text(&json, "severity", finding->severity == LR_SUSPECT ? "suspect" : "note");
            json_text(&json, "kind", lr_finding_kind_name(finding->kind));
            json_ints(&json, "modules", finding->modules, count);
            json_text(&json, "sentence", finding->sentence);
            json_text(&json, "remedy", finding->remedy[0] != '\0' ? finding->remedy : NULL);
            json_number(&json, "line", finding->line > 0 ? finding->line : NAN);
            json_number(&json, "column", finding->line > 0 ? finding->column : NAN);
            json_close(&json, '}');
        }
        json_close(&json, ']');
        json_text(&json, "picture", png);
        if (check.is_usable) scanner_summary_json(check.setup.scanner, &check.summary, &json);
        common_json_end(&json);
    } else {
        print_notes(&check, name);
    }
    if (status == LR_OK && check.diagnosis->num_suspects > 0) {
        status = report_error(args->report, LR_BAD_INPUT, "%s: %d %s wrong", name, check.diagnosis->num_suspects,
                              check.diagnosis->num_suspects > 1 ? "things look" : "thing looks");
    }

finish:
    lr_diagnosis_destroy(check.diagnosis);
    lr_scanner_draft_destroy(check.draft);
    setup_finish(&check.setup);
    return status;
}

static const struct cli_option check_options[] = {
    {"--png", "FILE", "also draw the modules, with what looks wrong in red", NULL},
    {0},
};

const struct cli_verb verb_scanner_check = {
    .name = "scanner check",
    .positionals = "NAME|FILE",
    .summary = "Looks for errors in a scanner's geometry: wrong units, a diameter for the radius, "
               "overlaps, gaps, mirrored numbering; exit code 3 when something looks wrong.",
    .example = "loraster scanner check my-scanner.yaml --grid 128,128,64 --voxel-mm 4",
    .outputs = {{"--png", common_picture_endings}},
    .groups = {{COMMON_GRID_GROUP}, {"output", check_options}},
    .run = run_check,
};

/* --- convert --- */

static lr_status run_convert(struct cli_args *args)
{
    struct scanner_summary summary;
    if (args->num_positional != 2) {
        args_complain(args, "%s needs %s", args->verb->name, args->verb->positionals);
        return args->status;
    }
    const char *input = args->positional[0], *output = args->positional[1];
    lr_scanner *scanner = lr_scanner_read(input, &args->report->log);
    if (scanner == NULL) return report_reason(args->report);
    lr_status status = scanner_summarise(scanner, args->report, &summary);
    if (status == LR_OK) status = lr_scanner_write(output, scanner, &args->report->log);
    if (status == LR_OK && args->report->json) {
        struct json json = common_json_begin(stdout, "scanner convert");
        json_text(&json, "input", input);
        json_text(&json, "output", output);
        scanner_summary_json(scanner, &summary, &json);
        common_json_end(&json);
    } else if (status == LR_OK) {
        report_info(args->report, "%s: %s, %d modules, %d crystals", output, scanner->name, scanner->num_modules,
                    scanner->num_crystals);
    }
    lr_scanner_destroy(scanner);
    return status;
}

static const char *const endings[] = {".yaml", ".yml", ".geom", ".hscan", ".petsird", NULL};

const struct cli_verb verb_scanner_convert = {
    .name = "scanner convert",
    .positionals = "NAME|FILE OUT",
    .summary = "Reads a scanner of any known format (YAML, CASToR .geom and .hscan, STIR crystal "
               "map and header) and writes .yaml, .geom, .petsird, or .hscan with its .lut.",
    .example = "loraster scanner convert scanner.hscan my-scanner.yaml",
    .outputs = {{CLI_SECOND_WORD, endings}},
    .run = run_convert,
};

/* --- list --- */

/* Writes a number with commas between groups of three digits, such as "1,234,567". */
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

static lr_status run_list(struct cli_args *args)
{
    const char *const *presets = lr_scanner_presets();
    struct report *report = args->report;
    lr_status status = LR_OK;
    struct json json = {stdout, false};
    if (report->json) {
        json = common_json_begin(stdout, "scanner list");
        json_open(&json, "scanners", '[');
    } else {
        printf("%-26s %8s %13s %11s %10s %9s  %s\n", "preset", "crystals", "LORs", "radius", "length", "TOF",
               "numbers");
    }
    for (int k = 0; presets[k] != NULL && status == LR_OK; k++) {
        struct scanner_summary summary;
        lr_scanner *scanner = lr_scanner_read(presets[k], &report->log);
        status = scanner != NULL ? scanner_summarise(scanner, report, &summary) : report_reason(report);
        if (status != LR_OK) {
            lr_scanner_destroy(scanner);
            break;
        }
        /* The radius is the smallest distance of a front plane from the axis. */
        double radius_mm = INFINITY;
        for (int m = 0; m < scanner->num_modules; m++) {
            const double *at = scanner->modules[m].centre_mm, *normal = scanner->modules[m].normal;
            radius_mm = fmin(radius_mm, fabs(normal[0] * at[0] + normal[1] * at[1] + normal[2] * at[2]));
        }
        const double length_mm = summary.axial_mm[1] - summary.axial_mm[0];
        static const char mark[] = "unverified: ";
        int num_unverified = 0;
        for (const char *at = scanner->source; at != NULL && (at = strstr(at, mark)) != NULL; at++) num_unverified++;

        if (report->json) {
            json_open(&json, NULL, '{');
            json_text(&json, "preset", presets[k]);
            json_text(&json, "name", scanner->name);
            json_int(&json, "num_modules", scanner->num_modules);
            json_int(&json, "num_crystals", scanner->num_crystals);
            json_int(&json, "num_lors", summary.num_lors);
            json_number(&json, "radius_mm", radius_mm);
            json_number(&json, "axial_length_mm", length_mm);
            json_number(&json, "tof_resolution_ps", scanner->tof_resolution_ps);
            json_int(&json, "num_unverified", num_unverified);
            json_close(&json, '}');
        } else {
            char crystals[32], lors[32], tof[32] = "none", trust[40] = "verified";
            if (scanner->tof_resolution_ps > 0) snprintf(tof, sizeof(tof), "%g ps", scanner->tof_resolution_ps);
            if (scanner->source == NULL)
                snprintf(trust, sizeof(trust), "no source");
            else if (num_unverified > 0)
                snprintf(trust, sizeof(trust), "%d unverified", num_unverified);
            printf("%-26s %8s %13s %8.1f mm %7.1f mm %9s  %s\n", presets[k], grouped(crystals, scanner->num_crystals),
                   grouped(lors, summary.num_lors), radius_mm, length_mm, tof, trust);
        }
        lr_scanner_destroy(scanner);
    }
    if (report->json) {
        json_close(&json, ']');
        common_json_end(&json);
    }
    return status;
}

const struct cli_verb verb_scanner_list = {
    .name = "scanner list",
    .summary = "Lists the built-in scanners: LORs of crystal pairs in coincidence, sizes, and how "
               "many statements on their numbers are unverified.",
    .example = "loraster scanner list",
    .run = run_list,
};
