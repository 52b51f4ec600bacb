/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The scanner block of STIR's projection-data headers (.hs). Lengths are in cm. x, y and z are all reversed
 * (docs/formats/events.md, "Siemens list mode"). sources for the positions of crystals: STIR's sample headers, and
 * Scanner.cxx and GeometryBlocksOnCylindrical.cxx of STIR 6.2 */
#include "base/log.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/units.h"
#include "io/files/keyed_text.h"
#include "io/files/regular_file.h"
#include "io/scanners/crystal_map.h"
#include "io/scanners/scanner_formats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Keys of STIR's projection-data headers, from InterfileHeader.cxx of STIR 6.2. This file takes the scanner from
 * a header, and lr_projdata_read takes the counts. Each reader ignores the keys of the other one. */

/* Idle keys follow from other keys, or concern the binning of data. */
static const struct lr_known_key scanner_keys[] = {
    {LR_KEY_READ,
     "scanner type|originating system|number of rings|number of detectors per ring|inner ring diameter (cm)|"
     "average depth of interaction (cm)|distance between rings (cm)|view offset (degrees)|number of detector layers|"
     "maximum number of non-arc-corrected bins|number of crystals per block in transaxial direction|"
     "number of crystals per block in axial direction|number of blocks per bucket in transaxial direction|"
     "scanner geometry*|distance between crystals in transaxial direction (cm)|"
     "distance between crystals in axial direction (cm)|distance between blocks in transaxial direction (cm)|"
     "distance between blocks in axial direction (cm)|name of crystal map|tof timing resolution (ps)|"
     "timing resolution (ps)|maximum ring difference per segment",
     NULL, NULL},
    {LR_KEY_IDLE,
     "scanner orientation (x or y)|default bin size (cm)|effective central bin size (cm)|"
     "default number of arc-corrected bins|transaxial fov diameter (cm)|"
     "number of crystals per singles unit in transaxial direction|"
     "number of crystals per singles unit in axial direction|energy resolution|reference energy (in kev)|"
     "maximum number of (unmashed) tof time bins|number of tof time bins|size of unmashed tof time bins (ps)|"
     "size of timing bin (ps)|tof bin order|number of blocks per bucket in axial direction",
     NULL, NULL},
};

static const struct lr_known_key data_keys[] = {
    {LR_KEY_READ,
     "name of data file|imagedata byte order|image data byte order|number format|"
     "number of bytes per pixel|number of dimensions|matrix size|matrix axis label|"
     "data offset in bytes|data starting block|minimum ring difference per segment|"
     "maximum ring difference per segment|image scaling factor|quantification units",
     NULL, NULL},
    {LR_KEY_REFUSED, "number of time frames", "0|1", "several time frames cannot be read: give one of them"},
    {LR_KEY_REFUSED, "imaging modality", "PT|PET|NM|nucmed|unknown", "only data of PET can be read"},
    {LR_KEY_REFUSED, "type of data", "PET|other", "only data of PET can be read"},
    {LR_KEY_WARNED, "pet data type", "Emission|AttenuationCorrection|Normalisation", "its bins are taken for counts"},
    {LR_KEY_WARNED, "applied corrections", "none",
     "its counts are taken as they are, and those corrections are not to be given again (arc correction is refused)"},
    {LR_KEY_WARNED, "calibration factor", "1|0|-1", "images are counts, and are not multiplied by it"},
    {LR_KEY_WARNED, "start horizontal bed position (mm)", "0",
     "images are where the scanner is: move them along z by it"},
    {LR_KEY_WARNED, "start vertical bed position (mm)", "0",
     "images are where the scanner is: move them along y by it"},
    {LR_KEY_WARNED, "patient orientation", "head_in|unknown", LR_PATIENT_AXES},
    {LR_KEY_WARNED, "patient rotation", "supine|unknown", LR_PATIENT_AXES},
    {LR_KEY_IDLE,
     LR_INTERFILE_IDLE_KEYS
     "|version of keys|process status|data format|image data type description|index nesting level|maximum pixel count|"
     "minimum pixel count|tof mashing factor|scaling factor (mm/pixel)",
     NULL, NULL},
};

const struct lr_known_keys lr_stir_scanner_keys = {
    .format = "STIR's headers of scanners", LR_KNOWN_ROWS(scanner_keys), .beside = &lr_stir_data_keys};

const struct lr_known_keys lr_stir_data_keys = {
    .format = "STIR's headers of projection data", LR_KNOWN_ROWS(data_keys), .beside = &lr_stir_scanner_keys};

