/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Functions that most verbs share: they open a scanner, its LORs, a grid and an operator, and write output. */
#pragma once

#include "args.h"
#include "base/hash.h"

#include <limits.h>
#include <lr/lr.h>

struct setup;

/* Efficiencies and attenuation per LOR, for one setup. A struct of zeros is valid. The struct must not move, because
 * sources point into it. */
struct lor_factors {
    float *efficiencies; /* owned [num_crystals]; NULL = none */
    lr_crystal_product product;
    lr_attenuation *attenuation;
    lr_source_product sources;
    lr_lor_source source;
};

/* The two uses of a mu-map: with MU_LINES, the mu-map is sampled along the lines of each element; with MU_FACTORS, the
 * mu-map gives one factor per LOR. */
enum mu_way { MU_LINES, MU_FACTORS };

/* Names of the two uses, which are also the words of --mu-as. */
extern const char *const common_mu_ways[];

#define LOR_FACTORS_MU_AS                                                                                              \
    "--mu-as", "HOW", "--mu as factors (one per LOR) or along lines; default factors", CLI_WORDS_OF(common_mu_ways)

/* Reads --mu-as. It is an error if --mu-as is given without --mu, or if --mu-steps is given with factors. */
enum mu_way lor_factors_mu_as(struct cli_args *args);

/* Reads one efficiency per crystal. The setup must have its scanner already. */
lr_status lor_factors_efficiencies(struct setup *setup, const char *path);

/* Makes one attenuation factor for each LOR from the setup's mu-map. The operator then does not sample the mu-map. */
lr_status lor_factors_attenuate(struct setup *setup);

/* Applies the setup's mu-map, if there is one, in the given way, and passes all factors to setup->params. */
lr_status lor_factors_give(struct setup *setup, enum mu_way way);

/* Options that several verbs share. */
extern const struct cli_option common_scanner_options[];
extern const struct cli_option common_grid_options[];
extern const struct cli_option common_operator_options[];

#define COMMON_SCANNER_GROUP "scanner", common_scanner_options
#define COMMON_GRID_GROUP "grid", common_grid_options
#define COMMON_OPERATOR_GROUP "matrix", common_operator_options
#define COMMON_DEVICE_NUMBER CLI_SUCH_AS("0 (loraster info lists them)")
#define COMMON_DEVICE_OPTION "--device", "N", "which usable device of loraster info; default 0", COMMON_DEVICE_NUMBER

/* An option of the verbs that read list mode. */
#define COMMON_UNTIL_DAMAGE "--events-until-damage"
#define COMMON_UNTIL_DAMAGE_OPTION                                                                                     \
    COMMON_UNTIL_DAMAGE, NULL, "of list mode that is truncated or damaged take the events before that", NULL

/* The source of the list mode `path`, with the options --crystal-map, --header and --events-until-damage. A crystal map
 * or a header determines the format. It is an error if both --crystal-map and --header are given (args_complain). */
lr_events_source common_events_source(struct cli_args *args, const char *path);

/* Returns the file that describes the scanner of the list mode `path`: its crystal map, or itself if it is PETSIRD, or
 * SAFIR with the map beside it. NULL = none, or path is NULL. map: --crystal-map; NULL = not given. */
const char *common_events_scanner(const char *path, const char *map);

/* Returns the call's status from the surrounding function if the call fails. */
#define CLI_TRY(call)                                                                                                  \
    do {                                                                                                               \
        const lr_status cli_try_ = (call);                                                                             \
        if (cli_try_ != LR_OK) return cli_try_;                                                                        \
    } while (0)

/* All data that setup_finish frees. A struct of zeros is valid. The struct must not move, because `params` points into
   it. */
struct setup {
    struct report *report;
    const char *verb; /* the verb that uses the setup */
    lr_store store;   /* --store; with --dry-run an operator stores no elements */
    bool dry_run;     /* --dry-run: the work is only forecast (forecast.c) */
    lr_scanner *scanner;
    lr_lors *lors;
    lr_grid grid;
    lr_image *mu;
    struct lor_factors factors;
    lr_operator_params params;
    lr_operator *op;
};

