/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The header of a PETSIRD file, field by field in the order of the schemas v0.9.1, v0.10.0 and
 * v0.12.0
 * (assets/petsird). A module's own axes: x from the front face outwards, y along u (against it in
 * mirrored modules, so that the axes stay right-handed), z along v. */
#include "base/vec.h"
#include "io/events/petsird.h"
#include "io/events/petsird_layout.h"
#include "io/files/yardl_write.h"

enum { MOST_PAIR_VALUES = 1 << 24 };

static bool is_old(const struct lr_petsird_layout *layout)
{
    return layout->minor < 10;
}

static const lr_module *module_of_type(const struct lr_petsird_layout *layout, int type)
{
    return &layout->lors->scanner->modules[layout->example[type]];
}

static int64_t num_elements(const struct lr_petsird_layout *layout, int type)
{
    const lr_module *module = module_of_type(layout, type);
    return (int64_t)module->crystals[0] * module->crystals[1];
}

static bool is_mirrored(const lr_module *module)
{
    double w[3];
    vec_cross(module->u, module->v, w);
    return vec_dot(w, module->normal) > 0;
}

/* --- geometry --- */

/* Four corners of the front face, then those behind them. */
static void put_box(struct lr_output *output, const lr_module *module)
{
    static const double side[4][2] = {{-0.5, -0.5}, {-0.5, 0.5}, {0.5, 0.5}, {0.5, -0.5}};
    for (int c = 0; c < 8; c++) {
        lr_yardl_put_float(output, c < 4 ? 0 : module->depth_mm);
        lr_yardl_put_float(output, side[c % 4][0] * module->face_mm[0]);
        lr_yardl_put_float(output, side[c % 4][1] * module->face_mm[1]);
    }
    lr_yardl_put_unsigned(output, 0); /* material */
}

static void put_elements(struct lr_output *output, const lr_module *module)
{
    const double sign = is_mirrored(module) ? -1 : 1;
    lr_yardl_put_unsigned(output, (uint64_t)module->crystals[0] * (uint64_t)module->crystals[1]);
    for (int q = 0; q < module->crystals[1]; q++) {
        for (int p = 0; p < module->crystals[0]; p++) {
            const double place[3] = {0, sign * (p - 0.5 * (module->crystals[0] - 1)) * module->pitch_mm[0],
                                     (q - 0.5 * (module->crystals[1] - 1)) * module->pitch_mm[1]};
            for (int row = 0; row < 3; row++) {
                for (int column = 0; column < 3; column++) lr_yardl_put_float(output, row == column);
                lr_yardl_put_float(output, place[row]);
            }
        }
    }
}

static void put_place(struct lr_output *output, const lr_module *module)
{
    const double sign = is_mirrored(module) ? -1 : 1;
    for (int row = 0; row < 3; row++) {
        lr_yardl_put_float(output, -module->normal[row]);
        lr_yardl_put_float(output, sign * module->u[row]);
        lr_yardl_put_float(output, module->v[row]);
        lr_yardl_put_float(output, module->centre_mm[row]);
    }
}

static void put_geometry(const struct lr_petsird_layout *layout, struct lr_output *output)
{
    const lr_scanner *scanner = layout->lors->scanner;
    lr_yardl_put_unsigned(output, (uint64_t)layout->num_types);
    for (int t = 0; t < layout->num_types; t++) {
        put_box(output, module_of_type(layout, t));
        put_elements(output, module_of_type(layout, t));
        lr_yardl_put_unsigned(output, 0); /* nothing that does not detect */
        lr_yardl_put_unsigned(output, (uint64_t)layout->count[t]);
        for (int m = 0; m < scanner->num_modules; m++)
            if (layout->type_of[m] == t) put_place(output, &scanner->modules[m]);
    }
    lr_yardl_put_unsigned(output, 0); /* no volumes besides */
}

/* --- matrices over module types --- */

/* One entry for types a and b. */
typedef void (*put_entry)(const struct lr_petsird_layout *layout, struct lr_output *output, int a, int b);

/* All pairs, or those of the lower triangle from v0.10.0 on. */
static void put_pairs(const struct lr_petsird_layout *layout, struct lr_output *output, put_entry put)
{
    lr_yardl_put_unsigned(output, (uint64_t)layout->num_types);
    for (int a = 0; a < layout->num_types; a++) {
        const int columns = is_old(layout) ? layout->num_types : a + 1;
        lr_yardl_put_unsigned(output, (uint64_t)columns);
        for (int b = 0; b < columns; b++) put(layout, output, a, b);
    }
}

static void put_tof_edges(const struct lr_petsird_layout *layout, struct lr_output *output, int a, int b)
{
    const struct lr_petsird_bins *bins = lr_petsird_layout_bins(layout, a, b);
    lr_yardl_put_unsigned(output, (uint64_t)bins->num_edges);
    for (int k = 0; k < bins->num_edges; k++) lr_yardl_put_float(output, bins->edges_mm[k]);
}

static void put_tof_resolution(const struct lr_petsird_layout *layout, struct lr_output *output, int a, int b)
{
    lr_yardl_put_float(output, lr_petsird_layout_bins(layout, a, b)->resolution_mm);
}

static void put_group(const struct lr_petsird_layout *layout, struct lr_output *output, int i, int j)
{
    const lr_lors *lors = layout->lors;
    const bool in = lr_lors_pair(lors, i, j) >= 0;
    lr_yardl_put_signed(output, in ? 0 : -1);
}