static const double usual_depth_mm = 20;
static const struct lr_keyed_dialect dialect = {":=", ';', "a STIR header", true};

/* Scanners for which STIR also numbers virtual crystals. A virtual crystal is the first crystal of each block around
 * the ring, and the last one along the axis (docs/formats/events.md, "Siemens list mode"). */
static const struct {
    const char *type;
    int around, along;
} virtual_crystals[] = {
    {"Siemens mMR", 1, 0},
    {"Siemens mCT", 1, 1},
    {"Siemens Vision 600", 1, 0},
};

/* clang-format off */
/* STIR's own scanners (Scanner.cxx of STIR 6). A header may give only their names. Lengths are in cm, as in headers. */
static const struct known_scanner {
    const char *names; /* names, separated by '|' */
    double rings, places, diameter_cm, doi_cm, ring_cm, tilt_deg;
    double per_block[2], per_bucket[2], layers, bins, tof_ps;
} known_scanners[] = {
    {"ECAT 931", 8, 512, 102, 0.7, 1.35, 0, {8, 4}, {4, 2}, 1, 192, 0},
    {"ECAT 951", 16, 512, 102, 0.7, 0.675, 0, {8, 8}, {4, 1}, 1, 192, 0},
    {"ECAT 953", 16, 384, 76.5, 0.7, 0.675, -14.99998, {8, 8}, {4, 1}, 1, 160, 0},
    {"ECAT 921|ECAT EXACT|EXACT", 24, 384, 82.5, 0.7, 0.675, -14.99998, {8, 8}, {4, 1}, 1, 192, 0},
    {"ECAT 925|ECAT ART", 24, 384, 82.5, 0.7, 0.675, -14.99998, {8, 8}, {4, 3}, 1, 192, 0},
    {"ECAT 961|ECAT HR", 24, 784, 82.4, 0.7, 0.625, -13.00001, {7, 8}, {8, 1}, 1, 336, 0},
    {"ECAT 962|ECAT HR+", 32, 576, 82.4, 0.7, 0.485, 0, {8, 8}, {3, 4}, 1, 288, 0},
    {"ECAT EXACT 3D|EXACT 3D|ECAT HR++|ECAT 966", 48, 576, 82.4, 0.7, 0.485, 0, {8, 8}, {2, 6}, 1, 288, 0},
    {"ECAT 1080|Biograph 16|1080", 41, 672, 82.4, 0.7, 0.4, 0, {14, 14}, {2, 1}, 1, 336, 0},
    {"Siemens mMR|mMR|2008", 64, 504, 65.6, 0.7, 0.40625, 0, {9, 8}, {1, 2}, 1, 344, 0},
    {"test_scanner", 4, 504, 65.6, 0.7, 0.40625, 0, {1, 4}, {1, 1}, 1, 344, 400},
    {"Siemens mCT|mCT|2011|1104|1094", 55, 672, 84.2, 0.7, 0.4054, 0, {14, 14}, {1, 4}, 1, 400, 555},
    {"Siemens Vision 600|Vision 600|1208", 80, 798, 82, 0.7, 0.329114, 1.85638, {21, 10}, {1, 1}, 1, 520, 214},
    {"Siemens Quadra|Quadra|1232", 323, 798, 82, 0.7, 0.329114, 1.85638, {21, 81}, {1, 4}, 1, 520, 214},
    {"PRT-1|RPT", 16, 384, 74.6, 0.7, 0.675, 0, {8, 8}, {4, 1}, 1, 128, 0},
    {"RATPET", 8, 112, 11.5, 0.7, 0.625, 0, {7, 8}, {16, 1}, 1, 56, 0},
    {"PANDA", 1, 2048, 7.55, 1, 0.3, 0, {1, 1}, {1, 1}, 1, 512, 0},
    {"nanoPET", 81, 468, 34.8, 0.5, 0.117, 0, {0, 0}, {0, 0}, 1, 117, 0},
    {"HYPERimage", 22, 490, 20.794, 0.3, 0.14, 0, {0, 0}, {0, 0}, 1, 239, 0},
    {"GE Advance|Advance", 18, 672, 92.695, 0.84, 0.85, 0, {6, 6}, {2, 3}, 1, 283, 0},
    {"GE Discovery LS|Discovery LS", 18, 672, 92.695, 0.84, 0.85, 0, {6, 6}, {2, 3}, 1, 283, 0},
    {"GE Discovery ST|Discovery ST", 24, 420, 88.62, 0.84, 0.654, -4.54224, {6, 6}, {2, 4}, 1, 249, 0},
    {"GE Discovery STE|Discovery STE", 24, 560, 88.62, 0.84, 0.654, -4.549, {8, 6}, {2, 4}, 1, 329, 0},
    {"GE Discovery RX|Discovery RX", 24, 630, 88.62, 0.94, 0.654, -4.595, {9, 6}, {2, 4}, 1, 367, 0},
    {"GE Discovery 600|Discovery 600", 24, 512, 80.99, 0.84, 0.654, -4.549, {8, 6}, {2, 4}, 1, 339, 0},
    {"GE Signa PET/MR|PET/MR Signa|Signa PET/MR", 45, 448, 62.36, 0.85, 0.556, -5.23, {4, 9}, {4, 5}, 1, 357, 390},
    {"GE Discovery 690|Discovery 690|GE Discovery 710|Discovery 710", 24, 576, 81.02, 0.94, 0.654, -5.021, {9, 6}, {2, 4}, 1, 381, 550},
    {"GE Discovery MI 3 rings|Discovery MI3|Discovery MI", 27, 544, 74.22, 0.94, 0.552296, -4.399, {4, 9}, {4, 3}, 1, 415, 375.4},
    {"GE Discovery MI 4 rings|Discovery MI4|Discovery MI", 36, 544, 74.22, 0.94, 0.552296, -4.399, {4, 9}, {4, 4}, 1, 415, 375.4},
    {"GE Discovery MI 5 rings|Discovery MI5|Discovery MI", 45, 544, 74.22, 0.94, 0.552296, -4.399, {4, 9}, {4, 5}, 1, 415, 375.4},
    {"GE Discovery MI 6 rings|Discovery MI6|Discovery MI", 54, 544, 74.22, 0.94, 0.552296, -4.399, {4, 9}, {4, 6}, 1, 415, 375.4},
    {"Positron HZL/R", 32, 384, 156, 0.7, 0.51875, 0, {0, 0}, {0, 0}, 1, 256, 0},
    {"HRRT", 104, 576, 46.953, 0.7, 0.24375, 0, {0, 0}, {0, 0}, 2, 288, 0},
    {"Allegro|Philips Allegro", 29, 644, 86.01, 1.2, 0.63, 0, {0, 29}, {0, 1}, 1, 295, 0},
    {"GeminiTF|Philips GeminiTF", 44, 644, 90.034, 0.8, 0.4, 0, {0, 0}, {0, 0}, 1, 322, 0},
    {"SAFIRDualRingPrototype", 16, 180, 12.81, 0.5, 0.22, 0, {15, 8}, {1, 2}, 1, 150, 0},
    {"UPENN_5rings", 280, 594, 76.4, 0.7, 0.39655, 0, {8, 8}, {4, 7}, 1, 331, 272.55},
    {"UPENN_6rings", 336, 594, 76.4, 0.7, 0.39655, 0, {33, 8}, {1, 42}, 1, 331, 272.55},
    {"UPENN_5rings_no_gaps", 200, 576, 76.4, 0.7, 0.39655, 0, {8, 8}, {4, 35}, 1, 301, 272.55},
    {"UPENN_6rings_no_gaps", 240, 576, 76.4, 0.7, 0.39655, 0, {8, 8}, {4, 30}, 1, 321, 272.55},
};
/* clang-format on */

