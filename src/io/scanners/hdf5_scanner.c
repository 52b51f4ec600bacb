/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "io/scanners/scanner_formats.h"

#include "base/log.h"
#include "base/mem.h"
#include "io/scanners/castor_order.h"
#include "model/scanner/scanner.h"

#include <lr/io.h>

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A dataset of the group /scanner. It holds one member of struct lr_module for all modules. */
struct column {
    const char *name;
    size_t offset;
    int length;       /* numbers per module */
    bool whole;       /* true: int; false: double */
    double tolerance; /* largest difference that counts as equal */
};

/* The last two columns exist only if a block has layers. */
enum { num_columns = 13, num_plain_columns = 11 };

static const struct column columns[num_columns] = {
    {"crystals", offsetof(lr_module, crystals), 2, true, 0.0},
    {"centre_mm", offsetof(lr_module, centre_mm), 3, false, 1e-3},
    {"u", offsetof(lr_module, u), 3, false, 1e-5},
    {"v", offsetof(lr_module, v), 3, false, 1e-5},
    {"normal", offsetof(lr_module, normal), 3, false, 1e-5},
    {"pitch_mm", offsetof(lr_module, pitch_mm), 2, false, 1e-4},
    {"face_mm", offsetof(lr_module, face_mm), 2, false, 1e-4},
    {"depth_mm", offsetof(lr_module, depth_mm), 1, false, 1e-4},
    {"position", offsetof(lr_module, position), 1, true, 0.0},
    {"ring", offsetof(lr_module, ring), 1, true, 0.0},
    {"first_crystal_ring", offsetof(lr_module, first_crystal_ring), 1, true, 0.0},
    {"layer", offsetof(lr_module, layer), 1, true, 0.0},
    {"block", offsetof(lr_module, block), 1, true, 0.0},
};

/* This column exists only if a module's crystals have a material of their own. */
static const struct column own_mu = {"module_mu_per_mm", offsetof(lr_module, mu_per_mm), 1, false, 1e-6};

static bool has_own_mu(const lr_scanner *scanner)
{
    bool has = false;
    for (int m = 0; m < scanner->num_modules; m++) has = has || scanner->modules[m].mu_per_mm > 0;
    return has;
}

static size_t bytes_of(const struct column *column)
{
    return (size_t)column->length * (column->whole ? sizeof(int) : sizeof(double));
}

/* --- writing --- */

static bool put_column(const struct lr_hdf5_fns *h5, lr_hdf5_id group, const lr_scanner *scanner,
                       const struct column *column)
{
    const size_t bytes = bytes_of(column);
    unsigned char *numbers = malloc(bytes * (size_t)scanner->num_modules);
    if (numbers == NULL) return false;
    for (int m = 0; m < scanner->num_modules; m++) {
        const unsigned char *module = (const unsigned char *)&scanner->modules[m];
        memcpy(numbers + bytes * (size_t)m, module + column->offset, bytes);
    }
    const int64_t shape[2] = {scanner->num_modules, column->length > 1 ? column->length : 0};
    const bool done =
        h5->put_array(group, column->name, column->whole ? LR_HDF5_INT32 : LR_HDF5_DOUBLE, shape, numbers);
    free(numbers);
    return done;
}

bool lr_hdf5_put_scanner(const struct lr_hdf5_output *out, const lr_scanner *scanner)
{
    const struct lr_hdf5_fns *h5 = out->h5;
    const lr_hdf5_id group = h5->group_create(out->file, "scanner");
    if (group < 0) return false;
    const lr_coincidence *rules = &scanner->coincidence;
    const int ring_difference = rules->limits_ring_difference ? rules->max_ring_difference : -1;
    bool done = h5->put_string(group, "name", scanner->name ? scanner->name : "") &&
                (scanner->source == NULL || h5->put_string(group, "source", scanner->source)) &&
                h5->put_numbers(group, "num_positions", LR_HDF5_INT32, 0, &scanner->num_positions) &&
                h5->put_numbers(group, "detection_depth_mm", LR_HDF5_DOUBLE, 0, &scanner->detection_depth_mm) &&
                h5->put_numbers(group, "tof_resolution_ps", LR_HDF5_DOUBLE, 0, &scanner->tof_resolution_ps) &&
                h5->put_numbers(group, "crystal_mu_per_mm", LR_HDF5_DOUBLE, 0, &scanner->crystal_mu_per_mm) &&
                h5->put_numbers(group, "field_of_view_mm", LR_HDF5_DOUBLE, 0, &rules->field_of_view_mm) &&
                h5->put_numbers(group, "min_module_difference", LR_HDF5_INT32, 0, &rules->min_module_difference) &&
                h5->put_numbers(group, "max_ring_difference", LR_HDF5_INT32, 0, &ring_difference);
    const int count = lr_scanner_num_layers(scanner) > 1 ? num_columns : num_plain_columns;
    for (int c = 0; c < count && done; c++) done = put_column(h5, group, scanner, &columns[c]);
    if (scanner->castor_order != NULL && done) {
        done = h5->put_array(group, "castor_order", LR_HDF5_INT32, (int64_t[2]){scanner->num_crystals, 0},
                             scanner->castor_order);
    }
    done = done && (!has_own_mu(scanner) || put_column(h5, group, scanner, &own_mu));
    return h5->group_close(group) && done;
}

