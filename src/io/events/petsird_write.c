/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The writer of PETSIRD files. The writer sorts modules of the scanner into types of equal modules, and writes the
 * header. While events arrive, it writes a time block for each millisecond that has events. */
#include "base/clean_text.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/order.h"
#include "base/path.h"
#include "base/units.h"
#include "base/vec.h"
#include "io/events/event_stream.h"
#include "io/events/petsird.h"
#include "io/files/keyed_text.h"
#include "io/files/yardl.h"
#include "io/scanners/scanner_formats.h"
#include "model/scanner/scanner.h"

#include <stdlib.h>
#include <string.h>

/* Time-of-flight bins of events from crystals of two kinds. */
struct tof_bins {
    float *edges_mm; /* owned [num_edges]; two edges = no time of flight */
    int num_edges;
    double resolution_mm; /* FWHM; 0 = none */
    bool is_given;        /* the source gives these bins, and tof_mm of each event is the middle of a bin */
    bool is_mirrored;     /* the bins of (b, a) mirror the bins of (a, b), to 1e-3 mm */
};

/* Layout of a scanner in the file. Kinds are the kinds of the source's crystals (lr_event_kinds), or a single kind. */
struct layout {
    const lr_lors *lors;
    int num_types;
    int *type_of;  /* owned [num_modules] */
    int *index_of; /* owned [num_modules], index of a module within its type */
    int *example;  /* owned [num_types], first module of a type */
    int *count;    /* owned [num_types], number of modules of a type */
    int *kind_of;  /* owned [num_types] */
    int num_kinds;
    struct tof_bins *bins;   /* owned [num_kinds][num_kinds] */
    double (*energy_kev)[2]; /* owned [num_kinds] */
    int minor;               /* minor version of the schema: 9, 10 or 12 */
};

/* Width of bins in mm if no resolution is given: half the distance that light travels in 20 ps. */
static const double usual_bin_mm = 3;
static const double any_energy_kev = 1022;
static const double equal_mm = 5e-5;

static const double mirror_mm = 1e-3;

enum { BINS_PER_RESOLUTION = 5, MAX_BINS = 1 << 16 };

/* --- types --- */

/* Sorts modules into types. Modules of one type need to be equal only in single precision, because fitted modules
 * differ in the last digits. All crystals of a type are of one kind. Crystals without a kind count as kind 0. */
static lr_status sort_modules(struct layout *layout, const lr_events_info *info, const lr_log *log)
{
    const lr_scanner *scanner = layout->lors->scanner;
    for (int m = 0; m < scanner->num_modules; m++) {
        const lr_module *a = &scanner->modules[m];
        int kind = LR_EVENTS_NO_KIND;
        for (int c = scanner->first_crystal[m]; info != NULL && c < scanner->first_crystal[m + 1]; c++) {
            const int own = c < info->kinds.num_crystals ? info->kinds.kind_of[c] : LR_EVENTS_NO_KIND;
            if (own != LR_EVENTS_NO_KIND && kind != LR_EVENTS_NO_KIND && own != kind) {
                return lr_error(log, LR_BAD_INPUT,
                                "module %d of %s has crystals of the source's module types %d and %d, "
                                "whose times of flight or energies differ: a PETSIRD module cannot "
                                "hold both, take the source's own scanner",
                                m, scanner->name, kind, own);
            }
            kind = own != LR_EVENTS_NO_KIND ? own : kind;
        }
        if (kind == LR_EVENTS_NO_KIND) kind = 0;

        int type = 0;
        for (; type < layout->num_types; type++) {
            const lr_module *b = &scanner->modules[layout->example[type]];
            bool equal = layout->kind_of[type] == kind && fabs(a->depth_mm - b->depth_mm) < equal_mm &&
                         lr_module_is_mirrored(a) == lr_module_is_mirrored(b);
            for (int k = 0; k < 2; k++) {
                equal = equal && a->crystals[k] == b->crystals[k] &&
                        fabs(a->pitch_mm[k] - b->pitch_mm[k]) * a->crystals[k] < equal_mm &&
                        fabs(a->face_mm[k] - b->face_mm[k]) < equal_mm;
            }
            if (equal) break;
        }
        if (type == LR_PETSIRD_MAX_TYPES) {
            return lr_error(log, LR_USAGE,
                            "%s has modules of more than %d kinds, which are too many for a PETSIRD file",
                            scanner->name, LR_PETSIRD_MAX_TYPES);
        }
        if (type == layout->num_types) {
            layout->kind_of[type] = kind;
            layout->example[layout->num_types++] = m;
        }
        layout->type_of[m] = type;
        layout->index_of[m] = layout->count[type]++;
    }
    return LR_OK;
}

