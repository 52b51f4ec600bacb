/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * A study keeps what is open until something else has been opened completely. */
#include "waits.h"

#include "io/files.h"
#include "io/files/file_kind.h"
#include "viewer/study/study.h"

static void open_well(struct study *study, const struct study_wish *wish)
{
    struct study_view view = {0};
    study_reopen(study, &view, wish);
    study_view_release(&view);
}

static void fail_to_open(struct study *study, const struct study_wish *wish, const char *words)
{
    struct job_report report;
    assert_ints(study_open(study, wish), LR_OK, study_wait(study, &report), JOB_FAILED);
    assert_says(report.error, words);
}

static void write_image(const char *path, float value)
{
    const lr_grid grid = {{4, 5, 6}, {2, 3, 4}, {-3, -6, -10}};
    lr_image *image = keep(lr_image_create(&grid, NULL));
    image->values[7] = value;
    assert_ok(lr_image_write(path, image, NULL));
}

static void an_empty_study_has_nothing(void **state)
{
    struct study *study = study_create(NULL);
    struct study_view view = study_take(study);
    assert_int_equal(study_poll(study, NULL), JOB_IDLE);
    assert_true(view.scanner == NULL && view.image == NULL && view.serial == 0);
    assert_int_equal(view.grid.size[0], 0);
    study_view_release(&view);
    fail_to_open(study, &(struct study_wish){.data = "counts.h5"}, "counts.h5");
    fail_to_open(study, &(struct study_wish){.data = "counts.hs"}, "open that first");
    study_destroy(study);
}

static void a_failure_changes_nothing(void **state)
{
    struct study *study = study_create(NULL);
    struct study_view before = {0};
    study_reopen(study, &before, &(struct study_wish){.scanner = "two-opposed-modules"});
    assert_int_equal(before.serial, 1);
    fail_to_open(study, &(struct study_wish){.scanner = "siemens-mmmr"}, "siemens-mmr");
    /* The scanner is readable, but the image is not: neither is opened. */
    fail_to_open(study, &(struct study_wish){.scanner = "ge-explore-vista-dr", .image = "no.nii"}, "no.nii");
    struct study_view after = study_take(study);
    assert_true(after.scanner == before.scanner && after.serial == before.serial);
    study_view_release(&before);
    study_view_release(&after);
    study_destroy(study);
}

static void parts_come_and_go(void **state)
{
    struct study *study = study_create(NULL);
    write_image("study_a.nii", 5);
    write_image("study_mu.nii", 0.096f);
    struct study_view first = {0};
    study_reopen(study, &first, &(struct study_wish){.scanner = "two-opposed-modules"});
    assert_int_equal(first.grid.size[1], 64);
    struct study_view second = {0};
    study_reopen(study, &second, &(struct study_wish){.image = "study_a.nii", .mu = "study_mu.nii"});
    assert_true(second.scanner == first.scanner);
    assert_int_equal(second.grid.size[2], 6);
    assert_true(second.image->values[7] == 5);
    assert_close(second.mu->values[7], 0.0096, 1e-6); /* 1/cm */
    assert_string_equal(second.image_path, "study_a.nii");
    /* The contents of a view that is still held outlive the study. */
    study_destroy(study);
    assert_true(second.image->values[7] == 5 && second.scanner->num_modules == 2);
    study_view_release(&first);
    study_view_release(&second);
}

/* LOR data belong to a scanner, since their numbers are those of its LORs. */
static void data_go_with_their_scanner(void **state)
{
    struct study *study = study_create(NULL);
    lr_scanner *scanner = keep(lr_scanner_read("two-opposed-modules", NULL));
    lr_lors *lors = keep(lr_lors_create(scanner, NULL));
    lr_lor_data *data = keep(lr_lor_data_create(lors, NULL));
    data->values[11] = 3;
    assert_ok(lr_lor_data_write("study_data.h5", lors, data, NULL));
    /* The data file contains its scanner. */
    struct study_view view = {0};
    study_reopen(study, &view, &(struct study_wish){.data = "study_data.h5"});
    assert_int_equal(view.lors->count, lors->count);
    assert_true(view.data->values[11] == 3);
    assert_non_null(view.diagnosis);
    study_reopen(study, &view, &(struct study_wish){.scanner = "ge-explore-vista-dr"});
    assert_null(view.data);
    study_view_release(&view);
    fail_to_open(study, &(struct study_wish){.data = "study_data.h5"}, "study_data.h5");
    study_destroy(study);
}

/* A scanner whose modules overlap is refused, with findings for the modules. */
static void a_wrong_scanner_is_explained(void **state)
{
    struct study *study = study_create(NULL);
    text_write("study_bad.yaml", "name: crowded\nring: {radius_mm: 20, modules: 12}\n"
                                 "module: {crystals: [8, 8], pitch_mm: [4, 4], face_mm: [3.8, 3.8], depth_mm: 20}\n");
    open_well(study, &(struct study_wish){.scanner = "two-opposed-modules"});
    fail_to_open(study, &(struct study_wish){.scanner = "study_bad.yaml"}, "study_bad.yaml:");
    const lr_scanner_draft *draft = NULL;
    const lr_diagnosis *why = study_refused(study, &draft);
    assert_true(why != NULL && draft != NULL && why->num_suspects > 0);
    int concerned = 0;
    for (int k = 0; k < why->num_findings; k++)
        concerned += why->findings[k].modules[0] >= 0 && why->findings[k].modules[0] < 12;
    assert_true(concerned > 0);
    struct study_view view = study_take(study);
    assert_int_equal(view.scanner->num_modules, 2);
    study_view_release(&view);
    open_well(study, &(struct study_wish){.scanner = "two-opposed-modules"});
    assert_null(study_refused(study, NULL));
    study_destroy(study);
}

