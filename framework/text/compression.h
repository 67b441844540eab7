// How gradients are compressed on their way to pservers, as a value and as text.
//
//   PENSTOCK_ASSIGN_OR_RETURN(CompressionRules rules, ParseCompression("two_bit 0.5 from 4096, fc.w: none"));
//   rules.Of("fc.w", 100000)     // none: the name has a rule of its own
//   rules.Of("conv.w", 100000)   // two_bit 0.5
//   rules.Of("conv.b", 64)       // none: fewer than 4096 elements
//   rules.ToString()             // the same text, names in order
//
// The user's rules name parameters. Those of a role program name what it pushes, or receives, and nothing
// else (policies.h).
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

// Of one fp32 gradient.
//
//   kFp16, kBf16  each element is rounded to the nearest of 16 bits, ties to even
//   kTwoBit       as MXNet's gradient_compression of type 2bit: the gradient is added to the residual;
//                 of that an element >= threshold is sent as +threshold, one <= -threshold as -threshold,
//                 others as 0, and what is sent is taken from the residual
//   kTopK         as deep gradient compression without its momentum: the gradient is added to the residual;
//                 of each message, a chunk of rows that its server updates as one, the
//                 max(1, ceil(ratio * elements)) elements of largest magnitude are sent as they are, and
//                 become 0 in the residual
struct Compression {
  enum class Kind { kNone, kFp16, kBf16, kTwoBit, kTopK };
  Kind kind = Kind::kNone;
  float threshold = 0.5f;  // of kTwoBit; above 0
  float ratio = 0.01f;     // of kTopK: the part of the elements that is sent; above 0, at most 1

  bool none() const { return kind == Kind::kNone; }
  // Whether what is not sent is kept in a residual of the trainer and sent later.
  bool HasResidual() const { return kind == Kind::kTwoBit || kind == Kind::kTopK; }
  // How many of `elements` are in one message.
  std::int64_t Sent(std::int64_t elements) const;
  // What they take there. kTwoBit: words of 4 bytes with 16 elements each; kTopK: 4 bytes of
  // index and 4 of value for each that is sent.
  std::int64_t Bytes(std::int64_t elements) const;
  std::string ToString() const;  // "two_bit 0.5"
  // Parameters of other kinds do not count.
  friend bool operator==(const Compression& a, const Compression& b);
};

// kInvalidArgument E-compression-value: threshold or ratio out of range. `what` begins the message.
Status ValidateCompression(std::string_view what, const Compression& compression);

struct CompressionRules {
  Compression all;                                          // of gradients with at least `min_size` elements
  std::int64_t min_size = 0;                                // at least 0
  std::map<std::string, Compression, std::less<>> by_name;  // instead, whatever the size

  bool empty() const { return all.none() && by_name.empty(); }
  Compression Of(std::string_view name, std::int64_t elements) const;
  std::string ToString() const;  // empty if there is no rule
  friend bool operator==(const CompressionRules&, const CompressionRules&) = default;
};

// kInvalidArgument: E-text-syntax shows the place; E-compression-value.
Result<CompressionRules> ParseCompression(std::string_view text);

// w@RESIDUAL: where a trainer keeps what compression has not sent of the gradient of parameter w. f32, of the
// parameter's shape, persistable: part of the trainer's state, slices or not.
std::string ResidualName(std::string_view param);

}  // namespace penstock
