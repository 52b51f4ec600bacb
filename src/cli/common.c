/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "common.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <lr/vector.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

const struct cli_option common_general_options[] = {
    {"--json", NULL, "one JSON object on standard output", false},
    {"--quiet", NULL, "only warnings and errors", false},
    {"--verbose", NULL, "also what the drivers, shaders and trials say, with the seconds", false},
    {"--help", NULL, "this page", false},
    {0},
};

const char *const common_image_endings[] = {".nii", ".nii.gz", ".hv", ".hdr", ".mhd", ".mha", ".npy", NULL};
const char *const common_picture_endings[] = {".png", NULL};
const char *const common_hdf5_endings[] = {".h5", ".hdf5", NULL};
const char *const common_data_endings[] = {".h5", ".hdf5", ".hs", NULL};
const char *const common_json_endings[] = {".json", "", NULL};

const char *const common_listmode_variants[] = {"simple", "coalesced", "cached", "partitioned",
                                                "sorted", "fastmath",  NULL};

lr_listmode_variant common_listmode_variant(struct cli_args *args)
{
    const int word = args_word(args, "--variant", common_listmode_variants, -1);
    return word < 0 ? LR_LISTMODE_FASTEST : (lr_listmode_variant)(LR_LISTMODE_SIMPLE + word);
}

void common_text_begin(struct common_text *text)
{
    *text = (struct common_text){.stream = NULL};
    text->stream = open_memstream(&text->chars, &text->bytes);
}

lr_status common_text_write(struct common_text *text, struct report *report, const char *path)
{
    bool good = text->stream != NULL && !ferror(text->stream);
    good = text->stream != NULL && fclose(text->stream) == 0 && good;
    const lr_status status = good ? lr_text_write(path, text->chars, &report->log)
                                  : report_error(report, LR_FAILED, "no memory to write %s", path);
    free(text->chars);
    return status;
}

void common_json_open(struct json *json, const char *verb)
{
    json_open(json, NULL, '{');
    json_text(json, "verb", verb);
    json_text(json, "version", lr_version());
}

struct json common_json_begin(const char *verb)
{
    struct json json = {stdout, false};
    common_json_open(&json, verb);
    return json;
}

void common_json_end(struct json *json)
{
    json_close(json, '}');
    fputc('\n', json->stream);
}

void common_json_grid(struct json *json, const char *key, const lr_grid *grid)
{
    json_open(json, key, '{');
    json_ints(json, "size", grid->size, 3);
    json_numbers(json, "voxel_mm", grid->voxel_mm, 3);
    json_numbers(json, "origin_mm", grid->origin_mm, 3);
    json_close(json, '}');
}

bool common_grow(void *array, int64_t *room, int64_t needed, size_t size)
{
    void *block;
    if (needed <= *room) return true;
    memcpy(&block, array, sizeof(block)); /* the pointer may be of any type */
    const int64_t larger = 2 * needed + 16;
    block = realloc(block, (size_t)larger * size);
    if (block != NULL) {
        memcpy(array, &block, sizeof(block));
        *room = larger;
    }
    return block != NULL;
}

bool common_ends_with(const char *text, const char *ending)
{
    const size_t length = strlen(text), tail = strlen(ending);
    return length > tail && strcasecmp(text + length - tail, ending) == 0;
}

static bool has_ending(const char *path, const char *ending)
{
    const char *slash = strrchr(path, '/');
    return ending[0] == '\0' ? strchr(slash != NULL ? slash : path, '.') == NULL : common_ends_with(path, ending);
}

static lr_status check_ending(struct report *report, const char *path, const char *const *endings)
{
    char list[128] = "";
    for (int k = 0; endings[k] != NULL; k++) {
        const size_t used = strlen(list);
        const bool is_last = endings[k + 1] == NULL || endings[k + 1][0] == '\0';
        const char *between = k == 0 ? "" : is_last ? " or " : ", ";
        if (has_ending(path, endings[k])) return LR_OK;
        if (endings[k][0] != '\0') snprintf(list + used, sizeof(list) - used, "%s%s", between, endings[k]);
    }
    return report_error(report, LR_USAGE, "%s: the name must end in %s", path, list);
}

