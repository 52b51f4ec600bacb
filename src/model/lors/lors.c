/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Lists of LORs: module pairs in coincidence, the numbers of their LORs, and the angles that interleave them. */
#include "base/log.h"
#include "base/mem.h"
#include "base/order.h"
#include "base/parallel.h"
#include "base/units.h"
#include "base/vec.h"
#include "model/lors/pair_window.h"
#include "model/lors/place.h"
#include "model/lors/selection.h"
#include "model/scanner/coincidence.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* --- the pair and the crystals of a LOR --- */

/* The module pair to which a LOR belongs, 0 <= lor < count. */
static int64_t place_pair(const lr_lors *lors, int64_t lor)
{
    return lr_first_at_least(lors->offsets + 1, lors->num_pairs - 1, lor + 1);
}

void lr_place_seek_row(struct lr_lor_place *place, int64_t lor)
{
    const lr_lors *lors = place->lors;
    if (place->crystals_j == 0 || lor < lors->offsets[place->pair] || lor >= lors->offsets[place->pair + 1]) {
        const int64_t pair = place_pair(lors, lor);
        const lr_scanner *scanner = place->lors->scanner;
        const int i = place->lors->pairs[pair][0], j = place->lors->pairs[pair][1];
        place->pair = pair;
        place->first_i = scanner->first_crystal[i];
        place->first_j = scanner->first_crystal[j];
        place->crystals_j = scanner->first_crystal[j + 1] - place->first_j;
        place->nu_j = scanner->modules[j].crystals[0];
    }

    const int64_t begin = lors->offsets[place->pair];
    const int nu_i = lors->scanner->modules[lors->pairs[place->pair][0]].crystals[0];
    place->a = (int)((lor - begin) / place->crystals_j);
    place->row = begin + (int64_t)place->a * place->crystals_j;
    place->p = place->a % nu_i;
    place->q = place->a / nu_i;
}

bool lr_span_fits(const lr_lors *lors, const lr_lor_span *span)
{
    if (span->count == 0) return true;
    const int64_t first = lr_span_lor(span, 0), last = lr_span_lor(span, span->count - 1);
    return span->count > 0 && first >= 0 && last >= first && last < lors->count;
}

/* --- angles --- */

/* Azimuths that differ by less than this angle count as equal, radians. */
#define SAME_AZIMUTH 1e-6

struct azimuth {
    int64_t angle; /* azimuth of the module's centre, in units of SAME_AZIMUTH */
    int module;
};

static int by_angle(const void *a, const void *b)
{
    const struct azimuth *one = a, *other = b;
    return lr_order_then(lr_order_whole(one->angle, other->angle), one->module - other->module);
}

static struct lr_angles *angles_create(const lr_scanner *scanner, const lr_log *log)
{
    static const char *const what = "places around the axis";
    struct lr_angles *angles = lr_alloc(1, sizeof(*angles), what, log);
    struct azimuth *sorted = lr_alloc(scanner->num_modules, sizeof(*sorted), what, log);
    if (angles != NULL) angles->modules = lr_alloc(scanner->num_modules, sizeof(*angles->modules), what, log);
    if (angles == NULL || sorted == NULL || angles->modules == NULL) {
        free(sorted);
        if (angles != NULL) free(angles->modules);
        free(angles);
        return NULL;
    }
    const int64_t full_circle = llround(2 * LR_PI / SAME_AZIMUTH);
    for (int m = 0; m < scanner->num_modules; m++) {
        const double *centre = scanner->modules[m].centre_mm;
        const double azimuth = fmod(atan2(centre[1], centre[0]) + 2 * LR_PI, 2 * LR_PI);
        sorted[m] = (struct azimuth){llround(azimuth / SAME_AZIMUTH) % full_circle, m};
        /* Finds the module's axis, u or v, that runs around the scanner's axis, and the direction in which it runs. */
        const lr_module *module = &scanner->modules[m];
        const double around[3] = {module->normal[1], -module->normal[0], 0.0};
        const double u = vec_dot(module->u, around), v = vec_dot(module->v, around);
        const bool is_v = fabs(v) > fabs(u);
        angles->modules[m] = (struct lr_module_places){.is_v = is_v, .step = (is_v ? v : u) < 0.0 ? -1 : 1};
    }
    qsort(sorted, (size_t)scanner->num_modules, sizeof(*sorted), by_angle);
    /* Modules at the same azimuth have the same places. The places at the next azimuth follow. */
    for (int begin = 0, end; begin < scanner->num_modules; begin = end) {
        int most = 0;
        for (end = begin; end < scanner->num_modules && sorted[end].angle == sorted[begin].angle; end++) {
            const int m = sorted[end].module, num = scanner->modules[m].crystals[angles->modules[m].is_v];
            most = num > most ? num : most;
        }
        for (int k = begin; k < end; k++) {
            const int m = sorted[k].module, num = scanner->modules[m].crystals[angles->modules[m].is_v];
            struct lr_module_places *places = &angles->modules[m];
            places->first = angles->count + (places->step < 0 ? num - 1 : 0);
            places->rank = k - begin;
        }
        angles->count += most;
    }

