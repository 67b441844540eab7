// Norms over all gradients, in the memory of one server: the measures of its chunks, the bytes that servers
// exchange, and the shared block, which computes what all updates read.
#include <algorithm>
#include <cstring>

#include "executor/pserver/memory/chunk_store.h"
#include "framework/roles/views.h"

namespace penstock::pserver {
namespace {

std::size_t BytesOf(const roles::PieceType& type) {
  return static_cast<std::size_t>(type.shape.Count()) * SizeOf(type.dtype);
}

}  // namespace

// Removes the exchange ops from the shared block, because servers exchange sums by messages. Creates all
// variables of the block now, so that none is created while another thread looks one up.
void ChunkStore::TakeOverExchange() {
  std::vector<OpId> exchanges;
  const auto is_named = [](const std::string& name) { return !name.empty() && name != kEmptyVarName; };
  for (const OpEntry& entry : program_.block(facts_.shared_block).ops()) {
    for (const std::string& name : entry.op->InputNames()) {
      if (is_named(name)) shared_reads_.insert(name);
    }
    for (const std::string& name : entry.op->OutputNames()) {
      if (is_named(name)) scope_.FindOrCreate(name);
    }
    if (roles::CommOf(*entry.op) == roles::Comm::kExchange) exchanges.push_back(entry.id);
  }
  for (const OpId op : exchanges) program_.MutableBlock(facts_.shared_block).Remove(op);
  for (const std::string& name : shared_reads_) scope_.FindOrCreate(name);
}

// Gives the chunk its own variables for what the measure block writes. Those that the shared block reads are
// copied to the server's scope after each run.
void ChunkStore::AddMeasures(int block, Chunk& chunk) {
  for (const OpEntry& entry : program_.block(block).ops()) {
    for (const std::string& name : entry.op->OutputNames()) {
      if (name.empty() || name == kEmptyVarName || chunk.scope->FindLocal(name) != nullptr) continue;
      const Variable* own = chunk.scope->FindOrCreate(name);
      if (shared_reads_.contains(name)) chunk.measures.emplace_back(own, scope_.FindOrCreate(name));
    }
  }
}

Status ChunkStore::Measure(const MeasureAction& measure, BlockRunner& runner) {
  Chunk& chunk = At(measure.param, measure.chunk);
  const Param& param = params_[static_cast<std::size_t>(measure.param)];
  if (param.measure_block < 0) return OkStatus();
  Status status = chunk.measure.Run(runner, program_, param.measure_block, *chunk.scope);
  if (!status.ok()) {
    return std::move(status).With(StrCat("in the norm of the gradient of ", param.piece.name, " for step ",
                                         measure.step, " on pserver ", facts_.address));
  }
  for (const auto& [own, all] : chunk.measures) {
    const Tensor* made = own->If<Tensor>();
    if (made == nullptr || !made->initialized()) {
      return InvalidArgument("E-server-exchange", "block ", param.measure_block, " of pserver ",
                             facts_.address, " makes no tensor of the gradient of ", param.piece.name);
    }
    all->As<Tensor>() = made->Clone();
  }
  return OkStatus();
}

Payload ChunkStore::OwnSums() const {
  const roles::ServedExchange& exchange = facts_.exchange;
  std::string bytes;
  for (const roles::ServedExchange::Value& value : exchange.values) {
    if (value.owner != exchange.self) continue;
    const Variable* variable = scope_.Find(value.type.name);
    const Tensor* tensor = variable == nullptr ? nullptr : variable->If<Tensor>();
    const std::size_t size = BytesOf(value.type);
    const std::size_t at = bytes.size();
    bytes.resize(at + size);  // zeros for a value that no block has made
    if (tensor != nullptr && tensor->initialized())
      std::memcpy(bytes.data() + at, tensor->raw(), std::min(size, tensor->bytes()));
  }
  return Payload::Of(std::move(bytes));
}

Status ChunkStore::Combine(const CombineAction& combine, BlockRunner& runner) {
  const roles::ServedExchange& exchange = facts_.exchange;
  std::vector<std::size_t> read(exchange.servers.size(), 0);
  for (const roles::ServedExchange::Value& value : exchange.values) {
    if (value.owner == exchange.self) continue;
    const auto owner = static_cast<std::size_t>(value.owner);
    Tensor told(value.type.dtype, value.type.shape);
    combine.sums[owner].Part(read[owner], told.bytes()).CopyTo(told.raw());
    read[owner] += told.bytes();
    scope_.FindOrCreate(value.type.name)->As<Tensor>() = std::move(told);
  }
  if (facts_.shared_block < 0) return OkStatus();
  Status status = shared_.Run(runner, program_, facts_.shared_block, scope_);
  if (status.ok()) return status;
  return std::move(status).With(
      StrCat("in the norm over all gradients for step ", combine.step, " on pserver ", facts_.address));
}

}  // namespace penstock::pserver
