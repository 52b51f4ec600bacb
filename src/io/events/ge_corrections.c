/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The correction terms that belong to GE's public list mode (corrections.h5; Zenodo 8404015): of each
 * event, in the list's order, correction_lists/sens, atten and contam; of each pair of crystals
 * all_xtals/xtal_ids, with place and ring of either, all_xtals/sens and atten. What the numbers mean is
 * known from public readers of that file, parallelproj's first (docs/formats/events.md). */
#include <lr/events.h>

#include "base/log.h"
#include "base/mem.h"
#include "io/events/ge.h"
#include "io/files/hdf5_input.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_PER_READ = 1 << 16, IDS = 4 };

struct reader {
    struct lr_hdf5_input in;
    const lr_lors *lors;
    struct lr_ge_crystals crystals;
    lr_event_corrections *found;
    int32_t *ids;        /* [ROWS_PER_READ][IDS] */
    float *sens, *atten; /* [ROWS_PER_READ] */
    int64_t num_pairs;
    int64_t no_lor; /* pairs of which the scanner has no LOR in coincidence */
};

/* --- numbers --- */

static lr_status check_number(const struct reader *reader, const char *name, int64_t entry, float number)
{
    return number >= 0.0f && number <= FLT_MAX
               ? LR_OK
               : lr_error(reader->in.log, LR_BAD_INPUT,
                          "%s: entry %lld of %s is %g: it must be finite and not negative", reader->in.path,
                          (long long)entry, name, (double)number);
}

/* Entries range[0] .. range[0] + range[1] - 1, checked. */
static lr_status get_numbers(const struct reader *reader, const char *name, const int64_t range[2], float *numbers)
{
    LR_TRY(lr_hdf5_get_part(&reader->in, name, LR_HDF5_FLOAT, range, numbers));
    for (int64_t k = 0; k < range[1]; k++) LR_TRY(check_number(reader, name, range[0] + k, numbers[k]));
    return LR_OK;
}

/* Datasets that have a number for each of the same things. */
static lr_status check_lengths(const struct reader *reader, const char *const *names, int64_t *length)
{
    for (int k = 0; names[k] != NULL; k++) {
        int64_t shape[2];
        LR_TRY(lr_hdf5_shape(&reader->in, names[k], false, shape, 1));
        LR_TRY(lr_hdf5_need_stored(&reader->in, names[k], shape));
        if (k > 0 && shape[0] != *length) {
            return lr_error(reader->in.log, LR_BAD_INPUT,
                            "%s: %s has %lld entries and %s has %lld: they must be as many", reader->in.path, names[0],
                            (long long)*length, names[k], (long long)shape[0]);
        }
        *length = shape[0];
    }
    return LR_OK;
}

/* --- of events --- */

static lr_status read_lists(struct reader *reader)
{
    static const char *const names[] = {"correction_lists/sens", "correction_lists/atten", "correction_lists/contam",
                                        NULL};
    lr_event_corrections *found = reader->found;
    int64_t length = 0;
    LR_TRY(check_lengths(reader, names, &length));
    found->factors = lr_alloc(length, sizeof(float), "factors of events", reader->in.log);
    found->additive = lr_alloc(length, sizeof(float), "additive terms of events", reader->in.log);
    if (found->factors == NULL || found->additive == NULL) return LR_FAILED;
    for (int64_t begin = 0; begin < length; begin += ROWS_PER_READ) {
        const int64_t left = length - begin, range[2] = {begin, left < ROWS_PER_READ ? left : ROWS_PER_READ};
        LR_TRY(get_numbers(reader, names[0], range, reader->sens));
        LR_TRY(get_numbers(reader, names[1], range, reader->atten));
        LR_TRY(get_numbers(reader, names[2], range, found->additive + begin));
        for (int64_t k = 0; k < range[1]; k++) {
            found->factors[begin + k] = reader->sens[k] * reader->atten[k];
            found->additive[begin + k] /= (float)(LR_GE_JOINED * lr_ge_step_mm);
        }
    }
    found->count = length;
    return LR_OK;
}

/* --- of all LORs --- */

static void take_pair(struct reader *reader, const int32_t *ids, float factor)
{
    const int32_t a = lr_ge_crystal(&reader->crystals, ids[1], ids[0]);
    const int32_t b = lr_ge_crystal(&reader->crystals, ids[3], ids[2]);
    const int64_t lor = a >= 0 && b >= 0 ? lr_lors_number(reader->lors, a, b) : -1;
    if (lor < 0 || !lr_lors_in_coincidence(reader->lors, lor)) {
        reader->no_lor++;
        return;
    }
    reader->found->lors->values[lor] += factor; /* a LOR that is listed twice is measured twice */
}

