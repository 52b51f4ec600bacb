// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
#include "stand_ins.h"

/* --- halves --- */

/* std::ldexp(1, exponent) for an exponent of normal numbers; a quick form, because it is called often. */
static double power_of_two(int exponent)
{
    const uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double power;
    std::memcpy(&power, &bits, sizeof(power));
    return power;
}

/* The bits of the nearest half-precision number; ties go to the even one. */
static uint32_t half_bits(float number)
{
    const double magnitude = std::fabs((double)number);
    const int exponent = magnitude > 0 ? std::max(std::ilogb(magnitude), -14) : -14;
    const double quantum = power_of_two(exponent - 10);
    const long steps = std::lrint(magnitude / quantum); /* half-precision numbers are used up to 2048 */
    const uint32_t bits = (uint32_t)(steps + (exponent + 14) * 1024);
    return (std::signbit(number) ? 0x8000u : 0u) | bits;
}

static double value_of_half(uint32_t bits)
{
    const int exponent = (int)(bits >> 10 & 31);
    const double mantissa = bits & 1023;
    const double magnitude = exponent == 31  ? NAN
                             : exponent == 0 ? mantissa * power_of_two(-24)
                                             : (mantissa + 1024) * power_of_two(exponent - 25);
    return bits & 0x8000 ? -magnitude : magnitude;
}

/* The values of all half-precision numbers as floats: a table, since they are read billions of times. */
struct half_values {
    float of[1 << 16];

    half_values()
    {
        for (uint32_t bits = 0; bits < 1u << 16; bits++) of[bits] = (float)value_of_half(bits);
    }
};

static const half_values values_of_halves;

static double half_value(uint32_t bits)
{
    return values_of_halves.of[bits];
}

struct split_pair {
    uint32_t high, low;
};

static split_pair split(float a, float b)
{
    const uint32_t high[2] = {half_bits(a), half_bits(b)};
    const uint32_t low[2] = {half_bits(a - (float)half_value(high[0])), half_bits(b - (float)half_value(high[1]))};
    return {high[0] | high[1] << 16, low[0] | low[1] << 16};
}

static float load_unit(const float *unit)
{
    return *unit;
}

static float load_once(const float *number)
{
    return *number;
}

#include "cuda_interop/direct/sort.cuh"
#include "on_cpu.h"

namespace
{

enum {
    OCTET = LR_CUDA_OCTET,
    OUTPUTS = LR_CUDA_OCTET * LR_CUDA_BAND_ROWS,
    MOST_SLICES = LR_CUDA_BAND_SLICES * LR_CUDA_BAND_HEIGHT
};

/* A weight as the sum of two half-precision numbers. */
struct halves {
    double high, low;
};

/* Position of an output. */
struct place {
    int l, row; /* indices in the lattice */
};

place place_of(const band_warp &warp, int output)
{
    return {warp.octet * OCTET + output % OCTET, warp.row + output / OCTET};
}

int wrong_weights; /* number of weights that are NaN or infinite */
int idle_steps;    /* number of steps whose sources are all outside the grid */

/* The products that a warp computes, here one entry at a time. */
struct products {
    band_warp warp;
    float weight_unit;
    int own_kernels[OUTPUTS];
    band_slab slab;
    const uint16_t *numbers;
    float sums[MOST_SLICES][OUTPUTS];

    template <band_kernels> void begin(const lr_cuda_bands &, const band_slab &own, const uint16_t *from)
    {
        slab = own;
        numbers = from;
    }

    /* k: index of the source within its half of the sources. */
    halves one_weight(const lr_cuda_bands &pass, int number, int half, int k, int output)
    {
        const int4 entry = pass.weights[(number * LR_CUDA_BAND_ROWS + output / OCTET) * LR_CUDA_BAND_BLOCK +
                                        output % OCTET * 4 + k / 2];
        const int of[4] = {entry.x, entry.y, entry.z, entry.w}, shift = k % 2 * 16;
        return {half_value((uint32_t)of[half] >> shift & 0xffff), half_value((uint32_t)of[2 + half] >> shift & 0xffff)};
    }

    template <band_kernels Kernels> halves weight(const lr_cuda_bands &pass, int number, int half, int k, int output)
    {
        if (Kernels == BAND_ONE) return one_weight(pass, number, half, k, output);
        const int4 spots = pass.spots[number];
        const int of[4] = {spots.x, spots.y, spots.z, spots.w};
        const int place = of[output / OCTET * 2 + half] - output % OCTET;
        const int32_t *kernels = kernel_at(pass, warp.octet * OCTET, warp.row);
        const int32_t kernel =
            Kernels == BAND_FORWARD ? kernels[pass.steps[number].kernel[half] + k] : own_kernels[output];
        const uint32_t both = pass.spans[place + k + kernel];
        return {half_value(both & 0xffff), half_value(both >> 16)};
    }

