// Reads NumPy's .npz: a zip archive of .npy arrays, stored or deflated.
//
//   PENSTOCK_ASSIGN_OR_RETURN(Arrays arrays, ReadNpz(BytesOf("case.npz")));
//   const Tensor& x = arrays.at("in:X_0");
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "framework/base/status.h"
#include "framework/tensor/tensor.h"

namespace penstock::test {

using Arrays = std::map<std::string, Tensor, std::less<>>;

// The arrays by name, without ".npy". Supports little-endian, row-major arrays of Tensor's element types.
Result<Arrays> ReadNpz(std::string_view bytes);
Result<Tensor> ReadNpy(std::string_view bytes);

}  // namespace penstock::test