    free(sorted);
    return angles;
}

int lr_lors_turn(const lr_lors *lors, int64_t lor, int interleave)
{
    struct lr_lor_place place = {.lors = lors};
    if (lors->angles == NULL || lor < 0 || lor >= lors->count || interleave < 1) return -1;
    lr_place_seek(&place, lor);
    const int32_t *pair = lors->pairs[place.pair];
    const struct lr_module_places *i = &lors->angles->modules[pair[0]], *j = &lors->angles->modules[pair[1]];
    const int r = place.b % place.nu_j, s = place.b / place.nu_j;
    return lr_turn(lors, interleave, lr_place_of_crystal(i, place.p, place.q) + lr_place_of_crystal(j, r, s),
                   lr_row_kind(lr_row_of_crystal(i, place.p, place.q), lr_row_of_crystal(j, r, s)));
}

/* --- the list of LORs --- */

/* Number of crystal pairs between two reports of progress, about 0.1 s of work. */
#define WORK_BETWEEN_REPORTS ((int64_t)1 << 22)

/* A list under construction; the public struct is a const view of it. */
struct pair_list {
    const lr_scanner *scanner;
    const lr_progress *progress;
    const lr_log *log;
    int32_t (*pairs)[2]; /* this table and the next two are NULL if pairs are only counted */
    int64_t *offsets;
    int32_t *first_pair;
    int64_t num_pairs, num_lors, max_pairs;
};

static int64_t crystals_of(const lr_scanner *scanner, int module)
{
    return scanner->first_crystal[module + 1] - scanner->first_crystal[module];
}

/* Lists the pairs of modules in coincidence, or only counts them if the list has no tables. */
static lr_status list_pairs(struct pair_list *list, struct lr_mask_builder *builder)
{
    const int num_modules = list->scanner->num_modules;
    int64_t work = WORK_BETWEEN_REPORTS;
    for (int i = 0; i < num_modules; i++) {
        if (list->first_pair != NULL) list->first_pair[i] = (int32_t)list->num_pairs;
        for (int j = i + 1; j < num_modules; j++) {
            bool any = false;
            work += crystals_of(list->scanner, i) * crystals_of(list->scanner, j);
            if (work >= WORK_BETWEEN_REPORTS) {
                LR_TRY(lr_progress_report(list->progress, "pairing modules", i, num_modules));
                work = 0;
            }
            LR_TRY(lr_mask_builder_add(builder, i, j, &any));
            if (!any) continue;
            const int64_t k = list->num_pairs;
            if (k == INT32_MAX) {
                return lr_error(list->log, LR_BAD_INPUT,
                                "%s: more than %d pairs of modules are in coincidence: describe it by fewer modules of "
                                "more crystals, or narrow its field of view",
                                list->scanner->name, INT32_MAX);
            }
            if (list->first_pair != NULL && k == list->max_pairs) {
                const int64_t most = lr_physical_memory() / 4 / LR_PAIR_BYTES;
                const int64_t twice = 2 * list->max_pairs + 64, room = twice < most ? twice : most;
                if (room <= list->max_pairs) {
                    return lr_error(
                        list->log, LR_FAILED,
                        "%s: the tables of its pairs of modules take more than %.1f GiB, a quarter of this machine's "
                        "memory: describe it by fewer modules of more crystals, or narrow its field of view",
                        list->scanner->name, 0x1p-32 * (double)lr_physical_memory());
                }
                void *pairs = lr_resize(list->pairs, room, sizeof(*list->pairs), "module pairs", list->log);
                if (pairs == NULL) return LR_FAILED;
                list->pairs = pairs;
                void *offsets = lr_resize(list->offsets, room + 1, sizeof(*list->offsets), "module pairs", list->log);
                if (offsets == NULL) return LR_FAILED;
                list->offsets = offsets;
                list->max_pairs = room;
            }
            const int64_t end = list->num_lors + crystals_of(list->scanner, i) * crystals_of(list->scanner, j);
            if (list->first_pair != NULL) {
                list->pairs[k][0] = i;
                list->pairs[k][1] = j;
                list->offsets[k] = list->num_lors;
                list->offsets[k + 1] = end;
            }
            list->num_pairs++;
            list->num_lors = end;
        }
    }
    if (list->first_pair != NULL) list->first_pair[num_modules] = (int32_t)list->num_pairs;
    if (list->num_pairs == 0) {
        return lr_error(list->log, LR_BAD_INPUT,
                        "%s: no two crystals are in coincidence: widen the field of view or the ring difference, or "
                        "lower the module difference",
                        list->scanner->name);
    }
    return LR_OK;
}

