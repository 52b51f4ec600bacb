/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The geometry doctor: every error that it knows is put into a scanner and must be found; correct scanners raise no
 * alarm. */
#include "io/scanners.h"
#include "io/text_cases.h"

/* A scanner description in parts; a part that is NULL is taken from a correct scanner. */
struct text {
    const char *ring, *module, *rules, *rest;
};

static const struct text sound = {"radius_mm: 328, modules: 56, rings: 1",
                                  "crystals: [8, 64], pitch_mm: [4.09, 4.0625], face_mm: [4, 4], depth_mm: 20",
                                  "min_module_difference: 9, max_ring_difference: 60",
                                  "axial_length_mm: 258\ntof: {resolution_ps: 500}\ncrystal_mu_per_mm: 0.087\n"};

static lr_diagnosis *diagnose_yaml(const char *yaml, const lr_grid *grid)
{
    struct test_log log = TEST_LOG(log);
    lr_scanner_draft *draft =
        lr_scanner_draft_parse(lr_yaml_parse("planted.yaml", yaml, (int64_t)strlen(yaml), &log.log));
    if (draft == NULL) fail_msg("%s", log.error);
    lr_diagnosis *diagnosis = non_null(lr_scanner_examine(draft, grid, NULL));
    lr_scanner_draft_destroy(draft);
    return diagnosis;
}

/* Every suspicion points at the key that it speaks of. */
static void suspicions_have_places(void **state)
{
    for (struct text_cases cases = cases_of(IO_CASES, "suspicions"); next_case(&cases);) {
        const char *yaml = cases.fields[1];
        lr_diagnosis *diagnosis = diagnose_yaml(yaml, NULL);
        struct lr_yaml *again = lr_yaml_parse("planted.yaml", yaml, (int64_t)strlen(yaml), NULL);
        assert_int_equal(lr_scanner_yaml_locate(again, diagnosis), LR_OK);
        int k = 0;
        while (k < diagnosis->num_suspects && strstr(diagnosis->findings[k].sentence, cases.fields[0]) == NULL) k++;
        if (k == diagnosis->num_suspects) fail_msg("no suspicion with '%s'", cases.fields[0]);
        const lr_finding *finding = &diagnosis->findings[k];
        char place[32];
        snprintf(place, sizeof(place), "%d:%d", finding->line, finding->column);
        if (strcmp(place, cases.fields[2]) != 0)
            fail_msg("'%s' stands at %s and not at %s", cases.fields[0], place, cases.fields[2]);
        const char *marks = strrchr(finding->excerpt, '\n') + 1;
        if (cases.fields[3][0] != '\0') assert_string_equal(marks, cases.fields[3]);
        lr_diagnosis_destroy(diagnosis);
    }
}

static lr_diagnosis *diagnose(struct text text, const lr_grid *grid)
{
    char yaml[4096];
    snprintf(yaml, sizeof(yaml), "name: planted\nring: {%s}\nmodule: {%s}\ncoincidence: {%s}\n%s",
             text.ring != NULL ? text.ring : sound.ring, text.module != NULL ? text.module : sound.module,
             text.rules != NULL ? text.rules : sound.rules, text.rest != NULL ? text.rest : sound.rest);
    return diagnose_yaml(yaml, grid);
}

static const lr_finding *find(const lr_diagnosis *diagnosis, lr_finding_kind kind)
{
    for (int k = 0; k < diagnosis->num_findings; k++)
        if (diagnosis->findings[k].kind == kind) return &diagnosis->findings[k];
    return NULL;
}

static void print(const lr_diagnosis *diagnosis)
{
    for (int k = 0; k < diagnosis->num_findings; k++) {
        const lr_finding *finding = &diagnosis->findings[k];
        print_message("  %s %s: %s; %s\n", finding->severity == LR_SUSPECT ? "suspect" : "note",
                      lr_finding_kind_name(finding->kind), finding->sentence, finding->remedy);
    }
}

