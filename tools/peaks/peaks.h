// Measures what this machine can do at most: the speed of a product of large matrices, and that of a copy.
//
//   const Peaks peaks = MeasurePeaks(2);                  // about 0.2 s
//   peaks.flops / 1e9                                     // GFLOP/s of two threads
//
// With one thread, times are the thread's CPU time, which other processes disturb less; with more, wall-clock
// time. Measures on the calling thread and a team of OpenMP; call it from one thread at a time.
#pragma once

namespace penstock::bench {

// Both are per second.
struct Peaks {
  double flops = 0;  // multiplications and additions of float32
  double bytes = 0;  // read and written, of memory that no cache holds
};

// The larger of several samples each.
Peaks MeasurePeaks(int threads);

// As many threads as the executor uses by default: OMP_NUM_THREADS, else all cores.
int DefaultThreads();

// The seconds in which a copy moves that many bytes, half of them read and half written: the least of several
// samples.
double CopySeconds(double bytes, int threads);

// The seconds of a floating-point operation within oneDNN's sgemm of 768 x 768 matrices.
double SecondsPerFlop(int threads);

}  // namespace penstock::bench
