/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * PETSIRD files that are damaged, wrong schemas, and requests that make no sense. */
#define FILE_NAME "petsird_bad_test.petsird"

#include "io/petsird_file.h"
#include "io/text_cases.h"

#include "io/files/output.h"
#include "io/files/yardl.h"

/* --- damaged files --- */

static lr_status read_file(const char *path)
{
    return pass_events((lr_events_source){.path = path, .format = LR_EVENTS_PETSIRD}, &files.log);
}

static void expect(const char *path, const char *sentence)
{
    refuse_events((lr_events_source){.path = path, .format = LR_EVENTS_PETSIRD}, NULL, sentence);
    assert_null(lr_scanner_read(path, NULL));
}

static void no_files(void **state)
{
    static const struct {
        const char *bytes;
        size_t count;
        const char *sentence;
    } cases[] = {
        {"", 0, "it is empty"},
        {"yardl\1\0\0", 8, "does not begin with 'yardl' and a version"},
        {"yardl\2\0\0\0", 9, "version 2 of yardl's binary encoding"},
        {"yardl\1\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 18, "bytes is to follow, and the file has 0 more"},
        {"yardl\1\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 19, "more than 64 bits"}};
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        bytes_write(FILE_NAME, cases[k].bytes, cases[k].count);
        expect("./" FILE_NAME, cases[k].sentence);
    }
}

static void more_bytes_are_refused(void **state)
{
    unsigned char *longer = kept(good_count + 3, 1);
    memcpy(longer, good, good_count);
    bytes_write(FILE_NAME, longer, good_count + 3);
    refuse_events((lr_events_source){.path = FILE_NAME}, NULL, "3 bytes follow after the last time block");
}

/* The file is cut byte by byte, later in larger steps: the fewer bytes, the fewer events are read, and all of them
   equal those of the whole file. */
static void events_before_the_end_are_read(void **state)
{
    lr_events_source source = {.path = FILE_NAME, .format = LR_EVENTS_PETSIRD};
    bytes_write(FILE_NAME, good, good_count);
    lr_event_list *whole = list_of(source);
    int64_t before = whole->count;
    for (size_t cut = 1; cut < 4000; cut += cut < 16 ? 1 : 97) {
        bytes_write(FILE_NAME, good, good_count - cut);
        source.until_damage = true;
        lr_event_list *list = lr_event_list_read(&source);
        const int64_t count = list != NULL ? list->count : 0;
        lr_event_list_destroy(list);
        source.until_damage = false;
        assert_true(count <= before && (cut > 1 || count == whole->count));
        before = count;
        check_cut(&source, whole, count, ": at byte ");
    }
    assert_int_equal(before, 0);
}

/* Files of random bytes: the reader returns a result or an error with a sentence. */
static void random_bytes_are_survived(void **state)
{
    uint64_t seed = test_seed();
    unsigned char bytes[600];
    for (int n = 0; n < 200; n++) {
        for (size_t k = 0; k < sizeof(bytes); k++) bytes[k] = (unsigned char)(test_random(&seed) * 256);
        memcpy(bytes, "yardl\1\0\0\0", n % 2 ? 9 : 5);
        bytes_write(FILE_NAME, bytes, sizeof(bytes));
        assert_int_equal(read_file(FILE_NAME), LR_BAD_INPUT);
    }
    unsigned char *copy = kept(good_count, 1);
    for (int n = 0; n < 1000; n++) {
        memcpy(copy, good, good_count);
        const size_t first = n % 4 == 0 ? 0 : (size_t)FIRST; /* changes begin in the schema, or behind it */
        for (int k = 0; k < 1 + n % 5; k++) {
            const double at = test_random(&seed) * (double)(good_count - first);
            copy[first + (size_t)at] = (unsigned char)(test_random(&seed) * 256);
        }
        bytes_write(FILE_NAME, copy, good_count);
        const lr_status status = read_file(FILE_NAME);
        assert_true(status == LR_OK || status == LR_BAD_INPUT);
        test_log_init(&files.log);
        lr_scanner *scanner = lr_scanner_read("./" FILE_NAME, &files.log.log);
        assert_true((scanner == NULL) == (files.log.status != LR_OK));
        lr_scanner_destroy(scanner);
    }
}

/* --- schemas --- */

/* Writes a file with this schema and these bytes after it. */
static void write_schema(const char *schema, const void *bytes, size_t count)
{
    struct lr_output output;
    assert_int_equal(lr_output_open(&output, FILE_NAME, NULL), LR_OK);
    lr_output_write(&output, "yardl\1\0\0\0", 9);
    lr_yardl_put_text(&output, schema);
    lr_output_write(&output, bytes, count);
    assert_int_equal(lr_output_finish(&output), LR_OK);
}

#define STEPS(type)                                                                                                    \
    "{\"protocol\":{\"name\":\"PETSIRD\",\"sequence\":[{\"name\":\"header\",\"type\":" type                            \
    "},{\"name\":\"timeBlocks\",\"type\":{\"stream\":{\"items\":\"int32\"}}}]},\"types\":["
#define TYPE(name, rest) "{\"name\":\"" name "\"," rest "}"
#define FIELD(name, type) "{\"name\":\"" name "\",\"type\":" type "}"
#define LONG_VECTOR(items) "{\"vector\":{\"length\":4294967296,\"items\":" items "}}"

static void schemas_are_distrusted(void **state)
{
    static const unsigned char huge[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0, 0};
    for (struct text_cases cases = cases_of(IO_CASES, "petsird"); next_case(&cases);) {
        write_schema(cases.fields[1], huge, sizeof(huge));
        expect("./" FILE_NAME, cases.fields[0]);
    }
}

/* Nested lists whose items have no bytes: 2^64 items in no space. */
static void lists_of_nothing_are_refused(void **state)
{
    static const char schema[] = STEPS("\"P.A\"") TYPE("A", "\"fields\":[" FIELD("scanner", "\"P.B\"") "]") "," TYPE(
        "B", "\"fields\":[" FIELD("detectionEfficiencies", "\"P.C\"") "," FIELD(
                 "scannerGeometry",
                 "\"P.E\"") "]") "," TYPE("C",
                                          "\"fields\":[" FIELD(
                                              "modulePairEfficienciesVectors",
                                              LONG_VECTOR(LONG_VECTOR("\"P.E\""))) "]") "," TYPE("E",
                                                                                                 "\"fields\":[]") "]}";
    write_schema(schema, "", 0);
    expect("./" FILE_NAME, "4294967296 items are to follow");
}

/* Types that double in size at each of 40 levels, and types nested deeper than any stack allows. */
static void schemas_that_explode_are_refused(void **state)
{
    enum { LEVELS = 40, DEEP = 100000 };
    char *text = kept(3 * DEEP, 1);
    int used = sprintf(text, "%s", STEPS("\"T0\""));
    for (int k = 0; k < LEVELS; k++) {
        used += sprintf(
            text + used,
            "{\"name\":\"T%d\",\"fields\":[{\"name\":\"a\",\"type\":\"T%d\"},{\"name\":\"b\",\"type\":\"T%d\"}]},", k,
            k + 1, k + 1);
    }
    sprintf(text + used, "{\"name\":\"T%d\",\"type\":\"int32\"}]}", LEVELS);
    write_schema(text, "", 0);
    expect("./" FILE_NAME, "more than 16384 types");
    memset(text, '[', DEEP);
    text[DEEP] = '\0';
    write_schema(text, "", 0);
    expect("./" FILE_NAME, "is no JSON of at most 64 levels");
}

/* --- requests that are refused --- */

static void bad_requests_are_refused(void **state)
{
    lr_events_writer_params params = {.path = FILE_NAME, .lors = files.lors, .log = &files.log.log};
    params.petsird_minor = 7;
    test_log_init(&files.log);
    assert_null(lr_events_writer_create(&params));
    assert_int_equal(files.log.status, LR_USAGE);
    params.petsird_minor = 0;
    params.path = "x.safir";
    assert_none(lr_events_writer_create(&params), LR_USAGE, &files.log, ".petsird");
    params.path = FILE_NAME;
    remove(FILE_NAME);
    lr_events_writer *writer = lr_events_writer_create(&params);
    const lr_event_sink sink = lr_events_writer_sink(writer);
    assert_int_equal(sink.take(sink.user, &(lr_event){.crystals = {0, 20}, .weight = 0.5f}, 1), LR_USAGE);
    lr_events_writer_abandon(writer);
    assert_int_not_equal(access(FILE_NAME, F_OK), 0);
    lr_events_writer_abandon(NULL);
}

/* The file of another scanner is refused, with the number of crystals that do not match. */
static void other_scanners_are_told(void **state)
{
    char path[1024];
    int64_t count = 0;
    const lr_event_sink sink = {.take = drop_events, .user = &count};
    const lr_events_source source = {
        .path = official(path, OFFICIAL), .scanner = files.lors->scanner, .log = &files.log.log};
    assert_fails(lr_events_read(&source, &sink, NULL), LR_BAD_INPUT, &files.log,
                 "256 of its 256 crystals are none of lopsided's");
    assert_int_equal(count, 0);
}

static lr_status stop_at_once(void *user, const lr_event *events, int64_t count)
{
    *(int64_t *)user += count;
    return LR_CANCELLED;
}

/* If a sink stops, reading ends with the status of the sink. */
static void sinks_may_stop(void **state)
{
    int64_t count = 0;
    const lr_event_sink sink = {.take = stop_at_once, .user = &count};
    bytes_write(FILE_NAME, good, good_count);
    const lr_events_source source = {.path = FILE_NAME, .log = &files.log.log};
    assert_int_equal(lr_events_read(&source, &sink, NULL), LR_CANCELLED);
    assert_true(count > 0);
}

/* The scanner lacks two of the file's modules; events between the other modules are kept. */
static void events_of_lost_modules_are_left_out(void **state)
{
    enum { COUNT = 1000 };
    test_log_init(&files.log);
    lr_scanner *half = keep(lr_scanner_create(&(lr_scanner_params){
        .name = "half", .modules = files.lors->scanner->modules, .num_modules = 2, .detection_depth_mm = 5}));
    lr_event *events = random_events(files.lors->scanner, COUNT, false);
    write_list(&(lr_events_writer_params){.path = FILE_NAME, .lors = files.lors}, events, COUNT);
    int64_t kept = 0;
    for (int k = 0; k < COUNT; k++) /* both scanners give the first two modules the same numbers */
        kept += events[k].crystals[0] < half->num_crystals && events[k].crystals[1] < half->num_crystals;
    const lr_events_source source = {.path = FILE_NAME, .scanner = half, .log = &files.log.log};
    lr_event_list *list = keep(lr_event_list_read(&source));
    assert_true(kept > 0 && kept < COUNT);
    assert_pairs(0, {list->count, kept}, {list->info.counts.unknown_crystals, COUNT - kept},
                 {list->info.counts.prompts + list->info.counts.delayeds, COUNT});
    assert_int_equal(files.log.num_warnings, 2); /* one about crystals, one about events */
}

group_main("io petsird bad", set_up, files_end,
           EACH(cmocka_unit_test, no_files, more_bytes_are_refused, events_before_the_end_are_read,
                random_bytes_are_survived, schemas_are_distrusted, lists_of_nothing_are_refused,
                schemas_that_explode_are_refused, bad_requests_are_refused, other_scanners_are_told, sinks_may_stop,
                events_of_lost_modules_are_left_out))
