/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * matrix: writes rows of the system matrix. */
#include "base/path.h"
#include "matrix.h"
#include "stop.h"
#include "verbs.h"
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The rows that --part selects. */
struct matrix_share {
    int64_t number, parts; /* --part; 0 = all rows */
    int64_t rows_before;   /* number of rows in earlier parts */
    int32_t *part_pairs;   /* owned; used if rows are LORs and all LORs were requested */
};

/* --- the rows of --part --- */

/* Sets `choice` to the rows of `whole` that belong to the part. `choice` points into the arrays of `whole` and owns
 * nothing. The setup must have its scanner and grid. */
static lr_status matrix_share_cut(struct matrix_share *share, const struct matrix_choice *whole,
                                  const struct setup *setup, struct matrix_choice *choice)
{
    int64_t range[2];
    *choice = *whole;
    if (share->parts == 0) return LR_OK;
    const lr_rows_share of = {.work = {.choice = {.begin = whole->begin,
                                                  .end = whole->end,
                                                  .voxels = whole->voxels,
                                                  .num_voxels = whole->num_voxels,
                                                  .part = &whole->part},
                                       .by_lor = whole->by_lor},
                              .number = share->number,
                              .parts = share->parts,
                              .log = &setup->report->log};
    CLI_TRY(lr_rows_share_range(setup->lors, &setup->grid, &of, range));
    share->rows_before = range[0];
    if (!whole->by_lor && choice->voxels != NULL) {
        choice->voxels += range[0];
        choice->num_voxels = range[1] - range[0];
    } else if (!whole->by_lor) {
        choice->end = choice->begin + range[1];
        choice->begin += range[0];
    } else if (choice->part_lors != NULL) {
        choice->part_lors += range[0];
        choice->part = (lr_selection){.lors = choice->part_lors, .num_lors = range[1] - range[0]};
    } else { /* all LORs, or all LORs of some module pairs: each part has whole pairs */
        if (choice->part_pairs == NULL) {
            const int64_t num = setup->lors->num_pairs;
            share->part_pairs = malloc((size_t)num * sizeof(*share->part_pairs));
            if (share->part_pairs == NULL)
                return report_error(setup->report, LR_FAILED, "no memory for a list of pairs");
            for (int64_t k = 0; k < num; k++) share->part_pairs[k] = (int32_t)k;
            choice->part_pairs = share->part_pairs;
        }
        const lr_selection before = {.pairs = choice->part_pairs, .num_pairs = range[0]};
        share->rows_before = range[0] > 0 ? lr_selection_count(setup->lors, &before) : 0;
        choice->part_pairs += range[0];
        choice->part = (lr_selection){.pairs = choice->part_pairs, .num_pairs = range[1] - range[0]};
    }
    return LR_OK;
}

/* --- the tube of response of one LOR: an element for each voxel --- */

/* The number of the LOR "module,p,q,module,r,s"; -1 if it does not exist, reported. */
static int64_t matrix_find_lor(const struct setup *setup, const char *text)
{
    int numbers[6];
    const char *rest = text;
    for (int k = 0; k < 6; k++) {
        char *end = NULL;
        const long number = strtol(rest, &end, 10);
        if (end == rest || number < 0 || number > INT_MAX || *end != (k < 5 ? ',' : '\0')) {
            report_error(setup->report, LR_USAGE,
                         "--lor %s: six numbers are needed, module,p,q,module,r,s, such as 0,6,6,18,6,6", text);
            return -1;
        }
        numbers[k] = (int)number;
        rest = end + 1;
    }
    const lr_scanner *scanner = setup->scanner;
    int crystals[2];
    for (int end = 0; end < 2; end++) {
        const int module = numbers[3 * end], p = numbers[3 * end + 1], q = numbers[3 * end + 2];
        if (module >= scanner->num_modules) {
            report_error(setup->report, LR_USAGE, "--lor: module %d does not exist: the scanner has modules 0 to %d",
                         module, scanner->num_modules - 1);
            return -1;
        }
        const int *size = scanner->modules[module].crystals;
        if (p >= size[0] || q >= size[1]) {
            report_error(setup->report, LR_USAGE,
                         "--lor: crystal %d, %d does not exist: module %d has %d x %d, counted from 0", p, q, module,
                         size[0], size[1]);
            return -1;
        }
        crystals[end] = scanner->first_crystal[module] + q * size[0] + p;
    }
    const int64_t lor = lr_lors_number(setup->lors, crystals[0], crystals[1]);
    if (lor < 0) {
        report_error(setup->report, LR_USAGE,
                     "--lor %s: modules %d and %d are not in coincidence: loraster scanner show says which rules hold",
                     text, numbers[0], numbers[3]);
    }
    return lor;
}

