// Reads lines of MultiSlot text: for each slot a count and as many numbers, apart by white space.
//
//   Parser parser(format);
//   std::string record;
//   PENSTOCK_RETURN_IF_ERROR(parser.Parse("2 1926 817 1 0.5", record));    // as Records takes it
//
// Takes any bytes; its cost is that of the line's length, whatever the counts in it are.
#pragma once

#include <string>
#include <string_view>

#include "executor/dataset/slots.h"
#include "framework/base/status.h"

namespace penstock::dataset {

class Parser {
 public:
  // `format` was checked (CheckFormat).
  explicit Parser(Format format) : format_(std::move(format)) {}

  const Format& format() const { return format_; }

  // Replaces `record`. Whole numbers are of 64 bits, with a sign or without one, and kept as their bits.
  // What a line has beyond the slots is left out; `rest` says whether there was something.
  //
  // kInvalidArgument, "slot click: ...": E-dataset-count (no count, or none from 1 on), E-dataset-short
  // (fewer numbers than the count), E-dataset-number (no number, or out of range), E-dataset-width (other
  // than a dense slot's).
  Status Parse(std::string_view line, std::string& record, bool& rest) const;

 private:
  Format format_;
};

}  // namespace penstock::dataset
