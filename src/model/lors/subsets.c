/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Subsets of LORs: docs/method/common.md, "Subsets". Lines that differ by a rotation around the axis form a class. The
 * lines of a class are distributed to the subsets in the order of their directions, so that every subset has lines of
 * each class from all directions. If there are enough lines, all pairs of modules with the same projection along the
 * axis count as one line, together with the pairs half a rotation further. Projections compute such pairs together, so
 * that the time for a subset is proportional to its number of LORs.
 *
 * The evenness of subsets is measured at points where LORs cross. From such a point, one line leads to each crystal
 * around the point. Subsets are even if each has the same number of these lines, with directions that are spread like
 * the directions of all lines. */
#include <lr/recon.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/order.h"
#include "base/units.h"
#include "base/vec.h"
#include "model/lors/place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Distance below which two places belong to one class, mm. Rotated modules differ by rounding only. */
#define SAME_PLACE_MM 0.01
/* Angles are rounded to multiples of this unit, in radians. */
#define SAME_ANGLE 1e-6
/* Relative difference below which sums of squares count as equal. */
#define SAME_SUM 1e-9
/* Weight of a subset's number of LORs, relative to the first Fourier component of the directions. LORS_FIRST_OF_LINES
 * is for lines of several pairs. A class has few such lines, so other classes must cancel its Fourier components. */
#define LORS_FIRST 32.0
#define LORS_FIRST_OF_LINES 4.0
/* A subset needs at least this many lines of several pairs. If there are fewer lines, pairs are distributed one by
 * one. */
enum { LEAST_LINES = 20 };
enum { NUM_WAVES = 32, MAX_TRIES = 256, NUM_ROUNDS = 4 };

/* A module pair, described by the line between the centres of its modules. */
struct pair_line {
    int64_t from_axis; /* distance of the line from the axis, in units of SAME_PLACE_MM */
    int64_t low, high; /* axial places of the line's ends, in units of SAME_PLACE_MM */
    int64_t angle;     /* azimuth of the point nearest to the axis, in units of SAME_ANGLE */
    int64_t direction; /* equal for lines with the same projection along the axis, also after half a rotation */
    bool has_side;     /* true if the point nearest to the axis is not on the axis */
    int64_t class_number;
    int64_t rank;     /* rank of the line within its class, which decides the line's subset */
    int64_t num_lors; /* number of LORs in coincidence */
    int32_t pair;
    int64_t keys[4]; /* keys by which lines are sorted; the last key is the pair's number */
};

static int by_keys(const void *a, const void *b)
{
    const struct pair_line *x = a, *y = b;
    int k = 0;
    while (k < 3 && x->keys[k] == y->keys[k]) k++;
    return lr_order_whole(x->keys[k], y->keys[k]);
}

static int64_t rounded(double value, double unit)
{
    return llround(value / unit);
}

/* Rounds the angle of (x, y) to SAME_ANGLE. An angle that is rounded up to the full period becomes 0. */
static int64_t rounded_angle(double y, double x, double period)
{
    const double angle = fmod(atan2(y, x) + 4.0 * LR_PI, period);
    return rounded(angle, SAME_ANGLE) % rounded(period, SAME_ANGLE);
}

static void describe(const lr_lors *lors, int32_t pair, struct pair_line *line)
{
    double a[3], b[3];
    lr_scanner_detection_centre(lors->scanner, lors->pairs[pair][0], a);
    lr_scanner_detection_centre(lors->scanner, lors->pairs[pair][1], b);
    line->pair = pair;
    line->num_lors = lr_pair_num_coincidences(lors, pair);
    if (hypot(b[0] - a[0], b[1] - a[1]) > SAME_PLACE_MM) {
        /* A line is followed in the direction in which the axis is on its left. A line that crosses the axis is
         * followed upwards. A transaxial line that crosses the axis has no direction. */
        const double dx = b[0] - a[0], dy = b[1] - a[1];
        const double left = (a[0] * dy - a[1] * dx) / hypot(dx, dy);
        const int64_t z_a = rounded(a[2], SAME_PLACE_MM), z_b = rounded(b[2], SAME_PLACE_MM);
        const bool meets_axis = rounded(left, SAME_PLACE_MM) == 0;
        const bool turn_round = meets_axis ? z_a > z_b : left < 0.0;
        const double sign = turn_round ? -1.0 : 1.0;
        line->from_axis = rounded(fabs(left), SAME_PLACE_MM);
        line->has_side = !meets_axis;
        line->low = turn_round ? z_b : z_a;
        line->high = turn_round ? z_a : z_b;
        line->angle = rounded_angle(-sign * dx, sign * dy, meets_axis && z_a == z_b ? LR_PI : 2.0 * LR_PI);
        line->direction = rounded_angle(-dx, dy, LR_PI);
    } else {
        /* For a line along the axis, the direction is the azimuth of the line. */
        line->from_axis = rounded(hypot(a[0], a[1]), SAME_PLACE_MM);
        line->has_side = line->from_axis > 0;
        line->low = rounded(fmin(a[2], b[2]), SAME_PLACE_MM);
        line->high = rounded(fmax(a[2], b[2]), SAME_PLACE_MM);
        line->angle = rounded_angle(a[1], a[0], 2.0 * LR_PI);
        line->direction = rounded_angle(a[1], a[0], LR_PI);
    }
}

