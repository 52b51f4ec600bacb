/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Modules of a scanner from a list of crystals in one layer. */
#include "base/order.h"
#include "model/scanner/crystal_panels.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/vec.h"
#include "model/scanner/scanner.h"

#include <lr/crystals.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- panels that grow from crystal to crystal --- */

enum { NUM_SAMPLES = 64 };

static const double largest_mm = 1e6;

/* Sine of the angle (0.2 degrees) between known axes above which crystals belong to different modules. */
static const double axis_sine = 3e-3;

/* Largest cosine between the two directions of a panel at its first crystal. */
static const double skew = 0.1;

/* A crystal whose neighbours are searched for, and the steps along both directions that led to this crystal. */
struct visit {
    int crystal;
    double steps[2][3]; /* zero = no known step in that direction */
};

/* A search for the nearest crystal that can follow the crystal `from` in a panel. */
struct search {
    const struct lr_crystal_growth *growth;
    int from;
    bool is_first;        /* true: no step is known yet, so any step in the panel's plane may do; false: the next
                             crystal is expected at a predicted place */
    const double *across; /* direction to which the step must be orthogonal; NULL = any step */
    int found;
    double distance2;
};

static bool is_known(const double axis[3])
{
    return axis[0] != 0 || axis[1] != 0 || axis[2] != 0;
}

/* Takes a crystal if it is the nearest one so far that may follow search->from in one panel. */
static void consider(void *user, int crystal, double distance2)
{
    struct search *search = user;
    const struct lr_crystal_growth *growth = search->growth;
    if (crystal == search->from || growth->panel[crystal] >= 0 || distance2 >= search->distance2) return;
    const lr_crystal *from = &growth->list->crystals[search->from];
    const lr_crystal *to = &growth->list->crystals[crystal];
    if (from->group != to->group) return;
    for (int k = 0; k < 3; k++) {
        double cross[3];
        if (is_known(from->axes[k]) && is_known(to->axes[k])) {
            vec_cross(from->axes[k], to->axes[k], cross);
            if (vec_length(cross) > axis_sine) return;
        }
    }
    const double *others[2] = {from->axes[2], search->across};
    double step[3];
    vec_sub(to->centre_mm, from->centre_mm, step);
    for (int k = 0; search->is_first && k < 2 && others[k] != NULL; k++)
        if (fabs(vec_dot(step, others[k])) > skew * vec_length(step) * vec_length(others[k])) return;
    search->found = crystal;
    search->distance2 = distance2;
}

/* Step to the nearest free crystal of the same module; zero if none is near. */
static void find_step(struct lr_crystal_growth *growth, int from, const double *across, double step[3])
{
    struct search search = {growth, from, true, across, -1, INFINITY};
    const struct lr_point_visit visit = {consider, &search};
    const double *at = growth->list->crystals[from].centre_mm;
    for (double reach = growth->hash.cell_mm; reach <= 8.5 * growth->hash.cell_mm; reach *= 2) {
        const struct lr_point_hash *hash = reach < growth->far.cell_mm ? &growth->hash : &growth->far;
        growth->seen += lr_point_hash_visit(hash, at, reach, &visit);
        if (search.found >= 0) {
            vec_sub(growth->list->crystals[search.found].centre_mm, at, step);
            return;
        }
    }
    step[0] = step[1] = step[2] = 0;
}

/* True if too many crystals lie in one place. About a hundred crystals are in reach of a crystal of a panel, and a
 * thousand in reach of a module with a single crystal. If crystals lie in one place, each of them is in reach of all
 * others. */
static bool is_crowded(const struct lr_crystal_growth *growth)
{
    return growth->seen > 70000000 + (int64_t)150 * growth->list->num_crystals;
}

static lr_status refuse_crowded(const struct lr_crystal_growth *growth)
{
    return lr_error(
        growth->list->log, LR_BAD_INPUT,
        "%s: the crystals do not stand in regular panels: too many of them lie in one place, %.3g mm apart elsewhere",
        growth->list->name ? growth->list->name : "crystal list", growth->hash.cell_mm / 1.25);
}

