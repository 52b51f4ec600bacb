/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * How long a thread of a shader may go on. */
#ifndef LR_RENDER_LOOP_LIMIT_H
#define LR_RENDER_LOOP_LIMIT_H

/* llvmpipe ends all loops of a thread after 65,535 turns altogether, and says nothing. */
enum { LR_MOST_TURNS_SOFTWARE = 60000 };

#endif
