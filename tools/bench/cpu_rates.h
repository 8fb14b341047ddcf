// The rates at which the processor's cores move bytes and evaluate sigmoids, measured, from which
// `bench` computes its floors.
#pragma once

namespace rk {

// Bytes per second, read and written, of all threads together, for arrays of that size, since
// arrays that fit into the caches are faster.
double cpu_copy_rate(int threads, double array_bytes);

// Sigmoids per second of all threads together, on data that stays in the L1 cache: those of the row
// kernels, and scalar ones by the C library. Their ratio shows whether the row kernels' loops are
// vectorised.
double row_sigmoid_rate(int threads);
double scalar_sigmoid_rate(int threads);

}  // namespace rk
