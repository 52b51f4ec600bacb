/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A scanner from the geometry of a PETSIRD file. Crystals are boxes that are transformed twice: from element to
 * module, and from module to scanner. */
#include "base/log.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/vec.h"
#include "io/events/petsird.h"
#include "io/scanners/crystal_map.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Largest distance between the corners of a crystal and the corners of a right box, relative to the longest edge. */
static const double box_tolerance = 1e-3;

/* Largest number of modules whose pairs are compared with the mask. */
enum { MAX_MASK_MODULES = 1 << 14 };

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

/* Finds the box of the type's crystals before both transformations. half: vectors from the centre to the middles of
 * three faces. */
static lr_status find_box(const struct lr_petsird *petsird, const struct lr_petsird_type *type, double half[3][3])
{
    double corners[8][3], edges[3][3] = {{0}};
    double best = INFINITY, longest = 0, shortest = INFINITY;
    for (int c = 0; c < 8; c++)
        for (int k = 0; k < 3; k++) corners[c][k] = type->corners_mm[c][k];

    /* The corners may have any order. The triple of edges from corner 0 that is nearest to a right box is taken. */
    for (int n = 0; n < 7 * 7 * 7; n++) {
        const int picked[3] = {1 + n % 7, 1 + n / 7 % 7, 1 + n / 49};
        double tried[3][3], skewness = 0;
        if (picked[0] >= picked[1] || picked[1] >= picked[2]) continue;
        for (int k = 0; k < 3; k++) vec_sub(corners[picked[k]], corners[0], tried[k]);
        for (int k = 0; k < 3; k++) {
            const double *a = tried[k], *b = tried[(k + 1) % 3];
            skewness = fmax(skewness, fabs(vec_dot(a, b)) / fmax(vec_length(a), vec_length(b)));
        }
        /* The largest distance between a corner and the nearest corner of the box that corner 0 and the edges span. */
        double off = 0;
        for (int c = 0; c < 8; c++) {
            double nearest = INFINITY;
            for (int other = 0; other < 8; other++) {
                double at[3];
                memcpy(at, corners[0], sizeof(at));
                for (int k = 0; k < 3; k++) vec_add_scaled(at, other >> k & 1, tried[k], at);
                vec_sub(at, corners[c], at);
                nearest = fmin(nearest, vec_length(at));
            }
            off = fmax(off, nearest);
        }
        off = fmax(off, skewness);
        if (off < best) {
            best = off;
            memcpy(edges, tried, sizeof(tried));
        }
    }

    for (int k = 0; k < 3; k++) {
        longest = fmax(longest, vec_length(edges[k]));
        shortest = fmin(shortest, vec_length(edges[k]));
    }
    if (!(best <= box_tolerance * longest) || !(shortest > 0)) {
        return lr_error(petsird->log, LR_BAD_INPUT,
                        "%s: the crystals of module type %d are no right boxes: their corners are "
                        "%.3g mm off the nearest one, and modules here hold boxes only",
                        petsird->path, (int)(type - petsird->types), best);
    }
    for (int k = 0; k < 3; k++)
        for (int m = 0; m < 3; m++) half[k][m] = 0.5 * edges[k][m];
    return LR_OK;
}

/* --- crystals --- */

/* The depth of a crystal is along the direction nearest to the line from the scanner's axis to the module. If the
 * module is on the axis, the depth is along the direction nearest to z. v is the one of the two remaining directions
 * that is nearer to z. */
