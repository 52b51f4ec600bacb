/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A scanner from the geometry of a PETSIRD file: crystals are boxes put in place twice, element
 * into module and module into scanner. */
#include "base/log.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/vec.h"
#include "io/events/petsird.h"
#include "io/scanners/crystal_map.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Largest distance of corners from those of a right box, in parts of its longest edge. */
static const double box_tolerance = 1e-3;

/* Most modules whose pairs are examined one by one. */
enum { MAX_MASK_MODULES = 1 << 14 };

/* A crystal's box: from its centre to the middles of three faces. */
struct box {
    double half[3][3];
};

/* --- places --- */

static void transform(const float matrix[12], const double in[3], double out[3])
{
    double moved[3];
    for (int k = 0; k < 3; k++) {
        const float *row = &matrix[4 * k];
        moved[k] = row[0] * in[0] + row[1] * in[1] + row[2] * in[2] + row[3];
    }
    memcpy(out, moved, sizeof(moved));
}

static void rotate(const float matrix[12], const double in[3], double out[3])
{
    static const double origin[3] = {0, 0, 0};
    double start[3], end[3];
    transform(matrix, origin, start);
    transform(matrix, in, end);
    vec_sub(end, start, out);
}

void lr_petsird_corners(const struct lr_petsird *petsird, int64_t crystal, double corners_mm[8][3])
{
    int64_t module;
    const struct lr_petsird_type *type = &petsird->types[lr_petsird_type_of(petsird, crystal, &module)];
    const int64_t element = (crystal - type->first_crystal) % type->num_elements;
    for (int c = 0; c < 8; c++) {
        const double corner[3] = {type->corners_mm[c][0], type->corners_mm[c][1], type->corners_mm[c][2]};
        transform(type->elements[element], corner, corners_mm[c]);
        transform(type->modules[module], corners_mm[c], corners_mm[c]);
    }
}

void lr_petsird_centre(const struct lr_petsird *petsird, int64_t crystal, double centre_mm[3])
{
    double corners_mm[8][3];
    lr_petsird_corners(petsird, crystal, corners_mm);
    memset(centre_mm, 0, 3 * sizeof(*centre_mm));
    for (int c = 0; c < 8; c++) vec_add_scaled(centre_mm, 0.125, corners_mm[c], centre_mm);
}

/* --- boxes --- */

/* Largest distance of a corner from the eight of the box with a corner and three edges. */
static double box_residual(const double corners[8][3], const double edges[3][3])
{
    double worst = 0;
    for (int c = 0; c < 8; c++) {
        double nearest = INFINITY;
        for (int n = 0; n < 8; n++) {
            double at[3];
            memcpy(at, corners[0], sizeof(at));
            for (int k = 0; k < 3; k++) vec_add_scaled(at, n >> k & 1, edges[k], at);
            vec_sub(at, corners[c], at);
            nearest = fmin(nearest, vec_length(at));
        }
        worst = fmax(worst, nearest);
    }
    return worst;
}

static double skewness(const double edges[3][3])
{
    double worst = 0;
    for (int k = 0; k < 3; k++) {
        const double *a = edges[k], *b = edges[(k + 1) % 3];
        worst = fmax(worst, fabs(vec_dot(a, b)) / fmax(vec_length(a), vec_length(b)));
    }
    return worst;
}

/* Finds the three edges from corner 0, whatever the corners' order: of all candidates those nearest to a right box.
 * Returns how far from one the corners are, mm. */
static double find_edges(const double corners[8][3], double edges[3][3])
{
    double best = INFINITY;
    for (int n = 0; n < 7 * 7 * 7; n++) {
        const int picked[3] = {1 + n % 7, 1 + n / 7 % 7, 1 + n / 49};
        double tried[3][3];
        if (picked[0] >= picked[1] || picked[1] >= picked[2]) continue;
        for (int k = 0; k < 3; k++) vec_sub(corners[picked[k]], corners[0], tried[k]);
        const double off = fmax(box_residual(corners, (const double(*)[3])tried), skewness((const double(*)[3])tried));
        if (off < best) {
            best = off;
            memcpy(edges, tried, sizeof(tried));
        }
    }
    return best;
}

