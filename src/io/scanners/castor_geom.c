/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * CASToR's generated geometry (.geom). The file's frame is left-handed, so x is reversed here. source for keys,
 * positions and the order of crystals: iScannerPET.cc of CASToR 3.1.1 */
#include "base/log.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/units.h"
#include "io/files/keyed_text.h"
#include "io/files/output.h"
#include "io/scanners/castor_order.h"
#include "io/scanners/scanner_formats.h"
#include "model/scanner/scanner.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Keys in sScannerManager.cc and iScannerPET.cc of CASToR 3.1.1. Idle keys concern the display of images. */
static const struct lr_known_key known_keys[] = {
    {LR_KEY_REFUSED, "modality", "PET", "only scanners for PET can be read"},
    {LR_KEY_READ,
     "scanner name|number of elements|number of layers|scanner radius|number of rsectors|number of rsectors axial|"
     "rsector gap axial|rsectors first angle|rsectors angular span|rsectors nbzshift|rsectors zshift|"
     "rotation direction|number of modules transaxial|number of modules axial|module gap transaxial|module gap axial|"
     "number of submodules transaxial|number of submodules axial|submodule gap transaxial|submodule gap axial|"
     "number of crystals transaxial|number of crystals axial|crystal gap transaxial|crystal gap axial|"
     "crystals size trans|crystals size axial|crystals size depth|mean depth of interaction|min angle difference",
     NULL, NULL},
    {LR_KEY_IDLE, LR_CASTOR_IDLE_KEYS, NULL, NULL},
};
const struct lr_known_keys lr_geom_keys = {
    .format = "CASToR's .geom files", LR_KNOWN_ROWS(known_keys), .finds_parts = true};

enum { MAX_SHIFTS = 4096 };

/* Levels of units, from the smallest to the largest: crystals, submodules, modules, rsectors. */
enum { CRYSTAL = 0, SUBMODULE, MODULE, RSECTOR, NUM_LEVELS };

/* One layer of crystals. Index 0 is transaxial, 1 axial. */
struct layer {
    double radius_mm, first_deg, span_deg;
    double size_mm[3]; /* transaxial, axial, depth */
    double number[NUM_LEVELS][2];
    double gap_mm[NUM_LEVELS][2]; /* gap after each unit except the last one */
};

struct draft {
    struct lr_keyed_text text;
    int layers;
    struct layer layer; /* the layer that was read last */
    double depths_mm[LR_MAX_LAYERS];

    double shifts[MAX_SHIFTS];
    int num_shifts;
    struct lr_listed_crystals list;
};

bool lr_geom_recognises(const struct lr_file_head *head)
{
    return lr_path_ends(head->path, ".geom") ||
           (strstr(head->bytes, "scanner radius") != NULL && strstr(head->bytes, "number of rsectors") != NULL);
}

/* --- reading --- */

static lr_status read_layer(const struct draft *draft, int index, struct layer *layer)
{
    const struct {
        struct lr_keyed_number number;
        double *value;
    } keys[] = {
        {{"scanner radius", 1e-3, 1e5, true, false}, &layer->radius_mm},
        {{"crystals size trans", 1e-3, 1e4, true, false}, &layer->size_mm[0]},
        {{"crystals size axial", 1e-3, 1e4, true, false}, &layer->size_mm[1]},
        {{"crystals size depth", 1e-3, 1e4, true, false}, &layer->size_mm[2]},
        {{"rsectors first angle", -1e4, 1e4, false, false}, &layer->first_deg},
        {{"rsectors angular span", 1e-3, 360, false, false}, &layer->span_deg},
    };
    static const struct {
        int level, axis;
        bool required;
        const char *count, *gap;
    } counts[] = {
        {CRYSTAL, 0, true, "number of crystals transaxial", "crystal gap transaxial"},
        {CRYSTAL, 1, true, "number of crystals axial", "crystal gap axial"},
        {SUBMODULE, 0, false, "number of submodules transaxial", "submodule gap transaxial"},
        {SUBMODULE, 1, false, "number of submodules axial", "submodule gap axial"},
        {MODULE, 0, false, "number of modules transaxial", "module gap transaxial"},
        {MODULE, 1, false, "number of modules axial", "module gap axial"},
        {RSECTOR, 1, false, "number of rsectors axial", "rsector gap axial"},
    };
    layer->first_deg = 0;
    layer->span_deg = 360;
    for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++)
        LR_TRY(lr_keyed_text_number(&draft->text, &keys[k].number, index, keys[k].value));
    for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++) {
        double *number = &layer->number[counts[k].level][counts[k].axis];
        double *gap = &layer->gap_mm[counts[k].level][counts[k].axis];
        const struct lr_keyed_number count = {counts[k].count, 1, 1e6, counts[k].required, true};
        const struct lr_keyed_number width = {counts[k].gap, 0, 1e4, false, false};
        *number = 1;
        *gap = 0;
        LR_TRY(lr_keyed_text_number(&draft->text, &count, index, number));
        LR_TRY(lr_keyed_text_number(&draft->text, &width, index, gap));
    }
    const struct lr_keyed_number rsectors = {"number of rsectors", 1, 1e6, true, true};
    return lr_keyed_text_number(&draft->text, &rsectors, index, &layer->number[RSECTOR][0]);
}