/* Numbers the classes of lines of several pairs, and ranks the lines of each class. The lines of a class have the same
 * distance from the axis. with_images: true if lines that differ by half a rotation count as one line. Returns false if
 * there are too few lines, or too few lines per class. */
static bool number_lines(struct pair_line *lines, int64_t num_pairs, int subsets, bool with_images)
{
    /* Lines parallel to the axis are points in the transaxial plane, and are distinguished by their azimuth. */
    for (int64_t k = 0; k < num_pairs; k++) {
        struct pair_line *line = &lines[k];
        if (!with_images && line->has_side) line->direction = line->angle;
        line->keys[0] = line->from_axis;
        line->keys[1] = line->direction;
        line->keys[2] = 0;
        line->keys[3] = line->pair;
    }
    qsort(lines, (size_t)num_pairs, sizeof(*lines), by_keys);
    int64_t num_classes = 0, num_lines = 0, rank = 0;
    for (int64_t k = 0; k < num_pairs; k++) {
        const bool is_new = k == 0 || lines[k - 1].from_axis != lines[k].from_axis;
        const bool is_other = k == 0 || memcmp(lines[k - 1].keys, lines[k].keys, 2 * sizeof(int64_t)) != 0;
        num_classes += is_new;
        num_lines += is_other;
        rank = is_new ? 0 : rank + is_other;
        lines[k].class_number = num_classes;
        lines[k].rank = rank;
    }
    return num_lines >= (int64_t)LEAST_LINES * subsets && num_classes * 4 <= num_lines;
}

/* The load of a subset: its number of LORs, and the sum of exp(i m angle) over these LORs, m = 1 .. NUM_WAVES. Waves
 * with even m distinguish directions, and waves with odd m also sides of the axis. All these sums are 0 if directions
 * are spread evenly. */
struct load {
    double lors, wave[NUM_WAVES][2];
};

/* load += sign * share */
static void add_load(struct load *load, double sign, const struct load *share)
{
    load->lors += sign * share->lors;
    for (int m = 0; m < NUM_WAVES; m++) {
        load->wave[m][0] += sign * share->wave[m][0];
        load->wave[m][1] += sign * share->wave[m][1];
    }
}

/* The assignment of classes to subsets, and the shares into which the current class is divided. */
struct assignment {
    int subsets;
    double lors_first;
    struct load *shares; /* [subsets] shares of the current class */
    struct load *loads;  /* [subsets] loads that the subsets have so far */
    int32_t *subset_of;  /* [num_pairs] */
};

/* Assigns the shares of a class to consecutive subsets. The subset that gets share 0 is chosen so that all subsets are
 * as even as possible. A later iteration may move the class to make the subsets more even. */
