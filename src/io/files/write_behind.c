/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#define _GNU_SOURCE /* fallocate */
#include "io/files/write_behind.h"

#include "base/parallel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int lr_write_piece(int file, const struct lr_written_piece *piece)
{
    const unsigned char *at = piece->from;
    size_t bytes = piece->bytes;
    int64_t place = piece->place;
    while (bytes > 0) {
        const ssize_t done = pwrite(file, at, bytes, (off_t)place);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return done < 0 ? errno : ENOSPC;
        at += done;
        place += done;
        bytes -= (size_t)done;
    }
    return 0;
}

#if defined(__linux__) && defined(MADV_POPULATE_WRITE)
#include <sys/vfs.h>

/* MAPPED_SHARE: bytes that are made room for, and then copied, while they are in the cache. */
enum { MANY_PROCESSORS = 6, LEAST_MAPPED = 1 << 20, MAPPED_SHARE = 1 << 18 };
#define TMPFS 0x01021994

bool lr_is_for_maps(int file)
{
    const char *wish = getenv("LORASTER_WRITE_BY_MAPS"); /* for measurements: 0 or 1 */
    struct statfs status;
    return fstatfs(file, &status) == 0 && status.f_type == TMPFS &&
           (wish != NULL ? wish[0] == '1' : lr_num_processors() >= MANY_PROCESSORS);
}

static void copy_to_map(unsigned char *to, const unsigned char *from, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += MAPPED_SHARE) {
        const size_t count = bytes - at < MAPPED_SHARE ? bytes - at : MAPPED_SHARE;
        (void)madvise(to + at, count, MADV_POPULATE_WRITE); /* else page by page, below */
        memcpy(to + at, from + at, count);
    }
}

/* false: nothing has been written. The file has its memory before the map is touched: no touch fails. */
static bool write_by_map(int file, const struct lr_written_piece *piece)
{
    const long page = sysconf(_SC_PAGESIZE);
    if (piece->bytes < LEAST_MAPPED || piece->place % page != 0 ||
        fallocate(file, 0, (off_t)piece->place, (off_t)piece->bytes) != 0)
        return false;
    unsigned char *map = mmap(NULL, piece->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, (off_t)piece->place);
    if (map == MAP_FAILED) return false;
    copy_to_map(map, piece->from, piece->bytes);
    return munmap(map, piece->bytes) == 0;
}
#else
bool lr_is_for_maps(int file)
{
    (void)file;
    return false;
}

static bool write_by_map(int file, const struct lr_written_piece *piece)
{
    (void)file;
    (void)piece;
    return false;
}
#endif

static void write_pieces(void *user)
{
    struct lr_write_behind *behind = user;
    for (int k = 0; k < LR_MOST_WRITTEN_PIECES && behind->error == 0; k++) {
        const struct lr_written_piece *piece = &behind->pieces[k];
        const bool is_mapped = behind->by_maps && write_by_map(behind->file, piece);
        behind->error = is_mapped ? 0 : lr_write_piece(behind->file, piece);
    }
}

void lr_write_behind_start(struct lr_write_behind *behind, int file,
                           const struct lr_written_piece pieces[LR_MOST_WRITTEN_PIECES])
{
    behind->file = file;
    behind->error = 0;
    memcpy(behind->pieces, pieces, sizeof(behind->pieces));
    lr_background_start(&behind->background, write_pieces, behind);
}

int lr_write_behind_wait(struct lr_write_behind *behind)
{
    lr_background_wait(&behind->background);
    const int error = behind->error;
    behind->error = 0;
    return error;
}