/* --- bins --- */

/* Copies edges. If edges_mm is NULL, makes `count` bins of width_mm around 0. */
static lr_status set_edges(struct tof_bins *bins, const float *edges_mm, int count, double width_mm, const lr_log *log)
{
    bins->num_edges = count + 1;
    bins->is_given = edges_mm != NULL;
    bins->edges_mm = lr_alloc(bins->num_edges, sizeof(*bins->edges_mm), "edges", log);
    if (bins->edges_mm == NULL) return LR_FAILED;
    if (edges_mm != NULL)
        memcpy(bins->edges_mm, edges_mm, (size_t)bins->num_edges * sizeof(*bins->edges_mm));
    else
        for (int k = 0; k <= count; k++) bins->edges_mm[k] = (float)((k - 0.5 * count) * width_mm);
    return LR_OK;
}

/* Upper bound of the distance between the origin and any crystal. */
static double find_reach(const lr_scanner *scanner)
{
    double reach = 0;
    for (int m = 0; m < scanner->num_modules; m++) {
        const lr_module *module = &scanner->modules[m];
        reach = fmax(reach, vec_length(module->centre_mm) + lr_module_radius_mm(module) + module->depth_mm);
    }
    return reach;
}

/* Number of bins on each side of 0. They cover the longest line and, beyond it, twice the FWHM of the time resolution,
 * which are 4.7 standard deviations. */
static int half_of_bins(double reach, double resolution_mm, double bin_mm)
{
    return (int)fmin(ceil((reach + 2 * resolution_mm) / bin_mm), MAX_BINS / 2);
}

double lr_events_window_mm(const lr_scanner *scanner, double tof_resolution_ps)
{
    const double resolution_mm = LR_MM_PER_PS * tof_resolution_ps, bin_mm = resolution_mm / BINS_PER_RESOLUTION;
    return (2 * half_of_bins(find_reach(scanner), resolution_mm, bin_mm) + 1) * bin_mm;
}

/* Takes the time-of-flight bins from the source. If the source gives no bins, chooses bins. */
static lr_status set_bins(struct layout *layout, const lr_events_info *info, const lr_log *log)
{
    const lr_scanner *scanner = layout->lors->scanner;
    const double reach = find_reach(scanner);
    const int num_kinds = info != NULL ? info->kinds.count : 0;
    for (int k = 0; k < num_kinds * num_kinds; k++) {
        const lr_tof_bins *from = &info->kinds.tof[k];
        layout->bins[k].resolution_mm = LR_MM_PER_PS * from->resolution_ps;
        LR_TRY(from->num_bins > 0 ? set_edges(&layout->bins[k], from->edges_mm, from->num_bins, 0, log)
                                  : set_edges(&layout->bins[k], NULL, 1, 2 * reach, log));
    }
    if (num_kinds > 0) return LR_OK;

    struct tof_bins *bins = layout->bins;
    bins->resolution_mm = LR_MM_PER_PS * (info != NULL && info->tof_resolution_ps > 0 ? info->tof_resolution_ps
                                                                                      : scanner->tof_resolution_ps);
    if (info == NULL || !info->has_tof) return set_edges(bins, NULL, 1, 2 * reach, log);
    if (info->num_tof_bins > 0) return set_edges(bins, info->tof_edges_mm, info->num_tof_bins, 0, log);
    const double bin_mm = info->tof_bin_mm > 0      ? info->tof_bin_mm
                          : bins->resolution_mm > 0 ? bins->resolution_mm / BINS_PER_RESOLUTION
                                                    : usual_bin_mm;
    /* If the source's range holds an even number of bins, an edge is at 0. Otherwise the middle of a bin is at 0. */
    const bool is_even =
        info->tof_bin_mm > 0 && fabs(remainder(info->tof_range_mm / bin_mm, 2.0)) < 0.01 && info->tof_range_mm > 0;
    const int half = half_of_bins(reach, bins->resolution_mm, bin_mm);
    const int count = is_even ? 2 * half : 2 * half + 1;
    lr_info(log, "times of flight are written in %d bins of %.4g mm", count, bin_mm);
    return set_edges(bins, NULL, count, bin_mm, log);
}