lr_hdf5_id lr_hdf5_put_lors(const struct lr_hdf5_output *out, const lr_lors *lors)
{
    const struct lr_hdf5_fns *h5 = out->h5;
    const lr_hdf5_id group = h5->group_create(out->file, "lor");
    if (group < 0) return group;
    if (h5->put_string(group, "order",
                       "LOR = offsets[k] + a * crystals(j) + b for pair k = modules (i, j), "
                       "a = q * nu + p in i, b = s * nu + r in j") &&
        h5->put_array(group, "pairs", LR_HDF5_INT32, (int64_t[2]){lors->num_pairs, 2}, lors->pairs) &&
        h5->put_array(group, "offsets", LR_HDF5_INT64, (int64_t[2]){lors->num_pairs + 1, 0}, lors->offsets))
        return group;
    h5->group_close(group);
    return -1;
}

/* --- comparing --- */

static lr_status compare_column(const struct lr_hdf5_input *in, const lr_scanner *scanner, const struct column *column)
{
    char name[64];
    snprintf(name, sizeof(name), "/scanner/%s", column->name);
    int64_t shape[2];
    const int rank = column->length > 1 ? 2 : 1;
    LR_TRY(lr_hdf5_shape(in, name, column->whole, shape, rank));
    if (shape[0] != scanner->num_modules || (rank == 2 && shape[1] != column->length)) {
        return lr_error(
            in->log, LR_BAD_INPUT,
            "%s was made for another scanner: it has %lld modules, %s has %d: give the scanner it was made for",
            in->path, (long long)shape[0], scanner->name, scanner->num_modules);
    }
    const int count = scanner->num_modules * column->length;
    double *numbers = lr_alloc(count, sizeof(double), "a scanner's modules", in->log);
    if (numbers == NULL) return LR_FAILED;
    lr_status status = lr_hdf5_get(in, name, LR_HDF5_DOUBLE, shape, numbers);
    for (int n = 0; n < count && status == LR_OK; n++) {
        const int m = n / column->length, k = n % column->length;
        const char *field = (const char *)&scanner->modules[m] + column->offset;
        const double own =
            column->whole ? ((const int *)(const void *)field)[k] : ((const double *)(const void *)field)[k];
        if (!(fabs(numbers[n] - own) <= column->tolerance)) {
            status = lr_error(in->log, LR_BAD_INPUT,
                              "%s was made for another scanner: its module %d has %s[%d] = %.9g, "
                              "that of %s has %.9g: give the scanner it was made for",
                              in->path, m, column->name, k, numbers[n], scanner->name, own);
        }
    }
    free(numbers);
    return status;
}

static void compare_rule(const struct lr_hdf5_input *in, const char *rule, double own)
{
    double number;
    if (lr_hdf5_get_numbers(in, "/scanner", rule, LR_HDF5_DOUBLE, 1, &number) && fabs(number - own) > 1e-6)
        lr_warn(in->log, "%s was made with %s = %.9g, the scanner here has %.9g", in->path, rule, number, own);
}

