/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The header of a PETSIRD file. Names are as in model/ScannerInformation.yml, GeometryInformation.yml and
 * DetectorInformation.yml of ETSInitiative/PETSIRD. Fields are looked up by name, so that versions that add or move
 * fields can be read. */
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "io/events/event_stream.h"
#include "io/events/petsird.h"
#include "io/files/number_type.h"
#include "io/scanners/scanner_formats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- lists of floats --- */

/* A list of floats of any length. */
struct floats {
    struct lr_petsird *petsird;
    float **values; /* owned by the caller; freed and allocated again */
    int64_t count;
};

static lr_status read_floats(struct lr_yardl_input *input, const struct lr_yardl_type *item, int64_t count,
                             float *values)
{
    for (int64_t k = 0; k < count; k++) {
        double value;
        LR_TRY(lr_yardl_number(input, item, &value));
        if (!isfinite(value))
            return lr_yardl_error(input, "a place, edge or efficiency is not finite: the file is damaged");
        values[k] = (float)value;
    }
    return LR_OK;
}

static lr_status take_floats(void *user, struct lr_yardl_input *input, const struct lr_yardl_type *type)
{
    struct floats *floats = user;
    struct lr_yardl_list list;
    LR_TRY(lr_yardl_list(input, type, &list));
    if (list.count > 0 && list.item->least_bytes < 4)
        return lr_yardl_error(input, "the schema has no numbers where they are needed");
    free(*floats->values);
    *floats->values = lr_alloc(list.count, sizeof(**floats->values), "edges", floats->petsird->log);
    if (*floats->values == NULL) return LR_FAILED;
    floats->count = list.count;
    return read_floats(input, list.item, list.count, *floats->values);
}

/* --- tables over types of modules and pairs of them ---
 *
 * A table whose number of entries differs from the number of types is refused, since the types of its entries could
 * only be guessed. */

static lr_status need_types(struct lr_petsird *petsird, const char *name)
{
    return petsird->types != NULL ? LR_OK
                                  : lr_yardl_error(petsird->input,
                                                   "'%s' stands before the scanner's geometry: this version of the "
                                                   "format is not understood",
                                                   name);
}

static const struct lr_yardl_field edge_fields[] = {{"edges", true, take_floats, NULL}, {0}};

static lr_status check_ascending(struct lr_petsird *petsird, const float *edges, int64_t count)
{
    for (int64_t k = 1; k < count; k++) {
        if (!(edges[k] > edges[k - 1])) {
            return lr_yardl_error(petsird->input,
                                  "edge %lld of some bins is %g and the one before %g: they must ascend", (long long)k,
                                  edges[k], edges[k - 1]);
        }
    }
    return LR_OK;
}

/* Reads a mask of module pairs: an array [rows][columns], or a list of rows of different lengths. */
static lr_status take_mask(struct lr_petsird *petsird, struct lr_petsird_pair *pair, const struct lr_yardl_type *type)
{
    struct lr_yardl_list list;
    const int64_t number = pair - petsird->pairs;
    const int64_t most_rows = petsird->types[number / petsird->num_types].num_modules;
    const int64_t most_columns = petsird->types[number % petsird->num_types].num_modules;
    LR_TRY(lr_yardl_list(petsird->input, type, &list));
    if (list.count == 0) return LR_OK;
    pair->rows = list.dims[0];
    pair->columns = list.rank == 2 ? list.dims[1] : most_columns;
    if (list.rank > 2 || pair->rows > most_rows || pair->columns > most_columns) {
        return lr_yardl_error(
            petsird->input, "the table of module pairs has %lld x %lld of them, and there are %lld x %lld",
            (long long)pair->rows, (long long)pair->columns, (long long)most_rows, (long long)most_columns);
    }
    if (pair->columns > 0 && pair->rows > LR_PETSIRD_MAX_MASK / pair->columns)
        return lr_yardl_error(petsird->input, "more than %d pairs of modules: they are not read", LR_PETSIRD_MAX_MASK);
    free(pair->excluded);
    pair->excluded = lr_alloc(pair->rows * pair->columns, 1, "pairs of modules", petsird->log);
    if (pair->excluded == NULL) return LR_FAILED;

    struct lr_yardl_list row = {.item = list.item, .count = pair->columns};
    for (int64_t i = 0; i < pair->rows; i++) {
        if (list.rank == 1) LR_TRY(lr_yardl_list(petsird->input, list.item, &row));
        for (int64_t j = 0; j < row.count; j++) {
            int64_t group;
            LR_TRY(lr_yardl_integer(petsird->input, row.item, &group));
            if (j < pair->columns) pair->excluded[i * pair->columns + j] = group < 0 ? 1 : 2;
        }
    }
    return LR_OK;
}

