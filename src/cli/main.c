/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "verbs.h"

static const struct cli_verb *const verbs[] = {
    &verb_info,
    &verb_scanner_list,
    &verb_scanner_show,
    &verb_scanner_check,
    &verb_scanner_convert,
    &verb_scanner_compare,
    &verb_render,
    &verb_matrix_join, /* listed before "matrix", which is its first word */
    &verb_matrix_verify,
    &verb_matrix,
    &verb_project,
    &verb_backproject,
    &verb_sensitivity,
    &verb_factors,
    &verb_phantom,
    &verb_simulate,
    &verb_sample_list,
    &verb_sample_get,
    &verb_recon,
    &verb_sinogram,
    &verb_smooth,
    &verb_events_show,
    &verb_events_convert,
    &verb_events_merge,
    &verb_direct_lut,
    &verb_direct_deposit,
    &verb_direct_factors,
    &verb_direct_project,
    &(const struct cli_verb){
        .name = "bench correspondence", .summary = VERB_BENCH_CORRESPONDENCE, .program = VERB_BENCH_PROGRAM},
    &(const struct cli_verb){.name = "bench direct", .summary = VERB_BENCH_DIRECT, .program = VERB_BENCH_PROGRAM},
    &(const struct cli_verb){.name = "bench listmode", .summary = VERB_BENCH_LISTMODE, .program = VERB_BENCH_PROGRAM},
    &(const struct cli_verb){.name = "bench cluster", .summary = VERB_BENCH_CLUSTER, .program = VERB_BENCH_PROGRAM},
    &verb_view,
    &verb_demo,
    NULL,
};

int main(int argc, char **argv)
{
    (void)argc;
    return program_main(verbs, argv);
}