static lr_crystal *list_crystals(const struct lr_petsird *petsird)
{
    lr_crystal *crystals = lr_alloc(petsird->num_crystals, sizeof(*crystals), "crystals", petsird->log);
    int group = 0;
    for (int t = 0; crystals != NULL && t < petsird->num_types; t++) {
        const struct lr_petsird_type *type = &petsird->types[t];
        double half[3][3];
        if (type->num_elements == 0 || type->num_modules == 0) continue;
        if (find_box(petsird, type, half) != LR_OK) {
            free(crystals);
            return NULL;
        }
        for (int64_t m = 0; m < type->num_modules; m++) {
            const int64_t first = type->first_crystal + m * type->num_elements;
            double module_mm[3] = {0, 0, 0};
            for (int64_t e = 0; e < type->num_elements; e++) {
                lr_petsird_centre(petsird, first + e, crystals[first + e].centre_mm);
                vec_add_scaled(module_mm, 1.0 / (double)type->num_elements, crystals[first + e].centre_mm, module_mm);
            }
            double outward[3] = {module_mm[0], module_mm[1], 0};
            if (!(vec_length(outward) > 1e-3)) {
                outward[0] = outward[1] = 0;
                outward[2] = 1;
            }
            for (int64_t e = 0; e < type->num_elements; e++) {
                lr_crystal *crystal = &crystals[first + e];
                double axes[3][3], size_mm[3];
                for (int k = 0; k < 3; k++) {
                    rotate(type->elements[e], half[k], axes[k]);
                    rotate(type->modules[m], axes[k], axes[k]);
                    size_mm[k] = 2 * vec_length(axes[k]);
                    for (int n = 0; n < 3 && size_mm[k] > 0; n++) axes[k][n] /= 0.5 * size_mm[k];
                }
                int depth = 0;
                for (int k = 1; k < 3; k++)
                    depth = fabs(vec_dot(axes[k], outward)) > fabs(vec_dot(axes[depth], outward)) ? k : depth;
                const int one = (depth + 1) % 3, other = (depth + 2) % 3;
                const bool one_is_v = fabs(axes[one][2]) > fabs(axes[other][2]);
                const int order[3] = {one_is_v ? other : one, one_is_v ? one : other, depth};
                for (int k = 0; k < 3; k++) {
                    crystal->size_mm[k] = size_mm[order[k]];
                    memcpy(crystal->axes[k], axes[order[k]], sizeof(axes[0]));
                }
                crystal->group = group + (int)m;
            }
        }
        group += (int)type->num_modules;
    }
    return crystals;
}

/* --- the mask --- */

/* The mask of two types may be stored as [a][b] or as [b][a]. */
bool lr_petsird_allows(const struct lr_petsird *petsird, const int types[2], const int64_t modules[2])
{
    for (int first = 0; first < 2; first++) {
        const struct lr_petsird_pair *pair = &petsird->pairs[types[first] * petsird->num_types + types[1 - first]];
        const int64_t row = modules[first], column = modules[1 - first];
        const bool is_there = pair->excluded != NULL && row < pair->rows && column < pair->columns;
        const unsigned char entry = is_there ? pair->excluded[row * pair->columns + column] : 0;
        if (entry != 0) return entry != 1;
    }
    return true;
}

/* A module of the file. position, block: taken from the scanner's module that contains the first crystal of this
 * module. */
struct file_module {
    int type;
    int64_t module;
    int position, block;
};

/* Finds the min_module_difference that is equivalent to the mask: modules in coincidence are at least this many
 * positions apart. Warns if no rule is equivalent to the mask. */
