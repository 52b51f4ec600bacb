/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_PYTHON_ARRAYS_H
#define LR_PYTHON_ARRAYS_H

#include <lr/vector.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <vector>

namespace nb = nanobind;

/* Arrays of Python's libraries as vectors of the library, without a copy. */

using Shape = std::vector<int64_t>;

/* CUDA places of an operator, one for each stream that arrays came on. Used by one thread at a time. */
class CudaPlaces
{
  public:
    explicit CudaPlaces(const lr_log *log) : log(log) {}
    ~CudaPlaces();
    CudaPlaces(const CudaPlaces &) = delete;
    CudaPlaces &operator=(const CudaPlaces &) = delete;

    /* The place of that device and cudaStream_t. Kept. errors: NULL, logged. */
    lr_place *at(int device, void *stream);

    lr_traffic traffic() const;

  private:
    struct Kept {
        int device;
        void *stream;
        lr_place *place;
    };
    const lr_log *log;
    std::vector<Kept> kept;
};

/* What an argument must be. */
struct Wanted {
    const char *name;     /* of the argument, for sentences */
    const Shape *shape;   /* exactly; -1 = any number */
    bool doubles = false; /* float64 is taken, too */
    bool writes = false;  /* the argument is an output */
    bool cuda = false;    /* arrays of a CUDA device are taken, too */
};

/* An argument that is an array: float32 in C order, of the shape wanted. It is held, and keeps its memory, as long as
 * this object. Arrays on a CUDA device are asked for on the current stream of their library, so that what was queued
 * there comes first (loraster._arrays.on_stream).
 * throws: TypeError for what is no array or has other numbers; ValueError for other shapes, strides and devices and
 * for outputs that are read-only. The sentence says what to write. */
class Array
{
  public:
    Array() = default;
    Array(nb::handle object, const Wanted &wanted);
    Array(Array &&) = default;
    Array &operator=(Array &&) = default;

    bool is_cuda() const { return device >= 0; }

    /* The vector. Arrays on a CUDA device are wrapped at one of the operator's places. Needs no lock of the
     * interpreter. errors: LR_NO_DEVICE, LR_FAILED, logged; *vector is zero. */
    lr_status vector(CudaPlaces *places, const lr_log *log, lr_vector *vector);

    /* Waits for work on the array where its library will not, because it knows nothing of the stream. errors: as
     * lr_vector_copy. */
    lr_status finish();

    /* Lets go of a wrapped array, before the places do. */
    void unwrap() { lr_vector_destroy(&wrapped); }

    const float *floats() const { return static_cast<const float *>(memory); }
    int64_t count() const { return num; } /* numbers */

  private:
    void take(const struct View &view, const Wanted &wanted);

    nb::object capsule;       /* DLPack's; or, for arrays without it: */
    nb::ndarray<nb::ro> held; /* by the buffer protocol or __cuda_array_interface__ */
    void *memory = nullptr;
    int64_t num = 0;
    lr_precision precision = LR_FLOAT32;
    int device = -1; /* CUDA's number; -1 = the host */
    void *stream = nullptr;
    bool is_ordered = true; /* the array's library queues its own work on the stream */
    lr_vector wrapped = {};
};

/* A host array of numbers of one type with `columns` numbers in each row (0 = one-dimensional), in C order. */
template <class Number>
nb::ndarray<const Number, nb::c_contig, nb::device::cpu, nb::ro> rows_of(nb::handle object, const char *name,
                                                                         int64_t columns);

/* "(4, 20, 20)". */
std::string shape_text(const int64_t *shape, size_t num_dims);

/* A NumPy array that takes over the numbers. */
template <class Number> nb::object numpy_array(std::vector<Number> &&numbers, std::initializer_list<size_t> shape)
{
    auto *owner = new std::vector<Number>(std::move(numbers));
    nb::capsule owned(owner, [](void *vector) noexcept { delete static_cast<std::vector<Number> *>(vector); });
    return nb::cast(nb::ndarray<nb::numpy, Number>(owner->data(), shape.size(), shape.begin(), owned));
}

#endif