/* Time-of-flight bins for events of two module types of the file. */
static const struct tof_bins *bins_of_types(const struct layout *layout, int a, int b)
{
    return &layout->bins[layout->kind_of[a] * layout->num_kinds + layout->kind_of[b]];
}

/* Lays out the scanner. errors: LR_USAGE for more than 64 types of modules; LR_BAD_INPUT for a module with crystals of
 * two kinds; LR_FAILED if memory runs out. Finish the layout in any case. */
static lr_status init_layout(struct layout *layout, const lr_events_writer_params *params)
{
    const lr_events_info *info = params->info;
    const bool differ = info != NULL && info->kinds.count > 0;
    *layout = (struct layout){
        .lors = params->lors,
        .num_kinds = differ ? info->kinds.count : 1,
        .minor = params->petsird_minor != 0 ? params->petsird_minor : 12,
    };
    const lr_log *log = params->log;
    const int modules = layout->lors->scanner->num_modules, kinds = layout->num_kinds;
    layout->type_of = lr_alloc(modules, sizeof(int), "types of modules", log);
    layout->index_of = lr_alloc(modules, sizeof(int), "types of modules", log);
    layout->example = lr_alloc(LR_PETSIRD_MAX_TYPES, sizeof(int), "types", log);
    layout->count = lr_alloc(LR_PETSIRD_MAX_TYPES, sizeof(int), "types", log);
    layout->kind_of = lr_alloc(LR_PETSIRD_MAX_TYPES, sizeof(int), "types", log);
    layout->bins = lr_alloc((int64_t)kinds * kinds, sizeof(*layout->bins), "bins", log);
    layout->energy_kev = lr_alloc(kinds, sizeof(*layout->energy_kev), "energies", log);
    LR_TRY(layout->type_of != NULL && layout->index_of != NULL && layout->example != NULL && layout->count != NULL &&
                   layout->kind_of != NULL && layout->bins != NULL && layout->energy_kev != NULL
               ? LR_OK
               : LR_FAILED);
    const lr_scanner *scanner = layout->lors->scanner;
    const double depth_mm = scanner->modules[0].depth_mm, middle_mm = 0.5 * depth_mm;
    bool has_layers = false;
    for (int m = 0; m < modules; m++) has_layers = has_layers || scanner->modules[m].layer > 0;
    const lr_coincidence *rules = &scanner->coincidence;
    const bool loses_depth = !has_layers && fabs(middle_mm - scanner->detection_depth_mm) > 0.1 * depth_mm;
    char lost[256] = "", item[160];
    snprintf(item, sizeof(item), "detection_depth_mm: %g (readers take %g, which changes the scale of images)",
             scanner->detection_depth_mm, middle_mm);
    if (loses_depth) lr_names_add(lost, sizeof(lost), item);
    snprintf(item, sizeof(item), "field_of_view_mm: %g", rules->field_of_view_mm);
    if (rules->field_of_view_mm > 0) lr_names_add(lost, sizeof(lost), item);
    snprintf(item, sizeof(item), "max_ring_difference: %d", rules->max_ring_difference);
    if (rules->limits_ring_difference) lr_names_add(lost, sizeof(lost), item);
    if (loses_depth || rules->limits_ring_difference) {
        lr_warn(log, "%s: PETSIRD has no place for %s: reconstruct with the scanner's own description", params->path,
                lost);
    } else if (lost[0] != '\0') {
        lr_info(log, "%s: PETSIRD has no place for %s, which changes nothing within that field", params->path, lost);
    }

    LR_TRY(sort_modules(layout, differ ? info : NULL, log));
    LR_TRY(set_bins(layout, info, log));
    for (int k = 0; k < layout->num_kinds; k++) {
        const double *given = differ ? info->kinds.energy_kev[k] : info != NULL ? info->energy_kev : NULL;
        layout->energy_kev[k][1] = any_energy_kev;
        if (given != NULL && given[1] > given[0]) memcpy(layout->energy_kev[k], given, sizeof(*layout->energy_kev));
    }

    for (int k = 0; k < layout->num_kinds * layout->num_kinds; k++) {
        const int mirrored = k % layout->num_kinds * layout->num_kinds + k / layout->num_kinds;
        struct tof_bins *one = &layout->bins[k];
        const struct tof_bins *other = &layout->bins[mirrored];
        bool same = one->num_edges == other->num_edges;
        for (int e = 0; same && e < one->num_edges; e++) {
            const double mirrored_mm = -(double)other->edges_mm[one->num_edges - 1 - e];
            same = fabs(one->edges_mm[e] - mirrored_mm) < mirror_mm;
        }
        one->is_mirrored = same;
    }

    return LR_OK;
}