struct draft {
    struct lr_keyed_text text;
    const char *type, *geometry, *map;
    double rings, places, radius_mm, doi_mm, ring_mm, tilt_deg, tof_ps, bins, most_difference;
    double layers, depth_mm;            /* depth_mm: length of crystals, which STIR headers do not give */
    double per_block[2], per_bucket[2]; /* crystals of a block, and blocks of a bucket; [0]: transaxial, [1]: axial */
    double crystal_mm[2], block_mm[2];  /* distances between crystals, and between blocks; 0 = not given */
    int missing[2];                     /* number of virtual crystals in a block */
    struct lr_listed_crystals list;
};

bool lr_stir_header_recognises(const struct lr_file_head *head)
{
    const char *text = head->bytes + strspn(head->bytes, " \t\r\n!");
    return strncmp(text, "INTERFILE", 9) == 0 || strncmp(text, "Interfile", 9) == 0 ||
           (lr_path_ends(head->path, ".hs") && strstr(text, ":=") != NULL);
}

bool lr_siemens_sinogram_recognises(const struct lr_file_head *head)
{
    static const char subheader[] = "sinogram subheader";
    return lr_stir_header_recognises(head) && lr_head_holds(head, subheader, strlen(subheader));
}

/* --- the header --- */

static const char *read_word(const struct draft *draft, const char *key, const char *fallback)
{
    const struct lr_keyed_line *line = lr_keyed_text_find(&draft->text, key);
    return line != NULL && line->value[0] != '\0' ? line->value : fallback;
}