/* The image that receives the tube of response. */
struct tube {
    lr_image *image;
    int64_t elements;
    double sum;
};

static lr_status take(void *user, const lr_row *row)
{
    struct tube *tube = user;
    for (int64_t k = 0; k < row->count; k++) {
        tube->image->values[row->lor[k]] = (float)row->probability[k];
        tube->sum += row->probability[k];
    }
    tube->elements += row->count;
    return LR_OK;
}

/* Writes the tube of response of one LOR, "module,p,q,module,r,s", as an image. */
static lr_status write_tube(const struct setup *setup, const char *text, const char *path)
{
    const int64_t lor = matrix_find_lor(setup, text);
    if (lor < 0) return LR_USAGE;
    if (!lr_lors_in_coincidence(setup->lors, lor))
        report_warn(setup->report, "the coincidence rules exclude this LOR: its elements are 0");
    struct tube tube = {.image = lr_image_create(&setup->grid, &setup->report->log)};
    if (tube.image == NULL) return report_reason(setup->report);
    const lr_selection part = {.lors = &lor, .num_lors = 1};
    const lr_row_sink sink = {take, &tube};
    lr_status status = lr_operator_lor_rows(setup->op, &part, &sink);
    if (status == LR_OK) status = lr_image_write(path, tube.image, &setup->report->log);
    lr_image_destroy(tube.image);
    CLI_TRY(status);

    report_clear(setup->report);
    if (setup->report->json) {
        struct json json = common_json_begin(stdout, "matrix");
        setup_json(setup, &json);
        json_text(&json, "output", path);
        json_text(&json, "format", "image");
        json_text(&json, "rows_are", "LORs");
        json_int(&json, "lor", lor);
        json_int(&json, "rows", 1);
        json_int(&json, "elements", tube.elements);
        json_number(&json, "sum", tube.sum);
        common_json_end(&json);
    } else {
        printf("%s: LOR %lld, %lld voxels, sum %.9g\n", path, (long long)lor, (long long)tube.elements, tube.sum);
    }
    return LR_OK;
}

static const char *const formats[] = {"tsv", "hdf5", "npz", "mtx", "stir", NULL};

/* The command line. */
struct request {
    const char *output, *tube; /* tube: the text of --lor, "module,p,q,module,r,s" */
    lr_matrix_format format;
    double (*points_mm)[3]; /* NULL = the grid's voxels */
    int64_t num_points;
    struct matrix_choice choice;
    struct matrix_share share;
    struct { /* owned: all rows that the command line asks for; the share points to some of them */
        double (*points_mm)[3];
        int64_t num_points;
        struct matrix_choice choice;
    } whole;
    struct matrix_factors factors;
    double threshold;
    int compress;
    bool resumes;
    double expected_elements; /* 0 = not known */
    double start_s;
};

