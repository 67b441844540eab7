// What a line of MultiSlot text holds, and what a batch makes of it.
//
//   2 1926 817 1 0.5        with the slots words (integers, a sequence) and price (floats, dense, width 1)
//
// is an instance: for each slot a count and as many numbers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/tensor/shape.h"

namespace penstock::dataset {

struct Slot {
  std::string name;
  bool is_float = false;  // f32; else i64
  bool used = true;       // batches have a tensor of it
  bool dense = false;     // extents of an instance follow; else it is a sequence of one number or more
  Shape extents = {};     // all known

  Dim width() const { return extents.Count(); }  // numbers of an instance, of a dense slot
};

struct Format {
  std::vector<Slot> slots;
  // Zeros in sequences are dropped, and a sequence of nothing else is a single zero.
  bool drops_zeros = false;
  // Lines begin with "1 <id>": a text that tells instances apart.
  bool has_ids = false;
};

// kInvalidArgument E-dataset-slots: there are none, a name is there twice, an extent is unknown or zero.
Status CheckFormat(const Format& format);

}  // namespace penstock::dataset