/* Finds a scanner by a name, ignoring case. Prefers a scanner with this number of rings. rings: 0 = not known. */
static const struct known_scanner *find_known(const char *name, double rings)
{
    const struct known_scanner *found = NULL;
    const size_t length = strlen(name);
    for (size_t k = 0; k < sizeof(known_scanners) / sizeof(known_scanners[0]) && length > 0; k++) {
        const struct known_scanner *known = &known_scanners[k];
        for (const char *at = known->names; at != NULL; at = strchr(at, '|')) {
            at += *at == '|';
            const bool is_named = strncasecmp(at, name, length) == 0 && (at[length] == '|' || at[length] == '\0');
            if (is_named && (found == NULL || known->rings == rings)) found = known;
        }
    }
    return found;
}

void lr_stir_scanner_known(const char *name, int64_t wanted[2])
{
    const struct known_scanner *known = find_known(name, (double)wanted[1]);
    if (known == NULL) return;
    wanted[0] = (int64_t)known->places;
    wanted[1] = (int64_t)known->rings;
}

static lr_status read_numbers(struct draft *draft)
{
    /* Takes the facts that STIR knows for the scanner's name, unless the header gives others. */
    const struct lr_keyed_number rings = {"number of rings", 1, 1e5, false, true};
    double num_rings = 0;
    LR_TRY(lr_keyed_text_number(&draft->text, &rings, 0, &num_rings));
    const struct known_scanner *known = find_known(draft->type, num_rings);
    const bool is_known = known != NULL;
    if (is_known) {
        draft->rings = known->rings;
        draft->places = known->places;
        draft->radius_mm = known->diameter_cm;
        draft->doi_mm = known->doi_cm;
        draft->ring_mm = known->ring_cm;
        draft->tilt_deg = known->tilt_deg;
        draft->tof_ps = known->tof_ps;
        draft->bins = known->bins;
        draft->layers = known->layers;
        memcpy(draft->per_block, known->per_block, sizeof(draft->per_block));
        memcpy(draft->per_bucket, known->per_bucket, sizeof(draft->per_bucket));
    }

    const struct {
        struct lr_keyed_number number;
        double *value;
        double factor;
    } keys[] = {
        {{"number of rings", 1, 1e5, !is_known, true}, &draft->rings, 1},
        {{"number of detectors per ring", 2, 1e6, !is_known, true}, &draft->places, 1},
        {{"inner ring diameter (cm)", 1e-2, 1e4, !is_known, false}, &draft->radius_mm, 5},
        {{"average depth of interaction (cm)", 0, 100, false, false}, &draft->doi_mm, 10},
        {{"distance between rings (cm)", 1e-4, 100, !is_known, false}, &draft->ring_mm, 10},
        {{"view offset (degrees)", -360, 360, false, false}, &draft->tilt_deg, 1},
        {{"number of detector layers", 0, 16, false, true}, &draft->layers, 1},
        {{"timing resolution (ps)", -1, 1e6, false, false}, &draft->tof_ps, 1},
        {{"maximum number of non-arc-corrected bins", 0, 1e6, false, true}, &draft->bins, 1},
        {{"number of crystals per block in transaxial direction", 0, 1e5, false, true}, &draft->per_block[0], 1},
        {{"number of crystals per block in axial direction", 0, 1e5, false, true}, &draft->per_block[1], 1},
        {{"number of blocks per bucket in transaxial direction", 0, 1e5, false, true}, &draft->per_bucket[0], 1},
        {{"distance between crystals in transaxial direction (cm)", -1, 100, false, false}, &draft->crystal_mm[0], 10},
        {{"distance between crystals in axial direction (cm)", -1, 100, false, false}, &draft->crystal_mm[1], 10},
        {{"distance between blocks in transaxial direction (cm)", -1, 1000, false, false}, &draft->block_mm[0], 10},
        {{"distance between blocks in axial direction (cm)", -1, 1000, false, false}, &draft->block_mm[1], 10},
    };
    for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++) {
        LR_TRY(lr_keyed_text_number(&draft->text, &keys[k].number, 0, keys[k].value));
        *keys[k].value *= keys[k].factor;
    }
    return LR_OK;
}

