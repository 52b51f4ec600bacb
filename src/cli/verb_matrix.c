/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "common.h"
#include "verbs.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What to write, as the command line says it. */
struct request {
    const char *output;
    lr_matrix_format format;
    double (*points_mm)[3]; /* owned; NULL = the grid's voxels */
    int64_t num_points;
};

static lr_status read_points(struct cli_args *args, struct request *request)
{
    const int count = args_count(args, "--at");
    if (count == 0) {
        return args->status;
    }
    request->points_mm = calloc((size_t)count, sizeof(*request->points_mm));
    if (request->points_mm == NULL) {
        return report_error(args->report, LR_FAILED, "no memory for %d points", count);
    }
    for (int k = 0; k < count; k++) {
        args_triple_text(args, "--at", args_nth(args, "--at", k), request->points_mm[k]);
    }
    request->num_points = count;
    return args->status;
}

static lr_status read_request(struct cli_args *args, struct request *request)
{
    static const char *const formats[] = {"tsv", "hdf5", NULL};
    request->output = args_required(args, "-o");
    const bool hdf5 =
        common_ends_with(request->output, ".h5") || common_ends_with(request->output, ".hdf5");
    request->format = (lr_matrix_format)args_word(args, "--format", formats,
                                                  hdf5 ? LR_MATRIX_HDF5 : LR_MATRIX_TSV);
    return read_points(args, request);
}

/* Counts what passes on its way to the writer. */
struct tally {
    lr_row_sink next;
    int64_t rows, elements, empty_rows;
    double sum;
};

static lr_status count_row(void *user, const lr_row *row)
{
    struct tally *tally = user;
    tally->rows++;
    tally->elements += row->count;
    tally->empty_rows += row->count == 0;
    for (int64_t k = 0; k < row->count; k++) {
        tally->sum += row->probability[k];
    }
    return tally->next.take(tally->next.user, row);
}

static void describe(const struct setup *setup, char *text, size_t size)
{
    const lr_operator_info *info = lr_operator_get_info(setup->op);
    if (info->mode == LR_MODE_EXACT) {
        snprintf(text, size, "backend %s, mode exact, samples %d,%d,%d", info->backend,
                 info->samples[0], info->samples[1], info->samples[2]);
    } else {
        snprintf(text, size, "backend %s, mode sampled, rays %d, samples %d,%d,%d", info->backend,
                 info->rays, info->samples[0], info->samples[1], info->samples[2]);
    }
}

static lr_matrix_writer *open_writer(const struct setup *setup, const struct request *request,
                                     const char *description)
{
    const bool points = request->num_points > 0;
    const lr_matrix_writer_params params = {
        .path = request->output,
        .format = request->format,
        .lors = setup->lors,
        .grid = points ? NULL : &setup->grid,
        .end = points ? 0 : lr_grid_num_voxels(&setup->grid),
        .points_mm = (const double(*)[3])request->points_mm,
        .num_points = request->num_points,
        .description = description,
        .log = &setup->report->log,
    };
    return lr_matrix_writer_create(&params);
}

static lr_status write_rows(const struct setup *setup, const struct request *request,
                            struct tally *tally)
{
    char description[256];
    describe(setup, description, sizeof(description));
    lr_matrix_writer *writer = open_writer(setup, request, description);
    if (writer == NULL) {
        return report_reason(setup->report);
    }
    tally->next = lr_matrix_writer_sink(writer);
    const lr_row_sink sink = {count_row, tally};
    lr_status status = LR_OK;
    if (request->num_points > 0) {
        status = lr_operator_point_rows(setup->op, (const double(*)[3])request->points_mm,
                                        request->num_points, &sink);
    } else {
        status = lr_operator_rows(setup->op, 0, lr_grid_num_voxels(&setup->grid), &sink);
    }
    if (status != LR_OK) {
        lr_matrix_writer_abandon(writer);
        return status;
    }
    return lr_matrix_writer_finish(writer);
}

/* Where points lie is the user's choice alone; grids are judged when the operator is made. */
static void warn_of_empty_rows(const struct setup *setup, const struct request *request,
                               const struct tally *tally)
{
    if (request->num_points > 0 && tally->empty_rows > 0) {
        report_warn(setup->report,
                    "%lld of %lld points have no element: no line through them joins two modules "
                    "in coincidence",
                    (long long)tally->empty_rows, (long long)tally->rows);
    }
}

static void report_result(const struct setup *setup, const struct request *request,
                          const struct tally *tally)
{
    char line[PATH_MAX + 128];
    report_clear(setup->report);
    if (setup->report->json) {
        struct json json = common_json_begin("matrix");
        setup_json(setup, &json);
        json_text(&json, "output", request->output);
        json_text(&json, "format", request->format == LR_MATRIX_HDF5 ? "hdf5" : "tsv");
        json_text(&json, "rows_are", request->num_points > 0 ? "points" : "voxels");
        json_int(&json, "rows", tally->rows);
        json_int(&json, "elements", tally->elements);
        json_number(&json, "sum", tally->sum);
        common_json_end(&json);
        return;
    }
    snprintf(line, sizeof(line), "%s: %lld rows, %lld elements, sum %.9g", request->output,
             (long long)tally->rows, (long long)tally->elements, tally->sum);
    if (common_is_standard_output(request->output)) {
        report_info(setup->report, "%s", line); /* the rows have standard output to themselves */
    } else {
        puts(line);
    }
}

static lr_status write_matrix(struct cli_args *args, struct setup *setup,
                              const struct request *request)
{
    const bool has_grid = args_has(args, "--grid") || args_has(args, "--like");
    CLI_TRY(setup_scanner(setup, args, LR_STORE_NO));
    CLI_TRY(request->format == LR_MATRIX_HDF5
                ? common_check_hdf5_output(args->report, request->output)
                : common_check_output(args->report, request->output, NULL));
    if (request->num_points > 0 && !has_grid) {
        setup_point_grid(setup);
    } else {
        CLI_TRY(setup_grid(setup, args, NULL));
    }
    CLI_TRY(setup_operator(setup));
    struct tally tally = {0};
    CLI_TRY(write_rows(setup, request, &tally));
    warn_of_empty_rows(setup, request, &tally);
    report_result(setup, request, &tally);
    return LR_OK;
}

static lr_status run(struct cli_args *args)
{
    struct setup setup = {0};
    struct request request = {0};
    lr_status status = read_request(args, &request);
    if (status == LR_OK) {
        status = write_matrix(args, &setup, &request);
    }
    free(request.points_mm);
    setup_finish(&setup);
    return status;
}

static const struct cli_option options[] = {
    {"--at", "X,Y,Z", "a point in mm, one sample; without it the grid's voxels", true},
    {"--format", "NAME", "tsv or hdf5; default by the name's ending, else tsv", false},
    {"-o", "FILE", "file to write (.tsv, .h5)", false},
    {0},
};

static const struct cli_syntax syntax = {
    .verb = "matrix",
    .summary = "Writes rows of the system matrix: what points or voxels give to each LOR.",
    .example = "loraster matrix --scanner ge-explore-vista-dr --at 0,0,0 --at 5,0,2 -o rows.tsv",
    .groups = {{"rows and output", options},
               COMMON_SCANNER_GROUP,
               COMMON_GRID_GROUP,
               COMMON_OPERATOR_GROUP,
               COMMON_GENERAL_GROUP},
};

const struct cli_verb verb_matrix = {&syntax, run};