lr_status lr_hdf5_check_scanner(const struct lr_hdf5_input *in, const lr_lors *lors)
{
    if (lr_hdf5_has(in, "/scanner")) {
        const lr_scanner *scanner = lors->scanner;
        const bool has_layers = lr_scanner_num_layers(scanner) > 1;
        if (lr_hdf5_has(in, "/scanner/layer") != has_layers) {
            return lr_error(in->log, LR_BAD_INPUT, "%s was made for another scanner: %s %s", in->path, scanner->name,
                            has_layers ? "has blocks of layers, and the file's has none"
                                       : "has no blocks of layers, and the file's has");
        }
        for (int c = 0; c < (has_layers ? num_columns : num_plain_columns); c++)
            LR_TRY(compare_column(in, scanner, &columns[c]));
        const lr_coincidence *rules = &scanner->coincidence;
        compare_rule(in, "field_of_view_mm", rules->field_of_view_mm);
        compare_rule(in, "min_module_difference", rules->min_module_difference);
        compare_rule(in, "max_ring_difference", rules->limits_ring_difference ? rules->max_ring_difference : -1);
        compare_rule(in, "detection_depth_mm", scanner->detection_depth_mm);
        /* Attenuation is compared only if both scanners have it. */
        double number;
        if (scanner->crystal_mu_per_mm > 0 &&
            lr_hdf5_get_numbers(in, "/scanner", "crystal_mu_per_mm", LR_HDF5_DOUBLE, 1, &number) && number > 0)
            compare_rule(in, "crystal_mu_per_mm", scanner->crystal_mu_per_mm);

        LR_TRY(has_own_mu(scanner) && lr_hdf5_has(in, "/scanner/module_mu_per_mm")
                   ? compare_column(in, scanner, &own_mu)
                   : LR_OK);
    }

    int64_t shape[2];
    LR_TRY(lr_hdf5_shape(in, "/lor/pairs", true, shape, 2));
    if (shape[0] != lors->num_pairs || shape[1] != 2) {
        return lr_error(in->log, LR_BAD_INPUT,
                        "%s was made for another scanner or other coincidence rules: /lor/pairs "
                        "has %lld x %lld numbers, %s has %lld x 2",
                        in->path, (long long)shape[0], (long long)shape[1], lors->scanner->name,
                        (long long)lors->num_pairs);
    }
    int64_t *pairs = lr_alloc(2 * lors->num_pairs, sizeof(int64_t), "pairs of modules", in->log);
    if (pairs == NULL) return LR_FAILED;
    lr_status status = lr_hdf5_get(in, "/lor/pairs", LR_HDF5_INT64, shape, pairs);
    for (int64_t k = 0; k < lors->num_pairs && status == LR_OK; k++) {
        if (pairs[2 * k] != lors->pairs[k][0] || pairs[2 * k + 1] != lors->pairs[k][1]) {
            status = lr_error(in->log, LR_BAD_INPUT,
                              "%s was made for another scanner or other coincidence rules: its "
                              "pair %lld is of the modules %lld and %lld, that of %s of %d and %d",
                              in->path, (long long)k, (long long)pairs[2 * k], (long long)pairs[2 * k + 1],
                              lors->scanner->name, lors->pairs[k][0], lors->pairs[k][1]);
        }
    }
    free(pairs);
    LR_TRY(status);

    LR_TRY(lr_hdf5_shape(in, "/lor/offsets", true, shape, 1));
    if (shape[0] != lors->num_pairs + 1) {
        return lr_error(in->log, LR_BAD_INPUT,
                        "/lor/offsets in %s has %lld numbers: it must have one more than the %lld pairs", in->path,
                        (long long)shape[0], (long long)lors->num_pairs);
    }
    int64_t *offsets = lr_alloc(lors->num_pairs + 1, sizeof(int64_t), "LOR offsets", in->log);
    if (offsets == NULL) return LR_FAILED;
    status = lr_hdf5_get(in, "/lor/offsets", LR_HDF5_INT64, shape, offsets);
    for (int64_t k = 0; k <= lors->num_pairs && status == LR_OK; k++) {
        if (k > 0 && offsets[k] < offsets[k - 1]) {
            status = lr_error(in->log, LR_BAD_INPUT, "/lor/offsets in %s falls at %lld", in->path, (long long)k);
        } else if (offsets[k] != lors->offsets[k]) {
            status = lr_error(in->log, LR_BAD_INPUT,
                              "%s was made for another scanner: its LORs of pair %lld begin at "
                              "%lld, those of %s at %lld",
                              in->path, (long long)k, (long long)offsets[k], lors->scanner->name,
                              (long long)lors->offsets[k]);
        }
    }
    free(offsets);
    return status;
}

/* --- reading --- */

enum { most_modules = 1 << 20 };

static lr_status read_column(const struct lr_hdf5_input *in, const struct column *column, lr_module *modules,
                             int num_modules)
{
    char name[64];
    int64_t shape[2];
    snprintf(name, sizeof(name), "/scanner/%s", column->name);
    LR_TRY(lr_hdf5_shape(in, name, column->whole, shape, column->length > 1 ? 2 : 1));
    if (shape[0] != num_modules || (column->length > 1 && shape[1] != column->length)) {
        return lr_error(in->log, LR_BAD_INPUT, "%s in %s must have %d numbers for each of %d modules", name, in->path,
                        column->length, num_modules);
    }
    const size_t bytes = bytes_of(column);
    unsigned char *numbers = lr_alloc(num_modules, bytes, "a scanner's modules", in->log);
    if (numbers == NULL) return LR_FAILED;
    const lr_status status = lr_hdf5_get(in, name, column->whole ? LR_HDF5_INT32 : LR_HDF5_DOUBLE, shape, numbers);
    for (int m = 0; m < num_modules && status == LR_OK; m++)
        memcpy((unsigned char *)&modules[m] + column->offset, numbers + bytes * (size_t)m, bytes);
    free(numbers);
    return status;
}

