/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Imitates a disk that takes 2.5 s to list a folder. Preloaded by test_stops.py. */
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int fsync(int file)
{
    struct stat about;
    struct timespec left = {.tv_sec = 2, .tv_nsec = 500000000};
    if (fstat(file, &about) == 0 && S_ISDIR(about.st_mode))
        while (nanosleep(&left, &left) != 0) {
        }
    return (int)syscall(SYS_fsync, file);
}