/* Finds the box of the type's crystals, in the coordinates before both transformations. */
static lr_status find_box(const struct lr_petsird *petsird, const struct lr_petsird_type *type, struct box *box)
{
    double corners[8][3], edges[3][3] = {{0}};
    double longest = 0, shortest = INFINITY;
    for (int c = 0; c < 8; c++)
        for (int k = 0; k < 3; k++) corners[c][k] = type->corners_mm[c][k];
    const double off = find_edges((const double(*)[3])corners, edges);
    for (int k = 0; k < 3; k++) {
        longest = fmax(longest, vec_length(edges[k]));
        shortest = fmin(shortest, vec_length(edges[k]));
    }
    if (!(off <= box_tolerance * longest) || !(shortest > 0)) {
        return lr_error(petsird->log, LR_BAD_INPUT,
                        "%s: the crystals of module type %d are no right boxes: their corners are "
                        "%.3g mm off the nearest one, and modules here hold boxes only",
                        petsird->path, (int)(type - petsird->types), off);
    }
    for (int k = 0; k < 3; k++)
        for (int m = 0; m < 3; m++) box->half[k][m] = 0.5 * edges[k][m];
    return LR_OK;
}

/* Orders three directions as u, v, depth. The depth is the one nearest to the way from the scanner's axis to the
 * module (or along z where the module stands on the axis), and v the one of the others that is nearer to z. */
static void order_axes(const double axes[3][3], const double module_mm[3], int order[3])
{
    double outward[3] = {module_mm[0], module_mm[1], 0};
    int depth = 0;
    if (!(vec_length(outward) > 1e-3)) {
        outward[0] = outward[1] = 0;
        outward[2] = 1;
    }
    for (int k = 1; k < 3; k++)
        depth = fabs(vec_dot(axes[k], outward)) > fabs(vec_dot(axes[depth], outward)) ? k : depth;
    const int one = (depth + 1) % 3, other = (depth + 2) % 3;
    const bool one_is_v = fabs(axes[one][2]) > fabs(axes[other][2]);
    order[0] = one_is_v ? other : one;
    order[1] = one_is_v ? one : other;
    order[2] = depth;
}

/* --- crystals --- */

/* The modules of a type being listed. */
struct listing {
    const struct lr_petsird *petsird;
    const struct lr_petsird_type *type;
    struct box box;
    int group; /* of its first module */
};

static void place_crystal(const struct listing *listing, int64_t module, int64_t element, const double module_mm[3],
                          lr_crystal *crystal)
{
    const struct lr_petsird_type *type = listing->type;
    double axes[3][3], size_mm[3];
    int order[3];
    for (int k = 0; k < 3; k++) {
        rotate(type->elements[element], listing->box.half[k], axes[k]);
        rotate(type->modules[module], axes[k], axes[k]);
        size_mm[k] = 2 * vec_length(axes[k]);
        for (int m = 0; m < 3 && size_mm[k] > 0; m++) axes[k][m] /= 0.5 * size_mm[k];
    }
    order_axes((const double(*)[3])axes, module_mm, order);
    for (int k = 0; k < 3; k++) {
        crystal->size_mm[k] = size_mm[order[k]];
        memcpy(crystal->axes[k], axes[order[k]], sizeof(axes[0]));
    }
    crystal->group = listing->group + (int)module;
}

static lr_crystal *list_crystals(const struct lr_petsird *petsird)
{
    lr_crystal *crystals = lr_alloc(petsird->num_crystals, sizeof(*crystals), "crystals", petsird->log);
    int group = 0;
    for (int k = 0; crystals != NULL && k < petsird->num_types; k++) {
        struct listing listing = {.petsird = petsird, .type = &petsird->types[k], .group = group};
        if (listing.type->num_elements == 0 || listing.type->num_modules == 0) continue;
        if (find_box(petsird, listing.type, &listing.box) != LR_OK) {
            free(crystals);
            return NULL;
        }
        const struct lr_petsird_type *type = listing.type;
        for (int64_t m = 0; m < type->num_modules; m++) {
            double module_mm[3];
            const int64_t first = type->first_crystal + m * type->num_elements;
            double one[3];
            memset(module_mm, 0, 3 * sizeof(*module_mm));
            for (int64_t e = 0; e < type->num_elements; e++) {
                lr_petsird_centre(listing.petsird, first + e, one);
                vec_add_scaled(module_mm, 1.0 / (double)type->num_elements, one, module_mm);
            }

            for (int64_t e = 0; e < type->num_elements; e++) {
                const int64_t at = type->first_crystal + m * type->num_elements + e;
                lr_petsird_centre(listing.petsird, at, crystals[at].centre_mm);
                place_crystal(&listing, m, e, module_mm, &crystals[at]);
            }
        }

        group += (int)listing.type->num_modules;
    }
    return crystals;
}

