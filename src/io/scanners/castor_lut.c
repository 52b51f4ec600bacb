/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * CASToR's look-up tables, and the search for the crystals of a table or a .geom in a scanner. A text header (.hscan,
 * or .ghscan if CASToR wrote it) has its table (.lut, .glut) in the same folder. The table has 6 float32 per crystal:
 * centre and orientation. CASToR needs the depth of crystals, but not their other sizes. The frame of the table is
 * left-handed, so x is reversed here. source: iScannerPET.cc of CASToR 3.1.1 */
#include "base/log.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/vec.h"
#include "io/files/keyed_text.h"
#include "io/files/number_type.h"
#include "io/files/output.h"
#include "io/scanners/castor_order.h"
#include "io/scanners/crystal_map.h"
#include "io/scanners/scanner_formats.h"
#include "model/scanner/scanner.h"

#include <lr/crystals.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUM_SAMPLES = 128 };

/* Possible meanings of an orientation in a table. */
enum reading { AS_WRITTEN, MIRRORED, ALONG, ALONG_MIRRORED, NUM_READINGS };

/* orient_crystals computes a mean cosine for each meaning. The mean cosine is 0 if all orientations fit the positions.
 * Another meaning replaces AS_WRITTEN if the mean cosine of AS_WRITTEN exceeds good_cosine, and is more than `better`
 * times the other mean cosine. */
static const double good_cosine = 0.02, better = 2;

static void read_as(enum reading reading, const double written[3], double axis[3])
{
    const double x = reading == MIRRORED || reading == ALONG_MIRRORED ? -written[0] : written[0];
    const bool turns = reading == ALONG || reading == ALONG_MIRRORED;
    axis[0] = turns ? -written[1] : x;
    axis[1] = turns ? x : written[1];
    axis[2] = written[2];
}

/* Sets the crystals' axes[2] from their orientations, by the meaning that best fits the positions of neighbours. A
 * crystal's `group` is its layer. Warns with `path` if that meaning is not AS_WRITTEN. Returns the mean cosine of the
 * angle between the axis and the direction to the nearest neighbour, over a sample of crystals; 0 = a perfect fit.
 * Linear time. */
static double orient_crystals(lr_crystal *crystals, int count, const char *path, const lr_log *log)
{
    static const char *const words[NUM_READINGS] = {"", "mirrored", "along the panels, not across them",
                                                    "along the panels, and mirrored"};
    const int samples = count < NUM_SAMPLES ? count : NUM_SAMPLES;
    double cosine[NUM_READINGS] = {0};
    int counted = 0;
    for (int k = 0; k < samples; k++) {
        /* Finds the nearest crystal of the same layer that is not displaced along the axis. */
        const lr_crystal *from = &crystals[(int64_t)k * count / samples];
        double least = INFINITY, nearest[3] = {0}, axis[3];
        for (int c = 0; c < count; c++) {
            double apart[3];
            vec_sub(crystals[c].centre_mm, from->centre_mm, apart);
            const double across2 = apart[0] * apart[0] + apart[1] * apart[1];
            if (&crystals[c] != from && crystals[c].group == from->group && across2 < least &&
                apart[2] * apart[2] < 0.25 * across2) {
                least = across2;
                memcpy(nearest, apart, sizeof(apart));
            }
        }
        if (!(isfinite(least) && least > 0)) continue;
        counted++;
        for (int r = 0; r < NUM_READINGS; r++) {
            read_as((enum reading)r, from->axes[2], axis);
            cosine[r] += fabs(vec_dot(axis, nearest)) / vec_length(nearest);
        }
    }
    for (int r = 0; r < NUM_READINGS && counted > 0; r++) cosine[r] /= counted;

    enum reading best = AS_WRITTEN;
    for (int r = 1; r < NUM_READINGS; r++) best = cosine[r] < cosine[best] ? (enum reading)r : best;
    if (!(cosine[AS_WRITTEN] > good_cosine && better * cosine[best] < cosine[AS_WRITTEN])) return cosine[AS_WRITTEN];
    lr_warn(log,
            "%s: the orientations contradict the positions: they are %s (seen from the crystals' "
            "neighbours); they are read as such, and the positions taken as they stand",
            path, words[best]);
    for (int c = 0; c < count; c++) {
        double axis[3];
        read_as(best, crystals[c].axes[2], axis);
        memcpy(crystals[c].axes[2], axis, sizeof(axis));
    }
    return cosine[best];
}

