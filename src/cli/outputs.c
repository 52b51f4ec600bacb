/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "outputs.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The words of a command line that may name files, [CLI_MAX_GIVEN + CLI_MAX_POSITIONAL], and among them
 * those that are written. */
struct words {
    const char **read;
    int num_read;
    const char *written[CLI_MAX_OUTPUTS];
    int num_written;
};

static const struct cli_output *find_output(const struct cli_syntax *syntax, const char *name)
{
    for (int k = 0; k < CLI_MAX_OUTPUTS && syntax->outputs[k].name != NULL; k++)
        if (strcmp(syntax->outputs[k].name, name) == 0) return &syntax->outputs[k];
    return NULL;
}

/* A verb that writes to a file without an option has two words, and it is the second. */
static bool is_written_word(const struct cli_args *args, int k)
{
    return k == 1 && find_output(args->syntax, CLI_SECOND_WORD) != NULL;
}

static lr_status list_words(const struct cli_args *args, struct words *words)
{
    words->read = calloc(CLI_MAX_GIVEN + CLI_MAX_POSITIONAL, sizeof(*words->read));
    if (words->read == NULL) return report_error(args->report, LR_FAILED, "no memory for the names of files");
    for (int k = 0; k < args->num_given; k++) {
        const struct cli_given *given = &args->given[k];
        if (given->value == NULL) continue;
        if (find_output(args->syntax, given->option->name) != NULL)
            words->written[words->num_written++] = given->value;
        else
            words->read[words->num_read++] = given->value;
    }
    for (int k = 0; k < args->num_positional; k++)
        if (is_written_word(args, k))
            words->written[words->num_written++] = args->positional[k];
        else
            words->read[words->num_read++] = args->positional[k];
    return LR_OK;
}

static lr_status check_losses(const struct cli_args *args, const struct words *words)
{
    return lr_files_check(&(lr_file_uses){.read = words->read,
                                          .num_read = words->num_read,
                                          .written = words->written,
                                          .num_written = words->num_written,
                                          .log = &args->report->log});
}

lr_status outputs_check(const struct cli_args *args)
{
    struct words words = {0};
    lr_status status = list_words(args, &words);
    for (int k = 0; status == LR_OK && k < CLI_MAX_OUTPUTS; k++) {
        const struct cli_output *output = &args->syntax->outputs[k];
        if (output->name == NULL) break;
        const bool is_word = strcmp(output->name, CLI_SECOND_WORD) == 0;
        const char *path = !is_word                   ? args_text(args, output->name)
                           : args->num_positional > 1 ? args->positional[1]
                                                      : NULL;
        status = path != NULL ? common_check_output(args->report, path, output->endings) : LR_OK;
    }
    status = status == LR_OK ? check_losses(args, &words) : status;
    free(words.read);
    return status;
}

lr_status outputs_check_name(const struct cli_args *args, const char *path)
{
    struct words words = {0};
    if (access(path, F_OK) != 0) return LR_OK;
    lr_status status = list_words(args, &words);
    words.written[0] = path;
    words.num_written = 1;
    status = status == LR_OK ? check_losses(args, &words) : status;
    free(words.read);
    return status;
}

lr_status outputs_check_iterations(const struct cli_args *args, const char *output, int every, const int range[2])
{
    char path[PATH_MAX];
    for (int k = every > 0 ? range[0] / every + 1 : 1; every > 0 && (int64_t)k * every <= range[1]; k++) {
        common_iteration_path(path, output, k * every);
        CLI_TRY(outputs_check_name(args, path));
    }
    return LR_OK;
}
