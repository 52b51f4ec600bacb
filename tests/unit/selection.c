/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Selections of LORs, compared with a plain table of flags: checked, counted, walked over, searched. */
#include "scanners.h"

#include "model/lors/pair_window.h"
#include "model/lors/selection.h"

struct world {
    lr_lors *lors;
    struct test_log log;
    int64_t *numbers; /* [lors->count] room for lists */
    int32_t *pairs;   /* [lors->num_pairs] */
    bool *chosen;     /* [lors->count] */
};

static void world_init(struct world *world)
{
    *world = (struct world){0};
    test_log_init(&world->log);
    world->lors = lors_from(scanner_from("ring: {radius_mm: 40, modules: 7}\nmodule: {crystals: [3, 2], "
                                         "pitch_mm: [4, 4], face_mm: [4, 4], depth_mm: 10}"));
    assert_int_equal(world->lors->num_pairs, 21);
    world->numbers = kept(world->lors->count, sizeof(*world->numbers));
    world->pairs = kept(world->lors->num_pairs, sizeof(*world->pairs));
    world->chosen = kept(world->lors->count, sizeof(*world->chosen));
}

/* A random selection of about this share of all LORs or module pairs. Marks the chosen LORs. */
static lr_selection choose(struct world *world, bool by_pairs, double share, uint64_t *state)
{
    const lr_lors *lors = world->lors;
    lr_selection selection = {0};
    memset(world->chosen, 0, (size_t)lors->count * sizeof(*world->chosen));
    if (by_pairs)
        selection.pairs = world->pairs;
    else
        selection.lors = world->numbers;
    for (int64_t pair = 0; by_pairs && pair < lors->num_pairs; pair++) {
        if (test_random(state) < share) {
            world->pairs[selection.num_pairs++] = (int32_t)pair;
            for (int64_t lor = lors->offsets[pair]; lor < lors->offsets[pair + 1]; lor++) world->chosen[lor] = true;
        }
    }
    for (int64_t lor = 0; !by_pairs && lor < lors->count; lor++) {
        world->chosen[lor] = test_random(state) < share;
        if (world->chosen[lor]) world->numbers[selection.num_lors++] = lor;
    }
    return selection;
}

/* Each chosen LOR of the window appears once, in order, at its position. */
static void check_walk(const struct world *world, struct lr_selection_walk walk)
{
    const int64_t begin = walk.begin, end = walk.end > 0 ? walk.end : world->lors->count;
    int64_t lor = 0, position = 0;
    while (lr_selection_next(&walk)) {
        assert_true(walk.span.count > 0 && (walk.longest == 0 || walk.span.count <= walk.longest));
        for (int64_t k = 0; k < walk.span.count; k++, lor++, position++) {
            for (; !world->chosen[lor] || lor < begin; lor++) position += world->chosen[lor];
            assert_true(lor < end);
            assert_int_equal(walk.span.numbers ? walk.span.numbers[k] : walk.span.first + k, lor);
            assert_ints(walk.position + k, position, lr_selection_lor(world->lors, walk.selection, position), lor);
        }
    }
    for (; lor < end; lor++) assert_false(world->chosen[lor] && lor >= begin);
}

static void check_selection(const struct world *world, const lr_selection *selection, uint64_t *state)
{
    const int64_t count = world->lors->count;
    assert_ok(lr_selection_check(world->lors, selection, NULL));
    struct lr_selection_finder every = {.lors = world->lors, .selection = selection}, some = every;
    int64_t position = 0;
    for (int64_t lor = 0; lor < world->lors->count; lor++) {
        const int64_t expected = world->chosen[lor] ? position++ : -1;
        assert_int_equal(lr_selection_find(&every, lor), expected);
        if (test_random(state) < 0.1) assert_int_equal(lr_selection_find(&some, lor), expected);
    }
    assert_int_equal(lr_selection_count(world->lors, selection), position);
    for (int k = 0; k < 20; k++) {
        const int64_t a = (int64_t)(test_random(state) * (double)count);
        const int64_t b = a + 1 + (int64_t)(test_random(state) * (double)(count - a));
        struct lr_selection_walk walk = {.lors = world->lors, .selection = selection};
        walk.longest = k % 4 * 7;
        check_walk(world, walk);
        walk.begin = a;
        walk.end = b < count ? b : count;
        check_walk(world, walk);
    }
}

static void test_every_selection_is_its_flags(void **unused)
{
    static const double shares[] = {0.0, 0.03, 0.5, 0.95, 1.0};
    uint64_t state = test_seed();
    struct world world;
    world_init(&world);
    for (int k = 0; k < 5; k++) {
        for (int by_pairs = 0; by_pairs < 2; by_pairs++) {
            const lr_selection selection = choose(&world, by_pairs, shares[k], &state);
            check_selection(&world, &selection, &state);
        }
    }
    memset(world.chosen, 1, (size_t)world.lors->count);
    check_selection(&world, NULL, &state);
    check_selection(&world, &(lr_selection){0}, &state);
}

