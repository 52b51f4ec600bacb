/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Subsets of LORs: docs/method/common.md, "Subsets". Lines that are turned images of each other form a class; each
 * class is dealt out in the order of its directions, so that every subset has its share of each kind of line from
 * directions all around. A line is, if there are enough of them, all pairs that look the same along the axis, and their
 * images after half a turn: projections compute these together, so that a subset costs its share of the whole.
 *
 * Subsets are compared by what points see of them: from points where LORs cross, a line leads to each crystal around; a
 * subset is as good as its share of a point's lines, and as the spread of their directions, come near those of all
 * lines. */
#include <lr/recon.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/vec.h"
#include "model/lors/place.h"

#include <stdlib.h>
#include <string.h>

/* Places closer than this belong to one class, mm. Turned modules differ by rounding only. */
#define SAME_PLACE_MM 0.01
/* Unit of angles, radian. */
#define SAME_ANGLE 1e-6
#define PI 3.14159265358979323846
/* Relative difference below which sums of squares count as equal. */
#define SAME_SUM 1e-9
/* Weight of LORs against each wave of directions. Lines are fewer than pairs, and equal distances
 * between those of a class make waves that only those of other classes cancel. */
#define LORS_FIRST 32.0
#define LORS_FIRST_OF_LINES 4.0
/* Least number of lines of several pairs for each subset; with fewer, pairs are dealt one by one. */
enum { LEAST_LINES = 20 };
enum { NUM_WAVES = 32, MAX_TRIES = 256, NUM_ROUNDS = 4 };

/* A module pair as the line between two centres. */
struct pair_line {
    int64_t from_axis; /* how far it passes the axis, ... */
    int64_t low, high; /* ... and the axial places of its ends, all in SAME_PLACE_MM */
    int64_t angle;     /* of the point next to the axis, in SAME_ANGLE */
    int64_t direction; /* the same for lines that look the same along the axis, and after half a turn */
    bool has_side;     /* the point next to the axis is not on it */
    int64_t class_number;
    int64_t turn;     /* in which it is dealt within its class */
    int64_t num_lors; /* in coincidence */
    int32_t pair;
};

static int64_t rounded(double value, double unit)
{
    return llround(value / unit);
}

/* Rounds an angle; the last value before a full turn is the first. */
static int64_t rounded_angle(double y, double x, double turn)
{
    const double angle = fmod(atan2(y, x) + 4.0 * PI, turn);
    return rounded(angle, SAME_ANGLE) % rounded(turn, SAME_ANGLE);
}

static void describe(const lr_lors *lors, int32_t pair, struct pair_line *line)
{
    double a[3], b[3];
    lr_scanner_detection_centre(lors->scanner, lors->pairs[pair][0], a);
    lr_scanner_detection_centre(lors->scanner, lors->pairs[pair][1], b);
    line->pair = pair;
    line->num_lors = lr_pair_num_coincidences(lors, pair);
    if (hypot(b[0] - a[0], b[1] - a[1]) > SAME_PLACE_MM) {
        /* Any other line is followed so that the axis lies on its left, or upwards where it meets the axis, or
         * without direction where it then does not rise either. */
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
        line->angle = rounded_angle(-sign * dx, sign * dy, meets_axis && z_a == z_b ? PI : 2.0 * PI);
        line->direction = rounded_angle(-dx, dy, PI);
    } else {
        /* A line along the axis: its place around the axis serves as its direction. */
        line->from_axis = rounded(hypot(a[0], a[1]), SAME_PLACE_MM);
        line->has_side = line->from_axis > 0;
        line->low = rounded(fmin(a[2], b[2]), SAME_PLACE_MM);
        line->high = rounded(fmax(a[2], b[2]), SAME_PLACE_MM);
        line->angle = rounded_angle(a[1], a[0], 2.0 * PI);
        line->direction = rounded_angle(a[1], a[0], PI);
    }
}