/* --- growing panels --- */

/* Gathers the crystals that have no panel yet (-1) into new panels. A panel continues from a crystal if a step equal to
 * the last step leads to another crystal, within `share` of the step's length and within `reach_mm`. */
static lr_status crystals_grow(struct lr_crystal_growth *growth, double share, double reach_mm)
{
    const lr_crystal_list *list = growth->list;
    const lr_crystal *crystals = list->crystals;
    /* The crystals of a growing panel. The neighbours of the crystals from `head` on have not been searched for yet. */
    struct visit *queue = lr_alloc(list->num_crystals, sizeof(*queue), "crystals", list->log);
    if (queue == NULL) return LR_FAILED;
    const int before = growth->num_panels;
    int64_t shares[2] = {0, 0};
    bool too_many = false;
    for (int c = 0; c < list->num_crystals; c++) shares[1] += growth->panel[c] < 0;
    for (int seed = 0; seed < list->num_crystals && !too_many && !is_crowded(growth); seed++) {
        if (growth->panel[seed] >= 0) continue;
        int head = 0, tail = 1;
        queue[0] = (struct visit){.crystal = seed};
        find_step(growth, seed, NULL, queue[0].steps[0]);
        if (is_known(queue[0].steps[0])) find_step(growth, seed, queue[0].steps[0], queue[0].steps[1]);
        growth->panel[seed] = growth->num_panels;
        growth->places[seed][0] = growth->places[seed][1] = 0;
        while (head < tail && !is_crowded(growth)) {
            const struct visit from = queue[head++];
            for (int direction = 0; direction < 4; direction++) {
                const int axis = direction / 2, sign = direction % 2 == 0 ? 1 : -1;
                const double *step = from.steps[axis], *at = crystals[from.crystal].centre_mm;
                if (!is_known(step)) continue;
                double target[3];
                vec_add_scaled(at, sign, step, target);
                struct search search = {growth, from.crystal, false, NULL, -1, INFINITY};
                const struct lr_point_visit visit = {consider, &search};
                const double reach = fmin(share * vec_length(step), reach_mm);
                growth->seen += lr_point_hash_visit(&growth->hash, target, reach, &visit);
                if (search.found < 0) continue;

                struct visit *to = &queue[tail++];
                *to = from;
                to->crystal = search.found;
                for (int k = 0; k < 3; k++) {
                    const double taken = sign * (crystals[search.found].centre_mm[k] - at[k]);
                    to->steps[axis][k] = 0.5 * (step[k] + taken);
                }
                growth->panel[search.found] = growth->num_panels;
                growth->places[search.found][0] = growth->places[from.crystal][0] + (axis == 0 ? sign : 0);
                growth->places[search.found][1] = growth->places[from.crystal][1] + (axis == 1 ? sign : 0);
            }
        }

        /* There are too many panels if their number exceeds the largest number of modules. The search also ends if the
         * expected number exceeds this limit by far. The expected number assumes that the remaining crystals form
         * panels as small as the new panels. shares[0]: number of crystals in the new panels. shares[1]: number of
         * remaining crystals. */
        growth->num_panels++;
        shares[0] += tail;
        shares[1] -= tail;
        const int new_panels = growth->num_panels - before;
        const double expected = new_panels * (1 + (double)shares[1] / (double)shares[0]);
        too_many = growth->num_panels > LR_MAX_CRYSTAL_MODULES ||
                   (new_panels > LR_MAX_CRYSTAL_MODULES / 16 && expected > 4.0 * LR_MAX_CRYSTAL_MODULES);
    }
    free(queue);
    if (is_crowded(growth)) return refuse_crowded(growth);
    if (too_many) {
        return lr_error(list->log, LR_BAD_INPUT,
                        "%s: the crystals do not stand in regular panels: they would make more than %d modules",
                        list->name ? list->name : "crystal list", LR_MAX_CRYSTAL_MODULES);
    }
    return LR_OK;
}

/* --- preparation --- */

