/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "base/path.h"
#include "common.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

/* Files of at least this size are announced before they are written. */
static const double large_bytes = 1e9;

/* Fraction of the free disk space that an estimated size may fill. */
static const double filled_share = 0.95;

/* Free bytes on the disk of the file `path`; HUGE_VAL for a pipe or a device, or if the number is not known. */
static double forecast_free_bytes(const char *path)
{
    char folder[PATH_MAX];
    struct stat status;
    struct statvfs system;
    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode)) return HUGE_VAL;
    common_folder_of(path, folder);
    return statvfs(folder, &system) == 0 ? (double)system.f_bavail * (double)system.f_frsize : HUGE_VAL;
}

/* True if two files are, or will be, on the same disk. */
static bool is_same_disk(const char *a, const char *b)
{
    char folder[PATH_MAX];
    struct stat of_a, of_b;
    common_folder_of(a, folder);
    const bool is_there = stat(folder, &of_a) == 0;
    common_folder_of(b, folder);
    return is_there && stat(folder, &of_b) == 0 && of_a.st_dev == of_b.st_dev;
}

static const char *size_in_words(char text[32], double bytes)
{
    return common_bytes(text, bytes < 9e18 ? (int64_t)bytes : INT64_MAX);
}

/* The work and the disk space that a forecast expects. */
struct total {
    double elements, rows, memory_bytes, disk_bytes, free_bytes;
    double projections;  /* number of projections of all LORs; 0 if the work is rows */
    double matrix_bytes; /* memory of the matrix that projections keep; 0 = none */
};

static bool is_announced(const struct setup *setup, const struct total *total)
{
    const struct report *report = setup->report;
    return setup->dry_run || report->verbose || (total->disk_bytes >= large_bytes && !report->quiet);
}

/* Reports the forecast, or prints it as JSON with --dry-run. */
static void announce(const struct setup *setup, const char *output, const struct total *total)
{
    char what[96] = "", disk[128] = "", memory[32], needed[32], there[32];
    if (setup->dry_run && setup->report->json) {
        struct json json = common_json_begin(stdout, setup->verb);
        setup_json(setup, &json);
        json_text(&json, "output", output);
        json_open(&json, "forecast", '{');
        json_number(&json, "rows", total->rows);
        json_number(&json, "elements", total->elements);
        json_number(&json, "disk_bytes", total->disk_bytes);
        json_number(&json, "free_bytes", total->free_bytes);
        json_number(&json, "memory_bytes", total->memory_bytes);
        if (total->projections > 0) json_number(&json, "matrix_bytes", total->matrix_bytes);
        json_close(&json, '}');
        common_json_end(&json);
        return;
    }
    if (!is_announced(setup, total)) return;
    if (total->elements > 0) snprintf(what, sizeof(what), "%.3g elements in %.0f rows, ", total->elements, total->rows);
    if (total->disk_bytes > 0) {
        snprintf(disk, sizeof(disk), "%s on the disk, where %s are free, ", size_in_words(needed, total->disk_bytes),
                 isfinite(total->free_bytes) ? size_in_words(there, total->free_bytes) : "any number");
    }
    char kept[96] = "";
    if (total->matrix_bytes > 0)
        snprintf(kept, sizeof(kept), "; the matrix is kept, in %s of it", size_in_words(needed, total->matrix_bytes));
    report_info(setup->report, "this takes about %s%s%s%s of memory%s", what, disk, disk[0] != '\0' ? "and " : "",
                size_in_words(memory, total->memory_bytes),
                total->projections > 1 && kept[0] == '\0' ? "; the matrix is not kept, but computed in each projection"
                                                          : kept);
}

lr_status forecast_projections(struct setup *setup, const struct forecast_projections *work, bool *goes_on)
{
    struct total total = {.disk_bytes = work->output_bytes + work->also_bytes,
                          .free_bytes = work->output != NULL ? forecast_free_bytes(work->output) : HUGE_VAL};
    lr_forecast forecast;
    *goes_on = !setup->dry_run;
    const bool shares = work->also != NULL && is_same_disk(work->output, work->also);
    for (int k = 0; k < (work->also != NULL && !shares ? 2 : 1); k++) {
        char needed[32], there[32];
        const char *path = k == 0 ? work->output : work->also;
        const double bytes = shares ? total.disk_bytes : k == 0 ? work->output_bytes : work->also_bytes;
        const double free_bytes = k == 0 ? total.free_bytes : forecast_free_bytes(path);
        if (bytes <= free_bytes) continue;
        return report_error(setup->report, LR_FAILED,
                            "%s%s%s would take %s, and %s are free there: free some space, choose another place, or "
                            "%s%s; nothing has been computed",
                            path, shares ? " and " : "", shares ? work->also : "", size_in_words(needed, bytes),
                            size_in_words(there, free_bytes),
                            shares || k == 1 ? "leave out "
                            : lr_path_ends_in(path, common_data_endings)
                                ? "take list mode, which has no number for each LOR (simulate --tof-ps, recon "
                                  "--operator listmode)"
                                : "take fewer voxels",
                            shares || k == 1 ? work->also : "");
    }
    if (!is_announced(setup, &total)) return LR_OK;
    CLI_TRY(lr_operator_forecast_projections(setup->op, work->projections, setup->store, &forecast));
    total.memory_bytes = forecast.memory_bytes + work->array_bytes + (double)common_peak_memory();
    total.projections = work->projections;
    total.matrix_bytes = forecast.matrix_bytes;
    announce(setup, work->output, &total);
    return LR_OK;
}

