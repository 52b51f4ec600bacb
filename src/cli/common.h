/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Parts of most verbs: a scanner, its LORs, a grid, an operator, and output. */
#ifndef LR_CLI_COMMON_H
#define LR_CLI_COMMON_H

#include "args.h"

#include <limits.h>
#include <lr/lr.h>

struct setup;

/* Efficiencies and attenuation per LOR, of a setup. Zero is valid; sources point into it: it must not move. */
struct lor_factors {
    float *efficiencies; /* owned [num_crystals]; NULL = none */
    lr_crystal_product product;
    lr_attenuation *attenuation;
    lr_source_product sources;
    lr_lor_source source;
};

/* Attenuation along the lines of each element, or by one factor per LOR. */
enum mu_way { MU_LINES, MU_FACTORS };

#define LOR_FACTORS_MU_AS(usual)                                                                                       \
    {                                                                                                                  \
        "--mu-as", "HOW", "--mu along lines, or as factors (one per LOR); default " usual, false                       \
    }

/* --mu-as, by default `usual`; complains if it lacks --mu, or if --mu-steps goes with factors. */
enum mu_way lor_factors_mu_as(struct cli_args *args, enum mu_way usual);

/* Reads one efficiency per crystal. The setup has its scanner. */
lr_status lor_factors_efficiencies(struct setup *setup, const char *path);

/* Takes the setup's map as factors per LOR instead of samples along each line. */
lr_status lor_factors_attenuate(struct setup *setup);

/* Takes the setup's map, if it has one, in this way, and hands all factors to setup->params. */
lr_status lor_factors_give(struct setup *setup, enum mu_way way);

/* Option tables shared by the verbs. */
extern const struct cli_option common_scanner_options[];
extern const struct cli_option common_grid_options[];
extern const struct cli_option common_operator_options[];
extern const struct cli_option common_general_options[];

#define COMMON_SCANNER_GROUP                                                                                           \
    {                                                                                                                  \
        "scanner", common_scanner_options                                                                              \
    }
#define COMMON_GRID_GROUP                                                                                              \
    {                                                                                                                  \
        "grid", common_grid_options                                                                                    \
    }
#define COMMON_OPERATOR_GROUP                                                                                          \
    {                                                                                                                  \
        "matrix", common_operator_options                                                                              \
    }
/* Option of verbs that read list mode. */
#define COMMON_UNTIL_DAMAGE "--events-until-damage"
#define COMMON_UNTIL_DAMAGE_OPTION                                                                                     \
    {                                                                                                                  \
        COMMON_UNTIL_DAMAGE, NULL, "of list mode that is truncated or damaged take the events before that", false      \
    }
#define COMMON_GENERAL_GROUP                                                                                           \
    {                                                                                                                  \
        "general", common_general_options                                                                              \
    }

/* A return early from a function of type lr_status. */
#define CLI_TRY(call)                                                                                                  \
    do {                                                                                                               \
        const lr_status cli_try_ = (call);                                                                             \
        if (cli_try_ != LR_OK) return cli_try_;                                                                        \
    } while (0)

/* Everything that setup_finish frees; zero is valid. It must not move: `params` points into it. */
struct setup {
    struct report *report;
    const char *verb; /* that the setup is for */
    lr_store store;   /* --store; an operator that only forecasts stores nothing */
    bool dry_run;     /* --dry-run: work is only forecast (forecast.h) */
    lr_scanner *scanner;
    lr_lors *lors;
    lr_grid grid;
    lr_image *mu;
    struct lor_factors factors;
    lr_operator_params params;
    lr_operator *op;
};

/* Reads --scanner and all options of the operator group, opens the scanner and numbers its LORs.
 * `store` is what --store defaults to. fallback: a scanner that stands in for --scanner if that is not given, and
 * which is the setup's from here on; NULL = --scanner must be given. The values of args read before are checked too. */
lr_status setup_scanner(struct setup *setup, struct cli_args *args, lr_store store, lr_scanner *fallback);

/* Reads the grid from --grid, --like, or else takes `image`'s (may be NULL); when both are there
 * they must agree. */
lr_status setup_grid(struct setup *setup, struct cli_args *args, const lr_grid *image);

/* Reads an image; one without a grid of its own (.npy) lies on that of --grid or --like. NULL,
 * reported. */
lr_image *setup_read_image(struct setup *setup, struct cli_args *args, const char *path);

/* True if two grids have the same voxels, to a thousandth of an edge. */
bool setup_same_grid(const lr_grid *a, const lr_grid *b);

/* A grid for verbs that need points only: one voxel amid the modules. */
void setup_point_grid(struct setup *setup);

/* Builds the operator and says what it is. */
lr_status setup_operator(struct setup *setup);

/* A grid of one voxel. */
void setup_voxel_grid(struct setup *setup, const double centre_mm[3], const double voxel_mm[3]);

void setup_finish(struct setup *setup);

/* Keys that every verb with an operator reports: "scanner", "grid", "operator". */
void setup_json(const struct setup *setup, struct json *json);

/* Indexed by lr_listmode_variant, from LR_LISTMODE_SIMPLE on; NULL at the end. */
extern const char *const common_listmode_variants[];

/* --variant; by default LR_LISTMODE_FASTEST. */
lr_listmode_variant common_listmode_variant(struct cli_args *args);

