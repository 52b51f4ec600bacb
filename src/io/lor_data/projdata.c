/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * STIR's projection data: the LORs of each bin, and headers. */
#include "io/lor_data/projdata.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/units.h"
#include "io/files/keyed_text.h"
#include "io/files/number_type.h"
#include "io/files/regular_file.h"
#include "io/scanners/crystal_map.h"
#include "io/scanners/scanner_formats.h"

#include <ctype.h>
#include <lr/lr.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Returns the scanner's crystal ring for a ring of the sinogram numbering, or -1 for a virtual ring. */
static int own_ring(const struct lr_sinogram_rings *rings, const lr_scanner *scanner, int ring)
{
    for (int place = 0; place < rings->around; place++) {
        const int32_t crystal = rings->crystals[(int64_t)ring * rings->around + place];
        if (crystal >= 0) {
            const int m = lr_scanner_module_of(scanner, crystal);
            const lr_module *module = &scanner->modules[m];
            return module->first_crystal_ring + (crystal - scanner->first_crystal[m]) / module->crystals[0];
        }
    }
    return -1;
}

void lr_projdata_reach(const struct lr_projdata *projdata, const lr_lors *lors, int reach[2])
{
    const struct lr_sinogram_rings *rings = &projdata->rings;
    const lr_scanner *scanner = lors->scanner;

    /* Finds the largest abs(t), which is the same for all rings. */
    reach[0] = 0;
    for (int a = 0; a < rings->around; a++) {
        for (int b = 0; b < a; b++) {
            const int32_t first = rings->crystals[a], second = rings->crystals[b];
            const int64_t lor = first >= 0 && second >= 0 ? lr_lors_number(lors, first, second) : -1;
            if (lor >= 0 && lr_lors_in_coincidence(lors, lor)) {
                struct lr_sinogram_bin bin;
                (void)lr_sinogram_bin_of(rings->around, (int[2]){a, b}, &bin);
                reach[0] = abs(bin.t) > reach[0] ? abs(bin.t) : reach[0];
            }
        }
    }

    reach[1] = scanner->coincidence.limits_ring_difference ? 0 : rings->rings - 1;
    for (int a = 0; a < rings->rings && scanner->coincidence.limits_ring_difference; a++) {
        const int own = own_ring(rings, scanner, a);
        for (int b = a + 1; b < rings->rings && own >= 0; b++) {
            const int other = own_ring(rings, scanner, b);
            if (other >= 0 && abs(own - other) <= scanner->coincidence.max_ring_difference)
                reach[1] = b - a > reach[1] ? b - a : reach[1];
        }
    }
}

lr_status lr_projdata_create(struct lr_projdata *projdata, const lr_lors *lors, const lr_log *log)
{
    const lr_scanner *scanner = lors->scanner;
    struct lr_sinogram_rings *rings = &projdata->rings;
    struct lr_sinogram_gaps gaps;
    *projdata = (struct lr_projdata){0};
    LR_TRY(lr_sinogram_gaps_of(scanner, &gaps, log));
    LR_TRY(lr_sinogram_rings_create(rings, scanner, &gaps, scanner->name, log));

    /* The ring begins with the module whose first place is nearest to 90 degrees, the top in STIR. */
    const double module_deg = 360.0 / rings->modules;
    const int modules = (int)lround(lr_wrapped_deg(90.0 - rings->first_angle_deg) / module_deg);
    const lr_status status = lr_sinogram_rings_turn(rings, modules * (rings->around / rings->modules), log);
    if (status != LR_OK) {
        lr_projdata_finish(projdata);
        return status;
    }
    projdata->view_offset_deg = lr_wrapped_deg(rings->first_angle_deg - 90.0);
    if (fabs(projdata->view_offset_deg) < 1e-9) projdata->view_offset_deg = 0.0;

    int reach[2];
    lr_projdata_reach(projdata, lors, reach);
    projdata->views = rings->around / 2;
    projdata->mashing = 1;
    projdata->first_t = -reach[0];
    projdata->num_t = 2 * reach[0] + 1;
    projdata->num_segments = 2 * reach[1] + 1;
    projdata->segments = lr_alloc(projdata->num_segments, sizeof(*projdata->segments), "segments", log);
    if (projdata->segments == NULL) {
        lr_projdata_finish(projdata);
        return LR_FAILED;
    }
    for (int k = 0; k < projdata->num_segments; k++) {
        const int number = k - reach[1];
        projdata->segments[k] = (struct lr_projdata_segment){number, number, rings->rings - abs(number), number};
    }
    return LR_OK;
}

