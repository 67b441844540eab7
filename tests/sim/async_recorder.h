// The updates of a simulated asynchronous job, recorded from the servers' blocks.
//
//   AsyncRecorder recorder(sim);
//   ASSERT_TRUE(sim.Run());
//   recorder.chunks("w").at(0).updates           // of the chunk that begins with row 0, in order
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/sim/references/async.h"
#include "tests/sim/simulation.h"

namespace penstock::test {

inline bool Same(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

class AsyncRecorder {
 public:
  struct Chunk {
    Dim begin = 0, end = 0;
    std::vector<AsyncUpdate> updates;
    // Where a server has begun with values of a checkpoint: after so many recorded updates, with these bytes.
    std::vector<std::pair<std::size_t, std::vector<float>>> restored = {};
  };

  explicit AsyncRecorder(Simulation& sim) : sim_(sim) {
    sim.runner().before = [this](const Program& program, int block, Scope& scope) {
      const Op& last = *program.block(block).ops().back().op;
      if (!last.HasInputSlot("Param")) {
        ++rate_runs_;
        return;
      }
      const std::string& name = last.InputName("Param");
      const auto is = [&](const ToyParam& param) { return param.name == name; };
      const auto& params = sim_.job().params;
      NoteUpdate(*std::find_if(params.begin(), params.end(), is), scope);
    };
  }
  // A server has been started again.
  void NoteRestart(int server) {
    for (const ToyParam& param : sim_.job().params) {
      if (param.server != server) continue;
      for (auto& [row, chunk] : chunks_[param.name])
        chunk.restored.emplace_back(chunk.updates.size(), ValueOf(param, chunk));
    }
  }
  // A chunk that another start of the job has updated.
  void Expect(const ToyParam& param, const Chunk& chunk) {
    chunks_[param.name][chunk.begin] = {.begin = chunk.begin, .end = chunk.end, .updates = {}};
  }
  std::vector<float> ValueOf(const ToyParam& param, const Chunk& chunk) const {
    const auto whole = sim_.server(param.server).scope.Find(param.name)->As<Tensor>().Span<float>();
    const Dim width = param.shape.rank() > 1 ? param.shape.RowWidth() : 1;
    return {whole.begin() + chunk.begin * width, whole.begin() + chunk.end * width};
  }
  int rate_runs() const { return rate_runs_; }
  const std::map<Dim, Chunk>& chunks(const std::string& param) { return chunks_[param]; }

 private:
  void NoteUpdate(const ToyParam& param, Scope& scope) {
    const Tensor& value = scope.Find(param.name)->As<Tensor>();
    const Tensor& whole = sim_.server(param.server).scope.Find(param.name)->As<Tensor>();
    const Dim width = param.shape.rank() > 1 ? param.shape.RowWidth() : 1;
    const Dim begin = (value.Data<float>() - whole.Data<float>()) / width;
    Chunk& chunk = chunks_[param.name][begin];
    chunk.begin = begin;
    chunk.end = begin + value.shape()[0];
    AsyncUpdate& update = chunk.updates.emplace_back();
    update.rate = scope.Find("rate")->As<Tensor>().Span<float>()[0];
    const auto* rows = scope.Find(sim_.job().GradName(param, 0)) == nullptr
                           ? nullptr
                           : scope.Find(sim_.job().GradName(param, 0))->If<SelectedRows>();
    if (rows != nullptr) update.rows = rows->rows;
    const Tensor& gradient = rows != nullptr ? rows->value : scope.Find(param.name + "@GRAD")->As<Tensor>();
    update.gradient.assign(gradient.Span<float>().begin(), gradient.Span<float>().end());
  }

  Simulation& sim_;
  int rate_runs_ = 0;
  std::map<std::string, std::map<Dim, Chunk>> chunks_;  // by first row
};

}  // namespace penstock::test