/* Reads nested lists of bins, resolutions or masks over module types: all entries [type1][type2], or only those with
   type1 >= type2. */
static lr_status take_pairs(void *user, struct lr_yardl_input *input, const struct lr_yardl_type *type)
{
    struct lr_petsird *petsird = user;
    const char *name = input->field;
    const int n = petsird->num_types;
    const bool are_edges = strcmp(name, "tofBinEdges") == 0;
    const bool are_resolutions = strcmp(name, "tofResolution") == 0;
    struct lr_yardl_list rows, columns;
    LR_TRY(need_types(petsird, name));
    LR_TRY(lr_yardl_list(input, type, &rows));
    for (int64_t i = 0; i < rows.count; i++) {
        LR_TRY(lr_yardl_list(input, rows.item, &columns));
        for (int64_t j = 0; j < columns.count; j++) {
            const bool known = i < n && j < n;
            struct lr_petsird_pair *pair = known ? &petsird->pairs[i * n + j] : NULL;
            if (!known && are_resolutions) {
                petsird->odd_resolutions = true;
                LR_TRY(lr_yardl_skip(input, columns.item));
            } else if (!known) {
                return lr_yardl_error(input,
                                      "'%s' has an entry for module types %lld and %lld, and there are %d "
                                      "types: which entry is whose is not known",
                                      name, (long long)i, (long long)j, n);
            } else if (are_edges) {
                struct floats edges = {petsird, &pair->edges_mm, 0};
                LR_TRY(lr_yardl_record(input, columns.item, edge_fields, &edges));
                if (edges.count == 1 || edges.count > INT32_MAX)
                    return lr_yardl_error(input, "%lld edges of time-of-flight bins", (long long)edges.count);
                pair->num_edges = (int)edges.count;
                LR_TRY(check_ascending(petsird, pair->edges_mm, edges.count));
                if (edges.count == 0) continue;
                free(pair->middles_mm);
                pair->middles_mm = lr_alloc(edges.count - 1, sizeof(*pair->middles_mm), "bins", petsird->log);
                if (pair->middles_mm == NULL) return LR_FAILED;
                for (int e = 0; e < pair->num_edges - 1; e++)
                    pair->middles_mm[e] = (float)(0.5 * ((double)pair->edges_mm[e] + pair->edges_mm[e + 1]));
            } else if (are_resolutions) {
                LR_TRY(lr_yardl_number(input, columns.item, &pair->resolution_mm));
                if (!(pair->resolution_mm > 0) || !isfinite(pair->resolution_mm)) pair->resolution_mm = 0;
            } else {
                LR_TRY(take_mask(petsird, pair, columns.item));
            }
        }
    }
    for (int k = 0; petsird->odd_resolutions && k < n * n; k++) petsird->pairs[k].resolution_mm = 0;
    return LR_OK;
}

static lr_status take_energies(void *user, struct lr_yardl_input *input, const struct lr_yardl_type *type)
{
    struct lr_petsird *petsird = user;
    struct lr_yardl_list list;
    LR_TRY(need_types(petsird, "eventEnergyBinEdges"));
    LR_TRY(lr_yardl_list(input, type, &list));
    if (list.count != 0 && list.count != petsird->num_types) {
        return lr_yardl_error(input,
                              "energy bins of %lld module types, and there are %d: which bins are whose is not known",
                              (long long)list.count, petsird->num_types);
    }
    for (int64_t k = 0; k < list.count; k++) {
        struct lr_petsird_type *of = &petsird->types[k];
        float *values = NULL;
        struct floats edges = {petsird, &values, 0};
        lr_status status = lr_yardl_record(petsird->input, list.item, edge_fields, &edges);
        status = status == LR_OK ? check_ascending(petsird, values, edges.count) : status;
        if (status == LR_OK && edges.count == 1)
            status = lr_yardl_error(petsird->input, "one edge of energy bins: they need two");
        if (status == LR_OK && edges.count > 1) {
            of->num_energies = edges.count - 1;
            of->per_energy = 1.0 / (double)of->num_energies;
            of->energy_kev[0] = values[0];
            of->energy_kev[1] = values[edges.count - 1];
        }
        free(values);
        LR_TRY(status);
    }

    return LR_OK;
}