void lr_projdata_finish(struct lr_projdata *projdata)
{
    lr_sinogram_rings_finish(&projdata->rings);
    free(projdata->segments);
    *projdata = (struct lr_projdata){0};
}

int64_t lr_projdata_num_bins(const struct lr_projdata *projdata)
{
    int64_t planes = 0;
    for (int k = 0; k < projdata->num_segments; k++) planes += projdata->segments[k].num_axial;
    return planes * projdata->views * projdata->num_t;
}

/* STIR's ProjDataInfoCylindrical: axial positions are symmetric about the scanner's middle. Neighbouring positions are
 * half a ring apart if ring differences are combined, else a whole ring. */
int lr_projdata_ring_pairs(const struct lr_projdata *projdata, const struct lr_projdata_segment *segment, int axial,
                           int (*pairs)[2])
{
    const int rings = projdata->rings.rings;
    const int step = segment->least == segment->most ? 2 : 1;
    const int sum = rings - 1 + (step * (2 * axial - (segment->num_axial - 1))) / 2;
    int count = 0;
    for (int difference = segment->least; difference <= segment->most; difference++) {
        const int first = (sum - difference) / 2, second = sum - first;
        if ((sum - difference) % 2 == 0 && first >= 0 && first < rings && second >= 0 && second < rings &&
            count < rings) {
            pairs[count][0] = first;
            pairs[count++][1] = second;
        }
    }
    return count;
}

int32_t (*lr_projdata_places(const struct lr_projdata *projdata, const lr_scanner *scanner, const lr_log *log))[2]
{
    const struct lr_sinogram_rings *rings = &projdata->rings;
    int32_t(*places)[2] = lr_alloc(scanner->num_crystals, sizeof(*places), "crystal places", log);
    for (int64_t k = 0; places != NULL && k < (int64_t)rings->rings * rings->around; k++) {
        if (rings->crystals[k] >= 0) {
            places[rings->crystals[k]][0] = (int32_t)(k % rings->around);
            places[rings->crystals[k]][1] = (int32_t)(k / rings->around);
        }
    }
    return places;
}

bool lr_projdata_bin_of(const struct lr_projdata *projdata, const int32_t (*places)[2], const int32_t crystals[2],
                        struct lr_projdata_bin *bin)
{
    const int32_t *a = places[crystals[0]], *b = places[crystals[1]];
    struct lr_sinogram_bin found;
    if (a[0] == b[0]) return false;
    const bool swapped = lr_sinogram_bin_of(projdata->rings.around, (int[2]){a[0], b[0]}, &found);
    const int first = swapped ? b[1] : a[1], second = swapped ? a[1] : b[1];
    *bin = (struct lr_projdata_bin){second - first, first < second ? first : second, found.view, found.t};
    return abs(bin->segment) <= projdata->num_segments / 2 && found.t >= projdata->first_t &&
           found.t < projdata->first_t + projdata->num_t;
}

/* --- headers --- */

/* A header being read. */
struct draft {
    const struct lr_keyed_text *file;
    const lr_scanner *scanner;
    struct lr_projdata *projdata;
};

/* True if an axis has this label. Ignores case and the lengths of runs of blanks. label: in lower case. */
static bool label_is(const struct draft *draft, int axis, const char *label)
{
    const char *found = lr_interfile_text(draft->file, "matrix axis label", axis);
    for (; found != NULL; found++, label++) {
        while (isblank((unsigned char)found[0]) && (isblank((unsigned char)found[1]) || found[1] == '\0')) found++;
        const int letter = isblank((unsigned char)*found) ? ' ' : tolower((unsigned char)*found);
        if (letter != *label || *label == '\0') return letter == *label;
    }
    return false;
}