static void assign_class(const struct pair_line *lines, int64_t count, bool is_assigned, const struct assignment *to)
{
    const int subsets = to->subsets;
    for (int n = 0; n < subsets; n++) to->shares[n] = (struct load){0};
    for (int64_t k = 0; k < count; k++) {
        const struct pair_line *line = &lines[k];
        const double num_lors = (double)line->num_lors;
        struct load load = {.lors = num_lors};
        for (int m = 1; m <= NUM_WAVES; m++) {
            const bool is_felt = line->has_side || m % 2 == 0;
            const double angle = m * SAME_ANGLE * (double)line->angle;
            load.wave[m - 1][0] = is_felt ? num_lors * cos(angle) : 0.0;
            load.wave[m - 1][1] = is_felt ? num_lors * sin(angle) : 0.0;
        }
        add_load(&to->shares[line->rank % subsets], 1.0, &load);
    }
    const int before = to->subset_of[lines[0].pair];
    for (int n = 0; is_assigned && n < subsets; n++) add_load(&to->loads[(before + n) % subsets], -1.0, &to->shares[n]);

    /* If several starting subsets are equally good except for rounding, the first one is taken. */
    double least = INFINITY;
    int best = 0;
    const int tries = subsets < MAX_TRIES ? subsets : MAX_TRIES;
    for (int attempt = 0; attempt < tries; attempt++) {
        const int start = (int)((int64_t)attempt * subsets / tries);
        double sum = 0.0;
        for (int n = 0; n < subsets; n++) {
            struct load load = to->loads[(start + n) % subsets];
            add_load(&load, 1.0, &to->shares[n]);
            /* Unevenness: the sum of squares over all subsets is least if all subsets are equal. wave[m] is Fourier
             * component m + 1 of the directions, and has the weight 1 / (m + 1). */
            double uneven = to->lors_first * load.lors * load.lors;
            for (int m = 0; m < NUM_WAVES; m++) {
                const double *wave = load.wave[m];
                uneven += (wave[0] * wave[0] + wave[1] * wave[1]) / (m + 1);
            }
            sum += uneven;
        }
        if (sum < least * (1.0 - SAME_SUM)) {
            least = sum;
            best = start;
        }
    }
    for (int n = 0; n < subsets; n++) add_load(&to->loads[(best + n) % subsets], 1.0, &to->shares[n]);
    for (int64_t k = 0; k < count; k++) to->subset_of[lines[k].pair] = (int32_t)((best + lines[k].rank) % subsets);
}

lr_status lr_osem_subsets(const lr_lors *lors, int subsets, int32_t *subset_of, const lr_log *log)
{
    if (subsets < 1 || subsets > lors->num_pairs) {
        return lr_error(log, LR_USAGE, "%d subsets of %lld pairs of modules: take 1 to %lld", subsets,
                        (long long)lors->num_pairs, (long long)lors->num_pairs);
    }
    if (lors->scanner == NULL) { /* views, whose numbers increase around the axis */
        for (int64_t view = 0; view < lors->num_pairs; view++) subset_of[view] = (int32_t)(view % subsets);
        return LR_OK;
    }
    struct pair_line *lines = lr_alloc(lors->num_pairs, sizeof(*lines), "subsets", log);
    struct load *loads = lr_alloc(2 * (int64_t)subsets, sizeof(*loads), "subsets", log);
    const lr_status status = lines != NULL && loads != NULL ? LR_OK : LR_FAILED;
    if (status == LR_OK) {
        for (int64_t pair = 0; pair < lors->num_pairs; pair++) describe(lors, (int32_t)pair, &lines[pair]);
        const bool by_lines =
            number_lines(lines, lors->num_pairs, subsets, true) || number_lines(lines, lors->num_pairs, subsets, false);
        if (!by_lines) {
            /* In scanners with hardly any symmetry, classes have one or two pairs. Pairs of similar distance from the
             * axis then form a class instead, with four pairs for each subset. */
            const int64_t num_pairs = lors->num_pairs;
            for (int64_t k = 0; k < num_pairs; k++) {
                const int64_t keys[4] = {lines[k].from_axis, lines[k].low, lines[k].high, lines[k].pair};
                memcpy(lines[k].keys, keys, sizeof(keys));
            }
            qsort(lines, (size_t)num_pairs, sizeof(*lines), by_keys);
            int64_t num_classes = 0;
            for (int64_t k = 0; k < num_pairs; k++) {
                num_classes += k == 0 || memcmp(lines[k - 1].keys, lines[k].keys, 3 * sizeof(int64_t)) != 0;
                lines[k].class_number = num_classes;
            }
            for (int64_t k = 0; k < num_pairs; k++) {
                if (num_classes * 4 > num_pairs) lines[k].class_number = k / (4 * (int64_t)subsets);
                const int64_t keys[4] = {lines[k].class_number, lines[k].angle, 0, lines[k].pair};
                memcpy(lines[k].keys, keys, sizeof(keys));
            }
            qsort(lines, (size_t)num_pairs, sizeof(*lines), by_keys);
            for (int64_t k = 0; k < num_pairs; k++) {
                const bool is_new = k == 0 || lines[k - 1].class_number != lines[k].class_number;
                lines[k].rank = is_new ? 0 : lines[k - 1].rank + 1;
            }
        }

        const struct assignment to = {subsets, by_lines ? LORS_FIRST_OF_LINES : LORS_FIRST, loads, loads + subsets,
                                      subset_of};
        for (int round = 0; round < NUM_ROUNDS; round++) {
            for (int64_t begin = 0, end; begin < lors->num_pairs; begin = end) {
                end = begin + 1;
                while (end < lors->num_pairs && lines[end].class_number == lines[begin].class_number) end++;
                assign_class(lines + begin, end - begin, round > 0, &to);
            }
        }
    }
    lr_free_all(lines, loads);
    return status;
}