void common_folder_of(const char *path, char folder[PATH_MAX])
{
    snprintf(folder, PATH_MAX, "%s", path);
    char *slash = strrchr(folder, '/');
    if (slash == NULL)
        strcpy(folder, ".");
    else
        slash[slash == folder] = '\0';
}

lr_status common_check_output(struct report *report, const char *path, const char *const *endings)
{
    char folder[PATH_MAX];
    struct stat status;
    CLI_TRY(check_ending(report, path, endings));
    if (report->json && common_is_standard_output(path)) {
        return report_error(report, LR_USAGE, "%s is where the JSON object of --json goes: leave out one of them",
                            path);
    }
    if (common_is_device(path)) { /* which needs no new name in its folder */
        return !common_ends_with(path, ".h5") && !common_ends_with(path, ".hdf5")
                   ? LR_OK
                   : report_error(report, LR_USAGE,
                                  "HDF5 cannot be written to %s: it is a device or a pipe: give the "
                                  "name of a file",
                                  path);
    }
    common_folder_of(path, folder);
    const bool is_there = stat(folder, &status) == 0;
    if (!is_there || !S_ISDIR(status.st_mode)) {
        return report_error(report, LR_FAILED, "%s cannot be written: %s %s%s", path,
                            is_there ? "it would lie in" : "there is no folder", folder,
                            is_there ? ", which is a file and no folder" : ": make it first");
    }
    if (access(folder, W_OK | X_OK) != 0)
        return report_error(report, LR_FAILED, "%s cannot be written: %s: %s", path, folder, strerror(errno));
    if (stat(path, &status) == 0 && S_ISDIR(status.st_mode)) {
        return report_error(report, LR_FAILED, "%s cannot be written: it is a folder: name a file in it, or another",
                            path);
    }
    return LR_OK;
}

bool common_is_device(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && !S_ISDIR(status.st_mode) && !S_ISREG(status.st_mode);
}

bool common_is_standard_output(const char *path)
{
    struct stat named, standard;
    return stat(path, &named) == 0 && fstat(STDOUT_FILENO, &standard) == 0 && named.st_dev == standard.st_dev &&
           named.st_ino == standard.st_ino;
}

lr_status common_make_folder(struct report *report, const char *path)
{
    struct stat status;
    if (mkdir(path, 0777) == 0) return LR_OK;
    const int reason = errno;
    if (reason == EEXIST && stat(path, &status) == 0 && S_ISDIR(status.st_mode)) return LR_OK;
    return report_error(report, LR_FAILED, "the folder %s cannot be made: %s", path,
                        reason == EEXIST   ? "a file has that name: give another"
                        : reason == ENOENT ? "the folder above it is not there: make that first"
                                           : strerror(reason));
}

/* Each file of the part: moved into the folder, or removed. */
static lr_status empty_part(const struct common_folder *folder, struct report *report, bool moves)
{
    DIR *files = opendir(folder->part);
    const struct dirent *file;
    lr_status status = LR_OK;
    if (files == NULL && moves)
        return report_error(report, LR_FAILED, "the folder %s cannot be read: %s", folder->part, strerror(errno));
    while (files != NULL && (file = readdir(files)) != NULL) {
        char from[PATH_MAX + 256], to[PATH_MAX + 256];
        snprintf(from, sizeof(from), "%s/%s", folder->part, file->d_name);
        snprintf(to, sizeof(to), "%s/%s", folder->path, file->d_name);
        if (moves && status == LR_OK && file->d_name[0] != '.' && rename(from, to) != 0)
            status = report_error(report, LR_FAILED, "%s cannot be written: %s", to, strerror(errno));
        else if (!moves)
            unlink(from);
    }
    if (files != NULL) closedir(files);
    return status;
}

lr_status common_folder_begin(struct common_folder *folder, struct report *report, const char *path)
{
    folder->path = path;
    folder->is_new = access(path, F_OK) != 0;
    snprintf(folder->part, sizeof(folder->part), "%s/.part", path);
    CLI_TRY(common_make_folder(report, path));
    const lr_status status = common_make_folder(report, folder->part);
    if (status == LR_OK) return empty_part(folder, report, false); /* of a run that was killed */
    if (folder->is_new) rmdir(path);
    return status;
}

lr_status common_folder_end(const struct common_folder *folder, struct report *report, lr_status status)
{
    status = status == LR_OK ? empty_part(folder, report, true) : status;
    (void)empty_part(folder, report, false);
    rmdir(folder->part);
    if (status != LR_OK && folder->is_new) rmdir(folder->path);
    return status;
}