/* --- efficiencies of crystal pairs --- */

static void include(struct lr_petsird_range *range, double value)
{
    range->low = range->count == 0 || value < range->low ? value : range->low;
    range->high = range->count == 0 || value > range->high ? value : range->high;
    range->count++;
}

/* Finds the range of all efficiencies of crystal pairs. The efficiencies are all floats within a value, at any depth of
 * nesting. */
static lr_status survey(void *user, struct lr_yardl_input *input, const struct lr_yardl_type *type)
{
    struct lr_petsird_range *range = &((struct lr_petsird *)user)->pair_efficiencies;
    struct lr_yardl_list list;
    struct lr_yardl_part part;
    double value;
    switch (type->kind) {
    case LR_YARDL_FLOAT32:
    case LR_YARDL_FLOAT64:
        LR_TRY(lr_yardl_number(input, type, &value));
        include(range, value);
        return LR_OK;
    case LR_YARDL_LIST:
        LR_TRY(lr_yardl_list(input, type, &list));
        for (int64_t left = list.count; left > 0; left--) {
            /* A buffer of floats is skipped as a whole, because a header may have millions of floats. */
            int64_t buffered;
            const unsigned char *bytes = lr_yardl_buffered(input, &buffered);
            const int64_t whole = list.item->kind != LR_YARDL_FLOAT32 ? 0 : buffered / 4 < left ? buffered / 4 : left;
            for (int64_t k = 0; k < whole; k++) include(range, (double)lr_float_at(bytes + 4 * k));
            lr_yardl_move(input, 4 * whole);
            left -= whole;
            if (left == 0) break;
            LR_TRY(survey(user, input, list.item));
        }
        return LR_OK;
    case LR_YARDL_RECORD:
        for (int k = 0; k < type->num_parts; k++) LR_TRY(survey(user, input, type->parts[k].type));
        return LR_OK;
    case LR_YARDL_UNION:
        LR_TRY(lr_yardl_case(input, type, &part));
        return part.type != NULL ? survey(user, input, part.type) : LR_OK;
    default: return lr_yardl_skip(input, type);
    }
}

/* --- fields that the model lacks --- */

/* Fields of all versions up to v0.12.0, without the fields of volumes, materials and signals. */
static const struct lr_known_key known_keys[] = {
    {LR_KEY_READ,
     "scanner|exam|modelName|scannerGeometry|replicatedModules|detectingElements|object|transforms|matrix|shape|"
     "corners|c|tofBinEdges|edges|tofResolution|eventEnergyBinEdges|detectionEfficiencies|detectionBinEfficiencies|"
     "modulePairSGIDLUT|timeInterval|start|stop|promptEvents|delayedEvents|detectionBins|tofIdx|EventTimeBlock",
     NULL, NULL},
    {LR_KEY_WARNED, "modulePairEfficienciesVectors", "1", "it is passed over"},
    {LR_KEY_WARNED, "calibrationFactor", "1|0", "images are counts, and are not multiplied by it"},
    {LR_KEY_WARNED, "gantryAlignment", "none", "images are in the scanner's coordinates"},
    {LR_KEY_WARNED, "nonDetectingElements|nonDetectingVolumes", "none",
     "what photons meet beside crystals is not computed"},
    {LR_KEY_WARNED, "collimatorType", "none|0",
     "collimators are not computed: efficiencies have to hold what they stop"},
    {LR_KEY_WARNED, "BedMovementTimeBlock|GantryMovementTimeBlock", NULL, "events are taken where they were measured"},
    {LR_KEY_WARNED, "DeadTimeTimeBlock", NULL, "counts are not corrected for dead time"},
    {LR_KEY_IDLE,
     "bulkMaterials|energyResolutionAt511|singlesHistogramLevel|moduleSinglesUnitIdxLUTs|"
     "singlesHistogramEnergyBinEdges|singleEventPolicy|promptEventPolicy|delayedEventPolicy|tripleEventPolicy|"
     "quadrupleEventPolicy|singleEventsAreStored|promptEventsAreStored|delayedEventsAreStored|tripleEventsAreStored|"
     "quadrupleEventsAreStored|methodDescription|singleEvents|tripleEvents|quadrupleEvents|ExternalSignalTimeBlock|"
     "SinglesHistogramTimeBlock|subject|institution|protocol|modality|studyInstanceUID|seriesInstanceUID|"
     "sopInstanceUID|frameOfReferenceUID|startOfStudy|startOfAcquisition|patient|patientOrientation|"
     "radiopharmaceuticals|externalSignals",
     NULL, NULL},
};
const struct lr_known_keys lr_petsird_keys = {.format = "PETSIRD's schemas", LR_KNOWN_ROWS(known_keys)};