/* --- the header: field by field in the order of the schemas v0.9.1, v0.10.0 and v0.12.0 (assets/petsird) --- */

enum { MOST_PAIR_VALUES = 1 << 24 };

static int64_t num_elements(const struct layout *layout, int type)
{
    const lr_module *module = &layout->lors->scanner->modules[layout->example[type]];
    return (int64_t)module->crystals[0] * module->crystals[1];
}

/* Axes of a module: x points outwards from the front face, y points along u, z along v. y is opposite to u in mirrored
 * modules, so that the axes stay right-handed. */
static void put_geometry(const struct layout *layout, struct lr_output *output)
{
    static const double side[4][2] = {{-0.5, -0.5}, {-0.5, 0.5}, {0.5, 0.5}, {0.5, -0.5}};
    const lr_scanner *scanner = layout->lors->scanner;
    lr_yardl_put_unsigned(output, (uint64_t)layout->num_types);
    for (int t = 0; t < layout->num_types; t++) {
        /* Four corners of the front face, then four of the back face. */
        const lr_module *module = &scanner->modules[layout->example[t]];
        for (int c = 0; c < 8; c++) {
            lr_yardl_put_float(output, c < 4 ? 0 : module->depth_mm);
            lr_yardl_put_float(output, side[c % 4][0] * module->face_mm[0]);
            lr_yardl_put_float(output, side[c % 4][1] * module->face_mm[1]);
        }
        lr_yardl_put_unsigned(output, 0); /* material */

        const double sign = lr_module_is_mirrored(module) ? -1 : 1;
        const int64_t elements = num_elements(layout, t);
        lr_yardl_put_unsigned(output, (uint64_t)elements);
        for (int64_t e = 0; e < elements; e++) {
            const int p = (int)(e % module->crystals[0]), q = (int)(e / module->crystals[0]);
            const double place[3] = {0, sign * (p - 0.5 * (module->crystals[0] - 1)) * module->pitch_mm[0],
                                     (q - 0.5 * (module->crystals[1] - 1)) * module->pitch_mm[1]};
            for (int row = 0; row < 3; row++) {
                for (int column = 0; column < 3; column++) lr_yardl_put_float(output, row == column);
                lr_yardl_put_float(output, place[row]);
            }
        }
        lr_yardl_put_unsigned(output, 0); /* non-detecting volumes: none */

        lr_yardl_put_unsigned(output, (uint64_t)layout->count[t]);
        for (int m = 0; m < scanner->num_modules; m++) {
            const lr_module *placed = &scanner->modules[m];
            const double sign_u = lr_module_is_mirrored(placed) ? -1 : 1;
            for (int row = 0; row < 3 && layout->type_of[m] == t; row++) {
                lr_yardl_put_float(output, -placed->normal[row]);
                lr_yardl_put_float(output, sign_u * placed->u[row]);
                lr_yardl_put_float(output, placed->v[row]);
                lr_yardl_put_float(output, placed->centre_mm[row]);
            }
        }
    }
    lr_yardl_put_unsigned(output, 0); /* other non-detecting volumes: none */
}

