// A variable that a trainer and a server exchange: the name of its message and the type that both declare.
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
  bool rows = false;             // sent as selected rows: a sparse gradient
  Compression compression = {};  // of the message, for a dense f32 gradient
  // "w : f32[7, 2048]", "w@GRAD : rows<f32[7, 2048]>", "w@GRAD : f32[7, 2048] as two_bit 0.5"
  std::string ToString() const;
};

// Returns the type of the variable `local`, visible from the block, under the name `remote`.
// kInvalidArgument: E-contract-var (it is not declared as a tensor or selected rows), E-contract-shape (an
// extent is unknown or 0).
Result<PieceType> PieceOf(const Program& program, int block, const std::string& local,
                          const std::string& remote);

// Adds the op's user line to an error, if the op has one.
Status AddPlace(Status status, const Op& op);

}  // namespace penstock::roles
