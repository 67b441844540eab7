// What a trainer exchanges with servers: the first part of RpcClient. A kernel declares its pieces when it is
// prepared, and gets the handles that the calls of a step take.
//
//   const RemotePiece piece{server, "w@GRAD.trainer_0", DType::kFp32, {13, 1}, trainer_id};
//   PENSTOCK_ASSIGN_OR_RETURN(push_, contracts.DeclarePush(piece));
#pragma once

#include <string>
#include <vector>

#include "framework/base/status.h"
#include "framework/tensor/dtype.h"
#include "framework/tensor/shape.h"

namespace penstock {

class Program;

struct RemotePiece {
  std::string pserver;  // "host:port"
  std::string name;     // the variable's name on the server
  DType dtype = DType::kFp32;
  Shape shape;
  int trainer_id = 0;
};

struct PushHandle {
  int index = -1;
};
struct PullHandle {
  int index = -1;
};
struct RowsHandle {
  int index = -1;
};
struct PeersHandle {
  int index = -1;
};

namespace rpc {

class Contracts {
 public:
  virtual ~Contracts() = default;

  // Derives from the program what each server must hold (the contract). Call before the Declare calls of
  // the kernels of a program with communication ops; it may be called again.
  virtual Status Attach(const Program& program) = 0;

  virtual Result<PushHandle> DeclarePush(const RemotePiece& piece) = 0;
  virtual Result<PullHandle> DeclarePull(const RemotePiece& piece) = 0;
  // Declares a piece of a table for look-ups of single rows; its shape gives the number of rows.
  virtual Result<RowsHandle> DeclareRows(const RemotePiece& piece) = 0;
  virtual Result<PeersHandle> DeclarePeers(const std::vector<std::string>& pservers, int trainer_id) = 0;
  // Whether a program of another transpile than this program's receives the variable.
  virtual bool IsOfAnotherProgram(const Program& /*program*/, const std::string& /*variable*/) const {
    return false;
  }
};

}  // namespace rpc
}  // namespace penstock