/* --- the scanner --- */

/* Angle at which the ring begins. If crystals are in blocks, this is the angle of the first crystal. Otherwise it is
 * the angle of place 0, and the places are evenly spaced. */
static double begin_deg(const struct draft *draft, bool blocks)
{
    const struct lr_sinogram_rings *rings = &draft->projdata->rings;
    for (int place = 0; blocks && place < rings->rings * rings->around; place += rings->around) {
        const int32_t crystal = rings->crystals[place];
        if (crystal >= 0) {
            double centre_mm[3];
            const int m = lr_scanner_module_of(draft->scanner, crystal);
            const lr_module *module = &draft->scanner->modules[m];
            const int within = crystal - draft->scanner->first_crystal[m];
            lr_module_crystal_centre(module, within % module->crystals[0], within / module->crystals[0], centre_mm);
            return atan2(centre_mm[1], centre_mm[0]) * 180.0 / LR_PI;
        }
    }
    return rings->first_angle_deg;
}

/* Turns the numbering in steps of `unit` places, so that its first place is the nearest one to the header's det 0. If
 * crystals are in blocks, the position of det 0 in its bucket follows from the header's distances. */
static lr_status turn(const struct draft *draft, int unit, bool blocks)
{
    double first_deg = 0;
    struct lr_sinogram_rings *rings = &draft->projdata->rings;
    struct lr_stir_bucket bucket = {.blocks = 1, .crystals = rings->around / rings->modules};
    double inner_cm = 0, depth_cm = 0, first;
    const struct {
        const char *key;
        double *value;
    } keys[] = {{"number of blocks per bucket in transaxial direction", &bucket.blocks},
                {"number of crystals per block in transaxial direction", &bucket.crystals},
                {"distance between crystals in transaxial direction (cm)", &bucket.crystal_mm},
                {"distance between blocks in transaxial direction (cm)", &bucket.block_mm},
                {"inner ring diameter (cm)", &inner_cm},
                {"average depth of interaction (cm)", &depth_cm}};
    for (size_t k = 0; blocks && k < sizeof(keys) / sizeof(keys[0]); k++)
        LR_TRY(lr_interfile_number(draft->file, keys[k].key, 0, keys[k].value));
    bucket.crystal_mm *= 10;
    bucket.block_mm *= 10;
    bucket.radius_mm = 5 * inner_cm + 10 * depth_cm;
    bucket.count = rings->around / fmax(1, bucket.blocks * bucket.crystals);
    if (blocks && bucket.crystal_mm > 0 && bucket.block_mm > 0 && bucket.radius_mm > 0 && bucket.blocks >= 1) {
        lr_stir_bucket_turn(&bucket, &first);
        first_deg = first * 180.0 / LR_PI;
    }

    const lr_log *log = draft->file->log;
    const double target_deg = 90.0 + draft->projdata->view_offset_deg + first_deg;
    const double unit_deg = unit * 360.0 / rings->around, place_deg = 360.0 / rings->around;
    const int units = (int)lround(lr_wrapped_deg(target_deg - begin_deg(draft, blocks)) / unit_deg);
    LR_TRY(lr_sinogram_rings_turn(rings, units * unit, log));
    const double off_deg = lr_wrapped_deg(begin_deg(draft, blocks) - target_deg);
    if (fabs(off_deg) > 0.51 * place_deg) {
        return lr_error(log, LR_BAD_INPUT,
                        "%s: its first detector stands at %.3f degrees in our frame, where %s has "
                        "no module that begins within half a crystal (the nearest: %.3f degrees "
                        "further): check first_angle_deg of the scanner",
                        draft->file->path, lr_wrapped_deg(target_deg), draft->scanner->name, off_deg);
    }
    if (fabs(off_deg) > 0.1 * place_deg) {
        lr_warn(log,
                "%s: its first detector stands %.3f degrees (%.2f crystals) before that of %s: "
                "check first_angle_deg of the scanner",
                draft->file->path, off_deg, off_deg / place_deg, draft->scanner->name);
    }
    return LR_OK;
}

enum geometry { CYLINDRICAL, BLOCKS, GENERIC };

