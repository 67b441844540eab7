// Parses lines of MultiSlot text: for each slot a count and that many numbers, separated by white space.
//
//   Parser parser(format);
//   std::string record;                                                    // in the form that Records takes
//   bool rest = false;
//   PENSTOCK_RETURN_IF_ERROR(parser.Parse("2 1926 817 1 0.5", record, rest));
//
// Accepts any bytes; the cost is proportional to the line's length, whatever its counts are.
#pragma once

#include <string>
#include <string_view>

#include "executor/dataset/slots.h"
#include "framework/base/status.h"

namespace penstock::dataset {

class Parser {
 public:
  // `format` must have passed CheckFormat.
  explicit Parser(Format format) : format_(std::move(format)) {}

  const Format& format() const { return format_; }

  // Replaces `record` by the line's instance. Integers have 64 bits, signed or unsigned, and are stored as
  // their bits. Text after the last slot is ignored; `rest` tells whether there was any.
  //
  // kInvalidArgument, with a text that names the slot: E-dataset-count (the count is missing or not
  // positive), E-dataset-short (fewer numbers than the count), E-dataset-number (not a number, or out of
  // range), E-dataset-width (the count is not the width of a dense slot).
  Status Parse(std::string_view line, std::string& record, bool& rest) const;

 private:
  Format format_;
};

}  // namespace penstock::dataset
