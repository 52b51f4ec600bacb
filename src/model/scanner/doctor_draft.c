/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include <lr/doctor.h>

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

/* What a draft owns is const in lr_scanner_params. */
static void release(const void *owned)
{
    free((void *)(uintptr_t)owned);
}

static bool copy(const lr_scanner *scanner, lr_scanner_draft *draft, const lr_log *log)
{
    lr_module *modules = lr_alloc(scanner->num_modules, sizeof(*modules), "a scanner's modules", log);
    draft->params = (lr_scanner_params){
        .name = lr_copy_string(scanner->name, log),
        .modules = modules,
        .num_modules = scanner->num_modules,
        .num_positions = scanner->num_positions,
        .coincidence = scanner->coincidence,
        .detection_depth_mm = scanner->detection_depth_mm,
        .tof_resolution_ps = scanner->tof_resolution_ps,
        .crystal_mu_per_mm = scanner->crystal_mu_per_mm,
        .source = lr_copy_string(scanner->source, log),
    };
    if (modules == NULL || draft->params.name == NULL || (scanner->source != NULL && draft->params.source == NULL))
        return false;
    memcpy(modules, scanner->modules, (size_t)scanner->num_modules * sizeof(*modules));
    return true;
}

lr_scanner_draft *lr_scanner_draft_create(const lr_scanner *scanner, const lr_log *log)
{
    lr_scanner_draft *draft = lr_alloc(1, sizeof(*draft), "a scanner", log);
    if (draft != NULL && !copy(scanner, draft, log)) {
        lr_scanner_draft_destroy(draft);
        return NULL;
    }
    return draft;
}

void lr_scanner_draft_destroy(lr_scanner_draft *draft)
{
    if (draft == NULL) return;
    release(draft->params.name);
    release(draft->params.source);
    release(draft->params.modules);
    free(draft);
}
