/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "common.h"

#include "base/path.h"

#include "stop.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <lr/design.h>
#include <lr/doctor.h>
#include <lr/vector.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

const char *const common_image_endings[] = {".nii", ".nii.gz", ".hv", ".hdr", ".mhd", ".mha", ".npy", NULL};
const char *const common_picture_endings[] = {".png", NULL};
const char *const common_hdf5_endings[] = {".h5", ".hdf5", NULL};
const char *const common_data_endings[] = {".h5", ".hdf5", ".hs", NULL};
const char *const common_event_endings[] = {LR_EVENTS_WRITTEN, NULL};
const char *const common_json_endings[] = {".json", "", NULL};

const char *const common_listmode_variants[] = {"simple", "coalesced", "cached", "partitioned",
                                                "sorted", "fastmath",  NULL};
_Static_assert(LR_LISTMODE_FASTEST == 0 && LR_LISTMODE_SIMPLE == 1, "the words begin with variant 1");
const char *const common_mu_ways[] = {[MU_LINES] = "lines", [MU_FACTORS] = "factors", NULL};

lr_events_source common_events_source(struct cli_args *args, const char *path)
{
    const char *map = args_text(args, "--crystal-map"), *header = args_text(args, "--header");
    const bool is_map = map != NULL && lr_events_recognise(path) != LR_EVENTS_CASTOR;
    if (map != NULL && header != NULL)
        args_complain(args, "--header is of Siemens list mode and --crystal-map of SAFIR's: give one of them");
    return (lr_events_source){
        .path = path,
        .format = header != NULL ? LR_EVENTS_SIEMENS
                  : is_map       ? LR_EVENTS_SAFIR
                                 : LR_EVENTS_UNKNOWN,
        .companion = header != NULL ? header : map,
        .until_damage = args_has(args, COMMON_UNTIL_DAMAGE),
        .log = &args->report->log,
    };
}