/* Tables over pairs of module types. */
enum pair_table { TOF_EDGES, TOF_RESOLUTIONS, GROUPS, EFFICIENCIES };

/* Writes a table's entry for types a and b. */
static void put_pair(const struct layout *layout, struct lr_output *output, enum pair_table table, int a, int b)
{
    const struct tof_bins *bins = bins_of_types(layout, a, b);
    const bool is_old = layout->minor < 10;
    const int modules = layout->lors->scanner->num_modules;
    const int64_t rows = num_elements(layout, a), columns = num_elements(layout, b);
    switch (table) {
    case TOF_EDGES:
        lr_yardl_put_unsigned(output, (uint64_t)bins->num_edges);
        for (int k = 0; k < bins->num_edges; k++) lr_yardl_put_float(output, bins->edges_mm[k]);
        break;

    case TOF_RESOLUTIONS: lr_yardl_put_float(output, bins->resolution_mm); break;

    case GROUPS: /* 0 for each pair of modules, -1 if the pair is out of coincidence */
        lr_yardl_put_unsigned(output, (uint64_t)layout->count[a]);
        if (is_old) lr_yardl_put_unsigned(output, (uint64_t)layout->count[b]);
        for (int i = 0; i < modules; i++) {
            if (layout->type_of[i] != a) continue;
            const int count = !is_old && a == b ? layout->index_of[i] + 1 : layout->count[b];
            if (!is_old) lr_yardl_put_unsigned(output, (uint64_t)count);
            for (int j = 0; j < modules; j++)
                if (layout->type_of[j] == b && layout->index_of[j] < count)
                    lr_yardl_put_signed(output, lr_lors_pair(layout->lors, i, j) >= 0 ? 0 : -1);
        }
        break;

    case EFFICIENCIES: /* group 0: all pairs of crystals have the efficiency 1 */
        lr_yardl_put_unsigned(output, 1);
        lr_yardl_put_unsigned(output, (uint64_t)rows);
        if (is_old) lr_yardl_put_unsigned(output, (uint64_t)columns);
        for (int64_t i = 0; i < rows; i++) {
            if (!is_old) lr_yardl_put_unsigned(output, (uint64_t)columns);
            for (int64_t j = 0; j < columns; j++) lr_yardl_put_float(output, 1);
        }
        lr_yardl_put_unsigned(output, 0); /* number of the group; a signed and an unsigned 0 are the same byte */
        break;
    }
}

/* Writes a table of all pairs, or only of the lower triangle in v0.10.0 and later. */
static void put_pairs(const struct layout *layout, struct lr_output *output, enum pair_table table)
{
    lr_yardl_put_unsigned(output, (uint64_t)layout->num_types);
    for (int a = 0; a < layout->num_types; a++) {
        const int columns = layout->minor < 10 ? layout->num_types : a + 1;
        lr_yardl_put_unsigned(output, (uint64_t)columns);
        for (int b = 0; b < columns; b++) put_pair(layout, output, table, a, b);
    }
}