static lr_status read_header(struct draft *draft)
{
    draft->type = read_word(draft, "scanner type", read_word(draft, "originating system", ""));
    draft->geometry = read_word(draft, "scanner geometry", "Cylindrical");
    draft->map = read_word(draft, "name of crystal map", "");
    LR_TRY(read_numbers(draft));
    /* The largest ring difference of any segment; -1 = not given. */
    const char *at = read_word(draft, "maximum ring difference per segment", "");
    draft->most_difference = -1;
    while (*(at += strcspn(at, "+-0123456789")) != '\0') {
        char *end;
        const double value = strtod(at, &end);
        draft->most_difference = fmax(draft->most_difference, fabs(value));
        at = end > at ? end : at + 1;
    }

    if (draft->layers > 1) {
        return lr_keyed_text_error(&draft->text, NULL,
                                   "describes %g layers of detectors: give a crystal map, which says where they stand",
                                   draft->layers);
    }
    LR_TRY(lr_listed_crystals_check(draft->rings * draft->places, draft->text.path, draft->text.log));
    if (strcmp(draft->geometry, "Generic") == 0) return LR_OK;

    for (int k = 0; k < 2; k++) {
        const double all = k == 0 ? draft->places : draft->rings;
        draft->per_block[k] = draft->per_block[k] > 0 ? draft->per_block[k] : k == 0 ? 1 : all;
        draft->per_bucket[k] = draft->per_bucket[k] > 0 ? draft->per_bucket[k] : 1;
    }
    for (size_t k = 0; k < sizeof(virtual_crystals) / sizeof(virtual_crystals[0]); k++) {
        if (strcmp(draft->type, virtual_crystals[k].type) == 0) {
            draft->missing[0] = virtual_crystals[k].around;
            draft->missing[1] = virtual_crystals[k].along;
        }
    }
    if (fmod(draft->places, draft->per_block[0] * draft->per_bucket[0]) != 0) {
        return lr_keyed_text_error(&draft->text, NULL,
                                   "%g detectors per ring are no whole number of buckets of %g x %g crystals",
                                   draft->places, draft->per_bucket[0], draft->per_block[0]);
    }
    /* If there are fewer rings than crystals of a block along the axis, each block has as many crystals along the axis
     * as there are rings. The rings must form whole blocks. The last block along the axis lacks its virtual
     * crystals. */
    if (draft->rings < draft->per_block[1]) draft->per_block[1] = draft->rings;
    if (fmod(draft->rings + draft->missing[1], draft->per_block[1]) != 0) {
        return lr_keyed_text_error(&draft->text, NULL, "%g rings are no whole number of blocks of %g crystals",
                                   draft->rings, draft->per_block[1]);
    }
    return draft->per_block[0] > draft->missing[0] && draft->per_block[1] > draft->missing[1]
               ? LR_OK
               : lr_keyed_text_error(&draft->text, NULL, "blocks have virtual crystals only");
}

/* --- crystals --- */

/* Returns the distance of crystal n along an axis from the first crystal. */
static double offset_mm(const struct draft *draft, int axis, int n)
{
    const int per_block = (int)draft->per_block[axis];
    return n / per_block * draft->block_mm[axis] + n % per_block * draft->crystal_mm[axis];
}

double lr_stir_bucket_turn(const struct lr_stir_bucket *bucket, double *first)
{
    const double length_mm = bucket->crystals * bucket->crystal_mm;
    const double gap_mm = bucket->block_mm - length_mm;
    const double turn = LR_PI / bucket->count * (1 - 2 / bucket->block_mm * (0.5 * bucket->crystal_mm + gap_mm));
    const double half_mm = 0.5 * ((bucket->blocks - 1) * bucket->block_mm + length_mm - bucket->crystal_mm);
    *first = turn - atan2(half_mm, bucket->radius_mm);
    return turn;
}

/* Lists the crystals ring by ring, from STIR's first ring, which has the largest z in LORaster's frame. Panels are
 * blocks of a cylinder, or buckets with `per_panel` crystals around the ring. */
