/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "io/lor_data/sinogram.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/order.h"
#include "base/units.h"
#include "base/vec.h"
#include "model/scanner/scanner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PLACES = 65536 };

/* A module and its sort keys. Modules of one row of a panel are next to each other after sorting. */
struct part {
    int module;
    int first_crystal_ring, position;
    double along_u_mm; /* position of the module's centre along u */
};

/* A scanner's modules, sorted, and their common measures. */
struct order {
    const lr_scanner *scanner;
    const char *what;
    const lr_log *log;
    struct part *parts; /* owned [num_modules], sorted */
    int row_crystals;   /* number of crystals of a panel around the ring */
    int rings, module_rings;
};

/* --- order --- */

static lr_status not_rings(const struct order *order, const char *why)
{
    return lr_error(order->log, LR_BAD_INPUT,
                    "%s: sinograms number the crystals of full rings of equal modules, and %s is not one: %s",
                    order->what, order->scanner->name, why);
}

static int compare_parts(const void *a, const void *b)
{
    const struct part *x = a, *y = b;
    return lr_order_lists((const double[]){x->first_crystal_ring, x->position, x->along_u_mm, x->module},
                          (const double[]){y->first_crystal_ring, y->position, y->along_u_mm, y->module}, 4);
}

/* True if part n is the first of a row of a panel. */
static bool begins_row(const struct order *order, int n)
{
    const struct part *x = &order->parts[n > 0 ? n - 1 : 0], *y = &order->parts[n];
    return n == 0 || x->first_crystal_ring != y->first_crystal_ring || x->position != y->position;
}

/* Number of crystals around the ring in the row that begins with part n. */
static int count_row(const struct order *order, int n)
{
    int count = 0;
    do {
        count += order->scanner->modules[order->parts[n++].module].crystals[0];
    } while (n < order->scanner->num_modules && !begins_row(order, n));
    return count;
}

static lr_status measure(struct order *order)
{
    const lr_scanner *scanner = order->scanner;
    if (scanner->num_positions < 3) return not_rings(order, "it has no modules around a ring");
    if (lr_scanner_num_layers(scanner) > 1) return not_rings(order, "its blocks have layers of crystals");
    /* u must point towards increasing angles and v along z, as in scanners from the ring generator. */
    for (int m = 0; m < scanner->num_modules; m++) {
        const lr_module *module = &scanner->modules[m];
        const double *c = module->centre_mm, *u = module->u, *v = module->v;
        if (c[0] * u[1] - c[1] * u[0] <= 0.0 || v[2] < 0.999999)
            return not_rings(order, "a module's u does not run around the axis, or its v not along it");
    }
    order->parts = lr_alloc(scanner->num_modules, sizeof(*order->parts), "modules", order->log);
    if (order->parts == NULL) return LR_FAILED;
    for (int m = 0; m < scanner->num_modules; m++) {
        const lr_module *module = &scanner->modules[m];
        const int rings = module->first_crystal_ring + module->crystals[1];
        order->parts[m] =
            (struct part){m, module->first_crystal_ring, module->position, vec_dot(module->centre_mm, module->u)};
        order->rings = rings > order->rings ? rings : order->rings;
        order->module_rings = module->ring + 1 > order->module_rings ? module->ring + 1 : order->module_rings;
    }
    qsort(order->parts, (size_t)scanner->num_modules, sizeof(*order->parts), compare_parts);

    order->row_crystals = count_row(order, 0);
    for (int n = 0; n < scanner->num_modules; n++) {
        if (begins_row(order, n) && count_row(order, n) != order->row_crystals)
            return not_rings(order, "its modules have different numbers of crystals around");
        const lr_module *module = &scanner->modules[order->parts[n].module];
        const lr_module *before = &scanner->modules[order->parts[n > 0 ? n - 1 : 0].module];
        if (module->first_crystal_ring > before->first_crystal_ring && module->centre_mm[2] <= before->centre_mm[2])
            return not_rings(order, "its crystal rings do not count along z");
    }
    return LR_OK;
}

/* Angle of the row that begins with part n, and distance from the axis to the row's front face. */
static void row_centre(const struct order *order, int n, double *angle_deg, double *radius_mm)
{
    double sum[2] = {0.0, 0.0};
    const lr_module *first = &order->scanner->modules[order->parts[n].module];
    do {
        const lr_module *module = &order->scanner->modules[order->parts[n++].module];
        sum[0] += module->crystals[0] * module->centre_mm[0];
        sum[1] += module->crystals[0] * module->centre_mm[1];
    } while (n < order->scanner->num_modules && !begins_row(order, n));
    *angle_deg = atan2(sum[1], sum[0]) * 180.0 / LR_PI;
    *radius_mm = -vec_dot(first->centre_mm, first->normal);
}