/* Reads --scanner and all options of the operator group, opens the scanner and numbers its LORs. store: default of
 * --store. fallback: the scanner to use if --scanner is not given; the setup owns it from now on; NULL = --scanner
 * is required. Errors in values that were read from args earlier are also reported here. */
lr_status setup_scanner(struct setup *setup, struct cli_args *args, lr_store store, lr_scanner *fallback);

/* Warns of the first length that is surely a slip in a scanner read from the file `name`. Presets are not examined. */
lr_status common_warn_of_slip(struct report *report, const lr_scanner *scanner, const char *name);

/* Reads the grid from --grid or --like, or else uses the grid of `image` (may be NULL). If one of these options and an
 * image are given, their grids must agree. */
lr_status setup_grid(struct setup *setup, struct cli_args *args, const lr_grid *image);

/* Reads an image. An image without a grid (.npy) lies on the grid of --grid or --like. Returns NULL on failure,
 * reported. */
lr_image *setup_read_image(struct setup *setup, struct cli_args *args, const char *path);

/* Warns if more than this share of an image's emissions lies where the map of --mu has air. causes: other causes, added to
 * the sentence. */
void setup_warn_of_air(const struct setup *setup, const lr_image *image, double most, const char *causes);

/* Makes a grid for verbs that need only points: one voxel in the middle of the modules. */
void setup_point_grid(struct setup *setup);

/* Writes into `text` which coordinates the modules span, and returns `text`. */
const char *setup_say_span(const struct setup *setup, char text[160]);

/* Builds the operator and reports its backend and device. */
lr_status setup_operator(struct setup *setup);

/* Sets the setup's grid to a single voxel. */
void setup_voxel_grid(struct setup *setup, const double centre_mm[3], const double voxel_mm[3]);

void setup_finish(struct setup *setup);

/* Writes the keys "scanner", "grid" and "operator", which every verb with an operator reports. */
void setup_json(const struct setup *setup, struct json *json);

/* Words of the option for the unit of attenuation maps, indexed by lr_mu_unit. */
extern const char *const common_mu_units[];
#define COMMON_MU_UNIT_OPTION                                                                                          \
    "--mu-unit", "UNIT", "of the map: 1/mm, 1/cm or hu (CT); default: 1/mm or 1/cm by its largest value",              \
        CLI_WORDS_OF(common_mu_units)

/* Names of list mode's variants 1 and up; the default, variant 0, has no name. NULL at the end. */
extern const char *const common_listmode_variants[];

/* A text that is first collected in memory, and is written to its file when the text is complete. stream is NULL if
 * memory runs out. */
struct common_text {
    FILE *stream;
    char *chars;
    size_t bytes;
};
void common_text_begin(struct common_text *text);
lr_status common_text_write(struct common_text *text, struct report *report, const char *path);

/* Opens a verb's JSON object, with the keys "verb" and "version". */
struct json common_json_begin(FILE *stream, const char *verb);

/* Closes a verb's JSON object and ends the line. */
void common_json_end(struct json *json);
void common_json_grid(struct json *json, const char *key, const lr_grid *grid);

/* The folder that contains a path; "." if the path is only a name. */
void common_folder_of(const char *path, char folder[PATH_MAX]);

/* Checks before long work that `path` can be created and ends in one of `endings` (of struct cli_output). Standard
 * output is refused with --json, and HDF5 is refused on devices and pipes. */
lr_status common_check_output(struct report *report, const char *path, const char *const *endings);
extern const char *const common_image_endings[]; /* formats of lr_image_write */
extern const char *const common_picture_endings[];
extern const char *const common_hdf5_endings[];
extern const char *const common_data_endings[];  /* formats of LOR data */
extern const char *const common_event_endings[]; /* formats of list mode that are written */
extern const char *const common_json_endings[];

/* True for a device or a pipe. */
bool common_is_device(const char *path);

/* The name of an image that is written next to the output, or instead of it: OUT.nii.gz, ".iter" and 5 give
 * OUT.iter5.nii.gz. The output's name must have an ending. */
void common_numbered_path(char path[PATH_MAX], const char *output, const char *mark, int number);

/* True if both paths exist and name one file. */
bool common_is_same_file(const char *one, const char *other);

/* True if `path` is the file to which standard output goes, such as /dev/stdout. */
bool common_is_standard_output(const char *path);

