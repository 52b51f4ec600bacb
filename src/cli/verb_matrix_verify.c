/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * matrix join, matrix verify. */
#include "base/path.h"
#include "matrix.h"
#include "verbs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const formats[] = {"hdf5", "npz", "mtx", NULL};
static const lr_matrix_format format_of_word[] = {LR_MATRIX_HDF5, LR_MATRIX_NPZ, LR_MATRIX_MTX};

static lr_status run(struct cli_args *args)
{
    lr_matrix_written written = {0};
    lr_matrix_join_params params = {.parts = args->positional,
                                    .num_parts = args->num_positional,
                                    .path = args_required(args, "-o"),
                                    .compress = (int)args_int(args, "--compress", 0, (const int64_t[]){0, 9}),
                                    .progress = &args->report->progress,
                                    .log = &args->report->log};
    int named = -1; /* index of the format that the ending names */
    for (int k = 0; formats[k] != NULL; k++)
        if (format_of_word[k] == matrix_format_of(params.path)) named = k;
    const int word = args_word(args, "--format", NULL, named);
    if (args->num_positional == 0) args_complain(args, "matrix join needs the files that matrix --part has written");
    if (word < 0) args_complain(args, "%s: the name must end in .h5, .npz or .mtx, or --format say which", params.path);
    CLI_TRY(args->status);
    params.format = format_of_word[word];
    if (params.compress > 0 && params.format != LR_MATRIX_HDF5) args_complain(args, "--compress is for HDF5 (.h5)");
    CLI_TRY(args->status);
    CLI_TRY(lr_matrix_join(&params, &written));

    report_clear(args->report);
    if (args->report->json) {
        struct json json = common_json_begin(stdout, "matrix join");
        json_text(&json, "output", params.path);
        json_text(&json, "format", formats[word]);
        json_int(&json, "parts", params.num_parts);
        json_int(&json, "rows", written.rows);
        json_int(&json, "elements", written.elements);
        json_number(&json, "sum", written.sum);
        json_int(&json, "dropped_elements", written.dropped_elements);
        json_number(&json, "dropped_sum", written.dropped_sum);
        common_json_end(&json);
    } else {
        printf("%s: %lld rows, %lld elements, sum %.9g, of %lld parts\n", params.path, (long long)written.rows,
               (long long)written.elements, written.sum, (long long)params.num_parts);
    }
    return LR_OK;
}

static const struct cli_option options[] = {
    {"-o", "FILE", "file to write (.h5, .npz, .mtx)", NULL},
    {"--format", "NAME", "hdf5, npz or mtx; default by the name's ending", CLI_WORDS_OF(formats)},
    {"--compress", "LEVEL", "of HDF5, 1 to 9; default 0, none", NULL},
    {0},
};

static const char *const endings[] = {".h5", ".hdf5", ".npz", ".mtx", "", NULL};

const struct cli_verb verb_matrix_join = {
    .name = "matrix join",
    .positionals = "PART...",
    .most_positionals = CLI_MAX_POSITIONAL,
    .summary = "Joins the files of matrix --part to the one that a whole run would have written.",
    .example = "loraster matrix join part-1.h5 part-2.h5 -o matrix.h5",
    .outputs = {{"-o", endings}},
    .groups = {{"output", options}},
    .run = run,
};

/* --- verify: checks a file's structure while it is read, its sums against the sensitivity, and some rows against the
 * reference --- */

/* Limits for differences from the reference, of a row (relative L2 error) and of a sum (as a share of the largest
 * sum). Sampled rows may differ more, because rounding decides which of two neighbouring crystals a line at their edge meets. */
#define EXACT_LIMIT 1e-5
#define SAMPLED_LIMIT 0.02
#define EXACT_SUM_LIMIT 3e-5
#define SAMPLED_SUM_LIMIT 3e-3

enum { DEFAULT_SAMPLES = 6, MOST_SAMPLES = 1000 };

/* A voxel or point whose row is compared. */
struct sample {
    int64_t place; /* row of the file; voxel if rows are LORs */
    struct retained_row row;
};