static lr_status list_crystals(struct draft *draft, bool in_buckets, int per_panel)
{
    /* first_angle: angle of the first panel's normal in LORaster's frame. shift_mm: shift of the crystals along their
     * panel. */
    double first_angle = LR_PI / 2 + draft->tilt_deg * LR_PI / 180, shift_mm = 0;
    if (in_buckets) {
        /* Buckets are flat, and their normals pass through their middles (since STIR 6.2). */
        for (int k = 0; k < 2; k++) {
            if (!(draft->crystal_mm[k] > 0) || !(draft->block_mm[k] > 0)) {
                return lr_keyed_text_error(&draft->text, NULL,
                                           "blocks on a cylinder need the distances between crystals "
                                           "and between blocks in both directions");
            }
        }
        const struct lr_stir_bucket bucket = {.count = draft->places / per_panel,
                                              .crystals = draft->per_block[0],
                                              .blocks = draft->per_bucket[0],
                                              .crystal_mm = draft->crystal_mm[0],
                                              .block_mm = draft->block_mm[0],
                                              .radius_mm = draft->radius_mm + draft->doi_mm};
        double of_crystal;
        first_angle += lr_stir_bucket_turn(&bucket, &of_crystal);
    } else {
        /* The crystals of STIR's cylinder are at equal angles. Each block becomes flat, and touches the cylinder in the
         * middle of its real crystals. */
        draft->crystal_mm[0] = 2 * LR_PI * draft->radius_mm / draft->places;
        draft->crystal_mm[1] = draft->ring_mm;
        draft->block_mm[0] = per_panel * draft->crystal_mm[0];
        draft->block_mm[1] = draft->per_block[1] * draft->ring_mm;
        first_angle += LR_PI * (per_panel - 1 + draft->missing[0]) / draft->places;
        shift_mm = -0.5 * draft->missing[0] * draft->crystal_mm[0];
    }

    const int rings = (int)draft->rings, panels = (int)draft->places / per_panel;
    const double half[2] = {0.5 * offset_mm(draft, 0, per_panel - 1), 0.5 * offset_mm(draft, 1, rings - 1)};
    for (int ring = 0; ring < rings; ring++) {
        for (int place = 0; place < panels * per_panel; place++) {
            const int k = place / per_panel, n = place % per_panel;
            const double angle = first_angle + 2 * LR_PI * k / panels;
            const double at[2] = {offset_mm(draft, 0, n) - half[0], half[1] - offset_mm(draft, 1, ring)};
            /* Virtual crystals are the first of a block around the ring, and the last along the axis. */
            if (!(n % (int)draft->per_block[0] < draft->missing[0] ||
                  ring % (int)draft->per_block[1] >= (int)draft->per_block[1] - draft->missing[1])) {
                const double s = sin(angle), c = cos(angle);
                const double out = draft->radius_mm + 0.5 * draft->depth_mm, along = at[0] + shift_mm;
                const lr_crystal crystal = {.centre_mm = {out * c - along * s, out * s + along * c, at[1]},
                                            .axes = {{-s, c, 0}, {0, 0, 1}, {c, s, 0}},
                                            .size_mm = {draft->crystal_mm[0], draft->crystal_mm[1], draft->depth_mm},
                                            .group = k};
                LR_TRY(lr_listed_crystals_add(&draft->list, &crystal, draft->text.path, draft->text.log));
            }
        }
    }
    return LR_OK;
}

/* --- the scanner --- */

static lr_scanner *build(struct draft *draft)
{
    lr_crystal_list list = {.name = draft->type[0] != '\0' ? draft->type : "a STIR scanner",
                            .detection_depth_mm = draft->doi_mm,
                            .tof_resolution_ps = fmax(0, draft->tof_ps),
                            .source = "the scanner block of a STIR header\n"
                                      "unverified: crystal sizes, which STIR does not hold",
                            .log = draft->text.log};
    if (strcmp(draft->geometry, "Generic") == 0) {
        if (draft->map[0] == '\0') {
            lr_keyed_text_error(&draft->text, NULL, "a generic scanner needs 'name of crystal map'");
            return NULL;
        }
        char *path = lr_path_beside(draft->text.path, draft->map, draft->text.log);
        if (path == NULL) return NULL;
        list.depth_mm = 2 * draft->doi_mm;
        struct lr_discreet_log discreet;
        lr_log_discreet(&discreet, path, draft->text.path, draft->text.log);
        list.log = &discreet.log;
        lr_scanner *scanner = lr_stir_map_build(path, &list);
        list.log = draft->text.log;
        free(path);
        return scanner;
    }
    const bool buckets = strcmp(draft->geometry, "BlocksOnCylindrical") == 0;
    if (!buckets && strcmp(draft->geometry, "Cylindrical") != 0) {
        lr_keyed_text_error(&draft->text, NULL,
                            "'scanner geometry' is '%.60s': Cylindrical, BlocksOnCylindrical and Generic are known",
                            draft->geometry);
        return NULL;
    }
    draft->depth_mm = draft->doi_mm > 0 ? 2 * draft->doi_mm : usual_depth_mm;
    lr_warn(draft->text.log, "%s: does not say how long the crystals are: %.4g mm%s is taken", draft->text.path,
            draft->depth_mm, draft->doi_mm > 0 ? ", twice the average depth of interaction," : "");
    const int per_panel = (int)draft->per_block[0] * (buckets ? (int)draft->per_bucket[0] : 1);
    if (list_crystals(draft, buckets, per_panel) != LR_OK) return NULL;

    /* The number of bins in sinograms without arc correction gives the least distance between two crystals in
     * coincidence. */
    const int panels = (int)draft->places / per_panel;
    const double apart = 0.5 * (draft->places - draft->bins);
    if (draft->bins > 0 && apart > 0 && panels >= 3) {
        int difference = 0;
        while (difference < panels / 2 && per_panel * difference + per_panel - 1 - draft->missing[0] < apart)
            difference++;
        list.coincidence.min_module_difference = difference;
    }
    if (panels >= 3 && draft->most_difference >= 0 && draft->missing[1] == 0 &&
        draft->most_difference < draft->rings - 1) {
        list.coincidence.limits_ring_difference = true;
        list.coincidence.max_ring_difference = (int)draft->most_difference;
    }

    list.crystals = draft->list.items;
    list.num_crystals = draft->list.count;
    return lr_scanner_from_crystals(&list, NULL, NULL);
}