static lr_status find_rings(struct draft *draft)
{
    const struct lr_keyed_text *file = draft->file;
    static const char *const words[] = {"Cylindrical", "BlocksOnCylindrical", "Generic"};
    struct lr_sinogram_gaps gaps = {0, 0};
    int64_t wanted[2] = {-1, -1};

    /* The key in STIR's headers includes the possible words; headers of other programs may lack these words. */
    const char *value = lr_interfile_text(file, "scanner geometry (blocksoncylindrical/cylindrical/generic)", 0);
    value = value != NULL ? value : lr_interfile_text(file, "scanner geometry", 0);
    int geometry = CYLINDRICAL;
    if (value != NULL && *value != '\0')
        while (geometry <= GENERIC && strcasecmp(value, words[geometry]) != 0) geometry++;
    if (geometry > GENERIC) {
        return lr_error(file->log, LR_BAD_INPUT,
                        "%s: 'scanner geometry' is '%.60s': Cylindrical, BlocksOnCylindrical and Generic are known",
                        file->path, value);
    }

    const char *type = lr_interfile_text(file, "scanner type", 0);
    type = type != NULL ? type : lr_interfile_text(file, "originating system", 0);
    LR_TRY(lr_interfile_integer(file, "number of rings", 0, &wanted[1]));
    lr_stir_scanner_known(type != NULL ? type : "", wanted);
    LR_TRY(lr_interfile_integer(file, "number of detectors per ring", 0, &wanted[0]));
    LR_TRY(lr_interfile_integer(file, "number of rings", 0, &wanted[1]));
    LR_TRY(lr_interfile_number(file, "view offset (degrees)", 0, &draft->projdata->view_offset_deg));
    if (wanted[0] < 1 || wanted[1] < 1) {
        return lr_keyed_text_error(draft->file, NULL,
                                   "does not say the number of rings and of detectors per ring of its scanner");
    }
    LR_TRY(lr_sinogram_gaps_for(draft->scanner, wanted, &gaps, file->path, file->log));
    struct lr_sinogram_rings *rings = &draft->projdata->rings;
    LR_TRY(lr_sinogram_rings_create(rings, draft->scanner, &gaps, file->path, file->log));
    if (geometry == GENERIC) {
        /* STIR's map gives the crystals' places, as for SAFIR list mode. The map's coordinates are taken as LORaster's
         * coordinates. */
        const char *name = lr_interfile_text(file, "name of crystal map", 0);
        if (name == NULL || *name == '\0')
            return lr_keyed_text_error(draft->file, NULL, "places its crystals by a map that it does not name");
        char *path = lr_path_beside(file->path, name, file->log);
        if (path == NULL) return LR_FAILED;
        struct lr_discreet_log discreet;
        struct lr_crystal_map map = {0};
        lr_log_discreet(&discreet, path, file->path, file->log);
        const struct lr_c_locale locale = lr_c_locale_enter();
        const lr_status status = lr_crystal_map_read(path, draft->scanner, &map, &discreet.log);
        lr_c_locale_leave(locale);
        free(path);
        LR_TRY(status);
        for (int64_t k = 0; k < (int64_t)rings->rings * rings->around; k++) {
            const unsigned ring = (unsigned)(k / rings->around), place = (unsigned)(k % rings->around);
            rings->crystals[k] = lr_crystal_map_find(&map, lr_crystal_key(ring, place, 0));
        }
        lr_crystal_map_finish(&map);
        return LR_OK;
    }
    const bool blocks = geometry == BLOCKS;
    /* If there are neither virtual crystals around the ring nor blocks, the ring may begin with any crystal of a
       module. */
    return turn(draft, gaps.around > 0 || blocks ? rings->around / rings->modules : 1, blocks);
}

/* --- bins --- */