static int compare(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int compare_classes(const struct pair_line *a, const struct pair_line *b)
{
    const int64_t keys[3][2] = {{a->from_axis, b->from_axis}, {a->low, b->low}, {a->high, b->high}};
    for (int k = 0; k < 3; k++) {
        const int order = compare(keys[k][0], keys[k][1]);
        if (order != 0) return order;
    }
    return 0;
}

static int by_place(const void *a, const void *b)
{
    const struct pair_line *line_a = a, *line_b = b;
    const int order = compare_classes(line_a, line_b);
    return order != 0 ? order : compare(line_a->pair, line_b->pair);
}

static int by_class_and_angle(const void *a, const void *b)
{
    const struct pair_line *line_a = a, *line_b = b;
    int order = compare(line_a->class_number, line_b->class_number);
    order = order != 0 ? order : compare(line_a->angle, line_b->angle);
    return order != 0 ? order : compare(line_a->pair, line_b->pair);
}

/* Lines along the axis look like points from there, and are distinguished by their place. */
static int compare_directions(const struct pair_line *a, const struct pair_line *b)
{
    const int order = compare(a->from_axis, b->from_axis);
    return order != 0 ? order : compare(a->direction, b->direction);
}

static int by_direction(const void *a, const void *b)
{
    const struct pair_line *line_a = a, *line_b = b;
    const int order = compare_directions(line_a, line_b);
    return order != 0 ? order : compare(line_a->pair, line_b->pair);
}

/* Lines of several pairs, in classes of the same distance from the axis; with_images: those after half
 * a turn count as the same line. Returns false where there are too few lines, or few in a class. */
static bool number_lines(struct pair_line *lines, int64_t num_pairs, int subsets, bool with_images)
{
    for (int64_t k = 0; !with_images && k < num_pairs; k++)
        lines[k].direction = lines[k].has_side ? lines[k].angle : lines[k].direction;
    qsort(lines, (size_t)num_pairs, sizeof(*lines), by_direction);
    int64_t num_lines = 0;
    for (int64_t k = 0; k < num_pairs; k++) num_lines += k == 0 || compare_directions(&lines[k - 1], &lines[k]) != 0;

    int64_t num_classes = 0, turn = 0;
    for (int64_t k = 0; k < num_pairs; k++) {
        const bool is_new = k == 0 || lines[k - 1].from_axis != lines[k].from_axis;
        num_classes += is_new;
        turn = is_new ? 0 : turn + (compare_directions(&lines[k - 1], &lines[k]) != 0);
        lines[k].class_number = num_classes;
        lines[k].turn = turn;
    }
    return num_lines >= (int64_t)LEAST_LINES * subsets && num_classes * 4 <= num_lines;
}

/* The load of a subset: its LORs, and the sums over them of exp(i m angle), m = 1 .. NUM_WAVES. Even waves
 * distinguish directions, odd ones also sides of the axis; all are 0 for even directions. */
struct load {
    double lors, wave[NUM_WAVES][2];
};

/* load += sign * share */
static void add_share(struct load *load, double sign, const struct load *share)
{
    load->lors += sign * share->lors;
    for (int m = 0; m < NUM_WAVES; m++) {
        load->wave[m][0] += sign * share->wave[m][0];
        load->wave[m][1] += sign * share->wave[m][1];
    }
}

/* Unevenness of a subset: sums of squares over subsets are least if all are equal. Fourier component m of the
 * directions has weight 1/m; lors_first is the weight of the number of LORs. */
static double unevenness(const struct load *load, double lors_first)
{
    double sum = lors_first * load->lors * load->lors;
    for (int m = 0; m < NUM_WAVES; m++) {
        const double *wave = load->wave[m];
        sum += (wave[0] * wave[0] + wave[1] * wave[1]) / (m + 1);
    }
    return sum;
}

/* Shares of a class: hands[h] is what hand h gets when the class is dealt to `subsets` hands. */
struct class_hands {
    int subsets;
    double lors_first;
    struct load *hands; /* [subsets] */
    struct load *loads; /* [subsets] what the subsets have */
    int32_t *subset_of; /* [num_pairs] */
};

/* Subset that hand 0 goes to, hand 1 to the next and so on, that leaves all most even; the first of
 * several that differ by rounding. */
static int find_start(const struct class_hands *table)
{
    double least = INFINITY;
    int best = 0;
    const int tries = table->subsets < MAX_TRIES ? table->subsets : MAX_TRIES;
    for (int n = 0; n < tries; n++) {
        const int start = (int)((int64_t)n * table->subsets / tries);
        double sum = 0.0;
        for (int hand = 0; hand < table->subsets; hand++) {
            struct load load = table->loads[(start + hand) % table->subsets];
            add_share(&load, 1.0, &table->hands[hand]);
            sum += unevenness(&load, table->lors_first);
        }
        if (sum < least * (1.0 - SAME_SUM)) {
            least = sum;
            best = start;
        }
    }
    return best;
}

static void add_hands(const struct class_hands *table, double sign, int start)
{
    for (int hand = 0; hand < table->subsets; hand++)
        add_share(&table->loads[(start + hand) % table->subsets], sign, &table->hands[hand]);
}

/* Deals a class to the subsets; in later rounds the class may move to a better place. */
static void deal_class(const struct pair_line *lines, int64_t count, bool is_dealt, const struct class_hands *table)
{
    int32_t *subset_of = table->subset_of;
    for (int hand = 0; hand < table->subsets; hand++) table->hands[hand] = (struct load){0};
    for (int64_t k = 0; k < count; k++) {
        struct load share;
        /* The load that one line adds. */
        const struct pair_line *line = &lines[k];
        const double num_lors = (double)line->num_lors;
        share.lors = num_lors;
        for (int m = 1; m <= NUM_WAVES; m++) {
            const bool is_felt = line->has_side || m % 2 == 0;
            const double angle = m * SAME_ANGLE * (double)line->angle;
            share.wave[m - 1][0] = is_felt ? num_lors * cos(angle) : 0.0;
            share.wave[m - 1][1] = is_felt ? num_lors * sin(angle) : 0.0;
        }

        add_share(&table->hands[lines[k].turn % table->subsets], 1.0, &share);
    }

    if (is_dealt) add_hands(table, -1.0, subset_of[lines[0].pair]);
    const int start = find_start(table);
    add_hands(table, 1.0, start);
    for (int64_t k = 0; k < count; k++) subset_of[lines[k].pair] = (int32_t)((start + lines[k].turn) % table->subsets);
}

lr_status lr_osem_subsets(const lr_lors *lors, int subsets, int32_t *subset_of, const lr_log *log)
{
    if (subsets < 1 || subsets > lors->num_pairs) {
        return lr_error(log, LR_USAGE, "%d subsets of %lld pairs of modules: take 1 to %lld", subsets,
                        (long long)lors->num_pairs, (long long)lors->num_pairs);
    }
    if (lors->scanner == NULL) { /* views: their numbers go around */
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
            /* Scanners without a symmetry to speak of have classes of a pair or two. They get classes of like
             * distance from the axis instead, of four pairs for each subset. */
            const int64_t num_pairs = lors->num_pairs;
            qsort(lines, (size_t)num_pairs, sizeof(*lines), by_place);
            int64_t num_classes = 0;
            for (int64_t k = 0; k < num_pairs; k++) {
                num_classes += k == 0 || compare_classes(&lines[k - 1], &lines[k]) != 0;
                lines[k].class_number = num_classes;
            }
            for (int64_t k = 0; num_classes * 4 > num_pairs && k < num_pairs; k++)
                lines[k].class_number = k / (4 * (int64_t)subsets);
            qsort(lines, (size_t)num_pairs, sizeof(*lines), by_class_and_angle);
            for (int64_t k = 0; k < num_pairs; k++) {
                const bool is_new = k == 0 || lines[k - 1].class_number != lines[k].class_number;
                lines[k].turn = is_new ? 0 : lines[k - 1].turn + 1;
            }
        }

        const struct class_hands table = {subsets, by_lines ? LORS_FIRST_OF_LINES : LORS_FIRST, loads, loads + subsets,
                                          subset_of};
        for (int round = 0; round < NUM_ROUNDS; round++) {
            for (int64_t begin = 0, end; begin < lors->num_pairs; begin = end) {
                end = begin + 1;
                while (end < lors->num_pairs && lines[end].class_number == lines[begin].class_number) end++;
                deal_class(lines + begin, end - begin, round > 0, &table);
            }
        }
    }
    free(lines);
    free(loads);
    return status;
}