lr_matrix_format matrix_format_of(const char *path)
{
    static const struct {
        const char *ending;
        lr_matrix_format format;
    } endings[] = {
        {".h5", LR_MATRIX_HDF5}, {".hdf5", LR_MATRIX_HDF5}, {".npz", LR_MATRIX_NPZ},
        {".mtx", LR_MATRIX_MTX}, {".hpm", LR_MATRIX_STIR},
    };
    for (size_t k = 0; k < sizeof(endings) / sizeof(endings[0]); k++)
        if (lr_path_ends(path, endings[k].ending)) return endings[k].format;
    return LR_MATRIX_TSV;
}

/* True for text and STIR's files. A stopped run cannot be resumed in these formats, because the files are written row
   by row. */
static bool is_stream(lr_matrix_format format)
{
    return format == LR_MATRIX_TSV || format == LR_MATRIX_STIR;
}

static lr_status read_request(struct cli_args *args, struct request *request)
{
    request->start_s = report_seconds();
    request->output = args_required(args, "-o");
    request->tube = args_text(args, "--lor");
    request->format = (lr_matrix_format)args_word(args, "--format", NULL, (int)matrix_format_of(request->output));
    request->compress = (int)args_int(args, "--compress", 0, (const int64_t[]){0, 9});
    request->resumes = args_has(args, "--resume");
    matrix_choice_read(args, &request->whole.choice);
    args_share(args, "--part", &request->share.number, &request->share.parts);
    request->threshold = matrix_read_threshold(args);
    if (request->format == LR_MATRIX_STIR) {
        if ((args_has(args, "--by") && !request->whole.choice.by_lor) || args_has(args, "--at") ||
            args_has(args, "--rows") || args_has(args, "--region")) {
            args_complain(args, "STIR's matrix files have rows of LORs: leave out --by voxel, --at, "
                                "--rows and --region");
        }
        request->whole.choice.by_lor = true;
    }
    static const char *const others[] = {"--at",      "--by",        "--rows",     "--region", "--pairs",
                                         "--lors",    "--threshold", "--compress", "--format", "--resume",
                                         "--dry-run", "--part",      NULL};
    for (int n = 0; request->tube != NULL && others[n] != NULL; n++)
        if (args_has(args, others[n]))
            args_complain(args, "--lor writes the image of one LOR: leave out %s", others[n]);

    if (request->compress > 0 && request->format != LR_MATRIX_HDF5) args_complain(args, "--compress is for HDF5 (.h5)");
    if (request->resumes && is_stream(request->format)) args_complain(args, "--resume is for HDF5, npz and mtx");
    if (request->share.parts > 0 && request->format != LR_MATRIX_HDF5 && request->format != LR_MATRIX_NPZ)
        args_complain(args, "--part is for HDF5 and npz (.h5, .npz), which matrix join joins");
    const int count = args_count(args, "--at");
    if (count == 0) return args->status;
    for (int k = 0; common_grid_options[k].name != NULL; k++) {
        if (args_has(args, common_grid_options[k].name)) {
            args_complain(args,
                          "--at gives the rows of points, which need no grid: leave out %s, or --at for rows of "
                          "the grid's voxels",
                          common_grid_options[k].name);
            break;
        }
    }
    request->whole.points_mm = calloc((size_t)count, sizeof(*request->whole.points_mm));
    if (request->whole.points_mm == NULL)
        return report_error(args->report, LR_FAILED, "no memory for %d points", count);
    for (int k = 0; k < count; k++)
        args_triple_text(args, "--at", args_nth(args, "--at", k), false, request->whole.points_mm[k]);
    request->whole.num_points = count;
    return args->status;
}

/* --- writing --- */