lr_status forecast_rows(struct setup *setup, const struct forecast_rows *rows, double *elements, bool *goes_on)
{
    enum { FEW = 1000 };
    /* A zip archive can have at most 4 GiB. The estimate may be too high, so only an estimate above `surely` bytes is
     * refused here. The writer decides about lower estimates. */
    const double surely = 5e9;
    struct total total = {.free_bytes = forecast_free_bytes(rows->file.path)};
    lr_forecast forecast;
    *elements = 0;
    *goes_on = !setup->dry_run;

    /* Fewer than FEW rows are forecast only with --dry-run. Rows of points are few, and are never forecast. */
    const lr_row_choice *choice = &rows->work.choice;
    const int64_t num = rows->work.by_lor ? lr_grid_num_voxels(&setup->grid)
                        : choice->voxels  ? choice->num_voxels
                                          : choice->end - choice->begin;
    if (rows->file.num_points > 0 || (num < FEW && !setup->dry_run)) {
        if (setup->dry_run && setup->report->json) {
            announce(setup, rows->file.path,
                     &(struct total){.rows = rows->file.num_points,
                                     .elements = NAN,
                                     .disk_bytes = NAN,
                                     .free_bytes = total.free_bytes,
                                     .memory_bytes = NAN});
        } else if (setup->dry_run) {
            report_info(setup->report, "rows of points are few, and not estimated");
        }
        return LR_OK;
    }
    CLI_TRY(lr_operator_forecast_rows(setup->op, &rows->work, &forecast));
    *elements = total.elements = forecast.kept_elements;
    total.rows = forecast.rows;
    total.memory_bytes = forecast.memory_bytes + (double)common_peak_memory();
    const lr_matrix_size size = lr_matrix_expect_size(&rows->file, total.rows, total.elements);
    total.disk_bytes = size.disk_bytes;
    char needed[32];
    if (rows->file.format == LR_MATRIX_NPZ && size.file_bytes > surely) {
        return report_error(setup->report, LR_USAGE,
                            "%s would take about %s for %.3g elements in %.0f rows, more than the "
                            "4 GiB that a plain zip archive holds: write HDF5 (.h5) instead",
                            rows->file.path, size_in_words(needed, size.file_bytes), total.elements, total.rows);
    }
    if (!(total.disk_bytes - rows->bytes_there > total.free_bytes)) {
        announce(setup, rows->file.path, &total);
        return LR_OK;
    }

    char there[32], plain[32], instead[96] = "";
    const double share = filled_share * total.free_bytes / total.disk_bytes;
    lr_matrix_writer_params hdf5 = rows->file;
    hdf5.format = LR_MATRIX_HDF5;
    hdf5.compress = 0;
    const lr_matrix_size other = lr_matrix_expect_size(&hdf5, total.rows, total.elements);
    if (other.disk_bytes < total.disk_bytes) {
        snprintf(instead, sizeof(instead), "; HDF5 (.h5) without --compress takes %s",
                 size_in_words(plain, other.disk_bytes));
    }
    return report_error(setup->report, LR_FAILED,
                        "%s would take about %s on the disk for %.3g elements in %.0f rows, and %s are free there: "
                        "what fits is about %.0f rows (%s), or edges of voxels %.2g times as long%s; nothing has "
                        "been written",
                        rows->file.path, size_in_words(needed, total.disk_bytes), total.elements, total.rows,
                        size_in_words(there, total.free_bytes), floor(share * total.rows),
                        rows->work.by_lor ? "--lors FIRST:LAST or --pairs"
                                          : "--rows FIRST:LAST, --region or, of each row, --pairs",
                        cbrt(1.0 / share) + 0.05, instead);
}