/* Copies the first finding of a kind, with its severity and sentence; destroys the diagnosis. */
static void expect(lr_diagnosis *diagnosis, lr_severity severity, lr_finding_kind kind, const char *words)
{
    const lr_finding *finding = find(diagnosis, kind);
    if (finding == NULL || finding->severity != severity || strstr(finding->sentence, words) == NULL) {
        print(diagnosis);
        fail_msg("no %s with '%s'", lr_finding_kind_name(kind), words);
    }
    assert_true(diagnosis->num_suspects > 0 || severity == LR_NOTE);
    for (int k = 0; k < diagnosis->num_findings; k++) /* suspicions come first */
        assert_int_equal(diagnosis->findings[k].severity == LR_SUSPECT, k < diagnosis->num_suspects);
    lr_diagnosis_destroy(diagnosis);
}

static void expect_no_suspects(const lr_diagnosis *diagnosis, const char *what)
{
    if (diagnosis->num_suspects == 0) return;
    print(diagnosis);
    fail_msg("%s: a false alarm", what);
}

static void presets_raise_no_alarm(void **state)
{
    for (const char *const *name = lr_scanner_presets(); *name != NULL; name++) {
        lr_scanner_draft *draft = non_null(lr_scanner_draft_read(*name, NULL));
        lr_diagnosis *diagnosis = non_null(lr_scanner_examine(draft, NULL, NULL));
        expect_no_suspects(diagnosis, *name);
        assert_all(find(diagnosis, LR_FINDING_SIZE) != NULL, find(diagnosis, LR_FINDING_HIDING) == NULL);
        lr_diagnosis_destroy(diagnosis);
        lr_scanner_draft_destroy(draft);
    }
}

/* Seen from the origin, the middle module (+-10 mm at 40 mm) covers +-17.5 mm of the +-20 mm of the module at 70 mm. */
static void panels_hide_panels(void **state)
{
#define PANEL(x, crystals, pitch)                                                                                      \
    "  - {centre_mm: [" x ", 0, 0], u: [0, 1, 0], v: [0, 0, 1], crystals: [" crystals ", " crystals                    \
    "], pitch_mm: [" pitch ", " pitch "], face_mm: [" pitch ", " pitch "], depth_mm: 10}\n"
    static const char yaml[] =
        "name: planted\nmodules:\n" PANEL("-70", "8", "5") PANEL("-40", "5", "4") PANEL("60", "8", "5");
    const lr_grid grid = lr_grid_centred((int[3]){1, 1, 1}, (double[3]){0.1, 0.1, 0.1});
    lr_diagnosis *diagnosis = diagnose_yaml(yaml, &grid);
    const lr_finding *finding = non_null(find(diagnosis, LR_FINDING_HIDING));
    assert_pairs(0, {finding->modules[0], 1}, {finding->modules[1], 0});
    const char *number = non_null(strstr(finding->sentence, "hides "));
    /* The face is sampled at 16 points along each axis. */
    assert_true(fabs(strtod(number + 6, NULL) - 100 * 0.875 * 0.875) <= 6);
    expect(diagnosis, LR_NOTE, LR_FINDING_HIDING, "module 1 stands before module 0");
}

/* Eight inner modules hide twelve outer modules, and no inner one. */
static void rings_hide_rings(void **state)
{
    char yaml[8192];
    int length = snprintf(yaml, sizeof(yaml), "name: planted\nmodules:\n");
    for (int m = 0; m < 20; m++) {
        const bool is_inner = m < 8;
        const double angle = 2 * 3.14159265358979323846 * (is_inner ? m / 8.0 : m / 12.0);
        const double radius = is_inner ? 24 : 46;
        length += snprintf(yaml + length, sizeof(yaml) - (size_t)length,
                           "  - {centre_mm: [%.9f, %.9f, 0], u: [%.9f, %.9f, 0], v: [0, 0, 1], crystals: [4, 5], "
                           "pitch_mm: [3, 3], face_mm: [3, 3], depth_mm: 5}\n",
                           radius * cos(angle), radius * sin(angle), -sin(angle), cos(angle));
    }
    lr_diagnosis *diagnosis = diagnose_yaml(yaml, NULL);
    int found = 0;
    for (int k = 0; k < diagnosis->num_findings; k++) {
        const lr_finding *finding = &diagnosis->findings[k];
        if (finding->kind == LR_FINDING_HIDING && ++found <= 3) {
            assert_in_range(finding->modules[0], 0, 7);
            assert_in_range(finding->modules[1], 8, 19);
        } else if (finding->kind == LR_FINDING_HIDING) {
            assert_non_null(strstr(finding->sentence, "of 20 modules 12 are hidden"));
        }
    }
    assert_int_equal(found, 4);
    lr_diagnosis_destroy(diagnosis);
}

