// The compression of gradients that trainers send to pservers, as a value and as text.
//
//   PENSTOCK_ASSIGN_OR_RETURN(CompressionRules rules, ParseCompression("two_bit 0.5 from 4096, fc.w: none"));
//   rules.Of("fc.w", 100000)     // none: the name has a rule of its own
//   rules.Of("conv.w", 100000)   // two_bit 0.5
//   rules.Of("conv.b", 64)       // none: fewer than 4096 elements
//   rules.ToString()             // the same text, names in order
//
// The user's rules name parameters. Those of a role program name only the variables that it pushes or
// receives (policies.h).
//
//   rules = [ rule { "," rule } ]
//   rule  = how [ "from" elements ]  |  name ":" how         # at most one without a name
//   how   = "none" | "fp16" | "bf16" | "two_bit" [ threshold ] | "top_k" [ ratio ]
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "framework/base/status.h"

namespace penstock {

// The compression of one fp32 gradient.
//
//   kFp16, kBf16  each element is rounded to the nearest 16-bit value, ties to even
//   kTwoBit       as MXNet's gradient_compression of type 2bit: the gradient is added to the residual; an
//                 element >= threshold is sent as +threshold, an element <= -threshold as -threshold, other
//                 elements as 0; the sent values are subtracted from the residual
//   kTopK         as deep gradient compression, without its momentum: the gradient is added to the residual;
//                 in each message (one chunk of rows), the max(1, ceil(ratio * elements)) elements of largest
//                 magnitude are sent unchanged and become 0 in the residual
struct Compression {
  enum class Kind { kNone, kFp16, kBf16, kTwoBit, kTopK };
  Kind kind = Kind::kNone;
  float threshold = 0.5f;  // of kTwoBit; above 0
  float ratio = 0.01f;     // of kTopK: the fraction of the elements that is sent; above 0, at most 1

  bool none() const { return kind == Kind::kNone; }
  // Whether the trainer keeps the unsent part in a residual and sends it later.
  bool HasResidual() const { return kind == Kind::kTwoBit || kind == Kind::kTopK; }
  // The number of elements that a message sends for a chunk of `elements`.
  std::int64_t Sent(std::int64_t elements) const;
  // The bytes of that message. kTwoBit: words of 4 bytes with 16 elements each; kTopK: 4 bytes of index and 4
  // of value for each sent element.
  std::int64_t Bytes(std::int64_t elements) const;
  std::string ToString() const;  // "two_bit 0.5"
  // Ignores parameters of other kinds.
  friend bool operator==(const Compression& a, const Compression& b);
};

// kInvalidArgument E-compression-value: threshold or ratio out of range. `what` begins the message.
Status ValidateCompression(std::string_view what, const Compression& compression);

struct CompressionRules {
  Compression all;                                          // of gradients with at least `min_size` elements
  std::int64_t min_size = 0;                                // at least 0
  std::map<std::string, Compression, std::less<>> by_name;  // takes precedence, for any size

  bool empty() const { return all.none() && by_name.empty(); }
  Compression Of(std::string_view name, std::int64_t elements) const;
  std::string ToString() const;  // empty if there is no rule
  friend bool operator==(const CompressionRules&, const CompressionRules&) = default;
};

// kInvalidArgument: E-text-syntax, with the place; E-compression-value.
Result<CompressionRules> ParseCompression(std::string_view text);

// w@RESIDUAL: the trainer's variable for the unsent part of the gradient of parameter w. f32, of the
// parameter's shape, persistable: part of the trainer's state, whether w is sliced or not.
std::string ResidualName(std::string_view param);

}  // namespace penstock