void lr_petsird_note(struct lr_petsird *petsird, const char *name, const char *value)
{
    for (int k = 0; k < petsird->num_notes; k++)
        if (strcmp(petsird->notes[k].key, name) == 0 && strcmp(petsird->noted[k], value) == 0) return;
    if (petsird->num_notes < LR_PETSIRD_MAX_NOTES) {
        const int n = petsird->num_notes++;
        snprintf(petsird->noted[n], sizeof(petsird->noted[n]), "%s", value);
        petsird->notes[n] = (struct lr_keyed_line){name, petsird->noted[n], 0, 0};
    }
}

lr_status lr_petsird_log_notes(struct lr_petsird *petsird)
{
    const struct lr_keyed_text text = {
        .path = petsird->path, .log = petsird->log, .lines = petsird->notes, .count = petsird->num_notes};
    petsird->num_notes = 0;
    return lr_keyed_text_judge(&text, &lr_petsird_keys);
}

static lr_status note_field(void *user, struct lr_yardl_input *input, const struct lr_yardl_type *type)
{
    const char *name = input->field;
    char value[16] = "given";
    struct lr_yardl_part part = {"", type};
    while (part.type != NULL && part.type->kind == LR_YARDL_UNION) LR_TRY(lr_yardl_case(input, part.type, &part));
    if (part.type == NULL) {
        strcpy(value, "none");
    } else if (part.type->kind <= LR_YARDL_FLOAT64) {
        double number;
        LR_TRY(lr_yardl_number(input, part.type, &number));
        snprintf(value, sizeof(value), "%.8g", number);
    } else if (part.type->kind == LR_YARDL_STRING) {
        LR_TRY(lr_yardl_text(input, part.type, value, sizeof(value)));
    } else if (part.type->kind == LR_YARDL_LIST && !part.type->is_stream) {
        struct lr_yardl_list list;
        LR_TRY(lr_yardl_list(input, part.type, &list));
        for (int64_t k = 0; k < list.count; k++) LR_TRY(lr_yardl_skip(input, list.item));
        strcpy(value, list.count > 0 ? "given" : "none");
    } else {
        LR_TRY(lr_yardl_skip(input, part.type));
    }
    lr_petsird_note(user, name, value);
    return LR_OK;
}

/* --- boxes and places of crystals --- */

/* Reads the numbers of a transformation, or the coordinates of a corner. */
static lr_status take_vector(void *user, struct lr_yardl_input *input, const struct lr_yardl_type *type)
{
    const bool is_matrix = strcmp(input->field, "matrix") == 0;
    struct lr_yardl_list list;
    LR_TRY(lr_yardl_list(input, type, &list));
    if (is_matrix && list.count != 12)
        return lr_yardl_error(input, "a transformation has %lld numbers, not 3 x 4", (long long)list.count);
    if (!is_matrix && list.count != 3)
        return lr_yardl_error(input, "a corner has %lld coordinates", (long long)list.count);
    return read_floats(input, list.item, list.count, user);
}