/* Returns the length of a unit of a level, which is the length of its parts and of the gaps between these parts. */
static double unit_length(const struct layer *layer, int level, int axis)
{
    double length = layer->size_mm[axis];
    for (int k = CRYSTAL; k < level; k++)
        length = layer->number[k][axis] * length + (layer->number[k][axis] - 1) * layer->gap_mm[k][axis];
    return length;
}

/* Returns the distance of crystal n's centre along an axis from the beginning of a unit that has `levels` levels. */
static double crystal_offset(const struct layer *layer, int64_t n, int axis, int levels)
{
    double offset = 0.5 * layer->size_mm[axis];
    for (int k = CRYSTAL; k < levels; k++) {
        const int64_t count = (int64_t)layer->number[k][axis];
        offset += (double)(n % count) * (unit_length(layer, k, axis) + layer->gap_mm[k][axis]);
        n /= count;
    }
    return offset;
}

static lr_status list_crystals(struct draft *draft)
{
    double layers = 1, total = 0;
    const struct lr_keyed_number number = {"number of layers", 1, LR_MAX_LAYERS, false, true};
    LR_TRY(lr_keyed_text_number(&draft->text, &number, 0, &layers));
    const struct lr_keyed_line *line = lr_keyed_text_find(&draft->text, "rotation direction");
    const bool clockwise = line == NULL || line->value[0] == '\0' || strcmp(line->value, "CW") == 0;
    if (!clockwise && strcmp(line->value, "CCW") != 0) {
        return lr_keyed_text_error(&draft->text, line, "'rotation direction' must be CW or CCW, found '%.40s'",
                                   line->value);
    }
    const double direction = clockwise ? 1 : -1; /* clockwise in CASToR's sense */
    double num_shifts = 0;
    const struct lr_keyed_number shifts = {"rsectors nbzshift", 0, MAX_SHIFTS, false, true};
    const struct lr_keyed_number shift = {"rsectors zshift", -1e4, 1e4, true, false};
    LR_TRY(lr_keyed_text_number(&draft->text, &shifts, 0, &num_shifts));
    draft->num_shifts = num_shifts > 0 ? (int)num_shifts : 1;
    for (int k = 0; k < (int)num_shifts; k++) LR_TRY(lr_keyed_text_number(&draft->text, &shift, k, &draft->shifts[k]));

    draft->layers = (int)layers;
    for (int k = 0; k < draft->layers; k++) {
        LR_TRY(read_layer(draft, k, &draft->layer));
        draft->depths_mm[k] = draft->layer.size_mm[2];
        double count = 1;
        for (int level = CRYSTAL; level < NUM_LEVELS; level++)
            count *= draft->layer.number[level][0] * draft->layer.number[level][1];
        total += count;
        LR_TRY(lr_listed_crystals_check(total, draft->text.path, draft->text.log));
        /* Lists crystals in CASToR's order: ring by ring, and around the axis within each ring. */
        const struct layer *layer = &draft->layer;
        const int64_t across =
            (int64_t)(layer->number[CRYSTAL][0] * layer->number[SUBMODULE][0] * layer->number[MODULE][0]);
        const int64_t rings = (int64_t)(layer->number[CRYSTAL][1] * layer->number[SUBMODULE][1] *
                                        layer->number[MODULE][1] * layer->number[RSECTOR][1]);
        const int64_t sectors = (int64_t)layer->number[RSECTOR][0];
        const double width = unit_length(layer, RSECTOR, 0), length = unit_length(layer, NUM_LEVELS, 1);
        for (int64_t n = 0; n < rings * sectors * across; n++) {
            const int sector = (int)(n / across % sectors);
            const double angle = (layer->first_deg + sector * layer->span_deg / (double)sectors) * LR_DEGREE;
            const double s = direction * sin(angle), c = cos(angle);
            const double along = direction * (crystal_offset(layer, n % across, 0, RSECTOR) - 0.5 * width);
            const double out = layer->radius_mm + 0.5 * layer->size_mm[2];
            const lr_crystal crystal = {/* CASToR turns (along, out) by [c s; -s c]. LORaster reverses x. */
                                        .centre_mm = {-(c * along + s * out), -s * along + c * out,
                                                      crystal_offset(layer, n / across / sectors, 1, NUM_LEVELS) -
                                                          0.5 * length + draft->shifts[sector % draft->num_shifts]},
                                        .axes = {{-c, -s, 0}, {0, 0, 1}, {-s, c, 0}},
                                        .size_mm = {layer->size_mm[0], layer->size_mm[1], layer->size_mm[2]},
                                        .group = k * (int)sectors + sector,
                                        .layer = k};
            LR_TRY(lr_listed_crystals_add(&draft->list, &crystal, draft->text.path, draft->text.log));
        }
    }
    const struct lr_keyed_number elements = {"number of elements", 1, 1e9, false, true};
    double said = total;
    LR_TRY(lr_keyed_text_number(&draft->text, &elements, 0, &said));
    if (said != total) {
        return lr_keyed_text_error(&draft->text, lr_keyed_text_find(&draft->text, "number of elements"),
                                   "'number of elements' is %.10g, but the geometry has %.10g "
                                   "crystals: correct one of them",
                                   said, total);
    }
    return LR_OK;
}

