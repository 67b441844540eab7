// Parses lines of MultiSlot text: for each slot a count and that many numbers, separated by white space.
//
//   Parser parser(format);
//   std::string record;
//   PENSTOCK_RETURN_IF_ERROR(parser.Parse("2 1926 817 1 0.5", record));    // as Records takes it
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

  // Replaces `record`. Integers have 64 bits, signed or unsigned, and are stored as their bits. Text beyond
  // the slots is ignored; `rest` tells whether there was any.
  //
  // kInvalidArgument, "slot click: ...": E-dataset-count (the count is missing or not positive),
  // E-dataset-short (fewer numbers than the count), E-dataset-number (not a number, or out of range),
  // E-dataset-width (not the width of a dense slot).
  Status Parse(std::string_view line, std::string& record, bool& rest) const;

 private:
  Format format_;
};

}  // namespace penstock::dataset