const char *common_image_ending(const char *path)
{
    static const char deflated[] = ".nii.gz";
    return common_ends_with(path, deflated) ? path + strlen(path) - strlen(deflated) : strrchr(path, '.');
}

void common_iteration_path(char path[PATH_MAX], const char *output, int number)
{
    const char *ending = common_image_ending(output);
    snprintf(path, PATH_MAX, "%.*s.iter%d%s", (int)(ending - output), output, number, ending);
}

lr_status common_write_iteration(struct report *report, const struct common_iteration *iteration)
{
    char path[PATH_MAX];
    common_iteration_path(path, iteration->output, iteration->number);
    lr_image *copy = lr_image_create(iteration->grid, &report->log);
    if (copy == NULL) return report_reason(report);
    memcpy(copy->values, iteration->values, (size_t)lr_grid_num_voxels(iteration->grid) * sizeof(*copy->values));
    const lr_status status = lr_image_write(path, copy, &report->log);
    lr_image_destroy(copy);
    return status;
}

float *common_floats(struct report *report, int64_t count, const char *what)
{
    float *values = calloc((size_t)(count > 0 ? count : 1), sizeof(*values));
    if (values == NULL) {
        char text[32];
        report_error(report, LR_FAILED, "no memory for %s (%s)", what,
                     common_bytes(text, count * (int64_t)sizeof(*values)));
    }
    return values;
}

lr_status common_check_result(struct report *report, const struct common_result *result)
{
    static const float absurd = 1e30f;
    bool has_any = false;
    for (int64_t k = 0; k < result->count; k++) {
        const float value = result->values[k];
        if (!isfinite(value) || fabsf(value) > absurd) {
            return report_error(report, LR_FAILED,
                                "%s would hold %g at place %lld, and is not written: likely causes "
                                "are inputs in another unit (--mu, efficiencies, factors) or values "
                                "that are no counts",
                                result->output, (double)value, (long long)k);
        }
        has_any = has_any || value != 0.0f;
    }
    if (!has_any) {
        return report_error(report, LR_BAD_INPUT, "%s would be 0 everywhere, and is not written: %s", result->output,
                            result->causes);
    }
    return LR_OK;
}

lr_status common_check_activity(struct report *report, const char *path, const lr_image *image)
{
    const int *size = image->grid.size;
    const int64_t count = lr_grid_num_voxels(&image->grid);
    for (int64_t row = 0; row < count; row++) {
        if (image->values[row] < 0.0f) {
            return report_error(report, LR_BAD_INPUT,
                                "%s: voxel (%lld, %lld, %lld) is %g: an activity is at least 0 everywhere: set "
                                "negative voxels to 0 first",
                                path, (long long)(row % size[0]), (long long)(row / size[0] % size[1]),
                                (long long)(row / size[0] / size[1]), (double)image->values[row]);
        }
    }
    return LR_OK;
}

double common_sum(const float *values, int64_t count)
{
    const lr_vector all = lr_vector_of_floats(values, count);
    lr_vector_sums sums;
    (void)lr_vector_add_up(&all, NULL, &sums); /* on the host nothing can fail */
    return sums.sum;
}

const char *common_bytes(char text[32], int64_t bytes)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    double amount = (double)bytes;
    int unit = 0;
    while (amount >= 1024 && unit < 4) {
        amount /= 1024;
        unit++;
    }
    snprintf(text, 32, unit > 0 ? "%.1f %s" : "%.0f %s", amount, units[unit]);
    return text;
}

int64_t common_peak_memory(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (int64_t)usage.ru_maxrss * 1024 : 0;
}

/* SplitMix64 (Steele, Lea, Flood, Fast splittable pseudorandom number generators, 2014). */
static uint64_t mix(uint64_t state)
{
    state += UINT64_C(0x9e3779b97f4a7c15);
    state = (state ^ (state >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    state = (state ^ (state >> 27)) * UINT64_C(0x94d049bb133111eb);
    return state ^ (state >> 31);
}

double common_random(uint64_t seed, int64_t index)
{
    return (double)(mix(mix(seed) + (uint64_t)index) >> 11) * 0x1p-53;
}
