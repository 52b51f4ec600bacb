/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Every reader of files, on everything that can be found in place of a good file: nothing, a folder, links, an empty
 * file, the first k/64 of a good file, random bytes, changed bytes, huge numbers. The reader returns a valid result
 * or a sentence that names the file, and no allocation exceeds 64 times the bytes to read plus 2 MiB. HDF5's library
 * runs in a process with a limit of its own. */
#define _XOPEN_SOURCE 700 /* symlink, setenv */
#include "io/formats.h"

#include <ctype.h>
#include <errno.h>

/* --- the largest allocation of LORaster's own code; the linker puts these functions in place of malloc --- */

static size_t largest_bytes;
static long fails_after = -1; /* number of allocations that still succeed before all fail; -1 = no failures */

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *block, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *block, size_t bytes);

/* Notes the size of an allocation; returns false if it is to fail. */
static bool note_bytes(size_t bytes)
{
    largest_bytes = bytes > largest_bytes ? bytes : largest_bytes;
    fails_after -= fails_after > 0;
    errno = fails_after == 0 ? ENOMEM : errno;
    return fails_after != 0;
}

void *__wrap_malloc(size_t bytes)
{
    return note_bytes(bytes) ? __real_malloc(bytes) : NULL;
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return note_bytes(count * bytes) ? __real_calloc(count, bytes) : NULL;
}

void *__wrap_realloc(void *block, size_t bytes)
{
    return note_bytes(bytes) ? __real_realloc(block, bytes) : NULL;
}

/* A format whose files are in the folder, and the undamaged bytes of the file that the test damages. */
struct patient {
    struct setup *s;
    const struct format *format;
    char path[128], spoilt[128];
    unsigned char *bytes;
    size_t count;
};

/* Returns LR_OK, or LR_BAD_INPUT after checking that the sentence names a file of the folder. */
static lr_status read_patient(const struct patient *patient, const char *what)
{
    struct test_log log = TEST_LOG(log);
    struct stat facts;
    const size_t there = stat(patient->spoilt, &facts) == 0 ? (size_t)facts.st_size : 0;
    const size_t allowed = 64 * (there + patient->count) + (2u << 20);
    largest_bytes = 0;
    const lr_status status = patient->format->read(patient->s, patient->path, &log);
    const size_t taken = largest_bytes;
    if (status == LR_OK ? log.status != LR_OK
                        : status != LR_BAD_INPUT || log.status != LR_BAD_INPUT ||
                              strstr(log.error, patient->s->folder.path) == NULL)
        fail_msg("%s of %s, %s: status %d, sentence \"%s\"", patient->spoilt, patient->path, what, status, log.error);
    if (taken > allowed)
        fail_msg("%s of %s, %s: %zu bytes at once for %zu", patient->spoilt, patient->path, what, taken, there);
    return status;
}

static void assert_refused(const struct patient *patient, const char *what)
{
    if (read_patient(patient, what) != LR_BAD_INPUT)
        fail_msg("%s of %s, %s: it was read", patient->spoilt, patient->path, what);
}

static void begin(struct patient *patient, struct setup *s, const struct format *format)
{
    *patient = (struct patient){.s = s, .format = format};
    folder_file(&s->folder, patient->path, format->name);
    folder_file(&s->folder, patient->spoilt, format->spoilt != NULL ? format->spoilt : format->name);
    format->write(s, patient->path);
    patient->bytes = bytes_read(patient->spoilt, &patient->count);
    if (read_patient(patient, "whole") != LR_OK) fail_msg("%s cannot be read at all", patient->path);
}

static void end(struct patient *patient)
{
    folder_visit(&patient->s->folder, true);
}

/* Each read of HDF5 starts a process, which is slow under a sanitizer. So the tests use fewer damaged HDF5 files,
 * and still fewer without LORASTER_FULL; tools/fuzz.sh damages HDF5 files, too. */
static size_t step_of(const struct patient *patient)
{
    const size_t step = test_is_full() ? 5 : 15;
    return strstr(patient->spoilt, ".h5") != NULL ? step : 1;
}

static bool is_text(const struct patient *patient)
{
    bool is = true;
    for (size_t k = 0; k < patient->count; k++) is = is && (isprint(patient->bytes[k]) || isspace(patient->bytes[k]));
    return is;
}

/* --- other things in place of a file --- */

static void test_other_things(void **state)
{
    static const char *const links[][2] = {{"nowhere", "a link to nothing"},
                                           {NULL, "a link to itself"},
                                           {".", "a link to a folder"},
                                           {"/dev/zero", "a link to zeros without end"}};
    for (int n = 0; n < NUM_FORMATS; n++) {
        struct patient patient;
        begin(&patient, *state, &formats[n]);
        const char *spoilt = patient.spoilt, *itself = strrchr(spoilt, '/') + 1;
        remove(spoilt);
        assert_refused(&patient, "missing");
        assert_int_equal(mkdir(spoilt, 0777), 0);
        assert_refused(&patient, "a folder");
        for (int k = 0; k < 4; k++) {
            remove(spoilt);
            assert_int_equal(symlink(links[k][0] != NULL ? links[k][0] : itself, spoilt), 0);
            assert_refused(&patient, links[k][1]);
        }
        remove(spoilt);
        assert_int_equal(mkfifo(spoilt, 0666), 0);
        assert_refused(&patient, "a pipe");
        remove(spoilt);
        bytes_write(spoilt, "", 0);
        assert_refused(&patient, "empty");
        remove(spoilt);
        bytes_write(file_in(&patient.s->folder, "other"), patient.bytes, patient.count);
        assert_ints(symlink("other", spoilt), 0, read_patient(&patient, "a link to the good one"), LR_OK);
        end(&patient);
    }
}