/* --- unevenness of subsets --- */

/* Unevenness above which subsets are interleaved more. The error of a reconstructed disc after 40 updates was compared
 * with its error for one subset. With an unevenness of at most 0.1, the error was less than 1.5 times as large. With
 * subsets of whole pairs and an unevenness of 0.2 to 1, the error was 2 to 60 times as large. */
#define EVEN_ENOUGH 0.1

/* Unevenness above which fewer subsets are advised. */
#define UNEVEN 0.15

/* POINTS: number of points. WAVES: number of Fourier components of the directions that are compared; component 0 is the
 * share of lines. */
enum { POINTS = 48, WAVES = 4 };

/* The step, modulo one, that spreads points evenly along each LOR. */
#define ALONG_STEP 0.7548776662466927

/* A choice of subsets: subset k has part k mod interleave of the LORs of group k / interleave. */
struct partition {
    const lr_lors *lors;
    int subsets, interleave;
    int32_t *group_of;                 /* [num_pairs] */
    double (*sums)[WAVES][2];          /* [subsets] sums at the current point */
    double *lines;                     /* [subsets] sums over all points */
    double squares[WAVES], num_points; /* squares: sums of squared relative differences between subsets, over num_points
                                          points */
    int *level, num_level;             /* [num_modules] modules at about the height of the current point, and their
                                          number */
};

/* The crystal that a line from a crystal of module `from` hits first; -1 = none. */
static int meet(const struct partition *partition, int from, const double origin[3], const double along[3])
{
    const lr_scanner *scanner = partition->lors->scanner;
    double nearest = INFINITY;
    int met = -1;
    for (int k = 0; k < partition->num_level; k++) {
        const int m = partition->level[k];
        const lr_module *module = &scanner->modules[m];
        double centre[3], away[3], hit[3];
        lr_scanner_detection_centre(scanner, m, centre);
        vec_sub(centre, origin, away);
        const double slope = vec_dot(module->normal, along);
        const double t = vec_dot(module->normal, away) / slope;
        if (m == from || !(slope < 0.0) || !(t > 0.0 && t < nearest)) continue;
        vec_add_scaled(away, -t, along, hit); /* hit: vector from the hit to the module's centre */
        const double p = floor(0.5 * module->crystals[0] - vec_dot(module->u, hit) / module->pitch_mm[0]);
        const double q = floor(0.5 * module->crystals[1] - vec_dot(module->v, hit) / module->pitch_mm[1]);
        if (p >= 0 && p < module->crystals[0] && q >= 0 && q < module->crystals[1]) {
            nearest = t;
            met = scanner->first_crystal[m] + (int)q * module->crystals[0] + (int)p;
        }
    }
    return met;
}

/* Adds the lines through a point to the sums of their subsets: one line from each crystal at the height of the
 * point. */