lr_status lr_lors_count(const lr_scanner *scanner, const lr_progress *progress, lr_lors_size *size, const lr_log *log)
{
    struct pair_list list = {.scanner = scanner, .progress = progress, .log = log};
    struct lr_mask_builder *builder = lr_mask_builder_create(scanner, LR_MASKS_COUNTED, log);
    if (builder == NULL) return LR_FAILED;
    const lr_status status = list_pairs(&list, builder);
    lr_mask_builder_destroy(builder);
    *size = (lr_lors_size){list.num_pairs, list.num_lors};
    return status;
}

lr_lors *lr_lors_create(const lr_scanner *scanner, const lr_log *log)
{
    return lr_lors_create_watched(scanner, NULL, log);
}

lr_lors *lr_lors_create_watched(const lr_scanner *scanner, const lr_progress *progress, const lr_log *log)
{
    struct pair_list list = {.scanner = scanner, .progress = progress, .log = log};
    lr_lors *lors = lr_alloc(1, sizeof(*lors), "the list of LORs", log);
    struct lr_mask_builder *builder = lors ? lr_mask_builder_create(scanner, LR_MASKS_STORED, log) : NULL;
    list.first_pair = lr_alloc((int64_t)scanner->num_modules + 1, sizeof(*list.first_pair), "module pairs",
                               builder != NULL ? log : NULL);
    if (builder == NULL || list.first_pair == NULL) goto fail;
    if (list_pairs(&list, builder) != LR_OK) goto fail;
    lors->masks = lr_mask_builder_finish(builder);
    builder = NULL;
    lors->angles = lors->masks != NULL ? angles_create(scanner, log) : NULL;
    if (lors->angles == NULL) goto fail;
    lors->scanner = scanner;
    lors->num_pairs = list.num_pairs;
    lors->pairs = (const int32_t(*)[2])list.pairs;
    lors->offsets = list.offsets;
    lors->count = list.num_lors;
    lors->first_pair = list.first_pair;
    return lors;
fail:
    lr_mask_builder_destroy(builder);
    lr_free_all(list.pairs, list.offsets, list.first_pair);

    if (lors != NULL) lr_coincidence_masks_destroy((struct lr_coincidence_masks *)lors->masks);
    free(lors);
    return NULL;
}

void lr_lors_destroy(lr_lors *lors)
{
    if (lors == NULL) return;
    lr_free_all((void *)lors->pairs, (void *)lors->offsets, (void *)lors->first_pair);
    lr_coincidence_masks_destroy((struct lr_coincidence_masks *)lors->masks);
    if (lors->angles != NULL) free(lors->angles->modules);
    lr_free_all((void *)lors->angles, lors);
}

int64_t lr_lors_pair(const lr_lors *lors, int module_a, int module_b)
{
    const int i = module_a < module_b ? module_a : module_b;
    const int j = module_a < module_b ? module_b : module_a;
    int64_t low = lors->first_pair[i], high = lors->first_pair[i + 1];
    if (low == high || j < lors->pairs[low][1] || j > lors->pairs[high - 1][1]) return -1;
    /* Modules in coincidence with one module mostly have consecutive numbers, so the pair is guessed first. */
    const int64_t guess = low + (j - lors->pairs[low][1]);
    if (guess < high && lors->pairs[guess][1] == j) return guess;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (lors->pairs[middle][1] <= j)
            low = middle;
        else
            high = middle;
    }
    return lors->pairs[low][1] == j ? low : -1;
}