/* A text may lose its end and still be valid; a binary file may not. */
static void test_truncations(void **state)
{
    for (int n = 0; n < NUM_FORMATS; n++) {
        struct patient patient;
        int num_read = 0;
        begin(&patient, *state, &formats[n]);
        for (size_t k = 0; k < 64; k += (step_of(&patient) + 4) / 5) {
            bytes_write(patient.spoilt, patient.bytes, patient.count * k / 64);
            char what[32];
            snprintf(what, sizeof(what), "%zu/64", k);
            num_read += read_patient(&patient, what) == LR_OK;
        }
        /* list-mode records, whose number is stored nowhere, may end after any record */
        const bool is_words =
            strcmp(patient.spoilt, patient.path) == 0 && (strstr(patient.path, ".l") || strstr(patient.path, ".safir"));
        if (num_read > 0 && !is_text(&patient) && !is_words)
            fail_msg("%s of %s: %d truncations of 64 were read", patient.spoilt, patient.path, num_read);
        end(&patient);
    }
}

static void test_random_bytes(void **state)
{
    struct setup *s = *state;
    for (int n = 0; n < NUM_FORMATS; n++) {
        struct patient patient;
        begin(&patient, s, &formats[n]);
        for (int k = 0; k < 30; k += (int)(step_of(&patient) + 4) / 5) {
            unsigned char noise[4096];
            const size_t count = 1 + (size_t)(test_random(&s->seed) * 4095);
            for (size_t b = 0; b < count; b++) noise[b] = (unsigned char)(test_random(&s->seed) * 256);
            bytes_write(patient.spoilt, noise, count);
            (void)read_patient(&patient, "random bytes");
        }
        end(&patient);
    }
}

/* In texts, every second changed byte becomes a character that has a meaning in some format. */
static void test_changed_bytes(void **state)
{
    static const char marks[] = "{}[]:,-#&*!|>'\"%@\n 0123456789.e~";
    struct setup *s = *state;
    for (int n = 0; n < NUM_FORMATS; n++) {
        struct patient patient;
        begin(&patient, s, &formats[n]);
        unsigned char *spoilt = malloc(patient.count);
        const bool has_marks = is_text(&patient);
        const size_t rounds = strstr(patient.spoilt, ".yaml") != NULL ? 600 : 200;
        for (size_t k = 0; k < rounds; k += step_of(&patient)) {
            memcpy(spoilt, patient.bytes, patient.count);
            for (size_t m = 0; m < 1 + k / 5 % 8; m++) {
                const size_t at = (size_t)(test_random(&s->seed) * (double)patient.count);
                const double draw = test_random(&s->seed);
                spoilt[at] = has_marks && (k + m) % 2 == 1 ? (unsigned char)marks[(int)(draw * (sizeof(marks) - 1))]
                                                           : (unsigned char)(draw * 256);
            }
            bytes_write(patient.spoilt, spoilt, patient.count);
            (void)read_patient(&patient, "changed bytes");
        }
        free(spoilt);
        end(&patient);
    }
}

/* Each number of a text, and each position in the head of a binary file, is replaced in turn by a huge number. */
static void test_huge_numbers(void **state)
{
    static const char digits[] = "99999999999";
    static const unsigned char ones[2][8] = {{0xff, 0xff, 0xff, 0x7f},
                                             {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}};
    for (int n = 0; n < NUM_FORMATS; n++) {
        struct patient patient;
        begin(&patient, *state, &formats[n]);
        unsigned char *spoilt = malloc(patient.count + sizeof(digits) + 8);
        for (size_t k = 0; k < patient.count && k < 400; k += step_of(&patient)) {
            size_t last = k;
            while (last < patient.count && isdigit(patient.bytes[last])) last++;
            memcpy(spoilt, patient.bytes, patient.count);
            size_t count = patient.count;
            if (last > k && (k == 0 || !isdigit(patient.bytes[k - 1]))) {
                memcpy(spoilt + k, digits, sizeof(digits) - 1);
                memcpy(spoilt + k + sizeof(digits) - 1, patient.bytes + last, count - last);
                count += sizeof(digits) - 1 - (last - k);
            } else {
                const size_t width = 4 << (k % 2);
                memcpy(spoilt + k, ones[k % 2], width);
                count = k + width > count ? k + width : count;
            }
            bytes_write(patient.spoilt, spoilt, count);
            (void)read_patient(&patient, "a huge number");
        }
        free(spoilt);
        end(&patient);
    }
}

/* LORaster's k-th allocation and all later ones fail: a good file must not be reported as damaged. */
static void test_no_memory(void **state)
{
    for (int n = 0; n < NUM_FORMATS; n++) {
        struct patient patient;
        struct test_log log;
        begin(&patient, *state, &formats[n]);
        lr_status status = LR_FAILED;
        for (long k = 1; status != LR_OK; k += 1 + k / 16) {
            test_log_init(&log);
            fails_after = k;
            status = formats[n].read(*state, patient.path, &log);
            fails_after = -1;
            if (status == LR_OK ? log.status != LR_OK : status != LR_FAILED || log.status != LR_FAILED)
                fail_msg("%s without memory for block %ld: status %d, \"%s\"", patient.path, k, status, log.error);
        }
        end(&patient);
    }
}

group_main("io damaged", set_up, tear_down, cmocka_unit_test(test_other_things), cmocka_unit_test(test_truncations),
           cmocka_unit_test(test_random_bytes), cmocka_unit_test(test_changed_bytes),
           cmocka_unit_test(test_huge_numbers), cmocka_unit_test(test_no_memory))
