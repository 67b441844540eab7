// A variable as it travels between a trainer and a server: under a name that both know, of a type that both
// declare.
//
//   PENSTOCK_ASSIGN_OR_RETURN(PieceType piece, PieceOf(program, 0, "w@GRAD.block0", "w@GRAD.block0"));
//   piece.ToString()                     // "w@GRAD.block0 : f32[7, 2048]"
#pragma once

#include <string>

#include "framework/base/status.h"
#include "framework/tensor/dtype.h"
#include "framework/tensor/shape.h"
#include "framework/text/compression.h"

namespace penstock {
class Op;
class Program;
}  // namespace penstock

namespace penstock::roles {

struct PieceType {
  std::string name;
  DType dtype = DType::kFp32;
  Shape shape;
  bool rows = false;             // travels as some rows of it: a sparse gradient
  Compression compression = {};  // of a dense f32 gradient, on its way
  // "w : f32[7, 2048]", "w@GRAD : rows<f32[7, 2048]>", "w@GRAD : f32[7, 2048] as two_bit 0.5"
  std::string ToString() const;
};

// The variable `local` as a block sees it, as the message that is called `remote`. kInvalidArgument:
// E-contract-var (it is not declared as a tensor or rows), E-contract-shape (an extent is not known, or is
// 0).
Result<PieceType> PieceOf(const Program& program, int block, const std::string& local,
                          const std::string& remote);

// With the user's line, where the op has one.
Status AddPlace(Status status, const Op& op);

}  // namespace penstock::roles