static lr_matrix_writer_params writer_params(const struct setup *setup, const struct request *request,
                                             const char *description)
{
    const bool points = request->num_points > 0;
    const struct matrix_choice *choice = &request->choice;
    return (lr_matrix_writer_params){
        .path = request->output,
        .format = request->format,
        .lors = setup->lors,
        .grid = points ? NULL : &setup->grid,
        .begin = choice->begin,
        .end = choice->end,
        .points_mm = (const double(*)[3])request->points_mm,
        .num_points = request->num_points,
        .description = description,
        .voxels = choice->voxels,
        .num_voxels = choice->num_voxels,
        .by_lor = choice->by_lor,
        .part = points ? NULL : &choice->part,
        .threshold = request->threshold,
        .compress = request->compress,
        .resumes = request->resumes,
        .expected_elements = request->expected_elements,
        .info = lr_operator_get_info(setup->op),
        .factors = request->factors.words,
        .inputs = request->factors.inputs,
        .num_inputs = request->factors.num_inputs,
        .log = &setup->report->log,
    };
}

/* A sink that skips the first rows, because an earlier run has already written them. */
struct gate {
    lr_row_sink next;
    int64_t skipped, to_skip;
};

static lr_status pass(void *user, const lr_row *row)
{
    struct gate *gate = user;
    if (gate->skipped < gate->to_skip) {
        gate->skipped++;
        return LR_OK;
    }
    return gate->next.take(gate->next.user, row);
}

static lr_status run_rows(const struct setup *setup, const struct request *request, lr_matrix_writer *writer)
{
    struct gate gate = {.next = lr_matrix_writer_sink(writer)};
    const struct matrix_choice *choice = &request->choice;
    const int64_t done = lr_matrix_writer_get_written(writer).rows;
    if (request->resumes) report_info(setup->report, "going on after %lld rows of an earlier run", (long long)done);
    if (request->num_points > 0) {
        const lr_row_sink sink = {pass, &gate};
        gate.to_skip = done;
        return lr_operator_point_rows(setup->op, (const double(*)[3])request->points_mm, request->num_points, &sink);
    }
    if (choice->by_lor && choice->part_lors == NULL) {
        /* The operator computes the LORs of whole module pairs. Pairs that are already in the file are left out. If the
         * first remaining pair is partly in the file, the gate skips the rows that the file has. */
        const lr_lors *lors = setup->lors;
        const bool is_all = choice->part_pairs == NULL;
        const int64_t num = is_all ? lors->num_pairs : choice->part.num_pairs;
        int32_t *pairs = calloc((size_t)num + 1, sizeof(*pairs));
        if (pairs == NULL) return report_error(setup->report, LR_FAILED, "no memory for a list of pairs");
        lr_selection rest = {.pairs = pairs};
        int64_t before = 0;
        for (int64_t k = 0; k < num; k++) {
            const int32_t pair = is_all ? (int32_t)k : choice->part_pairs[k];
            const int64_t size = lors->offsets[pair + 1] - lors->offsets[pair];
            if (before + size > done) {
                gate.to_skip = rest.num_pairs == 0 ? done - before : gate.to_skip;
                pairs[rest.num_pairs++] = pair;
            }
            before += size;
        }
        const lr_row_sink sink = {pass, &gate};
        const lr_status status = rest.num_pairs > 0 ? lr_operator_lor_rows(setup->op, &rest, &sink) : LR_OK;
        free(pairs);
        return status;
    }
    if (choice->by_lor) {
        const lr_selection rest = {.lors = choice->part_lors + done, .num_lors = choice->part.num_lors - done};
        return rest.num_lors > 0 ? lr_operator_lor_rows(setup->op, &rest, &gate.next) : LR_OK;
    }
    lr_row_choice rows = {.begin = choice->begin + done, .end = choice->end, .part = &choice->part};
    if (choice->voxels != NULL) {
        rows.voxels = choice->voxels + done;
        rows.num_voxels = choice->num_voxels - done;
        if (rows.num_voxels == 0) return LR_OK;
    }
    return lr_operator_rows_part(setup->op, &rows, &gate.next);
}

