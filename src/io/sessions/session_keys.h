/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What reader and writer of sessions agree on. */
#ifndef LR_IO_VIEW_SESSION_KEYS_H
#define LR_IO_VIEW_SESSION_KEYS_H

/* The file's first key, with its version. */
#define LR_SESSION_KEY "view_session"
enum { LR_SESSION_VERSION = 1 };

/* By lr_mode, and by without_mu; NULL at the end. */
extern const char *const lr_session_matrix_modes[];
extern const char *const lr_session_absorptions[];

/* Of the voxel tool's pictures, the usual one first. */
extern const char *const lr_session_backends[];

/* By whether it is shown. */
extern const char *const lr_session_showings[];

#endif