static void put_scanner(const struct layout *layout, struct lr_output *output)
{
    const bool is_old = layout->minor < 10;
    lr_yardl_put_text(output, layout->lors->scanner->name);
    put_geometry(layout, output);
    lr_yardl_put_unsigned(output, 0);                           /* materials */
    lr_yardl_put_unsigned(output, 0);                           /* alignment of the gantry: null */
    if (layout->minor >= 12) lr_yardl_put_text(output, "none"); /* collimator */
    put_pairs(layout, output, TOF_EDGES);
    put_pairs(layout, output, TOF_RESOLUTIONS);
    lr_yardl_put_unsigned(output, (uint64_t)layout->num_types);
    for (int t = 0; t < layout->num_types; t++) {
        const double *window = layout->energy_kev[layout->kind_of[t]];
        lr_yardl_put_unsigned(output, 2);
        lr_yardl_put_float(output, window[0]);
        lr_yardl_put_float(output, window[1]);
    }
    lr_yardl_put_unsigned(output, (uint64_t)layout->num_types);
    for (int t = 0; t < layout->num_types; t++) lr_yardl_put_float(output, 0); /* energy resolution */
    lr_yardl_put_signed(output, 0);                                            /* histograms of singles: none */
    if (layout->minor >= 12) lr_yardl_put_unsigned(output, 0);                 /* units of singles: none */
    lr_yardl_put_unsigned(output, 0);                                          /* energy bins of singles: none */
    /* The policies for prompts and delayeds are not known, so the policy "other" is written for both. */
    const int other = is_old ? 3 : 4;
    lr_yardl_put_signed(output, 0); /* singles */
    lr_yardl_put_signed(output, other);
    lr_yardl_put_signed(output, other);
    lr_yardl_put_signed(output, 0); /* triples and quadruples: none */
    lr_yardl_put_signed(output, 0);
    if (is_old) {
        static const unsigned char stored[5] = {0, 1, 1, 0, 0};
        (void)lr_output_write(output, stored, sizeof(stored));
    }

    int64_t sum = 0;
    for (int a = 0; a < layout->num_types; a++)
        for (int b = 0; b < layout->num_types; b++) sum += num_elements(layout, a) * num_elements(layout, b);
    const bool fits = sum <= MOST_PAIR_VALUES;

    lr_yardl_put_text(output, "all alike; which modules are in coincidence");
    lr_yardl_put_float(output, 1);
    lr_yardl_put_unsigned(output, 0); /* efficiencies of detection bins: none */
    if (is_old) lr_yardl_put_unsigned(output, 1);
    put_pairs(layout, output, GROUPS);
    if (is_old) lr_yardl_put_unsigned(output, fits);
    if (fits)
        put_pairs(layout, output, EFFICIENCIES);
    else if (!is_old)
        lr_yardl_put_unsigned(output, 0);
}

/* --- events: a time block for each millisecond that has events --- */

enum { MOST_WAITING = 1 << 18 };

/* An event of the block, in the file's numbers. */
struct waiting {
    uint32_t key; /* list to which the event belongs: (delayed, type a, type b) */
    uint32_t bins[2], tof;
    uint32_t number; /* order of events within a list */
};

struct writer {
    struct lr_output output;
    struct layout layout;
    const char *path;
    const lr_log *log;
    struct waiting *waiting; /* owned [MOST_WAITING] */
    int count;
    uint32_t time_ms;
    int64_t beyond; /* number of times of flight beyond all bins */
};

static uint32_t key_of(const struct layout *layout, bool is_delayed, const int types[2])
{
    const uint32_t n = (uint32_t)layout->num_types;
    return ((is_delayed ? n : 0) + (uint32_t)types[0]) * n + (uint32_t)types[1];
}

/* Converts an event to the file's numbers. In v0.10.0 and later, the crystal with the higher type and number comes
 * first. The source's bins must then also fit the event with its crystals exchanged. */
