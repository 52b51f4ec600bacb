/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Drivers of devices after fork(). A driver starts threads. A forked child lacks these threads, and would wait for them
 * without end. A child may therefore use no driver that its parent has opened. */
#pragma once

#include <lr/log.h>
#include <stdatomic.h>

/* Process id of the process that has opened a driver; 0 = none yet. */
typedef atomic_long lr_driver_owner;

/* Makes this process the owner if there is none, and then calls lr_driver_check. */
lr_status lr_driver_claim(lr_driver_owner *owner, const char *driver, const lr_log *log);

/* Checks that this process is the owner. driver: name for the message, such as "OpenGL". errors: LR_NO_DEVICE, logged,
 * if this process was forked from the owner. */
lr_status lr_driver_check(const lr_driver_owner *owner, const char *driver, const lr_log *log);

/* True if this process is the owner. Only the owner may free objects of the driver. */
bool lr_driver_is_own(const lr_driver_owner *owner);
