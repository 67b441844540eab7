// The declaration of a variable: its kind, element type and shape, and facts for which Fluid's format has no
// field.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "framework/base/box.h"
#include "framework/base/word.h"
#include "framework/tensor/dtype.h"
#include "framework/tensor/shape.h"

namespace penstock {

// The numbers of the wire form.
enum class VarKind : std::int32_t {
  kTensor = 7,
  kSelectedRows = 8,
  kFeed = 9,
  kFetch = 10,
  kStepScopes = 11,
  kRankTable = 12,
  kTensorArray = 13,
  kPlaceList = 14,
  kReader = 15,
  kRaw = 17,
  kTuple = 18,
};

// Element type and shape, for kinds that have them (a control variable does not).
struct TensorType {
  DType dtype = DType::kFp32;
  Shape shape;
  std::int32_t lod_level = 0;
  bool has_lod_level = false;  // the field is present in the file (Fluid writes it even when 0)
  friend bool operator==(const TensorType&, const TensorType&) = default;
};

// The rows of a whole variable from which a slice takes its initial value.
struct InitialSlice {
  std::string whole;
  Shape whole_shape;
  std::int64_t row_begin = 0;
  std::int64_t row_end = 0;
  friend bool operator==(const InitialSlice&, const InitialSlice&) = default;
};

// Stored in ProgramExtra.
struct VarFacts {
  bool is_parameter = false;
  bool trainable = true;
  bool is_distributed = false;
  float learning_rate = 1.0f;  // multiplies the optimizer's
  bool stop_gradient = false;
  bool is_data = false;  // declared by layers.data: must be fed
  Box<InitialSlice> slice;
  friend bool operator==(const VarFacts&, const VarFacts&) = default;
};

struct Var {
  std::string name;
  VarKind kind = VarKind::kTensor;
  std::optional<TensorType> type;  // for tensors, selected rows and arrays
  std::vector<TensorType> reader;  // for readers
  std::vector<DType> tuple;        // for tuples
  bool persistable = false;
  bool has_persistable = true;  // the field is present in the file, also when false
  bool need_check_feed = false;
  bool has_need_check_feed = false;
  VarFacts facts;
  // The VarDesc's bytes as read, if it would be written differently; code that changes a Var must clear it.
  Word wire_bytes;

  bool HasShape() const { return type.has_value(); }
  const Shape& shape() const;  // the empty shape if it has none
  // Compares name, kind, type, persistable and need_check_feed; ignores presence bits and facts.
  bool SameAs(const Var& other) const;
};

using VarRef = std::shared_ptr<const Var>;

// A tensor variable with the presence bits that Fluid sets.
Var TensorVar(std::string name, DType dtype, Shape shape, std::int32_t lod_level = 0);
Var ControlVar(std::string name);

}  // namespace penstock