/* Reads a number of a coincidence rule. Returns `fallback` if the number is missing, not finite, or 1e9 or larger. */
static double read_rule(const struct lr_hdf5_input *in, const char *name, double fallback)
{
    double number;
    return lr_hdf5_get_numbers(in, "/scanner", name, LR_HDF5_DOUBLE, 1, &number) && isfinite(number) &&
                   fabs(number) < 1e9
               ? number
               : fallback;
}

static lr_status read_castor_order(const struct lr_hdf5_input *in, lr_scanner *scanner)
{
    static const char name[] = "/scanner/castor_order";
    int64_t shape[2];
    if (!lr_hdf5_has(in, name)) return LR_OK;
    LR_TRY(lr_hdf5_shape(in, name, true, shape, 1));
    int *order =
        shape[0] == scanner->num_crystals ? lr_alloc(shape[0], sizeof(*order), "crystal numbers", in->log) : NULL;
    lr_status status = order != NULL                       ? lr_hdf5_get(in, name, LR_HDF5_INT32, shape, order)
                       : shape[0] == scanner->num_crystals ? LR_FAILED
                                                           : LR_BAD_INPUT;
    if (status == LR_OK) {
        status = lr_castor_order_keep(scanner, order, in->log);
        order = NULL;
    }
    free(order);
    return status != LR_BAD_INPUT ? status
                                  : lr_error(in->log, LR_BAD_INPUT, "%s in %s must name each of the %d crystals once",
                                             name, in->path, scanner->num_crystals);
}

lr_scanner *lr_scanner_read_hdf5(const char *path, const lr_log *log)
{
    struct lr_hdf5_input in;
    if (lr_hdf5_input_open(&in, path, log) != LR_OK) return NULL;
    lr_scanner *scanner = NULL;
    lr_module *modules = NULL;
    int64_t shape[2];
    if (lr_hdf5_shape(&in, "/scanner/crystals", true, shape, 2) != LR_OK) goto done;
    /* /scanner/crystals is not compressed, and each module has two numbers of 4 bytes in it. */
    if (shape[0] < 2 || shape[0] > most_modules || shape[0] * 8 > in.file_bytes) {
        (void)lr_error(in.log, LR_BAD_INPUT, "%s cannot have a scanner of %lld modules", in.path, (long long)shape[0]);
        goto done;
    }
    const int num_modules = (int)shape[0];
    modules = lr_alloc(num_modules, sizeof(*modules), "a scanner's modules", in.log);
    if (modules == NULL) goto done;
    const int count = lr_hdf5_has(&in, "/scanner/layer") ? num_columns : num_plain_columns;
    for (int c = 0; c < count; c++)
        if (read_column(&in, &columns[c], modules, num_modules) != LR_OK) goto done;
    if (lr_hdf5_has(&in, "/scanner/module_mu_per_mm") && read_column(&in, &own_mu, modules, num_modules) != LR_OK)
        goto done;

    struct lr_named_log named;
    lr_log_name(&named, in.path, in.log);
    char name[256] = "", source[4096] = "";
    (void)lr_hdf5_get_string(&in, "/scanner", "name", name, sizeof(name));
    const bool has_source = lr_hdf5_get_string(&in, "/scanner", "source", source, sizeof(source));
    const int ring_difference = (int)read_rule(&in, "max_ring_difference", -1);
    const lr_scanner_params params = {
        .name = name,
        .modules = modules,
        .num_modules = num_modules,
        .num_positions = (int)read_rule(&in, "num_positions", 0),
        .coincidence = {.field_of_view_mm = read_rule(&in, "field_of_view_mm", 0),
                        .min_module_difference = (int)read_rule(&in, "min_module_difference", 0),
                        .limits_ring_difference = ring_difference >= 0,
                        .max_ring_difference = ring_difference >= 0 ? ring_difference : 0},
        .detection_depth_mm = read_rule(&in, "detection_depth_mm", 0),
        .tof_resolution_ps = read_rule(&in, "tof_resolution_ps", 0),
        .crystal_mu_per_mm = read_rule(&in, "crystal_mu_per_mm", 0),
        .source = has_source ? source : NULL,
        .log = &named.log,
    };
    scanner = lr_scanner_create(&params);
    if (scanner != NULL && (read_castor_order(&in, scanner) != LR_OK || lr_hdf5_input_check(&in) != LR_OK)) {
        lr_scanner_destroy(scanner);
        scanner = NULL;
    }
done:
    free(modules);
    lr_hdf5_input_close(&in);
    return scanner;
}