static void look_from(struct partition *partition, const double point[3])
{
    const lr_lors *lors = partition->lors;
    const lr_scanner *scanner = lors->scanner;
    partition->num_level = 0;
    for (int m = 0; m < scanner->num_modules; m++) {
        const lr_module *module = &scanner->modules[m];
        double reach = 0.0;
        for (int axis = 0; axis < 2; axis++) {
            const double slope = axis == 0 ? module->u[2] : module->v[2];
            reach += fabs(slope) * module->pitch_mm[axis] * (0.5 * module->crystals[axis] + 1.0);
        }
        partition->level[partition->num_level] = m;
        partition->num_level += fabs(point[2] - module->centre_mm[2]) <= reach + 1.0;
    }

    for (int k = 0; k < partition->num_level; k++) {
        const int m = partition->level[k];
        const lr_module *module = &scanner->modules[m];
        const bool is_v = lors->angles->modules[m].is_v; /* u then runs along the scanner's axis */
        const double *along = is_v ? module->u : module->v, half = 0.5 * module->crystals[!is_v];
        const double level = (point[2] - module->centre_mm[2]) / (along[2] * module->pitch_mm[!is_v]);
        if (!(fabs(level) < half)) continue;
        const int row = (int)(level + half);
        for (int n = 0; n < module->crystals[is_v]; n++) {
            const int crystal =
                scanner->first_crystal[m] + (is_v ? n * module->crystals[0] + row : row * module->crystals[0] + n);
            double origin[3], line[3];
            lr_scanner_hit_centre(scanner, crystal, origin);
            vec_sub(point, origin, line);
            const int other = meet(partition, m, origin, line);
            const int64_t lor = other >= 0 ? lr_lors_number(lors, crystal, other) : -1;
            if (lor >= 0 && lr_lors_in_coincidence(lors, lor)) {
                const double direction = atan2(line[1], line[0]);
                const lr_lor at = lr_lors_describe(partition->lors, lor);
                const int64_t pair = lr_lors_pair(partition->lors, at.module_i, at.module_j);
                const int i = partition->group_of[pair] * partition->interleave +
                              lr_lors_turn(partition->lors, lor, partition->interleave);
                for (int wave = 0; wave < WAVES; wave++) {
                    partition->sums[i][wave][0] += cos(2 * wave * direction);
                    partition->sums[i][wave][1] += sin(2 * wave * direction);
                }
            }
        }
    }
}

/* Measures the unevenness of subsets at points on a sample of LORs, each in the middle half of its LOR. The result is
 * INFINITY if a subset has no LOR. */
static double measure(struct partition *partition)
{
    const lr_lors *lors = partition->lors;
    double lor_share = 0.5, along_share = 0.5, worst = 0.0;
    partition->num_points = 0.0;
    memset(partition->squares, 0, sizeof(partition->squares));
    memset(partition->lines, 0, (size_t)partition->subsets * sizeof(*partition->lines));
    for (int n = 0; n < 64 * POINTS && partition->num_points < POINTS; n++) {
        lor_share = fmod(lor_share + LR_GOLDEN_SHARE, 1.0);
        along_share = fmod(along_share + ALONG_STEP, 1.0);
        const int64_t lor = (int64_t)(lor_share * (double)lors->count);
        int32_t crystals[2];
        double point[3], other[3], along[3];
        if (!lr_lors_in_coincidence(lors, lor)) continue;
        lr_lors_crystals(lors, lor, crystals);
        lr_scanner_hit_centre(lors->scanner, crystals[0], point);
        lr_scanner_hit_centre(lors->scanner, crystals[1], other);
        vec_sub(other, point, along);
        vec_add_scaled(point, 0.25 + 0.5 * along_share, along, point);
        look_from(partition, point);
        double all[WAVES][2] = {{0.0}};
        for (int k = 0; k < partition->subsets; k++) {
            partition->lines[k] += partition->sums[k][0][0];
            for (int i = 0; i < 2 * WAVES; i++) all[i / 2][i % 2] += partition->sums[k][i / 2][i % 2];
        }
        for (int k = 0; all[0][0] > 0.0 && k < partition->subsets; k++) {
            for (int i = 0; i < 2 * WAVES; i++) {
                const double away = partition->subsets * partition->sums[k][i / 2][i % 2] - all[i / 2][i % 2];
                partition->squares[i / 2] += away * away / (all[0][0] * all[0][0]) / partition->subsets;
                partition->sums[k][i / 2][i % 2] = 0.0;
            }
        }
        partition->num_points += all[0][0] > 0.0;
    }
    for (int wave = 0; wave < WAVES; wave++)
        worst = fmax(worst, sqrt(partition->squares[wave] / fmax(partition->num_points, 1.0)));
    for (int k = 0; k < partition->subsets; k++) worst = partition->lines[k] > 0.0 ? worst : INFINITY;
    return worst;
}