lr_scanner *lr_stir_header_read(const char *path, const lr_log *log)
{
    struct draft draft = {0};
    lr_scanner *scanner = NULL;
    if (lr_keyed_text_read(&draft.text, path, &dialect, log) == LR_OK && lr_keyed_text_need_end(&draft.text) == LR_OK &&
        lr_keyed_text_judge(&draft.text, &lr_stir_scanner_keys) == LR_OK && read_header(&draft) == LR_OK)
        scanner = build(&draft);
    lr_keyed_text_finish(&draft.text);
    free(draft.list.items);
    return scanner;
}

/* A scanner from STIR's crystal map, which has lines "ring det [layer] x y z" in mm. Positions are used unchanged. The
 * lines have no sizes, but comments may: "# depth_mm: 13" and "# face_mm: 2.12 2.12". */

enum { MAX_LINE = 1024 };

struct map_draft {
    const char *path;
    const lr_log *log;
    struct lr_listed_crystals list;
    double depth_mm, face_mm[2];
    int columns;
};

bool lr_stir_map_recognises(const struct lr_file_head *head)
{
    char line[MAX_LINE];
    double numbers[6];
    for (const char *at = head->bytes; *at != '\0';) {
        const size_t length = strcspn(at, "\r\n");
        snprintf(line, sizeof(line), "%.*s", (int)(length < MAX_LINE ? length : MAX_LINE - 1), at);
        line[strcspn(line, "#")] = '\0';
        if (line[strspn(line, " \t")] != '\0')
            return lr_crystal_map_numbers(line, numbers) > 0 && numbers[0] >= 0 && numbers[1] >= 0;
        at += length + strspn(at + length, "\r\n");
    }
    return false;
}

static lr_status take_line(void *user, const struct lr_crystal_map_line *line)
{
    struct map_draft *draft = user;
    if (line->comment != NULL) {
        const char *depth = strstr(line->comment, "depth_mm:"), *face = strstr(line->comment, "face_mm:");
        double values[2];
        if (depth != NULL && sscanf(depth + 9, "%lf", values) == 1 && values[0] > 0 && isfinite(values[0]))
            draft->depth_mm = values[0];
        if (face != NULL && sscanf(face + 8, "%lf %lf", &values[0], &values[1]) == 2 && values[0] > 0 &&
            values[1] > 0 && isfinite(values[0] + values[1])) {
            draft->face_mm[0] = values[0];
            draft->face_mm[1] = values[1];
        }
    }

    if (line->columns == 0) return LR_OK;
    if (line->columns < 0 || (draft->columns != 0 && line->columns != draft->columns)) {
        return lr_error(draft->log, LR_BAD_INPUT,
                        "%s:%d: a crystal is 'ring det [layer] x y z' with as many columns as in "
                        "the other lines, found '%.60s'",
                        draft->path, line->line, line->text);
    }
    draft->columns = line->columns;
    lr_crystal crystal = {.group = -1};
    memcpy(crystal.centre_mm, &line->numbers[line->columns - 3], sizeof(crystal.centre_mm));
    if (line->columns == 6) {
        if (!(line->numbers[2] >= 0 && line->numbers[2] < LR_MAX_LAYERS &&
              line->numbers[2] == floor(line->numbers[2]))) {
            return lr_error(draft->log, LR_BAD_INPUT,
                            "%s:%d: layers of crystals are whole numbers from 0 to %d, found '%.60s'", draft->path,
                            line->line, LR_MAX_LAYERS - 1, line->text);
        }
        crystal.layer = (int)line->numbers[2];
    }
    return lr_listed_crystals_add(&draft->list, &crystal, draft->path, draft->log);
}