/* Finds the LOR of two crystals and the pair of their modules; -1 = the crystals have no LOR. */
static int64_t number_of(const lr_lors *lors, int crystal_a, int crystal_b, int64_t *pair)
{
    const lr_scanner *scanner = lors->scanner;
    const int low = crystal_a < crystal_b ? crystal_a : crystal_b, high = crystal_a < crystal_b ? crystal_b : crystal_a;
    if (scanner == NULL || low < 0 || high >= scanner->num_crystals) return -1;
    *pair = lr_lors_pair(lors, lr_scanner_module_of(scanner, low), lr_scanner_module_of(scanner, high));
    if (*pair < 0) return -1;
    const int i = lors->pairs[*pair][0], j = lors->pairs[*pair][1];
    return lors->offsets[*pair] + (low - scanner->first_crystal[i]) * crystals_of(scanner, j) +
           (high - scanner->first_crystal[j]);
}

int64_t lr_lors_number(const lr_lors *lors, int crystal_a, int crystal_b)
{
    int64_t pair;
    return number_of(lors, crystal_a, crystal_b, &pair);
}

static lr_lor describe(const lr_lors *lors, int64_t pair, int64_t lor)
{
    const int i = lors->pairs[pair][0], j = lors->pairs[pair][1];
    const int nu_i = lors->scanner->modules[i].crystals[0];
    const int nu_j = lors->scanner->modules[j].crystals[0];
    const int64_t crystals_j = crystals_of(lors->scanner, j);
    const int a = (int)((lor - lors->offsets[pair]) / crystals_j);
    const int b = (int)((lor - lors->offsets[pair]) % crystals_j);
    return (lr_lor){.module_i = i, .p = a % nu_i, .q = a / nu_i, .module_j = j, .r = b % nu_j, .s = b / nu_j};
}

lr_lor lr_lors_describe(const lr_lors *lors, int64_t lor)
{
    const int64_t pair = place_pair(lors, lor);
    return lors->scanner != NULL ? describe(lors, pair, lor) : (lr_lor){(int)pair, -1, -1, -1, -1, -1};
}

void lr_lors_crystals(const lr_lors *lors, int64_t lor, int32_t crystals[2])
{
    const int64_t pair = place_pair(lors, lor), within = lor - lors->offsets[pair];
    const int i = lors->pairs[pair][0], j = lors->pairs[pair][1];
    const int64_t crystals_j = crystals_of(lors->scanner, j);
    crystals[0] = lors->scanner->first_crystal[i] + (int32_t)(within / crystals_j);
    crystals[1] = lors->scanner->first_crystal[j] + (int32_t)(within % crystals_j);
}

int64_t lr_place_joined(const lr_lors *lors, const int32_t crystals[2])
{
    int64_t pair;
    const int64_t lor = number_of(lors, crystals[0], crystals[1], &pair);
    if (lor < 0 || lors->masks->pairs[pair].kind == LR_MASK_ALL) return lor;
    const lr_lor spelled = describe(lors, pair, lor);
    return lr_coincidence_allows(lors, pair, spelled.p, spelled.q, spelled.r, spelled.s) ? lor : -1;
}

bool lr_lors_in_coincidence(const lr_lors *lors, int64_t lor)
{
    if (lor < 0 || lor >= lors->count || lors->scanner == NULL) return lor >= 0 && lor < lors->count;
    const int64_t pair = place_pair(lors, lor);
    const lr_lor spelled = describe(lors, pair, lor);
    return lr_coincidence_allows(lors, pair, spelled.p, spelled.q, spelled.r, spelled.s);
}

/* --- the layout --- */