/* --- how evenly subsets see the object --- */

/* Subsets that are less even are interleaved more. A disc after 40 updates deviates less than 1.5 times as
 * much as with one subset where this is at most 0.1, and 2 to 60 times where whole pairs reach 0.2 to 1. */
#define EVEN_ENOUGH 0.1

/* Points, and waves of directions that are compared, the share of lines among them. */
enum { POINTS = 48, WAVES = 4 };

/* Steps of these shares, modulo one, spread evenly: over LORs, and along them. */
#define LOR_STEP 0.6180339887498949
#define WAY_STEP 0.7548776662466927

/* One way to make subsets: k has LORs of group k / interleave at the angles k mod interleave. */
struct dealing {
    const lr_lors *lors;
    int subsets, interleave;
    int32_t *group_of;                 /* [num_pairs] */
    double (*sums)[WAVES][2];          /* [subsets] at the current point */
    double *lines;                     /* [subsets] of all points */
    double squares[WAVES], num_points; /* what subsets differ by, relatively */
    int *level, num_level;             /* [num_modules] those about as high as the current point */
};

/* The crystal of another module than `from` that a line out of a crystal of that one meets first; -1: none. */
static int meet(const struct dealing *dealing, int from, const double origin[3], const double way[3])
{
    const lr_scanner *scanner = dealing->lors->scanner;
    double nearest = INFINITY;
    int met = -1;
    for (int k = 0; k < dealing->num_level; k++) {
        const int m = dealing->level[k];
        const lr_module *module = &scanner->modules[m];
        double centre[3], away[3], hit[3];
        lr_scanner_detection_centre(scanner, m, centre);
        vec_sub(centre, origin, away);
        const double slope = vec_dot(module->normal, way);
        const double t = vec_dot(module->normal, away) / slope;
        if (m == from || !(slope < 0.0) || !(t > 0.0 && t < nearest)) continue;
        vec_add_scaled(away, -t, way, hit); /* from there to the centre */
        const double p = floor(0.5 * module->crystals[0] - vec_dot(module->u, hit) / module->pitch_mm[0]);
        const double q = floor(0.5 * module->crystals[1] - vec_dot(module->v, hit) / module->pitch_mm[1]);
        if (p >= 0 && p < module->crystals[0] && q >= 0 && q < module->crystals[1]) {
            nearest = t;
            met = scanner->first_crystal[m] + (int)q * module->crystals[0] + (int)p;
        }
    }
    return met;
}