static lr_status find_bins(const struct draft *draft)
{
    const struct lr_keyed_text *file = draft->file;
    struct lr_projdata *projdata = draft->projdata;
    const int around = projdata->rings.around, all = around / 2;
    const bool by_view = label_is(draft, 2, "axial coordinate") && label_is(draft, 3, "view");
    const bool by_plane = label_is(draft, 2, "view") && label_is(draft, 3, "axial coordinate");
    int64_t views = 0, bins = 0;
    if (!(by_view || by_plane) || !label_is(draft, 4, "segment")) {
        return lr_keyed_text_error(draft->file, NULL,
                                   "its axes must be tangential coordinate, view and axial coordinate in "
                                   "either order, and segment");
    }
    LR_TRY(lr_interfile_integer(file, "matrix size", 1, &bins));
    LR_TRY(lr_interfile_integer(file, "matrix size", by_view ? 3 : 2, &views));
    if (views < 1 || views > all || all % views != 0) {
        return lr_error(file->log, LR_BAD_INPUT,
                        "%s: has %lld views where %d detectors per ring have %d, or whole parts of that", file->path,
                        (long long)views, around, all);
    }
    if (bins < 1 || bins > around) {
        return lr_error(file->log, LR_BAD_INPUT,
                        "%s: has %lld tangential positions, where %d detectors per ring have at most as many",
                        file->path, (long long)bins, around);
    }
    projdata->by_view = by_view;
    projdata->views = (int)views;
    projdata->mashing = all / (int)views;
    projdata->num_t = (int)bins;
    projdata->first_t = -(projdata->num_t / 2);

    const struct {
        const char *key;
        int axis;
    } keys[3] = {{"minimum ring difference per segment", 0},
                 {"maximum ring difference per segment", 0},
                 {"matrix size", by_view ? 2 : 3}};
    int64_t *lists[3] = {NULL, NULL, NULL}, counts[3] = {0, 0, 0};
    lr_status status = LR_OK;
    for (int k = 0; k < 3 && status == LR_OK; k++)
        status = lr_interfile_integers(file, keys[k].key, keys[k].axis, &lists[k], &counts[k]);
    /* The smallest and largest ring differences and the numbers of axial positions, in the order of the data. */
    const int64_t count = counts[0], rings = projdata->rings.rings;
    if (status == LR_OK && (count < 1 || counts[1] != count || counts[2] != count || count > 2 * rings)) {
        status = lr_keyed_text_error(file, NULL,
                                     "lists %lld least and %lld largest ring differences and %lld numbers of axial "
                                     "positions: there must be as many of each, one a segment",
                                     (long long)counts[0], (long long)counts[1], (long long)counts[2]);
    }
    if (status == LR_OK) {
        projdata->num_segments = (int)count;
        projdata->segments = lr_alloc(count, sizeof(*projdata->segments), "segments", file->log);
        status = projdata->segments != NULL ? LR_OK : LR_FAILED;
    }
    for (int64_t k = 0; status == LR_OK && k < count; k++) {
        const int64_t least = lists[0][k], most = lists[1][k], axial = lists[2][k];
        const bool sane = least <= most && -rings < least && most < rings && axial >= 1;
        const int64_t nearest = least > 0 ? least : most < 0 ? -most : 0;
        const int64_t room = least == most ? rings - nearest : 2 * (rings - nearest) - 1;
        projdata->segments[k] = (struct lr_projdata_segment){(int)least, (int)most, (int)axial, 0};
        if (!sane || axial > room || (least == most && (room - axial) % 2 != 0) || (least != most && axial % 2 == 0)) {
            status = lr_keyed_text_error(file, NULL,
                                         "segment %lld of the file has ring differences %lld to %lld and %lld axial "
                                         "positions: %lld rings have no such segment",
                                         (long long)k + 1, (long long)least, (long long)most, (long long)axial,
                                         (long long)rings);
        }
    }
    for (int k = 0; k < 3; k++) free(lists[k]);
    return status;
}

/* --- the file --- */