lr_lors *lr_lors_create_part(const lr_lors *all, const lr_selection *part, const lr_log *log)
{
    static const char *const what = "the list of LORs";
    if (all->scanner == NULL || part->pairs == NULL || part->num_pairs < 1) {
        lr_log_write(log, LR_LOG_ERROR, LR_USAGE, "a part of a layout needs pairs of a scanner's modules");
        return NULL;
    }
    if (lr_selection_check(all, part, log) != LR_OK) return NULL;
    lr_lors *lors = lr_alloc(1, sizeof(*lors), what, log);
    if (lors == NULL) return NULL;
    int32_t(*pairs)[2] = lr_alloc(part->num_pairs, sizeof(*pairs), what, log);
    int64_t *offsets = lr_alloc(part->num_pairs + 1, sizeof(*offsets), what, log);
    int32_t *first = lr_alloc((int64_t)all->scanner->num_modules + 1, sizeof(*first), what, log);
    struct lr_coincidence_masks *masks = lr_alloc(1, sizeof(*masks), what, log);
    if (masks != NULL) {
        masks->pairs = lr_alloc(part->num_pairs, sizeof(*masks->pairs), what, log);
        masks->words = lr_alloc(all->masks->num_words + 1, sizeof(*masks->words), what, log);
    }
    *lors = (lr_lors){.scanner = all->scanner,
                      .num_pairs = part->num_pairs,
                      .pairs = (const int32_t(*)[2])pairs,
                      .offsets = offsets,
                      .first_pair = first,
                      .masks = masks,
                      .angles = angles_create(all->scanner, log)};
    if (pairs == NULL || offsets == NULL || first == NULL || masks == NULL || masks->pairs == NULL ||
        masks->words == NULL || lors->angles == NULL) {
        lr_lors_destroy(lors);
        return NULL;
    }

    /* All bits are copied, because several pairs may share the same bits. */
    masks->num_pairs = part->num_pairs;
    masks->num_words = all->masks->num_words;
    memcpy(masks->words, all->masks->words, (size_t)masks->num_words * sizeof(*masks->words));
    for (int64_t k = 0; k < part->num_pairs; k++) masks->pairs[k] = all->masks->pairs[part->pairs[k]];
    offsets[0] = 0;
    for (int64_t k = 0; k < part->num_pairs; k++) {
        const int32_t pair = part->pairs[k];
        memcpy(pairs[k], all->pairs[pair], sizeof(pairs[k]));
        offsets[k + 1] = offsets[k] + lr_pair_size(all, pair);
    }
    lors->count = offsets[part->num_pairs];
    int64_t next = 0;
    for (int i = 0; i <= lors->scanner->num_modules; i++) {
        while (next < lors->num_pairs && lors->pairs[next][0] < i) next++;
        first[i] = (int32_t)next;
    }

    return lors;
}

/* --- sums over fans --- */

static int64_t count_bits(const uint32_t *set, int64_t num_bits)
{
    int64_t ones = 0;
    for (int64_t n = 0; n < num_bits; n++) ones += lr_mask_bit(set, n);
    return ones;
}

int64_t lr_pair_num_coincidences(const lr_lors *lors, int64_t pair)
{
    const struct lr_pair_mask *mask = &lors->masks->pairs[pair];
    const int64_t all = lors->offsets[pair + 1] - lors->offsets[pair];
    const uint32_t *set = lors->masks->words + mask->offset_a;
    if (mask->kind == LR_MASK_ALL) return all;
    if (mask->kind == LR_MASK_FULL) return count_bits(set, all);
    const int *i = lors->scanner->modules[lors->pairs[pair][0]].crystals;
    const int *j = lors->scanner->modules[lors->pairs[pair][1]].crystals;
    return count_bits(set, (int64_t)i[0] * j[0]) *
           count_bits(lors->masks->words + mask->offset_b, (int64_t)i[1] * j[1]);
}

struct fan_loop {
    const lr_lors *lors;
    const double *values;
    double *fans;
    double *sums; /* [threads][sums_size] */
    int64_t sums_size;
};

/* True if a set of bits allows entry at[0] of a first module together with entry at[1] of a second module. The set is
 * stored in the order (lower module, higher module). is_lower: true if the first module is the lower one. size: the
 * number of entries of each module. */
static bool allowed(const uint32_t *set, bool is_lower, const int64_t at[2], const int64_t size[2])
{
    return lr_mask_bit(set, is_lower ? at[0] * size[1] + at[1] : at[1] * size[0] + at[0]);
}

/* Adds the values of the far module's crystals to the fan sums of the near module's crystals. sums: room for the sums
 * of the far module's columns. */