struct verify {
    struct setup setup;
    struct matrix_factors factors;
    const char *path;
    lr_matrix_file *file;
    const lr_matrix_file_info *info;
    lr_matrix_file_info given; /* the file's description, completed from the command line */
    double *sums;              /* sum of each row; of each voxel if rows are LORs */
    int64_t num_sums;
    struct matrix_choice choice; /* choice of rows of an npz file */
    int64_t entry, entry_begin;  /* entry: index of the current row's pair in the part; entry_begin: the pair's first
                                    row */
    struct sample *samples;      /* sorted by `place`, ascending */
    int num_samples;
    double sum, worst_sum, worst_row;
    uint64_t seed;
    bool compares; /* compare elements, not only the structure */
};

static int compare_places(const void *a, const void *b)
{
    const int64_t x = ((const struct sample *)a)->place, y = ((const struct sample *)b)->place;
    return (x > y) - (x < y);
}

static struct sample *find_sample(const struct verify *verify, int64_t place)
{
    const struct sample key = {.place = place};
    return bsearch(&key, verify->samples, (size_t)verify->num_samples, sizeof(key), compare_places);
}

static lr_status take(void *user, const lr_row *row)
{
    struct verify *verify = user;
    const bool by_lor = verify->given.by_lor;
    int64_t lor = row->row; /* if rows are LORs */
    const lr_selection *part = &verify->given.part;
    if (by_lor && part->lors != NULL) {
        lor = part->lors[row->row];
    } else if (by_lor && part->pairs != NULL && row->count > 0) {
        const int64_t *offsets = verify->setup.lors->offsets + part->pairs[verify->entry]; /* rows come in order */
        while (row->row - verify->entry_begin >= offsets[1] - offsets[0]) {
            verify->entry_begin += offsets[1] - offsets[0];
            offsets = verify->setup.lors->offsets + part->pairs[++verify->entry];
        }
        lor = offsets[0] + row->row - verify->entry_begin;
    }
    struct sample *sample = by_lor ? NULL : find_sample(verify, row->row);
    for (int64_t k = 0; k < row->count; k++) {
        verify->sums[by_lor ? row->lor[k] : row->row] += row->probability[k];
        if (by_lor) sample = find_sample(verify, row->lor[k]);
        if (sample != NULL)
            CLI_TRY(
                retained_row_add(verify->setup.report, &sample->row, by_lor ? lor : row->lor[k], row->probability[k]));
    }
    return LR_OK;
}

/* --- sums --- */

/* The voxel to which the sum with this index belongs. */
static int64_t voxel_at(const struct verify *verify, int64_t place)
{
    const lr_matrix_file_info *info = &verify->given;
    return info->by_lor ? place : info->voxels != NULL ? info->voxels[place] : info->row_begin + place;
}

/* Compares the sums of elements with the voxels' sensitivities. The sum of dropped elements is known only for the whole
 * file; the sum of a voxel may therefore be too small. */
static lr_status compare_sums(struct verify *verify, const float *sensitivity)
{
    const bool exact = verify->given.mode == LR_MODE_EXACT;
    const double limit = exact ? EXACT_SUM_LIMIT : SAMPLED_SUM_LIMIT;
    const bool has_dropped = verify->given.threshold > 0;
    double largest = 0, total = 0, expected_total = 0;
    int64_t worst = 0;
    for (int64_t k = 0; k < verify->num_sums; k++) {
        const double expected = (double)sensitivity[voxel_at(verify, k)];
        largest = fmax(largest, expected);
        total += verify->sums[k];
        expected_total += expected;
    }
    for (int64_t k = 0; k < verify->num_sums; k++) {
        const double more = verify->sums[k] - (double)sensitivity[voxel_at(verify, k)];
        const double gap = (has_dropped ? fmax(more, 0) : fabs(more)) / largest;
        if (gap > verify->worst_sum) {
            verify->worst_sum = gap;
            worst = k;
        }
    }
    if (!(verify->worst_sum <= limit)) {
        const double due = (double)sensitivity[voxel_at(verify, worst)];
        double at[3];
        const int64_t voxel = voxel_at(verify, worst);
        lr_grid_voxel_centre(&verify->setup.grid, voxel, at);
        return report_error(verify->setup.report, LR_BAD_INPUT,
                            "%s: the elements of voxel %lld at (%g, %g, %g) mm add up to %.7g, and its "
                            "sensitivity is %.7g: they differ by %.2g of the largest sensitivity",
                            verify->path, (long long)voxel, at[0], at[1], at[2], verify->sums[worst], due,
                            fabs(verify->sums[worst] - due) / largest);
    }

    total += verify->given.dropped_sum;
    if (has_dropped && !verify->given.is_described) return LR_OK; /* the dropped sum is not known */
    if (!(fabs(total - expected_total) <= limit * expected_total)) {
        return report_error(verify->setup.report, LR_BAD_INPUT,
                            "%s: all elements add up to %.7g, with what it says was dropped, and "
                            "all sensitivities to %.7g",
                            verify->path, total, expected_total);
    }
    return LR_OK;
}