/* --- the mask --- */

static unsigned char said(const struct lr_petsird *petsird, const int types[2], const int64_t modules[2])
{
    const struct lr_petsird_pair *pair = &petsird->pairs[types[0] * petsird->num_types + types[1]];
    return pair->excluded != NULL && modules[0] < pair->rows && modules[1] < pair->columns
               ? pair->excluded[modules[0] * pair->columns + modules[1]]
               : 0;
}

bool lr_petsird_allows(const struct lr_petsird *petsird, const int types[2], const int64_t modules[2])
{
    const int other_types[2] = {types[1], types[0]};
    const int64_t other_modules[2] = {modules[1], modules[0]};
    const unsigned char one = said(petsird, types, modules);
    return (one != 0 ? one : said(petsird, other_types, other_modules)) != 1;
}

/* Comparison of the file's mask with the rule that modules stand at least some places apart. */
struct mask_count {
    int64_t excluded;    /* pairs of different modules that the mask excludes */
    int farthest;        /* most places apart of these */
    int nearest_allowed; /* least places apart of the others */
};

/* First crystals of the file's modules. */
struct file_module {
    int type;
    int64_t module;
    int position, block;
};

static int places_apart(int a, int b, int around)
{
    const int apart = abs(a - b);
    return apart < around - apart ? apart : around - apart;
}

static int count_modules(const struct lr_petsird *petsird)
{
    int64_t count = 0;
    for (int t = 0; t < petsird->num_types; t++)
        count += petsird->types[t].num_elements > 0 ? petsird->types[t].num_modules : 0;
    return (int)count;
}

/* Finds the rule min_module_difference that says the same as the mask; warns of a mask that no rule expresses. */
static lr_status settle_mask(const struct lr_petsird *petsird, const lr_scanner *scanner, const int *crystal_of,
                             int *min_module_difference)
{
    *min_module_difference = 0;
    if (!lr_petsird_has_mask(petsird)) return LR_OK;
    struct file_module *modules = lr_alloc(count_modules(petsird), sizeof(*modules), "modules", petsird->log);
    if (modules == NULL) return LR_FAILED;
    int count = 0;
    for (int t = 0; t < petsird->num_types; t++) {
        const struct lr_petsird_type *type = &petsird->types[t];
        for (int64_t m = 0; m < type->num_modules && type->num_elements > 0; m++) {
            const int64_t first = type->first_crystal + m * type->num_elements;
            const int own = lr_scanner_module_of(scanner, crystal_of[first]);
            modules[count++] = (struct file_module){t, m, scanner->modules[own].position, scanner->modules[own].block};
        }
    }

    if (count > MAX_MASK_MODULES) {
        free(modules);
        lr_warn(petsird->log,
                "%s: its table of module pairs is passed over: %d modules are more "
                "than %d",
                petsird->path, count, MAX_MASK_MODULES);
        return LR_OK;
    }
    struct mask_count found = {0, -1, INT32_MAX};
    for (int i = 0; i < count; i++) {
        for (int j = 0; j < i; j++) {
            const int types[2] = {modules[i].type, modules[j].type};
            const int64_t pair[2] = {modules[i].module, modules[j].module};
            if (modules[i].block > 0 && modules[i].block == modules[j].block) continue; /* layers */
            const int apart = scanner->num_positions > 0
                                  ? places_apart(modules[i].position, modules[j].position, scanner->num_positions)
                                  : 0;
            if (lr_petsird_allows(petsird, types, pair)) {
                found.nearest_allowed = apart < found.nearest_allowed ? apart : found.nearest_allowed;
            } else {
                found.excluded++;
                found.farthest = apart > found.farthest ? apart : found.farthest;
            }
        }
    }

    free(modules);
    if (found.excluded == 0) return LR_OK;
    if (scanner->num_positions > 0 && found.farthest < found.nearest_allowed && found.nearest_allowed != INT32_MAX) {
        *min_module_difference = found.nearest_allowed;
        return LR_OK;
    }
    lr_warn(petsird->log,
            "%s: puts %lld pairs of modules out of coincidence, which no rule of ours says: they "
            "are taken as if in coincidence, set min_module_difference or field_of_view_mm in a "
            "scanner file of your own",
            petsird->path, (long long)found.excluded);
    return LR_OK;
}

