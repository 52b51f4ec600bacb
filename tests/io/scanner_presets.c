/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The presets against counts and positions from other sources. */
#include "io/scanners.h"
#include "io/text_cases.h"

#define ASSETS "scanner_presets_test"

static lr_scanner *read_preset(const char *name)
{
    struct test_log log = TEST_LOG(log);
    lr_scanner *scanner = keep(lr_scanner_read(name, &log.log));
    assert_int_equal(log.num_warnings, 0);
    return scanner;
}

static void every_preset_is_a_scanner_with_sources(void **state)
{
    int count = 0;
    for (const char *const *name = lr_scanner_presets(); *name != NULL; name++, count++) {
        lr_scanner *scanner = read_preset(*name);
        assert_all(scanner->num_modules >= 2, scanner->source != NULL);
        assert_true(strcmp(*name, "two-opposed-modules") == 0 || strstr(scanner->source, "\nunverified: ") != NULL);
        (void)lors_of(scanner);
    }
    assert_int_equal(count, 17); /* 15 real scanners */
}

/* The axial length of the scanner between the outer edges of the crystal pitches. */
static double length_mm(const lr_scanner *scanner)
{
    double low = INFINITY, high = -INFINITY;
    for (int m = 0; m < scanner->num_modules; m++) {
        const lr_module *module = &scanner->modules[m];
        const double half = 0.5 * module->crystals[1] * module->pitch_mm[1];
        low = fmin(low, module->centre_mm[2] - half);
        high = fmax(high, module->centre_mm[2] + half);
    }
    return high - low;
}

/* Inner radius, crystal rings, axial length and time resolution from sources other than those of the presets: STIR's
 * table of scanners, and publications. If sources differ, the tolerance is this difference. */
static void numbers_are_as_published(void **state)
{
    for (struct text_cases cases = cases_of(IO_CASES, "presets"); next_case(&cases);) {
        int modules, crystals, rings; /* 0 = not compared; lengths, too */
        double radius_mm, radius_off_mm, axial_mm, axial_off_mm, tof_ps, by_pitch_mm;
        assert_int_equal(sscanf(cases.fields[1], "%d %d %d %lf %lf %lf %lf %lf %lf", &modules, &crystals, &rings,
                                &radius_mm, &radius_off_mm, &axial_mm, &axial_off_mm, &tof_ps, &by_pitch_mm),
                         9);
        lr_scanner *scanner = read_preset(cases.fields[0]);
        assert_pairs(0, {scanner->num_modules, modules}, {scanner->num_crystals, crystals});
        /* Crystals of 511 keV scanners stop between LaBr3's 0.047/mm and BGO's 0.096/mm. */
        assert_true(scanner->crystal_mu_per_mm >= 0.047 && scanner->crystal_mu_per_mm <= 0.096);
        if (rings > 0) {
            const lr_module *last = &scanner->modules[scanner->num_modules - 1];
            const double radius = -(last->centre_mm[0] * last->normal[0] + last->centre_mm[1] * last->normal[1]);
            assert_true(fabs(radius - radius_mm) <= radius_off_mm + 1e-9);
            assert_int_equal(last->first_crystal_ring + last->crystals[1], rings);
            assert_true(fabs(length_mm(scanner) - axial_mm) <= axial_off_mm);
            assert_true(scanner->tof_resolution_ps == tof_ps);
        }
        if (by_pitch_mm > 0) assert_close(length_mm(scanner), by_pitch_mm, 1e-12);
    }
}

static void penn_is_as_published(void **state)
{
    lr_scanner *scanner = read_preset("penn-labr3");
    const lr_module *first = &scanner->modules[0];
    assert_pairs(1e-15, {first->centre_mm[0], 465}, {first->normal[0], -1});
    assert_pairs(0, {first->crystals[0], 27}, {first->crystals[1], 60}, {first->pitch_mm[0], 4.3},
                 {first->face_mm[1], 4.0}, {first->depth_mm, 30}, {scanner->coincidence.field_of_view_mm, 576},
                 {scanner->coincidence.min_module_difference, 0});
    assert_false(scanner->coincidence.limits_ring_difference);
    assert_close(scanner->tof_resolution_ps, 400, 0);
    assert_true(scanner->detection_depth_mm == 0);
}

/* The GPU-cluster paper has modules of 32 x 32 detectors without gaps, hits on their planes, and "about 10^7" lines
 * of response. In the preset, lines through the paper's whole volume, which is 64 mm wide, end in modules that are
 * in coincidence. */
static void cluster_is_as_published(void **state)
{
    lr_scanner *scanner = read_preset("cluster-paper-32");
    lr_lors *lors = lors_of(scanner);
    assert_pairs(0, {lors->num_pairs, 9}, {lors->count, 9 * 32 * 32 * 32 * 32});
    for (int m = 0; m < scanner->num_modules; m++) {
        const lr_module *module = &scanner->modules[m];
        const double *centre = module->centre_mm, *normal = module->normal;
        for (int axis = 0; axis < 2; axis++)
            assert_pairs(0, {module->crystals[axis], 32}, {module->face_mm[axis], module->pitch_mm[axis]});
        assert_true(-(centre[0] * normal[0] + centre[1] * normal[1]) > 32 * sqrt(2));
        assert_true(fabs(normal[2]) == 0 && centre[2] == 0);
    }
    assert_true(scanner->detection_depth_mm == 0);
    assert_close(length_mm(scanner), 64, 1e-12);
}