static lr_status settle_mask(const struct lr_petsird *petsird, const lr_scanner *scanner, const int *crystal_of,
                             int *min_module_difference)
{
    *min_module_difference = 0;
    if (!lr_petsird_has_mask(petsird)) return LR_OK;
    int64_t num_modules = 0;
    for (int t = 0; t < petsird->num_types; t++)
        num_modules += petsird->types[t].num_elements > 0 ? petsird->types[t].num_modules : 0;
    struct file_module *modules = lr_alloc((int)num_modules, sizeof(*modules), "modules", petsird->log);
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
        lr_warn(petsird->log, "%s: its table of module pairs is passed over: %d modules are more than %d",
                petsird->path, count, MAX_MASK_MODULES);
        return LR_OK;
    }

    int64_t excluded = 0;                           /* number of excluded pairs */
    int farthest = -1, nearest_allowed = INT32_MAX; /* largest distance of an excluded pair and smallest distance of an
                                                       allowed pair, in positions */
    const int around = scanner->num_positions;
    for (int i = 0; i < count; i++) {
        for (int j = 0; j < i; j++) {
            const int types[2] = {modules[i].type, modules[j].type};
            const int64_t pair[2] = {modules[i].module, modules[j].module};
            if (modules[i].block > 0 && modules[i].block == modules[j].block) continue; /* layers of one block */
            int apart = around > 0 ? abs(modules[i].position - modules[j].position) : 0;
            if (around - apart < apart && around > 0) apart = around - apart;
            if (lr_petsird_allows(petsird, types, pair)) {
                nearest_allowed = apart < nearest_allowed ? apart : nearest_allowed;
            } else {
                excluded++;
                farthest = apart > farthest ? apart : farthest;
            }
        }
    }
    free(modules);
    if (excluded == 0) return LR_OK;
    if (around > 0 && farthest < nearest_allowed && nearest_allowed != INT32_MAX) {
        *min_module_difference = nearest_allowed;
        return LR_OK;
    }
    lr_warn(petsird->log,
            "%s: puts %lld pairs of modules out of coincidence, which no rule of ours says: they are taken as if in "
            "coincidence, set min_module_difference or field_of_view_mm in a scanner file of your own",
            petsird->path, (long long)excluded);
    return LR_OK;
}

/* --- the scanner --- */