/* Makes room for at least `needed` items of `size` bytes in a growing array. array: the address of the pointer to
 * the items. room: the number of items that fit. Returns false if memory runs out; the array is unchanged then. */
bool common_grow(void *array, int64_t *room, int64_t needed, size_t size);

/* Allocates an array of floats; NULL on failure, reported. Free it with free(). */
float *common_floats(struct report *report, int64_t count, const char *what);

/* A result that a verb is about to write. */
struct common_result {
    const char *output; /* the file's name */
    const float *values;
    int64_t count;
    const char *causes; /* likely causes of a result that is 0 everywhere, with advice */
};

/* Refuses useless results: values that are not finite, beyond 1e30, or 0 everywhere. */
lr_status common_check_result(struct report *report, const struct common_result *result);

/* Sum of the finite values, in double. */
double common_sum(const float *values, int64_t count);

/* Multiplies values by a factor. */
void common_scale(float *values, int64_t count, double factor);

/* Writes a number of bytes into `text`, such as "4.0 GiB", and returns `text`. */
const char *common_bytes(char text[32], int64_t bytes);

/* Peak memory of this process in bytes; 0 = not known. */
int64_t common_peak_memory(void);

/* Creates a folder if it does not exist. */
lr_status common_make_folder(struct report *report, const char *path);

/* A folder of results that are all written or not at all. Files are first written into the subfolder `part`, and moved
 * into the folder when all files are complete. A new folder is removed again if no file is written. */
struct common_folder {
    const char *path;
    bool is_new;
    char part[PATH_MAX - 256];
};
lr_status common_folder_begin(struct common_folder *folder, struct report *report, const char *path);
lr_status common_folder_end(const struct common_folder *folder, struct report *report, lr_status status);

/* A uniform random number, 0 <= x < 1: number `index` of the sequence that starts from the seed. */
static inline double common_random(uint64_t seed, int64_t index)
{
    return lr_split_uniform(lr_split_mix(seed, 1), (uint64_t)index + 1);
}

/* Checks every output that the verb's syntax declares: its ending must fit, its folder must exist, and it must not
 * be an input or a file that belongs to an input (lr_files_check). All other words that name files are inputs.
 * errors: LR_USAGE, LR_FAILED. */
lr_status outputs_check(const struct cli_args *args);

/* Refuses a name, derived from an output's name, if it is the name of an input. A file that does not exist yet is
 * always allowed. */
lr_status outputs_check_name(const struct cli_args *args, const char *path);

/* Checks the names (common_numbered_path) of the images that --save-every writes: the image of every `every`-th
 * iteration (0 = none) after range[0] and up to range[1]. */
lr_status outputs_check_iterations(const struct cli_args *args, const char *output, int every, const int range[2]);

/* --- forecasts of the memory and disk that work takes (forecast.c) --- */

#define FORECAST_DRY_RUN_WORDS "only say what it would take: memory and disk"
#define FORECAST_DRY_RUN "--dry-run", NULL, FORECAST_DRY_RUN_WORDS, NULL

/* Projections, and the files that receive their results. */
struct forecast_projections {
    double projections;  /* number of projections of all LORs, forward or back */
    double array_bytes;  /* bytes of the verb's images and LOR data */
    const char *output;  /* the file; NULL = none */
    double output_bytes; /* size of the file */
    const char *also;    /* a second file; NULL = none */
    double also_bytes;
};

/* Refuses work with LR_FAILED if its files do not fit on the disk. Reports the forecast with --verbose, with
 * --dry-run, and for a large file. Progress bars show times, so no times are forecast. *goes_on: false with
 * --dry-run. */
lr_status forecast_projections(struct setup *setup, const struct forecast_projections *work, bool *goes_on);

/* Matrix rows, and the file that receives them. */
struct forecast_rows {
    lr_rows_work work;
    lr_matrix_writer_params file;
    double bytes_there; /* bytes that an earlier run has already written to the file */
};

/* Refuses or reports rows in the way that forecast_projections does for projections. Fewer than 1000 rows are forecast
 * only with --dry-run. Rows of points are never forecast. *elements: the expected number of elements; 0 = not known. */
lr_status forecast_rows(struct setup *setup, const struct forecast_rows *rows, double *elements, bool *goes_on);