/* Keys from the sources that castor_geom.c names. The table gives positions and radii. */
static const struct lr_known_key known_keys[] = {
    {LR_KEY_REFUSED, "modality", "PET", "only scanners for PET can be read"},
    {LR_KEY_READ,
     "scanner name|number of elements|number of layers|number of crystals in layer|crystals size trans|"
     "crystals size axial|crystals size depth|mean depth of interaction|min angle difference",
     NULL, NULL},
    {LR_KEY_IDLE, "scanner radius", NULL, NULL},
    {LR_KEY_IDLE, LR_CASTOR_IDLE_KEYS, NULL, NULL},
};
const struct lr_known_keys lr_hscan_keys = {
    .format = "CASToR's .hscan files", LR_KNOWN_ROWS(known_keys), .finds_parts = true};

enum { MAX_LAYERS = LR_MAX_LAYERS, ROW_BYTES = 24 };

/* Largest mean cosine, between orientations and directions to neighbours, that counts as agreement. */
static const double agreement = 0.02;

/* A header and its table while they are read. */
struct draft {
    struct lr_keyed_text text;
    int layers;
    double count[MAX_LAYERS];
    double size_mm[MAX_LAYERS][3]; /* transaxial, axial, depth; 0 = not given */
    lr_crystal *crystals;
    int num_crystals;
    double off; /* deviation of the orientations from the panels; the result of orient_crystals */
};

bool lr_hscan_recognises(const struct lr_file_head *head)
{
    return lr_path_ends(head->path, "hscan") || lr_path_ends(head->path, "lut") ||
           (strstr(head->bytes, "scanner radius") != NULL &&
            strstr(head->bytes, "number of crystals in layer") != NULL);
}

/* --- the header --- */

static lr_status read_header(struct draft *draft)
{
    double elements = 0, layers = 1, sum = 0;
    const struct lr_keyed_number all = {"number of elements", 2, 1e9, true, true};
    const struct lr_keyed_number number = {"number of layers", 1, MAX_LAYERS, false, true};
    LR_TRY(lr_keyed_text_number(&draft->text, &all, 0, &elements));
    LR_TRY(lr_keyed_text_number(&draft->text, &number, 0, &layers));
    LR_TRY(lr_listed_crystals_check(elements, draft->text.path, draft->text.log));
    draft->layers = (int)layers;
    draft->num_crystals = (int)elements;
    draft->count[0] = elements;
    for (int k = 0; k < draft->layers; k++) {
        const struct {
            struct lr_keyed_number number;
            double *value;
        } keys[] = {
            {{"crystals size trans", 0, 1e4, false, false}, &draft->size_mm[k][0]},
            {{"crystals size axial", 0, 1e4, false, false}, &draft->size_mm[k][1]},
            {{"crystals size depth", 1e-3, 1e4, true, false}, &draft->size_mm[k][2]},
            {{"number of crystals in layer", 1, 1e9, draft->layers > 1, true}, &draft->count[k]},
        };
        for (size_t n = 0; n < sizeof(keys) / sizeof(keys[0]); n++)
            LR_TRY(lr_keyed_text_number(&draft->text, &keys[n].number, k, keys[n].value));
        sum += draft->count[k];
    }
    if (sum != elements) {
        return lr_keyed_text_error(&draft->text, lr_keyed_text_find(&draft->text, "number of elements"),
                                   "'number of elements' is %.10g, but the layers have %.10g "
                                   "crystals: correct one of them",
                                   elements, sum);
    }
    return LR_OK;
}

/* --- the table --- */