lr_scanner *lr_petsird_scanner(const struct lr_petsird *petsird)
{
    lr_scanner *scanner = NULL;
    lr_crystal *crystals = list_crystals(petsird);
    if (crystals == NULL) return NULL;
    int *crystal_of = lr_alloc(petsird->num_crystals, sizeof(*crystal_of), "numbers of crystals", petsird->log);
    if (crystal_of == NULL) goto end;

    /* A detection is in the middle of its crystal, as in PETSIRD's own helpers. The shortest crystal determines the
     * depth. */
    double depth_mm = INFINITY;
    for (int64_t k = 0; k < petsird->num_crystals; k++) depth_mm = fmin(depth_mm, crystals[k].size_mm[2]);
    lr_info(petsird->log,
            "%s: photons are taken to be detected in the middle of crystals, %g mm behind their front faces",
            petsird->path, 0.5 * depth_mm);
    const struct lr_petsird_agreement found = lr_petsird_compare(petsird);
    lr_crystal_list list = {
        .crystals = crystals,
        .num_crystals = (int)petsird->num_crystals,
        .name = petsird->name[0] != '\0' ? petsird->name : NULL,
        .detection_depth_mm = 0.5 * depth_mm,
        .tof_resolution_ps = found.resolution_ps,
        .source = "a PETSIRD file",
        .finds_layers = true,
        .log = petsird->log,
    };
    if (found.differ_ps[1] > 0) {
        lr_warn(petsird->log,
                "%s: its types of modules have time resolutions of %.4g to %.4g ps (0 = not "
                "given), of which a scanner holds one: it is taken as one whose is not known",
                petsird->path, found.differ_ps[0], found.differ_ps[1]);
    }

    int apart = 0;
    scanner = lr_scanner_from_crystals(&list, crystal_of, NULL);
    const bool is_settled = scanner != NULL && settle_mask(petsird, scanner, crystal_of, &apart) == LR_OK;
    if (!is_settled || apart > 0) {
        lr_scanner_destroy(scanner);
        list.coincidence.min_module_difference = apart;
        scanner = is_settled ? lr_scanner_from_crystals(&list, NULL, NULL) : NULL;
    }

end:
    lr_free_all(crystal_of, crystals);
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

/* Largest distance in mm between a crystal of the file and its match in the scanner. The two differ because crystals
 * become modules only within a tolerance, and because the numbers of the file are rounded. */
static const double reach_mm = 0.1;

lr_status lr_petsird_match(const struct lr_petsird *petsird, const lr_scanner *scanner, int32_t *numbers)
{
    struct lr_centre_index index;
    int64_t num_lost = 0;
    double centre_mm[3], first_mm[3] = {0, 0, 0};
    LR_TRY(lr_centre_index_init(&index, scanner, petsird->log));
    for (int64_t k = 0; k < petsird->num_crystals; k++) {
        lr_petsird_centre(petsird, k, centre_mm);
        numbers[k] = lr_centre_index_find(&index, centre_mm, reach_mm);
        if (numbers[k] < 0 && num_lost++ == 0) memcpy(first_mm, centre_mm, sizeof(first_mm));
    }

    const bool all = num_lost > 0 && num_lost == petsird->num_crystals;
    if (num_lost > 0) {
        lr_log_write(petsird->log, all ? LR_LOG_ERROR : LR_LOG_WARNING, all ? LR_BAD_INPUT : LR_OK,
                     "%s: %lld of its %lld crystals are none of %s's, first the one at (%g, %g, %g) mm, "
                     "from which the nearest is %.4g mm away: %s",
                     petsird->path, (long long)num_lost, (long long)petsird->num_crystals, scanner->name, first_mm[0],
                     first_mm[1], first_mm[2], lr_centre_index_distance(&index, first_mm),
                     all ? "the file is another scanner's, which can be read from it"
                         : "what belongs to them is left out");
    }
    lr_centre_index_finish(&index);
    return all ? LR_BAD_INPUT : LR_OK;
}

/* Returns the largest distance of a corner of a crystal of the file from the faces of the scanner's crystal that meet
 * there. */
static double corners_apart_mm(const struct lr_petsird *petsird, int64_t own, const lr_scanner *scanner, int crystal)
{
    const lr_module *module = &scanner->modules[lr_scanner_module_of(scanner, crystal)];
    const double *axes[3] = {module->u, module->v, module->normal};
    const double edges_mm[3] = {module->face_mm[0], module->face_mm[1], module->depth_mm};
    double corners_mm[8][3], centre_mm[3], apart_mm = 0;
    lr_petsird_corners(petsird, own, corners_mm);
    lr_scanner_crystal_centre(scanner, crystal, centre_mm);
    for (int c = 0; c < 8; c++) {
        vec_sub(corners_mm[c], centre_mm, corners_mm[c]);
        for (int k = 0; k < 3; k++)
            apart_mm = fmax(apart_mm, fabs(fabs(vec_dot(corners_mm[c], axes[k])) - 0.5 * edges_mm[k]));
    }
    return apart_mm;
}

void lr_petsird_warn_apart(const struct lr_petsird *petsird, const lr_scanner *scanner, const int32_t *numbers)
{
    double apart_mm = 0;
    for (int64_t k = 0; k < petsird->num_crystals; k++)
        if (numbers[k] >= 0) apart_mm = fmax(apart_mm, corners_apart_mm(petsird, k, scanner, numbers[k]));
    if (apart_mm > reach_mm) {
        lr_warn(petsird->log,
                "%s: its own scanner and %s differ by up to %.3g mm in the edges of crystals, which changes the image "
                "unless the list was made for the latter: give that one other face_mm or depth_mm, or read the scanner "
                "from the file instead",
                petsird->path, scanner->name, apart_mm);
    }
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
                            "%s: has %lld efficiencies of detection bins for %lld crystals of module type %d",
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

lr_status lr_petsird_values_read(const char *path, const lr_scanner *scanner, float *values, const lr_log *log)
{
    struct lr_petsird petsird;
    int32_t *numbers = NULL;
    lr_status status = lr_petsird_open(&petsird, path, log);
    if (status == LR_OK && petsird.bin_efficiencies.count == 0)
        status = lr_error(log, LR_BAD_INPUT, "%s: holds no efficiencies of detection bins", path);
    if (status == LR_OK) {
        numbers = lr_alloc(petsird.num_crystals, sizeof(*numbers), "numbers of crystals", log);
        status = numbers != NULL ? lr_petsird_match(&petsird, scanner, numbers) : LR_FAILED;
    }
    if (status == LR_OK) status = fill_values(&petsird, scanner, numbers, values);
    free(numbers);
    lr_petsird_close(&petsird);
    return status;
}