/* Lines through a point, out of each crystal around that stands at its height. */
static void look_from(struct dealing *dealing, const double point[3])
{
    const lr_lors *lors = dealing->lors;
    const lr_scanner *scanner = lors->scanner;
    dealing->num_level = 0;
    for (int m = 0; m < scanner->num_modules; m++) {
        const lr_module *module = &scanner->modules[m];
        double reach = 0.0;
        for (int axis = 0; axis < 2; axis++) {
            const double slope = axis == 0 ? module->u[2] : module->v[2];
            reach += fabs(slope) * module->pitch_mm[axis] * (0.5 * module->crystals[axis] + 1.0);
        }
        dealing->level[dealing->num_level] = m;
        dealing->num_level += fabs(point[2] - module->centre_mm[2]) <= reach + 1.0;
    }

    for (int k = 0; k < dealing->num_level; k++) {
        const int m = dealing->level[k];
        const lr_module *module = &scanner->modules[m];
        const bool is_v = lors->angles->modules[m].is_v; /* whose axis along the scanner's is u then */
        const double *along = is_v ? module->u : module->v, half = 0.5 * module->crystals[!is_v];
        const double level = (point[2] - module->centre_mm[2]) / (along[2] * module->pitch_mm[!is_v]);
        if (!(fabs(level) < half)) continue;
        const int row = (int)(level + half);
        for (int n = 0; n < module->crystals[is_v]; n++) {
            const int crystal =
                scanner->first_crystal[m] + (is_v ? n * module->crystals[0] + row : row * module->crystals[0] + n);
            double origin[3], way[3];
            lr_scanner_hit_centre(scanner, crystal, origin);
            vec_sub(point, origin, way);
            const int other = meet(dealing, m, origin, way);
            const int64_t lor = other >= 0 ? lr_lors_number(lors, crystal, other) : -1;
            if (lor >= 0 && lr_lors_in_coincidence(lors, lor)) {
                const double direction = atan2(way[1], way[0]);
                const lr_lor at = lr_lors_describe(dealing->lors, lor);
                const int64_t pair = lr_lors_pair(dealing->lors, at.module_i, at.module_j);
                const int i = dealing->group_of[pair] * dealing->interleave +
                              lr_lors_angle(dealing->lors, lor) % dealing->interleave;
                for (int wave = 0; wave < WAVES; wave++) {
                    dealing->sums[i][wave][0] += cos(2 * wave * direction);
                    dealing->sums[i][wave][1] += sin(2 * wave * direction);
                }
            }
        }
    }
}

