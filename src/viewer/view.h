/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The functions and settings with which the program starts the viewer. */
#pragma once

#include <lr/log.h>

/* Result of a frame benchmark. All times except the durations of frames are wall-clock seconds since the program's
 * start. */
struct view_speed {
    double first_frame_s, opened_s; /* time at which the first frame was shown, and time at which all requested files
                                     * were open */
    double frames_per_second, frame_ms;
    double processor_ms; /* processor time of all threads in one frame, including a software renderer's threads */
    int size[2];         /* pixels */
};

/* A member that is 0 stands for its default. Strings outlive the call. */
struct view_params {
    const char *scanner;                     /* name or file; NULL = no scanner is opened */
    const char *image, *mu, *data, *session; /* files */
    const char *script;                      /* file of steps; NULL = a person uses the viewer */
    bool has_no_window;                      /* draws to an invisible surface; scripts only */
    int size[2];                             /* window size; 0 = 1280 x 800 */
    int device;                              /* number among usable OpenGL devices, if there is no window */
    int threads;                             /* threads for computation; 0 = all processors */
    int bench_frames;                        /* opens all files, draws this many frames as fast as possible, and ends */
    struct view_speed *speed;                /* filled in if bench_frames were drawn */
    const lr_log *log;
    const lr_progress *progress; /* asked from time to time whether the program should end; NULL = never asked */
};

/* Opens the window; returns when it is closed or the script has ended. errors: LR_NO_DEVICE if there is no screen or
 * no OpenGL 4.5; LR_BAD_INPUT for an invalid script, and for files of a script or benchmark that cannot be read;
 * LR_FAILED if an expectation of a script is not met. */
lr_status view_run(const struct view_params *params);
