/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The verbs, and the function that runs them for each program. The verbs `bench` are in bench/, a separate program. */
#pragma once

#include "args.h"

/* Runs the verb that the words after argv[0] name, and returns the exit code of the program. If another program has the
 * verb, that program replaces this one in the same process, with the same words. `verbs` ends with NULL. In this list,
 * a verb of two words must come before a verb that is only its first word. */
int program_main(const struct cli_verb *const *verbs, char *const *argv);

/* Runs another verb within a verb: `words` are a command line without the program's name. Its outputs are checked, and
 * its messages go to the report. errors: those of the verb; LR_USAGE for a verb of another program. */
lr_status program_run(struct report *report, char *const *words);

/* The program that has the verbs `bench`; both programs list their summaries. */
#define VERB_BENCH_PROGRAM "loraster-bench"
#define VERB_BENCH_CORRESPONDENCE "Times the matrix on each backend, and says how right it is."
#define VERB_BENCH_DIRECT "Times projections of the family direct in the cases of its papers."
#define VERB_BENCH_CLUSTER "Times ranks that reconstruct together, and says how far they come."
#define VERB_BENCH_LISTMODE "Times list mode over random lines in the cases of its paper."

extern const struct cli_verb verb_info;
extern const struct cli_verb verb_scanner_list;
extern const struct cli_verb verb_scanner_show;
extern const struct cli_verb verb_scanner_check;
extern const struct cli_verb verb_scanner_convert;
extern const struct cli_verb verb_scanner_compare;
extern const struct cli_verb verb_render;
extern const struct cli_verb verb_matrix;
extern const struct cli_verb verb_matrix_join;
extern const struct cli_verb verb_matrix_verify;
extern const struct cli_verb verb_project;
extern const struct cli_verb verb_backproject;
extern const struct cli_verb verb_sensitivity;
extern const struct cli_verb verb_factors;
extern const struct cli_verb verb_phantom;
extern const struct cli_verb verb_simulate;
extern const struct cli_verb verb_sample_list;
extern const struct cli_verb verb_sample_get;
extern const struct cli_verb verb_recon;
extern const struct cli_verb verb_sinogram;
extern const struct cli_verb verb_smooth;
extern const struct cli_verb verb_events_show;
extern const struct cli_verb verb_events_convert;
extern const struct cli_verb verb_events_merge;
extern const struct cli_verb verb_bench_correspondence;
extern const struct cli_verb verb_direct_lut;
extern const struct cli_verb verb_direct_deposit;
extern const struct cli_verb verb_direct_factors;
extern const struct cli_verb verb_direct_project;
extern const struct cli_verb verb_bench_direct;
extern const struct cli_verb verb_bench_listmode;
extern const struct cli_verb verb_bench_cluster;
extern const struct cli_verb verb_demo;
extern const struct cli_verb verb_view;