/* If sources contradict each other, the presets use the values on which they agree. */
static void doubtful_numbers_are_consistent(void **state)
{
    lr_scanner *mmr = read_preset("siemens-mmr"), *signa = read_preset("ge-signa-petmr");
    const lr_module *block = &mmr->modules[0];
    /* The pitch is CASToR's, and also fits 504 equal angles at the depth where photons stop in 20 mm of LSO. */
    const double lso = mmr->crystal_mu_per_mm, mean_mm = 1 / lso - 20 * exp(-lso * 20) / (1 - exp(-lso * 20));
    assert_close(block->pitch_mm[0], 4.17252, 1e-9);
    assert_close(block->pitch_mm[0], 2 * pi * (328 + mean_mm) / 504, 3e-3);
    assert_true(8 * block->pitch_mm[0] < 2 * 328 * tan(pi / 56));
    /* The depth is the one at which STIR's radius and depth, CASToR's numbers, and the mean depth of stopped photons
       in 25 mm of LYSO agree. */
    const lr_module *unit = &signa->modules[0];
    const double front_mm = -(unit->centre_mm[0] * unit->normal[0] + unit->centre_mm[1] * unit->normal[1]);
    const double mu = signa->crystal_mu_per_mm, depth = unit->depth_mm;
    const double stop_mm = 1 / mu - depth * exp(-mu * depth) / (1 - exp(-mu * depth));
    assert_close(front_mm + 8.5, 317 + 3.3, 1e-9);
    assert_true(fabs(stop_mm - 8.5) < 0.1 && fabs(stop_mm - 3.3) > 5);
}

/* 64 rings with ring differences up to 60: 4,084 of the 4,096 pairs of rings. */
static void mmr_has_4084_planes(void **state)
{
    lr_scanner *scanner = read_preset("siemens-mmr");
    lr_lors *lors = lors_of(scanner);
    int planes = 0;
    const int opposite = scanner->first_crystal[28];
    for (int ring_a = 0; ring_a < 64; ring_a++) {
        for (int ring_b = 0; ring_b < 64; ring_b++) {
            const int64_t lor = lr_lors_number(lors, ring_a * 8, opposite + ring_b * 8);
            planes += lor >= 0 && lr_lors_in_coincidence(lors, lor);
        }
    }
    assert_int_equal(planes, 4084);
    /* There are 504 positions including virtual crystals: the outermost of 344 bins joins positions 80 apart. */
    assert_int_equal(lors->num_pairs, 56 * (56 - 2 * 8 - 1) / 2);
}

/* Every crystal of the published map lies within 0.01 mm of one of our crystals, each of a different one. */
static void safir_agrees_with_its_crystal_map(void **state)
{
    char path[1024], line[256];
    if (test_data(path, "safir/DualRingPrototype_crystal_map.txt") == NULL) skip();
    lr_scanner *scanner = read_preset("safir-dual-ring-prototype");
    FILE *file = non_null(fopen(path, "r"));
    char *taken = kept((size_t)scanner->num_crystals, 1);
    int count = 0;
    double worst = 0;
    while (fgets(line, sizeof(line), file) != NULL) {
        double at[3], away;
        if (sscanf(line, "%*d %*d %*d %lf %lf %lf", &at[0], &at[1], &at[2]) != 3) continue;
        const int crystal = nearest_crystal(scanner, at, &away);
        worst = fmax(worst, away);
        assert_int_equal(taken[crystal], 0);
        taken[crystal] = 1;
        count++;
    }
    fclose(file);
    print_message("%d crystals, largest distance %.6f mm\n", count, worst);
    assert_int_equal(count, 2880);
    assert_true(worst <= 0.01);
}

static void misspelt_names_meet_the_nearest(void **state)
{
    for (struct text_cases cases = cases_of(IO_CASES, "preset names"); next_case(&cases);) {
        struct test_log log = TEST_LOG(log);
        assert_none(lr_scanner_read(cases.fields[1], &log.log), LR_BAD_INPUT, &log, cases.fields[0]);
    }
}

static void a_folder_of_assets_comes_first(void **state)
{
    struct test_log log = TEST_LOG(log);
    mkdir(ASSETS, 0777);
    mkdir(ASSETS "/scanners", 0777);
    text_write(ASSETS "/scanners/penn-labr3.yaml", "name: mine\nring: {radius_mm: 100, modules: 4}\nmodule: {crystals: "
                                                   "[2, 2], pitch_mm: [4, 4], face_mm: [4, 4], depth_mm: 3}\n");
    text_write(ASSETS "/scanners/new.yaml", "nome: mine\n");
    setenv("LORASTER_ASSETS", ASSETS, 1);
    lr_scanner *scanner = read_preset("penn-labr3"), *builtin = read_preset("siemens-mmr");
    lr_scanner *wrong = lr_scanner_read("new", &log.log);
    unsetenv("LORASTER_ASSETS");
    assert_string_equal(scanner->name, "mine");
    assert_int_equal(builtin->num_crystals, 28672);
    assert_none(wrong, LR_BAD_INPUT, &log, ASSETS "/scanners/new.yaml:1:1: unknown key 'nome'");
    remove(ASSETS "/scanners/penn-labr3.yaml");
    remove(ASSETS "/scanners/new.yaml");
    rmdir(ASSETS "/scanners");
    rmdir(ASSETS);
}

group_main("scanner presets", NULL, destroy_kept,
           EACH(cmocka_unit_test, every_preset_is_a_scanner_with_sources, numbers_are_as_published,
                penn_is_as_published, cluster_is_as_published, doubtful_numbers_are_consistent, mmr_has_4084_planes,
                safir_agrees_with_its_crystal_map, misspelt_names_meet_the_nearest, a_folder_of_assets_comes_first))