static void add_module(const struct fan_loop *loop, int near, int far, double *sums)
{
    const lr_lors *lors = loop->lors;
    const lr_scanner *scanner = lors->scanner;
    const int64_t pair = lr_lors_pair(lors, near, far);
    if (pair < 0) return;
    const struct lr_pair_mask *mask = &lors->masks->pairs[pair];
    const uint32_t *set_a = lors->masks->words + mask->offset_a, *set_b = lors->masks->words + mask->offset_b;
    const bool is_lower = near < far;
    const int *size = scanner->modules[near].crystals, *far_size = scanner->modules[far].crystals;
    const int64_t crystals[2] = {(int64_t)size[0] * size[1], (int64_t)far_size[0] * far_size[1]};
    const double *values = loop->values + scanner->first_crystal[far];
    double *fans = loop->fans + scanner->first_crystal[near];
    if (mask->kind == LR_MASK_ALL) {
        double sum = 0.0;
        for (int64_t d = 0; d < crystals[1]; d++) sum += values[d];
        for (int64_t c = 0; c < crystals[0]; c++) fans[c] += sum;
        return;
    }
    if (mask->kind == LR_MASK_FULL) {
        for (int64_t c = 0; c < crystals[0]; c++) {
            for (int64_t d = 0; d < crystals[1]; d++)
                if (allowed(set_a, is_lower, (int64_t[2]){c, d}, crystals)) fans[c] += values[d];
        }
        return;
    }

    /* sums[r][q] = sum over the far crystals of column r that may be in coincidence with ring q. */
    const int64_t columns[2] = {size[0], far_size[0]}, rings[2] = {size[1], far_size[1]};
    for (int64_t k = 0; k < columns[1] * rings[0]; k++) sums[k] = 0.0;
    for (int64_t q = 0; q < rings[0]; q++) {
        for (int64_t s = 0; s < rings[1]; s++) {
            if (!allowed(set_b, is_lower, (int64_t[2]){q, s}, rings)) continue;
            for (int64_t r = 0; r < columns[1]; r++) sums[r * rings[0] + q] += values[s * columns[1] + r];
        }
    }
    for (int64_t p = 0; p < columns[0]; p++) {
        for (int64_t r = 0; r < columns[1]; r++) {
            if (!allowed(set_a, is_lower, (int64_t[2]){p, r}, columns)) continue;
            for (int64_t q = 0; q < rings[0]; q++) fans[q * columns[0] + p] += sums[r * rings[0] + q];
        }
    }
}

/* Computes the fan sums of the crystals of some modules. The sums of a module's crystals are written by one worker
 * only. */
static void fan_modules(void *user, int64_t begin, int64_t end, int worker)
{
    const struct fan_loop *loop = user;
    const lr_scanner *scanner = loop->lors->scanner;
    for (int64_t near = begin; near < end; near++) {
        for (int64_t c = scanner->first_crystal[near]; c < scanner->first_crystal[near + 1]; c++) loop->fans[c] = 0.0;
        for (int far = 0; far < scanner->num_modules; far++)
            add_module(loop, (int)near, far, loop->sums + worker * loop->sums_size);
    }
}

lr_status lr_crystal_fans(const lr_lors *lors, const double *values, double *fans, int threads, const lr_log *log)
{
    const lr_scanner *scanner = lors->scanner;
    int64_t most[2] = {1, 1};
    for (int m = 0; m < scanner->num_modules; m++) {
        for (int k = 0; k < 2; k++) {
            const int size = scanner->modules[m].crystals[k];
            most[k] = size > most[k] ? size : most[k];
        }
    }
    threads = threads > 0 ? threads : lr_num_processors();
    struct fan_loop loop = {lors, values, fans, NULL, most[0] * most[1]};
    loop.sums = lr_alloc(threads * loop.sums_size, sizeof(double), "sums over fans", log);
    if (loop.sums == NULL) return LR_FAILED;
    lr_parallel_workers(threads, scanner->num_modules, 1, fan_modules, &loop);
    free(loop.sums);
    return LR_OK;
}

/* --- modules, crystals, ends and numbers of many LORs at once --- */

/* Number of LORs that a thread looks up at once. For fewer LORs, starting a thread takes longer than the work. */
enum { AT_ONCE = 1 << 14 };