/* --- the scanner --- */

/* PETSIRD's own helpers put a detection in the middle of its crystal; where crystals differ the shortest ones count. */
static double middle_mm(const lr_crystal *crystals, int64_t count)
{
    double depth_mm = INFINITY;
    for (int64_t k = 0; k < count; k++) depth_mm = fmin(depth_mm, crystals[k].size_mm[2]);
    return 0.5 * depth_mm;
}

static lr_scanner *build(const struct lr_petsird *petsird, const lr_crystal *crystals, int *crystal_of)
{
    int apart = 0;
    double differ_ps[2];
    const double resolution_ps = lr_petsird_common_resolution_ps(petsird, differ_ps);
    lr_crystal_list list = {
        .crystals = crystals,
        .num_crystals = (int)petsird->num_crystals,
        .name = petsird->name[0] != '\0' ? petsird->name : NULL,
        .detection_depth_mm = middle_mm(crystals, petsird->num_crystals),
        .tof_resolution_ps = resolution_ps,
        .source = "a PETSIRD file",
        .finds_layers = true,
        .log = petsird->log,
    };
    if (differ_ps[1] > 0) {
        lr_warn(petsird->log,
                "%s: its types of modules have time resolutions of %.4g to %.4g ps (0 = not "
                "given), of which a scanner holds one: it is taken as one whose is not known",
                petsird->path, differ_ps[0], differ_ps[1]);
    }
    lr_scanner *scanner = lr_scanner_from_crystals(&list, crystal_of, NULL);
    if (scanner == NULL || settle_mask(petsird, scanner, crystal_of, &apart) != LR_OK) {
        lr_scanner_destroy(scanner);
        return NULL;
    }
    if (apart > 0) {
        lr_scanner_destroy(scanner);
        list.coincidence.min_module_difference = apart;
        scanner = lr_scanner_from_crystals(&list, NULL, NULL);
    }
    return scanner;
}

lr_scanner *lr_petsird_scanner(const struct lr_petsird *petsird)
{
    lr_scanner *scanner = NULL;
    lr_crystal *crystals = list_crystals(petsird);
    int *crystal_of = crystals != NULL
                          ? lr_alloc(petsird->num_crystals, sizeof(*crystal_of), "numbers of crystals", petsird->log)
                          : NULL;
    if (crystal_of != NULL) scanner = build(petsird, crystals, crystal_of);
    free(crystal_of);
    free(crystals);
    return scanner;
}

bool lr_petsird_recognises(const struct lr_file_head *head)
{
    return lr_path_ends(head->path, ".petsird") || lr_head_begins(head, "yardl", 5);
}

lr_scanner *lr_petsird_scanner_read(const char *path, const lr_log *log)
{
    struct lr_petsird petsird;
    lr_scanner *scanner = NULL;
    if (lr_petsird_open(&petsird, path, log) == LR_OK) scanner = lr_petsird_scanner(&petsird);
    lr_petsird_close(&petsird);
    return scanner;
}

/* Largest distance between a crystal and the scanner's: the tolerance with which crystal lists become modules, and
 * the rounding of the file's numbers. */
static const double reach_mm = 0.1;

/* --- places --- */