/* Mean distance between rings, including virtual rings. */
static double find_pitch(const struct order *order, int rings)
{
    const lr_scanner *scanner = order->scanner;
    double least = INFINITY, most = -INFINITY;
    for (int m = 0; m < scanner->num_modules; m++) {
        const lr_module *module = &scanner->modules[m];
        double first_mm[3], last_mm[3];
        lr_module_crystal_centre(module, 0, 0, first_mm);
        lr_module_crystal_centre(module, 0, module->crystals[1] - 1, last_mm);
        least = fmin(least, first_mm[2]);
        most = fmax(most, last_mm[2]);
    }
    return rings > 1 ? (most - least) / (rings - 1) : scanner->modules[0].pitch_mm[1];
}

static lr_status number_crystals(const struct order *order, const struct lr_sinogram_gaps *gaps,
                                 struct lr_sinogram_rings *rings)
{
    const lr_scanner *scanner = order->scanner;
    const int64_t around = scanner->num_positions * ((int64_t)order->row_crystals + gaps->around);
    const int64_t num_rings = order->rings + (int64_t)gaps->axial * (order->module_rings - 1);
    if (around > MAX_PLACES || num_rings > MAX_PLACES || around % 2 != 0) {
        return lr_error(order->log, LR_BAD_INPUT,
                        "%s: a ring of %s has %lld crystals with the virtual ones, and sinograms "
                        "need an even number, at most %d",
                        order->what, scanner->name, (long long)around, MAX_PLACES);
    }
    rings->around = (int)around;
    rings->rings = (int)num_rings;
    rings->modules = scanner->num_positions;
    rings->crystals = lr_alloc(around * num_rings, sizeof(*rings->crystals), "crystal numbers", order->log);
    if (rings->crystals == NULL) return LR_FAILED;
    memset(rings->crystals, -1, (size_t)(around * num_rings) * sizeof(*rings->crystals));

    /* Finds the angle of the panel at position 0, and the largest difference in degrees between a panel and its evenly
     * spaced position. */
    const double step_deg = 360.0 / scanner->num_positions;
    double first_deg = 0.0, farthest_deg = 0.0;
    for (int n = 0; n < scanner->num_modules; n++) {
        if (begins_row(order, n)) {
            double angle_deg;
            const int position = order->parts[n].position;
            row_centre(order, n, &angle_deg, &rings->radius_mm);
            if (n == 0) first_deg = angle_deg - position * step_deg;
            farthest_deg = fmax(farthest_deg, fabs(lr_wrapped_deg(angle_deg - position * step_deg - first_deg)));
        }
    }
    if (farthest_deg > 0.5 * 360.0 / rings->around)
        return not_rings(order, "its modules do not stand evenly around the axis");
    const double centre = (gaps->around + 1) / 2 + 0.5 * (order->row_crystals - 1);
    rings->first_angle_deg = first_deg - centre * 360.0 / (double)around;
    rings->ring_pitch_mm = find_pitch(order, rings->rings);

    /* Fills in the crystal numbers, module by module. */
    int along = 0; /* number of crystals in the row before this module */
    for (int n = 0; n < scanner->num_modules; n++) {
        const int m = order->parts[n].module;
        const lr_module *module = &scanner->modules[m];
        along = begins_row(order, n) ? 0 : along;
        const int first_place =
            module->position * (order->row_crystals + gaps->around) + (gaps->around + 1) / 2 + along;
        const int last_ring = rings->rings - 1 - module->first_crystal_ring - gaps->axial * module->ring;
        int32_t number = scanner->first_crystal[m];
        for (int q = 0; q < module->crystals[1]; q++) {
            for (int p = 0; p < module->crystals[0]; p++) {
                int32_t *crystal = &rings->crystals[(int64_t)(last_ring - q) * rings->around + first_place + p];
                if (*crystal >= 0) return not_rings(order, "two modules share a place around the ring");
                *crystal = number++;
            }
        }
        along += module->crystals[0];
    }
    return LR_OK;
}

/* --- public --- */

