/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The program `loraster-bench`. `loraster bench` replaces itself by this program, with the same words after the
 * name. */
#include "cli/verbs.h"

static const struct cli_verb *const verbs[] = {
    &verb_bench_correspondence, &verb_bench_direct, &verb_bench_listmode, &verb_bench_cluster, NULL,
};

int main(int argc, char **argv)
{
    (void)argc;
    return program_main(verbs, argv);
}