    void add(const lr_cuda_bands &pass, const uint16_t *column, int output, const halves &weight)
    {
        for (int z = 0; z < LR_CUDA_BAND_SLICES * pass.height; z++) {
            const double high = half_value(column[z * OCTET]);
            const double low = half_value(column[(pass.slices + z) * OCTET]);
            sums[z][output] +=
                slab.unit * weight_unit * (float)(high * weight.high + high * weight.low + low * weight.high);
        }
    }

    /* Reads the weights of a step as a device does before it knows whether the step belongs to the slab. */
    template <band_kernels Kernels> void look_ahead(const lr_cuda_bands &pass, int number)
    {
        const int outputs[2] = {0, OUTPUTS - 1}, sources[2] = {0, OCTET - 1};
        for (int k = 0; k < 8; k++) {
            const halves ahead = weight<Kernels>(pass, number, k % 2, sources[k / 2 % 2], outputs[k / 4]);
            if (!std::isfinite(ahead.high)) wrong_weights++;
        }
    }

    template <band_kernels Kernels> void multiply(const lr_cuda_bands &pass, int number, int next)
    {
        look_ahead<Kernels>(pass, next);
        for (int source = 0; source < 2 * OCTET; source++) {
            const int half = source / OCTET, k = source % OCTET;
            for (int output = 0; output < OUTPUTS; output++) {
                add(pass, numbers + OCTET * pass.steps[number + 1].source[half] + k, output,
                    weight<Kernels>(pass, number, half, k, output));
            }
        }
    }
};

/* A slab, surrounded by NaN. */
struct slab_room {
    std::vector<uint16_t> numbers;
    size_t first;
    int refused = 0;

    explicit slab_room(const lr_cuda_bands &pass)
        : numbers(2 * (size_t)pass.width * sorted_octet(pass.slices), 0x7e00),
          first((size_t)pass.width * sorted_octet(pass.slices) / 2)
    {
    }

    /* The copy that the hardware of tensor cores makes. */
    void bring(const lr_cuda_bands &pass, const lr_cuda_band_source &sorted, const int32_t at[3])
    {
        refused += pass.pitch % OCTET != 0 || pass.width > 256 || 2 * pass.slices > 256;
        uint16_t *to = numbers.data() + first;
        for (int octet = at[1]; octet < at[1] + pass.width; octet++) {
            for (int plane = 0; plane < 2; plane++)
                for (int z = at[0]; z < at[0] + pass.slices; z++, to += OCTET)
                    bring_slice(pass, sorted, {z, plane, octet, at[2]}, to);
        }
    }

