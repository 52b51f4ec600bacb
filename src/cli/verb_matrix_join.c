/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "matrix.h"
#include "verbs.h"

#include <stdio.h>

static const char *const formats[] = {"hdf5", "npz", "mtx", NULL};
static const lr_matrix_format format_of_word[] = {LR_MATRIX_HDF5, LR_MATRIX_NPZ, LR_MATRIX_MTX};

/* Of the file's name; -1 for other formats. */
static int word_of(const char *path)
{
    const lr_matrix_format format = matrix_format_of(path);
    for (int k = 0; formats[k] != NULL; k++)
        if (format_of_word[k] == format) return k;
    return -1;
}

static void tell(struct cli_args *args, const lr_matrix_join_params *params, int word, const lr_matrix_written *written)
{
    report_clear(args->report);
    if (!args->report->json) {
        printf("%s: %lld rows, %lld elements, sum %.9g, of %lld parts\n", params->path, (long long)written->rows,
               (long long)written->elements, written->sum, (long long)params->num_parts);
        return;
    }
    struct json json = common_json_begin("matrix join");
    json_text(&json, "output", params->path);
    json_text(&json, "format", formats[word]);
    json_int(&json, "parts", params->num_parts);
    json_int(&json, "rows", written->rows);
    json_int(&json, "elements", written->elements);
    json_number(&json, "sum", written->sum);
    json_int(&json, "dropped_elements", written->dropped_elements);
    json_number(&json, "dropped_sum", written->dropped_sum);
    common_json_end(&json);
}

static lr_status run(struct cli_args *args)
{
    static const int64_t levels[2] = {0, 9};
    lr_matrix_written written = {0};
    lr_matrix_join_params params = {.parts = args->positional,
                                    .num_parts = args->num_positional,
                                    .path = args_required(args, "-o"),
                                    .compress = (int)args_int(args, "--compress", 0, levels),
                                    .progress = &args->report->progress,
                                    .log = &args->report->log};
    const int word = args_word(args, "--format", formats, word_of(params.path));
    if (args->num_positional == 0) args_complain(args, "matrix join needs the files that matrix --part has written");
    if (word < 0) args_complain(args, "%s: the name must end in .h5, .npz or .mtx, or --format say which", params.path);
    CLI_TRY(args->status);
    params.format = format_of_word[word];
    if (params.compress > 0 && params.format != LR_MATRIX_HDF5) args_complain(args, "--compress is for HDF5 (.h5)");
    CLI_TRY(args->status);
    CLI_TRY(lr_matrix_join(&params, &written));
    tell(args, &params, word, &written);
    return LR_OK;
}

static const struct cli_option options[] = {
    {"-o", "FILE", "file to write (.h5, .npz, .mtx)", false},
    {"--format", "NAME", "hdf5, npz or mtx; default by the name's ending", false},
    {"--compress", "LEVEL", "of HDF5, 1 to 9; default 0, none", false},
    {0},
};

static const char *const endings[] = {".h5", ".hdf5", ".npz", ".mtx", "", NULL};

static const struct cli_syntax syntax = {
    .verb = "matrix join",
    .positionals = "PART...",
    .most_positionals = CLI_MAX_POSITIONAL,
    .summary = "Joins the files of matrix --part to the one that a whole run would have written.",
    .example = "loraster matrix join part-1.h5 part-2.h5 -o matrix.h5",
    .outputs = {{"-o", endings}},
    .groups = {{"output", options}, COMMON_GENERAL_GROUP},
};

const struct cli_verb verb_matrix_join = {&syntax, run};
