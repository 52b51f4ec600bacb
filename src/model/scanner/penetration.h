/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_MODEL_PENETRATION_H
#define LR_MODEL_PENETRATION_H

#include <lr/operator.h>
#include <lr/scanner.h>

/* Attenuation of a module's crystals in 1/mm: its own, else the scanner's, else LYSO's. */
double lr_module_mu_per_mm(const lr_scanner *scanner, int module);

/* Checks that crystal penetration, which is asked for, can be had: not in exact mode. errors: LR_USAGE,
 * logged. */
lr_status lr_penetration_check(const lr_scanner *scanner, lr_mode mode, const lr_log *log);

/* Warns where the scanner does not say what its crystals attenuate. */
void lr_penetration_warn(const lr_scanner *scanner, const lr_log *log);

#endif
