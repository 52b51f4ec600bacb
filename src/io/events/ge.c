/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * GE's list mode in HDF5, as in the public NEMA acquisition of a Discovery MI (LIST0000.BLF; Zenodo 8404015). The
 * dataset MiceList/TofCoinc has five integers per event: ring and place of crystal a, ring and place of crystal b, and
 * the time of flight in steps of 13.02 ps. The time is positive if a was hit first. The meaning of these numbers is
 * known from public readers of the file, mainly parallelproj (docs/formats/events.md). The meaning of the header beside
 * the list is known from STIR's GEHDF5Wrapper.cxx. */
#include "base/log.h"
#include "base/mem.h"
#include "base/units.h"
#include "io/events/event_stream.h"
#include "io/files/hdf5_input.h"
#include "io/lor_data/sinogram.h"

#include <float.h>
#include <lr/events.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Times of flight in lists are multiples of 13 steps. These multiples form 29 bins around the middle of the LOR. */
enum { JOINED = 13, BINS = 29 };
static const double step_mm = 13.02 * LR_MM_PER_PS;

/* Crystals of a scanner in GE's numbering. */
struct ge_crystals {
    struct lr_sinogram_rings rings; /* numbering without virtual places */
    int per_module;                 /* number of a module's crystals around the axis */
};

/* Numbers the crystals, beginning with the top module, whose middle is nearest to +y. If two modules are equally near,
 * the top module is the one on the clockwise side of +y, seen from +z. name: name of the file, for messages. errors:
 * LR_BAD_INPUT for a scanner that is not made of full rings. lr_sinogram_rings_finish must follow in any case. */
static lr_status number_crystals(struct ge_crystals *crystals, const lr_scanner *scanner, const char *name,
                                 const lr_log *log)
{
    const struct lr_sinogram_gaps none = {0, 0};
    LR_TRY(lr_sinogram_rings_create(&crystals->rings, scanner, &none, name, log));
    const struct lr_sinogram_rings *rings = &crystals->rings;
    const double place_deg = 360.0 / rings->around, module_deg = 360.0 / rings->modules;
    crystals->per_module = rings->around / rings->modules;
    const double middle_deg = rings->first_angle_deg + 0.5 * (crystals->per_module - 1) * place_deg;
    const int modules = (int)ceil((90.0 - middle_deg) / module_deg - 0.5 - 1e-6);
    return lr_sinogram_rings_turn(&crystals->rings, modules * crystals->per_module, log);
}

/* Number of a crystal in the whole scanner; -1 = none. */
static inline int32_t crystal_at(const struct ge_crystals *crystals, int32_t ring, int32_t place)
{
    const struct lr_sinogram_rings *rings = &crystals->rings;
    if (ring < 0 || ring >= rings->rings || place < 0 || place >= rings->around) return -1;
    /* Seen from +z, GE's places run clockwise and the places of `rings` counterclockwise. Both begin with the top
     * module. */
    const int ours = (crystals->per_module - 1 - place + rings->around) % rings->around;
    return rings->crystals[(int64_t)(rings->rings - 1 - ring) * rings->around + ours];
}

/* --- the header --- */

#define HEADER "HeaderData/"
#define GEOMETRY HEADER "SystemGeometry/"
#define TIMING HEADER "AcqParameters/EDCATParameters/"
#define PATIENT HEADER "AcqParameters/LandmarkParameters/"
#define SORTER HEADER "Sorter/"