    void bring_slice(const lr_cuda_bands &pass, const lr_cuda_band_source &sorted, const int (&at)[4], uint16_t *to)
    {
        const int slices = pass.layout.size[2], octets = pass.pitch / OCTET;
        const bool is_there =
            at[0] >= 0 && at[0] < slices && at[2] >= 0 && at[2] < octets && at[3] >= 0 && at[3] < pass.num_lattice_rows;
        const int64_t from = (((int64_t)at[3] * octets + at[2]) * 2 + at[1]) * slices + at[0];
        for (int k = 0; k < OCTET; k++) to[k] = is_there ? sorted.numbers[from * OCTET + k] : 0;
    }
};

void store(const lr_cuda_bands &pass, int slice, const products &of, float4 *target)
{
    for (int output = 0; output < OUTPUTS; output++) {
        const place at = place_of(of.warp, output);
        const int column = column_at(pass, at.l, at.row);
        for (int z = 0; column >= 0 && z < LR_CUDA_BAND_SLICES * pass.height && slice + z < pass.layout.size[2]; z++) {
            float *texels =
                reinterpret_cast<float *>(target + pass.layout.margin[0] + (int64_t)pass.layout.extent[0] * column);
            texels[slice + z] = of.sums[z][output];
        }
    }
}

products start(const lr_cuda_bands &pass, const band_warp &warp)
{
    products own = {};
    own.warp = warp;
    own.weight_unit = unit_of(*pass.peak);
    for (int output = 0; output < OUTPUTS && pass.num_rows > 1; output++) {
        const place at = place_of(warp, output);
        own.own_kernels[output] = *kernel_at(pass, at.l, at.row);
    }
    return own;
}

/* octets: the range of octets in the slab's row that the grid has, counted from the block's first octet. */
int count_idle(const lr_cuda_bands &pass, const band_warp &warp, const band_slab &slab, int2 octets)
{
    int count = 0;
    for (int k = slab.first; k < slab.end; k++) {
        bool is_idle = true;
        for (const int32_t source : pass.steps[k + 1].source) {
            const int of_octet = 2 * pass.slices, octet = warp.side + (int)std::floor((double)source / of_octet);
            is_idle = is_idle && (octet < octets.x || octet >= octets.y);
        }
        count += is_idle;
    }
    return count;
}

/* The first step that follows list d. */
int first_after(const lr_cuda_bands &pass, const band_block &block, const band_warp &warp, int d)
{
    return d + 1 < pass.num_lists ? band_slab_of(pass, block, warp, d + 1).first : pass.lists[d].y;
}

template <band_kernels Kernels>
void gather_block(const lr_cuda_bands &pass, const band_block &block, const lr_cuda_band_source &sorted,
                  slab_room &room, float4 *target)
{
    for (int number = 0; number < pass.sides * LR_CUDA_BAND_PAIRS; number++) {
        products own = start(pass, band_warp_at(pass, block, number));
        for (int d = 0; d < pass.num_lists; d++) {
            const int c = d + own.warp.pair * LR_CUDA_BAND_ROWS;
            band_slab slab = band_slab_of(pass, block, own.warp, d);
            slab.unit = slab_unit(pass, block, sorted, c);
            int32_t at[3];
            slab_begin(pass, block, c, at);
            room.bring(pass, sorted, at);
            if (slab.first < slab.end && slab.unit != 0) {
                idle_steps += count_idle(pass, own.warp, slab, slab_octets(pass, block, c));
                gather_band<Kernels>(pass, slab, room.numbers.data() + room.first,
                                     first_after(pass, block, own.warp, d), own);
            }
        }
        store(pass, block.slice, own, target);
    }
}

template <band_kernels Kernels> int bands(const lr_cuda_bands &pass, const lr_cuda_band_source &sorted, float4 *target)
{
    slab_room room(pass);
    for (int slice = 0; slice < pass.layout.size[2]; slice += LR_CUDA_BAND_SLICES * pass.height) {
        for (int k = 0; k < pass.num_tiles; k++) {
            const band_block block = {pass.tiles[k].x, pass.tiles[k].y, slice};
            gather_block<Kernels>(pass, block, sorted, room, target);
        }
    }
    return room.refused + wrong_weights + idle_steps;
}

template <int Kept>
void sort_row(const lr_cuda_bands &pass, const float *source, const lr_cuda_band_source &sorted, int number,
              sort_threads of)
{
    std::vector<row_sorter<Kept>> own((size_t)of.slices * of.groups + 3); /* a few more threads than needed */
    float peak = 0;
    for (size_t k = 0; k < own.size(); k++) {
        own[k].start(pass, sorted, number, of, (int)k);
        peak = std::max(peak, own[k].load(source));
    }
    if (!std::isfinite(peak)) {
        peak = 0;
        for (const row_sorter<Kept> &thread : own) peak = std::max(peak, thread.look_again(source));
    }
    for (row_sorter<Kept> &thread : own) thread.store(pass, source, sorted, peak);
    sorted.units[number] = unit_of(peak);
}

/* Sorts rows by fewer threads than there are octets, by more, and into memory that is already zero, one after the
   other. */
void sort_source(const lr_cuda_bands &pass, const float *source, lr_cuda_band_source sorted)
{
    const int slices = pass.layout.size[2], octets = pass.pitch / OCTET;
    const int64_t of_row = (int64_t)octets * sorted_octet(slices);
    for (int row = 0; row < pass.num_lattice_rows; row++) {
        sorted.is_clear = row % 3 == 2;
        if (sorted.is_clear) std::fill_n(sorted.numbers + row * of_row, of_row, 0);
        row % 3 == 0   ? sort_row<2>(pass, source, sorted, row, {5, 2})
        : row % 3 == 1 ? sort_row<1>(pass, source, sorted, row, {slices, octets + 1})
                       : sort_row<3>(pass, source, sorted, row, {slices + 1, 1});
    }
}

/* Data that the device computes. */
struct filled {
    std::vector<int2> tiles, cuts;
    std::vector<int4> bases;
    std::vector<int2> ranges;
    std::vector<int4> lists, spots, weights;
    std::vector<uint32_t> spans;
    std::vector<int32_t> kernels;
    float peak = 0;