static lr_status read_draft(struct draft *draft, struct lr_projdata_file *data)
{
    int64_t layers = 1;
    if (!draft->file->has_start)
        return lr_keyed_text_error(draft->file, NULL, "does not begin with '!INTERFILE', so it is no Interfile header");
    LR_TRY(lr_keyed_text_need_end(draft->file));
    if (!label_is(draft, 1, "tangential coordinate")) {
        return lr_keyed_text_error(draft->file, NULL,
                                   "describes no projection data as STIR writes them: its first axis is "
                                   "not labelled 'tangential coordinate'");
    }
    int64_t dimensions = 4;
    LR_TRY(lr_interfile_integer(draft->file, "number of dimensions", 0, &dimensions));
    if (dimensions == 5 || label_is(draft, 5, "timing positions")) {
        return lr_keyed_text_error(draft->file, NULL,
                                   "has bins of time of flight, and LOR data have none: sum them over "
                                   "the timing positions first");
    }

    /* Searches the corrections for an arc correction. STIR treats a header without this key as corrected. */
    const char *corrections = lr_interfile_text(draft->file, "applied corrections", 0);
    bool corrected = corrections == NULL;
    for (const char *at = corrections; at != NULL && *at != '\0'; at++)
        corrected = corrected || strncasecmp(at, "arc corr", 8) == 0 || strncasecmp(at, "arc_corr", 8) == 0;
    if (corrected) {
        return lr_keyed_text_error(draft->file, NULL,
                                   "is arc-corrected (or does not say that it is not, by "
                                   "'applied corrections := {None}'): its bins are no longer "
                                   "pairs of crystals; give the data before that correction");
    }

    LR_TRY(lr_interfile_integer(draft->file, "number of detector layers", 0, &layers));
    if (layers > 1) return lr_keyed_text_error(draft->file, NULL, "has several detector layers: give one of them");
    LR_TRY(lr_keyed_text_judge(draft->file, &lr_stir_data_keys));

    LR_TRY(find_rings(draft));
    LR_TRY(find_bins(draft));
    data->scale = 1.0;
    LR_TRY(lr_interfile_number_type(draft->file, &data->type, &data->offset_bytes));
    const char *units = lr_interfile_text(draft->file, "quantification units", 0);
    if (units != NULL && strspn(units, "+-.0123456789") > 0) /* a factor, not the name of a unit */
        LR_TRY(lr_interfile_number(draft->file, "quantification units", 0, &data->scale));
    LR_TRY(lr_interfile_number(draft->file, "image scaling factor", 0, &data->scale));
    LR_TRY(lr_interfile_number(draft->file, "image scaling factor", 1, &data->scale));
    data->data_path = lr_interfile_data_path(draft->file);
    return data->data_path != NULL ? LR_OK : LR_BAD_INPUT;
}

lr_status lr_projdata_read(struct lr_projdata *projdata, struct lr_projdata_file *file, const char *path,
                           const lr_scanner *scanner, const lr_log *log)
{
    struct lr_keyed_text header;
    *projdata = (struct lr_projdata){0};
    *file = (struct lr_projdata_file){0};
    LR_TRY(lr_keyed_text_read(&header, path, &lr_interfile_dialect, log));
    struct draft draft = {.file = &header, .scanner = scanner, .projdata = projdata};
    const lr_status status = read_draft(&draft, file);
    if (status != LR_OK) {
        lr_projdata_finish(projdata);
        free(file->data_path);
        file->data_path = NULL;
    }
    lr_keyed_text_finish(&header);
    return status;
}

/* --- writing --- */

/* Prints a name. Characters that would end the line become spaces. */
static void print_name(struct lr_text *text, const char *key, const char *name)
{
    (void)lr_text_print(text, "%s := ", key);
    for (; *name != '\0'; name++) (void)lr_text_print(text, "%c", (unsigned char)*name < ' ' ? ' ' : *name);
    (void)lr_text_print(text, "\n");
}

static void print_list(struct lr_text *text, const char *key, const struct lr_projdata *projdata, int which)
{
    (void)lr_text_print(text, "%s := {", key);
    for (int k = 0; k < projdata->num_segments; k++) {
        const struct lr_projdata_segment *segment = &projdata->segments[k];
        const int number = which == 0 ? segment->num_axial : which == 1 ? segment->least : segment->most;
        (void)lr_text_print(text, "%s%d", k > 0 ? "," : "", number);
    }
    (void)lr_text_print(text, "}\n");
}