static lr_status take_transforms(struct lr_petsird *petsird, const struct lr_yardl_type *type, float (**matrices)[12],
                                 int64_t *count)
{
    static const struct lr_yardl_field fields[] = {{"matrix", true, take_vector, NULL}, {0}};
    struct lr_yardl_input *input = petsird->input;
    struct lr_yardl_list list;
    LR_TRY(lr_yardl_list(input, type, &list));
    if (list.count > 0 && list.item->least_bytes < 48)
        return lr_yardl_error(input, "the schema has no transformations where they are needed");
    free(*matrices);
    *count = 0;
    *matrices = lr_alloc(list.count, sizeof(**matrices), "places of crystals", petsird->log);
    if (*matrices == NULL) return LR_FAILED;
    *count = list.count;
    for (int64_t k = 0; k < list.count; k++) LR_TRY(lr_yardl_record(input, list.item, fields, (*matrices)[k]));
    return LR_OK;
}

static lr_status take_corners(void *user, struct lr_yardl_input *input, const struct lr_yardl_type *type)
{
    static const struct lr_yardl_field fields[] = {{"c", true, take_vector, NULL}, {0}};
    struct lr_petsird *petsird = user;
    struct lr_yardl_list list;
    LR_TRY(lr_yardl_list(input, type, &list));
    if (list.count != 8)
        return lr_yardl_error(input, "a crystal has %lld corners, not the 8 of a box", (long long)list.count);
    for (int c = 0; c < 8; c++) LR_TRY(lr_yardl_record(input, list.item, fields, petsird->current->corners_mm[c]));
    return LR_OK;
}

static const struct lr_yardl_field shape_fields[] = {{"corners", true, take_corners, NULL}, {0}};

static const struct lr_yardl_field volume_fields[] = {{"shape", true, NULL, shape_fields}, {0}};

static lr_status take_element_places(void *user, struct lr_yardl_input *input, const struct lr_yardl_type *type)
{
    struct lr_petsird *petsird = user;
    (void)input;
    return take_transforms(petsird, type, &petsird->current->elements, &petsird->current->num_elements);
}

static const struct lr_yardl_field elements_fields[] = {
    {"object", true, NULL, volume_fields}, {"transforms", true, take_element_places, NULL}, {0}};

static const struct lr_yardl_field module_fields[] = {{"detectingElements", true, NULL, elements_fields},
                                                      {NULL, false, note_field, NULL}};

static lr_status take_module_places(void *user, struct lr_yardl_input *input, const struct lr_yardl_type *type)
{
    struct lr_petsird *petsird = user;
    (void)input;
    return take_transforms(petsird, type, &petsird->current->modules, &petsird->current->num_modules);
}

static lr_status take_replicated(void *user, struct lr_yardl_input *input, const struct lr_yardl_type *type)
{
    static const struct lr_yardl_field fields[] = {
        {"object", true, NULL, module_fields}, {"transforms", true, take_module_places, NULL}, {0}};
    struct lr_petsird *petsird = user;
    struct lr_yardl_list list;
    LR_TRY(lr_yardl_list(input, type, &list));
    const int64_t count = list.count;
    if (petsird->types != NULL || count < 1 || count > LR_PETSIRD_MAX_TYPES) {
        return lr_yardl_error(petsird->input, "%lld types of modules: 1 to %d are read", (long long)count,
                              LR_PETSIRD_MAX_TYPES);
    }
    petsird->num_types = (int)count;
    petsird->types = lr_alloc(count, sizeof(*petsird->types), "types of modules", petsird->log);
    petsird->pairs = lr_alloc(count * count, sizeof(*petsird->pairs), "pairs of types", petsird->log);
    LR_TRY(petsird->types != NULL && petsird->pairs != NULL ? LR_OK : LR_FAILED);

    for (int k = 0; k < petsird->num_types; k++) {
        petsird->current = &petsird->types[k];
        petsird->current->num_energies = 1;
        petsird->current->per_energy = 1.0;
        LR_TRY(lr_yardl_record(input, list.item, fields, petsird));
    }
    return LR_OK;
}

static const struct lr_yardl_field geometry_fields[] = {{"replicatedModules", true, take_replicated, NULL},
                                                        {NULL, false, note_field, NULL}};

/* --- efficiencies --- */