static lr_status write_rows(const struct setup *setup, const struct request *request, lr_matrix_written *written)
{
    char description[256];
    const size_t size = sizeof(description);
    const lr_operator_info *info = lr_operator_get_info(setup->op);
    const char *penetration = info->penetration ? ", penetration" : "";
    if (info->mode == LR_MODE_EXACT) {
        snprintf(description, size, "backend %s, mode exact, samples %d,%d,%d", info->backend, info->samples[0],
                 info->samples[1], info->samples[2]);
    } else {
        snprintf(description, size, "backend %s, mode sampled, rays %d, samples %d,%d,%d%s", info->backend, info->rays,
                 info->samples[0], info->samples[1], info->samples[2], penetration);
    }

    struct request all = *request;
    all.choice = request->whole.choice;
    all.points_mm = request->whole.points_mm;
    all.num_points = request->whole.num_points;
    const lr_matrix_writer_params whole = writer_params(setup, &all, description);
    const lr_matrix_part part = {&whole, request->share.number, request->share.parts, request->share.rows_before};
    lr_matrix_writer_params params = writer_params(setup, request, description);
    params.share = request->share.parts > 0 ? &part : NULL;
    lr_matrix_writer *writer = lr_matrix_writer_create(&params);

    if (writer == NULL) return report_reason(setup->report);
    lr_status status = run_rows(setup, request, writer);
    *written = lr_matrix_writer_get_written(writer);
    const bool all_empty = written->rows > 0 && written->empty_rows == written->rows;
    if (status == LR_OK && all_empty && request->num_points > 0) {
        /* The user has chosen the points. It is therefore an error if all rows are empty. On a grid, some or all rows
         * may be empty. */
        char span[160];
        status = report_error(setup->report, LR_BAD_INPUT,
                              "%s would hold no element: no line through %s joins two modules in "
                              "coincidence: --at is in mm from the scanner's centre, and %s",
                              request->output, written->rows == 1 ? "the point" : "any of the points",
                              setup_say_span(setup, span));
    } else if (status == LR_OK && all_empty) {
        const lr_selection *asked = &request->choice.part;
        bool any = asked->lors == NULL;
        for (int64_t k = 0; !any && k < asked->num_lors; k++) any = lr_lors_in_coincidence(setup->lors, asked->lors[k]);
        report_warn(setup->report, "%s: none of the %lld rows has an element: %s", request->output,
                    (long long)written->rows,
                    any ? "no line of a LOR in coincidence passes the voxels"
                        : "none of the LORs that were asked for is in coincidence");
    } else if (status == LR_OK && request->num_points > 0 && written->empty_rows > 0) {
        report_warn(setup->report,
                    "%lld of %lld points have no element: no line through them joins two modules in coincidence",
                    (long long)written->empty_rows, (long long)written->rows);
    }
    if (status != LR_OK) {
        /* After Ctrl-C, the rows computed so far are kept for --resume. After another error, only rows that were saved
         * earlier are kept. */
        const int64_t rows = lr_matrix_writer_get_written(writer).rows;
        if (status != LR_CANCELLED || is_stream(request->format) || rows == 0) {
            lr_matrix_writer_abandon(writer);
            return status;
        }
        stop_wait_for_results();
        if (lr_matrix_writer_leave(writer) == LR_OK) {
            report_warn(setup->report,
                        "stopped after %lld rows, which are in %s.part and %s.part-rows: the same "
                        "command with --resume goes on from there",
                        (long long)rows, request->output, request->output);
        }
        return status;
    }

    return lr_matrix_writer_finish(writer);
}

