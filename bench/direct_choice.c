/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Which ways to project `loraster bench direct` measures: those that --backend, --storage and
 * --variant name. */
#include "direct.h"

#include "cli/direct.h"

#include <string.h>

#define ON_BUFFERS(name_, backend_, way_)                                                                              \
    {                                                                                                                  \
        name_ ", buffers", backend_, LR_DIRECT_BUFFERS, way_                                                           \
    }
#define ON_TEXTURES(name_, backend_, way_)                                                                             \
    {                                                                                                                  \
        name_ ", textures", backend_, LR_DIRECT_TEXTURES, way_                                                         \
    }
#define ON_BOTH(name_, backend_, way_) ON_BUFFERS(name_, backend_, way_), ON_TEXTURES(name_, backend_, way_)

static const struct direct_variant variants[DIRECT_NUM_VARIANTS] = {
    ON_BOTH("auto", NULL, LR_DIRECT_FASTEST),
    ON_BOTH("compute", "compute", LR_DIRECT_FASTEST),
    ON_BUFFERS("cuda, bands", "cuda", LR_DIRECT_BANDS),
    ON_BUFFERS("cuda, columns", "cuda", LR_DIRECT_COLUMNS),
    ON_BOTH("cuda, threads", "cuda", LR_DIRECT_THREADS),
    ON_BOTH("cuda, instructions", "cuda", LR_DIRECT_INSTRUCTIONS),
    ON_BOTH("cuda, shared memory", "cuda", LR_DIRECT_SHARED_MEMORY),
    ON_BOTH("cuda, texture cache", "cuda", LR_DIRECT_TEXTURE_CACHE),
    {"cpu", "cpu", LR_DIRECT_BUFFERS, LR_DIRECT_FASTEST},
};

static const char *const storages[] = {"buffers", "textures", "both", NULL};

enum { BOTH = 2 /* of storages */ };

/* What the command line asks for. */
struct wish {
    const char *backend;
    int storage; /* in `storages` */
    lr_direct_variant way;
};

static bool is_one_of(const char *word, const char *first, const char *second)
{
    return strcmp(word, first) == 0 || strcmp(word, second) == 0;
}

static void check(const struct wish *wish, struct cli_args *args)
{
    const bool has_textures_alone = wish->storage == (int)LR_DIRECT_TEXTURES;
    const bool is_on_buffers = wish->way >= LR_DIRECT_BANDS && wish->way <= LR_DIRECT_COLUMNS; /* and there alone */
    if (wish->way != LR_DIRECT_FASTEST && !is_one_of(wish->backend, "cuda", "all")) {
        args_complain(args, "--variant is for --backend cuda or all");
    } else if (is_on_buffers && has_textures_alone) {
        args_complain(args,
                      "--variant %s works on buffers, not on textures: take --storage buffers, or "
                      "threads, instructions, shared-memory or texture-cache",
                      args_text(args, "--variant"));
    }
    if (args_has(args, "--storage") && strcmp(wish->backend, "cpu") == 0) {
        args_complain(args, "--storage is for --backend auto, compute, cuda or all: cpu keeps images "
                            "in memory of its own");
    }
}

static bool has_backend(const struct wish *wish, const struct direct_variant *variant)
{
    const char *backend = variant->backend != NULL ? variant->backend : "auto";
    return strcmp(wish->backend, backend) == 0 || (strcmp(wish->backend, "all") == 0 && variant->backend != NULL);
}

static bool has_storage(const struct wish *wish, const struct direct_variant *variant)
{
    const bool is_cpu = variant->backend != NULL && strcmp(variant->backend, "cpu") == 0;
    return is_cpu || wish->storage == BOTH || wish->storage == (int)variant->storage;
}

static bool has_way(const struct wish *wish, const struct direct_variant *variant)
{
    return wish->way == LR_DIRECT_FASTEST || variant->way == LR_DIRECT_FASTEST || wish->way == variant->way;
}

void direct_choose_variants(struct direct_bench *bench, struct cli_args *args)
{
    static const char *const backends[] = {"auto", "cpu", "compute", "cuda", "all", NULL};
    struct wish wish = {.backend = backends[args_word(args, "--backend", backends, 0)],
                        .way = direct_read_variant(args)};
    const bool takes_all = strcmp(wish.backend, "all") == 0;
    wish.storage = args_word(args, "--storage", storages, takes_all ? BOTH : LR_DIRECT_BUFFERS);
    check(&wish, args);
    for (int k = 0; k < DIRECT_NUM_VARIANTS; k++) {
        const struct direct_variant *variant = &variants[k];
        if (has_backend(&wish, variant) && has_storage(&wish, variant) && has_way(&wish, variant))
            bench->variants[bench->num_variants++] = variant;
    }
}