static lr_status convert(struct writer *writer, const lr_event *event, struct waiting *out)
{
    const struct layout *layout = &writer->layout;
    const lr_scanner *scanner = layout->lors->scanner;
    float tof_mm = event->tof_mm;
    int types[2];
    uint32_t numbers[2];
    for (int k = 0; k < 2; k++) {
        const int m = lr_scanner_module_of(scanner, event->crystals[k]);
        const int within = event->crystals[k] - scanner->first_crystal[m];
        const int64_t elements = scanner->first_crystal[m + 1] - scanner->first_crystal[m];
        types[k] = layout->type_of[m];
        numbers[k] = (uint32_t)(layout->index_of[m] * elements + within);
    }

    const bool lower = types[0] < types[1] || (types[0] == types[1] && numbers[0] < numbers[1]);
    const int first = layout->minor >= 10 && lower ? 1 : 0;
    const struct tof_bins *bins = bins_of_types(layout, types[0], types[1]);
    if (first == 1 && bins->is_given && !bins->is_mirrored) {
        return lr_error(writer->log, LR_USAGE,
                        "%s: from version 0.10 on the crystal with the higher type and number comes first, "
                        "and the source's time-of-flight bins of that order are not those of this "
                        "one mirrored: write version 0.9, which keeps the order",
                        writer->path);
    }
    if (first == 1) {
        bins = bins_of_types(layout, types[1], types[0]);
        tof_mm = -tof_mm;
    }
    out->bins[0] = numbers[first];
    out->bins[1] = numbers[1 - first];
    out->key = key_of(layout, event->is_delayed, (const int[2]){types[first], types[1 - first]});
    out->tof = 0;
    if (bins->num_edges <= 2) return LR_OK;

    /* Finds the bin that holds the time of flight. Times beyond all bins go to the first or last bin. */
    int low = 0, high = bins->num_edges - 1;
    writer->beyond += tof_mm < bins->edges_mm[0] || tof_mm > bins->edges_mm[high];
    while (high - low > 1) {
        const int middle = low + (high - low) / 2;
        if (tof_mm < bins->edges_mm[middle])
            high = middle;
        else
            low = middle;
    }
    out->tof = (uint32_t)low;
    return LR_OK;
}

static int compare(const void *a, const void *b)
{
    const struct waiting *left = a, *right = b;
    return lr_order_then(lr_order_whole(left->key, right->key), lr_order_whole(left->number, right->number));
}

/* Writes the lists of prompts or of delayeds. The events of these lists begin at index *at. *at becomes the index after
 * the last of these events. */
static void put_lists(struct writer *writer, bool is_delayed, int *at)
{
    const struct layout *layout = &writer->layout;
    struct lr_output *output = &writer->output;
    lr_yardl_put_unsigned(output, (uint64_t)layout->num_types);
    for (int a = 0; a < layout->num_types; a++) {
        const int columns = layout->minor < 10 ? layout->num_types : a + 1;
        lr_yardl_put_unsigned(output, (uint64_t)columns);
        for (int b = 0; b < columns; b++) {
            const uint32_t key = key_of(layout, is_delayed, (const int[2]){a, b});
            int end = *at;
            while (end < writer->count && writer->waiting[end].key == key) end++;
            lr_yardl_put_unsigned(output, (uint64_t)(end - *at));
            for (; *at < end; (*at)++) {
                const struct waiting *event = &writer->waiting[*at];
                lr_yardl_put_unsigned(output, event->bins[0]);
                lr_yardl_put_unsigned(output, event->bins[1]);
                lr_yardl_put_unsigned(output, event->tof);
            }
        }
    }
}

static lr_status put_block(struct writer *writer)
{
    struct lr_output *output = &writer->output;
    int at = 0;
    if (writer->count == 0) return LR_OK;
    qsort(writer->waiting, (size_t)writer->count, sizeof(*writer->waiting), compare);
    lr_yardl_put_unsigned(output, 1); /* one item of the stream */
    lr_yardl_put_unsigned(output, 0); /* its type: EventTimeBlock */
    lr_yardl_put_unsigned(output, writer->time_ms);
    lr_yardl_put_unsigned(output, (uint64_t)writer->time_ms + (writer->time_ms < UINT32_MAX));
    lr_yardl_put_unsigned(output, 0); /* singles */
    put_lists(writer, false, &at);
    put_lists(writer, true, &at);
    lr_yardl_put_unsigned(output, 0); /* triples */
    lr_yardl_put_unsigned(output, 0); /* quadruples */
    writer->count = 0;
    return output->error != 0 ? LR_FAILED : LR_OK;
}