const char *common_events_scanner(const char *path, const char *map)
{
    const lr_events_format format = path != NULL && map == NULL ? lr_events_recognise(path) : LR_EVENTS_UNKNOWN;
    return format == LR_EVENTS_PETSIRD || format == LR_EVENTS_SAFIR ? path : map;
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

struct json common_json_begin(FILE *stream, const char *verb)
{
    struct json json = {stream, false};
    json_open(&json, NULL, '{');
    json_text(&json, "verb", verb);
    json_text(&json, "version", lr_version());
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
    memcpy(&block, array, sizeof(block)); /* an assignment would need the type of the items */
    const int64_t larger = 2 * needed + 16;
    block = realloc(block, (size_t)larger * size);
    if (block != NULL) {
        memcpy(array, &block, sizeof(block));
        *room = larger;
    }
    return block != NULL;
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
    char folder[PATH_MAX], list[128] = "";
    struct stat status;
    const char *slash = strrchr(path, '/');
    bool has_ending = false;
    for (int k = 0; endings[k] != NULL; k++) {
        const size_t used = strlen(list);
        const bool is_last = endings[k + 1] == NULL || endings[k + 1][0] == '\0';
        if (endings[k][0] == '\0') { /* a name without an ending */
            has_ending = has_ending || strchr(slash != NULL ? slash : path, '.') == NULL;
        } else {
            has_ending = has_ending || lr_path_ends(path, endings[k]);
            snprintf(list + used, sizeof(list) - used, "%s%s", k == 0 ? "" : is_last ? " or " : ", ", endings[k]);
        }
    }
    if (!has_ending) return report_error(report, LR_USAGE, "%s: the name must end in %s", path, list);
    if (report->json && common_is_standard_output(path)) {
        return report_error(report, LR_USAGE, "%s is where the JSON object of --json goes: leave out one of them",
                            path);
    }
    if (common_is_device(path)) { /* a device exists already, so its folder is not checked */
        return !lr_path_ends_in(path, common_hdf5_endings)
                   ? LR_OK
                   : report_error(report, LR_USAGE,
                                  "HDF5 cannot be written to %s: it is a device or a pipe: give the name of a file",
                                  path);
    }
    common_folder_of(path, folder);
    const bool is_there = stat(folder, &status) == 0;
    if (!is_there || !S_ISDIR(status.st_mode)) {
        return report_error(report, LR_FAILED, "%s cannot be written: %s %s%s", path,
                            is_there ? "it would lie in" : "there is no folder", folder,
                            is_there ? ", which is a file and no folder" : ": make it first");
    }
    if (access(folder, W_OK | X_OK) != 0) {
        return report_error(report, LR_FAILED,
                            "%s cannot be written: nothing may be written to the folder %s (%s): name another folder, "
                            "or give yourself the right (chmod u+w)",
                            path, strcmp(folder, ".") == 0 ? "in which you are" : folder, strerror(errno));
    }
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

bool common_is_same_file(const char *one, const char *other)
{
    struct stat a, b;
    return stat(one, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

bool common_is_standard_output(const char *path)
{
    return common_is_same_file(path, "/dev/stdout");
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

/* Moves all files of the subfolder `part` into the folder if `moves` is true, or else removes them. */
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
    if (status == LR_OK) return empty_part(folder, report, false); /* removes what a killed run has left */
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

void common_numbered_path(char path[PATH_MAX], const char *output, const char *mark, int number)
{
    static const char deflated[] = ".nii.gz";
    const char *ending =
        lr_path_ends(output, deflated) ? output + strlen(output) - strlen(deflated) : strrchr(output, '.');
    snprintf(path, PATH_MAX, "%.*s%s%d%s", (int)(ending - output), output, mark, number, ending);
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
                                "%s would hold %g at place %lld, and is not written: likely causes are inputs in "
                                "another unit (--mu, efficiencies, factors) or values that are no counts",
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

double common_sum(const float *values, int64_t count)
{
    const lr_vector all = lr_vector_of_floats(values, count);
    lr_vector_sums sums;
    (void)lr_vector_add_up(&all, NULL, &sums); /* this cannot fail for values on the host */
    return sums.sum;
}

void common_scale(float *values, int64_t count, double factor)
{
    for (int64_t k = 0; k < count; k++) values[k] = (float)(factor * values[k]);
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

/* --- factors per LOR --- */

enum mu_way lor_factors_mu_as(struct cli_args *args)
{
    const enum mu_way way = (enum mu_way)args_word(args, "--mu-as", NULL, MU_FACTORS);
    if (args_has(args, "--mu-as") && !args_has(args, "--mu")) args_complain(args, "--mu-as needs --mu IMAGE");
    if (args_has(args, "--mu-steps") && way != MU_LINES) args_complain(args, "--mu-steps belongs to --mu-as lines");
    return way;
}

lr_status lor_factors_efficiencies(struct setup *setup, const char *path)
{
    const lr_scanner *scanner = setup->scanner;
    struct lor_factors *factors = &setup->factors;
    factors->efficiencies = common_floats(setup->report, scanner->num_crystals, "crystal efficiencies");
    if (factors->efficiencies == NULL) return LR_FAILED;
    CLI_TRY(lr_crystal_values_read(path, scanner, factors->efficiencies, &setup->report->log));
    CLI_TRY(lr_efficiencies_check(factors->efficiencies, scanner->num_crystals, path, &setup->report->log));
    factors->product = (lr_crystal_product){setup->lors, factors->efficiencies, 1, &setup->report->log};
    factors->sources.sources[factors->sources.num_sources++] = lr_crystal_product_source(&factors->product);
    return LR_OK;
}

lr_status lor_factors_attenuate(struct setup *setup)
{
    const lr_attenuation_params params = {
        .lors = setup->lors,
        .mu = setup->mu,
        .threads = setup->params.threads,
        .log = &setup->report->log,
    };
    struct lor_factors *factors = &setup->factors;
    setup->params.mu = NULL;
    factors->attenuation = lr_attenuation_create(&params);
    if (factors->attenuation == NULL) return report_reason(setup->report);
    factors->sources.sources[factors->sources.num_sources++] = lr_attenuation_source(factors->attenuation);
    return LR_OK;
}

lr_status lor_factors_give(struct setup *setup, enum mu_way way)
{
    struct lor_factors *factors = &setup->factors;
    CLI_TRY(way == MU_FACTORS && setup->mu != NULL ? lor_factors_attenuate(setup) : LR_OK);
    if (factors->sources.num_sources > 0) {
        factors->sources.log = &setup->report->log;
        factors->source = lr_source_product_source(&factors->sources);
        setup->params.factors = &factors->source;
    }
    return LR_OK;
}

/* --- from the shared options to an operator --- */

const struct cli_option common_scanner_options[] = {
    {"--scanner", "NAME|FILE", "a preset (loraster scanner list) or a file: YAML, PETSIRD, CASToR, STIR", NULL},
    {0},
};

const struct cli_option common_grid_options[] = {
    {"--grid", "NX,NY,NZ", "number of voxels", CLI_SUCH_AS("6")},
    {"--voxel-mm", "DX,DY,DZ", "edges of a voxel in mm; one number for a cube", NULL},
    {"--origin-mm", "X,Y,Z", "centre of the first voxel; default: grid centred", NULL},
    {"--like", "IMAGE", "the grid of this image instead", NULL},
    {0},
};

const char *const common_mu_units[] = {"auto", "1/mm", "1/cm", "hu", NULL};

const struct cli_option common_operator_options[] = {
    {"--backend", "NAME", "cpu, raster, compute, native, or cuda of list mode; default auto: the fastest",
     CLI_WORDS("auto", "cpu", "raster", "compute", "native", "cuda")},
    {COMMON_DEVICE_OPTION},
    {"--mode", "NAME", "sampled (lines), exact (solid angles); default auto: exact if it can",
     CLI_WORDS("auto", "sampled", "exact")},
    {"--rays", "R", "sampled: R x R lines over each crystal face; default 4", NULL},
    {"--samples", "N|NX,NY,NZ", "points per voxel; default: as its mean needs", NULL},
    {"--mu", "IMAGE", "attenuation map", NULL},
    {COMMON_MU_UNIT_OPTION},
    {"--mu-steps", "K", "samples of the map along a line; default: one per voxel", NULL},
    {"--penetration", NULL, "crystals stop photons along their depth; always in layers, unless", NULL},
    {"--layers-alone", NULL, "each layer of crystals counts as if it were the only one", NULL},
    {"--deterministic", NULL, "the same bits in every run, where that is slower", NULL},
    {"--store", "WHEN", "keep the matrix in memory: auto, yes or no", CLI_WORDS("auto", "yes", "no")},
    {"--max-memory", "SIZE", "limit for it, and on a device, such as 512M or 4G; default: half", NULL},
    {"--threads", "N", "default 0: all processors", NULL},
    {0},
};

/* Reads --grid, --voxel-mm and --origin-mm. Returns true if the grid was given by these options. */
static bool read_explicit_grid(struct cli_args *args, lr_grid *grid)
{
    int size[3] = {0};
    double voxel_mm[3] = {0}, origin_mm[3];
    const int count = args_sizes(args, "--grid", size);
    const bool has_voxel = args_triple(args, "--voxel-mm", true, voxel_mm);
    const bool has_origin = args_triple(args, "--origin-mm", false, origin_mm);
    if (!args_has(args, "--grid")) {
        if (has_voxel || has_origin) args_complain(args, "--voxel-mm and --origin-mm need --grid NX,NY,NZ");
        return false;
    }
    if (count == 1)
        args_complain(args, "--grid %s: three numbers are needed, such as --grid 96,96,8", args_text(args, "--grid"));
    if (!has_voxel) args_complain(args, "--grid needs --voxel-mm DX,DY,DZ");
    for (int k = 0; k < 3 && has_voxel; k++)
        if (!(voxel_mm[k] > 0))
            args_complain(args, "--voxel-mm %s: edges must be positive", args_text(args, "--voxel-mm"));
    *grid = lr_grid_centred(size, voxel_mm);
    if (has_origin) memcpy(grid->origin_mm, origin_mm, sizeof(origin_mm));
    return true;
}

lr_image *setup_read_image(struct setup *setup, struct cli_args *args, const char *path)
{
    const lr_log *log = &setup->report->log;
    const char *like = args_text(args, "--like");
    lr_grid grid = {0};
    if (!lr_path_ends(path, ".npy")) return lr_image_read(path, log);
    if (like != NULL) return lr_grid_read(like, &grid, log) == LR_OK ? lr_image_read_on(path, &grid, log) : NULL;
    const bool given = read_explicit_grid(args, &grid);
    return args->status == LR_OK ? lr_image_read_on(path, given ? &grid : NULL, log) : NULL;
}

lr_status common_warn_of_slip(struct report *report, const lr_scanner *scanner, const char *name)
{
    if (strpbrk(name, "./") == NULL) return LR_OK; /* a preset */
    lr_diagnosis *diagnosis = lr_scanner_find_slips(scanner, &report->log);
    if (diagnosis == NULL) return report_reason(report);
    if (diagnosis->num_suspects > 0)
        report_warn(report, "%s: %s (loraster scanner check %s)", name, diagnosis->findings[0].sentence, name);
    lr_diagnosis_destroy(diagnosis);
    return LR_OK;
}

lr_status setup_scanner(struct setup *setup, struct cli_args *args, lr_store store, lr_scanner *fallback)
{
    setup->report = args->report;
    const lr_log *log = &args->report->log;
    const bool is_named = fallback == NULL || args_has(args, "--scanner");
    setup->scanner = fallback;
    const char *name = is_named ? args_required(args, "--scanner") : NULL;
    const char *backend = args_text(args, "--backend"), *family = args_text(args, "--operator");
    const bool has_cuda = family != NULL && strcasecmp(family, "listmode") == 0;
    if (backend != NULL && strcasecmp(backend, "cuda") == 0 && !has_cuda) {
        args_complain(args,
                      "--backend %s: only the families direct and listmode have it (loraster direct project, recon "
                      "--operator): take compute, which uses the graphics processor by OpenGL",
                      backend);
    }
    if (backend != NULL && (strcasecmp(backend, "gpu") == 0 || strcasecmp(backend, "opengl") == 0)) {
        args_complain(args,
                      "--backend %s: the graphics processor is used by compute, and by raster "
                      "for pictures: give one of these, or leave it to auto",
                      backend);
    }
    setup->params = (lr_operator_params){
        .backend = args_chosen(args, "--backend"),
        .mode = (lr_mode)args_word(args, "--mode", NULL, LR_MODE_AUTO),
        .rays = (int)args_int(args, "--rays", 0, args_from_1),
        .mu_steps = (int)args_int(args, "--mu-steps", 0, args_from_1),
        .deterministic = args_has(args, "--deterministic"),
        .penetration = args_has(args, "--penetration"),
        .layers_alone = args_has(args, "--layers-alone"),
        .max_memory_bytes = args_bytes(args, "--max-memory", 0),
        .threads = (int)args_int(args, "--threads", 0, args_from_0),
        .device = (int)args_int(args, "--device", 0, args_from_0),
        .log = &setup->report->log,
        .progress = &setup->report->progress,
    };
    if (setup->params.penetration && setup->params.layers_alone) {
        args_complain(args, "--penetration goes through all layers, and with --layers-alone each "
                            "counts as if it were the only one: give one of the two");
    }
    setup->verb = args->verb->name;
    setup->dry_run = args_has(args, "--dry-run");
    setup->store = (lr_store)args_word(args, "--store", NULL, (int)store);
    setup->params.store = setup->dry_run ? LR_STORE_NO : setup->store;
    /* A single number is distributed over the axes once the grid is known. Until then, it is kept in samples[0]. */
    if (args_sizes(args, "--samples", setup->params.samples) == 1)
        setup->params.samples[1] = setup->params.samples[2] = 0;

    if (setup->params.mode == LR_MODE_EXACT && args_has(args, "--rays")) {
        report_warn(setup->report, "--rays %s has no effect: --mode exact has no lines, and --mode sampled has them",
                    args_text(args, "--rays"));
    }
    if (args_text(args, "--mu") == NULL && (args_has(args, "--mu-unit") || args_has(args, "--mu-steps")))
        args_complain(args, "--mu-unit and --mu-steps need --mu IMAGE");
    const lr_mu_unit unit = (lr_mu_unit)args_word(args, "--mu-unit", NULL, LR_MU_BY_VALUE);
    CLI_TRY(args->status);
    if (is_named) {
        lr_scanner_destroy(setup->scanner);
        setup->scanner = lr_scanner_read(name, log);
    }
    if (setup->scanner == NULL) return report_reason(setup->report);
    if (is_named) CLI_TRY(common_warn_of_slip(setup->report, setup->scanner, name));
    setup->lors = lr_lors_create_watched(setup->scanner, &setup->report->progress, log);
    if (setup->lors == NULL) return report_reason(setup->report);
    setup->params.lors = setup->lors;
    const char *map = args_text(args, "--mu");
    if (map == NULL) return LR_OK;
    setup->mu = setup_read_image(setup, args, map);
    if (setup->mu == NULL) return report_reason(setup->report);
    CLI_TRY(lr_mu_map_settle(
        setup->mu, &(lr_mu_map_params){.unit = unit, .name = map, .scanner = setup->scanner, .log = log})); /* 1/mm */
    setup->params.mu = setup->mu;
    return LR_OK;
}

static void split_samples(struct setup *setup)
{
    int *samples = setup->params.samples;
    if (samples[0] > 0 && samples[1] == 0) lr_grid_split_samples(&setup->grid, samples[0], samples);
}

/* Reports a mu-map that covers less than half of the grid. */
static void note_small_map(const struct setup *setup)
{
    const lr_grid *grid = &setup->grid;
    if (setup->mu == NULL) return;
    double covered = 1;
    const lr_grid *map = &setup->mu->grid;
    for (int k = 0; k < 3; k++) {
        const double low = grid->origin_mm[k] - 0.5 * grid->voxel_mm[k], width = grid->size[k] * grid->voxel_mm[k];
        const double map_low = map->origin_mm[k] - 0.5 * map->voxel_mm[k];
        const double high = fmin(low + width, map_low + map->size[k] * map->voxel_mm[k]);
        covered *= fmax(0, high - fmax(low, map_low)) / width;
    }
    if (covered < 0.5)
        report_info(setup->report, "the map of --mu covers %.2g %% of the grid: nothing is attenuated outside of it",
                    100 * covered);
}

void setup_warn_of_air(const struct setup *setup, const lr_image *image, double most, const char *causes)
{
    const double share = setup->mu != NULL ? lr_mu_map_share_in_air(setup->mu, image) : 0;
    if (share > most)
        report_warn(setup->report,
                    "%.3g %% of the emissions lie where --mu has air: is the origin in its file right%s?", 100 * share,
                    causes);
}

lr_status setup_grid(struct setup *setup, struct cli_args *args, const lr_grid *image)
{
    const char *like = args_text(args, "--like");
    const bool given = read_explicit_grid(args, &setup->grid);
    if (given && like != NULL) args_complain(args, "--grid and --like exclude each other");
    if (!given && like == NULL && image == NULL)
        args_complain(args, "%s needs a grid: --grid NX,NY,NZ --voxel-mm DX,DY,DZ, or --like IMAGE", args->verb->name);
    CLI_TRY(args->status);
    if (like != NULL) CLI_TRY(lr_grid_read(like, &setup->grid, &setup->report->log));
    if (!given && like == NULL) {
        setup->grid = *image;
    } else if (image != NULL && !lr_grid_same(&setup->grid, image)) {
        const int *asked = setup->grid.size, *own = image->size;
        const double *asked_mm = setup->grid.voxel_mm, *own_mm = image->voxel_mm;
        return report_error(setup->report, LR_USAGE,
                            "the image's grid, %d,%d,%d of %g,%g,%g mm, is not the one asked for, %d,%d,%d of %g,%g,%g "
                            "mm%s: leave out --grid and --like to use the image's",
                            own[0], own[1], own[2], own_mm[0], own_mm[1], own_mm[2], asked[0], asked[1], asked[2],
                            asked_mm[0], asked_mm[1], asked_mm[2],
                            memcmp(own, asked, 3 * sizeof(*own)) == 0 &&
                                    memcmp(own_mm, asked_mm, 3 * sizeof(*own_mm)) == 0
                                ? " (they differ in their origin)"
                                : "");
    }
    split_samples(setup);
    setup->params.grid = &setup->grid;
    CLI_TRY(lr_grid_check(&setup->grid, &setup->report->log));
    note_small_map(setup);
    return LR_OK;
}

void setup_voxel_grid(struct setup *setup, const double centre_mm[3], const double voxel_mm[3])
{
    static const int one[3] = {1, 1, 1};
    setup->grid = lr_grid_centred(one, voxel_mm);
    memcpy(setup->grid.origin_mm, centre_mm, sizeof(setup->grid.origin_mm));
    split_samples(setup);
    setup->params.grid = &setup->grid;
}

void setup_point_grid(struct setup *setup)
{
    static const double cube_mm[3] = {1, 1, 1};
    double centre_mm[3] = {0};
    for (int m = 0; m < setup->scanner->num_modules; m++)
        for (int k = 0; k < 3; k++)
            centre_mm[k] += setup->scanner->modules[m].centre_mm[k] / setup->scanner->num_modules;
    setup_voxel_grid(setup, centre_mm, cube_mm);
}

const char *setup_say_span(const struct setup *setup, char text[160])
{
    const lr_scanner_figures box = lr_scanner_measure(setup->scanner);
    snprintf(text, 160, "the modules span x from %.4g to %.4g, y from %.4g to %.4g and z from %.4g to %.4g mm",
             box.low_mm[0], box.high_mm[0], box.low_mm[1], box.high_mm[1], box.low_mm[2], box.high_mm[2]);
    return text;
}

lr_status setup_operator(struct setup *setup)
{
    static const double many_lines = 2e8; /* lines that two processors project in about a minute */
    char bytes[32], seconds[32];
    setup->op = lr_operator_create(&setup->params);
    if (setup->op == NULL) return report_reason(setup->report);
    const lr_operator_info *info = lr_operator_get_info(setup->op);
    if (setup->params.device > 0 && info->passed_over == NULL &&
        (strcmp(info->backend, "native") == 0 || strcmp(info->backend, "cpu") == 0)) {
        report_warn(setup->report, "--device %d has no effect: backend %s works on the processor", setup->params.device,
                    info->backend);
    }
    report_info(setup->report, "backend %s on %s, mode %s%s", info->backend, info->device,
                info->mode == LR_MODE_EXACT ? "exact" : "sampled", info->penetration ? ", penetration" : "");
    const double points = (double)info->samples[0] * info->samples[1] * info->samples[2];
    const double lines = (double)info->num_voxels * points * info->rays * info->rays * setup->scanner->num_crystals;
    if (info->penetration && !info->is_gpu && points > 1 && lines > many_lines) {
        report_info(
            setup->report,
            "penetration is sampled (%.0f points a voxel x %d lines per crystal face): --samples 1 is about %.0f "
            "times as quick",
            points, info->rays * info->rays, points);
    }
    if (info->stored) {
        report_info(setup->report, "matrix kept in memory: %lld elements, %s, made in %s",
                    (long long)info->num_elements, common_bytes(bytes, info->memory_bytes),
                    report_duration(seconds, info->build_seconds));
    }
    if (info->passed_over != NULL && info->num_lors >= (int64_t)UINT32_MAX) {
        report_info(setup->report, "a graphics processor takes so many LORs event by event: loraster recon "
                                   "--operator listmode --kernel exact --events FILE");
    }
    return LR_OK;
}

void setup_finish(struct setup *setup)
{
    lr_operator_destroy(setup->op); /* the operator uses the factors, so it is destroyed first */
    lr_attenuation_destroy(setup->factors.attenuation);
    free(setup->factors.efficiencies);
    lr_image_destroy(setup->mu);
    lr_lors_destroy(setup->lors);
    lr_scanner_destroy(setup->scanner);
    *setup = (struct setup){0};
}

void setup_json(const struct setup *setup, struct json *json)
{
    json_text(json, "scanner", setup->scanner != NULL ? setup->scanner->name : NULL);
    common_json_grid(json, "grid", &setup->grid);
    const lr_operator_info *info = lr_operator_get_info(setup->op);
    const bool is_direct = info->lors->scanner == NULL; /* LORs without a scanner belong to histo-images or events */
    json_open(json, "operator", '{');
    json_text(json, "family", info->of_events ? "listmode" : is_direct ? "direct" : "correspondence");
    json_text(json, "backend", info->backend);
    json_text(json, "device", info->device);
    json_text(json, "passed_over", info->passed_over);
    json_text(json, "mode", is_direct ? NULL : info->mode == LR_MODE_EXACT ? "exact" : "sampled");
    json_int(json, "rays", info->rays);
    json_ints(json, "samples", info->samples, 3);
    json_int(json, "mu_steps", info->mu_steps);
    json_bool(json, "stored", info->stored);
    json_int(json, "num_voxels", info->num_voxels);
    json_int(json, "num_lors", info->num_lors);
    json_int(json, "num_elements", info->num_elements);
    json_int(json, "memory_bytes", info->memory_bytes);
    json_number(json, "build_seconds", info->build_seconds);
    json_close(json, '}');
}

/* --- outputs of a command line --- */

static const struct cli_output *find_output(const struct cli_verb *verb, const char *name)
{
    for (int k = 0; k < CLI_MAX_OUTPUTS && verb->outputs[k].name != NULL; k++)
        if (strcmp(verb->outputs[k].name, name) == 0) return &verb->outputs[k];
    return NULL;
}

/* Refuses to write a file that another word of the command line names as an input. extra: the only file to be written;
 * NULL = all outputs of the command line. */
static lr_status check_losses(const struct cli_args *args, const char *extra)
{
    const char *written[CLI_MAX_OUTPUTS] = {extra};
    const char **read = calloc(CLI_MAX_GIVEN + CLI_MAX_POSITIONAL, sizeof(*read));
    int num_read = 0, num_written = 0;
    if (read == NULL) return report_error(args->report, LR_FAILED, "no memory for the names of files");
    for (int k = 0; k < args->num_given; k++) {
        const struct cli_given *given = &args->given[k];
        if (given->value == NULL) continue;
        if (find_output(args->verb, given->option->name) == NULL)
            read[num_read++] = given->value;
        else if (extra == NULL)
            written[num_written++] = given->value;
    }
    for (int k = 0; k < args->num_positional; k++)
        if (k != 1 || find_output(args->verb, CLI_SECOND_WORD) == NULL)
            read[num_read++] = args->positional[k];
        else if (extra == NULL)
            written[num_written++] = args->positional[k];
    const lr_status status = lr_files_check(&(lr_file_uses){.read = read,
                                                            .num_read = num_read,
                                                            .written = written,
                                                            .num_written = extra != NULL ? 1 : num_written,
                                                            .log = &args->report->log});
    free(read);
    if (extra == NULL) stop_expect_outputs(written, num_written);
    return status;
}

lr_status outputs_check(const struct cli_args *args)
{
    for (int k = 0; k < CLI_MAX_OUTPUTS && args->verb->outputs[k].name != NULL; k++) {
        const struct cli_output *output = &args->verb->outputs[k];
        const bool is_word = strcmp(output->name, CLI_SECOND_WORD) == 0;
        const char *path = !is_word                   ? args_text(args, output->name)
                           : args->num_positional > 1 ? args->positional[1]
                                                      : NULL;
        if (path != NULL) CLI_TRY(common_check_output(args->report, path, output->endings));
    }
    return check_losses(args, NULL);
}

lr_status outputs_check_name(const struct cli_args *args, const char *path)
{
    return access(path, F_OK) == 0 ? check_losses(args, path) : LR_OK;
}

lr_status outputs_check_iterations(const struct cli_args *args, const char *output, int every, const int range[2])
{
    char path[PATH_MAX];
    for (int k = every > 0 ? range[0] / every + 1 : 1; every > 0 && (int64_t)k * every <= range[1]; k++) {
        common_numbered_path(path, output, ".iter", k * every);
        CLI_TRY(outputs_check_name(args, path));
    }
    return LR_OK;
}
