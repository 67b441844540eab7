// Files of arrays for other programs: NumPy's, with one array, and safetensors, with several by name.
//
//   NumpyHead(DType::kFp32, {2, 3})                        // what precedes the 24 bytes of the elements
//   SafetensorsHead({{"t.ids", DType::kInt64, {2}}, {"t", DType::kFp32, {2, 16}}}, {{"step", "60"}})
//
// A safetensors file is the length of a JSON object in 8 bytes, the object, and the arrays' elements in the
// order of the list: "data_offsets" count from the end of the object. "__metadata__" has texts by name.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "framework/tensor/dtype.h"
#include "framework/tensor/shape.h"

namespace penstock::checkpoint {

struct ArrayType {
  std::string name;
  DType type = DType::kFp32;
  Shape shape;
};

std::string NumpyHead(DType type, const Shape& shape);
std::string SafetensorsHead(const std::vector<ArrayType>& arrays,
                            const std::map<std::string, std::string>& metadata);

}  // namespace penstock::checkpoint