/* The datasets that public readers of GE's files read. */
static const struct lr_known_key known_keys[] = {
    {LR_KEY_READ,
     "MiceList/TofCoinc|" GEOMETRY "axialCrystalsPerBlock|" GEOMETRY "axialBlocksPerModule|" GEOMETRY
     "axialModulesPerSystem|" GEOMETRY "radialCrystalsPerBlock|" GEOMETRY "radialBlocksPerModule|" GEOMETRY
     "radialModulesPerSystem|" GEOMETRY "effectiveRingDiameter|" GEOMETRY "detectorAxialSize|" GEOMETRY
     "transaxial_crystal_0_offset|" GEOMETRY "timingResolutionInPico|" HEADER "AcqStats/frameDuration",
     NULL, NULL},
    {LR_KEY_REFUSED, TIMING "coincTimingPrecision", "0.01302|13.02",
     "only times of flight in steps of 13.02 ps can be read"},
    {LR_KEY_WARNED, PATIENT "absTableLongitude", "0",
     "images are where the scanner is: move them along z by so many tenths of a millimetre"},
    {LR_KEY_WARNED, PATIENT "tableElevation", "0",
     "images are where the scanner is: move them along y by so many tenths of a millimetre"},
    {LR_KEY_WARNED, PATIENT "gantryTilt", "0", "images stand as the scanner does"},
    {LR_KEY_WARNED, PATIENT "patientEntry|" PATIENT "patientPosition", "0", LR_PATIENT_AXES},
    {LR_KEY_IDLE,
     GEOMETRY "axialBlocksPerUnit|" GEOMETRY "axialUnitsPerModule|" GEOMETRY "radialBlocksPerUnit|" GEOMETRY
              "radialUnitsPerModule|" TIMING "posCoincidenceWindow|" TIMING "negCoincidenceWindow|" TIMING
              "lower_energy_limit|" TIMING "upper_energy_limit|" HEADER "AcqStats/scanStartTime|" HEADER
              "AcqStats/frameStartTime|" HEADER "ExamData/*|" HEADER "RDFConfiguration/*|" HEADER "ListHeader/*|" SORTER
              "*|" HEADER "SinglesHeader/*|Singles/*|ListData/*",
     NULL, NULL},
};
const struct lr_known_keys lr_ge_keys = {.format = "GE's list mode", LR_KNOWN_ROWS(known_keys)};

/* Warns of header fields that shift the positions of events, and of fields that do not fit the scanner. Refuses a file
 * whose numbers of rings or crystals differ from the scanner's. */
static lr_status judge_header(const struct lr_hdf5_input *in, const struct ge_crystals *crystals,
                              const lr_scanner *scanner)
{
    static const char *const judged[] = {TIMING "coincTimingPrecision", PATIENT "absTableLongitude",
                                         PATIENT "tableElevation",      PATIENT "gantryTilt",
                                         PATIENT "patientEntry",        PATIENT "patientPosition"};
    enum { NUM_JUDGED = sizeof(judged) / sizeof(judged[0]) };
    char values[NUM_JUDGED][32];
    struct lr_keyed_line lines[NUM_JUDGED];
    double number, counts[3] = {0};
    for (int k = 0; k < NUM_JUDGED; k++) {
        values[k][0] = '\0';
        /* The time step may be stored as 1 / 76.8 ns, which equals 0.01302 to four digits. */
        if (lr_hdf5_get_number(in, judged[k], &number))
            snprintf(values[k], sizeof(values[k]), "%.*g", k == 0 ? 4 : 6, number);
        lines[k] = (struct lr_keyed_line){judged[k], values[k], 0, 0};
    }
    const struct lr_keyed_text text = {.path = in->path, .log = in->log, .lines = lines, .count = NUM_JUDGED};
    LR_TRY(lr_keyed_text_judge(&text, &lr_ge_keys));

    const struct lr_sinogram_rings *rings = &crystals->rings;
    static const char *const counted[2][3] = {
        {GEOMETRY "axialCrystalsPerBlock", GEOMETRY "axialBlocksPerModule", GEOMETRY "axialModulesPerSystem"},
        {GEOMETRY "radialCrystalsPerBlock", GEOMETRY "radialBlocksPerModule", GEOMETRY "radialModulesPerSystem"}};
    const int own[2] = {rings->rings, rings->around};
    for (int axis = 0; axis < 2; axis++) {
        bool has_all = true;
        for (int k = 0; k < 3; k++) has_all = lr_hdf5_get_number(in, counted[axis][k], &counts[k]) && has_all;
        const double count = has_all ? counts[0] * counts[1] * counts[2] : own[axis];
        if (count != own[axis]) {
            return lr_error(in->log, LR_BAD_INPUT,
                            "%s: its scanner has %g %s, and %s has %d: give the scanner of the file", in->path, count,
                            axis == 0 ? "rings" : "crystals in a ring", scanner->name, own[axis]);
        }
    }

    /* The circle of the effective diameter must pass through the crystals, and crystal 0 must be in the top module. */
    const double length_mm = rings->rings * rings->ring_pitch_mm, module_deg = 360.0 / rings->modules;
    const struct {
        const char *name;
        double least, most;
    } compared[] = {{GEOMETRY "effectiveRingDiameter", 2.0 * rings->radius_mm,
                     2.0 * (rings->radius_mm + scanner->modules->depth_mm)},
                    {GEOMETRY "detectorAxialSize", 0.95 * length_mm, 1.05 * length_mm},
                    {GEOMETRY "transaxial_crystal_0_offset", -module_deg, module_deg}};
    for (size_t k = 0; k < sizeof(compared) / sizeof(compared[0]); k++) {
        if (lr_hdf5_get_number(in, compared[k].name, &number) && number != 0.0 &&
            !(number >= compared[k].least && number <= compared[k].most)) {
            lr_warn(in->log, "%s: '%s' is %g, and on %s it lies between %.6g and %.6g: its own places are taken",
                    in->path, compared[k].name, number, scanner->name, compared[k].least, compared[k].most);
        }
    }
    return LR_OK;
}

