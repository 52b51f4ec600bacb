// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// The threads of list mode's CUDA kernels, one after the other, for a device that has as much shared memory
// as LR_TEST_SHARED_BYTES says. A launch runs when it is made, after all that its stream was told.
#include "../cuda_interop/stand_ins.h"

#include "cuda_interop/listmode/arrange.cu"
#include "cuda_interop/listmode/frames.cuh"
#include "cuda_interop/listmode/order.cu"
#include "cuda_interop/listmode/project.cuh"
#include "cuda_interop/listmode/steps.cuh"
#include "cuda_interop/listmode/visit.cu"
#include "slabs_on_cpu.h"

extern "C" {
#include <cuda_runtime_api.h>
}

namespace
{

// Runs a kernel on as many threads, or a few more.
template <class Pass> int run_threads(void (*kernel)(Pass), const Pass &pass, int64_t threads, void *stream)
{
    cudaStreamSynchronize(static_cast<cudaStream_t>(stream));
    run_kernel(kernel, (unsigned)(threads / LR_CUDA_LIST_GROUP + 1), LR_CUDA_LIST_GROUP, pass);
    return 0;
}

// A block's memory; what is read or added beyond it ends the test.
std::vector<float> image;
std::vector<int32_t> sums;

struct shared_image {
    float load(int at) const { return image.at((size_t)at); }
};

struct shared_sums {
    void add(int at, float number) const
    {
        int32_t &sum = sums.at((size_t)at);
        if (__builtin_add_overflow(sum, (int32_t)lrintf(number), &sum)) throw "a sum that does not fit";
    }
};

struct global_image {
    const float *numbers;
    int count;

    float load(int at) const { return at >= 0 && at < count ? numbers[at] : throw "read outside of an image"; }
};

template <class Sharer, class Tile>
void read_events(const lr_cuda_list_pass &pass, const list_block &block, const Tile &tile)
{
    for (int event = 0; event < block.chunk.count; event++) {
        const enum list_lines lines = lines_of(pass.events);
        lines == FOUND           ? project_forward<Sharer, FOUND>(pass, block, event, tile)
        : lines == FOUND_IN_BINS ? project_forward<Sharer, FOUND_IN_BINS>(pass, block, event, tile)
        : lines == KEPT          ? project_forward<Sharer, KEPT>(pass, block, event, tile)
                                 : project_forward<Sharer, KEPT_IN_BINS>(pass, block, event, tile);
    }
}

template <class Tile> void forward(const lr_cuda_list_pass &pass, const list_block &block, const Tile &tile)
{
    if (pass.is_line)
        read_events<line_sharer<line_reader<Tile>>>(pass, block, tile);
    else if (pass.tube.table != nullptr)
        read_events<tube_sharer<table_share<false>, line_reader<Tile>>>(pass, block, tile);
    else
        read_events<tube_sharer<gaussian_share, line_reader<Tile>>>(pass, block, tile);
}

template <class Sharer, class Tile>
void write_event(const lr_cuda_list_pass &pass, const list_block &block, int event, const list_taking &taking,
                 const Tile &tile)
{
    const enum list_lines lines = lines_of(pass.events);
    lines == FOUND           ? project_back<Sharer, FOUND>(pass, block, event, taking, tile)
    : lines == FOUND_IN_BINS ? project_back<Sharer, FOUND_IN_BINS>(pass, block, event, taking, tile)
    : lines == KEPT          ? project_back<Sharer, KEPT>(pass, block, event, taking, tile)
                             : project_back<Sharer, KEPT_IN_BINS>(pass, block, event, taking, tile);
}

template <class Tile>
void back(const lr_cuda_list_pass &pass, const list_block &block, int event, const list_taking &taking,
          const Tile &tile)
{
    if (pass.is_line)
        write_event<line_sharer<line_writer<Tile>>>(pass, block, event, taking, tile);
    else if (pass.tube.table != nullptr)
        write_event<tube_sharer<table_share<false>, line_writer<Tile>>>(pass, block, event, taking, tile);
    else
        write_event<tube_sharer<gaussian_share, line_writer<Tile>>>(pass, block, event, taking, tile);
}

template <class Tile>
void back_all(const lr_cuda_list_pass &pass, const list_block &block, const list_taking &taking, const Tile &tile)
{
    for (int event = 0; event < block.chunk.count; event++) back(pass, block, event, taking, tile);
}

void back_tiled(const lr_cuda_list_pass &pass, const list_block &block)
{
    list_taking taking = take_usual(mean_log2_of<list_sizes>(pass, block));
    const image_sums floats = {block.numbers(pass), 0, block.cells()};
    std::vector<int> others;
    double total = 0;
    for (int event = 0; event < block.chunk.count; event++) {
        const float value = value_at(pass, block.chunk.begin + event);
        if (taking.takes(value))
            total += fabs(value);
        else if (value != 0.0f)
            others.push_back(event);
    }
    taking.scale = fixed_scale(block, total);
    if ((int)others.size() > most_others) {
        back_all(pass, block, take_all(), floats);
        return;
    }
    for (const int event : others) back(pass, block, event, take_all(), floats);
    if (taking.scale != 0.0f) {
        sums.assign((size_t)block.cells(), 0);
        back_all(pass, block, taking, shared_sums());
        close_slab(pass, block, taking.scale, sums);
    }
}

} // namespace