static lr_status take_bin_efficiencies(void *user, struct lr_yardl_input *input, const struct lr_yardl_type *type)
{
    struct lr_petsird *petsird = user;
    struct lr_yardl_list list;
    LR_TRY(lr_yardl_list(input, type, &list));
    for (int64_t k = 0; k < list.count; k++) {
        float *values = NULL;
        struct floats into = {petsird, &values, 0};
        lr_status status = take_floats(&into, input, list.item);
        if (status == LR_OK && k < petsird->num_types) {
            for (int64_t v = 0; v < into.count; v++) include(&petsird->bin_efficiencies, values[v]);
            free(petsird->types[k].efficiencies);
            petsird->types[k].efficiencies = values;
            petsird->types[k].num_efficiencies = into.count;
            continue;
        }
        free(values);
        LR_TRY(status);
    }
    return LR_OK;
}

static const struct lr_yardl_field efficiencies_fields[] = {
    {"detectionBinEfficiencies", false, take_bin_efficiencies, NULL},
    {"modulePairSGIDLUT", false, take_pairs, NULL},
    {"modulePairEfficienciesVectors", false, survey, NULL},
    {NULL, false, note_field, NULL}};

static lr_status take_name(void *user, struct lr_yardl_input *input, const struct lr_yardl_type *type)
{
    struct lr_petsird *petsird = user;
    return lr_yardl_text(input, type, petsird->name, sizeof(petsird->name));
}

static const struct lr_yardl_field scanner_fields[] = {{"modelName", false, take_name, NULL},
                                                       {"scannerGeometry", true, NULL, geometry_fields},
                                                       {"tofBinEdges", false, take_pairs, NULL},
                                                       {"tofResolution", false, take_pairs, NULL},
                                                       {"eventEnergyBinEdges", false, take_energies, NULL},
                                                       {"detectionEfficiencies", false, NULL, efficiencies_fields},
                                                       {NULL, false, note_field, NULL}};

static const struct lr_yardl_field exam_fields[] = {{NULL, false, note_field, NULL}};

/* --- the whole header --- */

const char *lr_petsird_schema_text(const char *version)
{
    static const char stem[] = "schema_v";
    for (int k = 0; k < lr_num_petsird; k++) {
        const char *name = lr_petsird_table[k].name;
        if (strncmp(name, stem, strlen(stem)) == 0 && strcmp(name + strlen(stem), version) == 0)
            return lr_petsird_table[k].text;
    }
    return NULL;
}

lr_status lr_petsird_open(struct lr_petsird *petsird, const char *path, const lr_log *log)
{
    *petsird = (struct lr_petsird){.path = path, .log = log};
    lr_log_watch(&petsird->watch, log);
    petsird->input = lr_yardl_open(path, &petsird->schema, &petsird->watch.log);
    if (petsird->input == NULL) return petsird->watch.status;
    const struct lr_yardl_type *protocol = petsird->schema->protocol;
    if (strcmp(petsird->schema->name, "PETSIRD") != 0 || protocol->num_parts < 2 ||
        !protocol->parts[1].type->is_stream) {
        return lr_error(log, LR_BAD_INPUT, "%s: holds '%.40s', not PETSIRD's header and time blocks", path,
                        petsird->schema->name);
    }
    /* FNV-1a digests of the schemas by version. v0.8.0 to v0.9.1 share a schema, and so do all v0.11 versions. */
    static const struct {
        uint64_t digest;
        const char *version;
    } known[] = {
        {UINT64_C(0x634a030a12bd808d), "0.7.0"},  {UINT64_C(0x6ac86abca1eaf8d9), "0.7.2"},
        {UINT64_C(0xc74b2338005194bd), "0.9.1"},  {UINT64_C(0xcd4aca807ae1862e), "0.10.0"},
        {UINT64_C(0x3273d5484fc8122d), "0.11.1"}, {UINT64_C(0x5f30ec72bdbbd883), "0.12.0"},
    };
    uint64_t own = LR_HASH_BEGIN;
    for (const char *text = petsird->schema->text; *text != '\0'; text++) own = lr_hash_add(own, (unsigned char)*text);
    strcpy(petsird->version, "other");
    for (size_t k = 0; k < sizeof(known) / sizeof(known[0]); k++)
        if (known[k].digest == own) strcpy(petsird->version, known[k].version);

    petsird->blocks = protocol->parts[1].type;
    static const struct lr_yardl_field fields[] = {
        {"scanner", true, NULL, scanner_fields}, {"exam", false, NULL, exam_fields}, {NULL, false, note_field, NULL}};
    LR_TRY(lr_yardl_record(petsird->input, protocol->parts[0].type, fields, petsird));

    for (int k = 0; k < petsird->num_types; k++) {
        struct lr_petsird_type *type = &petsird->types[k];
        const int64_t elements = type->num_elements, modules = type->num_modules;
        const int64_t room = LR_PETSIRD_MAX_CRYSTALS - petsird->num_crystals;
        if (elements > 0 && modules > room / elements)
            return lr_yardl_error(petsird->input, "more than %d crystals: they are not read", LR_PETSIRD_MAX_CRYSTALS);
        type->per_element = 1.0 / fmax((double)elements, 1.0);
        type->first_crystal = petsird->num_crystals;
        petsird->num_crystals += elements * modules;
    }
    return petsird->num_crystals > 0 ? LR_OK : lr_yardl_error(petsird->input, "the scanner has no crystals");
}

