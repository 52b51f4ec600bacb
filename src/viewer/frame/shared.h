/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Things that several threads read and the last of them frees. */
#ifndef LR_VIEWER_SHARED_H
#define LR_VIEWER_SHARED_H

#include <lr/log.h>

struct shared; /* an object with a count of its holders; the object itself never changes */

/* Takes the object over, also on failure. One holder. errors: NULL when memory is short, or for an
 * object that is NULL, which is not logged. */
struct shared *shared_create(void *object, void (*destroy)(void *object), const lr_log *log);

/* One holder more; returns it. NULL gives NULL. Any thread. */
struct shared *shared_hold(struct shared *shared);

/* One holder less; the last one destroys the object. NULL is allowed. Any thread. */
void shared_release(struct shared *shared);

/* The object; NULL gives NULL. */
void *shared_object(const struct shared *shared);

#endif