/* The interleaving that suits a number of subsets, and the unevenness that was measured. */
struct interleaving {
    int fold;     /* 0 = some subset would have no LOR */
    double found; /* unevenness of the subsets */
    double whole; /* unevenness of subsets of whole pairs; INFINITY = not known */
};

/* Takes the first divisor whose subsets are even enough, or else the largest divisor whose subsets all have LORs. */
static lr_status interleave_by(struct partition *partition, int subsets, struct interleaving *best, const lr_log *log)
{
    const lr_lors *lors = partition->lors;
    *best = (struct interleaving){0, INFINITY, INFINITY};
    partition->subsets = subsets;
    for (int n = 1; n <= subsets && n <= lors->angles->count && best->found > EVEN_ENOUGH; n++) {
        const int groups = subsets / n;
        if (subsets % n != 0 || groups > lors->num_pairs) continue;
        LR_TRY(lr_osem_subsets(lors, groups, partition->group_of, log));
        partition->interleave = n;
        const double found = measure(partition);
        best->whole = n == 1 ? found : best->whole;
        if (found < INFINITY) {
            best->fold = n;
            best->found = found;
        }
    }
    return LR_OK;
}

lr_status lr_osem_interleave(const lr_lors *lors, int subsets, int *interleave, const lr_log *log)
{
    *interleave = 1;
    if (lors->scanner == NULL || subsets <= 1) return LR_OK;
    struct partition partition = {.lors = lors};
    static const char *const what = "subsets";
    partition.group_of = lr_alloc(lors->num_pairs, sizeof(*partition.group_of), what, log);
    partition.sums = lr_alloc(subsets, sizeof(*partition.sums), what, log);
    partition.lines = lr_alloc(subsets, sizeof(*partition.lines), what, log);
    partition.level = lr_alloc(lors->scanner->num_modules, sizeof(*partition.level), what, log);
    const bool has_memory =
        partition.group_of != NULL && partition.sums != NULL && partition.lines != NULL && partition.level != NULL;
    lr_status status = has_memory ? LR_OK : LR_FAILED;

    struct interleaving best = {0}, fewer = {0};
    if (status == LR_OK) status = interleave_by(&partition, subsets, &best, log);
    /* The advice for uneven subsets: the first smaller number that is even enough, or else 2. */
    int advised = subsets;
    while (status == LR_OK && best.fold > 0 && best.found > UNEVEN && advised > 2) {
        advised = advised > 3 ? advised / 2 : 2;
        status = interleave_by(&partition, advised, &fewer, log);
        if (fewer.found <= UNEVEN) break;
    }
    lr_free_all(partition.group_of, partition.sums, partition.lines, partition.level);
    if (has_memory) *interleave = best.fold;
    if (status == LR_OK && best.fold == 0) {
        return lr_error(
            log, LR_USAGE,
            "%d subsets: some would have no LOR, of %lld pairs of modules with %d places around the axis; take fewer",
            subsets, (long long)lors->num_pairs, lors->angles->count);
    }
    if (status != LR_OK) return status;
    char made[64] = "whole pairs of modules", of_pairs[96] = "", advice[128] = "";
    if (best.fold > 1) snprintf(made, sizeof(made), "LORs interleaved %d-fold by angle", best.fold);
    if (best.fold > 1 && isfinite(best.whole))
        snprintf(of_pairs, sizeof(of_pairs), " (of whole module pairs it would be %.3g %%)", 100.0 * best.whole);
    if (advised < subsets && fewer.found < best.found) {
        snprintf(advice, sizeof(advice), ": if images show streaks, take %d subsets (%.3g %%) and more iterations",
                 advised, 100.0 * fewer.found);
    }
    lr_info(log,
            "%d subsets of %s; the lines of one subset through a point differ from those of all by %.3g %% in number "
            "or direction%s%s",
            subsets, made, 100.0 * best.found, of_pairs, advice);
    return LR_OK;
}

double lr_osem_cost(const lr_lors *lors, int interleave)
{
    if (lors->scanner == NULL || interleave <= 1 || lr_turn_shift(lors, interleave) == 0) return 1.0;
    return interleave < LR_ROW_KINDS ? interleave : LR_ROW_KINDS;
}
