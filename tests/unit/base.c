/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Memory, messages, growing arrays and texts, file names, and SHA-256. */
#include "cases.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "base/path.h"

static void memory_is_zeroed(void **state)
{
    int64_t *block = lr_alloc(1000, sizeof(*block), "a block", NULL);
    for (int k = 0; k < 1000; k++) assert_true(block[k] == 0);
    free(block);
    void *nothing = non_null(lr_alloc(0, 8, "nothing", NULL));
    free(nothing);
}

/* The memory next to the freed part stays. */
static void memory_is_freed_in_pieces(void **state)
{
    const int64_t bytes = (40 << 20) + 12345;
    char *before = malloc(5000), *block = malloc((size_t)bytes), *behind = malloc(5000);
    assert_true(before != NULL && block != NULL && behind != NULL);
    memset(before, 1, 5000);
    memset(block, 2, (size_t)bytes);
    memset(behind, 3, 5000);
    lr_free_in_pieces(block, bytes);
    for (int k = 0; k < 5000; k++) assert_true(before[k] == 1 && behind[k] == 3);
    lr_free_in_pieces(before, 5000);
    lr_free_in_pieces(behind, 5000);
    lr_free_in_pieces(NULL, 1 << 30);
}

static void too_much_memory_is_a_sentence(void **state)
{
    struct test_log log = TEST_LOG(log);
    assert_null(lr_alloc((int64_t)1 << 61, 8, "the moon", &log.log));
    assert_int_equal(log.status, LR_FAILED);
    assert_string_equal(log.error, "no memory for the moon (16.0 EiB)");
    assert_null(lr_alloc(-1, 8, "less than nothing", &log.log));
    int *kept = lr_alloc(1, sizeof(*kept), "a number", &log.log);
    *kept = 7;
    assert_null(lr_resize(kept, (int64_t)1 << 62, sizeof(*kept), "the sun", &log.log));
    assert_int_equal(*kept, 7);
    free(kept);
}

static void machine_is_described(void **state)
{
    assert_all(lr_num_processors() >= 1, lr_physical_memory() > (int64_t)1 << 24);
    const double before = lr_clock_seconds();
    assert_true(lr_clock_seconds() >= before);
}

static void strings_are_copied(void **state)
{
    assert_null(lr_copy_string(NULL, NULL));
    char *copy = lr_copy_string("x", NULL);
    assert_string_equal(copy, "x");
    free(copy);
}

static void long_sentences_are_cut(void **state)
{
    struct test_log log = TEST_LOG(log);
    char text[3000];
    memset(text, 'a', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    assert_ints(lr_error(&log.log, LR_USAGE, "%s", text), LR_USAGE, strlen(log.error), 1023);
    assert_ints(log.status, LR_USAGE, lr_error(NULL, LR_FAILED, "nobody %s", "listens"), LR_FAILED);
}

static bool refuse(void *user, const char *what, double done, double total)
{
    *(double *)user = done / total;
    return false;
}

static void progress_can_cancel(void **state)
{
    double seen = 0.0;
    const lr_progress progress = {.report = refuse, .user = &seen};
    assert_int_equal(lr_progress_report(&progress, "working", 1.0, 4.0), LR_CANCELLED);
    assert_true(seen == 0.25);
    assert_ok(lr_progress_report(NULL, "working", 1.0, 4.0));
}

static void statuses_have_names(void **state)
{
    const char *const names[] = {"done", "failed", "usage", "bad input", "no device", "cancelled"};
    for (int k = 0; k < 6; k++) assert_string_equal(lr_status_name((lr_status)k), names[k]);
    int major = -1, minor = -1, patch = -1;
    assert_int_equal(sscanf(lr_version(), "%d.%d.%d", &major, &minor, &patch), 3);
}

/* --- growing arrays and texts, file names --- */

struct item {
    int64_t number;
    char text[40];
};

/* Items keep their values, and adding items one by one moves the array only a few times. */
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
    const struct lr_items items = {sizeof(double), "some doubles", &(lr_log){hear, &heard}};
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
    for (int k = 0; k < 1000; k++) assert_ok(lr_text_print(&text, "%03d,", k), lr_text_add(&text, "abc", 2));
    assert_ints(text.length, 6000, strlen(text.chars), 6000);
    assert_memory_equal(text.chars, "000,ab001,ab", 12);
    assert_string_equal(text.chars + 5994, "999,ab");
    free(text.chars);
}

/* A text with a gap would be wrong: after a failure nothing more is added. */
static void texts_that_failed_stay_so(void **state)
{
    struct lr_text text = {.what = "a text"};
    assert_ok(lr_text_print(&text, "begin"));
    assert_false(text.failed);
    text.failed = true; /* there is room for more, but nothing is added */
    assert_ints(lr_text_add(&text, "x", 1), LR_FAILED, lr_text_print(&text, "%d", 1), LR_FAILED);
    assert_string_equal(text.chars, "begin");
    assert_int_equal(text.length, 5);
    free(text.chars);
}

static void names_have_endings(void **state)
{
    static const char *const endings[] = {".nii", ".nii.gz", NULL};
    assert_all(lr_path_ends("a/b.nii", ".nii"), lr_path_ends("B.NII.gz", ".nii.GZ"));
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

/* --- SHA-256, against the digests of FIPS 180-4's examples (NIST, "Examples with Intermediate Values") --- */

static const char *digest(const void *bytes, size_t count, size_t piece, char text[lr_sha256_chars])
{
    struct lr_sha256 sha;
    lr_sha256_begin(&sha);
    for (size_t at = 0; at < count; at += piece)
        lr_sha256_add(&sha, (const char *)bytes + at, count - at < piece ? count - at : piece);
    return lr_sha256_end(&sha, text);
}

static void examples(void **state)
{
    static const char two_blocks[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    char text[lr_sha256_chars];
    assert_string_equal(digest("", 0, 1, text), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_string_equal(digest("abc", 3, 3, text), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_string_equal(digest(two_blocks, 56, 56, text),
                        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    char *million = kept(1000000, 1);
    memset(million, 'a', 1000000);
    assert_string_equal(digest(million, 1000000, 1000000, text),
                        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static void cuts_do_not_matter(void **state)
{
    unsigned char bytes[300];
    for (size_t k = 0; k < sizeof(bytes); k++) bytes[k] = (unsigned char)(7 * k);
    for (size_t count = 0; count <= sizeof(bytes); count++) {
        char whole[lr_sha256_chars], cut[lr_sha256_chars];
        digest(bytes, count, sizeof(bytes), whole);
        for (size_t piece = 1; piece < 130; piece += 9) assert_string_equal(digest(bytes, count, piece, cut), whole);
    }
}

test_main("unit: base", CASE(memory_is_zeroed), CASE(memory_is_freed_in_pieces), CASE(too_much_memory_is_a_sentence),
          CASE(machine_is_described), CASE(strings_are_copied), CASE(long_sentences_are_cut), CASE(progress_can_cancel),
          CASE(statuses_have_names), CASE(arrays_grow_and_keep), CASE(arrays_stay_where_memory_is_short),
          CASE(texts_are_put_together), CASE(texts_that_failed_stay_so), CASE(names_have_endings),
          CASE(names_are_taken_apart), CASE(examples), CASE(cuts_do_not_matter))