lr_scanner *lr_geom_read(const char *path, const lr_log *log)
{
    struct draft *draft = calloc(1, sizeof(*draft));
    lr_scanner *scanner = NULL;
    int *crystal_of = NULL;
    if (draft == NULL) {
        lr_error(log, LR_FAILED, "no memory for a CASToR scanner file");
        return NULL;
    }
    const struct lr_keyed_text *text = &draft->text;
    if (lr_castor_text_read(&draft->text, path, "a CASToR scanner file", &lr_geom_keys, log) != LR_OK) goto done;
    const struct lr_keyed_line *name = lr_keyed_text_find(text, "scanner name");
    double least_deg = 0;
    const struct lr_keyed_number angle = {"min angle difference", 0, 180, false, false};
    if (list_crystals(draft) != LR_OK || lr_keyed_text_number(text, &angle, 0, &least_deg) != LR_OK) goto done;

    char stem[128];
    lr_crystal_list list = {.name =
                                name != NULL && name->value[0] != '\0' ? name->value : lr_path_stem(text->path, stem),
                            .source = "a CASToR .geom file",
                            .crystals = draft->list.items,
                            .num_crystals = draft->list.count,
                            .log = log};
    /* The number of positions of rsectors follows from the smallest angle between orientations of crystals. */
    const bool whole = fabs(draft->layer.span_deg - 360) < 1e-9;
    if (least_deg > 0 && whole && draft->num_shifts == 1 && draft->layer.number[RSECTOR][0] > 2) {
        list.coincidence.min_module_difference = (int)ceil(least_deg * draft->layer.number[RSECTOR][0] / 360 - 1e-9);
    } else if (least_deg > 0) {
        lr_warn(log,
                "%s: 'min angle difference' is left out: modules of this scanner have no places around a full ring",
                text->path);
    }
    if (lr_castor_detection_depth(text, draft->depths_mm, draft->layers, &list.detection_depth_mm) != LR_OK) goto done;

    crystal_of = lr_alloc(list.num_crystals, sizeof(*crystal_of), "crystal numbers", log);
    scanner = crystal_of != NULL ? lr_scanner_from_crystals(&list, crystal_of, NULL) : NULL;
    if (scanner == NULL) goto done;
    if (lr_castor_order_keep(scanner, crystal_of, log) != LR_OK) {
        lr_scanner_destroy(scanner);
        scanner = NULL;
    }
    crystal_of = NULL;

done:
    free(crystal_of);
    lr_keyed_text_finish(&draft->text);
    lr_free_all(draft->list.items, draft);
    return scanner;
}