double lr_crystals_spacing_mm(const lr_crystal_list *list)
{
    double nearest2[NUM_SAMPLES];
    const int count = list->num_crystals < NUM_SAMPLES ? list->num_crystals : NUM_SAMPLES;
    double samples_mm[NUM_SAMPLES][3];
    for (int k = 0; k < count; k++) {
        const int from = (int)((int64_t)k * list->num_crystals / count);
        memcpy(samples_mm[k], list->crystals[from].centre_mm, sizeof(samples_mm[k]));
        nearest2[k] = INFINITY;
    }
    for (int c = 0; c < list->num_crystals; c++) {
        for (int k = 0; k < count; k++) {
            double offset[3];
            vec_sub(list->crystals[c].centre_mm, samples_mm[k], offset);
            const double distance2 = vec_dot(offset, offset);
            if (distance2 < nearest2[k] && distance2 > 0) nearest2[k] = distance2;
        }
    }
    qsort(nearest2, (size_t)count, sizeof(nearest2[0]), lr_compare_doubles);
    return isfinite(nearest2[count / 2]) ? sqrt(nearest2[count / 2]) : 1.0;
}

struct twin {
    int crystal, found;
};

static void find_twin(void *user, int crystal, double distance2)
{
    struct twin *twin = user;
    (void)distance2;
    if (crystal != twin->crystal) twin->found = crystal;
}

/* errors: LR_BAD_INPUT for centres that are not finite or beyond 1 km, and for two crystals at one place. *growth must
 * be finished after an error, too. */
static lr_status growth_init(struct lr_crystal_growth *growth, const lr_crystal_list *list)
{
    *growth = (struct lr_crystal_growth){.list = list};
    const char *title = list->name ? list->name : "crystal list";
    if (list->num_crystals < 2)
        return lr_error(list->log, LR_BAD_INPUT, "%s: %d crystals: a coincidence needs two", title, list->num_crystals);
    for (int c = 0; c < list->num_crystals; c++) {
        for (int k = 0; k < 3; k++) {
            const double x = list->crystals[c].centre_mm[k];
            if (!isfinite(x) || fabs(x) > largest_mm) {
                return lr_error(
                    list->log, LR_BAD_INPUT,
                    "%s: the centre of crystal %d has the coordinate %.6g mm: it must lie within 1 km of the origin",
                    title, c, x);
            }
        }
    }

    const double cell_mm = LR_CELLS_PER_SPACING * lr_crystals_spacing_mm(list);
    const struct lr_points points = {list->crystals->centre_mm, sizeof(*list->crystals), list->num_crystals};
    LR_TRY(lr_point_hash_init(&growth->hash, &points, cell_mm, list->log));
    LR_TRY(lr_point_hash_init(&growth->far, &points, LR_FAR_CELLS * growth->hash.cell_mm, list->log));
    for (int c = 0; c < list->num_crystals; c++) {
        const double *at = list->crystals[c].centre_mm;
        struct twin twin = {c, -1};
        const struct lr_point_visit visit = {find_twin, &twin};
        growth->seen += lr_point_hash_visit(&growth->hash, at, 1e-6, &visit);
        if (is_crowded(growth)) return refuse_crowded(growth);
        if (twin.found >= 0) {
            return lr_error(list->log, LR_BAD_INPUT,
                            "%s: crystals %d and %d have the same centre (%.6g, %.6g, %.6g) mm: list each crystal once",
                            title, c < twin.found ? c : twin.found, c < twin.found ? twin.found : c, at[0], at[1],
                            at[2]);
        }
    }
    growth->panel = lr_alloc(list->num_crystals, sizeof(*growth->panel), "crystals", list->log);
    growth->places = lr_alloc(list->num_crystals, sizeof(*growth->places), "crystals", list->log);
    growth->block = lr_alloc(list->num_crystals, sizeof(*growth->block), "crystals", list->log);
    if (growth->panel == NULL || growth->places == NULL || growth->block == NULL) return LR_FAILED;
    for (int c = 0; c < list->num_crystals; c++) growth->panel[c] = -1;
    return LR_OK;
}