/* However quickly wishes follow each other, in the end the files of the last one are open. */
static void the_last_wish_is_what_is_open(void **state)
{
    struct study *study = study_create(NULL);
    write_image("study_b.nii", 2);
    assert_ok(study_open(study, &(struct study_wish){.scanner = "siemens-mmr"}));
    assert_ok(study_open(study, &(struct study_wish){.image = "study_b.nii"}));
    for (int n = 0; n < 20; n++) {
        const bool even = n % 2 == 0;
        const struct study_wish wish = {.scanner = even ? "ge-explore-vista-dr" : "two-opposed-modules"};
        assert_ok(study_open(study, &wish));
        (void)study_poll(study, NULL);
        assert_string_equal(study_awaited(study).scanner, wish.scanner);
        assert_string_equal(study_awaited(study).image, "study_b.nii");
    }
    assert_int_equal(study_wait(study, NULL), JOB_DONE);
    struct study_view view = study_take(study);
    assert_int_equal(view.scanner->num_modules, 2);
    assert_non_null(view.image);
    study_view_release(&view);
    assert_ok(study_open(study, &(struct study_wish){.scanner = "siemens-mmr"}));
    study_destroy(study); /* while it is being opened */
}

/* Every voxel centre lies in front of every face, and inside the field of view that the scanner states. */
static void default_grids_fit(void **state)
{
    for (const char *const *name = lr_scanner_presets(); *name != NULL; name++) {
        lr_scanner *scanner = keep(lr_scanner_read(*name, NULL));
        const lr_grid grid = study_default_grid(scanner);
        assert_ok(lr_grid_check(&grid, NULL));
        assert_true(grid.size[0] == 64 || grid.size[1] == 64);
        const double ratio = grid.voxel_mm[2] / fmax(grid.voxel_mm[0], grid.voxel_mm[1]);
        assert_true(grid.size[2] == 1 || (ratio > 0.6 && ratio < 1.6) || grid.size[2] == 256);
        for (int m = 0; m < scanner->num_modules && scanner->coincidence.field_of_view_mm == 0; m++) {
            const lr_module *module = &scanner->modules[m];
            for (int corner = 0; corner < 8; corner++) {
                double before_mm = 0;
                for (int k = 0; k < 3; k++) {
                    const double at_mm = grid.origin_mm[k] + (corner >> k & 1) * (grid.size[k] - 1) * grid.voxel_mm[k];
                    before_mm += module->normal[k] * (at_mm - module->centre_mm[k]);
                }
                assert_true(before_mm > 0);
            }
        }
    }
}

static void kinds_of_files(void **state)
{
    struct job_report report;
    struct study *study = study_create(NULL);
    write_image("study_kind.mha", 1);
    text_write("study_kind.txt", "some words\n");
    lr_scanner *scanner = lr_scanner_read("ge-explore-vista-dr", NULL);
    static const char *const scanners[] = {"study_kind.yaml", "study_kind.geom", "study_kind.hscan"};
    for (int k = 0; k < 3; k++) {
        assert_ok(lr_scanner_write(scanners[k], scanner, NULL));
        assert_ints(lr_file_kind_of(scanners[k]), LR_FILE_SCANNER, study_open_file(study, scanners[k]), LR_OK);
        assert_int_equal(study_wait(study, NULL), JOB_DONE);
    }
    assert_ok(lr_scanner_write("study_kind.petsird", scanner, NULL));
    assert_int_equal(lr_file_kind_of("study_kind.petsird"), LR_FILE_PETSIRD);
    /* The kind of a file is found from its content alone. */
    assert_ints(rename("study_kind.mha", "study_kind.thing"), 0, lr_file_kind_of("study_kind.thing"), LR_FILE_IMAGE);
    assert_ints(study_open_file(study, "study_kind.thing"), LR_OK, study_wait(study, NULL), JOB_DONE);
    assert_int_equal(lr_file_kind_of("study_kind.txt"), LR_FILE_UNKNOWN);
    assert_ints(study_open_file(study, "study_kind.txt"), LR_USAGE, study_poll(study, &report), JOB_FAILED);
    assert_says(report.error, "study_kind.txt is no scanner");
    assert_ints(lr_file_kind_of("no such file"), LR_FILE_UNKNOWN, lr_file_kind_of("."), LR_FILE_UNKNOWN);
    study_destroy(study);
    lr_scanner_destroy(scanner);
}

/* List-mode files as other programs write them. */
static void real_events(void **state)
{
    char path[1024];
    struct job_report report;
    if (test_data(path, "safir/coincidencesLM.clm.safir") == NULL) skip();
    struct study *study = study_create(NULL);
    open_well(study, &(struct study_wish){.scanner = "safir-dual-ring-prototype"});
    assert_ok(study_open_file(study, path));
    if (study_wait(study, &report) != JOB_DONE) fail_msg("%s", report.error);
    struct study_view view = study_take(study);
    assert_true(view.data->count > 0 && view.data->index != NULL);
    study_close(study, &view);
}

test_main("viewer_study", FILES_CASE(an_empty_study_has_nothing), FILES_CASE(a_failure_changes_nothing),
          FILES_CASE(parts_come_and_go), FILES_CASE(data_go_with_their_scanner),
          FILES_CASE(a_wrong_scanner_is_explained), FILES_CASE(the_last_wish_is_what_is_open),
          FILES_CASE(default_grids_fit), FILES_CASE(kinds_of_files), FILES_CASE(real_events))