static lr_status read_table(struct draft *draft)
{
    const lr_log *log = draft->text.log;
    const bool generated = lr_path_ends(draft->text.path, ".ghscan");
    char *path = lr_path_with_ending(draft->text.path, generated ? ".glut" : ".lut", log);
    if (path == NULL) return LR_FAILED;
    const int64_t most = (int64_t)LR_MAX_LISTED_CRYSTALS * ROW_BYTES, wanted = (int64_t)draft->num_crystals * ROW_BYTES;
    int64_t count = 0;
    char *bytes;
    lr_status status = lr_file_bytes("", path, most, &count, &bytes, log);
    if (status == LR_OK && count != wanted) {
        status = lr_error(log, LR_BAD_INPUT,
                          "%s: has %lld bytes, and %d crystals take %lld: the table is %s, or "
                          "belongs to another header",
                          path, (long long)count, draft->num_crystals, (long long)wanted,
                          count < wanted ? "truncated" : "too long");
    }
    if (status == LR_OK) {
        draft->crystals = lr_alloc(draft->num_crystals, sizeof(*draft->crystals), "crystals", log);
        status = draft->crystals != NULL ? LR_OK : LR_FAILED;
    }

    int layer = 0;
    double end = draft->count[0];
    for (int c = 0; c < draft->num_crystals && status == LR_OK; c++) {
        if (c >= end && layer + 1 < draft->layers) end += draft->count[++layer];
        double numbers[6];
        for (int k = 0; k < 6; k++)
            numbers[k] = (double)lr_float_at((const unsigned char *)bytes + (int64_t)c * ROW_BYTES + 4 * k);

        lr_crystal *crystal = &draft->crystals[c];
        double *axis = crystal->axes[2];
        memcpy(crystal->centre_mm, numbers, sizeof(crystal->centre_mm));
        memcpy(axis, numbers + 3, sizeof(crystal->axes[2]));
        crystal->centre_mm[0] = -crystal->centre_mm[0];
        axis[0] = -axis[0];
        const double length = vec_length(axis);
        if (!(length > 0.5 && length < 2)) {
            status = lr_error(log, LR_BAD_INPUT,
                              "%s: the orientation of crystal %d, (%g, %g, %g), is no unit vector: the "
                              "table is damaged, or it is not of 6 float32 a crystal",
                              path, c, numbers[3], numbers[4], numbers[5]);
        }
        for (int k = 0; k < 3; k++) {
            axis[k] /= length;
            crystal->size_mm[k] = draft->size_mm[layer][k];
        }
        crystal->group = layer;
        crystal->layer = layer;
    }
    if (status == LR_OK) draft->off = orient_crystals(draft->crystals, draft->num_crystals, path, log);
    lr_free_all(bytes, path);
    return status;
}

/* --- the scanner --- */

/* If orientations agree with the positions to within about a degree, the orientations determine which crystals belong
 * together. Otherwise the scanner is built from the positions alone. If that fails, it is built from the
 * orientations. */
static lr_scanner *create(struct draft *draft, const lr_crystal_list *list, int *crystal_of)
{
    lr_scanner *scanner = draft->off <= agreement ? lr_listed_crystals_try(list, crystal_of) : NULL;
    if (scanner != NULL) return scanner;
    lr_crystal *kept = lr_alloc(draft->num_crystals, sizeof(*kept), "crystals", list->log);
    if (kept != NULL) {
        const size_t bytes = (size_t)draft->num_crystals * sizeof(*kept);
        memcpy(kept, draft->crystals, bytes);
        for (int c = 0; c < draft->num_crystals; c++)
            memset(draft->crystals[c].axes, 0, sizeof(draft->crystals[c].axes));
        scanner = lr_listed_crystals_try(list, crystal_of);
        memcpy(draft->crystals, kept, bytes);
        free(kept);
    }
    if (scanner == NULL) return lr_scanner_from_crystals(list, crystal_of, NULL);
    lr_warn(list->log,
            "%s: the orientations and the positions make no panels together (the orientations are %.3g degrees off "
            "the way to the neighbours on average): the panels look as the positions say",
            draft->text.path, asin(fmin(draft->off, 1)) * 57.29577951308232);
    return scanner;
}