/* A list from which modules are being made. */
struct draft {
    const lr_crystal_list *list;
    const char *title;
    double tolerance_mm;
    struct lr_crystal_growth growth;
    struct lr_crystal_blocks blocks;
    int *members;       /* [num_crystals] crystals sorted by panel */
    int *begins;        /* [num_panels + 1] */
    double off_mm;      /* the largest residual so far */
    lr_module *modules; /* [blocks.count] with their normals set */
    int num_positions;
    double detection_depth_mm;
};

/* --- crystals longer than the room between panels --- */

/* Least length of a shortened crystal, as a share of its full length. */
static const double least_share = 0.5;

/* New lengths are multiples of this step. */
static const double depth_step_mm = 0.01;

/* Largest overlap that counts as rounding, mm. */
static const double least_overlap_mm = 1e-4;

enum { NUM_HALVINGS = 40 };

/* Radius of the sphere around the centre of a module's front face that contains the module, mm. */
static double reach_of(const lr_module *module)
{
    return 0.5 * (module->crystals[0] * module->pitch_mm[0] + module->crystals[1] * module->pitch_mm[1]) +
           module->depth_mm;
}

/* Pairs of modules. */
struct pairs {
    int (*items)[2]; /* owned */
    int count;
    int64_t room;
};

static lr_module shortened(const lr_module *module, double by_mm)
{
    lr_module other = *module;
    vec_add_scaled(module->centre_mm, -0.5 * by_mm, module->normal, other.centre_mm);
    other.depth_mm -= by_mm;
    return other;
}

/* The overlap of two modules whose crystals are made shorter by by_mm. */
static double overlap_of_shortened(const struct draft *draft, const int pair[2], double by_mm)
{
    const lr_module a = shortened(&draft->modules[pair[0]], by_mm), b = shortened(&draft->modules[pair[1]], by_mm);
    /* Modules far from each other have a negative overlap. */
    double offset[3];
    vec_sub(a.centre_mm, b.centre_mm, offset);
    return vec_length(offset) > reach_of(&a) + reach_of(&b) ? -1 : lr_module_overlap_mm(&a, &b);
}

static double largest_overlap(const struct draft *draft, const struct pairs *pairs, double by_mm)
{
    double largest = 0;
    for (int k = 0; k < pairs->count; k++) largest = fmax(largest, overlap_of_shortened(draft, pairs->items[k], by_mm));
    return largest;
}

/* The extent of a module along one axis, the axis along which modules lie farthest apart. */
struct span {
    double low, high;
    int module;
};

/* If boxes of modules overlap by more than rounding, makes all crystals shorter around their centres, by at most half
 * of their length, with a warning. The detection plane stays in place, within the crystals. Nothing is changed if
 * some modules overlap by more than rounding even with the shortest crystals. errors: LR_FAILED if memory runs out. */
