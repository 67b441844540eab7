// The types of a plan, each once: most values of a program share a few.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "framework/base/flat_index.h"
#include "framework/op/tensor_desc.h"

namespace penstock::exec {

class TypeTable {
 public:
  // `types`: where the types are kept; they are added here only.
  explicit TypeTable(std::vector<TensorDesc>& types) : types_(types) {}
  // The position of a type, which is added if it is new.
  int IndexOf(const TensorDesc& type);

 private:
  std::vector<TensorDesc>& types_;
  FlatIndex index_;
};

}  // namespace penstock::exec