static void a_sound_scanner_is_sound(void **state)
{
    const lr_grid grid = lr_grid_centred((int[3]){140, 140, 64}, (double[3]){4, 4, 4});
    lr_diagnosis *diagnosis = diagnose(sound, &grid);
    expect_no_suspects(diagnosis, "the sound one");
    expect(diagnosis, LR_NOTE, LR_FINDING_SIZE, "286261248 LORs");
}

static void planted_errors_are_found(void **state)
{
    for (struct text_cases cases = cases_of(IO_CASES, "doctor"); next_case(&cases);) {
        struct text text = {.ring = NULL};
        const char **parts[] = {&text.ring, &text.module, &text.rules, &text.rest};
        for (int k = 2; k < CASE_FIELDS && cases.fields[k][0] != '\0'; k++) {
            static const char *const names[] = {"ring:", "module:", "rules:", "rest:"};
            int part = 0;
            while (strncmp(cases.fields[k], names[part], strlen(names[part])) != 0) assert_true(++part < 4);
            const char *value = cases.fields[k] + strlen(names[part]);
            *parts[part] = value + strspn(value, " ");
        }
        lr_finding_kind kind = LR_FINDING_ARC;
        while (strcmp(strchr(cases.fields[1], ' ') + 1, lr_finding_kind_name(kind)) != 0)
            assert_true(++kind <= LR_FINDING_HIDING);
        expect(diagnose(text, NULL), cases.fields[1][0] == 's' ? LR_SUSPECT : LR_NOTE, kind, cases.fields[0]);
    }
}

/* Rings filled by modules to any degree: a ring that raises no alarm is suspected when its radius is doubled,
 * halved, or given in cm. */
static void radii_at_any_filling(void **state)
{
    static const struct {
        double factor;
        const char *words;
    } cases[] = {{2, "looks like the diameter"}, {0.5, ""}, {0.1, "the radius looks like cm"}};
    for (int percent = 58; percent <= 100; percent += 3) {
        const double radius_mm = 56 * 8 * 4.09 / (2 * 3.14159265358979 * 0.01 * percent);
        for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
            char ring[64];
            snprintf(ring, sizeof(ring), "radius_mm: %.3f, modules: 56", radius_mm * cases[k].factor);
            lr_diagnosis *diagnosis = diagnose((struct text){.ring = ring}, NULL);
            bool found = false;
            for (int n = 0; n < diagnosis->num_findings; n++) {
                const lr_finding *finding = &diagnosis->findings[n];
                found = found || (finding->severity == LR_SUSPECT && finding->kind <= LR_FINDING_UNITS &&
                                  strstr(finding->sentence, cases[k].words) != NULL);
            }
            if (!found) fail_msg("a ring filled to %d %% with %g of its radius passes", percent, cases[k].factor);
            lr_diagnosis_destroy(diagnosis);
        }
    }
}

static void overlaps(void **state)
{
    lr_diagnosis *diagnosis =
        diagnose((struct text){.ring = "radius_mm: 328, modules: 56, rings: 2, ring_pitch_mm: 259", .rest = ""}, NULL);
    int spelled = 0;
    for (int k = 0; k < diagnosis->num_findings; k++) spelled += diagnosis->findings[k].kind == LR_FINDING_OVERLAP;
    assert_int_equal(spelled, 4); /* three are listed, and the number of the others */
    assert_string_equal(diagnosis->findings[3].sentence, "53 more like these");
    const lr_finding *first = find(diagnosis, LR_FINDING_OVERLAP);
    assert_pairs(0, {first->modules[0], 0}, {first->modules[1], 56});
    expect(diagnosis, LR_SUSPECT, LR_FINDING_OVERLAP, "modules 0 and 56 overlap by 1 mm along the axis");
}