lr_scanner *lr_hscan_read(const char *path, const lr_log *log)
{
    const bool is_table = lr_path_ends(path, "lut");
    char *header = is_table ? lr_path_with_ending(path, lr_path_ends(path, ".glut") ? ".ghscan" : ".hscan", log)
                            : lr_copy_string(path, log);
    struct draft draft = {0};
    const struct lr_keyed_text *text = &draft.text;
    lr_scanner *scanner = NULL;
    int *crystal_of = NULL;
    if (header == NULL ||
        lr_castor_text_read(&draft.text, header, "a CASToR look-up table's header", &lr_hscan_keys, log) != LR_OK)
        goto done;
    const struct lr_keyed_line *name = lr_keyed_text_find(text, "scanner name");
    if (read_header(&draft) != LR_OK || read_table(&draft) != LR_OK) goto done;
    double detection_depth_mm = 0, depths_mm[MAX_LAYERS];
    for (int k = 0; k < draft.layers; k++) depths_mm[k] = draft.size_mm[k][2];
    if (lr_castor_detection_depth(text, depths_mm, draft.layers, &detection_depth_mm) != LR_OK) goto done;

    char stem[128];
    const lr_crystal_list list = {.crystals = draft.crystals,
                                  .num_crystals = draft.num_crystals,
                                  .name = name != NULL && name->value[0] != '\0' ? name->value
                                                                                 : lr_path_stem(text->path, stem),
                                  .detection_depth_mm = detection_depth_mm,
                                  .source = "a CASToR look-up table",
                                  .infers_sizes = true,
                                  .log = log};
    crystal_of = lr_alloc(draft.num_crystals, sizeof(*crystal_of), "crystal numbers", log);
    scanner = crystal_of != NULL ? create(&draft, &list, crystal_of) : NULL;
    if (scanner == NULL) goto done;
    lr_status status = lr_castor_order_keep(scanner, crystal_of, log);
    crystal_of = NULL;

    /* The number of places around the ring follows from the smallest angle between orientations. */
    double least_deg = 0;
    const struct lr_keyed_number angle = {"min angle difference", 0, 180, false, false};
    if (status == LR_OK) status = lr_keyed_text_number(text, &angle, 0, &least_deg);
    if (status != LR_OK) {
        lr_scanner_destroy(scanner);
        scanner = NULL;
        goto done;
    }
    const int places = scanner->num_positions, difference = (int)ceil(least_deg * places / 360 - 1e-9);
    scanner->coincidence.min_module_difference = difference > places / 2 ? places / 2 : difference;
    if (least_deg > 0 && places == 0) {
        lr_warn(log,
                "%s: 'min angle difference' is left out: modules of this scanner have no places around a full ring",
                text->path);
    }
    for (int k = 0; k < 2; k++) {
        if (!(draft.size_mm[0][k] > 0)) {
            lr_warn(log,
                    "%s: has no 'crystals size %s': %.6g mm are taken, the room that the crystals "
                    "leave each other; give the size where they are smaller",
                    text->path, k == 0 ? "transaxial" : "axial", scanner->modules[0].face_mm[k]);
        }
    }

done:
    free(crystal_of);
    lr_keyed_text_finish(&draft.text);
    lr_free_all(draft.crystals, header);
    return scanner;
}

/* --- writing --- */

static void put_header(struct lr_output *output, const lr_scanner *scanner)
{
    const struct lr_castor_header header = {output, 30};
    /* Counts and sizes of crystals, layer by layer. */
    const int layers = lr_scanner_num_layers(scanner);
    double counts[MAX_LAYERS] = {0}, sizes[3][MAX_LAYERS] = {{0}}, depths[MAX_LAYERS];
    double radius = INFINITY, low = INFINITY, high = -INFINITY;
    for (int m = 0; m < scanner->num_modules; m++) {
        const lr_module *module = &scanner->modules[m];
        counts[module->layer] += scanner->first_crystal[m + 1] - scanner->first_crystal[m];
        sizes[0][module->layer] = module->face_mm[0];
        sizes[1][module->layer] = module->face_mm[1];
        sizes[2][module->layer] = module->depth_mm;
        radius = fmin(radius, fabs(vec_dot(module->normal, module->centre_mm)));
        const double half = 0.5 * module->crystals[1] * module->pitch_mm[1];
        low = fmin(low, module->centre_mm[2] - half);
        high = fmax(high, module->centre_mm[2] + half);
    }
    for (int k = 0; k < layers; k++) depths[k] = scanner->detection_depth_mm;

    char text[512];
    const int length = snprintf(text, sizeof(text),
                                "# Written by LORaster %s; CASToR's left-handed frame, mm.\n"
                                "modality                      : PET\n"
                                "scanner name                  : %.200s\n",
                                lr_version(), scanner->name);
    lr_output_write(output, text, (size_t)length);
    lr_castor_put_number(&header, "number of elements", scanner->num_crystals);
    lr_castor_put_number(&header, "number of layers", layers);
    lr_castor_put(&header, "number of crystals in layer(s)", counts, layers);
    lr_castor_put(&header, "crystals size depth", sizes[2], layers);
    lr_castor_put(&header, "crystals size transaxial", sizes[0], layers);
    lr_castor_put(&header, "crystals size axial", sizes[1], layers);
    lr_castor_put_number(&header, "scanner radius", radius);
    lr_castor_put(&header, "mean depth of interaction", depths, layers);
    const lr_coincidence *rules = &scanner->coincidence;
    const double field = rules->field_of_view_mm > 0 ? rules->field_of_view_mm : 1.4 * radius;
    const double *pitch_mm = scanner->modules[0].pitch_mm;
    lr_castor_put_number(&header, "min angle difference",
                         rules->min_module_difference > 0 && scanner->num_positions > 0
                             ? (rules->min_module_difference - 0.5) * 360 / scanner->num_positions
                             : 0);
    lr_castor_put_number(&header, "voxels number transaxial", 2 * ceil(field / pitch_mm[0]));
    lr_castor_put_number(&header, "voxels number axial", 2 * ceil((high - low) / pitch_mm[1]));
    lr_castor_put_number(&header, "field of view transaxial", field);
    lr_castor_put_number(&header, "field of view axial", high - low);
}