static lr_status shorten(struct draft *draft)
{
    const int num_modules = draft->blocks.count;
    lr_module *modules = draft->modules;
    double most = 2 * draft->detection_depth_mm, widest = -1;
    for (int m = 0; m < num_modules; m++) {
        const double depth = modules[m].depth_mm, behind = depth - draft->detection_depth_mm;
        most = fmin(most, fmin((1 - least_share) * depth, 2 * behind));
    }
    int axis = 0;
    for (int k = 0; k < 3; k++) {
        double low = INFINITY, high = -INFINITY;
        for (int m = 0; m < num_modules; m++) {
            low = fmin(low, modules[m].centre_mm[k]);
            high = fmax(high, modules[m].centre_mm[k]);
        }
        axis = high - low > widest ? k : axis;
        widest = fmax(widest, high - low);
    }

    struct span *spans = lr_alloc(num_modules, sizeof(*spans), "modules", draft->list->log);
    if (spans == NULL) return LR_FAILED;
    for (int m = 0; m < num_modules; m++) {
        const double at = modules[m].centre_mm[axis], reach = reach_of(&modules[m]);
        spans[m] = (struct span){at - reach, at + reach, m};
    }
    qsort(spans, (size_t)num_modules, sizeof(*spans), lr_compare_doubles);

    /* Collects the pairs of modules that overlap now, but would not overlap if all crystals had the shortest length.
     * Shortening does not help if any other pair overlaps by more than rounding. */
    lr_status status = LR_OK;
    struct pairs pairs = {0};
    bool helps = most > 0;
    const struct lr_items items = {sizeof(*pairs.items), "modules", draft->list->log};
    for (int i = 0; i < num_modules && helps && status == LR_OK; i++) {
        for (int j = i + 1; j < num_modules && spans[j].low <= spans[i].high && helps && status == LR_OK; j++) {
            const int pair[2] = {spans[i].module, spans[j].module};
            const double overlap = overlap_of_shortened(draft, pair, 0);
            if (overlap > 0 && overlap_of_shortened(draft, pair, most) <= 0) {
                status = lr_grow(&pairs.items, &pairs.room, pairs.count + 1, &items);
                if (status == LR_OK) memcpy(pairs.items[pairs.count++], pair, sizeof(pair));
            } else {
                helps = overlap <= draft->tolerance_mm;
            }
        }
    }
    free(spans);

    const double overlap = status == LR_OK && helps ? largest_overlap(draft, &pairs, 0) : 0;
    if (overlap > least_overlap_mm) {
        double low = 0, high = most;
        for (int k = 0; k < NUM_HALVINGS; k++) {
            const double middle = 0.5 * (low + high);
            *(largest_overlap(draft, &pairs, middle) > 0 ? &low : &high) = middle;
        }
        const double by_mm = fmin(most, ceil(high / depth_step_mm) * depth_step_mm);

        const double was_mm = modules[0].depth_mm;
        for (int m = 0; m < num_modules; m++) modules[m] = shortened(&modules[m], by_mm);
        draft->detection_depth_mm -= 0.5 * by_mm;
        lr_warn(draft->list->log,
                "%s: crystals %.6g mm long would overlap with those of other panels by %.3g mm: they are taken as %.6g "
                "mm long around the same centres, and hits are read where they were, now %.6g mm behind the front; "
                "check sizes and places",
                draft->title, was_mm, overlap, modules[0].depth_mm, draft->detection_depth_mm);
    }
    free(pairs.items);
    return status;
}

/* --- from a list to modules --- */

static const double default_tolerance_mm = 0.05;

/* A panel continues if the next crystal is at the place to which the last step points, to within this share of the
 * step. The share allows for curved panels and noise. The share is smaller than the gaps between flat panels around a
 * ring. */
static const double step_share = 0.2;

/* If the crystals of a panel do not lie in a plane, they are gathered again in pieces that are straight to within this
 * share of the tolerance. Pieces must have at least LEAST_LINES lines, because two lines are always straight. */
static const double straight_share = 0.1;
enum { LEAST_LINES = 3 };

/* --- panels --- */

/* Sorts the crystals by panel. Crystals of a panel stay in the order of the list. */
static lr_status sort_members(struct draft *draft)
{
    const int count = draft->list->num_crystals, panels = draft->growth.num_panels;
    lr_free_all(draft->members, draft->begins);
    draft->members = lr_alloc(count, sizeof(int), "crystals", draft->list->log);
    draft->begins = lr_alloc((int64_t)panels + 2, sizeof(int), "panels", draft->list->log);
    if (draft->members == NULL || draft->begins == NULL) return LR_FAILED;
    /* begins[p + 2] first counts the crystals of panel p. Then begins[p + 1] is the index for the next crystal of this
     * panel. */
    for (int c = 0; c < count; c++) draft->begins[draft->growth.panel[c] + 2]++;
    for (int p = 0; p < panels; p++) draft->begins[p + 2] += draft->begins[p + 1];
    for (int c = 0; c < count; c++) draft->members[draft->begins[draft->growth.panel[c] + 1]++] = c;
    return LR_OK;
}