static void test_faults_are_named(void **unused)
{
    static const int64_t lors[] = {4, 9, 9, 7, 756}; /* 21 pairs of 36 */
    static const int64_t negative[] = {-1};
    static const int32_t pairs[] = {0, 20, 21, 3, 2};
    const struct {
        lr_selection selection;
        const char *words;
    } faults[] = {
        {{.lors = lors, .num_lors = 1, .pairs = pairs, .num_pairs = 1}, "one of the two"},
        {{.lors = lors, .num_lors = 3}, "entry 2 of a selection is LOR 9"},
        {{.lors = lors + 2, .num_lors = 2}, "LOR 7 after 9"},
        {{.lors = lors + 3, .num_lors = 2}, "LOR 756: the scanner has 0 to"},
        {{.lors = negative, .num_lors = 1}, "LOR -1"},
        {{.pairs = pairs, .num_pairs = 3}, "module pair 21: the scanner has 0"},
        {{.pairs = pairs + 3, .num_pairs = 2}, "module pair 2 after 3"},
        {{.num_lors = 3}, "3 LORs needs their list"},
        {{.num_pairs = 2}, "2 module pairs needs their list"},
        {{.lors = lors, .num_lors = -2}, "-2 LORs"},
        {{.pairs = pairs, .num_pairs = 1, .interleave = 3, .interleave_turn = 3}, "part 3 of 3 of interleaved LORs"},
        {{.lors = lors, .num_lors = 1, .interleave = 3}, "part 0 of 3 of interleaved LORs"}};
    struct world world;
    world_init(&world);
    for (size_t k = 0; k < sizeof(faults) / sizeof(faults[0]); k++)
        assert_fails(lr_selection_check(world.lors, &faults[k].selection, &world.log.log), LR_USAGE, &world.log,
                     faults[k].words);
}

/* Windows follow each other without gaps; none has room for one more pair; and only windows of a single pair may be too
 * large. */
static void check_windows(const lr_lors *lors, const int32_t *pairs, int64_t num_pairs, int64_t most)
{
    struct lr_pair_window window = lr_pair_window_begin(lors, pairs, num_pairs);
    int64_t next = 0, values = 0;
    while (lr_pair_window_next(&window, most)) {
        int64_t sum = 0;
        assert_true(window.begin == next && window.end > next && window.first_value == values);
        for (int64_t k = window.begin; k < window.end; k++) {
            const int64_t pair = pairs != NULL ? pairs[k] : k;
            assert_int_equal(lr_pair_window_pair(&window, k), pair);
            sum += lors->offsets[pair + 1] - lors->offsets[pair];
        }
        assert_int_equal(window.num_values, sum);
        assert_true(sum <= most || window.end == window.begin + 1);
        assert_true(window.end == window.num_pairs || sum + lr_pair_window_size(&window, window.end) > most);
        next = window.end;
        values += sum;
    }
    assert_int_equal(next, pairs != NULL ? num_pairs : lors->num_pairs);
    assert_true(window.begin == next && window.end == next && window.num_values == 0);
}

static void test_windows_cover_their_list(void **state)
{
    static const int32_t pairs[] = {0, 1, 4, 5, 6, 20};
    struct world world;
    world_init(&world);
    const int64_t one = lr_pair_size(world.lors, 0), most[] = {1, one - 1, one, 2 * one, 3 * one + 1, 100 * one};
    for (int k = 0; k < 6; k++) {
        check_windows(world.lors, NULL, 0, most[k]);
        for (int count = 0; count <= 6; count++) check_windows(world.lors, pairs, count, most[k]);
    }
    /* pairs have 4 to 1,764 LORs */
    lr_module modules[7];
    memcpy(modules, world.lors->scanner->modules, sizeof(modules));
    for (int m = 0; m < 7; m++) modules[m].crystals[0] = modules[m].crystals[1] = 1 + m * 5 % 7;
    const lr_scanner_params unequal = {.name = "unequal", .modules = modules, .num_modules = 7};
    const lr_lors *lors = lors_from(lr_scanner_create(&unequal));
    for (int64_t room = 1; room < 2 * lors->count; room += 1 + room / 8) {
        check_windows(lors, NULL, 0, room);
        check_windows(lors, pairs, 6, room);
    }
    check_windows(lors, NULL, 0, lors->count - 1);
    check_windows(lors, NULL, 0, lors->count);
}

test_main("unit: selection", CASE(test_every_selection_is_its_flags), CASE(test_windows_cover_their_list),
          CASE(test_faults_are_named))
