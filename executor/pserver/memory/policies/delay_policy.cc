#include "executor/pserver/memory/policies/delay_policy.h"

#include <string>
#include <vector>

namespace penstock::pserver {

void DelayPolicy::TakeOver(const roles::ServedParam& served, Program& program) {
  const Var* declared = program.block(served.block).FindVar(served.backup_of);
  if (declared == nullptr) return;
  Var whose = *declared;
  program.MutableBlock(served.block).RemoveVar(served.backup_of);
  program.MutableBlock(0).SetVar(std::move(whose));
}

void DelayPolicy::Declare(const roles::ServedParam& served, Scope& chunk) {
  chunk.FindOrCreate(served.backup_of)->As<Tensor>() = Tensor(DType::kInt64, {1});
}

Result<std::unique_ptr<ChunkPolicy>> DelayPolicy::Make(const roles::ServedParam& served, const Scope& chunk,
                                                       const Tensor& param) {
  std::vector<Tensor> rows;
  for (const std::string& name : served.backups) {
    const Variable* variable = chunk.Find(name);
    const Tensor* tensor = variable == nullptr ? nullptr : variable->If<Tensor>();
    if (tensor == nullptr || !tensor->initialized() || tensor->dtype() != param.dtype() ||
        tensor->shape() != param.shape()) {
      return FailedPrecondition(
          "E-server-startup", name, ", which is what a trainer has read of ", served.param.name,
          ", does not have this type and shape on this pserver; run its startup program first");
    }
    rows.push_back(*tensor);
  }
  return std::unique_ptr<ChunkPolicy>(std::make_unique<DelayPolicy>(
      Backups(std::move(rows), *chunk.FindLocal(served.backup_of)->If<Tensor>())));
}

std::optional<ChunkPolicy::Earlier> DelayPolicy::Read(int trainer, std::uint64_t version, const Tensor& now,
                                                      std::uint64_t updates) {
  const std::uint64_t kept = backups_.Keep(trainer, version, now, updates);
  if (kept == updates) return std::nullopt;
  return Earlier{&backups_.of(trainer), kept};
}

}  // namespace penstock::pserver
