// The byte format of saved tensors, as Fluid 1.8 writes it (little endian):
//
//   tensor file    u32 0 | u64 levels | per level: u64 bytes, u64 offsets... | tensor
//   rows file      u32 0 | u64 rows | i64 row ids... | i64 height | tensor
//   tensor         u32 0 | i32 n | n bytes of VarType.TensorDesc | elements, row-major
//
// Reading checks every size against the remaining bytes before it allocates. kDataLoss says what is wrong and
// at which byte.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/tensor/variable.h"

namespace penstock {

void AppendTensor(std::string& out, const Tensor& tensor);  // a tensor file's bytes, LoD included
void AppendSelectedRows(std::string& out, const SelectedRows& rows);

// The same bytes as pieces, in their order. `heads`, an empty string, takes those that do not lie in the
// value. Valid as long as both.
std::vector<std::string_view> PiecesOf(const Tensor& tensor, std::string& heads);
std::vector<std::string_view> PiecesOf(const SelectedRows& rows, std::string& heads);

// Reads one record from the front of `bytes` and removes it from there; repeat this to read a combined
// file.
Result<Tensor> ReadTensor(std::string_view& bytes);
Result<SelectedRows> ReadSelectedRows(std::string_view& bytes);

}  // namespace penstock
