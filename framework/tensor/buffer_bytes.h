// Counts the memory of all buffers of this process that own theirs: tensors, arenas, workspaces.
//
//   ResetPeakOfBuffers();
//   ...                                   // a run
//   HeldByBuffers().peak                  // bytes, at most at one time
//
// Memory that a buffer borrows, such as an array of the caller, and oneDNN's own memory are not included.
#pragma once

#include <cstddef>

namespace penstock {

struct BufferBytes {
  std::size_t now = 0;
  std::size_t peak = 0;  // the most since the last reset, or since the process began
};

// Thread-safe; allocations at the same time may be in the result or not.
BufferBytes HeldByBuffers();
// Sets the peak to what is held now.
void ResetPeakOfBuffers();

}  // namespace penstock