    filled(const lr_cuda_bands &pass, const lr_cuda_band_fill &fill, const cpu_band_lists &lists_of)
        : weights((size_t)(fill.num_steps + 1) * LR_CUDA_BAND_ROWS * LR_CUDA_BAND_BLOCK),
          spans((size_t)pass.num_spans * pass.num_rows * pass.span_pitch),
          kernels((size_t)pass.num_kernel_rows * pass.kernel_pitch)
    {
        for (int k = 0; k < pass.num_tiles; k++)
            tiles.push_back(int2{lists_of.tiles[2 * k], lists_of.tiles[2 * k + 1]});
        for (int k = 0; k < pass.num_lists; k++) {
            const int32_t *list = lists_of.lists + 4 * k;
            lists.push_back(int4{list[0], list[1], list[2], list[3]});
        }
        for (int k = 0; k < pass.num_lists * pass.num_cuts; k++)
            cuts.push_back(int2{lists_of.cuts[2 * k], lists_of.cuts[2 * k + 1]});
        for (int k = 0; k < fill.num_steps + 2; k++) {
            const int32_t *of = lists_of.spots + 4 * k;
            spots.push_back(int4{of[0], of[1], of[2], of[3]});
        }
        for (int k = 0; k < pass.num_spans; k++)
            ranges.push_back(int2{lists_of.ranges[2 * k], lists_of.ranges[2 * k + 1]});
        for (int k = 0; k < pass.num_lattice_rows; k++) {
            const int32_t *base = lists_of.bases + 4 * k;
            bases.push_back(int4{base[0], base[1], base[2], base[3]});
        }
        for (int64_t k = 0; k < (int64_t)fill.num_offsets * pass.num_rows; k++) peak = std::max(peak, fill.values[k]);
    }
};

void fill_tables(const lr_cuda_bands &pass, const lr_cuda_band_fill &fill, bool forward)
{
    const int64_t weights = (int64_t)(fill.num_steps + 1) * LR_CUDA_BAND_ROWS * LR_CUDA_BAND_BLOCK;
    const int64_t entries = (int64_t)pass.num_spans * pass.num_rows * pass.span_pitch;
    for (int64_t k = 0; k < weights && pass.num_rows == 1; k++) fill_band_weights(pass, fill, forward, k);
    for (int64_t k = 0; k < entries && pass.num_rows > 1; k++) fill_band_span(pass, fill, forward, k);
    const int64_t kernels = (int64_t)pass.num_kernel_rows * pass.kernel_pitch;
    for (int64_t k = 0; k < kernels && pass.num_rows > 1; k++) fill_band_kernel(pass, fill, k);
}

} // namespace

int on_cpu_bands(bool forward, lr_cuda_bands pass, lr_cuda_band_fill fill, const cpu_band_lists *lists,
                 const float *source, float *target)
{
    filled own(pass, fill, *lists);
    pass.steps = lists->steps;
    pass.lists = own.lists.data();
    pass.cuts = own.cuts.data();
    pass.tiles = own.tiles.data();
    pass.bases = own.bases.data();
    pass.weights = fill.weights = own.weights.data();
    pass.spans = fill.spans = own.spans.data();
    pass.spots = own.spots.data();
    fill.ranges = own.ranges.data();
    pass.kernels = fill.kernels = own.kernels.data();
    pass.peak = fill.peak = &own.peak;
    fill_tables(pass, fill, forward);
    return on_cpu_filled_bands(forward, &pass, source, target);
}

void on_cpu_band_fills(const lr_cuda_view_fill *views, const lr_cuda_fill_sizes *sizes)
{
    for (int view = 0; view < sizes->num_views; view++)
        for (int forward = 0; forward < 2 && views[view].bands[0].num_tiles > 0; forward++)
            fill_tables(views[view].bands[forward], views[view].band_fills[forward], forward != 0);
}

int on_cpu_filled_bands(bool forward, const lr_cuda_bands *filled, const float *source, float *target)
{
    const lr_cuda_bands &pass = *filled;
    std::vector<float> units(pass.num_lattice_rows);
    std::vector<uint16_t> numbers((size_t)2 * pass.num_lattice_rows * pass.layout.size[2] * pass.pitch, 0x7e00);
    const lr_cuda_band_source sorted = {numbers.data(), units.data(), false};
    sort_source(pass, source, sorted);
    float4 *to = reinterpret_cast<float4 *>(target);
    return pass.num_rows == 1 ? bands<BAND_ONE>(pass, sorted, to)
           : forward          ? bands<BAND_FORWARD>(pass, sorted, to)
                              : bands<BAND_BACK>(pass, sorted, to);
}
