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

/* An operator's CUDA places, one for each stream on which an array was passed. Only one thread at a time uses them. */
class CudaPlaces
{
  public:
    explicit CudaPlaces(const lr_log *log) : log(log) {}
    ~CudaPlaces();
    CudaPlaces(const CudaPlaces &) = delete;
    CudaPlaces &operator=(const CudaPlaces &) = delete;

    /* Returns the place of a device and a cudaStream_t, and keeps it. errors: NULL, logged. */
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

/* The requirements of an argument. */
struct Wanted {
    const char *name;     /* the argument's name, for messages */
    const Shape *shape;   /* the exact shape; -1 = any number along an axis */
    bool doubles = false; /* float64 is allowed besides float32 */
    bool writes = false;  /* the argument is an output */
    bool cuda = false;    /* arrays on a CUDA device are allowed */
};

/* An argument that is an array: float32 in C order, of the required shape. This object keeps the array's memory alive.
 * Arrays on a CUDA device are requested on the current stream of their library, so that work queued there runs first
 * (loraster._arrays.on_stream).
 * throws: TypeError for an object that is no array, or has other numbers; ValueError for another shape, stride or
 * device, and for an output that is read-only. The message says how to call the function. */
class Array
{
  public:
    Array() = default;
    Array(nb::handle object, const Wanted &wanted);
    Array(Array &&) = default;
    Array &operator=(Array &&) = default;

    bool is_cuda() const { return device >= 0; }

    /* Makes the array's vector. An array on a CUDA device is wrapped at one of the operator's places. The caller need
     * not hold the interpreter's lock. errors: LR_NO_DEVICE, LR_FAILED, logged; *vector is zero. */
    lr_status vector(CudaPlaces *places, const lr_log *log, lr_vector *vector);

    /* Waits for work on the array, if the array's library does not know the stream and would not wait. errors: as
     * lr_vector_copy. */
    lr_status finish();

    /* Frees the vector of a wrapped array. This must happen before the places are closed. */
    void unwrap() { lr_vector_destroy(&wrapped); }

    const float *floats() const { return static_cast<const float *>(memory); }
    int64_t count() const { return num; } /* how many numbers the array has */

  private:
    void take(const struct View &view, const Wanted &wanted);

    nb::object capsule;       /* the DLPack capsule, if the array has one */
    nb::ndarray<nb::ro> held; /* else the array by the buffer protocol or __cuda_array_interface__ */
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

/* Writes a shape as Python does, such as "(4, 20, 20)". */
std::string shape_text(const int64_t *shape, size_t num_dims);

/* Makes a NumPy array that owns the numbers from then on. */
template <class Number> nb::object numpy_array(std::vector<Number> &&numbers, std::initializer_list<size_t> shape)
{
    auto *owner = new std::vector<Number>(std::move(numbers));
    nb::capsule owned(owner, [](void *vector) noexcept { delete static_cast<std::vector<Number> *>(vector); });
    return nb::cast(nb::ndarray<nb::numpy, Number>(owner->data(), shape.size(), shape.begin(), owned));
}

#endif