static lr_status take(void *user, const lr_event *events, int64_t count)
{
    struct writer *writer = user;
    for (int64_t k = 0; k < count; k++) {
        const lr_event *event = &events[k];
        int64_t repeats;
        LR_TRY(lr_event_repeats(event, writer->path, &repeats, writer->log));
        for (int64_t r = 0; r < repeats; r++) {
            if (writer->count == MOST_WAITING || event->time_ms != writer->time_ms) LR_TRY(put_block(writer));
            writer->time_ms = event->time_ms;
            struct waiting *waiting = &writer->waiting[writer->count];
            LR_TRY(convert(writer, event, waiting));
            waiting->number = (uint32_t)writer->count++;
        }
    }
    return LR_OK;
}

/* --- the file --- */

static void destroy(struct writer *writer)
{
    struct layout *layout = &writer->layout;
    for (int k = 0; layout->bins != NULL && k < layout->num_kinds * layout->num_kinds; k++)
        free(layout->bins[k].edges_mm);
    lr_free_all(layout->type_of, layout->index_of, layout->example, layout->count, layout->kind_of, layout->bins,
                layout->energy_kev);
    *layout = (struct layout){0};

    lr_free_all(writer->waiting, writer);
}

static void *create_writer(const lr_events_writer_params *params)
{
    const int minor = params->petsird_minor;
    if (minor != 0 && minor != 9 && minor != 10 && minor != 12) {
        lr_error(params->log, LR_USAGE,
                 "%s: PETSIRD is written by the schemas of versions 0.9.1, 0.10.0 and 0.12.0, not 0.%d", params->path,
                 params->petsird_minor);
        return NULL;
    }
    struct writer *writer = lr_alloc(1, sizeof(*writer), "a writer", params->log);
    if (writer == NULL) return NULL;
    writer->path = params->path;
    writer->log = params->log;
    writer->waiting = lr_alloc(MOST_WAITING, sizeof(*writer->waiting), "events", params->log);
    if (writer->waiting == NULL || init_layout(&writer->layout, params) != LR_OK ||
        lr_output_open(&writer->output, params->path, params->log) != LR_OK) {
        destroy(writer);
        return NULL;
    }
    static const unsigned char version[4] = {1, 0, 0, 0};
    (void)lr_output_write(&writer->output, "yardl", 5);
    (void)lr_output_write(&writer->output, version, sizeof(version));
    lr_yardl_put_text(&writer->output, lr_petsird_schema_text(writer->layout.minor == 9    ? "0.9.1"
                                                              : writer->layout.minor == 10 ? "0.10.0"
                                                                                           : "0.12.0"));
    put_scanner(&writer->layout, &writer->output);
    lr_yardl_put_unsigned(&writer->output, 0); /* exam: null */

    return writer;
}

static lr_status finish_writer(void *self)
{
    struct writer *writer = self;
    (void)put_block(writer);
    lr_yardl_put_unsigned(&writer->output, 0); /* the stream ends */
    if (writer->beyond > 0) {
        lr_warn(writer->log, "%s: %lld times of flight lie beyond the bins and went to the first or last one",
                writer->path, (long long)writer->beyond);
    }
    const lr_status status = lr_output_finish(&writer->output);
    destroy(writer);
    return status;
}

static void abandon(void *self)
{
    struct writer *writer = self;
    lr_output_abandon(&writer->output);
    destroy(writer);
}

const struct lr_event_writing lr_petsird_writing = {create_writer, take, finish_writer, abandon};

/* --- a scanner alone --- */

lr_status lr_petsird_scanner_write(const char *path, const lr_scanner *scanner, const lr_log *log)
{
    lr_lors *lors = lr_lors_create(scanner, log);
    if (lors == NULL) return LR_FAILED;
    const lr_events_writer_params params = {.path = path, .lors = lors, .log = log};
    struct writer *writer = create_writer(&params);
    const lr_status status = writer != NULL ? finish_writer(writer) : LR_FAILED;
    lr_lors_destroy(lors);
    return status;
}