/* A text for a file, which is written when it is complete: stream is NULL if memory runs out. */
struct common_text {
    FILE *stream;
    char *chars;
    size_t bytes;
};
void common_text_begin(struct common_text *text);
lr_status common_text_write(struct common_text *text, struct report *report, const char *path);

/* Opens the object with "verb" and "version", on standard output or on the stream of `json`;
 * closes it and ends the line. */
struct json common_json_begin(const char *verb);
void common_json_open(struct json *json, const char *verb);
void common_json_end(struct json *json);
void common_json_grid(struct json *json, const char *key, const lr_grid *grid);

/* The folder that a path lies in: "." of a name alone. */
void common_folder_of(const char *path, char folder[PATH_MAX]);

/* Checks before long work that `path` can be created, and that it ends in one of `endings` (of struct
 * cli_output). With --json it must not be standard output, and HDF5 goes to no device or pipe. */
lr_status common_check_output(struct report *report, const char *path, const char *const *endings);
extern const char *const common_image_endings[]; /* formats of lr_image_write */
extern const char *const common_picture_endings[];
extern const char *const common_hdf5_endings[];
extern const char *const common_data_endings[]; /* of LOR data */
extern const char *const common_json_endings[];

/* True for a device or a pipe. */
bool common_is_device(const char *path);

/* The ending of an image's name, also ".nii.gz"; the name has one. */
const char *common_image_ending(const char *path);

/* The name of an image of an iteration, which is written next to the output: OUT.nii.gz and 5 give OUT.iter5.nii.gz. */
void common_iteration_path(char path[PATH_MAX], const char *output, int number);

/* True if `path` is what standard output is connected to, as /dev/stdout is. */
bool common_is_standard_output(const char *path);

/* Makes room for `needed` items of `size` bytes in all, and more, in an array that grows. array: the
 * address of the pointer to them; room: items that fit. false if memory runs out: all is as before. */
bool common_grow(void *array, int64_t *room, int64_t needed, size_t size);

bool common_ends_with(const char *text, const char *ending);

/* An array of floats, or NULL, reported. Free with free(). */
float *common_floats(struct report *report, int64_t count, const char *what);

/* A result that a verb is about to write. */
struct common_result {
    const char *output; /* the file's name */
    const float *values;
    int64_t count;
    const char *causes; /* likely ones of a result that is 0 everywhere, with what to do */
};

/* Refuses results that are of no use: not finite, beyond 1e30, or 0 everywhere. */
lr_status common_check_result(struct report *report, const struct common_result *result);

/* Sum of the finite values, in double. */
double common_sum(const float *values, int64_t count);

/* "4.0 GiB" */
const char *common_bytes(char text[32], int64_t bytes);

/* Largest memory this process has had, in bytes; 0 = not known. */
int64_t common_peak_memory(void);

/* Creates a folder unless it is there. */
lr_status common_make_folder(struct report *report, const char *path);

/* A folder whose files appear together, or not at all: they are written into a folder in it, `part`, and
 * moved when all are good. It is created unless it is there, and removed again if nothing is written. */
struct common_folder {
    const char *path;
    bool is_new;
    char part[PATH_MAX - 256];
};
lr_status common_folder_begin(struct common_folder *folder, struct report *report, const char *path);
lr_status common_folder_end(const struct common_folder *folder, struct report *report, lr_status status);

/* Uniform in 0 <= x < 1: number `index` of the sequence that the seed begins. */
double common_random(uint64_t seed, int64_t index);

/* Every output that the verb's syntax declares has an ending of its kind and a folder to lie in, and is
 * neither an input nor what belongs to one (lr_files_check): inputs are all other words that name files.
 * errors: LR_USAGE, LR_FAILED. */
lr_status outputs_check(const struct cli_args *args);

/* The same for one more name, which follows from the outputs' names; one that no file has loses nothing. */
lr_status outputs_check_name(const struct cli_args *args, const char *path);

/* Images of iterations, as common_iteration_path names them: every `every`-th (0 = none) of those after range[0], up to
 * range[1]. */
lr_status outputs_check_iterations(const struct cli_args *args, const char *output, int every, const int range[2]);

/* --- forecasts of the memory and disk that work takes (forecast.c) --- */

#define FORECAST_DRY_RUN                                                                                               \
    {                                                                                                                  \
        "--dry-run", NULL, "only say what it would take: memory and disk", false                                       \
    }

/* Projections, and the file that they end in. */
struct forecast_projections {
    double projections;  /* of all LORs, forward or back */
    double array_bytes;  /* of the verb's own images and LOR data */
    const char *output;  /* NULL = nothing */
    double output_bytes; /* of the file */
};

/* Refuses work with LR_FAILED if its file does not fit on the disk. Reports the forecast with --verbose, with --dry-run,
 * and for a large file. Times are not forecast: progress bars show them. *goes_on: false with --dry-run. */
lr_status forecast_projections(struct setup *setup, const struct forecast_projections *work, bool *goes_on);

/* The same for matrix rows; a few rows are not forecast, and never refused. *elements: expected; 0 = not known */
struct forecast_rows {
    lr_rows_work work;
    lr_matrix_writer_params file;
    double bytes_there; /* of the file, by an earlier run */
};
lr_status forecast_rows(struct setup *setup, const struct forecast_rows *rows, double *elements, bool *goes_on);

#endif