/* Rings that overlap along the axis are complete rings: only the overlap is wrong. */
static void rings_too_close_are_no_full_ring(void **state)
{
    for (int num_rings = 2; num_rings <= 4; num_rings++) {
        for (int tenth = 1; tenth <= 9; tenth += 2) { /* of a ring's length, 260 mm */
            char ring[96];
            snprintf(ring, sizeof(ring), "radius_mm: 328, modules: 56, rings: %d, ring_pitch_mm: %d", num_rings,
                     26 * tenth);
            lr_diagnosis *diagnosis = diagnose((struct text){.ring = ring, .rest = ""}, NULL);
            for (int k = 0; k < diagnosis->num_findings; k++) {
                const lr_finding *finding = &diagnosis->findings[k];
                if (finding->severity == LR_SUSPECT && finding->kind != LR_FINDING_OVERLAP &&
                    finding->kind != LR_FINDING_REFUSED) {
                    print(diagnosis);
                    fail_msg("%s: a false alarm", ring);
                }
            }
            expect(diagnosis, LR_SUSPECT, LR_FINDING_OVERLAP, "would fill the same space");
        }
    }
}

static void grids(void **state)
{
    static const struct {
        int size[3];
        double shift_mm;
        const char *words;
        lr_severity severity;
    } cases[] = {{{180, 180, 64}, 0, "voxels would lie within the crystals", LR_SUSPECT},
                 {{155, 155, 64}, 0, "what lies beyond is not measured", LR_NOTE},
                 {{100, 100, 64}, 500, "they do not meet", LR_SUSPECT},
                 {{100, 100, 100}, 0, "hardly any LOR passes", LR_NOTE}};
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        lr_grid grid = lr_grid_centred(cases[k].size, (double[3]){4, 4, 4});
        grid.origin_mm[2] += cases[k].shift_mm;
        expect(diagnose(sound, &grid), cases[k].severity, LR_FINDING_COINCIDENCE, cases[k].words);
    }
}

/* --- lists of modules --- */

enum fault { NONE, MISSING, DISPLACED, OUTWARD, MIRRORED, PLACES, PINWHEEL };

/* A list of twelve modules around the axis, one of which is wrong. */
static lr_diagnosis *diagnose_list(enum fault fault)
{
    char yaml[8192] = "num_positions: 12\nmodules:\n";
    for (int k = 0; k < 12; k++) {
        const double angle = k * acos(-1.0) / 6, c = cos(angle), s = sin(angle);
        const double radius = fault == DISPLACED && k == 5 ? 110 : 100;
        const double turn = fault == MIRRORED && k == 5 ? -1 : 1, sign = fault == OUTWARD && k == 5 ? 1 : -1;
        const int place = fault == PLACES ? (12 - k) % 12 : k;
        const double beside = fault == PINWHEEL ? -3 : 0;
        if (fault == MISSING && k == 5) continue;
        const size_t used = strlen(yaml);
        snprintf(yaml + used, sizeof(yaml) - used,
                 "  - {center_mm: [%.15g, %.15g, 0], u: [%.15g, %.15g, 0], v: [0, 0, 1], normal: [%.15g, %.15g, 0], "
                 "crystals: [10, 10], pitch_mm: [5, 5], face_mm: [5, 5], depth_mm: 15, position: %d, ring: 0, "
                 "first_crystal_ring: 0}\n",
                 radius * c - beside * s, radius * s + beside * c, -turn * s, turn * c, sign * c, sign * s, place);
    }
    return diagnose_yaml(yaml, NULL);
}