/* Adds up the row of a voxel. The sum is the voxel's sensitivity. */
static lr_status sum_row(void *user, const lr_row *row)
{
    float *sensitivity = user;
    double sum = 0;
    for (int64_t k = 0; k < row->count; k++) sum += row->probability[k];
    sensitivity[row->row] = (float)sum;
    return LR_OK;
}

/* --- rows --- */

/* The progress of comparing samples to rows of the reference. */
struct oracle {
    struct verify *verify;
    int next; /* index of the next sample */
};

/* Compares a sample to its row of the reference. */
static lr_status compare_row(void *user, const lr_row *row)
{
    struct oracle *oracle = user;
    struct verify *verify = oracle->verify;
    const lr_matrix_file_info *given = &verify->given;
    const struct sample *sample = &verify->samples[oracle->next++];
    const struct retained_row *own = &sample->row;
    struct retained_row reference = {0};

    /* Elements that the threshold drops are left out of the reference's row. If rows are LORs, the dropped elements are
     * not known, and all elements that the file lacks are left out. */
    double largest = 0;
    for (int64_t k = 0; k < row->count; k++) largest = fmax(largest, row->probability[k]);
    const double least = given->threshold * largest * (1 + 1e-4);
    int64_t at = 0;
    lr_status status = LR_OK;
    for (int64_t k = 0; status == LR_OK && k < row->count; k++) {
        while (at < own->count && own->lor[at] < row->lor[k]) at++;
        const bool there = at < own->count && own->lor[at] == row->lor[k];
        const bool may_lack = given->threshold > 0 && (given->by_lor || row->probability[k] < least);
        if (there || !may_lack)
            status = retained_row_add(verify->setup.report, &reference, row->lor[k], row->probability[k]);
    }

    const lr_row found = retained_row_view(own), expected = retained_row_view(&reference);
    const lr_row_error error = lr_row_compare(&found, &expected);
    const bool is_exact = given->mode == LR_MODE_EXACT, is_point = given->points_mm != NULL;
    const double limit = is_exact ? EXACT_LIMIT : SAMPLED_LIMIT;
    const bool both_empty = found.count == 0 && expected.count == 0;
    if (status == LR_OK && !both_empty && !(error.relative_l2 <= limit)) {
        status = report_error(verify->setup.report, LR_BAD_INPUT,
                              "%s: %s %lld has elements that differ from those of backend cpu, mode %s, "
                              "by %.2g (relative L2; at most %g is rounding): %lld of %lld are missing, "
                              "%lld should not be there (--seed %llu)",
                              verify->path, is_point ? "point" : "voxel",
                              (long long)(is_point ? sample->place : voxel_at(verify, sample->place)),
                              is_exact ? "exact" : "sampled", error.relative_l2, limit, (long long)error.num_missed,
                              (long long)error.num_elements, (long long)error.num_unexpected,
                              (unsigned long long)verify->seed);
    } else if (status == LR_OK && !both_empty) {
        verify->worst_row = fmax(verify->worst_row, error.relative_l2);
    }
    retained_row_finish(&reference);
    return status;
}