/* A look-up of many LORs. The pointer to the wanted result is set, and the pointers to all other results are NULL. */
struct look_up {
    const lr_lors *lors;
    const lr_lor_span *span;
    lr_lor *described;
    int32_t (*crystals)[2];
    double (*ends_mm)[2][3];
    const double (*hits_mm)[3]; /* [num_crystals] for ends */
    atomic_llong first_wrong;   /* index of the first number that is no LOR */
};

static void look_up(void *user, int64_t begin, int64_t end)
{
    struct look_up *wanted = user;
    const lr_lors *lors = wanted->lors;
    struct lr_lor_place at = {.lors = lors};
    for (int64_t k = begin; k < end; k++) {
        const int64_t lor = lr_span_lor(wanted->span, k);
        if (lor < 0 || lor >= lors->count) {
            lr_lower(&wanted->first_wrong, k);
            continue;
        }
        lr_place_seek(&at, lor);
        const int32_t crystals[2] = {at.first_i + at.a, at.first_j + at.b};
        if (wanted->described != NULL) {
            wanted->described[k] = (lr_lor){.module_i = lors->pairs[at.pair][0],
                                            .p = at.p,
                                            .q = at.q,
                                            .module_j = lors->pairs[at.pair][1],
                                            .r = at.b % at.nu_j,
                                            .s = at.b / at.nu_j};
        }
        for (int end_of = 0; end_of < 2; end_of++) {
            if (wanted->crystals != NULL) wanted->crystals[k][end_of] = crystals[end_of];
            for (int axis = 0; wanted->ends_mm != NULL && axis < 3; axis++)
                wanted->ends_mm[k][end_of][axis] = wanted->hits_mm[crystals[end_of]][axis];
        }
    }
}

static lr_status run(struct look_up *wanted, const lr_log *log)
{
    const lr_lor_span *span = wanted->span;
    if (wanted->lors->scanner == NULL)
        return lr_error(log, LR_USAGE, "LORs of histo-images and events have no crystals");
    atomic_init(&wanted->first_wrong, INT64_MAX);
    lr_parallel_for(lr_num_processors(), span->count, AT_ONCE, look_up, wanted);
    const int64_t wrong = atomic_load(&wanted->first_wrong);
    if (wrong == INT64_MAX) return LR_OK;
    return lr_error(log, LR_USAGE, "number %lld of the list, %lld, is no LOR: there are %lld, from 0 on",
                    (long long)wrong, (long long)lr_span_lor(span, wrong), (long long)wanted->lors->count);
}

lr_status lr_lor_span_describe(const lr_lors *lors, const lr_lor_span *span, lr_lor *described, const lr_log *log)
{
    return run(&(struct look_up){.lors = lors, .span = span, .described = described}, log);
}

lr_status lr_lor_span_crystals(const lr_lors *lors, const lr_lor_span *span, int32_t (*crystals)[2], const lr_log *log)
{
    return run(&(struct look_up){.lors = lors, .span = span, .crystals = crystals}, log);
}

lr_status lr_lor_span_ends(const lr_lors *lors, const lr_lor_span *span, double (*ends_mm)[2][3], const lr_log *log)
{
    const int64_t num_crystals = lors->scanner != NULL ? lors->scanner->num_crystals : 0;
    double(*hits_mm)[3] = lr_alloc(num_crystals, sizeof(*hits_mm), "places of crystals", log);
    if (hits_mm == NULL) return LR_FAILED;
    if (lors->scanner != NULL) lr_scanner_hit_centres(lors->scanner, hits_mm);
    struct look_up wanted = {.lors = lors, .span = span, .ends_mm = ends_mm, .hits_mm = (const double(*)[3])hits_mm};
    const lr_status status = run(&wanted, log);
    free(hits_mm);
    return status;
}

struct numbering {
    const lr_lors *lors;
    const int32_t (*crystals)[2];
    int64_t *numbers;
};

static void find_numbers(void *user, int64_t begin, int64_t end)
{
    const struct numbering *wanted = user;
    for (int64_t k = begin; k < end; k++)
        wanted->numbers[k] = lr_lors_number(wanted->lors, wanted->crystals[k][0], wanted->crystals[k][1]);
}

void lr_lors_numbers(const lr_lors *lors, const int32_t (*crystals)[2], int64_t count, int64_t *numbers)
{
    lr_parallel_for(lr_num_processors(), count, AT_ONCE, find_numbers,
                    &(struct numbering){.lors = lors, .crystals = crystals, .numbers = numbers});
}