/* --- list mode --- */

#define EVENTS "MiceList/TofCoinc"

enum { COLUMNS = 5, ROWS_PER_READ = 1 << 16 };

struct reader {
    const lr_events_source *source;
    struct lr_event_stream *stream;
    struct lr_hdf5_input in;
    struct ge_crystals crystals;
    lr_event_counts counts;
    int32_t *numbers; /* owned [ROWS_PER_READ][COLUMNS] */
};

/* Reads the list of an open file: checks its header, then gives its events to the stream. */
static lr_status read_list(struct reader *reader)
{
    const lr_events_source *source = reader->source;
    const struct lr_hdf5_input *in = &reader->in;
    int64_t shape[2];
    LR_TRY(lr_hdf5_shape(in, EVENTS, true, shape, 2));
    if (shape[1] != COLUMNS) {
        return lr_error(source->log, LR_BAD_INPUT,
                        "%s: an event of %s has %lld numbers, and not the %d that rings, places and "
                        "a time of flight take",
                        source->path, EVENTS, (long long)shape[1], COLUMNS);
    }
    LR_TRY(lr_hdf5_need_stored(in, EVENTS, shape));
    LR_TRY(number_crystals(&reader->crystals, source->scanner, source->path, source->log));
    LR_TRY(judge_header(in, &reader->crystals, source->scanner));
    lr_events_info *info = reader->stream->info;
    double number;
    if (lr_hdf5_get_number(in, GEOMETRY "timingResolutionInPico", &number) && number > 0.0)
        info->tof_resolution_ps = number;
    if (lr_hdf5_get_number(in, HEADER "AcqStats/frameDuration", &number) && number > 0.0)
        info->duration_s = 1e-3 * number;
    info->has_tof = true;
    info->num_tof_bins = BINS;
    info->tof_edges_mm = lr_alloc(BINS + 1, sizeof(*info->tof_edges_mm), "bins of time of flight", source->log);
    if (info->tof_edges_mm == NULL) return LR_FAILED;
    for (int k = 0; k <= BINS; k++) info->tof_edges_mm[k] = (float)((k - 0.5 * BINS) * JOINED * step_mm);

    if (reader->stream->sink == NULL) return LR_OK;
    reader->numbers = lr_alloc(COLUMNS * ROWS_PER_READ, sizeof(*reader->numbers), "events", source->log);
    if (reader->numbers == NULL) return LR_FAILED;
    char first_unknown[96] = "";
    const int64_t num_events = shape[0];
    for (int64_t begin = 0; begin < num_events; begin += ROWS_PER_READ) {
        const int64_t left = num_events - begin;
        const int64_t range[2] = {begin, left < ROWS_PER_READ ? left : ROWS_PER_READ};
        LR_TRY(lr_event_stream_report(reader->stream, (double)begin, (double)num_events));
        LR_TRY(lr_hdf5_get_part(in, EVENTS, LR_HDF5_INT32, range, COLUMNS, reader->numbers));
        for (int64_t k = 0; k < range[1]; k++) {
            const int32_t *row = reader->numbers + COLUMNS * k;
            const lr_event event = {
                .crystals = {crystal_at(&reader->crystals, row[0], row[1]),
                             crystal_at(&reader->crystals, row[2], row[3])},
                .tof_mm = (float)(-row[4] * step_mm),
                .weight = 1,
            };
            if (row[4] % JOINED != 0 || abs(row[4]) > JOINED * (BINS / 2)) {
                return lr_error(source->log, LR_BAD_INPUT,
                                "%s: event %lld has the time of flight %d, and not one of the %d multiples of %d "
                                "around 0 that such lists have: it is damaged, or of another scanner",
                                source->path, (long long)(begin + k), (int)row[4], BINS, JOINED);
            }
            reader->counts.prompts++;
            if (event.crystals[0] >= 0 && event.crystals[1] >= 0) {
                LR_TRY(lr_event_stream_add(reader->stream, &event));
            } else if (reader->counts.unknown_crystals++ == 0) {
                snprintf(first_unknown, sizeof(first_unknown), "rings %d and %d, places %d and %d", (int)row[0],
                         (int)row[2], (int)row[1], (int)row[3]);
            }
        }
    }
    LR_TRY(lr_event_stream_flush(reader->stream));
    return lr_events_judge_unknown(source, &reader->counts, first_unknown);
}