/* Compares all samples to the reference, backend cpu. */
static lr_status check_rows(struct verify *verify)
{
    lr_operator_params params = verify->setup.params;
    params.backend = "cpu";
    params.store = LR_STORE_NO;
    lr_operator *op = lr_operator_create(&params);
    if (op == NULL) return report_reason(verify->setup.report);
    verify->given.mode = lr_operator_get_info(op)->mode;

    struct oracle oracle = {verify, 0};
    const lr_row_sink sink = {compare_row, &oracle};
    const double(*points_mm)[3] = verify->given.points_mm;
    int64_t voxels[MOST_SAMPLES];
    lr_status status = LR_OK;
    for (int k = 0; status == LR_OK && k < verify->num_samples; k++)
        if (points_mm != NULL)
            status = lr_operator_point_rows(op, &points_mm[verify->samples[k].place], 1, &sink);
        else
            voxels[k] = voxel_at(verify, verify->samples[k].place);
    if (points_mm == NULL && verify->num_samples > 0) {
        const lr_row_choice choice = {.voxels = voxels, .num_voxels = verify->num_samples, .part = &verify->given.part};
        status = lr_operator_rows_part(op, &choice, &sink);
    }
    lr_operator_destroy(op);
    return status;
}

/* Opens the model that the file describes. An npz file describes no model, so the command line must describe it. */
static lr_status open_model(struct verify *verify, struct cli_args *args)
{
    struct setup *setup = &verify->setup;
    lr_operator_params *params = &setup->params;
    lr_matrix_file_info *given = &verify->given;
    lr_scanner *scanner = NULL;
    *given = *verify->info;
    if (given->is_described && !args_has(args, "--scanner")) {
        scanner = lr_scanner_read_hdf5(verify->path, &args->report->log);
        if (scanner == NULL) return report_reason(args->report);
    }
    CLI_TRY(setup_scanner(setup, args, LR_STORE_NO, scanner));
    if (given->is_described) {
        CLI_TRY(lr_matrix_file_check_scanner(verify->file, setup->lors));
        if (given->points_mm != NULL) {
            setup_point_grid(setup);
        } else {
            setup->grid = given->grid;
            params->grid = &setup->grid;
        }
        params->mode = given->mode;
        params->rays = given->rays;
        params->mu_steps = given->mu_steps;
        params->penetration = strstr(given->description, "penetration") != NULL;
        params->layers_alone = !params->penetration;
        memcpy(params->samples, given->samples, sizeof(params->samples));
        return LR_OK;
    }

    struct matrix_choice *choice = &verify->choice;
    matrix_choice_read(args, choice);
    given->threshold = matrix_read_threshold(args);
    CLI_TRY(args->status);
    CLI_TRY(matrix_choice_open(choice, setup, args));
    given->grid = setup->grid;
    given->row_begin = choice->begin;
    given->voxels = choice->voxels;
    given->part = choice->part;
    given->by_lor = choice->by_lor;
    given->mode = params->mode;
    const int64_t rows = given->by_lor           ? lr_selection_count(setup->lors, &given->part)
                         : given->voxels != NULL ? choice->num_voxels
                                                 : choice->end - choice->begin;
    const int64_t columns = given->by_lor ? lr_grid_num_voxels(&given->grid) : setup->lors->count;
    if (rows != given->num_rows || columns != given->num_columns) {
        return report_error(args->report, LR_BAD_INPUT,
                            "%s has %lld rows and %lld columns; scanner, grid and rows that are "
                            "given have %lld and %lld: give those it was made with",
                            verify->path, (long long)given->num_rows, (long long)given->num_columns, (long long)rows,
                            (long long)columns);
    }
    return LR_OK;
}