char *lr_projdata_print(const struct lr_projdata *projdata, const lr_scanner *scanner, const char *data_name,
                        const lr_log *log)
{
    const struct lr_sinogram_rings *rings = &projdata->rings;
    const double radius_mm = rings->radius_mm + scanner->detection_depth_mm;
    const double bin_cm = 0.1 * radius_mm * LR_PI / rings->around;
    struct lr_text text = {.what = "a header", .log = log};
    const struct lr_c_locale locale = lr_c_locale_enter();
    (void)lr_text_print(&text, "!INTERFILE :=\n!imaging modality := PT\n");
    (void)lr_text_print(&text, "; written by LORaster %s\n", lr_version());
    print_name(&text, "name of data file", data_name);
    print_name(&text, "originating system", scanner->name);
    (void)lr_text_print(&text, "!version of keys := STIR4.0\n!GENERAL DATA :=\n!GENERAL IMAGE DATA :=\n"
                               "!type of data := PET\nimagedata byte order := LITTLEENDIAN\n"
                               "!PET STUDY (General) :=\n!PET data type := Emission\n"
                               "applied corrections := {None}\n!number format := float\n"
                               "!number of bytes per pixel := 4\nnumber of dimensions := 4\n"
                               "matrix axis label [4] := segment\n");
    (void)lr_text_print(&text, "!matrix size [4] := %d\n", projdata->num_segments);
    (void)lr_text_print(&text, "matrix axis label [3] := axial coordinate\n");
    print_list(&text, "!matrix size [3]", projdata, 0);
    (void)lr_text_print(&text, "matrix axis label [2] := view\n!matrix size [2] := %d\n", projdata->views);
    (void)lr_text_print(&text, "matrix axis label [1] := tangential coordinate\n!matrix size [1] := %d\n",
                        projdata->num_t);
    print_list(&text, "minimum ring difference per segment", projdata, 1);
    print_list(&text, "maximum ring difference per segment", projdata, 2);

    /* Lengths are in cm. The bin in the middle is as wide as half the angle between crystals. */
    (void)lr_text_print(&text, "Scanner parameters :=\n");
    (void)lr_text_print(&text, "Scanner type := Unknown\n");
    (void)lr_text_print(&text, "Number of rings := %d\n", rings->rings);
    (void)lr_text_print(&text, "Number of detectors per ring := %d\n", rings->around);
    (void)lr_text_print(&text, "Inner ring diameter (cm) := %.9g\n", 0.2 * rings->radius_mm);
    (void)lr_text_print(&text, "Average depth of interaction (cm) := %.9g\n", 0.1 * scanner->detection_depth_mm);
    (void)lr_text_print(&text, "Distance between rings (cm) := %.9g\n", 0.1 * rings->ring_pitch_mm);
    (void)lr_text_print(&text, "Default bin size (cm) := %.9g\n", bin_cm);
    (void)lr_text_print(&text, "View offset (degrees) := %.9g\n", projdata->view_offset_deg);
    (void)lr_text_print(&text, "Maximum number of non-arc-corrected bins := %d\n", projdata->num_t);
    (void)lr_text_print(&text, "Default number of arc-corrected bins := %d\n", projdata->num_t);
    (void)lr_text_print(&text, "Number of blocks per bucket in transaxial direction := 1\n");
    (void)lr_text_print(&text, "Number of blocks per bucket in axial direction := 1\n");
    (void)lr_text_print(&text, "Number of crystals per block in axial direction := %d\n", rings->rings);
    (void)lr_text_print(&text, "Number of crystals per block in transaxial direction := %d\n",
                        rings->around / rings->modules);
    (void)lr_text_print(&text, "Number of detector layers := 1\n");
    (void)lr_text_print(&text, "Number of crystals per singles unit in axial direction := 1\n");
    (void)lr_text_print(&text, "Number of crystals per singles unit in transaxial direction := 1\n");
    (void)lr_text_print(&text, "end scanner parameters :=\n");
    (void)lr_text_print(&text, "effective central bin size (cm) := %.9g\n", bin_cm);
    (void)lr_text_print(&text, "number of time frames := 1\n!END OF INTERFILE :=\n");

    lr_c_locale_leave(locale);
    if (text.failed) {
        free(text.chars);
        return NULL;
    }
    return text.chars;
}