static bool recognises(const struct lr_file_head *head)
{
    static const char group[] = "MiceList";
    return lr_head_is_hdf5(head) && lr_head_holds(head, group, sizeof(group) - 1);
}

static lr_status read_events(const lr_events_source *source, struct lr_event_stream *stream)
{
    struct reader reader = {.source = source, .stream = stream};
    LR_TRY(lr_events_need_scanner(source, &lr_ge_format));
    LR_TRY(lr_hdf5_input_open(&reader.in, source->path, source->log));
    const lr_status status = read_list(&reader);
    stream->info->counts = reader.counts;
    free(reader.numbers);
    lr_sinogram_rings_finish(&reader.crystals.rings);
    lr_hdf5_input_close(&reader.in);
    return status;
}

const struct lr_event_format lr_ge_format = {"GE", ".BLF", recognises, read_events, NULL};

/* The correction terms that belong to GE's public list mode (corrections.h5; Zenodo 8404015). Each event has
 * correction_lists/sens, atten and contam, in the order of the list. Each pair of crystals has all_xtals/xtal_ids
 * (place and ring of both), all_xtals/sens and atten. The meaning of the numbers is known from public readers of this
 * file, mainly parallelproj (docs/formats/events.md). */

enum { IDS = 4 };

struct terms_reader {
    struct lr_hdf5_input in;
    const lr_lors *lors;
    struct ge_crystals crystals;
    lr_event_corrections *found;
    int32_t *ids;        /* [ROWS_PER_READ][IDS] */
    float *sens, *atten; /* [ROWS_PER_READ] */
};

/* Reads and checks range[1] entries, beginning with entry range[0]. */
static lr_status get_numbers(const struct terms_reader *reader, const char *name, const int64_t range[2],
                             float *numbers)
{
    LR_TRY(lr_hdf5_get_part(&reader->in, name, LR_HDF5_FLOAT, range, 1, numbers));
    for (int64_t k = 0; k < range[1]; k++) {
        const int64_t entry = range[0] + k;
        const float number = numbers[k];
        LR_TRY(number >= 0.0f && number <= FLT_MAX
                   ? LR_OK
                   : lr_error(reader->in.log, LR_BAD_INPUT,
                              "%s: entry %lld of %s is %g: it must be finite and not negative", reader->in.path,
                              (long long)entry, name, (double)number));
    }

    return LR_OK;
}

/* Gives the common length of the datasets. errors: LR_BAD_INPUT if their lengths differ. */
static lr_status check_lengths(const struct terms_reader *reader, const char *const *names, int64_t *length)
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