/* Looks from points within the middle half of LORs that are spread over all. INFINITY: some subset has no LOR. */
static double measure(struct dealing *dealing)
{
    const lr_lors *lors = dealing->lors;
    double lor_share = 0.5, way_share = 0.5, worst = 0.0;
    dealing->num_points = 0.0;
    memset(dealing->squares, 0, sizeof(dealing->squares));
    memset(dealing->lines, 0, (size_t)dealing->subsets * sizeof(*dealing->lines));
    for (int n = 0; n < 64 * POINTS && dealing->num_points < POINTS; n++) {
        lor_share = fmod(lor_share + LOR_STEP, 1.0);
        way_share = fmod(way_share + WAY_STEP, 1.0);
        const int64_t lor = (int64_t)(lor_share * (double)lors->count);
        int32_t crystals[2];
        double point[3], other[3], way[3];
        if (!lr_lors_in_coincidence(lors, lor)) continue;
        lr_lors_crystals(lors, lor, crystals);
        lr_scanner_hit_centre(lors->scanner, crystals[0], point);
        lr_scanner_hit_centre(lors->scanner, crystals[1], other);
        vec_sub(other, point, way);
        vec_add_scaled(point, 0.25 + 0.5 * way_share, way, point);
        look_from(dealing, point);
        double all[WAVES][2] = {{0.0}};
        for (int k = 0; k < dealing->subsets; k++) {
            dealing->lines[k] += dealing->sums[k][0][0];
            for (int i = 0; i < 2 * WAVES; i++) all[i / 2][i % 2] += dealing->sums[k][i / 2][i % 2];
        }
        for (int k = 0; all[0][0] > 0.0 && k < dealing->subsets; k++) {
            for (int i = 0; i < 2 * WAVES; i++) {
                const double away = dealing->subsets * dealing->sums[k][i / 2][i % 2] - all[i / 2][i % 2];
                dealing->squares[i / 2] += away * away / (all[0][0] * all[0][0]) / dealing->subsets;
                dealing->sums[k][i / 2][i % 2] = 0.0;
            }
        }
        dealing->num_points += all[0][0] > 0.0;
    }
    for (int wave = 0; wave < WAVES; wave++)
        worst = fmax(worst, sqrt(dealing->squares[wave] / fmax(dealing->num_points, 1.0)));
    for (int k = 0; k < dealing->subsets; k++) worst = dealing->lines[k] > 0.0 ? worst : INFINITY;
    return worst;
}

/* The first divisor that is even enough, or else the most even one; 0: with each some subset has no LOR. */
static lr_status find_interleave(struct dealing *dealing, int *best, const lr_log *log)
{
    const lr_lors *lors = dealing->lors;
    const int subsets = dealing->subsets, angles = lr_lors_num_angles(lors);
    double whole = INFINITY, least = INFINITY;
    *best = 0;
    for (int interleave = 1; interleave <= subsets && interleave <= angles && least > EVEN_ENOUGH; interleave++) {
        const int groups = subsets / interleave;
        if (subsets % interleave != 0 || groups > lors->num_pairs) continue;
        LR_TRY(lr_osem_subsets(lors, groups, dealing->group_of, log));
        dealing->interleave = interleave;
        const double found = measure(dealing);
        whole = interleave == 1 ? found : whole;
        *best = found < least ? interleave : *best;
        least = fmin(found, least);
    }
    if (*best == 1) {
        lr_info(log, "%d subsets of whole pairs of modules; points see them unevenly by %.2g", subsets, least);
    } else if (*best > 1) {
        lr_info(log,
                "%d subsets of LORs interleaved %d-fold by angle; points see them unevenly by %.2g, "
                "and would see those of whole pairs by %.2g",
                subsets, *best, least, whole);
    }
    return LR_OK;
}

lr_status lr_osem_interleave(const lr_lors *lors, int subsets, int *interleave, const lr_log *log)
{
    *interleave = 1;
    if (lors->scanner == NULL || subsets <= 1) return LR_OK;
    struct dealing dealing = {.lors = lors, .subsets = subsets};
    static const char *const what = "subsets";
    dealing.group_of = lr_alloc(lors->num_pairs, sizeof(*dealing.group_of), what, log);
    dealing.sums = lr_alloc(dealing.subsets, sizeof(*dealing.sums), what, log);
    dealing.lines = lr_alloc(dealing.subsets, sizeof(*dealing.lines), what, log);
    dealing.level = lr_alloc(lors->scanner->num_modules, sizeof(*dealing.level), what, log);
    const bool is_there =
        dealing.group_of != NULL && dealing.sums != NULL && dealing.lines != NULL && dealing.level != NULL;

    const lr_status status = is_there ? find_interleave(&dealing, interleave, log) : LR_FAILED;
    free(dealing.group_of);
    free(dealing.sums);
    free(dealing.lines);
    free(dealing.level);

    if (status == LR_OK && *interleave == 0) {
        return lr_error(log, LR_USAGE,
                        "%d subsets: some would have no LOR, of %lld pairs of modules at %d angles; "
                        "take fewer",
                        subsets, (long long)lors->num_pairs, lr_lors_num_angles(lors));
    }
    return status;
}