static void report_good(const struct verify *verify)
{
    struct report *report = verify->setup.report;
    const lr_matrix_file_info *info = &verify->given;
    const char *rows = info->points_mm != NULL ? "points" : info->by_lor ? "LORs" : "voxels";
    report_clear(report);
    if (report->json) {
        struct json json = common_json_begin(stdout, "matrix verify");
        json_bool(&json, "good", true);
        json_text(&json, "file", verify->path);
        json_text(&json, "scanner", verify->setup.scanner->name);
        json_text(&json, "rows_are", rows);
        json_int(&json, "rows", info->num_rows);
        json_int(&json, "elements", info->num_elements);
        json_number(&json, "sum", verify->sum);
        json_text(&json, "mode", info->mode == LR_MODE_EXACT ? "exact" : "sampled");
        json_number(&json, "sum_error", verify->compares && info->points_mm == NULL ? verify->worst_sum : NAN);
        json_number(&json, "row_error", verify->compares ? verify->worst_row : NAN);
        json_int(&json, "rows_compared", verify->compares ? verify->num_samples : 0);
        json_int(&json, "seed", (int64_t)verify->seed);
        common_json_end(&json);
        return;
    }
    printf("%s: good: %lld rows of %s, %lld elements, sum %.9g\n", verify->path, (long long)info->num_rows, rows,
           (long long)info->num_elements, verify->sum);
    if (verify->compares && info->points_mm == NULL) {
        printf("sums differ from the sensitivity by %.2g of its largest%s\n", verify->worst_sum,
               info->threshold > 0 ? ", where they exceed it" : "");
    }
    if (verify->compares) {
        printf("%d %s, drawn with --seed %llu, differ from backend cpu, mode %s, by %.2g at most (relative L2)\n",
               verify->num_samples, info->points_mm != NULL ? "points" : "voxels", (unsigned long long)verify->seed,
               info->mode == LR_MODE_EXACT ? "exact" : "sampled", verify->worst_row);
    }
}

static lr_status verify_file(struct verify *verify, struct cli_args *args)
{
    const int wanted = (int)args_int(args, "--compare", DEFAULT_SAMPLES, (const int64_t[]){1, MOST_SAMPLES});
    verify->seed = (uint64_t)args_int(args, "--seed", 1, args_seeds);
    CLI_TRY(args->status);
    verify->file = lr_matrix_file_open(verify->path, &args->report->log);
    if (verify->file == NULL) return report_reason(args->report);
    verify->info = lr_matrix_file_get_info(verify->file);
    CLI_TRY(open_model(verify, args));
    /* Elements cannot be compared if they were multiplied by factors that are not given here. */
    CLI_TRY(matrix_factors_read(&verify->factors, args, &verify->setup));
    const bool has = strcmp(verify->given.factors, "none") != 0;
    const bool gives = strcmp(verify->factors.words, "none") != 0;
    verify->compares = !has || gives;
    if (!verify->compares) {
        report_warn(verify->setup.report,
                    "%s was made with %s: give the same --efficiencies, --mu and --mu-as to have "
                    "its elements compared; only its structure is looked at",
                    verify->path, verify->given.factors);
    } else if (gives && verify->given.is_described && !has) {
        return report_error(verify->setup.report, LR_BAD_INPUT,
                            "%s was made without efficiencies and attenuation: leave them out", verify->path);
    }

    verify->num_sums = verify->given.by_lor ? verify->given.num_columns : verify->given.num_rows;
    /* The positions are random and depend only on the seed. If the file has few rows, all rows are compared. */
    const int64_t count = wanted < verify->num_sums ? wanted : verify->num_sums;
    verify->samples = calloc((size_t)count + 1, sizeof(*verify->samples));
    verify->sums = calloc((size_t)verify->num_sums + 1, sizeof(*verify->sums));
    if (verify->samples == NULL || verify->sums == NULL)
        return report_error(verify->setup.report, LR_FAILED, "no memory for %lld rows", (long long)verify->num_sums);
    int64_t places[MOST_SAMPLES];
    for (int64_t n = 0; n < count; n++) {
        const int64_t drawn = (int64_t)(common_random(verify->seed, n) * (double)verify->num_sums);
        places[n] = count == verify->num_sums ? n : drawn;
    }
    verify->num_samples = (int)matrix_sort_numbers(places, count);
    for (int n = 0; n < verify->num_samples; n++) verify->samples[n].place = places[n];

    const lr_row_sink sink = {take, verify};
    CLI_TRY(lr_matrix_file_rows(verify->file, &sink, &args->report->progress));
    for (int64_t k = 0; k < verify->num_sums; k++) verify->sum += verify->sums[k];
    if (verify->compares && verify->given.points_mm == NULL) {
        float *sensitivity =
            common_floats(verify->setup.report, lr_grid_num_voxels(&verify->setup.grid), "the sensitivity");
        if (sensitivity == NULL) return LR_FAILED;
        lr_status status = setup_operator(&verify->setup);
        if (status == LR_OK) {
            verify->given.mode = lr_operator_get_info(verify->setup.op)->mode;
            verify->setup.params.mode = verify->given.mode; /* the reference uses the same mode */
            /* Computing the whole sensitivity is faster than computing more than a quarter of all rows. */
            const lr_matrix_file_info *info = &verify->given;
            if (info->by_lor || 4 * info->num_rows > lr_grid_num_voxels(&verify->setup.grid)) {
                lr_vector image = lr_vector_of_floats(sensitivity, lr_grid_num_voxels(&verify->setup.grid));
                status = lr_operator_sensitivity(verify->setup.op, &info->part, &image);
            } else {
                const lr_row_choice rows = {
                    .begin = info->row_begin,
                    .end = info->row_begin + info->num_rows,
                    .voxels = info->voxels,
                    .num_voxels = info->voxels != NULL ? info->num_rows : 0,
                    .part = &info->part,
                };
                status = lr_operator_rows_part(verify->setup.op, &rows, &(lr_row_sink){sum_row, sensitivity});
            }
        }
        if (status == LR_OK) status = compare_sums(verify, sensitivity);
        free(sensitivity);
        CLI_TRY(status);
    }

    if (verify->compares) CLI_TRY(check_rows(verify));
    report_good(verify);
    return LR_OK;
}

