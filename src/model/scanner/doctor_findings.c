/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "model/scanner/doctor.h"

#include "base/log.h"
#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static bool append(struct lr_examination *examination, const lr_finding *finding)
{
    lr_diagnosis *diagnosis = examination->diagnosis;
    lr_finding *grown = lr_resize(diagnosis->findings, (int64_t)diagnosis->num_findings + 1, sizeof(*grown), "findings",
                                  examination->log);
    if (grown == NULL) return false;
    diagnosis->findings = grown;
    grown[diagnosis->num_findings++] = *finding;
    diagnosis->num_suspects += finding->severity == LR_SUSPECT;
    return true;
}

void lr_examination_add(struct lr_examination *examination, const struct lr_finding_head *head, const char *format, ...)
{
    char sentence[1024];
    va_list values;
    va_start(values, format);
    vsnprintf(sentence, sizeof(sentence), format, values);
    va_end(values);
    lr_finding finding = {head->severity,
                          head->kind,
                          {head->modules[0], head->modules[1]},
                          lr_copy_string(sentence, examination->log),
                          lr_copy_string(head->remedy, examination->log)};
    if (finding.sentence == NULL || finding.remedy == NULL || !append(examination, &finding)) {
        free(finding.sentence);
        free(finding.remedy);
        examination->failed = true;
    }
}

void lr_examination_rest(struct lr_examination *examination, const struct lr_finding_head *head, int count)
{
    if (count > LR_FINDINGS_SPELLED) {
        const struct lr_finding_head rest = {head->severity, head->kind, {-1, -1}, head->remedy};
        lr_examination_add(examination, &rest, "%d more like these", count - LR_FINDINGS_SPELLED);
    }
}