static lr_status fit_panel(struct draft *draft, int panel, struct lr_crystal_misfit *misfit)
{
    const struct lr_crystal_panel fitted = {.growth = &draft->growth,
                                            .members = &draft->members[draft->begins[panel]],
                                            .count = draft->begins[panel + 1] - draft->begins[panel],
                                            .tolerance_mm = draft->tolerance_mm};
    LR_TRY(lr_crystal_panel_fit(&fitted, &draft->blocks, misfit));
    if (misfit->fits) draft->off_mm = fmax(draft->off_mm, misfit->off_mm[0]);
    return LR_OK;
}

/* Gathers all crystals in panels and fits the panels. */
static lr_status fit_panels(struct draft *draft)
{
    struct lr_crystal_misfit whole = {0};
    int first = -1;
    LR_TRY(crystals_grow(&draft->growth, step_share, INFINITY));
    LR_TRY(sort_members(draft));
    for (int p = 0; p < draft->growth.num_panels; p++) {
        struct lr_crystal_misfit misfit;
        LR_TRY(fit_panel(draft, p, &misfit));
        if (misfit.fits) continue;
        if (first < 0 || (misfit.filled && misfit.off_mm[0] > whole.off_mm[0])) {
            whole = misfit;
            first = draft->members[draft->begins[p]];
        }
        for (int m = draft->begins[p]; m < draft->begins[p + 1]; m++) draft->growth.panel[draft->members[m]] = -1;
    }
    if (first < 0) return LR_OK;

    /* If a panel does not fit its crystals within the tolerance, the panel is dropped, and its crystals are grouped
       again, into straight pieces. */
    const int before = draft->growth.num_panels;
    LR_TRY(crystals_grow(&draft->growth, step_share, straight_share * draft->tolerance_mm));
    LR_TRY(sort_members(draft));
    for (int p = before; p < draft->growth.num_panels; p++) {
        struct lr_crystal_misfit misfit;
        LR_TRY(fit_panel(draft, p, &misfit));
        if (misfit.fits && misfit.grid[0] >= LEAST_LINES && misfit.grid[1] >= LEAST_LINES) continue;
        if (!whole.filled) {
            return lr_error(draft->list->log, LR_BAD_INPUT,
                            "%s: the crystals around crystal %d do not fill a grid (%d x %d places): crystals are "
                            "missing, or the panel is curved; panels must be flat, with crystals in rows and columns",
                            draft->title, first, whole.grid[0], whole.grid[1]);
        }
        draft->off_mm = whole.off_mm[0];
        return lr_error(
            draft->list->log, LR_BAD_INPUT,
            "%s: crystals %d, %d and %d lie %.3g, %.3g and %.3g mm off the flat panel that fits best (%d x %d "
            "crystals; tolerance %.3g mm): a curved or irregular panel cannot be described by flat modules; say which "
            "crystals belong together (groups, or their orientations), or raise the tolerance",
            draft->title, whole.crystals[0], whole.crystals[1], whole.crystals[2], whole.off_mm[0], whole.off_mm[1],
            whole.off_mm[2], whole.grid[0], whole.grid[1], draft->tolerance_mm);
    }
    return LR_OK;
}

/* --- modules --- */

/* Removes small overlaps between adjacent modules that come from rounding. Each of the two modules is made smaller by
 * the same amount in each direction, and crystals move by at most half of this amount. An overlap stays if it is too
 * large, or if removing it would leave an empty module. The scanner is then refused. */
static lr_status separate(struct draft *draft)
{
    double most = 0;
    bool goes_on = true;
    const int count = draft->blocks.count;
    struct lr_module_index index; /* index of the unchanged modules, which is sufficient because no module grows */
    LR_TRY(lr_module_index_init(&index, draft->modules, count, draft->list->log));
    for (int i = 0; i < count && goes_on; i++) {
        const int num_met = lr_module_index_meet(&index, i);
        for (int k = 0; k < num_met && goes_on; k++) {
            lr_module *modules[2] = {&draft->modules[i], &draft->modules[index.met[k]]};
            const double overlap = lr_module_overlap_mm(modules[0], modules[1]);
            if (!(overlap > 0.5 * LR_OVERLAP_TOLERANCE_MM)) continue;
            goes_on = overlap <= draft->tolerance_mm;
            if (!goes_on) break;
            most = fmax(most, overlap);
            for (int n = 0; n < 2; n++) {
                lr_module *module = modules[n];
                for (int axis = 0; axis < 2; axis++) {
                    module->pitch_mm[axis] -= 1.01 * overlap / module->crystals[axis];
                    module->face_mm[axis] = fmin(module->face_mm[axis], module->pitch_mm[axis]);
                }
                module->depth_mm -= 1.01 * overlap;
                goes_on = goes_on && module->pitch_mm[0] > 0 && module->pitch_mm[1] > 0 && module->depth_mm > 0;
            }
        }
    }
    lr_module_index_finish(&index);
    draft->off_mm += 0.5 * most;
    return LR_OK;
}