static lr_status verify_run(struct cli_args *args)
{
    struct verify verify = {.path = args->num_positional > 0 ? args->positional[0] : NULL};
    if (verify.path == NULL || args->num_positional > 1)
        return report_error(args->report, LR_USAGE, "matrix verify needs the name of one file (.h5, .npz)");
    const bool has_grid = args_has(args, "--grid") || args_has(args, "--like");
    if (lr_path_ends(verify.path, ".npz") && !(args_has(args, "--scanner") && has_grid)) {
        return report_error(args->report, LR_USAGE,
                            "%s: a .npz file has no scanner and no grid: give --scanner NAME|FILE, and --grid NX,NY,NZ "
                            "with --voxel-mm DX,DY,DZ or --like IMAGE",
                            verify.path);
    }
    verify.setup.report = args->report;
    const lr_status status = verify_file(&verify, args);
    for (int k = 0; k < verify.num_samples; k++) retained_row_finish(&verify.samples[k].row);
    free(verify.samples);
    free(verify.sums);
    matrix_choice_finish(&verify.choice);
    setup_finish(&verify.setup);
    lr_matrix_file_close(verify.file);

    return status;
}

static const struct cli_option verify_options[] = {
    {"--compare", "N", "random voxels or points whose elements are compared; default 6", NULL},
    {"--seed", "N", "decides which; default 1", NULL},
    {0},
};

static const struct cli_option npz_options[] = {
    {"--by", "SIDE", "voxel or lor, as it was made; likewise those that follow", CLI_WORDS("voxel", "lor")},
    {"--rows", "FIRST:LAST", "voxel rows FIRST to LAST - 1", NULL},
    {"--region", "REGION", "voxels above 0 in an image, or in a box or sphere", NULL},
    {"--pairs", "LIST|FILE", "module pairs", NULL},
    {"--lors", "LIST|FILE", "LORs", NULL},
    {"--threshold", "T", "share of the row's largest below which elements were dropped", NULL},
    {0},
};

const struct cli_verb verb_matrix_verify = {
    .name = "matrix verify",
    .positionals = "FILE",
    .summary = "Checks a matrix file: structure, sums, and rows against the reference.",
    .example = "loraster matrix verify matrix.h5",
    .groups = {{"verify", verify_options},
               {"what .npz holds (HDF5 says so itself)", npz_options},
               {"factors", matrix_factor_options},
               {COMMON_SCANNER_GROUP},
               {COMMON_GRID_GROUP},
               {COMMON_OPERATOR_GROUP}},
    .run = verify_run,
};