/* The group of each pair of modules: 0, or -1 out of coincidence. */
static void put_groups(const struct lr_petsird_layout *layout, struct lr_output *output, int a, int b)
{
    const int modules = layout->lors->scanner->num_modules;
    const bool triangle = !is_old(layout) && a == b;
    lr_yardl_put_unsigned(output, (uint64_t)layout->count[a]);
    if (is_old(layout)) lr_yardl_put_unsigned(output, (uint64_t)layout->count[b]);
    for (int i = 0; i < modules; i++) {
        if (layout->type_of[i] != a) continue;
        const int columns = triangle ? layout->index_of[i] + 1 : layout->count[b];
        if (!is_old(layout)) lr_yardl_put_unsigned(output, (uint64_t)columns);
        for (int j = 0; j < modules; j++)
            if (layout->type_of[j] == b && layout->index_of[j] < columns) put_group(layout, output, i, j);
    }
}

/* Group 0: all pairs of crystals count alike. */
static void put_unit_efficiencies(const struct lr_petsird_layout *layout, struct lr_output *output, int a, int b)
{
    const int64_t rows = num_elements(layout, a), columns = num_elements(layout, b);
    lr_yardl_put_unsigned(output, 1);
    lr_yardl_put_unsigned(output, (uint64_t)rows);
    if (is_old(layout)) lr_yardl_put_unsigned(output, (uint64_t)columns);
    for (int64_t i = 0; i < rows; i++) {
        if (!is_old(layout)) lr_yardl_put_unsigned(output, (uint64_t)columns);
        for (int64_t j = 0; j < columns; j++) lr_yardl_put_float(output, 1);
    }
    lr_yardl_put_unsigned(output, 0); /* the group; zig-zag or not */
}

/* --- the scanner --- */

static bool pair_values_fit(const struct lr_petsird_layout *layout)
{
    int64_t sum = 0;
    for (int a = 0; a < layout->num_types; a++)
        for (int b = 0; b < layout->num_types; b++) sum += num_elements(layout, a) * num_elements(layout, b);
    return sum <= MOST_PAIR_VALUES;
}

static void put_efficiencies(const struct lr_petsird_layout *layout, struct lr_output *output)
{
    const bool fits = pair_values_fit(layout);
    lr_yardl_put_text(output, "all alike; which modules are in coincidence");
    lr_yardl_put_float(output, 1);
    lr_yardl_put_unsigned(output, 0); /* of detection bins: none */
    if (is_old(layout)) lr_yardl_put_unsigned(output, 1);
    put_pairs(layout, output, put_groups);
    if (is_old(layout)) lr_yardl_put_unsigned(output, fits);
    if (fits)
        put_pairs(layout, output, put_unit_efficiencies);
    else if (!is_old(layout))
        lr_yardl_put_unsigned(output, 0);
}

/* Policies: none of the named ones is known to hold. */
static void put_policies(const struct lr_petsird_layout *layout, struct lr_output *output)
{
    const int other = is_old(layout) ? 3 : 4;
    lr_yardl_put_signed(output, 0); /* singles */
    lr_yardl_put_signed(output, other);
    lr_yardl_put_signed(output, other);
    lr_yardl_put_signed(output, 0); /* triples, quadruples */
    lr_yardl_put_signed(output, 0);
    if (is_old(layout)) {
        static const unsigned char stored[5] = {0, 1, 1, 0, 0};
        (void)lr_output_write(output, stored, sizeof(stored));
    }
}

static void put_scanner(const struct lr_petsird_layout *layout, struct lr_output *output)
{
    lr_yardl_put_text(output, layout->lors->scanner->name);
    put_geometry(layout, output);
    lr_yardl_put_unsigned(output, 0);                           /* materials */
    lr_yardl_put_unsigned(output, 0);                           /* alignment of the gantry: null */
    if (layout->minor >= 12) lr_yardl_put_text(output, "none"); /* collimator */
    put_pairs(layout, output, put_tof_edges);
    put_pairs(layout, output, put_tof_resolution);
    lr_yardl_put_unsigned(output, (uint64_t)layout->num_types);
    for (int t = 0; t < layout->num_types; t++) {
        const double *window = layout->energy_kev[layout->kind_of[t]];
        lr_yardl_put_unsigned(output, 2);
        lr_yardl_put_float(output, window[0]);
        lr_yardl_put_float(output, window[1]);
    }
    lr_yardl_put_unsigned(output, (uint64_t)layout->num_types);
    for (int t = 0; t < layout->num_types; t++) lr_yardl_put_float(output, 0); /* energy resolution */
    lr_yardl_put_signed(output, 0);                                            /* singles' histograms: none */
    if (layout->minor >= 12) lr_yardl_put_unsigned(output, 0);                 /* no units of singles */
    lr_yardl_put_unsigned(output, 0);                                          /* and no bins of theirs */
    put_policies(layout, output);
    put_efficiencies(layout, output);
}

void lr_petsird_put_header(const struct lr_petsird_layout *layout, struct lr_output *output)
{
    static const unsigned char version[4] = {1, 0, 0, 0};
    (void)lr_output_write(output, "yardl", 5);
    (void)lr_output_write(output, version, sizeof(version));
    lr_yardl_put_text(output, lr_petsird_schema_text(layout->minor == 9    ? "0.9.1"
                                                     : layout->minor == 10 ? "0.10.0"
                                                                           : "0.12.0"));
    put_scanner(layout, output);
    lr_yardl_put_unsigned(output, 0); /* exam: null */
}
