/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Arrays and texts that grow, names of files. */
#include "cases.h"

#include "base/grow.h"
#include "base/path.h"

struct item {
    int64_t number;
    char text[40];
};

/* Items stay, and adding one after the other moves the array seldom. */
static void arrays_grow_and_keep(void **state)
{
    enum { COUNT = 100000 };
    const struct lr_items items = {sizeof(struct item), "items", NULL};
    struct item *list = NULL;
    int64_t room = 0, grown = 0;
    for (int64_t k = 0; k < COUNT; k++) {
        const int64_t before = room;
        assert_ok(lr_grow(&list, &room, k + 1, &items));
        assert_true(room > k);
        grown += room != before;
        list[k] = (struct item){.number = k, .text = "x"};
    }
    assert_true(grown < 30);
    for (int64_t k = 0; k < COUNT; k++) assert_true(list[k].number == k && strcmp(list[k].text, "x") == 0);
    const struct item *same = list;
    const int64_t last = room;
    assert_ok(lr_grow(&list, &room, 0, &items));
    assert_true(list == same && room == last);
    free(list);
}

struct heard {
    int count;
    char sentence[256];
};

static void hear(void *user, lr_log_level level, lr_status status, const char *sentence)
{
    struct heard *heard = user;
    assert_true(level == LR_LOG_ERROR && status == LR_FAILED);
    snprintf(heard->sentence, sizeof(heard->sentence), "%s", sentence);
    heard->count++;
}

static void arrays_stay_where_memory_is_short(void **state)
{
    struct heard heard = {0};
    const lr_log log = {hear, &heard};
    const struct lr_items items = {sizeof(double), "some doubles", &log};
    double *list = NULL;
    int64_t room = 0;
    assert_ok(lr_grow(&list, &room, 3, &items));
    list[2] = 7.0;
    const double *before = list;
    const int64_t had = room;
    assert_int_equal(lr_grow(&list, &room, INT64_MAX / 2, &items), LR_FAILED);
    assert_true(list == before && room == had && list[2] == 7.0);
    assert_int_equal(heard.count, 1);
    assert_says(heard.sentence, "no memory for some doubles");
    free(list);
}

static void texts_are_put_together(void **state)
{
    struct lr_text text = {.what = "a text"};
    assert_ok(lr_text_add(&text, "", 0));
    assert_string_equal(text.chars, "");
    for (int k = 0; k < 1000; k++) {
        assert_ok(lr_text_print(&text, "%03d,", k));
        assert_ok(lr_text_add(&text, "abc", 2));
    }
    assert_int_equal(text.length, 6000);
    assert_int_equal(strlen(text.chars), 6000);
    assert_memory_equal(text.chars, "000,ab001,ab", 12);
    assert_string_equal(text.chars + 5994, "999,ab");
    free(text.chars);
}

/* A text with a hole would be wrong: after a failure nothing more is added. */
static void texts_that_failed_stay_so(void **state)
{
    struct lr_text text = {.what = "a text"};
    assert_ok(lr_text_print(&text, "begin"));
    assert_false(text.failed);
    text.failed = true; /* there is room for more, and yet: */
    assert_int_equal(lr_text_add(&text, "x", 1), LR_FAILED);
    assert_int_equal(lr_text_print(&text, "%d", 1), LR_FAILED);
    assert_string_equal(text.chars, "begin");
    assert_int_equal(text.length, 5);
    free(text.chars);
}

static void names_have_endings(void **state)
{
    static const char *const endings[] = {".nii", ".nii.gz", NULL};
    assert_true(lr_path_ends("a/b.nii", ".nii"));
    assert_true(lr_path_ends("B.NII.gz", ".nii.GZ"));
    assert_true(lr_path_ends("x.ghscan", "hscan"));
    assert_false(lr_path_ends(".nii", ".nii"));
    assert_false(lr_path_ends("b.nii.gz", ".nii"));
    assert_true(lr_path_ends_in("b.nii.gz", endings));
    assert_false(lr_path_ends_in("b.gz", endings));
}

static void check_owned(char *path, const char *wanted)
{
    assert_string_equal(path, wanted);
    free(path);
}

static void names_are_taken_apart(void **state)
{
    char text[128], longer[300];
    assert_string_equal(lr_path_name("/a/b.c"), "b.c");
    assert_string_equal(lr_path_name("b.c"), "b.c");
    assert_string_equal(lr_path_name("a/"), "");
    assert_string_equal(lr_path_stem("a.d/b.c.e", text), "b.c");
    assert_string_equal(lr_path_stem("a.d/.b", text), ".b");
    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    assert_int_equal(strlen(lr_path_stem(longer, text)), 100);
    check_owned(lr_path_with_ending("a.d/b.c", ".e", NULL), "a.d/b.e");
    check_owned(lr_path_with_ending("a.d/b", ".e", NULL), "a.d/b.e");
    check_owned(lr_path_beside("a/b.h", "c.d", NULL), "a/c.d");
    check_owned(lr_path_beside("b.h", "c.d", NULL), "c.d");
    check_owned(lr_path_beside("a/b.h", "/c.d", NULL), "/c.d");
    check_owned(lr_path_beside("/b.h", "c/d", NULL), "/c/d");
    check_owned(lr_path_beside("b.h", "./", NULL), "./");
}

test_main("unit: grow", cmocka_unit_test(arrays_grow_and_keep), cmocka_unit_test(arrays_stay_where_memory_is_short),
          cmocka_unit_test(texts_are_put_together), cmocka_unit_test(texts_that_failed_stay_so),
          cmocka_unit_test(names_have_endings), cmocka_unit_test(names_are_taken_apart))