lr_status lr_hscan_write(const char *path, const lr_scanner *scanner, const lr_log *log)
{
    /* All crystals of a layer must be equal, and every layer must have crystals. */
    int first_of[MAX_LAYERS];
    memset(first_of, -1, sizeof(first_of));
    for (int m = 0; m < scanner->num_modules; m++) {
        const lr_module *module = &scanner->modules[m];
        int *first_module = &first_of[module->layer];
        *first_module = *first_module < 0 ? m : *first_module;
        const lr_module *first = &scanner->modules[*first_module];
        if (fabs(module->depth_mm - first->depth_mm) > 1e-6 || fabs(module->face_mm[0] - first->face_mm[0]) > 1e-6 ||
            fabs(module->face_mm[1] - first->face_mm[1]) > 1e-6) {
            return lr_error(log, LR_BAD_INPUT,
                            "%s: crystals of modules %d and %d differ in size, and CASToR's table "
                            "has one size for all of a layer: write YAML instead",
                            path, *first_module, m);
        }
    }
    for (int k = 0; k < lr_scanner_num_layers(scanner); k++) {
        if (first_of[k] < 0) {
            return lr_error(log, LR_BAD_INPUT,
                            "%s: no module is of layer %d, and CASToR's table numbers layers "
                            "without gaps: write YAML instead",
                            path, k);
        }
    }

    /* Both files are replaced, or neither. */
    struct lr_output header, table;
    char *table_path = lr_path_with_ending(path, ".lut", log);
    LR_TRY(table_path != NULL ? LR_OK : LR_FAILED);
    lr_status status = lr_output_open(&table, table_path, log);
    free(table_path);
    LR_TRY(status);
    if (lr_output_open(&header, path, log) != LR_OK) {
        lr_output_abandon(&table);
        return LR_FAILED;
    }
    int *order = lr_alloc(scanner->num_crystals, sizeof(*order), "a look-up table", log);
    status = order != NULL ? lr_castor_order(scanner, order, log) : LR_FAILED;
    for (int c = 0; c < scanner->num_crystals && status == LR_OK; c++) {
        /* Writes the six numbers of a crystal in CASToR's frame. The orientation points outwards. */
        const lr_module *module = &scanner->modules[lr_scanner_module_of(scanner, order[c])];
        unsigned char bytes[ROW_BYTES];
        double centre[3];
        lr_scanner_crystal_centre(scanner, order[c], centre);
        for (int k = 0; k < 6; k++) {
            const double number = k < 3 ? centre[k] : -module->normal[k - 3];
            (void)lr_put_float(bytes + 4 * k, (float)(k % 3 == 0 ? -number : number));
        }
        lr_output_write(&table, bytes, sizeof(bytes));
    }
    free(order);
    if (status != LR_OK) {
        lr_output_abandon(&table);
        lr_output_abandon(&header);
        return status;
    }
    put_header(&header, scanner);
    LR_TRY(lr_output_finish_all((struct lr_output *[]){&table, &header}, 2));
    lr_castor_tell_lost(path, scanner, scanner->num_positions > 0, log);
    return LR_OK;
}