int lr_cuda_launch_list_fill(const lr_cuda_list_framing *framing)
{
    int64_t most = 0;
    for (const lr_cuda_list_frame &frame : framing->frames)
        most = std::max(most, frame.has_events ? lr_cuda_list_cells(&frame, frame.slices) : 0);
    cudaStreamSynchronize(static_cast<cudaStream_t>(framing->stream));
    run_kernel(fill_frames, {(unsigned)(most / LR_CUDA_LIST_GROUP + 1), LR_CUDA_LIST_AXES}, LR_CUDA_LIST_GROUP,
               *framing);
    return 0;
}

int lr_cuda_launch_list_add(const lr_cuda_list_framing *framing)
{
    const int32_t *size = framing->size;
    return run_threads(add_up_frames, *framing, (int64_t)size[0] * size[1] * size[2], framing->stream);
}

int lr_cuda_launch_list_forward(const lr_cuda_list_pass *pass)
{
    cudaStreamSynchronize(static_cast<cudaStream_t>(pass->stream));
    for (int number = 0; number < pass->num_jobs; number++) {
        const list_block block(*pass, number);
        const float *numbers = block.numbers(*pass);
        check_room(*pass, block);
        if (block.frame.is_tiled) {
            image.assign(numbers, numbers + block.cells());
            forward(*pass, block, shared_image());
        } else {
            forward(*pass, block, global_image{numbers, block.cells()});
        }
    }
    run_kernel(put_values, {1, (unsigned)pass->num_chunks}, LR_CUDA_LIST_GROUP, *pass);
    return 0;
}

int lr_cuda_launch_list_back(const lr_cuda_list_pass *pass)
{
    cudaStreamSynchronize(static_cast<cudaStream_t>(pass->stream));
    for (int number = 0; number < pass->num_jobs; number++) {
        const list_block block(*pass, number);
        check_room(*pass, block);
        if (block.frame.is_tiled)
            back_tiled(*pass, block);
        else
            back_all(*pass, block, take_all(), image_sums{block.numbers(*pass), 0, block.cells()});
    }
    return 0;
}

// --- the paper's steps ---

namespace
{

struct grid_tile {
    const lr_cuda_list_step &step;
    const lr_cuda_list_frame &frame;
    int slice;

    float load(int row, int column) const
    {
        const int64_t voxel = voxel_at(step, frame, slice, row, column);
        return voxel >= 0 ? step.image[voxel] : 0.0f;
    }
    void add(int row, int column, float number) const
    {
        const int64_t voxel = voxel_at(step, frame, slice, row, column);
        if (voxel >= 0) step.image[voxel] += number;
    }
};

// In `image`, a block's memory.
struct shared_tile {
    const lr_cuda_list_frame &frame;
    tile_span span;

    float load(int row, int column) const
    {
        const int at = span.find(frame, row, column);
        return at >= 0 ? image.at((size_t)at) : 0.0f;
    }
    void add(int row, int column, float number) const
    {
        const int at = span.find(frame, row, column);
        if (at >= 0) image.at((size_t)at) += number;
    }
};

std::vector<step_line> lines_of_block(const lr_cuda_list_step &step, int64_t block, bool is_back)
{
    std::vector<step_line> lines;
    for (int thread = 0; thread < step_threads; thread++)
        lines.push_back(step_line(step, block * step_threads + thread, is_back));
    return lines;
}

template <class Footprint, class Math>
void meet_slice(const lr_cuda_list_step &step, std::vector<step_line> &lines, int axis, int slice, bool is_back)
{
    const lr_cuda_list_frame &frame = step.pass.frames[axis];
    float *numbers = step.pass.numbers + frame.begin + (int64_t)slice * frame.plane;
    for (int row = 0; row < frame.size[0] + frame.window[0] - 1; row += tile_rows(step, frame)) {
        const shared_tile tile = {frame, tile_span(step, frame, row)};
        image.assign((size_t)tile.span.count, 0.0f);
        for (int k = 0; k < tile.span.count && !is_back; k++) image[(size_t)k] = numbers[tile.span.begin + k];
        for (step_line &line : lines)
            if (line.axis == axis && line.meets(slice))
                step_slice<Footprint, Math>(step, line, step_way(step, line), slice, is_back, tile);
        for (int k = 0; k < tile.span.count && is_back; k++) numbers[tile.span.begin + k] += image[(size_t)k];
    }
}

template <class Footprint, class Math>
void run_block(const lr_cuda_list_step &step, std::vector<step_line> &lines, bool is_back)
{
    for (step_line &line : lines) {
        for (int slice = line.walk.slices[0]; !step.is_cached && slice < line.walk.slices[1]; slice++) {
            const grid_tile tile = {step, step.pass.frames[line.axis], slice};
            step_slice<Footprint, Math>(step, line, step_way(step, line), slice, is_back, tile);
        }
    }
    for (int axis = 0; step.is_cached && axis < 3; axis++)
        for (int slice = 0; (step.axis < 0 || step.axis == axis) && step.pass.frames[axis].has_events &&
                            slice < step.pass.frames[axis].slices;
             slice++)
            meet_slice<Footprint, Math>(step, lines, axis, slice, is_back);
}

template <class Math> void run_lines(const lr_cuda_list_step &step, std::vector<step_line> &lines, bool is_back)
{
    if (step.pass.is_line)
        run_block<line_footprint, Math>(step, lines, is_back);
    else if (step.pass.tube.table != nullptr)
        run_block<tube_footprint<table_share<true>>, Math>(step, lines, is_back);
    else
        run_block<tube_footprint<step_gaussian<Math>>, Math>(step, lines, is_back);
}

} // namespace