static void report_result(const struct setup *setup, const struct request *request, const lr_matrix_written *written)
{
    char line[PATH_MAX + 128];
    report_clear(setup->report);
    if (written->dropped_elements > 0) {
        report_info(setup->report, "threshold %g: %lld elements dropped, %.3g %% of the weight of the rows",
                    request->threshold, (long long)written->dropped_elements,
                    100 * written->dropped_sum / (written->dropped_sum + written->sum));
    }
    if (setup->report->json) {
        struct json json = common_json_begin(stdout, "matrix");
        setup_json(setup, &json);
        json_text(&json, "output", request->output);
        json_text(&json, "format", formats[request->format]);
        json_text(&json, "rows_are", request->num_points > 0 ? "points" : request->choice.by_lor ? "LORs" : "voxels");
        if (request->share.parts > 0) {
            json_int(&json, "part", request->share.number);
            json_int(&json, "parts", request->share.parts);
            json_int(&json, "rows_before", request->share.rows_before);
        }
        json_int(&json, "rows", written->rows);
        json_int(&json, "elements", written->elements);
        json_number(&json, "sum", written->sum);
        json_number(&json, "threshold", request->threshold);
        json_int(&json, "dropped_elements", written->dropped_elements);
        json_number(&json, "dropped_sum", written->dropped_sum);
        json_text(&json, "factors", request->factors.words);
        json_number(&json, "seconds", report_seconds() - request->start_s);
        json_int(&json, "peak_memory_bytes", common_peak_memory());
        common_json_end(&json);

        return;
    }
    snprintf(line, sizeof(line), "%s: %lld rows, %lld elements, sum %.9g", request->output, (long long)written->rows,
             (long long)written->elements, written->sum);
    if (common_is_standard_output(request->output))
        report_info(setup->report, "%s", line); /* standard output is reserved for the rows */
    else
        puts(line);
}

/* Opens scanner, grid, rows and operator. */
static lr_status prepare(struct cli_args *args, struct setup *setup, struct request *request)
{
    const bool has_grid = args_has(args, "--grid") || args_has(args, "--like");
    /* The ending of the file's name must fit the format. In the format text, the name may also have no ending. */
    static const char *const endings[][4] = {[LR_MATRIX_TSV] = {".tsv", ""},
                                             [LR_MATRIX_HDF5] = {".h5", ".hdf5", ""},
                                             [LR_MATRIX_NPZ] = {".npz", ""},
                                             [LR_MATRIX_MTX] = {".mtx", ""},
                                             [LR_MATRIX_STIR] = {".hpm"}};
    CLI_TRY(common_check_output(args->report, request->output,
                                request->tube != NULL ? common_image_endings : endings[request->format]));
    if (request->format != LR_MATRIX_TSV && common_is_device(request->output)) {
        return report_error(args->report, LR_USAGE,
                            "%s is a device or a pipe, to which only text can go (tsv): give the name of a file",
                            request->output);
    }

    CLI_TRY(setup_scanner(setup, args, LR_STORE_NO, NULL));
    if (request->whole.num_points > 0 && !has_grid)
        setup_point_grid(setup);
    else
        CLI_TRY(matrix_choice_open(&request->whole.choice, setup, args));
    if (request->whole.num_points > 0) {
        request->choice = request->whole.choice;
        /* Points are divided among the parts by their index. */
        struct matrix_share *share = &request->share;
        const int64_t num = request->whole.num_points;
        request->points_mm = request->whole.points_mm;
        request->num_points = num;
        if (share->parts > num) {
            return report_error(args->report, LR_USAGE, "%lld points cannot be cut into %lld parts", (long long)num,
                                (long long)share->parts);
        }
        if (share->parts > 0) {
            share->rows_before = num * (share->number - 1) / share->parts;
            request->points_mm += share->rows_before;
            request->num_points = num * share->number / share->parts - share->rows_before;
        }
    } else {
        CLI_TRY(matrix_share_cut(&request->share, &request->whole.choice, setup, &request->choice));
    }
    CLI_TRY(matrix_factors_read(&request->factors, args, setup));
    if (request->tube != NULL && matrix_find_lor(setup, request->tube) < 0) return LR_USAGE;
    return setup_operator(setup);
}