/* Makes the scanner from the list; NULL after an error, which was logged. */
static lr_scanner *build(struct draft *draft, int *crystal_of)
{
    if (fit_panels(draft) != LR_OK || lr_crystal_blocks_arrange(&draft->blocks, draft->tolerance_mm,
                                                                &draft->num_positions, draft->list->log) != LR_OK)
        return NULL;
    if (draft->num_positions > 0) {
        struct lr_crystal_bounds bounds = {draft->off_mm, draft->tolerance_mm};
        if (lr_crystal_blocks_idealise(&draft->blocks, draft->num_positions, &draft->growth, &bounds) != LR_OK)
            return NULL;
        draft->off_mm = bounds.off_mm;
    }

    const lr_crystal_list *list = draft->list;
    const int count = draft->blocks.count;
    int *module_of = lr_alloc(count, sizeof(*module_of), "modules", list->log);
    draft->modules = lr_alloc(count, sizeof(*draft->modules), "modules", list->log);
    draft->detection_depth_mm = list->detection_depth_mm;
    lr_scanner *scanner = NULL;
    if (module_of == NULL || draft->modules == NULL) goto done;
    for (int m = 0; m < count; m++) {
        module_of[draft->blocks.items[m].appended] = m;
        draft->modules[m] = draft->blocks.items[m].module;
    }
    if ((list->infers_sizes && shorten(draft) != LR_OK) || separate(draft) != LR_OK) goto done;
    scanner = lr_scanner_create(&(lr_scanner_params){
        .name = list->name,
        .modules = draft->modules,
        .num_modules = count,
        .num_positions = draft->num_positions,
        .coincidence = list->coincidence,
        .detection_depth_mm = draft->detection_depth_mm,
        .tof_resolution_ps = list->tof_resolution_ps,
        .crystal_mu_per_mm = list->crystal_mu_per_mm,
        .source = list->source,
        .log = list->log,
    });
    for (int c = 0; scanner != NULL && crystal_of != NULL && c < list->num_crystals; c++) {
        const int m = module_of[draft->growth.block[c]];
        const struct lr_crystal_block *block = &draft->blocks.items[m];
        const int p = draft->growth.places[c][0] - block->first[0];
        const int q = draft->growth.places[c][1] - block->first[1];
        crystal_of[c] = scanner->first_crystal[m] + q * block->module.crystals[0] + p;
    }
done:
    free(module_of);
    return scanner;
}

lr_scanner *lr_scanner_from_one_layer(const lr_crystal_list *list, int *crystal_of, double *residual_mm)
{
    struct draft draft = {.list = list,
                          .title = list->name != NULL ? list->name : "crystal list",
                          .tolerance_mm = list->tolerance_mm > 0 ? list->tolerance_mm : default_tolerance_mm};
    lr_scanner *scanner = NULL;
    if (growth_init(&draft.growth, list) == LR_OK) scanner = build(&draft, crystal_of);
    if (residual_mm != NULL) *residual_mm = draft.off_mm;
    lr_point_hash_finish(&draft.growth.hash);
    lr_point_hash_finish(&draft.growth.far);
    lr_free_all(draft.growth.panel, draft.growth.places, draft.growth.block, draft.blocks.items, draft.members,
                draft.begins, draft.modules);
    return scanner;
}