void lr_petsird_close(struct lr_petsird *petsird)
{
    for (int k = 0; petsird->types != NULL && k < petsird->num_types; k++)
        lr_free_all(petsird->types[k].elements, petsird->types[k].modules, petsird->types[k].efficiencies);
    for (int k = 0; petsird->pairs != NULL && k < petsird->num_types * petsird->num_types; k++)
        lr_free_all(petsird->pairs[k].edges_mm, petsird->pairs[k].middles_mm, petsird->pairs[k].excluded);
    lr_free_all(petsird->types, petsird->pairs);
    lr_yardl_schema_destroy(petsird->schema);
    lr_yardl_close(petsird->input);
    *petsird = (struct lr_petsird){0};
}

/* --- properties --- */

const struct lr_petsird_pair *lr_petsird_tof(const struct lr_petsird *petsird, const int types[2], double *sign)
{
    const int n = petsird->num_types;
    const struct lr_petsird_pair *pair = &petsird->pairs[types[0] * n + types[1]];
    *sign = pair->num_edges > 0 ? 1 : -1;
    return pair->num_edges > 0 ? pair : &petsird->pairs[types[1] * n + types[0]];
}

/* Time-of-flight resolution of two module types, FWHM in mm; 0 = not given. */
static double petsird_resolution_mm(const struct lr_petsird *petsird, const int types[2])
{
    const int n = petsird->num_types;
    const double own = petsird->pairs[types[0] * n + types[1]].resolution_mm;
    return own > 0 ? own : petsird->pairs[types[1] * n + types[0]].resolution_mm;
}

bool lr_petsird_has_mask(const struct lr_petsird *petsird)
{
    bool any = false;
    for (int k = 0; k < petsird->num_types * petsird->num_types; k++) any = any || petsird->pairs[k].excluded != NULL;
    return any;
}

int lr_petsird_type_of(const struct lr_petsird *petsird, int64_t crystal, int64_t *module)
{
    int type = petsird->num_types - 1;
    while (type > 0 && crystal < petsird->types[type].first_crystal) type--;
    const struct lr_petsird_type *found = &petsird->types[type];
    *module = (crystal - found->first_crystal) / found->num_elements;
    return type;
}

/* Largest difference of edges that count as equal. Mirroring may round edges to single precision. */
static const double equal_mm = 5e-5;

/* Edge k of the bins that lr_petsird_tof gives, mirrored if the sign is -1. */
static double edge_mm(const struct lr_petsird_pair *pair, double sign, int k)
{
    return sign > 0 ? pair->edges_mm[k] : -(double)pair->edges_mm[pair->num_edges - 1 - k];
}