int lr_cuda_launch_list_step(const lr_cuda_list_step *params, bool is_back)
{
    const lr_cuda_list_step &step = *params;
    cudaStreamSynchronize(static_cast<cudaStream_t>(step.pass.stream));
    for (int64_t block = 0; block * step_threads < step.count; block++) {
        std::vector<step_line> lines = lines_of_block(step, block, is_back);
        if (step.is_fast)
            run_lines<fast_math>(step, lines, is_back);
        else
            run_lines<plain_math>(step, lines, is_back);
        for (const step_line &line : lines)
            if (!is_back && line.place >= 0) step.pass.values[line.place] = line.sum;
    }
    return 0;
}

// --- sorting ---

int lr_cuda_list_sort_room(int64_t most, int64_t *bytes)
{
    (void)most;
    *bytes = 1;
    return 0;
}

int lr_cuda_launch_list_sort(const lr_cuda_list_sort *sort)
{
    const uint32_t mask = sort->bits < 32 ? (1u << sort->bits) - 1 : ~0u;
    std::vector<int> order((size_t)sort->count);
    cudaStreamSynchronize(static_cast<cudaStream_t>(sort->stream));
    for (int k = 0; k < sort->count; k++) order[(size_t)k] = k;
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return (sort->keys[0][a] & mask) < (sort->keys[0][b] & mask); });
    for (int k = 0; k < sort->count; k++) {
        sort->keys[1][k] = sort->keys[0][order[(size_t)k]];
        sort->numbers[1][k] = sort->numbers[0][order[(size_t)k]];
    }
    return 0;
}

int lr_cuda_launch_list_gather(const lr_cuda_list_gather *gather)
{
    return run_threads(gather_events, *gather, gather->count, gather->stream);
}

int lr_cuda_launch_list_order(const lr_cuda_list_ordering *ordering, enum lr_cuda_list_order_step step)
{
    static void (*const kernels[])(lr_cuda_list_ordering) = {find_keys, bound_pieces, keep_lines};
    const int64_t pieces = ((int64_t)ordering->count + LR_CUDA_LIST_PIECE - 1) / LR_CUDA_LIST_PIECE;
    const int64_t threads = step == LR_CUDA_LIST_BOUNDS ? pieces : ordering->count;
    return run_threads(kernels[step], *ordering, threads, ordering->pass.stream);
}

extern "C" int fake_lines_drawn; // for tests to see who draws
int fake_lines_drawn;

int lr_cuda_launch_list_draw(const lr_cuda_list_drawing *drawing)
{
    fake_lines_drawn += (int)drawing->count;
    return run_threads(draw_lines, *drawing, drawing->count, drawing->stream);
}

int lr_cuda_launch_list_groups(const lr_cuda_list_arranging *arranging)
{
    cudaStreamSynchronize(static_cast<cudaStream_t>(arranging->stream));
    for (int k = 0; k < arranging->count; k++) {
        arranging->keys[k] = group_of_event(*arranging, k);
        arranging->numbers[k] = k;
        arranging->groups[arranging->keys[k]]++;
    }
    return 0;
}

int lr_cuda_launch_list_centres(const lr_cuda_list_arranging *arranging)
{
    return run_threads(find_centres, *arranging, (int64_t)arranging->end - arranging->begin, arranging->stream);
}

extern "C" {

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
    const char *const bytes = getenv("LR_TEST_SHARED_BYTES");
    (void)device;
    *value = attribute == cudaDevAttrMultiProcessorCount ? 2 : bytes != nullptr ? atoi(bytes) : 0;
    return cudaSuccess;
}
}
