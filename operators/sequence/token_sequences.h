// Sequences of tokens, given by LoD, or as the rows of a padded matrix with their lengths.
#pragma once

#include <string>
#include <utility>

#include "operators/common/lod.h"

namespace penstock {

class TokenSequences {
 public:
  // `length` names the slot of the lengths. If it has an argument, the sequences are padded.
  Status Prepare(const KernelSetup& k, std::string_view slot, std::string_view length) {
    tokens_.Prepare(k, slot);
    const Argument& lengths = k.Input(length);
    length_ = lengths;
    what_ = StrCat(k.op().type(), ": ", length);
    const Shape& shape = k.Input(slot).shape;
    if (!length_) return OkStatus();
    if (shape.rank() < 2)
      return k.Error(slot, " (", shape, ") must be [sequences, steps] where ", length, " is given");
    rows_ = shape[0];
    padded_length_ = shape[1];
    if (lengths.shape.Count() == rows_) return OkStatus();
    return k.Error(length, " (", lengths.shape, ") must have one element for each of the ", shape[0],
                   " sequences of ", slot);
  }
  const Operand& operand() const { return tokens_.operand(); }
  bool padded() const { return static_cast<bool>(length_); }
  // Returns the number of columns of a padded matrix.
  Dim padded_length() const { return padded_length_; }

  // Finds and checks the sequences of this run.
  Status Find(KernelRun& k) {
    if (!padded()) {
      PENSTOCK_ASSIGN_OR_RETURN(offsets_, tokens_.Innermost(k));
      return OkStatus();
    }
    lengths_ = &std::as_const(k[length_]);
    for (Dim s = 0; s < count(); ++s) {
      if (length(s) >= 0 && length(s) <= padded_length()) continue;
      return InvalidArgument("E-op-index", what_, ": sequence ", s, " has length ", length(s),
                             "; it must be in [0, ", padded_length(), "]");
    }
    return OkStatus();
  }
  Dim count() const { return padded() ? rows_ : offsets_.count(); }
  Dim begin(Dim s) const { return padded() ? s * padded_length() : offsets_.begin(s); }
  Dim length(Dim s) const {
    if (!padded()) return offsets_.length(s);
    return lengths_->dtype() == DType::kInt64 ? lengths_->Data<std::int64_t>()[s]
                                              : Dim{lengths_->Data<std::int32_t>()[s]};
  }

 private:
  SequenceInput tokens_;
  Operand length_;
  Dim rows_ = 0, padded_length_ = 0;
  std::string what_;
  Offsets offsets_;
  const Tensor* lengths_ = nullptr;  // i64 or i32
};

}  // namespace penstock