static lr_status run(struct cli_args *args)
{
    struct setup setup = {0};
    struct request request = {0};
    lr_matrix_written written = {0};
    bool goes_on = false;
    lr_status status = read_request(args, &request);
    if (status == LR_OK) status = prepare(args, &setup, &request);
    if (status == LR_OK && request.tube != NULL) {
        status = write_tube(&setup, request.tube, request.output);
    } else if (status == LR_OK) {
        const struct matrix_choice *choice = &request.choice;
        char path[PATH_MAX];
        struct stat there;
        snprintf(path, sizeof(path), "%s.part", request.output);
        const struct forecast_rows rows = {
            .work = {.choice = {.begin = choice->begin,
                                .end = choice->end,
                                .voxels = choice->voxels,
                                .num_voxels = choice->num_voxels,
                                .part = &choice->part},
                     .by_lor = choice->by_lor,
                     .threshold = request.threshold},
            .file = writer_params(&setup, &request, NULL),
            .bytes_there = request.resumes && stat(path, &there) == 0 ? (double)there.st_size : 0.0,
        };
        status = forecast_rows(&setup, &rows, &request.expected_elements, &goes_on);
        if (status == LR_OK && goes_on) status = write_rows(&setup, &request, &written);
        if (status == LR_OK && goes_on) report_result(&setup, &request, &written);
    }
    free(request.whole.points_mm);
    free(request.share.part_pairs);
    matrix_choice_finish(&request.whole.choice);
    setup_finish(&setup);
    return status;
}

static const struct cli_option row_options[] = {
    {"--by", "SIDE", "rows are voxels (voxel) or LORs (lor); default voxel", CLI_WORDS("voxel", "lor")},
    {"--rows", "FIRST:LAST", "only voxel rows FIRST to LAST - 1", NULL},
    {"--region", "REGION", "voxels above 0 in an image, or box:X0,Y0,Z0,X1,Y1,Z1, sphere:X,Y,Z,R (mm)", NULL},
    {"--pairs", "LIST|FILE", "only LORs of these module pairs: 0-18,3-20", NULL},
    {"--lors", "LIST|FILE", "with --by lor, only these: 12,40,100:200 (200 is not)", NULL},
    {"--at", "X,Y,Z", "a point in mm, one sample; without it the grid's voxels", NULL},
    {"--lor", "M,P,Q,M,R,S", "one LOR's elements as an image (-o FILE.nii.gz)", NULL},
    {"--threshold", "T", "drop elements below T times their row's largest", NULL},
    {0},
};

static const struct cli_option output_options[] = {
    {"-o", "FILE", "file to write (.h5, .npz, .mtx, .tsv, .hpm of STIR)", NULL},
    {"--format", "NAME", "hdf5, npz, mtx, stir or tsv; default by the name's ending, else tsv", CLI_WORDS_OF(formats)},
    {"--compress", "LEVEL", "of HDF5, 1 to 9; default 0, none, which is far faster", NULL},
    {FORECAST_DRY_RUN},
    {"--resume", NULL, "go on with what a stopped run left (not tsv, stir)", NULL},
    {"--part", "K/N", "only the K-th of N parts of the rows, for matrix join (.h5, .npz)", NULL},
    {0},
};

static const char *const output_endings[] = {".h5", ".hdf5", ".npz", ".mtx", ".tsv", ".hpm", ".nii", ".nii.gz",
                                             ".hv", ".hdr",  ".mhd", ".mha", ".npy", "",     NULL};

const struct cli_verb verb_matrix = {
    .name = "matrix",
    .summary = "Writes rows of the system matrix: what points or voxels give to each LOR.",
    .repeated = "--at",
    .example = "loraster matrix --scanner ge-explore-vista-dr --at 0,0,0 --at 5,0,2 -o rows.tsv",
    .outputs = {{"-o", output_endings}},
    .groups = {{"rows", row_options},
               {"output", output_options},
               {"factors", matrix_factor_options},
               {COMMON_SCANNER_GROUP},
               {COMMON_GRID_GROUP},
               {COMMON_OPERATOR_GROUP}},
    .run = run,
};