/* --- the scanner of a crystal map --- */

/* Crystals that form no flat panels become modules of one line of crystals along the axis. */
static lr_scanner *create(struct map_draft *draft, const lr_crystal_list *list)
{
    lr_scanner *scanner = lr_listed_crystals_try(list, NULL);
    if (scanner != NULL) return scanner;
    for (int c = 0; c < draft->list.count; c++) {
        lr_crystal *crystal = &draft->list.items[c];
        const double r = hypot(crystal->centre_mm[0], crystal->centre_mm[1]);
        if (r > 0) {
            crystal->axes[2][0] = crystal->centre_mm[0] / r;
            crystal->axes[2][1] = crystal->centre_mm[1] / r;
        }
    }
    scanner = lr_listed_crystals_try(list, NULL);
    if (scanner == NULL) {
        for (int c = 0; c < draft->list.count; c++)
            memset(draft->list.items[c].axes, 0, sizeof(draft->list.items[c].axes));
        return lr_scanner_from_crystals(list, NULL, NULL);
    }
    lr_warn(list->log,
            "%s: its crystals make no flat panels: each line of them that looks at the axis is a "
            "module of its own, %d in all, of crystals %.4g x %.4g mm",
            draft->path, scanner->num_modules, scanner->modules[0].face_mm[0], scanner->modules[0].face_mm[1]);
    return scanner;
}

lr_scanner *lr_stir_map_build(const char *path, const lr_crystal_list *given)
{
    struct map_draft draft = {.path = path, .log = given->log};
    const struct lr_crystal_map_sink sink = {take_line, &draft};
    lr_scanner *scanner = NULL;
    if (lr_crystal_map_lines(path, INT64_MAX, &sink, draft.log) != LR_OK) goto done;
    if (draft.list.count == 0) {
        lr_error(draft.log, LR_BAD_INPUT, "%s: lists no crystals", path);
        goto done;
    }

    /* Maps may number layers from 1, and from either side. Here the front layer is the one nearest to the axis. */
    double radius[LR_MAX_LAYERS] = {0};
    int count[LR_MAX_LAYERS] = {0}, number[LR_MAX_LAYERS] = {0};
    for (int c = 0; c < draft.list.count; c++) {
        const lr_crystal *crystal = &draft.list.items[c];
        radius[crystal->layer] += hypot(crystal->centre_mm[0], crystal->centre_mm[1]);
        count[crystal->layer]++;
    }
    for (int k = 0; k < LR_MAX_LAYERS; k++)
        for (int other = 0; other < LR_MAX_LAYERS; other++)
            number[k] += count[k] > 0 && count[other] > 0 && radius[other] / count[other] < radius[k] / count[k];
    for (int c = 0; c < draft.list.count; c++) draft.list.items[c].layer = number[draft.list.items[c].layer];

    lr_crystal_list list = *given;
    list.crystals = draft.list.items;
    list.num_crystals = draft.list.count;
    list.infers_sizes = true;
    list.depth_mm = draft.depth_mm > 0 ? draft.depth_mm : given->depth_mm;
    for (int k = 0; k < 2; k++) list.face_mm[k] = draft.face_mm[k] > 0 ? draft.face_mm[k] : given->face_mm[k];
    if (!(list.depth_mm > 0)) {
        /* The length of crystals is unknown, so it is set to their spacing. Hits are in the middle of crystals. LORs
         * thus end at the listed positions, as in STIR. */
        const double spacing = lr_crystals_spacing_mm(&list);
        list.depth_mm = fmax(1e-3, round(spacing * 100) / 100);
        list.detection_depth_mm = 0.5 * list.depth_mm;
        lr_warn(list.log,
                "%s: does not say how long crystals are: they are taken as long as they are far from each other, "
                "%.6g mm, and hits are read at the listed places; where these are middles of crystals and hits are "
                "read on their fronts, add the comment '# depth_mm: 20' (with the right number)",
                path, list.depth_mm);
    }
    scanner = create(&draft, &list);

done:
    free(draft.list.items);
    return scanner;
}

lr_scanner *lr_stir_map_read(const char *path, const lr_log *log)
{
    char stem[128];
    const lr_crystal_list list = {.name = lr_path_stem(path, stem), .source = "a STIR crystal map", .log = log};
    return lr_stir_map_build(path, &list);
}