static void modules_that_stand_wrong(void **state)
{
    static const struct {
        enum fault fault;
        lr_finding_kind kind;
        const char *words;
    } cases[] = {{MISSING, LR_FINDING_GAP, "between modules 4 and 5 there is a gap"},
                 {DISPLACED, LR_FINDING_GAP, "the front plane of module 5 passes the axis at 110 mm"},
                 {OUTWARD, LR_FINDING_NORMAL, "the normal of module 5"},
                 {MIRRORED, LR_FINDING_HANDEDNESS, "u x v of module 5 points inwards"},
                 {PLACES, LR_FINDING_HANDEDNESS,
                  "places around the ring are counted clockwise and the crystals in them counterclockwise"},
                 {PINWHEEL, LR_FINDING_GAP, "like a pinwheel: their middles lie 3 mm clockwise"}};
    lr_diagnosis *sound_list = diagnose_list(NONE);
    expect_no_suspects(sound_list, "a sound list");
    expect(sound_list, LR_NOTE, LR_FINDING_SIZE, "LORs");
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++)
        expect(diagnose_list(cases[k].fault), LR_SUSPECT, cases[k].kind, cases[k].words);
    lr_diagnosis_destroy(NULL);
    lr_scanner_draft_destroy(NULL);
}

/* Two heads of five rings, and a list of four panels in each of eight rings, have no numbers that look swapped. */
static void few_heads_raise_no_alarm(void **state)
{
    char yaml[16384] = "num_positions: 4\nmodules:\n";
    for (int k = 0; k < 32; k++) {
        const double angle = k % 4 * acos(-1.0) / 2, c = cos(angle), s = sin(angle);
        const size_t used = strlen(yaml);
        snprintf(yaml + used, sizeof(yaml) - used,
                 "  - {center_mm: [%.15g, %.15g, %d], u: [%.15g, %.15g, 0], v: [0, 0, 1], crystals: [36, 10], "
                 "pitch_mm: [2, 2], face_mm: [2, 2], depth_mm: 15, position: %d, ring: %d, first_crystal_ring: %d}\n",
                 100 * c, 100 * s, 20 * (k / 4) - 70, -s, c, k % 4, k / 4, 10 * (k / 4));
    }
    lr_diagnosis *both[] = {
        diagnose_yaml(yaml, NULL),
        diagnose((struct text){"radius_mm: 80, modules: 2, rings: 5, ring_pitch_mm: 20",
                               "crystals: [50, 10], pitch_mm: [2, 2], face_mm: [2, 2], depth_mm: 15", "", ""},
                 NULL)};
    for (int k = 0; k < 2; k++) {
        expect_no_suspects(both[k], k == 0 ? "panels" : "heads");
        assert_null(find(both[k], LR_FINDING_ARC));
        lr_diagnosis_destroy(both[k]);
    }
}

/* Two layers of crystals, one behind the other, count as one ring when its filling is computed. */
static void layers_are_no_second_ring(void **state)
{
    char yaml[16384] = "modules:\n";
    for (int k = 0; k < 32; k++) {
        const double angle = (k % 16) * acos(-1.0) / 8, c = cos(angle), s = sin(angle);
        const double radius = k < 16 ? 130 : 140;
        const size_t used = strlen(yaml);
        snprintf(yaml + used, sizeof(yaml) - used,
                 "  - {center_mm: [%.15g, %.15g, 0], u: [%.15g, %.15g, 0], v: [0, 0, 1], crystals: [10, 10], pitch_mm: "
                 "[5, 5], face_mm: [5, 5], depth_mm: 10}\n",
                 radius * c, radius * s, -s, c);
    }
    lr_diagnosis *diagnosis = diagnose_yaml(yaml, NULL);
    expect_no_suspects(diagnosis, "layers");
    lr_diagnosis_destroy(diagnosis);
}

group_main("geometry doctor", NULL, NULL,
           EACH(cmocka_unit_test, presets_raise_no_alarm, a_sound_scanner_is_sound, panels_hide_panels,
                rings_hide_rings, planted_errors_are_found, suspicions_have_places, radii_at_any_filling, overlaps,
                rings_too_close_are_no_full_ring, grids, modules_that_stand_wrong, few_heads_raise_no_alarm,
                layers_are_no_second_ring))
