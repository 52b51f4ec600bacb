/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_MODEL_PENETRATION_H
#define LR_MODEL_PENETRATION_H

#include <lr/operator.h>
#include <lr/scanner.h>

/* Whether crystal penetration, which is asked for, can be had: not in exact mode, and not without the
 * scanner's crystal_mu_per_mm. errors: LR_USAGE, logged. */
lr_status lr_penetration_check(const lr_scanner *scanner, lr_mode mode, const lr_log *log);

#endif