static lr_status read_pairs(struct reader *reader)
{
    for (int64_t begin = 0; begin < reader->num_pairs; begin += ROWS_PER_READ) {
        const int64_t left = reader->num_pairs - begin, range[2] = {begin, left < ROWS_PER_READ ? left : ROWS_PER_READ};
        const struct lr_hdf5_rows rows = {begin, range[1], IDS};
        LR_TRY(lr_hdf5_get_rows(&reader->in, "all_xtals/xtal_ids", &rows, reader->ids));
        LR_TRY(get_numbers(reader, "all_xtals/sens", range, reader->sens));
        LR_TRY(get_numbers(reader, "all_xtals/atten", range, reader->atten));
        for (int64_t k = 0; k < range[1]; k++)
            take_pair(reader, reader->ids + IDS * k, reader->sens[k] * reader->atten[k]);
    }
    return LR_OK;
}

static lr_status check_pairs(struct reader *reader)
{
    static const char *const names[] = {"all_xtals/sens", "all_xtals/atten", NULL};
    int64_t shape[2];
    LR_TRY(check_lengths(reader, names, &reader->num_pairs));
    LR_TRY(lr_hdf5_shape(&reader->in, "all_xtals/xtal_ids", true, shape, 2));
    if (shape[0] != reader->num_pairs || shape[1] != IDS) {
        return lr_error(reader->in.log, LR_BAD_INPUT,
                        "%s: all_xtals/xtal_ids is %lld x %lld, and not %lld x %d: places and rings "
                        "of two crystals for each entry of all_xtals/sens",
                        reader->in.path, (long long)shape[0], (long long)shape[1], (long long)reader->num_pairs, IDS);
    }
    return LR_OK;
}

/* LORs that the file does not list are not measured: events there would have no sensitivity. */
static lr_status judge(const struct reader *reader)
{
    const lr_scanner *scanner = reader->lors->scanner;
    if (reader->no_lor == reader->num_pairs) {
        return lr_error(reader->in.log, LR_BAD_INPUT,
                        "%s: none of the %lld pairs of crystals in all_xtals/xtal_ids is in "
                        "coincidence on %s: is it of another scanner?",
                        reader->in.path, (long long)reader->num_pairs, scanner->name);
    }
    if (reader->no_lor > 0) {
        lr_warn(reader->in.log,
                "%s: %lld of %lld pairs of crystals are not in coincidence on %s and are left out "
                "of the sensitivity",
                reader->in.path, (long long)reader->no_lor, (long long)reader->num_pairs, scanner->name);
    }
    return LR_OK;
}

/* --- the file --- */

static lr_status read_open(struct reader *reader, const lr_log *log)
{
    if (!lr_hdf5_has(&reader->in, "correction_lists")) {
        LR_TRY(lr_hdf5_input_check(&reader->in));
        return lr_error(reader->in.log, LR_BAD_INPUT,
                        "%s: has no correction_lists, one number for each event: give the "
                        "corrections.h5 that belongs to the list (docs/formats/events.md)",
                        reader->in.path);
    }
    reader->ids = lr_alloc(ROWS_PER_READ * IDS, sizeof(*reader->ids), "pairs of crystals", log);
    reader->sens = lr_alloc(ROWS_PER_READ, sizeof(*reader->sens), "correction terms", log);
    reader->atten = lr_alloc(ROWS_PER_READ, sizeof(*reader->atten), "correction terms", log);
    reader->found->lors = lr_lor_data_create(reader->lors, log);
    if (reader->ids == NULL || reader->sens == NULL || reader->atten == NULL || reader->found->lors == NULL)
        return LR_FAILED;
    LR_TRY(lr_ge_crystals_init(&reader->crystals, reader->lors->scanner, reader->in.path, log));
    LR_TRY(check_pairs(reader));
    LR_TRY(read_lists(reader));
    LR_TRY(read_pairs(reader));
    return judge(reader);
}

lr_event_corrections *lr_event_corrections_read(const char *path, const lr_lors *lors, const lr_log *log)
{
    struct reader reader = {.lors = lors};
    lr_event_corrections *found = lr_alloc(1, sizeof(*found), "correction terms", log);
    if (found == NULL || lr_hdf5_input_open(&reader.in, path, log) != LR_OK) {
        free(found);
        return NULL;
    }
    reader.found = found;
    const lr_status status = read_open(&reader, log);
    lr_hdf5_input_close(&reader.in);
    lr_ge_crystals_finish(&reader.crystals);
    free(reader.ids);
    free(reader.sens);
    free(reader.atten);
    if (status != LR_OK) {
        lr_event_corrections_destroy(found);
        return NULL;
    }
    return found;
}

void lr_event_corrections_destroy(lr_event_corrections *corrections)
{
    if (corrections != NULL) {
        lr_lor_data_destroy(corrections->lors);
        free(corrections->factors);
        free(corrections->additive);
        free(corrections);
    }
}