static lr_status judge_match(const struct lr_petsird *petsird, const lr_scanner *scanner,
                             const struct lr_centre_index *index, const int64_t lost[2])
{
    double centre_mm[3];
    if (lost[0] == 0) return LR_OK;
    lr_petsird_centre(petsird, lost[1], centre_mm);
    const bool all = lost[0] == petsird->num_crystals;
    lr_log_write(petsird->log, all ? LR_LOG_ERROR : LR_LOG_WARNING, all ? LR_BAD_INPUT : LR_OK,
                 "%s: %lld of its %lld crystals are none of %s's, first the one at (%g, %g, %g) mm, "
                 "from which the nearest is %.4g mm away: %s",
                 petsird->path, (long long)lost[0], (long long)petsird->num_crystals, scanner->name, centre_mm[0],
                 centre_mm[1], centre_mm[2], lr_centre_index_distance(index, centre_mm),
                 all ? "the file is another scanner's, which can be read from it" : "what belongs to them is left out");
    return all ? LR_BAD_INPUT : LR_OK;
}

lr_status lr_petsird_match(const struct lr_petsird *petsird, const lr_scanner *scanner, int32_t *numbers)
{
    struct lr_centre_index index;
    int64_t lost[2] = {0, -1}; /* how many, the first */
    LR_TRY(lr_centre_index_init(&index, scanner, petsird->log));
    for (int64_t k = 0; k < petsird->num_crystals; k++) {
        double centre_mm[3];
        lr_petsird_centre(petsird, k, centre_mm);
        numbers[k] = lr_centre_index_find(&index, centre_mm, reach_mm);
        if (numbers[k] < 0 && lost[0]++ == 0) lost[1] = k;
    }
    const lr_status status = judge_match(petsird, scanner, &index, lost);
    lr_centre_index_finish(&index);
    return status;
}

/* --- efficiencies --- */

static lr_status fill_values(const struct lr_petsird *petsird, const lr_scanner *scanner, const int32_t *numbers,
                             float *values)
{
    for (int c = 0; c < scanner->num_crystals; c++) values[c] = NAN;
    for (int t = 0; t < petsird->num_types; t++) {
        const struct lr_petsird_type *type = &petsird->types[t];
        const int64_t detectors = type->num_elements * type->num_modules;
        if (detectors > 0 && type->num_efficiencies / type->num_energies != detectors) {
            return lr_error(petsird->log, LR_BAD_INPUT,
                            "%s: has %lld efficiencies of detection bins for %lld crystals of module "
                            "type %d",
                            petsird->path, (long long)type->num_efficiencies, (long long)detectors,
                            (int)(type - petsird->types));
        }
        for (int64_t k = 0; k < detectors; k++) {
            /* Mean over the energies of an element. */
            double sum = 0;
            for (int64_t e = 0; e < type->num_energies; e++) sum += type->efficiencies[k * type->num_energies + e];
            const double value = sum / (double)type->num_energies;
            if (!(value >= 0))
                return lr_error(petsird->log, LR_BAD_INPUT, "%s: a crystal has the efficiency %g", petsird->path,
                                value);
            if (numbers[type->first_crystal + k] >= 0) values[numbers[type->first_crystal + k]] = (float)value;
        }
    }

    for (int c = 0; c < scanner->num_crystals; c++) {
        if (isnan(values[c])) {
            return lr_error(petsird->log, LR_BAD_INPUT, "%s: has no efficiency for crystal %d of %s", petsird->path, c,
                            scanner->name);
        }
    }
    return LR_OK;
}

static lr_status read_values(struct lr_petsird *petsird, const lr_scanner *scanner, float *values)
{
    if (petsird->bin_efficiencies.count == 0)
        return lr_error(petsird->log, LR_BAD_INPUT, "%s: holds no efficiencies of detection bins", petsird->path);
    int32_t *numbers = lr_alloc(petsird->num_crystals, sizeof(*numbers), "numbers of crystals", petsird->log);
    lr_status status = numbers != NULL ? lr_petsird_match(petsird, scanner, numbers) : LR_FAILED;
    if (status == LR_OK) status = fill_values(petsird, scanner, numbers, values);
    free(numbers);
    return status;
}

lr_status lr_petsird_values_read(const char *path, const lr_scanner *scanner, float *values, const lr_log *log)
{
    struct lr_petsird petsird;
    lr_status status = lr_petsird_open(&petsird, path, log);
    if (status == LR_OK) status = read_values(&petsird, scanner, values);
    lr_petsird_close(&petsird);
    return status;
}
