/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The viewer, as the program starts it. */
#ifndef LR_VIEWER_VIEW_H
#define LR_VIEWER_VIEW_H

#include <lr/log.h>

/* Result of a bench of frames. Seconds on the wall from the program's start, except for the frames' own. */
struct view_speed {
    double first_frame_s, opened_s; /* the first frame was shown; all that was asked for was there */
    double frames_per_second, frame_ms;
    double processor_ms; /* of all threads, a frame: with those of a software renderer */
    int size[2];         /* pixels */
};

/* Zero fields are defaults. Strings outlive the call. */
struct view_params {
    const char *scanner;                     /* name or file; NULL = none is opened */
    const char *image, *mu, *data, *session; /* files */
    const char *script;                      /* file of steps; NULL = a person */
    bool has_no_window;                      /* draws where nobody sees it: scripts only */
    int size[2];                             /* of the window; 0 = 1280 x 800 */
    int device;                              /* without a window: the Nth usable device of OpenGL */
    int threads;                             /* for what is computed; 0 = all processors */
    int bench_frames;                        /* opens all, draws that many frames as fast as they go, ends */
    struct view_speed *speed;                /* with bench_frames: filled where these were drawn */
    const lr_log *log;
    const lr_progress *progress; /* asked now and then whether to end; NULL = never */
};

/* Opens the window and returns when it is closed, or the script has ended.
 * errors: LR_NO_DEVICE without a screen or OpenGL 4.5; LR_BAD_INPUT for a script that has errors, and for files of a
 * script or bench that cannot be read; LR_FAILED where an expectation of a script is not met. */
lr_status view_run(const struct view_params *params);

#endif