struct lr_petsird_agreement lr_petsird_compare(const struct lr_petsird *petsird)
{
    struct lr_petsird_agreement found = {.tof = true, .energies = true};
    double resolution_mm[2] = {INFINITY, 0}; /* smallest and largest resolution of pairs with time of flight */
    const int n = petsird->num_types;
    double signs[2];
    const struct lr_petsird_pair *one = lr_petsird_tof(petsird, (const int[2]){0, 0}, &signs[0]);
    for (int k = 0; k < n * n; k++) {
        const int types[2] = {k / n, k % n};
        const struct lr_petsird_pair *other = lr_petsird_tof(petsird, types, &signs[1]);
        found.tof = found.tof && one->num_edges == other->num_edges;
        for (int e = 0; found.tof && e < one->num_edges; e++)
            found.tof = fabs(edge_mm(one, signs[0], e) - edge_mm(other, signs[1], e)) < equal_mm;

        if (other->num_edges > 2) {
            const double mm = petsird_resolution_mm(petsird, types);
            found.any_tof = true;
            resolution_mm[0] = fmin(resolution_mm[0], mm);
            resolution_mm[1] = fmax(resolution_mm[1], mm);
        }
    }
    for (int k = 0; k < n; k++) {
        found.energies = found.energies && memcmp(petsird->types[0].energy_kev, petsird->types[k].energy_kev,
                                                  sizeof(petsird->types[k].energy_kev)) == 0;
    }
    const bool differs = found.any_tof && resolution_mm[0] != resolution_mm[1];
    for (int k = 0; k < 2 && differs; k++) found.differ_ps[k] = resolution_mm[k] / LR_MM_PER_PS;
    found.resolution_ps = found.any_tof && !differs ? resolution_mm[0] / LR_MM_PER_PS : 0;
    found.has_kinds = !found.tof || !found.energies || differs;
    return found;
}

static lr_status copy_edges(const struct lr_petsird *petsird, const int types[2], float **edges_mm, int *num_bins)
{
    double sign;
    const struct lr_petsird_pair *pair = lr_petsird_tof(petsird, types, &sign);
    if (pair->num_edges == 0) return LR_OK;
    *edges_mm = lr_alloc(pair->num_edges, sizeof(**edges_mm), "edges", petsird->log);
    if (*edges_mm == NULL) return LR_FAILED;
    *num_bins = pair->num_edges - 1;
    for (int k = 0; k < pair->num_edges; k++) (*edges_mm)[k] = (float)edge_mm(pair, sign, k);
    return LR_OK;
}

lr_status lr_petsird_fill_info(const struct lr_petsird *petsird, const int32_t *numbers, int count,
                               lr_events_info *info)
{
    static const int first[2] = {0, 0};
    const struct lr_petsird_agreement found = lr_petsird_compare(petsird);
    info->has_tof = found.any_tof;
    info->tof_resolution_ps = found.resolution_ps;
    if (found.energies) memcpy(info->energy_kev, petsird->types[0].energy_kev, sizeof(info->energy_kev));
    if (found.tof && found.any_tof) LR_TRY(copy_edges(petsird, first, &info->tof_edges_mm, &info->num_tof_bins));
    if (!found.has_kinds) return LR_OK;

    const int n = petsird->num_types;
    lr_event_kinds *kinds = &info->kinds;
    kinds->count = n;
    kinds->num_crystals = count;
    kinds->kind_of = lr_alloc(count, 1, "kinds of crystals", petsird->log);
    kinds->tof = lr_alloc((int64_t)n * n, sizeof(*kinds->tof), "bins", petsird->log);
    kinds->energy_kev = lr_alloc(n, sizeof(*kinds->energy_kev), "energies", petsird->log);
    if (kinds->kind_of == NULL || kinds->tof == NULL || kinds->energy_kev == NULL) return LR_FAILED;
    memset(kinds->kind_of, LR_EVENTS_NO_KIND, (size_t)kinds->num_crystals);
    for (int64_t c = 0; c < petsird->num_crystals; c++) {
        int64_t module;
        if (numbers[c] >= 0) kinds->kind_of[numbers[c]] = (unsigned char)lr_petsird_type_of(petsird, c, &module);
    }

    for (int k = 0; k < n; k++) memcpy(kinds->energy_kev[k], petsird->types[k].energy_kev, sizeof(*kinds->energy_kev));
    for (int k = 0; k < n * n; k++) {
        const int types[2] = {k / n, k % n};
        lr_tof_bins *bins = &kinds->tof[k];
        LR_TRY(copy_edges(petsird, types, &bins->edges_mm, &bins->num_bins));
        if (bins->num_bins > 1) bins->resolution_ps = petsird_resolution_mm(petsird, types) / LR_MM_PER_PS;
    }
    return LR_OK;
}