/* --- finding the crystals of a file in a scanner, by their positions --- */

/* Largest distance between a crystal of a list and the same crystal in the modules made from the list. */
static const double reach_mm = 0.1;

enum { MAX_CRYSTALS = 10000000 };

lr_status lr_castor_file_match(const char *path, const lr_scanner *scanner, int **order, int *count, const lr_log *log)
{
    const bool is_geometry = lr_path_ends(path, ".geom");
    lr_scanner *listed = is_geometry ? lr_geom_read(path, log) : NULL;
    double(*places_mm)[3] = NULL; /* centres of crystals, by CASToR's numbers, in LORaster's frame */
    int *order_of_listed = NULL;
    int64_t num_bytes = 0;
    char *bytes = NULL;
    lr_status status = listed != NULL ? LR_OK : LR_BAD_INPUT;
    *order = NULL;
    *count = 0;
    if (!is_geometry) status = lr_file_bytes("", path, (int64_t)MAX_CRYSTALS * ROW_BYTES, &num_bytes, &bytes, log);
    if (status == LR_OK && !is_geometry && (num_bytes == 0 || num_bytes % ROW_BYTES != 0)) {
        status = lr_error(log, LR_BAD_INPUT,
                          "%s: has %lld bytes, and a crystal of a CASToR look-up table %d: it is "
                          "truncated, or no such table",
                          path, (long long)num_bytes, ROW_BYTES);
    }
    if (status != LR_OK) goto done;
    *count = is_geometry ? listed->num_crystals : (int)(num_bytes / ROW_BYTES);
    places_mm = lr_alloc(*count, sizeof(*places_mm), "crystal places", log);
    order_of_listed = is_geometry ? lr_alloc(*count, sizeof(int), "crystal numbers", log) : NULL;
    *order = lr_alloc(*count, sizeof(int), "crystal numbers", log);
    status = places_mm != NULL && (order_of_listed != NULL || !is_geometry) && *order != NULL ? LR_OK : LR_FAILED;
    if (status == LR_OK && is_geometry) status = lr_castor_order(listed, order_of_listed, log);
    for (int c = 0; status == LR_OK && c < *count; c++) {
        for (int k = 0; k < 3 && !is_geometry; k++) {
            const float value = lr_float_at((const unsigned char *)bytes + (int64_t)c * ROW_BYTES + 4 * k);
            places_mm[c][k] = k == 0 ? -(double)value : (double)value;
        }
        if (is_geometry) lr_scanner_crystal_centre(listed, order_of_listed[c], places_mm[c]);
    }

    struct lr_centre_index index = {0};
    if (status == LR_OK) status = lr_centre_index_init(&index, scanner, log);
    if (status != LR_OK) goto done;
    int lost = 0, first = -1;
    for (int k = 0; k < *count; k++) {
        const double *place_mm = places_mm[k];
        const bool finite = vec_is_finite(place_mm);
        (*order)[k] = finite ? lr_centre_index_find(&index, place_mm, reach_mm) : -1;
        first = (*order)[k] < 0 && lost == 0 ? k : first;
        lost += (*order)[k] < 0;
    }
    if (lost > 0) {
        const double *place_mm = places_mm[first];
        const bool all = lost == *count;
        status = all ? LR_BAD_INPUT : LR_OK;
        lr_log_write(log, all ? LR_LOG_ERROR : LR_LOG_WARNING, status,
                     "%s: %d of its %d crystals are none of %s's, first the one at (%g, %g, %g) mm in "
                     "our frame, from which the nearest is %.4g mm away: %s",
                     path, lost, *count, scanner->name, place_mm[0], place_mm[1], place_mm[2],
                     lr_centre_index_distance(&index, place_mm),
                     all ? "it is another scanner's" : "their events are left out");
    }
    lr_centre_index_finish(&index);

done:
    if (status != LR_OK) {
        free(*order);
        *order = NULL;
    }
    lr_free_all(places_mm, order_of_listed, bytes);
    lr_scanner_destroy(listed);
    return status;
}
