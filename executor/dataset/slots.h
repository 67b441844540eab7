// The content of a line of MultiSlot text, and of the batches made from it.
//
//   2 1926 817 1 0.5        with the slots words (integers, a sequence) and price (floats, dense, width 1)
//
// is an instance: for each slot a count and that many numbers.
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
  bool used = true;       // batches have a tensor for it
  bool dense = false;     // an instance has the extents below; else it is a sequence of one or more numbers
  Shape extents = {};     // all known

  Dim width() const { return extents.Count(); }  // numbers per instance of a dense slot
};

struct Format {
  std::vector<Slot> slots;
  // Zeros in sequences are dropped; a sequence of zeros only becomes a single zero.
  bool drops_zeros = false;
  // Lines begin with "1 <id>", a text that identifies the instance.
  bool has_ids = false;
  // Then follows "1 <content>", a text that Fluid dumps beside the instance; it is skipped.
  bool has_contents = false;
};

// kInvalidArgument E-dataset-slots: there are no slots, a name is duplicate, an extent is unknown or zero.
Status CheckFormat(const Format& format);

}  // namespace penstock::dataset
