/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Reading scripts; test_view.py runs them. */
#include "io/files.h"
#include "io/text_cases.h"

#include "viewer/app.h"

static const char path[] = "viewer_script.txt";

static struct script *read_text(const char *text, size_t bytes, struct test_log *log)
{
    bytes_write(path, text, bytes);
    test_log_init(log);
    return script_read(path, viewer_tools, &log->log);
}

static void good_texts(void **state)
{
    static const char *const texts[] = {
        "",
        "\n\n# nothing\n   \t\n",
        "wait",
        "wait # for all\r\nquit\r\n",
        "open image \"a name with blanks.nii\"\n",
        "type \"# no comment\"",
        "screenshot \"\"", /* a word that is empty */
        "  wait\t 3\n\n",
    };
    struct test_log log;
    for (size_t k = 0; k < sizeof(texts) / sizeof(texts[0]); k++) {
        struct script *script = read_text(texts[k], strlen(texts[k]), &log);
        if (script == NULL) fail_msg("\"%s\": %s", texts[k], log.error);
        script_destroy(script);
    }
}

static void bad_texts(void **state)
{
    struct test_log log;
    for (struct text_cases cases = cases_of(IO_CASES, "script"); next_case(&cases);)
        assert_none(read_text(cases.fields[1], strlen(cases.fields[1]), &log), LR_BAD_INPUT, &log, cases.fields[0]);
}

static void no_text(void **state)
{
    struct test_log log = TEST_LOG(log);
    assert_none(script_read("there is no such file", viewer_tools, &log.log), LR_BAD_INPUT, &log, "");
    script_destroy(NULL);
}

/* Random bytes are either read as a script or refused as bad input. */
static void noise(void **state)
{
    uint64_t seed = test_seed();
    int refused = 0;
    for (int n = 0; n < 300; n++) {
        char text[200];
        struct test_log log;
        const size_t bytes = (size_t)(200.0 * test_random(&seed));
        for (size_t k = 0; k < bytes; k++) text[k] = "wait quit\"\n# \t\0\r\377"[(size_t)(18.0 * test_random(&seed))];
        struct script *script = read_text(text, bytes, &log);
        assert_true(script != NULL || log.status == LR_BAD_INPUT);
        refused += script == NULL;
        script_destroy(script);
    }
    assert_true(refused > 100);
}

/* Each of these commands describes its arguments: a text for users, and the least and largest number of arguments. */
static void steps_are_told(void **state)
{
    static const char *const names[] = {"open", "wait", "recon", "stay", "print", "expect"};
    for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
        const struct command *command = command_find(viewer_tools, names[k]);
        assert_non_null(command);
        assert_all(command->least <= command->most && command->most < COMMAND_WORDS, command->words[0] != '\0');
    }
    assert_null(command_find(viewer_tools, "Wait"));
}

test_main("viewer_script", FILES_CASE(good_texts), FILES_CASE(bad_texts), FILES_CASE(no_text), FILES_CASE(noise),
          FILES_CASE(steps_are_told))