/* --- writing --- */

/* The rings of all layers. All rings have the same panels, each with the crystals of one layer. */
struct layer_rings {
    lr_ring rings[LR_MAX_LAYERS];
    int count;
};

static lr_status check_blocks(const char *path, const lr_ring *ring, const lr_log *log)
{
    for (int k = 0; k < 2; k++) {
        for (int b = 1; b < ring->blocks[k]; b++) {
            if (ring->block_crystals[k][b] != ring->block_crystals[k][0]) {
                return lr_error(log, LR_BAD_INPUT,
                                "%s: blocks of %d and %d crystals differ, and CASToR's .geom has "
                                "equal ones only: write .hscan instead",
                                path, ring->block_crystals[k][0], ring->block_crystals[k][b]);
            }
        }
    }
    return LR_OK;
}

static lr_status make_rings(const char *path, const lr_ring *ring, struct layer_rings *layers, const lr_log *log)
{
    layers->count = ring->num_layers > 0 ? ring->num_layers : 1;
    layers->rings[0] = *ring;
    LR_TRY(check_blocks(path, ring, log));
    for (int layer = 0; layer < ring->num_layers; layer++) {
        const lr_layer *from = &ring->layers[layer];
        lr_ring *own = &layers->rings[layer];
        *own = *ring;
        own->radius_mm = ring->radius_mm + lr_layer_front_mm(ring->layers, layer);
        own->depth_mm = from->depth_mm;
        for (int k = 0; k < 2; k++) {
            own->block_crystals[k] = from->block_crystals[k];
            own->pitch_mm[k] = from->pitch_mm[k];
            own->face_mm[k] = from->face_mm[k];
            /* `step` is the distance between the centres of neighbouring blocks. All layers have the same step, so a
             * layer with smaller crystals has a larger gap. */
            const double step = ring->block_crystals[k][0] * ring->pitch_mm[k] + ring->block_gap_mm[k];
            own->block_gap_mm[k] = ring->blocks[k] > 1 ? step - own->block_crystals[k][0] * own->pitch_mm[k] : 0;
            if (from->offset_mm[k] != 0 || own->block_gap_mm[k] + own->pitch_mm[k] - own->face_mm[k] < 0) {
                return lr_error(log, LR_BAD_INPUT,
                                "%s: the crystals of layer %d are not in the middle of their blocks, or reach into "
                                "others, and CASToR's .geom has no place for that: write .hscan instead",
                                path, layer);
            }
        }
        LR_TRY(check_blocks(path, own, log));
    }
    return LR_OK;
}

static double panel_length(const lr_ring *ring, int axis)
{
    const int blocks = ring->blocks[axis], each = ring->block_crystals[axis][0];
    return blocks * each * ring->pitch_mm[axis] + (blocks - 1) * ring->block_gap_mm[axis] -
           (ring->pitch_mm[axis] - ring->face_mm[axis]);
}