/* Reads the terms of an open file. A file without `correction_lists` is refused. */
static lr_status read_terms(struct terms_reader *reader, const lr_log *log)
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
    LR_TRY(number_crystals(&reader->crystals, reader->lors->scanner, reader->in.path, log));

    /* Each pair of crystals has one row of ids and one entry in each term. */
    static const char *const pair_terms[] = {"all_xtals/sens", "all_xtals/atten", NULL};
    int64_t shape[2];
    int64_t num_pairs = 0, no_lor = 0; /* num_pairs: all pairs; no_lor: pairs without a LOR in coincidence */
    LR_TRY(check_lengths(reader, pair_terms, &num_pairs));
    LR_TRY(lr_hdf5_shape(&reader->in, "all_xtals/xtal_ids", true, shape, 2));
    if (shape[0] != num_pairs || shape[1] != IDS) {
        return lr_error(reader->in.log, LR_BAD_INPUT,
                        "%s: all_xtals/xtal_ids is %lld x %lld, and not %lld x %d: places and rings "
                        "of two crystals for each entry of all_xtals/sens",
                        reader->in.path, (long long)shape[0], (long long)shape[1], (long long)num_pairs, IDS);
    }

    static const char *const lists[] = {"correction_lists/sens", "correction_lists/atten", "correction_lists/contam",
                                        NULL};
    lr_event_corrections *found = reader->found;
    LR_TRY(check_lengths(reader, lists, &found->count));
    found->factors = lr_alloc(found->count, sizeof(float), "factors of events", log);
    found->additive = lr_alloc(found->count, sizeof(float), "additive terms of events", log);
    if (found->factors == NULL || found->additive == NULL) return LR_FAILED;
    for (int64_t begin = 0; begin < found->count; begin += ROWS_PER_READ) {
        const int64_t left = found->count - begin, range[2] = {begin, left < ROWS_PER_READ ? left : ROWS_PER_READ};
        LR_TRY(get_numbers(reader, lists[0], range, reader->sens));
        LR_TRY(get_numbers(reader, lists[1], range, reader->atten));
        LR_TRY(get_numbers(reader, lists[2], range, found->additive + begin));
        for (int64_t k = 0; k < range[1]; k++) {
            found->factors[begin + k] = reader->sens[k] * reader->atten[k];
            found->additive[begin + k] /= (float)(JOINED * step_mm);
        }
    }

    for (int64_t begin = 0; begin < num_pairs; begin += ROWS_PER_READ) {
        const int64_t left = num_pairs - begin, range[2] = {begin, left < ROWS_PER_READ ? left : ROWS_PER_READ};
        LR_TRY(lr_hdf5_get_part(&reader->in, "all_xtals/xtal_ids", LR_HDF5_INT32, range, IDS, reader->ids));
        LR_TRY(get_numbers(reader, "all_xtals/sens", range, reader->sens));
        LR_TRY(get_numbers(reader, "all_xtals/atten", range, reader->atten));
        for (int64_t k = 0; k < range[1]; k++) {
            const int32_t *ids = reader->ids + IDS * k;
            const int32_t a = crystal_at(&reader->crystals, ids[1], ids[0]);
            const int32_t b = crystal_at(&reader->crystals, ids[3], ids[2]);
            const int64_t lor = a >= 0 && b >= 0 ? lr_lors_number(reader->lors, a, b) : -1;
            if (lor < 0 || !lr_lors_in_coincidence(reader->lors, lor))
                no_lor++;
            else /* the entries of a LOR that is listed twice are summed */
                found->lors->values[lor] += reader->sens[k] * reader->atten[k];
        }
    }

    /* The sensitivity of a LOR that the file does not list is 0, so that the LOR counts as not measured. */
    const lr_scanner *scanner = reader->lors->scanner;
    if (no_lor == num_pairs) {
        return lr_error(reader->in.log, LR_BAD_INPUT,
                        "%s: none of the %lld pairs of crystals in all_xtals/xtal_ids is in "
                        "coincidence on %s: is it of another scanner?",
                        reader->in.path, (long long)num_pairs, scanner->name);
    }
    if (no_lor > 0) {
        lr_warn(reader->in.log,
                "%s: %lld of %lld pairs of crystals are not in coincidence on %s and are left out of the sensitivity",
                reader->in.path, (long long)no_lor, (long long)num_pairs, scanner->name);
    }
    return LR_OK;
}

lr_event_corrections *lr_event_corrections_read(const char *path, const lr_lors *lors, const lr_log *log)
{
    struct terms_reader reader = {.lors = lors};
    lr_event_corrections *found = lr_alloc(1, sizeof(*found), "correction terms", log);
    if (found == NULL || lr_hdf5_input_open(&reader.in, path, log) != LR_OK) {
        free(found);
        return NULL;
    }
    reader.found = found;
    const lr_status status = read_terms(&reader, log);
    lr_hdf5_input_close(&reader.in);
    lr_sinogram_rings_finish(&reader.crystals.rings);
    lr_free_all(reader.ids, reader.sens, reader.atten);
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
        lr_free_all(corrections->factors, corrections->additive, corrections);
    }
}