lr_status lr_sinogram_gaps_of(const lr_scanner *scanner, struct lr_sinogram_gaps *gaps, const lr_log *log)
{
    struct order order = {.scanner = scanner, .what = scanner->name};
    *gaps = (struct lr_sinogram_gaps){0, 0};
    const lr_status status = measure(&order);
    if (status == LR_OK) {
        /* Gaps around the ring: the number of crystals that fit between a panel and the ends of its side of the
         * polygon. */
        const lr_module *first = &scanner->modules[order.parts[0].module], *last = first;
        double angle_deg, radius_mm;
        for (int n = 1; n < scanner->num_modules && !begins_row(&order, n); n++)
            last = &scanner->modules[order.parts[n].module];
        const double width_mm = vec_dot(last->centre_mm, last->u) - vec_dot(first->centre_mm, first->u) +
                                0.5 * (first->crystals[0] + last->crystals[0]) * first->pitch_mm[0];
        row_centre(&order, 0, &angle_deg, &radius_mm);
        const double side_mm = 2.0 * radius_mm * tan(LR_PI / scanner->num_positions);
        gaps->around = (int)fmax(0.0, round((side_mm - width_mm) / first->pitch_mm[0]));
        gaps->around += scanner->num_positions * (order.row_crystals + gaps->around) % 2;

        const double spare_mm = find_pitch(&order, order.rings) - first->pitch_mm[1];
        const double between_mm = first->pitch_mm[1] * (order.module_rings - 1);
        if (order.module_rings > 1 && order.rings > 1)
            gaps->axial = (int)fmax(0.0, round(spare_mm * (order.rings - 1) / between_mm));
    } else if (status == LR_FAILED) {
        lr_error(log, status, "no memory for the order of %d modules", scanner->num_modules);
    }
    free(order.parts);
    return status == LR_FAILED ? LR_FAILED : LR_OK; /* a scanner that is not made of rings has no gaps */
}

lr_status lr_sinogram_gaps_for(const lr_scanner *scanner, const int64_t wanted[2], struct lr_sinogram_gaps *gaps,
                               const char *what, const lr_log *log)
{
    struct order order = {.scanner = scanner, .what = what, .log = log};
    const lr_status status = measure(&order);
    free(order.parts);
    LR_TRY(status);
    const int64_t real[2] = {(int64_t)order.row_crystals * scanner->num_positions, order.rings};
    const int64_t between[2] = {scanner->num_positions, order.module_rings - 1};
    int64_t virtual_ones[2] = {0, 0};
    for (int k = 0; k < 2; k++) {
        const int64_t more = wanted[k] - real[k];
        if (more < 0 || wanted[k] > MAX_PLACES || (more > 0 && between[k] == 0) ||
            (more > 0 && more % between[k] != 0)) {
            return lr_error(log, LR_BAD_INPUT,
                            "%s: gives %lld %s where %s has %lld in %lld modules: it belongs to another scanner", what,
                            (long long)wanted[k], k == 0 ? "detectors per ring" : "rings", scanner->name,
                            (long long)real[k], (long long)(k == 0 ? between[0] : between[1] + 1));
        }
        virtual_ones[k] = more > 0 ? more / between[k] : 0;
    }
    *gaps = (struct lr_sinogram_gaps){(int)virtual_ones[0], (int)virtual_ones[1]};
    return LR_OK;
}

lr_status lr_sinogram_rings_create(struct lr_sinogram_rings *rings, const lr_scanner *scanner,
                                   const struct lr_sinogram_gaps *gaps, const char *what, const lr_log *log)
{
    *rings = (struct lr_sinogram_rings){0};
    struct order order = {.scanner = scanner, .what = what, .log = log};
    lr_status status = measure(&order);
    if (status == LR_OK) status = number_crystals(&order, gaps, rings);
    free(order.parts);
    if (status != LR_OK) lr_sinogram_rings_finish(rings);
    return status;
}

lr_status lr_sinogram_rings_turn(struct lr_sinogram_rings *rings, int steps, const lr_log *log)
{
    const int around = rings->around;
    const size_t bytes = (size_t)around * sizeof(*rings->crystals);
    int32_t *row = lr_alloc(around, sizeof(*row), "crystal numbers", log);
    if (row == NULL) return LR_FAILED;
    for (int ring = 0; ring < rings->rings; ring++) {
        int32_t *crystals = rings->crystals + (int64_t)ring * around;
        memcpy(row, crystals, bytes);
        for (int place = 0; place < around; place++)
            crystals[place] = row[((place + steps) % around + around) % around];
    }
    rings->first_angle_deg += steps * 360.0 / around;
    free(row);
    return LR_OK;
}

void lr_sinogram_rings_finish(struct lr_sinogram_rings *rings)
{
    free(rings->crystals);
    *rings = (struct lr_sinogram_rings){0};
}