static void put_geometry(struct lr_output *output, const lr_scanner *scanner, const struct layer_rings *layers)
{
    const struct lr_castor_header header = {output, 34};
    const lr_ring *ring = &layers->rings[0];
    double first = ring->first_angle_deg - 90; /* CASToR counts angles from the top */
    first -= 360 * floor(first / 360);
    const double field =
        scanner->coincidence.field_of_view_mm > 0 ? scanner->coincidence.field_of_view_mm : ring->radius_mm * 1.4;
    const int rings = ring->rings > 0 ? ring->rings : 1;
    const double length = (rings - 1) * ring->ring_pitch_mm + panel_length(ring, 1);
    lr_castor_put_number(&header, "number of elements", scanner->num_crystals);
    lr_castor_put_number(&header, "number of layers", layers->count);
    static const char *const keys[] = {"scanner radius",
                                       "crystals size depth",
                                       "crystals size transaxial",
                                       "crystals size axial",
                                       "rsectors first angle",
                                       "rsectors angular span",
                                       "number of rsectors",
                                       "number of rsectors axial",
                                       "rsector gap axial",
                                       "number of modules transaxial",
                                       "number of modules axial",
                                       "module gap transaxial",
                                       "module gap axial",
                                       "number of submodules transaxial",
                                       "number of submodules axial",
                                       "number of crystals transaxial",
                                       "number of crystals axial",
                                       "crystal gap transaxial",
                                       "crystal gap axial",
                                       "mean depth of interaction"};
    enum { NUM_KEYS = sizeof(keys) / sizeof(keys[0]) };
    double values[NUM_KEYS][LR_MAX_LAYERS]; /* one value for each layer */
    for (int l = 0; l < layers->count; l++) {
        const lr_ring *own = &layers->rings[l];
        const double gap_mm[2] = {own->pitch_mm[0] - own->face_mm[0], own->pitch_mm[1] - own->face_mm[1]};
        const double of_layer[NUM_KEYS] = {
            own->radius_mm,
            own->depth_mm,
            own->face_mm[0],
            own->face_mm[1],
            first,
            360,
            own->modules,
            own->rings > 0 ? own->rings : 1,
            own->rings > 1 ? own->ring_pitch_mm - panel_length(own, 1) : 0,
            own->blocks[0],
            own->blocks[1],
            own->blocks[0] > 1 ? own->block_gap_mm[0] + gap_mm[0] : 0,
            own->blocks[1] > 1 ? own->block_gap_mm[1] + gap_mm[1] : 0,
            1,
            1,
            own->block_crystals[0][0],
            own->block_crystals[1][0],
            gap_mm[0],
            gap_mm[1],
            scanner->detection_depth_mm,
        };
        for (int k = 0; k < NUM_KEYS; k++) values[k][l] = of_layer[k];
    }
    for (int k = 0; k < NUM_KEYS; k++) lr_castor_put(&header, keys[k], values[k], layers->count);
    lr_castor_put_number(&header, "min angle difference",
                         scanner->coincidence.min_module_difference > 0
                             ? (scanner->coincidence.min_module_difference - 0.5) * 360 / ring->modules
                             : 0);
    lr_castor_put_number(&header, "voxels number transaxial", 2 * ceil(field / ring->pitch_mm[0]));
    lr_castor_put_number(&header, "voxels number axial", 2 * ceil(length / ring->pitch_mm[1]));
    lr_castor_put_number(&header, "field of view transaxial", field);
    lr_castor_put_number(&header, "field of view axial", length);
}

lr_status lr_geom_write(const char *path, const lr_scanner *scanner, const lr_log *log)
{
    struct lr_ring_form form;
    struct lr_output output;
    struct layer_rings layers;
    bool found;
    LR_TRY(lr_ring_form_find(scanner, &form, &found, log));
    if (!found) {
        return lr_error(log, LR_BAD_INPUT,
                        "%s: '%s' is no ring of equal panels, and CASToR's .geom holds nothing "
                        "else: write .hscan instead",
                        path, scanner->name);
    }
    lr_status status = make_rings(path, &form.ring, &layers, log);
    if (status == LR_OK) status = lr_output_open(&output, path, log);
    if (status == LR_OK) {
        char text[512];
        const int length = snprintf(text, sizeof(text),
                                    "# Written by LORaster %s; CASToR's left-handed frame, mm.\n"
                                    "modality                          : PET\n"
                                    "scanner name                      : %.200s\n"
                                    "rotation direction                : CW\n",
                                    lr_version(), scanner->name);
        lr_output_write(&output, text, (size_t)length);
        put_geometry(&output, scanner, &layers);
        status = lr_output_finish(&output);
    }
    if (status == LR_OK) {
        lr_castor_tell_lost(path, scanner, true, log);
        if (scanner->castor_order != NULL) {
            lr_warn(log,
                    "%s: CASToR numbers the crystals of this file otherwise than those of the file that '%s' comes "
                    "from: for events of the latter write .hscan, whose table keeps their order",
                    path, scanner->name);
        }
    }
    lr_ring_form_finish(&form);
    return status;
}
