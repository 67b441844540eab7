// How a contract's pieces are read from a program: what both sides' readers share.
#pragma once

#include <string>
#include <vector>

#include "executor/protocol/contract.h"
#include "framework/ir/program.h"

namespace penstock::protocol {

void SortByName(std::vector<ContractPiece>& pieces);

// The variable `local` of a block, as the message that is called `remote`. kInvalidArgument: E-contract-var,
// E-contract-shape.
Result<ContractPiece> PieceOf(const Program& program, int block, const std::string& local,
                              const std::string& remote);

// With the user's line, where the op has one.
Status AddPlace(Status status, const Op& op);

}  // namespace penstock::protocol
